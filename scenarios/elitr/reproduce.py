"""Reproduce the paper's tables (Thonet et al., 2024) from its released files or from runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from longspan.scenarios.elitr.annotators import is_annotation, measure_reliability
from longspan.scenarios.elitr.files import Sheet, Split, read_sheets
from longspan.scenarios.elitr.marks import Mark, format_figure, group_marks, mean_of_parts, over_seeds, p_middle, per_question, points_of
from longspan.scenarios.elitr.published import BRIEF, KINDS, MODES, PLACES, printed_figure, table_rows
from longspan.scenarios.elitr.released import JUDGES, marks_in_run, marks_of, runs_in
from longspan.simulator.base.agreement import mean_interval, pearson
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "elitr-bench"

MAIN: Final = "main"
"""Name of the judge behind the results: GPT-4 if it gave marks."""

SPLITS: Final = {"dev": "Dev", "test": "Test"}
HUMANS: Final = ("Gold Human", "Silver Human")
FAMILIES: Final = {"GPT": ("GPT-3.5", "GPT-4")}
NEWER: Final = ("GPT-4o", "LLaMA-3-8B-Instruct-262K", "Phi-3-Small-128K-Instruct")
"""Models that are only in Table 11."""

DETAILED: Final = ("table3", "table8", "table9", "table10")
"""Tables that the paper prints for the test questions only."""

SEEDED: Final = ("table2", "table3", "figure1", "table8", "table9", "table11")
"""Tables whose printed figures of the test questions are means over three seeds."""

SEEDS: Final = 3

NOTE: Final = "In brackets: the paper's figures."
ONE_SEED: Final = "One seed of three: the paper's figures of the test questions are means over three, and of these one was released."

TITLES: Final = {
    "table1": "Table 1: questions",
    "table2": "Table 2: mean points by model, setting and mode",
    "table3": "Table 3: families of models, by question type and answer position",
    "figure1": "Figure 1: only questions that qa and conv word differently",
    "table4": "Table 4: mean points by judge",
    "figure2a": "Figure 2 (a): points by the human judge's, with 95% intervals",
    "pearson": "Figure 2 (b): Pearson's correlation of judges",
    "table8": "Table 8: mean and sample deviation over seeds",
    "table9": "Table 9: by question type and answer position",
    "table10": "Table 10: are answers from the middle worse? One-tailed Welch test",
    "table11": "Table 11: newer models",
    "table12": "Table 12: reliability of the mean of several annotators",
}


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Reproduce every table of the paper that the files allow. Means are over questions.

    `paths`: released files (JSON, gzip, or the zip with its password), folders of them, folders of runs, and annotators' scores (CSV or
    JSON lines). `rules` have no effect, because judges gave the points. Raises InputError for unreadable files.
    """
    runs = {path: folders for path in paths if (folders := runs_in(path))}
    annotated = [path for path in paths if path not in runs and is_annotation(path)]
    sheets = [sheet for path in paths if path not in runs and path not in annotated for sheet in read_sheets(path)]
    marks = [*marks_of(sheets), *(mark for folders in runs.values() for run in folders for mark in marks_in_run(run))]
    order = table_rows("table11")
    main = sorted(_main(marks), key=lambda mark: order.index(mark.sitting.model) if mark.sitting.model in order else len(order))
    cells = [
        *_questions(sheets),
        *_settings(main, "table2", MODES, [model for model in _models(main) if model not in NEWER]),
        *_families(main),
        *_differing_cells(main),
        *_judges(marks),
        *_seeds(main),
        *_groups(main),
        *_middle(main),
        *(_settings(main, "table11", MODES[:1], _models(main)) if any(model in NEWER for model in _models(main)) else ()),
        *(_cell("table12", row, "ICC", value, n) for path in annotated for row, value, n in measure_reliability(path)),
    ]
    if not cells:
        raise InputError("none of the files suffices for a table of the paper; give released files, or data.zip")
    return Reproduction(cells=cells, tables=list(_tables(cells, _latest(main), short=_short_of_seeds(main))))


