"""Reminders: due ones are right in the first reply after their date and in no other; cancelled ones are never said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from random import Random
from statistics import fmean
from typing import final

import pytest
from tests.rig import made_test, play, setting

from longspan.agents.base import BaseAgent
from longspan.scenarios.memory.reminder import Reminder, find_reminded
from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared import word_lists
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Line
from longspan.simulator.running.preflight.rehearsal import rehearse

SAYS = Wording("reminder")
WHEN = re.compile(r"(?:in (?P<days>\d+) days|on \w+, (?P<date>\d+ \w+),) at (?P<time>[\d:]+)")


@final
class Recaller(BaseAgent):
    """Knows its reminders by heart, and recalls each once, with the first reply after its date.

    `heeds`: the changes that it takes notice of. `counts`: it has no clock and takes a reminder to be due so many turns after it is told.
    `again`: it says a reminder so often. `away`: it takes the user's return for the date.
    """

    def __init__(
        self, *, heeds: frozenset[str] = frozenset({"move", "cancel"}), counts: int | None = None, again: int = 1, away: bool = False
    ) -> None:
        super().__init__()
        self.heeds, self.counts, self.again, self.away = heeds, counts, again, away
        self.turn = 0
        self.last = datetime.max
        self.due: dict[str, tuple[datetime, int]] = {}
        self.said: dict[str, int] = {}

    async def reply(self, message: Message) -> Reply:
        self.turn += 1
        gone = message.sent_at - self.last > timedelta(days=1) if self.last < message.sent_at else False
        self.last = message.sent_at
        self.hear(message)
        return Reply("\n".join(["OK.", *(f"Reminder: {do}." for do in self.recalled(message.sent_at, gone))]))

    async def observe(self, message: Message, reply: str) -> None:
        self.turn += 1
        self.last = message.sent_at

    def hear(self, message: Message) -> None:
        what = next((what for what in ("set", "move", "cancel") if SAYS.read(what, message.text)), "")
        if what == "set" or what in self.heeds:
            do = next(do for do in load_words("errands").values() if do in message.text)
            self.due.pop(do, None)
            if when := WHEN.search(message.text):
                self.due[do] = _date(when, message.sent_at), self.turn

    def recalled(self, now: datetime, gone: bool) -> Iterator[str]:
        for do, (at, told) in self.due.items():
            due = self.turn >= told + self.counts if self.counts is not None else at <= now
            if due and self.said.get(do, 0) < self.again and not (self.away and not gone):
                self.said[do] = self.said.get(do, 0) + 1
                yield do


def _date(when: re.Match[str], now: datetime) -> datetime:
    if when["days"]:
        day = now.date() + timedelta(days=int(when["days"]))
    else:
        day = datetime.strptime(f"{when['date']} {now.year}", "%d %B %Y").date()
    return datetime.combine(day, time.fromisoformat(when["time"].zfill(5)))


def made(seed: int, scenario: Reminder | None = None) -> Test:
    scenario = scenario or Reminder()
    script = scenario.make(Random(seed)).placed("spread", Random(seed))
    return Test("reminder-1", scenario, script, str(seed), 0)


def others(jump: timedelta = timedelta(0)) -> Iterator[Test]:
    """Tests that speak meanwhile; `jump`: one of them makes the clock jump."""
    for number in range(3):
        lines = [
            Line(f"Line {number}.{at}", asks=True, needle=False, pause=jump if (number, at) == (0, 1) else timedelta(0)) for at in range(12)
        ]
        yield made_test(f"other{number}", 1, number + 1, lines=lines, placement="spread")


def played(agent: BaseAgent, seed: int, tmp_path: Path, jump: timedelta = timedelta(0)) -> Grade:
    test = made(seed)
    transcript = play([test, *others(jump)], agent, setting(2000, seed=seed), tmp_path / f"{seed}.jsonl")
    assert transcript.tests["reminder-1"].status == "played", transcript.tests["reminder-1"].error
    return test.scenario.grade(transcript.tests["reminder-1"].definition.facts or {}, transcript.record(transcript.tests["reminder-1"]))


@pytest.mark.parametrize(
    ("agent", "lowest", "highest"),
    [
        (Recaller, 1.0, 1.0),
        (lambda: Recaller(again=2), 0.0, 0.0),
        (lambda: Recaller(heeds=frozenset({"move"})), 0.5, 0.5),
        (lambda: Recaller(heeds=frozenset({"cancel"})), 0.5, 0.5),
        (lambda: Recaller(heeds=frozenset()), 0.0, 0.0),
        (lambda: Recaller(counts=0), 0.0, 0.0),
        (lambda: Recaller(counts=15), 0.0, 0.2),
        (lambda: Recaller(counts=1000), 0.0, 0.0),
        (lambda: Recaller(away=True, counts=0), 0.0, 0.2),
    ],
    ids=["all", "twice", "no cancelling", "no moving", "no changes", "at once", "counts turns", "never", "when the user is back"],
)
def test_agents_of_known_memory_score_what_they_remember(
    agent: Callable[[], BaseAgent], lowest: float, highest: float, tmp_path: Path
) -> None:
    grades = [played(agent(), seed, tmp_path) for seed in range(4)]
    assert lowest <= fmean(grade.score or 0 for grade in grades) <= highest, [grade.reason for grade in grades]


@pytest.mark.parametrize("days", [12, 70])
def test_another_tests_jump_brings_a_reminder_into_the_reply_to_its_message(days: int, tmp_path: Path) -> None:
    """Whatever the clock is made to do, who knows the reminders says each in time. Changes that would come too late are left out."""
    grades = [played(Recaller(), seed, tmp_path, timedelta(days=days)) for seed in range(4)]
    assert [grade.reason for grade in grades if grade.score != 1] == []
    changed = sum(item.labels["kind"] != "kept" for grade in grades for item in grade.items)
    assert (changed < 2 * len(grades)) == (days == 70)


def test_the_ideal_replies_are_those_of_somebody_who_knows_the_reminders(tmp_path: Path) -> None:
    """`amend` puts reminders into the replies to other tests' messages, as `grade` expects them there."""

    @final
    class Ideal(BaseAgent):
        ideal = ""

        async def reply(self, message: Message) -> Reply:
            return Reply(self.ideal)

    for seed in range(2):
        agent, test = Ideal(), made(seed)
        path = tmp_path / f"{seed}.jsonl"
        give = lambda ideal, agent=agent: setattr(agent, "ideal", ideal)  # noqa: E731
        transcript = play([test, *others(timedelta(days=30))], agent, setting(4000), path, give_ideal=give)
        grade = test.scenario.grade(test.script.facts, transcript.record(transcript.tests["reminder-1"]))
        assert grade.score == 1, grade.reason
        assert any(exchange.turn in grade.turns for exchange in transcript.record(transcript.tests["reminder-1"]).watched)


