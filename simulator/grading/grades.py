"""Grading: the scores of a run's tests, and the run's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import fsum, isfinite
from statistics import fmean, pstdev
from traceback import format_exception
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.archive.answer_store import AnswerStore
from longspan.simulator.archive.run_folder import MAX_BYTES, RESULT, Correction, RunFolder
from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import InputError, ReplayError, first_problem, one_line
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Exchange, Grade, Item, Marked
from longspan.simulator.contract.queries import JudgeAnswers
from longspan.simulator.contract.scenario import Scenario, description, measured
from longspan.simulator.files.checksums import checked
from longspan.simulator.files.folders import read_file
from longspan.simulator.filler.draws import listed
from longspan.simulator.grading.effects import Effect, TestEffect, effect_of
from longspan.simulator.grading.evidence_recall import evidence_metrics
from longspan.simulator.grading.ingestion import Ingestion, ingestion_metrics, told_twice
from longspan.simulator.grading.needle_fates import NeedleFates
from longspan.simulator.grading.nights import night_metrics
from longspan.simulator.journal.events import Event, Settled
from longspan.simulator.journal.experiment import ExperimentKind
from longspan.simulator.journal.transcript import Change, Evidence, PlayedTest, Transcripts, Turn
from longspan.simulator.subject.ledger import Spending, tally
from longspan.simulator.suite.manifest import Manifest, PlannedTest
from longspan.simulator.suite.plugins import make_scenario
from longspan.simulator.suite.trust import clear

__all__ = [
    "LEAKS",
    "Gradebook",
    "Result",
    "ScenarioResult",
    "Status",
    "TestResult",
    "grade_run",
    "judge_answers",
    "judge_costs",
    "read_result",
    "scenarios_of",
    "tables_of",
]

Status = Literal["scored", "unscored", "scenario_error", "agent_error", "unfinished"]
"""The outcome of a test. Only `scored` tests have a score.

`unscored`: undecided. `scenario_error`: the test raised an error. `agent_error`: the agent failed before the test ended.
`unfinished`: the conversation was interrupted before the test ended.
"""


LEAKS: Final = "The questions about a history were asked one after another: one may give away another's answer."
"""What the results of such a run say."""

NAMED: Final = 5
"""Tests that are named in the sentence about refusals."""

UNKNOWN: Final = "the expected answer is unknown; import the run again with --definitions DIR"
"""The reason of an unscored test without facts."""

UNTOLD: Final = {"needed": "all its needles count as needed", "numbers": "what was planted in it is not told"}
"""What follows where a scenario's method fails, and the grade is kept."""

