"""A judge against people: how far its answers are theirs, and whether length sways it. Kept beside runs, for their reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.errors import InputError
from longspan.simulator.judging.agreement import icc_one_way, icc_two_way, kappa, mean_interval, pearson, spearman
from longspan.simulator.judging.labels import Row, read_rows
from longspan.simulator.judging.rubrics import Rubric
from longspan.simulator.run_folder import RunFolder

__all__ = ["FOLDER", "NAME", "Calibration", "Compared", "Labelled", "Stretch", "measure", "read_labels", "standing"]

FOLDER: Final = "calibrations"
"""The folder beside runs in which calibrations are kept."""

NAME: Final = "calibration.json"

STRETCHES: Final = 3
"""Groups of items by length, as many items in each."""


@final
class Labelled(NamedTuple):
    """An item that people labelled: what a judge is asked about, and each label, with who gave it where that is known."""

    row: Row
    labels: Sequence[float]
    annotators: Sequence[str]

    @property
    def label(self) -> float:
        return fmean(self.labels)


@final
class Compared(NamedTuple):
    """An item's label and the judge's value beside it, with the item's length in words."""

    label: float
    value: float
    length: int


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Stretch(_Frozen):
    """Items of some lengths in words, and how much more the judge gives them than people do on average."""

    shortest: int
    longest: int
    items: int
    bias: float


@final
class Calibration(_Frozen):
    """What came out. `failed`: items of which the judge gave no value; they count in nothing else.

    `agreement`: the share of items where the judge gives the label (a mean of labels to the nearest step); `near`: or a step
    beside it. `kappa` has quadratic weights. `bias`: how much more the judge gives on average, with its 95 % interval.
    `length_correlation`: of that difference with the length in words. `people`: how reliable the mean of several annotators is,
    ICC(2,k) where the same ones labelled every item, else ICC(1,k). None: it cannot be worked out.
    """

    format: Literal[1] = 1
    judge: str
    rubric: str
    version: str
    labels: str
    labels_sha256: str
    items: int
    failed: int
    agreement: float | None
    near: float | None
    pearson: float | None
    spearman: float | None
    kappa: float | None
    people_mean: float | None
    judge_mean: float | None
    bias: float | None
    bias_low: float | None
    bias_high: float | None
    length_correlation: float | None
    by_length: list[Stretch]
    people: float | None

    def told(self) -> str:
        """The calibration in a sentence, for a report."""
        if self.agreement is None:
            return f"on {self.items:,} labels of {self.labels}, none of which it gave a value"
        parts = [f"agreement {self.agreement:.0%}"]
        figures = {"correlation": self.pearson, "weighted kappa": self.kappa}
        parts += [f"{name} {value:.2f}" for name, value in figures.items() if value is not None]
        parts += [f"bias {self.bias:+.2f}"] if self.bias is not None else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        return f"on {self.items:,} labels of {self.labels}: {', '.join(parts)}"


# ---- labels


def read_labels(path: Path, asked: Rubric) -> list[Labelled]:
    """The items of a file, in order. Rows about the same thing are one item with several labels.

    Raises InputError for a file without the columns, a label outside the rubric's scale, or an annotator who labels an item twice.
    """
    low, high = asked.scale
    rows = read_rows(path, [*asked.columns, "label"])
    items: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not low <= row.number("label") <= high:
            raise InputError(f"{row.where}: label has to lie from {low:g} to {high:g}, got {row['label']!r:.40}")
        items.setdefault(tuple(row.text(column) for column in asked.columns), []).append(row)
    return [_labelled(group) for group in items.values()]


def _labelled(rows: Sequence[Row]) -> Labelled:
    names = [str(row["annotator"]) for row in rows if row.get("annotator") not in (None, "")]
    if len(set(names)) < len(names):
        raise InputError(f"{rows[-1].where}: this annotator has labelled the same item before")
    return Labelled(rows[0], [row.number("label") for row in rows], names)


def _reliability(items: Sequence[Labelled]) -> float | None:
    """How reliable the mean of the annotators is; None where items have one label each, or not as many as the others."""
    if len({len(item.labels) for item in items}) != 1:
        return None
    names = sorted(items[0].annotators)
    if names and all(sorted(item.annotators) == names and len(item.labels) == len(names) for item in items):
        in_order = [dict(zip(item.annotators, item.labels, strict=True)) for item in items]
        return icc_two_way([[each[name] for name in names] for each in in_order])
    return icc_one_way([item.labels for item in items])


# ---- measuring


def measure(items: Sequence[tuple[Labelled, float | None]], asked: Rubric) -> Calibration:
    """How far values of a judge are people's labels; None: it gave none. Whose they are is left empty."""
    pairs = [Compared(item.label, value, _words(item.row, asked)) for item, value in items if value is not None]
    labels, values = [each.label for each in pairs], [each.value for each in pairs]
    differences = [each.value - each.label for each in pairs]
    bias = mean_interval(differences)
    steps = asked.scale[1] - asked.scale[0]
    return Calibration(
        judge="",
        rubric="",
        version="",
        labels="",
        labels_sha256="",
        items=len(items),
        failed=len(items) - len(pairs),
        agreement=_share(abs(each) <= 0.5 for each in differences),
        near=_share(abs(each) <= 1.5 for each in differences) if steps > 1 else None,
        pearson=pearson(labels, values),
        spearman=spearman(labels, values),
        kappa=kappa(labels, values),
        people_mean=fmean(labels) if labels else None,
        judge_mean=fmean(values) if values else None,
        bias=bias.value if bias else None,
        bias_low=bias.low if bias else None,
        bias_high=bias.high if bias else None,
        length_correlation=pearson([float(each.length) for each in pairs], differences),
        by_length=list(_stretches(pairs)),
        people=_reliability([item for item, _ in items]),
    )


def _words(row: Row, asked: Rubric) -> int:
    return len(row.text(asked.measured).split())


def _share(held: Iterable[bool]) -> float | None:
    found = list(held)
    return fmean(found) if found else None


def _stretches(pairs: Sequence[Compared]) -> Iterable[Stretch]:
    """The items in groups by length, as many in each; none where there are too few."""
    ordered = sorted(pairs, key=lambda each: each.length)
    cuts = [len(ordered) * at // STRETCHES for at in range(STRETCHES + 1)]
    for begin, end in pairwise(cuts):
        if group := ordered[begin:end]:
            bias = fmean(each.value - each.label for each in group)
            yield Stretch(shortest=group[0].length, longest=group[-1].length, items=len(group), bias=bias)


# ---- for reports


def standing(run: RunFolder) -> list[str]:
    """For each judge and prompt that a run has answers of, a sentence: how it was calibrated beside the run, or that it was not."""
    asked = dict.fromkeys(str(entry.get("by")) for entry in AnswerStore(run.path).entries() if isinstance(entry.get("by"), str))
    known = list(_known(run.path.parent / FOLDER))
    found = []
    for by in asked:
        judge, _, version = by.rpartition(", prompt ")
        mine = [each for each in known if (each.judge, each.version) == (judge, version)]
        if mine:
            found += [f"{judge} (prompt {version}) was calibrated {each.told()}" for each in mine]
        else:
            found.append(f"{judge} (prompt {version}) has no calibration: nobody has compared it with people (longspan calibrate does)")
    return found


def _known(folder: Path) -> Iterable[Calibration]:
    """The calibrations in a folder, by name; what is none is passed over: it may be half written, or another version's."""
    for path in sorted(folder.glob(f"*/{NAME}")):
        try:
            yield Calibration.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue
