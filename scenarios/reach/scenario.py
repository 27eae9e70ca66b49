"""Reach: plain facts, each stated in one sentence and asked for once, at distances from zero to nearly the whole span."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import count, groupby
from math import comb
from random import Random
from statistics import fmean
from typing import Any, ClassVar, Final, Literal, NamedTuple, final

from pydantic import Field

from longspan.scenarios.reach.answers import KINDS, LISTS, PLAIN, ROLES, UPDATES, classify_answer, find_values, list_values
from longspan.scenarios.reach.ladder import Layout, Sizes, draw_layout
from longspan.scenarios.reach.wording import Wording
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record
from longspan.simulator.contract.rungs import make_rung
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.filler.draws import join_words
from longspan.simulator.reading.matching import join_some

__all__ = ["Reach"]

Strand = Literal["plain facts", "paraphrased", "updates", "lists of three"]

THREE: Final = 3

STATEMENTS: Final[dict[Strand, int]] = {"plain facts": 1, "paraphrased": 1, "updates": 2, "lists of three": THREE}
"""Number of messages that state a fact, by strand."""

RESERVED: Final = 10
"""People reserved for paraphrased questions, for each kind of fact. They are drawn separately for each kind, and the other strands skip
them, so that no question has two right answers. A long test needs 4 of them and 16 others, so two such tests share no facts."""

PAUSES: Final = (timedelta(hours=2), timedelta(hours=9), timedelta(days=1), timedelta(days=3))
"""Virtual time that may pass between two messages."""
PAUSED: Final = 8
"""On average, one message in this many comes after a pause."""


class _Fact(NamedTuple):
    """A fact to be recalled. `values` is one value, an old value and its replacement (updates), or three values (lists)."""

    strand: Strand
    kind: str
    who: str
    values: tuple[str, ...]

    @property
    def expected(self) -> list[str]:
        return list(self.values[-1:] if self.strand == "updates" else self.values)


@final
class _Dealer:
    """Deals facts without repeating people or values within a kind, as long as there are enough.

    A person used in paraphrased questions of a kind never appears in its other questions, however many facts are dealt.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        roles = {kind: random.sample(list(ROLES), RESERVED) if kind in PLAIN else [] for kind in KINDS}
        self._roles = {kind: Deck[str](random, roles[kind]) for kind in KINDS}
        self._people = {kind: Deck[str](random, [who for who in load_words("people") if who not in roles[kind]]) for kind in KINDS}
        self._values = {kind: Deck[str](random, list_values(kind)) for kind in KINDS}

    def facts(self, strand: Strand, kinds: Sequence[str], number: int) -> list[_Fact]:
        people = self._roles if strand == "paraphrased" else self._people
        order = Deck[str](self._random, kinds)
        found = []
        for _ in range(number):
            kind = order.deal()
            drawn: list[str] = []
            while len(drawn) < STATEMENTS[strand]:  # a reshuffled deck may repeat a value
                if (value := self._values[kind].deal()) not in drawn:
                    drawn.append(value)
            found.append(_Fact(strand, kind, people[kind].deal(), tuple(drawn)))
        return found


