"""GoodAI's master logs: what a run of theirs noted as it went, an event a line, read and checked."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longspan.scenarios.goodai.files import json_lines
from longspan.simulator.errors import InputError, first_problem

__all__ = ["Entry", "Type", "read_log"]

LATEST: Final = 221_000_000_000
"""Seconds since 1970 before which a log's times lie: a date has four digits."""


@final
class Type(IntEnum):
    """The type of an event, as the log numbers them. A reset is one of their scheduler's, and no agent forgets anything by it."""

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


MOST: Final = 200_000
"""Events of a log that are read at most; a published one has some 1,000, of 33 tests."""
MOST_TESTS: Final = 1_000

MESSAGES: Final = {Type.SENT: Type.REPLY, Type.FILLER: Type.FILLER_REPLY}
"""What is said to the agent, and what each is replied with."""
REPLIES: Final = frozenset(MESSAGES.values())
ASIDE: Final = frozenset({Type.RESET, Type.CALL})
"""What is no part of the conversation."""


@final
class Entry(NamedTuple):
    """One event: the number of its line, its type, seconds since 1970, and the test it belongs to ("" for filler).

    `text` is that of a message or a reply, which `asks` something or answers it; `wait` the seconds that a test waits.
    """

    line: int
    type: Type
    time: float
    test: str
    text: str = ""
    asks: bool = False
    wait: float = 0.0


def _valid(text: object) -> object:
    """Text without lone surrogates: JSON can hold them, a journal cannot."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


@final
class _Line(_Strict):
    type: int = Field(ge=min(Type), le=max(Type))
    timestamp: float = Field(ge=0, lt=LATEST, allow_inf_nan=False)
    test_id: Annotated[str, BeforeValidator(_valid)] = Field(max_length=200)
    data: dict[str, Any]


@final
class _Said(_Strict):
    message: Annotated[str, BeforeValidator(_valid)]
    is_question: bool = False


@final
class _Waits(_Strict):
    time: float = Field(default=0, ge=0, lt=LATEST, allow_inf_nan=False)


def read_log(path: Path) -> list[Entry]:
    """The events of a log's conversation, in order; the log is plain or gzip, and may end between any two lines.

    Every message but the last has its reply after it, and every test begins before it speaks and ends at most once. Raises
    InputError, with the line, for a file that is not so.
    """
    grammar = _Grammar()
    entries = []
    for number, value in json_lines(path):
        entry = _entry(value, number, path)
        if wrong := grammar.wrong(entry):
            raise InputError(f"{path}, line {number}: {wrong}; mend the log, or cut it off before that line")
        if entry.type not in ASIDE:
            entries.append(entry)
        if len(entries) > MOST or len(grammar.tests) > MOST_TESTS:
            raise InputError(f"{path}: larger than a log can be: more than {MOST:,} events or {MOST_TESTS:,} tests")
    if not grammar.tests:
        raise InputError(f"{path}: no test begins in it; expected a master log: JSON with type, timestamp, test_id and data, a line each")
    return entries


def _entry(value: Any, number: int, path: Path) -> Entry:
    where = ""
    try:
        line = _Line.model_validate(value)
        where = "data: "
        type = Type(line.type)
        if type in MESSAGES or type in REPLIES:
            said = _Said.model_validate(line.data)
            return Entry(number, type, line.timestamp, line.test_id, said.message, said.is_question)
        wait = _Waits.model_validate(line.data).time if type is Type.WAIT else 0.0
    except ValidationError as error:
        raise InputError(f"{path}, line {number}: not an event of a master log: {where}{first_problem(error)}") from None
    return Entry(number, type, line.timestamp, line.test_id, wait=wait)


@final
class _Grammar:
    """What may follow what. `tests` that have begun, and whether each is still open."""

    def __init__(self) -> None:
        self.tests: dict[str, bool] = {}
        self._message: Entry | None = None

    def wrong(self, entry: Entry) -> str | None:
        """What is wrong with the next event; None where it may follow."""
        if entry.type in ASIDE:
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

    def _replies(self, entry: Entry) -> str | None:
        message, self._message = self._message, None
        if message is None:
            return "a reply to nothing: no message stands before it"
        if entry.type is not MESSAGES[message.type] or entry.test != message.test:
            return f"expected the reply to the message in line {message.line}, which has type {MESSAGES[message.type]}"
        return None
