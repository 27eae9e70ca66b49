"""The journal: one JSON object per line, with `seq` counting up by one. Each line is written before the next step is taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar, final

from longspan.simulator.base.errors import DamageError, JournalError, ReplayError, StoppedError
from longspan.simulator.base.files.folders import open_file
from longspan.simulator.base.files.json_lines import cut_torn
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.base.files.packed import is_packed, open_journal
from longspan.simulator.journal import events
from longspan.simulator.journal.journal_lines import REMEDY, JournalLines, as_line, fields_of, parse_line

__all__ = ["Journal", "SharedPrefix", "check_journal", "is_closed", "last_sum", "read_journal", "read_lines", "read_shared"]

E = TypeVar("E", bound=events.Event)

MAX_LINE_BYTES: Final = 2**30
"""The most bytes of a line. A longer line cannot be an event."""

MAX_CLOSE_BYTES: Final = 1000
"""An upper bound on the bytes of a Close event's line."""


def read_journal(path: Path, owner: Owner | None = None) -> Iterator[events.Event]:
    """Yield the events of a journal in order, without an incomplete last line.

    `owner`: the run and the conversation that the journal must belong to, if known. Raises DamageError at a line that was changed, and
    JournalError if the file cannot be read or belongs to another run or conversation.
    """
    lines = JournalLines(path, owner)
    for line in _complete_lines(path):
        yield lines.read(line)


def read_lines(path: Path, owner: Owner | None = None) -> Iterator[tuple[bytes, events.Event, str]]:
    """Yield the lines of a journal as `read_journal` does, each with its event and its checksum."""
    lines = JournalLines(path, owner)
    for line in _complete_lines(path):
        yield line, lines.read(line), lines.sum


def read_shared(path: Path, sum: str, owner: Owner) -> Iterator[events.Event]:
    """Yield the part of the journal at `path` that a branch shares: the events after the first, up to the line with this checksum.

    Raises as `read_journal` does, and JournalError if there is no such line.
    """
    for _, event, reached in read_lines(path, owner):
        if not isinstance(event, events.Begin):
            yield event
        if reached == sum:
            return
    raise JournalError(f"{path}: changed after another conversation branched from it; restore both from a copy")


def check_journal(path: Path, owner: Owner | None = None) -> None:
    """Verify the checksums of a journal's lines. Raises as `read_journal` does."""
    lines = JournalLines(path, owner)
    for line in _complete_lines(path):
        lines.check(line)


def is_closed(path: Path) -> bool:
    """Return whether a journal ends with a Close event. Raises JournalError if it cannot be read."""
    return _close(path) is not None


def last_sum(path: Path) -> str | None:
    """Return the checksum of a closed journal's last line, or None if it is not closed. Raises JournalError if it cannot be read."""
    close = _close(path)
    return str(close.get("sum")) if close is not None else None


def _close(path: Path) -> dict[str, Any] | None:
    """Return the fields of the Close event at the end of a journal, or None. Raises JournalError if it cannot be read."""
    try:
        with open_journal(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_CLOSE_BYTES))
            end = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(f"{path}: cannot read the journal: {error.strerror}") from error
    try:
        fields: dict[str, Any] = json.loads(end.splitlines()[-1])
        return fields if end.endswith(b"\n") and fields["type"] == "close" else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _complete_lines(path: Path) -> Iterator[bytes]:
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open_journal(path))
        except OSError as error:
            raise JournalError(f"{path}: cannot read the journal: {error.strerror}") from error
        number = 0
        while (line := file.readline(MAX_LINE_BYTES)).endswith(b"\n"):
            number += 1
            yield line
    if len(line) == MAX_LINE_BYTES:
        raise DamageError(path, number + 1, "it is longer than any event", REMEDY)


@final
class SharedPrefix(NamedTuple):
    """The lines, after the first, that a branch shares with the journal at `path`."""

    path: Path
    lines: Sequence[bytes] = ()