@final
class Reach(Scenario):
    """State plain facts in a sentence each, and ask for each once, at distances up to the span.

    The distances are evenly spaced on a logarithmic scale, from one message to nine tenths of the span. Some facts are asked for in the
    message that states them: an agent that fails there cannot do the task, so its other answers say nothing about its memory.

    There are three more strands, each with its own ladder of distances. Paraphrased questions share no content word with the statement
    of their fact, so lexical search does not find it; they need a span of at least 4,000 tokens. Updates change a fact once, and only
    the new value counts. Lists of three state three things one by one, and all three count. The score is the mean over all questions of
    all strands that were asked later.

    A reply is right if it gives the value and no other (see settled_words). A list scores the fraction of its three items that the reply
    names, less the same share for each wrong one.
    """

    name: ClassVar[str] = "reach"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    topics: ClassVar[frozenset[str]] = frozenset({"facts about people"})
    early: ClassVar[bool] = False
    ladder: ClassVar[bool] = True
    # Version 2 added paraphrased questions. They take slots from the others, so the same seed makes other tests than before.
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
        where = draw_layout(sizes, self.span, random)
        told = _place_facts(sizes, where, dealer)
        lines: list[Line] = []
        needles: dict[_Fact, list[int]] = {}
        said: dict[_Fact, list[int]] = {}
        numbers = count()
        asked: list[dict[str, Any]] = []
        wording = Wording(self.name)
        for line, (slot, (fact, part)) in enumerate(sorted(told.items())):
            text, asks = _say_fact(wording, random, fact, part)
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
        # Another placement would move the questions off their rungs.
        return Script(facts={"asked": asked}, lines=lines, keeps_places=True)

    def chance(self, facts: Mapping[str, Any]) -> float:
        return fmean(_chance(about["kind"], len(list_values(about["kind"]))) for about in facts["asked"] if not about["at_once"])

    def needed(self, facts: Mapping[str, Any], number: int, question: str, needles: Sequence[Exchange]) -> Sequence[Collection[int]]:
        """Return only the newest message for a changed value."""
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
                return _sentence([random.choice(list_values(kind))])
            if (fact := wording.read(f"told_{kind}", f"{told}.")) is not None:
                return _sentence([fact["value"]])
        return None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        asked = facts["asked"]
        items = [_item(about, answer, _values_heard(about, asked)) for about, answer in zip(asked, record.answers, strict=False)]
        later = [item for item, about in zip(items, asked, strict=False) if not about["at_once"]]
        parts = [
            f"{strand}: {sum(item.score or 0 for item in group):.3g} of {len(group)}"
            for strand, found in groupby(sorted(items, key=_strand), key=_strand)
            if (group := list(found))
        ]
        return Grade(
            score=fmean(item.score or 0 for item in later) if later else None,
            reason=f"recalled {join_words(parts)}",
            turns=tuple(answer.turn for answer in record.answers),
            items=tuple(items),
        )


def _place_facts(sizes: Sizes, where: Layout, dealer: _Dealer) -> dict[int, tuple[_Fact, int | None]]:
    """Return the fact that each message is about and the message's number within it, or None if it also asks for the fact."""
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


def _say_fact(wording: Wording, random: Random, fact: _Fact, part: int | None) -> tuple[str, bool]:
    """Return the text of one of a fact's messages, and whether it asks for the fact."""
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
    text = join_words(list(found))
    return f"{text[:1].upper()}{text[1:]}."


def _chance(kind: str, number: int) -> float:
    """Return the expected score of a guess among `number` values. For lists, the guess names the number of things that scores best."""
    single = 1 / number
    if kind not in LISTS:
        return single
    return max([single, *(_guess_yield(guessed, number) for guessed in range(2, THREE + 1))])


def _guess_yield(guessed: int, number: int) -> float:
    """Return the expected score of guessing `guessed` of `number` things when THREE are right."""
    wrong = number - THREE
    ways = {right: comb(THREE, right) * comb(wrong, guessed - right) for right in range(guessed + 1)}
    return sum(way * max(0, 2 * right - guessed) for right, way in ways.items()) / (THREE * comb(number, guessed))


def _values_heard(about: Mapping[str, Any], asked: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the values of a question's kind that were stated before the question.

    Empty for early runs, whose journals have no line numbers.
    """
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
    """Grade the reply to one question."""
    kind, expected = about["kind"], about["expected"]
    found = find_values(answer.reply, kind, expected, about["who"])
    if kind in LISTS:
        right = sum(value in expected for value in found)
        score = max(0, right - (len(found) - right)) / THREE
    else:
        score = float(found == expected)
    note = f"expected {join_some(expected)}, the reply settles on {join_some(found) or 'nothing'}"
    if about["strand"] == "updates" and found == about["values"][:1]:
        note += ", the old value"
    # The fit of recall curves needs two baselines: an agent that mixes up stated facts earns more than a guess among all values.
    chance = _chance(kind, len(list_values(kind)))
    return make_rung(
        f"{about['who']}: {kind}",
        about["strand"],
        score,
        type=kind,
        at_once=about["at_once"],
        chance=chance,
        heard=_chance(kind, len(heard)) if heard else chance,
        outcome=classify_answer(answer.reply, kind, about["values"], found, heard) if heard else "",
        note=note,
        turn=answer.turn,
    )
