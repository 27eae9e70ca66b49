"""A reply, parsed once, and the questions that readers ask of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, final

from longspan.simulator.contract.graded_record import readable
from longspan.simulator.grading.matching import plain
from longspan.simulator.grading.reading.layout import PRIME, laid_out, own_turn
from longspan.simulator.grading.reading.lexicon import LEXICON, Stance
from longspan.simulator.grading.reading.mentions import Mention, corrects, mentions
from longspan.simulator.grading.reading.splitting import SENTENCE, Clause, clauses
from longspan.simulator.grading.reading.subjects import YOU, Whole, subjects, yours
from longspan.simulator.grading.reading.values import Findable, Values, mended
from longspan.simulator.grading.reading.weighing import weighed

__all__ = ["MANY", "YOU", "Reading", "Settled", "parsed", "quoting", "settled_words", "yours"]


_OFFERED: Final = re.compile(r"\b(?:maybe|perhaps|possibly|(?:might|may|could) be)(?: \w+){0,4} $")
"""Matches before somebody else's value that a reply offers as one more answer: "red, perhaps Jocelyn's blue"."""
MANY: Final = 3
"""How many others a reply may say a value of and still answer a question about one."""
BRIEF: Final = 40
"""Clauses of a reply that may be short of a value because of a slip of a letter."""
FEW: Final = 3
"""Words of a clause in which a word of SHORT letters is such a slip; in others, it has LONG ones."""
SHORT: Final = 5
LONG: Final = 7
APART: Final = 8
"""Letters of a word that may be written apart with such a slip."""
MOST: Final = 2
"""Words of a value."""
QUOTED: Final = 80
"""Characters of a clause that the reason of a grade quotes."""


@final
class Settled(NamedTuple):
    """The values that a reply settles on, in the order of the possible values, and the clauses that decided."""

    values: list[str]
    quotes: list[str]