UNANSWERED: Final = "not answered: the agent only searched its memory"
"""The reason of an unscored test whose questions got no answer."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class AfterFarewell(_Frozen):
    """What the reply in turn `turn`, to a test's last question once more after its farewell, would have scored as its answer: 0 if nothing
    of it is told any more."""

    score: float | None
    reason: str
    turn: int


@final
class TestResult(_Frozen):
    """The result of one test. `span_dealt` (as charged), `span_used` (as said) and evidence are in tokens; `turns` are those that
    prove the grade. `refused`: how many of its own messages got a refusal.

    `tags` are words to select and group tests by. A test that does not count (`counts`) is no part of its scenario's score. `trunk`:
    the conversation that its own branches from, None if it does not. `certified` is None for a test about a history that is told.

    `numbers` is what was planted in it, such as `similar` facts and `updates` (see `Scenario.numbers`).

    A person's `correction` overrides the grader's `machine_score`. `farewell` is what its last question showed after its farewell, None
    where it was not asked again: nothing else counts it.
    """

    id: str
    scenario: str
    skills: list[str]
    tags: list[str] = []
    numbers: dict[str, float] = {}
    counts: bool = True
    status: Status
    score: float | None
    chance: float
    certified: bool | None
    at_distance: bool
    exempt: str | None
    span_dealt: int = 0
    span_used: int
    evidence: list[Evidence]
    reason: str
    turns: list[int]
    conversation: str | None
    trunk: str | None = None
    machine_score: float | None
    correction: Correction | None
    items: list[Item] = []
    refused: int = 0
    farewell: AfterFarewell | None = None

    @property
    def lowest(self) -> float:
        """The score, or its lower bound if undecided."""
        return 0.0 if self.score is None else self.score

    @property
    def highest(self) -> float:
        """The score, or its upper bound if undecided."""
        return 1.0 if self.score is None else self.score


@final
class ScenarioResult(_Frozen):
    """The mean and population standard deviation of the scores of a scenario's tests that count; None if one has no score. `about`: what
    it tests."""

    score: float | None
    std: float | None
    chance: float
    tests: int
    about: str = ""


@final
class Result(_Frozen):
    """The results of the run that is called `run` (see `Manifest.run_name`), as written to result.json. docs/journal.md describes every
    field.

    `measure` and `remarks`: what `score` is called wherever it is shown, and what is said with it (see `Scenario.measure`).

    `data_changes`: what was changed in the data, in sentences (see `Scenario.changed`).

    `faults`: errors of scenarios' code that cost no grade, in sentences.

    `leaks`: the questions about a history were asked one after another, so that one may give away another's answer. `twins` and `lesions`
    are what experiments show, None without any: nothing else counts them.
    """

    run: str | None = None
    suite: str
    span: int
    seed: int
    agent: str
    score: float | None
    score_bounds: tuple[float, float]
    max_score: int
    measure: str = "score"
    remarks: list[str] = []
    turns: int
    tokens: int
    filler_tokens: int
    switch_rate: float
    mean_open: float
    certified: float | None
    at_distance: float
    metrics: dict[str, float]
    tables: list[Table]
    costs: dict[str, Spending]
    scenarios: dict[str, ScenarioResult]
    tests: list[TestResult]
    left_out: list[str]
    damage: list[str] = []
    data_changes: list[str] = []
    faults: list[str] = []
    refused: int = 0
    leaks: bool = False
    twins: Effect | None = None
    lesions: Effect | None = None

    @property
    def chance(self) -> float:
        """What guessing without any memory would score."""
        return fsum(scenario.chance for scenario in self.scenarios.values())

    @property
    def measured(self) -> str:
        """What the score measures, with remarks in brackets: "token F1 (no judge)"."""
        return f"{self.measure}{self._remarks}"

    def named(self, score: float) -> str:
        """A test's score and what it measures: "token F1 0.29 (no judge)"."""
        return f"{self.measure} {score:.2f}{self._remarks}"

    @property
    def headline(self) -> str:
        """The score of full marks and what it measures: "token F1 0.29 of 1 (no judge)"."""
        if self.ungraded:
            return f"no test is graded{self._remarks}"
        low, high = self.score_bounds
        figure = f"{self.score:.2f}" if self.score is not None else f"{low:.2f}\u2013{high:.2f}"
        return f"{self.measure} {figure} of {self.max_score}{self._remarks}"

    @property
    def _remarks(self) -> str:
        return f" ({', '.join(self.remarks)})" if self.remarks else ""

    @property
    def interrupted(self) -> int:
        """How many tests had not ended when the run was interrupted, or their agent failed."""
        return sum(test.status in ("unfinished", "agent_error") for test in self.tests)

    @property
    def ungraded(self) -> bool:
        """Whether it was interrupted before any test was graded: then it has no score, not even bounds that say anything."""
        return bool(self.interrupted) and all(test.score is None for test in self.tests)

    @property
    def refused_sentence(self) -> str:
        """How often the agent's model refused, and what that cost which tests, in words."""
        tests = [f"{test.id} ({test.refused})" for test in self.tests if test.refused]
        named = [*tests[:NAMED], f"{len(tests) - NAMED} more"] if len(tests) > NAMED else tests
        if named and (others := self.refused - sum(test.refused for test in self.tests)):
            named = [*named, f"filler ({others})"]
        replies = "1 reply is a refusal" if self.refused == 1 else f"{self.refused:,} replies are refusals"
        return f"{replies} by the agent's model" + (f", in {listed(named)}" if named else ", none of them in a test")


@final
class GraderFault(NamedTuple):
    """An error of a scenario's code that grades: the test's conversation, what failed and what follows, and the traceback."""

    conversation: str
    reason: str
    traceback: str


