"""Where memories were lost: the outcomes of the needles that questions needed, and of the questions, summed over tests.

The agent's traces determine how much is known (see `needle_fates`). They may report its memory, only its prompt, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeVar, final

from longspan.simulator.base.document import Data, Document
from longspan.simulator.base.tables import Table
from longspan.simulator.filler.draws import join_words
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.analysis.distances import Need, Point, find_needs, graded_points, question_scores
from longspan.simulator.results.analysis.groups import Group, by_distance, distance_bin, in_order, make_group
from longspan.simulator.results.analysis.units import observe_questions
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.group_tables import place_columns
from longspan.simulator.results.measures.measure import Measure, SideBySide
from longspan.simulator.results.result import TestResult

__all__ = [
    "COUNTS",
    "FURTHEST_FIRST",
    "LOST",
    "OUTCOMES",
    "Answers",
    "LossCounts",
    "MemoryLosses",
    "Needles",
    "Outcome",
    "Tells",
    "WhereLost",
    "deciding_needle",
    "losses_by_column",
    "losses_note",
    "need_outcomes",
    "needle_outcome",
]

LOST_NOTE: Final = "From the agents' traces. A needle counts once for each question that needs it."
INFERRED_NOTE: Final = " Inferred: from wording or time, as memories name no turns."

Outcome = Literal["not_stored", "not_retrieved", "forgotten", "not_shown", "found_wrong", "found_undecided", "found_right", "unknown"]
"""The outcome of a needle when a question needed it.

`not_stored`: no memory came from it, and it was not in the prompt. `not_retrieved`: it was stored, but was not in the prompt. `forgotten`:
it was stored until the user asked to forget it, and it was not in the prompt. `not_shown`: it was not in the prompt, and the agent does not
report what it stores. `found_right`: it was in the prompt, and the answer was graded right. `found_wrong`: the answer was wrong or
incomplete. `found_undecided`: the answer has no score. `unknown`: the agent reports nothing.

If any one of several needles is enough, the one that came furthest counts.
"""

FURTHEST_FIRST: Final[tuple[Outcome, ...]] = (
    "found_right",
    "found_wrong",
    "found_undecided",
    "unknown",
    "not_retrieved",
    "forgotten",
    "not_shown",
    "not_stored",
)
"""The outcomes by how far the needle came, furthest first."""

LOST: Final[frozenset[Outcome]] = frozenset({"not_stored", "not_retrieved", "forgotten", "not_shown"})
"""The outcomes of needles that were not retrieved."""

OUTCOMES: Final = {
    "found_right": "retrieved, answered right",
    "found_wrong": "retrieved, not answered right",
    "found_undecided": "retrieved, answer undecided",
    "not_retrieved": "stored, not retrieved",
    "forgotten": "forgotten on request",
    "not_shown": "not in the prompt",
    "not_stored": "not stored",
    "unknown": "unreported",
    "right": "in full",
    "partly": "in part",
    "wrong": "not at all",
    "undecided": "undecided",
}
"""The label of each outcome of a needle or a question, in the order of the bars."""

COUNTS: Final = (*OUTCOMES, "inferred")
"""The count columns of the CSV: needles and questions by outcome, and the needles with an inferred outcome."""

Tells = Literal["memory", "prompt", "nothing"]
"""How much an agent's traces reveal: its stored memories (`memory`), the contents of its prompt alone (`prompt`), or neither."""


@final
class Needles(NamedTuple):
    """The needles that questions needed, by outcome. A needle counts once for each question that needs it."""

    not_stored: int = 0
    not_retrieved: int = 0
    not_shown: int = 0
    found_wrong: int = 0
    found_right: int = 0
    unknown: int = 0
    forgotten: int = 0
    found_undecided: int = 0

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Needles:
        found: Counter[str] = Counter(outcomes)
        return cls(*(found[name] for name in cls._fields))

    @property
    def needed(self) -> int:
        return sum(self)

    @property
    def told(self) -> int:
        """The number with a known outcome."""
        return self.needed - self.unknown

    @property
    def found(self) -> int:
        """The number in the prompt of their question."""
        return self.found_wrong + self.found_right + self.found_undecided


@final
class Answers(NamedTuple):
    """The number of graded questions by score: 1, between 0 and 1, 0, or undecided."""

    right: int = 0
    partly: int = 0
    wrong: int = 0
    undecided: int = 0

    @classmethod
    def of(cls, points: Iterable[Point]) -> Answers:
        found = Counter(map(_verdict, points))
        return cls(*(found[name] for name in cls._fields))

    @property
    def asked(self) -> int:
        return sum(self)


