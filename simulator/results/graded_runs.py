"""Finds and loads graded runs, and reports the ones that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, final

from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.journal.run_folder import MANIFEST, RESULT, RunFolder
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.subject.ledger import total_cost
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import Branch

__all__ = ["Column", "GradedRun", "Unusable", "load_runs", "name_runs", "without_ungraded"]

MAX_VALUE: Final = 10**12
"""Results with more tokens or dollars than this are invalid."""


@final
class Column(NamedTuple):
    """A column of comparable scores: a span in tokens, with all tests in one conversation or each in a separate one (`isolated`).

    The span is 0 for scenarios that play each test in a separate conversation without a span. `branch` is how questions about histories
    were asked; it is "on" without histories.
    """

    isolated: bool
    span: int
    branch: Branch = "on"

    @classmethod
    def of(cls, manifest: Manifest) -> Column:
        return cls(True, 0, manifest.asked) if manifest.alone else cls(manifest.isolated, manifest.span, manifest.asked)

    @property
    def at(self) -> str:
        """The end of a heading, such as " at 32k"; empty without a span."""
        return f" at {self}" if self.span else ""

    def __str__(self) -> str:
        if not self.span:
            return {"on": "alone", "off": "one after another", "retell": "retold"}[self.branch]
        size = f"{self.span // 1000}k" if self.span % 1000 == 0 else f"{self.span:,}"
        return f"isolated {size}" if self.isolated else size


@final
class Unusable(NamedTuple):
    """A folder whose run cannot be used, and why."""

    path: Path
    why: str


@final
@dataclass(frozen=True)
class GradedRun:
    """A run with its results. The files are untrusted, so `load_runs` checks that they are consistent."""

    folder: RunFolder
    manifest: Manifest
    result: Result

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def agent(self) -> str:
        """The agent, with the run's label if it has one."""
        return self.manifest.labelled

    @property
    def column(self) -> Column:
        return Column.of(self.manifest)

    @cached_property
    def conversations(self) -> dict[str, str]:
        """The planned conversation of each test."""
        return {planned.id: id for id, planned in self.manifest.graded}

    @property
    def roots(self) -> Mapping[str, str]:
        """The history behind each test's questions, or else its conversation. Tests are independent only if these differ."""
        return self.manifest.roots

    @property
    def cost_usd(self) -> float | None:
        """The total cost in dollars; None if no usage was reported or a price is unknown."""
        costs = [entry.cost_usd for entry in self.result.costs.values()]
        return total_cost(costs) if costs else None


def load_runs(paths: Sequence[Path]) -> tuple[list[GradedRun], list[Unusable]]:
    """Load the runs in `paths`, each a run's folder or a folder of runs, without duplicates.

    Damaged runs and runs without results are returned as unusable. Raises InputError for a path without runs, or if no run can be used.
    """
    graded: list[GradedRun] = []
    unusable: list[Unusable] = []
    for folder in dict.fromkeys(folder for path in paths for folder in _folders(path)):
        try:
            graded.append(_read(folder))
        except LongspanError as error:
            unusable.append(Unusable(folder, str(error)))
    if not graded:
        more = f" ({len(unusable) - 1} more cannot be used either)" if len(unusable) > 1 else ""
        raise InputError(f"no run can be used: {unusable[0].why}{more}")
    return graded, unusable


def without_ungraded(runs: Sequence[GradedRun]) -> tuple[list[GradedRun], list[Unusable]]:
    """Split runs into those with a graded test, and those that were interrupted before any test was graded.

    An interrupted run has no score, rather than a score of 0. Raises InputError if no run is left.
    """
    left = [run for run in runs if run.result.ungraded]
    unusable = [
        Unusable(run.folder.path, f"{run.folder.path}: interrupted before a test was graded; `longspan resume` continues it")
        for run in left
    ]
    if left and len(left) == len(runs):
        more = f" ({len(left) - 1} more were interrupted, too)" if len(left) > 1 else ""
        raise InputError(f"no test is graded: {unusable[0].why}{more}")
    return [run for run in runs if run not in left], unusable


def name_runs(runs: Sequence[GradedRun]) -> dict[Path, str]:
    """Return each run's name by its path: its folder's name, or the path itself if several folders have the same name."""
    counts = Counter(run.name for run in runs)
    return {run.folder.path: run.name if counts[run.name] == 1 else str(run.folder.path) for run in runs}


def _folders(path: Path) -> Iterable[Path]:
    """Return the folders of the runs in a path. Resolve the path itself, so that no run is read twice, but no links inside it."""
    if (path / MANIFEST).exists():
        return [path.resolve()]
    if not path.is_dir():
        raise InputError(f"{path}: folder does not exist; name a run's folder or a folder of runs")
    runs = sorted(manifest.parent for manifest in path.glob(f"*/{MANIFEST}") if not manifest.parent.name.startswith("."))
    if not runs:
        raise InputError(f"{path}: no runs graded; name a run's folder or a folder of runs")
    return [run if run.is_symlink() else run.resolve() for run in runs]


def _read(path: Path) -> GradedRun:
    folder = RunFolder(path_inside(path.parent, path.name))  # refuses a run that is a link
    manifest = folder.manifest
    result = _result(folder)
    folder.check()
    planned = sorted(planned.id for _, planned in manifest.graded)
    if len(set(planned)) < len(planned) or not planned:
        raise InputError(f"{path}: its manifest plans {'a test twice' if planned else 'no test'}")
    return GradedRun(folder, manifest, result)


def _result(folder: RunFolder) -> Result:
    try:
        result = read_result(folder)
    except FileNotFoundError:
        what = "has no results: it is being played or was interrupted"
        remedy = "continue it with `longspan resume`, or grade what there is with `longspan score`"
        raise InputError(f"{folder.path}: {what}; {remedy}") from None
    shares = [share for test in result.tests for share in (test.score, test.chance, test.machine_score) if share is not None]
    pairs = [pair for test in result.tests for pair in test.evidence]
    sizes = [result.span, *(pair.tokens for pair in pairs), *(pair.dealt for pair in pairs if pair.dealt is not None)]
    sizes += [size for test in result.tests for size in (test.span_dealt, test.span_used)]
    planted = [number for test in result.tests for number in test.numbers.values()]
    dollars = [entry.cost_usd for entry in result.costs.values() if entry.cost_usd is not None]
    limits = ((shares, 1), *((values, MAX_VALUE) for values in (sizes, planted, dollars)))
    if not all(0 <= value <= limit for values, limit in limits for value in values):
        raise InputError(f"{folder.path / RESULT}: a score, cost or distance is out of range; `longspan score` rewrites it")
    return result