@final
class Gradebook:
    """The transcripts and the grades of a run. Each event is folded once and each test is graded once.

    `transcripts` are those of the conversations that have begun. `scenarios` are those used for grading, by default all of the
    run's. `damage`: a sentence for each journal that was read only as far as it is as it was written.
    """

    def __init__(self, manifest: Manifest, scenarios: Mapping[str, Scenario] | None = None) -> None:
        self.manifest = manifest
        self.scenarios = scenarios_of(manifest) if scenarios is None else scenarios
        self.transcripts = Transcripts()
        self.damage: dict[str, str] = {}
        self._fates: dict[str, NeedleFates] = {}
        self._ingestion: dict[str, Ingestion] = {}
        self.faults: dict[tuple[str, str], GraderFault] = {}
        """By test and method."""
        self._grades: dict[tuple[str, str], Grade] = {}

    @classmethod
    def of(cls, run: RunFolder) -> Gradebook:
        """Return the gradebook of a run's journals. Raises JournalError for a damaged journal."""
        book = cls(run.manifest)
        for id in run.manifest.played:
            for _ in run.fold(id, partial(book.add, id)):
                pass
        return book

    def add(self, conversation: str, event: Event) -> Change:
        """Add a conversation's next event. Raises JournalError if it contradicts those before."""
        change = self.transcripts.add(conversation, event)
        if conversation not in self._fates:
            self._fates[conversation] = NeedleFates(self._fates.get(self.manifest.trunks.get(conversation, "")))
            self._ingestion[conversation] = Ingestion()
        if isinstance(change, Turn):
            self._fates[conversation].add(change, self.transcripts[conversation])
            self._ingestion[conversation].add(change)
        elif isinstance(event, Settled):
            self._fates[conversation].settle(event)
            self._ingestion[conversation].settle(event)
        return change

    def check_accounts(self, run: RunFolder) -> None:
        """Check that no turn counts twice as added to the agent's memory. Raises ReplayError, which names the journal."""
        if (id := told_twice(self._ingestion, self.manifest.trunks)) is not None:
            found = self._ingestion[id]
            raise ReplayError(
                f"{run.journal(id)}: {found.added} turns were added to the agent's memory, it says, but it has {found.turns}, or another "
                "tells of them: costs were counted again when the run was resumed; play it anew for its costs"
            )

    def forget(self, conversation: str) -> None:
        """Forget all events of a conversation."""
        self.transcripts.pop(conversation, None)
        self._fates.pop(conversation, None)
        self._ingestion.pop(conversation, None)
        self._grades = {key: grade for key, grade in self._grades.items() if key[0] != conversation}

    def grades(self, conversation: str, test: str) -> bool:
        """Return whether a test of a conversation is graded: of an experiment, only the one that it is about."""
        experiment = self.manifest.experiments.get(conversation)
        return experiment is None or experiment.test == test

    def known(self, conversation: str, test: PlayedTest) -> Grade | None:
        """Return the grade of a test by rules alone, None if it has not been graded yet."""
        return self._grades.get((conversation, test.id))

    def grade(self, conversation: str, test: PlayedTest, answers: JudgeAnswers = MappingProxyType({})) -> Grade:
        """Grade a finished test, with the judge's `answers`. If the grader raises, the test is unscored and the reason says so."""
        grade = self._grades.get((conversation, test.id))
        if grade is None:
            grade = self._grades[conversation, test.id] = self._graded(conversation, test, MappingProxyType({}))
        answered = any(query.about in answers for query in grade.asks)
        return self._graded(conversation, test, answers) if answered else grade

    def _graded(self, conversation: str, test: PlayedTest, answers: JudgeAnswers) -> Grade:
        if test.definition.facts is None:
            return Grade(score=None, reason=UNKNOWN)
        if test.tells:
            return Grade(score=None, reason="it tells a history that others ask about")
        if test.unanswered:
            return Grade(score=None, reason=UNANSWERED)
        try:
            record = replace(self.transcripts[conversation].record(test), judged=answers)
            grade = self.scenarios[test.definition.scenario].grade(test.definition.facts, record)
            if not isinstance(grade, Grade):
                raise TypeError(f"grade returned {type(grade).__name__} instead of a Grade")
        except BaseException as error:
            if not is_fault(error):
                raise
            return Grade(score=None, reason=self._failed(conversation, test, "grade", error))
        if record.unread:
            grade = grade.model_copy(update={"reason": f"{grade.reason}; {record.unread}"})
        if test.unjudged is not None:
            return grade.model_copy(update={"score": None, "reason": f"{grade.reason}; undecided: {test.unjudged}"})
        return grade

    def _failed(self, conversation: str, test: PlayedTest, method: str, error: BaseException) -> str:
        """Note that a method of a test's scenario raised. Return what to say of it."""
        what = "the grader failed" if method == "grade" else f"`{method}` of {test.definition.scenario} failed"
        reason = f"{what}: {one_line(error)}{at_line(error, type(self.scenarios.get(test.definition.scenario)))}"
        self.faults[test.id, method] = GraderFault(conversation, reason, "".join(format_exception(error)))
        return reason

    def _told_faults(self) -> list[str]:
        """Return a sentence for each error that cost no grade: a lost grade says itself why."""
        tests: dict[str, list[str]] = {}
        for (test, method), fault in self.faults.items():
            if method != "grade":
                tests.setdefault(f"{fault.reason}: {UNTOLD[method]}", []).append(test)
        return [f"{ids[0]}{f' and {len(ids) - 1:,} more' if len(ids) > 1 else ''}: {said}" for said, ids in tests.items()]

    def result(self, run: RunFolder) -> Result:
        """Return the run's results, with its judge's answers and people's corrections.

        Raises InputError if the manifest's suite does not have the scenarios of its tests.
        """
        manifest, scenarios = self.manifest, self.scenarios
        for _, plan in manifest.graded:
            if plan.scenario not in scenarios:
                raise InputError(
                    f"{run.path}: the manifest plans {plan.id} of scenario {plan.scenario!r:.60}, which its suite does not have"
                )
        answers, corrections, interrupted = judge_answers(run), run.corrections(), _interrupted_status(run)
        tests = [
            self._outcome(plan, conversation, interrupted[conversation], corrections.get(plan.id), answers)
            for conversation, plan in manifest.graded
        ]
        by_scenario: dict[str, list[TestResult]] = {}
        for test in tests:
            by_scenario.setdefault(test.scenario, []).append(test)
        transcripts = [self.transcripts[id] for id in manifest.conversations if id in self.transcripts]
        counted = {name: group for name, tests in by_scenario.items() if (group := [test for test in tests if test.counts])}
        bounds = (_total(counted, lambda test: test.lowest), _total(counted, lambda test: test.highest))
        kept = [test.certified for test in tests if test.certified is not None]
        measure, remarks = measured(scenarios[name] for name in sorted(counted or by_scenario))
        return Result(
            run=manifest.run_name,
            suite=manifest.suite.name,
            span=manifest.span,
            seed=manifest.seed,
            agent=manifest.agent,
            score=bounds[0] if counted and all(test.score is not None for group in counted.values() for test in group) else None,
            score_bounds=bounds,
            max_score=len(counted),
            measure=measure,
            remarks=remarks,
            turns=sum(t.own_turns for t in transcripts),
            tokens=sum(t.own_tokens for t in transcripts),
            filler_tokens=sum(t.filler_tokens for t in transcripts),
            switch_rate=_share(sum(t.switches for t in transcripts), sum(t.steps for t in transcripts)),
            mean_open=_share(sum(t.crowd for t in transcripts), sum(t.spoken for t in transcripts)),
            certified=_share(sum(kept), len(kept)) if kept else None,
            at_distance=_share(sum(test.at_distance for test in tests), len(tests)),
            metrics=evidence_metrics(test.evidence for test in tests if test.counts)
            | ingestion_metrics(found for id, found in self._ingestion.items() if id in manifest.conversations)
            | night_metrics(night for t in transcripts for night in t.nights)
            | _farewell_metrics(by_scenario)
            | {f"{name}: {what}": value for name, group in sorted(by_scenario.items()) for what, value in _metrics(scenarios[name], group)},
            tables=[table for name, group in sorted(by_scenario.items()) for table in tables_of(scenarios[name], {manifest.agent: group})],
            costs=tally([*(entry for t in transcripts for entry in t.used), *judge_costs(run)]),
            scenarios={name: scenario_result(group, description(scenarios[name])) for name, group in sorted(by_scenario.items())},
            tests=tests,
            left_out=list(manifest.left_out),
            damage=list(self.damage.values()),
            data_changes=self._changed(),
            faults=self._told_faults(),
            refused=sum(t.refused for t in transcripts),
            leaks=manifest.asked == "off",
            twins=self._effect("twin", tests, answers),
            lesions=self._effect("lesion", tests, answers),
        )

    def _changed(self) -> list[str]:
        """Return what was changed in the data of the tests, each sentence once."""
        tests = (test for id in self.manifest.conversations if id in self.transcripts for test in self.transcripts[id].tests.values())
        told = ((self.scenarios.get(test.definition.scenario), test.definition.facts) for test in tests)
        return list(dict.fromkeys(line for scenario, facts in told if scenario and facts for line in scenario.changed(facts)))

    def _effect(self, kind: ExperimentKind, tests: Sequence[TestResult], answers: JudgeAnswers) -> Effect | None:
        """Return what the experiments of a kind show beside the results of the run's own tests; None if there are none."""
        planned = {id: experiment for id, experiment in self.manifest.experiments.items() if experiment.kind == kind}
        if not planned:
            return None
        results = {test.id: test for test in tests}
        transcripts = [self.transcripts[id] for id in planned if id in self.transcripts]
        return effect_of(
            [self._test_effect(id, results[experiment.test], answers) for id, experiment in planned.items()],
            tokens=next(iter(planned.values())).tokens,
            turns=sum(t.own_turns for t in transcripts),
            conversation_tokens=sum(t.own_tokens for t in transcripts),
            costs=tally(entry for t in transcripts for entry in t.used),
        )

    def _test_effect(self, id: str, test: TestResult, answers: JudgeAnswers) -> TestEffect:
        """Return a test's score beside that in an experiment."""
        transcript = self.transcripts.get(id)
        played = transcript.tests.get(test.id) if transcript is not None else None
        grade = Grade(score=None, reason="it was not played to the end of the test")
        if played is not None and played.status == "played":
            grade = self.grade(id, played, answers)
        elif played is not None and played.status == "scenario_error":
            grade = Grade(score=None, reason=f"the test failed: {played.error}")
        known = test.score is not None and grade.score is not None
        return TestEffect(
            test=test.id,
            scenario=test.scenario,
            conversation=id,
            turn=transcript.before if transcript is not None else None,
            score=test.score,
            score_without=grade.score,
            difference=_rounded((test.score or 0.0) - (grade.score or 0.0)) if known else None,
            reason=grade.reason,
        )

    def _outcome(
        self, planned: PlannedTest, conversation: str, interrupted: Status, correction: Correction | None, answers: JudgeAnswers
    ) -> TestResult:
        """Return the result of one planned test. `interrupted` is the status of tests that did not end."""
        transcript, span = self.transcripts.get(conversation), self.manifest.span
        played = transcript.tests.get(planned.id) if transcript is not None else None
        status: Status = interrupted
        grade = Grade(score=None, reason="the conversation ended before the test did")
        if played is not None and played.status == "scenario_error":
            status, grade = "scenario_error", Grade(score=None, reason=f"the test failed: {played.error}")
        elif played is not None and played.status == "played":
            grade = self.grade(conversation, played, answers)
            status = "unscored" if grade.score is None else "scored"
        return TestResult(
            id=planned.id,
            scenario=planned.scenario,
            skills=planned.skills,
            tags=planned.tags,
            numbers=self._numbers(conversation, played) if played else {},
            counts=planned.counts,
            status="scored" if correction else status,
            score=correction.score if correction else grade.score,
            chance=planned.chance,
            certified=played.certified(span) if played else False,
            at_distance=played.at_distance(span) if played else False,
            exempt=played.exempt() if played else None,
            span_dealt=played.span_dealt if played else 0,
            span_used=played.span_used if played else 0,
            evidence=self._evidence(conversation, played) if played else [],
            reason=grade.reason,
            turns=list(grade.turns),
            conversation=played.conversation if played else None,
            trunk=self.manifest.trunks.get(conversation),
            machine_score=grade.score,
            correction=correction,
            items=list(grade.items),
            refused=played.refused if played else 0,
            farewell=self._after_farewell(conversation, played) if played and status == "scored" else None,
        )

    def _evidence(self, conversation: str, test: PlayedTest) -> list[Evidence]:
        """Return what a test's questions rest on, with what became of it and with what its scenario says of it."""
        fates, history = self._fates[conversation], self.transcripts[conversation].history
        questions = [exchange.turn for exchange in test.exchanges if exchange.asks]
        found = []
        for turn, pairs in groupby(map(fates.with_fate, test.evidence), key=lambda pair: pair.question_turn):
            asked = list(pairs)
            if turn in questions:  # it has a reply
                needles = [history[pair.needle_turn] for pair in asked]
                groups = self._needed(conversation, test, questions.index(turn), history[turn].text, needles)
                asked = [_grouped(pair, place, groups) for place, pair in enumerate(asked)]
            found += asked
        return found

    def _needed(self, conversation: str, test: PlayedTest, number: int, question: str, needles: Sequence[Exchange]) -> list[set[int]]:
        """Return which needles a question of a test needs: all, if that is unknown or the scenario raises."""
        if test.definition.facts is not None:
            try:
                scenario = self.scenarios[test.definition.scenario]
                return [set(group) for group in scenario.needed(test.definition.facts, number, question, needles)]
            except BaseException as error:
                if not is_fault(error):
                    raise
                self._failed(conversation, test, "needed", error)
        return [{place} for place in range(len(needles))]

    def _numbers(self, conversation: str, test: PlayedTest) -> dict[str, float]:
        """Return what was planted in a test; nothing if that is unknown or the scenario raises."""
        if test.definition.facts is None:
            return {}
        try:
            numbers = self.scenarios[test.definition.scenario].numbers(test.definition.facts)
            found = {str(name): float(value) for name, value in numbers.items()}
        except BaseException as error:
            if not is_fault(error):
                raise
            self._failed(conversation, test, "numbers", error)
            return {}
        return {name: value for name, value in found.items() if isfinite(value)}

    def _after_farewell(self, conversation: str, test: PlayedTest) -> AfterFarewell | None:
        """Return what is still told after a test's farewell, by its grader's rules; None if it was not asked again."""
        if test.again is None or not any(exchange.asks for exchange in test.exchanges):
            return None
        last = max(number for number, exchange in enumerate(test.exchanges) if exchange.asks)
        asked = replace(test, exchanges=[*test.exchanges[:last], test.again])
        grade = self._graded(conversation, asked, MappingProxyType({}))
        return AfterFarewell(score=grade.score, reason=grade.reason, turn=test.again.turn)


