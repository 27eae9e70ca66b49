"""Turns that took place: told to the agent at their own dates, charged with what they are, and in all else turns of a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rig import Babbler, made_test, play, setting

from longspan.agents.base import BaseAgent
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.base.clock import DEFAULT_START
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.scenario import Scenario, Skill, Test
from longspan.simulator.contract.script import Line, Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTurn, Transcript
from longspan.simulator.pages.report import Report
from longspan.simulator.play.conductor import CHARGE
from longspan.simulator.play.dry_run import dry_run
from longspan.simulator.results.gradebook.needle_fates import NeedleFates
from longspan.simulator.running.planning import plan_run, setting_of
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.preflight.rehearsal import rehearse_test
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite

MAY, JUNE = datetime(2024, 5, 7, 18, 30), datetime(2024, 6, 1, 8, 0)
LINES = [
    Line("Quentin has moved to Lisbon.", reply="How lovely for Quentin!", sent_at=MAY),
    Line("He likes it there.", reply="I am glad.", needle=False, together=True),
    Line("He paints now.", reply="What does he paint?", sent_at=JUNE),
    Line("Where does Quentin live?", ideal="In Lisbon.", asks=True, needs=(0,)),
]


class Remembering(BaseAgent):
    """Counts what it is given, and repeats it."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[tuple[str, Message, str]] = []

    async def reply(self, message: Message) -> Reply:
        self.turns.append(("asked", message, "Yes."))
        return Reply("Yes.")

    async def observe(self, message: Message, reply: str) -> None:
        self.turns.append(("told", message, reply))


def history(order: int = 0, name: str = "history", lines: list[Line] = LINES) -> Test:
    return made_test(name, 1, order, lines=lines)


class Past(Scenario):
    """A past with a question, for runs that are planned by name."""

    name: ClassVar[str] = "past"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        return Script(facts={}, lines=[replace(LINES[0], sent_at=datetime(2019, 1, 1)), *LINES[1:]])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        told = [exchange.turn for exchange in record.exchanges if exchange.told]
        return Grade(score=float("Lisbon" in record.answer.reply), reason=f"{len(told)} turns were told", turns=tuple(told))


def talk(order: int, name: str) -> Test:
    return made_test(name, 1, order, lines=[Line(f"{name} says {number}.", asks=number == 3) for number in range(4)])


def own(path: Path, test: str = "history-1") -> list[tuple[events.Message, events.Reply]]:
    """The turns of a test."""
    messages = {event.turn: event for event in read_journal(path) if isinstance(event, events.Message) and event.test == test}
    return [(messages[event.turn], event) for event in read_journal(path) if isinstance(event, events.Reply) and event.turn in messages]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in json.loads(line).items() if name != "measured"} for line in path.read_text().splitlines()]


def test_a_told_turn_is_shown_at_its_date_and_not_asked(tmp_path: Path) -> None:
    agent, path = Remembering(), tmp_path / "journal.jsonl"
    transcript = play([history()], agent, setting(2000), path)
    told = {message.text: (how, message.sent_at, reply) for how, message, reply in agent.turns}
    pace = timedelta(seconds=30)
    assert told["Quentin has moved to Lisbon."] == ("told", MAY, "How lovely for Quentin!")
    assert told["He likes it there."] == ("told", MAY + pace, "I am glad.")
    assert told["He paints now."] == ("told", JUNE, "What does he paint?")
    assert told["Where does Quentin live?"][0] == "asked"
    assert [(message.kind, message.needle, reply.asked) for message, reply in own(path)] == [
        ("line", True, False),
        ("line", False, False),
        ("line", True, False),
        ("question", False, True),
    ]
    jumps = [event.to for event in read_journal(path) if isinstance(event, events.Jump)]
    assert jumps == [MAY, JUNE], "each date is a jump of the journal"
    (test,) = transcript.tests.values()
    first, second, third, question = test.exchanges
    assert (first.told, second.told, third.told, question.told) == (True, True, True, False)
    assert first.reply == "How lovely for Quentin!"
    assert [evidence.needle_turn for evidence in test.evidence] == [first.turn], "a told turn is a needle like others"
    assert transcript.record(test).answer.text == "Where does Quentin live?"


