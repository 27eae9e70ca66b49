"""longspan list: list scenarios, agents, suites or runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.terminal import say

if TYPE_CHECKING:
    from rich.table import Table

    from longspan.simulator.grading.grades import Result

__all__ = ["agents", "runs", "scenarios", "suites"]


def scenarios() -> None:
    """List the installed scenarios with their skills and parameters."""
    from longspan.simulator.errors import InputError
    from longspan.simulator.installed import SCENARIOS, installed
    from longspan.simulator.plugins import scenario_class
    from longspan.simulator.scenario import description

    table = _table("scenario", "skills", "parameters", "description")
    for name in installed(SCENARIOS):
        try:
            cls = scenario_class(name)
        except InputError as error:
            table.add_row(name, "", "", str(error))
            continue
        parameters = ", ".join(f"{field}={info.get_default(call_default_factory=True)}" for field, info in cls.model_fields.items())
        table.add_row(name, ", ".join(cls.skills), parameters, description(cls))
    _print(table)


def agents() -> None:
    """List the installed kinds of agent."""
    from longspan.simulator.errors import InputError
    from longspan.simulator.installed import AGENTS, installed
    from longspan.simulator.plugins import load

    table = _table("agent", "description")
    for kind in installed(AGENTS):
        try:
            doc = (load(AGENTS, "kind of agent", kind).__doc__ or "").strip().splitlines()
        except InputError as error:
            doc = [str(error)]
        table.add_row(kind, doc[0] if doc else "")
    _print(table)


def suites() -> None:
    """List the suites that come with longspan."""
    from longspan.simulator.installed import suites as known
    from longspan.simulator.suite import load_suite

    table = _table("suite", "tests per scenario", "scenarios", "description")
    for name in known():
        suite = load_suite(name)
        table.add_row(name, str(suite.tests), ", ".join(suite.scenarios), suite.title)
    _print(table)


def runs(out: Annotated[Path, typer.Argument(help="The folder of runs.", metavar="DIR")] = Path("runs")) -> None:
    """List the runs in a folder with their scores."""
    import os

    from longspan.simulator.cli.console import wide_console
    from longspan.simulator.cli.tables import print_table
    from longspan.simulator.errors import InputError, LongspanError
    from longspan.simulator.folders import inside
    from longspan.simulator.grading.grades import read_result
    from longspan.simulator.run_folder import MANIFEST, RESULT, RunFolder
    from longspan.simulator.tables import Table

    if not out.is_dir():
        raise InputError(f"{out}: folder does not exist; name the folder of runs (--out of longspan run)")
    folders = sorted(path.parent for path in out.glob(f"*/{MANIFEST}"))
    deeper = sorted({path.parent.parent for path in out.glob(f"*/*/{MANIFEST}")})
    if not folders and not deeper:
        raise InputError(f"{out}: no runs found; name the folder of runs (--out of longspan run)")
    rows: list[list[str]] = []
    maxima: set[int] = set()
    for folder in folders:
        try:
            run = RunFolder(inside(out, folder.name))
            manifest = run.manifest
            run.check()
            result = read_result(run) if os.path.lexists(folder / RESULT) else None
        except (LongspanError, OSError) as error:
            rows.append([folder.name, "", "", "", "", f"unreadable: {error}", ""])
            continue
        score, share = ("unfinished", "") if result is None else _score(result)
        maxima |= {result.max_score} if result is not None else set()
        span = "-" if manifest.alone else f"{manifest.span:,}"
        rows.append([folder.name, manifest.suite.name, span, manifest.agent, str(manifest.seed), score, share])
    if rows:
        columns = ["run", "suite", "span", "agent", "seed", "score", "share"][: 7 if len(maxima) > 1 else 6]
        print_table(wide_console(), Table(title=f"Runs in {out}", columns=columns, rows=[row[: len(columns)] for row in rows]))
    for folder in deeper:
        say(f"{folder} contains more runs: longspan list runs {folder}")


def _score(result: Result) -> tuple[str, str]:
    """Return a score, and its share of full marks."""
    if result.score is None or not result.max_score:
        return "incomplete", ""
    return f"{result.score:.2f} of {result.max_score}", f"{result.score / result.max_score:.1%}"


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)  # names must stay copyable
    return table


def _print(table: Table) -> None:
    from longspan.simulator.cli.console import Console

    Console().print(table)
