"""Graders agree with the answers that thousands of replies were made from, in forms that were kept from whoever wrote the rules."""

from __future__ import annotations

import pytest
from tests.scenarios.worded import SCENARIOS, agrees, forms, graded

LEAST = {"develop": 0.98, "held": 0.95}
LEAST_OF_ALL = {"develop": 0.99, "held": 0.965}
MOST_UNDECIDED = 0.02


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("half", LEAST)
def test_each_scenario_reads_them(half: str, scenario: str) -> None:
    found = graded(half, scenario)
    assert sum(agrees(*each) for each in found) / len(found) >= LEAST[half]
    assert sum(score is None for _, score in found) / len(found) <= MOST_UNDECIDED


@pytest.mark.parametrize("half", LEAST)
def test_all_scenarios_together(half: str) -> None:
    every = [each for scenario in SCENARIOS for each in graded(half, scenario)]
    assert sum(agrees(*each) for each in every) / len(every) >= LEAST_OF_ALL[half]


def test_the_halves_have_different_forms_of_the_same_groups() -> None:
    develop, held = ({(form.group, form.text) for form in forms(half)} for half in LEAST)
    assert not develop & held
    assert {group for group, _ in held} <= {group for group, _ in develop}