def test_the_scripts_told_turns_are_in_its_definition_and_those_of_others_are_as_they_were() -> None:
    lines = history().definition()["lines"]
    assert [(line.get("reply"), line.get("sent_at")) for line in lines] == [
        ("How lovely for Quentin!", "2024-05-07T18:30:00"),
        ("I am glad.", None),
        ("What does he paint?", "2024-06-01T08:00:00"),
        (None, None),
    ]
    assert "reply" not in lines[3]
    assert "told" not in talk(0, "a").definition()["lines"][0]


def test_a_date_that_has_passed_is_not_gone_back_to(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    late = [replace(LINES[0], sent_at=JUNE), replace(LINES[2], sent_at=MAY), LINES[3]]
    play([history(lines=late)], Remembering(), setting(2000), path)
    times = [message.sent_at for message, _ in own(path)]
    assert times[0] == JUNE
    assert times == sorted(times)
    assert len([event for event in read_journal(path) if isinstance(event, events.Jump)]) == 1


def test_what_is_told_is_woven_with_other_tests_in_the_order_of_its_dates(tmp_path: Path) -> None:
    """The history that opens first has the later dates, and the others wait for nobody."""
    path = tmp_path / "journal.jsonl"
    dates = [datetime(2024, month, 1) for month in range(2, 9)]

    def told(name: str, order: int, dates: list[datetime]) -> Test:
        lines = [Line(f"{name} {number}", reply="So?", sent_at=date) for number, date in enumerate(dates)]
        return history(order, name, [*lines, Line("What was it?", asks=True)])

    transcript = play([told("even", 0, dates[::2]), told("odd", 1, dates[1::2]), talk(2, "a")], Remembering(), setting(4000), path)
    assert all(test.certified(4000) and test.at_distance(4000) for test in transcript.tests.values())
    asked = {reply.turn: reply.asked for reply in (reply for name in ("even-1", "odd-1") for _, reply in own(path, name))}
    assert sum(not told for told in asked.values()) == len(dates)


def _resumed(tests: Callable[[], list[Test]], whole: Path, agent: Callable[[], BaseAgent], cuts: int) -> None:
    """Cut the journal at some of its lines, within them too, and play on from there."""
    lines = whole.read_bytes().splitlines(keepends=True)
    told = [number for number, line in enumerate(lines) if b'"asked":false' in line]
    places = {*told[:2], *(number + 1 for number in told[:2]), *Random(0).sample(range(1, len(lines)), cuts)}
    for cut in sorted(places):
        part = whole.with_name(f"{cut}.jsonl")
        part.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        play(tests(), agent(), setting(2000), part)
        assert lines_of(part) == lines_of(whole)


def test_it_is_resumed_and_replayed_to_the_same_journal_and_the_agent_is_told_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    def tests() -> list[Test]:
        return [history(), talk(1, "a"), talk(2, "b")]

    first = Remembering()
    play(tests(), first, setting(2000), path)
    _resumed(tests, path, Remembering, 4)
    *lines, _ = path.read_bytes().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b'"kind":"question","test":"history-1"' in line)
    (tmp_path / "part.jsonl").write_bytes(b"".join(lines[:cut]))
    again = Remembering()
    play(tests(), again, setting(2000), tmp_path / "part.jsonl")
    told = [(message, reply) for how, message, reply in first.turns if how == "told"]
    assert all(turn in [(message, reply) for _, message, reply in again.turns] for turn in told), "observed again, at the same times"


