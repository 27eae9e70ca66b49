"""The scenario: the messages in each setting, mode and delivery, and the scores."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.scenarios.elitr.files import read_sheets
from longspan.scenarios.elitr.scenario import Elitr
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli.options import GridOptions
from longspan.simulator.contract.graded_record import Marked, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.queries import Query
from longspan.simulator.contract.script import Script
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

SMALL = {"tokens": 3000}


def scenario(**parameters: Any) -> Elitr:
    found = make_scenario("elitr", parameters)
    assert isinstance(found, Elitr)
    return found


def played(out: Path, agent: str, *settings: str, tests: int = 1, data: tuple[str, ...] = ()) -> Result:
    suite = load_suite("elitr").apply_changes(settings, list(data), [], tests)
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=16_000, seed=2023, agent=agent), out)])
    assert outcome.error is None
    assert outcome.result is not None
    return outcome.result


WAYS = [
    ("mode=single",),
    ("mode=multi",),
    ("setting=conv",),
    ("delivery=interleave",),
    ("delivery=interleave", "mode=single"),
    ("delivery=interleave", "setting=conv"),
    ("markers=true", "split=test"),
]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_oracle_has_full_marks_and_silent_none(tmp_path: Path, way: tuple[str, ...]) -> None:
    for agent, score in (("oracle", 1), ("silent", 0)):
        result = played(tmp_path, agent, "tokens=5000", *way)
        assert result.score == score
        assert result.certified == result.at_distance == 1
        assert len([item for test in result.tests for item in test.items]) == (1 if way == WAYS[4] else 16)


def test_in_the_long_conversation_every_question_comes_a_span_after_its_evidence(tmp_path: Path) -> None:
    result = played(tmp_path, "oracle", "tokens=5000", "delivery=interleave", tests=2)
    for test in result.tests:
        assert test.at_distance
        assert max(each.dealt or 0 for each in test.evidence) > 0.8 * 16_000


def test_it_is_woven_among_other_suites(tmp_path: Path) -> None:
    suite = load_suite("ltm+elitr").apply_changes(["delivery=interleave", "tokens=4000"], [], ["colours", "jokes", "elitr"], 1)
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=16_000, seed=1, agent="oracle"), tmp_path)])
    assert outcome.result is not None
    assert (outcome.result.score, outcome.result.max_score) == (3, 3)
    assert outcome.result.switch_rate > 0


def asked_in(script: Script) -> list[str]:
    return [line.text for line in script.lines if line.asks]


def test_single_is_a_fresh_conversation_for_each_question_and_multi_one_for_each_meeting() -> None:
    single = dict(scenario(**SMALL).series(2, "5/elitr"))
    multi = dict(scenario(mode="multi", **SMALL).series(2, "5/elitr"))
    assert list(single)[:2] == ["001-01", "001-02"]
    assert len(single) == 32
    assert list(multi) == ["001", "002"]
    assert all(script.alone for script in (*single.values(), *multi.values()))
    for number, script in multi.items():
        alone = [asked_in(each) for id, each in single.items() if id.startswith(number)]
        assert all(len(each) == 1 for each in alone)
        transcript, *_ = asked_in(script)[0].rpartition("\n\n")
        assert [each for (each,) in alone] == [f"{transcript}\n\n{question.rpartition(chr(10) * 2)[2]}" for question in asked_in(script)]


def test_qa_and_conv_ask_the_same_in_other_words() -> None:
    (qa,) = (script for _, script in scenario(mode="multi", tokens=4000).series(1, "5/elitr"))
    (conv,) = (script for _, script in scenario(setting="conv", tokens=4000).series(1, "5/elitr"))
    assert [line.ideal for line in qa.lines] == [line.ideal for line in conv.lines]
    odd = [(a, b) for a, b in zip(asked_in(qa), asked_in(conv), strict=True) if a != b]
    assert 0 < len(odd) < 8
    assert [each["differs"] for each in conv.facts["questions"]].count(True) == len(odd)


def test_markers_stand_around_the_question() -> None:
    (_, script), *_ = scenario(markers=True, **SMALL).series(1, "5/elitr")
    assert re.search(r"\n\nQUESTION: Who took part in the meeting\?\nANSWER:$", script.lines[0].text)


def test_the_answer_is_not_in_the_question_nor_the_transcript_twice() -> None:
    (script,) = (script for _, script in scenario(mode="multi", **SMALL).series(1, "5/elitr"))
    first, *others = script.lines
    assert all(len(line.text) < 200 for line in others)
    assert first.text.count("(PERSON4); a line") == 1


@pytest.mark.parametrize(
    ("parameters", "wrong"),
    [
        ({"setting": "conv", "mode": "single"}, "setting=conv asks questions that refer back to earlier ones: use mode=multi"),
        ({"questions": "/nowhere.zip", "rubric": "rules"}, "rubric=rules cannot grade the published answers, which are free text"),
        ({"tokens": 100}, "tokens: must be at least 3000"),
        ({"rubric": "seven"}, "rubric"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        scenario(**parameters)


# Points of a judge.


def record_of(script: Script, reply: str, said: dict[str, Any]) -> Record:
    played_ = rehearse(_Fixed(script), seed=0, reply=lambda text, ideal: reply)
    return Record(played_.record.exchanges, judged=said)


class _Fixed(Elitr):
    """Says a script that was written before."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        object.__setattr__(self, "given", script)

    def make(self, random: Any) -> Script:
        given: Script = object.__getattribute__(self, "given")
        return given


