"""Word a question about a history, with its ideal reply and the facts that its grader needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.telling import format_moment
from longspan.simulator.reading.matching import contains_phrase

__all__ = ["CHOOSE", "UNKNOWN", "AskedQuestion", "Wording", "first_option", "guess_score", "pose_question"]

Wording = Literal["plain", "paper"]
"""How to ask LoCoMo's questions: verbatim, or with the instructions that its authors add."""

UNKNOWN: Final = "This was not mentioned in the conversation."
"""Ideal reply to a question that the history does not answer."""

CHOOSE: Final = "Which of these is the most fitting answer? Reply with its letter."

NOT_MENTIONED: Final = "Not mentioned in the conversation"
SHORT: Final = "Answer in a short phrase, with words of the conversation where possible."
DATED: Final = "Go by the dates of the conversation, and answer with an approximate date."

_LABELLED: Final = re.compile(r"\s*\(([a-z])\)\s*\S", re.IGNORECASE)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@final
class AskedQuestion(NamedTuple):
    """A question as asked: the message, the ideal reply, and the facts for grading other replies."""

    text: str
    ideal: str
    facts: dict[str, Any]


def pose_question(question: Question, rivals: Sequence[str] | None, *, paper: bool = False, trap_first: bool = False) -> AskedQuestion:
    """Return the message for a question, with its ideal reply and facts.

    `rivals`: values that a wrong reply could name instead of the gold answer, if known. `paper`: add the instructions of LoCoMo's
    authors. They ask for a short phrase or a date. For adversarial questions they offer two options: "not mentioned", and the published
    wrong answer, which comes first if `trap_first` is true.
    """
    adversarial = paper and not question.answerable and bool(question.trap) and not contains_phrase(NOT_MENTIONED, question.trap)
    if adversarial:
        options = [question.trap, NOT_MENTIONED] if trap_first else [NOT_MENTIONED, question.trap]
        question = replace(question, options=tuple(options), answer=NOT_MENTIONED)
    question = _label_options(question)
    parts = [question.text]
    if paper and not adversarial:
        parts.append(f"{DATED} {SHORT}" if question.kind == "temporal" else SHORT)
    text = " ".join(parts)
    if question.at is not None:
        text = f"Current date: {format_moment(question.at)}\nQuestion: {text}"
    if question.options:
        text = "\n\n".join([text, CHOOSE, "\n".join(question.options)])
    return AskedQuestion(text, _ideal(question), _facts(question, rivals))


def _label_options(question: Question) -> Question:
    """Return a question with a letter before each of its options, at most 26."""
    options = question.options
    if all(map(_LABELLED.match, options)):
        return question
    labelled = tuple(f"({letter}) {option}" for letter, option in zip(_LETTERS[: len(options)], options, strict=True))
    answer = None if question.answer is None else labelled[options.index(question.answer)]
    return replace(question, options=labelled, answer=answer)


def _ideal(question: Question) -> str:
    if question.options and question.answer is not None:
        return question.answer
    if not question.answerable:
        return UNKNOWN
    return question.answer or "\n".join(question.rubric)


def _facts(question: Question, rivals: Sequence[str] | None) -> dict[str, Any]:
    """Return everything known about a question, as JSON."""
    return {
        "id": question.id,
        "kind": question.kind,
        "question": question.text,
        "at": None if question.at is None else question.at.isoformat(),
        "answer": question.answer,
        "answerable": question.answerable,
        "options": list(question.options),
        "rubric": list(question.rubric),
        "trap": question.trap,
        "evidence": list(question.evidence),
        "rivals": None if rivals is None else list(rivals),
    }


def guess_score(facts: Mapping[str, Any]) -> float:
    """Return the score of choosing an option at random; 0 if the question has none."""
    return 1 / len(facts["options"]) if facts["options"] else 0.0


def first_option(message: str) -> str | None:
    """Return the letter of the first option if `message` is a question from `pose_question`, else None."""
    _, asked, options = message.partition(f"\n\n{CHOOSE}\n\n")
    first = _LABELLED.match(options)
    return f"({first[1].lower()})" if asked and first else None
