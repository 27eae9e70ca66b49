"""The words that show a stance: one lexicon for all readers, in lexicon.toml, with an example for each entry."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final, final

__all__ = ["LEXICON", "Lexicon", "Stance"]


class Stance(IntEnum):
    """How a clause presents the values that it names, from most to least certain.

    Current ("now"), the target of a change, a plain fact, reported or in the past tense, explicitly past, or denied.
    """

    CURRENT = 0
    CHANGED = 1
    ASSERTED = 2
    REPORTED = 3
    DATED = 4
    DENIED = 5


_ORDER: Final = (Stance.DENIED, Stance.CURRENT, Stance.DATED, Stance.REPORTED)
"""Stances by precedence: a clause has the first one that it has a word for. Words inside a longer phrase do not count ("today" in "until
today")."""


_WORDS: Final = re.compile(r"<[^>]+>\??|[^\s^]+")


@final
class Lexicon:
    """Groups of phrases, each with examples.

    A phrase is a sequence of plain words with wildcards: "*" for the start or the rest of a word, "..." for up to five words, "<group>"
    for any phrase of another group, "?" after an optional word, and "^" for the start of a clause.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._patterns: dict[str, re.Pattern[str]] = {}

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """The groups by name. Each maps phrases, separated by commas, to an example about the value "red"."""
        return tomllib.loads(self._path.read_text("utf-8"))

    def phrases(self, group: str) -> Iterator[str]:
        for entry in self.groups[group]:
            yield from entry.split(", ")

    @cached_property
    def words(self) -> frozenset[str]:
        """All words in the lexicon. They are common words, so they never count as a misspelling of a rarer one."""
        return frozenset(word.rstrip("?") for group in self.groups for phrase in self.phrases(group) for word in phrase.strip("^").split())

    @cached_property
    def _stances(self) -> re.Pattern[str]:
        """The pattern of all phrases that show a stance, longest first. Each group's name starts with the number of its stance."""
        phrases = [(each, stance.value) for stance in _ORDER for each in self.phrases(stance.name.lower())]
        runs = groupby(sorted(phrases, key=lambda each: -len(each[0])), key=lambda each: each[1])
        compiled = [(stance, "|".join(self._compile_phrase(each) for each, _ in run)) for stance, run in runs]
        return re.compile(rf"\b(?:{'|'.join(f'(?P<s{stance}_{at}>{run})' for at, (stance, run) in enumerate(compiled))})\b")

    def source(self, group: str) -> str:
        """Return a regular expression that matches a group's phrases in plain text."""
        return rf"\b(?:{'|'.join(map(self._compile_phrase, self.phrases(group)))})\b"

    def pattern(self, group: str) -> re.Pattern[str]:
        """Return the compiled `source` of a group."""
        if group not in self._patterns:  # most runs need few groups
            self._patterns[group] = re.compile(self.source(group))
        return self._patterns[group]

    def has(self, group: str, clause: str) -> bool:
        """Return whether a clause in plain words contains a phrase of a group."""
        return self.pattern(group).search(clause) is not None

    def stances(self, clause: str) -> set[Stance]:
        """Return every stance that a clause in plain words has words for."""
        return {Stance(int((match.lastgroup or "")[1])) for match in self._stances.finditer(clause)}

    def stance(self, clause: str) -> Stance:
        """Return the stance of a clause in plain words."""
        if self.has("also", clause):
            return Stance.ASSERTED
        found = self.stances(clause)
        stance = next((stance for stance in _ORDER if stance in found), Stance.ASSERTED)
        return Stance.CURRENT if stance in (Stance.ASSERTED, Stance.REPORTED) and self.has("concluded", clause) else stance

    def _compile_phrase(self, phrase: str) -> str:
        words = "".join(map(self._word, _WORDS.findall(phrase))).removesuffix(" ")
        return rf"(?<![^\n])(?:{words})" if phrase.startswith("^") else words

    def _word(self, word: str) -> str:
        if word == "...":
            return r"(?:\w+ ){0,5}?"
        if word.endswith("?"):
            return f"(?:{self._word(word[:-1])})?"
        if word.startswith("<"):
            return f"(?:{'|'.join(map(self._compile_phrase, self.phrases(word[1:-1])))}) "
        if word.startswith("*"):
            return rf"\w\w+{re.escape(word[1:])} "
        return rf"{re.escape(word[:-1])}\w* " if word.endswith("*") else f"{re.escape(word)} "


LEXICON: Final = Lexicon(Path(__file__).with_name("lexicon.toml"))
