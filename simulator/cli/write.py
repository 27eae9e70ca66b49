"""longspan write: generate a scenario's data with a model."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli import completion

__all__ = ["write"]


def write(
    scenario: Annotated[str, typer.Argument(help="The scenario: summhay.", metavar="SCENARIO")],
    writer: Annotated[
        str,
        typer.Option(
            help="The model that writes, such as openai/gpt-4o.",
            metavar="SPEC",
            autocompletion=completion.agents,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the data, which longspan run takes with --data.", metavar="DIR")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Set a parameter; may be repeated.", metavar="NAME=VALUE")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars this time.", min=0, metavar="USD")] = None,
) -> int:
    """Generate a scenario's data with a model.

    The data is checked. What fails is written again, or left out with a message. The model's answers are kept in the folder, so
    that the same command continues after an interruption.
    """
    import trio

    from longspan.simulator.exchange.data_writers import settings_of
    from longspan.simulator.exchange.data_writers import write as write_data
    from longspan.simulator.exchange.data_writers import writer as find
    from longspan.simulator.suite.suite import read_setting

    data_writer = find(scenario)
    settings = settings_of(data_writer, dict(map(read_setting, set_ or [])))
    limit = inf if max_cost is None else max_cost
    files, notes = trio.run(lambda: write_data(data_writer, settings, writer, out, max_cost=limit, log=say))
    for note in notes:
        say(note)
    for path in files:
        say(f"wrote   {path}")
    return 0
