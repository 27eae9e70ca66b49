"""longspan cite: print the references of suites."""

from __future__ import annotations

from typing import Annotated

import typer

from longspan.simulator.base.terminal import say

__all__ = ["cite"]


def cite(
    suites: Annotated[
        list[str] | None, typer.Argument(help="Suites, or YAML files of some.", metavar="[SUITE]...", show_default="all")
    ] = None,
) -> None:
    """Print BibTeX for the sources of suites, and for longspan."""
    from importlib.metadata import version

    from longspan.simulator.base import installed
    from longspan.simulator.suite.citing import longspan_itself, references
    from longspan.simulator.suite.suite import load_suite

    played = [load_suite(name) for name in suites or installed.suites()]
    found = references({scenario for suite in played for scenario in suite.scenarios}, played)
    say("\n\n".join([*found, longspan_itself(version("longspan"))]), lines=True)
