"""How much of the evidence that questions need an agent's memory stored and found, as far as its traces tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from longspan.simulator.journal.transcript import Evidence

__all__ = ["PLACES", "evidence_metrics", "places_of", "recall_at", "recalls"]

PLACES: Final = (5, 10, 20)
"""The numbers of memories at which recall is measured, as far as so many were asked for."""

_RECALL: Final = re.compile(r"evidence_recall@(\d{1,7})")


def places_of(tests: Iterable[Sequence[Evidence]]) -> Sequence[int]:
    """Return the numbers of memories at which the recall of tests is measured: `PLACES` up to k, the most that were asked for, and k."""
    most = max((each.k or 0 for test in tests for each in test), default=0)
    return [k for k in PLACES if k < most] + [most] if most else PLACES  # where none was read, all was shown anyway, or nothing


def evidence_metrics(tests: Iterable[Sequence[Evidence]], places: Sequence[int] | None = None) -> dict[str, float]:
    """Return the means over questions of the share of their evidence that was stored, and that was among the first memories read.

    `tests`: the evidence of each test. A figure is left out if no trace tells of it. `places`: the numbers of first memories, by default
    those of these tests (`places_of`).
    """
    known = list(tests)
    questions = [question for test in known for question in _by_question(test)]
    stored = [
        fmean(each.stored is True for each in question) for question in questions if all(each.stored is not None for each in question)
    ]
    recall = {f"evidence_recall@{k}": list(recall_at(questions, k)) for k in places or places_of(known)}
    metrics = {"evidence_stored": stored} | recall
    return {name: round(fmean(shares), 6) for name, shares in metrics.items() if shares}


def recalls(metrics: Mapping[str, float]) -> dict[int, float]:
    """Return the recall among the first k memories, by k, of the figures that `evidence_metrics` returned."""
    found = {int(match[1]): value for name, value in metrics.items() if (match := _RECALL.fullmatch(name))}
    return dict(sorted(found.items()))


def recall_at(questions: Iterable[Sequence[Evidence]], k: int) -> Iterator[float]:
    """Yield the share of each question's evidence that was among the first `k` memories read, or shown anyway, if traces tell."""
    for question in questions:
        if all(each.retrieved is not None for each in question):
            yield fmean(each.rank is not None and each.rank <= k for each in question)


def _by_question(evidence: Iterable[Evidence]) -> Iterable[Sequence[Evidence]]:
    questions: dict[int, list[Evidence]] = defaultdict(list)
    for each in evidence:
        questions[each.question_turn].append(each)
    return questions.values()
