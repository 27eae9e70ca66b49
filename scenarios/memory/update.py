"""Update: a fact changes, is retracted, corrected and restored; questions ask for its present, past and formerly believed values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import count, islice
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, NamedTuple, final

from pydantic import Field

from longspan.scenarios.memory import club_answers as clubs
from longspan.scenarios.memory.spoken_dates import PLACEHOLDER_DATE, parse_said_date, say_date
from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared.timed import play_timed
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.contract.stage import Stage
from longspan.simulator.reading.matching import join_some
from longspan.simulator.reading.replies.reading import quote_clauses

__all__ = ["Update"]

NOW: Final = ("present", "other", "never told")
DATED: Final = ("held", "actual")
TOLD: Final = ("present", "other", "held", "actual", "history")
"""Kinds of questions whose answers were stated. They share the score equally."""


@final
class _RoomMessage(NamedTuple):
    """A message about a group, with its room after the message: as believed then (`held`), and as known in the end (`actual`)."""

    group: str
    text: str
    held: str
    actual: str


@final
class Update(Scenario):
    """Change a group's room `moves` times, state and retract one wrong room, and correct its day; then ask six questions.

    The room and day of `similar` other groups are stated once and stay; one more group is never mentioned before its question. The
    questions ask for the room and day of the group (`present`), of an unchanged group (`other`) and of the unmentioned one (`never
    told`). They ask for the group's room at two past dates, as believed then (`held`) and as known today (`actual`), and for its rooms
    in order (`history`). Each right answer earns an equal share of the score. The unmentioned group earns nothing: a reply that does not
    admit ignorance costs one share.

    One move goes back to an earlier room, and at the past dates the wrong room was often believed. So no positional rule, such as taking
    the first, the newest or the last but one of the rooms stated, finds the answers.
    """

    name: ClassVar[str] = "update"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information", "episodic memory")
    compounded: ClassVar[bool] = True
    topics: ClassVar[frozenset[str]] = frozenset({"clubs"})

    # Four moves by default, because with fewer a past room is easily guessed.
    moves: int = Field(default=4, ge=2, le=20)
    similar: int = Field(default=1, ge=0, le=19)
    days: int = Field(default=2, ge=2, le=365)

    def make(self, random: Random) -> Script:
        return self._script(random, _groups(random))

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield tests that share no groups, as long as there are enough, so that tests do not contradict each other."""
        groups = _groups(Random(f"{seed}/groups"))
        for number in range(1, tests + 1):
            yield str(number), self._script(Random(f"{seed}/{number}"), groups)

    def _script(self, random: Random, groups: Iterator[str]) -> Script:
        wording = Wording(self.name)
        group, untold, *others = islice(groups, 2 + self.similar)
        rooms = random.sample(load_words("clubs")["rooms"], self.moves + 1 + self.similar)
        wrong, day = random.sample(clubs.DAYS, 2)
        path = _path(random, rooms[: self.moves])
        told = _story(random, wording, group, path, rooms[self.moves], wrong, day)
        spare = rooms[self.moves + 1 :]
        stayed = [{"group": each, "room": room, "day": random.choice(clubs.DAYS)} for each, room in zip(others, spare, strict=True)]
        for each in stayed:
            told.insert(
                random.randint(0, len(told)), _RoomMessage(each["group"], wording.say(random, "told", **each), each["room"], each["room"])
            )

        own = {at: each for at, each in enumerate(told) if each.group == group}
        expected = _expected_answers(random, own, path, group, day) | {"never told": {"group": untold}}
        needs = {kind: tuple(own) for kind in expected} | {"never told": ()}
        needs["held"] = tuple(at for at in own if at <= expected["held"]["after"])
        if stayed:
            expected["other"] = random.choice(stayed)
            needs["other"] = tuple(at for at, each in enumerate(told) if each.group == expected["other"]["group"])
        lines = [Line(each.text, pause=timedelta(days=self.days if at else 0)) for at, each in enumerate(told)]
        now = [kind for kind in NOW if kind in expected]
        asked = [*random.sample(now, len(now)), *random.sample(DATED, 2), "history"]
        for at, kind in enumerate(asked):
            values = {"group": expected[kind]["group"]} | ({"date": PLACEHOLDER_DATE} if kind in DATED else {})
            text = wording.say(random, "present" if kind in NOW else kind, **values)
            pause = timedelta(days=0 if at else self.days)
            lines.append(Line(text, ideal=_ideal(expected[kind]), asks=True, needs=needs[kind], pause=pause))
        return Script(facts={"asked": asked, "expected": expected, "similar": len(others)}, lines=lines)

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of guessing a room for each past date. Other guesses cost more than they earn, or need two right guesses
        together."""
        return len(DATED) / len(load_words("clubs")["rooms"]) / _shares(facts)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return {"similar": facts["similar"], "updates": len(facts["expected"]["history"]["rooms"]) - 1}

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return the newest message that gave the room by the date in question, and the one that corrected the day.

        For all rooms in order, return all messages.
        """
        kind = facts["asked"][number]
        about, on = facts["expected"][kind], _date(kind, question) if kind in DATED else None
        if kind not in ("present", *DATED):
            return super().needed(facts, number, question, needles)
        names = [f"{about['room']} Room", *([f"{about['day']}s"] if kind == "present" else [])]
        known = [at for at, needle in enumerate(needles) if on is None or needle.sent_at is None or needle.sent_at.date() < on]
        return [(max(at for at in known if name in needles[at].text),) for name in names]

    def guess(self, message: str) -> str | None:
        wording = Wording(self.name)
        if any(wording.read(kind, message) is not None for kind in DATED):
            return f"The {Random(message).choice(load_words('clubs')['rooms'])} Room."
        return "You have not told me." if any(wording.read(kind, message) is not None for kind in ("present", "history")) else None

    async def play(self, stage: Stage) -> None:
        asked = iter(stage.facts["asked"])

        def question(line: Line, times: Sequence[datetime]) -> str:
            about = stage.facts["expected"][next(asked)]
            if "after" not in about:
                return line.text
            until = times[about["until"]] if about["until"] is not None else stage.now
            day = _between(stage.random, times[about["after"]].date(), until.date())
            return line.text.replace(PLACEHOLDER_DATE, say_date(day))

        await play_timed(stage, question)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        known = [about["group"] for kind, about in facts["expected"].items() if kind != "never told"]
        items = [_item(kind, facts["expected"][kind], known, answer) for kind, answer in zip(facts["asked"], record.answers, strict=False)]
        right = sum(item.score or 0 for item in items if item.name in TOLD)
        guessed = sum(1 - (item.score or 0) for item in items if item.name not in TOLD)
        wrong = [f"{item.name}: {item.note}" for item in items if item.score != 1]
        shares = _shares(facts)
        costs = ", and one less for what was never told" if guessed else ""
        return Grade(
            score=max(0, right - guessed) / shares,
            reason="; ".join([f"{right:.0f} of {shares} right{costs}", *wrong]),
            turns=tuple(answer.turn for answer in record.answers),
            items=tuple(items),
        )

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        """Return the share of right answers by kind of question; for dated questions, also the share where the belief at that date was
        wrong."""
        items = [item for test in tests for item in test.items if item.score is not None]
        shares = {kind: [item.score or 0 for item in items if item.name == kind] for kind in (*NOW, *DATED, "history")}
        astray = [item for item in items if item.labels.get("belief") == "wrong"]
        shares |= {f"{kind} of a wrong belief": [item.score or 0 for item in astray if item.name == kind] for kind in DATED}
        return {kind: fmean(scores) for kind, scores in shares.items() if scores}


