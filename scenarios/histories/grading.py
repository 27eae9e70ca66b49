"""Grades the reply to one question about a history: by rules where they decide, and by the benchmark's own judge for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.histories import rules
from longspan.scenarios.histories.event_order import align, lines_of, ordering
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.rubrics import (
    ABSTENTION,
    Nugget,
    locomo_query,
    longmemeval_query,
    nugget_query,
    same_event_query,
)
from longspan.scenarios.histories.token_f1 import echoed_score, locomo_score, shared_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record
from longspan.simulator.contract.queries import Query
from longspan.simulator.grading.abstentions import declines
from longspan.simulator.grading.matching import some

__all__ = ["GRADINGS", "MEASURES", "Grading", "graded"]

Grading = Literal["rules", "f1", "locomo", "locomo-strict", "longmemeval", "beam-nuggets"]
"""Who grades: rules alone, LoCoMo's token F1, or rules and, where they do not decide, a judge with the rubric of this name."""

GRADINGS: Final[Mapping[str, tuple[Grading, ...]]] = {
    "locomo": ("f1", "locomo", "locomo-strict"),
    "longmemeval": ("longmemeval",),
    "beam": ("beam-nuggets",),
    "personamem": ("rules",),
    "history": ("longmemeval", "rules"),
    "made_up": ("rules",),
}
"""How the answers of each benchmark can be graded, the default first."""

MEASURES: Final[Mapping[Grading, tuple[str, str]]] = {"f1": ("token F1", "no judge"), "beam-nuggets": ("nugget score", "")}
"""What scores are called that are no shares of right answers, and a remark on them."""

UNDECIDED: Final = "rules do not decide; --judge names a judge that does"
UNSAID: Final = "Nobody said this in the conversation."

ORDER: Final = "event_ordering"
"""The kind of BEAM's questions that are graded by the order of events."""

FACTUAL: Final = frozenset({"information_extraction", "knowledge_update", "multi_session_reasoning", "summarization", "temporal_reasoning"})
"""The kinds of BEAM's questions where "I don't know" meets none of the rubric's statements."""

TOLERANT: Final = frozenset({"temporal-reasoning", "knowledge-update"})
"""The kinds of LongMemEval's questions whose judge accepts another number, or an old answer beside the new one."""

_STATES: Final = re.compile(r"\A(?:the )?(?:llm )?response should (?:state|mention|contain|include):\s*", re.IGNORECASE)
"""How most statements of BEAM's rubrics begin."""
_CHOICE: Final = re.compile(r"\(?([a-z])\)?", re.IGNORECASE)


@final
class _Found(NamedTuple):
    """The verdict on a reply so far: its score, who gave it and why, the queries still open, and further figures."""

    score: float | None
    by: str
    why: str
    asks: tuple[Query[Any], ...] = ()
    numbers: Mapping[str, float] = {}


def graded(facts: Mapping[str, Any], record: Record, *, paper: bool = False) -> Grade:
    """Grade the last exchange of a record, as the only item of its grade. The score is None where only a judge can tell.

    `facts`: `benchmark` (see GRADINGS), `id`, `question`, `answer` (None if there is none), `kind`, `answerable`, `options`, `rubric`
    (statements), `trap`; optionally `rivals` (all values that a wrong reply could name; rules then always decide), `grading` (see GRADINGS)
    and `gold` (which gold answers, a label).

    `paper`: an adversarial question has LoCoMo's own score. It accepts only two wordings of the reply that something was not told.

    The item's labels are `kind`, `by` (rules, f1, judge, nobody) and `gold`. Its numbers: `f1`, LoCoMo's score; where that grades, also its
    `floor`, the score for repeating the question, its part that rests on words of the question (`echoed f1`), and the share of the reply's
    words that are the question's (`shared words`); `nuggets`, the mean of the
    rubric's statements, and `whole nuggets`, which counts halves as nothing, as the authors' program does; `tau` and `event f1` of events
    in order.
    """
    answer = record.answer
    question = _question(facts)
    found = _found(facts, question, answer, record, paper)
    numbers = dict(found.numbers)
    if facts["benchmark"] == "locomo":
        numbers["f1"] = _f1(question, answer.reply, paper)
    labels = {"kind": question.kind, "by": found.by}
    if facts.get("gold"):
        labels["gold"] = facts["gold"]
    floor = _floor(question, paper) if found.by == "f1" else None
    if floor is not None:
        numbers |= {
            "floor": floor,
            "echoed f1": echoed_score(question.kind, answer.reply, question.answer or "", question.text),
            "shared words": shared_words(answer.reply, question.text),
        }
    item = Item(name=question.id, score=found.score, labels=labels, numbers=numbers, note=found.why, turn=answer.turn)
    return Grade(score=found.score, reason=found.why, turns=(answer.turn,), asks=found.asks, items=(item,), chance=floor)


