"""Recorded histories as suites: telling, asking and grading, with data and without."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from tests.scenarios.histories.conftest import LOCOMO, LONGMEMEVAL, MADE_UP_KINDS, SMALL, Write

from longspan.agents.base import BaseAgent, Message, Reply
from longspan.scenarios.histories import made_up, read_histories
from longspan.simulator.base.errors import InputError
from longspan.simulator.contract.graded_record import Exchange, Marked, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import Test
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite, make_tests

NAMES = ["locomo", "longmemeval", "beam", "personamem", "history"]


def suite(name: str, tests: int = 1, **parameters: Any) -> Suite:
    return Suite(name=name, tests=tests, scenarios={name: {key: str(p) if isinstance(p, Path) else p for key, p in parameters.items()}})


def made(name: str, tests: int = 1, seed: int = 1, **parameters: Any) -> list[Test]:
    return make_tests(suite(name, tests, **parameters), seed, "spread")


def answered(tests: Iterable[Test], reply: Callable[[Test], str]) -> dict[str, float | None]:
    """The score of each question of tests that ask one, as it is graded after its facts were journaled."""
    scores = {}
    for test in tests:
        [line] = [line for line in test.script.lines if line.asks] or [None]
        if line is not None:
            facts = json.loads(json.dumps(test.script.facts))
            record = Record([Exchange(0, line.text, reply(test), asks=True)])
            scores[test.id] = test.scenario.grade(facts, record).score
    return scores


def ideal(test: Test) -> str:
    return next(line.ideal for line in test.script.lines if line.asks)


def run(tmp_path: Path, chosen: Suite, agent: str, span: int = 2000) -> dict[str, Any]:
    """The result of a run, as its file has it."""
    [outcome] = trio.run(lambda: play_plans([plan_run(RunSettings(suite=chosen, span=span, agent=agent), tmp_path)]))
    result: dict[str, Any] = json.loads((outcome.folder / "result.json").read_text("utf-8"))
    return result


# ---- published


@pytest.mark.parametrize(
    ("name", "histories", "questions", "needed"), [("locomo", 10, 1986, 1981), ("beam", 6, 120, 107), ("personamem", 37, 589, 0)]
)
def test_every_published_question_is_a_branch_of_its_history_and_needs_the_turns_with_its_evidence(
    name: str, histories: int, questions: int, needed: int, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(name)
    tests = {test.id.removeprefix(f"{name}-"): test for test in made(name, 100, data=data)}
    trunks = {id: test for id, test in tests.items() if test.script.trunk is None}
    branches = {id: test for id, test in tests.items() if test.script.trunk is not None}
    assert (len(trunks), len(branches)) == (histories, questions)
    by_id = {history.id: history for history in read_histories(name, data)}
    with_evidence = 0
    for id, branch in branches.items():
        history = by_id[branch.script.facts["history"]]
        question = history.questions[int(id.rpartition("-q")[2])]
        [line] = branch.script.lines
        assert question.text in line.text
        assert branch.script.tags == (question.kind,)
        assert branch.script.counts == (question.kind != "adversarial")
        assert not branch.script.trunk or branch.script.trunk in trunks
        needles = [each for each in trunks[branch.script.trunk or ""].script.lines if each.needle]
        told = {turn.id: turn.text for turn in history.turns}
        assert line.needs is not None
        texts = [f"{needles[number].text}\n{needles[number].reply}" for number in line.needs]
        assert all(any(told[turn] in text for text in texts) for turn in question.evidence)
        assert len(texts) <= len(question.evidence), "an exchange may hold two pieces of evidence, and holds one at least"
        with_evidence += bool(line.needs)
    assert with_evidence == needed
    assert all(set(answered([test], ideal).values()) == {1} for test in branches.values()), "the ideal reply has full marks, of every kind"


def test_kinds_histories_and_questions_are_drawn_by_the_seed(locomo: Path) -> None:
    def drawn(seed: int) -> list[str]:
        return [test.id for test in made("locomo", 3, seed, data=locomo, questions=4, kinds=["temporal"])]

    assert drawn(1) == drawn(1) != drawn(2)
    tests = made("locomo", 3, data=locomo, questions=4, kinds=["temporal"])
    assert len(tests) == 3 * 5
    assert {tag for test in tests for tag in test.script.tags} == {"temporal"}
    adversarial = made("locomo", 1, data=locomo, questions=4, kinds=["adversarial"])
    assert all(test.script.counts for test in adversarial), "nothing else is asked"


def test_locomo_is_asked_as_it_stands_or_as_in_the_paper(locomo: Path) -> None:
    paper = made("locomo", 10, data=locomo, wording="paper", kinds=["adversarial", "temporal"])
    [question, *_] = [test for test in paper if test.script.tags == ("temporal",)]
    assert question.script.lines[0].text.startswith("When did Caroline go to the LGBTQ support group? Go by the dates")
    plain = [test for test in made("locomo", 1, data=locomo) if test.script.trunk]
    assert all(test.script.lines[0].text == test.script.facts["question"] for test in plain)
    choices = [test for test in paper if test.script.facts.get("options")]
    assert len(choices) == 444
    assert len([test for test in paper if test.script.tags == ("adversarial",)]) == 446, "the wrong answer to two is that nothing is said"
    assert {test.scenario.chance(test.script.facts) for test in choices} == {0.5}
    assert 150 < sum(ideal(test).startswith("(a)") for test in choices) < 300
    assert set(answered(choices, ideal).values()) == {1}
    wrong = {"(a)": "(b)", "(b)": "(a)"}
    assert set(answered(choices, lambda test: wrong[ideal(test)[:3]]).values()) == {0}


def test_corrected_gold_answers_and_the_ceiling_that_follows(locomo: Path, write: Write) -> None:
    published = {question.text: question.answer for history in read_histories("locomo", locomo) for question in history.questions}
    plain, named = (made("locomo", 1, data=locomo, **more) for more in ({}, {"locomo_audit": locomo.with_name("errors.json.gz")}))
    corrected = [test for test in made("locomo", 10, data=locomo, grading="locomo", gold="corrected") if test.script.trunk]
    assert all(test.script.facts["answer"] == published[test.script.facts["question"]] for test in named if test.script.trunk)
    assert {test.script.facts["gold"] for test in named if test.script.trunk} == {"right", "wrong"}
    assert sum(test.script.facts["gold"] == "wrong" for test in corrected) == 99
    assert any(test.script.facts["answer"] == "July 2023" and test.script.facts["gold"] == "wrong" for test in corrected)
    assert not any("gold" in test.script.facts for test in plain), "an audit that lies beside the data changes no run"
    marked = []
    for test in corrected:
        [line] = test.script.lines
        grade = test.scenario.grade(test.script.facts, Record([Exchange(0, line.text, line.ideal, asks=True)]))
        assert grade.score == 1
        marked.append(Marked(test.id, grade.score, grade.items))
    figures = corrected[0].scenario.metrics(marked)
    assert figures["ceiling"] == pytest.approx(1441 / 1540)
    with pytest.raises(InputError, match="gold=corrected needs the audit"):
        made("locomo", data=write({"locomo10.json": LOCOMO}), gold="corrected")


# ---- played


def test_a_file_of_each_form_is_played_by_an_agent_that_knows_the_answers(
    small: Callable[[str], tuple[str, dict[str, Any]]], write: Write, tmp_path: Path
) -> None:
    expected = {"locomo": 2, "longmemeval": 2, "beam": 2, "personamem": 2, "converted": 1, "history": 1}
    for form, rows in expected.items():
        name, files = small(form)
        result = run(tmp_path / form, suite(name, 5, data=write(files).rename(tmp_path / f"data-{form}")), "oracle")
        assert [row["score"] for row in result["tests"]] == [1] * rows, form
        assert result["score"] == 1
        assert all(row["certified"] is None and row["tags"] == [row["items"][0]["labels"]["kind"]] for row in result["tests"])
    [row] = result["tests"]
    assert (row["id"], row["trunk"], row["conversation"]) == ("history-1-q000", "history-1", "history-1-q000")
    assert [piece["needle_turn"] for piece in row["evidence"]] == [0]


def test_each_suite_works_without_data(tmp_path: Path) -> None:
    for name in NAMES:
        assert load_suite(name).scenarios == {name: {}}
        tests = made(name, 1, tokens=5000)
        assert {tag for test in tests for tag in test.script.tags} == set(MADE_UP_KINDS)
        assert len(tests) == 15
        assert set(answered(tests, ideal).values()) == {1}
    oracle = run(tmp_path, suite("history", tokens=5000), "oracle")
    assert oracle["score"] == 1
    assert {metric for metric in oracle["metrics"] if metric.startswith("history: ")} == {
        "history: mean over kinds",
        *(f"history: {kind}" for kind in MADE_UP_KINDS),
    }


def test_nobody_solves_made_up_histories_without_their_past(tmp_path: Path) -> None:
    tests = made("history", 3, tokens=5000)
    assert set(answered(tests, lambda test: "OK.").values()) == {0}
    guesses = answered(tests, lambda test: test.scenario.guess(test.script.lines[0].text) or "OK.")
    chances = [test.scenario.chance(test.script.facts) for test in tests if test.script.trunk]
    assert sum(chances) == pytest.approx(6 / 8)
    assert sum(score or 0 for score in guesses.values()) <= 3
    chosen = suite("history", 2, tokens=5000)
    newest, whole = (run(tmp_path, chosen, agent) for agent in ("notebook?window=800", "notebook"))
    known = {row["tags"][0] for row in newest["tests"] if row["score"]}
    assert known <= {"abstention", "single-session-preference"}, "what is not told of, and what may be guessed"
    assert whole["score"] > newest["score"] + 0.1


class Erring(BaseAgent):
    """Answers as it is told to, and notes what it was told."""

    told: ClassVar[list[tuple[Message, str]]] = []
    replies: ClassVar[Mapping[str, str]] = {}

    async def reply(self, message: Message) -> Reply:
        return Reply(next((reply for question, reply in self.replies.items() if question in message.text), "What?"))

    async def observe(self, message: Message, reply: str) -> None:
        self.told.append((message, reply))

    async def mark(self) -> None:
        pass

    async def rewind(self) -> None:
        pass


def test_known_errors_have_the_score_that_is_worked_out_by_hand(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = [
        {"at": "2024-03-01T18:05", "turns": [{"speaker": "user", "text": "I adopted a cat."}, {"speaker": "assistant", "text": "Lovely."}]},
        {"at": "2024-03-02T09:00", "turns": [{"speaker": "user", "text": "I have two dogs."}]},
        {"question": "How many dogs?", "answer": "2", "kind": "number", "evidence": ["2:1"]},
        {"question": "When did I adopt?", "answer": "1 March 2024", "kind": "date", "evidence": ["1:1"], "at": "2024-04-01"},
        {"question": "Which pet?", "answer": "a cat", "kind": "choice", "options": ["a cat", "a rat"]},
        {"question": "Which animal?", "answer": "a dog", "kind": "choice", "options": ["a cat", "a dog"]},
        {"question": "Which car?", "kind": "choice", "answerable": False},
    ]
    data = write({"mine.jsonl": lines}) / "mine.jsonl"
    replies = {"dogs": "3", "When": "On the 1st of March.", "pet": "(a)", "animal": "A cat.", "car": "I do not know."}
    monkeypatch.setattr(Erring, "replies", replies)
    monkeypatch.setattr(Erring, "told", [])
    result = run(tmp_path, suite("history", data=data, grading="rules"), "python:tests.scenarios.histories.test_suites:Erring")
    assert {row["id"]: row["score"] for row in result["tests"]} == {f"history-1-q{n:03}": score for n, score in enumerate((0, 1, 1, 0, 1))}
    assert result["score"] == pytest.approx(3 / 5)
    assert {name: value for name, value in result["metrics"].items() if name.startswith("history")} == pytest.approx(
        {
            "history: number": 0,
            "history: date": 1,
            "history: choice": 2 / 3,
            "history: mean over kinds": 5 / 9,
            "history: abstention": 1,
        },
        abs=1e-5,
    )
    assert [(message.text, reply, message.sent_at.isoformat()) for message, reply in Erring.told] == [
        ("I adopted a cat.", "Lovely.", "2024-03-01T18:05:00"),
        ("I have two dogs.", "", "2024-03-02T09:00:00"),
    ], "told once, at their dates"


def test_sessions_without_dates_are_a_day_apart(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Erring, "replies", {"music": "(b)"})
    monkeypatch.setattr(Erring, "told", [])
    data = write(SMALL["personamem"])
    result = run(tmp_path, suite("personamem", 2, data=data), "python:tests.scenarios.histories.test_suites:Erring")
    assert [row["score"] for row in result["tests"]] == [1, 1]
    first, *_, last = [message for message, _ in Erring.told if "rock" in message.text or "jazz" in message.text]
    assert first.text == "[System: Persona: Ada]\n\nUser: I like jazz."
    assert last.sent_at - first.sent_at == timedelta(days=1, seconds=30)


def test_locomos_f1_is_averaged_over_its_four_categories(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [
        ("What did Ada adopt?", "a cat", 4, "A black cat."),  # 2 x 1 / (2 + 1)
        ("When was that?", "7 May 2023", 2, "May 2023"),  # 2 x 2 / (2 + 3)
        ("What does she like?", "tea, jazz", 1, "jazz"),  # (0 + 1) / 2
        ("Is she kind?", "Yes; she has a cat", 3, "No"),  # 0
        ("What did Ben adopt?", None, 5, "A cat."),  # should have said that nobody said so
    ]
    locomo = copy.deepcopy(LOCOMO)
    locomo[0]["qa"] = [
        {"question": question, "evidence": ["D1:1"], "category": category} | ({"answer": gold} if gold else {"adversarial_answer": "a cat"})
        for question, gold, category, _ in questions
    ]
    monkeypatch.setattr(Erring, "replies", {question: reply for question, _, _, reply in questions})
    monkeypatch.setattr(Erring, "told", [])
    data = write({"locomo10.json": locomo})
    result = run(tmp_path, suite("locomo", data=data), "python:tests.scenarios.histories.test_suites:Erring")
    assert [row["score"] for row in result["tests"]] == pytest.approx([2 / 3, 0.8, 0.5, 0, 0])
    assert [row["counts"] for row in result["tests"]] == [True] * 4 + [False]
    mean = (2 / 3 + 0.8 + 0.5) / 4
    assert result["score"] == pytest.approx(mean, abs=1e-5)
    figures = {name.removeprefix("locomo: "): value for name, value in result["metrics"].items() if name.startswith("locomo: ")}
    numbers = [row["items"][0]["numbers"] for row in result["tests"][:4]]
    beside = {name: sum(each[name] for each in numbers) / 4 for name in ("floor", "echoed f1", "shared words")}
    assert figures == pytest.approx(
        beside
        | {"single-hop": 2 / 3, "temporal": 0.8, "multi-hop": 0.5, "open-domain": 0, "adversarial": 0}
        | {"mean over kinds": mean, "overall with adversarial": mean * 4 / 5, "f1": mean},
        abs=1e-5,
    )
    assert [(message.text, reply) for message, reply in Erring.told] == [
        ("Ada: I adopted a cat.", ""),
        ("Ben: Show me! [shares a picture: a photo of a dog]", ""),
    ], "both are users, and nobody replies"


# ---- the other deliveries


def test_the_whole_history_stands_in_the_message_of_each_question(write: Write, tmp_path: Path) -> None:
    data = write({"longmemeval_s.json": LONGMEMEVAL})
    first, second = made("longmemeval", 2, data=data, delivery="context")
    assert first.script.trunk is None
    [line] = first.script.lines
    assert line.text.splitlines()[2:] == [
        "Session 1, 2023-05-20 (Sat) 02:21:",
        "User: Hello.",
        "",
        "Session 2, 2023-05-21 (Sun) 02:21:",
        "User: Hello again.",
        "Assistant: Hi.",
        "",
        "Session 3, 2023-05-22 (Mon) 10:00:",
        "User: Two cats!",
        "Assistant: Lovely.",
        "",
        "Current date: 2023-05-30 (Tue) 23:40",
        "Question: How many cats do I have?",
    ]
    assert [test.id for test in (first, second)] == ["longmemeval-q1-q000", "longmemeval-q2_abs-q000"]
    assert run(tmp_path, suite("longmemeval", 2, data=data, delivery="context"), "oracle")["score"] == 1
    between = made("locomo", data=write({"locomo10.json": LOCOMO}) / "locomo10.json", delivery="context")
    assert "Ben: Show me! [shares a picture: a photo of a dog]" in between[0].script.lines[0].text
    assert "(a) " in between[1].script.lines[0].text, "as in the paper, by default"


def test_sessions_are_woven_with_other_tests_and_each_piece_of_evidence_has_its_distance(tmp_path: Path) -> None:
    chosen = Suite(name="both", tests=2, each={"colours": 4}, scenarios={"history": {"delivery": "weave", "tokens": 5000}, "colours": {}})
    result = run(tmp_path, chosen, "oracle", span=16_000)
    woven = [row for row in result["tests"] if row["scenario"] == "history"]
    assert [row["score"] for row in woven] == [1, 1]
    assert all(row["certified"] and row["at_distance"] and row["conversation"] == "main" for row in woven)
    assert all(len(row["items"]) == 5 for row in woven)
    assert all(piece["dealt"] > 0 for row in woven for piece in row["evidence"])
    assert {item["labels"]["kind"] for row in woven for item in row["items"]} <= set(MADE_UP_KINDS)
    left = run(tmp_path, chosen, "oracle", span=4000)
    assert [row["scenario"] for row in left["tests"] if row["status"] == "scored"] == ["colours"] * 4


def test_a_woven_history_says_when_its_sessions_were_and_asks_together_at_the_end(write: Write) -> None:
    locomo = copy.deepcopy(LOCOMO)
    locomo[0]["conversation"]["session_2"] = [{"speaker": "Ben", "dia_id": "D2:1", "text": "Nice cat."}]  # type: ignore[index]
    locomo[0]["conversation"]["session_2_date_time"] = "2:00 pm on 9 May, 2023"  # type: ignore[index]
    [test] = made("locomo", data=write({"locomo10.json": locomo}), delivery="weave")
    assert [(line.text, line.together, line.needle) for line in test.script.lines if not line.asks] == [
        ("(2023-05-08 (Mon) 13:56) Ada: I adopted a cat.", False, True),
        ("Ben: Show me! [shares a picture: a photo of a dog]", True, False),
        ("(2023-05-09 (Tue) 14:00) Ben: Nice cat.", False, False),
    ]
    first, second = [line for line in test.script.lines if line.asks]
    assert first.text == "I have some questions about the conversations of Ada and Ben, of which you were told. What did Ada adopt?"
    assert (first.needs, first.together, second.needs, second.together) == ((0,), False, (0,), True)
    assert test.script.farewell is not None
    record = Record([Exchange(0, first.text, "a cat", asks=True), Exchange(1, second.text, "A cat.", asks=True)])
    grade = test.scenario.grade(test.script.facts, record)
    assert (grade.score, [item.score for item in grade.items]) == (1, [1, 0]), "the adversarial question does not count"


@pytest.mark.parametrize("delivery", ["told", "context", "weave"])
def test_one_test_can_be_rehearsed(delivery: str) -> None:
    scenario = make_scenario("longmemeval", {"tokens": 5000, "delivery": delivery})
    for seed in range(3):
        assert rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal).grade.score == 1
        assert rehearse(scenario, seed=seed, reply=lambda text, ideal: "OK.").grade.score == 0


# ---- refused input


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"tokens": 100}, "tokens: "),
        ({"questions": 0}, "questions: "),
        ({"kinds": []}, "kinds must name at least one kind of question"),
        ({"delivery": "read"}, "delivery: "),
        ({"grading": "f1"}, "grading=f1 is not for made-up histories, which rules grade; --data locomo=FILE names others: use rules"),
        ({"gold": "corrected"}, "gold=corrected and locomo_audit are for LoCoMo's conversations: --data locomo=FILE names them"),
        ({"data": "mine.json", "tokens": 6000}, "tokens is the length of made-up histories"),
        ({"data": "mine.json", "grading": "beam-nuggets"}, "grading=beam-nuggets is not for locomo: use f1 or locomo"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        make_scenario("locomo", parameters)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_wrong_data_are_refused_in_one_line(write: Write, tmp_path: Path) -> None:
    data = write({"locomo10.json": LOCOMO, "other.json": {"no": "list"}})
    for parameters, said in [
        ({"data": tmp_path / "none.json"}, "none.json: cannot be read"),
        ({"data": data / "other.json"}, "not LoCoMo's data"),
        ({"data": data / "locomo10.json", "kinds": ["hard"]}, "no question of the kinds hard; the data has adversarial, single-hop"),
    ]:
        with pytest.raises(InputError) as error:
            made("locomo", **parameters)  # type: ignore[arg-type]
        assert said in str(error.value)
        assert "\n" not in str(error.value)


def test_histories_with_alike_names_have_tests_with_names_of_their_own(write: Write) -> None:
    names = ["Chat A", "chat-a", "x" * 60, "x" * 70, "日本", "chat-a-2"]
    lines = [
        line
        for name in names
        for line in (
            {"conversation": name, "turns": [{"speaker": "user", "text": "Hi."}]},
            {"conversation": name, "question": "Who?", "answer": "Me"},
        )
    ]
    ids = [test.id for test in made("history", 10, data=write({"mine.jsonl": lines}))]
    assert Counter(ids).most_common(1)[0][1] == 1
    assert [id for id in ids if "-q" not in id] == [
        "history-chat-a", "history-chat-a-2", f"history-{'x' * 30}", f"history-{'x' * 25}-2", "history-history", "history-chat-a-2-2",
    ]  # fmt: skip


def test_a_made_up_history_is_the_one_of_its_seed() -> None:
    [trunk] = [test for test in made("beam", tokens=5000, seed=3) if test.script.trunk is None]
    assert trunk.script.facts["benchmark"] == "made_up"
    history = made_up.write_history("3/beam/1", 5000)
    assert trunk.script.lines[0].text == history.turns[0].text
