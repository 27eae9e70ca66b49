"""Calibrates a judge: asks it about items with human labels, and writes the comparison to the folder of runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from longspan.simulator.base.errors import JournalError, StoppedError
from longspan.simulator.base.files.file_io import hash_file, write_json
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.results.judging.cached_model import CachedModel, check_model
from longspan.simulator.results.judging.calibration import FOLDER, NAME, Calibration, measure_calibration, read_labels
from longspan.simulator.results.judging.rubrics import find_rubric
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import limit_of

__all__ = ["calibrate_judge"]


async def calibrate_judge(
    judge: str,
    labels: Sequence[Path],
    name: str,
    *,
    out: Path,
    max_cost: float = inf,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Path]:
    """Compare a judge with the labelled items in files, by the rubric `name`. Write the calibration below `out`, and return it with its
    path.

    Earlier answers are reused. Raises InputError for invalid input, StoppedError if more than `max_cost` dollars could be spent, and
    JournalError if answers cannot be stored.
    """
    chosen = find_rubric(name)
    items = read_labels(labels, chosen)
    queries = [chosen.query(item.row) for item in items]
    check_model(judge, max_cost)
    sha256 = _digest(labels)
    folder = path_inside(out, FOLDER, _name(f"{judge} {name}", sha256))
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
        calibration = measure_calibration(list(zip(items, values, strict=True)), chosen).model_copy(update=source)
        try:
            write_json(folder / NAME, calibration)
        except OSError as error:
            raise JournalError(f"{folder / NAME}: cannot be written: {error.strerror}") from error
    return calibration, folder / NAME


def _digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256, in hexadecimal, of a file, or of the hashes of several files."""
    each = [hash_file(path) for path in paths]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


def _name(what: str, sha256: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", what).strip("-.")[:80]
    # The slug loses characters, so a hash keeps the folders of different judges and rubrics apart.
    of = hashlib.sha256(what.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug}-{of}-{sha256[:8]}"
