"""Grading a summary (section 4): for each insight the bullet that covers it, and what that bullet cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.summhay.bullets import bullets, citations, length
from longspan.scenarios.summhay.scores import COVERED, scored
from longspan.scenarios.summhay.signs import signs
from longspan.simulator.queries import Answer, Query, fence, template
from longspan.simulator.record import Exchange, Grade, Item, Record

__all__ = ["TENTHS", "Coverage", "Grading", "grade", "query"]

Grading = Literal["rules", "judge"]

Level = Literal["full", "partial", "none"]

TEMPLATES: Final = Path(__file__).parent / "templates"

LISTING: Final = 20
"""Different numbers and dates above which a bullet lists them instead of telling anything: they are no signs then."""

MOST_BULLETS: Final = 200
LONGEST_BULLET: Final = 2000
"""Bullets, and characters of each, that a judge is shown."""

TENTHS: Final = 10
"""Parts into which what was shown is divided, for scores by a document's rank."""


class Coverage(Answer):
    """Whether the summary covers an insight, and with which bullet, counted from 1."""

    coverage: Level
    bullet: int | None


@final
class Found(NamedTuple):
    """How far an insight is covered, by which bullet (counted from 1). `level` None: nobody could decide, for `why`."""

    level: Level | None
    bullet: int | None = None
    why: str = ""


def grade(facts: Mapping[str, Any], record: Record, grading: Grading) -> Grade:
    """The grade of a summary: the joint score, an item for each insight. Insights that no one has signs of are the judge's."""
    answer = record.answer
    told = bullets(answer.reply)
    rules = _by_signs(facts["insights"], told)
    asks: list[Query[Coverage]] = []
    found = []
    for insight, guess in zip(facts["insights"], rules, strict=True):
        if grading == "judge" and told:
            asked = query(insight["text"], told)
            said = record.said(asked)
            if said is None:
                asks.append(asked)
            found.append(guess if said is None else _judged(said, len(told)))
        else:
            found.append(guess)
    items = tuple(_item(facts, insight, each, told, answer) for insight, each in zip(facts["insights"], found, strict=True))
    undecided = next((each.why for each in found if each.level is None), None)
    if undecided is not None:
        return Grade(score=None, reason=f"undecided: {undecided}", turns=(answer.turn,), asks=tuple(asks), items=items)
    joint = fmean(item.score or 0.0 for item in items)
    return Grade(score=joint, reason=_reason(found, told, facts), turns=(answer.turn,), asks=tuple(asks), items=items)


def query(insight: str, told: Sequence[str]) -> Query[Coverage]:
    """What a judge is asked about an insight."""
    shown = [" ".join(bullet[:LONGEST_BULLET].split()) for bullet in told[:MOST_BULLETS]]
    prompt = template(TEMPLATES, "judge").render(insight=insight, bullets=shown, fence=fence(insight, *shown))
    return Query(prompt=prompt, answer=Coverage, version="summhay coverage 1")


def _by_signs(insights: Sequence[Mapping[str, Any]], told: Sequence[str]) -> list[Found]:
    """The bullet with most of each insight's signs: all of them cover it fully, some partly."""
    held = [_told(bullet) for bullet in told]
    found = []
    for insight in insights:
        wanted = frozenset(insight["signs"])
        if not wanted:
            found.append(Found("none") if not told else Found(None, why="only a judge can say what such bullets cover: --judge names one"))
            continue
        most, first = max(((len(wanted & each), -number) for number, each in enumerate(held, 1)), default=(0, 0))
        level: Level = "full" if most == len(wanted) else "partial" if most else "none"
        found.append(Found(level, -first if most else None))
    return found


def _told(bullet: str) -> frozenset[str]:
    """The signs in a bullet, without numbers and dates where it lists too many of them."""
    found = signs(bullet)
    figures = {sign for sign in found if sign[0].isdecimal()}
    return found - figures if len(figures) > LISTING else found


def _judged(said: Coverage | str, told: int) -> Found:
    if isinstance(said, str):
        return Found(None, why=said)
    if said.coverage == "none":
        return Found("none")
    if said.bullet is None or not 1 <= said.bullet <= told:
        return Found(None, why=f"the judge names bullet {said.bullet} of {told}")
    return Found(said.coverage, said.bullet)


def _item(facts: Mapping[str, Any], insight: Mapping[str, Any], found: Found, told: Sequence[str], answer: Exchange) -> Item:
    """What became of an insight, with all that the tables need."""
    labels = {name: str(facts[name]) for name in ("domain", "retriever", "position")}
    numbers = {"words": length(told), "bullets": float(len(told)), "asked": float(facts["bullets"])}
    about = insight["text"][:300]
    if found.level is None:
        return Item(name=insight["id"], score=None, labels=labels, numbers=numbers, note=f"{about}: {found.why[:300]}", turn=answer.turn)
    sources = frozenset(insight["documents"])
    cited = citations(told[found.bullet - 1]) if found.bullet else frozenset()
    each = scored(COVERED[found.level], cited, sources)
    numbers |= {"coverage": each.coverage} | _by_rank(facts["shown"], sources, cited)
    if found.bullet:
        numbers |= {"bullet": float(found.bullet), "citation": each.citation, "precision": each.precision, "recall": each.recall}
    right, wrong = len(cited & sources), len(cited - sources)
    by = f"bullet {found.bullet}, which cites {right} of its {len(sources)} documents and {wrong} others" if found.bullet else "no bullet"
    note = f"{about}: {by}"
    labels["covered"] = found.level
    return Item(name=insight["id"], score=each.joint, labels=labels, numbers=numbers, note=note, turn=answer.turn)


def _by_rank(shown: Sequence[int], sources: frozenset[int], cited: frozenset[int]) -> dict[str, float]:
    """How many of the insight's documents stood in each tenth of what was shown, and how many of those were cited."""
    found: dict[str, float] = {}
    for at, number in enumerate(shown):
        if number in sources:
            tenth = 1 + at * TENTHS // len(shown)
            found[f"shown {tenth}"] = found.get(f"shown {tenth}", 0) + 1
            found[f"cited {tenth}"] = found.get(f"cited {tenth}", 0) + (number in cited)
    return found


def _reason(found: Sequence[Found], told: Sequence[str], facts: Mapping[str, Any]) -> str:
    full, partial, none = (sum(each.level == level for each in found) for level in ("full", "partial", "none"))
    covered = f"of {len(found)} insights {full} are covered fully, {partial} partly, {none} not"
    return f"{covered}; {len(told)} bullets, {facts['bullets']} were asked for"
