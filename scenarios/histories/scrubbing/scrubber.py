"""Replace personal data in the texts of a log, each piece of data always by the same replacement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, final

from longspan.scenarios.histories.scrubbing.names import NAME_WORD, find_names, is_also_a_word
from longspan.scenarios.histories.scrubbing.patterns import Found, find_forms
from longspan.scenarios.histories.scrubbing.replacements import make_name, make_replacement

__all__ = ["NO_GUARANTEE", "Scrubber"]

NO_GUARANTEE: Final = (
    "no guarantee: rules find what has a known form or context, and miss other personal data; read the result before you share it"
)

_WHOLE: Final = re.compile(r"[^\s,;\"'`()<>\[\]{}]{4,}")
"""A word that may be a number or a key that was recognised elsewhere by its context."""
_SPOKEN_NAME: Final = re.compile(r"[^\W\d_](?:\S*\w)?|\d\S*[^\W\d_]")
"""A word of a speaker's name, without signs around it, such as the comma in "Smith, Jo". Numbers are no names."""
_FAMILY: Final = re.compile(r"(?i:de la|de|van der|van den|van|von|der|den|da|di|del|dos|du|bin|ibn|al|el|ter|ten)")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words, where a name may be a part of what looks like a word."""
MAX_PAUSE: Final = 50
"""The most white space between two sentences. Without a limit, each name would need a search from the beginning of the text."""
_ASKS: Final = re.compile(r"(?:^|[.!?]\s+|\n)$")


@final
class Scrubber:
    """Replaces personal data by made-up data of the same kind.

    First it learns from all texts of the log (`learn`), since a context such as "my name is" often occurs once, and the name in many
    other places. Then it replaces (`scrub`). `counts` has the number of replaced places by kind, and `replaced` the replacement of each
    piece of data by its kind and original.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.replaced: dict[tuple[str, str], str] = {}
        self._names: dict[str, str] = {}
        self._words: set[str] = set()
        self._whole: dict[str, str] = {}
        self._made: dict[tuple[str, str], str] = {}
        self._unspaced: list[int] = []
        self._numbers: Counter[str] = Counter()

    def learn(self, texts: Iterable[str], speakers: Iterable[str] = ()) -> None:
        """Learn the names of people, and numbers and keys that only their context shows. `speakers` are names, whatever they look like."""
        found: dict[str, bool] = {}
        for speaker in dict.fromkeys(speakers):
            for number, word in enumerate(_SPOKEN_NAME.findall(speaker)):
                if NAME_WORD.fullmatch(word):
                    found.setdefault(word, number > 0)
                else:
                    self._whole[word] = "name"
        texts = list(texts)
        spelled = Counter(word for text in texts for word in NAME_WORD.findall(text))
        lower = {word for word, count in spelled.items() if word.islower() and count > spelled[word.capitalize()]}
        for text in texts:
            self._words.update(word.casefold() for word in NAME_WORD.findall(text))
            for name in find_names(text, lower):
                parts = [part for part in name.split(" ") if not _FAMILY.fullmatch(part)]
                for at, part in enumerate(parts):
                    found.setdefault(part, at > 0)
            for each in find_forms(text):
                if each.kind in ("account", "key") and _WHOLE.fullmatch(original := text[each.start : each.end]):
                    self._whole[original] = each.kind
        self._words.update(name.casefold() for name in found)
        for name, family in found.items():
            self._learn_name(name, family=family)
        self._unspaced = sorted({len(name) for name in self._names if _UNSPACED.match(name)}, reverse=True)

    def _learn_name(self, name: str, *, family: bool) -> None:
        key = name.casefold()
        if key not in self._names:
            made = self._names[key] = make_name(len(self._names), self._words, family=family)
            self._words.add(made.casefold())

    def scrub(self, text: str) -> str:
        """Return a text with its personal data replaced."""
        kept: list[str] = []
        at = 0
        for each in self.find(text):
            original = text[each.start : each.end]
            kept += [text[at : each.start], self._replace(each.kind, original)]
            at = each.end
        return "".join([*kept, text[at:]])

    def scrub_speaker(self, speaker: str) -> str:
        """Return a speaker with each word of the name replaced, also one that a text would have as a word, such as "will"."""
        words = {word for word in _SPOKEN_NAME.findall(speaker) if not _FAMILY.fullmatch(word)}
        return _SPOKEN_NAME.sub(lambda match: self._replace("name", match[0]) if match[0] in words else match[0], self.scrub(speaker))

    def find(self, text: str) -> list[Found]:
        """Return the personal data in a text, in order and without overlaps."""
        return _without_overlaps([*find_forms(text), *self._find_learned(text)])

    def _find_learned(self, text: str) -> Iterator[Found]:
        for match in _WHOLE.finditer(text) if self._whole else ():
            word = match[0] if match[0] in self._whole else match[0].rstrip(".:!?")
            if (kind := self._whole.get(word)) is not None:
                yield Found(match.start(), match.start() + len(word), kind)
        for match in _UNSPACED.finditer(text) if self._unspaced else ():
            ends = (match.start() + length for length in self._unspaced)
            yield from (Found(match.start(), end, "name") for end in ends if text[match.start() : end] in self._names)
        for match in NAME_WORD.finditer(text):
            word, start, end = match[0], *match.span()
            for ending in ("'s", "’s"):
                if word.casefold() not in self._names and word.endswith(ending):
                    word, end = word.removesuffix(ending), end - len(ending)
            if word.casefold() in self._names and not self._is_a_word_here(word, text, start):
                yield Found(start, end, "name")
            elif "-" in word or "'" in word or "’" in word:
                for part in re.finditer(r"[^\W_]+", word):
                    if (
                        len(part[0]) > 1
                        and part[0].casefold() in self._names
                        and not self._is_a_word_here(part[0], text, start + part.start())
                    ):
                        yield Found(start + part.start(), start + part.end(), "name")

    def _is_a_word_here(self, word: str, text: str, start: int) -> bool:
        """Return whether a name that is also a word is the word: in lower case, or as a verb at the beginning of a sentence."""
        if not is_also_a_word(word):
            return False
        if word.islower():
            return True
        is_verb = word.casefold() in ("will", "may", "can", "so", "do", "an", "in", "on", "he", "she", "see")
        return is_verb and bool(_ASKS.search(text[max(0, start - MAX_PAUSE) : start]))

    def _replace(self, kind: str, original: str) -> str:
        self.counts[kind] += 1
        if kind == "name" and original.casefold() in self._names:
            made = self._names[original.casefold()]
            made = made.upper() if original.isupper() and len(original) > 1 else made.lower() if original.islower() else made
        else:
            made = self._make(kind, original)
        self.replaced.setdefault((kind, original), made)
        return made

    def _make(self, kind: str, original: str) -> str:
        """Return the replacement of data with a form. Spaces and case do not distinguish data."""
        key = kind, re.sub(r"[\s().-]", "", original).casefold() if kind in ("phone", "card", "address", "e-mail") else original
        if key not in self._made:
            number = self._numbers[kind] = self._numbers[kind] + 1
            made = self._made[key] = (
                make_name(number, self._words, family=False) if kind == "name" else make_replacement(kind, original, number)
            )
            self._words.add(made.casefold())
        return self._made[key]


def _without_overlaps(found: Iterable[Found]) -> list[Found]:
    """Return the pieces in order of their place, without those that overlap an earlier one in the list."""
    kept: list[Found] = []
    covered: set[int] = set()
    for each in found:
        places = range(each.start, each.end)
        if covered.isdisjoint(places):
            covered.update(places)
            kept.append(each)
    return sorted(kept)
