"""A memory by stage: the evidence it stored, the evidence it retrieved, and its right answers.

The unit is a question that rests on evidence. Intervals and tests are the same as for scores: over whole conversations or recorded
histories.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.analysis.distances import question_scores
from longspan.simulator.results.analysis.pairs import SharedTests
from longspan.simulator.results.analysis.statistics import Difference, Interval, ObservedTest, effect_interval, total_interval
from longspan.simulator.results.analysis.units import Key, Units, results_by_key
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.result import TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "PLACES",
    "EvidenceQuestions",
    "ShareEstimate",
    "StageQuestion",
    "by_question",
    "found_share",
    "kinds_of",
    "places_of",
    "recall_bounds",
    "share_recall",
    "stored_share",
]

PLACES: Final = (5, 10, 20)
"""The values of k for recall among the first k memories, unless fewer were asked for."""

QUESTIONS: Final = "questions"
"""The stratum of all questions, which count alike in every scenario."""


@final
class StageQuestion(NamedTuple):
    """One instance of a question: its test, the evidence that it rests on, and the score of its answer, None if undecided."""

    test: TestResult
    evidence: Sequence[Evidence]
    score: float | None


@final
class QuestionKey(NamedTuple):
    """A question of a test, by its place in the test. Equal for all agents with the same question."""

    test: Key
    number: int


@final
class ShareEstimate(NamedTuple):
    """The mean of a share over questions, with its interval, None if it cannot be estimated.

    `low` and `high` differ only if answers are undecided, or if it is unknown whether evidence was stored or found.
    """

    questions: int
    low: float
    high: float
    interval: Interval | None


Shares = Callable[[StageQuestion], tuple[float, float] | None]
"""The lowest and the highest possible value of one question's share, None if unknown."""

Chosen = Callable[[TestResult], bool]


def _all(test: TestResult) -> bool:
    return True


@final
@dataclass(frozen=True, eq=False)
class EvidenceQuestions:
    """The questions of an agent's runs that rest on evidence. Repeated questions of a recorded history count once, with their mean."""

    asked: Mapping[QuestionKey, Sequence[StageQuestion]]
    units: Units

    @classmethod
    def of(cls, runs: Iterable[tuple[Manifest, Iterable[TestResult]]]) -> EvidenceQuestions:
        known = [(manifest, list(tests)) for manifest, tests in runs]
        found: dict[QuestionKey, list[StageQuestion]] = defaultdict(list)
        for key, results in results_by_key(known).items():
            for test in results:
                for number, question in enumerate(_questions(test)):
                    found[QuestionKey(key, number)].append(question)
        return cls(found, Units(manifest for manifest, _ in known))

    @cached_property
    def is_memory(self) -> bool:
        """Whether the agent's traces report what its memory found. An agent that only reports which turns were in its prompt has none."""
        pairs = [pair for question in self._questions for pair in question.evidence]
        return any(pair.k for pair in pairs) or (
            any(pair.retrieved is not None for pair in pairs) and any(pair.stored is not None for pair in pairs)
        )

    @cached_property
    def is_inferred(self) -> bool:
        """Whether the storage or retrieval of any evidence was inferred."""
        pairs = (pair for question in self._questions for pair in question.evidence)
        return any(pair.stored_inferred or pair.retrieved_inferred for pair in pairs)

    @cached_property
    def is_answered(self) -> bool:
        """Whether the answer to any question has a score."""
        return any(question.score is not None for question in self._questions)

    @cached_property
    def places(self) -> Sequence[int]:
        """The values of k for measuring recall."""
        return places_of(question.evidence for question in self._questions)

    @property
    def _questions(self) -> Iterator[StageQuestion]:
        return (question for times in self.asked.values() for question in times)

    def estimate_stored(self, chosen: Chosen = _all) -> ShareEstimate | None:
        """Return the share of a question's evidence that was stored; None if no trace reports it."""
        return self._once(
            ("stored", None, chosen), lambda: self._estimate_reported(lambda question: stored_share(question.evidence), chosen)
        )

    def estimate_found(self, k: int, chosen: Chosen = _all) -> ShareEstimate | None:
        """Return the share of a question's evidence among the first `k` memories read; None if no trace reports it."""
        return self._once(("found", k, chosen), lambda: self._estimate_reported(lambda question: found_share(question.evidence, k), chosen))

    def estimate_answered(self, chosen: Chosen = _all) -> ShareEstimate | None:
        """Return the score of the answers to the same questions; None if none has a score."""
        if not self.is_answered:
            return None
        return self._estimate(lambda question: (0.0, 1.0) if question.score is None else (question.score, question.score), chosen)

    def chance(self) -> float:
        """Return the score of guessing in these questions."""
        return fmean(question.test.chance for question in self._questions)

    def shares(self, share: Shares, chosen: Chosen = _all) -> dict[QuestionKey, tuple[float, float]]:
        """Return the lowest and the highest value of a share by question, if anything is known about it."""
        found = {}
        for key, times in self.asked.items():
            known = [bounds for each in times if chosen(each.test) and (bounds := share(each)) is not None]
            if known:
                low, high = (fmean(values) if len(values) > 1 else values[0] for values in zip(*known, strict=True))
                found[key] = low, high
        return found

    def _once(self, what: Hashable, make: Callable[[], ShareEstimate | None]) -> ShareEstimate | None:
        """Return an estimate from the cache, since several tables show it."""
        if what not in self._estimates:
            self._estimates[what] = make()
        return self._estimates[what]

    @cached_property
    def _estimates(self) -> dict[Hashable, ShareEstimate | None]:
        return {}

    def _estimate_reported(self, share: Shares, chosen: Chosen) -> ShareEstimate | None:
        """Return an estimate, None if any value is possible."""
        estimate = self._estimate(share, chosen)
        return None if estimate is None or (estimate.low, estimate.high) == (0, 1) else estimate

    def _estimate(self, share: Shares, chosen: Chosen) -> ShareEstimate | None:
        found = self.shares(share, chosen)
        if not found:
            return None
        lows, highs = zip(*found.values(), strict=True)
        seen = [ObservedTest(QUESTIONS, self.units.of(key.test), *bounds) for key, bounds in found.items()]
        return ShareEstimate(len(seen), fmean(lows), fmean(highs), total_interval(seen))


