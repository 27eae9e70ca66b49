"""longspan run: play a suite."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.cli.options import GridOptions, OtelOption, takes_grid
from longspan.simulator.terminal import say_json

if TYPE_CHECKING:
    from longspan.simulator.runner import Outcome

__all__ = ["exit_code", "finish", "run"]


@takes_grid
def run(
    options: GridOptions,
    *,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for all runs together.", min=0, metavar="USD")] = None,
    out: Annotated[Path, typer.Option(help="The folder for runs.", metavar="DIR")] = Path("runs"),
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the results, as a JSON list.")] = False,
) -> int:
    """Play a suite against an agent and grade it.

    --span, --agent, --seed, --scenario, --data and --set may be repeated. Each combination of spans, agents and seeds is a run
    of its own; all are played at the same time.
    """
    import trio

    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.planning import plan
    from longspan.simulator.runner import play
    from longspan.simulator.tracing import telling

    plans = [plan(settings, out) for settings in options.grid().runs()]
    with telling(otel):
        with Progress([] if json_ else plans) as progress:
            heard = None if json_ else progress.heard
            outcomes = trio.run(lambda: play(plans, listener=heard, signals=True, max_cost=inf if max_cost is None else max_cost))
        return finish(outcomes, json_)


def finish(outcomes: list[Outcome], json_: bool) -> int:
    """Print the outcomes of runs and return the exit code."""
    from longspan.simulator.cli.progress import print_outcome, tell_interruption

    if json_:
        _print_json(outcomes)
    for outcome in outcomes:
        if json_:
            tell_interruption(outcome)
        else:
            print_outcome(outcome)
    return exit_code(outcomes)


def exit_code(outcomes: list[Outcome]) -> int:
    """Return 130 if a run was stopped, 1 if a run or a scenario failed, else 0."""
    from longspan.simulator.errors import StoppedError

    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if any(isinstance(error, StoppedError) for error in errors):
        return 130
    failed = [test for outcome in outcomes if outcome.result for test in outcome.result.tests if test.status == "scenario_error"]
    return 1 if errors or failed else 0


def _print_json(outcomes: list[Outcome]) -> None:
    results = [{"folder": str(outcome.folder)} | (outcome.result.model_dump(mode="json") if outcome.result else {}) for outcome in outcomes]
    say_json(results)
