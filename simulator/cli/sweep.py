"""longspan sweep: play the runs that a file defines."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.base.terminal import complain, quote_command, say
from longspan.simulator.cli.options import MaxTokens, OtelOption, TimeLimit

if TYPE_CHECKING:
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.running.planning import Plan
    from longspan.simulator.running.player import Outcome
    from longspan.simulator.running.sweeps.sweep import IndexEntry
    from longspan.simulator.subject.spending_limit import Amount

__all__ = ["sweep"]


def sweep(
    file: Annotated[Path, typer.Argument(help="A YAML file that defines the runs.", metavar="FILE")],
    out: Annotated[Path | None, typer.Option(help="The sweep's folder.", metavar="DIR", show_default="runs/ and FILE's name")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="The number of processes; each plays one run at a time.",
            parser=integer_parser(1, 1000),
            metavar="N",
            show_default="one that plays all runs concurrently",
        ),
    ] = None,
    on: Annotated[str | None, typer.Option(help="ray: play each run as a task of a Ray cluster.", metavar="WHERE")] = None,
    no_ship: Annotated[
        bool, typer.Option("--no-ship", help="With --on ray: do not send the current folder to machines that lack it.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Maximum dollars for the whole sweep, including earlier cost.", min=0, metavar="USD")
    ] = None,
    max_tokens: MaxTokens = None,
    time_limit: TimeLimit = None,
    trust: Annotated[bool, typer.Option("--trust", help="Allow the code and addresses that the file names.")] = False,
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the results, as a JSON list.")] = False,
) -> int:
    """Play all runs that a file defines.

    Start it again to resume interrupted runs and play missing ones; finished runs are kept. Without --jobs, one process plays all
    runs concurrently, which suits agents that wait for a network. --jobs suits agents that compute, such as local models.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.files.locks import lock_folder
    from longspan.simulator.cli.compare import print_contrasts
    from longspan.simulator.cli.run import exit_code, print_outcomes
    from longspan.simulator.pages.report.stating import check_contrasts, conclude_contrasts, declare_contrasts
    from longspan.simulator.running.planning import describe_repetitions
    from longspan.simulator.running.runner import check_limit
    from longspan.simulator.running.sweeps.sweep import make_folders, plans_of, read_sweep, split_unfinished, write_index
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.subject.tracing import export_and_report
    from longspan.simulator.suite.suite import load_suite
    from longspan.simulator.suite.trust import admit_file

    if on not in (None, "ray"):
        raise InputError(f"--on {on!r:.40}: must be ray, or left out to play on this machine")
    if on and jobs is not None:
        raise InputError("--jobs and --on ray exclude each other; leave out one of them")
    if on and otel:
        raise InputError(
            "--otel and --on ray exclude each other: each node of a cluster has its own environment variables; leave out one of them"
        )
    if on and time_limit is not None:
        raise InputError("--time-limit and --on ray exclude each other; leave out one of them")
    if no_ship and not on:
        raise InputError("--no-ship is for --on ray; leave it out")
    if on:
        from longspan.simulator.running.sweeps.ray.driver import import_ray

        import_ray()
    grids, contrasts = read_sweep(file)
    specs = [name for grid in grids for name in [*grid.agents, *grid.scenarios, *([grid.judge] if grid.judge else [])]]
    admit_file(file, specs, trust=trust)
    suites = {name: load_suite(name) for name in dict.fromkeys(name for grid in grids for name in grid.suites)}
    for name, suite in suites.items():
        admit_file(name, suite.scenarios, trust=trust)
    out = out or Path("runs") / file.stem
    plans = plans_of(grids, out)
    contrasts = check_contrasts(contrasts, [planned.manifest for planned in plans.values()], file, out)
    limit = limit_of(max_cost, max_tokens)
    check_limit(list(plans.values()), limit)
    for note in describe_repetitions(plans.values()):
        complain(note)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot create the sweep's folder: {error.strerror}; choose another with --out") from error
    with export_and_report(otel), lock_folder(out, "sweep") as lock:
        pairs = make_folders(plans, out)
        entries = write_index(out, pairs)
        if contrasts is not None and declare_contrasts(out, contrasts, entries, suites.values()):
            say(f"{len(contrasts.contrasts)} contrast{'s' * (len(contrasts.contrasts) > 1)} stated, SHA-256 {contrasts.sha256}")
        left, finished = split_unfinished(pairs)
        outcomes = {outcome.folder: outcome for outcome in finished}
        outcomes |= {outcome.folder: outcome for outcome in _play(left, jobs, on, not no_ship, lock, limit, time_limit or inf, pairs)}
        entries = write_index(out, pairs)
        through = all(entry.state == "finished" for entry in entries)
        concluded = conclude_contrasts(out, contrasts, entries) if contrasts is not None and through else None
    ordered = [outcomes[run.path] for _, run in pairs]
    if json_:
        return print_outcomes(ordered, json_)
    _print_summary(out, entries, ordered, sum(outcome.error is None for outcome in finished))
    if concluded is not None:
        folder, family = concluded
        print_contrasts(family)
        say(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    elif contrasts is not None:
        say(f"contrasts are tested after all runs; to test finished ones: {quote_command('longspan', 'compare', out, '--contrasts', file)}")
    return exit_code(ordered)


def _play(
    left: list[tuple[Plan, RunFolder]],
    jobs: int | None,
    on: str | None,
    ships: bool,
    lock: int,
    limit: Amount,
    seconds: float,
    pairs: list[tuple[Plan, RunFolder]],
) -> list[Outcome]:
    """Play the remaining runs of a sweep, and show their progress (see `play_left`)."""
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.sweeps.sweep_player import play_left
    from longspan.simulator.terminal.progress import Progress

    if not left:
        return []
    with Progress([planned for planned, _ in left]) as progress:
        return play_left(
            left,
            [run for _, run in pairs],
            jobs=jobs,
            on_ray=on is not None,
            ships=ships,
            lock=lock,
            limit=limit,
            seconds=seconds,
            listener=progress.take_event,
            pages=Report,
        )


def _print_summary(out: Path, entries: list[IndexEntry], outcomes: list[Outcome], finished_before: int) -> None:
    """Print a line for each run of a sweep, and the errors."""
    from longspan.simulator.terminal.console import Console
    from longspan.simulator.terminal.scores import print_outcomes

    console = Console()
    print_outcomes(outcomes, [out], console)
    done = sum(entry.state == "finished" for entry in entries)
    console.say(f"{out}: {done} of {len(entries)} runs finished, {finished_before} of them before")
    if done < len(entries):
        console.say("run the same command again to continue")
