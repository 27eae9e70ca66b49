"""Made-up meetings: their size, their questions, and grading answers by rules."""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.elitr.corpus import Meeting, count_tokens, cut_parts
from longspan.scenarios.elitr.made_up import MAX_TOKENS, MIN_TOKENS, write_meeting
from longspan.scenarios.elitr.rules import by_rule
from longspan.simulator.contract.graded_record import MAX_CHARACTERS

SEEDS = range(12)


@pytest.fixture(scope="module")
def meetings() -> list[Meeting]:
    return [write_meeting(Random(seed), "made_dev_001") for seed in SEEDS]


def rule_of(meeting: Meeting, at: int) -> dict[str, Any]:
    found: dict[str, Any] = meeting.facts(meeting.questions[at], "qa")["rule"]
    return found


def test_a_meeting_has_five_to_eighteen_thousand_tokens_in_the_manner_of_the_corpus(meetings: list[Meeting]) -> None:
    for meeting in meetings:
        assert MIN_TOKENS <= count_tokens(meeting.text) <= MAX_TOKENS
        assert all(marker in meeting.text for marker in ("(PERSON", "[PERSON", "[ORGANIZATION", "<unintelligible/>", "uh", "- "))
        assert any(not line.startswith("(") for line in meeting.lines), "what somebody says goes on in bare lines"


@pytest.mark.parametrize("size", [3000, 6000, 30_000])
def test_a_meeting_is_never_larger_than_asked_for(size: int) -> None:
    sizes = [count_tokens(write_meeting(Random(seed), "x", size).text) for seed in range(4)]
    assert all(0.9 * size <= each <= size for each in sizes)


def test_every_type_is_asked_at_every_position(meetings: list[Meeting]) -> None:
    for meeting in meetings:
        assert set(Counter((each.type, each.place) for each in meeting.questions).values()) == {1}
        assert len(meeting.questions) == 16


def test_what_a_question_rests_on_stands_where_it_says(meetings: list[Meeting]) -> None:
    for meeting in meetings:
        ends = list(accumulate(count_tokens(line + "\n") for line in meeting.lines))
        for asked in meeting.questions:
            thirds = {min(2, 3 * ends[line] // (ends[-1] + 1)) for line in asked.evidence}
            if asked.place == "S":
                assert not asked.evidence or len(thirds) > 1
            else:
                assert thirds == {"BME".index(asked.place)}


def test_the_answer_stands_in_the_lines_that_the_question_rests_on(meetings: list[Meeting]) -> None:
    for meeting in meetings:
        for at, asked in enumerate(meeting.questions):
            rule = rule_of(meeting, at)
            if asked.id == "1":
                assert {line[1:].partition(")")[0] for line in meeting.lines if line.startswith("(")} == set(rule["expected"])
                continue
            told = "\n".join(meeting.lines[line] for line in asked.evidence)
            assert all(each in told for each in rule["besides"] or rule["expected"]), "of a sum the terms"


def test_conv_leans_on_the_question_before_now_and_then(meetings: list[Meeting]) -> None:
    odd = sum(asked.differs for meeting in meetings for asked in meeting.questions)
    assert 0.05 < odd / (16 * len(meetings)) < 0.3
    for meeting in meetings:
        for before, asked in pairwise(meeting.questions):
            if asked.differs:
                assert re.search(r"\b(it|that)\b", asked.conv)
                assert not re.search(r"\b(it|that)\b", asked.qa)
                assert before.place == asked.place


def test_the_answer_has_full_marks_and_other_answers_have_none(meetings: list[Meeting]) -> None:
    for meeting in meetings:
        for at, asked in enumerate(meeting.questions):
            rule = rule_of(meeting, at)
            for reply in (asked.answer, f"That would be: {asked.answer}", f"**{asked.answer}**\n\n“Patience.” – Some Author"):
                assert by_rule(rule, asked.qa, reply)[0] == 1, (asked, reply)
            for reply in ("", "OK.", "I don't know.", "The transcript does not say so.", asked.qa):
                assert by_rule(rule, asked.qa, reply)[0] == 0, (asked, reply)


def test_the_answers_of_another_meeting_are_worth_little(meetings: list[Meeting]) -> None:
    scores = [
        by_rule(rule_of(mine, at), mine.questions[at].qa, mine_other.answer)[0]
        for mine, other in pairwise(meetings)
        for at, mine_other in enumerate(other.questions)
    ]
    assert sum(scores) / len(scores) < 0.1


def names(**ways: list[str]) -> dict[str, Any]:
    return {"kind": "names", "expected": ["PERSON3"], "values": {f"PERSON{n}": [f"PERSON{n}"] for n in (3, 5, 33)}, "besides": []} | ways


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("[PERSON3]", 1),
        ("Person 3 will.", 1),
        ("(person_3)", 1),
        ("[PERSON33]", 0),
        ("PERSON3 or PERSON5", 0.5),
        ("Not PERSON5, but PERSON3.", 1),
        ("PERSON3, PERSON5 and PERSON33", 1 / 3),
    ],
)
def test_names_count_as_words_and_hedges_share(reply: str, score: float) -> None:
    assert by_rule(names(), "Who?", reply)[0] == pytest.approx(score)


