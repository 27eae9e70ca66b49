"""longspan convert: turn a log into longspan's plain form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longspan.simulator.base.terminal import say

__all__ = ["CONVERTERS", "convert"]

CONVERTERS: Final = "longspan.converters"
"""The entry-point group of functions about logs: `log` converts one, and `formats` lists the formats."""


def convert(
    log: Annotated[Path, typer.Argument(help="A log: a file, folder, zip or tar in a format of `longspan list formats`.", metavar="LOG")],
    out: Annotated[Path, typer.Argument(help="The file to write, which must not exist.", metavar="OUT")],
    questions: Annotated[
        Path | None, typer.Option("--questions", help="A file of questions about the log, to write them into OUT.", metavar="FILE")
    ] = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Replace names, addresses, numbers, e-mail addresses and keys by made-up ones. No guarantee.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="With --scrub: list the replacements.")] = False,
) -> int:
    """Convert a log to sessions and questions in JSON lines, to inspect and edit them.

    Prints what was read, and what was changed or left out. The result is played like the log itself: run history --data history=OUT.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.contract.plugins import load_plugin

    if show and not scrub:
        raise InputError("--show lists what --scrub replaces: add --scrub")
    for line in load_plugin(CONVERTERS, "converter", "log")(log, out, questions=questions, scrub=scrub, show=show):
        say(line)
    say(f"wrote   {out}")
    return 0
