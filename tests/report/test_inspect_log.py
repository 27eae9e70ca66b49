"""Eval logs: Inspect AI's own reader finds in them what the runs hold."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.results.analysis.export import export_runs
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.running.scoring import score_run
from tests.report.pages import altered, journal, replying
from tests.threads import asyncio_run, in_thread

HOSTILE = "</script><script>alert(1)</script>\x00\x1b[31m\u202e {{ x }}"


def logged(runs: Sequence[Path], out: Path) -> dict[str, Any]:
    """The logs of runs as Inspect AI reads them, by file name."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    assert export_runs(load_runs(runs)[0], "inspect", out) == []
    listed = [Path(log.name) for log in in_thread(lambda: list_eval_logs(str(out)))]
    assert {path.name for path in listed} == {path.name for path in out.iterdir()}
    return {path.name: in_thread(lambda path=path: read_eval_log(str(out / path.name))) for path in listed}  # type: ignore[misc]


@pytest.fixture(scope="module")
def log(woven: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The log of a run of two scenarios in one conversation."""
    return logged([woven], tmp_path_factory.mktemp("logs") / "out")[f"{woven.name}.eval"]


def result(run: Path) -> dict[str, Any]:
    return json.loads((run / "result.json").read_text())  # type: ignore[no-any-return]


def test_it_has_the_settings_and_the_scores(log: Any, woven: Path) -> None:
    known = result(woven)
    assert (log.status, log.eval.task, log.eval.model) == ("success", "ltm", "oracle")
    assert log.eval.task_args == {"span": 2000, "isolated": False, "placement": "spread", "seed": 0}
    assert log.eval.packages["longspan"] == RunFolder(woven).manifest.versions["longspan"]
    assert (log.results.total_samples, log.results.completed_samples) == (4, 4)
    (scores,) = log.results.scores
    assert (scores.scored_samples, scores.unscored_samples) == (4, 0)
    figures = {name: metric.value for name, metric in scores.metrics.items()}
    assert figures == {
        "score": known["score"],
        "score_at_least": known["score"],
        "score_at_most": known["score"],
        "full_marks": 2,
        "chance": pytest.approx(sum(scenario["chance"] for scenario in known["scenarios"].values())),
        "certified": 1,
        "at_distance": 1,
    }


def test_each_test_is_a_sample_with_its_turns_its_score_and_the_reason(log: Any, woven: Path) -> None:
    messages = {entry["turn"]: entry for entry in journal(woven) if entry["type"] == "message"}
    replies = {entry["turn"]: entry["text"] for entry in journal(woven) if entry["type"] == "reply"}
    tests = result(woven)["tests"]
    samples = {sample.id: sample for sample in log.samples}  # the reader sorts them
    assert len(log.samples) == len(tests)
    for test in tests:
        sample = samples[test["id"]]
        own = sorted({turn for turn, entry in messages.items() if entry.get("test") == test["id"]} | set(test["turns"]))
        shown = [(message.role, message.text) for message in sample.messages]
        assert shown == [pair for turn in own for pair in (("user", messages[turn]["text"]), ("assistant", replies[turn]))]
        assert [message.metadata["turn"] for message in sample.messages if message.role == "user"] == own
        questions = [turn for turn in own if messages[turn]["kind"] == "question"]
        assert sample.input == "\n\n".join(messages[turn]["text"] for turn in questions)
        given = sample.scores["longspan"]
        assert (given.value, given.explanation, given.answer) == (test["score"], test["reason"], replies[questions[-1]])
        assert sample.metadata["scenario"] == test["scenario"]
        assert [pair["tokens"] for pair in sample.metadata["evidence"]] == [pair["tokens"] for pair in test["evidence"]]
        assert (sample.metadata["certified"], sample.metadata["span_used"], sample.error) == (True, test["span_used"], None)


def test_the_target_is_the_ideal_reply_to_a_scripted_question(log: Any) -> None:
    colours = [sample for sample in log.samples if sample.metadata["scenario"] == "colours"]
    assert [sample.target for sample in colours] == [[sample.scores["longspan"].answer] for sample in colours]
    assert all(sample.metadata["facts"] for sample in colours)


def test_unfinished_tests_are_samples_without_a_score(woven: Path, tmp_path: Path) -> None:
    def cut(entries: list[dict[str, Any]]) -> None:
        end = next(at for at, entry in enumerate(entries) if entry["type"] == "end")
        del entries[end + 1 :]

    folder = altered(woven, tmp_path / "runs", cut)
    score_run(RunFolder(folder))
    (log,) = logged([folder], tmp_path / "out").values()
    outcomes = {test["id"]: test["score"] for test in result(folder)["tests"]}
    lacking = sorted(id for id, given in outcomes.items() if given is None)
    assert 0 < len(lacking) < 4
    assert log.status == "error"
    assert log.error.message == f"{len(lacking)} of 4 tests did not finish"
    assert sorted(sample.id for sample in log.samples if sample.error is not None) == lacking
    assert sorted(sample.id for sample in log.samples if isnan(sample.scores["longspan"].value)) == lacking
    (scores,) = log.results.scores
    assert (scores.unscored_samples, log.results.completed_samples) == (len(lacking), 4 - len(lacking))
    assert "score" not in scores.metrics
    assert scores.metrics["score_at_least"].value < scores.metrics["score_at_most"].value


def test_a_persons_correction_counts_and_is_named(woven: Path, tmp_path: Path) -> None:
    folder = altered(woven, tmp_path / "runs", lambda entries: None)
    RunFolder(folder).correct(Correction(test="colours-1", score=0.25, why="half a reply", by="Ada"))
    score_run(RunFolder(folder))
    (log,) = logged([folder], tmp_path / "out").values()
    given = next(sample for sample in log.samples if sample.id == "colours-1").scores["longspan"]
    assert given.value == 0.25
    assert (given.metadata["corrected_by"], given.metadata["corrected_why"]) == ("Ada", "half a reply")


def test_a_hostile_reply_is_exported_unchanged(woven: Path, tmp_path: Path) -> None:
    turn = next(entry["turn"] for entry in journal(woven) if entry.get("test") == "colours-1" and entry["type"] == "message")
    folder = altered(woven, tmp_path / "runs", replying(HOSTILE, turn))
    (log,) = logged([folder], tmp_path / "out").values()
    texts = [message.text for sample in log.samples for message in sample.messages]
    assert HOSTILE in texts


def test_usage_and_time_are_summed_by_test(woven: Path, tmp_path: Path) -> None:
    def priced(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            if entry["type"] == "reply" and entry["asked"]:
                usage = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 5}
                entry |= {"usage": usage, "cost_usd": {"agent": 0.01}, "measured": {"latency_s": 0.5}}

    folder = altered(woven, tmp_path / "runs", priced)
    score_run(RunFolder(folder))
    (log,) = logged([folder], tmp_path / "out").values()
    replies = sum(entry["type"] == "reply" and entry["asked"] for entry in journal(folder))
    whole = log.stats.model_usage["agent"]
    assert (whole.input_tokens, whole.input_tokens_cache_read, whole.output_tokens) == (40 * replies, 60 * replies, 5 * replies)
    assert whole.total_cost == pytest.approx(0.01 * replies)
    for sample in log.samples:
        turns = sum(message.role == "user" for message in sample.messages)
        asked = sum(message.role == "assistant" and "latency_s" in message.metadata for message in sample.messages)
        assert (sample.model_usage["agent"].total_tokens, sample.total_time) == (105 * asked, 0.5 * asked)
        assert asked <= turns


def test_runs_with_the_same_name_do_not_overwrite_each_other(isolated: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / isolated.name
    shutil.copytree(isolated, other)
    logs = logged([isolated, other], tmp_path / "out")
    assert set(logs) == {f"{isolated.name}.eval", f"{isolated.name}-2.eval"}
    assert all(len(log.samples) == 2 for log in logs.values())


def test_a_damaged_journal_is_named_and_its_run_left_out(
    woven: Path, isolated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = altered(woven, tmp_path / "runs", lambda entries: entries[3].update(seq=99))
    with pytest.raises(SystemExit, match="0"):
        main(["export", str(folder), str(isolated), "--format", "inspect", "--out", f"{tmp_path}/out.inspect"])
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path}/out.inspect: 1 run\n"
    assert printed.err.startswith(f"left out: {folder}")
    assert [path.name for path in (tmp_path / "out.inspect").iterdir()] == [f"{isolated.name}.eval"]


def test_an_export_inside_asyncio_leaves_asyncio_as_it_was(woven: Path, tmp_path: Path) -> None:
    run = asyncio.run

    async def main() -> None:
        assert export_runs(load_runs([woven])[0], "inspect", tmp_path / "out") == []

    asyncio_run(main)
    assert asyncio.run is run
