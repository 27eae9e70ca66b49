"""longspan run: play a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.base.integers import whole
from longspan.simulator.base.terminal import say_json
from longspan.simulator.cli.options import GridOptions, MaxTokens, OtelOption, RepliesOption, TimeLimit, size, takes_grid

if TYPE_CHECKING:
    from longspan.simulator.results.result import Result
    from longspan.simulator.running.player import Outcome

__all__ = ["FailedOption", "exit_code", "finish", "run"]

FailedOption = Annotated[int, typer.Option(help="Failed tests to print with their reasons.", parser=whole(0, 1_000_000), metavar="N")]

FailUnderOption = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        help="Exit with 1 if an agent scores less than this share of full marks, such as 0.8, or a memory without an answerer finds less.",
        min=0,
        max=1,
        metavar="SHARE",
    ),
]

FailUnderReachOption = Annotated[
    int | None,
    typer.Option(
        "--fail-under-reach",
        help="Exit with 1 if an agent is shown to recall less than half of the plain facts at some distance up to this many tokens, such "
        "as 8k, and with 3 if that stays undecided.",
        parser=size,
        metavar="S",
    ),
]

AtLeastOption = Annotated[
    float | None,
    typer.Option("--at-least", help="For --fail-under-reach: the share of plain facts to recall.", min=0.01, max=0.99, metavar="SHARE"),
]

HALF = 0.5
"""The share of plain facts to recall, if no other is given."""

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

    --span, --agent, --seed, --scenario, --data and --set may be repeated. Each combination of spans, agents and seeds is a run
    of its own; all are played at the same time.
    """
    from math import inf

    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.report import Report
    from longspan.simulator.running.planning import plan, repetitions
    from longspan.simulator.running.runner import play
    from longspan.simulator.subject.replies import keeping
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.tracing import telling

    if junit is not None:
        from longspan.simulator.report.junit import check_junit

        check_junit(junit)
    if at_least is not None and fail_under_reach is None:
        raise InputError("--at-least is for the gate: add --fail-under-reach")
    limit = limit_of(max_cost, max_tokens)
    with telling(otel):
        with keeping(replies) as kept:
            plans = [plan(settings, out) for settings in options.grid().runs()]
            if fail_under_reach is not None:
                from longspan.simulator.results.reach import check_reach

                for each in plans:
                    check_reach(each.manifest, each.tests, fail_under_reach)
            for note in repetitions(plans):
                complain(note)
            with Progress(plans) as progress:
                outcomes = trio.run(
                    lambda: play(plans, listener=progress.heard, pages=Report, signals=True, limit=limit, seconds=time_limit or inf)
                )
        if kept is not None:
            complain(kept.summary)
        codes = [
            finish(outcomes, json_, failed),
            _gate(outcomes, fail_under, junit),
            _gate_reach(outcomes, fail_under_reach, at_least or HALF) if fail_under_reach is not None else 0,
        ]
        return next((code for code in codes if code not in (0, UNDECIDED)), max(codes))


def _gate(outcomes: list[Outcome], fail_under: float | None, junit: Path | None) -> int:
    """Write a JUnit file if asked to. Return 1 if an agent's mean score at a span is below the required share, else 0.

    A memory that was only searched has no score: its recall counts instead.
    """
    from statistics import fmean

    from longspan.simulator.archive.run_folder import RunFolder
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.results.result import recall_of

    graded = [(RunFolder(outcome.folder), outcome.result) for outcome in outcomes if outcome.result is not None]
    if junit is not None:
        from longspan.simulator.report.junit import write_junit

        write_junit(junit, graded)
    groups: dict[tuple[str, str], list[Result]] = {}
    for run, result in graded if fail_under is not None else []:
        where = result.agent if run.manifest.alone else f"{result.agent} at {result.span:,} tokens"
        by = f" by {result.measured}" if result.measured != "score" else ""
        groups.setdefault((where, by), []).append(result)
    below = 0
    for (where, by), found in groups.items():
        recall = recall_of(found)
        share = fmean(each.score_bounds[0] / each.full for each in found) if recall is None else recall
        if share < (fail_under or 0) - 1e-9:
            what = f"scores {share:.1%} of full marks{by}" if recall is None else f"finds {share:.1%} of the evidence"
            complain(f"longspan: {where} {what}, less than --fail-under {fail_under:g}")
            below += 1
    return 1 if below else 0


def _gate_reach(outcomes: list[Outcome], limit: int, share: float) -> int:
    """Return 1 if an agent at a span is shown to recall less than the share somewhere up to the limit, in tokens; UNDECIDED if this is open
    for an agent, else 0."""
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.measures.reach import decide_reach

    runs: dict[tuple[str, int], list[Result]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            runs.setdefault((outcome.result.agent, outcome.result.span), []).append(outcome.result)
    decisions = [(agent, decide_reach([result.tests for result in results], limit, share)) for (agent, _), results in runs.items()]
    for agent, decision in decisions:
        complain(f"longspan: {agent}: {decision.sentence}")
    verdicts = {decision.verdict for _, decision in decisions}
    return 1 if "failed" in verdicts else UNDECIDED if "undecided" in verdicts else 0


def finish(outcomes: list[Outcome], json_: bool, failed: int = 5) -> int:
    """Print the outcomes of runs, with up to `failed` failed tests if there is a single run, and return the exit code."""
    from longspan.simulator.base.terminal import complain
    from longspan.simulator.cli.scores import print_outcome, print_outcomes, tell_interruption

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
