"""How much of the labelled evidence a memory finds, through the suite, as a separate computation did."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from tests.scenarios.histories.conftest import published

from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite


def test_bm25_finds_the_evidence_of_locomo_as_a_separate_computation_did(tmp_path: Path) -> None:
    """Each turn a document "speaker: text" of lower-case words, k1 1.5, b 0.75, the question as it stands: the 383 questions of
    categories 1 to 4, about the first three of ten histories, whose evidence is there."""
    locomo = load_suite("locomo").apply_changes([], [f"locomo={published('locomo') / 'locomo10.json.gz'}"], [], 3)
    planned = plan_run(RunSettings(suite=locomo, span=2_000, agent="memory/bm25?answerer=none&batch=turn"), tmp_path)
    [outcome] = trio.run(lambda: play_plans([planned]))
    assert outcome.error is None
    result = outcome.result
    assert result is not None
    assert len(result.tests) == 497
    assert sum(test.counts and bool(test.evidence) for test in result.tests) == 383
    assert [result.metrics[f"evidence_recall@{k}"] for k in (5, 10, 20)] == pytest.approx([0.442, 0.507, 0.614], abs=0.02)
    assert result.metrics["evidence_stored"] == 1
    assert result.score is None, "it only searched"
    assert result.turns == 1451 + 497, "every turn is told once"
