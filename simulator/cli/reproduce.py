"""longspan reproduce: published figures again, from published data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["reproduce"]


def reproduce(
    paper: Annotated[str, typer.Argument(help="Whose figures: goodai-ltm, counting-stars, elitr-bench, summhay, cream.", metavar="PAPER")],
    paths: Annotated[
        list[Path] | None, typer.Argument(help="The published files or folders; cream takes none.", metavar="[PATH...]")
    ] = None,
    rules: Annotated[
        Literal["paper", "longspan"], typer.Option(help="Grade as the paper does, or by longspan's own rules, which ask for more.")
    ] = "paper",
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of cells and nothing else.")] = False,
) -> int:
    """Work published figures out again from recorded data, and print ours beside theirs. No model is asked."""
    import json

    from longspan.simulator.cli.tables import print_table, wide_console
    from longspan.simulator.errors import InputError
    from longspan.simulator.interop.papers import needs_paths
    from longspan.simulator.interop.papers import paper as find

    known = find(paper)
    if needs_paths(known) != bool(paths):
        takes = "name the files that came with the paper" if needs_paths(known) else "it takes no files; the paper prints all it needs"
        raise InputError(f"reproduce {paper}: {takes}")
    for path in paths or []:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder; name the files that came with the paper")
    found = known(paths or [], rules)
    if json_:
        print(json.dumps([cell.model_dump() for cell in found.cells], ensure_ascii=False, indent=1))
        return 0
    console = wide_console()
    for table in found.tables:
        print_table(console, table)
    return 0