def _shares(facts: Mapping[str, Any]) -> int:
    """Return the number of right answers that make a full score."""
    return sum(kind in facts["expected"] for kind in TOLD)


def _groups(random: Random) -> Iterator[str]:
    """Yield groups in random order. Neighbours have different names without their owners, and no group repeats before all have appeared."""
    known = load_words("clubs")
    owners, sorts = (random.sample(known[key], len(known[key])) for key in ("owners", "groups"))
    return (f"{owners[(at + turn) % len(owners)]} {sort}" for turn in count() for at, sort in enumerate(sorts))


def _path(random: Random, rooms: Sequence[str]) -> list[str]:
    """Return a group's rooms in order: all of `rooms`, with one of them repeated after at least one other."""
    back = random.randint(2, len(rooms))
    return [*rooms[:back], random.choice(rooms[: back - 1]), *rooms[back:]]


def _story(random: Random, wording: Wording, group: str, path: Sequence[str], false: str, wrong: str, day: str) -> list[_RoomMessage]:
    """Return the messages about a group: its rooms, a move that never happened and its retraction, and a correction of its day."""
    story = [_RoomMessage(group, wording.say(random, "told", group=group, room=path[0], day=wrong), path[0], path[0])]
    for at, room in enumerate(path[1:], 1):
        story.append(_RoomMessage(group, wording.say(random, "back" if room in path[:at] else "moved", group=group, room=room), room, room))
    last = random.randrange(len(path))
    story[last + 1 : last + 1] = [
        _RoomMessage(group, wording.say(random, "moved", group=group, room=false), false, path[last]),
        _RoomMessage(group, wording.say(random, "retracted", group=group, room=false), path[last], path[last]),
    ]
    at = random.randint(1, len(story))
    corrected = wording.say(random, "corrected", group=group, wrong=wrong, day=day)
    return [*story[:at], story[at - 1]._replace(text=corrected), *story[at:]]


