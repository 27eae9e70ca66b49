"""Sweeps: many runs that one YAML file names, in one folder, each played once however often the sweep is."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.errors import InputError, first_problem
from longspan.simulator.files import partial_of, write_text
from longspan.simulator.grading.grades import Result
from longspan.simulator.grid import Grid
from longspan.simulator.manifest import Manifest
from longspan.simulator.planning import Plan, plan, replan
from longspan.simulator.run_folder import MANIFEST, RunFolder
from longspan.simulator.runner import Outcome
from longspan.simulator.settings import Conditions
from longspan.simulator.suite import read_yaml

__all__ = ["INDEX", "Indexed", "finished", "left_to_play", "make_folders", "plans_of", "read_sweep", "write_index"]

INDEX: Final = "sweep.json"
"""The list of a sweep's runs, in its folder."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Indexed(_Frozen):
    """A run as the sweep's index lists it: its folder's name, what it plays, and, where it is finished, its score."""

    folder: str
    suite: str
    span: int
    seed: int
    agent: str
    state: Literal["finished", "broken off", "not begun"]
    score: float | None
    max_score: int | None


def read_sweep(path: Path) -> list[Grid]:
    """The grids of a sweep's file: those under `runs`, each over what stands beside it; without `runs` that alone.

    Raises InputError for a file that is none.
    """
    content = read_yaml(path, "sweep")
    if not isinstance(content, dict):
        raise InputError(f"sweep {path}: it names no runs; its keys are {_keys()}")
    common = {key: value for key, value in content.items() if key != "runs"}
    _grid(path, common, "")
    if "runs" not in content:
        return [_grid(path, common, "")]
    runs = content["runs"]
    if not isinstance(runs, list) or not runs or not all(isinstance(each, dict) for each in runs):
        raise InputError(f"sweep {path}: runs: a list of what is to differ is wanted, such as `- agents: [silent]`")
    return [_grid(path, common | each, f"runs.{number}: ") for number, each in enumerate(runs)]


def _grid(path: Path, content: dict[str, Any], where: str) -> Grid:
    try:
        return Grid.model_validate(content)
    except ValidationError as error:
        raise InputError(f"sweep {path}: {where}{first_problem(error)}; its keys are {_keys()}") from None


def _keys() -> str:
    own = [name for name in Grid.model_fields if name not in Conditions.model_fields]
    return ", ".join([*own, *Conditions.model_fields, "runs"])


def plans_of(grids: Sequence[Grid], out: Path) -> dict[str, Plan]:
    """The runs of a sweep, by the name of their folder in `out`; one that is named twice is there once.

    Raises InputError for what is wrong with any of them, before anything is written.
    """
    plans: dict[str, Plan] = {}
    for settings in (settings for grid in grids for settings in grid.runs()):
        each = plan(settings, out)
        plans.setdefault(f"{each.name}-{_digest(each.manifest)}", each)
    return plans


def _digest(manifest: Manifest) -> str:
    """What tells a run from others of its name: all that its manifest says, but for what is new each time it is made."""
    content = manifest.model_dump(mode="json", exclude={"nonce", "commitment", "versions"}, exclude_none=True)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def make_folders(plans: dict[str, Plan], out: Path) -> list[tuple[Plan, RunFolder]]:
    """The folders of a sweep's runs, made where they are missing, in the plans' order. The caller holds `out` alone.

    Raises InputError for a folder that is in the way.
    """
    pairs = []
    for name, each in plans.items():
        path = out / name
        if path.exists() and not (path / MANIFEST).exists():  # a crash while it was made
            if any(entry.name != partial_of(path / MANIFEST).name for entry in path.iterdir()):
                raise InputError(f"{path}: is in the way of a run and has no manifest; move it elsewhere")
            shutil.rmtree(path)
        pairs.append((each, RunFolder(path) if path.exists() else RunFolder.create(out, name, each.manifest)))
    return pairs


def finished(run: RunFolder) -> Result | None:
    """The results of a run that was played to its end; None for any other."""
    try:
        if not all(_closed(run.journal(id)) for id in run.manifest.conversations):
            return None
        return Result.model_validate_json((run.path / "result.json").read_bytes())
    except (OSError, ValueError, InputError):  # what cannot be read is played again from its journal, which says what is wrong
        return None


def _closed(journal: Path) -> bool:
    """Whether a journal's last event is its close, which is a short one."""
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - 1000))
        last = file.read().splitlines(keepends=True)[-1:]
    return bool(last) and last[0].endswith(b"\n") and b'"type":"close"' in last[0]


def left_to_play(pairs: Sequence[tuple[Plan, RunFolder]]) -> tuple[list[tuple[Plan, RunFolder]], list[Outcome]]:
    """The runs that are not finished, as they were begun; and what is known of the others: results, or why they cannot be
    played."""
    left, known = [], []
    for each, run in pairs:
        result = finished(run)
        if result is not None:
            known.append(Outcome(run.path, result, None))
            continue
        try:
            with run.lock():
                begun = each if run.manifest == each.manifest else replan(run.manifest, run.manifest.agent, run.path.parent)
            left.append((begun, run))
        except InputError as error:
            known.append(Outcome(run.path, None, error))
    return left, known


def write_index(out: Path, pairs: Sequence[tuple[Plan, RunFolder]]) -> list[Indexed]:
    """List the sweep's runs and how far they are in its index. Raises InputError where it cannot be written."""
    found = [_indexed(*pair) for pair in pairs]
    text = json.dumps({"runs": [each.model_dump(mode="json") for each in found]}, ensure_ascii=False, indent=1)
    try:
        write_text(out / INDEX, text + "\n")
    except OSError as error:
        raise InputError(f"{out / INDEX}: cannot be written: {error.strerror}; choose another place with --out") from error
    return found


def _indexed(each: Plan, run: RunFolder) -> Indexed:
    result = finished(run)
    begun = any(run.journal(id).exists() for id in each.tests)
    return Indexed(
        folder=run.path.name,
        suite=each.manifest.suite.name,
        span=each.manifest.span,
        seed=each.manifest.seed,
        agent=each.manifest.agent,
        state="finished" if result else "broken off" if begun else "not begun",
        score=result.score if result else None,
        max_score=result.max_score if result else None,
    )
