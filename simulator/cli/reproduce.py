"""longspan BENCHMARK reproduce: recompute published figures from published data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longspan.simulator.base.terminal import say, say_json

if TYPE_CHECKING:
    from longspan.simulator.base.tables import Table

__all__ = ["bind_reproduce"]


def bind_reproduce(benchmark: str) -> Callable[..., int]:
    """Return the command `reproduce` for a benchmark. Its paper must be registered under the benchmark's name."""

    def reproduce(
        paths: Annotated[
            list[Path] | None, typer.Argument(help="The files or folders published with the paper, if it needs any.", metavar="PATH")
        ] = None,
        rules: Annotated[
            Literal["paper", "longspan"], typer.Option(help="Grade by the paper's rules, or by longspan's stricter ones.")
        ] = "paper",
        heatmap: Annotated[
            Path | None, typer.Option(help="Also draw the shaded tables, as a .svg, .png or .pdf file.", metavar="FILE")
        ] = None,
        json_: Annotated[bool, typer.Option("--json", help="Only print the cells, as a JSON list.")] = False,
    ) -> int:
        """Recompute a paper's figures from its published data.

        Shows both side by side. No model is called.
        """
        from longspan.simulator.base.errors import InputError
        from longspan.simulator.results.papers import find_paper, needs_paths
        from longspan.simulator.terminal.console import wide_console
        from longspan.simulator.terminal.printed_tables import print_table

        reproduction = find_paper(benchmark)
        if needs_paths(reproduction) != bool(paths):
            takes = (
                "name the files that came with the paper"
                if needs_paths(reproduction)
                else "takes no files: the figures come from the paper itself"
            )
            raise InputError(f"{benchmark} reproduce: {takes}")
        for path in paths or []:
            if not path.exists():
                raise InputError(f"{path}: does not exist; name the files that came with the paper")
        figures = reproduction(paths or [], rules)
        if heatmap is not None:
            _draw(benchmark, figures.tables, heatmap)
        if json_:
            say_json([cell.model_dump() for cell in figures.cells])
            return 0
        console = wide_console()
        for table in figures.tables:
            print_table(console, table)
        if heatmap is not None:
            say(str(heatmap))
        return 0

    return reproduce


def _draw(benchmark: str, tables: Sequence[Table], out: Path) -> None:
    """Draw the shaded tables of a paper. Raises InputError if it has none."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.files.file_io import write_new_file
    from longspan.simulator.pages.report.figures import FORMATS
    from longspan.simulator.pages.report.heatmap import draw_heatmaps, find_heatmaps

    format = next((known for known in FORMATS if out.suffix.lower() == f".{known}"), None)
    if format is None:
        raise InputError(f"--heatmap {out}: the name must end in .{', .'.join(FORMATS)}")
    shaded = find_heatmaps(tables)
    if not shaded:
        raise InputError(f"--heatmap: the figures of {benchmark} have no shaded table with three columns or more")
    with write_new_file(out) as partial:
        partial.write_bytes(draw_heatmaps(shaded, format))
