"""The built-in source of filler: an endless almanac of things that do not exist.

Invented minerals, moons, engines, statutes: nothing that a test could ask about, and nothing that a model could have
learnt. Its words and forms are in data/almanac.json; adding to them changes what seeds mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import count, islice, product
from pathlib import Path
from string import Formatter
from struct import Struct
from typing import Any, NamedTuple, final

from simulator.filler import Pair

__all__ = ["Almanac"]

DATA = Path(__file__).parent / "data" / "almanac.json"
STRIDE = 187_637
"""How far apart the names of neighbouring facts are: prime, so that every name has its turn before any comes again."""

SIDE = 400
"""How many first words names have, and how many second ones: few enough that each is soon counted, while names are many."""
NAMES = SIDE * SIDE
DRAWS = Struct(">8Q")
NUMBERS = range(2, 30)
LARGE_NUMBERS = range(101, 1_001)
GAP = "\n"
"""What stands for that which is filled in later."""
OPEN = {"x": GAP, "y": GAP, "m": GAP}


@final
class Almanac:
    """Facts without end; each depends on the seed and its place alone.

    Every question is about a name of its own, until the names are used up, after about five million tokens.
    """

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed).encode("utf-8", "surrogatepass")

    def pairs(self) -> Iterator[Pair]:
        words = _words()
        forms, firsts, seconds = words.forms, words.firsts, words.seconds
        subject = self._draw(b"names")[0] % NAMES
        for block in count():
            for drawn in self._draw(b"%d" % block):
                left, form = divmod(drawn, len(forms))
                left, fact = divmod(left, len(forms[form]))
                before, ending, after, answer, fill_in, answer_ending = forms[form][fact]
                if fill_in == "y":
                    other = left % (NAMES - 1)
                    first, second = divmod(other + (other >= subject), SIDE)
                    answer = f"{answer}{firsts[first]} {seconds[second]}{answer_ending}"
                elif fill_in == "m":
                    answer = f"{answer}{LARGE_NUMBERS[left % len(LARGE_NUMBERS)]}{answer_ending}"
                first, second = divmod(subject, SIDE)
                yield Pair([*before, firsts[first], seconds[second] + ending, *after], answer)
                subject = (subject + STRIDE) % NAMES

    def _draw(self, what: bytes) -> tuple[int, ...]:
        """Eight numbers below 2**64: unlike those of `random`, the same in every release of Python."""
        return DRAWS.unpack(blake2b(b"%b/%b" % (self._seed, what)).digest())


class _Fact(NamedTuple):
    """A question about a name (x), with its answer: the phrases before the name, what its second word ends in, the phrases
    after it, and the answer. Where another name (y) or a large number (m) is to be filled in, the answer is what stands
    before that, and `answer_ending` what stands after it."""

    before: tuple[str, ...]
    ending: str
    after: tuple[str, ...]
    answer: str
    fill_in: str
    answer_ending: str


@final
class _Words:
    """What the almanac is made of: the first and second words of names, and for each form to ask in, the facts it can ask for."""

    def __init__(self, data: Any) -> None:
        invented = _invented(**data["syllables"])
        self.firsts, self.seconds = list(islice(invented, SIDE)), list(islice(invented, SIDE))
        self.forms = [list(_facts(question, answer, data["words"])) for kind in data["kinds"].values() for question, answer in kind]


def _facts(question: str, answer: str, words: dict[str, list[str]]) -> Iterator[_Fact]:
    """A form with each choice of words and small numbers for its slots; a list's second word is none of its first."""
    slots = {name for _, name, _, _ in Formatter().parse(question + answer) if name}
    drawn = sorted(slots - OPEN.keys())
    fill_in = "".join(slots & {"y", "m"})
    for chosen in product(*(NUMBERS if name == "n" else words[name.removesuffix("2")] for name in drawn)):
        if len(set(chosen)) == len(chosen):
            values = OPEN | dict(zip(drawn, chosen, strict=True))
            before, _, rest = question.format_map(values).partition(GAP)
            ending, _, after = rest.partition(" ")
            said, _, answer_ending = answer.format_map(values).partition(GAP)
            yield _Fact(_phrases(before), ending, _phrases(after), said[:1].upper() + said[1:], fill_in, answer_ending)


def _phrases(text: str) -> tuple[str, ...]:
    """What stands on one side of a name, if anything does."""
    return (text.strip(),) if text else ()


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
