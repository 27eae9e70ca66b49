"""How often rules agree with the verdicts that were published with released answers, where they decide."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scenarios.histories.conftest import published

from longspan.scenarios.histories import Question, read_histories
from longspan.scenarios.histories.data_files import list_sources
from longspan.scenarios.histories.grading import grade_question
from longspan.scenarios.histories.locomo_answers import read_answers
from longspan.scenarios.histories.longmemeval_answers import ABSTAINS, questions_in, value_of
from longspan.scenarios.histories.longmemeval_answers import read_answers as read_longmemeval
from longspan.scenarios.histories.released_answers import ReleasedAnswer
from longspan.simulator.contract.graded_record import Exchange, Record

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "history-grading.md"
FILES = ("full-context-gpt-4o-mini-cot", "full-context-gpt-4.1-mini-memos", "vague-v1", "a40-no_memory", "a40-file_based")
DEV = ("a40-dev144_structured", "a40-dev144_file_based")


class Tally(NamedTuple):
    """Of so many answers, how many rules decide, and how many of these decisions the published verdict contradicts, by score."""

    answers: int
    decided: int
    wrongly_right: int
    wrongly_wrong: int

    @property
    def agreement(self) -> float:
        return 1 - (self.wrongly_right + self.wrongly_wrong) / self.decided


def tally(benchmark: str, answered: Iterator[tuple[Question, ReleasedAnswer]]) -> Tally:
    answers = decided = wrongly_right = wrongly_wrong = 0
    for question, answer in answered:
        facts = {"benchmark": benchmark, "grading": benchmark, "id": question.id, "question": question.text, "answer": question.answer}
        facts |= {"kind": question.kind, "answerable": question.answerable, "options": [], "rubric": [], "trap": question.trap}
        (item,) = grade_question(facts, Record(exchanges=(Exchange(1, question.text, answer.reply, asks=True),))).items
        answers += 1
        if item.labels["by"] == "rules":
            decided += 1
            wrongly_right += item.score == 1 and not answer.right
            wrongly_wrong += item.score == 0 and answer.right
    return Tally(answers, decided, wrongly_right, wrongly_wrong)


@cache
def asked() -> dict[str, Question]:
    histories = read_histories("locomo", published("locomo") / "locomo10.json.gz")
    return {f"{number}/{question.id}": question for number, history in enumerate(histories) for question in history.questions}


def locomo(name: str, *, adversarial: bool) -> Tally:
    (source,) = list_sources(published("locomo") / "answers" / f"{name}.json.gz")
    released = read_answers(name, source, source.json(), None)
    assert released is not None
    return tally("locomo", ((asked()[each.question], each) for each in released.answers if each.adversarial == adversarial))


def longmemeval(name: str) -> Tally:
    folder = published("longmemeval")
    questions = questions_in(value_of(list_sources(folder / "questions_s.json.gz")[0]))
    (source,) = list_sources(folder / "answers" / f"{name}.json.gz")
    released = read_longmemeval(name, source.where, source.json(), questions)
    assert released is not None
    return tally("longmemeval", ((_question(each, questions[each.question].kind), each) for each in released.answers))


def _question(answer: ReleasedAnswer, kind: str) -> Question:
    return Question(answer.question, answer.text, answer.gold, kind, answerable=kind != ABSTAINS)


def row(name: str, found: Tally) -> str:
    cells = [f"`{name}`", f"{found.answers:,}", f"{found.decided / found.answers:.0%}", f"{found.agreement:.1%}"]
    return f"| {' | '.join([*cells, str(found.wrongly_right), str(found.wrongly_wrong)])} |"


@pytest.mark.parametrize("name", [*FILES, *DEV])
def test_rules_agree_with_published_verdicts_where_they_decide(name: str) -> None:
    found = longmemeval(name) if name in DEV else locomo(name, adversarial=False)
    assert found.decided / found.answers > 0.1
    assert found.agreement > 0.97
    assert row(name, found) in DOCS.read_text("utf-8").splitlines(), row(name, found)


def test_rules_agree_less_about_what_was_never_said() -> None:
    rows = []
    for name in FILES[3:]:
        found = locomo(name, adversarial=True)
        assert found.agreement > 0.75
        rows.append(row(f"{name}, adversarial", found))
    text = DOCS.read_text("utf-8").splitlines()
    assert all(row in text for row in rows), rows
