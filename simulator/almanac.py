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
        draw = _Draw(f"{self._seed}/{index}")
        form = words.forms[draw.below(len(words.forms))]
        values: dict[str, Any] = {}
        for slot in form.slots:
            values[slot] = words.name(subject) if slot == "x" else self._value(slot, subject, values, draw)
        answer = form.answer.format_map(values)
        return Pair(form.question.format_map(values), answer[0].upper() + answer[1:])

    def _value(self, slot: str, subject: int, values: dict[str, Any], draw: _Draw) -> Any:
        """What fills a slot: another name (y), a small number (n), a large one (m), or a word of the slot's list."""
        if slot == "y":
            other = draw.below(self._words.names - 1)
            return self._words.name(other + (other >= subject))
        if slot == "n":
            return 2 + draw.below(28)
        if slot == "m":
            return 101 + draw.below(9_000)
        choices = self._words.lists[slot.removesuffix("2")]
        if slot.endswith("2"):  # a second word of the same list
            choices = [word for word in choices if word != values[slot.removesuffix("2")]]
        return choices[draw.below(len(choices))]


class _Form(NamedTuple):
    """One way to ask and to answer; `slots` are what is to be filled in."""

    question: str
    answer: str
    slots: list[str]


@final
class _Words:
    """What the almanac is made of."""

    def __init__(self, data: Any) -> None:
        self.lists: dict[str, list[str]] = data["words"]
        self.forms = [_Form(question, answer, _slots(question + answer)) for kind in data["kinds"].values() for question, answer in kind]
        self._first = [syllable.capitalize() for syllable in data["syllables"]["first"]]
        self._middle, self._last = data["syllables"]["middle"], data["syllables"]["last"]
        self.names = len(self._first) * len(self._middle) * len(self._last)

    def name(self, number: int) -> str:
        """The name with a number below `names`. Each syllable but the last ends in its only vowel: no two names are alike."""
        rest, last = divmod(number, len(self._last))
        first, middle = divmod(rest, len(self._middle))
        return f"{self._first[first]}{self._middle[middle]}{self._last[last]}"


def _slots(form: str) -> list[str]:
    """The slots of a form, each once, sorted: a list's first word is drawn before its second."""
    return sorted({slot for _, slot, _, _ in Formatter().parse(form) if slot})


@cache
def _words() -> _Words:
    return _Words(json.loads(DATA.read_text("utf-8")))


@final
class _Draw:
    """Numbers drawn from a text; unlike `random`, the same in every release of Python."""

    def __init__(self, text: str) -> None:
        self._left = _digest(text)

    def below(self, limit: int) -> int:
        self._left, drawn = divmod(self._left, limit)
        return drawn


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")
