"""Snapshots of an agent. Each is written to a new folder, synced and renamed, so a crash leaves no half-written one. Two are kept."""

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
from longspan.simulator.base.files.file_io import partial_of
from longspan.simulator.base.files.folders import open_file, path_inside, remove_folder, walk_folder
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.contract.agent import Agent

__all__ = ["RECORD", "Snapshots"]

KEPT: Final = 2
"""The number of snapshots to keep. The older one serves if the newest is damaged."""

BLOCK: Final = 2**20
"""The number of bytes read in one go."""

RECORD: Final = "snapshots.jsonl"
"""The record of a conversation's snapshots, in the folder that contains the snapshots' folder."""


@final
class _Entry(BaseModel):
    """A line of the record. `turn` is the turn after the snapshot. A line without `sha256` means started, with it complete."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    turn: int = Field(ge=0, le=10**9)
    sha256: str | None = None


@final
class Snapshots:
    """The snapshots of one conversation's agent. Each is a subfolder of `folder`, named after the turn that follows it.

    The record gets a line before anything is written to the folder. It gets a second one, with a digest, when a snapshot is complete, just
    before its folder gets its final name. Only subfolders in the record are deleted, so a user's own folder is safe. Only snapshots with a
    digest are loaded. Every method raises JournalError if the record is damaged or belongs to another conversation.

    `owner`: the expected run and conversation. `copied`: read-only mode; agents are restored from copies and no snapshot is saved. `until`:
    ignore snapshots before later turns.
    """

    def __init__(self, folder: Path, owner: Owner | None = None, *, copied: bool = False, until: int | None = None) -> None:
        self.copied = copied
        self._folder = folder
        self._until = until
        self._pinned: set[int] = set()
        self._lines = JsonLines(folder.with_name(RECORD), owner)

    async def save(self, agent: Agent, turn: int) -> None:
        """Save the agent before turn `turn`. Delete other snapshots, except for the newest two and any pinned ones.

        Raises AgentError if the agent fails, and JournalError for a disk error or a file in the way.
        """
        partial = partial_of(self.path(turn))
        try:
            await trio.to_thread.run_sync(self._begin, turn)
            await agent.save(partial)
            await trio.to_thread.run_sync(self._publish, turn)
        except OSError as error:
            raise JournalError(f"{partial}: cannot save the agent: {error.strerror or error}") from error

    async def restore(self, agent: Agent, turn: int) -> int:
        """Load the newest intact snapshot not after turn `turn`. Delete later and damaged ones.

        Returns the turn after the snapshot, or 0 if no snapshot could be loaded.
        """
        turns = self.turns()
        turn = turn if self._until is None else min(turn, self._until)
        if self.copied:
            return await self._restore_copy(agent, [number for number in turns if number <= turn])
        for newer in (number for number in turns if number > turn):
            remove_folder(self.path(newer))
        for number in reversed([number for number in turns if number <= turn]):
            if await trio.to_thread.run_sync(self._is_good, number):
                try:
                    await agent.load(self.path(number))
                    return number
                except AgentError:  # damaged: try the snapshot before it
                    # Reset before deleting. If even this fails, the agent is unreachable, and the snapshot may be intact.
                    await agent.reset()
            remove_folder(self.path(number))
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
        """Copy a snapshot. Return whether the copy matches the digest in the record."""
        with suppress(OSError):
            if self._is_good(turn):
                shutil.copytree(self.path(turn), copy, symlinks=True)
                return _digest(copy) in self._digests[turn]
        return False

    def newest(self, turn: int) -> int:
        """Return the turn after the newest snapshot not after `turn`, or 0 without one."""
        turn = turn if self._until is None else min(turn, self._until)
        return max((number for number in self.turns() if number <= turn), default=0)

    def path(self, turn: int) -> Path:
        """Return the folder of the snapshot before turn `turn`."""
        return self._folder / f"{turn:08d}"

    def turns(self) -> list[int]:
        """Return the turns of existing snapshots, in order."""
        return sorted(int(path.name) for path in self._own() if path.name.isdecimal())

    def pin(self, turn: int) -> None:
        """Keep the snapshot before turn `turn` until `unpin`, even if it is saved later."""
        self._pinned.add(turn)

    def unpin(self) -> None:
        """Drop all pins, and delete all but the newest two snapshots."""
        self._pinned.clear()
        self.prune()

    def prune(self) -> None:
        """Delete all but the newest two snapshots and any pinned ones. Disk errors are ignored."""
        for turn in [number for number in self.turns() if number not in self._pinned][:-KEPT]:
            remove_folder(self.path(turn))

    def clear(self) -> None:
        """Delete incomplete snapshots, which a crash may leave. Disk errors are ignored."""
        for path in self._own():
            if not path.name.isdecimal():
                remove_folder(path)

    def owns(self, path: Path) -> bool:
        """Return whether the record names the folder at a path, as a complete or incomplete snapshot."""
        digits = path.name.removeprefix(".").removesuffix(".partial")
        turn = int(digits) if digits.isascii() and digits.isdecimal() else None
        return turn in self._digests and path in (self.path(turn), partial_of(self.path(turn)))

    @cached_property
    def _digests(self) -> dict[int, set[str]]:
        """The digests of each snapshot in the record. A snapshot that was saved more than once has several."""
        digests: dict[int, set[str]] = {}
        try:
            for entry in map(_Entry.model_validate, self._lines.read()):
                digests.setdefault(entry.turn, set()).update([entry.sha256] if entry.sha256 else [])
        except (JournalError, ValidationError) as error:
            why = f"{self._lines.path}: {first_problem(error)}" if isinstance(error, ValidationError) else str(error)
            remedy = f"delete it and {self._folder.name}/ next to it; the agent will then read every turn again"
            raise JournalError(f"{why}; {remedy}") from None
        return digests

    def _own(self) -> list[Path]:
        """Return the subfolders that the record names, complete or not."""
        folder = path_inside(self._folder.parent, self._folder.name)
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
        """Create an empty folder for an incomplete snapshot."""
        done = self.path(turn)
        partial = partial_of(done)
        path_inside(self._folder.parent, self._folder.name).mkdir(parents=True, exist_ok=True)
        if turn not in self._digests:
            for path in (done, partial):
                if os.path.lexists(path):
                    raise JournalError(f"{path}: is in the way of a snapshot, and {RECORD} does not name it; move it elsewhere")
            self._record(_Entry(turn=turn))
        remove_folder(partial)
        partial.mkdir()

    def _publish(self, turn: int) -> None:
        """Sync a folder and its content, record it, then rename it."""
        done = self.path(turn)
        partial = partial_of(done)
        for path in [*walk_folder(partial), partial]:
            _sync(path)
        self._record(_Entry(turn=turn, sha256=_digest(partial)))
        remove_folder(done)
        partial.rename(done)
        _sync(done.parent)
        self.prune()
        self.clear()


def _digest(folder: Path) -> str:
    """Return the SHA-256, in hexadecimal, of the names and contents of all files below a folder.

    Raises OSError, and JournalError for anything but regular files and folders.
    """
    digest = hashlib.sha256()
    for path in walk_folder(folder):
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
