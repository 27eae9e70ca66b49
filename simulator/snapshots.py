"""Snapshots of an agent: written to a new folder, synced, renamed; two are kept."""

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


@final
class Snapshots:
    """The snapshots of one conversation's agent, in `folder`: a folder each, named by the turn it was taken before.

    A folder with such a name is whole: it got it by a rename, after all in it was synced.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def save(self, agent: Agent, turn: int) -> None:
        """Save the agent as it is before turn `turn`, and keep only the newest two. Raises AgentError, or JournalError for what the
        disk refuses."""
        done = self._path(turn)
        partial = partial_of(done)
        try:
            await trio.to_thread.run_sync(_make_empty, partial)
            await agent.save(partial)
            await trio.to_thread.run_sync(self._settle, partial, done)
        except OSError as error:
            raise JournalError(f"{partial}: cannot save the agent: {error.strerror or error}") from error

    async def restore(self, agent: Agent, turn: int) -> int:
        """Load the newest good snapshot that is not newer than turn `turn`, and throw away newer ones and bad ones.

        Returns the turn it was taken before, 0 where there is none.
        """
        turns = self._turns()
        for newer in (each for each in turns if each > turn):
            shutil.rmtree(self._path(newer), ignore_errors=True)
        for good in reversed([each for each in turns if each <= turn]):
            try:
                await agent.load(self._path(good))
                return good
            except AgentError:  # damaged: the one before it will do
                await agent.reset()  # first: an agent that cannot even do that is not there, and the snapshot may be good
                shutil.rmtree(self._path(good), ignore_errors=True)
        return 0

    def newest(self, turn: int) -> int:
        """The turn that the snapshot `restore` would load was taken before; 0 where there is none."""
        return max((each for each in self._turns() if each <= turn), default=0)

    def _path(self, turn: int) -> Path:
        return self._folder / f"{turn:08d}"

    def _turns(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdecimal() and path.is_dir())

    def _settle(self, partial: Path, done: Path) -> None:
        """Sync all in a folder, then give it its name."""
        for path in [*partial.rglob("*"), partial]:
            _sync(path)
        shutil.rmtree(done, ignore_errors=True)
        partial.rename(done)
        _sync(done.parent)
        self._prune()

    def _prune(self) -> None:
        """Remove all but the newest two, and what a crash left half-written. A disk that refuses is let be."""
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
