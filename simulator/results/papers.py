"""Papers with published figures that can be recomputed from their data, found by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.simulator.base.tables import Table
from longspan.simulator.contract.plugins import load_plugin

__all__ = ["PAPERS", "Cell", "Paper", "Reproduction", "Rules", "find_paper", "needs_paths"]

PAPERS = "longspan.papers"
"""The entry-point group of papers. It maps a name to a `Paper`."""

Rules = Literal["paper", "longspan"]
"""Whose rules grade: the paper's rules, or longspan's own where they are stricter."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Cell(_Frozen):
    """One figure computed from `n` items, and the published figure (None if unpublished)."""

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
    """Recomputes a paper's figures. If its `needs_paths` is False, it takes no files."""

    def __call__(self, paths: Sequence[Path], rules: Rules) -> Reproduction:
        """Recompute the figures from the files and folders in `paths`. Raises InputError if they cannot be read."""
        ...


def needs_paths(paper: Paper) -> bool:
    """Return whether a paper's figures are computed from files."""
    return bool(getattr(paper, "needs_paths", True))


def find_paper(name: str) -> Paper:
    """Return the paper registered as `name`. Raises InputError for an unknown name."""
    loaded: Paper = load_plugin(PAPERS, "paper", name)
    return loaded
