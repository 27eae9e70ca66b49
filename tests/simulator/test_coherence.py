"""Consistency of journals: a played run's journal passes, and any changed event is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.sealing import read_lines, write_lines

from longspan.simulator.base.errors import ReplayError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.coherence import check_coherence
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

Entries = list[dict[str, Any]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A played run with a jump and watched turns."""
    suite = load_suite("ltm").apply_changes([], [], ["prospective_memory", "jokes", "restaurant", "colours"], 1)
    outcome = trio.run(
        lambda: play_plans([plan_run(RunSettings(suite=suite, span=2000, seed=1, agent="oracle"), tmp_path_factory.mktemp("runs"))])
    )[0]
    return outcome.folder


@pytest.fixture
def run(played: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(played, tmp_path / "run")))


def test_the_events_of_a_run_follow_from_one_another(run: RunFolder) -> None:
    check_coherence(run)


def first(entries: Entries, type: str, **having: Any) -> dict[str, Any]:
    return next(entry for entry in entries if entry["type"] == type and having.items() <= entry.items())


def award(entries: Entries, turn: int) -> None:
    """Let a test award itself points directly after its first line."""
    said = first(entries, "message", kind="line")
    entries.insert(entries.index(said) + 2, {"type": "award", "test": said["test"], "turn": turn, "points": 0.5, "why": "well said"})


CHANGES: dict[str, tuple[Callable[[Entries], object], str]] = {
    "another span": (lambda entries: entries[0].update(span=99), "span is 99"),
    "a start in another zone": (lambda entries: entries[0].update(starts_at="2024-01-01T09:00:00Z"), "starts_at is"),
    "no beginning": (lambda entries: entries.pop(0), "must begin with an event of type begin"),
    "two beginnings": (lambda entries: entries.insert(1, entries[0]), "begins again"),
    "more tokens": (lambda entries: first(entries, "message", kind="question").update(tokens=1), "tokens is 1"),
    "another position": (lambda entries: first(entries, "message", kind="line").update(start=1), "start is 1"),
    "another reply": (lambda entries: first(entries, "reply", turn=3).update(text="Something longer than was said, surely."), "tokens is"),
    "another end": (lambda entries: first(entries, "reply", turn=3).update(end=7), "end is 7"),
    "another turn": (lambda entries: first(entries, "reply", turn=3).update(turn=4), "a reply to turn 4, which was not asked"),
    "no reply": (lambda entries: entries.remove(first(entries, "reply", turn=3)), "turn 3 has no reply"),
    "a reply twice": (lambda entries: entries.insert(3, entries[2]), "a reply to nothing"),
    "an earlier time": (lambda entries: first(entries, "message", turn=4).update(sent_at="2023-01-01T09:00:00"), "time goes from"),
    "a time in a zone": (lambda entries: first(entries, "message", turn=4).update(sent_at="2025-01-01T09:00:00Z"), "to another time zone"),
    "a jump back": (lambda entries: first(entries, "jump").update(to="2023-01-01T09:00:00"), "time goes from"),
    "a jump of no test": (lambda entries: first(entries, "jump").update(test="chess-1"), "'chess-1' is not open"),
    "an unknown test": (lambda entries: first(entries, "open").update(test="chess-1"), "the manifest has no test 'chess-1'"),
    "a test that opened elsewhere": (lambda entries: first(entries, "open").update(position=1), "position is 1"),
    "a line of no test": (lambda entries: first(entries, "message", kind="line").update(test="chess-1"), "'chess-1' is not open"),
    "needles to come": (lambda entries: first(entries, "message", kind="question").update(needs=[99]), "needs turns that have not been"),
    "an award for a turn to come": (lambda entries: award(entries, turn=999), "turn 999 has not been"),
    "a turn to come watched": (lambda entries: first(entries, "end").update(watched=[999]), "watched turns that have not been"),
    "another count": (lambda entries: entries[-1].update(turns=1), "it has 1 turns"),
    "something after the end": (lambda entries: entries.append(first(entries, "jump")), "after the conversation's close"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_event_is_found(change: str, run: RunFolder) -> None:
    path = run.journal("main")
    entries = read_lines(path)
    alter, said = CHANGES[change]
    alter(entries)
    write_lines(path, (entry | {"seq": seq} for seq, entry in enumerate(entries)))
    with pytest.raises(ReplayError, match=r"journal\.jsonl, line \d+: ") as error:
        check_coherence(run)
    assert said in str(error.value)
