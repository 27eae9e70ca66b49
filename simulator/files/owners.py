"""What a run's files belong to. Each names it in its first line, so that a file of another run or conversation is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, final

from longspan.simulator.base.errors import JournalError

__all__ = ["Owner"]


@final
class Owner(NamedTuple):
    """A run, by the name that its manifest gives it, and the conversation of it if the file is of one alone.

    `run` is None for a run of an earlier version, whose files name none.
    """

    run: str | None
    conversation: str | None = None

    @property
    def named(self) -> dict[str, str] | None:
        """How a file names it; None if it does not."""
        if self.run is None:
            return None
        return {name: value for name, value in self._asdict().items() if value is not None}

    def check(self, found: Any, path: Path, remedy: str) -> None:
        """Check what the file at `path` names, None for nothing. Raises JournalError with the remedy if it is not this."""
        if found != self.named:
            there = found if isinstance(found, dict) else {}
            self.compare(there.get("run"), there.get("conversation"), path, remedy)

    def compare(self, run: Any, conversation: Any, path: Path, remedy: str) -> None:
        """Raise JournalError with the remedy unless this is the run and the conversation that the file at `path` names."""
        if run != self.run:
            of = f"of another run, {run!r:.200}" if run is not None else "of another run, whose files do not name it"
            own = f"{self.run!r:.200}" if self.run is not None else "of an earlier version, whose files name none"
            raise JournalError(f"{path}: it is {of}; this run is {own}; {remedy}")
        if conversation != self.conversation:
            raise JournalError(f"{path}: it is of conversation {conversation!r:.100}, not of {self.conversation!r:.100}; {remedy}")
