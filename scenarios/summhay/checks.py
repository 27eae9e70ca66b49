"""Check a haystack before use (section 3.1).

Subtopics must differ, insights must be specific and distinct, and every insight must be in the documents planned for it and in no
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from longspan.scenarios.summhay.haystacks import Haystack, Insight
from longspan.scenarios.summhay.signs import find_signs

__all__ = ["MIN_SOURCES", "find_problems", "is_specific", "nearly_same_words"]

ALIKE: Final = 0.75
"""Two texts count as alike if the longer one contains at least this share of the shorter one's words."""

MIN_SOURCES: Final = 2
"""Minimum number of documents for an insight. In a single document it would be a needle."""

SMALL: Final = frozenset(
    "a about after an and are as at be by for from has have how in into is it its of on or that the their they this to was were what "
    "which who will with".split()
)


def nearly_same_words(first: str, second: str) -> bool:
    """Return whether two texts have nearly the same words."""
    return _near(_content(first), _content(second))


def _content(text: str) -> frozenset[str]:
    return find_signs(text) - SMALL


def _near(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= ALIKE * max(1, min(len(first), len(second)))


def is_specific(text: str) -> bool:
    """Return whether an insight has a number, a date, or a name other than its first word."""
    return re.search(r"\d", text) is not None or re.search(r"(?<=[^.!?]\s)[A-Z][\w'-]+", text.strip()) is not None


def find_problems(haystack: Haystack) -> list[str]:
    """Return descriptions of all problems of a haystack whose insights have signs; empty if it is usable."""
    return [*_subtopics(haystack), *_insights(haystack), *_documents(haystack)]


def _subtopics(haystack: Haystack) -> Iterator[str]:
    for first, second in combinations(haystack.subtopics, 2):
        if first.name == second.name or nearly_same_words(first.subtopic, second.subtopic):
            yield f"subtopics {first.name!r:.60} and {second.name!r:.60} are alike"


def _insights(haystack: Haystack) -> Iterator[str]:
    insights = [insight for subtopic in haystack.subtopics for insight in subtopic.insights]
    for insight in insights:
        if not is_specific(insight.text):
            yield f"insight {insight.id} has no number, date or name"
        if len(haystack.sources[insight.id]) < min(MIN_SOURCES, len(haystack.documents)):
            yield f"insight {insight.id} is in too few documents"
        if not insight.signs <= find_signs(insight.text):
            yield f"insight {insight.id} lacks some of its own signs"
    yield from _find_repeats(insights)


def _find_repeats(insights: Sequence[Insight]) -> Iterator[str]:
    words = {insight.id: _content(insight.text) for insight in insights}
    for first, second in combinations(insights, 2):
        if first.signs & second.signs or _near(words[first.id], words[second.id]):
            yield f"insights {first.id} and {second.id} repeat each other"


def _documents(haystack: Haystack) -> Iterator[str]:
    """Yield a problem for each document that lacks signs of a planned insight or contains signs of another."""
    insights = [insight for subtopic in haystack.subtopics for insight in subtopic.insights]
    texts: set[str] = set()
    for number, document in enumerate(haystack.documents, 1):
        if document.text in texts:
            yield f"document {number} is the same as another"
        texts.add(document.text)
        present = find_signs(document.text)
        for insight in insights:
            planned = insight.id in document.insights
            if planned and not insight.signs <= present:
                yield f"document {number} lacks insight {insight.id}"
            if not planned and insight.signs & present:
                yield f"document {number} has signs of insight {insight.id}, which was not planned for it"
