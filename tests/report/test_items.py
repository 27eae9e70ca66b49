"""Of tests whose score compounds their items, people are told how many items a full mark takes and how many are right."""

from __future__ import annotations

import io
from pathlib import Path

import trio

from longspan.simulator.contract.graded_record import Item
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.measures.items import ItemCounts, item_counts
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_scores


def played(suite: str, scenario: str, agent: str, out: Path) -> tuple[Result, str, str]:
    """Play two tests. Return the result, its report and what the terminal prints."""
    chosen = load_suite(suite).model_copy(update={"tests": 2, "scenarios": {scenario: {}}})
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=chosen, span=2000, agent=agent), out)], pages=Report))
    run = RunFolder(outcome.folder)
    result, on = read_result(run), io.StringIO()
    print_scores(run.manifest, result, Console(file=on, width=200))
    return result, (outcome.folder / "report.html").read_text("utf-8"), on.getvalue()


def test_terminal_and_report_say_how_many_items_a_full_mark_takes(tmp_path: Path) -> None:
    result, page, printed = played("memory", "two_users", "notebook", tmp_path)
    scores = [item.score for test in result.tests for item in test.items]
    assert 0 < sum(score == 1 for score in scores) < len(scores) == 5 * 2
    share = f"{sum(score == 1 for score in scores) * 10}%"
    assert f"items   right: two_users {share} of 5; a full mark takes all items of a test\n" in printed
    assert "How many items a full mark takes" in page
    assert "A test of two_users has most: 5 items." in page


def test_nothing_is_said_of_scenarios_whose_score_is_a_mean(tmp_path: Path) -> None:
    for suite, scenario in (("ltm", "spy_meeting"), ("reach", "reach")):
        result, page, printed = played(suite, scenario, "notebook", tmp_path / scenario)
        assert any(test.items for test in result.tests) or suite == "ltm"
        assert "items   " not in printed
        assert "How many items a full mark takes" not in page


def test_items_are_counted_one_by_one(tmp_path: Path) -> None:
    result, _, _ = played("memory", "two_users", "oracle", tmp_path)
    first, second = result.tests

    def scored(score: float | None, *items: float | None) -> dict[str, object]:
        return {"score": score, "items": [Item(name=str(number), score=each) for number, each in enumerate(items)]}

    mixed, all_right = first.model_copy(update=scored(0.0, 1.0, 1.0, 0.5, None)), second.model_copy(update=scored(1.0, 1.0, 1.0))
    assert item_counts([mixed, all_right]) == [ItemCounts("two_users", 2, 3.0, 0.8, 0.5)]
    assert item_counts([mixed.model_copy(update={"score": None})]) == [], "a test without a score"
    assert item_counts([first.model_copy(update=scored(0.0, None))]) == [], "whose items are not known"
    corrected = first.model_copy(update={"correction": Correction(test=first.id, score=1.0, why="read by a person", by="Ada")})
    assert item_counts([corrected]) == [], "that a person has corrected"
