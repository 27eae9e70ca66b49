"""How a question about a history is asked, its ideal reply, and the facts for its grader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, final

from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.telling import written
from longspan.simulator.grading.matching import contains_phrase

__all__ = ["CHOOSE", "UNKNOWN", "AskedQuestion", "Wording", "ask", "chance", "first_option"]

Wording = Literal["plain", "paper"]
"""How LoCoMo's questions are asked: as they stand, or with what its authors add to them."""

UNKNOWN: Final = "This was not mentioned in the conversation."
"""The ideal reply to a question that the history does not answer."""

CHOOSE: Final = "Which of these is the most fitting answer? Reply with its letter."

NOT_MENTIONED: Final = "Not mentioned in the conversation"
SHORT: Final = "Answer in a short phrase, with words of the conversation where possible."
DATED: Final = "Go by the dates of the conversation, and answer with an approximate date."

_LABELLED: Final = re.compile(r"\s*\(([a-z])\)\s*\S", re.IGNORECASE)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@final
class AskedQuestion(NamedTuple):
    """A question as it is asked: the message, the ideal reply, and the facts for grading other replies."""

    text: str
    ideal: str
    facts: dict[str, Any]


def ask(question: Question, rivals: Sequence[str] | None, *, paper: bool = False, trap_first: bool = False) -> AskedQuestion:
    """Return how a question is asked.

    `rivals`: the values that a wrong reply could name instead of the gold answer, where they are known. `paper`: with the additions of
    LoCoMo's authors: a short phrase is wanted, or a date, and for something that was never said there are two choices, that and the
    published wrong answer, which is the first of them with `trap_first`.
    """
    adversarial = paper and not question.answerable and bool(question.trap) and not contains_phrase(NOT_MENTIONED, question.trap)
    if adversarial:
        options = [question.trap, NOT_MENTIONED] if trap_first else [NOT_MENTIONED, question.trap]
        question = replace(question, options=tuple(options), answer=NOT_MENTIONED)
    question = _labelled(question)
    parts = [question.text]
    if paper and not adversarial:
        parts.append(f"{DATED} {SHORT}" if question.kind == "temporal" else SHORT)
    text = " ".join(parts)
    if question.at is not None:
        text = f"Current date: {written(question.at)}\nQuestion: {text}"
    if question.options:
        text = "\n\n".join([text, CHOOSE, "\n".join(question.options)])
    return AskedQuestion(text, _ideal(question), _facts(question, rivals))


def _labelled(question: Question) -> Question:
    """Return a question whose options begin with letters, at most 26."""
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
    """Return what there is to know about a question, as JSON."""
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


def chance(facts: Mapping[str, Any]) -> float:
    """Return what choosing one of a question's options scores; 0 if it has none."""
    return 1 / len(facts["options"]) if facts["options"] else 0.0


def first_option(message: str) -> str | None:
    """Return the letter of the first option of a question that is asked here; None for any other message."""
    _, asked, options = message.partition(f"\n\n{CHOOSE}\n\n")
    first = _LABELLED.match(options)
    return f"({first[1].lower()})" if asked and first else None
