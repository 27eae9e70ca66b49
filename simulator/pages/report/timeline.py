"""The timeline of a run: a lane for each test, or for each fact it asks for, with needles, questions, and the fates of needles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, Literal, NamedTuple, final

from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.contract.rungs import find_rungs
from longspan.simulator.journal import events
from longspan.simulator.pages.report.run_view import ConversationView, Stretch, TestView, TurnView, split_stretches
from longspan.simulator.pages.report.story import Story
from longspan.simulator.results.analysis.distances import question_scores, questions_with_needs
from longspan.simulator.results.measures.memory_losses import FURTHEST_FIRST, LOST, Outcome, deciding_needle, need_outcomes

__all__ = [
    "Arc",
    "Grade",
    "Lane",
    "Panel",
    "Tick",
    "TurnMark",
    "count_fates",
    "grade_of",
    "lane_of",
    "make_panels",
    "round_ticks",
    "tests_by_conversation",
]

MAX_CROSSINGS: Final = 60
"""The maximum number of clock jumps, and of nights, that are drawn. A history with a date for every turn has more, which show nothing."""

MAX_INSTEAD: Final = 3
"""The maximum number of turns shown as retrieved instead of a question's needles: the first ones."""

Grade = Literal["full", "part", "low", "none"]
"""A test's grade: all points, more than chance, no more than chance, or no score."""

WORST_FIRST: Final[tuple[Grade, ...]] = ("low", "part", "none", "full")
"""The grades, in the order of the lanes."""

Shape = Literal["needle", "question", "line"]


def grade_of(score: float | None, chance: float) -> Grade:
    if score is None:
        return "none"
    return "full" if score == 1 else "part" if score > chance else "low"


class Band(NamedTuple):
    """A stretch of a conversation, in tokens from its beginning."""

    start: int
    end: int


class TurnMark(NamedTuple):
    """A turn of a test.

    `at` is the start of its message, in tokens. `look` is the fate of a needle (empty if no question needs it), or the grade of a question.
    """

    turn: int
    at: int
    shape: Shape
    look: str


class Arc(NamedTuple):
    """A connection from a turn to the question that needs it, or that retrieved it instead.

    `start` and `end` are the starts of their messages, in tokens. `fate` is the needle's fate, or "instead".
    """

    turn: int
    question: int
    start: int
    end: int
    fate: Outcome | Literal["instead"]


class Tick(NamedTuple):
    """A place on an axis, as a share of its length, and its label."""

    at: float
    label: str


@final
class Fact(NamedTuple):
    """A fact that a test asks for. `distance` is how far back it was stated, in words. `group` is the heading of its lane."""

    turn: int
    name: str
    group: str
    distance: str
    score: float | None


@final
class Lane(NamedTuple):
    """One test, or one `fact` of it, without its farewell, in a conversation of `tokens` tokens. A branch's tokens include its trunk's.

    `marks` are its turns, and the needles that it needs from a history. `arcs` has one arc for each needle that a question needs; of
    several alternative needles, the one that came furthest. `instead` are the turns retrieved for questions that lack a needle. `watched`
    are the turns that it watched. `filler` and `jumps` are empty unless the test has a separate conversation.
    """

    test: TestView
    tokens: int
    grade: Grade
    marks: list[TurnMark]
    arcs: list[Arc]
    instead: list[Arc]
    watched: list[Band]
    filler: list[Band]
    jumps: list[int]
    fact: Fact | None = None

    def data(self) -> dict[str, Any]:
        """Return the lane as JSON, for the page's script."""
        result, fact = self.test.result, self.fact
        own: dict[str, Any] = {}
        if fact is not None:
            own = {
                "id": escape_invisible(f"{result.id}-{fact.turn}"),
                "test": escape_invisible(result.id),
                "name": escape_invisible(fact.name),
                "group": escape_invisible(fact.group),
                "value": fact.distance,
                "score": fact.score,
                "status": None if fact.score is not None else "undecided",
            }
        values = {
            "id": escape_invisible(result.id),
            "group": escape_invisible(result.tags[0] if result.tags else result.scenario),
            "conversation": result.conversation,
            "tokens": self.tokens,
            "grade": self.grade,
            "score": result.score,
            "status": None if result.score is not None else result.status.replace("_", " "),
            "marks": self.marks,
            "arcs": self.arcs,
            "instead": self.instead,
            "watched": self.watched,
            "filler": self.filler,
            "jumps": self.jumps,
            "story": (Story.of(self.test) if fact is None else Story.of_fact(self.test, fact.turn)).data(),
        } | own
        return {key: value for key, value in values.items() if value is not None and value != []}


