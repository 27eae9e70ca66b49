"""Finds files in a folder of runs that can be deleted without changing any result: snapshots of finished runs and, on request, old
replicates.

Everything is examined twice: when it is listed, and again under the run's lock before it is deleted. Files that might still be needed are
kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.base.errors import InputError, LongspanError
from longspan.simulator.base.files.file_io import parse_json
from longspan.simulator.base.files.folders import path_inside, read_file, remove_folder, walk_folder
from longspan.simulator.base.files.locks import LOCK, is_lock
from longspan.simulator.base.files.packed import is_packed, pack_journal
from longspan.simulator.base.installed import AGENTS
from longspan.simulator.contract.plugins import own_class
from longspan.simulator.journal.journal import is_closed
from longspan.simulator.journal.run_folder import AGENT_LOG, INCIDENTS, MANIFEST, MAX_BYTES, PROMPTS, RESULTS, RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.subject.snapshots import RECORD, Snapshots
from longspan.simulator.subject.spending_record import SPENDING
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import Part, list_dangers

__all__ = ["Prunable", "find_prunable", "knows_code"]

OURS: Final = (*RESULTS, INCIDENTS, "grades.jsonl", SPENDING, MANIFEST, LOCK)
"""The files of a run that longspan writes and people do not edit, in the order of their deletion.

The manifest is deleted near the end, since the remaining files can be recognized only while it exists.
"""

OF_CONVERSATIONS: Final = ("journal.jsonl", AGENT_LOG, PROMPTS, RECORD)
"""The files of a conversation."""

NEW: Final = {"nonce", "commitment", "run_nonce", "versions", "created", "agent_commit"}
"""The fields of a manifest that differ between replicates of a run."""

SWEEP: Final = "sweep.json"
"""The list of a sweep's runs, in the sweep's folder."""

REST: Final = ".pruned"
"""The suffix of a run's name while it is being deleted. The name then begins with a dot, so that it is not taken for a run."""


@final
class Prunable(NamedTuple):
    """Files that can be deleted, or journals that can be packed.

    `what` describes them, and `size` is in bytes. `newer` is the replicate that is kept instead of a run.
    """

    run: RunFolder
    kind: Literal["replicate", "rest", "snapshots", "journals"]
    what: str
    size: int
    newer: RunFolder | None = None

    def prune(self) -> int:
        """Delete or pack the files, if that is still possible. Return the number of bytes freed.

        Raises InputError if the run is being played, has changed or is needed now, as well as OSError and JournalError.
        """
        with ExitStack() as locks:
            handle = locks.enter_context(self.run.lock())
            run = RunFolder(self.run.path)
            if self.kind == "rest":
                return _erase(run)
            if not _is_same(run, self.run) or not _is_finished(run):
                raise InputError(f"{run.path}: it has changed in the meantime; run `longspan prune` again")
            if self.newer is not None:
                locks.enter_context(self.newer.lock())
                return _delete(run, RunFolder(self.newer.path), handle)
            if self.kind == "snapshots":
                size = 0
                for folder in _snapshots(run):
                    size += _size(folder)
                    remove_folder(folder)
                return size
            return sum(map(pack_journal, _unpacked_journals(run)))


def find_prunable(folder: Path, *, replicates: bool = False, packing: bool = False) -> tuple[list[Prunable], list[str]]:
    """Return the files that can be deleted in a run's folder or a folder of runs, and the files that must be kept, with the reason.

    `replicates`: include runs with a newer replicate, which is a graded and unchanged run with the same tests, agent, label and settings.
    `packing`: include the journals of finished runs, to be packed. Raises InputError if the folder contains no run.
    """
    found, left = _rests(folder)
    runs = _runs(folder)
    if not runs and not found:
        raise InputError(f"{folder}: no runs found; name a run's folder or a folder of runs")
    finished: list[RunFolder] = []
    for run in runs:
        try:
            if _is_finished(run):
                finished.append(run)
        except (LongspanError, OSError) as error:
            left.append(f"{run.path}: kept: {error}")
    old = dict(_old(finished)) if replicates else {}
    for run in finished:
        try:
            newer = old.get(run.path)
            why = _why_kept(run, newer) if newer is not None else None
            if newer is not None and why is None:
                found.append(Prunable(run, "replicate", "an old replicate", _size(run.path), newer))
                continue
            left += [f"{run.path}: an older replicate, kept: {why}"] if why is not None else []
            if folders := list(_snapshots(run)):
                found.append(Prunable(run, "snapshots", "snapshots of a finished run", sum(map(_size, folders))))
            if packing and (journals := _unpacked_journals(run)):
                found.append(Prunable(run, "journals", "journals to pack", sum(path.stat().st_size for path in journals)))
        except (LongspanError, OSError) as error:
            left.append(f"{run.path}: kept: {error}")
    return found, left


