"""The timeline of a run: a lane for each test, over the tokens of its conversation, with its turns and its grade. If a history has too many
questions for that, there is a lane for each grade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, final, get_args

from longspan.simulator.base.terminal import visible
from longspan.simulator.journal import events
from longspan.simulator.report.reading import ConversationView, Stretch, TestView, TurnView, stretches

__all__ = ["MAX_LANES", "Lane", "Mark", "Panel", "Sum", "Tick", "grade_of", "panels", "played_in", "ticks"]

MAX_LANES: Final = 40
"""The most lanes that a panel shows. If tests have conversations of their own, the remaining lanes are folded."""

MAX_JUMPS: Final = 60
"""The most jumps of the clock that are drawn. A history with a date for every turn has more, and they would show nothing."""

Grade = Literal["full", "part", "low", "none"]
"""A test's grade: all points, more than chance, no more than chance, or no score."""

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)


def grade_of(score: float | None, chance: float) -> Grade:
    if score is None:
        return "none"
    return "full" if score == 1 else "part" if score > chance else "low"


class Piece(NamedTuple):
    """A stretch of a lane: its start and its width, as shares of the conversation's tokens."""

    start: float
    width: float


class Mark(NamedTuple):
    """A turn of a test. `at` is where its message starts, as a share of the conversation's tokens."""

    at: float
    turn: TurnView
    shape: Literal["needle", "question", "line"]


class Tick(NamedTuple):
    at: float
    label: str


class Lane(NamedTuple):
    """One test, without its farewell, in a conversation of `tokens` tokens. A branch's tokens include its trunk's.

    `marks`: its turns, and the needles that it needs from a history. `spans`: from the first of them to its last question. `watched`: the
    turns that it watched. `filler` and `jumps` are empty unless the test has a conversation to itself.
    """

    test: TestView
    tokens: int
    grade: Grade
    spans: list[Piece]
    marks: list[Mark]
    watched: list[Piece]
    filler: list[Piece]
    jumps: list[float]


@final
class Sum(NamedTuple):
    """The tests with the same grade that ask about a history: their number, and the needles that they need."""

    grade: Grade
    tests: int
    marks: list[Mark]


@final
class Panel(NamedTuple):
    """Lanes over the `tokens` of one `conversation` and its longest branch; `conversation` is None if each lane has a conversation of its
    own.

    `tests` is the number of tests shown, each in a lane or together with others of its grade in `sums`. `history` is the part of the
    conversation that was told, if any.
    """

    conversation: ConversationView | None
    tokens: int
    tests: int
    ticks: list[Tick]
    filler: list[Piece]
    history: list[Piece]
    jumps: list[float]
    lanes: list[Lane]
    sums: list[Sum]


