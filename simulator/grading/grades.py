"""Grading journals: what each test scored, and what a run's results are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import fsum
from statistics import fmean, pstdev
from types import MappingProxyType
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.errors import InputError, one_line
from longspan.simulator.events import Event
from longspan.simulator.grading.needle_fates import NeedleFates
from longspan.simulator.ledger import Spending, tally
from longspan.simulator.manifest import Manifest, PlannedTest
from longspan.simulator.plugins import make_scenario
from longspan.simulator.queries import JudgeAnswers
from longspan.simulator.record import Grade, Item, Marked
from longspan.simulator.run_folder import Correction, RunFolder
from longspan.simulator.scenario import Scenario
from longspan.simulator.tables import Table
from longspan.simulator.transcript import Change, Evidence, PlayedTest, Transcript, Turn

__all__ = [
    "Gradebook",
    "Result",
    "ScenarioResult",
    "Status",
    "TestResult",
    "grade_run",
    "judge_answers",
    "judge_costs",
    "scenarios_of",
    "tables_of",
]

Status = Literal["scored", "unscored", "scenario_error", "agent_error", "unfinished"]
"""How a test came out: only a `scored` one has a score. `unscored`: nobody could decide; `scenario_error`: an error of the
test's own; `agent_error`: the agent failed for good before it ended; `unfinished`: the conversation was broken off."""


UNKNOWN: Final = "nobody knows what was expected; import it again with --definitions DIR"
"""Why a test without facts has no score."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class TestResult(_Frozen):
    """One test's outcome. `span_used` and evidence in tokens; `turns` are those that prove the grade.

    A person's `correction` counts where there is one; `machine_score` is what the grader gave.
    """

    id: str
    scenario: str
    tags: list[str]
    status: Status
    score: float | None
    chance: float
    certified: bool
    at_distance: bool
    exempt: str | None
    span_used: int
    evidence: list[Evidence]
    reason: str
    turns: list[int]
    conversation: str | None
    machine_score: float | None
    correction: Correction | None
    items: list[Item] = []

    @property
    def lowest(self) -> float:
        """The least that its score can come to, where it has none yet."""
        return 0.0 if self.score is None else self.score

    @property
    def highest(self) -> float:
        """The most that its score can come to, where it has none yet."""
        return 1.0 if self.score is None else self.score


@final
class ScenarioResult(_Frozen):
    """Mean and population standard deviation of a scenario's scores; None where a test has none."""

    score: float | None
    std: float | None
    chance: float
    tests: int


@final
class Result(_Frozen):
    """A run's results, as result.json holds them. docs/journal.md describes every field."""

    suite: str
    span: int
    seed: int
    agent: str
    score: float | None
    score_bounds: tuple[float, float]
    max_score: int
    turns: int
    tokens: int
    filler_tokens: int
    switch_rate: float
    mean_open: float
    certified: float
    at_distance: float
    metrics: dict[str, float]
    tables: list[Table]
    costs: dict[str, Spending]
    scenarios: dict[str, ScenarioResult]
    tests: list[TestResult]
    left_out: list[str]


