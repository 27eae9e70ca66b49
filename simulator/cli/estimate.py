"""longspan estimate: estimate tokens and cost before spending money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.base.terminal import complain, say, say_json
from longspan.simulator.cli.options import GridOptions, takes_grid

if TYPE_CHECKING:
    from longspan.simulator.running.preflight.estimate import Estimate
    from longspan.simulator.subject.ledger import Spending

__all__ = ["estimate"]


def _say_parts(parts: Mapping[str, Spending]) -> None:
    for part, used in parts.items():
        dollars = "price unknown" if used.cost_usd is None else f"${used.cost_usd:.4f}"
        say(
            f"  {part:9} reads {used.input_tokens:,} tokens, {used.cached_tokens:,} of them from cache, "
            f"writes {used.output_tokens:,}: {dollars}"
        )


@takes_grid
def estimate(
    options: GridOptions,
    *,
    json_: Annotated[bool, typer.Option("--json", help="Only print the estimates, as a JSON list.")] = False,
) -> int:
    """Estimate the tokens and the cost of runs. Give a run's folder instead of a suite to estimate that run.

    Plays the conversation with ideal replies and the agent's own prompts, but sends nothing to a vendor. A model in this process is
    timed with one prompt and one answer.
    """
    import trio

    from longspan.simulator.contract.agent import never_asked
    from longspan.simulator.running.planning import describe_repetitions, plan_run
    from longspan.simulator.running.preflight.estimate import estimate_run

    with never_asked():
        if (folder := Path(options.suite)).joinpath("manifest.json").is_file():
            return _estimate_run(folder, options, json_=json_)
        plans = [plan_run(settings, Path()) for settings in options.grid().runs()]
        for note in describe_repetitions(plans):
            complain(note)
        estimates = [trio.run(estimate_run, planned) for planned in plans]
    return _say_estimates(estimates, json_=json_)


def _estimate_run(folder: Path, options: GridOptions, *, json_: bool) -> int:
    """Estimate an existing run, and print what it has cost so far."""
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.runs import open_run
    from longspan.simulator.running.planning import replan_run
    from longspan.simulator.running.preflight.estimate import estimate_run
    from longspan.simulator.subject.spending_record import read_totals

    if replace(options, suite=GridOptions().suite, trust=False) != GridOptions():
        raise InputError(f"{folder} is a run, and its manifest has the settings: omit options that shape the conversation")
    run = open_run(folder, options.trust)
    entry = trio.run(estimate_run, replan_run(run.manifest, run.manifest.agent, folder.parent))
    return _say_estimates([entry.model_copy(update={"spending": read_totals(run.path, run.owner())})], json_=json_)


def _say_estimates(estimates: Sequence[Estimate], *, json_: bool) -> int:
    from longspan.simulator.terminal.standings import format_duration

    if json_:
        say_json([entry.model_dump(mode="json") | {"cost_usd": entry.cost_usd} for entry in estimates])
        return 0
    for entry in estimates:
        where = "" if entry.span is None else f" at {entry.span:,} tokens"
        say(
            f"{entry.suite}{where} · {entry.agent}: {entry.turns:,} turns, {entry.asked:,} of them asked, "
            f"{entry.tokens:,} tokens of conversation, {entry.user_tokens:,} of them the user's"
        )
        if entry.minutes is not None:
            least, most = (format_duration(60 * minutes) for minutes in entry.minutes)
            say(f"  {least} to {most} on this machine, extrapolated from one prompt and one answer; depends on the length of answers")
        if entry.nights:
            say(f"  {entry.nights:,} {'night passes' if entry.nights == 1 else 'nights pass'}; the agent's work at night is not estimated")
        _say_parts(entry.parts)
        for name, extra in entry.extras.items():
            say(f"and {extra.conversations:,} {name}: {extra.turns:,} turns, {extra.asked:,} of them asked, {extra.tokens:,} tokens")
            _say_parts(extra.parts)
        if not entry.parts:
            say("  unknown beforehand: only its replies may report usage")
        if (spent := entry.spending) is not None:
            again = f"; ${spent.again_usd:.4f} of it was paid more than once" if spent.again_usd else ""
            unknown = " and calls without a known price" if spent.cost_usd is None else ""
            say(f"  so far    ${spent.known_usd:.4f}{unknown} in {spent.calls:,} calls{again}")
    if len(estimates) > 1:
        _say_total(estimates)
    return 0


def _say_total(estimates: Sequence[Estimate]) -> None:
    """Print what several runs will take together."""
    from longspan.simulator.terminal.standings import format_duration

    parts = [part for entry in estimates for size in (entry, *entry.extras.values()) for part in size.parts.values()]
    unknown = sum(entry.cost_usd is None for entry in estimates)
    say(
        f"{len(estimates):,} runs in total read {sum(part.input_tokens for part in parts):,} tokens, "
        f"{sum(part.cached_tokens for part in parts):,} of them from cache, write {sum(part.output_tokens for part in parts):,}: "
        f"${sum(part.cost_usd or 0 for part in parts):.4f}{f' and {unknown:,} of unknown cost' if unknown else ''}"
    )
    if timed := [entry.minutes for entry in estimates if entry.minutes is not None]:
        least, most = (format_duration(60 * sum(minutes)) for minutes in zip(*timed, strict=True))
        say(f"  {least} to {most} on this machine, one run after another")
