"""The runs in results/: graded again, they give the same results, and the pages and the figure that rest on them."""

from __future__ import annotations

from pathlib import Path

from scripts.results import RESULTS, Check, Statement, compare, find_differences, find_truths, find_window, regrade

import longspan
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.results.measures.reach import pool_reach
from longspan.simulator.results.reach_result import Extent


def test_the_runs_give_the_results_the_pages_and_the_figure() -> None:
    assert find_differences() == []


def test_a_changed_result_is_noticed() -> None:
    (run, *_), _ = load_runs([RESULTS / "searched"])
    changed = run.result.tests[0].model_copy(update={"items": []})
    forged = type(run)(run.folder, run.manifest, run.result.model_copy(update={"tests": [changed]}))
    assert regrade([run, forged]) == [run.name]


def test_a_window_is_where_the_facts_in_the_prompts_end() -> None:
    facts = [Statement(distance, distance < 300) for distance in range(10, 1000, 20)]
    truth = find_window(facts, [*facts, Statement(250, kept=False), Statement(400, kept=True)])
    assert (truth.value, truth.low, truth.high) == (300, 250, 400)
    assert str(truth) == "300 tokens (250 to 400)"


def test_an_interval_contains_what_lies_between_its_ends() -> None:
    distance = Extent(value=300, low=200, high=None)
    assert [Check("found", "reach", distance, truth).contains for truth in (199, 200, 9000)] == [False, True, True]
    share = Extent(value=0.1, low=0.004, high=0.254)
    assert [Check("found", "far", share, truth).contains for truth in (0.0, 0.25, 0.26)] == [True, True, False]
    assert not Check("found", "reach", None, 300).contains


def test_a_memory_that_loses_nothing_has_no_truth_to_compare(tmp_path: Path) -> None:
    played = longspan.run("reach", span="2k", agent=["memory/recent?answerer=none", "memory/recent?answerer=none&tokens=256"], out=tmp_path)
    whole, part = (load_runs([RunFolder(folder).path])[0] for folder in played.folders)
    assert find_truths(whole) == []
    (truth,) = find_truths(part)
    assert 100 < truth.value < 500
    assert {check.what for check in compare(part[0].result.reach, [truth])} == {"reach", "drop", "far"}


def test_a_limit_in_time_is_reported_in_time_although_the_model_misses_some_facts_before_it() -> None:
    runs = [run for run in load_runs([RESULTS / "losses"])[0] if "hours=24" in run.manifest.agent]
    (found,) = pool_reach(runs)
    assert found.unit == "seconds"
    assert found.kinds["decay"] > found.kinds["time window"], "it looks more gradual than it is"
    assert found.reach is not None
    assert Check("answered", "reach", found.reach.seconds, 24 * 3600).contains