def _interrupted_status(run: RunFolder) -> dict[str, Status]:
    """Return the status of tests that did not end, by conversation, from the last incident that interrupted it."""
    breaks = [entry for entry in run.incidents() if entry.get("type") in ("agent_error", "interrupted")]
    last = {str(entry.get("conversation")): entry.get("type") for entry in breaks}
    return {id: "agent_error" if last.get(id) == "agent_error" else "unfinished" for id in run.manifest.conversations}


def _metrics(scenario: Scenario, tests: Sequence[TestResult]) -> list[tuple[str, float]]:
    """Return a scenario's own figures, or none if it raises; its tables then show the error."""
    try:
        return [(str(name), _rounded(float(value))) for name, value in scenario.metrics(_marked(tests)).items()]
    except BaseException as error:
        if not is_fault(error):
            raise
        return []


def _farewell_metrics(tests: Mapping[str, Sequence[TestResult]]) -> dict[str, float]:
    """Return the mean score, by scenario, of what is still told after farewells."""
    scores = {
        name: [test.farewell.score for test in group if test.farewell is not None and test.farewell.score is not None]
        for name, group in sorted(tests.items())
    }
    return {f"{name}: leaked_after_farewell": _rounded(sum(known) / len(known)) for name, known in scores.items() if known}


