"""longspan write: a model writes a scenario's data, beforehand."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["write"]


def write(
    scenario: Annotated[str, typer.Argument(help="Whose data: summhay.", metavar="SCENARIO")],
    writer: Annotated[str, typer.Option(help="The model that writes, such as openai/gpt-4o.", metavar="SPEC")],
    out: Annotated[Path, typer.Option(help="The folder that the data lands in, for --data of longspan run.", metavar="DIR")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="What to write: NAME=VALUE. May be repeated.", metavar="NAME=VALUE")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars that it may cost this time; stops before.", min=0, metavar="USD")] = None,
) -> int:
    """Have a model write data for a scenario: checked, and what fails is written again or left out, and told.

    What the model has answered is kept in the folder: the same command goes on where it was broken off.
    """
    import trio

    from longspan.simulator.interop.data_writers import settings_of
    from longspan.simulator.interop.data_writers import write as have_written
    from longspan.simulator.interop.data_writers import writer as find
    from longspan.simulator.report.excerpts import visible
    from longspan.simulator.suite import read_setting

    found = find(scenario)
    settings = settings_of(found, dict(map(read_setting, set_ or [])))
    most = inf if max_cost is None else max_cost
    files, notes = trio.run(lambda: have_written(found, settings, writer, out, most=most, told=lambda line: typer.echo(visible(line))))
    for note in notes:
        typer.echo(visible(note))
    for path in files:
        typer.echo(f"wrote   {path}")
    return 0
