"""Grades of a run's tests, and the run's results, which combine the grades with the measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import fsum, isfinite
from statistics import fmean
from traceback import format_exception
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast, final

from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.contract.graded_record import Exchange, Grade
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.queries import JudgeAnswers
from longspan.simulator.contract.rungs import mark_unanswered
from longspan.simulator.contract.scenario import Scenario, describe_scenario, score_name
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.events import Event, Settled
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.journal.transcript import Change, Evidence, PlayedTest, PlayedTurn, Transcripts
from longspan.simulator.results.gradebook.needle_fates import NeedleFates
from longspan.simulator.results.measures import MEASURES
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import AfterFarewell, Result, Status, TestResult, round_figure, scenario_result
from longspan.simulator.subject.spending_record import read_totals
from longspan.simulator.suite.manifest import Manifest, PlannedTest
from longspan.simulator.suite.trust import require_trust

__all__ = ["Gradebook", "GraderFault", "grade_run", "judge_answers", "judge_costs", "scenarios_of"]

UNKNOWN: Final = "the expected answer is unknown; import the run again with --definitions DIR"
"""The reason of an unscored test without facts."""

UNTOLD: Final = {"needed": "all its needles count as needed", "numbers": "the numbers planted in it are unknown"}
"""The consequence when a scenario's method fails but the grade is kept, by method."""

UNANSWERED: Final = "not answered: the agent only searched its memory"
"""The reason of an unscored test whose questions got no answer."""


READERS: Final = [measure for measure in MEASURES if measure.fold is not Measure.fold]
"""The measures that read events. The others need only the graded tests."""

M = TypeVar("M", bound=Measure)


@final
class GraderFault(NamedTuple):
    """An error raised by a scenario's grading code: the test's conversation, the reason in words, and the traceback."""

    conversation: str
    reason: str
    traceback: str


