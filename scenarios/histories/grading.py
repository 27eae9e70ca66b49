"""Grade the reply to one question about a history, by rules where possible and otherwise by the benchmark's own judge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.histories import rules
from longspan.scenarios.histories.event_order import align_events, lines_of, score_order
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.languages import detect_language
from longspan.scenarios.histories.rubrics import (
    ABSTENTION,
    Nugget,
    locomo_query,
    longmemeval_query,
    nugget_query,
    same_event_query,
)
from longspan.scenarios.histories.token_f1 import echo_score, locomo_score, share_of_question_words
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Record, readable_part
from longspan.simulator.contract.queries import Query
from longspan.simulator.reading.abstentions import declines_question
from longspan.simulator.reading.matching import join_some

__all__ = ["GRADINGS", "MEASURES", "Grading", "grade_question"]

Grading = Literal["rules", "f1", "locomo", "locomo-strict", "longmemeval", "beam-nuggets"]
"""How to grade: by rules alone, by LoCoMo's token F1, or by rules backed by a judge with the rubric of this name."""

GRADINGS: Final[Mapping[str, tuple[Grading, ...]]] = {
    "locomo": ("f1", "locomo", "locomo-strict"),
    "longmemeval": ("longmemeval",),
    "beam": ("beam-nuggets",),
    "personamem": ("rules",),
    "history": ("longmemeval", "rules"),
    "made_up": ("rules",),
}
"""Gradings that each benchmark supports, the default first."""

MEASURES: Final[Mapping[Grading, tuple[str, str]]] = {"f1": ("token F1", "no judge"), "beam-nuggets": ("nugget score", "")}
"""Names of scores other than the share of right answers, with a remark on each."""

UNDECIDED: Final = "rules do not decide; --judge names a judge that does"
RULES_ONLY: Final = "rules do not decide"
UNSAID: Final = "Nobody said this in the conversation."

ORDER: Final = "event_ordering"
"""BEAM's kind of question that is graded by the order of events."""

FACTUAL: Final = frozenset({"information_extraction", "knowledge_update", "multi_session_reasoning", "summarization", "temporal_reasoning"})
"""BEAM's kinds of questions whose rubrics are never met by "I don't know"."""

TOLERANT: Final = frozenset({"temporal-reasoning", "knowledge-update"})
"""LongMemEval's kinds of questions whose judge accepts a number off by one, or an old answer next to the new one."""

_STATES: Final = re.compile(r"\A(?:the )?(?:llm )?response should (?:state|mention|contain|include):\s*", re.IGNORECASE)
"""Opening words of most statements in BEAM's rubrics."""
_CHOICE: Final = re.compile(r"\(?([a-z])\)?", re.IGNORECASE)


@final
class _ReplyScore(NamedTuple):
    """The result of grading so far: score, grader, reason, open queries for the judge, and further numbers."""

    score: float | None
    by: str
    why: str
    asks: tuple[Query[Any], ...] = ()
    numbers: Mapping[str, float] = {}


def grade_question(facts: Mapping[str, Any], record: Record, *, paper: bool = False) -> Grade:
    """Grade the last exchange of a record as one item. The score is None where a judge must decide.

    `facts` contains `benchmark` (see GRADINGS), `id`, `question`, `answer` (None without one), `kind`, `answerable`, `options`, `rubric`
    (statements) and `trap`. Optional are `rivals` (all values that a wrong reply could name; rules then always decide), `grading` (see
    GRADINGS) and `gold` (a label for the set of gold answers). `paper`: score adversarial questions as LoCoMo does, accepting only two
    phrases for "not mentioned".

    The item's labels are `kind`, `by` (rules, f1, judge, nobody) and `gold`. Its numbers:

    - `f1`: LoCoMo's score
    - `floor`, if that score is the grading: the score for repeating the question
    - `echoed f1`, likewise: the part of the score that comes from words of the question
    - `shared words`, likewise: the share of the reply's words that the question contains
    - `nuggets`: the mean over the rubric's statements
    - `whole nuggets`: the same with halves as 0, as in the authors' program
    - `tau` and `event f1`: for the order of events
    """
    answer = record.answer
    question = _question(facts)
    found = _name_language(_find_score(facts, question, answer, record, paper), answer.reply)
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
            "echoed f1": echo_score(question.kind, answer.reply, question.answer or "", question.text),
            "shared words": share_of_question_words(answer.reply, question.text),
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


def _find_score(facts: Mapping[str, Any], question: Question, answer: Exchange, record: Record, paper: bool) -> _ReplyScore:
    grading: Grading = facts.get("grading") or GRADINGS[facts["benchmark"]][0]
    if grading == "f1" and question.kind == "adversarial" and not paper and _is_unread_refusal(question, answer.reply):
        return _read_verdict(_query("locomo", question, answer.reply), record)
    if grading == "f1":
        score = _f1(question, answer.reply, paper)
        gold = "the question has no answer" if question.kind == "adversarial" else f"F1 with {join_some([question.answer or ''])}"
        return _ReplyScore(score, "f1", f"{gold}: {score:.3f}")
    nuggets = bool(question.rubric) and not question.options
    verdict = _by_rules(question, answer.reply, facts.get("rivals"), grading, nuggets)
    if verdict is not None:
        return _ReplyScore(verdict.score, "rules", verdict.why)
    if grading == "rules":
        return _ReplyScore(None, "nobody", RULES_ONLY)
    if nuggets and question.kind == ORDER and grading == "beam-nuggets":
        return _score_ordering(question, answer.reply, record)
    if nuggets:
        return _nuggets(question, answer.reply, record)
    return _read_verdict(_query(grading, question, answer.reply), record)


