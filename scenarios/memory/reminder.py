"""Reminders: recall errands once they are due by the virtual clock. Some are moved, some cancelled."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, Literal, NamedTuple, final

from pydantic import Field

from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.matching import join_some
from longspan.simulator.reading.replies.layout import flatten_layout
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.reading import Reading
from longspan.simulator.reading.replies.splitting import SENTENCE_END
from longspan.simulator.reading.replies.values import Values, correct_typos

__all__ = ["Reminder"]

Kind = Literal["kept", "moved", "cancelled"]
Entry = Mapping[str, Any]
"""A message of the test as recorded in its facts.

`what` it does, its `text`, and for an errand its `thing`, the number of `days` until it is due and its `time` of day."""

TOLD: Final = 3
"""Number of segments that set, move and cancel errands."""
SLOTS: Final = (range(20, 28), range(50, 58))
"""Days until a reminder is due, for early and for late errands."""
QUIET: Final = range(2, 6)
"""Days until the user first returns, before anything is due."""
AFTER: Final = 2
"""Turns to watch after the last message. No reminder may be repeated in them."""


@final
class Reminder(Scenario):
    """Set reminders for future dates: `kept` ones stay as they are, `moved` ones get another date, `cancelled` ones are called off.

    Dates are weeks away, and the virtual clock jumps past them. A reminder belongs in the agent's first reply after its date, to any
    message of any test, and in no other. A due reminder is right if it is given there and nowhere else: not early, at a former date,
    late, or twice. A cancelled one is right if it is never given. The score is the share of due reminders that are right, minus the same
    share for each cancelled one that is given. Announcing a reminder, or saying that one is cancelled, is not reminding.
    """

    name: ClassVar[str] = "reminder"
    skills: ClassVar[tuple[Skill, ...]] = ("prospective memory", "conflicting information")
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"reminder"})
    early: ClassVar[bool] = False

    kept: int = Field(default=1, ge=1, le=4)
    moved: int = Field(default=1, ge=0, le=4)
    cancelled: int = Field(default=1, ge=0, le=4)

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        kinds = ["kept"] * self.kept + ["moved"] * self.moved + ["cancelled"] * self.cancelled
        things = random.sample(list(load_words("errands")), len(kinds))
        order = [number for number, kind in enumerate(kinds) for _ in range(1 if kind == "kept" else 2)]
        random.shuffle(order)
        slots = {number: random.sample(SLOTS, 2) for number in range(len(kinds))}
        told: list[Entry] = []
        for at, number in enumerate(order):
            again = number in order[:at]
            told.append(_entry(random, wording, ("set", "move", "cancel")[again and 1 + (kinds[number] == "cancelled")], things[number]))
            if told[-1]["what"] != "cancel":
                when = {"days": random.choice(slots[number][again]), "time": f"{random.randint(8, 20)}:{random.choice(('00', '30'))}"}
                told[-1] = {**told[-1], **when, "by": random.choice(("date", "days"))}
        first: Entry = {"what": "rule", "text": wording.say(random, "rule")}
        parts = [[first, *told[: -(-len(told) // TOLD)]], *_parts(told[-(-len(told) // TOLD) :], TOLD - 1)]
        greetings = random.sample(wording.all("greeting"), 3)
        segments = [*filter(None, parts), *([{"what": "greeting", "text": text}] for text in greetings)]
        quiet = timedelta(days=random.choice(QUIET))
        soon = timedelta(days=SLOTS[0].stop, hours=random.randint(1, 72)) - quiet
        late = timedelta(days=SLOTS[1].stop - SLOTS[0].stop, hours=random.randint(1, 72))
        pauses = [*[timedelta(0)] * (len(segments) - 3), quiet, soon, late]
        return Script(
            facts={"segments": segments},
            outline=[_segment(segment, pause, last=segment is segments[-1]) for segment, pause in zip(segments, pauses, strict=True)],
            farewell=wording.say(random, "farewell"),
        )

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of naming one random errand each time the user returns: it must be the right one, at the right time only."""
        return 1 / len(load_words("errands")) * (1 - 1 / len(load_words("errands"))) ** 2

    def guess(self, message: str) -> str | None:
        if Wording(self.name).read("greeting", message) is None:
            return None
        return f"Hello. Reminder: {Random(message).choice(list(load_words('errands').values()))}."

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return the rule and the newest message about each errand. A superseded date may be forgotten."""
        errands = load_words("errands")
        things = {entry["thing"] for segment in facts["segments"] for entry in segment if "thing" in entry}
        last = {thing: at for at, needle in enumerate(needles) for thing in things if errands[thing] in needle.text}
        return [(0,), *((at,) for at in last.values())]

    async def play(self, stage: Stage) -> None:
        diary = Diary()
        segments = stage.facts["segments"]
        needles: dict[str, list[int]] = {}  # by thing; "" is the rule
        for segment in segments:
            last = segment is segments[-1]
            for entry in segment:
                at = stage.now
                if not diary.takes(entry, at):
                    continue
                diary.hear(entry, at)
                due = diary.due(at)
                if entry["what"] != "greeting":
                    needles.setdefault(entry.get("thing", ""), []).append(sum(map(len, needles.values())))
                    await stage.say(_text(entry, at), ideal=_add_reminders("OK.", due))
                elif due or last:
                    needs = [needle for thing in ("", *(errand.thing for errand in due)) for needle in needles[thing]]
                    await stage.ask(_text(entry, at), needs=needs if due else None, ideal=_add_reminders("Hello.", due))
                else:
                    await stage.say(_text(entry, at), needle=False, ideal="Hello.")
            async for _ in stage.watch(
                turns=AFTER if last else None, amend=lambda count, ideal: _add_reminders(ideal, diary.due(stage.now))
            ):
                pass  # watching records the turns; `grade` evaluates them

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        diary, begun = _hear_errands(facts, record.exchanges)
        things = tuple(sorted({*diary.errands, *load_words("errands")}))
        asked = sorted((each for each in (*record.exchanges, *record.watched) if not each.told), key=lambda each: each.turn)
        replies = [_Read.of(each, things) for each in asked]
        verdicts = [_verdict(errand, replies, begun[errand.thing], set(diary.errands)) for errand in diary.errands.values()]
        due = [item for item in verdicts if item.labels["kind"] != "cancelled"]
        if not due:
            raise ScenarioError("the test ended before any reminder was asked for")
        right = sum(item.score or 0 for item in due)
        wrongly = sum(item.score == 0 for item in verdicts if item not in due)
        cut_short = any(item.score is None for item in due)
        return Grade(
            score=None if cut_short else max(0.0, right - wrongly) / len(due),
            reason=f"{right:.0f} of {len(due)} due reminders right, cancelled ones said: {wrongly}; "
            + "; ".join(f"{item.labels['kind']}, {item.name}: {item.note}" for item in verdicts),
            turns=tuple(sorted({item.turn for item in verdicts if item.turn is not None})),
            items=tuple(verdicts),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the share of right reminders of each kind."""
        kinds: dict[str, list[float]] = {}
        for item in (item for test in tests for item in test.items):
            if item.score is not None:
                kinds.setdefault(item.labels["kind"], []).append(item.score)
        return {f"{kind} right": fmean(scores) for kind, scores in sorted(kinds.items())}