def share_recall(
    column: Column,
    agent: str,
    other: str,
    asked: tuple[EvidenceQuestions, EvidenceQuestions],
    k: int,
    *,
    units: Units,
    chosen: Chosen = _all,
) -> SharedTests | None:
    """Return the questions that two memories share, by recall among the first `k` memories of each.

    None without any, or if it is unknown for any evidence whether it was found. `units` are the units of both.
    """
    mine, theirs = (each.shares(lambda question: found_share(question.evidence, k), chosen) for each in asked)
    both = [key for key in mine if key in theirs]
    if not both or any(low != high for shares in (mine, theirs) for low, high in shares.values()):
        return None
    return SharedTests(
        column,
        agent,
        other,
        fmean(mine[key][0] for key in both),
        fmean(theirs[key][0] for key in both),
        apart=[Difference(QUESTIONS, units.of(key.test), mine[key][0] - theirs[key][0]) for key in both],
        counted="questions",
        bound=lambda differences: effect_interval(differences)[:2],
        recorded=any(key.test.recorded is not None for key in both),
    )


def kinds_of(tests: Iterable[TestResult]) -> dict[str, Chosen]:
    """Return the kinds of tests that count, by name, each with its filter. Kinds are tags, or else scenarios if there are several."""
    known = [test for test in tests if test.counts]
    if tags := sorted({tag for test in known for tag in test.tags}):
        return {tag: lambda test, tag=tag: tag in test.tags for tag in tags}  # type: ignore[misc]
    scenarios = sorted({test.scenario for test in known})
    if len(scenarios) < 2:
        return {}
    return {name: lambda test, name=name: test.scenario == name for name in scenarios}  # type: ignore[misc]


# ---- one question


def places_of(questions: Iterable[Sequence[Evidence]]) -> Sequence[int]:
    """Return the values of k for measuring recall: those in `PLACES` below the most memories asked for, and that number."""
    most = max((each.k or 0 for question in questions for each in question), default=0)
    return [k for k in PLACES if k < most] + [most] if most else PLACES  # no search: all was shown, or nothing


def by_question(evidence: Iterable[Evidence]) -> dict[int, list[Evidence]]:
    """Return a test's evidence by the turn of the question that rests on it, in order."""
    questions: dict[int, list[Evidence]] = defaultdict(list)
    for each in evidence:
        questions[each.question_turn].append(each)
    return dict(sorted(questions.items()))


def stored_share(question: Sequence[Evidence]) -> tuple[float, float]:
    """Return the lowest and the highest share of a question's evidence that may have been stored."""
    return _bounds([each.stored for each in question])


def found_share(question: Sequence[Evidence], k: int) -> tuple[float, float] | None:
    """Return the lowest and the highest possible share of a question's evidence in the prompt; None if no trace reports it.

    Evidence counts if it was among the first `k` memories read, or in the prompt anyway.
    """
    if any(each.retrieved is None and each.k is None for each in question):
        return None
    return _bounds([None if each.retrieved is None else each.rank is not None and each.rank <= k for each in question])


def recall_bounds(test: TestResult, k: int) -> tuple[float, float] | None:
    """Return the mean recall of a test's questions among the first `k` memories, as its lowest and its highest value; None if unknown."""
    shares = [share for question in by_question(test.evidence).values() if (share := found_share(question, k)) is not None]
    return (fmean(low for low, _ in shares), fmean(high for _, high in shares)) if shares else None


def _bounds(known: Sequence[bool | None]) -> tuple[float, float]:
    return fmean(each is True for each in known), fmean(each is not False for each in known)


def _questions(test: TestResult) -> Iterator[StageQuestion]:
    scores = question_scores(test)
    for turn, evidence in by_question(test.evidence).items():
        yield StageQuestion(test, evidence, scores.get(turn, test.score))