@final
class LossCounts(NamedTuple):
    """The outcomes of some tests' needles and of their graded questions.

    `tells` is how much the agent reports. `inferred` counts the needles with an inferred outcome.
    """

    tells: Tells
    needles: Needles
    answers: Answers
    inferred: Needles = Needles()

    @classmethod
    def of(cls, tests: Iterable[TestResult], asked: Iterable[Point]) -> LossCounts:
        """Sum up tests, and their graded questions, of one run or of several."""
        known = list(tests)
        return cls(
            _tells(known), Needles.of(how for test in known for _, how in need_outcomes(test)), Answers.of(asked), _count_inferred(known)
        )


@final
@dataclass(frozen=True, slots=True)
class MemoryLosses:
    """The outcomes of the needles that questions needed, and of the graded questions: in all, by scenario and by evidence distance.

    `inferred` counts the needles with an outcome inferred from the wording of memories. `stored` counts the stored needles with an unknown
    outcome, and how many of these were inferred. `shown` has the graded questions with all their needles in the prompt, and `hidden` those
    that lacked one; each is None without any.
    """

    tells: Tells
    needles: Needles
    inferred: Needles
    stored: tuple[int, int]
    needles_by_scenario: Mapping[str, Needles]
    needles_by_distance: Mapping[str, Needles]
    answers: Answers
    answers_by_scenario: Mapping[str, Answers]
    answers_by_distance: Mapping[str, Answers]
    shown: Group | None
    hidden: Group | None

    @classmethod
    def of(cls, tests: Sequence[TestResult], span: int) -> MemoryLosses:
        """Sum up the results of tests. `span` is in tokens, as in `graded_points`."""
        asked = graded_points(tests, span)
        fates = [_Fate(test.scenario, distance_bin(need.nearest.tokens), how) for test in tests for need, how in need_outcomes(test)]
        prompts = _prompts(tests)
        shown, hidden = ([point for point in asked if prompts.get((point.test, point.turn)) is value] for value in (True, False))
        scenarios = _group_items(fates, lambda each: each.scenario)
        distances = _group_items(fates, lambda each: each.distance)
        places = _group_items(asked, lambda point: by_distance(point)[0])
        return cls(
            tells=_tells(tests),
            needles=Needles.of(each.outcome for each in fates),
            inferred=_count_inferred(tests),
            stored=_count_stored_unknown(tests),
            needles_by_scenario={name: Needles.of(each.outcome for each in scenarios[name]) for name in sorted(scenarios)},
            needles_by_distance={name: Needles.of(each.outcome for each in distances[name]) for name in in_order(distances)},
            answers=Answers.of(asked),
            answers_by_scenario={
                name: Answers.of(group) for name, group in sorted(_group_items(asked, lambda point: point.scenario).items())
            },
            answers_by_distance={name: Answers.of(places[name]) for name in in_order(places)},
            shown=make_group(shown) if shown else None,
            hidden=make_group(hidden) if hidden else None,
        )

    @property
    def sentence(self) -> str | None:
        """Where the memory was lost, in words.

        None if no question needed a needle, or if the agent reports nothing and no answer is decided.
        """
        if self.tells == "nothing":
            return _of_answers(self.answers) if self.answers.asked > self.answers.undecided else None
        parts = [
            _describe_lost(self.needles, self.inferred),
            _describe_found(self.needles, self.inferred),
            _describe_unreported(self.needles.unknown, *self.stored),
        ]
        return "".join(parts) + (INFERRED_NOTE if any(self.inferred) or self.stored[1] else "")


@final
class _Fate(NamedTuple):
    """The outcome of a needle for a question that needed it, with the scenario and the bin of its distance."""

    scenario: str
    distance: str
    outcome: Outcome


def need_outcomes(test: TestResult) -> list[tuple[Need, Outcome]]:
    """Return the outcome of each needle that a test's questions need."""
    scores = question_scores(test)
    return [
        (need, min((needle_outcome(pair, scores[need.turn]) for pair in need.pairs), key=FURTHEST_FIRST.index)) for need in find_needs(test)
    ]


def deciding_needle(need: Need, fate: Outcome, test: TestResult) -> Evidence:
    """Return the needle that decided a need's outcome, `fate`: of several alternative needles, the one that came furthest."""
    score = question_scores(test)[need.turn]
    return next(pair for pair in need.pairs if needle_outcome(pair, score) == fate)


