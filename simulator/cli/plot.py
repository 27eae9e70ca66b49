"""longspan plot: the figures of a comparison, as files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longspan.simulator.cli.compare import RunsArgument

if TYPE_CHECKING:
    from longspan.simulator.analysis.graded_runs import Unusable
    from longspan.simulator.report.figures import Format

__all__ = ["plot", "tell_unusable"]


def plot(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="The file to write: .svg, .png or .pdf; without --figure a folder.", metavar="PATH")],
    figure: Annotated[
        Literal["bars", "spans", "radar", "cost", "heatmap"] | None,
        typer.Option(help="Which figure; by default all of them.", show_default=False),
    ] = None,
    format: Annotated[Literal["svg", "png", "pdf"] | None, typer.Option(help="Of all figures; by default svg.", show_default=False)] = None,
) -> int:
    """Draw runs: scores by span as bars or as lines with intervals, scenarios as a radar, scores against cost, and heatmaps of
    scenarios that have shaded tables.

    The same runs give the same files, byte for byte.
    """
    from longspan.simulator.analysis.comparing import load_comparison
    from longspan.simulator.errors import InputError
    from longspan.simulator.files import writing, writing_folder
    from longspan.simulator.report.figures import FIGURES, draw
    from longspan.simulator.report.heatmap import draw_heatmaps, heatmaps

    kind = _format(out, figure is not None, format)
    comparison = load_comparison(runs)
    tell_unusable(comparison.unusable)
    shaded = heatmaps(comparison.own)
    if figure == "heatmap" and not shaded:
        raise InputError("--figure heatmap: no scenario of these runs has a shaded table of three columns or more")
    if figure is not None:
        with writing(out) as partial:
            partial.write_bytes(draw_heatmaps(shaded, kind) if figure == "heatmap" else draw(comparison, figure, kind))
    else:
        with writing_folder(out) as folder:
            for name in FIGURES:
                (folder / f"{name}.{kind}").write_bytes(draw(comparison, name, kind))
            if shaded:
                (folder / f"heatmap.{kind}").write_bytes(draw_heatmaps(shaded, kind))
    typer.echo(str(out))
    return 0


def _format(out: Path, one: bool, format: Format | None) -> Format:
    """What to draw: as --out is called for one figure, as --format says for all. Raises InputError."""
    from longspan.simulator.errors import InputError
    from longspan.simulator.report.figures import FIGURES, FORMATS

    named: Format | None = next((each for each in FORMATS if out.suffix.lower() == f".{each}"), None)
    if one and (named is None or format not in (None, named)):
        raise InputError(f"--out {out}: a figure is a file whose name ends in .svg, .png or .pdf, as --format says where it is given")
    if not one and named is not None:
        raise InputError(f"--out {out}: without --figure all are drawn, into a folder; --figure {'|'.join(FIGURES)}|heatmap draws one")
    return format or named or "svg"


def tell_unusable(unusable: Sequence[Unusable]) -> None:
    """Name the runs that are left out, on standard error."""
    from longspan.simulator.report.tables import one_line

    for each in unusable:
        print(f"left out: {one_line(each.why)}", file=sys.stderr)
