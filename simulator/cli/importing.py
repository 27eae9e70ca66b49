"""longspan import: turn a recorded conversation into a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli import completion

__all__ = ["import_"]


def import_(
    kind: Annotated[str, typer.Argument(help="The kind of file: {longspan.imports}.", metavar="KIND", autocompletion=completion.imports)],
    file: Annotated[Path, typer.Argument(help="The file, plain or gzipped.", metavar="FILE")],
    out: Annotated[Path, typer.Option(help="The run's folder, which must not exist.", metavar="RUN")],
    definitions: Annotated[Path | None, typer.Option(help="The published tests that were played, for grading.", metavar="DIR")] = None,
    span: Annotated[str | None, typer.Option(help="The tests' span, such as 32k.", show_default="the definitions'", metavar="S")] = None,
    agent: Annotated[str | None, typer.Option(help="The agent that played.", show_default="the file's folder", metavar="NAME")] = None,
    rules: Annotated[Literal["longspan", "paper"], typer.Option(help="Grade by longspan's rules or by the paper's.")] = "longspan",
    json_: Annotated[bool, typer.Option("--json", help="Only print the result, as a JSON list.")] = False,
) -> int:
    """Import a conversation recorded by another benchmark, and grade it.

    The new run can be scored, corrected, viewed and replayed like any run, but not resumed.
    """
    from longspan.simulator.base.sizes import parse_size
    from longspan.simulator.cli.run import print_outcomes
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.pages.report import Report
    from longspan.simulator.results.gradebook.gradebook import grade_run
    from longspan.simulator.running.imports import ImportOptions, import_run
    from longspan.simulator.running.player import Outcome
    from longspan.simulator.suite.definitions import read_definitions

    options = ImportOptions(
        definitions=read_definitions(definitions) if definitions else None,
        span=parse_size(span) if span else None,
        agent=agent.encode("utf-8", "replace").decode() if agent else None,
        rules=rules,
    )
    imported = import_run(kind, file, out, options, Report)
    for note in (*imported.notes, *imported.left_out):
        say(note)
    return print_outcomes([Outcome(out, grade_run(RunFolder(out)), None)], json_)
