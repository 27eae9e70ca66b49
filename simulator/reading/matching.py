"""Matching rules that graders share: plain text, words, phrases, lenient JSON, numbers in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.base.words import plain

__all__ = [
    "contains_nearly",
    "contains_phrase",
    "found_words",
    "is_slip",
    "join_some",
    "json_values",
    "sounds_like",
    "split_json",
]

_POSSESSIVE = re.compile(r"['\u2019]s\b")


SLIPS = 2
"""The number of words in a quotation that may contain a one-letter slip."""


def found_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that occur in `text` as whole words, ignoring case, in candidate order.

    A possessive counts as the word itself: "Ada's" matches Ada.
    """
    spaced = f" {plain(text)} | {plain(_POSSESSIVE.sub('', text))} "
    return [word for word in candidates if (key := plain(word)) and f" {key} " in spaced]


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether the words of `phrase` occur in `text` consecutively, ignoring case and punctuation."""
    return bool(found_words(text, [phrase]))


def contains_nearly(text: str, phrase: str) -> bool:
    """Return whether `phrase` occurs in `text`, with at most one in eight of its words missing, added or changed.

    For quotations. A phrase of fewer than eight words must match exactly, except for one-letter slips, which are free in up to SLIPS
    words. Takes time proportional to the product of both lengths.
    """
    phrase_words, text_words = plain(phrase).split(), plain(text).split()
    allowed = len(phrase_words) // 8
    missing = set(phrase_words) - set(text_words)
    if not phrase_words or len(missing) > allowed + SLIPS:
        return False
    meant = {word: other for word in set(text_words) for other in missing if is_slip(word, other)}
    text_words = [meant.get(word, word) for word in text_words]
    if len(missing.difference(meant.values())) > allowed:
        return False
    # costs[i] is the fewest edits that turn the phrase's first i words into words of the text that end here (Sellers, 1980).
    costs = list(range(len(phrase_words) + 1))
    for word in text_words:
        before, costs[0] = costs[0], 0
        for i, phrase_word in enumerate(phrase_words, 1):
            before, costs[i] = costs[i], min(costs[i] + 1, costs[i - 1] + 1, before + (word != phrase_word))
        if costs[-1] <= allowed:
            return True
    return False


def is_slip(word: str, meant: str, least: int = 5) -> bool:
    """Return whether `word` is `meant`, or `meant` with one letter missing, added, replaced or swapped with the next.

    A slip counts only if `meant` has at least `least` letters and the first letters agree.
    """
    if word == meant or min(len(word), len(meant)) < least - 1 or len(meant) < least or word[0] != meant[0]:
        return word == meant
    before = next((at for at, (one, other) in enumerate(zip(word, meant, strict=False)) if one != other), min(len(word), len(meant)))
    word, meant = word[before:], meant[before:]
    return word[1:] == meant[1:] or word[1:] == meant or word == meant[1:] or (word[1::-1] == meant[:2] and word[2:] == meant[2:])


_SOUNDS: Final = [
    (re.compile(pattern), sound)
    for pattern, sound in (("ph", "f"), ("g(?=[ei])", "j"), ("c(?=[eiy])|z", "s"), ("ck|c|q", "k"), ("x", "ks"), ("(?<!^)[aeiouyhw]", ""))
]
"""Spellings with their sound, replaced in this order. Vowels inside a word are dropped: they rarely distinguish names."""


def sounds_like(name: str, other: str, least: int = 0) -> bool:
    """Return whether two names are spellings of the same sound with at least `least` consonants.

    "Jeffrey" and "Geoffrey" match, and so do "Cedrick" and "Cedric". "Helen" and "Helena" do not.
    """
    sound = _sound(name)
    return sound == _sound(other) and len(sound[0]) >= least


@lru_cache(maxsize=1000)
def _sound(name: str) -> tuple[str, str]:
    word = plain(name[:40])
    ends = re.sub("ah$", "a", re.sub("(?:ie|ey|i|ee)$", "y", word))[-1:]
    for letters, sound in _SOUNDS:
        word = letters.sub(sound, word)
    return re.sub(r"(.)\1+", r"\1", word), ends if ends in "ayo" else ""


def json_values(text: str) -> list[Any]:
    """Return the JSON lists and objects in `text`, in order, parsed leniently (fences, single quotes, trailing commas).

    Other text is ignored. Prose in brackets ("[Note]") is not JSON. Never raises.
    """
    return [span.value for span in find_json(text)]


def split_json(text: str) -> list[tuple[str, Any]]:
    """Split `text` into JSON and other pieces. Return each piece with its parsed value, or None for text that is not JSON.

    The pieces concatenate to `text`. JSON is parsed as leniently as by `json_values`; prose in brackets becomes a list with one string.
    Never raises.
    """
    pieces: list[tuple[str, Any]] = []
    at = 0
    for span in find_json(text):
        pieces += _split_prose(text[at : span.begin])
        pieces.append((text[span.begin : span.end], span.value))
        at = span.end
    pieces += _split_prose(text[at:])
    return [(piece, value) for piece, value in pieces if piece]


def _split_prose(text: str) -> list[tuple[str, Any]]:
    pieces = re.split(r"(\[[^\[\]{}\n]*\]|\{[^\[\]{}\n]*\})", text)
    return [(piece, [piece[1:-1].strip()] if number % 2 else None) for number, piece in enumerate(pieces)]


def join_some(items: Iterable[str], limit: int = 8) -> str:
    """Join at most `limit` items with commas, each cut to 40 characters, for the reason of a grade."""
    items = list(items)
    shown = [" ".join(item[:80].split()).encode("utf-8", "replace").decode() for item in items[:limit]]
    shown = [item if len(item) <= 40 else f"{item[:39]}\u2026" for item in shown]
    return ", ".join(shown + [f"{len(items) - limit} more"] * (len(items) > limit))
