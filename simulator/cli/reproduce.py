"""longspan reproduce: recompute published figures from published data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.base.terminal import say_json

__all__ = ["reproduce"]


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(help="The paper: goodai-ltm, counting-stars, elitr-bench, summhay, cream, locomo or longmemeval.", metavar="PAPER"),
    ],
    paths: Annotated[list[Path] | None, typer.Argument(help="The published files or folders; none for cream.", metavar="PATH")] = None,
    rules: Annotated[
        Literal["paper", "longspan"], typer.Option(help="Grade by the paper's rules, or by longspan's stricter ones.")
    ] = "paper",
    json_: Annotated[bool, typer.Option("--json", help="Only print the cells, as a JSON list.")] = False,
) -> int:
    """Recompute a paper's figures from its published data.

    Shows both side by side. No model is asked.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.console import wide_console
    from longspan.simulator.cli.printed_tables import print_table
    from longspan.simulator.exchange.papers import needs_paths
    from longspan.simulator.exchange.papers import paper as find

    reproduction = find(paper)
    if needs_paths(reproduction) != bool(paths):
        takes = (
            "name the files that came with the paper"
            if needs_paths(reproduction)
            else "takes no files; the paper prints all that is needed"
        )
        raise InputError(f"reproduce {paper}: {takes}")
    for path in paths or []:
        if not path.exists():
            raise InputError(f"{path}: does not exist; name the files that came with the paper")
    figures = reproduction(paths or [], rules)
    if json_:
        say_json([cell.model_dump() for cell in figures.cells])
        return 0
    console = wide_console()
    for table in figures.tables:
        print_table(console, table)
    return 0
