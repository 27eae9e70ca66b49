"""GoodAI's recorded restaurant visits: our grades next to the recorded ones, phase by phase, and why they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from longspan.scenarios.goodai.files import TestRecord
from longspan.scenarios.goodai.visit import PHASES, PhaseGrade, grade_visit

__all__ = ["Phase", "Visit", "grade_record"]

FIFTH: Final = 0.2
"""Score of each phase."""

_REASONS: Final[Mapping[str, re.Pattern[str]]] = {
    "GoodAI's model found something that is not on the menu": re.compile(r"not in the menu"),
    "GoodAI's model found something ordered again": re.compile(r"again"),
    "GoodAI's model gave no verdict": re.compile(r"\bJSON\b"),
    "GoodAI's model saw no guest": re.compile(r"\brole\b"),
    "GoodAI's model saw no order": re.compile(r"did not order"),
    "GoodAI's model saw no objection": re.compile(r"not notice"),
    "GoodAI's model saw no recollection": re.compile(r"forgot"),
}
"""Reasons why GoodAI withheld a phase's points, each with a pattern that recognises it in the recorded reason."""


@final
class Phase(NamedTuple):
    """A phase as we grade it and as recorded, None if not reached. `category`: why they differ, if they do."""

    name: str
    ours: bool | None
    theirs: bool | None
    reason: str
    category: str | None


@final
class Visit(NamedTuple):
    """A recorded visit with our grade.

    `score` is in [0, 1]. `phases`: those that the transcript or the record reaches. `category`: why the score differs from the recorded
    one, None if it does not.
    """

    score: float
    reason: str
    phases: tuple[Phase, ...]
    category: str | None


def grade_record(test: TestRecord) -> Visit:
    """Grade a recorded visit, and compare each phase that was reached with the record.

    GoodAI's visits ended with the first phase that was missed, so a score of n fifths means that the first n phases were
    awarded. Some manual corrections gave credit for phases that were never played: these are not among the phases, but the
    category says so.
    """
    awards = grade_visit(test.said)
    fifths, reached = round(test.share / FIFTH), len(test.expected_responses)
    phases = []
    for number, name in enumerate(PHASES):
        theirs = number < fifths if number < reached else None
        if name in awards or theirs is not None:
            phases.append(_phase(test, number, awards.get(name), theirs))
    score = round(FIFTH * sum(award.right for award in awards.values()), 6)
    reason = "; ".join(f"{phase.name}: {phase.reason}" for phase in phases) or "the transcript has no visit"
    return Visit(score, reason, tuple(phases), _category(test, score, phases))


def _phase(test: TestRecord, number: int, award: PhaseGrade | None, theirs: bool | None) -> Phase:
    if award is None:
        return Phase(PHASES[number], None, theirs, "the transcript does not reach it", "not in the transcript")
    category = None if award.right == theirs else _difference(test, number, award, theirs)
    return Phase(PHASES[number], award.right, theirs, award.why, category)


def _difference(test: TestRecord, number: int, award: PhaseGrade, theirs: bool | None) -> str:
    """Return the kind of the difference in a phase, by our reading and by the recorded reason."""
    if theirs is None:
        return "not in the record"
    if test.auto_score is not None and (number < round(test.auto_share / FIFTH)) == award.right:
        return "corrected by hand: ours is the machine's grade"
    if not award.right:
        return award.miss
    why = str(test.reasoning[number]) if not isinstance(test.reasoning, str) and number < len(test.reasoning) else test.why
    return next((kind for kind, reason in _REASONS.items() if reason.search(why)), "GoodAI gave another reason")


def _category(test: TestRecord, score: float, phases: Sequence[Phase]) -> str | None:
    """Classify a difference in the score by the first phase that differs, or as credit for phases never played."""
    if abs(score - test.share) < 1e-3:
        return None
    if round(test.share / FIFTH) > len(test.expected_responses):
        return "corrected by hand: credit for phases never played"
    return next((phase.category for phase in phases if phase.category), "the recorded score is not a multiple of a fifth")
