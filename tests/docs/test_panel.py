"""Tables about a panel of agents (scripts/panel.py)."""

from __future__ import annotations

import numpy as np
import pytest
from scripts.panel import Components, estimate_components, make_agreement, make_scores, make_weaving, name_memory
from scripts.results import RESULTS

from longspan.simulator.results.graded_runs import GradedRun, load_runs


def test_effects_that_add_up_are_the_variances_of_their_parts() -> None:
    agent, scenario, seed = np.array([0.0, 0.4, 0.5]), np.array([0.1, 0.2, 0.3, 0.8]), np.array([-0.1, 0.1])
    found = estimate_components(agent[:, None, None] + scenario[:, None] + seed)
    assert found[:3] == pytest.approx([np.var(each, ddof=1) for each in (agent, scenario, seed)])
    assert found[3:] == pytest.approx([0, 0, 0, 0, 4])


def test_each_component_is_found_among_the_others() -> None:
    random = np.random.default_rng(0)
    planted = Components(0.04, 0.09, 0.0025, 0.01, 0.0009, 0.0225, 0.04, 8)
    axes = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]

    def draw() -> Components:
        shapes = [tuple((9, 8, 4)[axis] if axis in of else 1 for axis in range(3)) for of in axes]
        return estimate_components(sum(random.normal(0, part**0.5, shape) for part, shape in zip(planted[:7], shapes, strict=True)))

    means = np.mean([draw()[:7] for _ in range(500)], axis=0)
    assert means == pytest.approx(planted[:7], rel=0.15, abs=0.0005)  # negative estimates count as 0


def test_more_seeds_halve_the_error_as_their_root() -> None:
    parts = Components(0.1, 0.1, 0.01, 0.1, 0.01, 0.05, 0.05, 5)
    assert parts.error(1) == pytest.approx((0.02 + 0.1 / 5) ** 0.5)
    assert parts.error_of_difference(1) == pytest.approx((2 * (0.01 + 0.05 / 5)) ** 0.5)
    assert parts.error(4) == pytest.approx(parts.error(1) / 2)


def test_a_panel_is_ranked_scored_and_compared() -> None:
    played = {agent: runs("notebooks", agent) for agent in ("notebook?window=256", "notebook?window=512", "notebook?window=1k")}
    worst_last = {agent: played[other] for agent, other in zip(played, reversed(played), strict=True)}
    assert "1.00 (3 agents)" in make_agreement({"one": played, "other": played})
    assert "-1.00 (3 agents)" in make_agreement({"one": played, "other": worst_last})
    table = make_scores({"ltm": played, "empty": {}}).splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == [
        *(f"| `{agent}`" for agent in played),
        "| guessing",
        "| seeds",
        "| minutes per run",
    ]
    assert {line.split(" | ")[2] for line in table[2:]} <= {"– |", " |"}
    same = make_weaving({"isolated": played, "woven": played}).splitlines()
    assert same[2].split(" | ")[3].startswith("+0% ")


def runs(sweep: str, agent: str) -> list[GradedRun]:
    return [run for run in load_runs([RESULTS / sweep])[0] if run.manifest.agent == agent]


def test_memories_have_names() -> None:
    assert name_memory("gguf/a.gguf?context=1k&system=Be brief.") == 'prompts of up to 1k, "Be brief."'
    assert name_memory("memory/recent?answerer=none&tokens=256") == "`memory/recent?tokens=256`"
    assert name_memory("memory/python:known_memory:Known?drop=0.2") == "drops 20% of the messages"
