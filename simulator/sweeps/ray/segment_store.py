"""Receives the segments of a sweep's runs, and writes those that the current owner of a run ships."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, final

from longspan.simulator.errors import JournalError
from longspan.simulator.json_lines import cut_torn
from longspan.simulator.run_folder import MANIFEST, RunFolder
from longspan.simulator.sweeps.ray.segments import Answer, Segment, logs

__all__ = ["SegmentStore"]

SYNC_INTERVAL: Final = 1.0
"""Seconds between syncs to the disk, as for a journal that is played locally."""

MAX_SNAPSHOTS: Final = 2
"""Snapshots kept of each conversation."""


@final
@dataclass(slots=True)
class _Owned:
    """A run: the `lease` of its owner, the `number` of segments received under it, and when the owner was last seen (None: it
    has not started)."""

    folder: RunFolder
    lease: int = 0
    number: int = 0
    last_seen: float | None = None
    synced_at: float = 0.0
    locks: ExitStack = field(default_factory=ExitStack)


@final
class SegmentStore:
    """The runs of a sweep that are played on other nodes, by the names of their folders.

    A run belongs to the owner of its newest lease. Segments of older leases are refused. While a run has an owner, its folder
    is locked against other processes.
    """

    def __init__(self, folders: Mapping[str, Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._runs = {name: _Owned(RunFolder(path)) for name, path in folders.items()}
        self._clock = clock
        self.stopping = False

    def grant(self, name: str, why: str | None = None) -> int:
        """Grant a new lease of a run, which voids the one before. The reason, `why`, is recorded as an incident.

        Raises InputError if another process is playing the run.
        """
        owned = self._runs[name]
        if owned.lease == 0:
            owned.locks.enter_context(owned.folder.lock())
        owned.lease, owned.number, owned.last_seen = owned.lease + 1, 0, None
        _clear(owned.folder.path)
        if why is not None:
            owned.folder.incident(conversation="", type="moved", error=why)
        return owned.lease

    def fetch(self, name: str, lease: int) -> dict[str, bytes] | None:
        """Return what the owner needs to continue a run: its manifest, logs and snapshots, by path. None: it must not start."""
        owned = self._runs[name]
        if lease != owned.lease or self.stopping:
            return None
        owned.last_seen = self._clock()
        folder = owned.folder.path
        files = [folder / MANIFEST, *logs(folder), *folder.glob("conversations/*/snapshots/*/**/*")]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files if path.is_file() and not path.is_symlink()}

    def take(self, segment: Segment) -> Answer:
        """Store a segment if it is the owner's next one. One that is sent again, since the answer was lost, is accepted.

        Raises JournalError if it is damaged or out of order, or does not match the files that are here.
        """
        owned = self._runs[segment.run]
        if segment.lease != owned.lease:
            return "not yours"
        what = f"{segment.run}: segment {segment.number} of lease {segment.lease}"
        if not segment.intact:
            raise JournalError(f"{what} was damaged in transit")
        if segment.number not in (owned.number, owned.number + 1):
            raise JournalError(f"{what} is out of order after segment {owned.number}")
        if segment.number == owned.number + 1:
            try:
                self._keep(owned, segment, what)
            except OSError as error:
                raise JournalError(f"{what} cannot be written: {error.strerror}") from error
        owned.number, owned.last_seen = segment.number, self._clock()
        return "stop" if self.stopping else "continue"

    def silent_owners(self, seconds: float) -> list[tuple[str, int]]:
        """Return the runs, with their leases, whose owners have started and sent nothing for this long."""
        now = self._clock()
        return [
            (name, owned.lease) for name, owned in self._runs.items() if owned.last_seen is not None and now - owned.last_seen > seconds
        ]

    def has_started(self, name: str, lease: int) -> bool:
        """Whether the owner of a lease has started."""
        owned = self._runs[name]
        return lease == owned.lease and owned.last_seen is not None

    def release(self, name: str) -> None:
        """Take a run from its owner."""
        owned = self._runs[name]
        owned.lease, owned.last_seen = owned.lease + 1, None
        owned.locks.close()

    def _keep(self, owned: _Owned, segment: Segment, what: str) -> None:
        folder = owned.folder.path
        for name in [*(piece.path for piece in segment.pieces), *(name for pair in segment.renames for name in pair)]:
            _within(folder, name, what)  # check all before writing any
        sync = bool(segment.renames) or self._clock() - owned.synced_at > SYNC_INTERVAL
        for piece in segment.pieces:
            path = _within(folder, piece.path, what)
            size = path.stat().st_size if path.exists() else 0
            if size != piece.offset:
                raise JournalError(f"{what}: {piece.path}: expected {piece.offset:,} bytes here, got {size:,}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(piece.content)
                file.flush()
                if sync or path.suffix != ".jsonl":
                    os.fsync(file.fileno())
        if sync:
            owned.synced_at = self._clock()
        for partial, name in segment.renames:
            source, target = _within(folder, partial, what), _within(folder, name, what)
            if target.is_dir():
                shutil.rmtree(target)
            source.replace(target)
            if target.is_dir():
                _prune(target.parent)


def _within(folder: Path, name: str, what: str) -> Path:
    """Return the path `name` in a run's folder. Raises JournalError outside it, and for its manifest and lock."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0] in (MANIFEST, ".lock"):
        raise JournalError(f"{what}: cannot write to {name!r:.100}: it is protected or outside the run's folder")
    current = folder
    for part in path.parts:
        current = current / part
        if current.is_symlink():
            raise JournalError(f"{what}: {name!r:.100} is a link, and links are not followed")
    return current


def _clear(folder: Path) -> None:
    """Remove what a lost owner shipped in part."""
    for log in logs(folder):
        cut_torn(log)
    for partial in [*folder.glob(".*.partial"), *folder.glob("conversations/*/snapshots/.*.partial")]:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _prune(snapshots: Path) -> None:
    known = sorted((path for path in snapshots.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
    for path in known[:-MAX_SNAPSHOTS]:
        shutil.rmtree(path, ignore_errors=True)
