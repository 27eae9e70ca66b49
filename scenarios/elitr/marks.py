"""Marks of ELITR-Bench: judges' points for answers by model, setting, mode, split and seed, with means and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import fmean, stdev
from typing import Final, NamedTuple, TypeVar, final

from longspan.scenarios.elitr.files import Mode, Setting, Split
from longspan.simulator.base.agreement import welch_p_lower

__all__ = [
    "MIDDLE",
    "Mark",
    "Sitting",
    "format_figure",
    "group_marks",
    "mean_of_parts",
    "over_seeds",
    "p_middle",
    "per_question",
    "points_of",
    "sitting_means",
]

MIDDLE: Final = "M"

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
class Sitting(NamedTuple):
    """One model's answers to a set of questions, once. `seed` distinguishes the sittings of a model."""

    model: str
    setting: Setting
    mode: Mode
    split: Split
    seed: str

    @property
    def column(self) -> str:
        return f"{self.mode}-{self.setting}"


@final
class Mark(NamedTuple):
    """An answer's points, from 1 to 10, by judge; None if a judgement failed.

    `differs`: whether qa and conv word the question differently.
    """

    sitting: Sitting
    meeting: str
    question: str
    type: str
    place: str
    points: Mapping[str, float | None]
    differs: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.meeting, self.question


def group_marks(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Group the values. Groups come in the order of their first values."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def points_of(marks: Iterable[Mark], judge: str) -> list[float]:
    """Return a judge's points, without failed judgements."""
    return [points for mark in marks if (points := mark.points.get(judge)) is not None]


def sitting_means(marks: Iterable[Mark], judge: str) -> list[float]:
    """Return the mean of each sitting over its questions (not its meetings). Sittings without points are left out."""
    return [fmean(points) for group in group_marks(marks, lambda mark: mark.sitting).values() if (points := points_of(group, judge))]


def over_seeds(marks: Iterable[Mark], judge: str) -> tuple[float | None, float | None]:
    """Return the mean of a model's sittings (None without any) and their sample standard deviation (None for fewer than two)."""
    values = sitting_means(marks, judge)
    return (fmean(values) if values else None), (stdev(values) if len(values) > 1 else None)


def per_question(marks: Iterable[Mark], judge: str) -> list[tuple[Mark, float]]:
    """Return each question once, with the mean of its points over the sittings."""
    groups = group_marks(marks, lambda mark: mark.key).values()
    return [(group[0], fmean(points)) for group in groups if (points := points_of(group, judge))]


def p_middle(marks: Iterable[Mark], judge: str) -> float | None:
    """Return the p-value of a one-tailed Welch test whether answers from the middle are worse than the rest (appendix B.2).

    Each question counts once, with the mean of its points over the sittings.
    """
    questions = per_question(marks, judge)
    middle = [points for mark, points in questions if mark.place == MIDDLE]
    return welch_p_lower(middle, [points for mark, points in questions if mark.place != MIDDLE])


def format_figure(value: float | None) -> str:
    """Format a figure as the paper prints it: rounded half up to three decimals, then to two."""
    if value is None:
        return "-"
    thousandths = Decimal(repr(value)).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return str(thousandths.quantize(Decimal("0.01"), ROUND_HALF_UP))


def mean_of_parts(parts: Sequence[float | None]) -> float | None:
    """Return the mean of parts, such as dev and test; None if one is missing."""
    known = [part for part in parts if part is not None]
    return fmean(known) if known and len(known) == len(parts) else None
