"""Read users' own logs: any file, folder or archive whose values a format recognises, with questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Final, final

from longspan.scenarios.histories.data_files import Source, blame_value, find_near, list_sources
from longspan.scenarios.histories.formats.assembly import LEFT_OUT, Conversation, Log
from longspan.scenarios.histories.formats.log_files import HEAD, Found, is_archive, parse_value, read_stream, read_values
from longspan.scenarios.histories.formats.messages import Context, LogFormat, MessageError, Said, read_message
from longspan.scenarios.histories.formats.own import MAX_NAME, NamedQuestion, OwnRemarks, OwnSession
from longspan.scenarios.histories.formats.questions import read_questions
from longspan.scenarios.histories.formats.registry import find_format
from longspan.scenarios.histories.formats.times import find_time
from longspan.scenarios.histories.history import History
from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.base.terminal import complain
from longspan.simulator.reading.matching import join_some

__all__ = ["read_conversations", "read_log"]

EXPECTED: Final = 'messages such as {"role": "user", "content": "..."} and questions such as {"question": "...", "answer": "..."}'
KEYS: Final = "turns, messages, role and content, or question"
"""Keys that identify the kind of a line. Each line must have one of them, or be in another format."""
PUBLISHED: Final = {"qa": "locomo", "haystack_sessions": "longmemeval"}
"""Keys of published data that another reader reads."""
ENDINGS: Final = frozenset({".json", ".jsonl", ".ndjson", ".txt", ".csv", ".tsv", ".af", ".log"})
"""Endings of the files that are read in a folder or an archive."""
DEFAULT: Final = "1"
"""The id of a conversation without a name."""
STEP: Final = 100_000
"""The number of values after which progress is reported."""
DEEPEST: Final = 20
"""Maximum depth of lists within lists."""
DEEPEST_INNER: Final = 3
"""Maximum depth of the objects in which messages are looked for."""


def read_log(path: Path, *, tools: bool = True, questions: Path | None = None) -> Iterator[History]:
    """Yield the conversations of a log as histories, with or without tool calls and results. Raises InputError.

    A conversation yields another history for each turn before which questions are asked.
    `questions`: a file with more questions. Conversations that have none are then left out.
    """
    found = read_conversations(path, questions)
    for each in [each for each in found if each.questions] if questions is not None else found:
        yield from each.histories(f"{path}, conversation {each.id!r}", tools=tools)


def read_conversations(path: Path, questions: Path | None = None) -> list[Conversation]:
    """Return the conversations of a log, which need not have questions, with those of a file of `questions`.

    Raises InputError, naming the place at fault.
    """
    reader = _Reader()
    if is_archive(path):
        reader.read_archive(path)
    else:
        reader.read_file(read_values(path, reader.notes), path.name, lambda name: (find_near([path], name) or (None, None))[1])
    if not reader.logs:
        raise InputError(f"{path}: {'has no file that is a log' if is_archive(path) else 'is empty'}; expected {EXPECTED}")
    if questions is not None:
        reader.add_questions(questions)
    return [log.assemble(id, str(path)) for id, log in reader.finish()]


@final
class _Reader:
    """Sorts the values of files into conversations."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.notes: set[str] = set()
        self._left_out: list[str] = []
        self._context = Context()
        self._batch = 0
        self._last: tuple[str, bool] = ("", False)
        self._count = 0

    def finish(self) -> Iterator[tuple[str, Log]]:
        """Yield the conversations by id, with remarks that concern all files."""
        for id, log in self.logs.items():
            log.remarks += sorted(self.notes)
            if self._left_out:
                log.remarks.append(f"{LEFT_OUT}{', '.join(self._left_out)}"[:500])
            yield id, log

    def add_questions(self, path: Path) -> None:
        """Add the questions of a file. If there is only one conversation, they need not name it."""
        for id, asked in read_questions(path, self.notes):
            log = next(iter(self.logs.values())) if id == DEFAULT and len(self.logs) == 1 else self.logs.get(id)
            if log is None:
                known = f"its conversations are {join_some([*self.logs])}"
                raise InputError(f"{asked.place}: there is no conversation {id!r:.80}{suggest(id, self.logs, known)}")
            log.questions.append(asked)

    def read_archive(self, path: Path) -> None:
        """Read the files in a folder, zip or tar that are logs, and note the others."""
        sources = {source.name: source for source in list_sources(path)}
        used: set[str] = set()
        for name, source in sources.items():
            inside = PurePosixPath(name)
            if any(part.startswith((".", "__MACOSX")) for part in inside.parts):
                continue
            if inside.suffix.casefold() not in ENDINGS:
                self._left_out.append(name)
                continue
            values = read_stream(BytesIO(source.content()), source.where, self.notes)
            if not self.read_file(values, name, partial(_find_companion, sources, used, inside), optional=True):
                self._left_out.append(name)
        self._left_out = [name for name in self._left_out if name not in used]

    def read_file(self, values: Iterator[Found], name: str, find: Callable[[str], Any], *, optional: bool = False) -> bool:
        """Read a file's values. If `optional`, a file without a log is no error. Returns whether it is a log."""
        self._context = Context(name, find, _dispatch, notes=self.notes)
        self._begin_batch()
        is_log = False
        for found in values:
            self._count += 1
            if self._count % STEP == 0:
                complain(f"{self._count:,} values of the log are read")
            if optional and not is_log and not _is_log(found):
                return False
            is_log = True
            if found.text:
                self._read_text(found)
            elif isinstance(found.value, list):
                self._read_list(found.where, found.value, 0)
            else:
                self._read(found.where, found.value)
        return is_log

    def _begin_batch(self) -> None:
        self._batch += 1
        self._last = ("", False)

    def _log(self, value: Any) -> Log:
        """Return the log of the conversation that a value names."""
        named = value.get("conversation") if isinstance(value, dict) else None
        return self._log_of(named if isinstance(named, str) and 0 < len(named) <= MAX_NAME else DEFAULT)

    def _log_of(self, id: str) -> Log:
        return self.logs.setdefault(id, Log())

    def _read_list(self, where: str, values: list[Any], depth: int) -> None:
        if depth > DEEPEST:
            raise InputError(f"{where}: nested too deeply")
        self._begin_batch()
        for number, item in enumerate(values, 1):
            place = f"{where}, item {number}"
            if isinstance(item, list):
                self._read_list(place, item, depth + 1)
            else:
                self._read(place, item)
        self._begin_batch()

    def _read_text(self, found: Found) -> None:
        """Read a text, which questions may follow, each on its own line."""
        form = find_format(found.value[:HEAD], text=True)
        if form is None:
            raise InputError(f"{found.where}: is neither JSON nor in a known text format; expected {EXPECTED}")
        lines = found.value.replace("\r\n", "\n").rstrip().split("\n")
        first = len(lines)
        while first > 1 and lines[first - 1].startswith('{"question"'):
            first -= 1
        self._add(found.where, "\n".join(lines[:first]), form, self._log_of(DEFAULT))
        for number, line in enumerate(lines[first:], first + 1):
            place = f"{found.where}, line {number}"
            self._read(place, parse_value(line, place, self.notes))

    def _read(self, where: str, value: Any) -> None:
        with blame_value(where):
            if not isinstance(value, dict):
                raise ValueError(f"must be an object; expected {EXPECTED}")
            if "turns" in value:
                session = OwnSession.model_validate(value)
                self._log_of(session.conversation).add_session(session.part(where))
            elif "remarks" in value and not value.keys() - {"remarks", "conversation"}:
                remarks = OwnRemarks.model_validate(value)
                self._log_of(remarks.conversation).remarks += remarks.remarks
            elif (form := find_format(value)) is not None:
                self._add(where, value, form, self._log(value))
                return
            elif "question" in value:
                question = NamedQuestion.model_validate(value)
                self._log_of(question.conversation).questions.append(question.asked(where))
            elif inner := list(_find_inner(value, 0)):
                self.notes.add(f"messages were found in {', '.join(dict.fromkeys(key for key, _ in inner))}"[:300])
                self._add_inner(where, value, [each for _, each in inner])
            else:
                hint = next((f"; --data {name}=FILE reads such data" for key, name in PUBLISHED.items() if key in value), "")
                raise ValueError(f"has none of the keys {KEYS}, but {', '.join(map(repr, value)) or 'nothing'}"[:300] + hint)
        self._begin_batch()

    def _add_inner(self, where: str, value: Any, inner: Sequence[Any]) -> None:
        """Add the messages of objects within an object. Single messages continue the conversation before them, such as a request."""
        at = find_time(value)
        conversations: list[list[Said]] = []
        for each in inner:
            form = find_format(each)
            if form is not None:
                said = [said._replace(at=said.at or at) for said in self._read_with(form, where, each)]
                if form.alone and conversations:
                    conversations[-1] += said
                else:
                    conversations.append(said)
        for said in conversations:
            self._begin_batch()
            self._log(value).add_conversation(said, self._batch, ordered=False)

    def _read_with(self, form: LogFormat, where: str, value: Any) -> list[Said]:
        with blame_value(where):
            try:
                return [_at(where, each) for each in form.read(value, self._context)]
            except MessageError as error:
                raise InputError(f"{where}, {error}") from None
            except (TypeError, LookupError, AttributeError, RecursionError) as error:  # a field has a type that the format does not expect
                raise InputError(f"{where}: cannot be read as {form.name}: {one_line(error)}") from error

    def _add(self, where: str, value: Any, form: LogFormat, log: Log) -> None:
        of = (str(id(log)), form.alone)
        if not form.alone or self._last != of:
            self._begin_batch()
        self._last = of
        said = self._read_with(form, where, value)
        (log.add_messages if form.alone or form.text else log.add_conversation)(said, self._batch, ordered=form.ordered)
        asked = value.get("questions", []) if isinstance(value, dict) else []
        for number, each in enumerate(asked if isinstance(asked, list) else [asked], 1):
            place = f"{where}, question {number}"
            with blame_value(place):
                log.questions.append(NamedQuestion.model_validate(each).asked(place))


