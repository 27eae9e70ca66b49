"""Graders read the scenarios' own sentences said back: each scenario by each form, with correct, wrong, partial and hedged contents."""

from __future__ import annotations

import os
import sys

import pytest
from tests.scenarios.inverted import ALL, SCENARIOS, VALUE, agrees, play, sentences, tabulate

LEAST_OF_ALL = 0.99
"""The share of a scenario's correct replies that are read as correct, and of its other replies that are read as what they are."""
LEAST_OF_FORM = 0.95
"""The same for one form."""
MOST = sys.maxsize if os.environ.get("LONGSPAN_SEEDS") == "all" else 400
"""The number of replies of a scenario that are played."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_reads_its_own_sentences_said_back(scenario: str) -> None:
    played = play(scenario, MOST)
    table = tabulate(played)
    print(*(f"{form}: {row}" for form, row in table.items()), sep="\n")
    print(*(f"{reply.form} [{reply.content}] {score}: {reply.text!r}" for reply, score in played if not agrees(reply, score)), sep="\n")
    assert min(table[ALL].correct, table[ALL].others) >= 50
    for form, row in table.items():
        least = LEAST_OF_ALL if form == ALL else LEAST_OF_FORM
        assert row.right >= least * row.correct, form
        assert row.told >= least * row.others, form


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_question_is_turned_into_statements_to_the_user(scenario: str) -> None:
    for case in SCENARIOS[scenario]():
        said = list(sentences(case))
        counts = {source: sum(each == source for each, _ in said) for source, _ in said}
        assert counts.get("question", 0) == len(case.asked)
        assert counts.get("statement", 0) > 0 or case.asked
        assert all(text.count(VALUE) == 1 and "my favourite" not in text for _, text in said), said
