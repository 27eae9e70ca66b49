"""Virtual nights: where they fall, what an agent does in them, what is journaled, and what becomes of them when a run is resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from longspan import Grade, Line, Record, Scenario, Script
from longspan.agents.base import BaseAgent, InputError, Message, Reply, Usage
from longspan.simulator.base.nights import Nights, morning_after
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.night_lines import night_line
from longspan.simulator.pages.report.run_view import RunView
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.suite.trust import vouch_for

DIARY = "python:tests.simulator.test_nights:Diary"


class Diary(BaseAgent):
    """Keeps all messages by their first words, and at night only the newest of those that begin alike. Says what it did, with a price."""

    made: Sequence[Diary] = ()
    repeatable = True

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str]] = []
        self.did: list[str] = []
        Diary.made = [*Diary.made, self]

    async def reply(self, message: Message) -> Reply:
        await self.observe(message, "")
        return Reply("OK.", cost_usd=0)

    async def observe(self, message: Message, reply: str) -> None:
        self.kept.append((" ".join(message.text.split()[:2]), message.text))
        self.did.append(message.turn_id)

    async def consolidate(self, at: datetime) -> Reply:
        self.did.append(f"{at:%d}")
        self.kept = list(dict(self.kept).items())
        return Reply("", Usage(100, 0, 10), {"written": [{"id": "m1", "turn": "x"}]}, cost_usd=0.25)


class Saved(Diary):
    """The same, with snapshots."""

    async def save(self, folder: Path) -> None:
        await trio.Path(folder / "diary.json").write_text(json.dumps([self.kept, self.did]))

    async def load(self, folder: Path) -> None:
        self.kept, self.did = json.loads(await trio.Path(folder / "diary.json").read_text())


@pytest.fixture(autouse=True)
def _no_diaries() -> Any:
    Diary.made = ()
    yield
    Diary.made = ()


def played(out: Path, agent: str, *, nights: int = 2, span: int = 2000, scenarios: Sequence[str] = ("colours", "locations")) -> Outcome:
    suite = load_suite("ltm").model_copy(update={"scenarios": {name: {} for name in scenarios}, "tests": 1})
    planned = plan_run(RunSettings(suite=suite, span=span, agent=agent, nights=nights), out)
    (outcome,) = trio.run(play_plans, [planned])
    return outcome


def journal(outcome: Outcome) -> list[events.Event]:
    return [event.model_copy(update={"measured": None}) for event in RunFolder(outcome.folder).events("main")]


def nights_of(outcome: Outcome) -> list[events.Night]:
    return [event for event in RunFolder(outcome.folder).events("main") if isinstance(event, events.Night)]


# When they fall.


@given(st.integers(1, 20), st.integers(100, 500_000), st.lists(st.integers(1, 300), max_size=200))
def test_every_stretch_of_a_span_has_as_many_nights_and_no_two_come_without_a_turn_between(each: int, span: int, sizes: list[int]) -> None:
    nights, position, fell = Nights(each, span), 0, []
    for turn, size in enumerate(sizes, 1):
        position += size
        if nights.fall(turn, position):
            fell.append(position)
            assert not nights.fall(turn, position)
    apart = span / each
    assert len(fell) <= position / apart + 0.5
    if apart > 300:
        assert len(fell) == int(position / apart + 0.5)


@pytest.mark.parametrize(
    ("now", "morning"),
    [
        ("2024-01-01T09:00", "2024-01-02T07:30"),
        ("2024-01-01T02:00", "2024-01-01T07:30"),
        ("2024-02-29T03:31", "2024-03-01T07:30"),
        ("2024-12-31T07:30", "2025-01-01T07:30"),
    ],
)
def test_a_night_is_over_at_half_past_seven_and_takes_four_hours_at_least(now: str, morning: str) -> None:
    assert morning_after(datetime.fromisoformat(now)) == datetime.fromisoformat(morning)
    assert morning_after(datetime.fromisoformat(now)) - datetime.fromisoformat(now) >= timedelta(hours=4)


def test_every_agent_passes_the_same_nights_and_one_that_does_nothing_only_finds_the_clock_moved(tmp_path: Path) -> None:
    diary, silent = (played(tmp_path, agent) for agent in (f"{DIARY.replace('Diary', 'Saved')}", "silent"))
    places = [[(night.turn, night.to) for night in nights_of(outcome)] for outcome in (diary, silent)]
    assert places[0] == places[1]
    assert len(places[0]) >= 2
    assert not any(night.consolidated for night in nights_of(silent))
    sent = {event.turn: event.sent_at for event in journal(silent) if isinstance(event, events.Message)}
    assert all(sent[turn] >= to for turn, to in places[0])
    assert all(sent[turn] - sent[turn - 1] > timedelta(hours=4) for turn, _ in places[0])
    without = played(tmp_path, "silent", nights=0)
    assert [event.text for event in journal(without) if isinstance(event, events.Message)] == [
        event.text for event in journal(silent) if isinstance(event, events.Message)
    ]


def test_nights_change_nothing_that_can_be_solved(tmp_path: Path) -> None:
    scenarios = ("prospective_memory", "jokes", "sally_anne", "trigger_response", "restaurant")  # those that wait, watch or ask for a time
    result = read_result(RunFolder(played(tmp_path, "oracle", nights=5, scenarios=scenarios).folder))
    assert result.score == result.max_score == 5
    assert result.metrics["nights"] > 0


# Nights in the journal and in reports.


def test_what_a_night_took_is_journaled_counted_and_priced_and_the_run_replays(tmp_path: Path) -> None:
    outcome = played(tmp_path, DIARY.replace("Diary", "Saved"), nights=3)
    nights = nights_of(outcome)
    assert {(night.consolidated, night.usage is not None, night.cost_usd == {"agent": 0.25}) for night in nights} == {(True, True, True)}
    assert all((night.measured or {})["bytes_after"] < (night.measured or {})["bytes_before"] + 20 for night in nights)
    result = read_result(RunFolder(outcome.folder))
    figures = {name: value for name, value in result.metrics.items() if name.startswith("night")}
    assert figures.pop("nights") == figures.pop("nights_worked") == len(nights)
    assert (figures.pop("night_tokens"), figures.pop("night_usd")) == (110, 0.25)
    assert sorted(figures) == ["night_bytes_after", "night_bytes_before", "night_seconds"]
    assert result.costs["agent"].cost_usd == pytest.approx(0.25 * len(nights))
    assert trio.run(replay_run, RunFolder(outcome.folder)) == result


def test_nights_are_shown_where_they_fell_and_tell_runs_of_an_agent_apart(tmp_path: Path) -> None:
    outcome = played(tmp_path, DIARY.replace("Diary", "Saved"), nights=2)
    run = RunFolder(outcome.folder)
    lines = [line for turn in RunView.of(run).conversations["main"].turns for line in turn.nights]
    assert len(lines) == len(nights_of(outcome))
    shown = r"A night passes, until 2024-01-02 07:30; the agent worked: \d\.\d\d s, \$0\.2500, [\d,]+ bytes kept before and [\d,]+ after\."
    assert re.fullmatch(shown, lines[0])
    assert night_line(events.Night(turn=3, to=datetime(2024, 1, 2, 7, 30), consolidated=False)) == "A night passes, until 2024-01-02 07:30."
    assert run.manifest.labelled == f"{run.manifest.agent} [2 nights]"
    assert run.path.name.startswith("ltm-2k-nights2-")


def test_an_agent_that_fails_at_night_or_tells_what_no_journal_can_hold_ends_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = ["tidy", Reply("", trace={"x": object()})]

    async def consolidate(self: Diary, at: datetime) -> Any:
        return told[0]

    monkeypatch.setattr(Diary, "consolidate", consolidate)
    assert "consolidate returned str; it must return nothing, or a dict" in str(played(tmp_path, DIARY).error)
    del told[0]
    assert ": the agent's account of a night has usage or a trace that cannot be" in str(played(tmp_path, DIARY).error)


def test_a_night_counts_against_the_limit_and_resuming_goes_on(tmp_path: Path) -> None:
    from longspan.simulator.subject.spending_limit import limit_of

    suite = load_suite("ltm").model_copy(update={"scenarios": {"colours": {}}, "tests": 1})
    spec = "python:tests.simulator.test_nights:Saved?price_in=1&price_out=1"
    planned = plan_run(RunSettings(suite=suite, span=2000, agent=spec, nights=4), tmp_path)
    (stopped,) = trio.run(lambda: play_plans([planned], limit=limit_of(0.6, None)))
    assert "exceed the limit" in str(stopped.error)
    assert len(nights_of(stopped)) == 2


# What they do to scores and size.


class Parking(Scenario):
    """A car is parked in one place after the other: where is it?"""

    name = "parking"
    skills = ("recall",)

    def make(self, random: Random) -> Script:
        places = [str(place) for place in random.sample(range(1_000_000), 4)]
        lines = [Line(f"My car is parked at {place}.") for place in places]
        return Script(facts={"at": places[-1]}, lines=[*lines, Line("Where is my car parked?", ideal=places[-1], asks=True)])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        return Grade(score=float(facts["at"] in record.answer.reply), reason="", turns=(record.answer.turn,))


class Attic:
    """Finds the turn that shares the largest share of its words with a query, the oldest of several. With `tidies`, it keeps at night only
    the newest of those that begin with the same four words."""

    def __init__(self, tidies: str) -> None:
        self.kept: dict[str, str] = {}
        if tidies == "true":
            self.consolidate = self._tidied

    def add(self, turns: Any, at: Any) -> None:
        self.kept |= {turn.turn_id: turn.text for turn in turns if not turn.text.endswith("?")}

    def search(self, query: str, k: int, at: Any) -> list[Any]:
        asked = set(query.lower().strip("?").split())
        share = {turn: len(asked & (words := set(text.lower().split()))) / len(asked | words) for turn, text in self.kept.items()}
        return [{"text": self.kept[turn], "turns": [turn]} for turn in sorted(share, key=lambda turn: -share[turn])[:k]]

    def _tidied(self, at: Any) -> None:
        newest = {" ".join(text.split()[:4]): turn for turn, text in self.kept.items()}
        self.kept = {turn: text for turn, text in self.kept.items() if turn in newest.values()}

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps(self.kept))

    def load(self, folder: Path) -> None:
        self.kept = json.loads((folder / "kept.json").read_text())


@pytest.mark.parametrize("tidies", [True, False])
def test_a_memory_that_merges_what_has_changed_answers_right_once_a_night_has_passed_and_is_smaller(tidies: bool, tmp_path: Path) -> None:
    suite = load_suite("ltm").model_copy(update={"scenarios": {"python:tests.simulator.test_nights:Parking": {}}, "tests": 6})
    agent = f"memory/python:tests.simulator.test_nights:Attic?answerer=words&k=1&tidies={str(tidies).lower()}"
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2000, agent=agent, nights=3), tmp_path)])
    result = read_result(RunFolder(outcome.folder))
    nights = [night.turn for night in nights_of(outcome)]
    slept = {
        test.id: any(max(pair.needle_turn for pair in test.evidence) < night <= test.turns[0] for night in nights) for test in result.tests
    }
    assert set(slept.values()) == {True, False}, "or there is nothing to tell apart"
    assert {test.id: test.score for test in result.tests} == {id: float(tidies and after) for id, after in slept.items()}
    if tidies:
        assert result.metrics["night_bytes_after"] < 0.95 * result.metrics["night_bytes_before"]
    assert result.metrics["nights_worked"] == (result.metrics["nights"] if tidies else 0)


# Interruptions.


@pytest.mark.parametrize("kind", ["Diary", "Saved"])
def test_a_night_that_is_journaled_comes_once_in_the_life_of_an_agent_however_it_is_brought_back(kind: str, tmp_path: Path) -> None:
    spec = DIARY.replace("Diary", kind)
    whole = played(tmp_path / "whole", spec, nights=3)
    lived = Diary.made[-1].did
    assert sum(len(entry) == 2 for entry in lived) == len(nights_of(whole))
    lines = [type(event) for event in journal(whole)]
    for place in [at for at, each in enumerate(lines) if each is events.Night]:
        for kept in (place, place + 1, place + 2):  # killed in the night, right after it, and after the snapshot or the next message
            Diary.made = ()
            copy = cut(whole.folder, tmp_path / f"{kind}{kept}", kept)
            run = RunFolder(copy)
            vouch_for(run.manifest)
            again = trio.run(resume_run, run, spec)
            assert again.error is None
            assert journal(again) == journal(whole)
            assert Diary.made[-1].did == lived, "shown every turn, or restored, with each night at its place"


def cut(folder: Path, copy: Path, lines: int) -> Path:
    """Copy a run, with so many lines of its journal, and the snapshots that it had then."""
    from shutil import copytree

    copytree(folder, copy)
    path = RunFolder(copy).journal("main")
    kept = path.read_bytes().splitlines(keepends=True)[:lines]
    path.write_bytes(b"".join(kept))
    return copy


# At the door.


@pytest.mark.parametrize(("settings", "said"), [({"isolated": True}, "--nights: every test has a separate conversation")])
def test_nights_need_a_span_to_fall_in(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    suite = load_suite("ltm").model_copy(update={"scenarios": {"colours": {}}})
    with pytest.raises(InputError, match=said):
        plan_run(RunSettings(suite=suite, span=2000, nights=1, **settings), tmp_path)
    with pytest.raises(InputError, match=said):
        plan_run(RunSettings(suite=load_suite("history").model_copy(update={"tests": 1}), span=2000, nights=1), tmp_path)
