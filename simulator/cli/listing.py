"""longspan list: list scenarios, agents, memories, suites, runs or formats of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from longspan.simulator.base.shares import format_percent, format_share_range
from longspan.simulator.base.terminal import quote_command, say, say_json
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import JsonOption

if TYPE_CHECKING:
    from longspan.simulator.cli.outputs import (
        ListedAgent,
        ListedFormat,
        ListedMemory,
        ListedOption,
        ListedRun,
        ListedScenario,
        ListedSuite,
        UnreadableRun,
    )
    from longspan.simulator.results.result import Result
    from longspan.simulator.suite.manifest import Manifest
    from longspan.simulator.terminal.run_lines import RunLine

__all__ = ["agents", "citations", "formats", "memories", "runs", "scenarios", "suites"]

KindArgument = Annotated[
    str | None,
    typer.Argument(help="A kind, such as openai, to see its options.", metavar="KIND", autocompletion=completion.complete_agents),
]

MAX_DEFAULT: Final = 20
"""The longest default shown in a table of options, in characters."""


def scenarios(json_: JsonOption = False) -> None:
    """List the installed scenarios with their skills and parameters."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.installed import SCENARIOS, find_entry_points
    from longspan.simulator.contract.plugins import scenario_class
    from longspan.simulator.contract.scenario import describe_scenario

    rows: list[ListedScenario] = []
    for name in find_entry_points(SCENARIOS):
        try:
            cls = scenario_class(name)
        except InputError as error:
            rows.append({"scenario": name, "skills": [], "parameters": {}, "description": str(error)})
            continue
        parameters = {field: str(info.get_default(call_default_factory=True)) for field, info in cls.model_fields.items()}
        rows.append({"scenario": name, "skills": list(cls.skills), "parameters": parameters, "description": describe_scenario(cls)})
    _print("scenarios", rows, json_)


def agents(kind: KindArgument = None, json_: JsonOption = False) -> None:
    """List the installed kinds of agent, or the options of one kind."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.installed import AGENTS, find_entry_points
    from longspan.simulator.contract.plugins import load_plugin

    if kind is not None:
        _options(kind, load_plugin(AGENTS, "kind of agent", kind), json_)
        return
    rows: list[ListedAgent] = []
    for kind in find_entry_points(AGENTS):
        try:
            doc = (load_plugin(AGENTS, "kind of agent", kind).__doc__ or "").strip().splitlines()
        except InputError as error:
            doc = [str(error)]
        rows.append({"agent": kind, "description": doc[0] if doc else ""})
    _print("agents", rows, json_)


def memories(json_: JsonOption = False) -> None:
    """List the installed memories: what each stores and retrieves, and whether its package is installed."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.installed import MEMORIES, find_entry_points
    from longspan.simulator.contract.plugins import load_plugin

    rows: list[ListedMemory] = []
    for name in find_entry_points(MEMORIES):
        try:
            cls = load_plugin(MEMORIES, "memory", name)
        except InputError as error:
            rows.append({"memory": name, "needs": "", "installed": "", "description": str(error)})
            continue
        doc = (cls.__doc__ or "").strip().splitlines()
        version = cls.installed() if callable(getattr(cls, "installed", None)) else None
        needs = str(getattr(cls, "package", ""))
        rows.append({"memory": name, "needs": needs, "installed": version or ("no" if needs else ""), "description": doc[0] if doc else ""})
    _print("memories", rows, json_)


def _options(kind: str, cls: Any, json_: bool) -> None:
    """Print the options of a kind of agent, with defaults and meanings."""
    from longspan.simulator.base.fields import describe_fields

    said = describe_fields(cls.Options)
    defaults = {info.alias or name: info.get_default(call_default_factory=True) for name, info in cls.Options.model_fields.items()}
    rows: list[ListedOption] = [{"option": name, "default": defaults[name], "meaning": said[name]} for name in sorted(said)]
    more = cls.Options.__doc__ if cls.Options.model_config.get("extra") == "allow" else None
    if json_:
        say_json({"agent": kind, "options": rows, "more": more})
        return
    if rows:
        _print("options", [row | {"default": _default(row["default"])} for row in rows], json_=False)
    if more or not rows:
        say(more or f"{kind} has no options.")


