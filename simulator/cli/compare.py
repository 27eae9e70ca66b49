"""longspan compare: compare runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.terminal import say, say_json
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import JsonOption, RunsArgument

if TYPE_CHECKING:
    from typing import IO

    from longspan.simulator.base.tables import Table
    from longspan.simulator.cli.outputs import ComparedGroup
    from longspan.simulator.pages.report.contrast_words import Family
    from longspan.simulator.results.analysis.baseline import Fall
    from longspan.simulator.results.measures.comparing import Comparison

__all__ = ["compare", "print_contrasts"]

Format = Literal["terminal", "markdown", "csv", "html"]

CODES: Final[dict[str, int]] = {"not worse": 0, "worse": 1, "undecided": 3}
"""The exit codes of --fail-if-worse by verdict."""

SCREEN: Final = (80, 23)
"""The columns and lines of --brief: a terminal of 24 lines, with one for the next command."""

SUFFIXES: Final[dict[str, Format]] = {".md": "markdown", ".csv": "csv", ".html": "html", ".txt": "terminal"}


def compare(
    runs: RunsArgument,
    format: Annotated[Format | None, typer.Option(help="The output format.", show_default="from --out, or terminal")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write.", metavar="FILE")] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="An agent to compare the others with, or older runs to test whether RUN is worse.",
            metavar="AGENT|RUN",
            autocompletion=completion.complete_runs,
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option(help="The fall below the baseline to tolerate, as a share of full marks.", min=0, max=1, metavar="SHARE")
    ] = 0.0,
    fail_if_worse: Annotated[bool, typer.Option("--fail-if-worse", help="Exit with 1 if RUN is worse, with 3 if undecided.")] = False,
    contrasts: Annotated[
        Path | None, typer.Option(help="A sweep's file: test the contrasts that it states; --out is a folder.", metavar="FILE")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Print one screen (80 x 24): verdicts, scores and notes.")] = False,
    json_: JsonOption = False,
) -> int:
    """Compare runs of the same tests.

    Runs that play different tests are compared in groups. Shows agents by span, in pairs, and by scenario, skill and evidence distance,
    with confidence intervals and significance tests. Damaged and unfinished runs are listed and left out. --baseline AGENT shows how other
    agents differ from that one. --baseline RUN only reports whether the runs are worse than older ones. --contrasts prints the outcome of
    each contrast.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.files.file_io import write_new_file
    from longspan.simulator.results.measures.comparing import load_comparisons

    if json_ and (out is not None or format is not None):
        raise InputError("--json excludes --out and --format")
    if brief and (json_ or contrasts is not None or out is not None or format in ("csv", "html")):
        raise InputError("--brief: prints one screen of text or Markdown; leave out --json, --contrasts, --out and other formats")
    if contrasts is not None:
        if baseline or fail_if_worse or margin or format is not None:
            raise InputError("--contrasts: the file names the runs to test; of the other options, only --out is allowed")
        return _contrast(runs, contrasts, out, json_)
    before, agent = _baseline(baseline or [])
    if before:
        if out is not None or format in ("csv", "html"):
            raise InputError("--baseline: prints a sentence and a table, or Markdown; leave out --out and other formats")
        return _compare_with(before, runs, margin, fail_if_worse, json_, brief, format == "markdown")
    if fail_if_worse or margin:
        raise InputError(f"--{'fail-if-worse' if fail_if_worse else 'margin'}: requires older runs to compare with: --baseline RUN")
    if out is not None and format is None and out.suffix.lower() not in SUFFIXES:
        raise InputError(f"--out {out}: the name must end in {', '.join(SUFFIXES)}, unless --format names the format")
    comparisons = load_comparisons(runs, agent)
    if json_:
        say_json({"groups": [_group(name, comparison) for name, comparison in comparisons.items()]})
        return 0
    chosen = format or (SUFFIXES[out.suffix.lower()] if out is not None else "terminal")
    if brief:
        _say_screen("\n".join(_text(each, chosen, Path(), brief=True) for each in comparisons.values()))
        return 0
    if out is None:
        _print_all(comparisons, chosen)
        return 0
    paths = [out.with_stem(f"{out.stem}-{number}") if number > 1 else out for number in range(1, len(comparisons) + 1)]
    if taken := [path for path in paths if path.exists() or path.is_symlink()]:
        raise InputError(f"{taken[0]}: already exists; choose another file with --out")
    for path, (name, comparison) in zip(paths, comparisons.items(), strict=True):
        with write_new_file(path) as partial, partial.open("x", encoding="utf-8", newline="\n") as file:
            file.write(_text(comparison, chosen, path.parent))
        say(f"{path}: {_counts(comparison)}{f' of {name}' if len(comparisons) > 1 else ''}")
    return 0