def _grouped(pair: Evidence, place: int, groups: Sequence[set[int]]) -> Evidence:
    """Return the evidence with what is needed of it."""
    at = next((at for at, group in enumerate(groups) if place in group), None)
    return replace(pair, needed=at is not None, choice=at if at is not None and len(groups[at]) > 1 else None)


def _marked(tests: Sequence[TestResult]) -> list[Marked]:
    return [Marked(test.id, test.score, () if test.correction else tuple(test.items)) for test in tests]


def tables_of(scenario: Scenario, runs: Mapping[str, Sequence[TestResult]]) -> list[Table]:
    """Return a scenario's own tables of the tests of runs, by run name. If it raises, a table shows the error."""
    try:
        return [Table.model_validate(table) for table in scenario.tables({run: _marked(tests) for run, tests in runs.items()})]
    except BaseException as error:
        if not is_fault(error):
            raise
        why = f"{one_line(error)}{at_line(error, type(scenario))}"
        return [Table(title=f"{scenario.name}: its tables failed", columns=["error"], rows=[[why]])]


def scenario_result(tests: Sequence[TestResult], about: str = "") -> ScenarioResult:
    """Return the mean and the standard deviation of a scenario's scores. `about` says what it tests."""
    counted = [test for test in tests if test.counts]
    scores = [test.score for test in counted if test.score is not None]
    complete = bool(counted) and len(scores) == len(counted)
    return ScenarioResult(
        score=_rounded(fmean(scores)) if complete else None,
        std=_rounded(pstdev(scores)) if complete else None,
        chance=_rounded(fmean(test.chance for test in counted or tests)),
        tests=len(tests),
        about=about,
    )


