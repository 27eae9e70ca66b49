"""Receives the segments of a sweep's runs, and writes those from a run's current owner."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, final

from longspan.simulator.base.errors import JournalError
from longspan.simulator.base.files.file_io import partial_of
from longspan.simulator.base.files.folders import open_file, path_inside, read_file, remove_folder, walk_folder
from longspan.simulator.base.files.json_lines import cut_torn
from longspan.simulator.journal.run_folder import MANIFEST, RESULTS, RunFolder
from longspan.simulator.running.sweeps.ray.segments import Answer, Segment, list_logs, list_snapshots
from longspan.simulator.subject.snapshots import Snapshots

__all__ = ["SegmentStore"]

SYNC_INTERVAL: Final = 1.0
"""The number of seconds between syncs to the disk, as for a journal that is played locally."""


@final
@dataclass(slots=True)
class _OwnedRun:
    """A run and its owner.

    `lease` is the owner's lease, `number` the number of segments received under it, and `last_seen` the time of its last segment (None if
    it has not started).
    """

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
        self._runs = {name: _OwnedRun(RunFolder(path)) for name, path in folders.items()}
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
        """Return the files that the owner needs to continue a run: its manifest, logs and snapshots, by path. None if it must not start."""
        owned = self._runs[name]
        if lease != owned.lease or self.stopping:
            return None
        owned.last_seen = self._clock()
        folder = owned.folder.path
        saved = [
            path for each in list_snapshots(folder) for turn in each.turns() for path in walk_folder(each.path(turn)) if not path.is_dir()
        ]
        return {path.relative_to(folder).as_posix(): read_file(path) for path in [folder / MANIFEST, *list_logs(folder), *saved]}

    def take(self, segment: Segment) -> Answer:
        """Store a segment if it is the owner's next one. A segment sent again, because the answer was lost, is accepted.

        Raises JournalError if it is damaged or out of order, or does not match the stored files.
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
        """Return whether the owner of a lease has started."""
        owned = self._runs[name]
        return lease == owned.lease and owned.last_seen is not None

    def release(self, name: str) -> None:
        """Take a run away from its owner."""
        owned = self._runs[name]
        owned.lease, owned.last_seen = owned.lease + 1, None
        owned.locks.close()

    def _keep(self, owned: _OwnedRun, segment: Segment, what: str) -> None:
        folder = owned.folder.path
        for piece in segment.pieces:
            _within(folder, piece.path, what)  # check all before writing any
        for partial, name in segment.renames:
            _check_rename(_within(folder, partial, what), _within(folder, name, what), folder, what)
        sync = bool(segment.renames) or self._clock() - owned.synced_at > SYNC_INTERVAL
        for piece in segment.pieces:
            path = _within(folder, piece.path, what)
            size = path.stat().st_size if path.exists() else 0
            if size != piece.offset:
                raise JournalError(f"{what}: {piece.path}: expected {piece.offset:,} bytes here, got {size:,}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_file(path, "ab") as file:
                file.write(piece.content)
                file.flush()
                if sync or path.suffix != ".jsonl":
                    os.fsync(file.fileno())
        if sync:
            owned.synced_at = self._clock()
        for partial, name in segment.renames:
            source, target = _within(folder, partial, what), _within(folder, name, what)
            if target.name not in RESULTS:
                remove_folder(target)  # a snapshot that is saved again
            source.replace(target)
            if target.is_dir():
                Snapshots(target.parent).prune()


def _within(folder: Path, name: str, what: str) -> Path:
    """Return the path `name` in a run's folder. Raises JournalError outside it, for its manifest and lock, and for a link on the way."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0] in (MANIFEST, ".lock"):
        raise JournalError(f"{what}: cannot write to {name!r:.100}: it is protected or outside the run's folder")
    return path_inside(folder, *path.parts[:-1]) / path.name


def _check_rename(source: Path, target: Path, folder: Path, what: str) -> None:
    """Raise JournalError unless a file with results, or a snapshot that the run's records name, is complete now."""
    if source == partial_of(target):
        if target.parent == folder and target.name in RESULTS:
            return
        if any(each.owns(target) for each in list_snapshots(folder)):
            return
    raise JournalError(f"{what}: cannot rename {source.name!r:.100} to {target.name!r:.100}: the run's records do not name it")


def _clear(folder: Path) -> None:
    """Remove files that a lost owner shipped only in part."""
    for log in list_logs(folder):
        cut_torn(log)
    for name in RESULTS:
        partial_of(folder / name).unlink(missing_ok=True)
    for each in list_snapshots(folder):
        each.clear()
