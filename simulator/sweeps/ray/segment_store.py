"""The depot: where the segments of a sweep's runs arrive. It knows who owns each run, and writes what the owner ships, nobody else."""

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

__all__ = ["Depot"]

SYNC: Final = 1.0
"""Seconds after which what has come is synced to the disk, as a journal is while it is played here."""

KEPT: Final = 2
"""Snapshots kept of each conversation."""


@final
@dataclass(slots=True)
class _Owned:
    """A run: the `lease` of its owner, how many of the owner's segments have come, and when the owner was last heard of (None:
    it has not begun)."""

    folder: RunFolder
    lease: int = 0
    number: int = 0
    heard_at: float | None = None
    synced_at: float = 0.0
    held: ExitStack = field(default_factory=ExitStack)


@final
class Depot:
    """The runs of a sweep that are played elsewhere, by the names of their folders. Each belongs to the owner of its newest
    lease: what comes with an older one is refused.

    While it has an owner, a run's folder is locked against other processes, as if it was played here.
    """

    def __init__(self, folders: Mapping[str, Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._runs = {name: _Owned(RunFolder(path)) for name, path in folders.items()}
        self._clock = clock
        self.stopping = False

    def grant(self, name: str, why: str | None = None) -> int:
        """A new lease of a run; from now on the one before is void, for the reason `why`, which is noted.

        Raises InputError where another process plays the run.
        """
        owned = self._runs[name]
        if owned.lease == 0:
            owned.held.enter_context(owned.folder.lock())
        owned.lease, owned.number, owned.heard_at = owned.lease + 1, 0, None
        _clear(owned.folder.path)
        if why is not None:
            owned.folder.incident(conversation="", type="moved", error=why)
        return owned.lease

    def fetch(self, name: str, lease: int) -> dict[str, bytes] | None:
        """What the owner needs to go on with a run: its manifest, logs and snapshots, by path. None: it is not to begin."""
        owned = self._runs[name]
        if lease != owned.lease or self.stopping:
            return None
        owned.heard_at = self._clock()
        folder = owned.folder.path
        files = [folder / MANIFEST, *logs(folder), *folder.glob("conversations/*/snapshots/*/**/*")]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files if path.is_file() and not path.is_symlink()}

    def take(self, segment: Segment) -> Answer:
        """Keep a segment, if it is the owner's next. One that has come before, its answer having been lost, is kept already.

        Raises JournalError for one that is damaged, out of its order, or does not fit to what is there.
        """
        owned = self._runs[segment.run]
        if segment.lease != owned.lease:
            return "not yours"
        what = f"{segment.run}: segment {segment.number} of lease {segment.lease}"
        if not segment.whole:
            raise JournalError(f"{what} was damaged on its way")
        if segment.number not in (owned.number, owned.number + 1):
            raise JournalError(f"{what} came after segment {owned.number}")
        if segment.number == owned.number + 1:
            try:
                self._keep(owned, segment, what)
            except OSError as error:
                raise JournalError(f"{what} cannot be written: {error.strerror}") from error
        owned.number, owned.heard_at = segment.number, self._clock()
        return "stop" if self.stopping else "go on"

    def quiet(self, seconds: float) -> list[tuple[str, int]]:
        """The runs, with their leases, whose owners began and were not heard of for so long."""
        now = self._clock()
        return [(name, owned.lease) for name, owned in self._runs.items() if owned.heard_at is not None and now - owned.heard_at > seconds]

    def begun(self, name: str, lease: int) -> bool:
        """Whether the owner of a lease has begun."""
        owned = self._runs[name]
        return lease == owned.lease and owned.heard_at is not None

    def release(self, name: str) -> None:
        """The run has no owner any more."""
        owned = self._runs[name]
        owned.lease, owned.heard_at = owned.lease + 1, None
        owned.held.close()

    def _keep(self, owned: _Owned, segment: Segment, what: str) -> None:
        folder = owned.folder.path
        for name in [*(piece.path for piece in segment.pieces), *(name for pair in segment.named for name in pair)]:
            _within(folder, name, what)  # all of it, before any of it is written
        sync = bool(segment.named) or self._clock() - owned.synced_at > SYNC
        for piece in segment.pieces:
            path = _within(folder, piece.path, what)
            size = path.stat().st_size if path.exists() else 0
            if size != piece.offset:
                raise JournalError(f"{what}: {piece.path} has {size:,} bytes here, and should have {piece.offset:,}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(piece.content)
                file.flush()
                if sync or path.suffix != ".jsonl":
                    os.fsync(file.fileno())
        if sync:
            owned.synced_at = self._clock()
        for partial, name in segment.named:
            source, target = _within(folder, partial, what), _within(folder, name, what)
            if target.is_dir():
                shutil.rmtree(target)
            source.replace(target)
            if target.is_dir():
                _prune(target.parent)


def _within(folder: Path, name: str, what: str) -> Path:
    """A path in a run's folder, other than its manifest and its lock. Raises JournalError for any other."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or path.parts[0] in (MANIFEST, ".lock"):
        raise JournalError(f"{what}: nothing is written to {name!r:.100}")
    found = folder
    for part in path.parts:
        found = found / part
        if found.is_symlink():
            raise JournalError(f"{what}: {name!r:.100} is a link; nothing is written to what lies elsewhere")
    return found


def _clear(folder: Path) -> None:
    """Take away what an owner that has gone left half-shipped."""
    for log in logs(folder):
        cut_torn(log)
    for partial in [*folder.glob(".*.partial"), *folder.glob("conversations/*/snapshots/.*.partial")]:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _prune(snapshots: Path) -> None:
    known = sorted((path for path in snapshots.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
    for path in known[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
