"""Caches models' replies in a file, keyed by prompt, so that no reply is paid for twice.

Each line has its own checksum, so copies of a file can be merged line by line, in any order.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import DamageError, InputError, JournalError, first_problem
from longspan.simulator.base.files.checksums import SEAL_LENGTH, ChecksumError, RunningSum
from longspan.simulator.base.files.folders import open_file, read_file
from longspan.simulator.base.files.json_lines import cut_torn

__all__ = ["KeptCall", "KeptReply", "Replies", "current_replies", "keep_replies", "key_of"]

MAX_BYTES: Final = 2**30
"""The largest file that is read, in bytes."""

START: Final = b'{"key": "'

TORN: Final = re.compile(re.escape(START) + rb'[0-9a-f]{0,64}(?:(?<=[0-9a-f]{64})"[^\n]*)?')
"""Matches an incomplete line. It must not match the start of an unrelated file, which would be cut."""

REMEDY: Final = "remove the line; longspan will request the reply again"


@final
class KeptCall(BaseModel):
    """A tool call in a reply."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    arguments: str


@final
class KeptReply(BaseModel):
    """A cached reply of a model, with its token usage.

    `raw` is the reply in the vendor's format, if it calls tools. `refusal` is the reason why the model refused, and `cut` the reason why
    the reply ends early. `dropped` lists what the server rejected in the request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    text: str
    input_tokens: int = Field(ge=0, le=10**9)
    cached_tokens: int = Field(ge=0, le=10**9)
    output_tokens: int = Field(ge=0, le=10**9)
    calls: list[KeptCall] = []
    raw: Any = None
    thinking: str = ""
    cut: Literal["", "max_tokens", "repetition"] = ""
    dropped: list[str] = []
    refusal: str | None = None


def key_of(sent: object) -> str:
    """Return the cache key for the content sent to a model, which must be JSON."""
    return hashlib.sha256(json.dumps(sent, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


@final
class Replies:
    """The replies in a file, which may not exist yet. `used` counts replies that were found, and `added` replies that were added.

    Raises InputError if the file cannot be read, and DamageError if a line was changed after it was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.used = self.added = 0
        if not path.parent.is_dir() or path.is_dir():
            raise InputError(f"--replies {path}: {'is a folder' if path.is_dir() else f'there is no folder {path.parent}'}; name a file")
        self._known = {reply.key: reply for reply in _read(path)}
        if self._known or _is_torn(path):
            cut_torn(path)
        elif path.exists() and path.stat().st_size:
            raise InputError(f"--replies {path}: not a file of replies; name another, which need not exist")

    def find(self, key: str) -> KeptReply | None:
        """Return the reply with a key, or None."""
        found = self._known.get(key)
        self.used += found is not None
        return found

    def add(self, reply: KeptReply) -> None:
        """Store a reply. Raises JournalError if it cannot be written."""
        self._known[reply.key] = reply
        self.added += 1
        fields = json.dumps(reply.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)[:-1]
        try:
            with open_file(self.path, "ab") as file:
                file.write(RunningSum().seal(fields.encode("utf-8", "backslashreplace")))
        except OSError as error:
            raise JournalError(f"--replies {self.path}: cannot be written: {error.strerror}") from error

    @property
    def summary(self) -> str:
        """A sentence with the numbers of replies that were reused and added."""
        return f"replies {self.path}: {self.used:,} reused, {self.added:,} requested and stored"


def _read(path: Path) -> Iterator[KeptReply]:
    try:
        *lines, _ = read_file(path, MAX_BYTES).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"--replies {path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        fields = line[: 1 - SEAL_LENGTH]
        try:
            RunningSum().check(line + b"\n", fields)
            yield KeptReply.model_validate_json(fields + b"}")
        except ChecksumError as error:
            raise DamageError(path, number, str(error), REMEDY) from None
        except ValidationError as error:
            raise DamageError(path, number, f"not a reply: {first_problem(error)}", REMEDY) from None


def _is_torn(path: Path) -> bool:
    """Return whether the file has only the start of its first line, as after a crash."""
    try:
        content = read_file(path, MAX_BYTES)
    except OSError:
        return False
    return TORN.fullmatch(content) is not None or START.startswith(content)


_kept: Final[ContextVar[Replies | None]] = ContextVar("replies", default=None)


@contextmanager
def keep_replies(path: Path | None) -> Iterator[Replies | None]:
    """Look up models' replies in a file, and store new ones there, while the context lasts. Without a path, do nothing."""
    if path is None:
        yield None
        return
    replies = Replies(path)
    token = _kept.set(replies)
    try:
        yield replies
    finally:
        _kept.reset(token)


def current_replies() -> Replies | None:
    """Return the cached replies of this context, or None without a cache."""
    return _kept.get()
