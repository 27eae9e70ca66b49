"""Errors of scenarios' authors: told with their line, and kept with their traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from longspan.simulator.cli import main

BROKEN = """
from longspan import Grade, Line, Scenario, Script, Segment

def missing(where):
    return {}[where]

class Broken(Scenario):
    name = "broken"
    skills = ("recall",)
    at: str = ""

    def make(self, random):
        if self.at == "make":
            return missing("make")
        if self.at == "amend":
            return Script(facts={}, outline=[Segment(0, 20, 1, watch=2)])
        return Script(facts={}, lines=[Line("A line."), Line("And now?", asks=True, ideal="Now.")])

    async def play(self, stage):
        if self.at == "amend":
            async for turn in stage.watch(turns=2, amend=lambda count, ideal: missing("amend")):
                pass
        if self.at == "rules":
            await stage.say(" ")
        if self.at in ("SystemExit", "GeneratorExit", "KeyboardInterrupt"):
            raise {"SystemExit": SystemExit, "GeneratorExit": GeneratorExit, "KeyboardInterrupt": KeyboardInterrupt}[self.at]
        await stage.ask("And now?", ideal="Now.")
        if self.at == "play":
            missing("play")

    def grade(self, facts, record):
        if self.at == "exit":
            raise SystemExit(3)
        return missing("grade")
"""

LINE = {text: number for number, text in enumerate(BROKEN.splitlines(), 1)}
RAISED = LINE["    return {}[where]"]
SPOKEN = LINE['            await stage.say(" ")']
RAISED_BY_NAME = next(number for text, number in LINE.items() if "raise {" in text)
EXITED = LINE["            raise SystemExit(3)"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "broken.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    return tmp_path


def longspan(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exiting:
        main(arguments)
    assert isinstance(exiting.value.code, int)
    return exiting.value.code


def play(at: str) -> int:
    scenario = ["--scenario", "python:broken:Broken", "--scenario", "colours", "--tests", "1", "--set", f"broken.at={at}"]
    return longspan("run", *scenario, "--agent", "silent", "--out", "runs")


def incidents(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("runs/*/incidents.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("play", f"KeyError: 'play' (broken.py:{RAISED})"),
        ("amend", f"KeyError: 'amend' (broken.py:{RAISED})"),
        ("rules", f"a line must be a string that is not blank, got ' ' (broken.py:{SPOKEN})"),
        ("GeneratorExit", f"GeneratorExit (broken.py:{RAISED_BY_NAME})"),
        ("KeyboardInterrupt", f"KeyboardInterrupt (broken.py:{RAISED_BY_NAME})"),
    ],
)
def test_an_error_in_play_is_told_with_its_line_and_kept_with_its_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], at: str, error: str
) -> None:
    assert play(at) == 1
    assert f"broken-1 has no score: the test failed: {error}" in capsys.readouterr().out
    (incident,) = incidents(folder)
    assert {key: incident[key] for key in ("type", "test", "conversation", "error")} == {
        "type": "scenario_error",
        "test": "broken-1",
        "conversation": "main",
        "error": error,
    }
    assert f'broken.py", line {error.rpartition(":")[2].rstrip(")")}, in ' in incident["traceback"]
    (run,) = folder.glob("runs/*")
    assert longspan("replay", str(run), "--trust") == 0, "the same error, the same line"
    assert longspan("resume", str(run), "--trust") == 1
    assert len(incidents(folder)) == 1, "what is replayed is not noted again"


@pytest.mark.parametrize(
    ("at", "error"), [("grade", f"KeyError: 'grade' (broken.py:{RAISED})"), ("exit", f"SystemExit: 3 (broken.py:{EXITED})")]
)
def test_an_error_in_grade_leaves_the_test_unscored(folder: Path, capsys: pytest.CaptureFixture[str], at: str, error: str) -> None:
    assert play(at) == 0
    assert f"broken-1 has no score: the grader failed: {error}" in capsys.readouterr().out
    (incident,) = incidents(folder)
    assert (incident["type"], incident["test"], incident["error"]) == ("grader_error", "broken-1", f"the grader failed: {error}")
    assert "in grade" in incident["traceback"]
    (run,) = folder.glob("runs/*")
    assert longspan("score", str(run), "--trust") == 0
    assert len(incidents(folder)) == 1, "the same grade is not noted again"


def test_an_error_in_make_is_told_before_anything_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert play("make") == 2
    told = capsys.readouterr().err
    assert told.endswith(f"failed: KeyError: 'make' (broken.py:{RAISED})\n")
    assert told.startswith("longspan: scenario broken: making ")
    assert not (folder / "runs").exists()


UNNEEDED = """
from longspan import Grade, Line, Scenario, Script

class Broken(Scenario):
    name = "broken"
    skills = ("recall",)
    at: str = ""

    def make(self, random):
        return Script(facts={}, lines=[Line("My cat is called Tom.", needle=True), Line("Who?", asks=True, needs=(0,), ideal="Tom.")])

    def needed(self, facts, number, question, needles):
        raise LookupError("no such needle")

    def numbers(self, facts):
        return {"similar": 1 / 0} if self.at == "numbers" else {}

    def grade(self, facts, record):
        return Grade(score=1.0, reason="it is right")
"""


@pytest.mark.parametrize("at", ["needed", "numbers"])
def test_an_error_that_costs_no_grade_is_told_with_its_test(folder: Path, capsys: pytest.CaptureFixture[str], at: str) -> None:
    (folder / "broken.py").write_text(UNNEEDED)
    assert play(at) == 0
    said = " ".join(capsys.readouterr().out.split())
    told = {"needed": "broken-1: `needed` of broken failed: LookupError: no such needle (broken.py:13): all its needles count as needed"}
    if at == "numbers":
        why = "ZeroDivisionError: division by zero (broken.py:16)"
        told["numbers"] = f"broken-1: `numbers` of broken failed: {why}: the numbers planted in it are unknown"
    for sentence in told.values():
        assert said.count(sentence) == 1
    (run,) = folder.glob("runs/*")
    result = json.loads((run / "result.json").read_text())
    assert sorted(result["faults"]) == sorted(told.values())
    (test,) = (test for test in result["tests"] if test["id"] == "broken-1")
    assert (test["status"], test["score"]) == ("scored", 1.0)
    assert all(pair["needed"] for pair in test["evidence"])
    assert {entry["type"] for entry in incidents(folder)} == {"grader_error"}
    page = (run / "report.html").read_text()
    assert all(sentence in page for sentence in told.values())