def judged(rubric: str, text: str | None, mode: str = "single") -> tuple[Any, list[Query[Any]]]:
    made = scenario(rubric=rubric, mode=mode, **SMALL)
    _, script = next(iter(made.series(1, "5/elitr")))
    unasked = made.grade(script.facts, record_of(script, "[PERSON1]", {}))
    said = {query.about: {"text": text} for query in unasked.asks} if text is not None else {}
    return made.grade(script.facts, record_of(script, "[PERSON1]", said)), list(unasked.asks)


@pytest.mark.parametrize(
    ("rubric", "text", "score"),
    [
        ("ten", r"Fine. \boxed{10}", 1),
        ("ten", r"\boxed{5} It leaves much out; a perfect answer would be \boxed{10}.", 0.5),
        ("ten", r"So, in the form \boxed{n}: \boxed{ 7 }.", 0.7),
        ("ten", r"\boxed{\text{9}}", 0.9),
        ("ten", r"\boxed{0}", None),
        ("ten", r"\boxed{11}", None),
        ("ten", r"\boxed{-1}", None),
        ("ten", r"\boxed{7.5}", None),
        ("ten", "Seven points.", None),
        ("ten", "", None),
        ("five", "Feedback: good. [RESULT] 4", 0.8),
        ("five", "Feedback: good. [RESULT] (5)", 1),
        ("five", "[RESULT] 6", None),
        ("five", "[RESULT] 0", None),
        ("five", r"\boxed{4}", None),
    ],
)
def test_points_become_a_score_and_what_is_none_leaves_it_unscored(rubric: str, text: str, score: float | None) -> None:
    grade, asks = judged(rubric, text)
    assert len(asks) == 1
    assert grade.score == score
    assert not grade.asks
    (item,) = grade.items
    assert item.numbers == ({} if score is None else {"points": pytest.approx(10 * score)})


def test_one_answer_without_points_leaves_a_meeting_unscored_and_its_other_answers_as_they_are() -> None:
    made = scenario(rubric="ten", mode="multi", **SMALL)
    _, script = next(iter(made.series(1, "5/elitr")))
    asks = made.grade(script.facts, record_of(script, "[PERSON1]", {})).asks
    said = {query.about: {"text": r"\boxed{8}"} for query in asks} | {asks[3].about: "the judge failed: it is down"}
    grade = made.grade(script.facts, record_of(script, "[PERSON1]", said))
    assert grade.score is None
    assert [item.score for item in grade.items].count(0.8) == 15
    means = next(table for table in made.tables({"me": [Marked("elitr-001", None, grade.items)]}) if table.title.endswith("mean points"))
    assert means.rows == [["me", "dev", "multi", "qa", "15", "1", "1", "8.00", "-"]]


