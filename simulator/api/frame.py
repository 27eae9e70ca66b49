"""A table of results: rows for Python, and a dataframe if a dataframe library is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, final, overload

from longspan.simulator.api.markup import render_table
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.results.analysis.rows import Row

__all__ = ["Frame"]

SHOWN: Final = 20
"""The number of rows shown as text and in a notebook."""

MOST_COLUMNS: Final = 15
"""The most columns of a table whose rows are printed as text. A wider table prints only its size."""

_PANDAS: Final = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}


@final
class Frame(Sequence[Row]):
    """A table as a sequence of rows. A row maps columns to values, with None for a missing value. `columns` maps the columns to their
    types: str, int, float or bool."""

    def __init__(self, columns: Mapping[str, type], rows: Sequence[Row]) -> None:
        self.columns = dict(columns)
        self._rows = [{name: row.get(name) for name in columns} for row in rows]

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Frame: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Row | Frame | list[Any]:
        """Return a row by number, a Frame of rows by slice, or the values of a column by name."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"there is no column {key!r}; the columns are {', '.join(self.columns)}")
            return [row[key] for row in self._rows]
        return Frame(self.columns, self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        if len(self.columns) > MOST_COLUMNS:
            return f"<{len(self)} rows of {', '.join(self.columns)}>"
        lines = [list(self.columns), *([_cell(value) for value in row.values()] for row in self._rows[:SHOWN])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return escape_invisible("\n".join([*text, *([f"{len(self) - SHOWN:,} more rows"] if len(self) > SHOWN else [])]))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame. Missing values are pandas.NA. Raises InputError if pandas is not installed."""
        pandas = _library("pandas")
        return pandas.DataFrame({name: pandas.array(self[name], dtype=_PANDAS[kind]) for name, kind in self.columns.items()})

    def to_polars(self) -> Any:
        """Return a Polars DataFrame. Raises InputError if Polars is not installed."""
        polars = _library("polars")
        types = {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}
        schema = {name: types[kind] for name, kind in self.columns.items()}
        return polars.DataFrame({name: self[name] for name in self.columns}, schema=schema)

    def to_arrow(self) -> Any:
        """Return a pyarrow Table. Raises InputError if pyarrow is not installed."""
        arrow = _library("pyarrow")
        types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
        return arrow.table({name: arrow.array(self[name], types[kind]) for name, kind in self.columns.items()})

    def _repr_html_(self) -> str:
        more = f"{len(self) - SHOWN:,} more rows" if len(self) > SHOWN else ""
        return render_table(list(self.columns), [[_cell(value) for value in row.values()] for row in self._rows[:SHOWN]], more)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{name} is not installed: pip install {name}") from error
