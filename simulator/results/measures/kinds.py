"""Tests by kind, from their tags, with the share of their questions' evidence that was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from longspan.simulator.results.analysis.groups import Group, make_group
from longspan.simulator.results.analysis.stage_estimates import places_of
from longspan.simulator.results.measures.evidence_recall import evidence_metrics, recall_by_k
from longspan.simulator.results.result import TestResult

__all__ = ["Kind", "by_kind", "common_ranks"]


@final
class Kind(NamedTuple):
    """The tests with one tag.

    `counted` is the number of tests that count toward the score. `recall` is the mean share of a question's evidence among the first k
    memories read, by k, if traces report it.
    """

    group: Group
    counted: int
    recall: dict[int, float]


def by_kind(tests: Iterable[TestResult]) -> dict[str, Kind]:
    """Return the kinds of tests, by tag in alphabetical order. A test counts for each of its tags."""
    tagged: dict[str, list[TestResult]] = {}
    known = list(tests)
    for test in known:
        for tag in dict.fromkeys(test.tags):
            tagged.setdefault(tag, []).append(test)
    measured = places_of(test.evidence for test in known)
    return {tag: _kind(tagged[tag], measured) for tag in sorted(tagged)}


def common_ranks(kinds: Iterable[Kind]) -> list[int]:
    """Return the values of k with a known recall for any of these kinds."""
    known = {k for kind in kinds for k in kind.recall}
    return sorted(known)


def _kind(tests: list[TestResult], measured: Sequence[int]) -> Kind:
    return Kind(
        make_group(tests), sum(test.counts for test in tests), recall_by_k(evidence_metrics((test.evidence for test in tests), measured))
    )