@final
class Journal:
    """A journal being written. An existing journal is replayed first.

    While `replaying`, `write` compares the event with the recorded one instead of writing it, and `read_recorded` returns the recorded
    event, such as the agent's reply. So playing, resuming and replaying share one code path. `torn`: an incomplete last line, left by a
    crash, was cut off. With `replay_only`, nothing is written, and StoppedError is raised at the end of the journal.

    `shared`: another journal's events, which follow the first event. They are replayed too, but not written to this journal.

    `owner`: the run and the conversation that an existing journal must belong to. Raises JournalError if it belongs to another.
    """

    def __init__(self, path: Path, *, replay_only: bool = False, shared: SharedPrefix | None = None, owner: Owner | None = None) -> None:
        self.path = path
        self.seq = 0
        self.torn = False
        self._recorded: list[bytes] = []
        self._lines = JournalLines(path, owner)
        self._shared = shared or SharedPrefix(path)
        self._again = 0  # the number of shared lines replayed so far
        try:
            for line in _complete_lines(path) if path.exists() else ():
                self._lines.check(line)
                self._recorded.append(line)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._replay_only = replay_only or is_packed(path)  # only the journals of finished runs are packed
            # Unbuffered, so that an event has left this process before the next step is taken.
            self._file = open_file(path, "rb" if self._replay_only else "ab", buffering=0)
            if not self._replay_only:
                self.torn = cut_torn(path)
        except OSError as error:
            raise JournalError(f"{path}: cannot write the journal: {error.strerror}") from error
        self._dirty = False
        self._broken: JournalError | None = None

    @property
    def replaying(self) -> bool:
        return self.shares or self.seq < len(self._recorded)

    @property
    def shares(self) -> bool:
        """Whether the next event is one of the shared ones."""
        return self.seq > 0 and self._again < len(self._shared.lines)

    @property
    def sum(self) -> str:
        """The checksum of the file's last line, which covers all lines."""
        return self._lines.sum

    def read_recorded(self) -> events.Event | None:
        """Return the recorded event at this position, or None after the last one. With `replay_only`, raises StoppedError instead of
        None."""
        if self.shares:
            return parse_line(self._shared.lines[self._again], self._again + 1, self._shared.path)
        if self._replay_only and not self.replaying:
            raise self._end()
        return parse_line(self._recorded[self.seq], self.seq, self.path) if self.replaying else None

    def read_recorded_as(self, kind: type[E]) -> E | None:
        """Return the recorded event at this position as `recorded` does. Raises ReplayError if it is not of this `kind`."""
        recorded = self.read_recorded()
        if recorded is None or isinstance(recorded, kind):
            return recorded
        path, number = (self._shared.path, self._again + 1) if self.shares else (self.path, self.seq)
        raise _differs(path, number, "type", kind.model_fields["type"].default, recorded.type)

    def write(self, event: events.Event) -> None:
        """Append `event`, or compare it with the recorded one.

        Raises ReplayError if it differs, and JournalError if it cannot be written.
        """
        if self.shares:
            self._again += 1
            _compare(self._shared.lines[self._again - 1], as_line(event, self._again), self._shared.path)
            return
        if self.replaying:
            _compare(self._recorded[self.seq], as_line(event, self.seq), self.path)
        elif self._replay_only:
            raise self._end()
        else:
            self._append(self._lines.write(event))
        self.seq += 1
        if isinstance(event, events.End | events.ScenarioError | events.Night | events.Settled):
            self.sync()

    def _end(self) -> StoppedError:
        where = f"the journal ends after {self.seq} events"
        return StoppedError(f"{self.path}: the run was interrupted: {where}; `longspan resume` continues it, then replay it")

    def _append(self, line: bytes) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            # The file may now end in the middle of a line. Nothing may be written after that.
            self._broken = JournalError(f"{self.path}: cannot write the journal: {error.strerror}")
            raise self._broken from error
        self._dirty = True

    def sync(self) -> None:
        """Sync everything written to disk. Thread-safe."""
        if self._broken is not None:
            raise self._broken
        if not self._dirty:
            return
        self._dirty = False
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            # The kernel reports lost pages only once, so later syncs could succeed although data is missing.
            self._broken = JournalError(f"{self.path}: cannot sync the journal: {error.strerror}")
            raise self._broken from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()


def _compare(line: bytes, again: bytes, path: Path) -> None:
    """Compare a recorded line with an event's line, as JSON. Raises ReplayError if they differ."""
    recorded = fields_of(line)
    if recorded == again:
        return
    old: dict[str, Any] = json.loads(recorded + b"}")
    new: dict[str, Any] = json.loads(again + b"}")
    if old == new:
        return
    key = min(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    raise _differs(path, new["seq"], key, new.get(key), old.get(key))


def _differs(path: Path, seq: int, key: str, new: Any, old: Any) -> ReplayError:
    return ReplayError(f"{path}, line {seq + 1}: replayed, the event's {key} is {_short(new)}; the journal says {_short(old)}")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