def _count_inferred(tests: Iterable[TestResult]) -> Needles:
    """Count the needles whose outcome was inferred."""
    return Needles.of(
        how
        for test in tests
        for need, how in need_outcomes(test)
        if any(map(_is_inferred, need.pairs)) and _is_inferred(deciding_needle(need, how, test)) and how != "unknown"
    )


def _count_stored_unknown(tests: Iterable[TestResult]) -> tuple[int, int]:
    """Count the stored needles with an unknown outcome, and how many of these are stored by inference."""
    known = [
        all(pair.stored_inferred for pair in need.pairs if pair.stored)
        for test in tests
        for need, how in need_outcomes(test)
        if how == "unknown" and any(pair.stored for pair in need.pairs)
    ]
    return len(known), sum(known)


def _is_inferred(pair: Evidence) -> bool:
    """Return whether a needle's furthest known stage was inferred."""
    return pair.retrieved_inferred or (pair.stored_inferred and not pair.retrieved)


def needle_outcome(pair: Evidence, score: float | None) -> Outcome:
    """Return the outcome of a needle for a question whose answer got this score."""
    if pair.retrieved:
        return "found_undecided" if score is None else "found_right" if score == 1 else "found_wrong"
    if pair.forgotten:
        return "forgotten"
    if pair.stored is False:
        return "not_stored"
    if pair.retrieved is None:
        return "unknown"
    return "not_retrieved" if pair.stored else "not_shown"


def _tells(tests: Iterable[TestResult]) -> Tells:
    pairs = [pair for test in tests for pair in test.evidence]
    if any(pair.stored is not None for pair in pairs):
        return "memory"
    return "prompt" if any(pair.retrieved is not None for pair in pairs) else "nothing"


def _prompts(tests: Iterable[TestResult]) -> dict[tuple[str, int], bool | None]:
    """Return whether each question, by test and turn, had all its needles in its prompt; None if unknown."""
    found: dict[tuple[str, int], bool | None] = {}
    for test in tests:
        for need in find_needs(test):
            question = test.id, need.turn
            known, told = found.get(question, True), [pair.retrieved for pair in need.pairs]
            shown = True if True in told else None if None in told else False
            found[question] = False if False in (known, shown) else None if None in (known, shown) else True
    return found


def _verdict(point: Point) -> str:
    if point.score is None:
        return "undecided"
    return "right" if point.score == 1 else "partly" if point.score > 0 else "wrong"


Item = TypeVar("Item")
Name = TypeVar("Name", bound=Hashable)


def _group_items(items: Iterable[Item], name: Callable[[Item], Name]) -> dict[Name, list[Item]]:
    found: dict[Name, list[Item]] = {}
    for item in items:
        found.setdefault(name(item), []).append(item)
    return found


# ---- in words


def _of_answers(answers: Answers) -> str:
    undecided = f", and {answers.undecided:,} {'is' if answers.undecided == 1 else 'are'} undecided" if answers.undecided else ""
    asked = f"{answers.asked:,} graded {'question' if answers.asked == 1 else 'questions'}"
    if answers.asked > 1 and answers.asked in (answers.right, answers.wrong):
        how = f"All {asked} were answered in full." if answers.right else f"None of {asked} was answered, not even in part."
        return f"The agent reports nothing about its memory. {how}"
    told = f"{answers.right:,} {_were(answers.right)} answered in full, {answers.partly:,} in part and {answers.wrong:,} not at all"
    return f"The agent reports nothing about its memory. Of {asked}, {told}{undecided}."


def _describe_lost(needles: Needles, inferred: Needles) -> str:
    """Describe how many needles were needed, and how the ones not retrieved were lost."""
    needed = f"Questions relied on {needles.needed:,} {'needle' if needles.needed == 1 else 'needles'}"
    several = sum(1 for outcome in LOST if getattr(needles, outcome)) > 1
    ways: list[tuple[Outcome, str]] = [
        ("not_stored", "had not been stored"),
        ("not_retrieved", f"{_were(needles.not_retrieved)} stored{'' if several else ', not retrieved'}"),
        ("forgotten", f"{_were(needles.forgotten)} forgotten at the user's request"),
        ("not_shown", "may not have been stored" if several else f"{_were(needles.not_shown)} not in the prompt"),
    ]
    parts = [f"{number:,} {how}{_of_inferred(getattr(inferred, name), number)}" for name, how in ways if (number := getattr(needles, name))]
    if not parts:
        return f"{needed}."
    lost = needles.told - needles.found
    return f"{needed}; {f'{lost:,} were not retrieved: ' if several else ''}{join_words(parts)}."


