"""longspan plot: draw the figures of a comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longspan.simulator.base.terminal import complain, say
from longspan.simulator.cli.options import RunsArgument

if TYPE_CHECKING:
    from longspan.simulator.base.tables import Table
    from longspan.simulator.report.figures import Format
    from longspan.simulator.results.graded_runs import Unusable

__all__ = ["plot", "print_unusable"]


def plot(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="The .svg, .png or .pdf file to write; without --figure, a folder.", metavar="PATH")],
    figure: Annotated[
        Literal["bars", "spans", "distance", "reach", "cost", "interference", "heatmap", "card"] | None,
        typer.Option(help="bars, spans, distance, reach, cost, interference, heatmap, or card.", metavar="FIGURE", show_default="all"),
    ] = None,
    format: Annotated[Literal["svg", "png", "pdf"] | None, typer.Option(help="The format of all figures.", show_default="svg")] = None,
    paper: Annotated[
        str | None, typer.Option(help="Instead of runs: the files published with this paper, for --figure heatmap.", metavar="PAPER")
    ] = None,
) -> int:
    """Draw figures of runs.

    Scores by span as bars or as lines with intervals, scores by evidence distance, scores against cost, and heatmaps of scenarios
    that have shaded tables; or the card of one run, a picture of its result to share; or, of runs that differ in parameters, scores by
    distance, by similar facts and by updates. The same runs give the same files, byte for byte.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.files.reading import writing, writing_folder
    from longspan.simulator.measures.comparing import load_comparison
    from longspan.simulator.measures.own_figures import own_tables
    from longspan.simulator.report.figures import FIGURES, draw, missing
    from longspan.simulator.report.heatmap import draw_heatmaps, heatmaps

    format_ = _format(out, figure is not None, format)
    if paper is not None:
        if figure != "heatmap":
            raise InputError(f"--paper {paper}: only --figure heatmap is drawn from a paper's files")
        with writing(out) as partial:
            partial.write_bytes(draw_heatmaps(_published(paper, runs), format_))
        say(str(out))
        return 0
    if figure == "card":
        card = _card(runs, format_)
        with writing(out) as partial:
            partial.write_bytes(card)
        say(str(out))
        return 0
    if figure == "interference":
        _interference(runs, out, format_)
        return 0
    comparison = load_comparison(runs)
    print_unusable(comparison.unusable)
    shaded = heatmaps(own_tables(comparison.side.runs))
    if figure == "heatmap" and not shaded:
        raise InputError("--figure heatmap: no scenario of these runs has a shaded table with three columns or more")
    left_out = missing(comparison)
    if figure is not None and figure != "heatmap" and figure in left_out:
        raise InputError(f"--figure {figure}: {left_out[figure]}")
    if figure is None and len(left_out) == len(FIGURES) and not shaded:
        raise InputError(f"no figure can be drawn: {'; '.join(dict.fromkeys(left_out.values()))}")
    if figure is not None:
        with writing(out) as partial:
            partial.write_bytes(draw_heatmaps(shaded, format_) if figure == "heatmap" else draw(comparison, figure, format_))
    else:
        with writing_folder(out) as folder:
            for name in (name for name in FIGURES if name not in left_out):
                (folder / f"{name}.{format_}").write_bytes(draw(comparison, name, format_))
            if shaded:
                (folder / f"heatmap.{format_}").write_bytes(draw_heatmaps(shaded, format_))
    say(str(out))
    return 0


def _card(paths: Sequence[Path], format: Format) -> bytes:
    """Return the card of the only run in `paths`. Raises InputError if there are more."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.report.card import draw_card
    from longspan.simulator.results.graded_runs import load

    graded, _ = load(paths)
    if len(graded) > 1:
        raise InputError(f"--figure card: draws one run, and these are {len(graded)}; name the folder of one")
    return draw_card(graded[0], format)


def _interference(paths: Sequence[Path], out: Path, format: Format) -> None:
    """Draw the disturbances of agents' memories over runs that may differ in their parameters, and describe them. Raises InputError if
    there are none."""
    from longspan.simulator.analysis.interference import interference
    from longspan.simulator.files.reading import writing
    from longspan.simulator.measures.group_tables import one_line
    from longspan.simulator.report.interference_figure import draw_interference
    from longspan.simulator.results.graded_runs import load, without_ungraded

    graded, unusable = load(paths)
    graded, ungraded = without_ungraded(graded)
    print_unusable([*unusable, *ungraded])
    found = interference(graded)
    content = draw_interference(found, format)
    with writing(out) as partial:
        partial.write_bytes(content)
    say(str(out))
    for agent, each in found.items():
        sentences = [each.distance.sentence] if each.distance is not None else []
        for sentence in [*sentences, *(effect.sentence for effect in each.effects.values())]:
            say(one_line(f"{agent}: {sentence}"))


def _published(name: str, paths: Sequence[Path]) -> Sequence[Table]:
    """Return the heatmaps of a paper's published files. Raises InputError if there are none."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.exchange.papers import needs_paths
    from longspan.simulator.exchange.papers import paper as find
    from longspan.simulator.report.heatmap import heatmaps

    reproduction = find(name)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: does not exist; name the files that came with the paper")
    shaded = heatmaps(reproduction(paths, "paper").tables) if needs_paths(reproduction) else []
    if not shaded:
        raise InputError(f"--paper {name}: its figures have no shaded table with three columns or more")
    return shaded


def _format(out: Path, single: bool, format: Format | None) -> Format:
    """Return the format: from the suffix of --out for a single figure, from --format for several. Raises InputError if they conflict."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.report.figures import FIGURES, FORMATS

    suffix: Format | None = next((known for known in FORMATS if out.suffix.lower() == f".{known}"), None)
    if single and (suffix is None or format not in (None, suffix)):
        raise InputError(f"--out {out}: with --figure the name must end in .svg, .png or .pdf, and match --format if that is given")
    if not single and suffix is None and re.fullmatch(r"\.[A-Za-z][A-Za-z0-9]{1,4}", out.suffix):
        raise InputError(f"--out {out}: figures are .svg, .png or .pdf; without --figure all are drawn, into a folder")
    if not single and suffix is not None:
        raise InputError(
            f"--out {out}: without --figure all are drawn, into a folder; --figure {'|'.join(FIGURES)}|interference|heatmap|card draws one"
        )
    return format or suffix or "svg"


def print_unusable(unusable: Sequence[Unusable]) -> None:
    """List on standard error the runs that are left out."""
    from longspan.simulator.measures.group_tables import one_line

    for run in unusable:
        complain(f"left out: {one_line(run.why)}")