@final
@dataclass(slots=True)
class Errand:
    """An errand to be recalled. The last of its `times` is current, unless the errand is cancelled."""

    thing: str
    times: list[datetime] = field(default_factory=list)
    cancelled: bool = False
    recalled: bool = False

    @property
    def kind(self) -> Kind:
        return "cancelled" if self.cancelled else "moved" if len(self.times) > 1 else "kept"


@final
class Diary:
    """The errands so far, as a perfect memory would know them."""

    def __init__(self) -> None:
        self.errands: dict[str, Errand] = {}

    def takes(self, entry: Entry, at: datetime) -> bool:
        """Return whether a message still makes sense. An errand that is already over, because another test made the clock jump, is not
        moved or cancelled."""
        return entry["what"] not in ("move", "cancel") or self.errands[entry["thing"]].times[-1] > at

    def hear(self, entry: Entry, at: datetime) -> None:
        if entry["what"] in ("set", "move"):
            self.errands.setdefault(entry["thing"], Errand(entry["thing"])).times.append(_due(entry, at))
        elif entry["what"] == "cancel":
            self.errands[entry["thing"]].cancelled = True

    def due(self, at: datetime) -> list[Errand]:
        """Return the errands to recall in a reply at time `at`, and mark them as recalled."""
        due = [errand for errand in self.errands.values() if not (errand.cancelled or errand.recalled) and errand.times[-1] <= at]
        for errand in due:
            errand.recalled = True
        return due


