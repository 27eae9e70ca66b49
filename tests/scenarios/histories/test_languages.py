"""What rules say about replies in other languages, and token F1 in scripts without spaces."""

from __future__ import annotations

import pytest

from longspan.scenarios.histories import Question
from longspan.scenarios.histories.grading import grade_question
from longspan.scenarios.histories.languages import detect_language
from longspan.scenarios.histories.rules import grade_reply
from longspan.scenarios.histories.token_f1 import token_f1
from longspan.simulator.contract.graded_record import Exchange, Grade, Record


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("我不知道", "Chinese"),
        ("わかりません。", "Japanese"),
        ("모르겠어요", "Korean"),
        ("ไม่ทราบ", "Thai script"),
        ("Не знаю", "Cyrillic script"),
        ("Das weiß ich leider nicht", "German"),
        ("Es waren 1.200,50 €.", "German"),
        ("Je ne sais pas.", "French"),
        ("No lo sé.", "Spanish"),
        ("Non lo so.", "Italian"),
        ("Não sei.", "Portuguese"),
        ("Ik weet het niet.", "Dutch"),
        ("I don't know.", None),
        ("Olive", None),
        ("Rio de la Plata", None),
        ("La La Land", None),
        ("Die Hard", None),
        ("It was Der Ring des Nibelungen.", None),
        ("She is called 奥利弗.", None),
        ("42", None),
        ("", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("gold", "reply", "score"),
    [
        ("奥利弗", "小明的猫叫奥利弗。", 2 * 3 / 11),
        ("奥利弗", "奥利弗", 1),
        ("奥利弗", "不知道", 0),
        ("猫のオリーブ", "オリーブ", 2 * 4 / 10),
        ("แมว", "แมว", 1),
        ("2023年5月8日", "2023年5月8日。", 1),
        ("Olive the cat", "a cat, Olive", 1),
    ],
)
def test_f1_compares_characters_where_words_have_no_spaces(gold: str, reply: str, score: float) -> None:
    assert token_f1(reply, gold) == pytest.approx(score)


CAT = Question("1", "What is my cat called?", "Olive")
COST = Question("2", "What did the trip cost?", "1.200,50 €")
NEVER = Question("3", "What is my dog called?", None, answerable=False, trap="Olive")


@pytest.mark.parametrize(
    ("question", "reply", "score"),
    [
        (CAT, "Deine Katze heißt Olive.", 1),
        (CAT, "Deine Katze heißt nicht Olive.", None),
        (CAT, "Deine Katze heißt Mia.", None),
        (CAT, "Das weiß ich leider nicht", None),
        (CAT, "我不知道", None),
        (CAT, "Olive", 1),
        (CAT, "Mia", None),
        (COST, "Es waren 1.200,50 €.", 1),
        (COST, "Es waren 1.300,50 €.", None),
        (NEVER, "Das weiß ich leider nicht", None),
        (NEVER, "我不知道", None),
        (NEVER, "Das hast du mir nicht gesagt.", 1),
        (NEVER, "你的狗叫奥利弗。", None),
    ],
)
@pytest.mark.parametrize("rivals", [None, ["Ashford"]])
def test_rules_recognise_only_values_in_other_languages(
    question: Question, reply: str, score: float | None, rivals: list[str] | None
) -> None:
    verdict = grade_reply(question, reply, rivals)
    if rivals is None or reply != "Mia":
        assert (None if verdict is None else verdict.score) == score, verdict


def graded(benchmark: str, reply: str, **facts: object) -> Grade:
    asked = {"id": "1", "question": CAT.text, "answer": "Olive", "kind": "", "answerable": True, "options": [], "rubric": [], "trap": ""}
    record = Record(exchanges=(Exchange(1, CAT.text, reply, asks=True),))
    return grade_question({"benchmark": benchmark, **asked, **facts}, record)


@pytest.mark.parametrize("reply", ["Das weiß ich leider nicht", "我不知道"])
@pytest.mark.parametrize(
    ("benchmark", "facts", "asks"),
    [
        ("history", {}, 1),
        ("history", {"answerable": False, "answer": None}, 1),
        ("history", {"grading": "rules"}, 0),
        ("locomo", {"kind": "adversarial", "answerable": False, "answer": None}, 1),
        ("made_up", {"rivals": ["Mia"]}, 0),
    ],
)
def test_an_undecided_reply_names_its_language(benchmark: str, facts: dict[str, object], asks: int, reply: str) -> None:
    grade = graded(benchmark, reply, **facts)
    assert grade.score is None
    assert len(grade.asks) == asks, "a judge may decide"
    assert f"the reply is in {detect_language(reply)}, which rules do not read" in grade.reason
