"""Numbered, checksummed segments of the new bytes in a run's files. A node ships the run it plays as a series of segments."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from longspan.simulator.base.errors import StoppedError
from longspan.simulator.base.files.file_io import partial_of
from longspan.simulator.base.files.folders import list_subfolders, open_file, walk_folder
from longspan.simulator.journal.run_folder import AGENT_LOG, PROMPTS, RESULTS
from longspan.simulator.subject.snapshots import RECORD, Snapshots

__all__ = ["Answer", "Piece", "Segment", "Shipper", "list_logs", "list_snapshots"]

MAX_BYTES: Final = 4 * 2**20
"""The maximum number of bytes from files in a segment."""

Answer = Literal["continue", "stop", "not yours"]
"""The answer to a segment. It was stored: continue; stored, but stop the run; or refused, since the run has another owner."""


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to append to a file in a run's folder. `offset` is the file's length before."""

    path: str
    offset: int
    content: bytes


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """Segment `number`, counted from 1, of a run, shipped by the owner of lease `lease`.

    `renames`: files and snapshots that are complete now, each with the name it was shipped under and its final name.
    """

    run: str
    lease: int
    number: int
    pieces: tuple[Piece, ...]
    renames: tuple[tuple[str, str], ...]
    sha256: str

    @classmethod
    def seal(cls, run: str, lease: int, number: int, pieces: Sequence[Piece] = (), renames: Sequence[tuple[str, str]] = ()) -> Segment:
        """Make a segment with its checksum."""
        return cls(run, lease, number, tuple(pieces), tuple(renames), _digest(run, lease, number, pieces, renames))

    @property
    def intact(self) -> bool:
        """Whether the segment arrived unchanged."""
        return self.sha256 == _digest(self.run, self.lease, self.number, self.pieces, self.renames)


def _digest(run: str, lease: int, number: int, pieces: Sequence[Piece], renames: Sequence[tuple[str, str]]) -> str:
    digest = hashlib.sha256(repr((run, lease, number, tuple(renames))).encode())
    for piece in pieces:
        digest.update(repr((piece.path, piece.offset, len(piece.content))).encode())
        digest.update(piece.content)
    return digest.hexdigest()


def list_logs(folder: Path) -> list[Path]:
    """Return the append-only files of a run: its journals, the logs next to them, and its other `.jsonl` files.

    Raises JournalError for a link on the way to them.
    """
    conversations = list_subfolders(folder, "conversations")
    found = [*folder.glob("*.jsonl"), *(each / name for each in conversations for name in ("journal.jsonl", RECORD, PROMPTS, AGENT_LOG))]
    return sorted(path for path in found if path.exists())


def list_snapshots(folder: Path) -> list[Snapshots]:
    """Return the snapshots of each conversation of a run. Raises JournalError for a link on the way to them."""
    return [Snapshots(conversation / "snapshots") for conversation in list_subfolders(folder, "conversations")]


@final
class Shipper:
    """Ships a run that is played in `folder`, as owner of `lease`. Everything in the folder at the start counts as shipped.

    `send` sends a segment and returns the answer; its errors propagate. May be used from several threads.
    """

    def __init__(self, folder: Path, lease: int, send: Callable[[Segment], Answer]) -> None:
        self._folder = folder
        self._lease = lease
        self._send = send
        self._number = 0
        self._lock = threading.Lock()
        self._sent = {path: path.stat().st_size for path in list_logs(folder)}
        self._saved = self._snapshots()
        self.stopped = False

    def ship(self, *logs_: Path) -> None:
        """Ship the new lines of these logs, or of all logs. Raises StoppedError if the run has another owner."""
        with self._lock:
            self._ship_lines(logs_ or list_logs(self._folder))

    def heartbeat(self) -> None:
        """Ship new lines and snapshots, or an empty segment, which shows that the node is alive."""
        with self._lock:
            before = self._number
            complete = self._snapshots()  # before the lines, which name them
            self._ship_lines(list_logs(self._folder))
            for snapshot in sorted(complete - self._saved):
                self._saved.add(snapshot)
                self._ship_file(snapshot, partial_of(snapshot))
            if self._number == before:
                self._send_next([], [])

    def finish(self) -> None:
        """Ship everything that remains after the run has ended, including its results."""
        self.heartbeat()
        with self._lock:
            for path in (self._folder / name for name in RESULTS):
                if path.exists():
                    self._ship_file(path, partial_of(path))

    def _ship_lines(self, logs: Sequence[Path]) -> None:
        for path in logs:
            while True:
                offset = self._sent.get(path, 0)
                if not path.exists() or path.stat().st_size <= offset:
                    break
                content = _read(path, offset)
                complete = content.rfind(b"\n") + 1
                if not complete and len(content) < MAX_BYTES:
                    break  # a line that is being written
                content = content[: complete or len(content)]
                self._send_next([Piece(self._name(path), offset, content)], [])
                self._sent[path] = offset + len(content)

    def _ship_file(self, path: Path, partial: Path) -> None:
        """Ship a file or a folder under a partial name, then rename it. If it is deleted meanwhile, it is skipped."""
        try:
            files = [file for file in walk_folder(path) if not file.is_dir()] if path.is_dir() else [path]
            for file in files:
                target = partial / file.relative_to(path) if path.is_dir() else partial
                for offset, content in _chunks(file):
                    self._send_next([Piece(self._name(target), offset, content)], [])
        except FileNotFoundError:  # a snapshot that newer ones replaced
            return
        self._send_next([], [(self._name(partial), self._name(path))])

    def _send_next(self, pieces: Sequence[Piece], renames: Sequence[tuple[str, str]]) -> None:
        answer = self._send(Segment.seal(self._folder.name, self._lease, self._number + 1, pieces, renames))
        if answer == "not yours":
            raise StoppedError("the run has been moved to another node")
        self._number += 1
        self.stopped = answer == "stop"

    def _snapshots(self) -> set[Path]:
        """Return the newest snapshot of each conversation."""
        return {each.path(turn) for each in list_snapshots(self._folder) for turn in each.turns()[-1:]}

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _read(path: Path, offset: int) -> bytes:
    with open_file(path, "rb") as file:
        file.seek(offset)
        return file.read(MAX_BYTES)


def _chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield a file's content in chunks with their offsets. An empty file yields one empty chunk."""
    with open_file(path, "rb") as file:
        offset = 0
        while content := file.read(MAX_BYTES):
            yield offset, content
            offset += len(content)
        if not offset:
            yield 0, b""