@final
class Gradebook:
    """The transcripts and the grades of a run. Each event is folded once and each test is graded once.

    `transcripts` has the conversations that have begun. `scenarios` are used for grading, by default all of the run's scenarios. `damage`
    has a sentence for each damaged journal, which was read only up to the damage.
    """

    def __init__(self, manifest: Manifest, scenarios: Mapping[str, Scenario] | None = None) -> None:
        self.manifest = manifest
        self.scenarios = scenarios_of(manifest) if scenarios is None else scenarios
        self.transcripts = Transcripts()
        self.damage: dict[str, str] = {}
        self._fates: dict[str, NeedleFates] = {}
        self._read: dict[type[Measure], dict[str, Measure]] = {measure: {} for measure in READERS}
        self.faults: dict[tuple[str, str], GraderFault] = {}
        """Errors of scenarios' code, by test and method."""
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
        """Add a conversation's next event. Raises JournalError if it contradicts the events before it."""
        change = self.transcripts.add(conversation, event)
        if conversation not in self._fates:
            # A branch's needles may be in its trunk, so its fates continue the trunk's.
            self._fates[conversation] = NeedleFates(self._fates.get(self.manifest.trunks.get(conversation, "")))
            for measure, read in self._read.items():
                read[conversation] = measure()
        if isinstance(change, PlayedTurn):
            self._fates[conversation].add(change, self.transcripts[conversation])
        elif isinstance(event, Settled):
            self._fates[conversation].settle(event)
        for read in self._read.values():
            read[conversation].fold(event, change)
        return change

    def read_by(self, measure: type[M]) -> dict[str, M]:
        """Return the instances of a measure that have read each conversation and experiment, by id; empty if it reads no events."""
        return cast("dict[str, M]", self._read.get(measure, {}))

    def forget(self, conversation: str) -> None:
        """Forget a conversation's events and grades."""
        self.transcripts.pop(conversation, None)
        self._fates.pop(conversation, None)
        for read in self._read.values():
            read.pop(conversation, None)
        self._grades = {key: grade for key, grade in self._grades.items() if key[0] != conversation}

    def grades(self, conversation: str, test: str) -> bool:
        """Return whether a test of a conversation is graded. In an experiment, only its subject is graded."""
        experiment = self.manifest.experiments.get(conversation)
        return experiment is None or experiment.test == test

    def grade_so_far(self, conversation: str, test: PlayedTest) -> Grade | None:
        """Return a test's grade by rules alone; None if the test has not been graded yet."""
        return self._grades.get((conversation, test.id))

    def grade(self, conversation: str, test: PlayedTest, answers: JudgeAnswers = MappingProxyType({})) -> Grade:
        """Grade a finished test with the judge's `answers`. If the grader raises, the test has no score, and its reason gives the error."""
        grade = self._grades.get((conversation, test.id))
        if grade is None:
            grade = self._grades[conversation, test.id] = self._grade_test(conversation, test, MappingProxyType({}))
        # Only grades that asked the judge can change with its answers, so all others are taken from the cache.
        answered = any(query.about in answers for query in grade.asks)
        return self._grade_test(conversation, test, answers) if answered else grade

    def _grade_test(self, conversation: str, test: PlayedTest, answers: JudgeAnswers) -> Grade:
        if test.definition.facts is None:
            return Grade(score=None, reason=UNKNOWN)
        if test.tells:
            return Grade(score=None, reason="it plays a history that other tests ask about")
        scenario = self.scenarios.get(test.definition.scenario)
        if test.unanswered and not (scenario is not None and scenario.ladder):
            return Grade(score=None, reason=UNANSWERED)
        try:
            record = replace(self.transcripts[conversation].record(test), judged=answers)
            grade = self.scenarios[test.definition.scenario].grade(test.definition.facts, record)
            if not isinstance(grade, Grade):
                raise TypeError(f"grade returned {type(grade).__name__} instead of a Grade")
        except BaseException as error:  # a scenario's code may raise anything, SystemExit included
            if not is_fault(error):
                raise
            return Grade(score=None, reason=self._record_failure(conversation, test, "grade", error))
        if test.unanswered:  # the distances of its questions are known without an answer
            return Grade(score=None, reason=UNANSWERED, items=mark_unanswered(grade.items))
        if record.unread:
            grade = grade.model_copy(update={"reason": f"{grade.reason}; {record.unread}"})
        if test.unjudged is not None:
            return grade.model_copy(update={"score": None, "reason": f"{grade.reason}; undecided: {test.unjudged}"})
        return grade

    def _record_failure(self, conversation: str, test: PlayedTest, method: str, error: BaseException) -> str:
        """Record that a method of a test's scenario raised. Return the reason in words."""
        what = "the grader failed" if method == "grade" else f"`{method}` of {test.definition.scenario} failed"
        reason = f"{what}: {one_line(error)}{at_line(error, type(self.scenarios.get(test.definition.scenario)))}"
        self.faults[test.id, method] = GraderFault(conversation, reason, "".join(format_exception(error)))
        return reason

    def _describe_faults(self) -> list[str]:
        """Return a sentence for each error that left the grade intact. (Otherwise the grade has the error as its reason.)"""
        tests: dict[str, list[str]] = {}
        for (test, method), fault in self.faults.items():
            if method != "grade":
                tests.setdefault(f"{fault.reason}: {UNTOLD[method]}", []).append(test)
        return [f"{ids[0]}{f' and {len(ids) - 1:,} more' if len(ids) > 1 else ''}: {said}" for said, ids in tests.items()]

    def so_far(self, conversation: str, test: str) -> TestResult | None:
        """Return the result of a planned test so far, by rules alone; None if the conversation has no such test."""
        plans = [plan for id, plan in self.manifest.graded if (id, plan.id) == (conversation, test)]
        return self._outcome(plans[0], conversation, "unfinished", None, MappingProxyType({})) if plans else None

    def result(self, run: RunFolder) -> Result:
        """Return the run's results, with its judge's answers and people's corrections.

        Raises InputError if the manifest plans a test of a scenario that its suite lacks.
        """
        manifest, scenarios = self.manifest, self.scenarios
        for _, plan in manifest.graded:
            if plan.scenario not in scenarios:
                raise InputError(
                    f"{run.path}: the manifest plans {plan.id} of scenario {plan.scenario!r:.60}, which its suite does not have"
                )
        answers, corrections, interrupted = judge_answers(run), run.corrections(), _find_interrupted_status(run)
        tests = [
            self._outcome(plan, conversation, interrupted[conversation], corrections.get(plan.id), answers)
            for conversation, plan in manifest.graded
        ]
        graded = GradedTests(
            manifest,
            scenarios,
            tests,
            self.transcripts,
            judge_costs(run),
            read_totals(run.path, run.owner()),
            partial(self.grade, answers=answers),
            [entry.get("dropped") for entry in AnswerStore.of(run).entries()],
        )
        by_scenario, transcripts = graded.by_scenario, graded.own
        counted = {name: group for name, tests in by_scenario.items() if (group := [test for test in tests if test.counts])}
        bounds = (_total(counted, lambda test: test.lowest), _total(counted, lambda test: test.highest))
        kept = [test.certified for test in tests if test.certified is not None]
        figures = self._figures(graded)
        measure, remarks = score_name(scenarios[name] for name in sorted(counted or by_scenario))
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
            metrics={name: value for name, value in figures.items() if name not in Result.model_fields},
            scenarios={name: scenario_result(group, describe_scenario(scenarios[name])) for name, group in by_scenario.items()},
            tests=tests,
            left_out=list(manifest.left_out),
            damage=list(self.damage.values()),
            data_changes=self._list_changes(),
            faults=self._describe_faults(),
            **{name: value for name, value in figures.items() if name in Result.model_fields},
        )

    def _figures(self, graded: GradedTests) -> dict[str, Any]:
        """Return the measures' figures of a run, by name."""
        figures: dict[str, Any] = {}
        for measure in MEASURES:
            read = {id: found for id, found in self.read_by(measure).items() if id in self.manifest.conversations}
            figures |= measure.of_run(graded, read)
        return figures

    def _list_changes(self) -> list[str]:
        """Return the changes to the tests' data, in distinct sentences."""
        tests = (test for id in self.manifest.conversations if id in self.transcripts for test in self.transcripts[id].tests.values())
        told = ((self.scenarios.get(test.definition.scenario), test.definition.facts) for test in tests)
        return list(dict.fromkeys(line for scenario, facts in told if scenario and facts for line in scenario.changed(facts)))

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
            chance=planned.chance if grade.chance is None else grade.chance,
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
        """Return the evidence of a test's questions, with each needle's fate and whether the scenario requires it."""
        fates, history = self._fates[conversation], self.transcripts[conversation].history
        questions = [exchange.turn for exchange in test.exchanges if exchange.asks]
        found = []
        for turn, pairs in groupby(map(fates.with_fate, test.evidence), key=lambda pair: pair.question_turn):
            asked = list(pairs)
            if turn in questions:  # only a question with a reply is an exchange
                needles = [history[pair.needle_turn] for pair in asked]
                groups = self._find_needed(conversation, test, questions.index(turn), history[turn].text, needles)
                asked = [_group_evidence(pair, place, groups) for place, pair in enumerate(asked)]
            found += asked
        return found

    def _find_needed(self, conversation: str, test: PlayedTest, number: int, question: str, needles: Sequence[Exchange]) -> list[set[int]]:
        """Return the needles that a question of a test needs, in groups where one is enough; all needles if unknown or if the scenario
        raises."""
        if test.definition.facts is not None:
            try:
                scenario = self.scenarios[test.definition.scenario]
                return [set(group) for group in scenario.needed(test.definition.facts, number, question, needles)]
            except BaseException as error:
                if not is_fault(error):
                    raise
                self._record_failure(conversation, test, "needed", error)
        return [{place} for place in range(len(needles))]

    def _numbers(self, conversation: str, test: PlayedTest) -> dict[str, float]:
        """Return the numbers of things planted in a test; none if unknown or if the scenario raises."""
        if test.definition.facts is None:
            return {}
        try:
            numbers = self.scenarios[test.definition.scenario].numbers(test.definition.facts)
            found = {str(name): float(value) for name, value in numbers.items()}
        except BaseException as error:
            if not is_fault(error):
                raise
            self._record_failure(conversation, test, "numbers", error)
            return {}
        return {name: value for name, value in found.items() if isfinite(value)}

    def _after_farewell(self, conversation: str, test: PlayedTest) -> AfterFarewell | None:
        """Grade the reply to a test's last question after its farewell, by rules alone; None if it was not asked again."""
        if test.again is None or not any(exchange.asks for exchange in test.exchanges):
            return None
        last = max(number for number, exchange in enumerate(test.exchanges) if exchange.asks)
        # The grader reads the later reply as the answer, so scenarios need no rules for farewells.
        asked = replace(test, exchanges=[*test.exchanges[:last], test.again])
        grade = self._grade_test(conversation, asked, MappingProxyType({}))
        return AfterFarewell(score=grade.score, reason=grade.reason, turn=test.again.turn)


