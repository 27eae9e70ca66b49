"""Snapshots of an agent: each is written to a new folder, synced and renamed. The newest two are kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, final

import trio

from longspan.simulator.agent import Agent
from longspan.simulator.errors import AgentError, JournalError
from longspan.simulator.files import partial_of

__all__ = ["Snapshots"]

KEPT: Final = 2
"""Snapshots that are kept."""


@final
class Snapshots:
    """The snapshots of one conversation's agent in `folder`, each in a subfolder named after the turn it was taken before.

    A subfolder with such a name is complete, because it is only renamed to it after its content was synced.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, agent: Agent, turn: int) -> None:
        """Save the agent before turn `turn`, and delete all but the newest two snapshots.

        Raises AgentError if the agent fails, JournalError for a disk error.
        """
        done = self._path(turn)
        partial = partial_of(done)
        try:
            await trio.to_thread.run_sync(_make_empty, partial)
            await agent.save(partial)
            await trio.to_thread.run_sync(self._publish, partial, done)
        except OSError as error:
            raise JournalError(f"{partial}: cannot save the agent: {error.strerror or error}") from error

    async def restore(self, agent: Agent, turn: int) -> int:
        """Load the newest good snapshot that is not newer than turn `turn`, and delete newer and damaged ones.

        Return the turn it was taken before, or 0 if there is none.
        """
        turns = self._turns()
        for newer in (number for number in turns if number > turn):
            shutil.rmtree(self._path(newer), ignore_errors=True)
        for number in reversed([number for number in turns if number <= turn]):
            try:
                await agent.load(self._path(number))
                return number
            except AgentError:  # damaged: try the one before it
                await agent.reset()  # first, because if even this fails the agent is unreachable and the snapshot may be good
                shutil.rmtree(self._path(number), ignore_errors=True)
        return 0

    def newest(self, turn: int) -> int:
        """Return the turn before which the newest snapshot not newer than `turn` was taken, or 0 if there is none."""
        return max((number for number in self._turns() if number <= turn), default=0)

    def _path(self, turn: int) -> Path:
        return self._folder / f"{turn:08d}"

    def _turns(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdecimal() and path.is_dir())

    def _publish(self, partial: Path, done: Path) -> None:
        """Sync a folder with its content, then rename it."""
        for path in [*partial.rglob("*"), partial]:
            _sync(path)
        shutil.rmtree(done, ignore_errors=True)
        partial.rename(done)
        _sync(done.parent)
        self._prune()

    def _prune(self) -> None:
        """Delete all but the newest two snapshots, and what a crash left incomplete. Disk errors are ignored."""
        for turn in self._turns()[:-KEPT]:
            shutil.rmtree(self._path(turn), ignore_errors=True)
        for partial in self._folder.glob(".*.partial"):
            shutil.rmtree(partial, ignore_errors=True)


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
