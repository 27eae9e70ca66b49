"""The built-in source of filler: an endless almanac of things that do not exist.

Invented minerals, moons, engines and statutes: nothing that a test asks about or that a model could have learned. Its words and
forms are in data/almanac.json; adding to them changes what seeds mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain, count, islice, product
from pathlib import Path
from string import Formatter, ascii_letters
from struct import Struct
from typing import Any, NamedTuple, TypeVar, final

from longspan.simulator.filler.filler import Count, Pair

__all__ = ["Almanac"]

Item = TypeVar("Item")

DATA = Path(__file__).parents[1] / "data" / "almanac.json"
STRIDE = 187_637
"""The stride through all words that the syllables can form. It is prime, so that every word is reached."""

SIDE = 400
"""The number of first words of names, and of second ones: few to count, but many names."""
NAMES = SIDE * (SIDE - 1)
"""The number of names in questions: all pairs of words, except those used in answers."""
KNOWN = 40
"""The number of names in answers: few, so that each answer is soon counted."""

DRAWS = Struct(">HHI")
"""A random draw of a form, of a fact, and of what fills its answer."""

NUMBERS = range(2, 30)
LARGE_NUMBERS = range(101, 401)
GAP = "\n"
"""A placeholder for what is filled in later."""
OPEN = {"x": GAP, "y": GAP, "m": GAP}


@final
class Almanac:
    """Endless facts, each of which depends only on the seed and its position.

    Every question has a different name until the names are used up, after about five million tokens. Answers use few names.
    """

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed).encode("utf-8", "surrogatepass")

    def pairs(self, count_piece: Count) -> Iterator[Pair]:
        forms, known = _words().forms, _words().known
        for (first, place), (form, fact, other) in zip(self._names(), self._draws("facts"), strict=True):
            facts = forms[form % len(forms)]
            begin, seconds, end, answer, fill_in, answer_end = facts[fact % len(facts)]
            second = seconds[place]
            if fill_in == "y":
                answer = f"{answer}{known[other % KNOWN]}{answer_end}"
            elif fill_in == "m":
                answer = f"{answer}{LARGE_NUMBERS[other % len(LARGE_NUMBERS)]}{answer_end}"
            tokens = count_piece(begin) + count_piece(first) + count_piece(second) + count_piece(end)
            yield f"{begin}{first}{second}{end}", tokens, answer

    def _names(self) -> Iterator[tuple[str, int]]:
        """Yield the first word of each name and the index of its second: all pairs at one distance, then at the next."""
        firsts, places = _words().firsts, range(SIDE)
        _, start, turn = next(self._draws("names"))
        return chain.from_iterable(
            zip(_from(start, firsts), _from(start + 1 + distance % (SIDE - 1), places), strict=True) for distance in count(turn)
        )

    def _draws(self, what: str) -> Iterator[tuple[int, ...]]:
        """Yield draws without end which, unlike those of `random`, are the same in every Python release."""
        digests = (blake2b(b"%b/%b/%d" % (self._seed, what.encode(), block)).digest() for block in count())
        return chain.from_iterable(map(DRAWS.iter_unpack, digests))


class _Fact(NamedTuple):
    """A question about a name (x), in pieces, with its answer: the text before the name, the second words of names with their ending,
    the text after the name, and the answer. If a name (y) or a large number (m) is filled in, `answer` is the text before it and
    `answer_end` the text after it."""

    begin: str
    seconds: Sequence[str]
    end: str
    answer: str
    fill_in: str
    answer_end: str


@final
class _Words:
    """The almanac's words: the first words of names, the names in answers, and the facts of each form of question. A question's pieces
    include their leading space."""

    def __init__(self, data: Any) -> None:
        invented = _invented(**data["syllables"])
        firsts, seconds = list(islice(invented, SIDE)), list(islice(invented, SIDE))
        self.firsts = [f" {word}" for word in firsts]
        self.known = [" ".join(name) for name in islice(zip(firsts, seconds, strict=True), KNOWN)]
        ended = cache(lambda ending: [f" {word}{ending}" for word in seconds])
        self.forms = [
            [_Fact(begin, ended(ending), *rest) for begin, ending, *rest in _facts(question, answer, data["words"])]
            for kind in data["kinds"].values()
            for question, answer in kind
        ]


def _facts(question: str, answer: str, words: dict[str, list[str]]) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield a form with each choice of words and small numbers for its slots, as a _Fact with the letters that end the name instead of
    `seconds`. The two words of a list differ."""
    slots = {name for _, name, _, _ in Formatter().parse(question + answer) if name}
    drawn = sorted(slots - OPEN.keys())
    fill_in = "".join(slots & {"y", "m"})
    for chosen in product(*(NUMBERS if name == "n" else words[name.removesuffix("2")] for name in drawn)):
        if len(set(chosen)) == len(chosen):
            values = OPEN | dict(zip(drawn, chosen, strict=True))
            begin, _, rest = question.format_map(values).partition(GAP)
            end = rest.lstrip(ascii_letters)
            start, _, answer_end = answer.format_map(values).partition(GAP)
            yield f" {begin.strip()}", rest.removesuffix(end), end, start[:1].upper() + start[1:], fill_in, answer_end


def _from(place: int, items: Sequence[Item]) -> Iterator[Item]:
    """Return all items, starting at an index."""
    place %= len(items)
    return chain(items[place:], items[:place])


def _invented(first: list[str], middle: list[str], last: list[str]) -> Iterator[str]:
    """Yield words from all over those that the syllables can form. Each syllable but the last has a single vowel, so that all differ."""
    number = 0
    while True:
        rest, third = divmod(number, len(last))
        one, two = divmod(rest, len(middle))
        yield f"{first[one].capitalize()}{middle[two]}{last[third]}"
        number = (number + STRIDE) % (len(first) * len(middle) * len(last))


@cache
def _words() -> _Words:
    return _Words(json.loads(DATA.read_text("utf-8")))
