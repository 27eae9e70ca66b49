"""Comparison of a judge with people: agreement, and bias by length. Calibrations are stored next to the runs and mentioned in their
reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.agreement import icc_one_way, icc_two_way, kappa, mean_interval, pearson, spearman
from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.folders import list_subfolders, read_file
from longspan.simulator.base.files.labels import Row, read_rows
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.judging.rubrics import ReadsRows, Rubric

__all__ = [
    "FOLDER",
    "NAME",
    "Calibration",
    "ComparedItem",
    "LabelledItem",
    "LengthGroup",
    "calibration_notes",
    "measure_calibration",
    "read_labels",
]

FOLDER: Final = "calibrations"
"""The folder for calibrations, in the folder of runs."""

NAME: Final = "calibration.json"

MAX_BYTES: Final = 1 << 20
"""The largest calibration that is read, in bytes. A typical one has about 1,000."""

LENGTH_GROUPS: Final = 3
"""The number of equal groups of items by length."""


@final
class LabelledItem(NamedTuple):
    """An item with its human labels, and the annotators if known."""

    row: Row
    labels: Sequence[float]
    annotators: Sequence[str]

    @property
    def label(self) -> float:
        return fmean(self.labels)


@final
class ComparedItem(NamedTuple):
    """An item's label, the judge's value, and the item's length in words."""

    label: float
    value: float
    length: int


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class LengthGroup(_Frozen):
    """Items in a range of lengths in words, and how much higher the judge scores them than people do, on average."""

    shortest: int
    longest: int
    items: int
    bias: float


@final
class Calibration(_Frozen):
    """The comparison of a judge with people. A value is None if it cannot be computed.

    `failed` is the number of items that the judge gave no value; they are left out of all other figures. `agreement` is the share of items
    where the judge gives the label (the mean of several labels, rounded to the nearest step), and `near` the share within one step. `kappa`
    has quadratic weights. `bias` is how much higher the judge scores on average, with its 95% interval, and `length_correlation` is the
    correlation of this difference with the length in words. `people` is the reliability of the mean of several annotators: ICC(2,k) if the
    same annotators labelled every item, otherwise ICC(1,k).
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
    by_length: list[LengthGroup]
    people: float | None

    def summary(self) -> str:
        """Return the calibration as the end of a sentence, for a report."""
        if self.agreement is None:
            return f"on {self.items:,} labels of {self.labels}, without a single value"
        parts = [f"agreement {self.agreement:.0%}"]
        figures = {"correlation": self.pearson, "weighted kappa": self.kappa}
        parts += [f"{name} {value:.2f}" for name, value in figures.items() if value is not None]
        parts += [f"bias {self.bias:+.2f}"] if self.bias is not None else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        return f"on {self.items:,} labels of {self.labels}: {', '.join(parts)}"


# ---- labels


def read_labels(paths: Sequence[Path], rubric_: Rubric) -> list[LabelledItem]:
    """Read the items in files, in order. Several rows about the same item are several labels of it.

    Raises InputError for missing columns, a label outside the rubric's scale, or an annotator who labels an item twice.
    """
    low, high = rubric_.scale
    columns = [*rubric_.columns, "label"]
    rows = rubric_.rows(paths) if isinstance(rubric_, ReadsRows) else [row for path in paths for row in read_rows(path, columns)]
    if not rows:
        raise InputError(f"{paths[0]}: has no rows; a row needs {', '.join(columns)}")
    items: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not low <= row.number("label") <= high:
            raise InputError(f"{row.where}: label must be from {low:g} to {high:g}, got {row['label']!r:.40}")
        items.setdefault(tuple(row.text(column) for column in rubric_.columns), []).append(row)
    return [_label_rows(group) for group in items.values()]


def _label_rows(rows: Sequence[Row]) -> LabelledItem:
    names = [str(row["annotator"]) for row in rows if row.get("annotator") not in (None, "")]
    if len(set(names)) < len(names):
        raise InputError(f"{rows[-1].where}: this annotator has already labelled the same item")
    return LabelledItem(rows[0], [row.number("label") for row in rows], names)


def _reliability(items: Sequence[LabelledItem]) -> float | None:
    """Return the reliability of the annotators' mean, or None if items have a single label or different numbers of labels."""
    if len({len(item.labels) for item in items}) != 1:
        return None
    names = sorted(items[0].annotators)
    if names and all(sorted(item.annotators) == names and len(item.labels) == len(names) for item in items):
        in_order = [dict(zip(item.annotators, item.labels, strict=True)) for item in items]
        return icc_two_way([[by_name[name] for name in names] for by_name in in_order])
    return icc_one_way([item.labels for item in items])