def _entry(random: Random, wording: Wording, what: str, thing: str) -> Entry:
    """Return a message about an errand. Its text has a placeholder for the due date, which depends on when it is sent."""
    values = {"do": load_words("errands")[thing]} | ({} if what == "cancel" else {"when": "{when}"})
    return {"what": what, "thing": thing, "text": wording.say(random, what, **values)}


def _parts(entries: Sequence[Entry], count: int) -> list[Sequence[Entry]]:
    """Divide entries into at most `count` consecutive parts of nearly equal size."""
    size = -(-len(entries) // count)
    return [entries[start : start + size] for start in range(0, len(entries), size)] if size else []


def _segment(entries: Sequence[Entry], pause: timedelta, *, last: bool) -> Segment:
    longest = datetime(2024, 9, 25)  # Wednesday and September are the longest names
    tokens = sum(len(_text(entry, longest)) // 3 + 8 for entry in entries)  # English has over four letters a token
    return Segment(None, tokens, len(entries), pause=pause, watch=AFTER if last else "next")


def _due(entry: Entry, at: datetime) -> datetime:
    """Return when an errand is due, given the time `at` which it was stated."""
    hour, minute = map(int, entry["time"].split(":"))
    return datetime.combine(at.date() + timedelta(days=entry["days"]), time(hour, minute))


def _text(entry: Entry, at: datetime) -> str:
    """Return a message as sent at a given time."""
    if "days" not in entry:
        return str(entry["text"])
    due, wording = _due(entry, at), Wording("reminder")
    if entry["by"] == "days":
        (when,) = wording.all("days", days=entry["days"], time=entry["time"])
    else:
        (when,) = wording.all("date", weekday=f"{due:%A}", day=due.day, month=f"{due:%B}", time=entry["time"])
    return str(entry["text"]).replace("{when}", when)


def _add_reminders(ideal: str, due: Sequence[Errand]) -> str:
    """Return an ideal reply with the reminders that belong in it."""
    return "\n".join([ideal, *(f"Reminder: {load_words('errands')[errand.thing]}." for errand in due)])


def _hear_errands(facts: Mapping[str, Any], exchanges: Sequence[Exchange]) -> tuple[Diary, Mapping[str, int]]:
    """Return the diary after the messages that were sent, and the turn when each errand was set.

    Messages that made no sense any more were left out; the times of the others determine which.
    """
    diary, begun = Diary(), dict[str, int]()
    left = iter(exchanges)
    exchange = next(left, None)
    for entry in (entry for segment in facts["segments"] for entry in segment):
        if exchange is not None and diary.takes(entry, at := exchange.sent_at or datetime.min):
            diary.hear(entry, at)
            begun.setdefault(entry.get("thing", ""), exchange.turn)
            exchange = next(left, None)
    return diary, begun


# Reading replies.

_SENTENCES = re.compile(rf"{SENTENCE_END.pattern}|(?<=\w) [–—] |, (?=but |while |whereas )")
_LISTED = re.compile(r"^(?P<heading>[^\n]{1,200}:)[*_ ]*\n+(?:[ ]*(?:[-*\u2022]|\d{1,2}[.)])[ ][^\n]*(?:\n|\Z))+", re.MULTILINE)
"""A list with its heading."""
_REMINDS = re.compile(r"^\W{0,9}Reminder: *([^\s:][^\n]{0,99})", re.MULTILINE | re.IGNORECASE)
"""A line that starts with "Reminder:"."""
_SAID = re.compile(
    r"\b(?:i|let me|this is|here is|here\W?s)\b(?: \w+| ?'(?:ll|d|m))?(?: \w+){0,2}? (?:remind|reminding|remember)"
    r" (?:you|me)(?: (?:now|that|of this|today))?:"
    r"|\b(?:my|a|your|one|the) reminders? (?:for (?:you|today)|now|of today|is|has come due|that is due|due):",
    re.IGNORECASE,
)
"""A phrase that introduces a reminder: "I shall remind you: ..."."""
_REMARKS = re.compile(r"[()\[\]]")


SLIPPED: Final = 7
"""Minimum length of a word that is recognised despite one wrong letter."""


@final
class _Read(NamedTuple):
    """A turn as the grader sees it.

    `asked`: things named in the message. `named`: things named in the reply, with the lines that remind of anything else. `recalled`:
    things that the reply reminds of.
    """

    turn: int
    sent_at: datetime
    asked: AbstractSet[str]
    named: AbstractSet[str]
    recalled: AbstractSet[str]

    @classmethod
    def of(cls, exchange: Exchange, things: tuple[str, ...]) -> _Read:
        named = recalled = _find_things(exchange.reply, things)
        if named:
            said = Reading(exchange.reply)
            named, recalled = (said.settle(partial(find, things=things)) for find in (_find_things, find_reminded))
        more = {
            line.strip()
            for line in _REMINDS.findall(exchange.reply)
            if recalled and not _find_things(line, things) and not _is_none(plain(line))
        }
        return cls(exchange.turn, exchange.sent_at or datetime.min, _find_things(exchange.text, things), named | more, recalled)


def find_reminded(reply: str, things: tuple[str, ...]) -> AbstractSet[str]:
    """Return the things that a reply reminds of: those in sentences that neither announce a reminder nor say that nothing is due."""
    found: set[str] = set()
    if LEXICON.has("nothing due", plain(flatten_layout(reply))):
        return found
    for sentence in _SENTENCES.split(_LISTED.sub(_keep_rest, _SAID.sub("Reminder:", flatten_layout(reply)))):
        parts = [(_find_things(part, things), _is_none(plain(part))) for part in _REMARKS.split(sentence)]
        if not any(none and not named for named, none in parts):  # a remark that names nothing applies to the whole sentence
            found.update(*(named for named, none in parts if not none))
    return found


def _keep_rest(listed: re.Match[str]) -> str:
    """Return a list with its heading, or nothing if the heading only announces reminders or says that nothing is due."""
    # Otherwise a recap under "Upcoming reminders:" would count as reminding too early.
    return "" if _is_none(plain(listed["heading"])) else listed[0]


def _is_none(text: str) -> bool:
    return (LEXICON.has("announced", text) and not LEXICON.has("said now", text)) or LEXICON.has("called off", text)


def _find_things(text: str, things: tuple[str, ...]) -> AbstractSet[str]:
    """Return the things that `text` names, in any spelling."""
    return {found.value for found in Values(things).find(correct_typos(plain(text), things, SLIPPED))}


def _verdict(errand: Errand, replies: Sequence[_Read], since: int, told: AbstractSet[str]) -> Item:
    """Grade one errand over the replies from turn `since` on, when it was set. `told`: all errands of the test."""
    thing, due = errand.thing, errand.times[-1]
    replies = [each for each in replies if each.turn >= since]
    belongs = None if errand.cancelled else next((each for each in replies if each.sent_at >= due), None)
    naming = [each for each in replies if thing in each.recalled and (each is belongs or thing not in each.asked)]
    in_time = belongs is not None and belongs in naming
    elsewhere = [_how(errand, belongs, each) for each in naming if each is not belongs]
    others = sorted(belongs.named - belongs.asked - told) if belongs is not None and in_time else []
    notes = [] if belongs is None else [f"{'said' if in_time else 'not said'} in turn {belongs.turn}"]
    if others:
        notes.append(f"among things nobody asked for ({join_some(others, 2)})")
    notes += elsewhere[:3] + ([f"{len(elsewhere) - 3} times more"] if len(elsewhere) > 3 else [])
    right = not elsewhere and (errand.cancelled or (in_time and not others))
    return Item(
        name=thing,
        score=float(right) if errand.cancelled or belongs is not None else None,
        labels={"kind": errand.kind},
        note=", ".join(notes) or "never said",
        turn=belongs.turn if belongs is not None else next((each.turn for each in naming), None),
    )


def _how(errand: Errand, belongs: _Read | None, said: _Read) -> str:
    """Explain why a reminder in this turn is wrong."""
    if errand.cancelled:
        return f"said in turn {said.turn} though cancelled"
    if belongs is not None and said.turn > belongs.turn:
        return f"said {'again' if errand.thing in belongs.recalled else 'late'} in turn {said.turn}"
    former = any(time <= said.sent_at for time in errand.times[:-1])
    return f"said in turn {said.turn}, {'at its former time' if former else 'early'}"
