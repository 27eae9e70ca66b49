"""Answers still told after a farewell (--score-farewells): asked once more, shown beside the score, never part of it."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import trio

from longspan.agents.base import BaseAgent, Message, Reply
from longspan.scenarios.ltm.wording import Wording
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

ME = "python:tests.simulator.test_farewells"


class Colour(BaseAgent):
    """Keeps the newest favourite colour, whatever is said of it."""

    def __init__(self) -> None:
        super().__init__()
        self.colour = "none"
        self.wording = Wording("colours")

    def farewell(self) -> None:
        """Do nothing."""

    async def reply(self, message: Message) -> Reply:
        if told := self.wording.read("change", message.text):
            self.colour = told["colour"]
        elif message.text in self.wording.all("farewell"):
            self.farewell()
        return Reply(self.colour if message.text in self.wording.all("question") else "OK.")


class Forgets(Colour):
    def farewell(self) -> None:
        self.colour = "none"


def played(out: Path, agent: str, scenarios: tuple[str, ...] = ("colours",), **settings: Any) -> Outcome:
    suite = load_suite("ltm").apply_changes([], [], scenarios, None)
    planned = plan_run(RunSettings(suite=suite, span=2_000, agent=agent, **{"score_farewells": True, **settings}), out)
    (outcome,) = trio.run(lambda: play_plans([planned], pages=Report))
    return outcome


def messages(outcome: Outcome) -> list[events.Message]:
    return [event for event in read_journal(RunFolder(outcome.folder).journal("main")) if isinstance(event, events.Message)]


@pytest.mark.parametrize(("agent", "leaked"), [("Colour", 1), ("Forgets", 0)])
def test_what_comes_out_after_a_farewell_is_shown_beside_the_score(agent: str, leaked: int, tmp_path: Path) -> None:
    outcome = played(tmp_path, f"{ME}:{agent}")
    result = read_result(RunFolder(outcome.folder))
    assert result.score == result.max_score == 1
    assert result.metrics["colours: leaked_after_farewell"] == leaked
    after = {test.id: test.farewell for test in result.tests}
    again = [message for message in messages(outcome) if message.kind == "again"]
    assert {test.turn: test.score for test in after.values() if test is not None} == {message.turn: leaked for message in again}
    assert after["colours-3"] is None, "no other test of the scenario follows"
    page = (outcome.folder / "report.html").read_text("utf-8")
    assert page.count("After its farewell") == 2


def test_the_last_question_is_asked_again_right_after_the_farewell_in_the_same_words(tmp_path: Path) -> None:
    told = messages(played(tmp_path, "silent", ("colours", "jokes")))
    for number, message in enumerate(told):
        if message.kind == "again":
            assert told[number - 1].kind == "farewell"
            asked = [each.text for each in told[:number] if each.kind == "question" and each.test == message.test]
            assert (told[number - 1].test, asked[-1]) == (message.test, message.text)
    farewells = [(message.test or "").partition("-")[0] for message in told if message.kind == "farewell"]
    assert sorted(farewells) == ["colours", "colours", "jokes", "jokes"]
    assert [message.test for message in told if message.kind == "again"] == ["colours-1", "colours-2"], (
        "jokes may be forgotten, but need not"
    )


def test_every_agent_is_dealt_the_same_and_all_can_be_solved(tmp_path: Path) -> None:
    scenarios = ("colours", "name_list", "shopping", "spy_meeting")
    oracle, silent = played(tmp_path / "o", "oracle", scenarios), played(tmp_path / "s", "silent", scenarios)
    dealt = [[(each.text, each.kind, each.dealt, each.sent_at) for each in messages(outcome)] for outcome in (oracle, silent)]
    assert dealt[0] == dealt[1]
    result = read_result(RunFolder(oracle.folder))
    assert (result.score, result.certified, result.at_distance) == (4, 1, 1)
    leaked = {name: value for name, value in result.metrics.items() if "farewell" in name}
    assert leaked == {f"{name}: leaked_after_farewell": 0 for name in scenarios[:3]}


def test_nothing_is_asked_again_unless_it_is_wanted(tmp_path: Path) -> None:
    outcome = played(tmp_path, f"{ME}:Colour", score_farewells=False)
    assert "again" not in {message.kind for message in messages(outcome)}
    result = read_result(RunFolder(outcome.folder))
    assert {test.farewell for test in result.tests} == {None}
    assert not any("farewell" in name for name in result.metrics)


def test_a_run_that_was_killed_between_a_farewell_and_the_question_goes_on_there(tmp_path: Path) -> None:
    whole = played(tmp_path, "oracle")
    lines = RunFolder(whole.folder).journal("main").read_bytes().splitlines(keepends=True)
    asked = next(number for number, line in enumerate(lines) if b'"kind":"again"' in line)
    for kept in (asked, asked + 1):
        copy = tmp_path / f"{kept}"
        copytree(whole.folder, copy)
        RunFolder(copy).journal("main").write_bytes(b"".join(lines[:kept]))
        again = trio.run(resume_run, RunFolder(copy), "oracle")
        assert again.error is None
        assert messages(again) == messages(whole)
