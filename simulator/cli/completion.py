"""Completion in the shell: suites, spans, agents, scenarios, runs and their tests. Only names are read, and nothing heavy is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import typer

from longspan.simulator.base.installed import AGENTS, SCENARIOS, installed
from longspan.simulator.base.installed import suites as known_suites

__all__ = ["agents", "runs", "scenarios", "spans", "suites", "tests", "words_to_complete"]

SPANS: Final = ("2k", "4k", "8k", "16k", "32k", "64k", "120k", "200k", "500k")

MOST: Final = 1000
"""The most names that are read from a folder, and the most that are offered."""

MAX_BYTES: Final = 4 << 20
"""The largest manifest whose tests are offered, in bytes."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,/+=@%-]+")
"""A name that every shell takes literally. A folder may have any name, even one that a shell would run, so other names are not offered."""


def suites(incomplete: str) -> list[str]:
    """Return suites, including the ones that may follow a +."""
    before, plus, last = incomplete.rpartition("+")
    return _offered(
        (f"{before}{plus}{name}" for name in known_suites() if not plus or name not in before.split("+")), f"{before}{plus}{last}"
    )


def spans(incomplete: str) -> list[str]:
    return _offered(SPANS, incomplete)


def agents(incomplete: str) -> list[str]:
    return _offered(installed(AGENTS), incomplete)


def scenarios(incomplete: str) -> list[str]:
    return _offered(installed(SCENARIOS), incomplete)


def runs(incomplete: str) -> list[str]:
    """Return runs and folders of runs: the ones in the folder that is being typed, or else in `runs`."""
    folder = f"{os.path.dirname(incomplete) if '/' in incomplete else 'runs'}/".replace("//", "/")  # noqa: PTH120
    return _offered((f"{folder}{name}" for name in _runs_in(Path(folder))), incomplete)


def _runs_in(folder: Path) -> Iterator[str]:
    with suppress(OSError):
        for path in sorted(islice(folder.iterdir(), MOST)):
            if path.name.startswith("."):
                continue
            if (path / "manifest.json").exists() or next(path.glob("*/manifest.json"), None) is not None:
                yield path.name


def tests(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tests of the run typed before."""
    import json

    from longspan.simulator.base.errors import LongspanError
    from longspan.simulator.files.folders import read_file

    found: list[str] = []
    with suppress(OSError, LongspanError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        manifest = json.loads(read_file(Path(ctx.params["run"]) / "manifest.json", MAX_BYTES))
        found = [str(test["id"]) for tests in manifest["conversations"].values() for test in tests]
    return _offered(found, incomplete)


def words_to_complete() -> list[str]:
    """Return the arguments on the command line that a shell wants completed, as passed by Typer's scripts; none if no shell does."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:] if "_LONGSPAN_COMPLETE" in os.environ else []


def _offered(names: Iterable[str], incomplete: str) -> list[str]:
    return list(islice((name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)), MOST))
