"""What in a folder of runs can be deleted without changing any result: snapshots of finished runs, and, if wanted, old replicates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, final

from longspan.simulator.errors import InputError, LongspanError
from longspan.simulator.folders import below, inside, remove
from longspan.simulator.journal import is_closed
from longspan.simulator.manifest import Manifest
from longspan.simulator.packed import is_packed, pack
from longspan.simulator.run_folder import AGENT_LOG, INCIDENTS, MANIFEST, PROMPTS, RESULTS, RunFolder
from longspan.simulator.snapshots import RECORD, Snapshots

__all__ = ["Prunable", "prunable"]

OURS: Final = (MANIFEST, *RESULTS, INCIDENTS, "grades.jsonl", ".lock")
"""The files of a run that longspan writes, and that nobody has put work into."""

OF_CONVERSATIONS: Final = ("journal.jsonl", AGENT_LOG, PROMPTS, RECORD)
"""The files of a conversation."""

NEW: Final = {"nonce", "commitment", "run_nonce", "versions", "created", "agent_commit"}
"""The fields of a manifest that differ between replicates of a run."""


@final
class Prunable(NamedTuple):
    """Something in a run: `folders` that can be deleted, or `journals` that can be packed. `what` it is, and its size in bytes."""

    run: RunFolder
    what: str
    size: int
    folders: Sequence[Path] = ()
    journals: Sequence[Path] = ()

    def prune(self) -> int:
        """Delete or pack it. Return how many bytes that frees. Raises InputError if the run is being played, OSError and JournalError."""
        with self.run.lock():
            for folder in self.folders:
                remove(folder)
            return sum(map(pack, self.journals)) if self.journals else self.size


def prunable(folder: Path, *, replicates: bool = False, packing: bool = False) -> tuple[list[Prunable], list[str]]:
    """Return what can be deleted in a run's folder or a folder of runs, and what is left alone because it is damaged or in use.

    `replicates`: also runs of which there is a newer one with the same tests, agent, label and settings. A run with corrections,
    annotations, a judge's verdicts or files that are not longspan's is not among them. `packing`: also the journals of finished runs,
    to be packed. Raises InputError if there is no run.
    """
    found: list[Prunable] = []
    left: list[str] = []
    finished: list[RunFolder] = []
    for run in _runs(folder):
        try:
            if all(is_closed(run.journal(id)) for id in run.manifest.played):
                finished.append(run)
        except (LongspanError, OSError) as error:
            left.append(f"{run.path}: left alone: {error}")
    old = list(_old(finished)) if replicates else []
    for run in finished:
        try:
            if run in old and _is_ours(run):
                found.append(Prunable(run, "an old replicate", _size(run.path), [run.path]))
                continue
            if folders := list(_snapshots(run)):
                found.append(Prunable(run, "snapshots of a finished run", sum(map(_size, folders)), folders))
            if packing and (journals := [path for id in run.manifest.played if not is_packed(path := run.journal(id))]):
                found.append(Prunable(run, "journals to pack", sum(path.stat().st_size for path in journals), journals=journals))
        except (LongspanError, OSError) as error:
            left.append(f"{run.path}: left alone: {error}")
    return found, left


def _runs(folder: Path) -> list[RunFolder]:
    if (folder / MANIFEST).exists():
        return [RunFolder(folder)]
    names = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}") if not path.parent.is_symlink())
    if not names:
        raise InputError(f"{folder}: no runs found; name a run's folder or a folder of runs")
    return [RunFolder(inside(folder, name)) for name in names]


def _snapshots(run: RunFolder) -> Iterator[Path]:
    """Yield the folders of a run's snapshots that its records name."""
    for id in run.manifest.played:
        if (folder := run.snapshots(id)).is_dir():
            snapshots = Snapshots(folder, run.owner(id))
            yield from map(snapshots.path, snapshots.turns())


def _old(runs: Sequence[RunFolder]) -> Iterator[RunFolder]:
    """Yield the runs of which there is a newer replicate, and that no other run names."""
    parents = {run.manifest.parent for run in runs}
    newest: dict[str, RunFolder] = {}
    dated = [(run, run.manifest.created) for run in runs if run.manifest.created is not None]
    for run, _ in sorted(dated, key=lambda pair: (pair[1], pair[0].path.name)):
        key = _key(run.manifest)
        if key in newest and newest[key].path.name not in parents:
            yield newest[key]
        newest[key] = run


def _key(manifest: Manifest) -> str:
    """Return what replicates of a run have in common."""
    version = manifest.versions.get("longspan")
    return json.dumps([version, manifest.agent_commit, manifest.model_dump(mode="json", exclude=NEW)], sort_keys=True)


def _is_ours(run: RunFolder) -> bool:
    """Return whether a run's folder holds nothing but what longspan wrote and can write again. Raises JournalError for links."""
    known = {run.path / name for name in OURS} | {inside(run.path, "conversations")}
    snapshots = set(_snapshots(run))
    for id in run.manifest.played:
        journal = run.journal(id)
        known |= {journal, journal.parent, run.snapshots(id), *map(partial(journal.with_name), OF_CONVERSATIONS)}
    return all(path in known or not snapshots.isdisjoint((path, *path.parents)) for path in below(run.path))


def _size(folder: Path) -> int:
    """Return the size of the files below a folder in bytes."""
    return sum(path.lstat().st_size for path in below(folder) if not path.is_dir())
