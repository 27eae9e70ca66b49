"""Stores the standard error of an agent that runs in another process, in a log next to the conversation's journal."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.files.folders import check_file, open_file
from longspan.simulator.base.keys import MAX_LENGTH, redact
from longspan.simulator.base.terminal import as_line
from longspan.simulator.subject.current_turn import Moment, current_moment

__all__ = ["CRASH", "AgentLog", "agent_log", "pick_telling_lines"]

MAX_LINE: Final = 2_000
"""The most bytes in a line. A longer line is split."""

MAX_FILE: Final = 256 * 2**20
"""The most bytes in a log, however much the agent writes. A full log ends with a line that says so."""

LAST_LINES: Final = 40
"""The number of lines kept in memory for error messages."""

LINE_ENDS: Final = re.compile(rb"[\r\n]+")

CRASH: Final = "Fatal Python error:"
"""The first words that Python prints when the interpreter itself crashes, as in a segmentation fault. The innermost call follows."""

FULL: Final = "longspan: the log is full; later output is dropped"


def pick_telling_lines(lines: Sequence[str], most: int) -> list[str]:
    """Return the `most` lines that best explain a failure: the last ones, or the first ones of an interpreter crash."""
    crash = next((number for number, line in enumerate(lines) if line.startswith(CRASH)), None)
    return list(lines[-most:] if crash is None else lines[crash : crash + most])


@final
class AgentLog:
    """The standard error of one conversation's agent: the last lines in memory, and inside `keep_at`, all lines in a file.

    Each line of the file has the turn, its virtual time, the real time in UTC and the text. Control characters are made visible and keys
    are redacted.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._now = Moment()
        self._unfinished = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    @contextmanager
    def keep_at(self, path: Path | None) -> Iterator[None]:
        """Make this the log for agents started in the context (see `agent_log`), and append to the file at `path`, if given.

        Raises JournalError if `path` exists and is not a regular file.
        """
        if path is not None:
            check_file(path)
        self._path, self._now = (
            path,
            current_moment(new=True),
        )  # a reference: a writer may run in another context, where `current_moment` is different
        token = _log.set(self)
        try:
            yield
        finally:
            self.end()
            _log.reset(token)

    @property
    def last_lines(self) -> list[str]:
        """The last lines written by the current process, or by the last one if none is running."""
        unfinished = _without_keys(self._unfinished)[:MAX_LINE]
        return [*self._last, *([_text(unfinished)] if unfinished.strip() else [])]

    def begin(self) -> None:
        """Start the log of a new process."""
        self.end()
        self._last.clear()

    def write(self, chunk: bytes) -> None:
        """Add a chunk of output. Blank lines are dropped. Lines that the disk cannot take are lost: a log must not fail a run."""
        *whole, self._unfinished = LINE_ENDS.split(self._unfinished + chunk)
        if len(self._unfinished) > MAX_LINE + MAX_LENGTH:  # the margin keeps a key in one piece, so that it can be redacted
            self._unfinished = _without_keys(self._unfinished)
            end = max(0, len(self._unfinished) - MAX_LENGTH) // MAX_LINE * MAX_LINE
            whole.append(self._unfinished[:end])
            self._unfinished = self._unfinished[end:]
        self._add(whole)

    def end(self) -> None:
        """End the log of a process, whose last line may be unfinished."""
        whole, self._unfinished = [self._unfinished], b""
        self._add(whole)

    def _add(self, lines: list[bytes]) -> None:
        pieces = (line[at : at + MAX_LINE] for line in map(_without_keys, lines) for at in range(0, len(line), MAX_LINE))
        texts = [_text(piece) for piece in pieces if piece.strip()]
        self._last += texts
        if texts and self._path is not None:
            with suppress(OSError, JournalError), open_file(self._path, "ab") as file:
                size = file.tell()
                if size < MAX_FILE:
                    content = "".join(self._stamp(text) for text in texts).encode("utf-8", "replace")
                    full = self._stamp(FULL).encode() if size + len(content) >= MAX_FILE else b""
                    file.write(content[: MAX_FILE - size] + (b"\n" + full if full else b""))

    def _stamp(self, text: str) -> str:
        turn, sent_at = self._now.turn, self._now.sent_at
        where = f"{turn} {sent_at.isoformat(timespec='seconds')}" if sent_at is not None else "- -"
        return f"{where} {datetime.now(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z {text}\n"


_log: Final[ContextVar[AgentLog | None]] = ContextVar("agent_log", default=None)


def agent_log() -> AgentLog:
    """Return the log of the conversation that this task plays, or a new log without a file."""
    return _log.get() or AgentLog()


def _text(line: bytes) -> str:
    return as_line(line.decode("utf-8", "replace").rstrip())


def _without_keys(line: bytes) -> bytes:
    return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
