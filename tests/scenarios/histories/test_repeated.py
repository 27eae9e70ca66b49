"""Recorded histories in several runs: which data was played, and that a history counts once however often it is played."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.simulator.cli import main

CAT = [
    {"at": "2024-03-01T18:05", "turns": [{"speaker": "user", "text": "My cat is called Olive."}]},
    {"question": "What is my cat called?", "answer": "Olive", "kind": "fact", "evidence": ["1:1"]},
    {"question": "What is my dog called?", "kind": "abstention", "answerable": False},
]


def log(folder: Path, values: Sequence[dict[str, Any]] = CAT, name: str = "mine.jsonl") -> Path:
    """Write a log of one's own."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return folder / name


def spoken(values: Sequence[dict[str, Any]], **changes: str) -> list[dict[str, Any]]:
    """The same log with other words."""
    text = json.dumps(values)
    for before, after in changes.items():
        text = text.replace(before, after)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def play(data: Path, agent: str, seed: str, out: Path, *more: str) -> None:
    with pytest.raises(SystemExit) as exiting:
        main(["run", "history", "--data", f"history={data}", "--agent", agent, "--seed", seed, "--out", str(out), *more])
    assert exiting.value.code == 0


# ---- which data


def test_data_is_known_by_what_it_says(tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    one = log(tmp_path / "one")
    copy = tmp_path / "mine.jsonl.gz"
    copy.write_bytes(gzip.compress(one.read_bytes()))
    play(one, "oracle", "0", tmp_path / "runs")
    play(copy, "silent", "0", tmp_path / "runs")
    sha256 = hashlib.sha256(one.read_bytes()).hexdigest()
    manifests = [json.loads(path.read_bytes()) for path in sorted(tmp_path.glob("runs/*/manifest.json"))]
    assert [manifest["data"] for manifest in manifests] == [{"history.data": sha256}] * 2
    code, compared = call("compare", tmp_path / "runs")  # one comparison: the copy is the same data
    assert code == 0
    assert f"Data: history.data mine.jsonl (SHA-256 {sha256[:12]})" in compared
    assert "oracle silent 100% (1.00)" in compared
    assert f"(SHA-256 {sha256[:12]})" in call("list", "runs", tmp_path / "runs")[1]
    report = (tmp_path / "runs/history-mine-oracle-seed0/report.html").read_text("utf-8")
    assert f"<dt><bdi>history.data</bdi></dt><dd><bdi>{one}</bdi>, SHA-256 {sha256}</dd>" in report


def test_a_folder_of_data_is_known_by_its_files(tmp_path: Path) -> None:
    from longspan.simulator.base.files.file_io import content_digest

    for name in ("one", "two", "three", "four"):
        log(tmp_path / name)
    log(tmp_path / "two", name=".hidden")
    log(tmp_path / "three", spoken(CAT, Olive="Oliva"))
    log(tmp_path / "four").rename(tmp_path / "four" / "other.jsonl")
    first, *others = (content_digest(tmp_path / name) for name in ("one", "two", "three", "four"))
    assert [other == first for other in others] == [True, False, False]


def test_results_of_other_data_under_the_same_name_are_neither_pooled_nor_paired(
    tmp_path: Path, call: Callable[..., tuple[int, str]]
) -> None:
    """As LongMemEval was cleaned, and kept its name."""
    runs = tmp_path / "runs"
    data = log(tmp_path)
    play(data, "oracle", "0", runs)
    before = hashlib.sha256(data.read_bytes()).hexdigest()[:12]
    log(tmp_path, spoken(CAT, called="named"))
    after = hashlib.sha256(data.read_bytes()).hexdigest()[:12]
    play(data, "silent", "0", runs)
    mine, theirs = runs / "history-mine-oracle-seed0", runs / "history-mine-silent-seed0"

    code, refused = call("compare", mine, "--baseline", theirs)
    assert code == 2
    assert f"(SHA-256 {before}) in one" in refused
    assert f"(SHA-256 {after}) in the other" in refused
    with pytest.raises(
        longspan.InputError, match=r"history-mine-oracle-seed0 and history-mine-silent-seed0 cannot be compared: history\.data"
    ):
        longspan.load(runs)
    both = f"mine.jsonl is not the same data in {mine.name} (SHA-256 {before}) and {theirs.name} (SHA-256 {after})"
    code, grouped = call("compare", runs)
    assert code == 0
    assert both in grouped
    assert f"history: data mine.jsonl (SHA-256 {after}): 1 agents, 1 runs" in grouped
    sweep = tmp_path / "stated.yaml"
    sweep.write_text(f"suites: [history]\ndata: [history={data}]\nagents: [oracle, silent]\ncontrasts: [{{agents: [oracle, silent]}}]\n")
    code, refused = call("compare", runs, "--contrasts", sweep)
    assert code == 2
    assert both in refused

    code, refused = call("replay", mine)
    assert code == 2
    assert refused.endswith(f"changed since the run was created (SHA-256 {before} then, {after} now); restore it")


# ---- independence


def histories(count: int, questions: int = 4) -> list[dict[str, Any]]:
    """Several histories. Each tells numbers and asks for them."""
    values: list[dict[str, Any]] = []
    for number in range(count):
        told = [{"speaker": "user", "text": f"Remember {number}{each}."} for each in range(questions)]
        values.append({"conversation": f"h{number}", "at": "2024-03-01T18:05", "turns": told})
        values += [
            {"conversation": f"h{number}", "question": f"What is number {number}{each}?", "answer": f"{number}{each}"}
            for each in range(questions)
        ]
    return values


def gate(call: Callable[..., tuple[int, str]], tmp_path: Path, data: Path, *, seeds: str = "0-5", tests: str = "10") -> tuple[int, str]:
    """Compare an agent that knows nothing with one that knows everything."""
    for agent in ("oracle", "silent"):
        play(data, agent, seeds, tmp_path / agent, "--tests", tests)
    return call("compare", tmp_path / "silent", "--baseline", tmp_path / "oracle", "--fail-if-worse")


def test_one_history_is_one_witness_whatever_the_seeds(tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    code, said = gate(call, tmp_path, log(tmp_path))
    assert code == 3
    assert "undecided: 1 paired history cannot show a fall; other seeds only repeat the same history, which counts once; 5 would do" in said
    assert "1 recorded history is played several times" in said
    results = longspan.load(tmp_path / "silent")
    assert results.compare(longspan.load(tmp_path / "oracle")).verdict == "undecided"
    with pytest.raises(AssertionError, match="undecided: 1 paired history"):
        longspan.check(
            "silent", suite="history", data={"history": log(tmp_path)}, no_worse_than=tmp_path / "oracle", out=tmp_path / "checked"
        )
    alone = longspan.load(tmp_path / "silent" / "history-mine-silent-seed0")
    assert alone.interval == results.interval  # it knows no more


def test_five_histories_are_five_witnesses(tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    code, said = gate(call, tmp_path, log(tmp_path, histories(5)), seeds="0-1")
    assert code == 1
    assert "in 20 tests of 5 paired histories (p = 0.031, one-sided)" in said
    for out in ("oracle", "silent"):
        shutil.rmtree(tmp_path / out)
    code, said = gate(call, tmp_path, tmp_path / "mine.jsonl", seeds="0-5", tests="2")  # two of the five are drawn by each seed
    assert code == 1
    assert "in 20 tests of 5 paired histories (p = 0.031, one-sided)" in said


@pytest.mark.parametrize("delivery", ["told", "context", "weave"])
def test_however_it_is_delivered(delivery: str, tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    data = log(tmp_path, histories(1))
    for agent in ("oracle", "silent"):
        play(data, agent, "0-5", tmp_path / "runs", "--set", f"delivery={delivery}")
    code, said = call("compare", tmp_path / "runs")
    assert code == 0
    assert "Too few conversations: 1 recorded history in common." in " ".join(said.split())
    assert "this needs 6. Take data with 5 more histories: other seeds only repeat the same" in " ".join(said.split())


def test_made_up_histories_are_others_from_every_seed(tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    for agent in ("oracle", "silent"):
        with pytest.raises(SystemExit):
            main(["run", "locomo", "--tests", "1", "--set", "tokens=5k", "--agent", agent, "--seed", "0-4", "--out", str(tmp_path / agent)])
    code, said = call("compare", tmp_path / "silent", "--baseline", tmp_path / "oracle", "--fail-if-worse")
    assert code == 1
    assert "of 5 paired conversations (p = 0.031, one-sided)" in said


def test_a_contrast_that_repetitions_cannot_show_is_refused_before_it_is_played(
    tmp_path: Path, call: Callable[..., tuple[int, str]]
) -> None:
    sweep = tmp_path / "stated.yaml"
    sweep.write_text(
        f"suites: [history]\ndata: [history={log(tmp_path)}]\nagents: [oracle, silent]\nseeds: 0-7\n"
        "contrasts: [{agents: [oracle, silent]}]\n"
    )
    code, said = call("sweep", sweep)
    assert code == 2
    assert "1 conversation of oracle and silent cannot show a difference, however large" in said
    assert "6 would do, that is data with 5 more histories, since each counts once for all seeds" in said


# ---- tests played several times


SEVERAL = "play the same recorded"


def test_runs_that_no_seed_changes_are_told_before_they_are_played(tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    options = ["history", "--data", f"history={log(tmp_path)}", "--out", tmp_path / "runs", "--agent"]
    code, said = call("run", *options, "silent", "--seed", "0-2", "--agent", "oracle")
    assert code == 0
    for agent in ("silent", "oracle"):
        assert f"note: 3 runs of {agent} {SEVERAL} history and ask the same questions for every seed and span" in said
    assert len(list((tmp_path / "runs").iterdir())) == 6, "they may be repeated"
    assert f"2 runs of silent {SEVERAL} history" in call("estimate", *options[:3], "--agent", "silent", "--seed", "0,1")[1]
    (tmp_path / "sweep.yaml").write_text(json.dumps({"suites": ["history"], "data": [options[2]], "agents": ["silent"], "seeds": "0-1"}))
    assert f"2 runs of silent {SEVERAL} history" in call("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "sweep", "--trust")[1]


@pytest.mark.parametrize("more", [["--seed", "0"], ["--seed", "0,1", "--set", "questions=1"]])
def test_runs_that_differ_are_not_taken_for_repetitions(more: list[str], tmp_path: Path, call: Callable[..., tuple[int, str]]) -> None:
    """One seed, and seeds that draw the questions."""
    values = [*CAT, *({"question": f"What is my cat called, {number}?", "answer": "Olive"} for number in range(50))]
    code, said = call("estimate", "history", "--data", f"history={log(tmp_path, values)}", "--agent", "silent", *more)
    assert code == 0
    assert SEVERAL not in said
    assert SEVERAL not in call("estimate", "history", "--set", "tokens=5000", "--tests", "1", "--agent", "silent", "--seed", "0,1")[1], (
        "made up"
    )