def _is_unread_refusal(question: Question, reply: str) -> bool:
    """Return whether a reply to an adversarial question may decline in a language that rules do not read."""
    return not _f1(question, reply, paper=False) and not question.options and detect_language(readable_part(reply)) is not None


def _name_language(found: _ReplyScore, reply: str) -> _ReplyScore:
    """Add the language of an undecided reply to the reason if rules do not read it."""
    language = detect_language(readable_part(reply)) if found.why in (UNDECIDED, RULES_ONLY) else None
    return found._replace(why=f"the reply is in {language}, which rules do not read: {found.why}") if language else found


def _by_rules(question: Question, reply: str, rivals: Sequence[str] | None, grading: Grading, nuggets: bool) -> rules.RuleVerdict | None:
    """Return the rules' verdict if they apply the same standard as the judge, else None."""
    verdict = rules.grade_reply(question, reply, rivals)
    if rivals is not None:
        return verdict
    if nuggets and verdict is None and question.kind in FACTUAL and rules.only_abstains(reply):
        return rules.RuleVerdict(0, "says that it does not know")
    if verdict is None or verdict.score or question.kind not in TOLERANT or grading != "longmemeval":
        return verdict
    return verdict if rules.says_nothing(question, reply) else None


def _f1(question: Question, reply: str, paper: bool) -> float:
    """Return LoCoMo's score, with two adjustments.

    Any plain wording of "not mentioned" is right for adversarial questions, except with `paper`. An option's letter stands for its
    words, as in the authors' harness.
    """
    letter = _CHOICE.fullmatch(reply.strip())
    chosen = next((option for option in question.options if letter and option.casefold().startswith(f"({letter[1].casefold()})")), reply)
    if question.kind == "adversarial" and not paper:
        return float(declines_question(chosen, question.text, (question.trap,) if question.trap else ()))
    return locomo_score(question.kind, chosen, question.answer or "")


def _floor(question: Question, paper: bool) -> float | None:
    """Return LoCoMo's score for repeating the question; None where choosing an option or declining is the better guess."""
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


def _read_verdict(query: Query[Any], record: Record) -> _ReplyScore:
    verdict = record.said(query)
    if verdict is None:
        return _ReplyScore(None, "nobody", UNDECIDED, (query,))
    if isinstance(verdict, str):
        return _ReplyScore(None, "nobody", f"undecided: {verdict}")
    return _ReplyScore(verdict.score, "judge", f"judged: {_shorten_reason(verdict.why)}")


def _nuggets(question: Question, reply: str, record: Record) -> _ReplyScore:
    """Return the mean over the rubric's statements. Rules recognise dates, numbers and names, and the judge decides the rest."""
    met = [_meets_nugget(question, nugget, reply) for nugget in question.rubric]
    queries = {nugget: nugget_query(question.text, nugget, reply) for nugget, found in zip(question.rubric, met, strict=True) if not found}
    verdicts = {nugget: record.said(query) for nugget, query in queries.items()}
    failed = next((verdict for verdict in verdicts.values() if isinstance(verdict, str)), None)
    if failed is not None or None in verdicts.values():
        asks = tuple(query for nugget, query in queries.items() if verdicts[nugget] is None)
        return _ReplyScore(None, "nobody", UNDECIDED if failed is None else f"undecided: {failed}", asks)
    judged = {nugget: verdict.score for nugget, verdict in verdicts.items() if isinstance(verdict, Nugget)}
    scores = [judged.get(nugget, 1.0) for nugget in question.rubric]
    missed = [f"{nugget} ({score:g})" for nugget, score in zip(question.rubric, scores, strict=True) if score < 1]
    why = f"{len(scores) - len(missed)} of {len(scores)} statements are met" + (f"; not {join_some(missed)}" if missed else "")
    numbers = {"nuggets": fmean(scores), "whole nuggets": fmean(map(int, scores))}
    return _ReplyScore(fmean(scores), "judge" if judged else "rules", f"judged: {why}" if judged else why, numbers=numbers)


def _meets_nugget(question: Question, nugget: str, reply: str) -> bool:
    """Return whether rules find the content of a rubric's statement in a reply."""
    wanted = Question(question.id, question.text, _STATES.sub("", nugget, count=1))
    verdict = rules.grade_reply(wanted, reply) if question.kind in FACTUAL else None
    return verdict is not None and verdict.score == 1


def _score_ordering(question: Question, reply: str, record: Record) -> _ReplyScore:
    """Return how well a reply orders events. A reply that names none of them scores 0."""
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

    aligned = align_events(lines, question.rubric, same)
    if failed:
        return _ReplyScore(None, "nobody", f"undecided: {failed[0]}")
    if aligned.unknown:
        return _ReplyScore(None, "nobody", UNDECIDED, tuple(queries[pair] for pair in aligned.unknown))
    named = [event for event in aligned.events if event is not None]
    order = score_order(aligned.events, len(question.rubric))
    why = (
        f"{len(named)} of {len(question.rubric)} events in {len(lines)} lines, in the order {', '.join(str(event + 1) for event in named)}"
    )
    by = "judge" if queries else "rules"
    return _ReplyScore(order.tau if named else 0.0, by, f"{why}: tau {order.tau:.3f}", numbers={"tau": order.tau, "event f1": order.f1})


def _shorten_reason(why: str) -> str:
    return " ".join(why.split())[:500]
