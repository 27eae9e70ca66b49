"""longspan arena: summaries of the same sources in pairs, judged and rated."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from longspan.simulator.answer_store import AnswerStore
    from longspan.simulator.arena.results import Result, Rules
    from longspan.simulator.arena.summaries import Gathered

__all__ = ["arena"]


def arena(
    summaries: Annotated[
        list[Path], typer.Argument(help="Files of JSON lines (source, system, summary), runs, folders of runs.", metavar="FILE_OR_RUN...")
    ],
    judge: Annotated[str, typer.Option(help="The model that names key facts and finds them, such as openai/gpt-4o.", metavar="SPEC")],
    metric: Annotated[
        Literal["completeness", "conciseness", "faithfulness"],
        typer.Option(help="What wins: holding more of the key facts, fewer sentences without any, or fewer sentences with errors."),
    ] = "completeness",
    facts: Annotated[int, typer.Option(help="Key facts of a pair at most; the paper has 16 and 30.", min=1, max=200, metavar="N")] = 16,
    match: Annotated[
        Literal["source", "aggregate"], typer.Option(help="A match for each source, or one for each pair, of the means over all sources.")
    ] = "source",
    draw: Annotated[float, typer.Option(help="Scores that differ by no more are a draw.", min=0, max=1, metavar="D")] = 0.0,
    k: Annotated[float, typer.Option("--k", help="Elo's K: the most that a match can move.", min=0.001, max=1000)] = 32.0,
    start: Annotated[float, typer.Option(help="The rating that all begin with.", min=-1e6, max=1e6, metavar="R")] = 1000.0,
    order: Annotated[
        Literal["sources", "pairs", "random"], typer.Option(help="Matches source by source, pair by pair, or shuffled by the seed.")
    ] = "sources",
    orders: Annotated[int, typer.Option(help="Random orders that ratings are averaged over.", min=1, max=100_000, metavar="N")] = 1000,
    seed: Annotated[int, typer.Option(help="What random orders and resamples are made from.", min=0, metavar="N")] = 0,
    max_cost: Annotated[
        float | None, typer.Option(help="Dollars that the judge may cost this time; stops before.", min=0, metavar="USD")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where answers, results and pages land. What was answered there is not asked again.", metavar="DIR")
    ] = Path("runs/arena"),
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
) -> int:
    """Rate systems by their summaries of the same sources, two at a time, without a reference (CREAM).

    A judge names the key facts of every two summaries and says which of them each holds. In a run, tests whose facts name a
    source count: the reply to the last question is the summary.
    """
    from longspan.simulator.answer_store import AnswerStore
    from longspan.simulator.arena.evaluate import check
    from longspan.simulator.arena.results import Rules
    from longspan.simulator.arena.summaries import gather

    rules = Rules(metric=metric, facts=facts, match=match, draw=draw, k=k, start=start, order=order, orders=orders, seed=seed)
    gathered = gather(summaries)
    most = inf if max_cost is None else max_cost
    check(gathered, rules, judge, most)
    store = AnswerStore.create(out)
    with store.lock("arena"):
        result = _held(gathered, rules, judge, store, most, quiet=json_)
        _tell(result, out, json_)
    return 1 if not result.matches else 0


def _held(gathered: Gathered, rules: Rules, judge: str, store: AnswerStore, most: float, *, quiet: bool) -> Result:
    """Have everything judged, and rate it."""
    import trio

    from longspan.simulator.arena.evaluate import hold
    from longspan.simulator.cli.counter import Counting

    with Counting("comparisons", quiet=quiet) as counting:
        return trio.run(lambda: hold(gathered, rules, judge, store, most=most, heard=counting.heard))


def _tell(result: Result, folder: Path, json_: bool) -> None:
    import json

    from rich.text import Text

    from longspan.simulator.arena.page import write
    from longspan.simulator.arena.tables import tables
    from longspan.simulator.cli.tables import print_table, wide_console
    from longspan.simulator.report.excerpts import visible

    found, page = write(folder, result)
    if json_:
        print(json.dumps(result.model_dump(mode="json"), ensure_ascii=False, indent=1))
        return
    console = wide_console()
    for table in tables(result) if result.matches else ():
        print_table(console, table)
    for warning in result.warnings:
        console.print(Text(visible(warning)), style="yellow")
    for note in result.notes:
        console.print(Text(visible(note)), style="dim")
    for label, path in (("result", found), ("report", page)):
        console.print(f"{label:8}{path}", soft_wrap=True, highlight=False, markup=False)