def _baseline(given: list[str]) -> tuple[list[Path], str | None]:
    """Return the runs that --baseline names, or else the agent. A name that is a folder is a run.

    Raises InputError if several names are given and one of them is not a folder.
    """
    from longspan.simulator.base.errors import InputError

    paths = [Path(each) for each in given]
    missing = [path for path in paths if not path.exists()]
    if len(missing) > 1 or (missing and len(paths) > 1):
        raise InputError(f"--baseline {missing[0]}: no such run; name one agent, or runs that exist")
    if missing:
        return [], given[0]
    return paths, None


def _group(name: str, comparison: Comparison) -> ComparedGroup:
    """Return the comparison of runs that play the same tests, for JSON: the rows of the CSV, and the verdicts and notes."""
    from longspan.simulator.pages.report.comparison_tables import as_rows, comparison_notes

    agents, left_out = list(comparison.agents), [str(run.path) for run in comparison.unusable]
    return {
        "group": name,
        "agents": agents,
        "runs": comparison.runs,
        "left_out": left_out,
        "verdicts": [verdict.text for verdict in comparison.said.verdicts],
        "rows": as_rows(comparison),
        "notes": comparison_notes(comparison),
    }


def _print_all(comparisons: Mapping[str, Comparison], format: Format) -> None:
    """Print the comparison of each group of runs. Raises InputError for several groups in a format that fits only one."""
    from longspan.simulator.base.errors import InputError

    if format in ("csv", "html") and len(comparisons) > 1:
        groups = f"{'; '.join(comparisons):.200}"
        raise InputError(
            f"the runs play different tests ({groups}): write a file for each group with --out FILE, or name the runs of one group"
        )
    for number, (name, comparison) in enumerate(comparisons.items()):
        if number:
            say()
        if len(comparisons) > 1:
            say(f"{name}: {_counts(comparison)}")
        if format == "terminal":
            _print(comparison)
        else:
            say(_text(comparison, format, Path()).removesuffix("\n"), lines=True)


def _counts(comparison: Comparison) -> str:
    return f"{len(comparison.agents)} agents, {comparison.runs} runs"


def _compare_with(
    baseline: list[Path], runs: list[Path], margin: float, fail_if_worse: bool, json_: bool, brief: bool, markdown: bool
) -> int:
    """Print whether runs are worse than a baseline, and return the exit code."""
    from longspan.simulator.pages.report.comparison_tables import tables_as_markdown
    from longspan.simulator.results.analysis.baseline import load_fall
    from longspan.simulator.terminal.compact import print_compact
    from longspan.simulator.terminal.console import Console
    from longspan.simulator.terminal.printed_tables import print_table

    fall = load_fall(runs, baseline, margin)
    if json_:
        scenarios = [each._asdict() for each in fall.scenarios]
        say_json({"verdict": fall.verdict, "sentence": fall.sentence} | asdict(fall) | {"scenarios": scenarios})
        return CODES[fall.verdict] if fail_if_worse else 0
    tables = [_falls(fall, brief)] if fall.scenarios else []
    if markdown:
        text = tables_as_markdown([fall.sentence], tables, fall.warnings)
        _say_screen(text) if brief else say(text.removesuffix("\n"), lines=True)
    elif brief:
        screen = Console(shown := StringIO(), width=SCREEN[0])
        screen.print(fall.sentence)
        for table in tables:
            print_compact(screen, table, {})
        for warning in fall.warnings:
            screen.print(warning)
        _say_screen(shown.getvalue())
    else:
        console = Console()
        for table in tables:
            print_table(console, table)
        for warning in fall.warnings:
            console.say(warning, "yellow")
        console.say(fall.sentence, "bold")
    return CODES[fall.verdict] if fail_if_worse else 0


def _falls(fall: Fall, largest_first: bool) -> Table:
    """Return the table of scenarios before and now."""
    from longspan.simulator.base.tables import Table

    scenarios = sorted(fall.scenarios, key=lambda each: each.new - each.old) if largest_first else fall.scenarios
    measured = f", {fall.measured}," if fall.measured != "score" else ""
    return Table(
        title=f"Mean scores{measured} in the tests that both have",
        columns=["scenario", "before", "now", "difference"],
        rows=[
            [each.name, format_percent(each.old), format_percent(each.new), format_percent(each.new - each.old, sign=True)]
            for each in scenarios
        ],
    )


