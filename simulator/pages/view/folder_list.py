"""The folders in a list of runs that contain runs themselves: sweeps, and others. Only names and manifests are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.errors import LongspanError
from longspan.simulator.base.files.folders import check_file
from longspan.simulator.base.files.locks import is_locked
from longspan.simulator.journal.run_folder import MANIFEST, RESULT, RunFolder
from longspan.simulator.pages.view.run_list import RunList, is_folder, is_run
from longspan.simulator.results.analysis.matrix import natural_sort_key
from longspan.simulator.suite.manifest import Manifest

__all__ = ["FolderList", "ListedFolder"]

INDEX: Final = "sweep.json"
"""A file that only a sweep's folder has."""

MAX_DEPTH: Final = 4
"""How many levels below a folder of the list runs are searched for."""

MAX_LOOKED: Final = 10_000
"""The maximum number of folders searched for one list. The content of a folder is untrusted, so it may be of any size."""


@final
@dataclass(frozen=True, slots=True)
class ListedFolder:
    """A folder with runs in it, or below it.

    `name` is its path below the folder of the list. `sweep`: whether it is a sweep. `playing`: whether a process plays it, or one of its
    runs. `runs` is the number of runs, `own` of them directly in it, and `graded` of them with results. `changed` is when one of them last
    got results or began, in seconds since 1970. `suites`, `spans` and `agents` are taken from its runs.
    """

    name: str
    sweep: bool
    playing: bool
    runs: int
    own: int
    graded: int
    changed: float
    suites: Sequence[str]
    spans: Sequence[int]
    agents: Sequence[str]

    @property
    def short(self) -> str:
        """The name of the folder itself."""
        return self.name.rpartition("/")[2]


@final
class FolderList:
    """The subfolders of a `RunList`'s folders. Manifests are cached."""

    def __init__(self, runs: RunList) -> None:
        self._runs = runs
        self._manifests: dict[Path, tuple[int, Manifest | None]] = {}

    def entries(self, folder: str = "") -> list[ListedFolder]:
        """Return the subfolders of a folder that have runs, in the order of their names. Raises MissingError for an unknown folder."""
        place, left = self._runs.folder(folder), [MAX_LOOKED]
        within = f"{folder}/" if folder else ""
        found = [self._entry(f"{within}{path.name}", path, left) for path in _folders(place) if not is_run(path)]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: natural_sort_key(entry.name))

    def _entry(self, name: str, path: Path, left: list[int]) -> ListedFolder | None:
        runs = list(_runs_below(path, MAX_DEPTH, left))
        if not runs or name != name.encode(errors="replace").decode():
            return None
        manifests = [manifest for manifest in map(self._manifest, runs) if manifest is not None]
        return ListedFolder(
            name,
            sweep=(path / INDEX).is_file() and not (path / INDEX).is_symlink(),
            playing=is_locked(path) or any(map(is_locked, runs)),
            runs=len(runs),
            own=sum(run.parent == path for run in runs),
            graded=sum((run / RESULT).is_file() for run in runs),
            changed=max(map(_modified_at, runs)),
            suites=sorted({manifest.suite.name for manifest in manifests}),
            spans=sorted({manifest.span for manifest in manifests if not manifest.alone}),
            agents=sorted({manifest.labelled for manifest in manifests}),
        )

    def _manifest(self, run: Path) -> Manifest | None:
        """Return a run's manifest; None if it is damaged."""
        with suppress(LongspanError, OSError):
            time = (run / MANIFEST).lstat().st_mtime_ns
            if run not in self._manifests or self._manifests[run][0] != time:
                check_file(run / MANIFEST)
                self._manifests[run] = time, None
                self._manifests[run] = time, RunFolder(run).manifest
            return self._manifests[run][1]
        return None


def _runs_below(folder: Path, depth: int, left: list[int]) -> Iterator[Path]:
    """Yield the runs in a folder and below it, until the number of folders `left` to search is used up."""
    for path in _folders(folder):
        left[0] -= 1
        if left[0] < 0:
            return
        if is_run(path):
            yield path
        elif depth > 1:
            yield from _runs_below(path, depth - 1, left)


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in map(Path, os.scandir(folder)) if is_folder(path))
    return []


def _modified_at(run: Path) -> float:
    for name in (RESULT, MANIFEST):
        with suppress(OSError):
            return (run / name).lstat().st_mtime
    return 0.0