def panels(tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> list[Panel]:
    """Return a panel for each conversation with several tests, its own or its branches', and one panel for all others."""
    together: dict[str, list[TestView]] = {}
    for test in tests:
        if (conversation := conversations.get(test.result.conversation or "")) is not None:
            together.setdefault((conversation.trunk or conversation).id, []).append(test)
    shared = [_shared(conversations[id], group, conversations) for id, group in together.items() if len(group) > 1]
    single = [group[0] for group in together.values() if len(group) == 1]
    return shared + ([_single(single, conversations)] if single else [])


def played_in(tests: Iterable[TestView], conversations: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the tests of each conversation as JSON, for the page's script. A test is open from its `first` turn to its `last`."""
    found: dict[str, list[dict[str, Any]]] = {id: [] for id in conversations}
    for test in tests:
        if test.stretch is not None:
            result = test.result
            data = {"id": visible(result.id), "grade": grade_of(result.score, result.chance)}
            found[str(result.conversation)].append(data | test.stretch._asdict())
    return found


def _shared(conversation: ConversationView, tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> Panel:
    """Return the panel of a conversation. If a history has too many questions for a lane each, they are summed up by grade."""
    played = [conversations[str(test.result.conversation)] for test in tests]
    total = max(1, conversation.tokens, *(each.tokens for each in played))
    told = [turn.number for turn in conversation.turns if turn.told]
    summed = len(tests) > MAX_LANES and all(test.result.certified is None for test in tests)
    return Panel(
        conversation,
        total,
        len(tests),
        ticks(total),
        _filler(conversation, total),
        [_covered(conversation, stretch, total) for stretch in stretches(told)],
        _jumps(conversation, total),
        [] if summed else [_lane(test, each, total) for test, each in zip(tests, played, strict=True)],
        _sums(tests, total) if summed else [],
    )


def _sums(tests: Sequence[TestView], total: int) -> list[Sum]:
    found = []
    for grade in GRADES:
        group = [test for test in tests if grade_of(test.result.score, test.result.chance) == grade]
        needles = {turn.number: turn for test in group for turn in test.turns if turn.number in test.evidence}
        marks = [Mark(needles[number].message.start / total, needles[number], "needle") for number in sorted(needles)]
        if group:
            found.append(Sum(grade, len(group), marks))
    return found


def _single(tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> Panel:
    lanes = []
    for test in tests:
        conversation = conversations[str(test.result.conversation)]
        total = max(1, conversation.tokens)
        lane = _lane(test, conversation, total)
        lanes.append(lane._replace(filler=_filler(conversation, total), jumps=_jumps(conversation, total)))
    return Panel(None, 0, len(tests), [], [], [], [], lanes, [])


def _lane(test: TestView, conversation: ConversationView, total: int) -> Lane:
    own = [turn for turn in conversation.by_test[test.result.id] if turn.message.kind not in events.LEAVING]
    questions = [turn for turn in own if turn.message.kind == "question"]
    needed = [turn for turn in test.turns if turn.number in test.evidence and turn.message.test != test.result.id]
    spans = []
    if own:
        last = (questions or own)[-1].message
        spans = [_piece((needed or own)[0].message.start, last.start + last.tokens, total)]
    return Lane(
        test=test,
        tokens=total,
        grade=grade_of(test.result.score, test.result.chance),
        spans=spans,
        marks=[Mark(turn.message.start / total, turn, _shape(turn)) for turn in (*needed, *own)],
        watched=[_covered(conversation, stretch, total) for stretch in test.watched],
        filler=[],
        jumps=[],
    )


def _shape(turn: TurnView) -> Literal["needle", "question", "line"]:
    if turn.message.kind == "question":
        return "question"
    return "needle" if turn.message.needle else "line"


def _filler(conversation: ConversationView, total: int) -> list[Piece]:
    numbers = (turn.number for turn in conversation.turns if turn.message.kind == "filler")
    return [_covered(conversation, stretch, total) for stretch in stretches(numbers)]


def _jumps(conversation: ConversationView, total: int) -> list[float]:
    found = [turn.message.start / total for turn in conversation.turns if turn.jumps or turn.nights]
    return found if len(found) <= MAX_JUMPS else []


def _covered(conversation: ConversationView, stretch: Stretch, total: int) -> Piece:
    """Return the part of the tokens that a stretch of turns covers, with their replies. Turns missing from a damaged journal cover
    nothing."""
    first, after = conversation.turn(stretch.first), conversation.turn(stretch.last + 1)
    if first is None:
        return Piece(0, 0)
    return _piece(first.message.start, after.message.start if after is not None else conversation.tokens, total)


def _piece(start: int, end: int, total: int) -> Piece:
    return Piece(start / total, max(0, end - start) / total)


def ticks(total: int) -> list[Tick]:
    """Return two to five round numbers of tokens, starting at 0."""
    step = next(step for power in range(20) for step in (10**power, 2 * 10**power, 5 * 10**power) if total / step < 5)
    return [Tick(at / total, _tokens(at)) for at in range(0, total + 1, step)]


def _tokens(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return str(number)
