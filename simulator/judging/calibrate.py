"""Calibrating a judge: it is asked about what people have labelled, and what comes out is written beside the runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final

import trio

from longspan.simulator.agent_spec import AgentSpec
from longspan.simulator.errors import InputError, JournalError, LongspanError, StoppedError
from longspan.simulator.judging.calibration import FOLDER, NAME, Calibration, measure, read_labels
from longspan.simulator.judging.judge import LLMJudge, completing
from longspan.simulator.judging.rubrics import rubric
from longspan.simulator.ledger import Ledger, check_priced
from longspan.simulator.manifest import write_json
from longspan.simulator.queries import Query
from longspan.simulator.run_folder import RunFolder, locked

__all__ = ["calibrate"]

AT_ONCE: Final = 100
"""Items that a judge is asked about at once."""


async def calibrate(
    judge: str,
    labels: Path,
    name: str,
    *,
    out: Path,
    most: float = inf,
    heard: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Path]:
    """Ask a judge about what people labelled, by the rubric called `name`, and write what comes out below `out`; returns where.

    What it has answered before is not asked again. At most `most` dollars are spent. Raises InputError for what is wrong at the
    door, StoppedError where the limit would be passed, JournalError where answers cannot be kept.
    """
    asked = rubric(name)
    items = read_labels(labels, asked)
    queries = [asked.query(item.row) for item in items]
    model = completing(AgentSpec.parse(judge))
    if most < inf:
        check_priced(model, judge)
    sha256 = hashlib.sha256(labels.read_bytes()).hexdigest()
    folder = _folder(out, f"{judge} {name}", sha256)
    with locked(folder, "calibration"):
        answering = LLMJudge(judge, RunFolder(folder), Ledger(most))
        try:
            said = await _said(answering, queries, heard)
        except* LongspanError as errors:
            _raise(errors, folder)
        values = [None if isinstance(answer, str) else asked.value(answer) for answer in said]
        known = {"judge": str(answering.spec), "rubric": name, "version": queries[0].version}
        known |= {"labels": labels.name, "labels_sha256": sha256}
        found = measure(list(zip(items, values, strict=True)), asked).model_copy(update=known)
        try:
            write_json(folder / NAME, found)
        except OSError as error:
            raise JournalError(f"{folder / NAME}: cannot be written: {error.strerror}") from error
    return found, folder / NAME


async def _said(judge: LLMJudge, queries: list[Query[Any]], heard: Callable[[int, int], None] | None) -> list[Any]:
    """What the judge says to each query, or why it does not."""
    said: dict[int, Any] = {}
    limit = trio.CapacityLimiter(AT_ONCE)

    async def ask(at: int) -> None:
        async with limit:
            said[at] = await judge.ask(queries[at])
        if heard is not None:
            heard(len(said), len(queries))

    async with trio.open_nursery() as nursery:
        for at in range(len(queries)):
            nursery.start_soon(ask, at)
    return [said[at] for at in range(len(queries))]


def _folder(out: Path, what: str, sha256: str) -> Path:
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", what).strip("-.")[:80]
    digest = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:8]
    folder = out / FOLDER / f"{slug}-{digest}-{sha256[:8]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make the folder: {error.strerror}; choose another place with --out") from error
    return folder


def _raise(errors: BaseExceptionGroup[LongspanError], folder: Path) -> None:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, StoppedError):
        raise StoppedError(f"{error}; what the judge has answered is kept in {folder}: the same command goes on from there") from None
    raise error from None
