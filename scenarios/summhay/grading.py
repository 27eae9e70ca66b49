"""Grades summaries (section 4): for each insight, the bullet that covers it and what that bullet cites."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.shared.own_prompts import fill_prompt
from longspan.scenarios.summhay.bullets import find_citations, mean_length, split_bullets
from longspan.scenarios.summhay.joint_scores import COVERED, score_insight
from longspan.scenarios.summhay.signs import find_signs
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record
from longspan.simulator.contract.queries import Answer, Query, fence, template

__all__ = ["TENTHS", "Coverage", "Grading", "coverage_query", "grade_summary"]

Grading = Literal["rules", "judge"]

Level = Literal["full", "partial", "none"]

PUBLISHED: Final[Mapping[str, Level]] = {"FULL_COVERAGE": "full", "PARTIAL_COVERAGE": "partial", "NO_COVERAGE": "none"}

TEMPLATES: Final = Path(__file__).parent / "templates"

MAX_FIGURES: Final = 20
"""A bullet with more different numbers and dates than this merely lists them, so they do not count as signs."""

MAX_BULLETS: Final = 200
MAX_BULLET_LENGTH: Final = 2000
"""Maximum number of bullets, and of characters in each, that a judge is shown."""

TENTHS: Final = 10
"""Number of equal parts of the shown documents, for scores by a document's rank."""


class Coverage(Answer):
    """Whether the summary covers an insight, and with which bullet, counted from 1."""

    coverage: Level
    bullet: int | None


class Published(Answer):
    """The same, in the form of the authors' prompt: `bullet_id` is a number, or anything else if no bullet covers the insight."""

    coverage: Literal["FULL_COVERAGE", "PARTIAL_COVERAGE", "NO_COVERAGE"]
    bullet_id: int | str | None


@final
class InsightFinding(NamedTuple):
    """How far an insight is covered, and the number of the bullet that covers it (from 1). `level` is None if undecided; `why` gives the
    reason."""

    level: Level | None
    bullet: int | None = None
    why: str = ""


def grade_summary(facts: Mapping[str, Any], record: Record, grading: Grading) -> Grade:
    """Grade a summary by its joint score, with an item for each insight. Insights without signs need a judge."""
    answer = record.answer
    summary = split_bullets(answer.reply)
    rules = _by_signs(facts["insights"], summary)
    asks: list[Query[Any]] = []
    coverages = []
    for insight, guess in zip(facts["insights"], rules, strict=True):
        if grading == "judge" and summary:
            judging = coverage_query(insight["text"], summary, facts.get("judge"))
            verdict = record.said(judging)
            if verdict is None:
                asks.append(judging)
            coverages.append(guess if verdict is None else _read_verdict(verdict, len(summary)))
        else:
            coverages.append(guess)
    items = tuple(_item(facts, insight, found, summary, answer) for insight, found in zip(facts["insights"], coverages, strict=True))
    undecided = next((found.why for found in coverages if found.level is None), None)
    if undecided is not None:
        return Grade(score=None, reason=f"undecided: {undecided}", turns=(answer.turn,), asks=tuple(asks), items=items)
    joint = fmean(item.score or 0.0 for item in items)
    return Grade(score=joint, reason=_reason(coverages, summary, facts), turns=(answer.turn,), asks=tuple(asks), items=items)


def coverage_query(insight: str, summary: Sequence[str], own: str | None = None) -> Query[Any]:
    """Return the query to a judge about an insight. Its answer is a `Coverage`, or a `Published` with the user's prompt `own`."""
    shown = [" ".join(bullet[:MAX_BULLET_LENGTH].split()) for bullet in summary[:MAX_BULLETS]]
    if own is not None:
        listed = json.dumps({"bullets": [{"bullet_id": number, "text": bullet} for number, bullet in enumerate(shown, 1)]}, indent=1)
        return Query(prompt=fill_prompt(own, insight=insight, bullets=listed), answer=Published, version="summhay coverage own")
    prompt = template(TEMPLATES, "judge").render(insight=insight, bullets=shown, fence=fence(insight, *shown))
    return Query(prompt=prompt, answer=Coverage, version="summhay coverage 1")


