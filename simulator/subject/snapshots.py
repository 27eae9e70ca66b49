"""Snapshots of an agent: each is written to a new folder, synced and renamed. The newest two are kept."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, final

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import AgentError, JournalError, first_problem
from longspan.simulator.contract.agent import Agent
from longspan.simulator.files.folders import below, inside, open_file, remove
from longspan.simulator.files.json_lines import JsonLines
from longspan.simulator.files.owners import Owner
from longspan.simulator.files.reading import partial_of

__all__ = ["RECORD", "Snapshots"]

KEPT: Final = 2
"""The number of snapshots that are kept."""

BLOCK: Final = 2**20
"""The number of bytes read at once."""

RECORD: Final = "snapshots.jsonl"
"""The record of a conversation's snapshots. It lies beside their folder."""


@final
class _Entry(BaseModel):
    """A line of the record. Without `sha256`, saving the snapshot before turn `turn` has begun; with it, the snapshot is complete."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn: int = Field(ge=0, le=10**9)
    sha256: str | None = None


@final
class Snapshots:
    """The snapshots of one conversation's agent in `folder`, each in a subfolder named after the turn that follows it.

    The record beside the folder gets a line before anything is written to the folder. It gets another, with a digest, when a snapshot is
    complete but before its folder has its final name. Only subfolders that the record names are deleted, and only those with a digest in it
    are loaded. Every method raises JournalError for a damaged record, and for another conversation's.

    `owner`: the run and the conversation that the record must name. `copied`: agents are restored from copies, nothing in the folder is
    changed, and no snapshot is saved. `until`: snapshots before later turns are not used.
    """

    def __init__(self, folder: Path, owner: Owner | None = None, *, copied: bool = False, until: int | None = None) -> None:
        self.copied = copied
        self._folder = folder
        self._until = until
        self._pinned: set[int] = set()
        self._lines = JsonLines(folder.with_name(RECORD), owner)

    async def save(self, agent: Agent, turn: int) -> None:
        """Save the agent before turn `turn`, and delete all snapshots but the newest two and any that are pinned.

        Raises AgentError if the agent fails, and JournalError for a disk error or anything in the way.
        """
        partial = partial_of(self.path(turn))
        try:
            await trio.to_thread.run_sync(self._begin, turn)
            await agent.save(partial)
            await trio.to_thread.run_sync(self._publish, turn)
        except OSError as error:
            raise JournalError(f"{partial}: cannot save the agent: {error.strerror or error}") from error

    async def restore(self, agent: Agent, turn: int) -> int:
        """Load the newest good snapshot that is not newer than turn `turn`, and delete newer and damaged ones.

        Return the turn that follows it, or 0 if there is none.
        """
        turns = self.turns()
        turn = turn if self._until is None else min(turn, self._until)
        if self.copied:
            return await self._restore_copy(agent, [number for number in turns if number <= turn])
        for newer in (number for number in turns if number > turn):
            remove(self.path(newer))
        for number in reversed([number for number in turns if number <= turn]):
            if await trio.to_thread.run_sync(self._is_good, number):
                try:
                    await agent.load(self.path(number))
                    return number
                except AgentError:  # damaged: try the one before it
                    await agent.reset()  # first, because if even this fails, the agent is unreachable and the snapshot may be good
            remove(self.path(number))
        return 0

    async def _restore_copy(self, agent: Agent, turns: list[int]) -> int:
        with TemporaryDirectory(prefix="longspan-") as temporary:
            for number in reversed(turns):
                copy = Path(temporary) / str(number)
                if await trio.to_thread.run_sync(self._copy, number, copy):
                    try:
                        await agent.load(copy)
                        return number
                    except AgentError:
                        await agent.reset()
        return 0

    def _copy(self, turn: int, copy: Path) -> bool:
        """Copy a snapshot. Return whether the copy matches the snapshot as it was saved."""
        with suppress(OSError):
            if self._is_good(turn):
                shutil.copytree(self.path(turn), copy, symlinks=True)
                return _digest(copy) in self._digests[turn]
        return False

    def newest(self, turn: int) -> int:
        """Return the turn that follows the newest snapshot not newer than `turn`, or 0 if there is none."""
        turn = turn if self._until is None else min(turn, self._until)
        return max((number for number in self.turns() if number <= turn), default=0)

    def path(self, turn: int) -> Path:
        """Return the folder of the snapshot before turn `turn`."""
        return self._folder / f"{turn:08d}"

    def turns(self) -> list[int]:
        """Return the turns of the snapshots that exist, in order."""
        return sorted(int(path.name) for path in self._own() if path.name.isdecimal())

    def pin(self, turn: int) -> None:
        """Keep the snapshot before turn `turn` until `unpin`. It may not have been saved yet."""
        self._pinned.add(turn)

    def unpin(self) -> None:
        """Keep only the newest two snapshots."""
        self._pinned.clear()
        self.prune()

    def prune(self) -> None:
        """Delete all snapshots but the newest two and any that are pinned. Disk errors are ignored."""
        for turn in [number for number in self.turns() if number not in self._pinned][:-KEPT]:
            remove(self.path(turn))

    def clear(self) -> None:
        """Delete incomplete snapshots left by a crash. Disk errors are ignored."""
        for path in self._own():
            if not path.name.isdecimal():
                remove(path)

    def owns(self, path: Path) -> bool:
        """Return whether the record names the folder at a path, as a snapshot or as an incomplete one."""
        digits = path.name.removeprefix(".").removesuffix(".partial")
        turn = int(digits) if digits.isascii() and digits.isdecimal() else None
        return turn in self._digests and path in (self.path(turn), partial_of(self.path(turn)))

    @cached_property
    def _digests(self) -> dict[int, set[str]]:
        """The digests of each snapshot that the record names. A snapshot that was saved again has several."""
        digests: dict[int, set[str]] = {}
        try:
            for entry in map(_Entry.model_validate, self._lines.read()):
                digests.setdefault(entry.turn, set()).update([entry.sha256] if entry.sha256 else [])
        except (JournalError, ValidationError) as error:
            why = f"{self._lines.path}: {first_problem(error)}" if isinstance(error, ValidationError) else str(error)
            remedy = f"delete it and {self._folder.name}/ beside it, and the agent is shown every turn again"
            raise JournalError(f"{why}; {remedy}") from None
        return digests

    def _own(self) -> list[Path]:
        """Return the subfolders that the record names, complete or not."""
        folder = inside(self._folder.parent, self._folder.name)
        entries = list(os.scandir(folder)) if folder.is_dir() else []
        return [path for entry in entries if entry.is_dir(follow_symlinks=False) and self.owns(path := Path(entry.path))]

    def _is_good(self, turn: int) -> bool:
        """Return whether a snapshot is unchanged since it was saved."""
        try:
            return _digest(self.path(turn)) in self._digests[turn]
        except (OSError, JournalError):
            return False

    def _record(self, entry: _Entry) -> None:
        self._lines.append(entry.model_dump(exclude_none=True))
        self._digests.setdefault(entry.turn, set()).update([entry.sha256] if entry.sha256 else [])

    def _begin(self, turn: int) -> None:
        """Make an empty folder for an incomplete snapshot."""
        done = self.path(turn)
        partial = partial_of(done)
        inside(self._folder.parent, self._folder.name).mkdir(parents=True, exist_ok=True)
        if turn not in self._digests:
            for path in (done, partial):
                if os.path.lexists(path):
                    raise JournalError(f"{path}: is in the way of a snapshot, and {RECORD} does not name it; move it elsewhere")
            self._record(_Entry(turn=turn))
        remove(partial)
        partial.mkdir()

    def _publish(self, turn: int) -> None:
        """Sync a folder with its content, record it, then rename it."""
        done = self.path(turn)
        partial = partial_of(done)
        for path in [*below(partial), partial]:
            _sync(path)
        self._record(_Entry(turn=turn, sha256=_digest(partial)))
        remove(done)
        partial.rename(done)
        _sync(done.parent)
        self.prune()
        self.clear()


def _digest(folder: Path) -> str:
    """Return the SHA-256, in hexadecimal, of the names and contents of all files below a folder.

    Raises OSError, and JournalError for anything but regular files and folders.
    """
    digest = hashlib.sha256()
    for path in below(folder):
        if not path.is_dir():
            content = hashlib.sha256()
            with open_file(path, "rb") as file:
                while block := file.read(BLOCK):
                    content.update(block)
            digest.update(repr((os.fsencode(path.relative_to(folder).as_posix()), content.hexdigest())).encode())
    return digest.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
