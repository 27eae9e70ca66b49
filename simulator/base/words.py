"""Normalises text for comparisons, and parses numbers in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from math import inf

__all__ = ["NUMBERS", "NUMERAL", "ORDINALS", "SCALES", "SMALL", "normalise_text", "number", "plain", "read_numeral"]

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = {word: value for value, word in enumerate((*SMALL, *(f"{ten}-{one}".rstrip("-") for ten in _TENS for one in ("", *SMALL[1:10]))))}
"""The numbers from 0 to 99 in words: "zero", "forty-seven"."""
NUMERAL = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(SMALL[1:10])}))?|{'|'.join(reversed(SMALL[1:]))})"
"""A pattern that matches a number from 1 to 99 in words."""
_NTH = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth"
    " seventeenth eighteenth nineteenth twentieth"
).split()
ORDINALS = (
    {word: value for value, word in enumerate(_NTH, 1)}
    | {f"twenty {word}": value for value, word in enumerate(_NTH[:9], 21)}
    | {"thirtieth": 30, "thirty first": 31}
)
SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9}
_AMOUNTS = {"a": 1, "an": 1, "single": 1, "once": 1, "couple": 2, "twice": 2, "pair": 2, "dozen": 12, "half-a-dozen": 6, "a-half-dozen": 6}


class _Plain(dict[int, str]):
    """The replacement of each character in `plain`, computed on first use.

    Characters are normalised one by one, because normalising a whole string takes time quadratic in its longest run of accents.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in _APOSTROPHES:
            plain = ""
        else:
            folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
            kept = (char for char in folded if unicodedata.category(char)[0] != "M" and unicodedata.category(char) != "Cf")
            plain = "".join(char if char.isalnum() else " " for char in kept)
        self[code] = plain
        return plain


_APOSTROPHES = "'\u2018\u2019\u02bc`\u00b4"
_PLAIN = _Plain()

MAX_ACCENTS = 30
"""The longest run of accents to normalise. No language has longer ones (Unicode's stream-safe text format)."""

_FOREIGN = re.compile(rf"[^\x00-\x7f]{{{MAX_ACCENTS},}}")


def normalise_text(text: str) -> str:
    """Return `text` in the normal form NFKC. Cuts very long runs of accents, which would take quadratic time to sort."""
    return unicodedata.normalize("NFKC", _FOREIGN.sub(_with_few_accents, text))


def _with_few_accents(match: re.Match[str]) -> str:
    kept: list[str] = []
    accents = 0
    for char in match[0]:
        accents = accents + 1 if unicodedata.combining(char) else 0
        if accents <= MAX_ACCENTS:
            kept.append(char)
    return "".join(kept)


def plain(text: str) -> str:
    """Return `text` for comparison: without case, accents, quotation marks, punctuation, invisible characters and repeated spaces."""
    return " ".join(text.translate(_PLAIN).split())


def number(text: str) -> float | None:
    """Parse a number in digits ("2", "2.5") or English words ("two", "twenty-one"). Return None for anything else."""
    text = text.strip().casefold()
    if len(text) > 40:
        return None
    if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        return float(text)
    word = re.sub(r"\s", "-", re.sub(r"^(?:an?|one) (?=single$|couple$|pair$|dozen$)", "", text))
    value = NUMBERS.get(word, _AMOUNTS.get(word))
    return None if value is None else float(value)


def read_numeral(words: Sequence[str], at: int = 0, below: float = inf) -> tuple[int | None, int]:
    """Return the number spelled out from word `at` on, or None, and the index of the word after it.

    Reads "four", "forty seven" and "four thousand and seven". The number must be `below` a limit.
    """
    both = NUMBERS.get("-".join(words[at : at + 2])) if words[at + 1 : at + 2] else None
    value, end = (both, at + 2) if both is not None else (NUMBERS.get("".join(words[at : at + 1])), at + 1)
    if value is None:
        return None, at + 1
    for large, scale in SCALES.items():
        if words[end : end + 1] == [large] and value < 1000:
            if scale >= below:  # so the depth of calls is the number of scales at most
                return None, at + 1
            value, end = value * scale, end + 1
            rest, after = read_numeral(words, end + (words[end : end + 1] == ["and"]), scale)
            if rest is not None:
                value, end = value + rest, after
    return (value, end) if value < below else (None, at + 1)
