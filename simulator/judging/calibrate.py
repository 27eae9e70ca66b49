"""Calibrating a judge: it is asked about what people have labelled, and what comes out is written beside the runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from math import inf
from pathlib import Path

from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.errors import JournalError, StoppedError
from longspan.simulator.files import write_json
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.judging.calibration import FOLDER, NAME, Calibration, measure, read_labels
from longspan.simulator.judging.rubrics import rubric
from longspan.simulator.ledger import Ledger

__all__ = ["calibrate"]


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
    check_model(judge, most)
    sha256 = hashlib.sha256(labels.read_bytes()).hexdigest()
    folder = out / FOLDER / _name(f"{judge} {name}", sha256)
    store = AnswerStore.create(folder)
    with store.lock("calibration"):
        model = CachedModel(judge, store, Ledger(most))
        try:
            said = await model.ask_all(queries, heard)
        except StoppedError as error:
            kept = f"what the judge has answered is kept in {folder}: the same command goes on from there"
            raise StoppedError(f"{error}; {kept}") from None
        values = [None if isinstance(answer, str) else asked.value(answer) for answer in said]
        known = {"judge": str(model.spec), "rubric": name, "version": queries[0].version}
        known |= {"labels": labels.name, "labels_sha256": sha256}
        found = measure(list(zip(items, values, strict=True)), asked).model_copy(update=known)
        try:
            write_json(folder / NAME, found)
        except OSError as error:
            raise JournalError(f"{folder / NAME}: cannot be written: {error.strerror}") from error
    return found, folder / NAME


def _name(what: str, sha256: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", what).strip("-.")[:80]
    digest = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug}-{digest}-{sha256[:8]}"
