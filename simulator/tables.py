"""Tables for people to read: text in cells, perhaps shaded as a heatmap."""

from __future__ import annotations

from typing import final

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Table"]


@final
class Table(BaseModel):
    """A title, columns and rows of text; `note` says how to read it.

    `heads`: so many columns stand in one line for each row, the others below it, for rows with sentences in them; 0 makes
    a plain table. `shades`: for each cell a value in [0, 1] that colours it, None for none. Raises ValueError for rows or
    shades of another shape than the columns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    columns: list[str]
    rows: list[list[str]]
    heads: int = 0
    note: str = ""
    shades: list[list[float | None]] | None = None

    @model_validator(mode="after")
    def _rectangular(self) -> Table:
        sizes = {len(row) for row in self.rows} | {len(row) for row in self.shades or []}
        if sizes - {len(self.columns)} or (self.shades is not None and len(self.shades) != len(self.rows)):
            raise ValueError(f"table {self.title}: every row needs {len(self.columns)} cells")
        return self

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold figures, and stand to the right. The first names what a row is about."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return [number > 0 and all(not cell or cell[0] in "0123456789<" for cell in column) for number, column in enumerate(columns)]