REPLIES: list[tuple[str, bool]] = [
    ("Hello.\nReminder: dust the orrery.", True),
    ("Welcome back! Just a quick reminder: you wanted to dust the orrery.", True),
    ("**Reminder:** Dust the orrery", True),
    ("Hi! ⏰ You asked me to remind you to dust the orrery (Thursday, 14 March, 16:00).", True),
    ("Hello. Don't forget the orrery!", True),
    ("Good to see you. By the way, it's past 4 p.m. on Thursday, so: dust the orrery.", True),
    ("Blue.\n\n---\n*Reminder: dust the orrery. You won't hear of it again from me.*", True),
    ('["a", "b"]\nReminder: dust the orrery', True),
    ("Reminder (as rescheduled): dust the orrery.", True),
    ("- Reminder: dust the orrery\n- The catamaran reminder was cancelled", True),
    ("I will remind you of the catamaran on Friday. Reminder: dust the orrery.", True),
    ("You had a reminder set for 14 March at 16:00: dust the orrery.", True),
    ("Time to dust that orrery!", True),
    ("Your 16:00 reminder is overdue; please dust the orrery as soon as you can.", True),
    ("Hello! A late reminder, since we did not speak on Thursday: dust the orrery.", True),
    ("Reminder: dust the orrery (the one for the catamaran is cancelled).", True),
    ("Reminder: dust the orrery, but no longer varnish the catamaran.", True),
    ("I'll remind you now: dust the orrery.", True),
    ("Don't forget your reminder: dust the orrery.", True),
    ("No need to reply, but remember to dust the orrery.", True),
    ("I have to remind you: the orrery wants dusting.", True),
    ("Here is your reminder for today: dust the orrery.", True),
    ("Reminder: dust the orrery. The one for the catamaran is off.", True),
    ("Reminder: take the dust sheet off the orrery.", True),
    ("I shall remind you on 3 May: dust the orrery.", False),
    ("Hello. The orrery is off, as you told me.", False),
    ("Reminder: varnish the catamaran. (Not the orrery any more.)", False),
    ("The next reminder, about the orrery, follows on 3 May.", False),
    ("Reminders: dust the orrery (cancelled)", False),
    ("Hello.", False),
    ("Reminder: you have a reminder.", False),
    ("Welcome back! Was there something you wanted to be reminded of?", False),
    ("I'll remind you on 14 March at 16:00 to dust the orrery.", False),
    ("Noted, I will remind you at 4 p.m. to dust the orrery.", False),
    ("I shall certainly remind you to dust the orrery when the time comes.", False),
    ("I'm going to remind you about the orrery on Thursday.", False),
    ("OK, the reminder for the orrery is cancelled.", False),
    ("As you cancelled it, there is no reminder for the orrery today.", False),
    ("You no longer need to dust the orrery.", False),
    ("I won't remind you about the orrery.", False),
    ("The orrery reminder has been moved to 24 March.", False),
    ("I already reminded you to dust the orrery.", False),
    ("Reminder set: dust the orrery, 14 March, 16:00.", False),
    ("I've updated your reminder: dust the orrery, now on Thursday at 15:00.", False),
    ("No reminders are due yet. The next one is to dust the orrery.", False),
    ("Noted! Upcoming reminders:\n- Dust the orrery (14 March)\n- Varnish the catamaran (20 March)", False),
    ("**Cancelled:**\n\n1. Dust the orrery\n", False),
    ("Reminders:\n- Dust the orrery\n\nUpcoming:\n- Varnish the catamaran", True),
    ("Upcoming:\n- Varnish the catamaran\n\nReminder: dust the orrery.", True),
    ("Reminder: dust the samurai sword.", False),
    ("Reminder: dust the silver.", False),
    ("", False),
]