def _describe_found(needles: Needles, inferred: Needles) -> str:
    found, right = needles.found, needles.found_right
    if not found:
        return ""
    every = "All " if found == needles.needed > 1 else ""
    retrieved = f" {every}{found:,} {_were(found)} retrieved{_of_inferred(inferred.found, found)};"
    if needles.found_undecided == found:
        return f"{retrieved} {'its answer has' if found == 1 else 'their answers have'} no score."
    undecided = (
        f", and {needles.found_undecided:,} to {_answers(needles.found_undecided)} without a score" if needles.found_undecided else ""
    )
    if right == found:
        return f"{retrieved} {'it led to a correct answer' if found == 1 else 'all led to correct answers'}."
    return f"{retrieved} {f'{right:,}' if right else 'none'} led to {'a correct answer' if right < 2 else 'correct answers'}{undecided}."


def _describe_unreported(unknown: int, stored: int, inferred: int) -> str:
    if not unknown:
        return ""
    if not stored:
        return f" {unknown:,} unreported."
    which = f"{stored:,}" if stored < unknown else "all" if stored > 1 else "it"
    return f" {unknown:,} unreported; {which} {_were(stored)} stored{_of_inferred(inferred, stored)}."


def _answers(number: int) -> str:
    return "an answer" if number == 1 else "answers"


def _of_inferred(inferred: int, number: int) -> str:
    """Return a remark on how many of a number of needles were inferred."""
    return f" ({'' if inferred == number else f'{inferred:,} '}inferred)" if inferred else ""


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


# ---- side by side


@final
class WhereLost(Measure):
    """Where each agent's memory was lost. For an agent that reports nothing about its memory, the results of its questions."""

    name = "memory losses"

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        found = losses_by_column(side)
        cells = [(side.called.names[agent], str(column), found[agent, column]) for agent, column, _ in side.places]
        told = [(agent, span, lost.needles._asdict(), lost.inferred._asdict()) for agent, span, lost in cells if lost.tells != "nothing"]
        untold: list[tuple[str, str, Mapping[str, int], Mapping[str, int]]] = [
            (agent, span, lost.answers._asdict(), {}) for agent, span, lost in cells if lost.tells == "nothing" and lost.answers.asked
        ]
        tables = [
            _outcomes(
                "Where the memory was lost: needles that questions needed", "needed", told, losses_note(lost for _, _, lost in cells)
            ),
            _outcomes("Answers of agents that report nothing about their memory", "graded questions", untold),
        ]
        rows = [
            place_columns(column, agent=agent)
            | (lost.needles._asdict() | {"inferred": sum(lost.inferred)} if lost.tells != "nothing" else {})
            | lost.answers._asdict()
            for (agent, column), lost in sorted(found.items())
        ]
        return Document(leading=tables, leading_data=[Data("memory", dict.fromkeys(COUNTS, int), rows)])


def losses_by_column(side: SideBySide) -> dict[tuple[str, Column], LossCounts]:
    """Return the losses of each agent's memory in each column, over the tests that count."""
    found = {}
    for agent, column in side.cells:
        runs = side.of(agent, column)
        tests = [test for run in runs for test in run.result.tests if test.counts]
        found[agent, column] = LossCounts.of(tests, observe_questions((run.manifest, run.result.tests) for run in runs))
    return found


def losses_note(losses: Iterable[LossCounts]) -> str:
    """Return the note below a table or a figure of memory losses."""
    return LOST_NOTE + (INFERRED_NOTE if any(any(lost.inferred) for lost in losses) else "")


def _outcomes(title: str, whole: str, found: Sequence[tuple[str, str, Mapping[str, int], Mapping[str, int]]], note: str = "") -> Table:
    seen = [outcome for outcome in OUTCOMES if any(counts.get(outcome) for _, _, counts, _ in found)]
    rows = [
        [
            agent,
            span,
            f"{sum(counts.values()):,}",
            *(f"{counts[outcome]:,}{_of_inferred(inferred.get(outcome, 0), counts[outcome])}" for outcome in seen),
        ]
        for agent, span, counts, inferred in found
    ]
    return Table(title=title, columns=["agent", "span", whole, *(OUTCOMES[outcome] for outcome in seen)], rows=rows, note=note)