@final
class Gradebook:
    """A run's conversations as far as they were heard, and its tests' grades: each event is folded once, each test graded once.

    `transcripts`: those of the conversations that have begun. `scenarios`: those that grade, by default all of the run's.
    """

    def __init__(self, manifest: Manifest, scenarios: Mapping[str, Scenario] | None = None) -> None:
        self.manifest = manifest
        self.scenarios = scenarios_of(manifest) if scenarios is None else scenarios
        self.transcripts: dict[str, Transcript] = {}
        self._fates: dict[str, NeedleFates] = {}
        self._given: dict[tuple[str, str], Grade] = {}

    @classmethod
    def of(cls, run: RunFolder) -> Gradebook:
        """That of a run's journals. Raises JournalError for one that is damaged."""
        book = cls(run.manifest)
        for id in run.manifest.conversations:
            for _ in run.fold(id, partial(book.add, id)):
                pass
        return book

    def add(self, conversation: str, event: Event) -> Change:
        """Take a conversation's next event. Raises JournalError for one that does not follow from those before."""
        transcript = self.transcripts.get(conversation)
        if transcript is None:
            transcript = self.transcripts[conversation] = Transcript()
            self._fates[conversation] = NeedleFates()
        change = transcript.add(event)
        if isinstance(change, Turn):
            self._fates[conversation].add(change, transcript)
        return change

    def forget(self, conversation: str) -> None:
        """Forget all that was heard of a conversation."""
        self.transcripts.pop(conversation, None)
        self._fates.pop(conversation, None)
        self._given = {key: given for key, given in self._given.items() if key[0] != conversation}

    def grade(self, conversation: str, test: PlayedTest, said: JudgeAnswers = MappingProxyType({})) -> Grade:
        """Grade a test that was played to its end, with what a judge has said. An error of the grader's leaves it unscored, and
        says so."""
        given = self._given.get((conversation, test.id))
        if given is None:
            given = self._given[conversation, test.id] = self._graded(conversation, test, MappingProxyType({}))
        answered = any(query.about in said for query in given.asks)
        return self._graded(conversation, test, said) if answered else given

    def _graded(self, conversation: str, test: PlayedTest, said: JudgeAnswers) -> Grade:
        if test.definition.facts is None:
            return Grade(score=None, reason=UNKNOWN)
        try:
            record = replace(self.transcripts[conversation].record(test), judged=said)
            given = self.scenarios[test.definition.scenario].grade(test.definition.facts, record)
            if not isinstance(given, Grade):
                raise TypeError(f"grade returned {type(given).__name__} instead of a Grade")
        except Exception as error:
            return Grade(score=None, reason=f"the grader failed: {one_line(error)}")
        if test.unjudged is not None:
            return given.model_copy(update={"score": None, "reason": f"{given.reason}; undecided: {test.unjudged}"})
        return given

    def result(self, run: RunFolder) -> Result:
        """The results of the run, with what its judge and people have said. Raises InputError for a manifest whose suite does not
        have its tests' scenarios."""
        manifest, scenarios = self.manifest, self.scenarios
        for plan in (plan for group in manifest.conversations.values() for plan in group):
            if plan.scenario not in scenarios:
                raise InputError(
                    f"{run.path}: the manifest plans {plan.id} of scenario {plan.scenario!r:.60}, which its suite does not have"
                )
        answers, corrections, broken = judge_answers(run), run.corrections(), _broken(run)
        tests = [
            self._outcome(plan, conversation, broken[conversation], corrections.get(plan.id), answers)
            for conversation, plans in manifest.conversations.items()
            for plan in plans
        ]
        by_scenario: dict[str, list[TestResult]] = {}
        for test in tests:
            by_scenario.setdefault(test.scenario, []).append(test)
        whole = [self.transcripts[id] for id in manifest.conversations if id in self.transcripts]
        bounds = (_total(by_scenario, lambda test: test.lowest), _total(by_scenario, lambda test: test.highest))
        return Result(
            suite=manifest.suite.name,
            span=manifest.span,
            seed=manifest.seed,
            agent=manifest.agent,
            score=bounds[0] if all(test.score is not None for test in tests) else None,
            score_bounds=bounds,
            max_score=len(by_scenario),
            turns=sum(t.turns for t in whole),
            tokens=sum(t.tokens for t in whole),
            filler_tokens=sum(t.filler_tokens for t in whole),
            switch_rate=_share(sum(t.switches for t in whole), sum(t.steps for t in whole)),
            mean_open=_share(sum(t.crowd for t in whole), sum(t.spoken for t in whole)),
            certified=_share(sum(test.certified for test in tests), len(tests)),
            at_distance=_share(sum(test.at_distance for test in tests), len(tests)),
            metrics={
                f"{name}: {what}": value for name, group in sorted(by_scenario.items()) for what, value in _metrics(scenarios[name], group)
            },
            tables=[table for name, group in sorted(by_scenario.items()) for table in tables_of(scenarios[name], {manifest.agent: group})],
            costs=tally([*(entry for t in whole for entry in t.used), *judge_costs(run)]),
            scenarios={name: scenario_result(group) for name, group in sorted(by_scenario.items())},
            tests=tests,
            left_out=list(manifest.left_out),
        )

    def _outcome(
        self, planned: PlannedTest, conversation: str, broken: Status, correction: Correction | None, said: JudgeAnswers
    ) -> TestResult:
        """What became of one planned test. `broken`: the status of those that did not end."""
        transcript, span = self.transcripts.get(conversation), self.manifest.span
        played = transcript.tests.get(planned.id) if transcript is not None else None
        status: Status = broken
        given = Grade(score=None, reason="the conversation ended before the test did")
        if played is not None and played.status == "scenario_error":
            status, given = "scenario_error", Grade(score=None, reason=f"the test failed: {played.error}")
        elif played is not None and played.status == "played":
            given = self.grade(conversation, played, said)
            status = "unscored" if given.score is None else "scored"
        return TestResult(
            id=planned.id,
            scenario=planned.scenario,
            tags=planned.skills,
            status="scored" if correction else status,
            score=correction.score if correction else given.score,
            chance=planned.chance,
            certified=played.certified(span) if played else False,
            at_distance=played.at_distance(span) if played else False,
            exempt=played.exempt() if played else None,
            span_used=played.span_used if played else 0,
            evidence=[self._fates[conversation].told(each) for each in played.evidence] if played else [],
            reason=given.reason,
            turns=list(given.turns),
            conversation=played.conversation if played else None,
            machine_score=given.score,
            correction=correction,
            items=list(given.items),
        )


