"""How answers are graded: by rules, by LoCoMo's F1, by a judge's verdicts, by the order of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scenarios.histories.conftest import published
from tests.timing import growth

from longspan.scenarios.histories import History, Question, Session, Utterance, read_histories
from longspan.scenarios.histories.corrections import audit_of, score_ceiling
from longspan.scenarios.histories.event_order import align_events, lines_of, score_order
from longspan.scenarios.histories.grading import GRADINGS, grade_question
from longspan.scenarios.histories.token_f1 import locomo_score, token_f1
from longspan.simulator.base.errors import InputError
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, Exchange, Grade, Item, Record


def facts(benchmark: str, answer: str | None, kind: str = "", **more: Any) -> dict[str, Any]:
    asked = {"question": "What did Ada adopt?", "answerable": True, "options": [], "rubric": [], "trap": ""}
    return {"benchmark": benchmark, "id": "1", "answer": answer, "kind": kind} | asked | more


def grade(about: Mapping[str, Any], reply: str, said: Callable[[str], Any] | None = None) -> Grade:
    """Grade a reply; `said` is what a judge answers to a prompt. It is asked until nothing is left to be asked."""
    judged: dict[str, Any] = {}
    while True:
        found = grade_question(about, Record(exchanges=(Exchange(7, about["question"], reply, asks=True),), judged=judged))
        new = {query.about: said(query.prompt) for query in found.asks if query.about not in judged} if said else {}
        if not new:
            return found
        judged |= new


def no_judge(prompt: str) -> Any:
    raise AssertionError("rules decide this")


EVENTS = ["Meeting Ben", "First draft", "Workshop", "Feedback", "Revision"]
ORDER = facts("beam", "Five.", "event_ordering", rubric=EVENTS)
NUGGETS = facts(
    "beam", "300 words, from 1,200 to 1,500.", "multi_session_reasoning", rubric=["states: 300 words", "states: from 1,200", "a", "b"]
)
OPTIONS = ["(a) Rice", "(b) Soup with leeks", "(c) Soup with beans", "(d) Bread"]
CHOICE = facts("personamem", OPTIONS[1], options=OPTIONS)
NEVER = facts("locomo", None, "adversarial", answerable=False, trap="a dog", grading="locomo")
ADOPTED = facts("locomo", "a cat", "single-hop", grading="locomo")
SUNDAY = facts("locomo", "7 May 2023", "temporal", grading="locomo-strict")
DAYS = facts("longmemeval", "18 days", "temporal-reasoning")
NOW = facts("longmemeval", "Ashford", "knowledge-update", trap="Oakham")


@pytest.mark.parametrize(
    ("about", "reply", "score"),
    [
        (ADOPTED, "A cat!", 1),
        (ADOPTED, "She adopted a cat.", 1),
        (ADOPTED, "I don't know.", 0),
        (ADOPTED, "", 0),
        (SUNDAY, "It was on May 7th.", 1),
        (SUNDAY, "8 May, 2023", 0),
        (NEVER, "This was not mentioned.", 1),
        (NEVER, "A dog.", 0),
        (DAYS, "18", 1),
        (DAYS, "I have no information about that.", 0),
        (NOW, "Ashford, not Oakham.", 1),
        (CHOICE, "(b)", 1),
        (CHOICE, "The answer is (b), as you like leeks.", 1),
        (CHOICE, "It is (a) or (d). <final_answer>(b)</final_answer>", 1),
        (CHOICE, "b and c", 0),
        (CHOICE, "(c)", 0),
        (CHOICE, "Something with vegetables", 0),
        (NUGGETS, "300 words, from 1,200 to 1,500", 1),
        (NUGGETS, "I don't know.", 0),
        (facts("made_up", "Ashford", rivals=["Oakham"]), "Elmfold", 0),
        (facts("history", "Olive"), "Her name is Olive.", 1),
    ],
)
def test_rules_decide_what_they_can_and_say_why(about: dict[str, Any], reply: str, score: float) -> None:
    found = grade(about, reply, no_judge)
    (item,) = found.items
    assert (found.score, item.score, item.labels["by"], item.turn, found.turns) == (score, score, "rules", 7, (7,))
    assert found.reason == item.note != ""


@pytest.mark.parametrize(
    ("about", "reply"),
    [
        (ADOPTED, "a kitten"),
        (ADOPTED, "The memory does not say what, but there is talk of a cat."),
        (SUNDAY, "The Sunday before Ada's birthday"),
        (NEVER, "Ada adopted two birds."),
        (DAYS, "19 days"),
        (NOW, "It was Oakham once; now it is Ashford or Oakham."),
        (NUGGETS, "By 300 words."),
        (facts("history", "Olive"), "The one from the shelter."),
        (facts("history", "Olive", rubric=["names Olive"]), "The one from the shelter."),
        (ORDER, "1. We met.\n2. Then the draft."),
    ],
)
def test_what_rules_cannot_decide_is_left_to_a_judge(about: dict[str, Any], reply: str) -> None:
    found = grade(about, reply)
    assert (found.score, found.items[0].labels["by"]) == (None, "nobody")
    assert "--judge" in found.reason
    assert found.asks
    assert all(about["question"] in query.prompt or "snippet" in query.prompt for query in found.asks)
    assert grade(about, reply, lambda prompt: "it is down").score is None


def by_label(prompt: str) -> dict[str, Any]:
    """A judge who goes by the instructions that it is given."""
    if "strict" in prompt:
        return {"why": "It is vague.", "label": "WRONG"}
    return {"why": "It is so.", "label": "CORRECT"} if "generous" in prompt else {"why": "It is so.", "correct": "off by one" in prompt}


@pytest.mark.parametrize(
    ("about", "score"), [(ADOPTED, 1), (ADOPTED | {"grading": "locomo-strict"}, 0), (DAYS, 1), (NOW, 0), (facts("history", "Olive"), 0)]
)
def test_a_judge_decides_by_the_rubric_of_the_benchmark_and_of_the_kind(about: dict[str, Any], score: float) -> None:
    found = grade(about, "Nineteen, or some animal", by_label)
    assert (found.score, found.items[0].labels["by"]) == (score, "judge")
    assert found.reason.startswith("judged: It is")


def test_the_judge_of_an_answer_to_what_was_never_said_is_told_so() -> None:
    (query,) = grade(NEVER, "Ada adopted two birds.").asks
    assert "cannot be answered" in query.prompt
    assert "Nobody said this" in query.prompt


# BEAM: statements, and events in order.


def test_nuggets_are_averaged_and_halves_count_half() -> None:
    scores = iter([1, 0.5, 0, 1])
    found = grade(NUGGETS, "By 300 words, from 1,000.", lambda prompt: {"why": "", "score": next(scores)})
    assert found.score == 2.5 / 4
    assert found.items[0].numbers == {"nuggets": 2.5 / 4, "whole nuggets": 2 / 4}
    assert "2 of 4" in found.reason
    assert "from 1,200 (0.5)" in found.reason


def test_rules_find_dates_numbers_and_names_that_statements_want() -> None:
    wanted = [f"LLM response should state: {what}" for what in ("43 days", "ArtSpace Gallery", "June 12, 2020")]
    about = facts("beam", "They were there.", "information_extraction", rubric=wanted)
    found = grade(about, "43 days at the ArtSpace Gallery, from 12 June 2020 on", no_judge)
    assert (found.score, found.items[0].labels["by"], found.items[0].numbers["nuggets"]) == (1, "rules", 1)
    found = grade(about, "44 days at the ArtSpace Gallery, from 12 June 2020 on", lambda prompt: {"why": "", "score": 0.5})
    assert (found.score, found.items[0].labels["by"]) == (pytest.approx(2.5 / 3), "judge")
    preferred = grade(about | {"kind": "preference_following"}, "43 days at the ArtSpace Gallery, from 12 June 2020 on")
    assert len(preferred.asks) == 3


@pytest.mark.parametrize("score", [2, -1, 0.7, "1", None])
def test_a_score_that_is_not_on_the_scale_is_none(score: Any) -> None:
    found = grade(NUGGETS, "By 300 words", lambda prompt: {"why": "", "score": score})
    assert found.score is None
    assert "undecided" in found.reason


def same_words(prompt: str) -> dict[str, Any]:
    """A judge to whom snippets are the same that share a word of four letters."""
    fence = prompt.split('"')[1]
    _, first, _, second, _ = prompt.rsplit(f"{fence}\n", 4)
    return {"same": any(len(word) > 3 and word in second.casefold() for word in first.casefold().split())}


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("\n".join(EVENTS), 1.0),
        ("1. Meeting Ben\n\n2) First draft\n- Workshop\n* Feedback\n5: Revision", 1.0),
        ("\n".join(reversed(EVENTS)), 0.0),
        # ranks 1 2 3 4 5 against 1 2 6 6 6: 7 of 10 pairs in order, 3 tied; tau-b 7 / sqrt(10 * 7)
        ("We met: meeting\nThe draft", (1 + 7 / (10 * 7) ** 0.5) / 2),
        # the line before them is ranked 1 and 7 by the other: ranks 1 2 3 4 5 7 against 2 3 4 5 6 1; 10 of 15 in order, 5 not
        ("Here they are in order:\n" + "\n".join(EVENTS), (1 + (10 - 5) / 15) / 2),
        ("Feedback\nRevision\nMeeting Ben\nFirst draft\nWorkshop", (1 + (4 - 6) / 10) / 2),
    ],
)
def test_events_in_order_are_graded_by_kendalls_tau(reply: str, score: float) -> None:
    found = grade(ORDER, reply, same_words)
    assert found.score == pytest.approx(score)
    assert found.items[0].numbers["tau"] == pytest.approx(score)


def test_a_reply_that_names_no_event_has_no_order() -> None:
    found = grade(ORDER, "We talked about other things.", same_words)
    assert found.score == 0
    assert found.items[0].numbers == {"tau": pytest.approx((1 - (2 / 6) ** 0.5) / 2), "event f1": 0}


def test_a_line_stands_for_one_event_and_the_judge_is_asked_no_more_than_that_takes() -> None:
    asked: list[str] = []

    def said(prompt: str) -> dict[str, Any]:
        asked.append(prompt)
        return same_words(prompt)

    found = grade(ORDER, "The draft\nThe draft again", said)
    assert found.items[0].numbers["event f1"] == pytest.approx(2 / (2 + 1 + 4))
    assert len(asked) == 2 + 5, "the first line until it is found; the second line with all, since it does not wait"


def test_only_so_many_lines_are_compared() -> None:
    lines = [f"line {number}" for number in range(5_000)]
    aligned = align_events(lines, EVENTS, lambda line, event: False)
    assert (len(aligned.events), aligned.unknown) == (5_000, [])
    assert score_order(aligned.events, 5).f1 == 0
    assert lines_of(" \n a \n\n--\nb") == ["a", "b"]
    assert (score_order([0], 1).tau, score_order([None], 1).tau) == (1, 0)


# PersonaMem.


def test_an_option_is_chosen_by_its_letter_or_its_words(personamem: Path) -> None:
    for history in read_histories("personamem", personamem)[:10]:
        for question in history.questions:
            about = facts("personamem", question.answer, question.kind, options=list(question.options), question=question.text)
            assert question.answer is not None
            letter, words = question.answer[1], question.answer[3:].strip()
            replies = [f"({letter})", f"Answer: {letter.upper()}", words, f"I pick {letter.upper()}.", f'{{"answer": "{letter}"}}']
            assert [grade(about, reply, no_judge).score for reply in replies] == [1] * 5
            other = next(option[1] for option in question.options if option != question.answer)
            assert [grade(about, reply, no_judge).score for reply in (f"({other})", f"({letter}) and ({other})", "Yes.")] == [0] * 3


# LoCoMo's F1.


@pytest.mark.parametrize(
    ("kind", "reply", "gold", "score"),
    [
        ("single-hop", "Adopted THE cat, and cats!", "a cat", 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("single-hop", "Researching adoptions", "research adoption agencies", 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        ("single-hop", "as", "a class", 0),
        ("single-hop", "a, an, the", "a cat", 0),
        ("temporal", "the week before 9 June, 2023", "The week before 9 June 2023", 1),
        ("open-domain", "Likely no", "Likely no; since this one went badly", 1),
        ("multi-hop", "pottery, camping, dogs", "camping, painting the house", (1 + 0) / 2),
        ("multi-hop", "pottery and camping", "camping, pottery", (2 / 3 + 2 / 3) / 2),
        ("adversarial", "That is Not Mentioned here.", "", 1),
        ("adversarial", "I don't know.", "", 0),
    ],
)
def test_token_f1_by_hand(kind: str, reply: str, gold: str, score: float) -> None:
    assert locomo_score(kind, reply, gold) == pytest.approx(score)


@pytest.mark.parametrize(
    ("kind", "reply", "gold", "echoed", "shared"),
    [
        ("single-hop", "Which agencies did Ann ask?", "adoption agencies", 2 / 7, 1),
        ("single-hop", "adoption agencies", "adoption agencies", 1 / 2, 1 / 2),
        ("multi-hop", "agencies, camping", "agencies, camping", 1 / 2, 1 / 2),
        ("single-hop", "adoption", "adoption agencies", 0, 0),
        ("single-hop", "", "adoption agencies", 0, 0),
    ],
)
def test_the_part_of_f1_that_is_the_questions_own_words(kind: str, reply: str, gold: str, echoed: float, shared: float) -> None:
    about = facts("locomo", gold, kind, question="Which agencies did Ann ask?")
    numbers = grade(about, reply, no_judge).items[0].numbers
    assert (numbers["echoed f1"], numbers["shared words"]) == (pytest.approx(echoed), pytest.approx(shared))


def test_f1_is_locomos_score_unless_a_judge_is_wanted_and_stands_beside_the_judges() -> None:
    about = facts("locomo", "adoption agencies", "single-hop", gold="published")
    found = grade(about, "agencies", no_judge)
    assert (found.score, found.items[0].labels) == (pytest.approx(2 / 3), {"kind": "single-hop", "by": "f1", "gold": "published"})
    judged = grade(about | {"grading": "locomo"}, "agencies", by_label)
    assert (judged.score, judged.items[0].numbers) == (1, {"f1": pytest.approx(2 / 3)})


def test_the_letter_of_an_option_stands_for_its_words() -> None:
    about = facts("locomo", "(b) Not mentioned in the conversation", "adversarial", answerable=False)
    about["options"] = ["(a) a dog", "(b) Not mentioned in the conversation"]
    for grading in ("f1", "locomo"):
        assert [grade(about | {"grading": grading}, reply, no_judge).score for reply in ("b", "(B)", "(a)", "a dog")] == [1, 1, 0, 0]


# Hostile replies.

ABOUT = [ADOPTED, SUNDAY, NEVER, DAYS, NOW, CHOICE, NUGGETS, ORDER, ADOPTED | {"grading": "f1", "kind": "multi-hop"}]


@settings(max_examples=40)
@given(
    st.text() | st.lists(st.sampled_from("a b (c) , 18 May - not know cat \n <final_answer> 1.".split(" "))).map(" ".join),
    st.sampled_from(ABOUT),
)
def test_no_reply_makes_a_grader_raise(reply: str, about: dict[str, Any]) -> None:
    assert grade(about, reply, lambda prompt: {"label": "WRONG", "why": "", "correct": False, "score": 0, "same": False}).score is not None


@pytest.mark.parametrize("piece", ["a cat, ", "line\n", "not known. ", "(a) ", "18 days or "])
def test_time_grows_linearly(piece: str) -> None:
    def work(size: int) -> None:
        for about in ABOUT:
            grade(about, (piece * size)[:size])

    assert growth(work, MAX_CHARACTERS // 25, times=5) < 15


def test_f1_of_equal_texts_is_one_and_of_nothing_is_zero() -> None:
    assert (token_f1("Cats & dogs", "dogs, cat"), token_f1("", ""), token_f1("the", "the")) == (1, 0, 0)


def test_each_benchmark_has_a_way_to_be_graded() -> None:
    assert set(GRADINGS) == {"locomo", "longmemeval", "beam", "personamem", "history", "made_up"}


# Corrected gold answers.


def test_the_audit_beside_the_data_corrects_99_gold_answers() -> None:
    data = published("locomo") / "locomo10.json.gz"
    audit = audit_of(data, None)
    assert audit is not None
    histories = read_histories("locomo", data)
    changed = [
        (question.answer, audit.correct_question(history, question).answer, audit.label(history, question))
        for history in histories
        for question in history.questions
    ]
    assert len(audit) == sum(before != after for before, after, _ in changed) == 99
    assert ("June 2023", "July 2023", "wrong") in changed
    labels = [label for history in histories for each in history.questions if each.answerable for label in [audit.label(history, each)]]
    items = [Item(name="", score=1, labels={"gold": label}) for label in labels]
    assert score_ceiling(items) == pytest.approx(1441 / 1540)
    assert score_ceiling([Item(name="", score=1)]) is None


def test_an_audit_of_other_questions_is_told_and_none_is_none(tmp_path: Path) -> None:
    path = tmp_path / "errors.json"
    assert audit_of(tmp_path / "locomo10.json", None) is None
    entry = {"question_id": "locomo_0_qa0", "question": "Who?", "error_type": "AMBIGUOUS", "correct_answer": "Ada"}
    path.write_text(json.dumps([entry]), "utf-8")
    audit = audit_of(tmp_path / "locomo10.json", None)
    assert audit is not None
    session = Session("s", None, (Utterance("t", "Ada", "Hello."),))
    history = History("conv-26", (session,), (Question("0", "Who?", "Ben"), Question("1", "When?", "now")))
    assert [audit.correct_question(history, question).answer for question in history.questions] == ["Ada", "now"]
    assert audit.correct_question(replace(history, id="mine"), history.questions[0]).answer == "Ben"
    with pytest.raises(InputError, match=r"errors.json: corrects question 0 of conv-26, 'Who\?', but the data asks 'When\?'"):
        audit.correct_question(history, Question("0", "When?", "now"))
    for content, wrong in (("{}", "not the audit"), (json.dumps([{**entry, "error_type": 1}]), "entry 0: error_type"), ("[", "not JSON")):
        path.write_text(content, "utf-8")
        with pytest.raises(InputError, match=wrong):
            audit_of(tmp_path / "locomo10.json", path)


def test_who_says_that_it_cannot_be_told_is_not_wrong_where_the_gold_answer_says_so() -> None:
    found = grade(facts("locomo", "Cannot be determined from the transcript", "single-hop", grading="locomo"), "I don't know.")
    assert found.score is None


def test_what_a_judge_is_to_answer_is_plain_enough_for_all_apis() -> None:
    asks = [query for about in (ADOPTED, DAYS, NUGGETS, ORDER) for query in grade(about, "Nineteen, or some animal").asks]
    assert len({query.version for query in asks}) == 4
    for query in asks:
        assert query.form is not None
        assert set(query.form["required"]) == set(query.form["properties"])
        assert all(set(each) <= {"type", "title", "enum"} for each in query.form["properties"].values()), query.form
