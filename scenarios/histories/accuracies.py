"""Compute accuracies and judge agreement from released answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum, sqrt
from statistics import NormalDist, fmean
from typing import Final

from longspan.scenarios.histories.released_answers import ReleasedAnswer, ReleasedFile
from longspan.simulator.base.agreement import kappa
from longspan.simulator.base.tables import Table
from longspan.simulator.results.analysis.statistics import student_quantile
from longspan.simulator.results.papers import Cell

__all__ = ["accuracy_cells", "accuracy_table", "agreement_cells", "mean_score", "tables_of_agreement"]

NORMAL: Final = NormalDist().inv_cdf(0.975)


def mean_score(answers: Sequence[ReleasedAnswer]) -> tuple[float, tuple[float, float] | None]:
    """Return the mean score of at least one answer, with its 95% interval; the interval is None for a single answer.

    It is Wilson's (1927) interval. Answers about the same conversation may be correlated, so the number of answers is reduced to the
    effective number of independent ones (Kish, 1965), with the quantile of Student's t. Conversations may have different numbers of
    questions.
    """
    number, mean = len(answers), fmean(answer.score for answer in answers)
    if number < 2:
        return mean, None
    apart: dict[str, float] = defaultdict(float)
    for answer in answers:
        apart[answer.conversation] += answer.score - mean
    width = NORMAL**2 / number
    if 1 < len(apart) < number and 0 < mean < 1:
        several = len(apart)
        variance = several / (several - 1) * fsum(each**2 for each in apart.values()) / number**2
        width = max(width, student_quantile(several - 1) ** 2 * variance / (mean * (1 - mean)))
    centre, half = (mean + width / 2) / (1 + width), sqrt(width * (mean * (1 - mean) + width / 4)) / (1 + width)
    return mean, (max(0.0, centre - half), min(1.0, centre + half))


def accuracy_cells(paper: str, kind: str, released: ReleasedFile, columns: Mapping[str, Sequence[ReleasedAnswer]]) -> Iterator[Cell]:
    """Yield the cells of a table called `kind`, with a column for each group of answers and cells for both ends of the intervals.

    Empty groups are skipped.
    """
    for column, answers in columns.items():
        if not answers:
            continue
        mean, ends = mean_score(answers)
        stated = released.stated.get(column) if kind == "accuracy" else None
        figures = [(kind, mean, stated), *((f"{kind} {end}", value, None) for end, value in zip(("low", "high"), ends or (), strict=False))]
        for name, ours, published in figures:
            yield Cell(paper=paper, table=name, row=released.name, column=column, ours=round(ours, 6), published=published, n=len(answers))


def accuracy_table(title: str, kind: str, cells: Sequence[Cell], names: Mapping[str, str], note: str) -> Table:
    """Return the cells called `kind` as a table with their intervals. `names`: suffixes for column names."""
    by_place = {(cell.table, cell.row, cell.column): cell for cell in cells}
    kept = [cell for cell in cells if cell.table == kind]
    rows = []
    for cell in kept:
        low, high = (by_place.get((f"{kind} {end}", cell.row, cell.column)) for end in ("low", "high"))
        ends = f"{low.ours:.3f} to {high.ours:.3f}" if low and high else ""
        published = "" if cell.published is None else f"{cell.published:.4f}"
        rows.append([cell.row, f"{cell.column}{names.get(cell.column, '')}", f"{cell.ours:.4f}", ends, published, f"{cell.n}"])
    return Table(title=title, columns=["file", "questions", "accuracy", "95% interval", "published", "n"], rows=rows, note=note)


def agreement_cells(paper: str, files: Sequence[ReleasedFile]) -> Iterator[Cell]:
    """Yield how often judgements of the same answers agree, with Cohen's kappa.

    Judgements are compared within a file, and between files that have the same answers.
    """
    for name, pairs in _pairs(files):
        left, right = [float(pair[0]) for pair in pairs], [float(pair[1]) for pair in pairs]
        same = fmean(a == b for a, b in pairs)
        for column, value in (("agreement", same), ("kappa", kappa(left, right))):
            ours = None if value is None else round(value, 6)
            yield Cell(paper=paper, table="agreement", row=name, column=column, ours=ours, n=len(pairs))


def _pairs(files: Sequence[ReleasedFile]) -> Iterator[tuple[str, list[tuple[bool, bool]]]]:
    for released in files:
        judges = list(dict.fromkeys(judge for answer in released.answers for judge in answer.verdicts))[:10]
        for one, other in combinations(judges, 2):
            both = [answer.verdicts for answer in released.answers if one in answer.verdicts and other in answer.verdicts]
            if both:
                yield f"{released.name}: {one}, {other}", [(verdicts[one], verdicts[other]) for verdicts in both]
    for first, second in combinations(files, 2):
        there = {answer.question: answer for answer in second.answers}
        common = [(answer, there[answer.question]) for answer in first.answers if answer.question in there]
        alike = [(a.right, b.right) for a, b in common if a.reply == b.reply]
        if 2 * len(alike) > len(common):
            yield f"{first.name}, {second.name}", alike


def tables_of_agreement(cells: Sequence[Cell]) -> Iterator[Table]:
    """Yield a table of the cells from `agreement_cells`, if there are any."""
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if cell.table == "agreement":
            by_row.setdefault(cell.row, {})[cell.column] = cell
    rows = [
        [row, *(_figure(found[column].ours) for column in ("agreement", "kappa")), f"{found['agreement'].n}"]
        for row, found in by_row.items()
    ]
    if rows:
        note = "Judgements of the same answers: of one file, or of two files with the same answers, by most judgements of each."
        yield Table(title="Agreement of judges", columns=["judgements", "agreement", "kappa", "n"], rows=rows, note=note)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
