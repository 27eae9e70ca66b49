"""The turns of a run as its journals hold them, whole: for those who pass them on."""

from __future__ import annotations

from typing import NamedTuple, final

from longspan.simulator.run_folder import RunFolder
from longspan.simulator.transcript import Change, Played, Transcript, Turn

__all__ = ["Conversation", "conversations"]


@final
class Conversation(NamedTuple):
    """A conversation's turns in order, and its tests by id. The last turn has no reply where it was broken off before."""

    turns: list[Turn]
    tests: dict[str, Played]


def conversations(run: RunFolder) -> dict[str, Conversation]:
    """A run's conversations; one that was not begun has no turns. Raises JournalError for a damaged journal."""
    turns: dict[str, list[Turn]] = {id: [] for id in run.manifest.conversations}

    def heard(id: str, transcript: Transcript, change: Change) -> None:
        if isinstance(change, Turn):
            turns[id][change.number :] = [change]

    transcripts = run.transcripts(heard)
    return {id: Conversation(said, transcripts[id].tests if id in transcripts else {}) for id, said in turns.items()}
