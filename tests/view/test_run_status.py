"""The status of a run while it is played, computed from its events alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.play.dry_run import Length, dry_run
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.gradebook.run_status import EndedTest, RunStatus
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.running.planning import replan_run, setting_of
from longspan.simulator.suite.manifest import Manifest
from tests.report.pages import altered
from tests.view.conftest import ISOLATED, ORACLE, SILENT


class Following:
    """A run's status as its events are added."""

    def __init__(self, manifest: Manifest, lengths: Callable[[], Mapping[str, Length]] | None = None) -> None:
        self.gradebook = Gradebook(manifest, installed_scenarios(manifest.suite.scenarios))
        self.worker = GradingWorker(self.gradebook)
        self.status = RunStatus(self.gradebook, lengths)

    def add(self, conversation: str, event: events.Event) -> EndedTest | None:
        change = self.gradebook.add(conversation, event)
        trio.run(self.worker.on_change, conversation, change)
        return self.status.add(conversation, change)

    def figures(self) -> dict[str, Any]:
        return self.status.figures()._asdict()


def followed(run: RunFolder, lengths: Callable[[], Mapping[str, Length]] | None = None) -> list[dict[str, Any]]:
    """The figures after each event."""
    following = Following(run.manifest, lengths)
    figures = []
    for id in run.manifest.conversations:
        for event in read_journal(run.journal(id)):
            following.add(id, event)
            figures.append(following.figures())
    return figures


@pytest.mark.parametrize("name", [ORACLE, SILENT, ISOLATED])
def test_at_the_end_it_equals_the_results(made: Path, name: str) -> None:
    run = RunFolder(made / name)
    result = grade_run(run)
    last = followed(run)[-1]
    assert last["score"] == pytest.approx(result.score)
    assert (last["turns"], last["tokens"]) == (result.turns, result.tokens)
    assert (last["ended"], last["tests"], last["open"], last["scenarios"]) == (len(result.tests), len(result.tests), 0, result.max_score)
    assert last["closed"]
    assert last["left"] == 0
    assert not last["used"]


def test_the_time_left_falls_to_zero(made: Path) -> None:
    left = [figures["left"] for figures in followed(RunFolder(made / ORACLE))]
    assert left[0] is None
    known = [value for value in left if value is not None]
    assert known[len(known) // 2] > known[-1] == 0


def test_the_time_left_is_in_proportion_to_what_was_played(made: Path, tmp_path: Path) -> None:
    def steady(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            if entry["type"] == "reply":
                entry["measured"] = {"latency_s": 10.0}

    run = RunFolder(altered(made / ORACLE, tmp_path, steady))
    figures_after = followed(run)
    half = next(figures for figures in figures_after if figures["ended"] == 2)
    assert half["left"] == pytest.approx(figures_after[-1]["seconds"] - half["seconds"], rel=0.5)


def test_costs_are_summed_and_unknown_if_one_is(made: Path, tmp_path: Path) -> None:
    def priced(entries: list[dict[str, Any]]) -> None:
        for number, entry in enumerate(entry for entry in entries if entry["type"] == "reply"):
            entry |= {"usage": {"input_tokens": 1}, "cost_usd": {"agent": 0.25 if number < 3 else None}}

    figures_after = followed(RunFolder(altered(made / ORACLE, tmp_path, priced)))
    assert next(figures["cost"] for figures in figures_after if figures["turns"] == 3) == 0.75
    assert figures_after[-1]["cost"] is None
    assert figures_after[-1]["used"]


def test_a_scenario_that_is_code_is_not_run(made: Path) -> None:
    manifest = RunFolder(made / ORACLE).manifest
    scenarios = {"python:nothing.of.the:Kind": {}, "colours": manifest.suite.scenarios["colours"], "gone": {}}
    following = Following(manifest.model_copy(update={"suite": manifest.suite.model_copy(update={"scenarios": scenarios})}))
    ended = [following.add("main", event) for event in read_journal(RunFolder(made / ORACLE).journal("main"))]
    scores = {test.test: test.score for test in ended if test is not None}
    assert scores == {"colours-1": 1, "colours-2": 1, "jokes-1": None, "jokes-2": None}
    assert following.figures()["ended"] == 4


def test_a_test_that_failed_has_ended(made: Path) -> None:
    following = Following(RunFolder(made / ORACLE).manifest)
    for event in read_journal(RunFolder(made / ORACLE).journal("main")):
        following.add("main", event)
        if isinstance(event, events.Open):
            break
    ended = following.add("main", events.ScenarioError(test=event.test, error="it broke"))
    assert ended is not None
    assert (ended.test, ended.score, ended.reason) == (event.test, None, "the test failed: it broke")
    assert following.figures()["ended"] == 1


def test_if_the_length_is_known_the_time_left_is_that_of_the_replies_to_come(made: Path, tmp_path: Path) -> None:
    def steady(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            if entry["type"] == "reply":
                entry["measured"] = {"latency_s": 10.0 if entry["asked"] else 0.0}

    run = RunFolder(altered(made / ORACLE, tmp_path, steady))
    planned = replan_run(run.manifest, "silent", tmp_path)
    lengths = {id: dry_run(setting_of(planned.manifest, id), tests) for id, tests in planned.tests.items()}
    figures_after = followed(run, lambda: lengths)
    whole = figures_after[-1]["seconds"]
    assert figures_after[0]["share"] is None, "replies have taken no time"
    known = [figures for figures in figures_after if figures["share"] is not None]
    assert known
    for figures in known:
        assert figures["left"] == pytest.approx(whole - figures["seconds"], abs=20)
    shares = [figures["share"] for figures in known]
    assert shares == sorted(shares)
    assert (figures_after[-1]["share"], figures_after[-1]["left"]) == (1, 0)


RECORDED = next((Path(__file__).parents[2] / "results" / "memories").glob("reach-2k-memory-recent-*-seed0-*"))
PREDICTED = [260, 150, 88, 149, 89, 90, 87, 88, 89, 88, 89, 86, 87, 95, 670, 88, 86, 763, 761, 750, 746, 749, 748, 751, 754, 759, 758]
PREDICTED += [780, 764, 771, 763, 765, 779, 773, 733, 741, 744, 765, 743, 365, 95, 94, 87, 86, 85, 87, 88, 86]
"""What `predict_fresh_tokens` returns for this run, which needs the model's file."""


def test_the_time_left_of_a_local_model_is_right_within_a_factor_of_1_3() -> None:
    run = RunFolder(RECORDED)
    planned = replan_run(run.manifest, "silent", RECORDED.parent)
    lengths = {id: dry_run(setting_of(planned.manifest, id), tests) for id, tests in planned.tests.items()}
    gradebook = Gradebook(run.manifest, installed_scenarios(run.manifest.suite.scenarios))
    status = RunStatus(gradebook, lambda: lengths, predict=lambda replies: {"main": PREDICTED})
    known = []
    for event in read_journal(run.journal("main")):
        status.add("main", gradebook.add("main", event))
        known.append(status.figures())
    whole = known[-1].seconds
    for share in (0.25, 0.5, 0.75):
        figures = next(figures for figures in known if figures.seconds >= share * whole)
        assert figures.left is not None
        assert 1 / 1.3 < figures.left / (whole - figures.seconds) < 1.3, share
