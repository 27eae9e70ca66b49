"""Runs that were played and graded: found in folders, read, and told where they cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, final

from pydantic import ValidationError

from longspan.simulator.errors import InputError, LongspanError, first_problem
from longspan.simulator.grading.grades import Result
from longspan.simulator.ledger import total_cost
from longspan.simulator.manifest import Manifest
from longspan.simulator.run_folder import MANIFEST, RunFolder

__all__ = ["Column", "Graded", "Unusable", "load"]

MOST: Final = 10**12
"""Tokens and dollars beyond which results are not believed."""


@final
class Column(NamedTuple):
    """Where scores can be set side by side: a span in tokens, with tests woven into one conversation or each in its own.

    A span of 0: the tests are such as have conversations to themselves, and no span to keep.
    """

    isolated: bool
    span: int

    @property
    def at(self) -> str:
        """For headings: where, after a blank; nothing where there is no span."""
        return f" at {self}" if self.span else ""

    def __str__(self) -> str:
        if not self.span:
            return "alone"
        size = f"{self.span // 1000}k" if self.span % 1000 == 0 else f"{self.span:,}"
        return f"isolated {size}" if self.isolated else size


@final
class Unusable(NamedTuple):
    """A folder whose run cannot be used, and why."""

    path: Path
    why: str


@final
@dataclass(frozen=True)
class Graded:
    """A run with its results. Its files are from anybody: what they say is checked by `load` to be of one piece."""

    folder: RunFolder
    manifest: Manifest
    result: Result

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def column(self) -> Column:
        return Column(True, 0) if self.manifest.alone else Column(self.manifest.isolated, self.manifest.span)

    @cached_property
    def conversations(self) -> dict[str, str]:
        """The conversation that each test was to be played in."""
        return {plan.id: id for id, plans in self.manifest.conversations.items() for plan in plans}

    @property
    def cost_usd(self) -> float | None:
        """Dollars in all; None where nothing was reported or a price is unknown."""
        costs = [part.cost_usd for part in self.result.costs.values()]
        return total_cost(costs) if costs else None


def load(paths: Sequence[Path]) -> tuple[list[Graded], list[Unusable]]:
    """The runs in `paths`, each a run's folder or a folder of such; a run that is named twice counts once.

    What is damaged or has no results yet is told, not raised. Raises InputError for a path without runs, and where none of
    them can be used.
    """
    found: list[Graded] = []
    unusable: list[Unusable] = []
    for folder in dict.fromkeys(folder for path in paths for folder in _folders(path)):
        try:
            found.append(_read(folder))
        except LongspanError as error:
            unusable.append(Unusable(folder, str(error)))
    if not found:
        more = f" ({len(unusable) - 1} more cannot be used either)" if len(unusable) > 1 else ""
        raise InputError(f"no run can be used: {unusable[0].why}{more}")
    return found, unusable


def _folders(path: Path) -> Iterable[Path]:
    """The folders of the runs in a path, resolved."""
    if (path / MANIFEST).exists():
        return [path.resolve()]
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name a run's folder, or one that holds runs")
    runs = sorted(each.parent for each in path.glob(f"*/{MANIFEST}") if not each.parent.name.startswith("."))
    if not runs:
        raise InputError(f"{path}: there is no run in it; name a run's folder, or one that holds runs")
    return [run.resolve() for run in runs]


def _read(path: Path) -> Graded:
    folder = RunFolder(path)
    manifest = folder.manifest
    result = _result(path / "result.json", path)
    planned = sorted(plan.id for group in manifest.conversations.values() for plan in group)
    claimed = (result.suite, result.span, result.seed, result.agent, sorted(test.id for test in result.tests))
    if claimed != (manifest.suite.name, manifest.span, manifest.seed, manifest.agent, planned):
        raise InputError(f"{path}: its result.json is not of its manifest; `longspan score` makes it again")
    if len(set(planned)) < len(planned) or not planned:
        raise InputError(f"{path}: its manifest plans {'a test twice' if planned else 'no test'}")
    return Graded(folder, manifest, result)


def _result(file: Path, path: Path) -> Result:
    try:
        result = Result.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        what = "has no results: it is being played or was broken off"
        raise InputError(f"{path}: {what}; `longspan resume` goes on, `longspan score` grades what there is") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{file}: not results of this version: {first_problem(error)}; `longspan score` makes them again") from None
    shares = [share for test in result.tests for share in (test.score, test.chance, test.machine_score) if share is not None]
    sizes = [result.span, *(each.tokens for test in result.tests for each in test.evidence)]
    dollars = [part.cost_usd for part in result.costs.values() if part.cost_usd is not None]
    if not all(0 <= value <= most for values, most in ((shares, 1), (sizes, MOST), (dollars, MOST)) for value in values):
        raise InputError(f"{file}: a score, cost or distance in it cannot be; `longspan score` makes it again")
    return result