def test_where_nobody_judges_the_rules_guess_counts() -> None:
    made = scenario(rubric="ten", **SMALL)
    _, script = next(iter(made.series(1, "5/elitr")))
    grade = made.grade(script.facts, record_of(script, script.lines[0].ideal, {}))
    assert (grade.score, len(grade.asks)) == (1, 1)


def test_a_judge_is_shown_question_reference_and_answer_and_not_the_transcript() -> None:
    _, (query,) = judged("ten", None)
    assert "Who took part in the meeting?" in query.prompt
    assert "(PERSON" not in query.prompt
    assert query.form is None
    (fence,) = {line for line in query.prompt.splitlines() if line.startswith("---- ")}
    assert query.prompt.count(f"{fence}\n") == 6


# Minutes.


def test_minutes_are_asked_for_and_have_no_score_of_their_own(tmp_path: Path) -> None:
    for delivery in ("message", "interleave"):
        result = played(tmp_path, "oracle", "task=minutes", "tokens=3000", f"delivery={delivery}", tests=2)
        assert result.score is None
        assert {test.status for test in result.tests} == {"unscored"}
        assert all("longspan cream arena" in test.reason for test in result.tests)
        run = RunFolder(tmp_path / ("elitr-made-up-16k-oracle-seed2023" if delivery == "interleave" else "elitr-made-up-oracle-seed2023"))
        for transcript in run.transcripts().values():
            for each in transcript.tests.values():
                facts = each.definition.facts
                assert facts is not None
                first, last = facts["text_lines"]
                text = "\n".join(exchange.text for exchange in each.exchanges[first:last])
                assert facts["source"].startswith("made_dev_")
                assert text.count("(PERSON") > 20


# The published questions, with transcripts that stand in for the user's.


def test_published_questions_are_asked_of_the_users_transcripts(elitr: Path, transcripts: Path, tmp_path: Path) -> None:
    data = (f"elitr={transcripts}", f"questions={elitr / 'data.zip'}")
    result = played(tmp_path, "oracle", "split=test", tests=8, data=data)
    assert len(result.tests) == 130
    assert {test.status for test in result.tests} == {"unscored"}, "nobody judged"
    assert {test.chance for test in result.tests} == {0.1}


@pytest.mark.parametrize(("split", "differs"), [("dev", 16), ("test", 17)])
def test_conv_differs_in_as_many_questions_as_the_paper_says(elitr: Path, transcripts: Path, split: str, differs: int) -> None:
    made = scenario(data=transcripts, questions=elitr / "data.zip", split=split, setting="conv")
    scripts = dict(made.series(10, "0/elitr"))
    questions = [each for script in scripts.values() for each in script.facts["questions"]]
    assert sum(each["differs"] for each in questions) == differs
    assert all("Line 39 of" in script.lines[0].text and "older revision" not in script.lines[0].text for script in scripts.values())


def test_transcripts_may_lie_flat_and_the_questions_among_them(elitr: Path, transcripts: Path, tmp_path: Path) -> None:
    for sheet in read_sheets(elitr / "data.zip"):
        for meeting in sheet.meetings:
            (tmp_path / f"{meeting.id}.txt").write_text(f"(PERSON1) I am flat, {meeting.id}.\nYes.\n", "utf-8")
    (tmp_path / "data.zip").write_bytes((elitr / "data.zip").read_bytes())
    (_, first), *others = scenario(data=tmp_path).series(10, "0/elitr")
    assert "I am flat, meeting_en_dev_001." in first.lines[0].text
    assert len(others) == 140


def test_what_is_missing_is_named_with_where_to_get_it(elitr: Path, transcripts: Path, tmp_path: Path) -> None:
    def series(**data: Path) -> None:
        list(scenario(**data).series(10, "0/elitr"))

    with pytest.raises(InputError, match="the transcripts are missing: --data elitr=DIR names a folder with the ELITR Minuting Corpus"):
        series(questions=elitr / "data.zip")
    with pytest.raises(InputError, match=r"--data questions=PATH names ELITR-Bench's data\.zip"):
        series(data=transcripts)
    with pytest.raises(InputError, match="the transcript of meeting_en_dev_001 is missing"):
        series(data=tmp_path, questions=elitr / "data.zip")
    with pytest.raises(InputError, match="the folder does not exist"):
        series(data=tmp_path / "none", questions=elitr / "data.zip")


