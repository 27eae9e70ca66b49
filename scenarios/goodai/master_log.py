"""Read and check GoodAI's master logs: the events of a run, one on each line."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longspan.scenarios.goodai.files import json_lines
from longspan.simulator.base.errors import InputError, first_problem

__all__ = ["LogEvent", "Type", "read_log"]

MAX_TIME: Final = 221_000_000_000
"""Upper bound for a log's times in seconds since 1970, so that years have four digits."""


@final
class Type(IntEnum):
    """The type of an event, as the log numbers them. RESET resets GoodAI's scheduler; the agent forgets nothing."""

    SENT = 0
    BEGINS = 1
    ENDS = 2
    FILLER = 3
    REPLY = 4
    FILLER_REPLY = 5
    WAIT = 6
    RESET = 7
    CALL = 8
    CALLBACK_ON = 9
    CALLBACK_OFF = 10


MAX_EVENTS: Final = 200_000
"""Maximum number of events in a log. A published one has about 1,000, from 33 tests."""
MAX_TESTS: Final = 1_000

MESSAGES: Final = {Type.SENT: Type.REPLY, Type.FILLER: Type.FILLER_REPLY}
"""The types of messages to the agent, and the types of the replies to them."""
REPLIES: Final = frozenset(MESSAGES.values())
IGNORED: Final = frozenset({Type.RESET, Type.CALL})
"""The types of events that are not part of the conversation."""


@final
class LogEvent(NamedTuple):
    """An event: the number of its line, its type, seconds since 1970, and the test it belongs to ("" for filler).

    `text` is of a message or a reply; `asks` says whether it is a question or the answer to one. `wait`: the seconds that a
    test waits.
    """

    line: int
    type: Type
    time: float
    test: str
    text: str = ""
    asks: bool = False
    wait: float = 0.0


def _valid(text: object) -> object:
    """Return text without lone surrogates, which JSON can have but a journal cannot."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


@final
class _Line(_Strict):
    type: int = Field(ge=min(Type), le=max(Type))
    timestamp: float = Field(ge=0, lt=MAX_TIME, allow_inf_nan=False)
    test_id: Annotated[str, BeforeValidator(_valid)] = Field(max_length=200)
    data: dict[str, Any]


@final
class _MessageEntry(_Strict):
    message: Annotated[str, BeforeValidator(_valid)]
    is_question: bool = False


@final
class _Waits(_Strict):
    time: float = Field(default=0, ge=0, lt=MAX_TIME, allow_inf_nan=False)


def read_log(path: Path) -> list[LogEvent]:
    """Return the events of a log's conversation, in order. The log is plain or gzip, and may end after any line.

    Every message but the last must be followed by its reply, and every test must begin before it speaks and end at most
    once. Raises InputError, with the line, for any other file.
    """
    grammar = _Grammar()
    entries = []
    for number, value in json_lines(path):
        entry = _entry(value, number, path)
        if wrong := grammar.wrong(entry):
            raise InputError(f"{path}, line {number}: {wrong}; fix the log, or cut it off before that line")
        if entry.type not in IGNORED:
            entries.append(entry)
        if len(entries) > MAX_EVENTS or len(grammar.tests) > MAX_TESTS:
            raise InputError(f"{path}: too large for a log: more than {MAX_EVENTS:,} events or {MAX_TESTS:,} tests")
    if not grammar.tests:
        raise InputError(f"{path}: no test begins in it; expected a master log: JSON lines with type, timestamp, test_id and data")
    return entries


def _entry(value: Any, number: int, path: Path) -> LogEvent:
    where = ""
    try:
        line = _Line.model_validate(value)
        where = "data: "
        type = Type(line.type)
        if type in MESSAGES or type in REPLIES:
            said = _MessageEntry.model_validate(line.data)
            return LogEvent(number, type, line.timestamp, line.test_id, said.message, said.is_question)
        wait = _Waits.model_validate(line.data).time if type is Type.WAIT else 0.0
    except ValidationError as error:
        raise InputError(f"{path}, line {number}: not an event of a master log: {where}{first_problem(error)}") from None
    return LogEvent(number, type, line.timestamp, line.test_id, wait=wait)


@final
class _Grammar:
    """Checks the order of events. `tests`: tests that have begun, and whether they are still open."""

    def __init__(self) -> None:
        self.tests: dict[str, bool] = {}
        self._message: LogEvent | None = None

    def wrong(self, entry: LogEvent) -> str | None:
        """Return why the next event is out of order; None if it is not."""
        if entry.type in IGNORED:
            return None
        if self._message is not None or entry.type in REPLIES:
            return self._replies(entry)
        if entry.type is Type.BEGINS:
            if entry.test in self.tests:
                return f"{entry.test!r:.80} begins again"
            self.tests[entry.test] = True
        elif entry.type is not Type.FILLER and not self.tests.get(entry.test):
            return f"{entry.test!r:.80} has {'ended' if entry.test in self.tests else 'not begun'}"
        elif entry.type is Type.ENDS:
            self.tests[entry.test] = False
        if entry.type in MESSAGES:
            self._message = entry
        return None

    def _replies(self, entry: LogEvent) -> str | None:
        message, self._message = self._message, None
        if message is None:
            return "a reply without a message before it"
        if entry.type is not MESSAGES[message.type] or entry.test != message.test:
            return f"expected the reply to the message in line {message.line}, which has type {MESSAGES[message.type]}"
        return None
