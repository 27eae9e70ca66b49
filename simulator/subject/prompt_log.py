"""Stores the prompts sent to models, turn by turn, next to the conversation's journal.

A prompt repeats most of the one before it. So each message is stored once, and later prompts refer to it by number.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Final, NamedTuple, final, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import JournalError, first_problem
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.base.keys import redact
from longspan.simulator.subject.current_turn import current_moment

__all__ = ["Prompt", "PromptLog", "PromptMessage", "note_prompt", "note_rendered", "read_prompts"]

Number = Annotated[int, Field(ge=0, le=10**9)]

MAX_MESSAGES: Final = 100_000
"""The most messages in a prompt. Bounds the work of reading a file from an untrusted source."""


RENDERED: Final = "rendered"
"""The purpose of an entry that repeats a conversation's first prompt as the model's template renders it."""


@final
class PromptMessage(NamedTuple):
    """A message to a model. `role` is the role in the model's API, such as `system`, `user` or `assistant`."""

    role: str
    text: str


@final
class Prompt(NamedTuple):
    """A prompt sent to a model. `turn` is None before the first turn. `purpose` is `reply`, or the agent's other reason for the call."""

    turn: int | None
    model: str
    purpose: str
    messages: Sequence[PromptMessage]


@final
class _NamedMessages(Sequence[PromptMessage]):
    """The messages of a stored prompt. They are looked up on access, because prompts may refer to the same messages many times: expanding
    them all would take memory quadratic in the conversation."""

    def __init__(self, known: Sequence[PromptMessage], stretches: Sequence[tuple[int, int]]) -> None:
        self._known = known
        self._stretches = stretches
        self._ends = list(accumulate(last - first + 1 for first, last in stretches))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> PromptMessage: ...
    @overload
    def __getitem__(self, place: slice) -> list[PromptMessage]: ...
    def __getitem__(self, place: int | slice) -> PromptMessage | list[PromptMessage]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        stretch = bisect_right(self._ends, place)
        return self._known[self._stretches[stretch][1] + 1 - (self._ends[stretch] - place)]


@final
class _Entry(BaseModel):
    """A line of the file. Messages in `new` get the next numbers. `messages` lists ranges of numbers, both ends included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turn: Number | None
    sent_at: str | None
    model: str
    purpose: str = Field(alias="for")
    new: list[PromptMessage]
    messages: list[tuple[Number, Number]]


@final
class PromptLog:
    """The prompts of one conversation, in a file that may not exist yet, or in memory. `owner` is the run and the conversation.

    Every method, the constructor included, raises JournalError if the file is damaged, belongs to another conversation or cannot be
    written.
    """

    def __init__(self, path: Path | None, owner: Owner | None = None) -> None:
        self.prompts: list[Prompt] = []
        self._lines = JsonLines(path, owner) if path is not None else None
        self._numbers: dict[bytes, int] = {}
        self._rendered: set[str] = set()
        for prompt in read_prompts(path, owner) if path is not None else ():
            self._number(prompt.messages)
            if prompt.purpose == RENDERED:
                self._rendered.add(prompt.model)

    @contextmanager
    def keep_prompts(self) -> Iterator[None]:
        """Add the prompts that are noted in this context to the log (see `note_prompt`)."""
        token = _log.set(self)
        try:
            yield
        finally:
            _log.reset(token)

    def add_rendered(self, model: str, text: Callable[[], str]) -> None:
        """Add a model's first prompt as its template renders it. `text` is called only if the file lacks it."""
        if self._lines is not None and model not in self._rendered:
            self._rendered.add(model)
            self.add(model, RENDERED, [PromptMessage("rendered", _redact_and_clean(text()))])

    def add(self, model: str, purpose: str, messages: Sequence[PromptMessage]) -> None:
        now = current_moment()
        if self._lines is None:
            self.prompts.append(Prompt(now.turn, model, purpose, messages))
            return
        known = len(self._numbers)
        numbers = self._number(messages)
        new = {number: message for number, message in zip(numbers, messages, strict=True) if number >= known}
        self._lines.append(
            {
                "turn": now.turn,
                "sent_at": now.sent_at.isoformat() if now.sent_at is not None else None,
                "model": model,
                "for": purpose,
                "new": [[message.role, message.text] for message in new.values()],
                "messages": _stretches(numbers),
            }
        )

    def _number(self, messages: Sequence[PromptMessage]) -> list[int]:
        """Return the numbers of messages, adding new ones.

        Equal messages get different numbers after different predecessors. So the numbers of a conversation are consecutive, and a prompt is
        a few ranges.
        """
        numbers, before = [], b""
        for role, text in messages:
            own = hashlib.blake2b(f"{role}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
            numbers.append(self._numbers.setdefault(before + own, len(self._numbers)))
            before = own
        return numbers


_log: Final[ContextVar[PromptLog | None]] = ContextVar("prompt_log", default=None)


def note_prompt(model: str, messages: Iterable[tuple[str, str]], purpose: str = "reply") -> None:
    """Store a prompt, as pairs of role and text, if the run stores prompts. Keys in it are redacted."""
    log = _log.get()
    if log is not None:
        log.add(model, purpose, [PromptMessage(role, _redact_and_clean(text)) for role, text in messages])


def note_rendered(model: str, text: Callable[[], str]) -> None:
    """Store the first prompt of a conversation as the model's template renders it. Templates may add instructions."""
    log = _log.get()
    if log is not None:
        log.add_rendered(model, text)


def read_prompts(path: Path, owner: Owner | None = None) -> Iterator[Prompt]:
    """Yield the prompts in a conversation's `prompts.jsonl`, in the order they were sent. Yield nothing if the file does not exist.

    `owner` is the expected run and conversation. Raises JournalError if the file belongs to another, or is damaged.
    """
    known: list[PromptMessage] = []
    for number, line in enumerate(JsonLines(path, owner).read(), 1):
        try:
            entry = _Entry.model_validate(line)
        except ValidationError as error:
            raise JournalError(f"{path}, line {number}: not a prompt: {first_problem(error)}") from None
        known += entry.new
        size = sum(last - first + 1 for first, last in entry.messages)
        if size > MAX_MESSAGES or any(not first <= last < len(known) for first, last in entry.messages):
            raise JournalError(f"{path}, line {number}: not a prompt: it names messages that were never sent; move the file away")
        yield Prompt(entry.turn, entry.model, entry.purpose, _NamedMessages(known, entry.messages))


def _redact_and_clean(text: str) -> str:
    return redact(text).encode("utf-8", "replace").decode()


def _stretches(numbers: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