def _find_interrupted_status(run: RunFolder) -> dict[str, Status]:
    """Return the status of tests that did not end, by conversation, from the last incident that interrupted the conversation."""
    breaks = [entry for entry in run.incidents() if entry.get("type") in ("agent_error", "interrupted")]
    last = {str(entry.get("conversation")): entry.get("type") for entry in breaks}
    return {id: "agent_error" if last.get(id) == "agent_error" else "unfinished" for id in run.manifest.conversations}


def _group_evidence(pair: Evidence, place: int, groups: Sequence[set[int]]) -> Evidence:
    """Return the evidence at this `place` marked as needed or not, with the number of its group if one of several needles suffices."""
    at = next((at for at, group in enumerate(groups) if place in group), None)
    return replace(pair, needed=at is not None, choice=at if at is not None and len(groups[at]) > 1 else None)


def _total(by_scenario: Mapping[str, Sequence[TestResult]], value: Callable[[TestResult], float]) -> float:
    """Return the sum over scenarios of the mean of `value` over their tests."""
    return round_figure(fsum(fmean(map(value, tests)) for tests in by_scenario.values()))


def _share(part: float, whole: float) -> float:
    return round_figure(part / whole) if whole else 0.0


def scenarios_of(manifest: Manifest) -> dict[str, Scenario]:
    """Return a run's scenarios by name. Raises InputError for code that the user has not allowed (see `trust`)."""
    require_trust(manifest, "scenarios")
    scenarios = (make_scenario(name, parameters) for name, parameters in manifest.suite.scenarios.items())
    return {scenario.name: scenario for scenario in scenarios}


def grade_run(run: RunFolder) -> Result:
    """Grade a run from its journals without writing anything. Raises JournalError for a damaged journal."""
    return Gradebook.of(run).result(run)


def judge_costs(run: RunFolder) -> list[tuple[str, dict[str, int], float | None]]:
    """Return the usage of the run's judge as (part, usage, cost in dollars), one entry for each judgement."""
    entries = (entry for entry in AnswerStore.of(run).entries() if isinstance(entry.get("usage"), dict))
    return [("judge", entry["usage"], (entry.get("cost_usd") or {}).get("judge")) for entry in entries]


def judge_answers(run: RunFolder) -> dict[str, dict[str, Any] | str]:
    """Return the judge's answers so far, by `Query.about`: the fields of the answer, or the reason why it is missing."""
    failures = (entry for entry in run.incidents() if entry.get("type") == "judge_error")
    answers: dict[str, dict[str, Any] | str] = {str(entry.get("about")): str(entry.get("error")) for entry in failures}
    entries = AnswerStore.of(run).entries()
    # An answer replaces an earlier failure: the judge was asked again and succeeded.
    answers.update({str(entry.get("about")): entry["answer"] for entry in entries if isinstance(entry.get("answer"), dict)})
    return answers
