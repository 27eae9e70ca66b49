"""Report tables for ELITR-Bench: points by setting, question type and answer position."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from longspan.scenarios.elitr.files import Mode, Setting, Split
from longspan.scenarios.elitr.marks import Mark, Sitting, format_figure, group_marks, over_seeds, p_middle, points_of
from longspan.scenarios.elitr.published import KINDS, PLACES
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item, Marked

__all__ = ["mark_of", "tables_of"]

JUDGE: Final = "points"

_SEEDED: Final = re.compile(r"(.+)-seed-?\d+(?:-\d+)?")
"""Matches the names of runs' folders, which end in the seed and, if that name is taken, a number."""
SCALE: Final = "A judge's points from 1 to 10, or ten times the score by rules; means over questions."


def tables_of(runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return the tables over the tests of some runs, by the runs' names."""
    marks = [mark_of(run, item) for run, tests in runs.items() for test in tests for item in test.items]
    if not marks:
        return []
    return [_settings(marks), _groups(marks), _middle(marks), *_differing_tables(marks)]


def mark_of(run: str, item: Item) -> Mark:
    """Return the mark of a graded answer. Runs whose names differ only in the seed are sittings of the same model."""
    labels = item.labels
    seeded = _SEEDED.fullmatch(run)
    model = seeded[1] if seeded else run
    sitting = Sitting(model, cast(Setting, labels["setting"]), cast(Mode, labels["mode"]), cast(Split, labels["split"]), run)
    points = {JUDGE: item.numbers.get("points") if item.score is not None else None}
    return Mark(sitting, labels["meeting"], labels["question"], labels["type"], labels["position"], points, labels["differs"] == "yes")


def _settings(marks: Sequence[Mark]) -> Table:
    rows = []
    for (run, setting, mode, split), group in group_marks(marks, lambda mark: mark.sitting[:4]).items():
        mean, deviation = over_seeds(group, JUDGE)
        scored, sat = len(points_of(group, JUDGE)), len({mark.sitting.seed for mark in group})
        rows.append(
            [run, split, mode, setting, f"{scored}", f"{len(group) - scored}", f"{sat}", format_figure(mean), format_figure(deviation)]
        )
    columns = ["run", "split", "mode", "setting", "answers", "without points", "seeds", "mean", "deviation over seeds"]
    return Table(title="ELITR-Bench: mean points", columns=columns, rows=rows, note=SCALE)


def _groups(marks: Sequence[Mark]) -> Table:
    rows, shades = [], []
    for run, group in group_marks(marks, lambda mark: mark.sitting.model).items():
        parts = [[mark for mark in group if mark.type == kind] for kind in KINDS]
        parts += [[mark for mark in group if mark.place == place] for place in PLACES]
        means = [over_seeds(part, JUDGE)[0] for part in parts]
        counts = [len(points_of(part, JUDGE)) for part in parts]
        rows.append([run, *(f"{format_figure(mean)} ({count})" if count else "-" for mean, count in zip(means, counts, strict=True))])
        shades.append([None, *(None if mean is None else mean / 10 for mean in means)])
    note = "In brackets: answers with points. Begin, Middle, End: thirds of the transcript; Several: more than one passage."
    title = "ELITR-Bench: by question type and answer position"
    return Table(title=title, columns=["run", *KINDS.values(), *PLACES.values()], rows=rows, shades=shades, note=note)


def _middle(marks: Sequence[Mark]) -> Table:
    rows = []
    for run, group in group_marks(marks, lambda mark: mark.sitting.model).items():
        middle = [mark for mark in group if mark.place == "M"]
        rest = [mark for mark in group if mark.place != "M"]
        p = p_middle(group, JUDGE)
        rows.append(
            [run, format_figure(over_seeds(middle, JUDGE)[0]), format_figure(over_seeds(rest, JUDGE)[0]), "-" if p is None else f"{p:.3f}"]
        )
    note = "One-tailed Welch test that answers from the middle have fewer points than the rest, with unequal variances."
    return Table(title="ELITR-Bench: lost in the middle?", columns=["run", "middle", "rest", "p"], rows=rows, note=note)


def _differing_tables(marks: Sequence[Mark]) -> list[Table]:
    odd = [mark for mark in marks if mark.differs]
    if not odd:
        return []
    rows = []
    for run, group in group_marks(odd, lambda mark: mark.sitting.model).items():
        rows.append([run, str(len(points_of(group, JUDGE))), format_figure(over_seeds(group, JUDGE)[0])])
    title = "ELITR-Bench: only questions that qa and conv word differently"
    return [Table(title=title, columns=["run", "answers", "mean"], rows=rows)]