@final
class Reading:
    """A reply as its clauses. Takes time linear in the reply and never raises."""

    def __init__(self, text: str) -> None:
        self.text = readable(text)
        self.clauses: Sequence[Clause] = parsed(self.text)

    def mentions(self, values: Findable) -> Sequence[Mention]:
        """Return the values that the reply names, in order, each with how it is presented."""
        return mentions(self.clauses, values)

    def settles(self, values: Findable, heeds: Callable[[int], bool] | None = None) -> Settled:
        """Return the values that the reply settles on: one if it answers, several if it hedges.

        Values that a clause denies or calls past are never settled on ("not blue", "it used to be blue"). Of the others, those called
        current count; if none is, the last that something was changed to ("you changed it to red"); then those asserted, those reported
        ("you said red"), and those dated to the past ("earlier you said red"). So a reply that describes a change, lists a history or shows
        a table, and says which value is current, settles on one. Clauses, by their numbers, that the reader does not heed do not count.
        """
        return self.of(values, heeds=heeds)

    def of(
        self,
        values: Findable,
        *wholes: Whole,
        spelled: Mapping[str, str] | None = None,
        heeds: Callable[[int], bool] | None = None,
    ) -> Settled:
        """Return the values that the reply settles on for a subject. What it says of others does not count.

        `wholes`: names of the subject, and those of the others; with several such pairs, what is said of the others of any does not count.
        A reply that goes through more than MANY others answers nothing about anyone.
        `spelled`: further spellings of these names. A value of others counts where the reply leaves open which of two it is ("red, or
        Jocelyn's blue").
        """
        found = self.mentions(values) or self._slipped(values)
        if found and not self._is_undecided(found):
            found = self._said_of(found, wholes, spelled or {})
        if heeds is not None and not self._is_undecided(found):
            found = [mention for mention in found if heeds(mention.clause)]
        return self._settled(found, values)

    def slips(self, values: Sequence[str]) -> Mapping[str, str]:
        """Return the words of a short reply that are one of a value's words with a slip of a letter, with what is meant: in clauses of a
        few words, or if they are long. A long word may be written apart, too: "dart bord"."""
        if len(self.clauses) > BRIEF:
            return {}
        found: dict[str, str] = {}
        for clause in self.clauses:
            words = clause.text.split()
            least = LONG if sum(word not in LEXICON.words for word in words) > FEW else SHORT
            found |= zip(words, mended(clause.text, values, least).split(), strict=True)
            pairs = [f"{one} {two}" for one, two in pairwise(words)]
            found |= zip(pairs, (mended(pair.replace(" ", ""), values, APART) for pair in pairs), strict=True)
        return {said: meant for said, meant in found.items() if said.replace(" ", "") != meant}

    def _slipped(self, values: Findable) -> Sequence[Mention]:
        """Return the mentions of values whose words are there with slips of a letter."""
        slips = self.slips(values.values) if isinstance(values, Values) else {}
        if not slips:
            return []
        wrong = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(slips, key=len, reverse=True)))})\b")
        return mentions([clause._replace(text=wrong.sub(lambda said: slips[said[0]], clause.text)) for clause in self.clauses], values)

    def named(self, values: Findable, *wholes: Whole) -> list[str]:
        """Return the values that the reply names of a subject and does not deny, each once, in its order: the items of a list in prose."""
        found = self._said_of(self.mentions(values), wholes, {})
        return list(dict.fromkeys(mention.value for mention in found if mention.how < Stance.DENIED))

    def _said_of(self, found: Sequence[Mention], wholes: Sequence[Whole], spelled: Mapping[str, str]) -> Sequence[Mention]:
        for own, others in wholes:
            mine, names = frozenset(own), (*own, *others)
            also = {spelling: name for spelling, name in spelled.items() if name in names}
            said_of = subjects(self.clauses, found, Values(names, also))
            if len({whose for whose in said_of if whose is not None and whose not in mine}) > MANY:
                return []
            kept = zip(found, said_of, strict=True)
            found = [mention for mention, whose in kept if whose is None or whose in mine or self._offers(mention)]
        return found

    def pieces(self, part: int, marks: str = "") -> list[str]:
        """Return the reply's plain words, cut where something parts it as strongly as `part` (see Clause), and at some more marks."""
        found: list[str] = []
        for clause in self.clauses:
            if found and clause.part < part and not any(mark in clause.gap for mark in marks):
                found[-1] += f" {clause.text}"
            else:
                found.append(clause.text)
        return found

    def corrected(self) -> str:
        """Return what the reply says after it corrects itself for the last time; nothing if it does not."""
        at = max((at for at, clause in enumerate(self.clauses) if corrects(clause)), default=None)
        return "" if at is None else " ".join(clause.raw for clause in self.clauses[at:])

    def attributed(self, group: str) -> frozenset[int]:
        """Return the numbers of the clauses about what others say, by the words of a group, with what such a clause introduces: "according
        to the leaflet, red", "the leaflet: red"."""
        found: set[int] = set()
        for at, clause in enumerate(self.clauses):
            led = at - 1 in found and (":" in clause.gap or LEXICON.has("according", self.clauses[at - 1].text)) and clause.part < SENTENCE
            if led or (LEXICON.has(group, clause.text) and not LEXICON.has("own", clause.text)):
                found.add(at)
        return frozenset(found)

    def _offers(self, mention: Mention) -> bool:
        clause = self.clauses[mention.clause]
        return clause.gap.strip(" ,").casefold() == "or" or bool(_OFFERED.search(clause.text[: mention.start]))

    def _is_undecided(self, found: Sequence[Mention]) -> bool:
        """Return whether the reply names several values, and says at last that it cannot tell which is right."""
        if len({mention.value for mention in found}) < 2:
            return False
        after = self.clauses[found[-1].clause :]
        if len(found) == 2 and LEXICON.has("between", self.clauses[found[0].clause].text[: found[0].start]):
            return True
        led = pairwise(self.clauses[: found[0].clause + 1])
        if any(":" in clause.gap and LEXICON.has("torn", before.text) for before, clause in led):
            return True
        if any(LEXICON.pattern("lost").fullmatch(clause.text) for clause in after[1:]):
            return True
        return any(LEXICON.has("undecided", clause.text) for clause in after) or any(
            "which" in clause.gap.casefold()
            and (LEXICON.has("unknown", before.text) or (clause.asks and LEXICON.has("offered", clause.text)))
            for before, clause in pairwise(after)
        )

    def _is_unknown(self, since: int) -> bool:
        """Return whether the reply says after a clause that it does not know."""
        return any(LEXICON.has("unknown", clause.text) for clause in self.clauses[since + 1 :])

    def leaks(self, values: Values) -> bool:
        """Return whether the reply has one of the values in it, however it presents it: one that is denied or called forgotten is given
        away too, and so is one that is struck out or spelled out letter by letter."""
        text = plain(self.text)
        said = values.find(text) or values.find(mended(text, values.values, LONG))
        return bool(said) or any(_spelt(value) in text for value in values.values)

    def _settled(self, found: Sequence[Mention], values: Findable) -> Settled:
        if self._is_undecided(found):
            found = [mention._replace(how=Stance.ASSERTED) for mention in found]
        else:
            found = weighed(self.clauses, found)
        best = min((mention.how for mention in found), default=Stance.DENIED)
        wonders = best == Stance.DATED or all(self.clauses[mention.clause].asks for mention in found)
        if best == Stance.DENIED or (wonders and self._is_unknown(found[-1].clause)):
            return Settled([], [])
        final = [mention for mention in found if mention.how == best]
        if best == Stance.CHANGED:
            final = [mention for mention in final if mention.run == final[-1].run]
        named = {mention.value for mention in final}
        quotes = dict.fromkeys(self.clauses[mention.clause].raw for mention in final)
        return Settled([value for value in values.values if value in named], list(quotes))


@lru_cache(maxsize=64)
def parsed(text: str) -> Sequence[Clause]:
    """Return the clauses of a reply. The last ones are remembered, since several questions are asked of a reply."""
    return clauses(laid_out(own_turn(text)))


def settled_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that `text` settles on, as they are spelled, in their order: see `Reading.settles`."""
    return Reading(text).settles(Values(candidates, forms=False)).values


def _spelt(value: str) -> str:
    return " ".join(plain(value).replace(" ", ""))


def quoting(quotes: Sequence[str], limit: int = 2) -> str:
    """Return the clauses that decided, for the reason of a grade, if they say more than a value."""
    said = [quote for quote in quotes if len(quote.split()) > MOST]
    shown = [" ".join(quote.replace(PRIME, "'").split()).encode("utf-8", "replace").decode() for quote in said[:limit]]
    return "".join(f": '{quote if len(quote) <= QUOTED else quote[: QUOTED - 1] + chr(0x2026)}'" for quote in shown)
