"""A parsed reply, and the questions that graders ask about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar, final

from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.reading.replies.layout import PRIME, flatten_layout, own_turn
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.mentions import Mention, find_mentions, is_correction
from longspan.simulator.reading.replies.splitting import NOTHING, SENTENCE, Clause, split_clauses
from longspan.simulator.reading.replies.subjects import YOU, Whole, find_subjects, user_names
from longspan.simulator.reading.replies.values import Findable, Values, correct_typos
from longspan.simulator.reading.replies.weighing import weigh_mentions

__all__ = ["MANY", "YOU", "Reading", "SettledValues", "parse_reply", "quote_clauses", "settled_words", "user_names"]


_OFFERED: Final = re.compile(r"\b(?:maybe|perhaps|possibly|(?:might|may|could) be)(?: \w+){0,4} $")
"""Matches before another person's value if the reply offers it as one more possible answer: "red, perhaps Jocelyn's blue"."""
MANY: Final = 3
"""The most other people or things whose values a reply may list and still answer a question about one of them."""
BRIEF: Final = 40
"""The most clauses of a reply that is searched for misspelled values."""
FEW: Final = 3
"""The most words of a short clause. In it, a misspelled word needs SHORT letters; in a longer clause, LONG letters."""
SHORT: Final = 5
LONG: Final = 7
APART: Final = 8
"""The fewest letters of a misspelled word that may also be split in two."""
MOST: Final = 2
"""The most words of a clause that is not worth quoting, because it only repeats the value."""
QUOTED: Final = 80
"""The most characters of a clause that the reason of a grade quotes."""


_Found = TypeVar("_Found", bound=Collection[str])


@final
class SettledValues(NamedTuple):
    """The values that a reply settles on, in the order of the possible values, and the clauses that state them."""

    values: list[str]
    quotes: list[str]