def _broken(run: RunFolder) -> dict[str, Status]:
    """The status of tests that did not end, by conversation: what broke it off last says why they have no score."""
    breaks = [entry for entry in run.incidents() if entry.get("type") in ("agent_error", "broken_off")]
    last = {str(entry.get("conversation")): entry.get("type") for entry in breaks}
    return {id: "agent_error" if last.get(id) == "agent_error" else "unfinished" for id in run.manifest.conversations}


def _metrics(scenario: Scenario, tests: Sequence[TestResult]) -> list[tuple[str, float]]:
    """A scenario's own figures; none where it fails to give them: its tables tell the error."""
    try:
        return [(str(what), _rounded(float(value))) for what, value in scenario.metrics(_marked(tests)).items()]
    except Exception:
        return []


def _marked(tests: Sequence[TestResult]) -> list[Marked]:
    return [Marked(test.id, test.score, () if test.correction else tuple(test.items)) for test in tests]


def tables_of(scenario: Scenario, runs: Mapping[str, Sequence[TestResult]]) -> list[Table]:
    """A scenario's own tables over the tests of runs, by what those are called. An error in it is a table that says so."""
    try:
        return [Table.model_validate(table) for table in scenario.tables({run: _marked(tests) for run, tests in runs.items()})]
    except Exception as error:
        return [Table(title=f"{scenario.name}: its tables failed", columns=["error"], rows=[[one_line(error)]])]


def scenario_result(tests: Sequence[TestResult]) -> ScenarioResult:
    """A scenario's mean and spread over its tests."""
    scores = [test.score for test in tests if test.score is not None]
    whole = len(scores) == len(tests)
    return ScenarioResult(
        score=_rounded(fmean(scores)) if whole else None,
        std=_rounded(pstdev(scores)) if whole else None,
        chance=_rounded(fmean(test.chance for test in tests)),
        tests=len(tests),
    )


def _total(by_scenario: Mapping[str, Sequence[TestResult]], value: Callable[[TestResult], float]) -> float:
    """The sum of the scenarios' means, with `value` of each test."""
    return _rounded(fsum(fmean(map(value, tests)) for tests in by_scenario.values()))


def _share(part: float, whole: float) -> float:
    return _rounded(part / whole) if whole else 0.0


def _rounded(value: float) -> float:
    # Means of thirds and fifths: fifteen digits would only show how floats add up.
    return round(value, 6)


def scenarios_of(manifest: Manifest) -> dict[str, Scenario]:
    """A run's scenarios, by name."""
    made = (make_scenario(name, parameters) for name, parameters in manifest.suite.scenarios.items())
    return {scenario.name: scenario for scenario in made}


def grade_run(run: RunFolder) -> Result:
    """Grade a run from its journals, and write nothing. Raises JournalError for a journal that is damaged."""
    return Gradebook.of(run).result(run)


def judge_costs(run: RunFolder) -> list[tuple[str, dict[str, int], float | None]]:
    """What the run's judge used and cost, judgement by judgement."""
    entries = (entry for entry in AnswerStore(run.path).entries() if isinstance(entry.get("usage"), dict))
    return [("judge", entry["usage"], (entry.get("cost_usd") or {}).get("judge")) for entry in entries]


def judge_answers(run: RunFolder) -> dict[str, dict[str, Any] | str]:
    """What the run's judge has said so far; why it could not, where it never did."""
    failures = (entry for entry in run.incidents() if entry.get("type") == "judge_error")
    found: dict[str, dict[str, Any] | str] = {str(entry.get("about")): str(entry.get("error")) for entry in failures}
    answers = AnswerStore(run.path).entries()
    found.update({str(entry.get("about")): entry["answer"] for entry in answers if isinstance(entry.get("answer"), dict)})
    return found
