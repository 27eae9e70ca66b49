"""The owner of a run's files. Each file names its owner in the first line, so that a misplaced file is detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, final

from longspan.simulator.base.errors import JournalError

__all__ = ["Owner"]


@final
class Owner(NamedTuple):
    """A run, by the name in its manifest, and the conversation, if the file belongs to a single one.

    `run` is None for a run of an earlier version, whose files do not name their run.
    """

    run: str | None
    conversation: str | None = None

    @property
    def named(self) -> dict[str, str] | None:
        """The owner as written in a file, or None if the file does not name it."""
        if self.run is None:
            return None
        return {name: value for name, value in self._asdict().items() if value is not None}

    def check(self, found: Any, path: Path, remedy: str) -> None:
        """Compare the owner with `found`, the owner that the file at `path` names (or None). Raises JournalError with the remedy if they
        differ."""
        if found != self.named:
            there = found if isinstance(found, dict) else {}
            self.compare(there.get("run"), there.get("conversation"), path, remedy)

    def compare(self, run: Any, conversation: Any, path: Path, remedy: str) -> None:
        """Raise JournalError with the remedy unless the file at `path` names this run and this conversation."""
        if run != self.run:
            of = f"of another run, {run!r:.200}" if run is not None else "of another run, whose files do not name it"
            own = f"{self.run!r:.200}" if self.run is not None else "of an earlier version, whose files name none"
            raise JournalError(f"{path}: it is {of}; this run is {own}; {remedy}")
        if conversation != self.conversation:
            raise JournalError(f"{path}: it is of conversation {conversation!r:.100}, not of {self.conversation!r:.100}; {remedy}")
