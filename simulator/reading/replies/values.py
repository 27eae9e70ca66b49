"""Finds values in replies in any spelling: as one word or two, singular or plural."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Final, NamedTuple, Protocol, final

from longspan.simulator.base.words import NUMBERS, plain, read_numeral
from longspan.simulator.reading.matching import is_slip, sounds_like
from longspan.simulator.reading.replies.lexicon import LEXICON

__all__ = ["Findable", "ValueMatch", "Values", "correct_typos", "join_figures", "says_nearly", "spell_as_figures"]

COMPOUND: Final = 6
"""The fewest letters of a word that may be a compound, which replies may write as two words: "beanbag", "bean bag"."""
SOUNDING: Final = 7
SOUNDS: Final = 4
"""The fewest letters (SOUNDING) and consonants (SOUNDS) of a word that may be spelled by its sound: "liquorice"."""
PART: Final = 3
"""The fewest letters of each half of a compound."""


@final
class ValueMatch(NamedTuple):
    """A value, and its position in plain text."""

    value: str
    start: int
    end: int


class Findable(Protocol):
    """A set of possible answers that can be found in text."""

    @property
    def values(self) -> Sequence[str]:
        """The values, in their canonical order."""
        ...

    def find(self, text: str) -> list[ValueMatch]:
        """Return the values that plain text names, in text order. A found value that is not in `values` is a wrong answer."""
        ...


@final
class Values:
    """Possible answers as text. `others` maps alternative spellings to values ("gray": "grey").

    Values match as whole words in plain text, and the longest of overlapping matches wins ("sky blue" does not match blue). With `forms`,
    compounds match as one or two words, and nouns match in the plural.
    """

    def __init__(self, values: Iterable[str], others: Mapping[str, str] | None = None, *, forms: bool = True) -> None:
        self._spellings = _spellings(tuple(values), tuple((others or {}).items()), forms)

    @property
    def values(self) -> tuple[str, ...]:
        return self._spellings.values

    def __bool__(self) -> bool:
        return bool(self.values)

    def find(self, text: str) -> list[ValueMatch]:
        """Return the values that plain text names, in text order."""
        return self._spellings.find(text)


@final
class _Spellings:
    """The spellings of a set of values. Their pattern is slow to compile, so it is compiled only for text that may contain a value."""

    def __init__(self, values: tuple[str, ...], others: tuple[tuple[str, str], ...], forms: bool) -> None:
        self.values = tuple(dict.fromkeys(value for value in values if plain(value)))
        self._named: dict[str, str] = {}
        self._patterns: dict[str, str] = {}
        for spelling, value in [*((each, each) for each in self.values), *others]:
            for form, sure in _forms(plain(spelling)) if forms else ((plain(spelling), True),):
                if sure or _together(form) not in self._named:
                    self._named[_together(form)] = value
                self._patterns[_apart(form) if forms else re.escape(form)] = form

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._patterns, key=lambda each: (-len(self._patterns[each]), each))
        return re.compile(rf"\b(?:{'|'.join(longest_first)})\b")

    def find(self, text: str) -> list[ValueMatch]:
        letters = _together(text)
        if not self.values or not any(spelling in letters for spelling in self._named):
            return []
        return [ValueMatch(self._named[_together(match[0])], match.start(), match.end()) for match in self._pattern.finditer(text)]


_spellings: Final = lru_cache(maxsize=500)(_Spellings)


def _together(text: str) -> str:
    return text.replace(" ", "")


def _forms(word: str) -> Iterable[tuple[str, bool]]:
    """Yield a noun, then its possible plurals and its singular. The flag is True for the noun itself."""
    yield word, True
    if not word or word[-1].isdigit():
        return
    yield f"{word}s", False
    if word.endswith(("s", "sh", "ch", "x", "z", "o")):
        yield f"{word}es", False
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        yield f"{word[:-1]}ies", False
    if word.endswith(("fe", "lf", "af")):
        yield f"{word.rstrip('fe')}ves", False
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 4:
        yield word[:-1], False


@lru_cache(maxsize=10_000)  # a word is part of many sets of values
def _apart(form: str) -> str:
    """Return a pattern that matches a form with its compounds as one word or two."""
    return " ?".join(_word(word) for word in form.split()) if not form[:1].isdigit() else re.escape(form)


def _word(word: str) -> str:
    if len(word) < COMPOUND or not word.isalpha():
        return re.escape(word)
    return f"{word[:PART]}{' ?'.join(word[PART:-PART])} ?{word[-PART:]}"


_NUMERAL: Final = "|".join([*(word for word in NUMBERS if "-" not in word), "hundred", "thousand", "oh"])
_RUN: Final = re.compile(rf"\b(?:{_NUMERAL})(?:[ ,-]{{1,2}}(?:and )?(?:{_NUMERAL}))*\b", re.IGNORECASE)


def join_figures(text: str, values: Iterable[str]) -> str:
    """Return `text` with the numbers among `values` written in plain figures. Takes time linear in the length of the text.

    Handles marks or spaces between digits ("4 7 1 1", "47-11") and spelled-out numbers ("four seven one one", "forty-seven eleven").
    """
    known = tuple(values)  # not a set, whose order differs between processes
    for value in known:
        text = re.sub(r"(?<!\d)" + r"[ ,.*_-]{0,2}".join(value) + r"(?!\d)", value, text)

    def written(match: re.Match[str]) -> str:
        number = spell_as_figures(plain(match[0])).replace(" ", "")
        return number if number in known else match[0]

    return _RUN.sub(written, text)


def spell_as_figures(text: str) -> str:
    """Return plain `text` with spelled-out numbers in figures: "four seven", "forty seven", "four thousand and seven"."""
    words = text.split()
    written: list[str] = []
    at = 0
    while at < len(words):
        value, end = read_numeral(words, at)
        written.append("0" if words[at] == "oh" else words[at] if value is None else str(value))
        at = end
    return " ".join(written)


def correct_typos(text: str, values: Iterable[str], least: int = 5) -> str:
    """Return plain text with misspelled words of `values` corrected: "inside the matress". Takes time linear in the length of the text.

    Only words of at least `least` letters are corrected.
    """
    known = _vocabulary(tuple(values))
    return " ".join(_correct_word(word, known.get(word[0], ()), least) for word in text.split()) if known else text


@lru_cache(maxsize=500)
def _vocabulary(values: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """Return the words of values and their plurals, grouped by first letter."""
    found: dict[str, list[str]] = {}
    for word in dict.fromkeys(word for value in values for word in plain(value).split()):
        found.setdefault(word[0], []).extend((word, f"{word}s"))
    return found


def _correct_word(word: str, known: Sequence[str], least: int) -> str:
    if len(word) < least - 1 or word in known or word in LEXICON.words:
        return word
    meant = [each for each in known if is_slip(word, each, least + each.endswith("s"))]
    # Requiring the same last letter keeps "practice" from matching "parquets".
    alike = [each for each in known if min(len(word), len(each)) >= SOUNDING and each[-1] == word[-1]]
    meant = meant or [each for each in alike if sounds_like(word, each, SOUNDS)]
    return meant[0] if len({each.removesuffix("s") for each in meant}) == 1 else word


def says_nearly(text: str, phrase: str) -> bool:
    """Return whether `text` contains a phrase, with compounds as one word or two, and with at most one slip of a letter per word."""
    said, meant = plain(text).split(), plain(phrase).split()
    windows = zip(*(said[at:] for at in range(len(meant))), strict=False)
    return re.search(rf"\b{' '.join(map(_word, meant))}\b", " ".join(said)) is not None or any(
        all(map(is_slip, window, meant, repeat(3))) for window in windows
    )