@pytest.mark.parametrize(("reply", "expected"), REPLIES)
def test_what_reminds_and_what_announces_or_denies(reply: str, expected: bool) -> None:
    assert (find_reminded(reply, ("orrery", "catamaran")) >= {"orrery"}) is expected


def graded(seed: int, change: Callable[[str, str], str]) -> Grade:
    return rehearse(Reminder(), seed=seed, reply=change).grade


def test_a_reminder_among_the_errands_of_the_list_is_a_guess() -> None:
    everything = "Reminder: " + ", ".join(load_words("errands").values()) + "."
    for seed in range(20):
        assert graded(seed, lambda text, ideal: everything if "Reminder" in ideal else ideal).score == 0
        assert graded(seed, lambda text, ideal: everything if SAYS.read("greeting", text) is not None else ideal).score == 0
    grade = graded(1, lambda text, ideal: f"{ideal} And the windsock." if "Reminder" in ideal else ideal)
    assert grade.score == 0
    assert "among things nobody asked for (windsock)" in grade.reason


def early() -> Callable[[str, str], str]:
    """Says each reminder as soon as another test's message comes."""
    known: list[str] = []

    def reply(text: str, ideal: str) -> str:
        known.extend(do for do in load_words("errands").values() if do in text)
        return f"{ideal}\nReminder: {known[0]}." if known and text.startswith("Something") else ideal

    return reply


def late() -> Callable[[str, str], str]:
    """Says each reminder a reply too late."""
    kept = [""]

    def reply(text: str, ideal: str) -> str:
        ideal, _, reminder = ideal.partition("\n")
        kept.append(reminder)
        return f"{ideal}\n{kept[-2]}"

    return reply


