"""Reach: plain facts, each told in a sentence and asked for once, at distances from nothing at all to the whole span."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import count, groupby
from math import comb
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, Literal, NamedTuple, final

from pydantic import Field

from longspan.scenarios.reach.answers import KINDS, LISTS, PLAIN, ROLES, UPDATES, classify, named, values
from longspan.scenarios.reach.ladder import Layout, Sizes, layout
from longspan.scenarios.reach.wording import Wording
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record
from longspan.simulator.contract.rungs import rung
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.filler.draws import listed
from longspan.simulator.grading.matching import some

__all__ = ["Reach"]

Strand = Literal["plain facts", "paraphrased", "updates", "lists of three"]

THREE: Final = 3

STATEMENTS: Final[dict[Strand, int]] = {"plain facts": 1, "paraphrased": 1, "updates": 2, "lists of three": THREE}
"""The number of messages that state a fact."""

RESERVED: Final = 10
"""People of each kind that paraphrased questions ask about. They are drawn anew for each kind, and the other strands leave them out, so
that a question never has two right answers. A long test needs 4 of them and 16 others, so two such tests share no facts."""

PAUSES: Final = (timedelta(hours=2), timedelta(hours=9), timedelta(days=1), timedelta(days=3))
"""Virtual time that may pass between two messages that are not said in one go."""
PAUSED: Final = 8
"""A test pauses before one in so many of its messages."""


class _Fact(NamedTuple):
    """A question, and what is told for it: one value that counts, an old one and the one that replaced it, or three."""

    strand: Strand
    kind: str
    who: str
    values: tuple[str, ...]

    @property
    def expected(self) -> list[str]:
        return list(self.values[-1:] if self.strand == "updates" else self.values)


@final
class _Dealer:
    """Deals facts. No person has two facts of a kind, and no two facts of a kind have the same values, as long as there are enough.

    No kind has the same person in paraphrased questions and in others, however many facts are dealt.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        roles = {kind: random.sample(list(ROLES), RESERVED) if kind in PLAIN else [] for kind in KINDS}
        self._roles = {kind: Deck[str](random, roles[kind]) for kind in KINDS}
        self._people = {kind: Deck[str](random, [who for who in words("people") if who not in roles[kind]]) for kind in KINDS}
        self._values = {kind: Deck[str](random, values(kind)) for kind in KINDS}

    def facts(self, strand: Strand, kinds: Sequence[str], number: int) -> list[_Fact]:
        people = self._roles if strand == "paraphrased" else self._people
        order = Deck[str](self._random, kinds)
        found = []
        for _ in range(number):
            kind = order.deal()
            drawn: list[str] = []
            while len(drawn) < STATEMENTS[strand]:  # a deck that is shuffled anew may deal the same value again
                if (value := self._values[kind].deal()) not in drawn:
                    drawn.append(value)
            found.append(_Fact(strand, kind, people[kind].deal(), tuple(drawn)))
        return found


@final
class Reach(Scenario):
    """State plain facts in a sentence each, and ask for each once, at a distance from a ladder that goes up to the span.

    The distances are even on a logarithmic scale, from the message before to nine tenths of the span. Some facts are asked for in the
    message that states them. An agent that fails there cannot do the task, so its other answers say nothing about its memory.

    Three more strands have ladders of their own. Paraphrased questions share no content word with the statement of their fact, so a search
    for the same words does not find it; a span of less than 4,000 tokens has no room for them. Updates change a fact once, and the new
    value counts. Lists of three state three things one by one, and all three count. The score is the mean over all questions of all
    strands that were asked later.

    A reply is right if it settles on the value (see settled_words), and of a list, by the share of its three things that it names, less
    a share for each other one.
    """

    name: ClassVar[str] = "reach"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    topics: ClassVar[frozenset[str]] = frozenset({"facts about people"})
    early: ClassVar[bool] = False
    ladder: ClassVar[bool] = True
    version: ClassVar[int] = 2

    span: int = Field(default=8000, ge=500, le=10**9)

    def make(self, random: Random) -> Script:
        return self._script(random, _Dealer(random))

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield tests that share no facts, as long as there are enough people."""
        dealer = _Dealer(Random(f"{seed}/facts"))
        for number in range(1, tests + 1):
            yield str(number), self._script(Random(f"{seed}/{number}"), dealer)

    def _script(self, random: Random, dealer: _Dealer) -> Script:
        sizes = Sizes.of(self.span)
        where = layout(sizes, self.span, random)
        told = _placed(sizes, where, dealer)
        lines: list[Line] = []
        needles: dict[_Fact, list[int]] = {}
        said: dict[_Fact, list[int]] = {}
        numbers = count()
        asked: list[dict[str, Any]] = []
        wording = Wording(self.name)
        for line, (slot, (fact, part)) in enumerate(sorted(told.items())):
            text, asks = _said(wording, random, fact, part)
            said.setdefault(fact, []).append(line)
            needs = tuple(needles.get(fact, ())) if asks else None
            if asks:
                more = {"values": list(fact.values), "expected": fact.expected, "at_once": part is None, "lines": said[fact]}
                asked.append(fact._asdict() | more)
            else:
                needles.setdefault(fact, []).append(next(numbers))
            pause = random.choice(PAUSES) if slot and not random.randrange(PAUSED) else timedelta(0)
            place = round(where.at[slot] / self.span, 6)
            lines.append(Line(text, _ideal(fact) if asks else "OK.", asks=asks, needle=not asks, needs=needs, at=place, pause=pause))
        return Script(facts={"asked": asked}, lines=lines, keeps_places=True)

    def chance(self, facts: Mapping[str, Any]) -> float:
        return fmean(_chance(about["kind"], len(values(about["kind"]))) for about in facts["asked"] if not about["at_once"])

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return the newest message alone where a value was changed."""
        wanted = super().needed(facts, number, question, needles)
        return wanted[-1:] if facts["asked"][number]["strand"] == "updates" else wanted

    def guess(self, message: str) -> str | None:
        wording, random = Wording(self.name), Random(message)
        told, stop, question = message.rpartition(". ")
        for kind in KINDS:
            macros = [f"asked_{kind}", *([f"paraphrased_{kind}"] if kind in PLAIN else [])]
            if all(wording.read(macro, question) is None for macro in macros):
                continue
            if not stop:
                return _sentence([random.choice(values(kind))])
            if (fact := wording.read(f"told_{kind}", f"{told}.")) is not None:
                return _sentence([fact["value"]])
        return None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        asked = facts["asked"]
        items = [_item(about, answer, _heard(about, asked)) for about, answer in zip(asked, record.answers, strict=False)]
        later = [item for item, about in zip(items, asked, strict=False) if not about["at_once"]]
        parts = [
            f"{strand}: {sum(item.score or 0 for item in group):.3g} of {len(group)}"
            for strand, found in groupby(sorted(items, key=_strand), key=_strand)
            if (group := list(found))
        ]
        return Grade(
            score=fmean(item.score or 0 for item in later) if later else None,
            reason=f"recalled {listed(parts)}",
            turns=tuple(answer.turn for answer in record.answers),
            items=tuple(items),
        )


