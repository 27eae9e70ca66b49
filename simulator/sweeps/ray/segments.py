"""What a node ships of a run that it plays: the new bytes of its files, in numbered, checksummed segments."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from longspan.simulator.errors import StoppedError
from longspan.simulator.files import partial_of
from longspan.simulator.run_folder import MANIFEST

__all__ = ["Answer", "Piece", "Segment", "Shipper", "logs"]

LARGEST: Final = 4 * 2**20
"""Bytes of files that one segment holds at most."""

Answer = Literal["go on", "stop", "not yours"]
"""What a node is told for a segment: that it has been kept; also that the sweep is to stop; or that the run is another's."""


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file in a run's folder, from `offset` on, which is how long the file was before."""

    path: str
    offset: int
    content: bytes


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """Segment `number`, from 1 on, of those that the owner of lease `lease` ships of a run. `named`: what is whole now, a file
    or a snapshot's folder, with the name under which it was shipped and the one that it gets."""

    run: str
    lease: int
    number: int
    pieces: tuple[Piece, ...]
    named: tuple[tuple[str, str], ...]
    sha256: str

    @classmethod
    def seal(cls, run: str, lease: int, number: int, pieces: Sequence[Piece] = (), named: Sequence[tuple[str, str]] = ()) -> Segment:
        """A segment with its checksum."""
        return cls(run, lease, number, tuple(pieces), tuple(named), _digest(run, lease, number, pieces, named))

    @property
    def whole(self) -> bool:
        """Whether it came as it was sealed."""
        return self.sha256 == _digest(self.run, self.lease, self.number, self.pieces, self.named)


def _digest(run: str, lease: int, number: int, pieces: Sequence[Piece], named: Sequence[tuple[str, str]]) -> str:
    digest = hashlib.sha256(repr((run, lease, number, tuple(named))).encode())
    for piece in pieces:
        digest.update(repr((piece.path, piece.offset, len(piece.content))).encode())
        digest.update(piece.content)
    return digest.hexdigest()


def logs(folder: Path) -> list[Path]:
    """The files of a run that only ever grow, line by line: its journals, and what is noted beside them."""
    return sorted([*folder.glob("conversations/*/journal.jsonl"), *folder.glob("*.jsonl")])


@final
class Shipper:
    """Ships a run that is played in `folder`, as owner of `lease`, by `send`. What lies there when it is made is known already.

    May be used from several threads. `send` gives the answer to a segment; what it raises goes through.
    """

    def __init__(self, folder: Path, lease: int, send: Callable[[Segment], Answer]) -> None:
        self._folder = folder
        self._lease = lease
        self._send = send
        self._number = 0
        self._turn = threading.Lock()
        self._sent = {path: path.stat().st_size for path in logs(folder)}
        self._saved = set(self._snapshots())
        self.stopped = False

    def ship(self, *logs_: Path) -> None:
        """Ship the new lines of these logs, or of all. Raises StoppedError where the run is another's by now."""
        with self._turn:
            self._lines(logs_ or logs(self._folder))

    def beat(self) -> None:
        """The same each second, with new snapshots; something is always sent, so that the other side knows that the run is played."""
        with self._turn:
            before = self._number
            self._lines(logs(self._folder))
            for snapshot in set(self._snapshots()) - self._saved:
                self._saved.add(snapshot)
                self._whole(snapshot, partial_of(snapshot))
            if self._number == before:
                self._put([], [])

    def end(self) -> None:
        """The run is over: ship all that is left, its results included."""
        self.beat()
        with self._turn:
            for path in sorted(self._folder.iterdir()):
                if path.is_file() and path.suffix != ".jsonl" and path.name != MANIFEST and not path.name.startswith("."):
                    self._whole(path, partial_of(path))

    def _lines(self, logs: Sequence[Path]) -> None:
        for path in logs:
            while True:
                offset = self._sent.get(path, 0)
                if not path.exists() or path.stat().st_size <= offset:
                    break
                content = _read(path, offset)
                whole = content.rfind(b"\n") + 1
                if not whole and len(content) < LARGEST:
                    break  # a line that is being written
                content = content[: whole or len(content)]
                self._put([Piece(self._name(path), offset, content)], [])
                self._sent[path] = offset + len(content)

    def _whole(self, path: Path, partial: Path) -> None:
        """Ship a file or a folder under a name of its own, until it is whole. One that goes meanwhile is let be."""
        try:
            for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
                target = partial / file.relative_to(path) if path.is_dir() else partial
                for offset, content in _parts(file):
                    self._put([Piece(self._name(target), offset, content)], [])
        except FileNotFoundError:  # a snapshot that made room for newer ones
            return
        self._put([], [(self._name(partial), self._name(path))])

    def _put(self, pieces: Sequence[Piece], named: Sequence[tuple[str, str]]) -> None:
        answer = self._send(Segment.seal(self._folder.name, self._lease, self._number + 1, pieces, named))
        if answer == "not yours":
            raise StoppedError("the run is played by another node by now")
        self._number += 1
        self.stopped = answer == "stop"

    def _snapshots(self) -> list[Path]:
        """The newest snapshot of each conversation."""
        newest = []
        for folder in self._folder.glob("conversations/*/snapshots"):
            newest += sorted((path for path in folder.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))[-1:]
        return newest

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _read(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(LARGEST)


def _parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """A file's content in parts, with their offsets; an empty file has an empty one."""
    with path.open("rb") as file:
        offset = 0
        while content := file.read(LARGEST):
            yield offset, content
            offset += len(content)
        if not offset:
            yield 0, b""
