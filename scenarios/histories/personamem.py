"""Read PersonaMem (Jiang et al., 2025): the authors' `questions_32k.csv` and `shared_contexts_32k.jsonl`, or a converted version.

The converted version is `queries_32k.json` and `documents_32k.json`. A user chats with a chatbot in several sessions, each beginning
with a description of the user. All questions are multiple choice.
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

from pydantic import Field, TypeAdapter

from longspan.scenarios.histories import personamem_converted
from longspan.scenarios.histories.data_files import PublishedPart, Source, blame_value, find_beside, list_sources
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.simulator.base.errors import InputError, one_line

__all__ = ["read_personamem"]

CONTEXTS: Final[Mapping[str, str]] = {r"questions_(\w+)\.csv": "shared_contexts_{}.jsonl", r"queries_(\w+)\.json": "documents_{}.json"}
"""The companion file with conversations for each file of questions."""

WANTED: Final = "questions_32k.csv with shared_contexts_32k.jsonl, or queries_32k.json with documents_32k.json"
LONGEST: Final = 100_000
"""Maximum length of a question's options in characters."""


@final
class _MessageRow(PublishedPart):
    role: Literal["system", "user", "assistant"]
    content: str


@final
class _Row(PublishedPart):
    question_id: str = Field(min_length=1)
    question_type: str
    user_question_or_message: str
    correct_answer: str = Field(pattern=r"^\s*\(?[a-zA-Z]\)?\s*$")
    all_options: str = Field(max_length=LONGEST)
    shared_context_id: str = Field(min_length=1)
    end_index_in_shared_context: str = Field(pattern=r"^[0-9]{1,9}$")


_CONTEXT: Final = TypeAdapter(dict[str, list[_MessageRow]])


class _PlacedQuestion(NamedTuple):
    """A question, the id of its conversation, and the number of messages before it."""

    where: str
    context: str
    end: int
    question: Question


def read_personamem(path: Path) -> Iterator[History]:
    """Yield a history for each user. `path`: the file of questions, or a folder, zip or tar with both files.

    Raises InputError, naming the question or conversation at fault.
    """
    questions, contexts = _pair(path)
    yield from (_histories if questions.name.endswith(".csv") else personamem_converted.read_converted)(questions, contexts)


def _pair(path: Path) -> tuple[Source, Source]:
    found = list_sources(path)
    pairs = {source: name for source in found if (name := _context(Path(source.name).name))}
    if len(pairs) != 1:
        problem = "has no questions" if not pairs else f"has several files with questions ({len(pairs)}): name one of them"
        raise InputError(f"{path}: {problem}; expected {WANTED}")
    [(questions, name)] = pairs.items()
    if path.is_file() and found == [questions]:
        return questions, find_beside(path, name)
    wanted = str(Path(questions.name).with_name(name))
    contexts = next((source for source in found if source.name == wanted), None)
    if contexts is None:
        raise InputError(f"{questions.where}: its conversations are missing: expected {name} in the same folder")
    return questions, contexts


def _context(name: str) -> str | None:
    matches = ((re.fullmatch(pattern, name), form) for pattern, form in CONTEXTS.items())
    return next((form.format(match[1]) for match, form in matches if match), None)


def _histories(questions: Source, contexts: Source) -> Iterator[History]:
    by_context: dict[str, dict[int, list[_PlacedQuestion]]] = {}
    for asked in _rows(questions):
        by_context.setdefault(asked.context, {}).setdefault(asked.end, []).append(asked)
    for where, value in contexts.lines():
        with blame_value(where):
            context = _CONTEXT.validate_python(value)
        for id, said in context.items():
            ends = by_context.pop(id, {})
            for end, group in ends.items():
                with blame_value(f"{where}, conversation {id!r:.80}"):
                    if end > len(said):
                        raise ValueError(f"has {len(said)} messages, but {group[0].where} is asked after {end}")
                    name = id if len(ends) == 1 else f"{id}:{end}"
                    history = History(name, _sessions(id, said[:end]), tuple(asked.question for asked in group))
                yield history
    for id, ends in by_context.items():
        raise InputError(f"{next(iter(ends.values()))[0].where}: {contexts.where} has no conversation {id!r:.80}")


def _rows(source: Source) -> Iterator[_PlacedQuestion]:
    try:
        reader = csv.DictReader(StringIO(source.content().decode("utf-8-sig"), newline=""))
        for row in reader:
            where = f"{source.where}, line {reader.line_num}"
            with blame_value(where):
                asked = _Row.model_validate(row)
                options = _options(asked.all_options)
                letter = asked.correct_answer.strip("() ").lower()
                answer = next((option for option in options if option.startswith(f"({letter})")), None)
                if answer is None:
                    raise ValueError(f"none of the options is ({letter})")
                question = Question(asked.question_id, asked.user_question_or_message, answer, asked.question_type, options=tuple(options))
            yield _PlacedQuestion(where, asked.shared_context_id, int(asked.end_index_in_shared_context), question)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{source.where}: not CSV: {one_line(error)}") from error


def _options(text: str) -> list[str]:
    """Return the options, which are written as a Python list."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning for invalid escapes such as "\d"
            options = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        options = None
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise ValueError("all_options must be a list of strings")
    return options


def _sessions(id: str, said: Sequence[_MessageRow]) -> tuple[Session, ...]:
    """Split messages into sessions. Each session begins with a system message."""
    parts: list[list[_MessageRow]] = []
    for message in said:
        if message.role == "system" or not parts:
            parts.append([])
        parts[-1].append(message)
    return tuple(_session(f"{id}_{number}", part) for number, part in enumerate(parts))


def _session(id: str, said: Sequence[_MessageRow]) -> Session:
    return Session(id, None, tuple(Utterance(f"{id}:{number}", each.role, each.content) for number, each in enumerate(said, 1)))