def _say_screen(text: str) -> None:
    """Print as many lines as fit one screen, and say how many do not."""
    lines = text.strip("\n").split("\n")
    height = SCREEN[1]
    if len(lines) > height:
        lines = [*lines[: height - 2], "", f"{len(lines) - height + 2:,} more lines: leave out --brief"]
    say("\n".join(lines), lines=True)


def _contrast(paths: list[Path], file: Path, out: Path | None, json_: bool) -> int:
    """Test the contrasts of a sweep's file on these runs, and print or write the outcome."""
    from longspan.simulator.base.errors import InputError, LongspanError
    from longspan.simulator.base.files.file_io import write_new_folder
    from longspan.simulator.base.files.folders import path_inside
    from longspan.simulator.cli.plot import print_unusable
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.pages.report.outcome import contrasts_content, family_of, write_outcome
    from longspan.simulator.results.analysis.statements import read_statements
    from longspan.simulator.results.measures.comparing import load_finished
    from longspan.simulator.running.sweeps.sweep import read_sweep

    _, stated = read_sweep(file, "--contrasts")
    where = f"--contrasts {file}"
    if stated is None:
        raise InputError(f"{where}: the file has no contrasts; list them under the key contrasts")
    runs, unusable = load_finished(paths)
    planned = [run.manifest for run in runs]
    for each in unusable:  # an agent must stay known to the contrasts even if all of its runs have failed
        with suppress(LongspanError):
            planned.append(RunFolder(path_inside(each.path.parent, each.path.name)).manifest)
    settled = stated.settle_names(planned, where)
    family = family_of(settled, runs, unusable, read_statements(paths[0]) if len(paths) == 1 else ())
    if json_:
        say_json(contrasts_content(family, runs))
        return 0
    print_unusable(unusable)
    print_contrasts(family)
    if out is not None:
        with write_new_folder(out) as folder:
            write_outcome(folder, family, runs, unusable)
        say(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    return 0


def print_contrasts(family: Family) -> None:
    """Print the outcome of contrasts in sentences."""
    from longspan.simulator.pages.report.contrast_words import describe_contrast
    from longspan.simulator.terminal.console import Console

    console = Console()
    for line in [*family.history, *family.left_out]:
        console.say(line, "yellow" if family.late else "dim")
    for each in family.tested:
        console.say(describe_contrast(each, family.contrasts), "bold" if each.verdict in ("higher", "lower") else "")


def _text(comparison: Comparison, format: Format, folder: Path, *, brief: bool = False) -> str:
    """Return a comparison as text in a file format. Links are relative to `folder`."""
    from longspan.simulator.pages.report.comparison_tables import as_csv, as_markdown

    match format:
        case "markdown":
            return as_markdown(comparison, brief=brief)
        case "csv":
            return as_csv(comparison)
        case "html":
            from longspan.simulator.pages.report.comparison import as_html, links_from

            return as_html(comparison, links_from(folder))
        case "terminal":
            _print(comparison, file := StringIO(), brief=brief)
            return file.getvalue()


def _print(comparison: Comparison, file: IO[str] | None = None, *, brief: bool = False) -> None:
    from longspan.simulator.pages.report.comparison_tables import comparison_notes, comparison_tables
    from longspan.simulator.terminal.compact import assign_letters, print_compact
    from longspan.simulator.terminal.console import Console

    console = Console(file, width=SCREEN[0] if brief else None)
    names = comparison.side.called
    called = assign_letters([names.names[agent] for agent in comparison.agents])
    for verdict in comparison.said.verdicts:
        console.print()
        console.print(verdict.text, style="bold")
    console.print()
    for line in names.legend(called):
        console.say(line)
    if told := names.describe_omissions(called):
        console.print(told, style="dim")
    shown = comparison_tables(comparison, brief=brief)
    last = {table.note: number for number, table in enumerate(shown)}
    for number, table in enumerate(shown):  # print a note that several tables share only below the last of them
        print_compact(console, table if last[table.note] == number else table.model_copy(update={"note": ""}), called)
    console.print()
    for note in comparison_notes(comparison):
        console.print(note)
