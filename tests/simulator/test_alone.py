"""Features of suites other than LTM: tests with a conversation to themselves, series, items, tables and a judge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

import pytest
import trio
from pydantic import ValidationError
from tests.loopback import Say, Server

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Grade, Item, Marked, Record
from longspan.simulator.contract.queries import Answer, Free, Query
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.judging.background import judge_run
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.running.scoring import score_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite, make_tests

HERE = f"python:{__name__}"


class Pages(Scenario):
    """Each of `pages` is a test, `alone` or not. It asks for all the words of its page; each is an item."""

    name: ClassVar[str] = "pages"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)
    pages: int = 3
    alone: bool = True
    long: int = 5
    source: Path | None = None
    broken: Literal["", "none", "twice", "odd", "raises", "tables"] = ""

    def make(self, random: Random) -> Script:
        raise AssertionError("series writes them")

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        if self.broken == "raises":
            raise KeyError("page")
        for number in range(0 if self.broken == "none" else self.pages):
            words = Random(f"{seed}/{number}").sample(["ash", "birch", "cedar", "elm", "fir", "gum"], self.long % 7)
            text = "Trees: " + ", ".join(words) + " tree" * max(0, self.long - 6)
            lines = [Line(text), Line("Which trees?", ideal=", ".join(words), asks=True)]
            name = {"twice": "page", "odd": "../page"}.get(self.broken, f"page-{number}")
            yield name, Script(facts={"words": words}, lines=lines, alone=self.alone)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        reply = record.answer.reply
        items = tuple(Item(name=word, score=float(word in reply), labels={"first": word[0]}) for word in facts["words"])
        return Grade(score=sum(item.score or 0 for item in items) / len(items), reason="words found", items=items)

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        return {"words": sum(len(test.items) for test in tests)}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        if self.broken == "tables":
            raise KeyError("no table")
        rows = [[run, str(sum(len(test.items) for test in tests))] for run, tests in runs.items()]
        return [Table(title="Words", columns=["run", "words"], rows=rows, shades=[[None, 0.5] for _ in rows])]


class Likes(Answer):
    points: int


class Marks(Free):
    pass


class Tasting(Scenario):
    """Graded by a judge in two steps: its free-text answer decides the next query."""

    name: ClassVar[str] = "tasting"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    def make(self, random: Random) -> Script:
        return Script(facts={}, lines=[Line("Soup?", asks=True, needle=False)])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        first = Query(prompt=f"Taste: {record.answer.reply}", answer=Marks, version="taste 1")
        tasted = record.said(first)
        if not isinstance(tasted, Marks):
            return Grade(score=None, reason=tasted or "nobody tasted", asks=(first,))
        second = Query(prompt=f"Points for {tasted.text}?", answer=Likes, version="points 1")
        said = record.said(second)
        if not isinstance(said, Likes):
            return Grade(score=None, reason=said or "nobody gave points", asks=(second,))
        return Grade(score=said.points / 10, reason=f"{tasted.text}: {said.points}")


def suite(scenario: str, **parameters: Any) -> Suite:
    return Suite(name="made", tests=1, scenarios={f"{HERE}:{scenario}": parameters})


def played(out: Path, made: Suite, agent: str = "oracle", **arguments: Any) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(
        lambda: play_plans([plan_run(RunSettings(suite=made, span=2000, seed=0, agent=agent, **arguments), out)], pages=Report)
    )
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def test_each_test_that_is_alone_has_a_conversation_that_begins_with_its_first_line(tmp_path: Path) -> None:
    run, result = played(tmp_path, suite("Pages"))
    assert list(run.manifest.conversations) == ["pages-page-0", "pages-page-1", "pages-page-2"]
    for id in run.manifest.conversations:
        lines = [json.loads(line) for line in run.journal(id).read_text().splitlines()]
        assert [line["kind"] for line in lines if line["type"] == "message"] == ["line", "question"]
    assert result.score == 1
    assert result.filler_tokens == 0
    assert {test.exempt for test in result.tests} == {"alone"}
    assert result.certified == result.at_distance == 1
    assert run.path.name == "made-oracle-seed0", "it has no span to be named after"


def test_a_test_that_is_alone_may_be_longer_than_the_span(tmp_path: Path) -> None:
    run, result = played(tmp_path, suite("Pages", long=20_005))
    assert not run.manifest.left_out
    assert (result.score, result.certified) == (1, 1)
    assert min(test.span_used for test in result.tests) > 10_000


@pytest.mark.parametrize(
    ("parameters", "option", "timed"),
    [({"alone": True}, "", False), ({"alone": True}, "&timestamps=true", True), ({"alone": False}, "", True)],
)
def test_a_model_is_shown_no_times_where_every_test_is_alone(
    tmp_path: Path, openai_key: None, parameters: dict[str, Any], option: str, timed: bool
) -> None:
    """A text that promises its length and its digits has no others; a spec that sets the option is followed."""
    with Server().running() as server:
        spec = server.model() + option
        run, _ = played(tmp_path, suite("Pages", pages=1, **parameters), spec)
        first = [asked.body["messages"][-1]["content"] for asked in server.asked]
        trio.run(replay_run, run)
    assert first
    assert all(text.startswith("[Mon 2024-01-01 09:0") is timed for text in first)
    assert run.manifest.agent == spec, "the run is named as the user named it"


def test_tests_that_are_alone_are_replayed_and_resumed_like_others(tmp_path: Path) -> None:
    run, result = played(tmp_path, suite("Pages"), agent="notebook")
    assert trio.run(replay_run, run) == result
    journal = run.journal("pages-page-1")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    again = trio.run(resume_run, RunFolder(run.path), "notebook")
    assert again.error is None
    assert again.result == result


def test_tests_that_are_alone_and_others_share_a_run(tmp_path: Path) -> None:
    made = suite("Pages").model_copy(update={"scenarios": {f"{HERE}:Pages": {"pages": 2}, "colours": {}}})
    run, result = played(tmp_path, made)
    assert list(run.manifest.conversations) == ["main", "pages-page-0", "pages-page-1"]
    assert result.score == 2
    assert run.path.name == "made-2k-oracle-seed0"
    exempt = {test.id: test.exempt for test in result.tests}
    assert exempt == {"colours-1": None, "pages-page-0": "alone", "pages-page-1": "alone"}


def test_a_series_may_share_a_conversation(tmp_path: Path) -> None:
    run, result = played(tmp_path, suite("Pages", alone=False))
    assert list(run.manifest.conversations) == ["main"]
    assert [test.exempt for test in result.tests] == [None] * 3
    assert result.at_distance == 1


def test_items_and_tables_are_in_the_results(tmp_path: Path) -> None:
    run, result = played(tmp_path, suite("Pages"))
    kept = read_result(run)
    assert kept == result
    assert [[item.score for item in test.items] for test in kept.tests] == [[1.0] * 5] * 3
    (table,) = kept.tables
    assert (table.title, table.rows) == ("Words", [["oracle", "15"]])
    assert kept.metrics == {"pages: words": 15}
    assert "Words" in (run.path / "report.html").read_text()


def test_tables_that_fail_say_so_and_everything_else_is_kept(tmp_path: Path) -> None:
    _, result = played(tmp_path, suite("Pages", broken="tables"))
    assert result.score == 1
    line = next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if 'raise KeyError("no table")' in line)
    told = f"KeyError: 'no table' (test_alone.py:{line})"
    assert [(table.title, table.rows) for table in result.tables] == [("pages: its tables failed", [[told]])]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("none", "series returned no tests"),
        ("twice", "series returned the test id 'page'; ids must be unique"),
        ("odd", "series returned the test id '../page'"),
        ("raises", "making its tests from seed 0 failed: KeyError: 'page'"),
    ],
)
def test_an_invalid_series_is_refused_before_the_run(broken: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_tests(suite("Pages", broken=broken), 0, "uniform")


def test_suites_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("name: other\ntests: 1\nscenarios: {colours: {changes: 1}}\n")
    assert load_suite("ltm+ltm").scenarios == load_suite("ltm").scenarios
    joined = load_suite("ltm+summhay").apply_changes(["summhay.documents=20"], [], ["colours", "summhay"], None)
    alone = {name: load_suite(name).tests for name in ("ltm", "summhay")}
    assert (joined.each["colours"], joined.each["summhay"]) == (alone["ltm"], alone["summhay"]), "each keeps its own number of tests"
    assert joined.apply_changes([], [], [], 7).each == {}, "unless another is wanted"
    with pytest.raises(InputError, match="there is no suite"):
        load_suite("ltm+nothing")


def test_data_goes_to_the_parameter_that_takes_a_path(tmp_path: Path) -> None:
    made = suite("Pages").apply_changes([], [f"source={tmp_path}"], [], None)
    assert made.scenarios[f"{HERE}:Pages"]["source"] == str(tmp_path)
    with pytest.raises(InputError, match="no scenario of made takes data called 'pages'; known names: source"):
        suite("Pages").apply_changes([], ["pages=x"], [], None)


@pytest.mark.parametrize(("rows", "shades"), [([["a"]], None), ([["a", "b"]], [[1.0]]), ([["a", "b"]], []), ([], [[None, None]])])
def test_a_table_that_is_not_rectangular_is_refused(rows: list[list[str]], shades: Any) -> None:
    with pytest.raises(ValidationError, match="every row needs 2 cells"):
        Table(title="T", columns=["x", "y"], rows=rows, shades=shades)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


def test_a_judges_answer_decides_the_next_query(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    judge = f"openai/gpt-4o?base_url={server.base_url('openai')}"
    server.acts.extend([Say("salty"), Say('{"points": 7}')])
    run, result = played(tmp_path, suite("Tasting"), agent="silent", judge=judge)
    assert result.score == 0.7
    assert "response_format" not in server.asked[-2].body, "free words need no JSON"
    asked = len(server.asked)
    trio.run(judge_run, Gradebook.of(run), CachedModel(judge, AnswerStore.of(run)))
    assert len(server.asked) == asked, "a later scoring asks nothing again"
    versions = [entry["by"].rpartition(", ")[2] for entry in AnswerStore.of(run).entries()]
    assert versions == ["prompt taste 1", "prompt points 1"]


def test_without_a_judge_or_with_one_that_fails_a_judged_test_is_unscored(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    run, result = played(tmp_path, suite("Tasting"), agent="silent")
    assert (result.tests[0].status, result.tests[0].reason) == ("unscored", "nobody tasted")
    server.acts.extend([Say("bland"), Say('{"points": "many"}')])
    trio.run(judge_run, Gradebook.of(run), CachedModel(f"openai/gpt-4o?base_url={server.base_url('openai')}", AnswerStore.of(run)))
    (test,) = score_run(run).tests
    assert test.status == "unscored"
    assert "points" in test.reason
    assert grade_run(run).score_bounds == (0, 1)


def test_an_open_event_says_that_its_test_is_alone(tmp_path: Path) -> None:
    run, _ = played(tmp_path, suite("Pages", pages=1))
    lines = map(json.loads, run.journal("pages-page-0").read_text().splitlines())
    assert [line["alone"] for line in lines if line["type"] == "open"] == [True]