def _total(by_scenario: Mapping[str, Sequence[TestResult]], value: Callable[[TestResult], float]) -> float:
    """Return the sum over scenarios of the mean of `value` over their tests."""
    return _rounded(fsum(fmean(map(value, tests)) for tests in by_scenario.values()))


def _share(part: float, whole: float) -> float:
    return _rounded(part / whole) if whole else 0.0


def _rounded(value: float) -> float:
    # Six digits are enough; more would only show floating-point errors.
    return round(value, 6)


def scenarios_of(manifest: Manifest) -> dict[str, Scenario]:
    """Return a run's scenarios by name. Raises InputError for code that the user has not allowed (see `gate`)."""
    clear(manifest, "scenarios")
    scenarios = (make_scenario(name, parameters) for name, parameters in manifest.suite.scenarios.items())
    return {scenario.name: scenario for scenario in scenarios}


def grade_run(run: RunFolder) -> Result:
    """Grade a run from its journals without writing anything. Raises JournalError for a damaged journal."""
    return Gradebook.of(run).result(run)


def read_result(run: RunFolder) -> Result:
    """Return the results in a run's folder. Raises FileNotFoundError if there are none, InputError if they cannot be used, JournalError if
    they are another run's.
    """
    path = run.path / RESULT
    try:
        content = read_file(path, MAX_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    remedy = "`longspan score` writes it again"
    try:
        result = Result.model_validate_json(checked(content, path, remedy))
    except ValidationError as error:
        raise InputError(f"{path}: not results of this version: {first_problem(error)}; {remedy}") from None
    manifest = run.manifest
    run.owner().compare(result.run, None, path, remedy)
    planned = sorted(planned.id for _, planned in manifest.graded)
    claimed = (result.suite, result.span, result.seed, result.agent, sorted(test.id for test in result.tests))
    if claimed != (manifest.suite.name, manifest.span, manifest.seed, manifest.agent, planned):
        raise InputError(f"{run.path}: its result.json does not match its manifest; {remedy}")
    return result


def judge_costs(run: RunFolder) -> list[tuple[str, dict[str, int], float | None]]:
    """Return the run's judge as (part, usage, cost in dollars), judgement by judgement."""
    entries = (entry for entry in AnswerStore.of(run).entries() if isinstance(entry.get("usage"), dict))
    return [("judge", entry["usage"], (entry.get("cost_usd") or {}).get("judge")) for entry in entries]


def judge_answers(run: RunFolder) -> dict[str, dict[str, Any] | str]:
    """Return the answers of the run's judge so far, by `Query.about`: the answer's fields, or the reason why there is none."""
    failures = (entry for entry in run.incidents() if entry.get("type") == "judge_error")
    answers: dict[str, dict[str, Any] | str] = {str(entry.get("about")): str(entry.get("error")) for entry in failures}
    entries = AnswerStore.of(run).entries()
    answers.update({str(entry.get("about")): entry["answer"] for entry in entries if isinstance(entry.get("answer"), dict)})
    return answers
