"""longspan estimate: what a run will take, before any money is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.cli.run import refuse_code

__all__ = ["estimate"]


def estimate(
    suite: Annotated[str, typer.Argument(help="A suite's name or YAML file.", metavar="[SUITE]", show_default=True)] = "ltm",
    span: Annotated[list[str] | None, typer.Option(help="As for run; once for each.", metavar="S", show_default="the suite's")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="As for run; once for each.", metavar="SPEC", show_default="notebook")] = None,
    seed: Annotated[int, typer.Option(help="As for run.", metavar="N")] = 0,
    tests: Annotated[int | None, typer.Option(help="As for run.", min=1, max=10_000, metavar="N")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="As for run.", metavar="NAME")] = None,
    data: Annotated[list[str] | None, typer.Option(help="As for run.", metavar="NAME=PATH")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="As for run.", metavar="NAME=VALUE")] = None,
    isolated: Annotated[bool, typer.Option("--isolated", help="As for run.")] = False,
    placement: Annotated[Literal["uniform", "early"], typer.Option(help="As for run.")] = "uniform",
    trust: Annotated[bool, typer.Option("--trust", help="As for run.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the estimates and nothing else.")] = False,
) -> int:
    """Tell what runs will take: tokens, tokens read from cache, and dollars.

    The conversation is played with ideal replies and the agent's own way of asking, but no model is asked and nothing is sent.
    """
    import json

    import trio

    from longspan.simulator.agent import never_asked
    from longspan.simulator.runner import plan
    from longspan.simulator.sizes import parse_size
    from longspan.simulator.suite import load_suite
    from longspan.simulator.tools.estimate import estimate as play

    loaded = load_suite(suite)
    refuse_code(suite, loaded.scenarios, scenario or [], trust)
    chosen = loaded.changed(set_ or [], data or [], scenario or [], tests)
    with never_asked():
        plans = [
            plan(chosen, span=parse_size(size), seed=seed, agent=spec, out=Path(), isolated=isolated, placement=placement)
            for size in dict.fromkeys(span or [str(chosen.span)])
            for spec in dict.fromkeys(agent or ["notebook"])
        ]
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
