"""The share of the questions' evidence that an agent's memory stored and found, if its traces report it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, Self, final

from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.analysis.stage_estimates import by_question, found_share, places_of, stored_share
from longspan.simulator.results.measures.measure import GradedTests, Measure

__all__ = ["EvidenceRecall", "evidence_metrics", "recall_by_k"]

_RECALL: Final = re.compile(r"evidence_recall@(\d{1,7})")


@final
class EvidenceRecall(Measure):
    """The mean share of the evidence that was stored and found, over the questions that count."""

    name = "evidence recall"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return evidence_metrics(test.evidence for test in run.tests if test.counts)


def evidence_metrics(tests: Iterable[Sequence[Evidence]], places: Sequence[int] | None = None) -> dict[str, float]:
    """Return the mean share of a question's evidence that was stored, and the mean share that was among the first k memories read.

    `tests` has the evidence of each test. A figure is left out unless it is known for all evidence that traces report. `places` are the
    values of k, by default `places_of` these tests.
    """
    known = list(tests)
    questions = [question for test in known for question in by_question(test).values()]
    figures = {"evidence_stored": [stored_share(question) for question in questions]}
    figures |= {
        f"evidence_recall@{k}": [share for question in questions if (share := found_share(question, k)) is not None]
        for k in places or places_of(known)
    }
    return {
        name: round(fmean(low for low, _ in shares), 6)
        for name, shares in figures.items()
        if shares and all(low == high for low, high in shares)
    }


def recall_by_k(metrics: Mapping[str, float]) -> dict[int, float]:
    """Return the recall among the first k memories, by k, from the figures that `evidence_metrics` returned."""
    found = {int(match[1]): value for name, value in metrics.items() if (match := _RECALL.fullmatch(name))}
    return dict(sorted(found.items()))
