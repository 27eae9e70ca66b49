"""Exported datasets: the user's side of a run, the same whatever the agent."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import trio

from longspan import BaseAgent, Message, Reply
from longspan.simulator.cli import main
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.running.dataset import export_datasets
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.manifest import ImportSource
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from tests.report.pages import altered, journal, played
from tests.sealing import change_json

HERE = f"python:{__name__}"


class Wordy(BaseAgent):
    """Talks at length, orders what there is, and is never the same."""

    async def reply(self, message: Message) -> Reply:
        random = Random(message.text)
        return Reply(f"{message.text[:200]} I would like a tea, please. " + "and so on " * random.randint(0, 120))


class Whimsical(Scenario):
    """Says of its outline what the replies make it say, or gives up."""

    name: ClassVar[str] = "whimsical"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        outline = [Segment(0, 60, 2), Segment(0.3, 90, 3, watch=2), Segment(0.9, 60, 2)]
        return Script(facts={}, outline=outline, farewell="Whims are over.")

    async def play(self, stage: Stage) -> None:
        random = Random(await stage.ask("A whim?", ideal="No."))
        for _ in range(2):
            if random.random() < 0.4:
                await stage.say("A whim more!", needle=True)
            if random.random() < 0.2:
                raise ValueError("a whim")
            await stage.wait()
        if random.random() < 0.7:
            await stage.ask("What whims?", ideal="None.")


SUITE = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "restaurant", "trigger_response", f"{HERE}:Whimsical"], 2)


def run_of(suite: Suite, out: Path, agent: str, span: int = 2000, **settings: Any) -> Path:
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=span, agent=agent, **settings), out)]))
    return outcome.folder


def exported(out: Path, *runs: Path) -> list[Path]:
    """The folders of runs' datasets, in order."""
    assert export_datasets(load_runs(runs)[0], out) == []
    return [out / run.name for run in runs]


def rows(dataset: Path, file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (dataset / file).read_text("utf-8").splitlines()]


