"""Every test can be solved: whoever answers ideally has full marks. CI plays a tenth of the seeds; LONGSPAN_SEEDS=all plays all.

Tests are rehearsed. That proves the same as whole conversations at any span: what a test says, what is ideal and how that is graded
depend on suite and seed alone, apart from the time that a joke is asked by and from the quotation that another test may append.
"""

from __future__ import annotations

import os

from longspan.simulator.running.preflight.rehearsal import rehearse_test
from longspan.simulator.suite.suite import load_suite, make_tests

SEEDS = range(300) if os.environ.get("LONGSPAN_SEEDS") == "all" else range(0, 300, 10)
SCENARIOS = [name for name in load_suite("ltm").scenarios if name != "restaurant"]
"""The restaurant has such a test of its own."""
QUOTATION = ' "A lantern is patience that learned to burn." - Ottokar Brindle'


def test_ideal_replies_have_full_marks_with_and_without_a_quotation_behind_them() -> None:
    for seed in SEEDS:
        for test in make_tests(load_suite("ltm").apply_changes([], [], SCENARIOS, None), seed, "uniform"):
            for ending in ("", QUOTATION):
                grade = rehearse_test(test, lambda text, ideal, ending=ending: ideal + ending).grade  # type: ignore[misc]
                assert grade.score == 1, (seed, test.id, ending, grade.reason)
