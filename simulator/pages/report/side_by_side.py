"""A test as played by two agents, turn by turn, with the first turn where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.pages.report.run_view import ConversationView, RunView, TestView, TurnView
from longspan.simulator.pages.report.timeline import Lane, lane_of
from longspan.simulator.results.analysis.comparable import test_key
from longspan.simulator.results.analysis.distances import question_scores
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.memory_losses import OUTCOMES, needle_outcome

__all__ = ["Exchange", "Side", "SideBySide", "side_by_side"]

Parting = Literal["message", "retrieval", "grade"]
"""The first relevant difference between the two sides: the message, the memories retrieved for a question, or its grade."""


@final
class Side(NamedTuple):
    """A test as played by one agent.

    `fates` has the fate of each needle for each question that needed it, by the needle's turn. `lane` is the test in a timeline; None if it
    was not begun.
    """

    run: GradedRun
    test: TestView
    fates: Mapping[int, Sequence[str]]
    lane: Lane | None


@final
class Exchange(NamedTuple):
    """A turn on both sides, None for a side without it.

    `same`: whether the user's messages are the same. `parting`: the first difference, if it is in this turn.
    """

    number: int
    turns: tuple[TurnView | None, TurnView | None]
    same: bool
    parting: Parting | None


@final
class SideBySide(NamedTuple):
    """A test on both sides, in turns."""

    sides: tuple[Side, Side]
    exchanges: list[Exchange]


def side_by_side(one: GradedRun, other: GradedRun, test: str) -> SideBySide:
    """Return a test of two agents side by side.

    Raises InputError if the runs do not both have the test, or do not play the same tests, and JournalError for a damaged journal.
    """
    if (one.manifest.suite.name, one.column, test_key(one, test)) != (other.manifest.suite.name, other.column, test_key(other, test)):
        raise InputError(f"{one.name} and {other.name} do not play the same tests; choose two runs of one suite, span and seed")
    (first, at_first), (second, at_second) = _find_test(one, test), _find_test(other, test)
    tokens = max(1, *(at.tokens for at in (at_first, at_second) if at is not None), 1)
    sides = _side(one, first, at_first, tokens), _side(other, second, at_second, tokens)
    return SideBySide(sides, list(_exchanges(first, second, at_first, at_second)))


def _find_test(run: GradedRun, test: str) -> tuple[TestView, ConversationView | None]:
    result = next((result for result in run.result.tests if result.id == test), None)
    if result is None:
        raise InputError(f"{run.name} has no test {test:.80}")
    conversations = RunView.of(run.folder).conversations
    return TestView.of(result, conversations), conversations.get(result.conversation or "")


def _side(run: GradedRun, test: TestView, conversation: ConversationView | None, tokens: int) -> Side:
    fates: dict[int, list[str]] = {}
    scores = question_scores(test.result)
    for pair in test.result.evidence:
        if (fate := needle_outcome(pair, scores.get(pair.question_turn))) != "unknown":
            fates.setdefault(pair.needle_turn, []).append(OUTCOMES[fate])
    return Side(run, test, fates, lane_of(test, conversation, tokens) if conversation is not None else None)


def _exchanges(one: TestView, other: TestView, at_one: ConversationView | None, at_other: ConversationView | None) -> Iterator[Exchange]:
    parted = False
    scores = [question_scores(test.result) for test in (one, other)]
    for number in sorted({turn.number for test in (one, other) for turn in test.turns}):
        here, there = _find_exchange(at_one, number), _find_exchange(at_other, number)
        same = here.message == there.message
        parting = None if parted else _describe_parting(here, there, [found.get(number) for found in scores])
        parted = parted or parting is not None
        yield Exchange(number, (here.turn, there.turn), same, parting)


def _describe_parting(here: _Exchange, there: _Exchange, scores: Sequence[float | None]) -> Parting | None:
    """Return the relevant difference in a turn, if any. Different acknowledgements of a message that asks for nothing are not relevant."""
    if here.message != there.message:
        return "message"
    if here.turn is None or there.turn is None or here.turn.message.kind != "question":
        return None
    if list(here.turn.recalled) != list(there.turn.recalled):
        return "retrieval"
    return "grade" if scores[0] != scores[1] else None


class _Exchange(NamedTuple):
    turn: TurnView | None
    message: str | None
    reply: str | None


def _find_exchange(conversation: ConversationView | None, number: int) -> _Exchange:
    """Return a turn with its message and its reply, each None if missing."""
    turn = conversation.turn(number) if conversation is not None else None
    if conversation is None or turn is None:
        return _Exchange(None, None, None)
    history = conversation.transcript.history
    return _Exchange(turn, turn.message.text, history[number].reply if number < len(history) else None)
