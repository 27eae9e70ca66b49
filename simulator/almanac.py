"""The built-in source of filler: an endless almanac of things that do not exist.

Invented minerals, moons, engines, statutes: nothing that a test could ask about, and nothing that a model could have
learnt. Its words and forms are in data/almanac.json; adding to them changes what seeds mean.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple, final

from simulator.filler import Pair

__all__ = ["Almanac"]

DATA = Path(__file__).parent / "data" / "almanac.json"
STRIDE = 187_637
"""How far apart the names of neighbouring facts are: prime, so that every name has its turn before any comes again."""

LIMITS = {"n": 28, "m": 9_000}
"""How many small numbers, from 2 on, and how many large ones, from 101 on, there are."""


@final
class Almanac:
    """Facts numbered from 0 without end; each depends on the seed and its number alone.

    Every question is about a name of its own, until the names are used up, after about eight million tokens.
    """

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        self._words = _words()
        self._start = _digest(f"{seed}/names")

    def pair(self, index: int) -> Pair:
        words = self._words
        subject = (self._start + index * STRIDE) % words.names
        left = _digest(f"{self._seed}/{index}")  # numbers are drawn from it, unlike from `random` the same in every release of Python
        left, number = divmod(left, len(words.forms))
        form = words.forms[number]
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        for slot, kind, choices, limit in form.slots:
            if kind == "x":
                values[slot] = words.name(subject)
                continue
            left, drawn = divmod(left, limit)
            if kind == "word":
                values[slot], places[slot] = choices[drawn], drawn
            elif kind == "second":
                values[slot] = choices[drawn + (drawn >= places[slot[:-1]])]
            elif kind == "y":
                values[slot] = words.name(drawn + (drawn >= subject))
            else:
                values[slot] = drawn + (2 if kind == "n" else 101)
        answer = form.answer % values
        return Pair(form.question % values, answer[0].upper() + answer[1:])


class _Slot(NamedTuple):
    """What is to be filled in: the name that is asked about (x), another one (y), a small number (n) or a large one (m), a
    word of a list, or a second one of it. One of `limit` is drawn, of `choices` where it is a word."""

    name: str
    kind: str
    choices: list[str]
    limit: int


class _Form(NamedTuple):
    """One way to ask and to answer, as %-formats, and what is to be filled in."""

    question: str
    answer: str
    slots: list[_Slot]


@final
class _Words:
    """What the almanac is made of."""

    def __init__(self, data: Any) -> None:
        self._lists: dict[str, list[str]] = data["words"]
        self._first = [syllable.capitalize() for syllable in data["syllables"]["first"]]
        self._middle, self._last = data["syllables"]["middle"], data["syllables"]["last"]
        self.names = len(self._first) * len(self._middle) * len(self._last)
        self.forms = [self._form(question, answer) for kind in data["kinds"].values() for question, answer in kind]

    def _form(self, question: str, answer: str) -> _Form:
        """A form's slots are sorted: a list's first word is drawn before its second."""
        names = sorted({name for _, name, _, _ in Formatter().parse(question + answer) if name})
        fields = {name: f"%({name})s" for name in names}
        return _Form(question.format_map(fields), answer.format_map(fields), [self._slot(name) for name in names])

    def _slot(self, name: str) -> _Slot:
        if name in LIMITS:
            return _Slot(name, name, [], LIMITS[name])
        if name in ("x", "y"):
            return _Slot(name, name, [], self.names - 1)
        choices = self._lists[name.removesuffix("2")]
        second = name.endswith("2")
        return _Slot(name, "second" if second else "word", choices, len(choices) - second)

    def name(self, number: int) -> str:
        """The name with a number below `names`. Each syllable but the last ends in its only vowel: no two names are alike."""
        rest, last = divmod(number, len(self._last))
        first, middle = divmod(rest, len(self._middle))
        return f"{self._first[first]}{self._middle[middle]}{self._last[last]}"


@cache
def _words() -> _Words:
    return _Words(json.loads(DATA.read_text("utf-8")))


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")
