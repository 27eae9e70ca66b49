"""Tables of text for reports, optionally shaded as heatmaps."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, final

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Table", "format_decimals"]

NUMERIC: Final = "0123456789<+\N{MINUS SIGN}"
"""The characters that a number in a cell may begin with."""


@final
class Table(BaseModel):
    """A table with a title, columns and rows of strings. `note` explains how to read it.

    For rows with long cells, `heads` is the number of columns on a row's first line; the other columns go below it. 0 means a plain table.
    `shades` has a value in [0, 1] to colour each cell, or None for no colour, and `across` names what the shaded columns are. Raises
    ValueError if a row of cells or shades does not match the columns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    columns: list[str]
    rows: list[list[str]]
    heads: int = 0
    note: str = ""
    shades: list[list[float | None]] | None = None
    across: str = ""

    @model_validator(mode="after")
    def _rectangular(self) -> Table:
        sizes = {len(row) for row in self.rows} | {len(row) for row in self.shades or []}
        if sizes - {len(self.columns)} or (self.shades is not None and len(self.shades) != len(self.rows)):
            raise ValueError(f"table {self.title}: every row needs {len(self.columns)} cells")
        return self

    @property
    def numeric(self) -> list[bool]:
        """Whether each column is numeric, and so right-aligned. The first column never is: it names the row."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return [number > 0 and all(not cell or cell[0] in NUMERIC for cell in column) for number, column in enumerate(columns)]


def format_decimals(value: float) -> str:
    """Format a number with two decimals, or more for a small one: 12.35, 0.50, 0.0012."""
    return f"{Decimal(f'{value:.3g}'):f}" if 0 < abs(value) < 0.0995 else f"{value:.2f}"
