"""A run's events are folded once and each of its tests is graded once, whatever shows the results."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.scenarios.ltm.colours import Colours
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.running.scoring import RunScorer, score_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.progress import Progress

TESTS = 2


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The journal lines that were parsed."""
    lines: list[object] = []
    parse = events.parse_json

    def counted(line: bytes) -> Any:
        lines.append(line)
        return parse(line)

    monkeypatch.setattr(events, "parse_json", counted)
    return lines


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each test was graded, by its first line."""
    counts: Counter[str] = Counter()
    grade = Colours.grade

    def counted(self: Colours, facts: Any, record: Any) -> Any:
        counts[record.exchanges[0].text] += 1
        return grade(self, facts, record)

    monkeypatch.setattr(Colours, "grade", counted)
    return counts


def planned(out: Path, isolated: bool) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], TESTS)
    return plan_run(RunSettings(suite=suite, span=2000, seed=4, agent="oracle", isolated=isolated), out)


def lines(run: RunFolder) -> int:
    return sum(run.journal(id).read_bytes().count(b"\n") for id in run.manifest.conversations)


FILES = ("result.json", "report.html", "grades.jsonl")


@pytest.mark.parametrize("isolated", [False, True])
def test_a_run_shown_while_it_plays_is_graded_once_and_its_journal_not_read(
    tmp_path: Path, isolated: bool, parsed: list[object], graded: Counter[str]
) -> None:
    plans = [planned(tmp_path, isolated), planned(tmp_path, isolated)]
    with Progress(plans, Console(file=StringIO())) as progress:
        outcomes = trio.run(lambda: play_plans(plans, listener=progress.take_event, pages=Report))
    assert parsed == []
    assert list(graded.values()) == [len(plans)] * TESTS, "the runs have the same tests"
    for outcome in outcomes:
        files = [(outcome.folder / name).read_bytes() for name in FILES]
        score_run(RunFolder(outcome.folder), Report)
        assert [(outcome.folder / name).read_bytes() for name in FILES] == files


def test_scoring_and_resuming_a_finished_run_parse_no_line_twice(tmp_path: Path, parsed: list[bytes], graded: Counter[str]) -> None:
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path, False)], pages=Report))
    run = RunFolder(outcome.folder)
    for repeat in (lambda: score_run(run, Report), lambda: trio.run(lambda: resume_run(run, "oracle", pages=Report))):
        parsed.clear()
        graded.clear()
        repeat()
        again = {bytes(line) for line, times in Counter(parsed).items() if times > 1}
        assert all(b'"type":"begin"' in line for line in again), "a journal's first line says whose it is, before the others are read"
        assert len(set(parsed)) <= lines(run)
        assert parsed
        assert list(graded.values()) == [1] * TESTS


@pytest.mark.parametrize("count", [0, 5, None])
def test_events_that_were_not_added_are_read(count: int | None, tmp_path: Path) -> None:
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path, True)], pages=Report))
    run = RunFolder(outcome.folder)
    before = [(run.path / name).read_bytes() for name in FILES]
    scoring = RunScorer(run, Report)
    first, _ = run.manifest.conversations
    for event in list(read_journal(run.journal(first)))[:count]:
        scoring.add(first, event)
    scoring.write()
    assert [(run.path / name).read_bytes() for name in FILES] == before