def _expected_answers(
    random: Random, told: Mapping[int, _RoomMessage], path: Sequence[str], group: str, day: str
) -> dict[str, dict[str, Any]]:
    """Return the answers about the main group. `told`: its messages by their numbers among all statements.

    A past date lies after message `after` and before message `until` (None: before the questions), when the room differed from the
    present one.
    """
    answers: dict[str, dict[str, Any]] = {"present": {"group": group, "room": path[-1], "day": day}}
    numbers = list(told)
    for kind in DATED:
        rooms = {at: getattr(event, kind) for at, event in told.items()}
        past = [at for at in numbers if rooms[at] != path[-1]]
        pools = [[at for at in past if (told[at].held == told[at].actual) is right] for right in (False, True)]
        after = random.choice(random.choice([pool for pool in pools if pool]))
        until = next((at for at in numbers if at > after), None)
        belief = "right" if told[after].held == told[after].actual else "wrong"
        answers[kind] = {"group": group, "room": rooms[after], "after": after, "until": until, "belief": belief}
    return answers | {"history": {"group": group, "rooms": list(path)}}


def _between(random: Random, first: date, last: date) -> date:
    """Return a random day after the first and before the last, which are at least two days apart."""
    return first + timedelta(days=random.randrange(1, (last - first).days))


def _ideal(expected: Mapping[str, Any]) -> str:
    match expected:
        case {"room": room, "day": day}:
            return f"In the {room} Room, on {day}s."
        case {"room": room}:
            return f"The {room} Room."
        case {"rooms": rooms}:
            return f"{', '.join(rooms)}."
        case _:
            return "You have not told me."


def _date(kind: str, question: str) -> date | None:
    """Return the date that a question asks about; None if the question was worded by another version."""
    asked = Wording(Update.name).read(kind, question)
    return None if asked is None else parse_said_date(asked["date"])


def _item(kind: str, expected: Mapping[str, Any], known: Sequence[str], answer: Exchange) -> Item:
    """Grade the answer to one question. `known`: the groups that were mentioned."""
    reply = answer.reply
    match expected:
        case {"group": group, "room": room, "day": day}:
            rooms, days = clubs.rooms_now(reply, group, known), clubs.days_now(reply, group, known)
            wanted, found, quotes = [room, day], [*rooms.values, *days.values], [*rooms.quotes, *days.quotes]
        case {"group": group, "room": room}:
            read = clubs.rooms_held if kind == "held" else clubs.rooms_then
            wanted, (found, quotes) = [room], read(reply, group, known, _date(kind, answer.text))
        case {"rooms": rooms}:
            wanted, found, quotes = rooms, clubs.rooms_in_order(reply), []
        case _:
            admits = clubs.admits_ignorance(reply, known)
            note = "says that it was not told" if admits else "does not say that it was not told"
            return Item(name=kind, score=float(admits), labels={"question": kind}, note=note, turn=answer.turn)
    labels = {"question": kind} | ({"belief": expected["belief"]} if kind in DATED else {})
    note = f"expected {', '.join(wanted)}, the reply settles on {join_some(found) or 'nothing'}{quote_clauses(list(dict.fromkeys(quotes)))}"
    return Item(name=kind, score=float(found == wanted), labels=labels, note=note, turn=answer.turn)
