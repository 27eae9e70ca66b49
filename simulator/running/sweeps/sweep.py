"""A sweep: many runs defined by one YAML file, in one folder. Each run is played once, even if the sweep is started several times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.errors import InputError, JournalError, LongspanError, first_problem
from longspan.simulator.base.files.file_io import partial_of, write_text
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.base.suggestions import with_keys
from longspan.simulator.journal.journal import is_closed
from longspan.simulator.journal.run_folder import MANIFEST, RunFolder
from longspan.simulator.results.analysis.contrasts import KEYS, Contrasts, read_contrasts
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import Plan, plan_run, replan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.suite.grid import Grid
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import Conditions
from longspan.simulator.suite.suite import read_yaml
from longspan.simulator.suite.trust import admit_manifest

__all__ = ["INDEX", "IndexEntry", "finished_result", "make_folders", "plans_of", "read_sweep", "split_unfinished", "write_index"]

INDEX: Final = "sweep.json"
"""The list of a sweep's runs, in its folder."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class IndexEntry(_Frozen):
    """A run in the sweep's index: its folder's name, its settings and, once it is finished, its score."""

    folder: str
    suite: str
    span: int
    seed: int
    agent: str
    state: Literal["finished", "interrupted", "not started"]
    score: float | None
    max_score: int | None


def read_sweep(path: Path, called: str = "sweep") -> tuple[list[Grid], Contrasts | None]:
    """Read the grids of a sweep's file, and its contrasts if it states any. `called` is the name of the file in errors.

    Each entry under `runs` gives a grid and overrides the keys at the top; without `runs`, the top gives one grid. Raises InputError if the
    file is not a valid sweep.
    """
    content = read_yaml(path, called)
    where = f"{called} {path}"
    if not isinstance(content, dict):
        raise InputError(f"{where}: expected a mapping; its keys are {', '.join(_keys())}")
    return _grids(where, content), read_contrasts(content, where)


def _grids(where: str, content: dict[str, Any]) -> list[Grid]:
    common = {key: value for key, value in content.items() if key not in ("runs", *KEYS)}
    _grid(where, common)
    if "runs" not in content:
        return [_grid(where, common)]
    runs = content["runs"]
    if not isinstance(runs, list) or not runs or not all(isinstance(overrides, dict) for overrides in runs):
        raise InputError(f"{where}: runs: expected a list of overrides, such as `- agents: [silent]`")
    return [_grid(f"{where}: runs.{number}", common | overrides, overriding=True) for number, overrides in enumerate(runs)]


def _grid(where: str, content: dict[str, Any], *, overriding: bool = False) -> Grid:
    try:
        return Grid.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{where}: {with_keys(first_problem(error), 'its', _keys(overriding=overriding))}") from None


def _keys(*, overriding: bool = False) -> list[str]:
    """Return the keys of a file, or of an entry under `runs`."""
    own = [name for name in Grid.model_fields if name not in Conditions.model_fields]
    return [*own, *Conditions.model_fields, *(() if overriding else ("runs", *KEYS))]


def plans_of(grids: Sequence[Grid], out: Path) -> dict[str, Plan]:
    """Return the runs of a sweep by the name of their folder in `out`, without duplicates.

    Writes nothing. Raises InputError if any of them is invalid.
    """
    plans: dict[str, Plan] = {}
    for settings in (settings for grid in grids for settings in grid.runs()):
        planned = plan_run(settings, out)
        plans.setdefault(f"{planned.name}-{_digest(planned.manifest)}", planned)
    return plans


def _digest(manifest: Manifest) -> str:
    """Return a hash of the manifest's content that distinguishes a run from others of the same name."""
    return hashlib.sha256(json.dumps(_content(manifest), sort_keys=True).encode()).hexdigest()[:8]


