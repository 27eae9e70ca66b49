"""longspan import: a conversation that others have played, as a run of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["import_"]


def import_(
    kind: Annotated[str, typer.Argument(help="What the file is: goodai-log.", metavar="KIND")],
    file: Annotated[Path, typer.Argument(help="The file, plain or gzip.", metavar="FILE")],
    out: Annotated[Path, typer.Option(help="The run's folder. There must be none of that name.", metavar="RUN")],
    definitions: Annotated[Path | None, typer.Option(help="The published tests that were played, for grading.", metavar="DIR")] = None,
    span: Annotated[str | None, typer.Option(help="The tests' span in tokens, where the definitions name none.", metavar="S")] = None,
    agent: Annotated[str | None, typer.Option(help="Who played, where the file's folder does not say.", metavar="NAME")] = None,
    rules: Annotated[
        Literal["longspan", "paper"], typer.Option(help="Grade by longspan's rules, or as the paper does where that differs.")
    ] = "longspan",
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the result and nothing else.")] = False,
) -> int:
    """Make a run of a conversation that another benchmark recorded, and grade it.

    It can be scored, corrected and looked at like any run, and replayed, but not gone on with.
    """
    from longspan.simulator.cli.run import finish
    from longspan.simulator.definitions import read_definitions
    from longspan.simulator.grading.grades import grade_run
    from longspan.simulator.interop.imports import Wanted, import_run
    from longspan.simulator.run_folder import RunFolder
    from longspan.simulator.runner import Outcome
    from longspan.simulator.sizes import parse_size

    wanted = Wanted(
        definitions=read_definitions(definitions) if definitions else None,
        span=parse_size(span) if span else None,
        agent=agent.encode("utf-8", "replace").decode() if agent else None,
        rules=rules,
    )
    found = import_run(kind, file, out, wanted)
    for note in () if json_ else (*found.notes, *found.left_out):
        typer.echo(note)
    return finish([Outcome(out, grade_run(RunFolder(out)), None)], json_)