def _main(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Yield the marks with the points of one judge only: GPT-4, or the one with the most judgements."""
    for group in group_marks(marks, lambda mark: mark.sitting).values():
        counted = Counter(judge for mark in group for judge in mark.points)
        judge = "GPT-4" if "GPT-4" in counted else (counted.most_common(1) or [("", 0)])[0][0]
        yield from (mark._replace(points={MAIN: mark.points.get(judge)}) for mark in group)


def _cell(table: str, row: str, column: str, ours: float | None, n: int, split: Split | None = None) -> Cell:
    """Make a cell. `split`: its split, in a table that the paper prints for the test questions."""
    theirs = printed_figure(table, row, column) if split in (None, "test") else None
    return Cell(paper=PAPER, table=table, row=row, column=column, ours=None if ours is None else round(ours, 6), published=theirs, n=n)


def _models(marks: Iterable[Mark]) -> list[str]:
    return list(group_marks(marks, lambda mark: mark.sitting.model))


def _latest(marks: Sequence[Mark]) -> Split:
    """Return the split of the paper's detailed tables: test, or dev if there is no other."""
    return "test" if any(mark.sitting.split == "test" for mark in marks) else "dev"


def _single(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks of the detailed tables: single-turn qa on one split."""
    return _of_latest([mark for mark in marks if mark.sitting.column == MODES[0]])


def _of_latest(marks: Sequence[Mark]) -> list[Mark]:
    split = _latest(marks)
    return [mark for mark in marks if mark.sitting.split == split]


def _questions(sheets: Sequence[Sheet]) -> Iterator[Cell]:
    """Table 1, from the first sheet of each split."""
    for split, row in SPLITS.items():
        sheet = next((sheet for sheet in sheets if sheet.split == split), None)
        if sheet is None:
            continue
        questions = [question for meeting in sheet.meetings for question in meeting.questions]
        types, places = Counter(question.type for question in questions), Counter(question.place for question in questions)
        counts = {"#Meetings": len(sheet.meetings), "#Questions": len(questions)}
        counts |= {KINDS[kind]: types[kind] for kind in ("what", "who", "when", "howmany")}
        counts |= {name: places[place] for place, name in PLACES.items()}  # type: ignore[index]
        yield from (_cell("table1", row, column, count, len(questions)) for column, count in counts.items())


def _settings(marks: Sequence[Mark], table: str, modes: Sequence[str], models: Sequence[str]) -> Iterator[Cell]:
    """Tables 2 and 11: the mean of each split over its seeds, and of both."""
    for model in models:
        for mode in modes:
            kept = [mark for mark in marks if (mark.sitting.model, mark.sitting.column) == (model, mode)]
            by_split = {split: [mark for mark in kept if mark.sitting.split == split] for split in SPLITS}
            values = {split: over_seeds(group, MAIN)[0] for split, group in by_split.items()}
            counts = {split: len(points_of(group, MAIN)) for split, group in by_split.items()}
            values["mean"], counts["mean"] = mean_of_parts(list(values.values())), sum(counts.values())
            yield from (_cell(table, model, f"{mode}-{part}", value, counts[part]) for part, value in values.items() if value is not None)


def _group_rows(marks: Sequence[Mark], table: str, row: str) -> Iterator[Cell]:
    """Yield a row by question type and answer position: the means over models, sittings and questions."""
    for column, group in _kinds(marks):
        by_model = group_marks(group, lambda mark: mark.sitting.model).values()
        values = [value for model_marks in by_model if (value := over_seeds(model_marks, MAIN)[0]) is not None]
        yield _cell(table, row, column, fmean(values) if values else None, len(per_question(group, MAIN)), _latest(marks))


def _kinds(marks: Iterable[Mark]) -> Iterator[tuple[str, list[Mark]]]:
    kept = list(marks)
    yield from ((name, [mark for mark in kept if mark.type == kind]) for kind, name in KINDS.items())
    yield from ((name, [mark for mark in kept if mark.place == place]) for place, name in PLACES.items())


def _groups(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Table 9."""
    for model, group in group_marks(_single(marks), lambda mark: mark.sitting.model).items():
        yield from _group_rows(group, "table9", BRIEF.get(model, model))


def _families(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Table 3: the paper's nine models, in two families."""
    known = [mark for mark in _single(marks) if printed_figure("table2", mark.sitting.model, "single-qa-dev") is not None]
    families = group_marks(known, lambda mark: "GPT" if mark.sitting.model in FAMILIES["GPT"] else "LLaMA-2")
    for family, group in families.items():
        yield from _group_rows(group, "table3", family)


def _differing_cells(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Figure 1: each split and the mean of both, as in the figure."""
    odd = [mark for mark in marks if mark.differs]
    yield from _settings(odd, "figure1", MODES, _models(odd))


def _seeds(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Table 8: models with more than one sitting, on one split: test if there is any."""
    kept, split = _of_latest(marks), _latest(marks)
    for (model, mode), group in group_marks(kept, lambda mark: (mark.sitting.model, mark.sitting.column)).items():
        mean, deviation = over_seeds(group, MAIN)
        if deviation is not None:
            times = len(group_marks(group, lambda mark: mark.sitting))
            yield _cell("table8", model, f"{mode}-mean", mean, times, split)
            yield _cell("table8", model, f"{mode}-std", deviation, times, split)


def _middle(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Table 10."""
    for model, group in group_marks(_single(marks), lambda mark: mark.sitting.model).items():
        if (p := p_middle(group, MAIN)) is not None:
            yield _cell("table10", model, "p-value", p, len(per_question(group, MAIN)), _latest(group))


def _judges(marks: Sequence[Mark]) -> Iterator[Cell]:
    """Table 4 and Figure 2, from sittings that several judges marked."""
    several = {
        sitting for sitting, group in group_marks(marks, lambda mark: mark.sitting).items() if len({j for m in group for j in m.points}) > 1
    }
    kept = [mark for mark in marks if mark.sitting in several]
    names = [*JUDGES.values(), *{judge: None for mark in kept for judge in mark.points}]
    judges = [judge for judge in dict.fromkeys(names) if any(judge in mark.points for mark in kept)]
    for model, group in group_marks(kept, lambda mark: mark.sitting.model).items():
        yield from (_cell("table4", model, judge, over_seeds(group, judge)[0], len(points_of(group, judge))) for judge in judges)
    human = next((judge for judge in HUMANS if judge in judges), None)
    yield from _by_bin(kept, judges, human) if human else ()
    for one in judges:
        for other in judges:
            pairs = [(a, b) for m in kept if (a := m.points.get(one)) is not None and (b := m.points.get(other)) is not None]
            yield _cell("pearson", one, other, pearson([a for a, _ in pairs], [b for _, b in pairs]), len(pairs))


def _by_bin(marks: Sequence[Mark], judges: Sequence[str], human: str) -> Iterator[Cell]:
    """Figure 2 (a): the other judges' points where the human judge gave 1, 2, ... 10."""
    bins = group_marks((mark for mark in marks if mark.points.get(human) is not None), lambda mark: round(mark.points[human] or 0))
    for bin in sorted(bins):
        for judge in judges:
            if judge != human and (mean := mean_interval(points := points_of(bins[bin], judge))):
                parts: Mapping[str, float | None] = {judge: mean.value, f"{judge} low": mean.low, f"{judge} high": mean.high}
                yield from (_cell("figure2a", str(bin), column, value, len(points)) for column, value in parts.items())


def _short_of_seeds(marks: Sequence[Mark]) -> bool:
    """Return whether one of the paper's models answered the test questions under fewer than SEEDS seeds."""
    sittings = {mark.sitting for mark in marks if mark.sitting.split == "test" and mark.sitting.model in table_rows("table11")}
    return any(len(group) < SEEDS for group in group_marks(sittings, lambda sitting: sitting._replace(seed="")).values())


def _tables(cells: Sequence[Cell], split: Split, *, short: bool) -> Iterator[Table]:
    groups = group_marks(cells, lambda cell: cell.table)
    for name, title in TITLES.items():
        known = {(cell.row, cell.column): cell for cell in groups.get(name, [])}
        columns = list(dict.fromkeys(column for _, column in known))
        lines = [[row, *(_text(name, known.get((row, column))) for column in columns)] for row in dict.fromkeys(row for row, _ in known)]
        if lines:
            where = f" ({split} questions)" if name in DETAILED else ""
            note = f"{NOTE} {ONE_SEED}" if short and name in SEEDED else NOTE
            yield Table(title=f"{title}{where}", columns=["", *columns], rows=lines, note=note)


def _text(table: str, cell: Cell | None) -> str:
    if cell is None or cell.ours is None:
        return "-"
    exact = table in ("table10", "table12")
    ours = f"{cell.ours:g}" if table == "table1" else f"{cell.ours:.3f}" if exact else format_figure(cell.ours)
    if cell.published is None:
        return ours
    return f"{ours} ({cell.published:g})" if table == "table1" else f"{ours} ({cell.published:.{3 if exact else 2}f})"