def _placed(sizes: Sizes, where: Layout, dealer: _Dealer) -> dict[int, tuple[_Fact, int | None]]:
    """Return each message of a layout: a fact and the number of its message; None for a fact that is asked for at once."""
    plain = dealer.facts("plain facts", PLAIN, sizes.plain + sizes.at_once)
    paraphrased = dealer.facts("paraphrased", PLAIN, sizes.paraphrased)
    lists, updates = dealer.facts("lists of three", LISTS, sizes.lists), dealer.facts("updates", UPDATES, sizes.updates)
    said: dict[int, tuple[_Fact, int | None]] = {}
    strands = [(plain[: sizes.plain], where.plain), (paraphrased, where.paraphrased), (lists, where.lists), (updates, where.updates)]
    for facts, places in strands:
        for fact, taken in zip(facts, places, strict=True):
            said.update({slot: (fact, part) for part, slot in enumerate(taken)})
    said.update({slot: (fact, None) for fact, slot in zip(plain[sizes.plain :], where.at_once, strict=True)})
    return said


def _said(wording: Wording, random: Random, fact: _Fact, part: int | None) -> tuple[str, bool]:
    """Return the text of one of a fact's messages, and whether it asks."""
    if fact.strand == "paraphrased":
        question = wording.say(random, f"paraphrased_{fact.kind}", who=ROLES[fact.who])
    else:
        question = wording.say(random, f"asked_{fact.kind}", who=fact.who)
    if part is None:
        return f"{wording.say(random, f'told_{fact.kind}', who=fact.who, value=fact.values[0])} {question}", True
    if part == len(fact.values):
        return question, True
    change = "changed" if fact.strand == "updates" and part else "told"
    return wording.say(random, f"{change}_{fact.kind}", who=fact.who, value=fact.values[part]), False


def _ideal(fact: _Fact) -> str:
    return _sentence(fact.expected)


def _sentence(found: Sequence[str]) -> str:
    text = listed(list(found))
    return f"{text[:1].upper()}{text[1:]}."


def _chance(kind: str, number: int) -> float:
    """Return what a guess among a `number` of values is expected to earn. Of a list, it names as many things as pays best."""
    single = 1 / number
    if kind not in LISTS:
        return single
    return max([single, *(_earned(guessed, number) for guessed in range(2, THREE + 1))])


def _earned(guessed: int, number: int) -> float:
    """Return what `guessed` things earn on average that are drawn from a `number` of things, of which THREE are right."""
    wrong = number - THREE
    ways = {right: comb(THREE, right) * comb(wrong, guessed - right) for right in range(guessed + 1)}
    return sum(way * max(0, 2 * right - guessed) for right, way in ways.items()) / (THREE * comb(number, guessed))


def _heard(about: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the values of a question's kind that were stated before it, by the numbers of the lines. Early runs do not have these: then
    nothing is known to have been stated."""
    if "lines" not in about:
        return frozenset()
    asks = about["lines"][-1]
    return frozenset(
        value
        for other in asked
        if other["kind"] == about["kind"]
        for value, line in zip(other["values"], other["lines"], strict=False)
        if line <= asks
    )


def _strand(item: Item) -> str:
    return f"{item.labels['strand']} {item.labels['asked']}"


def _item(about: Mapping[str, Any], answer: Exchange, heard: frozenset[str]) -> Item:
    kind, expected = about["kind"], about["expected"]
    found = named(answer.reply, kind, expected, about["who"])
    if kind in LISTS:
        right = sum(value in expected for value in found)
        score = max(0, right - (len(found) - right)) / THREE
    else:
        score = float(found == expected)
    note = f"expected {some(expected)}, the reply settles on {some(found) or 'nothing'}"
    if about["strand"] == "updates" and found == about["values"][:1]:
        note += ", the old value"
    chance = _chance(kind, len(values(kind)))
    return rung(
        f"{about['who']}: {kind}",
        about["strand"],
        score,
        type=kind,
        at_once=about["at_once"],
        chance=chance,
        heard=_chance(kind, len(heard)) if heard else chance,
        outcome=classify(answer.reply, kind, about["values"], found, heard) if heard else "",
        note=note,
        turn=answer.turn,
    )
