"""longspan sweep: plays the runs that a file names."""

from __future__ import annotations

from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.cli.options import refuse_code

if TYPE_CHECKING:
    from longspan.simulator.planning import Plan
    from longspan.simulator.run_folder import RunFolder
    from longspan.simulator.runner import Listener, Outcome
    from longspan.simulator.sweeps.sweep import Indexed

__all__ = ["sweep"]


def sweep(
    file: Annotated[Path, typer.Argument(help="A YAML file that names the runs.", metavar="FILE")],
    out: Annotated[Path | None, typer.Option(help="The sweep's folder.", metavar="DIR", show_default="runs/FILE's name")] = None,
    jobs: Annotated[
        int, typer.Option(help="Processes that play, one run at a time each: for agents that compute.", min=1, max=1000, metavar="N")
    ] = 1,
    on: Annotated[str | None, typer.Option(help="`ray` plays each run as a task of a Ray cluster (extra `ray`).", metavar="WHERE")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Dollars that the sweep may cost in all, what it has cost so far included.", min=0, metavar="USD")
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run code and call addresses that only the file names.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the results and nothing else.")] = False,
) -> int:
    """Play every run that a file names, as far as it is not yet.

    Started again, it keeps what is finished, goes on with what was broken off and plays what is missing. Without --jobs all
    runs are played at once in one process, for agents that wait on a network.
    """
    from longspan.simulator.cli.run import exit_code, finish
    from longspan.simulator.errors import InputError
    from longspan.simulator.locks import locked
    from longspan.simulator.runner import check_limit
    from longspan.simulator.sweeps.sweep import left_to_play, make_folders, plans_of, read_sweep, write_index

    if on not in (None, "ray"):
        raise InputError(f"--on {on!r:.40}: a sweep is played on `ray`, or here, without --on")
    if on and jobs > 1:
        raise InputError("--jobs says how many processes play on this machine; with --on ray the cluster's processors do")
    if on:
        from longspan.simulator.sweeps.ray.driver import import_ray

        import_ray()
    grids = read_sweep(file)
    foreign = [name for grid in grids for name in [*grid.agents, *grid.scenarios, *([grid.judge] if grid.judge else [])]]
    refuse_code(file, foreign, [], trust)
    for suite in {name for grid in grids for name in grid.suites}:
        _refuse_code_of(suite, trust)
    out = out or Path("runs") / file.stem
    plans = plans_of(grids, out)
    most = inf if max_cost is None else max_cost
    check_limit(list(plans.values()), most)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot make the sweep's folder: {error.strerror}; choose another with --out") from error
    with locked(out, "sweep") as lock:
        pairs = make_folders(plans, out)
        write_index(out, pairs)
        left, known = left_to_play(pairs)
        outcomes = {outcome.folder: outcome for outcome in known}
        outcomes |= {outcome.folder: outcome for outcome in _play(left, jobs, on, lock, most, pairs, json_)}
        found = write_index(out, pairs)
    ordered = [outcomes[run.path] for _, run in pairs]
    if json_:
        return finish(ordered, json_)
    _tell(out, found, ordered, sum(outcome.error is None for outcome in known))
    return exit_code(ordered)


def _refuse_code_of(suite: str, trust: bool) -> None:
    from longspan.simulator.suite import load_suite

    refuse_code(suite, load_suite(suite).scenarios, [], trust)


def _play(
    left: list[tuple[Plan, RunFolder]],
    jobs: int,
    on: str | None,
    lock: int,
    most: float,
    pairs: list[tuple[Plan, RunFolder]],
    json_: bool,
) -> list[Outcome]:
    """Play what is left, in this process, in `jobs` others or on a Ray cluster, with at most `most` dollars less what the sweep
    has spent."""
    import trio

    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.ledger import Ledger
    from longspan.simulator.runner import cost_so_far, play_runs
    from longspan.simulator.sweeps.processes import play_apart

    if not left:
        return []
    paid = fsum(cost_so_far(run) for _, run in pairs) if most < inf else 0.0
    with Progress([] if json_ else [each for each, _ in left]) as progress:
        heard: Listener | None = None if json_ else progress.heard
        if on is not None:
            from longspan.simulator.sweeps.ray.driver import play_on_ray

            return play_on_ray(left, listener=heard, most=most, paid=paid)
        if jobs == 1:
            return trio.run(lambda: play_runs(left, Ledger(most, spent=paid), listener=heard, signals=True))
        return trio.run(lambda: play_apart(left, min(jobs, len(left)), lock=lock, listener=heard, most=max(0.0, most - paid)))


def _tell(out: Path, found: list[Indexed], outcomes: list[Outcome], before: int) -> None:
    """Print a line for each run of a sweep, and what went wrong."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table()
    for column in ("run", "score", "state"):
        table.add_column(column, overflow="fold")
    for each in found:
        score = f"{each.score:.2f} of {each.max_score}" if each.score is not None else "-"
        table.add_row(*map(Text, (each.folder, score, each.state)))
    console.print(table)
    for outcome in outcomes:
        if outcome.error is not None:
            console.print(Text(f"{outcome.folder.name}: {outcome.error}", style="red"), soft_wrap=True)
    done = sum(each.state == "finished" for each in found)
    console.print(f"{out}: {done} of {len(found)} runs finished, {before} of them before", soft_wrap=True, highlight=False, markup=False)
    if done < len(found):
        console.print("the same command goes on with the others", soft_wrap=True, highlight=False, markup=False)
