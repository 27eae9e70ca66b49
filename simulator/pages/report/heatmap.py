"""Heatmaps: the shaded tables of scenarios as one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from longspan.simulator.base.tables import Table
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.figures import INK, Format, render_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_heatmaps", "find_heatmaps"]

MIN_COLUMNS: Final = 3
"""The fewest shaded columns that a table must have to become a heatmap."""
MAX_TICKS: Final = 32
"""The maximum number of labels along an axis."""
MAX_VECTOR_CELLS: Final = 3_000
"""A heatmap with more cells is drawn as a bitmap."""
MAX_HEATMAPS: Final = 40
"""The maximum number of heatmaps in a figure."""


def find_heatmaps(tables: Sequence[Table]) -> list[Table]:
    """Return the tables that can be drawn: those with at least `MIN_COLUMNS` adjacent shaded columns."""
    return [table for table in tables if len(_shaded_columns(table)) >= MIN_COLUMNS and table.rows]


def draw_heatmaps(tables: Sequence[Table], format: Format) -> bytes:
    """Return the content of one file with all heatmaps. The same tables give the same bytes."""
    return render_figure(lambda figure: _fill(figure, tables[:MAX_HEATMAPS]), format)


def _shaded_columns(table: Table) -> range:
    """Return the first run of adjacent shaded columns."""
    columns = list(zip(*table.shades, strict=True)) if table.shades else []
    shaded = [any(shade is not None for shade in column) for column in columns]
    begin = shaded.index(True) if any(shaded) else 0
    end = shaded.index(False, begin) if False in shaded[begin:] else len(shaded)
    return range(begin, end)


def _fill(figure: Figure, tables: Sequence[Table]) -> None:
    heights = [min(9.0, 1.1 + 0.22 * len(table.rows)) for table in tables]
    widest = max(len(_shaded_columns(table)) for table in tables)
    figure.set_size_inches(min(14.0, 4.0 + 0.2 * widest), sum(heights) + 0.9 * len(tables))
    grid = figure.add_gridspec(len(tables), 1, height_ratios=heights, hspace=0.9 / (sum(heights) / len(heights)))
    for number, table in enumerate(tables):
        axes = figure.add_subplot(grid[number, 0])
        mesh = _draw_table(axes, table)
        figure.colorbar(mesh, ax=axes, shrink=0.9, pad=0.02, ticks=[0, 0.5, 1])


def _draw_table(axes: Any, table: Table) -> Any:
    """Draw the shaded columns of one table, with its first column as labels for the rows."""
    import numpy as np

    columns = _shaded_columns(table)
    values = np.array([[np.nan if shades[at] is None else shades[at] for at in columns] for shades in table.shades or []], dtype=float)
    few = values.size <= MAX_VECTOR_CELLS
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.4} if few else {"rasterized": True}
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), vmin=0, vmax=1, cmap="viridis", **look)
    axes.invert_yaxis()
    axes.set_title(escape_invisible(table.title), fontsize=11)
    names, heads = [row[0] for row in table.rows], [table.columns[at] for at in columns]
    rows, across = _ticks(len(names)), _ticks(len(heads))
    long = max(len(heads[at]) for at in across) > 3
    axes.set_yticks([at + 0.5 for at in rows], [escape_invisible(names[at])[:40] for at in rows], fontsize=8)
    axes.set_xticks(
        [at + 0.5 for at in across], [escape_invisible(heads[at])[:40] for at in across], fontsize=8, rotation=30 if long else 0
    )
    axes.set_ylabel(escape_invisible(table.columns[0]))
    axes.set_xlabel(escape_invisible(table.across))
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_color(INK)
    return mesh


def _ticks(number: int) -> range:
    """Return the indices of the rows or columns, out of `number`, that are labelled."""
    return range(0, number, -(-number // MAX_TICKS))