def _question(facts: Mapping[str, Any]) -> Question:
    return Question(
        id=facts["id"],
        text=facts["question"],
        answer=facts["answer"],
        kind=facts["kind"],
        options=tuple(facts["options"]),
        rubric=tuple(facts["rubric"]),
        answerable=facts["answerable"],
        trap=facts["trap"],
    )


def _found(facts: Mapping[str, Any], question: Question, answer: Exchange, record: Record, paper: bool) -> _Found:
    grading: Grading = facts.get("grading") or GRADINGS[facts["benchmark"]][0]
    if grading == "f1":
        score = _f1(question, answer.reply, paper)
        gold = "the question has no answer" if question.kind == "adversarial" else f"F1 with {some([question.answer or ''])}"
        return _Found(score, "f1", f"{gold}: {score:.3f}")
    nuggets = bool(question.rubric) and not question.options
    verdict = _by_rules(question, answer.reply, facts.get("rivals"), grading, nuggets)
    if verdict is not None:
        return _Found(verdict.score, "rules", verdict.why)
    if grading == "rules":
        return _Found(None, "nobody", "rules do not decide")
    if nuggets and question.kind == ORDER and grading == "beam-nuggets":
        return _ordered(question, answer.reply, record)
    if nuggets:
        return _nuggets(question, answer.reply, record)
    return _judged(_query(grading, question, answer.reply), record)


def _by_rules(question: Question, reply: str, rivals: Sequence[str] | None, grading: Grading, nuggets: bool) -> rules.Verdict | None:
    """Return the verdict of the rules, if they go by the same standard as the judge."""
    verdict = rules.grade(question, reply, rivals)
    if rivals is not None:
        return verdict
    if nuggets and verdict is None and question.kind in FACTUAL and rules.only_abstains(reply):
        return rules.Verdict(0, "says that it does not know")
    if verdict is None or verdict.score or question.kind not in TOLERANT or grading != "longmemeval":
        return verdict
    return verdict if rules.says_nothing(question, reply) else None


def _f1(question: Question, reply: str, paper: bool) -> float:
    """Return LoCoMo's score; but whoever says in any plain wording that something was not told is right, unless the wording is the
    `paper`'s. Where options were given, the letter of one stands for its words, as in the authors' harness."""
    letter = _CHOICE.fullmatch(reply.strip())
    chosen = next((option for option in question.options if letter and option.casefold().startswith(f"({letter[1].casefold()})")), reply)
    if question.kind == "adversarial" and not paper:
        return float(declines(chosen, question.text, (question.trap,) if question.trap else ()))
    return locomo_score(question.kind, chosen, question.answer or "")


def _floor(question: Question, paper: bool) -> float | None:
    """Return LoCoMo's score for repeating the question, with no memory of anything; None where choices or a plain refusal to answer are the
    better guess."""
    if question.options or question.kind == "adversarial":
        return None
    return _f1(question, question.text, paper)


