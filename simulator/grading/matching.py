"""Matching rules shared by graders: plain text, words, phrases, lenient JSON, numbers in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from longspan.simulator.grading.lenient_json import find_json

__all__ = [
    "SMALL",
    "TENS",
    "contains_nearly",
    "contains_phrase",
    "found_words",
    "is_slip",
    "json_values",
    "normalised",
    "number",
    "plain",
    "some",
    "sounds_like",
    "split_json",
]

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: value for value, word in enumerate(SMALL)} | {word: 10 * value for value, word in enumerate(TENS, 2)}
_WORDS |= {"a": 1, "an": 1, "single": 1, "once": 1, "couple": 2, "twice": 2, "pair": 2, "dozen": 12}


class _Plain(dict[int, str]):
    """The replacement of each character in `plain`, computed at first use.

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
_POSSESSIVE = re.compile(r"['\u2019]s\b")


MAX_ACCENTS = 30
"""The longest run of accents that is normalised: no language has longer ones (Unicode's stream-safe text format)."""

SLIPS = 2
"""How many words of a quotation may have a slip."""

_FOREIGN = re.compile(rf"[^\x00-\x7f]{{{MAX_ACCENTS},}}")


def normalised(text: str) -> str:
    """Return `text` in the normal form NFKC, cutting endless runs of accents, which would take quadratic time to sort."""
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
    """Return `text` without case, accents, quote marks, punctuation, invisible characters and repeated spaces, for comparisons."""
    return " ".join(text.translate(_PLAIN).split())


def found_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that occur in `text` as whole words, ignoring case, in the order of the candidates.

    A possessive counts as the word itself: "Ada's" names Ada.
    """
    spaced = f" {plain(text)} | {plain(_POSSESSIVE.sub('', text))} "
    return [word for word in candidates if (key := plain(word)) and f" {key} " in spaced]


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether the words of `phrase` occur in `text` one after another, ignoring punctuation."""
    return bool(found_words(text, [phrase]))


def contains_nearly(text: str, phrase: str) -> bool:
    """Return whether `phrase` occurs in `text`, with at most one in eight of its words missing, added or changed.

    For quotations. A phrase of fewer than eight words must match exactly. A slip of a letter changes no word. Takes time proportional to
    the product of both lengths.
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
    costs = list(range(len(phrase_words) + 1))  # costs[i]: fewest edits for the phrase's first i words to end here (Sellers, 1980)
    for word in text_words:
        before, costs[0] = costs[0], 0
        for i, phrase_word in enumerate(phrase_words, 1):
            before, costs[i] = costs[i], min(costs[i] + 1, costs[i - 1] + 1, before + (word != phrase_word))
        if costs[-1] <= allowed:
            return True
    return False


def is_slip(word: str, meant: str, least: int = 5) -> bool:
    """Return whether a word is another of at least `least` letters, with one letter missing, added, exchanged, or swapped with the next."""
    if word == meant or min(len(word), len(meant)) < least - 1 or len(meant) < least or word[0] != meant[0]:
        return word == meant
    before = next((at for at, (one, other) in enumerate(zip(word, meant, strict=False)) if one != other), min(len(word), len(meant)))
    word, meant = word[before:], meant[before:]
    return word[1:] == meant[1:] or word[1:] == meant or word == meant[1:] or (word[1::-1] == meant[:2] and word[2:] == meant[2:])


_SOUNDS: Final = [
    (re.compile(pattern), sound)
    for pattern, sound in (("ph", "f"), ("g(?=[ei])", "j"), ("c(?=[eiy])|z", "s"), ("ck|c|q", "k"), ("x", "ks"), ("(?<!^)[aeiouyhw]", ""))
]
"""Letters, in this order, with those of the same sound. Inside a word, vowels do not tell two spellings apart."""


def sounds_like(name: str, other: str, least: int = 0) -> bool:
    """Return whether two names are spellings of one sound, of at least `least` consonants: "Jeffrey" and "Geoffrey", "Cedrick" and
    "Cedric", not "Helen" and "Helena"."""
    sound = _sound(name)
    return sound == _sound(other) and len(sound[0]) >= least


@lru_cache(maxsize=1000)
def _sound(name: str) -> tuple[str, str]:
    word = plain(name[:40])
    ends = re.sub("ah$", "a", re.sub("(?:ie|ey|i|ee)$", "y", word))[-1:]
    for letters, sound in _SOUNDS:
        word = letters.sub(sound, word)
    return re.sub(r"(.)\1+", r"\1", word), ends if ends in "ayo" else ""


def number(text: str) -> float | None:
    """Parse a number in digits ("2", "2.5") or English words ("two", "twenty-one"). Return None for anything else."""
    text = text.strip().casefold()
    if len(text) > 40:
        return None
    if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        return float(text)
    if text in ("half a dozen", "a half dozen"):
        return 6.0
    text = re.sub(r"^(?:an?|one) (?=single$|couple$|pair$|dozen$)", "", text)
    if text in _WORDS:
        return float(_WORDS[text])
    match = re.fullmatch(r"(\w+)[-\s](\w+)", text)
    if match and match[1] in TENS and match[2] in SMALL[1:10]:
        return float(_WORDS[match[1]] + _WORDS[match[2]])
    return None


def json_values(text: str) -> list[Any]:
    """Return the JSON lists and objects in `text`, in order, parsed leniently (fences, single quotes, trailing commas).

    Other text is ignored, and prose in brackets ("[Note]") is not JSON. Never raises.
    """
    return [span.value for span in find_json(text)]


def split_json(text: str) -> list[tuple[str, Any]]:
    """Split `text` at its JSON. Return each piece with its list or object, or None if it is not JSON.

    The joined pieces are `text` again. JSON is parsed as leniently as by `json_values`; prose in brackets becomes a list of one
    string. Never raises.
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


def some(items: Iterable[str], limit: int = 8) -> str:
    """Join at most `limit` items, and 40 characters of each, with commas, for the reason of a grade."""
    items = list(items)
    shown = [" ".join(item[:80].split()).encode("utf-8", "replace").decode() for item in items[:limit]]
    shown = [item if len(item) <= 40 else f"{item[:39]}\u2026" for item in shown]
    return ", ".join(shown + [f"{len(items) - limit} more"] * (len(items) > limit))
