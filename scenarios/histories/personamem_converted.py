"""Read the converted version of PersonaMem: `queries_32k.json` and `documents_32k.json`, with one document for each session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

from pydantic import Field, TypeAdapter

from longspan.scenarios.histories.data_files import PublishedPart, Source, blame_value
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import sort_labels

__all__ = ["read_converted"]

_MESSAGE: Final = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_OPTION: Final = re.compile(r"\n+(?=\([a-z]\) )")


@final
class _Meta(PublishedPart):
    question_type: str


@final
class _Query(PublishedPart):
    id: str = Field(min_length=1)
    query: str
    gold_answers: list[str] = Field(min_length=1)
    gold_ids: list[str]
    user_id: str
    meta: _Meta


@final
class _Document(PublishedPart):
    id: str = Field(min_length=1)
    content: str
    user_id: str


def read_converted(queries: Source, documents: Source) -> Iterator[History]:
    """Yield a history for each user. Raises InputError, naming the user or document at fault."""
    with blame_value(documents.where):
        found = TypeAdapter(list[_Document]).validate_python(documents.json())
    with blame_value(queries.where):
        asked = TypeAdapter(list[_Query]).validate_python(queries.json())
    by_user: dict[str, list[_Query]] = {}
    for query in asked:
        by_user.setdefault(query.user_id, []).append(query)
    sessions: dict[str, list[Session]] = {user: [] for user in by_user}
    for document in found:
        if document.user_id in sessions:
            with blame_value(f"{documents.where}, document {document.id!r:.80}"):
                sessions[document.user_id].append(_session(document))
    for user, own in by_user.items():
        ids = {session.id for session in sessions[user]}
        with blame_value(f"{queries.where}, user {user!r:.80}"):
            history = History(user, tuple(sessions[user]), tuple(_question(query, ids) for query in own))
        yield history


def _session(document: _Document) -> Session:
    before, *parts = _MESSAGE.split(document.content)
    if before or not parts:
        raise ValueError("must begin with [SYSTEM], [USER] or [ASSISTANT]")
    said = enumerate(zip(parts[::2], parts[1::2], strict=True), 1)
    return Session(document.id, None, tuple(Utterance(f"{document.id}:{number}", role.lower(), text) for number, (role, text) in said))


def _question(query: _Query, sessions: set[str]) -> Question:
    text, *options = _OPTION.split(query.query)
    labels = sort_labels(query.gold_ids, sessions)
    return Question(
        id=query.id,
        text=text,
        answer=query.gold_answers[0],
        kind=query.meta.question_type,
        sessions=labels.known,
        unknown=labels.unknown,
        options=tuple(options),
    )
