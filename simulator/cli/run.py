"""longspan run: play a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.base.terminal import say_json
from longspan.simulator.cli.options import GridOptions, MaxTokens, OtelOption, RepliesOption, TimeLimit, parse_size_option, takes_grid

if TYPE_CHECKING:
    from longspan.simulator.results.result import Result
    from longspan.simulator.running.player import Outcome

__all__ = ["FailedOption", "exit_code", "print_outcomes", "run"]

FailedOption = Annotated[
    int, typer.Option(help="Failed tests to print with their reasons.", parser=integer_parser(0, 1_000_000), metavar="N")
]

FailUnderOption = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        help="Exit with 1 if an agent scores below this share of full marks, such as 0.8, or a memory without an answerer finds less.",
        min=0,
        max=1,
        metavar="SHARE",
    ),
]

FailUnderReachOption = Annotated[
    int | None,
    typer.Option(
        "--fail-under-reach",
        help="Exit with 1 if an agent recalls significantly less than half of the plain facts at some distance up to this many tokens, "
        "such as 8k, and with 3 if the runs cannot decide.",
        parser=parse_size_option,
        metavar="S",
    ),
]

AtLeastOption = Annotated[
    float | None,
    typer.Option("--at-least", help="For --fail-under-reach: the share of plain facts to recall.", min=0.01, max=0.99, metavar="SHARE"),
]

HALF = 0.5
"""The default share of plain facts to recall."""

UNDECIDED = 3
"""The exit code of a gate that the runs cannot decide."""

JunitOption = Annotated[Path | None, typer.Option(help="Also write the tests as JUnit XML; full marks pass.", metavar="FILE")]


@takes_grid
def run(
    options: GridOptions,
    *,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for all runs together.", min=0, metavar="USD")] = None,
    max_tokens: MaxTokens = None,
    time_limit: TimeLimit = None,
    out: Annotated[Path, typer.Option(help="The folder for runs.", metavar="DIR")] = Path("runs"),
    failed: FailedOption = 5,
    fail_under: FailUnderOption = None,
    fail_under_reach: FailUnderReachOption = None,
    at_least: AtLeastOption = None,
    junit: JunitOption = None,
    replies: RepliesOption = None,
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the results, as a JSON list.")] = False,
) -> int:
    """Play a suite of memory tests in one conversation with an agent, and grade it.

    --span, --agent, --seed, --scenario, --data and --set may be repeated. Each combination of spans, agents and seeds is a separate
    run; all runs play concurrently.
    """
    from math import inf

    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.planning import describe_repetitions, plan_run
    from longspan.simulator.running.prepared_agents import PreparedAgents
    from longspan.simulator.running.runner import play_plans
    from longspan.simulator.subject.replies import keep_replies
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.subject.tracing import export_and_report
    from longspan.simulator.terminal.progress import Progress

    if junit is not None:
        from longspan.simulator.pages.report.junit import check_junit

        check_junit(junit)
    if at_least is not None and fail_under_reach is None:
        raise InputError("--at-least requires --fail-under-reach")
    limit = limit_of(max_cost, max_tokens)
    with export_and_report(otel):
        with keep_replies(replies) as kept, PreparedAgents() as agents:
            plans = [plan_run(settings, out, agents) for settings in options.grid().runs()]
            if fail_under_reach is not None:
                from longspan.simulator.results.reach_result import check_reach

                for each in plans:
                    check_reach(each.manifest, each.tests, fail_under_reach)
            for note in describe_repetitions(plans):
                complain(note)
            with Progress(plans) as progress:
                outcomes = trio.run(
                    lambda: play_plans(
                        plans, listener=progress.take_event, pages=Report, signals=True, limit=limit, seconds=time_limit or inf
                    )
                )
        if kept is not None:
            complain(kept.summary)
        codes = [
            print_outcomes(outcomes, json_, failed),
            _gate(outcomes, fail_under, junit),
            _gate_reach(outcomes, fail_under_reach, at_least or HALF) if fail_under_reach is not None else 0,
        ]
        return next((code for code in codes if code not in (0, UNDECIDED)), max(codes))


def _gate(outcomes: list[Outcome], fail_under: float | None, junit: Path | None) -> int:
    """Write the JUnit file, if requested. Return 1 if an agent's mean score at a span is below the required share, else 0."""
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.results.gates import name_low_scores

    graded = [(RunFolder(outcome.folder), outcome.result) for outcome in outcomes if outcome.result is not None]
    if junit is not None:
        from longspan.simulator.pages.report.junit import write_junit

        write_junit(junit, graded)
    low = name_low_scores(graded, fail_under) if fail_under is not None else []
    for sentence in low:
        complain(f"longspan: {sentence}")
    return 1 if low else 0


def _gate_reach(outcomes: list[Outcome], limit: int, share: float) -> int:
    """Decide the gate on reach, and print each decision.

    Returns 1 if an agent at a span recalls significantly less than `share` at some distance up to `limit` tokens. Otherwise returns
    UNDECIDED if this is open for an agent, else 0.
    """
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.results.measures.reach import decide_reach

    runs: dict[tuple[str, int], list[Result]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            runs.setdefault((outcome.result.agent, outcome.result.span), []).append(outcome.result)
    decisions = [(agent, decide_reach([result.tests for result in results], limit, share)) for (agent, _), results in runs.items()]
    for agent, decision in decisions:
        complain(f"longspan: {agent}: {decision.sentence}")
    verdicts = {decision.verdict for _, decision in decisions}
    return 1 if "failed" in verdicts else UNDECIDED if "undecided" in verdicts else 0


def print_outcomes(outcomes: list[Outcome], json_: bool, failed: int = 5) -> int:
    """Print the outcomes of runs, and return the exit code. A single run also gets up to `failed` failed tests."""
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.terminal.scores import print_outcome, print_outcomes, tell_interruption

    kept = [outcome for outcome in outcomes if outcome.kept]
    if json_:
        _print_json(kept)
        for outcome in kept:
            tell_interruption(outcome)
    elif len(kept) == 1:
        print_outcome(kept[0], failed=failed)
    elif kept:
        print_outcomes(kept, [outcome.folder for outcome in kept if outcome.result is not None])
    for error in dict.fromkeys(str(outcome.error) for outcome in outcomes if not outcome.kept):
        complain(f"longspan: {error}")
    return exit_code(outcomes)


def exit_code(outcomes: list[Outcome]) -> int:
    """Return 130 if a run was stopped, 1 if a run or a scenario failed, else 0."""
    from longspan.simulator.base.errors import StoppedError

    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if any(isinstance(error, StoppedError) for error in errors):
        return 130
    failed = [test for outcome in outcomes if outcome.result for test in outcome.result.tests if test.status == "scenario_error"]
    return 1 if errors or failed else 0


def _print_json(outcomes: list[Outcome]) -> None:
    results = [{"folder": str(outcome.folder)} | (outcome.result.model_dump(mode="json") if outcome.result else {}) for outcome in outcomes]
    say_json(results)
