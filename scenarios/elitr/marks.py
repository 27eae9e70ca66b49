"""Marks of ELITR-Bench: what judges gave answers, told apart by model, setting, mode, split and round; their means and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from statistics import fmean, stdev
from typing import Final, NamedTuple, TypeVar, final

from longspan.scenarios.elitr.files import Mode, Setting, Split
from longspan.simulator.judging.agreement import lower

__all__ = [
    "MIDDLE",
    "Mark",
    "Sitting",
    "by",
    "mean_of_parts",
    "means",
    "over_seeds",
    "p_middle",
    "per_question",
    "points_of",
    "shown",
]

MIDDLE: Final = "M"

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
class Sitting(NamedTuple):
    """A sitting: one model's answers to a set of questions, once. `seed` tells those of a model apart."""

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
    """An answer's points from 1 to 10 by judge; None where a judgement failed. `differs`: whether qa and conv ask it in other words."""

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


def by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """The values in groups, in the order in which each first comes."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def points_of(marks: Iterable[Mark], judge: str) -> list[float]:
    """A judge's points, without judgements that failed."""
    return [points for mark in marks if (points := mark.points.get(judge)) is not None]


def means(marks: Iterable[Mark], judge: str) -> list[float]:
    """The mean of each sitting over its questions (not over its meetings); those without any points are left out."""
    return [fmean(points) for group in by(marks, lambda mark: mark.sitting).values() if (points := points_of(group, judge))]


def over_seeds(marks: Iterable[Mark], judge: str) -> tuple[float | None, float | None]:
    """The mean of a model's sittings, and their sample standard deviation; None where there are none, or one."""
    found = means(marks, judge)
    return (fmean(found) if found else None), (stdev(found) if len(found) > 1 else None)


def per_question(marks: Iterable[Mark], judge: str) -> list[tuple[Mark, float]]:
    """Each question once, with the mean of its points over the sittings."""
    groups = by(marks, lambda mark: mark.key).values()
    return [(group[0], fmean(points)) for group in groups if (points := points_of(group, judge))]


def p_middle(marks: Iterable[Mark], judge: str) -> float | None:
    """Whether answers from the middle are worse than the rest: the p-value of a one-tailed Welch test (appendix B.2).

    Each question counts once, with the mean of its points over the sittings.
    """
    found = per_question(marks, judge)
    middle = [points for mark, points in found if mark.place == MIDDLE]
    return lower(middle, [points for mark, points in found if mark.place != MIDDLE])


def shown(value: float | None) -> str:
    """A figure as the paper prints it: rounded half up to three decimals, then to two."""
    if value is None:
        return "-"
    thousandths = Decimal(repr(value)).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return str(thousandths.quantize(Decimal("0.01"), ROUND_HALF_UP))


def mean_of_parts(parts: Sequence[float | None]) -> float | None:
    """The mean of parts, such as those of dev and test; None where one is missing."""
    known = [part for part in parts if part is not None]
    return fmean(known) if known and len(known) == len(parts) else None