def _by_signs(insights: Sequence[Mapping[str, Any]], summary: Sequence[str]) -> list[InsightFinding]:
    """Return, for each insight, the bullet with most of its signs. A bullet with all signs covers it fully, one with some partly."""
    bullet_signs = [_signs(bullet) for bullet in summary]
    coverages = []
    for insight in insights:
        expected = frozenset(insight["signs"])
        if not expected:
            needs_judge = InsightFinding(None, why="only a judge can say what such bullets cover: --judge names one")
            coverages.append(needs_judge if summary else InsightFinding("none"))
            continue
        hits, first = max(((len(expected & present), -number) for number, present in enumerate(bullet_signs, 1)), default=(0, 0))
        level: Level = "full" if hits == len(expected) else "partial" if hits else "none"
        coverages.append(InsightFinding(level, -first if hits else None))
    return coverages


def _signs(bullet: str) -> frozenset[str]:
    """Return the signs in a bullet, without numbers and dates if there are too many of them."""
    present = find_signs(bullet)
    figures = {sign for sign in present if sign[0].isdecimal()}
    return present - figures if len(figures) > MAX_FIGURES else present


def _read_verdict(verdict: Coverage | Published | str, count: int) -> InsightFinding:
    """Convert a judge's answer about a summary of `count` bullets."""
    if isinstance(verdict, str):
        return InsightFinding(None, why=verdict)
    if isinstance(verdict, Published):
        number = verdict.bullet_id
        verdict = Coverage(coverage=PUBLISHED[verdict.coverage], bullet=number if isinstance(number, int) else None)
    if verdict.coverage == "none":
        return InsightFinding("none")
    if verdict.bullet is None or not 1 <= verdict.bullet <= count:
        return InsightFinding(None, why=f"the judge names bullet {verdict.bullet} of {count}")
    return InsightFinding(verdict.coverage, verdict.bullet)


def _item(facts: Mapping[str, Any], insight: Mapping[str, Any], found: InsightFinding, summary: Sequence[str], answer: Exchange) -> Item:
    """Return the item of an insight, with everything that the tables need."""
    labels = {name: str(facts[name]) for name in ("domain", "retriever", "position")}
    numbers = {"words": mean_length(summary), "bullets": float(len(summary)), "asked": float(facts["bullets"])}
    about = insight["text"][:300]
    if found.level is None:
        return Item(name=insight["id"], score=None, labels=labels, numbers=numbers, note=f"{about}: {found.why[:300]}", turn=answer.turn)
    sources = frozenset(insight["documents"])
    cited = find_citations(summary[found.bullet - 1]) if found.bullet else frozenset()
    scores = score_insight(COVERED[found.level], cited, sources)
    numbers |= {"coverage": scores.coverage} | _by_rank(facts["shown"], sources, cited)
    if found.bullet:
        numbers |= {"bullet": float(found.bullet), "citation": scores.citation, "precision": scores.precision, "recall": scores.recall}
    right, wrong = len(cited & sources), len(cited - sources)
    by = f"bullet {found.bullet}, which cites {right} of its {len(sources)} documents and {wrong} others" if found.bullet else "no bullet"
    note = f"{about}: {by}"
    labels["covered"] = found.level
    return Item(name=insight["id"], score=scores.joint, labels=labels, numbers=numbers, note=note, turn=answer.turn)


def _by_rank(shown: Sequence[int], sources: frozenset[int], cited: frozenset[int]) -> dict[str, float]:
    """Return the number of the insight's documents in each tenth of those shown, and how many of these were cited."""
    counts: dict[str, float] = {}
    for at, number in enumerate(shown):
        if number in sources:
            tenth = 1 + at * TENTHS // len(shown)
            counts[f"shown {tenth}"] = counts.get(f"shown {tenth}", 0) + 1
            counts[f"cited {tenth}"] = counts.get(f"cited {tenth}", 0) + (number in cited)
    return counts


def _reason(coverages: Sequence[InsightFinding], summary: Sequence[str], facts: Mapping[str, Any]) -> str:
    full, partial, none = (sum(found.level == level for found in coverages) for level in ("full", "partial", "none"))
    covered = f"of {len(coverages)} insights {full} are covered fully, {partial} partly, {none} not"
    return f"{covered}; {len(summary)} bullets of the {facts['bullets']} asked for"
