"""Calibrates a judge: asks it about items with human labels, and writes the comparison to the folder of runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from longspan.simulator.archive.answer_store import AnswerStore
from longspan.simulator.base.errors import JournalError, StoppedError
from longspan.simulator.files.folders import inside
from longspan.simulator.files.reading import digest, write_json
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.judging.calibration import FOLDER, NAME, Calibration, measure, read_labels
from longspan.simulator.judging.rubrics import rubric
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import limit_of

__all__ = ["calibrate"]


async def calibrate(
    judge: str,
    labels: Sequence[Path],
    name: str,
    *,
    out: Path,
    max_cost: float = inf,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Path]:
    """Ask a judge about the labelled items in files, with the rubric `name`, and write the calibration below `out`. Return it with its
    path.

    Earlier answers are reused. Raises InputError for invalid input, StoppedError if more than `max_cost` dollars could be spent, and
    JournalError if answers cannot be stored.
    """
    chosen = rubric(name)
    items = read_labels(labels, chosen)
    queries = [chosen.query(item.row) for item in items]
    check_model(judge, max_cost)
    sha256 = _digest(labels)
    folder = inside(out, FOLDER, _name(f"{judge} {name}", sha256))
    store = AnswerStore.create(folder)
    with store.lock("calibration"):
        model = CachedModel(judge, store, Ledger(limit_of(max_cost)))
        try:
            answers = await model.ask_all(queries, on_progress)
        except StoppedError as error:
            kept = f"the judge's answers are kept in {folder}: the same command continues from there"
            raise StoppedError(f"{error}; {kept}") from None
        values = [None if isinstance(answer, str) else chosen.value(answer) for answer in answers]
        source = {"judge": str(model.spec), "rubric": name, "version": queries[0].version}
        source |= {"labels": ", ".join(path.name for path in labels), "labels_sha256": sha256}
        calibration = measure(list(zip(items, values, strict=True)), chosen).model_copy(update=source)
        try:
            write_json(folder / NAME, calibration)
        except OSError as error:
            raise JournalError(f"{folder / NAME}: cannot be written: {error.strerror}") from error
    return calibration, folder / NAME


def _digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256, in hexadecimal, of a file, or of the hashes of several files."""
    each = [digest(path) for path in paths]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


def _name(what: str, sha256: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", what).strip("-.")[:80]
    of = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug}-{of}-{sha256[:8]}"
