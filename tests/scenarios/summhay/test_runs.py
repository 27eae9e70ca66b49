"""Whole runs of the suite: played, judged by rules, by a model and by people, and played again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Server
from tests.schemas import check_output

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.cli import main
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.judging.annotation import (
    Annotation,
    agreement_table,
    annotations_by,
    measure_agreement,
    open_claims,
    read_sheets,
    save_annotation,
)
from longspan.simulator.results.judging.background import judge_run
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, replay_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("openai_key")

SMALL = ["documents=20", "words=150", "subtopics=2"]


def played(
    out: Path, *settings: str, agent: str = "oracle", span: int = 2000, data: Path | None = None, judge: str | None = None
) -> RunFolder:
    suite = load_suite("summhay").apply_changes([*SMALL, *settings], [f"summhay={data}"] if data else [], [], None)
    planned = plan_run(RunSettings(suite=suite, span=span, seed=1, agent=agent, judge=judge), out)
    outcomes: list[Outcome] = trio.run(lambda: play_plans([planned], pages=Report))
    assert outcomes[0].error is None
    return RunFolder(outcomes[0].folder)


def test_each_subtopic_has_a_conversation_of_one_message(tmp_path: Path) -> None:
    run = played(tmp_path)
    result = grade_run(run)
    assert [test.id for test in result.tests] == ["summhay-1-1", "summhay-1-2"]
    assert (result.score, result.turns, result.filler_tokens) == (1, 2, 0)
    assert set(run.manifest.conversations) == {"summhay-1-1", "summhay-1-2"}
    assert [table.title for table in result.tables] == ["Summaries with sources", "By rank of the document"]
    assert "Summaries with sources" in (run.path / "report.html").read_text("utf-8")


def test_silence_scores_nothing(tmp_path: Path) -> None:
    result = grade_run(played(tmp_path, agent="silent"))
    assert [test.score for test in result.tests] == [0, 0]
    assert {item.numbers["coverage"] for test in result.tests for item in test.items} == {0}


def test_documents_of_the_long_conversation_are_asked_about_a_span_later(tmp_path: Path) -> None:
    run = played(tmp_path, "delivery=interleave", "retriever=oracle", "budget=3000", span=12_000)
    result = grade_run(run)
    assert result.score == 1
    assert set(run.manifest.conversations) == {"main"}
    assert all(test.certified and test.at_distance for test in result.tests)
    assert result.filler_tokens > 0
    transcript = run.transcripts()["main"]
    for played_test in transcript.tests.values():
        exchanges = transcript.record(played_test).exchanges
        assert [exchange.asks for exchange in exchanges] == [False] * (len(exchanges) - 1) + [True]
        assert all(re.match(r"Conversation \[\d+\]", exchange.text) for exchange in exchanges[:-1])
        assert len(played_test.evidence) > 3


def test_a_run_can_be_played_again_from_its_journal(tmp_path: Path) -> None:
    run = played(tmp_path, "retriever=vect")
    assert trio.run(replay_run, run).score == 1


def test_a_summary_names_its_source_for_the_arena(tmp_path: Path) -> None:
    first, second = (played(tmp_path, f"retriever={retriever}") for retriever in ("kws", "oracle"))
    sources = [
        {(test.definition.facts or {})["source"] for transcript in run.transcripts().values() for test in transcript.tests.values()}
        for run in (first, second)
    ]
    assert sources[0] == sources[1]
    assert len(sources[0]) == 2


# judges


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


def spec(server: Server, judge: Callable[[str, list[str]], Any]) -> str:
    """A judge that answers with what `judge` makes of the insight and the bullets."""

    def reply(prompt: str) -> str:
        _, insight, _, bullets, _ = re.split(r"---- [0-9a-f]{16}\n", prompt)
        answer = judge(insight.strip(), re.findall(r"^\d+\. (.*)$", bullets, re.MULTILINE))
        return answer if isinstance(answer, str) else json.dumps(answer)

    server.reply = reply
    return server.model()


def sensible(insight: str, bullets: list[str]) -> dict[str, Any]:
    holding = next((number for number, bullet in enumerate(bullets, 1) if insight in bullet), None)
    return {"coverage": "full" if holding else "none", "bullet": holding}


def test_a_judge_is_asked_once_for_each_insight_and_agrees_about_a_perfect_summary(tmp_path: Path, server: Server) -> None:
    before = len(server.asked)
    result = grade_run(played(tmp_path, "grading=judge", judge=spec(server, sensible)))
    assert result.score == 1
    assert len(server.asked) - before == sum(len(test.items) for test in result.tests)


def test_made_up_haystacks_are_graded_by_rules_even_where_there_is_a_judge(tmp_path: Path, server: Server) -> None:
    before = len(server.asked)
    assert grade_run(played(tmp_path, judge=spec(server, sensible))).score == 1
    assert len(server.asked) == before


def test_what_the_judge_says_counts(tmp_path: Path, server: Server) -> None:
    judge = spec(server, lambda insight, bullets: {"coverage": "partial", "bullet": 1})
    result = grade_run(played(tmp_path, "grading=judge", judge=judge))
    items = [item for test in result.tests for item in test.items]
    assert {item.numbers["coverage"] for item in items} == {0.5}
    assert {item.numbers["bullet"] for item in items} == {1}
    assert 0 < (result.score or 0) < 0.5


NO_ANSWERS = [
    "I like it.",
    {"coverage": "full", "bullet": 99},
    {"coverage": "full", "bullet": None},
    {"coverage": "most", "bullet": 1},
    {"bullet": 1},
]


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_a_judge_that_fails_leaves_the_summary_unscored_and_may_be_asked_again(tmp_path: Path, server: Server, answer: Any) -> None:
    run = played(tmp_path, "grading=judge", judge=spec(server, lambda insight, bullets: answer))
    result = grade_run(run)
    assert {test.status for test in result.tests} == {"unscored"}
    assert all("undecided: " in test.reason for test in result.tests)
    assert result.tables == []
    judge = spec(server, sensible) + "&temperature=0.1"
    trio.run(judge_run, Gradebook.of(run), CachedModel(judge, AnswerStore.of(run)))
    assert grade_run(run).score == 1


def test_published_haystacks_need_a_judge(tmp_path: Path, server: Server, summhay: Path) -> None:
    topic = summhay / "topic_news1.json.gz"
    run = played(tmp_path, "retriever=rerank", data=topic)
    result = grade_run(run)
    assert len(result.tests) == 9
    assert {test.status for test in result.tests} == {"unscored"}
    assert "--judge names one" in result.tests[0].reason
    assert all(14_000 < test.span_used < 18_000 for test in result.tests)
    trio.run(judge_run, Gradebook.of(run), CachedModel(spec(server, sensible), AnswerStore.of(run)))
    assert grade_run(run).score == 1


# people


def test_what_people_say_is_kept_and_compared(tmp_path: Path) -> None:
    run = played(tmp_path)
    known = read_sheets(run)
    every = open_claims(known, [])
    assert len(every) == sum(len(test.items) for test in grade_run(run).tests)
    for number, (test, claim) in enumerate(every):
        bullet = next(at for at, bullet in enumerate(known[test].bullets, 1) if known[test].claims[claim] in bullet)
        save_annotation(run, known, Annotation(test=test, claim=claim, coverage="full", bullet=bullet, by="Ada"))
        if number:
            save_annotation(run, known, Annotation(test=test, claim=claim, coverage="partial", bullet=bullet, by="Ben"))
    save_annotation(run, known, Annotation(test=every[0][0], claim=every[0][1], coverage="none", bullet=None, by="Ada"))
    assert open_claims(known, annotations_by(run)["Ben"]) == every[:1]
    rows = {row[0]: row[1:] for row in agreement_table(run).rows}
    n = len(every)
    assert rows["Ada and the grader"] == [str(n), "", f"{(n - 1) / n:.3f}", "1.000"]
    assert rows["Ben and the grader"] == [str(n - 1), "", "0.000", "1.000"]
    assert rows["Ben and Ada"] == [str(n - 1), "", "0.000", "1.000"]
    assert grade_run(run).score == 1, "grades stay as they are"


def test_agreement_over_claims() -> None:
    first = {("t", str(k)): (coverage, bullet) for k, (coverage, bullet) in enumerate([(1.0, 1), (0.5, 2), (0.0, None), (1.0, 3)])}
    second = {("t", str(k)): (coverage, bullet) for k, (coverage, bullet) in enumerate([(1.0, 1), (0.0, None), (0.0, None), (0.5, 4)])}
    found = measure_agreement(first, second)
    assert found is not None
    assert (found.n, found.linked, found.same, found.links) == (4, 2, 0.5, 0.5)
    assert found.correlation == pytest.approx(9 / 11)
    assert measure_agreement(first, {}) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"claim": "i9-9"}, "has no claim"),
        ({"test": "jokes-1"}, "has no claim"),
        ({"bullet": None}, "a bullet is required for coverage full and partial"),
        ({"coverage": "none"}, "a bullet is required for coverage full and partial"),
        ({"bullet": 1000}, "bullet 1000 does not exist"),
    ],
)
def test_what_cannot_be_said_of_a_run_is_refused(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    run = played(tmp_path, "subtopics=1")
    good = {"test": "summhay-1-1", "claim": "i1-1", "coverage": "full", "bullet": 1, "by": "Ada"}
    with pytest.raises(InputError, match=words):
        save_annotation(run, read_sheets(run), Annotation.model_validate(good | changed))
    assert not (run.path / "annotations.jsonl").exists()


def test_a_run_of_other_tests_cannot_be_annotated_and_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2000, seed=1, agent="silent"), tmp_path)])
    with pytest.raises(InputError, match=r"none of its tests has a sheet to annotate$"):
        read_sheets(RunFolder(outcome.folder))
    run = played(tmp_path, "subtopics=1")
    run.add_annotation({"by": "Ada"})
    with pytest.raises(JournalError, match="not an annotation"):
        annotations_by(run)
    (run.path / "annotations.jsonl").write_text('{"by": "Ada"}\n', "utf-8")
    with pytest.raises(JournalError, match=r"annotations.jsonl: damaged at line 1: it has no checksum; restore"):
        annotations_by(run)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What a person types at the terminal, line by line, and then leaves."""

    def types(lines: str) -> None:
        given = iter(lines.split())

        def read() -> str:
            try:
                return next(given)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("builtins.input", read)

    return types


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def test_a_person_at_the_terminal_goes_on_where_they_left(
    tmp_path: Path, typed: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    run = played(tmp_path)
    given = ["summhay", "annotate", str(run.path), "--by", "Ada"]
    typed("f 1 p 99 x 2 s n q")
    assert command(*given) == 0
    shown = capsys.readouterr().out
    assert "quit; `longspan summhay annotate` continues here" in shown
    assert "Ada and the grader" in shown
    assert [each.coverage for each in annotations_by(run)["Ada"].values()] == ["full", "partial", "none"]
    typed("n")
    assert command(*given) == 0
    first = read_sheets(run)["summhay-1-1"].claims["i1-1"]
    assert first not in capsys.readouterr().out.partition("1 of ")[2], "it was judged before"
    assert len(annotations_by(run)["Ada"]) == 4
    typed("f 1")
    assert command(*given, "--again", "--test", "summhay-1-2") == 0
    assert "summhay-1-1" not in capsys.readouterr().out
    assert len(annotations_by(run)["Ada"]) == 5
    assert command("summhay", "annotate", str(run.path), "--json") == 0
    assert check_output("summhay-annotate", capsys.readouterr().out)["rows"][0][0] == "Ada and the grader"
    assert command(*given, "--test", "summhay-7-7") == 2
    assert "has no test 'summhay-7-7'" in capsys.readouterr().err


def test_what_an_agent_says_cannot_steer_the_terminal(
    tmp_path: Path, typed: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rogue.py").write_text('class Rogue:\n    def reply(self, message):\n        return "- \\x1b[2J\\x07 gone [1]"\n', "utf-8")
    run = _rogue(tmp_path)
    typed("n")
    assert command("summhay", "annotate", str(run.path), "--trust") == 0
    shown = capsys.readouterr().out
    assert "\x1b[2J" not in shown
    assert "gone [1]" in shown


def _rogue(tmp_path: Path) -> RunFolder:
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        return played(tmp_path / "runs", "subtopics=1", agent="python:rogue:Rogue")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("rogue", None)
