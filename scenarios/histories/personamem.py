"""Reads PersonaMem (Jiang et al., 2025): the authors' `questions_32k.csv` with `shared_contexts_32k.jsonl`, or a harness's conversion.

The conversion is `queries_32k.json` with `documents_32k.json`. A user talks with a chatbot in several sessions, each of which begins with
who the user is; questions are multiple choice.
"""

from __future__ import annotations

import ast
import csv
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from longspan.scenarios.histories.history import History, Question, Session, Turn
from longspan.scenarios.histories.repairs import sort_labels
from longspan.scenarios.histories.sources import Source, beside, sources, wrong
from longspan.simulator.errors import InputError, one_line

__all__ = ["read"]

CONTEXTS: Final[Mapping[str, str]] = {r"questions_(\w+)\.csv": "shared_contexts_{}.jsonl", r"queries_(\w+)\.json": "documents_{}.json"}
"""The file of the conversations for each file of questions, the authors' and the harness's."""

WANTED: Final = "questions_32k.csv beside shared_contexts_32k.jsonl, or queries_32k.json beside documents_32k.json"
LONGEST: Final = 100_000
"""Characters of a question's options at most."""

_MESSAGE: Final = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_OPTION: Final = re.compile(r"\n+(?=\([a-z]\) )")


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


@final
class _Said(_Published):
    role: Literal["system", "user", "assistant"]
    content: str


@final
class _Row(_Published):
    question_id: str = Field(min_length=1)
    question_type: str
    user_question_or_message: str
    correct_answer: str = Field(pattern=r"^\s*\(?[a-zA-Z]\)?\s*$")
    all_options: str = Field(max_length=LONGEST)
    shared_context_id: str = Field(min_length=1)
    end_index_in_shared_context: str = Field(pattern=r"^[0-9]{1,9}$")


@final
class _Meta(_Published):
    question_type: str


@final
class _Query(_Published):
    id: str = Field(min_length=1)
    query: str
    gold_answers: list[str] = Field(min_length=1)
    gold_ids: list[str]
    user_id: str
    meta: _Meta


@final
class _Document(_Published):
    id: str = Field(min_length=1)
    content: str
    user_id: str


_CONTEXT: Final = TypeAdapter(dict[str, list[_Said]])


class _Asked(NamedTuple):
    """A question, and the conversation about which it is asked: its id, and how many of its messages come before."""

    where: str
    context: str
    end: int
    question: Question


def read(path: Path) -> Iterator[History]:
    """Yield a history for each user. `path`: the file with the questions, or a folder, zip or tar with both files.

    Raises InputError, which names the question or conversation that is wrong.
    """
    questions, contexts = _pair(path)
    yield from (_authors if questions.name.endswith(".csv") else _converted)(questions, contexts)


def _pair(path: Path) -> tuple[Source, Source]:
    found = sources(path)
    pairs = {source: name for source in found if (name := _context(Path(source.name).name))}
    if len(pairs) != 1:
        problem = "has no questions" if not pairs else f"has several files with questions ({len(pairs)}): name one of them"
        raise InputError(f"{path}: {problem}; expected {WANTED}")
    [(questions, name)] = pairs.items()
    if path.is_file() and found == [questions]:
        return questions, beside(path, name)
    wanted = str(Path(questions.name).with_name(name))
    contexts = next((source for source in found if source.name == wanted), None)
    if contexts is None:
        raise InputError(f"{questions.where}: its conversations are missing: {name} should lie beside it")
    return questions, contexts


def _context(name: str) -> str | None:
    matches = ((re.fullmatch(pattern, name), form) for pattern, form in CONTEXTS.items())
    return next((form.format(match[1]) for match, form in matches if match), None)


# ---- as the authors publish it


def _authors(questions: Source, contexts: Source) -> Iterator[History]:
    by_context: dict[str, dict[int, list[_Asked]]] = {}
    for asked in _rows(questions):
        by_context.setdefault(asked.context, {}).setdefault(asked.end, []).append(asked)
    for where, value in contexts.lines():
        with wrong(where):
            context = _CONTEXT.validate_python(value)
        for id, said in context.items():
            ends = by_context.pop(id, {})
            for end, group in ends.items():
                with wrong(f"{where}, conversation {id!r:.80}"):
                    if end > len(said):
                        raise ValueError(f"has {len(said)} messages, but {group[0].where} is asked after {end}")
                    name = id if len(ends) == 1 else f"{id}:{end}"
                    history = History(name, _sessions(id, said[:end]), tuple(asked.question for asked in group))
                yield history
    for id, ends in by_context.items():
        raise InputError(f"{next(iter(ends.values()))[0].where}: {contexts.where} has no conversation {id!r:.80}")


def _rows(source: Source) -> Iterator[_Asked]:
    try:
        reader = csv.DictReader(StringIO(source.content().decode("utf-8-sig"), newline=""))
        for row in reader:
            where = f"{source.where}, line {reader.line_num}"
            with wrong(where):
                asked = _Row.model_validate(row)
                options = _options(asked.all_options)
                letter = asked.correct_answer.strip("() ").lower()
                answer = next((option for option in options if option.startswith(f"({letter})")), None)
                if answer is None:
                    raise ValueError(f"none of the options is ({letter})")
                question = Question(asked.question_id, asked.user_question_or_message, answer, asked.question_type, options=tuple(options))
            yield _Asked(where, asked.shared_context_id, int(asked.end_index_in_shared_context), question)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{source.where}: not CSV: {one_line(error)}") from error


def _options(text: str) -> list[str]:
    """Return the options, which are written as a list in Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash that escapes nothing
            options = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        options = None
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise ValueError("all_options must be a list of texts")
    return options


def _sessions(id: str, said: Sequence[_Said]) -> tuple[Session, ...]:
    """Cut messages into sessions: each begins with a system message."""
    parts: list[list[_Said]] = []
    for message in said:
        if message.role == "system" or not parts:
            parts.append([])
        parts[-1].append(message)
    return tuple(_session(f"{id}_{number}", part) for number, part in enumerate(parts))


def _session(id: str, said: Sequence[_Said]) -> Session:
    return Session(id, None, tuple(Turn(f"{id}:{number}", each.role, each.content) for number, each in enumerate(said, 1)))


# ---- as a harness converted it


def _converted(queries: Source, documents: Source) -> Iterator[History]:
    with wrong(documents.where):
        found = TypeAdapter(list[_Document]).validate_python(documents.json())
    with wrong(queries.where):
        asked = TypeAdapter(list[_Query]).validate_python(queries.json())
    by_user: dict[str, list[_Query]] = {}
    for query in asked:
        by_user.setdefault(query.user_id, []).append(query)
    sessions: dict[str, list[Session]] = {user: [] for user in by_user}
    for document in found:
        if document.user_id in sessions:
            with wrong(f"{documents.where}, document {document.id!r:.80}"):
                sessions[document.user_id].append(_session(document.id, _messages(document.content)))
    for user, own in by_user.items():
        ids = {session.id for session in sessions[user]}
        with wrong(f"{queries.where}, user {user!r:.80}"):
            history = History(user, tuple(sessions[user]), tuple(_question(query, ids) for query in own))
        yield history


def _messages(content: str) -> list[_Said]:
    before, *parts = _MESSAGE.split(content)
    if before or not parts:
        raise ValueError("must begin with [SYSTEM], [USER] or [ASSISTANT]")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [_Said.model_validate({"role": role.lower(), "content": text}) for role, text in pairs]


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
