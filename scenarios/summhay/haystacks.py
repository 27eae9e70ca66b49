"""A haystack: a topic, its subtopics with their insights, and the documents that contain each insight (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, final, get_args

__all__ = ["DOMAINS", "LABELS", "Document", "Domain", "Haystack", "Insight", "Subtopic"]

Domain = Literal["conversation", "news"]

DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)

LABELS: Final[Mapping[Domain, str]] = {"conversation": "Conversation", "news": "Article"}
"""The label of a document in prompts."""


@final
@dataclass(frozen=True, slots=True)
class Insight:
    """A finding that several documents contain.

    `signs`: the words, numbers and dates that cover it fully (see signs.py); empty if unknown, as in published haystacks.
    """

    id: str
    name: str
    text: str
    signs: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Subtopic:
    """The subject of a summary. `subtopic` describes it, `query` asks for it."""

    id: str
    name: str
    subtopic: str
    query: str
    insights: tuple[Insight, ...]
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Retrievers' scores that came with a published haystack, by retriever and document."""


@final
@dataclass(frozen=True, slots=True)
class Document:
    """A document. `insights`: the ids of the insights in it."""

    id: str
    text: str
    insights: tuple[str, ...]


@final
@dataclass(frozen=True)
class Haystack:
    """A topic with its subtopics and documents. Documents are identified by number, from 1, in prompts and citations."""

    id: str
    domain: Domain
    topic: str
    subtopics: tuple[Subtopic, ...]
    documents: tuple[Document, ...]
    generated: bool = False
    """Whether longspan generated it, so that the signs of every insight are known."""

    participants: tuple[str, ...] = ()
    """The speakers, as named in a published haystack; empty if unknown."""

    @cached_property
    def sources(self) -> Mapping[str, frozenset[int]]:
        """Numbers of the documents that contain each insight, by the insight's id."""
        sources: dict[str, set[int]] = {insight.id: set() for subtopic in self.subtopics for insight in subtopic.insights}
        for number, document in enumerate(self.documents, 1):
            for insight in document.insights:
                if insight in sources:
                    sources[insight].add(number)
        return {insight: frozenset(numbers) for insight, numbers in sources.items()}

    def relevance(self, subtopic: Subtopic) -> list[int]:
        """Return the number of a subtopic's insights in each document."""
        wanted = {insight.id for insight in subtopic.insights}
        return [len(wanted.intersection(document.insights)) for document in self.documents]
