"""Shell completion of suites, spans, agents, scenarios, runs and tests. It only reads names, and imports nothing slow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import typer

from longspan.simulator.base.installed import AGENTS, SCENARIOS, find_entry_points, installed_suites

__all__ = [
    "complete_agents",
    "complete_runs",
    "complete_scenarios",
    "complete_spans",
    "complete_suites",
    "complete_tests",
    "imports",
    "offer",
    "rubrics",
    "words_to_complete",
]

SPANS: Final = ("2k", "4k", "8k", "16k", "32k", "64k", "120k", "200k", "500k")

MOST: Final = 1000
"""The most names to read from a folder, and the most to offer."""

MAX_BYTES: Final = 4 << 20
"""The largest manifest to read for the names of its tests, in bytes."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,/+=@%-]+")
"""A name that is safe in every shell. Other names are not offered: a folder may have a name that a shell would execute."""


def complete_suites(incomplete: str) -> list[str]:
    """Return suites, also after a "+" that joins several."""
    before, plus, last = incomplete.rpartition("+")
    return offer(
        (f"{before}{plus}{name}" for name in installed_suites() if not plus or name not in before.split("+")), f"{before}{plus}{last}"
    )


def complete_spans(incomplete: str) -> list[str]:
    return offer(SPANS, incomplete)


def complete_agents(incomplete: str) -> list[str]:
    return offer(find_entry_points(AGENTS), incomplete)


def complete_scenarios(incomplete: str) -> list[str]:
    return offer(find_entry_points(SCENARIOS), incomplete)


def rubrics(incomplete: str) -> list[str]:
    return offer(find_entry_points("longspan.rubrics"), incomplete)


def imports(incomplete: str) -> list[str]:
    return offer(find_entry_points("longspan.imports"), incomplete)


def complete_runs(incomplete: str) -> list[str]:
    """Return runs and folders of runs in the folder that is being typed, or in `runs`."""
    folder = f"{os.path.dirname(incomplete) if '/' in incomplete else 'runs'}/".replace("//", "/")  # noqa: PTH120
    return offer((f"{folder}{name}" for name in _runs_in(Path(folder))), incomplete)


def _runs_in(folder: Path) -> Iterator[str]:
    with suppress(OSError):
        for path in sorted(islice(folder.iterdir(), MOST)):
            if path.name.startswith("."):
                continue
            if (path / "manifest.json").exists() or next(path.glob("*/manifest.json"), None) is not None:
                yield path.name


def complete_tests(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tests of the run that the command line names."""
    import json

    from longspan.simulator.base.errors import LongspanError
    from longspan.simulator.base.files.folders import read_file

    found: list[str] = []
    with suppress(OSError, LongspanError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        manifest = json.loads(read_file(Path(ctx.params["run"]) / "manifest.json", MAX_BYTES))
        found = [str(test["id"]) for tests in manifest["conversations"].values() for test in tests]
    return offer(found, incomplete)


def words_to_complete() -> list[str]:
    """Return the words of the command line that the shell wants completed, from Typer's completion scripts. Empty in normal use."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:] if "_LONGSPAN_COMPLETE" in os.environ else []


def offer(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin as typed and that every shell takes literally."""
    return list(islice((name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)), MOST))
