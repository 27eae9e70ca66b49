"""Pictures of where a memory was lost: a funnel, a bar for each group, and a map of scores by a needle's depth and distance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

from longspan.simulator.pages.report.run_view import ConversationView
from longspan.simulator.results.analysis.distances import MAX_TOKENS, Point, questions_with_needs
from longspan.simulator.results.analysis.groups import Group, make_group
from longspan.simulator.results.measures.memory_losses import OUTCOMES, MemoryLosses
from longspan.simulator.results.result import TestResult

__all__ = ["MapCell", "MemoryMap", "Piece", "Stage", "funnel_stages", "memory_map", "split_bar"]

MIN_QUESTIONS: Final = 6
"""The fewest graded questions for a map."""

MAX_STEPS: Final = 6
"""The maximum number of columns, and of rows, of a map."""


@final
class Stage(NamedTuple):
    """A stage of the funnel: how many needles passed it, and how many were lost at it, by outcome.

    `start` and `width` are shares of all needles.
    """

    name: str
    passed: int
    lost: Mapping[str, int]
    start: float
    width: float


@final
class Piece(NamedTuple):
    """A part of a bar: an outcome, how many needles had it, and the part's start and width as shares of the bar."""

    outcome: str
    number: int
    start: float
    width: float


def funnel_stages(losses: MemoryLosses) -> list[Stage]:
    """Return the funnel: the stages that needles pass, as far as the agent reports them.

    At each stage, the bar of lost needles begins at `start`.
    """
    needles, memory = losses.needles, losses.tells == "memory"
    passed: list[tuple[str, int, list[str]]] = [("needed", needles.needed, [])]
    if memory:
        passed.append(("stored", needles.told - needles.not_stored, ["not_stored"]))
    passed.append(("retrieved" if memory else "in the prompt", needles.found, ["not_retrieved", "forgotten", "not_shown"]))
    if not needles.found or needles.found_undecided < needles.found:  # otherwise, no answer is decided
        passed.append(("answered right", needles.found_right, ["found_wrong", "found_undecided"]))
    passed[1][2].append("unknown")
    whole, counts = needles.needed or 1, needles._asdict()
    found = []
    for name, number, outcomes in passed:
        lost = {outcome: counts[outcome] for outcome in outcomes if counts[outcome]}
        found.append(Stage(name, number, lost, number / whole, sum(lost.values()) / whole))
    return found


def split_bar(counts: Mapping[str, int]) -> list[Piece]:
    """Return the bar that shows how many needles had each outcome."""
    whole, start, found = sum(counts.values()) or 1, 0, []
    for outcome in OUTCOMES:
        if number := counts.get(outcome, 0):
            found.append(Piece(outcome, number, start / whole, number / whole))
            start += number
    return found


# ---- the map


@final
class MapCell(NamedTuple):
    """Graded questions at similar depths and distances."""

    group: Group
    questions: Sequence[Point]


@final
class MemoryMap(NamedTuple):
    """Graded questions by the depth of the furthest needle that each needs (columns) and by its distance (rows), in tokens."""

    columns: list[str]
    rows: list[tuple[str, list[MapCell | None]]]


def memory_map(asked: Iterable[Point], tests: Iterable[TestResult], conversations: Mapping[str, ConversationView]) -> MemoryMap | None:
    """Return the map of the graded questions `asked` in tests; None if there are too few, or if all fall into one cell."""
    found = list(_place_questions(asked, tests, conversations))
    if len(found) < MIN_QUESTIONS:
        return None
    step, high = _step(max(depth for depth, _, _ in found)), _step(max(distance for _, distance, _ in found))
    cells: dict[tuple[int, int], list[Point]] = {}
    for depth, distance, point in found:
        cells.setdefault((distance // high, depth // step), []).append(point)
    if len(cells) < 2:
        return None
    across = range(max(column for _, column in cells) + 1)
    down = range(max(row for row, _ in cells), -1, -1)  # distances grow upward, as in a chart
    made = {place: MapCell(make_group(questions), questions) for place, questions in cells.items()}
    rows = [(_range(row, high), [made.get((row, column)) for column in across]) for row in down]
    return MemoryMap([_range(column, step) for column in across], rows)


def _place_questions(
    asked: Iterable[Point], tests: Iterable[TestResult], conversations: Mapping[str, ConversationView]
) -> Iterator[tuple[int, int, Point]]:
    """Yield graded questions with the depth and the distance of the furthest needle that each needs, in tokens."""
    needles = {(test.id, question.turn): question.needle for test in tests for question in questions_with_needs(test)}
    for point in asked:
        needle, conversation = needles[point.test, point.turn], conversations.get(point.conversation)
        turn = conversation.turn(needle) if conversation is not None and needle >= 0 else None
        if turn is not None:
            yield max(0, min(turn.message.start, MAX_TOKENS)), point.distance, point


def _step(most: int) -> int:
    """Return a round number of tokens that reaches `most` in at most `MAX_STEPS` steps."""
    steps = (first * 10**power for power in range(15) for first in (1, 2, 5))
    found: int = next(step for step in steps if most // step < MAX_STEPS)
    return found


def _range(number: int, step: int) -> str:
    start, end = ((f"{at // 1000:,}k" if step >= 1000 and at else f"{at:,}") for at in (number * step, (number + 1) * step))
    return f"{start}–{end}"