@final
class Panel(NamedTuple):
    """Lanes over the `tokens` of one `conversation` and its longest branch.

    `conversation` is None if each lane has a separate conversation. `told` are the turns of a history, and `jumps` the jumps of the clock
    and nights.
    """

    conversation: ConversationView | None
    tokens: int
    ticks: list[Tick]
    filler: list[Band]
    told: list[Band]
    jumps: list[int]
    lanes: list[Lane]

    def data(self) -> dict[str, Any]:
        """Return the panel as JSON, for the page's script."""
        return {
            "conversation": self.conversation.id if self.conversation is not None else None,
            "tokens": self.tokens,
            "filler": self.filler,
            "told": self.told,
            "jumps": self.jumps,
            "facts": any(lane.fact is not None for lane in self.lanes),
            "lanes": [lane.data() for lane in self.lanes],
        }


def make_panels(tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> list[Panel]:
    """Return a panel for each conversation with several tests, or with facts, and one panel for all other tests.

    A conversation's tests include its branches' tests. Lanes of tests are ordered by grade, worst first; lanes of facts are ordered by
    distance.
    """
    together: dict[str, list[TestView]] = {}
    for test in tests:
        if (conversation := conversations.get(test.result.conversation or "")) is not None:
            together.setdefault((conversation.trunk or conversation).id, []).append(test)
    several = {id: len(group) > 1 or bool(find_rungs(group[0].result.items)) for id, group in together.items()}
    shared = [_shared_panel(conversations[id], group, conversations) for id, group in together.items() if several[id]]
    single = [group[0] for id, group in together.items() if not several[id]]
    return shared + ([_single(single, conversations)] if single else [])


def count_fates(panels: Iterable[Panel]) -> Counter[Outcome]:
    """Return how many arcs have each fate."""
    return Counter(arc.fate for panel in panels for lane in panel.lanes for arc in lane.arcs if arc.fate != "instead")


def tests_by_conversation(tests: Iterable[TestView], conversations: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the tests of each conversation as JSON, for the page's script. A test is open from its `first` turn to its `last`."""
    found: dict[str, list[dict[str, Any]]] = {id: [] for id in conversations}
    for test in tests:
        if test.stretch is not None:
            result = test.result
            data = {"id": escape_invisible(result.id), "grade": grade_of(result.score, result.chance)}
            found[str(result.conversation)].append(data | test.stretch._asdict())
    return found


def _shared_panel(conversation: ConversationView, tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> Panel:
    played = [conversations[str(test.result.conversation)] for test in tests]
    total = max(1, conversation.tokens, *(each.tokens for each in played))
    told = [turn.number for turn in conversation.turns if turn.told]
    return Panel(
        conversation=conversation,
        tokens=total,
        ticks=round_ticks(total),
        filler=_filler(conversation),
        told=[_covered_band(conversation, stretch) for stretch in split_stretches(told)],
        jumps=_jumps(conversation),
        lanes=[lane for lane in _sort_lanes(map(lane_of, tests, played, repeat(total))) for lane in _split(lane) or [lane]],
    )


def _split(lane: Lane) -> list[Lane]:
    """Return the lanes of the facts that a test asks for, nearest first; empty for other tests."""
    result = lane.test.result
    names = {item.turn: item.name for item in result.items}
    distances = {question.turn: question.tokens for question in questions_with_needs(result)}
    lanes = []
    for rung in sorted(find_rungs(result.items), key=lambda rung: distances.get(rung.turn, 0)):
        needles = {pair.needle_turn for pair in result.evidence if pair.question_turn == rung.turn}
        group = f"{rung.strand}, at once" if rung.at_once else rung.strand
        distance = format_tokens(distances[rung.turn]) if rung.turn in distances and not rung.at_once else "0"
        fact = Fact(rung.turn, names.get(rung.turn, ""), group, distance, rung.score)
        lanes.append(
            lane._replace(
                grade=grade_of(rung.score, rung.chance),
                marks=[mark for mark in lane.marks if mark.turn == rung.turn or mark.turn in needles],
                arcs=[arc for arc in lane.arcs if arc.question == rung.turn],
                instead=[arc for arc in lane.instead if arc.question == rung.turn],
                watched=[],
                fact=fact,
            )
        )
    return sorted(lanes, key=lambda each: each.fact is not None and each.fact.group.endswith(", at once"))


def _single(tests: Sequence[TestView], conversations: Mapping[str, ConversationView]) -> Panel:
    lanes = []
    for test in tests:
        conversation = conversations[str(test.result.conversation)]
        lane = lane_of(test, conversation, max(1, conversation.tokens))
        lanes.append(lane._replace(filler=_filler(conversation), jumps=_jumps(conversation)))
    return Panel(None, 0, [], [], [], [], _sort_lanes(lanes))


def _sort_lanes(lanes: Iterable[Lane]) -> list[Lane]:
    return sorted(lanes, key=lambda lane: (WORST_FIRST.index(lane.grade), lane.test.result.score or 0))


def lane_of(test: TestView, conversation: ConversationView, total: int) -> Lane:
    """Return the lane of a test in its conversation, which takes `total` tokens of the axis."""
    own = [turn for turn in conversation.by_test[test.result.id] if turn.message.kind not in events.LEAVING]
    needed = [turn for turn in test.turns if turn.number in test.evidence and turn.message.test != test.result.id]
    arcs = list(_arcs(test, conversation))
    scores = question_scores(test.result)
    worst: dict[int, Outcome] = {}
    for arc in arcs:
        if arc.fate != "instead":
            worst[arc.turn] = max(worst.get(arc.turn, arc.fate), arc.fate, key=FURTHEST_FIRST.index)

    def mark(turn: TurnView) -> TurnMark:
        shape = _shape(turn)
        look: str = worst.get(turn.number, "")
        if shape == "question":
            look = grade_of(scores.get(turn.number, test.result.score), test.result.chance)
        return TurnMark(turn.number, turn.message.start, shape, look)

    return Lane(
        test=test,
        tokens=total,
        grade=grade_of(test.result.score, test.result.chance),
        marks=[mark(turn) for turn in (*needed, *own)],
        arcs=arcs,
        instead=list(_instead(arcs, conversation)),
        watched=[_covered_band(conversation, stretch) for stretch in test.watched],
        filler=[],
        jumps=[],
    )


def _arcs(test: TestView, conversation: ConversationView) -> Iterable[Arc]:
    for need, fate in need_outcomes(test.result):
        pair = deciding_needle(need, fate, test.result)
        needle, question = conversation.turn(pair.needle_turn), conversation.turn(need.turn)
        if needle is not None and question is not None:
            yield Arc(needle.number, question.number, needle.message.start, question.message.start, fate)


def _instead(arcs: Sequence[Arc], conversation: ConversationView) -> Iterable[Arc]:
    """Yield the turns retrieved for questions that lack a needle, unless a question of the test needs them."""
    needed = {arc.turn for arc in arcs}
    for number in sorted({arc.question for arc in arcs if arc.fate in LOST}):
        question = conversation.turn(number)
        recalled = [turn for turn in question.recalled if turn not in needed] if question is not None else []
        for source in map(conversation.turn, recalled[:MAX_INSTEAD]):
            if question is not None and source is not None:
                yield Arc(source.number, number, source.message.start, question.message.start, "instead")


def _shape(turn: TurnView) -> Shape:
    if turn.message.kind == "question":
        return "question"
    return "needle" if turn.message.needle else "line"


def _filler(conversation: ConversationView) -> list[Band]:
    numbers = (turn.number for turn in conversation.turns if turn.message.kind == "filler")
    return [_covered_band(conversation, stretch) for stretch in split_stretches(numbers)]


def _jumps(conversation: ConversationView) -> list[int]:
    found = [turn.message.start for turn in conversation.turns if turn.jumps or turn.nights]
    return found if len(found) <= MAX_CROSSINGS else []


def _covered_band(conversation: ConversationView, stretch: Stretch) -> Band:
    """Return the tokens that a stretch of turns covers, with their replies. Turns missing from a damaged journal cover nothing."""
    first, after = conversation.turn(stretch.first), conversation.turn(stretch.last + 1)
    if first is None:
        return Band(0, 0)
    start = first.message.start
    return Band(start, max(start, after.message.start if after is not None else conversation.tokens))


def round_ticks(total: int) -> list[Tick]:
    """Return two to five round numbers of tokens, starting at 0."""
    step = next(step for power in range(20) for step in (10**power, 2 * 10**power, 5 * 10**power) if total / step < 5)
    return [Tick(at / total, _tokens(at)) for at in range(0, total + 1, step)]


def _tokens(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return str(number)
