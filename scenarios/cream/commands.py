"""longspan cream arena: rank systems by judging pairs of their summaries."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.cli import completion

if TYPE_CHECKING:
    from longspan.scenarios.cream.arena_result import ArenaResult, Rules
    from longspan.scenarios.cream.summaries import SummaryCollection
    from longspan.simulator.journal.answer_store import AnswerStore

__all__ = ["arena"]


def arena(
    summaries: Annotated[
        list[Path], typer.Argument(help="JSON lines files (source, system, summary), runs or folders of runs.", metavar="FILE_OR_RUN")
    ],
    judge: Annotated[
        str,
        typer.Option(
            help="The model that finds key facts, such as openai/gpt-4o.",
            metavar="SPEC",
            autocompletion=completion.complete_agents,
        ),
    ],
    metric: Annotated[
        Literal["completeness", "conciseness", "faithfulness"],
        typer.Option(
            help="completeness (more key facts), conciseness (fewer sentences without any) or faithfulness (fewer with errors).",
            metavar="METRIC",
        ),
    ] = "completeness",
    facts: Annotated[
        int, typer.Option(help="Maximum key facts; the paper uses 16 and 30.", parser=integer_parser(1, 200), metavar="N")
    ] = 16,
    extraction: Annotated[
        Literal["pair", "summary"],
        typer.Option(help="Name key facts once for a pair, or, as the paper does, anew for each summary as it is compared."),
    ] = "pair",
    match: Annotated[
        Literal["source", "aggregate"], typer.Option(help="One match per source, or one per pair of systems with mean scores.")
    ] = "source",
    draw: Annotated[float, typer.Option(help="The largest difference in score that is a draw.", min=0, max=1, metavar="D")] = 0.0,
    k: Annotated[float, typer.Option("--k", help="Elo's K, the most points that a match moves.", min=0.001, max=1000, metavar="K")] = 32.0,
    start: Annotated[float, typer.Option(help="The initial rating.", min=-1e6, max=1e6, metavar="R")] = 1000,
    order: Annotated[
        Literal["sources", "pairs", "random"], typer.Option(help="The order of matches: by source, by pair, or random.")
    ] = "sources",
    orders: Annotated[
        int, typer.Option(help="How many random orders to average over.", parser=integer_parser(1, 100_000), metavar="N")
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="The seed of random orders and resamples.", parser=integer_parser(0, 2**63 - 1), metavar="N")
    ] = 0,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for the judge this time.", min=0, metavar="USD")] = None,
    out: Annotated[Path, typer.Option(help="The folder for answers and results; known answers are reused.", metavar="DIR")] = Path(
        "runs/arena"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Only print the result, as JSON.")] = False,
) -> int:
    """Rank systems by their summaries of the same sources, without a reference (CREAM).

    A judge lists the key facts of each pair of summaries, and says which of them each one contains. In a run, the reply to a
    test's last question is a summary if the test names a source.
    """
    from longspan.scenarios.cream.arena_result import Rules
    from longspan.scenarios.cream.evaluate import check_judge
    from longspan.scenarios.cream.summaries import gather_summaries
    from longspan.simulator.journal.answer_store import AnswerStore

    rules = Rules(
        metric=metric,
        facts=facts,
        extraction=extraction,
        match=match,
        draw=draw,
        k=k,
        start=start,
        order=order,
        orders=orders,
        seed=seed,
    )
    gathered = gather_summaries(summaries)
    limit = inf if max_cost is None else max_cost
    check_judge(gathered, rules, judge, limit)
    store = AnswerStore.create(out)
    with store.lock("arena"):
        result = _judge(gathered, rules, judge, store, limit)
        _print(result, out, json_)
    return 1 if not result.matches else 0


def _judge(gathered: SummaryCollection, rules: Rules, judge: str, store: AnswerStore, limit: float) -> ArenaResult:
    """Judge all pairs, showing progress, and rank the systems."""
    import trio

    from longspan.scenarios.cream.evaluate import judge_and_rank
    from longspan.simulator.terminal.counter import Counter

    with Counter("comparisons") as counter:
        return trio.run(lambda: judge_and_rank(gathered, rules, judge, store, max_cost=limit, on_progress=counter.update))


def _print(result: ArenaResult, folder: Path, json_: bool) -> None:
    from longspan.scenarios.cream.arena_page import write_arena
    from longspan.scenarios.cream.ranking_tables import ranking_tables
    from longspan.simulator.base.terminal import say_json
    from longspan.simulator.terminal.console import wide_console
    from longspan.simulator.terminal.printed_tables import print_table

    written, page = write_arena(folder, result)
    if json_:
        say_json(result.model_dump(mode="json"))
        return
    console = wide_console()
    for table in ranking_tables(result) if result.matches else ():
        print_table(console, table)
    for warning in result.warnings:
        console.print(warning, style="yellow")
    for note in result.notes:
        console.print(note, style="dim")
    for label, path in (("result", written), ("report", page)):
        console.say(f"{label:8}{path}")
