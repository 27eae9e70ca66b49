"""Answers that somebody released with verdicts of a judge, and figures made from them: accuracies, and how far judges agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum, sqrt
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.histories.sources import Source, sources
from longspan.simulator.analysis.statistics import student
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.exchange.papers import Cell
from longspan.simulator.judging.agreement import kappa

__all__ = [
    "OVERALL",
    "Answer",
    "Released",
    "accuracies",
    "agreements",
    "checked",
    "collect",
    "share",
    "table",
    "tables_of_agreement",
    "unknown",
]

OVERALL: Final = "overall"
NORMAL: Final = NormalDist().inv_cdf(0.975)
MAX_KINDS: Final = 50
MAX_NAME: Final = 80


@final
class Answer(NamedTuple):
    """An answer to a question. `question` names it alike in all files, `kind` as its file does.

    `verdicts`: whether it is right, by the name of each judgement, at least one. `text` and `gold`: the question and the gold answer, as
    far as its file has them.
    """

    question: str
    conversation: str
    kind: str
    verdicts: Mapping[str, bool]
    reply: str
    adversarial: bool = False
    text: str = ""
    gold: str = ""

    @property
    def score(self) -> float:
        """The share of judgements that it gets right."""
        return fmean(self.verdicts.values())

    @property
    def right(self) -> bool:
        """Whether it is right for most judgements."""
        return 2 * sum(self.verdicts.values()) > len(self.verdicts)


@final
class Released(NamedTuple):
    """A file's answers, and the accuracies that it states, or that were published for it, by column."""

    name: str
    answers: Sequence[Answer]
    stated: Mapping[str, float]


def collect(paths: Sequence[Path]) -> dict[str, Source]:
    """Return the files at the paths, or those in JSON in folders and archives, by a name without endings that tells them apart."""
    found: dict[str, Source] = {}
    for path in paths:
        inside = sources(path)
        found |= {source.where: source for source in inside if source.name.endswith(".json") or (len(inside) == 1 and not path.is_dir())}
    names = {where: source.name.rpartition("/")[2].removesuffix(".json") for where, source in found.items()}
    counts = Counter(names.values())
    return {name if counts[name := names[where]] == 1 else where: source for where, source in found.items()}


def checked(where: str, answers: Iterable[Answer]) -> list[Answer]:
    """Return answers, each to another question, of kinds with names that fit a table. Raises InputError."""
    kept = list(answers)
    if not kept:
        raise InputError(f"{where}: has no answers")
    twice = next((question for question, count in Counter(answer.question for answer in kept).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: question {twice!r:.80} is answered twice; keep one of them")
    kinds = {answer.kind for answer in kept}
    odd = next((kind for kind in kinds if len(kind) > MAX_NAME or not kind.isprintable()), None)
    if odd is not None or len(kinds) > MAX_KINDS:
        what = f"the category {odd!r:.80} is too long or cannot be printed" if odd is not None else f"has more than {MAX_KINDS} categories"
        raise InputError(f"{where}: {what}; name the file with the verdicts as it was released")
    return kept


def share(answers: Sequence[Answer]) -> tuple[float, tuple[float, float] | None]:
    """Return the mean score of answers, at least one, with the ends of its 95% interval: None for a single answer.

    It is Wilson's interval (1927). Where answers of a conversation are alike, it is as wide as for so few independent questions as
    would vary as much (Kish, 1965), with the quantile of Student's t; conversations may have different numbers of questions.
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
        width = max(width, student(several - 1) ** 2 * variance / (mean * (1 - mean)))
    centre, half = (mean + width / 2) / (1 + width), sqrt(width * (mean * (1 - mean) + width / 4)) / (1 + width)
    return mean, (max(0.0, centre - half), min(1.0, centre + half))


def accuracies(paper: str, kind: str, released: Released, columns: Mapping[str, Sequence[Answer]]) -> Iterator[Cell]:
    """Yield the cells of a table called `kind`, a column each, and cells for both ends of their intervals. Empty columns have none."""
    for column, answers in columns.items():
        if not answers:
            continue
        mean, ends = share(answers)
        stated = released.stated.get(column) if kind == "accuracy" else None
        figures = [(kind, mean, stated), *((f"{kind} {end}", value, None) for end, value in zip(("low", "high"), ends or (), strict=False))]
        for name, ours, published in figures:
            yield Cell(paper=paper, table=name, row=released.name, column=column, ours=round(ours, 6), published=published, n=len(answers))


def table(title: str, kind: str, cells: Sequence[Cell], names: Mapping[str, str], note: str) -> Table:
    """Show the cells of a table called `kind` with their intervals. `names`: what to add to the name of a column."""
    by_place = {(cell.table, cell.row, cell.column): cell for cell in cells}
    kept = [cell for cell in cells if cell.table == kind]
    rows = []
    for cell in kept:
        low, high = (by_place.get((f"{kind} {end}", cell.row, cell.column)) for end in ("low", "high"))
        ends = f"{low.ours:.3f} to {high.ours:.3f}" if low and high else ""
        published = "" if cell.published is None else f"{cell.published:.4f}"
        rows.append([cell.row, f"{cell.column}{names.get(cell.column, '')}", f"{cell.ours:.4f}", ends, published, f"{cell.n}"])
    return Table(title=title, columns=["file", "questions", "accuracy", "95% interval", "published", "n"], rows=rows, note=note)


def agreements(paper: str, files: Sequence[Released]) -> Iterator[Cell]:
    """Yield how often judgements of the same answers agree, with Cohen's kappa: judgements within a file, and between files with the
    same answers.
    """
    for name, pairs in _pairs(files):
        left, right = [float(pair[0]) for pair in pairs], [float(pair[1]) for pair in pairs]
        same = fmean(a == b for a, b in pairs)
        for column, value in (("agreement", same), ("kappa", kappa(left, right))):
            ours = None if value is None else round(value, 6)
            yield Cell(paper=paper, table="agreement", row=name, column=column, ours=ours, n=len(pairs))


def _pairs(files: Sequence[Released]) -> Iterator[tuple[str, list[tuple[bool, bool]]]]:
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
    """Yield a table of the cells of `agreements`, if there are any."""
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


def unknown(source: Source, value: Any, expected: str) -> InputError:
    """An error for a file that is none of the known forms."""
    what = f"a {type(value).__name__}" if not isinstance(value, list | dict) else f"keys {', '.join(map(repr, list(_keys(value))[:5]))}"
    return InputError(f"{source.where}: neither answers with verdicts nor gold answers: has {what:.200}; expected {expected}")


def _keys(value: Any) -> Iterable[Any]:
    return value if isinstance(value, dict) else (value[0] if value and isinstance(value[0], dict) else ())
