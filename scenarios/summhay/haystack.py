"""A haystack: a topic, its subtopics with their insights, and the documents in which each insight stands (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, final, get_args

__all__ = ["DOMAINS", "LABELS", "Document", "Domain", "Haystack", "Insight", "Subtopic"]

Domain = Literal["conversation", "news"]

DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)

LABELS: Final[Mapping[Domain, str]] = {"conversation": "Conversation", "news": "Article"}
"""What a document is called."""


@final
@dataclass(frozen=True, slots=True)
class Insight:
    """One thing that can be learnt from several documents. `signs`: what a text that tells all of it has to hold (see signs.py);
    empty where nobody knows, as in published haystacks."""

    id: str
    name: str
    text: str
    signs: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Subtopic:
    """What a summary is asked about. `subtopic` describes it, `query` asks for it."""

    id: str
    name: str
    subtopic: str
    query: str
    insights: tuple[Insight, ...]
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Scores of retrievers that came with a published haystack: by retriever and document."""


@final
@dataclass(frozen=True, slots=True)
class Document:
    """`insights`: the ids of those that stand in it."""

    id: str
    text: str
    insights: tuple[str, ...]


@final
@dataclass(frozen=True)
class Haystack:
    """Documents are numbered from 1 in their order: so they are shown, and so they are cited."""

    id: str
    domain: Domain
    topic: str
    subtopics: tuple[Subtopic, ...]
    documents: tuple[Document, ...]
    generated: bool = False
    """Whether it was written here, so that the signs of every insight are known."""

    @cached_property
    def sources(self) -> Mapping[str, frozenset[int]]:
        """The numbers of the documents in which each insight stands, by its id."""
        found: dict[str, set[int]] = {insight.id: set() for subtopic in self.subtopics for insight in subtopic.insights}
        for number, document in enumerate(self.documents, 1):
            for insight in document.insights:
                if insight in found:
                    found[insight].add(number)
        return {insight: frozenset(numbers) for insight, numbers in found.items()}

    def relevance(self, subtopic: Subtopic) -> list[int]:
        """How many of a subtopic's insights stand in each document."""
        wanted = {insight.id for insight in subtopic.insights}
        return [len(wanted.intersection(document.insights)) for document in self.documents]
