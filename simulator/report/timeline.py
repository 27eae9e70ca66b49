"""A picture of a run's conversations: a lane for each test, over tokens, with what was said for it and how it was graded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, final

from longspan.simulator.report.reading import Conversation, Stretch, Test, Turn, stretches

__all__ = ["Lane", "Mark", "Panel", "Tick", "grade_of", "panels"]

Grade = Literal["full", "part", "low", "none"]
"""How a test came out: all points, more than guessing gives, no more than that, or no score."""


def grade_of(score: float | None, chance: float) -> Grade:
    if score is None:
        return "none"
    return "full" if score == 1 else "part" if score > chance else "low"


class Piece(NamedTuple):
    """A stretch of a lane: where it begins and how wide it is, as shares of its conversation's tokens."""

    begin: float
    width: float


class Mark(NamedTuple):
    """A turn of a test: where its message begins, as a share of its conversation's tokens."""

    at: float
    turn: Turn
    shape: Literal["needle", "question", "line"]


class Tick(NamedTuple):
    at: float
    label: str


class Lane(NamedTuple):
    """One test, without its farewell. `spans`: from its first line to its last question; `watched`: the turns it watched.

    `filler` and `jumps` are those of its conversation of so many `tokens`, where it has one of its own.
    """

    test: Test
    tokens: int
    grade: Grade
    spans: list[Piece]
    marks: list[Mark]
    watched: list[Piece]
    filler: list[Piece]
    jumps: list[float]


@final
class Panel(NamedTuple):
    """Lanes over the tokens of their `conversation`; None where each has one of its own, and is as long as that."""

    conversation: Conversation | None
    ticks: list[Tick]
    filler: list[Piece]
    jumps: list[float]
    lanes: list[Lane]


def panels(tests: Sequence[Test], conversations: Mapping[str, Conversation]) -> list[Panel]:
    """A panel for each conversation with several tests, and one for all that have a single test."""
    by_conversation: dict[str, list[Test]] = {}
    for test in tests:
        if test.result.conversation in conversations:
            by_conversation.setdefault(str(test.result.conversation), []).append(test)
    shared = [_shared(conversations[id], group) for id, group in by_conversation.items() if len(group) > 1]
    alone = [group[0] for group in by_conversation.values() if len(group) == 1]
    return shared + ([_alone(alone, conversations)] if alone else [])


def _shared(conversation: Conversation, tests: Iterable[Test]) -> Panel:
    total = max(1, conversation.tokens)
    lanes = [_lane(test, conversation, total) for test in tests]
    return Panel(conversation, _ticks(total), _filler(conversation, total), _jumps(conversation, total), lanes)


def _alone(tests: Iterable[Test], conversations: Mapping[str, Conversation]) -> Panel:
    lanes = []
    for test in tests:
        conversation = conversations[str(test.result.conversation)]
        total = max(1, conversation.tokens)
        lane = _lane(test, conversation, total)
        lanes.append(lane._replace(filler=_filler(conversation, total), jumps=_jumps(conversation, total)))
    return Panel(None, [], [], [], lanes)


def _lane(test: Test, conversation: Conversation, total: int) -> Lane:
    own = [turn for turn in conversation.said[test.result.id] if turn.message.kind != "farewell"]
    asked = [turn for turn in own if turn.message.kind == "question"]
    spans = []
    if own:
        last = (asked or own)[-1].message
        spans = [_piece(own[0].message.start, last.start + last.tokens, total)]
    return Lane(
        test=test,
        tokens=total,
        grade=grade_of(test.result.score, test.result.chance),
        spans=spans,
        marks=[Mark(turn.message.start / total, turn, _shape(turn)) for turn in own],
        watched=[_covered(conversation, stretch, total) for stretch in test.watched],
        filler=[],
        jumps=[],
    )


def _shape(turn: Turn) -> Literal["needle", "question", "line"]:
    if turn.message.kind == "question":
        return "question"
    return "needle" if turn.message.needle else "line"


def _filler(conversation: Conversation, total: int) -> list[Piece]:
    numbers = (turn.number for turn in conversation.turns if turn.message.kind == "filler")
    return [_covered(conversation, stretch, total) for stretch in stretches(numbers)]


def _jumps(conversation: Conversation, total: int) -> list[float]:
    return [turn.message.start / total for turn in conversation.turns if turn.jumps]


def _covered(conversation: Conversation, stretch: Stretch, total: int) -> Piece:
    """The tokens of some turns, replies included. Turns that a broken journal does not have cover nothing."""
    last = min(stretch.last, len(conversation.turns) - 1)
    if not 0 <= stretch.first <= last:
        return Piece(0, 0)
    after = conversation.turns[last + 1].message.start if last + 1 < len(conversation.turns) else conversation.tokens
    return _piece(conversation.turns[stretch.first].message.start, after, total)


def _piece(begin: int, end: int, total: int) -> Piece:
    return Piece(begin / total, max(0, end - begin) / total)


def _ticks(total: int) -> list[Tick]:
    """From two to five round numbers of tokens, from 0 on."""
    step = next(step for power in range(20) for step in (10**power, 2 * 10**power, 5 * 10**power) if total / step < 5)
    return [Tick(at / total, _tokens(at)) for at in range(0, total + 1, step)]


def _tokens(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return str(number)