def test_published_evidence_is_looked_for_in_its_third(elitr: Path, transcripts: Path) -> None:
    made = scenario(data=transcripts, questions=elitr / "data.zip", delivery="interleave")
    (_, script), *_ = made.series(1, "0/elitr")
    said = [line for line in script.lines if not line.asks]
    asked = [line for line in script.lines if line.asks]
    needs = {each["position"]: line.needs for each, line in zip(script.facts["questions"], asked, strict=True)}
    assert needs["S"] == tuple(range(len(said)))
    assert needs["B"] is not None
    assert all(b == a + 1 for a, b in pairwise(needs["B"]))
    assert needs["B"][0] == 0


# Prompts of the user's own.

PROMPTS = """
first: "Read this. {{transcript}} Then tell: {{question}}"
next: "And {{ question }}"
judge: "{{question}} / {{reference}} / {{response}}"
"""


def test_prompts_of_the_user_are_played_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "prompts.yaml"
    path.write_text(PROMPTS, "utf-8")
    made, usual = (scenario(mode="multi", rubric="ten", **SMALL, **more) for more in ({"prompts": path}, {}))
    ((_, script), (_, other)) = (next(iter(each.series(1, "5/elitr"))) for each in (made, usual))
    asked = [question["asked"] for question in script.facts["questions"]]
    text = other.lines[0].text.split("\n\n")[1]
    assert [line.text for line in script.lines] == [f"Read this. {text} Then tell: {asked[0]}", *(f"And {each}" for each in asked[1:])]
    assert [line.ideal for line in script.lines] == [line.ideal for line in other.lines]
    query = made.grade(script.facts, record_of(script, "{{question}}", {})).asks[0]
    assert query.prompt == f"{asked[0]} / {script.lines[0].ideal} / {{{{question}}}}", "what is filled in is no place"


def test_the_option_of_the_command_line_names_them(tmp_path: Path) -> None:
    path = tmp_path / "prompts.yaml"
    path.write_text(PROMPTS, "utf-8")
    (settings,) = GridOptions(suite="elitr", prompts=path).grid().runs()
    assert settings.suite.scenarios["elitr"]["prompts"] == str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- first", "expected texts by name; the names are first, next, judge"),
        ("first: 3", "expected texts by name"),
        ("last: x", "there is no prompt 'last'"),
        ("next: x", "the prompt first is missing"),
        (
            "first: '{{transcript}} {{answer}}'",
            r"first has a place {{answer}} that nothing fills; its places are {{transcript}}, {{question}}",
        ),
        ("first: [", "not YAML"),
        (None, "prompts.yaml: cannot be read"),
    ],
)
def test_what_is_wrong_with_prompts_is_told_in_one_line(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "prompts.yaml"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=re.escape(said)) as error:
        list(scenario(prompts=path, **SMALL).series(1, "0/elitr"))
    assert "\n" not in str(error.value)


def test_questions_in_czech_are_not_asked_with_english_prompts(elitr: Path, transcripts: Path, tmp_path: Path) -> None:
    questions = tmp_path / "czech"
    questions.mkdir()
    for sheet in read_sheets(elitr / "data.zip"):
        asked = [
            {"id": "1", "question-type": "who", "answer-position": "B", "question": "Kdo řídil schůzi?", "groundtruth-answer": "Nikdo."}
        ]
        content = {"split": sheet.split, "meetings": [{"id": sheet.meetings[0].id, "questions": asked}]}
        (questions / f"elitr-bench-{sheet.setting}_{sheet.split}.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match="are in Czech, and the prompts in English: --prompts FILE names a file with Czech ones"):
        list(scenario(data=transcripts, questions=questions).series(1, "0/elitr"))
    prompts = tmp_path / "czech.yaml"
    prompts.write_text("first: 'Přepis: {{transcript}} Otázka: {{question}}'", "utf-8")
    (_, script), *_ = scenario(data=transcripts, questions=questions, prompts=prompts).series(1, "0/elitr")
    assert script.lines[0].text.endswith("Otázka: Kdo řídil schůzi?")
