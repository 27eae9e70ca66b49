"""Graders read the scenarios' own sentences said back: each scenario by each form, with correct, wrong, partial and hedged contents."""

from __future__ import annotations

import os

import pytest
from tests.scenarios.inverted import SCENARIOS, agrees, play, tabulate

LEAST_OF_ALL = 0.99
"""The share of a scenario's correct replies that are read as correct, and of its other replies that are read as what they are."""
LEAST_OF_FORM = 0.95
"""The same for one form."""
SHARE = 1 if os.environ.get("LONGSPAN_SEEDS") == "all" else 6
"""One reply in this many is played."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_reads_its_own_sentences_said_back(scenario: str) -> None:
    table = tabulate(play(scenario, SHARE))
    print(*(f"{form:32} {right:4} of {every:4} correct  {told:4} of {others:4} others" for form, (right, every, told, others) in table.items()), sep="\n")
    print(*(f"{each.form} [{each.content}] {each.score}: {each.reply!r}" for each in play(scenario, SHARE) if not agrees(each)), sep="\n")
    right, every, told, others = (sum(column) for column in zip(*table.values(), strict=True))
    assert every > 20 and others > 100
    assert right >= LEAST_OF_ALL * every
    assert told >= LEAST_OF_ALL * others
    for form, (form_right, form_every, form_told, form_others) in table.items():
        assert form_right >= LEAST_OF_FORM * form_every, form
        assert form_told >= LEAST_OF_FORM * form_others, form


def test_every_question_and_statement_is_said_back_in_the_second_person() -> None:
    for name, cases in SCENARIOS.items():
        said = {each.reply for each in play(name, SHARE) if each.content == "correct"}
        assert not [reply for reply in said if " my " in reply and "notes" not in reply], name
        assert all(case.asked for case in cases())