# ---- measuring


def measure_calibration(items: Sequence[tuple[LabelledItem, float | None]], rubric_: Rubric) -> Calibration:
    """Compare a judge's values (None if it failed) with the labels. The fields that name the judge and the labels are left empty."""
    pairs = [ComparedItem(item.label, value, _words(item.row, rubric_)) for item, value in items if value is not None]
    labels, values = [pair.label for pair in pairs], [pair.value for pair in pairs]
    differences = [pair.value - pair.label for pair in pairs]
    bias = mean_interval(differences)
    step = rubric_.step
    steps = (rubric_.scale[1] - rubric_.scale[0]) / step
    return Calibration(
        judge="",
        rubric="",
        version="",
        labels="",
        labels_sha256="",
        items=len(items),
        failed=len(items) - len(pairs),
        agreement=_share(abs(difference) <= 0.5 * step for difference in differences),
        near=_share(abs(difference) <= 1.5 * step for difference in differences) if steps > 1 else None,
        pearson=pearson(labels, values),
        spearman=spearman(labels, values),
        kappa=kappa(labels, values),
        people_mean=fmean(labels) if labels else None,
        judge_mean=fmean(values) if values else None,
        bias=bias.value if bias else None,
        bias_low=bias.low if bias else None,
        bias_high=bias.high if bias else None,
        length_correlation=pearson([float(pair.length) for pair in pairs], differences),
        by_length=list(_length_groups(pairs)),
        people=_reliability([item for item, _ in items]),
    )


def _words(row: Row, rubric_: Rubric) -> int:
    return len(row.text(rubric_.measured).split())


def _share(conditions: Iterable[bool]) -> float | None:
    values = list(conditions)
    return fmean(values) if values else None


def _length_groups(pairs: Sequence[ComparedItem]) -> Iterable[LengthGroup]:
    """Split the items into equal groups by length, leaving out empty ones."""
    ordered = sorted(pairs, key=lambda pair: pair.length)
    cuts = [len(ordered) * number // LENGTH_GROUPS for number in range(LENGTH_GROUPS + 1)]
    for start, end in pairwise(cuts):
        if group := ordered[start:end]:
            bias = fmean(pair.value - pair.label for pair in group)
            yield LengthGroup(shortest=group[0].length, longest=group[-1].length, items=len(group), bias=bias)


# ---- for reports


def calibration_notes(run: RunFolder) -> list[str]:
    """Return a sentence for each judge and prompt that answered in a run: its calibration, or a warning that it is not calibrated.

    Further sentences name unusable calibrations, with the reason.
    """
    judges = dict.fromkeys(str(entry.get("by")) for entry in AnswerStore.of(run).entries() if isinstance(entry.get("by"), str))
    if not judges:
        return []
    known, sentences = _read_calibrations(run.path.parent)
    for by in judges:
        judge, _, version = by.rpartition(", prompt ")
        matching = [calibration for calibration in known if (calibration.judge, calibration.version) == (judge, version)]
        if matching:
            sentences += [f"{judge} (prompt {version}) was calibrated {calibration.summary()}" for calibration in matching]
        else:
            sentences.append(f"{judge} (prompt {version}) is not calibrated: compare it with people with longspan calibrate")
    return sentences


def _read_calibrations(runs: Path) -> tuple[list[Calibration], list[str]]:
    """Return the calibrations in a folder of runs, by name, and the reasons why others cannot be used. Calibrations by other versions are
    skipped.

    Raises JournalError if one of their folders is a link.
    """
    known, unusable = [], []
    for folder in list_subfolders(runs, FOLDER):
        try:
            content = verify_checksum(
                read_file(folder / NAME, MAX_BYTES), Path(folder.name, NAME), "measure it again with longspan calibrate"
            )
            known.append(Calibration.model_validate_json(content))
        except (InputError, JournalError) as error:
            unusable.append(str(error))
        # Left by another version, or unfinished.
        except (OSError, ValidationError):
            continue
    return known, unusable
