"""The lines of a journal. They get a checksum when written, which is verified when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, final

from pydantic import ValidationError

from longspan.simulator.base.errors import DamageError, first_problem
from longspan.simulator.base.files.checksums import SEAL_LENGTH, ChecksumError, RunningSum
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.journal import events
from longspan.simulator.journal.events import Begin

__all__ = ["REMEDY", "JournalLines", "as_line", "fields_of", "parse_line"]

REMEDY: Final = "restore the file from a copy, or grade what is before it with `longspan score --before-damage`"

FOREIGN: Final = "put the run's own back from a copy"
"""The remedy for a journal of another run or conversation."""

MEASURED: Final = b',"measured":'


@final
class JournalLines:
    """The lines of the journal at `path`, written or read in order. `seq` is the number of the next line.

    `owner`: the run and the conversation that the first line must name, or None to skip that check.
    """

    def __init__(self, path: Path, owner: Owner | None = None) -> None:
        self.seq = 0
        self._path = path
        self._owner = owner
        self._sum = RunningSum()

    @property
    def sum(self) -> str:
        """The checksum of the last line, which covers all lines."""
        return str(self._sum)

    def write(self, event: events.Event) -> bytes:
        """Return the next line."""
        measured = MEASURED + json.dumps(event.measured, separators=(",", ":")).encode() if event.measured is not None else b""
        line = self._sum.seal(as_line(event, self.seq), measured)
        self.seq += 1
        return line

    def check(self, line: bytes) -> None:
        """Verify the next line's checksum, and the owner in the first line. Raises DamageError, or JournalError for another owner."""
        try:
            self._sum.check(line, fields_of(line))
        except ChecksumError as error:
            raise DamageError(self._path, self.seq + 1, str(error), REMEDY) from None
        self.seq += 1
        if self.seq == 1 and self._owner is not None:
            begin = parse_line(line, 0, self._path)
            if isinstance(begin, Begin):
                self._owner.compare(begin.run, begin.conversation, self._path, FOREIGN)

    def read(self, line: bytes) -> events.Event:
        """Verify the next line and return its event. Raises as `check` does."""
        self.check(line)
        return parse_line(line, self.seq - 1, self._path)


def as_line(event: events.Event, seq: int) -> bytes:
    """Return the beginning of an event's line: the part that its checksum covers."""
    return _start(seq) + events.as_json(event)[1:-1]


def fields_of(line: bytes) -> bytes:
    """Return the part of a line that its checksum covers: everything before `measured`, which is never nested, and the checksum."""
    fields = line[:-SEAL_LENGTH]
    if fields.endswith(b"}"):
        at = fields.rfind(MEASURED + b"{")
        if at >= 0 and fields.find(b"}", at) == len(fields) - 1:
            return fields[:at]
    return fields


def parse_line(line: bytes, seq: int, path: Path) -> events.Event:
    """Return the event in a line whose checksum is right. Raises DamageError."""
    start = _start(seq)
    if not line.startswith(start):
        raise DamageError(path, seq + 1, f"expected an event with seq {seq}", REMEDY)
    try:
        return events.parse_json(b"{" + line[len(start) : -SEAL_LENGTH] + b"}")
    except ValidationError as error:
        raise DamageError(path, seq + 1, f"not an event of this journal format: {first_problem(error)}", REMEDY) from error


def _start(seq: int) -> bytes:
    return b'{"seq":%d,' % seq
