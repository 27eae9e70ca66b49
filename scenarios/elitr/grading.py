"""Grade answers about a meeting, by rules or by a judge's points."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Final

from longspan.scenarios.elitr.rubrics import points_query
from longspan.scenarios.elitr.rules import by_rule
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record
from longspan.simulator.contract.queries import Query
from longspan.simulator.reading.matching import join_some

__all__ = ["MINUTES", "grade_answers"]

MINUTES: Final = "minutes have no score of their own: `longspan cream arena` compares those of several agents"


def grade_answers(facts: Mapping[str, Any], record: Record) -> Grade:
    """Grade a test by the mean over its questions, each an item. A judge's points count as tenths.

    The score is None if a question has none.
    """
    if facts["task"] == "minutes":
        return Grade(score=None, reason=MINUTES, turns=(record.answer.turn,))
    asks: list[Query[Any]] = []
    items = [_item(facts, question, answer, record, asks) for question, answer in zip(facts["questions"], record.answers, strict=True)]
    scores = [item.score for item in items if item.score is not None]
    missing = [item.name for item in items if item.score is None]
    reason = f"{len(missing)} of {len(items)} answers have no score: {join_some(missing)}" if missing else _reason(items)
    return Grade(
        score=None if missing else fmean(scores),
        reason=items[0].note if len(items) == 1 else reason,
        turns=tuple(answer.turn for answer in record.answers),
        asks=tuple(asks),
        items=tuple(items),
    )


def _reason(items: list[Item]) -> str:
    below = [item.name for item in items if item.score != 1]
    return f"{len(items) - len(below)} of {len(items)} answers have full marks" + (f"; not {join_some(below)}" if below else "")


def _item(facts: Mapping[str, Any], question: Mapping[str, Any], answer: Exchange, record: Record, asks: list[Query[Any]]) -> Item:
    """Score an answer. Queries that only a judge can answer and has not answered yet are added to `asks`."""
    rule = question["rule"]
    score: float | None = None
    note = "needs a judge; --judge names one"
    if rule is not None:
        score, note = by_rule(rule, question["question"], answer.reply)
    if facts["rubric"] != "rules":
        judging = points_query(facts["rubric"], question["asked"], question["answer"], answer.reply, facts.get("judge"))
        verdict = record.said(judging)
        if verdict is None:
            asks.append(judging)
        elif isinstance(verdict, str):
            score, note = None, f"undecided: {verdict}"
        else:
            score, note = verdict.points / 10, f"{verdict.points} of 10 points: {' '.join(verdict.text.split())[:500]}"
    labels = {
        "meeting": facts["source"],
        "question": question["id"],
        "type": question["type"],
        "position": question["position"],
        "differs": "yes" if question["differs"] else "no",
        "setting": facts["setting"],
        "mode": facts["mode"],
        "split": facts["split"],
        "judge": facts["rubric"],
    }
    numbers = {} if score is None else {"points": 10 * score}
    return Item(name=f"{facts['source']}/{question['id']}", score=score, labels=labels, numbers=numbers, note=note, turn=answer.turn)