def _dispatch(value: Any, context: Context) -> Iterable[Said]:
    """Read a message in the format that recognises it."""
    form = find_format(value)
    return read_message(value, context) if form is None or not form.alone else form.read(value, context)


def _find_inner(value: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the objects within an object that a format recognises, each with its key: logs wrap requests and responses in many ways."""
    for key, inner in value.items():
        listed = inner if isinstance(inner, list) else [inner]
        for each in (item for one in listed for item in (one if isinstance(one, list) else [one])):
            if isinstance(each, dict) and find_format(each) is not None:
                yield key, each
            elif isinstance(each, dict) and depth < DEEPEST_INNER:
                yield from _find_inner(each, depth + 1)


def _at(where: str, said: Said) -> Said:
    return said._replace(place=f"{where}, {said.place}" if said.place else where)


def _is_log(found: Found) -> bool:
    """Return whether the first value of a file is a part of a log."""
    if found.text:
        return find_format(found.value[:HEAD], text=True) is not None
    value = found.value
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict) and ("turns" in value or "question" in value or find_format(value) is not None)


def _find_companion(sources: Mapping[str, Source], used: set[str], near: PurePosixPath, name: str) -> Any:
    """Return the JSON value of the file with this name in the folder of a file or above it, or None. `used`: names of files found."""
    places = ((folder / name).as_posix() for folder in near.parents)
    found = next((place for place in places if place in sources), None)
    if found is None:
        return None
    used.add(found)
    return sources[found].json()
