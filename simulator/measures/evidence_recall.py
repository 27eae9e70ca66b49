"""How much of the questions' evidence an agent's memory stored and found, as far as its traces tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["PLACES", "EvidenceRecall", "evidence_metrics", "places_of", "recall_at", "recalls"]

PLACES: Final = (5, 10, 20)
"""The values of k for recall among the first k memories, unless fewer were asked for."""

_RECALL: Final = re.compile(r"evidence_recall@(\d{1,7})")


@final
class EvidenceRecall(Measure):
    """The mean share of the evidence that was stored and found, over the questions that count."""

    name = "evidence recall"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return evidence_metrics(test.evidence for test in run.tests if test.counts)

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        shares = ", ".join(f"{share:.3f} among the first {k}" for k, share in recalls(result.metrics).items())
        alone = not any(test.status == "scored" for test in result.tests)  # where questions are answered, their scores say more
        return Document(lines=[Sentence(f"evidence found: {shares}")] if shares and alone else [])


def places_of(tests: Iterable[Sequence[Evidence]]) -> Sequence[int]:
    """Return the values of k for recall: those in `PLACES` below the most memories asked for, and that number."""
    most = max((each.k or 0 for test in tests for each in test), default=0)
    return [k for k in PLACES if k < most] + [most] if most else PLACES  # no search: all was shown, or nothing


def evidence_metrics(tests: Iterable[Sequence[Evidence]], places: Sequence[int] | None = None) -> dict[str, float]:
    """Return the mean share of a question's evidence that was stored, and the mean share that was among the first k memories read.

    `tests` holds the evidence of each test. A figure is left out if no trace tells of it. `places` are the values of k, by default
    `places_of` these tests.
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
    """Return the recall among the first k memories, by k, from the figures that `evidence_metrics` returned."""
    found = {int(match[1]): value for name, value in metrics.items() if (match := _RECALL.fullmatch(name))}
    return dict(sorted(found.items()))


def recall_at(questions: Iterable[Sequence[Evidence]], k: int) -> Iterator[float]:
    """Yield the share of each question's evidence that was among the first `k` memories read or was shown anyway, where traces tell."""
    for question in questions:
        if all(each.retrieved is not None for each in question):
            yield fmean(each.rank is not None and each.rank <= k for each in question)


def _by_question(evidence: Iterable[Evidence]) -> Iterable[Sequence[Evidence]]:
    questions: dict[int, list[Evidence]] = defaultdict(list)
    for each in evidence:
        questions[each.question_turn].append(each)
    return questions.values()
