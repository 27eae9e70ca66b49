"""A test as two agents played it, turn by turn, with the first turn where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, final

from longspan.simulator.analysis.comparable import test_key
from longspan.simulator.analysis.distances import question_scores
from longspan.simulator.base.errors import InputError
from longspan.simulator.measures.memory_losses import OUTCOMES, outcome
from longspan.simulator.report.reading import ConversationView, Reading, TestView, TurnView
from longspan.simulator.report.timeline import Lane, lane_of
from longspan.simulator.results.graded_runs import Graded

__all__ = ["Exchange", "Side", "SideBySide", "side_by_side"]

Parting = Literal["message", "retrieval", "grade"]
"""The first thing that matters and differs between the two sides: what they are told, what a question makes them retrieve, or its grade."""


@final
class Side(NamedTuple):
    """A test as one agent played it. `fates`: by turn, the fate of a needle when each question needed it. `lane`: the test in a timeline,
    None if it was not begun."""

    run: Graded
    test: TestView
    fates: Mapping[int, Sequence[str]]
    lane: Lane | None


@final
class Exchange(NamedTuple):
    """A turn on both sides, with None where a side has none. `same`: whether the user said the same. `parting`: the first difference, if
    the sides part at this turn."""

    number: int
    turns: tuple[TurnView | None, TurnView | None]
    same: bool
    parting: Parting | None


@final
class SideBySide(NamedTuple):
    """A test on both sides, in turns."""

    sides: tuple[Side, Side]
    exchanges: list[Exchange]


def side_by_side(one: Graded, other: Graded, test: str) -> SideBySide:
    """Put a test next to the same test as another agent played it.

    Raises InputError if the runs do not both have the test, or do not play the same tests, and JournalError for a damaged journal.
    """
    if (one.manifest.suite.name, one.column, test_key(one, test)) != (other.manifest.suite.name, other.column, test_key(other, test)):
        raise InputError(f"{one.name} and {other.name} do not play the same tests; choose two runs of one suite, span and seed")
    (first, at_first), (second, at_second) = _played(one, test), _played(other, test)
    tokens = max(1, *(at.tokens for at in (at_first, at_second) if at is not None), 1)
    sides = _side(one, first, at_first, tokens), _side(other, second, at_second, tokens)
    return SideBySide(sides, list(_exchanges(first, second, at_first, at_second)))


def _played(run: Graded, test: str) -> tuple[TestView, ConversationView | None]:
    result = next((result for result in run.result.tests if result.id == test), None)
    if result is None:
        raise InputError(f"{run.name} has no test {test:.80}")
    conversations = Reading.of(run.folder).conversations
    return TestView.of(result, conversations), conversations.get(result.conversation or "")


def _side(run: Graded, test: TestView, conversation: ConversationView | None, tokens: int) -> Side:
    fates: dict[int, list[str]] = {}
    scores = question_scores(test.result)
    for pair in test.result.evidence:
        if (fate := outcome(pair, scores.get(pair.question_turn))) != "unknown":
            fates.setdefault(pair.needle_turn, []).append(OUTCOMES[fate])
    return Side(run, test, fates, lane_of(test, conversation, tokens) if conversation is not None else None)


def _exchanges(one: TestView, other: TestView, at_one: ConversationView | None, at_other: ConversationView | None) -> Iterator[Exchange]:
    parted = False
    scores = [question_scores(test.result) for test in (one, other)]
    for number in sorted({turn.number for test in (one, other) for turn in test.turns}):
        here, there = _said(at_one, number), _said(at_other, number)
        same = here.message == there.message
        parting = None if parted else _parting(here, there, [found.get(number) for found in scores])
        parted = parted or parting is not None
        yield Exchange(number, (here.turn, there.turn), same, parting)


def _parting(here: _Said, there: _Said, scores: Sequence[float | None]) -> Parting | None:
    """Return what differs at a turn, if it matters: not how a message that asks for nothing is acknowledged."""
    if here.message != there.message:
        return "message"
    if here.turn is None or there.turn is None or here.turn.message.kind != "question":
        return None
    if list(here.turn.recalled) != list(there.turn.recalled):
        return "retrieval"
    return "grade" if scores[0] != scores[1] else None


class _Said(NamedTuple):
    turn: TurnView | None
    message: str | None
    reply: str | None


def _said(conversation: ConversationView | None, number: int) -> _Said:
    """Return a turn with its message and its reply, with None for a missing one."""
    turn = conversation.turn(number) if conversation is not None else None
    if conversation is None or turn is None:
        return _Said(None, None, None)
    history = conversation.transcript.history
    return _Said(turn, turn.message.text, history[number].reply if number < len(history) else None)