def _query(grading: Grading, question: Question, reply: str) -> Query[Any]:
    if not question.answerable:
        return longmemeval_query(ABSTENTION, question.text, question.answer or UNSAID, reply)
    reference = question.answer or ""
    if grading in ("locomo", "locomo-strict"):
        return locomo_query(question.text, reference, reply, strict=grading == "locomo-strict")
    return longmemeval_query(question.kind, question.text, reference, reply)


def _judged(query: Query[Any], record: Record) -> _Found:
    verdict = record.said(query)
    if verdict is None:
        return _Found(None, "nobody", UNDECIDED, (query,))
    if isinstance(verdict, str):
        return _Found(None, "nobody", f"undecided: {verdict}")
    return _Found(verdict.score, "judge", f"judged: {_shown(verdict.why)}")


def _nuggets(question: Question, reply: str, record: Record) -> _Found:
    """Return the mean over the rubric's statements: rules find that a date, number or name is there, and the judge decides the rest."""
    met = [_met(question, nugget, reply) for nugget in question.rubric]
    queries = {nugget: nugget_query(question.text, nugget, reply) for nugget, found in zip(question.rubric, met, strict=True) if not found}
    verdicts = {nugget: record.said(query) for nugget, query in queries.items()}
    failed = next((verdict for verdict in verdicts.values() if isinstance(verdict, str)), None)
    if failed is not None or None in verdicts.values():
        asks = tuple(query for nugget, query in queries.items() if verdicts[nugget] is None)
        return _Found(None, "nobody", UNDECIDED if failed is None else f"undecided: {failed}", asks)
    judged = {nugget: verdict.score for nugget, verdict in verdicts.items() if isinstance(verdict, Nugget)}
    scores = [judged.get(nugget, 1.0) for nugget in question.rubric]
    missed = [f"{nugget} ({score:g})" for nugget, score in zip(question.rubric, scores, strict=True) if score < 1]
    why = f"{len(scores) - len(missed)} of {len(scores)} statements are met" + (f"; not {some(missed)}" if missed else "")
    numbers = {"nuggets": fmean(scores), "whole nuggets": fmean(map(int, scores))}
    return _Found(fmean(scores), "judge" if judged else "rules", f"judged: {why}" if judged else why, numbers=numbers)


def _met(question: Question, nugget: str, reply: str) -> bool:
    """Return whether rules find that a reply states what a statement of the rubric demands."""
    wanted = Question(question.id, question.text, _STATES.sub("", nugget, count=1))
    verdict = rules.grade(wanted, reply) if question.kind in FACTUAL else None
    return verdict is not None and verdict.score == 1


def _ordered(question: Question, reply: str, record: Record) -> _Found:
    """Return how well a reply puts events in order. One that names none of them has no order: 0."""
    lines = lines_of(reply)
    failed: list[str] = []
    queries: dict[tuple[int, int], Query[Any]] = {}

    def same(line: int, event: int) -> bool | None:
        query = queries[line, event] = same_event_query(question.rubric[event], lines[line])
        verdict = record.said(query)
        if isinstance(verdict, str):
            failed.append(verdict)
            return False
        return None if verdict is None else bool(verdict.same)

    aligned = align(lines, question.rubric, same)
    if failed:
        return _Found(None, "nobody", f"undecided: {failed[0]}")
    if aligned.unknown:
        return _Found(None, "nobody", UNDECIDED, tuple(queries[pair] for pair in aligned.unknown))
    named = [event for event in aligned.events if event is not None]
    order = ordering(aligned.events, len(question.rubric))
    why = (
        f"{len(named)} of {len(question.rubric)} events in {len(lines)} lines, in the order {', '.join(str(event + 1) for event in named)}"
    )
    by = "judge" if queries else "rules"
    return _Found(order.tau if named else 0.0, by, f"{why}: tau {order.tau:.3f}", numbers={"tau": order.tau, "event f1": order.f1})


def _shown(why: str) -> str:
    return " ".join(why.split())[:500]
