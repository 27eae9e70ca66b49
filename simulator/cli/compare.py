"""longspan compare: compare runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from longspan.simulator.cli import completion
from longspan.simulator.terminal import say

if TYPE_CHECKING:
    from typing import IO

    from longspan.simulator.analysis.comparing import Comparison

__all__ = ["RunsArgument", "compare"]

RunsArgument = Annotated[
    list[Path], typer.Argument(help="Folders of runs, or folders that contain some.", metavar="RUN", autocompletion=completion.runs)
]

Format = Literal["terminal", "markdown", "csv", "html"]

SUFFIXES: Final[dict[str, Format]] = {".md": "markdown", ".csv": "csv", ".html": "html", ".txt": "terminal"}


def compare(
    runs: RunsArgument,
    format: Annotated[Format | None, typer.Option(help="The output format.", show_default="that of --out, or terminal")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write.", metavar="FILE")] = None,
) -> int:
    """Compare runs of one suite.

    Shows agents by span, in pairs, and by scenario, skill and evidence distance, with confidence intervals and significance tests.
    Damaged and unfinished runs are named and left out.
    """
    from longspan.simulator.analysis.comparing import load_comparison
    from longspan.simulator.errors import InputError
    from longspan.simulator.files import writing

    if out is not None and format is None and out.suffix.lower() not in SUFFIXES:
        raise InputError(f"--out {out}: the name must end in {', '.join(SUFFIXES)}, unless --format names the format")
    comparison = load_comparison(runs)
    chosen = format or (SUFFIXES[out.suffix.lower()] if out is not None else "terminal")
    if out is None:
        if chosen == "terminal":
            _print(comparison)
        else:
            say(_text(comparison, chosen, Path()).removesuffix("\n"), lines=True)
        return 0
    with writing(out) as partial, partial.open("x", encoding="utf-8", newline="\n") as file:
        if chosen == "terminal":
            _print(comparison, file)
        else:
            file.write(_text(comparison, chosen, out.parent))
    say(f"{out}: {len(comparison.agents)} agents, {comparison.runs} runs")
    return 0


def _text(comparison: Comparison, format: Literal["markdown", "csv", "html"], folder: Path) -> str:
    """Return a comparison as a file in `folder`."""
    from longspan.simulator.report.tables import as_csv, as_markdown

    match format:
        case "markdown":
            return as_markdown(comparison)
        case "csv":
            return as_csv(comparison)
        case "html":
            from longspan.simulator.report.comparison import as_html, links_from

            return as_html(comparison, links_from(folder))


def _print(comparison: Comparison, file: IO[str] | None = None) -> None:
    from longspan.simulator.cli.compact import letters, print_compact
    from longspan.simulator.cli.console import Console
    from longspan.simulator.report.tables import notes, one_line, tables

    console = Console(file)
    called = letters([one_line(agent) for agent in comparison.agents])
    for agent, letter in called.items():
        console.say(f"{letter}  {agent}")
    shown = tables(comparison)
    last = {table.note: number for number, table in enumerate(shown)}
    for number, table in enumerate(shown):  # a note that several have stands below the last of them
        print_compact(console, table if last[table.note] == number else table.model_copy(update={"note": ""}), called)
    console.print()
    for note in notes(comparison):
        console.print(note)