def test_notebook_remembers_what_it_is_told_and_its_fate_is_known(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    transcript, fates = Transcript(), NeedleFates()
    play([history()], Notebook(), setting(2000), path)
    for event in read_journal(path):
        change = transcript.add(event)
        if isinstance(change, PlayedTurn) and change.reply is not None:
            fates.add(change, transcript)
    (test,) = transcript.tests.values()
    assert "Lisbon" in test.exchanges[-1].reply
    evidence = fates.with_fate(test.evidence[0])
    assert (evidence.stored, evidence.retrieved, evidence.echoed) == (True, True, True)
    assert evidence.tokens > 1000
    _resumed(lambda: [history()], path, Notebook, 3)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_run_starts_at_the_earliest_date_is_graded_and_counts_what_is_asked(isolated: bool, tmp_path: Path) -> None:
    suite = Suite(name="made", tests=1, scenarios={"python:tests.simulator.test_told:Past": {}})
    planned = plan_run(RunSettings(suite=suite, span=2000, agent="notebook", isolated=isolated), tmp_path)
    assert planned.manifest.starts_at == datetime(2019, 1, 1)
    (outcome,) = trio.run(lambda: play_plans([planned], pages=Report))
    run = RunFolder(outcome.folder)
    (id,) = planned.tests
    (test,) = outcome.result.tests
    assert (test.score, test.reason) == (1, "3 turns were told")
    (evidence,) = test.evidence
    assert evidence.retrieved
    assert evidence.tokens > (0 if isolated else 1000)
    asked = [event.asked for event in run.events(id) if isinstance(event, events.Reply)]
    assert dry_run(setting_of(planned.manifest, id), planned.tests[id]).asked == sum(asked) == 2
    guess = trio.run(estimate_run, planned)
    assert (guess.turns, guess.asked) == (len(asked), 2)
    assert "<dt>History</dt>" in (outcome.folder / "report.html").read_text("utf-8")
    with_oracle = plan_run(RunSettings(suite=suite, span=2000, agent="oracle", isolated=isolated), tmp_path)
    (ideal,) = trio.run(lambda: play_plans([with_oracle]))
    assert ideal.result.score == 1


async def _tells(stage: Stage) -> None:
    await stage.tell("Quentin has moved to Lisbon.", "How lovely!", at=MAY)
    await stage.tell("He paints.", "Does he?", needle=False)
    await stage.wait()
    await stage.ask("Where does he live?", needs=[0], ideal="In Lisbon.")


OUTLINE = [Segment(0, 60, 1, told=[MAY, None]), Segment(0.9, 30, 1)]


def test_a_dynamic_test_tells_what_its_outline_declares(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    transcript = play([made_test("history", 1, 0, outline=OUTLINE, play=_tells)], Remembering(), setting(2000), path)
    assert transcript.tests["history-1"].status == "played"
    turns = own(path)
    assert [(message.kind, reply.asked) for message, reply in turns] == [
        ("line", False),
        ("line", False),
        ("filler", True),
        ("question", True),
    ]
    assert turns[0][0].sent_at == MAY
    assert [line["told"] for line in lines_of(path)[3]["outline"] if "told" in line] == [["2024-05-07T18:30:00", None]]
    played = rehearse_test(made_test("history", 1, 0, outline=OUTLINE, play=_tells), lambda text, ideal: ideal)
    said = [(each.reply, each.told) for each in played.record.exchanges]
    assert said == [
        ("How lovely!", True),
        ("Does he?", True),
        ("In Lisbon.", False),
    ]


async def _other_date(stage: Stage) -> None:
    await stage.tell("Hello.", "Hi.", at=JUNE)


async def _asks_first(stage: Stage) -> None:
    await stage.ask("Well?", ideal="Well.")


async def _tells_more(stage: Stage) -> None:
    for at in (MAY, None, None):
        await stage.tell("Hello.", "Hi.", at=at)


async def _long(stage: Stage) -> None:
    await stage.tell("Hello.", " the" * 80, at=MAY)


async def _zoned(stage: Stage) -> None:
    await stage.tell("Hello.", "Hi.", at=MAY.astimezone())


async def _no_reply(stage: Stage) -> None:
    await stage.tell("Hello.", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_other_date, "its outline declares a turn told at 2024-05-07T18:30:00, not at 2024-06-01T08:00:00, here, got 'Hello.'"),
        (_asks_first, "its outline declares 2 more turns to tell here, got 'Well?'"),
        (_tells_more, "its outline declares no more turns to tell here, got 'Hello.'"),
        (_long, "its outline declares 60 more tokens here, got 82 of 'Hello.'"),
        (_zoned, "a turn is told at a datetime without a time zone"),
        (_no_reply, "got None"),
    ],
)
def test_what_an_outline_does_not_declare_is_an_error_of_the_test_and_its_places_are_told(
    body: Callable[[Stage], Any], said: str, tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.jsonl", tmp_path / "wrong.jsonl"
    play([made_test("history", 1, 0, outline=OUTLINE, play=_tells), talk(1, "a")], Remembering(), setting(2000), right)
    transcript = play([made_test("history", 1, 0, outline=OUTLINE, play=body), talk(1, "a")], Babbler(1), setting(2000), wrong)
    assert said in (transcript.tests["history-1"].error or "")
    assert [(m.turn, m.sent_at, r.asked) for m, r in own(wrong)] == [(m.turn, m.sent_at, r.asked) for m, r in own(right)]
    assert [(m.turn, m.sent_at, m.dealt) for m, _ in own(wrong, "a-1")] == [(m.turn, m.sent_at, m.dealt) for m, _ in own(right, "a-1")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (Line("Hello.", sent_at=MAY), "set reply or asks"),
        (Line("Hello.", reply="Hi.", asks=True), "a past turn, so it cannot ask"),
        (Line("Hello.", reply="Hi.", sent_at=MAY.astimezone()), "without a time zone"),
        (Line("Hello.", reply="Hi.", sent_at="2024-05-07"), "without a time zone"),  # type: ignore[arg-type]
        (Line("Hello.", reply="\ud83d"), "valid Unicode"),
    ],
)
def test_a_line_that_cannot_be_told_is_refused(line: Line, said: str) -> None:
    with pytest.raises(ScenarioError, match=f"line 0 of a script: .*{said}"):
        Script(facts={}, lines=[line])


