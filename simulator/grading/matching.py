"""Rules shared by graders: plain text, words, phrases, lenient JSON, numbers in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from longspan.simulator.grading.lenient_json import find_json

__all__ = ["contains_nearly", "contains_phrase", "found_words", "json_values", "number", "plain", "some", "split_json"]

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * value for value, word in enumerate(_TENS, 2)}
_WORDS |= {"a": 1, "an": 1, "single": 1, "once": 1, "couple": 2, "twice": 2, "pair": 2, "dozen": 12}


class _Plain(dict[int, str]):
    """What becomes of each character in `plain`, worked out when it is first met.

    Character by character, because normalising a text takes time in the square of its longest run of accents.
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
_POSSESSIVE = re.compile(r"['\u2019]s\b")


def plain(text: str) -> str:
    """`text` without case, accents, quotes, punctuation, invisible characters and repeated space: for comparing phrases."""
    return " ".join(text.translate(_PLAIN).split())


def found_words(text: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that stand in `text` as whole words, in the order of the candidates, whatever their case.

    A possessive counts as the word itself: "Ada's" names Ada.
    """
    spaced = f" {plain(text)} | {plain(_POSSESSIVE.sub('', text))} "
    return [word for word in candidates if (key := plain(word)) and f" {key} " in spaced]


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether the words of `phrase` stand in `text` one after the other, whatever the punctuation between them."""
    return bool(found_words(text, [phrase]))


def contains_nearly(text: str, phrase: str) -> bool:
    """Whether `phrase` stands in `text`, with at most one word in eight of it missing, added or changed.

    For quotations: a phrase of less than eight words must stand there exactly. Takes time in proportion to both lengths.
    """
    wanted, spoken = plain(phrase).split(), plain(text).split()
    allowed = len(wanted) // 8
    if not wanted or len(set(wanted) - set(spoken)) > allowed:
        return False
    costs = list(range(len(wanted) + 1))  # costs[i]: the least edits that end the first i words wanted here (Sellers, 1980)
    for word in spoken:
        before, costs[0] = costs[0], 0
        for i, want in enumerate(wanted, 1):
            before, costs[i] = costs[i], min(costs[i] + 1, costs[i - 1] + 1, before + (word != want))
        if costs[-1] <= allowed:
            return True
    return False


def number(text: str) -> float | None:
    """The number that `text` is, in digits ("2", "2.5") or English words ("two", "twenty-one"); None for anything else."""
    text = text.strip().casefold()
    if len(text) > 40:
        return None
    if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        return float(text)
    text = re.sub(r"^(?:an?|one) (?=single$|couple$|pair$|dozen$)", "", text)
    if text in _WORDS:
        return float(_WORDS[text])
    match = re.fullmatch(r"(\w+)[-\s](\w+)", text)
    if match and match[1] in _TENS and match[2] in _SMALL[1:10]:
        return float(_WORDS[match[1]] + _WORDS[match[2]])
    return None


def json_values(text: str) -> list[Any]:
    """The JSON lists and objects that stand in `text`, in order, read leniently (fences, single quotes, trailing commas).

    Text around and between them is ignored; nothing is made up where there is none ("[Note]" is prose). Never raises.
    """
    return [found.value for found in find_json(text)]


def split_json(text: str) -> list[tuple[str, Any]]:
    """`text` cut at its JSON: each piece as it stands, with the list or object it is, or None for text that is no JSON.

    The pieces make up `text` again. Read as leniently as `json_values` does; words of a sentence in brackets come as a
    list of one string. Never raises.
    """
    pieces: list[tuple[str, Any]] = []
    at = 0
    for found in find_json(text):
        pieces += _split_prose(text[at : found.begin])
        pieces.append((text[found.begin : found.end], found.value))
        at = found.end
    pieces += _split_prose(text[at:])
    return [(piece, value) for piece, value in pieces if piece]


def _split_prose(text: str) -> list[tuple[str, Any]]:
    pieces = re.split(r"(\[[^\[\]{}\n]*\]|\{[^\[\]{}\n]*\})", text)
    return [(piece, [piece[1:-1].strip()] if number % 2 else None) for number, piece in enumerate(pieces)]


def some(items: Iterable[str], most: int = 8) -> str:
    """`items` as a list for a sentence, at most `most` of them and 40 characters of each: for the reason of a grade."""
    every = list(items)
    shown = [" ".join(item[:80].split()).encode("utf-8", "replace").decode() for item in every[:most]]
    shown = [item if len(item) <= 40 else f"{item[:39]}\u2026" for item in shown]
    return ", ".join(shown + [f"{len(every) - most} more"] * (len(every) > most))
