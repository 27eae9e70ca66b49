"""The suite memory as a whole: at every span, for every agent."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import trio

from longspan.simulator.contract.script import Placement
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

SPANS = [2_000, 500_000]
PLACEMENTS: list[Placement] = ["spread", "uniform", "early"]
SUITE = load_suite("memory")


def run(agent: str, out: Path, span: int = 2_000, seed: int = 0, placement: Placement = "spread") -> Result:
    settings = RunSettings(suite=SUITE, span=span, seed=seed, agent=agent, placement=placement)
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, out)]))
    return outcome.result


@pytest.mark.parametrize(
    ("span", "placement", "seed"),
    [*((span, "spread", 0) for span in SPANS), *((2_000, each, 1) for each in PLACEMENTS), (32_000, "early", 1)],
)
def test_oracle_has_full_marks_and_every_test_is_certified_at_distance(span: int, placement: Placement, seed: int, tmp_path: Path) -> None:
    result = run("oracle", tmp_path, span, seed, placement)
    assert [(test.id, test.reason) for test in result.tests if test.score != 1] == []
    assert [(test.id, test.span_dealt) for test in result.tests if not (test.certified and test.at_distance)] == []
    assert result.score == result.max_score == len(SUITE.scenarios)
    assert len(result.tests) == 3 * len(SUITE.scenarios)


def test_silent_scores_nothing(tmp_path: Path) -> None:
    result = run("silent", tmp_path)
    assert [(test.id, test.reason) for test in result.tests if test.score != 0] == []


def test_stateless_scores_no_more_than_chance(tmp_path: Path) -> None:
    tests = run("stateless", tmp_path).tests
    chance = sum(test.chance or 0 for test in tests)
    assert sum(test.lowest for test in tests) <= chance + 3 * math.sqrt(chance) + 0.01


def test_joined_with_the_papers_suite_both_can_be_solved(tmp_path: Path) -> None:
    joined = load_suite("ltm+memory")
    assert list(joined.scenarios) == [*load_suite("ltm").scenarios, *SUITE.scenarios]
    settings = RunSettings(suite=joined, span=4_000, seed=0, agent="oracle")
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path)]))
    assert {test.id for test in outcome.result.tests} > {f"{name}-{number}" for name in SUITE.scenarios for number in (1, 2, 3)}
    assert [(test.id, test.reason) for test in outcome.result.tests if test.score != 1] == []