def test_what_is_told_cannot_come_after_a_question_of_its_segment() -> None:
    with pytest.raises(ScenarioError, match="cannot be together with a line before it that the agent answers"):
        Script(facts={}, lines=[Line("Well?", asks=True), Line("Hello.", reply="Hi.", together=True)])
    with pytest.raises(ScenarioError, match="segment 0 of an outline: told must be a sequence of dates"):
        Script(facts={}, outline=[Segment(0, 10, 1, told=["today"])])  # type: ignore[list-item]


def test_nothing_is_told_while_a_test_watches_replies(tmp_path: Path) -> None:
    async def watching(stage: Stage) -> None:
        await stage.ask("Mind your next replies.", ideal="OK.")
        async for turn in stage.watch(turns=6):
            assert turn.asked

    path = tmp_path / "journal.jsonl"
    watch = made_test("watching", 1, 0, outline=[Segment(0, 30, 1, watch=6)], play=watching)
    transcript = play([watch, history(1), talk(2, "a")], Remembering(), setting(2000), path)
    assert {test.status for test in transcript.tests.values()} == {"played"}
    assert len(transcript.tests["watching-1"].watched) == 6


@st.composite
def histories(draw: st.DrawFn) -> list[Test]:
    """Histories with dates in any order, some turns together, among tests that are asked."""
    tests = []
    for order in range(draw(st.integers(1, 3))):
        lines = []
        for number in range(draw(st.integers(1, 6))):
            days = draw(st.none() | st.integers(-9, 400))
            at = None if days is None else DEFAULT_START + timedelta(days=days)
            words = f"{order}/{number}:" + " the" * draw(st.integers(1, 40))
            lines.append(Line(words, reply=" of" * draw(st.integers(0, 60)), sent_at=at, together=number > 0 and draw(st.booleans())))
        tests.append(history(order, f"history{order}", [*lines, Line("What was it?", asks=True)]))
    return [*tests, talk(len(tests), "a"), talk(len(tests) + 1, "b")]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tests=histories(), seed=st.integers(0, 1000))
def test_time_never_goes_back_and_every_agent_is_charged_the_same(
    tests: list[Test], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sides = []
    for agent in (Remembering(), Babbler(seed)):
        path = tmp_path_factory.mktemp("run") / "journal.jsonl"
        transcript = play(tests, agent, setting(2000, seed=seed), path)
        found = list(read_journal(path))
        messages = [event for event in found if isinstance(event, events.Message)]
        replies = [event for event in found if isinstance(event, events.Reply)]
        assert all(one.sent_at < two.sent_at for one, two in pairwise(messages))
        for message, reply, after in zip(messages, replies, messages[1:], strict=False):
            assert (after.dealt or 0) - (message.dealt or 0) == message.tokens + (CHARGE if reply.asked else reply.tokens)
        dates = {line.text: line.sent_at for test in tests for line in test.script.lines if line.sent_at is not None}
        assert all(message.sent_at >= dates.get(message.text, message.sent_at) for message in messages)
        assert all(test.span_dealt <= 2000 for test in transcript.tests.values())
        sides.append([(message.text, message.dealt, message.sent_at) for message in messages])
        assert dry_run(setting(2000, seed=seed), tests).asked == sum(reply.asked for reply in replies)
    assert sides[0] == sides[1]
