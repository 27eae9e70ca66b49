"""Read scores of several annotators, as in the paper's crowdsourcing study (appendix C), with one line for each score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from longspan.scenarios.elitr.marks import group_marks
from longspan.simulator.base.agreement import icc_one_way, icc_two_way
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.labels import read_rows

__all__ = ["is_annotation", "measure_reliability"]

SUFFIXES: Final = (".csv", ".jsonl", ".csv.gz", ".jsonl.gz")
COLUMNS: Final = ("meeting", "item", "annotator", "score")


def is_annotation(path: Path) -> bool:
    """Return whether a path is a file of annotators' scores, by its name."""
    return path.is_file() and path.name.endswith(SUFFIXES)


def measure_reliability(path: Path) -> Iterator[tuple[str, float | None, int]]:
    """Yield the name, reliability and number of items of each meeting and of all meetings together ("all").

    The reliability of a meeting, whose annotators score all its items, is ICC(2,k); the reliability of all together is ICC(1,k). Raises
    InputError for a file without the columns, or a meeting whose annotators did not score every item.
    """
    rows = read_rows(path, COLUMNS)
    whole: list[list[float]] = []
    for meeting, group in group_marks(rows, lambda row: str(row["meeting"])).items():
        names = sorted({str(row["annotator"]) for row in group})
        scores = []
        for item, marks in group_marks(group, lambda row: str(row["item"])).items():
            given = {str(row["annotator"]): row.number("score") for row in marks}
            if sorted(given) != names or len(marks) > len(names):
                needed = f"one score from each of the meeting's {len(names)} annotators"
                raise InputError(f"{path}: item {item!r:.40} of meeting {meeting!r:.40} needs {needed}")
            scores.append([given[name] for name in names])
        yield meeting, icc_two_way(scores), len(scores)
        whole += scores
    if len({len(scores) for scores in whole}) == 1:
        yield "all", icc_one_way(whole), len(whole)