@final
class Reading:
    """A reply as a sequence of clauses. Parsing takes time linear in the length of the reply and never raises."""

    def __init__(self, text: str) -> None:
        self.text = readable_part(text)
        self._whole = text
        self.clauses: Sequence[Clause] = parse_reply(self.text)

    def mentions(self, values: Findable) -> Sequence[Mention]:
        """Return the mentions of `values` in reply order, each with its stance."""
        return find_mentions(self.clauses, values)

    def settles(self, values: Findable, heeds: Callable[[int], bool] | None = None) -> SettledValues:
        """Return the values that the reply settles on: none, one if it answers, several if it hedges.

        Values that are denied or called out of date never count ("not blue", "it used to be blue"). Of the rest, the reply settles on the
        values with the strongest stance: current; then the target of the last change ("you changed it to red"); then asserted; then
        reported ("you said red"); then dated to the past ("earlier you said red"). So a reply that describes a change, a history or a
        table settles on one value if it says which one is current.

        `heeds` takes a clause number and returns False for clauses to ignore.
        """
        return self.of(values, heeds=heeds)

    def of(
        self,
        values: Findable,
        *wholes: Whole,
        spelled: Mapping[str, str] | None = None,
        heeds: Callable[[int], bool] | None = None,
    ) -> SettledValues:
        """Return the values that the reply settles on for one subject, ignoring values that it gives to others.

        `wholes`: pairs of the subject's names and the names of others. With several pairs, a value of another subject in any pair is
        ignored. A reply that lists values of more than MANY others settles on nothing.
        `spelled`: alternative spellings of these names. Another subject's value does count if the reply leaves open which of the two is
        right ("red, or Jocelyn's blue").
        `heeds`: as for `settles`.
        """
        found = self.mentions(values) or self._find_slips(values)
        if found and not self._is_undecided(found):
            found = self._mentions_of(found, wholes, spelled or {})
        if heeds is not None and not self._is_undecided(found):
            found = [mention for mention in found if heeds(mention.clause)]
        return self._settle(found, values)

    def slips(self, values: Sequence[str]) -> Mapping[str, str]:
        """Return the misspelled words of a short reply, mapped to the words of `values` that they stand for.

        A misspelling is one letter off. It counts in a clause of a few words, or if the word is long. A long word may also be split in
        two: "dart bord".
        """
        if len(self.clauses) > BRIEF:
            return {}
        found: dict[str, str] = {}
        for clause in self.clauses:
            words = clause.text.split()
            least = LONG if sum(word not in LEXICON.words for word in words) > FEW else SHORT
            found |= zip(words, correct_typos(clause.text, values, least).split(), strict=True)
            pairs = [f"{one} {two}" for one, two in pairwise(words)]
            found |= zip(pairs, (correct_typos(pair.replace(" ", ""), values, APART) for pair in pairs), strict=True)
        return {said: meant for said, meant in found.items() if said.replace(" ", "") != meant}

    def _find_slips(self, values: Findable) -> Sequence[Mention]:
        """Return the mentions of values that the reply misspells."""
        slips = self.slips(values.values) if isinstance(values, Values) else {}
        if not slips:
            return []
        wrong = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(slips, key=len, reverse=True)))})\b")
        return find_mentions([clause._replace(text=wrong.sub(lambda said: slips[said[0]], clause.text)) for clause in self.clauses], values)

    def find_named(self, values: Findable, *wholes: Whole) -> list[str]:
        """Return the values that the reply names for a subject and does not deny, without repeats: the items of a list in prose."""
        found = self._mentions_of(self.mentions(values), wholes, {})
        return list(dict.fromkeys(mention.value for mention in found if mention.how < Stance.DENIED))

    def _mentions_of(self, found: Sequence[Mention], wholes: Sequence[Whole], spelled: Mapping[str, str]) -> Sequence[Mention]:
        for own, others in wholes:
            mine, names = frozenset(own), (*own, *others)
            also = {spelling: name for spelling, name in spelled.items() if name in names}
            said_of = find_subjects(self.clauses, found, Values(names, also))
            if len({whose for whose in said_of if whose is not None and whose not in mine}) > MANY:
                return []
            kept = zip(found, said_of, strict=True)
            found = [mention for mention, whose in kept if whose is None or whose in mine or self._offers(mention)]
        return found

    def pieces(self, part: int, marks: str = "") -> list[str]:
        """Return the reply's plain words, cut at gaps of at least strength `part` (see `Clause`) and at any character of `marks`."""
        found: list[str] = []
        for clause in self.clauses:
            if found and clause.part < part and not any(mark in clause.gap for mark in marks):
                found[-1] += f" {clause.text}"
            else:
                found.append(clause.text)
        return found

    def settle(self, find: Callable[[str], _Found]) -> _Found:
        """Return what `find` finds in the reply, without what the reply does not know, takes back or denies.

        This is for answers that are more than words, such as dates, measures and jokes.
        """
        found = find(self._drop(_leaves_open))
        if len(found) < 2:
            return found
        left = map(find, (self.find_correction(), self._drop(_leaves_open, _denies)))
        return next((fewer for fewer in left if 0 < len(fewer) < len(found)), found)

    def _drop(self, *starts: Callable[[Clause, Clause], bool]) -> str:
        """Return the reply without the text from a clause that one of `starts` matches, given the clause before it, to its sentence's
        end or a "but"."""
        kept: list[str] = []
        drops = False
        for before, clause in pairwise([NOTHING, *self.clauses]):
            drops = drops and clause.part < SENTENCE and clause.gap.strip() != "but"
            drops = drops or any(start(before, clause) for start in starts)
            if not drops:
                kept.append(f" {clause.gap} {clause.raw}" if clause.gap.strip().isalpha() else f"{clause.gap} {clause.raw}")
        return self._whole if len(kept) == len(self.clauses) else "".join(kept)

    def find_correction(self) -> str:
        """Return the text from the reply's last correction of itself on, or "" if there is none."""
        at = max((at for at, clause in enumerate(self.clauses) if is_correction(clause)), default=None)
        return "" if at is None else " ".join(clause.raw for clause in self.clauses[at:])

    def find_attributed(self, group: str) -> frozenset[int]:
        """Return the numbers of clauses that report what others say, and of clauses that such a clause introduces.

        `group` is the lexicon group that names the others. Examples: "according to the leaflet, red", "the leaflet: red".
        """
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
        """Return whether the reply names several values and then says that it cannot decide between them."""
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
        """Return whether a clause after number `since` says that the answer is unknown."""
        return any(LEXICON.has("unknown", clause.text) for clause in self.clauses[since + 1 :])

    def leaks(self, values: Values) -> bool:
        """Return whether the reply contains one of `values`, in any stance.

        A value that is denied or called forgotten is given away too. So is a value that is struck out or spelt letter by letter.
        """
        text = plain(self.text)
        said = values.find(text) or values.find(correct_typos(text, values.values, LONG))
        return bool(said) or any(_spelt(value) in text for value in values.values)

    def _settle(self, found: Sequence[Mention], values: Findable) -> SettledValues:
        if self._is_undecided(found):
            found = [mention._replace(how=Stance.ASSERTED) for mention in found]
        else:
            found = weigh_mentions(self.clauses, found)
        best = min((mention.how for mention in found), default=Stance.DENIED)
        wonders = best == Stance.DATED or all(self.clauses[mention.clause].asks for mention in found)
        if best == Stance.DENIED or (wonders and self._is_unknown(found[-1].clause)):
            return SettledValues([], [])
        final = [mention for mention in found if mention.how == best]
        if best == Stance.CHANGED:
            final = [mention for mention in final if mention.run == final[-1].run]
        named = {mention.value for mention in final}
        quotes = dict.fromkeys(self.clauses[mention.clause].raw for mention in final)
        return SettledValues([value for value in values.values if value in named], list(quotes))


def _leaves_open(before: Clause, clause: Clause) -> bool:
    """Return whether a clause says that its answer is not known: "I don't know whether it is red"."""
    head, whether, _ = clause.text.partition(" whether ")
    unsure = head if whether else before.text if clause.gap.strip() == "if" else ""
    return bool(unsure) and LEXICON.has("denied", unsure)


def _denies(before: Clause, clause: Clause) -> bool:
    """Return whether a clause only denies something: "red, not blue". "Not being able to find it" denies nothing."""
    return bool(_DENIES.match(clause.text))


_DENIES: Final = re.compile(r"(?:not(?! (?:\w+ing|to)\b)|rather than|instead of|other than|anything but)\b")


@lru_cache(maxsize=64)
def parse_reply(text: str) -> Sequence[Clause]:
    """Return the clauses of a reply. Cached, because graders ask several questions about the same reply."""
    return split_clauses(flatten_layout(own_turn(text)))


def settled_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that `text` settles on, spelled as given and in their order. See `Reading.settles`."""
    return Reading(text).settles(Values(candidates, forms=False)).values


def _spelt(value: str) -> str:
    return " ".join(plain(value).replace(" ", ""))


def quote_clauses(quotes: Sequence[str], limit: int = 2) -> str:
    """Return the deciding clauses as quotations for the reason of a grade. Clauses that only repeat the value are left out."""
    said = [quote for quote in quotes if len(quote.split()) > MOST]
    shown = [" ".join(quote.replace(PRIME, "'").split()).encode("utf-8", "replace").decode() for quote in said[:limit]]
    return "".join(f": '{quote if len(quote) <= QUOTED else quote[: QUOTED - 1] + chr(0x2026)}'" for quote in shown)