@pytest.mark.parametrize(
    ("reply", "score"),
    [("137", 1), ("137 dialogues: 56 by [ORGANIZATION16] and 81 by [ORGANIZATION23]", 1), ("56", 0), ("136", 0), ("1370", 0), ("140", 0)],
)
def test_a_sum_may_name_its_terms(reply: str, score: float) -> None:
    rule = {"kind": "numbers", "expected": ["137"], "values": {}, "besides": ["56", "81"]}
    assert by_rule(rule, "How many did the two of them record?", reply)[0] == score


@pytest.mark.parametrize(("reply", "score"), [("twenty-three", 1), ("There are twenty three.", 1), ("23.", 1), ("13", 0), ("PERSON23", 0)])
def test_numbers_may_be_words(reply: str, score: float) -> None:
    assert by_rule({"kind": "numbers", "expected": ["23"], "values": {}, "besides": []}, "How many?", reply)[0] == score


def test_a_date_may_be_written_in_many_ways(meetings: list[Meeting]) -> None:
    for meeting in meetings[:4]:
        (at,) = (at for at, asked in enumerate(meeting.questions) if (asked.type, asked.place) == ("when", "S"))
        rule = rule_of(meeting, at)
        day, month = str(rule["expected"][0]).split()
        for reply in (f"{month} {day}", f"the {day}th of {month}", f"on {day} {month[:3]}.", f"{month} {day}, 2024"):
            if not reply.startswith("the") or day not in ("21", "22", "23"):
                assert by_rule(rule, "When?", reply)[0] == 1, reply


@given(st.text())
@settings(max_examples=60)
def test_any_reply_gets_a_score(reply: str) -> None:
    meeting = WRITTEN
    for at, asked in enumerate(meeting.questions):
        score, why = by_rule(rule_of(meeting, at), asked.qa, reply)
        assert 0 <= score <= 1
        assert why


WRITTEN = write_meeting(Random(1), "made_dev_001", 3000)


def test_as_much_as_is_read_of_a_reply_is_no_trouble() -> None:
    reply = ("not PERSON5, or maybe 14 June; " * MAX_CHARACTERS)[:MAX_CHARACTERS]
    for at, asked in enumerate(WRITTEN.questions):
        by_rule(rule_of(WRITTEN, at), asked.qa, reply)


@given(st.lists(st.text(alphabet="ab ", max_size=40), min_size=1, max_size=60), st.integers(5, 50))
def test_parts_are_the_whole(lines: list[str], size: int) -> None:
    found = cut_parts(lines, size)
    assert [at for part in found for at in part] == list(range(len(lines)))
    assert all(found)


def test_the_same_seed_gives_the_same_meeting() -> None:
    assert write_meeting(Random(1), "made_dev_001", 3000) == WRITTEN
    assert write_meeting(Random(2), "made_dev_001", 3000).id != WRITTEN.id