def _runs(folder: Path) -> list[RunFolder]:
    if (folder / MANIFEST).exists():
        return [RunFolder(folder)]
    names = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}") if not path.parent.is_symlink())
    return [RunFolder(path_inside(folder, name)) for name in names if not name.startswith(".")]


def _rests(folder: Path) -> tuple[list[Prunable], list[str]]:
    """Return the remains of runs whose deletion was interrupted, and the reasons for keeping other folders with such a name."""
    found, left = [], []
    for path in sorted(folder.glob(f".*{REST}")):
        try:
            if path.is_symlink() or not _is_rest(run := RunFolder(path)):
                raise InputError("it contains files that longspan did not write")
            found.append(Prunable(run, "rest", "the rest of an old replicate", _size(path)))
        except (LongspanError, OSError) as error:
            left.append(f"{path}: kept: {error}")
    return found, left


def _is_same(run: RunFolder, other: RunFolder) -> bool:
    return run.manifest.model_dump() == other.manifest.model_dump()


def _is_finished(run: RunFolder) -> bool:
    return all(is_closed(run.journal(id)) for id in run.manifest.played)


def _snapshots(run: RunFolder) -> Iterator[Path]:
    """Yield the folders of the snapshots in a run's records."""
    for id in run.manifest.played:
        if (folder := run.snapshots(id)).is_dir():
            snapshots = Snapshots(folder, run.owner(id))
            yield from map(snapshots.path, snapshots.turns())


def _unpacked_journals(run: RunFolder) -> list[Path]:
    return [path for id in run.manifest.played if not is_packed(path := run.journal(id))]


# Replicates.


def _old(runs: Sequence[RunFolder]) -> Iterator[tuple[Path, RunFolder]]:
    """Yield the runs with a newer replicate, each with the newest replicate that was graded and not changed since."""
    groups: dict[str, list[RunFolder]] = {}
    for run in runs:
        groups.setdefault(_key(run.manifest), []).append(run)
    for group in groups.values():
        dated = sorted((run for run in group if run.manifest.created is not None), key=_creation_time, reverse=True)
        newest = next((run for run in dated if len(dated) > 1 and not _why_no_replacement(run)), None)
        if newest is not None:
            yield from ((run.path, newest) for run in dated if run is not newest)


def _creation_time(run: RunFolder) -> float:
    return run.manifest.created.timestamp() if run.manifest.created is not None else 0.0


def _key(manifest: Manifest) -> str:
    """Return a key that is equal for replicates of a run."""
    version = manifest.versions.get("longspan")
    return json.dumps([version, manifest.agent_commit, manifest.model_dump(mode="json", exclude=NEW)], sort_keys=True)


def _why_no_replacement(run: RunFolder) -> str | None:
    """Return why a run's results cannot replace an older run's; None if they can."""
    try:
        run.check()
        result = read_result(run)
        grades = {str(entry.get("id")): entry.get("score") for entry in run.grades()}
    except (LongspanError, OSError) as error:
        return str(error)
    if not _is_finished(run) or result.score is None or result.damage:
        return "it has no score"
    return None if all(grades.get(test.id, -1) == test.score for test in result.tests) else "its results do not match its grades"


def _why_kept(run: RunFolder, newer: RunFolder) -> str | None:
    """Return why a run is kept although it seems to have a `newer` replicate; None if it can be deleted.

    A run is kept if it contains anything that longspan cannot write again: corrections, annotations, a judge's answers, or other files.
    """
    manifest = run.manifest
    run.check()
    if _key(manifest) != _key(newer.manifest) or _why_no_replacement(newer) is not None:
        return f"{newer.path} no longer replaces it"
    if not _creation_time(newer) > _creation_time(run):
        return f"{newer.path} has the same date, so neither is known to be newer"
    if not knows_code(manifest):
        return "the tested code is unknown; commit all changes before a run"
    if not _is_ours(run):
        return "it contains corrections, annotations, a judge's answers, or files that longspan did not write"
    return _why_needed(run)


def _why_needed(run: RunFolder) -> str | None:
    """Return why other runs of the folder, finished or not, or its sweep, need a run; None if they do not."""
    folder, name = run.path.parent, run.path.name
    for other in _runs(folder):
        if other.path.name == name:
            continue
        try:
            manifest = other.manifest
        except (LongspanError, OSError):
            return f"{other.path} cannot be read, and may be a rerun of part of it"
        if manifest.parent == name:
            return f"{other.path} is a rerun of part of it"
        if (manifest.run_name, manifest.nonce) == (run.manifest.run_name, run.manifest.nonce):
            return f"{other.path} is a copy of it, so it is unclear which one is needed"
    if os.path.lexists(folder / SWEEP) and name in _swept(folder / SWEEP):
        return "it is one of its sweep's runs"
    return None


