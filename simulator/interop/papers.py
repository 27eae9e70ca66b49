"""Papers whose published figures can be worked out again from the data that came with them. Found by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.plugins import load
from longspan.simulator.tables import Table

__all__ = ["PAPERS", "Cell", "Paper", "Reproduction", "Rules", "needs_paths", "paper"]

PAPERS = "longspan.papers"
"""The entry-point group of papers: a name, and a `Paper`."""

Rules = Literal["paper", "longspan"]
"""Whose rules grade: the paper's, or longspan's own where they ask for more."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Cell(_Frozen):
    """One figure: ours beside the published one (None where nothing was printed), worked out from `n` items."""

    paper: str
    table: str
    row: str
    column: str
    ours: float | None
    published: float | None = None
    n: int = Field(ge=0)


@final
class Reproduction(_Frozen):
    """All cells, and the tables that show and explain them."""

    cells: list[Cell]
    tables: list[Table]


class Paper(Protocol):
    """A paper's data, read and worked out again. One with an attribute `needs_paths` that is False works from what it prints."""

    def __call__(self, paths: Sequence[Path], rules: Rules) -> Reproduction:
        """Work the paper's figures out from the files and folders in `paths`. Raises InputError for what cannot be read."""
        ...


def needs_paths(paper: Paper) -> bool:
    """Whether a paper's figures come from files; where not, it takes none."""
    return bool(getattr(paper, "needs_paths", True))


def paper(name: str) -> Paper:
    """The paper registered as `name`. Raises InputError."""
    found: Paper = load(PAPERS, "paper", name)
    return found