def _content(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest without the fields that differ each time it is made."""
    return manifest.model_dump(
        mode="json", exclude={"nonce", "commitment", "run_nonce", "versions", "created", "agent_commit", "parent"}, exclude_none=True
    )


def make_folders(plans: dict[str, Plan], out: Path) -> list[tuple[Plan, RunFolder]]:
    """Return the folders of a sweep's runs in the plans' order, and create the missing ones. The caller has `out` locked.

    Raises InputError for a folder of that name with other content, and JournalError for a link.
    """
    pairs = []
    for name, planned in plans.items():
        path = path_inside(out, name)
        if path.exists() and not (path / MANIFEST).exists():
            _remove_half_made(path)
        pairs.append((planned, RunFolder(path) if path.exists() else RunFolder.create(out, name, planned.manifest)))
    return pairs


def _remove_half_made(path: Path) -> None:
    """Remove a run's folder that a crash left incomplete. Raises InputError if it contains more than part of a manifest."""
    try:
        partial = partial_of(path / MANIFEST)
        if list(path.iterdir()) == [partial]:
            partial.unlink()
        path.rmdir()
    except OSError as error:
        raise InputError(f"{path}: not a run, it has no manifest; move it elsewhere") from error


def finished_result(run: RunFolder) -> Result | None:
    """Return the results of a finished run, or None for any other."""
    try:
        if not all(is_closed(run.journal(id)) for id in run.manifest.played):
            return None
        return read_result(run)
    except (OSError, LongspanError):  # an unreadable run is resumed, which reports the problem
        return None


def split_unfinished(pairs: Sequence[tuple[Plan, RunFolder]]) -> tuple[list[tuple[Plan, RunFolder]], list[Outcome]]:
    """Return the unfinished runs as they were started, and the outcomes of the others: their results, or why they cannot be played.

    The sweep's file decides: a run with a different manifest is not played, and any other run may use everything that its manifest names.
    """
    left, known = [], []
    for planned, run in pairs:
        try:
            _check_same(planned.manifest, run)
            admit_manifest(run.path, run.manifest, trust=True)
            result = finished_result(run)
            if result is not None:
                known.append(Outcome(run.path, result, None))
                continue
            with run.lock():
                started = planned if run.manifest is planned.manifest else replan_run(run.manifest, planned.manifest.agent, run.path.parent)
            left.append((started, run))
        except LongspanError as error:
            known.append(Outcome(run.path, None, error))
    return left, known


def _check_same(planned: Manifest, run: RunFolder) -> None:
    """Raise InputError if a run's manifest differs from the planned one."""
    difference = _difference(_content(planned), _content(run.manifest))
    if difference is not None:
        field, wanted, found = difference
        raise InputError(
            f"{run.path / MANIFEST}: {field} is {found!r:.80}, but the sweep's file says {wanted!r:.80}; "
            "move the run elsewhere to have it played as the file says"
        )


def _difference(wanted: Any, found: Any, field: str = "") -> tuple[str, Any, Any] | None:
    """Return the first field where two values differ, with both values, or None if they are equal."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in wanted | found:
            inner = _difference(wanted.get(name), found.get(name), f"{field}.{name}".removeprefix("."))
            if inner is not None:
                return inner
        return None
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return _difference(dict(enumerate(wanted)), dict(enumerate(found)), field)
    return None if wanted == found else (field, wanted, found)


def write_index(out: Path, pairs: Sequence[tuple[Plan, RunFolder]]) -> list[IndexEntry]:
    """Write the sweep's index: its runs and their states. Raises InputError if it cannot be written."""
    entries = [_index_run(*pair) for pair in pairs]
    text = json.dumps({"runs": [entry.model_dump(mode="json") for entry in entries]}, ensure_ascii=False, indent=1)
    try:
        write_text(out / INDEX, text + "\n")
    except OSError as error:
        raise InputError(f"{out / INDEX}: cannot be written: {error.strerror}; choose another folder with --out") from error
    return entries


def _find_planned_result(planned: Plan, run: RunFolder) -> Result | None:
    try:
        _check_same(planned.manifest, run)
    except LongspanError:
        return None
    return finished_result(run)


def _has_started(planned: Plan, run: RunFolder) -> bool:
    try:
        return any(run.journal(id).exists() for id in planned.tests)
    except JournalError:  # reported when it is played
        return True


def _index_run(planned: Plan, run: RunFolder) -> IndexEntry:
    result = _find_planned_result(planned, run)
    started = _has_started(planned, run)
    return IndexEntry(
        folder=run.path.name,
        suite=planned.manifest.suite.name,
        span=planned.manifest.span,
        seed=planned.manifest.seed,
        agent=planned.manifest.agent,
        state="finished" if result else "interrupted" if started else "not started",
        score=result.score if result else None,
        max_score=result.max_score if result else None,
    )
