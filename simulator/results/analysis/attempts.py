"""All runs of the same agents and tests in a folder, including failed, interrupted and uncompared ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.journal.run_folder import MANIFEST, RunFolder
from longspan.simulator.results.analysis.comparable import played_key
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.result import read_result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Attempts", "Key", "count_attempts", "describe_attempts"]

Key = tuple[str, Column, str]
"""An agent, a column, and the tests played."""


@final
@dataclass(slots=True)
class Attempts:
    """Counts of an agent's runs of the same tests in a column: begun, finished, compared, and continued after a failure of the agent.
    `seeds` are the seeds of all runs begun."""

    begun: int = 0
    finished: int = 0
    compared: int = 0
    failed: int = 0
    seeds: set[int] = field(default_factory=set)


def count_attempts(paths: Sequence[Path], runs: Sequence[GradedRun]) -> dict[Key, Attempts]:
    """Count the attempts at the tests of `runs`, in their folders and in `paths`. Unreadable runs are not counted here; they are reported
    elsewhere."""
    found: dict[Key, Attempts] = {}
    used = {run.folder.path: run for run in runs}
    for run in runs:
        _count(found.setdefault(_key(run.manifest), Attempts()), run.folder, run.manifest, run.result.interrupted == 0, compared=True)
    for folder in _others(paths, used):
        with suppress(LongspanError, OSError):
            run_folder = RunFolder(path_inside(folder.parent, folder.name))
            manifest = run_folder.manifest
            if (counted := found.get(_key(manifest))) is not None:
                _count(counted, run_folder, manifest, _is_finished(run_folder), compared=False)
    return found


def _key(manifest: Manifest) -> Key:
    return manifest.labelled, Column.of(manifest), played_key(manifest)


def _count(into: Attempts, run: RunFolder, manifest: Manifest, finished: bool, *, compared: bool) -> None:
    into.begun += 1
    into.finished += finished
    into.compared += compared
    into.seeds.add(manifest.seed)
    with suppress(LongspanError, OSError):
        into.failed += bool(finished and run.failures())


def _is_finished(run: RunFolder) -> bool:
    with suppress(LongspanError, OSError):
        return read_result(run).interrupted == 0
    return False


def _others(paths: Sequence[Path], used: Mapping[Path, GradedRun]) -> Iterable[Path]:
    """Return the folders of other runs, each once."""
    holders = dict.fromkeys([*(path.resolve() for path in paths if not (path / MANIFEST).exists()), *(path.parent for path in used)])
    found = (manifest.parent for holder in holders for manifest in sorted(holder.glob(f"*/{MANIFEST}")))
    return dict.fromkeys(folder for folder in found if not folder.name.startswith(".") and folder.resolve() not in used)


def describe_attempts(found: Mapping[Key, Attempts], names: Mapping[str, str]) -> list[str]:
    """Describe which agents have runs that are unfinished, not compared, or were stopped by a failure; empty without such runs."""
    told = []
    for (agent, column, _), each in found.items():
        if each.begun > min(each.finished, each.compared) or each.failed:
            again = f", {each.failed:,} of them continued after the agent had failed" if each.failed else ""
            figures = f"{each.begun:,} attempt{'s' * (each.begun > 1)}, {each.finished:,} finished{again}, {each.compared:,} compared"
            told.append(f"{names.get(agent, agent)}{column.at}: {figures}")
    return [f"attempts at the same tests in these folders: {'; '.join(told)}"] if told else []
