"""A history is told turn by turn, each exactly once, and a question as it was published."""

from __future__ import annotations

import copy
import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from tests.scenarios.histories.conftest import PLAIN, Write

from longspan.scenarios.histories import History, Question, Session, Utterance, loading, made_up, read_histories
from longspan.scenarios.histories.posed_questions import CHOOSE, UNKNOWN, first_option, guess_score, pose_question
from longspan.scenarios.histories.telling import as_text, hash_history, places_by_turn, tell_turns

MAY = datetime(2023, 5, 8, 13, 56)
QUESTION = Question("0", "What?", "a cat")


def history(*sessions: str, at: datetime | None = MAY) -> History:
    """A history of sessions such as `user: Hi. | assistant: Hello.`"""
    found = []
    for number, session in enumerate(sessions, 1):
        said = [part.strip().partition(": ") for part in session.split("|")]
        turns = [Utterance(f"{number}:{place}", speaker, text) for place, (speaker, _, text) in enumerate(said, 1)]
        found.append(Session(str(number), at, tuple(turns)))
    return History("h", tuple(found), (QUESTION,))


def test_a_users_messages_are_told_with_the_replies_that_they_got() -> None:
    past = history(
        "user: Hi. | assistant: Hello. | user: Bye.",
        "assistant: Good morning! | user: Oh. | user: It is you. | assistant: Yes. | assistant: Well?",
        "system: Ada is a vet. | user: Help! | system: Be kind. | assistant: Of course.",
        "system: Nobody speaks.",
    )
    told = tell_turns(past)
    assert [(each.message, each.reply, each.session) for each in told] == [
        ("Hi.", "Hello.", 0),
        ("Bye.", "", 0),
        ("(The assistant speaks first.)", "Good morning!", 1),
        ("Oh.", "", 1),
        ("It is you.", "Yes.\n\nWell?", 1),
        ("[System: Ada is a vet.]\n\nHelp!", "", 2),
        ("[System: Be kind.]", "Of course.", 2),
        ("[System: Nobody speaks.]", "", 3),
    ]
    assert [each.at for each in told] == [MAY, None, MAY, None, None, MAY, None, MAY], "a session's first turn has its date"
    assert places_by_turn(told) == {
        "1:1": 0, "1:2": 0, "1:3": 1, "2:1": 2, "2:2": 3, "2:3": 4, "2:4": 4, "2:5": 4, "3:1": 5, "3:2": 5, "3:3": 6, "3:4": 6, "4:1": 7,
    }  # fmt: skip


def test_between_people_each_turn_is_a_message_that_names_its_speaker_and_describes_its_picture() -> None:
    turns = (
        Utterance("a", "Ada", "Look!", image="a photo of a cat"),
        Utterance("b", "Ada", " ", image="a dog"),
        Utterance("c", "user", "  "),
    )
    past = History("h", (Session("1", MAY, turns), Session("2", None, (Utterance("d", "Ben", "Nice."),))), (QUESTION,))
    assert [(each.message, each.reply, each.turns) for each in tell_turns(past)] == [
        ("Ada: Look! [shares a picture: a photo of a cat]", "", ("a",)),
        ("Ada: [shares a picture: a dog]", "", ("b",)),
        ("user: (...)", "", ("c",)),
        ("Ben: Nice.", "", ("d",)),
    ]
    assert as_text(past).splitlines() == [
        "Session 1, 2023-05-08 (Mon) 13:56:",
        "Ada: Look! [shares a picture: a photo of a cat]",
        "Ada: [shares a picture: a dog]",
        "User: (...)",
        "",
        "Session 2:",
        "Ben: Nice.",
    ]


@pytest.mark.parametrize(("name", "turns"), [("locomo", 5882), ("beam", 963), ("personamem", 0)])
def test_every_published_turn_is_told_once(name: str, turns: int, request: pytest.FixtureRequest) -> None:
    every = read_histories(name, request.getfixturevalue(name))
    told = {past.id: tell_turns(past) for past in every}
    for past in every:
        assert list(places_by_turn(told[past.id])) == [turn.id for turn in past.turns]
        assert all(each.message.strip() for each in told[past.id])
    if turns:
        assert sum(map(len, told.values())) == turns, "one for each turn of LoCoMo's, and for each pair of BEAM's"


def test_options_have_letters_and_questions_their_dates() -> None:
    asked = pose_question(Question("0", "Which?", "jazz", options=("rock", "jazz"), at=MAY), None)
    assert asked.text == f"Current date: 2023-05-08 (Mon) 13:56\nQuestion: Which?\n\n{CHOOSE}\n\n(a) rock\n(b) jazz"
    assert asked.ideal == asked.facts["answer"] == "(b) jazz"
    assert guess_score(asked.facts) == 0.5
    assert first_option(asked.text) == "(a)"
    assert first_option("Which? (a) rock (b) jazz") is None
    plain = pose_question(QUESTION, ["a dog"])
    assert (plain.text, plain.ideal, guess_score(plain.facts), first_option(plain.text)) == ("What?", "a cat", 0, None)
    published = Question("0", "Which?", "(c) jazz", options=("(b) rock", "(c) jazz"))
    assert pose_question(published, None).facts["options"] == ["(b) rock", "(c) jazz"], "published letters are kept"


def test_what_the_history_does_not_tell_is_asked_bare_or_with_two_choices_as_in_the_paper() -> None:
    question = Question("0", "What did Ben adopt?", None, "adversarial", answerable=False, trap="a cat")
    assert pose_question(question, None).text == question.text
    assert pose_question(question, None).ideal == UNKNOWN
    first, second = (pose_question(question, None, paper=True, trap_first=first) for first in (False, True))
    assert first.facts["options"] == ["(a) Not mentioned in the conversation", "(b) a cat"]
    assert second.facts["options"] == ["(a) a cat", "(b) Not mentioned in the conversation"]
    assert second.ideal == "(b) Not mentioned in the conversation"
    dated = pose_question(Question("0", "When?", "2023", "temporal"), None, paper=True).text
    assert dated.startswith("When? ")
    assert "date" in dated
    assert "short phrase" in dated


def test_facts_are_json_and_have_all_that_grading_needs() -> None:
    past = made_up.write_history(1, tokens=5_000, questions=1)
    for question in past.questions:
        rivals = made_up.wrong_values(past, question)
        facts = pose_question(question, rivals).facts
        assert json.loads(json.dumps(facts)) == facts
        assert facts["rivals"] == list(rivals)


def test_a_file_is_read_again_when_it_has_changed(write: Write, tmp_path: Path) -> None:
    lines = copy.deepcopy(PLAIN)
    path = write({"mine.jsonl": lines}) / "mine.jsonl"
    first = loading.load_histories("history", path)
    assert loading.load_histories("history", path) is first
    assert loading.load_histories("history", path.parent) == first
    lines[1]["question"] = "My lovely cat?"
    write({"mine.jsonl": lines})
    os.utime(path, (1, 1))
    assert loading.load_histories("history", path)[0].questions[0].text == "My lovely cat?"
    assert loading.load_histories("history", path.parent)[0].questions[0].text == "My lovely cat?"
    assert hash_history(first[0]) != hash_history(loading.load_histories("history", path)[0])
