"""Snapshots of the memory agent. Loading one rebuilds the vector database from three files.

    turns.jsonl    all turns, one per line: [turn_id, text, sent_at, reply]
    vectors.f2     the vectors of the memories as 16-bit floats, in the order they were stored
    state.json     everything else

Chroma's files cannot serve as a snapshot: they keep changing, and after a crash they are ahead of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.base import AgentError
from longspan.agents.memory.turns import Turn, read_turns, write_turns
from longspan.simulator.base.errors import first_problem, one_line

__all__ = ["Snapshot", "State", "read_snapshot", "write_snapshot"]

TURNS: Final = "turns.jsonl"
VECTORS: Final = "vectors.f2"
STATE: Final = "state.json"


@final
class State(BaseModel):
    """The state beyond turns and vectors.

    `made_with`: the options that determine their meaning. `left`: how many turns left the window. `blocks`: the blocks that wait to be
    noted, by first turn and the turn after the last. `tokens`: the embedder's tokens since the last reply. `dimensions`: the length of a
    vector, 0 without vectors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = 1
    made_with: dict[str, Any]
    left: int = Field(ge=0)
    blocks: list[tuple[int, int]]
    notes: str
    tokens: int = Field(ge=0)
    dimensions: int = Field(ge=0)
    ratio: Annotated[float, Field(ge=1, le=2, allow_inf_nan=False)]


class Snapshot(NamedTuple):
    """The contents of a snapshot."""

    state: State
    turns: Sequence[Turn]
    vectors: bytes


def write_snapshot(folder: Path, saved: Snapshot) -> None:
    """Write a snapshot into an empty folder. Raises OSError."""
    write_turns(folder / TURNS, saved.turns)
    (folder / VECTORS).write_bytes(saved.vectors)
    (folder / STATE).write_text(saved.state.model_dump_json(), encoding="utf-8")


def read_snapshot(folder: Path) -> Snapshot:
    """Return the snapshot in a folder. Raises AgentError if it is missing or invalid."""
    try:
        state = State.model_validate_json((folder / STATE).read_bytes())
        turns = list(read_turns(folder / TURNS))
        return Snapshot(state, turns, (folder / VECTORS).read_bytes())
    except ValidationError as error:
        raise AgentError(f"{folder / STATE}: not a snapshot of agent ltm: {first_problem(error)}") from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise AgentError(f"{folder}: not a snapshot of agent ltm: {one_line(error)}") from error