def longspan(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a wordy agent."""
    return run_of(SUITE, tmp_path_factory.mktemp("runs"), f"{HERE}:Wordy")


@pytest.mark.parametrize(("span", "seed"), [(2000, 1), (2000, 2), (6000, 3)])
def test_the_dataset_is_the_same_whatever_the_agent(span: int, seed: int, tmp_path: Path) -> None:
    runs = [run_of(SUITE, tmp_path / "runs", agent, span, seed=seed) for agent in ("silent", "oracle", f"{HERE}:Wordy")]
    said = [{message["text"] for message in journal(run) if message["type"] == "message"} for run in runs]
    assert said[0] != said[2], "the dynamic tests said other things"
    first, *others = exported(tmp_path / "out", *runs)
    for name in ("messages.jsonl", "expected.jsonl", "dataset.json"):
        assert all((other / name).read_bytes() == (first / name).read_bytes() for other in others)


def test_it_has_every_turn_and_of_other_than_dynamic_tests_every_word(run: Path, tmp_path: Path) -> None:
    (dataset,) = exported(tmp_path / "out", run)
    entries = journal(run)
    sent = [entry for entry in entries if entry["type"] == "message"]
    replies = {entry["turn"]: entry for entry in entries if entry["type"] == "reply"}
    messages = rows(dataset, "messages.jsonl")
    assert [(row["turn"], row["sent_at"]) for row in messages] == [(message["turn"], message["sent_at"]) for message in sent]
    dynamic = ("restaurant", "whimsical")
    for row, message in zip(messages, sent, strict=True):
        if message.get("test", "").startswith(dynamic):
            assert (row["kind"], row["needle"], row["needs"], row["reply"]) == ("filler", False, None, None)
        else:
            assert {name: row[name] for name in ("kind", "needle", "text", "tokens", "dealt")} == {
                name: message[name] for name in ("kind", "needle", "text", "tokens", "dealt")
            }
            assert row["needs"] == message.get("needs")
            assert row["reply"] == (None if replies[row["turn"]]["asked"] else replies[row["turn"]]["text"])
    texts = [row["text"] for row in messages]
    assert not any("whim" in text or "Waiter" in text for text in texts)
    assert [row["dealt"] for row in messages] == sorted(row["dealt"] for row in messages)


def test_what_is_expected_stands_apart(run: Path, tmp_path: Path) -> None:
    (dataset,) = exported(tmp_path / "out", run)
    messages = {row["turn"]: row for row in rows(dataset, "messages.jsonl")}
    expected = rows(dataset, "expected.jsonl")
    opened = {entry["test"]: entry for entry in journal(run) if entry["type"] == "open"}
    assert {row["test"] for row in expected} == {test for test, entry in opened.items() if entry["lines"]}
    for row in expected:
        assert row["facts"] == opened[row["test"]]["facts"]
        assert [messages[turn]["kind"] for turn in row["turns"]] == [
            "question" if line["asks"] else "line" for line in opened[row["test"]]["lines"]
        ]
        ideals = [line["ideal"] for line in opened[row["test"]]["lines"] if line["asks"]]
        assert [question["ideal"] for question in row["questions"]] == ideals
        for question in row["questions"]:
            assert set(messages[question["turn"]]["needs"]) <= set(row["turns"])
    asked = sorted(question["turn"] for row in expected for question in row["questions"])
    assert asked == [turn for turn, message in messages.items() if message["kind"] == "question"]
    about = json.loads((dataset / "dataset.json").read_text())
    assert (about["span"], about["seed"], about["charge"]) == (2000, 0, 20)
    assert set(about["left_out"]) == set(opened) - {row["test"] for row in expected}


def test_a_test_that_failed_is_expected_of_nobody(tmp_path: Path) -> None:
    suite = Suite(name="made", tests=2, scenarios={f"{HERE}:Faulty": {}, "colours": {}})
    (dataset,) = exported(tmp_path / "out", run_of(suite, tmp_path, "silent"))
    assert {row["scenario"] for row in rows(dataset, "expected.jsonl")} == {"colours"}
    reasons = json.loads((dataset / "dataset.json").read_text())["left_out"]
    assert all(why.startswith("failed: ValueError: no more") for why in reasons.values())
    assert set(reasons) == {"faulty-1", "faulty-2"}


class Faulty(Scenario):
    """Fails before its question."""

    name: ClassVar[str] = "faulty"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        return Script(facts={}, lines=[Line("It begins."), Line("Where does it end?", asks=True)])

    async def play(self, stage: Stage) -> None:
        await stage.say("It begins.")
        raise ValueError("no more")


def test_tests_that_have_a_conversation_to_themselves(tmp_path: Path) -> None:
    """With `--isolated`, or by their form. A dynamic test's conversation has nothing left and is left out."""
    isolated = run_of(SUITE.apply_changes([], [], ["colours", "restaurant"], 2), tmp_path / "isolated", "silent", isolated=True)
    alone = run_of(Suite(name="made", tests=1, scenarios={"python:tests.simulator.test_alone:Pages": {}}), tmp_path / "alone", "oracle")
    first, second = exported(tmp_path / "out", isolated, alone)
    for dataset, ids in ((first, {"colours-1", "colours-2"}), (second, {"pages-page-0", "pages-page-1", "pages-page-2"})):
        messages = rows(dataset, "messages.jsonl")
        assert {row["conversation"] for row in messages} == ids == {row["test"] for row in rows(dataset, "expected.jsonl")}
        for id in ids:
            turns = [row["turn"] for row in messages if row["conversation"] == id]
            assert turns == list(range(len(turns)))
    assert {row["kind"] for row in rows(second, "messages.jsonl")} == {"line", "question"}


def test_runs_of_one_name_have_a_folder_each(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "elsewhere" / run.name)
    export_datasets(load_runs([run, tmp_path / "elsewhere"])[0], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [run.name, f"{run.name}-2"]


# Runs that have none.


def cut(entries: list[dict[str, Any]]) -> None:
    """Interrupt a conversation after its last reply."""
    assert entries.pop()["type"] == "close"


def of_0_2(run: Path, to: Path) -> Path:
    with tarfile.open(Path(__file__).parents[1] / "simulator" / "made-by-0.2.tar.xz") as packed:
        packed.extractall(to, filter="data")
    return to / "made-by-0.2"


def imported(run: Path, to: Path) -> Path:
    source = {"kind": "log", "file": "log.json", "sha256": "0" * 64}
    manifest = RunFolder(run).manifest.model_copy(update={"imported": ImportSource.model_validate(source)})
    copy = altered(run, to, lambda entries: entries[0].update(run=manifest.run_name))
    change_json(copy / "manifest.json", lambda manifest: manifest.update(imported=source))
    change_json(copy / "result.json", lambda result: result.update(run=manifest.run_name))
    return copy


def only_dynamic(run: Path, to: Path) -> Path:
    return played(to, "restaurant", "prospective_memory", agent="silent", tests=1)


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path, Path], Path]:
    return lambda run, to: altered(run, to, change)