def _default(value: Any) -> str:
    """Return a default as a user would write it. Return "" for None and for long defaults: the option's meaning describes them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, int | str) and len(str(value)) <= MAX_DEFAULT else ""


def suites(json_: JsonOption = False) -> None:
    """List the suites that come with longspan."""
    from longspan.simulator.base.installed import installed_suites
    from longspan.simulator.suite.suite import load_suite

    rows: list[ListedSuite] = []
    for name in installed_suites():
        suite = load_suite(name)
        rows.append({"suite": name, "tests_per_scenario": suite.tests, "scenarios": list(suite.scenarios), "description": suite.title})
    _print("suites", rows, json_)


def runs(out: Annotated[Path, typer.Argument(help="The folder of runs.", metavar="DIR")] = Path("runs"), json_: JsonOption = False) -> None:
    """List the runs in a folder, one per line. Output to a file or a pipe is not shortened."""
    import os
    from datetime import UTC, datetime

    from longspan.simulator.base.errors import InputError, LongspanError
    from longspan.simulator.base.files.folders import path_inside
    from longspan.simulator.journal.run_folder import MANIFEST, RESULT, RunFolder
    from longspan.simulator.results.result import read_result
    from longspan.simulator.terminal.console import Console
    from longspan.simulator.terminal.run_lines import run_lines

    if not out.is_dir():
        raise InputError(f"{out}: folder does not exist; name a folder of runs (--out of longspan run)")
    folders = sorted(path.parent for path in out.glob(f"*/{MANIFEST}") if _is_shown(path.parent, out))
    deeper = sorted({path.parent.parent for path in out.glob(f"*/*/{MANIFEST}") if _is_shown(path.parent, out)})
    if not folders and not deeper:
        raise InputError(f"{out}: no runs found; name the folder of runs (--out of longspan run)")
    found: list[tuple[str, Manifest | None, Result | None, str]] = []
    for folder in folders:
        try:
            run = RunFolder(path_inside(out, folder.name))
            manifest = run.manifest
            run.check()
            result = read_result(run) if os.path.lexists(folder / RESULT) else None
        except (LongspanError, OSError) as error:
            found.append((folder.name, None, None, f"unreadable: {error}"))
        else:
            found.append((folder.name, manifest, result, ""))
    if json_:
        listed = [_as_json(out / name, planned, graded, why) for name, planned, graded, why in found]
        say_json({"folder": str(out), "runs": listed, "deeper": list(map(str, deeper))})
        return
    console = Console()
    if found:
        console.say(f"Runs in {out}", "bold")
        width = console.width if console.is_terminal else None
        measures = {result.measured for _, _, result, _ in found if result is not None}
        lines = [_line(*each, named=measures != {"score"}) for each in found]
        for line in run_lines(lines, width, datetime.now(UTC)):
            console.say(line)
    for folder in deeper:
        say(f"{folder} contains more runs: {quote_command('longspan', 'list', 'runs', folder)}")


def _is_shown(folder: Path, out: Path) -> bool:
    """Return whether no part of the path is hidden. Folders that are being written or deleted are hidden."""
    return not any(part.startswith(".") for part in folder.relative_to(out).parts)


def _line(name: str, manifest: Manifest | None, result: Result | None, why: str, *, named: bool) -> RunLine:
    """Return a run's line. If `named`, the score includes the name of its measure."""
    from longspan.simulator.results.analysis.changes import list_changed_options, list_chosen_scenarios
    from longspan.simulator.results.graded_runs import Column
    from longspan.simulator.terminal.run_lines import RunLine

    if manifest is None:
        return RunLine(name, "damaged", why=why)
    known = result.known_usd if result is not None else 0.0
    unknown = result is not None and result.cost_usd is None
    return RunLine(
        name,
        _score(result, named=named),
        manifest.suite.name,
        "" if manifest.alone else str(Column.of(manifest)),
        manifest.labelled,
        str(manifest.seed),
        [*([f"only {', '.join(chosen)}"] if (chosen := list_chosen_scenarios(manifest)) else []), *list_changed_options(manifest)],
        f"${known:.2f}{'+' if unknown else ''}" if known else "",
        manifest.created,
    )


def _score(result: Result | None, *, named: bool) -> str:
    """Return a score in percent, or the run's state."""
    if result is None or result.ungraded:
        return "unfinished"
    if result.searched is not None:
        return f"found {format_percent(result.searched.share)}"
    if not result.max_score:
        return "no score"
    share = format_share_range(*(bound / result.max_score for bound in result.score_bounds))
    return f"{share}{f' {result.measured}' if named and result.measured != 'score' else ''}{' (unfinished)' if result.interrupted else ''}"


def _as_json(folder: Path, manifest: Manifest | None, result: Result | None, why: str) -> ListedRun | UnreadableRun:
    """Return a run for JSON: its settings with its score, or the reason why it cannot be read."""
    if manifest is None:
        return {"folder": str(folder), "unreadable": why}
    return {
        "folder": str(folder),
        "suite": manifest.suite.name,
        "scenarios": list(manifest.suite.scenarios),
        "span": None if manifest.alone else manifest.span,
        "agent": manifest.agent,
        "label": manifest.label,
        "seed": manifest.seed,
        "created": manifest.created.isoformat() if manifest.created is not None else None,
        "finished": result is not None and result.score is not None,
        "score": result.score if result is not None else None,
        "max_score": result.max_score if result is not None else None,
        "cost_usd": result.cost_usd if result is not None else None,
    }


def formats(json_: JsonOption = False) -> None:
    """List the formats of logs that can be read: what writes them, and the smallest form of each."""
    from longspan.simulator.cli.convert import CONVERTERS
    from longspan.simulator.contract.plugins import load_plugin

    rows: list[ListedFormat] = [
        {"format": name, "description": what, "smallest_form": example}
        for name, what, example in load_plugin(CONVERTERS, "list", "formats")()
    ]
    if json_:
        say_json({"formats": rows})
        return
    for row in rows:
        say(f"{row['format']}: {row['description']}")
        for line in row["smallest_form"].splitlines():
            say(f"  {line}")


def citations(
    suites: Annotated[
        list[str] | None, typer.Argument(help="Suites, or YAML files of some.", metavar="[SUITE]...", show_default="all")
    ] = None,
) -> None:
    """Print BibTeX for the sources of suites, and for longspan."""
    from longspan import __version__
    from longspan.simulator.base import installed
    from longspan.simulator.suite.citing import list_references, longspan_itself
    from longspan.simulator.suite.suite import load_suite

    played = [load_suite(name) for name in suites or installed.installed_suites()]
    found = list_references({scenario for suite in played for scenario in suite.scenarios}, played)
    say("\n\n".join([*found, longspan_itself(__version__)]), lines=True)


def _print(what: str, rows: Sequence[Mapping[str, Any]], json_: bool) -> None:
    """Print rows as a table, or as JSON in an object's field `what`."""
    from rich.table import Table

    from longspan.simulator.terminal.console import Console

    if json_:
        say_json({what: rows})
        return
    table = Table()
    for number, column in enumerate(rows[0]):
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=number == 0)  # names must stay copyable
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
