"""longspan estimate: what a run will take, before any money is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.cli.options import GridOptions, takes_grid

__all__ = ["estimate"]


@takes_grid
def estimate(
    options: GridOptions,
    *,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the estimates and nothing else.")] = False,
) -> int:
    """Tell what runs will take: tokens, tokens read from cache, and dollars.

    The conversation is played with ideal replies and the agent's own way of asking, but no model is asked and nothing is sent.
    """
    import json

    import trio

    from longspan.simulator.agent import never_asked
    from longspan.simulator.planning import plan
    from longspan.simulator.tools.estimate import estimate as play

    with never_asked():
        plans = [plan(settings, Path()) for settings in options.grid().runs()]
        found = [trio.run(play, each) for each in plans]
    if json_:
        print(json.dumps([each.model_dump(mode="json") | {"cost_usd": each.cost_usd} for each in found], indent=1))
        return 0
    for each in found:
        where = "" if each.span is None else f" at {each.span:,} tokens"
        typer.echo(
            f"{each.suite}{where} · {each.agent}: {each.turns:,} turns, {each.asked:,} of them asked, "
            f"{each.tokens:,} tokens of conversation"
        )
        for part, used in each.parts.items():
            dollars = "price unknown" if used.cost_usd is None else f"${used.cost_usd:.4f}"
            typer.echo(
                f"  {part:9} reads {used.input_tokens:,} tokens, {used.cached_tokens:,} of them from cache, "
                f"writes {used.output_tokens:,}: {dollars}"
            )
        if not each.parts:
            typer.echo("  this kind of agent does not tell what it uses")
    return 0
