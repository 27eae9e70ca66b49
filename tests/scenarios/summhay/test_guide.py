"""docs/reference/summhay.md says what there is: every parameter, option and setting, and no other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.models import OptionInfo

from longspan.scenarios.summhay.commands import annotate
from longspan.scenarios.summhay.retrievers import Retriever
from longspan.scenarios.summhay.scenario import SummHay
from longspan.scenarios.summhay.writer import HaystackWriter
from longspan.simulator.cli.write import bind_write

GUIDE = (Path(__file__).parents[3] / "docs" / "reference" / "summhay.md").read_text("utf-8")


def tables(heading: str) -> list[list[str]]:
    """The first cells of each table under a heading."""
    part = re.split(r"^## (.*)$", GUIDE, flags=re.MULTILINE)
    under = part[part.index(heading) + 1]
    found = re.findall(r"(?:^\|.*\|\n)+", under, re.MULTILINE)
    return [[row.split("|")[1].strip().strip("`") for row in table.splitlines()[2:]] for table in found]


def options(command: Callable[..., Any]) -> set[str]:
    """The long options of a command."""
    found = set()
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        _, about = get_args(parameter.annotation)
        if isinstance(about, OptionInfo):
            found.add(about.default if isinstance(about.default, str) else f"--{name.replace('_', '-')}")
    return found


def test_parameters() -> None:
    assert tables("Parameters") == [list(SummHay.model_fields)]


def test_retrievers() -> None:
    assert tables("Retrievers") == [list(get_args(Retriever))]


@pytest.mark.parametrize(
    ("heading", "command"), [("Judging summaries yourself", annotate), ("Haystacks of your own", bind_write("summhay"))]
)
def test_options(heading: str, command: Callable[..., Any]) -> None:
    assert {cell.split()[0] for cell in tables(heading)[0]} == options(command)


def test_settings_of_the_writer() -> None:
    assert tables("Haystacks of your own")[1] == list(HaystackWriter.Settings.model_fields)
