"""The built-in source of filler: an endless almanac of things that do not exist.

Invented minerals, moons, engines, statutes: nothing that a test could ask about, and nothing that a model could have
learnt. Its words and forms are in data/almanac.json; adding to them changes what seeds mean.
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
"""How far apart words are taken from all that the syllables make: prime, so that all of them have their turn."""

SIDE = 400
"""How many first words names have, and how many second ones: few enough that each is soon counted, while names are many."""
NAMES = SIDE * (SIDE - 1)
"""Names that are asked about: all of the words' pairs, but for those that answers are made of."""
KNOWN = 40
"""Names that answers are made of: few enough that each answer is soon counted."""

DRAWS = Struct(">HHI")
"""A draw: of a form, of a fact, and of what its answer is filled in with."""

NUMBERS = range(2, 30)
LARGE_NUMBERS = range(101, 401)
GAP = "\n"
"""What stands for that which is filled in later."""
OPEN = {"x": GAP, "y": GAP, "m": GAP}


@final
class Almanac:
    """Facts without end; each depends on the seed and its place alone.

    Every question is about a name of its own, until the names are used up, after about five million tokens. Answers name few.
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
        """A name's first word and the place of its second: each with the one so many places on, then all with another so many."""
        firsts, places = _words().firsts, range(SIDE)
        _, start, turn = next(self._draws("names"))
        return chain.from_iterable(
            zip(_from(start, firsts), _from(start + 1 + each % (SIDE - 1), places), strict=True) for each in count(turn)
        )

    def _draws(self, what: str) -> Iterator[tuple[int, ...]]:
        """Draws without end: unlike those of `random`, the same in every release of Python."""
        digests = (blake2b(b"%b/%b/%d" % (self._seed, what.encode(), block)).digest() for block in count())
        return chain.from_iterable(map(DRAWS.iter_unpack, digests))


class _Fact(NamedTuple):
    """A question about a name (x), in pieces, with its answer: what comes before the name, the name's second words as they are
    there, what comes after it, and the answer. Where a name (y) or a large number (m) is to be filled in, the answer is what
    stands before that, and `answer_end` what stands after it."""

    begin: str
    seconds: Sequence[str]
    end: str
    answer: str
    fill_in: str
    answer_end: str


@final
class _Words:
    """What the almanac is made of: the first words of names, for each form to ask in the facts it can ask for, and the names that
    answers are made of. A question's pieces have the space that is before them."""

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
    """A form with each choice of words and small numbers for its slots, as a _Fact but for the letters that end the name; a
    list's second word is none of its first."""
    slots = {name for _, name, _, _ in Formatter().parse(question + answer) if name}
    drawn = sorted(slots - OPEN.keys())
    fill_in = "".join(slots & {"y", "m"})
    for chosen in product(*(NUMBERS if name == "n" else words[name.removesuffix("2")] for name in drawn)):
        if len(set(chosen)) == len(chosen):
            values = OPEN | dict(zip(drawn, chosen, strict=True))
            begin, _, rest = question.format_map(values).partition(GAP)
            end = rest.lstrip(ascii_letters)
            said, _, answer_end = answer.format_map(values).partition(GAP)
            yield f" {begin.strip()}", rest.removesuffix(end), end, said[:1].upper() + said[1:], fill_in, answer_end


def _from(place: int, items: Sequence[Item]) -> Iterator[Item]:
    """All items, those from a place on first."""
    place %= len(items)
    return chain(items[place:], items[:place])


def _invented(first: list[str], middle: list[str], last: list[str]) -> Iterator[str]:
    """Words from all over those that the syllables make. Each syllable but the last has the only vowel: no two are alike."""
    number = 0
    while True:
        rest, third = divmod(number, len(last))
        one, two = divmod(rest, len(middle))
        yield f"{first[one].capitalize()}{middle[two]}{last[third]}"
        number = (number + STRIDE) % (len(first) * len(middle) * len(last))


@cache
def _words() -> _Words:
    return _Words(json.loads(DATA.read_text("utf-8")))