def again() -> Callable[[str, str], str]:
    """Says each reminder a second time."""
    kept = [""]

    def reply(text: str, ideal: str) -> str:
        kept.append(ideal.partition("\n")[2])
        return f"{ideal}\n{kept[-2]}"

    return reply


@pytest.mark.parametrize(("change", "reason"), [(early, ", early"), (late, "not said in turn"), (again, "said again in turn")])
def test_reasons_name_what_is_early_late_or_said_again(change: Callable[[], Callable[[str, str], str]], reason: str) -> None:
    grades = [graded(seed, change()) for seed in range(10)]
    assert max(grade.score or 0 for grade in grades) < 1
    assert any(reason in grade.reason for grade in grades)


def test_a_reminder_at_its_former_time_is_told_from_an_early_one(tmp_path: Path) -> None:
    put_off = next(seed for seed in range(20) if _is_put_off(made(seed)))
    items = {item.labels["kind"]: item.note for item in played(Recaller(heeds=frozenset()), put_off, tmp_path).items}
    assert ", at its former time" in items["moved"]
    assert "though cancelled" in items["cancelled"]


def _is_put_off(test: Test) -> bool:
    """Whether the reminder that is moved gets a later date."""
    entries = [entry for segment in test.script.facts["segments"] for entry in segment]
    (moved,) = (entry for entry in entries if entry["what"] == "move")
    return any(entry["what"] == "set" and entry["thing"] == moved["thing"] and entry["days"] < moved["days"] for entry in entries)


def test_a_conversation_that_breaks_off_before_a_date_is_not_scored() -> None:
    played = rehearse(Reminder(cancelled=0, moved=0), seed=3, reply=lambda text, ideal: ideal)
    dates = [each.sent_at for each in played.record.exchanges if each.asks]
    told = [each for each in played.record.exchanges if each.sent_at and each.sent_at < dates[0]] if dates[0] else []
    assert Reminder().grade(played.script.facts, Record(told)).score is None


@pytest.mark.parametrize("parameters", [{"kept": 0}, {"kept": 5}, {"moved": -1}, {"moved": 5}, {"cancelled": 5}])
def test_parameters_out_of_bounds_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Input should be"):
        Reminder(**parameters)


@pytest.mark.parametrize("counts", [(1, 0, 0), (1, 0, 1), (2, 1, 0), (4, 4, 4)])
def test_each_kind_is_told_as_often_as_wanted(counts: tuple[int, int, int]) -> None:
    kept, moved, cancelled = counts
    scenario = Reminder(kept=kept, moved=moved, cancelled=cancelled)
    for seed in range(10):
        grade = rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal).grade
        kinds = [item.labels["kind"] for item in grade.items]
        assert grade.score == 1
        assert (kinds.count("kept"), kinds.count("moved"), kinds.count("cancelled")) == counts
        assert rehearse(scenario, seed=seed, reply=lambda text, ideal: "OK.").grade.score == 0


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_the_outline_promises_no_less_than_is_said(encoding: str) -> None:
    tokenizer = Tokenizer(encoding)
    for seed in range(40):
        played = rehearse(Reminder(kept=2), seed=seed, reply=lambda text, ideal: ideal)
        said = iter(played.record.exchanges)
        for segment in played.script.outline:
            assert sum(tokenizer.count(next(said).text) for _ in range(segment.replies)) <= segment.tokens


def test_errands_name_their_thing_and_no_other() -> None:
    errands = load_words("errands")
    assert len(errands) >= 50
    for thing, do in errands.items():
        assert find_reminded(do, tuple(errands)) == {thing}


def test_no_other_scenario_speaks_of_the_things() -> None:
    """A reminder may stand in a reply to any test: there it must not be taken for an answer, nor an answer for a reminder."""
    folder = Path(word_lists.__file__).parent / "data"
    others = [path for path in sorted(folder.glob("*.json")) if path.stem not in ("errands", "novel")]
    assert len(others) >= 10
    things = tuple(load_words("errands"))
    named = {path.stem: find_reminded(path.read_text("utf-8"), things) for path in others}
    assert {name: found for name, found in named.items() if found} == {}