def _swept(index: Path) -> set[str]:
    """Return the names of the runs of a sweep. Raises InputError for a damaged index."""
    try:
        entries = parse_json(read_file(index, MAX_BYTES), str(index))["runs"]
        return {str(entry["folder"]) for entry in entries}
    except (LookupError, TypeError) as error:
        raise InputError(f"{index}: not the index of a sweep; move it elsewhere") from error


def knows_code(manifest: Manifest) -> bool:
    """Return whether a manifest identifies the tested code and data: longspan's own, a vendor's model, or a commit's."""
    hashed = {str(path) for path in (manifest.filler, manifest.definitions)}  # they are in the manifest with their digests
    if any(named.name not in hashed for named in list_dangers(manifest, ("scenarios", "sources"))):
        return False
    if manifest.agent_commit is not None:
        return not manifest.agent_commit.endswith("-dirty")
    agent: Sequence[Part] = ("agent",)
    pinned = getattr(own_class(AGENTS, AgentSpec.parse(manifest.agent).kind), "pinned", False)
    return pinned and all(named.how == "send" for named in list_dangers(manifest, agent))


def _is_ours(run: RunFolder) -> bool:
    """Return whether a run's folder contains only files that longspan can write again. Raises JournalError for links."""
    known = {run.path / name for name in OURS} | {path_inside(run.path, "conversations")}
    snapshots = set(_snapshots(run))
    for id in run.manifest.played:
        journal = run.journal(id)
        known |= {journal, journal.parent, run.snapshots(id), *map(partial(journal.with_name), OF_CONVERSATIONS)}
    return all(path in known or not snapshots.isdisjoint((path, *path.parents)) for path in walk_folder(run.path))


def _is_rest(run: RunFolder) -> bool:
    """Return whether a folder contains only the remains of an interrupted deletion."""
    if os.path.lexists(run.path / MANIFEST):
        return _is_ours(run)
    return {path.name for path in walk_folder(run.path)} <= {LOCK}


def _delete(run: RunFolder, newer: RunFolder, handle: int) -> int:
    """Delete a run, and return the number of bytes freed. The caller holds the lock of the run and of its `newer` replicate.

    The run is first moved to a hidden name and checked there, so that no other process can open it. If files were added to it or put in its
    place, it is moved back.
    """
    if (why := _why_kept(run, newer)) is not None:
        raise InputError(f"{run.path}: {why}; it is kept")
    hidden = run.path.with_name(f".{run.path.name}{REST}")
    if os.path.lexists(hidden):
        raise InputError(f"{hidden}: already exists; examine it with `longspan prune`, or move it elsewhere")
    run.path.rename(hidden)
    moved = RunFolder(hidden)
    try:
        if hidden.is_symlink() or not is_lock(handle, hidden) or not _is_same(moved, run) or not _is_ours(moved):
            raise InputError(f"{run.path}: it has changed in the meantime; it is kept")
    except (LongspanError, OSError):
        _move_back(hidden, run.path)
        raise
    return _erase(moved)


def _move_back(hidden: Path, path: Path) -> None:
    try:
        if os.path.lexists(path):
            raise FileExistsError
        hidden.rename(path)
    except OSError as error:
        raise InputError(f"{hidden}: this was {path}, where something else is now; move it elsewhere") from error


def _erase(run: RunFolder) -> int:
    """Delete, one by one, the files of a run that its manifest and records name, and then its empty folders. Return the bytes freed.

    The remains of an interrupted deletion can be erased in the same way. Raises InputError if a folder contains anything else.
    """
    if not _is_rest(run):
        raise InputError(f"{run.path}: it contains files that longspan did not write; move them elsewhere")
    size = _size(run.path)
    try:
        if os.path.lexists(run.path / MANIFEST):
            for folder in _snapshots(run):
                remove_folder(folder)
            for id in run.manifest.played:
                journal = run.journal(id)
                _clear(journal.parent, [run.snapshots(id)], [journal.name, *OF_CONVERSATIONS])
            conversations = path_inside(run.path, "conversations")
            _clear(run.path, [*map(conversations.joinpath, run.manifest.played), conversations], OURS)
        (run.path / LOCK).unlink(missing_ok=True)
        run.path.rmdir()
    except OSError as error:
        raise InputError(f"{run.path}: the rest cannot be deleted: {error.strerror}; move its content elsewhere") from error
    return size


def _clear(folder: Path, folders: Sequence[Path], files: Sequence[str]) -> None:
    """Delete empty folders and files in a folder, in this order, if they exist."""
    for path in folders:
        with suppress(FileNotFoundError):
            path.rmdir()
    for name in files:
        (folder / name).unlink(missing_ok=True)


def _size(folder: Path) -> int:
    """Return the size of the files below a folder in bytes."""
    return sum(path.lstat().st_size for path in walk_folder(folder) if not path.is_dir())
