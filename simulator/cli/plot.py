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
    from longspan.simulator.pages.report.figures import Format
    from longspan.simulator.results.graded_runs import Unusable
    from longspan.simulator.results.measures.comparing import Comparison

__all__ = ["plot", "print_unusable"]


def plot(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="The .svg, .png or .pdf file to write; without --figure, a folder.", metavar="PATH")],
    figure: Annotated[
        Literal["bars", "spans", "distance", "reach", "cost", "trend", "interference", "heatmap", "card"] | None,
        typer.Option(
            help="bars, spans, distance, reach, cost, trend, interference, heatmap, or card.", metavar="FIGURE", show_default="all"
        ),
    ] = None,
    format: Annotated[Literal["svg", "png", "pdf"] | None, typer.Option(help="The format of all figures.", show_default="svg")] = None,
) -> int:
    """Draw figures of runs.

    Draws scores by span as bars or as lines with intervals, scores by evidence distance, scores against cost, figures of an agent by
    version, and heatmaps of scenarios that have shaded tables. `card` draws the result of one run as a picture to share. `interference`
    draws scores by distance, by similar facts and by updates, for runs that differ in parameters. The same runs give the same files, byte
    for byte.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.files.file_io import write_new_file, write_new_folder
    from longspan.simulator.results.measures.comparing import load_comparisons
    from longspan.simulator.results.measures.group_tables import one_line

    format_ = _format(out, figure is not None, format)
    if figure == "card":
        card = _card(runs, format_)
        with write_new_file(out) as partial:
            partial.write_bytes(card)
        say(str(out))
        return 0
    if figure == "interference":
        _interference(runs, out, format_)
        return 0
    comparisons = load_comparisons(runs)
    print_unusable(next(iter(comparisons.values())).unusable)
    groups = [_draw(comparison, figure, format_) for comparison in comparisons.values()]
    drawn = [(name, pictures) for name, (pictures, _) in zip(comparisons, groups, strict=True) if pictures]
    if not drawn:
        why = "; ".join(dict.fromkeys(reason for _, reasons in groups for reason in reasons))
        raise InputError(f"no figure can be drawn: {why}" if figure is None else f"--figure {figure}: {why}")
    endings = ["", *(f"-{number}" for number in range(2, len(drawn) + 1))]
    if figure is None:
        with write_new_folder(out) as folder:
            for ending, (_, pictures) in zip(endings, drawn, strict=True):
                for name, picture in pictures.items():
                    (folder / f"{name}{ending}.{format_}").write_bytes(picture)
        written = [out / f"*{ending}.{format_}" for ending in endings] if len(drawn) > 1 else [out]
    else:
        written = [out.with_stem(f"{out.stem}{ending}") for ending in endings]
        if taken := next((path for path in written if path.exists() or path.is_symlink()), None):
            raise InputError(f"{taken}: already exists; choose another file with --out")
        for path, (_, pictures) in zip(written, drawn, strict=True):
            with write_new_file(path) as partial:
                partial.write_bytes(pictures[figure])
    for path, (name, _) in zip(written, drawn, strict=True):
        say(f"{path}: {one_line(name)}" if len(comparisons) > 1 else str(path))
    return 0


def _draw(comparison: Comparison, figure: str | None, format: Format) -> tuple[dict[str, bytes], list[str]]:
    """Draw a figure of a comparison, or all of them. Return the pictures by name, and why others cannot be drawn."""
    from longspan.simulator.pages.report.figures import FIGURES, draw_figure, missing_figures
    from longspan.simulator.pages.report.heatmap import draw_heatmaps, find_heatmaps
    from longspan.simulator.results.measures.own_figures import own_tables

    left_out = missing_figures(comparison)
    pictures: dict[str, bytes] = {
        name: draw_figure(comparison, name, format) for name in FIGURES if figure in (None, name) and name not in left_out
    }
    reasons = [reason for name, reason in left_out.items() if figure in (None, name)]
    if figure in (None, "heatmap"):
        if shaded := find_heatmaps(own_tables(comparison.side.runs)):
            pictures["heatmap"] = draw_heatmaps(shaded, format)
        elif figure is not None:
            reasons.append("no scenario of these runs has a shaded table with three columns or more")
    return pictures, reasons


def _card(paths: Sequence[Path], format: Format) -> bytes:
    """Return the card of the only run in `paths`. Raises InputError for several runs."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.pages.report.card import draw_card
    from longspan.simulator.results.graded_runs import load_runs

    graded, _ = load_runs(paths)
    if len(graded) > 1:
        raise InputError(f"--figure card: draws one run, not {len(graded)}; name the folder of one run")
    return draw_card(graded[0], format)


def _interference(paths: Sequence[Path], out: Path, format: Format) -> None:
    """Draw how similar facts and updates disturb agents' memories, over runs that may differ in their parameters. Print it in sentences.

    Raises InputError if the runs show no such effect.
    """
    from longspan.simulator.base.files.file_io import write_new_file
    from longspan.simulator.pages.report.interference_figure import draw_interference
    from longspan.simulator.results.analysis.interference import measure_interference
    from longspan.simulator.results.graded_runs import load_runs, without_ungraded
    from longspan.simulator.results.measures.group_tables import one_line

    graded, unusable = load_runs(paths)
    graded, ungraded = without_ungraded(graded)
    print_unusable([*unusable, *ungraded])
    found = measure_interference(graded)
    content = draw_interference(found, format)
    with write_new_file(out) as partial:
        partial.write_bytes(content)
    say(str(out))
    for agent, each in found.items():
        sentences = [each.distance.sentence] if each.distance is not None else []
        for sentence in [*sentences, *(effect.sentence for effect in each.effects.values())]:
            say(one_line(f"{agent}: {sentence}"))


def _format(out: Path, single: bool, format: Format | None) -> Format:
    """Return the format, from the suffix of --out for one figure, or from --format for several. Raises InputError if they conflict."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.pages.report.figures import FIGURES, FORMATS

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
    from longspan.simulator.results.measures.group_tables import one_line

    for run in unusable:
        complain(f"left out: {one_line(run.why)}")
