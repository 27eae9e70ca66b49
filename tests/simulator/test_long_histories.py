"""Long histories: making and playing their tests takes time in proportion to their length, and a branch takes no memory for its trunk."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from random import Random
from typing import ClassVar

import pytest
from tests.timing import growth

from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Placement, Script
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.suite.suite import Suite, make_tests

QUADRATIC = 30
"""Ten times the size takes about ten times as long, or a hundred times if each item is compared with every other."""


def history(sessions: int, turns: int) -> Script:
    told = [Line(f"Turn {turn}.", reply="Yes.", together=turn > 0) for turn in range(turns)]
    return Script(facts={}, lines=told * sessions, alone=True)


@pytest.mark.parametrize("placement", ["spread", "uniform", "early"])
def test_many_sessions_are_placed_in_time_in_proportion(placement: Placement) -> None:
    made = {sessions: history(sessions, 2) for sessions in (1_000, 10_000)}
    assert growth(lambda sessions: made[sessions].placed(placement, Random(0)), 1_000) < QUADRATIC


def test_one_long_session_is_outlined_in_time_in_proportion() -> None:
    made = {turns: history(1, turns) for turns in (8_000, 80_000)}
    assert growth(lambda turns: made[turns].segments(len, "uniform"), 8_000) < QUADRATIC


class Many(Scenario):
    """Has `count` tests, which have the same script."""

    name: ClassVar[str] = "many"
    skills: ClassVar[tuple[Skill, ...]] = ("recall",)

    count: int

    def make(self, random: Random) -> Script:
        return Script(facts={}, lines=[Line("What did I say?", asks=True)], alone=True)

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        script = self.make(Random(seed))
        return ((f"q{number}", script) for number in range(self.count))

    def grade(self, facts: object, record: Record) -> Grade:
        return Grade(score=1.0, reason="")


def test_many_questions_are_made_in_time_in_proportion() -> None:
    def make(tests: int) -> None:
        make_tests(Suite(name="many", tests=1, scenarios={f"python:{__name__}:Many": {"count": tests}}), 0, "uniform")

    make(1)  # imports what is imported late
    assert growth(make, 2_000) < QUADRATIC


def test_branches_share_the_turns_of_their_trunk() -> None:
    trunk = Transcript()
    for turn in range(20_000):
        trunk.history.append(Exchange(turn, "Hello", "Hi"))
    tracemalloc.start()
    try:
        branches = [Transcript(trunk) for _ in range(100)]
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 100 * len(trunk.history)  # a copy would take 8 bytes for each turn and branch
    first, second = branches[:2]
    first.history.append(Exchange(20_000, "Where do I live?", "In Lima."))
    assert (len(first.history), first.history[20_000].reply, first.history[19_999].reply) == (20_001, "In Lima.", "Hi")
    assert (len(second.history), len(trunk.history)) == (20_000, 20_000)