def outlined(**fields: Any) -> Callable[[Path, Path], Path]:
    """Forge the outline of a dynamic test."""

    def change(entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["type"] == "open" and entry["outline"])["outline"][0].update(fields)

    return changed(change)


def filled(entries: list[dict[str, Any]]) -> None:
    """Change what fills a place."""
    next(entry for entry in entries if entry["type"] == "message" and entry["kind"] == "filler" and "test" in entry)["text"] = "Well."


def uncharged(entries: list[dict[str, Any]]) -> None:
    del next(entry for entry in entries if entry["type"] == "message")["dealt"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (changed(cut), "interrupted, so its dataset would end early; continue it with `longspan resume`"),
        (of_0_2, "the run was made by longspan 0.2.0.dev0, and its messages depended on the agent's replies"),
        (imported, "the run was imported, and its messages depended"),
        (only_dynamic, "every test is left out"),
        (outlined(replies=10**12), "but its outline declares 1000000000"),
        (outlined(replies=-1), "has an invalid outline"),
        (outlined(tokens="many"), "has an invalid outline"),
        (outlined(tokens=-5), "has an invalid outline"),
        (changed(filled), "is not what this version fills a place with; export it with longspan"),
        (changed(uncharged), "turn 0 has no charged position"),
    ],
    ids=["interrupted", "of 0.2", "imported", "dynamic", "endless", "negative", "no number", "less than nothing", "filled", "uncharged"],
)
def test_a_run_without_a_dataset_is_named_in_one_line_and_left_out(
    make: Callable[[Path, Path], Path], said: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = make(run, tmp_path / "runs")
    capsys.readouterr()
    assert longspan("export", without, run, "--format", "dataset", "--out", tmp_path / "out") == 0
    error = capsys.readouterr().err
    assert error.startswith(f"left out: {without}")
    assert said in error
    assert error.count("\n") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [run.name]
    assert longspan("export", without, "--format", "dataset", "--out", tmp_path / "none") == 2
    assert not (tmp_path / "none").exists()
    assert said in capsys.readouterr().err


def test_a_file_that_a_strangers_run_names_is_read_only_if_it_is_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = [{"Question": f"What comes after {number}?", "Answer": {"Value": str(number + 1)}} for number in range(500)]
    trivia = tmp_path / "trivia.json"
    trivia.write_text(json.dumps({"Data": questions}))
    suite = load_suite("ltm").apply_changes([], [], ["colours", "restaurant"], 1)
    own = run_of(suite, tmp_path / "runs", "silent", filler=trivia)
    strange = tmp_path / "strange" / own.name
    shutil.copytree(own, strange)
    assert longspan("export", own, "--format", "dataset", "--out", tmp_path / "own") == 0
    assert longspan("export", strange, "--format", "dataset", "--out", tmp_path / "out") == 2
    assert f"names a file or a model to use: {trivia}; --trust" in capsys.readouterr().err
    assert longspan("export", strange, "--format", "dataset", "--out", tmp_path / "out", "--trust") == 0
    assert (tmp_path / "out" / own.name / "messages.jsonl").read_bytes() == (tmp_path / "own" / own.name / "messages.jsonl").read_bytes()
    trivia.write_text(json.dumps({"Data": questions[:-1]}))
    assert longspan("export", own, "--format", "dataset", "--out", tmp_path / "late") == 2
    assert "not the file that the run was created with" in capsys.readouterr().err


def test_any_text_can_be_read_back(run: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        entry = next(entry for entry in entries if entry["type"] == "open" and entry["lines"])
        entry["facts"] = {"odd": "\u2028\n\x00 ₂ 中"}

    copy = altered(run, tmp_path / "runs", change)
    (dataset,) = exported(tmp_path / "out", copy)
    lines = (dataset / "expected.jsonl").read_bytes().split(b"\n")
    assert {"odd": "\u2028\n\x00 ₂ 中"} in [json.loads(line)["facts"] for line in lines if line]
