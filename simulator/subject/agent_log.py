"""The standard error of an agent in another process, kept beside its conversation's journal."""

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
from longspan.simulator.base.keys import MAX_LENGTH, redacted
from longspan.simulator.base.terminal import as_line
from longspan.simulator.files.folders import check_file, open_file
from longspan.simulator.subject.current_turn import Moment, moment

__all__ = ["CRASH", "AgentLog", "agent_log", "telling"]

MAX_LINE: Final = 2_000
"""The number of bytes in a line. A longer line is split into several."""

MAX_FILE: Final = 256 * 2**20
"""The number of bytes in a log, however much the agent writes. A full log ends with a line that says so."""

LAST_LINES: Final = 40
"""The number of lines kept in memory, for errors."""

LINE_ENDS: Final = re.compile(rb"[\r\n]+")

CRASH: Final = "Fatal Python error:"
"""The beginning of the lines that Python writes when it crashes below the level of Python code. The innermost call comes first."""

FULL: Final = "longspan: the log is full; what follows is dropped"


def telling(lines: Sequence[str], most: int) -> list[str]:
    """Return the lines that tell most about a failure: the last lines, or the first lines of a crash below Python code."""
    crash = next((number for number, line in enumerate(lines) if line.startswith(CRASH)), None)
    return list(lines[-most:] if crash is None else lines[crash : crash + most])


@final
class AgentLog:
    """The standard error of a conversation's agent: its last lines, and all of it in a file while that is `kept`.

    Each line of the file has the turn, its virtual time, the machine's time in UTC, and the text itself, with control characters made
    visible and keys redacted.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._now = Moment()
        self._unfinished = b""
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    @contextmanager
    def kept(self, path: Path | None) -> Iterator[None]:
        """While the context lasts, this is the log of agents (see `agent_log`), and is appended to the file at `path`, if given.

        Raises JournalError if `path` is anything but a regular file.
        """
        if path is not None:
            check_file(path)
        self._path, self._now = path, moment(new=True)  # writers may run in a context of their own
        token = _log.set(self)
        try:
            yield
        finally:
            self.end()
            _log.reset(token)

    @property
    def last_lines(self) -> list[str]:
        """The last lines written by its current process, or else by its last one."""
        unfinished = _without_keys(self._unfinished)[:MAX_LINE]
        return [*self._last, *([_text(unfinished)] if unfinished.strip() else [])]

    def begin(self) -> None:
        """Begin the log of a new process."""
        self.end()
        self._last.clear()

    def write(self, chunk: bytes) -> None:
        """Add a chunk of a process's output. Blank lines are left out. After a disk error, lines that cannot be written are lost."""
        *whole, self._unfinished = LINE_ENDS.split(self._unfinished + chunk)
        if len(self._unfinished) > MAX_LINE + MAX_LENGTH:  # so that no key is cut in half
            self._unfinished = _without_keys(self._unfinished)
            end = max(0, len(self._unfinished) - MAX_LENGTH) // MAX_LINE * MAX_LINE
            whole.append(self._unfinished[:end])
            self._unfinished = self._unfinished[end:]
        self._add(whole)

    def end(self) -> None:
        """End the log of a process, perhaps in the middle of a line."""
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
                    content = "".join(self._stamped(text) for text in texts).encode("utf-8", "replace")
                    full = self._stamped(FULL).encode() if size + len(content) >= MAX_FILE else b""
                    file.write(content[: MAX_FILE - size] + (b"\n" + full if full else b""))

    def _stamped(self, text: str) -> str:
        turn, sent_at = self._now.turn, self._now.sent_at
        where = f"{turn} {sent_at.isoformat(timespec='seconds')}" if sent_at is not None else "- -"
        return f"{where} {datetime.now(UTC).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z {text}\n"


_log: Final[ContextVar[AgentLog | None]] = ContextVar("agent_log", default=None)


def agent_log() -> AgentLog:
    """Return the log of the conversation that this task plays, or else a new log that is not kept in a file."""
    return _log.get() or AgentLog()


def _text(line: bytes) -> str:
    return as_line(line.decode("utf-8", "replace").rstrip())


def _without_keys(line: bytes) -> bytes:
    return redacted(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
