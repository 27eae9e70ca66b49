"""The sentence at the top of a report."""

from __future__ import annotations

import pytest

from longspan.simulator.pages.report.verdict import loss_verdict
from longspan.simulator.results.measures.memory_losses import Answers, MemoryLosses, Needles, Tells


@pytest.mark.parametrize(
    ("tells", "needles", "sentence"),
    [
        ("memory", Needles(not_stored=5, not_retrieved=100, found_wrong=30, found_right=26),
         "Retrieval is the bottleneck: 100 of 161 needles were stored, not retrieved."),
        ("memory", Needles(not_stored=60, found_right=40), "Storage is the bottleneck: 60 of 100 needles were not stored."),
        ("memory", Needles(found_wrong=7, found_right=2),
         "Answering is the bottleneck: 7 of 9 needles were retrieved, but their questions not answered right."),
        ("memory", Needles(found_right=9), "No loss: all 9 needles were retrieved, and their questions answered right."),
        ("memory", Needles(unknown=9), ""),
        ("memory", Needles(found_right=3, unknown=9), "Unreported for 9 of 12 needles."),
        ("memory", Needles(found_right=9, unknown=3), "No reported loss: 9 of 12 needles were retrieved, 3 are unreported."),
        ("prompt", Needles(not_shown=35, found_wrong=3, found_right=49),
         "The prompt is the bottleneck: 35 of 87 needles were not in the prompt."),
        ("prompt", Needles(not_shown=8, found_right=2), "The prompt is the bottleneck: 8 of 10 needles were not in the prompt."),
    ],
)  # fmt: skip
def test_it_says_where_most_is_lost(tells: Tells, needles: Needles, sentence: str) -> None:
    losses = MemoryLosses.of([], 0)
    object.__setattr__(losses, "needles", needles)
    object.__setattr__(losses, "tells", tells)
    assert loss_verdict(losses) == sentence


def test_of_an_agent_that_tells_nothing_it_counts_the_answers() -> None:
    losses = MemoryLosses.of([], 0)
    object.__setattr__(losses, "answers", Answers(1, 2, 3, 4))
    assert loss_verdict(losses) == "Reports nothing about its memory: 1 of 6 questions answered in full, 2 in part."
    object.__setattr__(losses, "answers", Answers(undecided=4))
    assert loss_verdict(losses) == ""
