"""What a haystack has to be before anybody is asked about it (section 3.1): subtopics differ, insights are specific and do not
repeat, and every insight stands in the documents that it was planned for, and in no other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from longspan.scenarios.summhay.haystack import Haystack, Insight
from longspan.scenarios.summhay.signs import signs

__all__ = ["FEWEST_SOURCES", "alike", "problems", "specific"]

ALIKE: Final = 0.75
"""The share of the words of the shorter of two texts that the other has too, from which on they say the same."""

FEWEST_SOURCES: Final = 2
"""Documents in which an insight stands at least: one alone would be a needle."""

SMALL: Final = frozenset(
    "a about after an and are as at be by for from has have how in into is it its of on or that the their they this to was were what "
    "which who will with".split()
)


def alike(first: str, second: str) -> bool:
    """Whether two texts have nearly the same words."""
    return _near(_content(first), _content(second))


def _content(text: str) -> frozenset[str]:
    return signs(text) - SMALL


def _near(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= ALIKE * max(1, min(len(first), len(second)))


def specific(text: str) -> bool:
    """Whether an insight names something: a number or a date, or a name other than its first word."""
    return re.search(r"\d", text) is not None or re.search(r"(?<=[^.!?]\s)[A-Z][\w'-]+", text.strip()) is not None


def problems(haystack: Haystack) -> list[str]:
    """All that is wrong with a haystack whose insights have signs, in words; nothing where it can be asked."""
    return [*_subtopics(haystack), *_insights(haystack), *_documents(haystack)]


def _subtopics(haystack: Haystack) -> Iterator[str]:
    for first, second in combinations(haystack.subtopics, 2):
        if first.name == second.name or alike(first.subtopic, second.subtopic):
            yield f"subtopics {first.name!r:.60} and {second.name!r:.60} are alike"


def _insights(haystack: Haystack) -> Iterator[str]:
    every = [insight for subtopic in haystack.subtopics for insight in subtopic.insights]
    for insight in every:
        if not specific(insight.text):
            yield f"insight {insight.id} names no number, date or name"
        if len(haystack.sources[insight.id]) < min(FEWEST_SOURCES, len(haystack.documents)):
            yield f"insight {insight.id} stands in too few documents"
        if not insight.signs <= signs(insight.text):
            yield f"insight {insight.id} does not tell what it is recognised by"
    yield from _repeated(every)


def _repeated(every: Sequence[Insight]) -> Iterator[str]:
    words = {insight.id: _content(insight.text) for insight in every}
    for first, second in combinations(every, 2):
        if first.signs & second.signs or _near(words[first.id], words[second.id]):
            yield f"insights {first.id} and {second.id} repeat each other"


def _documents(haystack: Haystack) -> Iterator[str]:
    """An insight that was planned has all of its signs there, another none."""
    every = [insight for subtopic in haystack.subtopics for insight in subtopic.insights]
    texts: set[str] = set()
    for number, document in enumerate(haystack.documents, 1):
        if document.text in texts:
            yield f"document {number} is the same as another"
        texts.add(document.text)
        found = signs(document.text)
        for insight in every:
            planned = insight.id in document.insights
            if planned and not insight.signs <= found:
                yield f"document {number} lacks insight {insight.id}"
            if not planned and insight.signs & found:
                yield f"document {number} tells of insight {insight.id}, which was not planned for it"
