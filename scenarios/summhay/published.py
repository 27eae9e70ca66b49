"""Topic files: haystacks as the paper's authors published them, JSON or JSON in gzip, perhaps with the summaries and evaluations of
their models. `longspan write summhay` writes the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from longspan.scenarios.summhay.haystack import Document, Domain, Haystack, Insight, Subtopic
from longspan.simulator.errors import InputError, first_problem
from longspan.simulator.files import read_packed, stamp

__all__ = ["Evaluated", "Topic", "haystacks", "named_topics", "parsed", "read_published", "topic", "written"]

LARGEST: Final = 512 * 2**20
"""Bytes of a file, unpacked, at most."""


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


@final
class WrittenInsight(_Read):
    insight_id: str
    insight: str
    insight_name: str = ""


@final
class Evaluated(_Read):
    """A judge's answer about an insight. `bullet_id` counts from 1; published answers also hold "NA" and lists."""

    insight_id: str
    coverage: str
    bullet_id: Any = None


Lines = Annotated[list[str], BeforeValidator(lambda value: value.splitlines() if isinstance(value, str) else value)]


@final
class WrittenSubtopic(_Read):
    """`summaries` and `eval_summaries`: by the name of what made them."""

    subtopic_id: str
    subtopic: str
    query: str
    insights: list[WrittenInsight]
    subtopic_name: str = ""
    retriever: dict[str, dict[str, float]] = {}
    summaries: dict[str, Lines] = {}
    eval_summaries: dict[str, list[Evaluated]] = {}


@final
class WrittenDocument(_Read):
    document_id: str
    document_text: str
    insights_included: list[str]


@final
class Topic(_Read):
    """A topic file. Documents are cited by their place, counted from 1."""

    topic: str
    subtopics: list[WrittenSubtopic]
    documents: list[WrittenDocument]
    topic_id: str = ""
    topic_metadata: dict[str, Any] = {}

    @property
    def domain(self) -> Domain:
        """News haystacks tell the articles that they were written from, and those written here their domain."""
        return "news" if self.topic_metadata.get("domain") == "news" or "articles" in self.topic_metadata else "conversation"


def haystacks(data: Path, domain: Domain | None) -> Sequence[Haystack]:
    """The haystacks in a topic file, or in the topic files of a folder (topic_*.json, topic_*.json.gz), of a domain if one is
    wanted. Read once while the files stay as they are. Raises InputError."""
    found = [_haystack(path) for path in named_topics(data)]
    wanted = [each for each in found if domain in (None, each.domain)]
    if not wanted:
        raise InputError(f"{data}: holds no topic of the domain {domain}, only of {found[0].domain}; leave domain out")
    return wanted


def named_topics(data: Path) -> list[Path]:
    """The topic files that a path names. Raises InputError where there are none."""
    if not data.is_dir():
        return [data]
    found = sorted(path for path in data.iterdir() if path.name.startswith("topic") and path.name.endswith((".json", ".json.gz")))
    if not found:
        raise InputError(f"{data}: holds no topic files; they are called topic_NAME.json or topic_NAME.json.gz")
    return found


def _haystack(path: Path) -> Haystack:
    return _load(path, stamp(path, "name a topic file, or a folder of them"))


@lru_cache(maxsize=16)
def _load(path: Path, changed: tuple[int, int]) -> Haystack:
    read = topic(path)
    subtopics = tuple(
        Subtopic(
            each.subtopic_id,
            each.subtopic_name or each.subtopic,
            each.subtopic,
            each.query,
            tuple(Insight(one.insight_id, one.insight_name, one.insight) for one in each.insights),
            each.retriever,
        )
        for each in read.subtopics
    )
    documents = tuple(Document(each.document_id, each.document_text, tuple(each.insights_included)) for each in read.documents)
    return Haystack(path.name.partition(".")[0], read.domain, read.topic, subtopics, documents)


def topic(path: Path) -> Topic:
    """A topic file, read and checked. Raises InputError."""
    return parsed(read_published(path), path)


def parsed(content: bytes, path: Path) -> Topic:
    """The topic that a file's content is. Raises InputError."""
    try:
        read = Topic.model_validate_json(content)
    except (ValidationError, RecursionError) as error:
        why = first_problem(error) if isinstance(error, ValidationError) else "too deep"
        raise InputError(f"{path}: not a topic file: {why}") from None
    if wrong := _wrong(read):
        raise InputError(f"{path}: not a topic that can be asked about: {wrong}")
    return read


def _wrong(read: Topic) -> str | None:
    ids = [insight.insight_id for subtopic in read.subtopics for insight in subtopic.insights]
    held = {insight for document in read.documents for insight in document.insights_included}
    if not read.documents or not read.subtopics or not all(subtopic.insights for subtopic in read.subtopics):
        return "it needs documents, and subtopics with insights"
    if len({subtopic.subtopic_id for subtopic in read.subtopics}) < len(read.subtopics) or len(set(ids)) < len(ids):
        return "two subtopics or insights have the same id"
    if not all(document.document_text.strip() for document in read.documents):
        return "a document is blank"
    if not all(held.intersection(insight.insight_id for insight in subtopic.insights) for subtopic in read.subtopics):
        return "a subtopic has no insight that stands in a document"
    return None


def read_published(path: Path) -> bytes:
    """A file's content, unpacked. Raises InputError."""
    return read_packed(path, LARGEST, "name a file that was published")


def written(haystack: Haystack, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A haystack as a topic file's JSON."""
    return {
        "topic_id": haystack.id,
        "topic": haystack.topic,
        "topic_metadata": {"domain": haystack.domain} | dict(metadata),
        "subtopics": [
            {
                "subtopic_id": subtopic.id,
                "subtopic_name": subtopic.name,
                "subtopic": subtopic.subtopic,
                "query": subtopic.query,
                "insights": [{"insight_id": one.id, "insight_name": one.name, "insight": one.text} for one in subtopic.insights],
            }
            for subtopic in haystack.subtopics
        ],
        "documents": [
            {"document_id": each.id, "document_text": each.text, "insights_included": list(each.insights), "idx": number}
            for number, each in enumerate(haystack.documents)
        ],
    }
