"""Read and write topic files: haystacks as the paper's authors published them, in JSON, plain or gzip.

They may include the summaries and evaluations of the authors' models. `longspan summhay write` writes the same format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from longspan.scenarios.summhay.haystacks import Document, Domain, Haystack, Insight, Subtopic
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.file_io import file_stamp, read_packed

__all__ = ["EvaluatedInsight", "Topic", "dump_topic", "list_topic_files", "parse_topic", "read_haystacks", "read_published", "read_topic"]

LARGEST: Final = 512 * 2**20
"""Maximum size of a file in bytes, unpacked."""


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


@final
class WrittenInsight(_Read):
    insight_id: str
    insight: str
    insight_name: str = ""


@final
class EvaluatedInsight(_Read):
    """A judge's answer about an insight. `bullet_id` counts from 1; in published answers it may also be "NA" or a list."""

    insight_id: str
    coverage: str
    bullet_id: Any = None


Lines = Annotated[list[str], BeforeValidator(lambda value: value.splitlines() if isinstance(value, str) else value)]


@final
class WrittenSubtopic(_Read):
    """A subtopic in a topic file. `summaries` and `eval_summaries`: by the name of the retriever and the model."""

    subtopic_id: str
    subtopic: str
    query: str
    insights: list[WrittenInsight]
    subtopic_name: str = ""
    retriever: dict[str, dict[str, float]] = {}
    summaries: dict[str, Lines] = {}
    eval_summaries: dict[str, list[EvaluatedInsight]] = {}


@final
class WrittenDocument(_Read):
    document_id: str
    document_text: str
    insights_included: list[str]


@final
class Topic(_Read):
    """A topic file. Documents are cited by their position, counted from 1."""

    topic: str
    subtopics: list[WrittenSubtopic]
    documents: list[WrittenDocument]
    topic_id: str = ""
    topic_metadata: dict[str, Any] = {}

    @property
    def domain(self) -> Domain:
        """The domain. Published news haystacks list the articles that they were written from; ours name their domain."""
        return "news" if self.topic_metadata.get("domain") == "news" or "articles" in self.topic_metadata else "conversation"


def read_haystacks(data: Path, domain: Domain | None) -> Sequence[Haystack]:
    """Return the haystacks in a topic file, or in a folder's topic files (topic_*.json, topic_*.json.gz).

    `domain`: return only haystacks of this domain. A file is reread only if it changes. Raises InputError for an invalid file, and if no
    topic has the domain.
    """
    every = [_haystack(path) for path in list_topic_files(data)]
    matching = [haystack for haystack in every if domain in (None, haystack.domain)]
    if not matching:
        raise InputError(f"{data}: no topic of the domain {domain} found, only of {every[0].domain}; leave domain out")
    return matching


def list_topic_files(data: Path) -> list[Path]:
    """Return the file itself, or a folder's topic files. Raises InputError for a folder without any."""
    if not data.is_dir():
        return [data]
    files = sorted(path for path in data.iterdir() if path.name.startswith("topic") and path.name.endswith((".json", ".json.gz")))
    if not files:
        raise InputError(f"{data}: no topic files found; they are named topic_NAME.json or topic_NAME.json.gz")
    return files


def _haystack(path: Path) -> Haystack:
    return _load(path, file_stamp(path, "name a topic file, or a folder of them"))


@lru_cache(maxsize=16)
def _load(path: Path, changed: tuple[int, int]) -> Haystack:
    read = read_topic(path)
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
    named = read.topic_metadata.get("participants")
    participants = tuple(map(str, named)) if isinstance(named, list) else ()
    return Haystack(path.name.partition(".")[0], read.domain, read.topic, subtopics, documents, participants=participants)


def read_topic(path: Path) -> Topic:
    """Read and check a topic file. Raises InputError."""
    return parse_topic(read_published(path), path)


def parse_topic(content: bytes, path: Path) -> Topic:
    """Parse and check the content of a topic file. Raises InputError."""
    try:
        read = Topic.model_validate_json(content)
    except (ValidationError, RecursionError) as error:
        why = first_problem(error) if isinstance(error, ValidationError) else "too deep"
        raise InputError(f"{path}: not a topic file: {why}") from None
    if wrong := _wrong(read):
        raise InputError(f"{path}: not a usable topic: {wrong}")
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
        return "a subtopic has no insight that is in a document"
    return None


def read_published(path: Path) -> bytes:
    """Return a file's content, unpacked. Raises InputError."""
    return read_packed(path, LARGEST, "name a file that was published")


def dump_topic(haystack: Haystack, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a haystack as the JSON of a topic file."""
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
