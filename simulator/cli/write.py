"""longspan BENCHMARK write: generate a scenario's data with a model."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli import completion

__all__ = ["bind_write"]


def bind_write(scenario: str) -> Callable[..., int]:
    """Return the command `write` for a benchmark. Its writer must be registered under the scenario's name."""

    def write(
        writer: Annotated[
            str,
            typer.Option(help="The model that writes, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.complete_agents),
        ],
        out: Annotated[Path, typer.Option(help="The folder for the data, which longspan run takes with --data.", metavar="DIR")],
        set_: Annotated[list[str] | None, typer.Option("--set", help="Set a parameter; may be repeated.", metavar="NAME=VALUE")] = None,
        max_cost: Annotated[float | None, typer.Option(help="Maximum dollars this time.", min=0, metavar="USD")] = None,
    ) -> int:
        """Generate a scenario's data with a model.

        The data is checked. Data that fails is written again, or left out with a message. The model's answers are stored in the folder, so
        the same command continues after an interruption.
        """
        import trio

        from longspan.simulator.running.data_writers import find_writer, settings_of, write_data
        from longspan.simulator.suite.suite import read_setting

        data_writer = find_writer(scenario)
        settings = settings_of(data_writer, dict(map(read_setting, set_ or [])))
        limit = inf if max_cost is None else max_cost
        files, notes = trio.run(lambda: write_data(data_writer, settings, writer, out, max_cost=limit, log=say))
        for note in notes:
            say(note)
        for path in files:
            say(f"wrote   {path}")
        return 0

    return write
