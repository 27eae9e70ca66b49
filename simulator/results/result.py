"""The results of a run, as stored in result.json."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from statistics import fmean, pstdev
from typing import Annotated, Final, Literal, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.folders import read_file
from longspan.simulator.base.shares import format_points, format_share_range
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item
from longspan.simulator.journal.run_folder import MAX_BYTES, RESULT, Correction, RunFolder
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.effects import Effect
from longspan.simulator.results.reach_result import ReachResult, keep_reach
from longspan.simulator.subject.ledger import Spending, sum_known_costs, total_cost
from longspan.simulator.subject.spending_record import SpendingTotals

__all__ = [
    "AfterFarewell",
    "CallsOf",
    "Meaning",
    "MemoryResult",
    "Result",
    "ScenarioResult",
    "StageResult",
    "Status",
    "StuckResult",
    "TestResult",
    "read_result",
    "recall_of",
    "round_figure",
    "scenario_result",
]

NOTABLE_USD: Final = 0.00005
"""The least difference in dollars that is reported: figures have four decimals."""

Share = Annotated[float, Field(ge=0, le=1)]

Status = Literal["scored", "unscored", "scenario_error", "agent_error", "unfinished"]
"""The outcome of a test. Only `scored` tests have a score.

`unscored`: undecided. `scenario_error`: the test raised an error. `agent_error`: the agent failed before the test ended.
`unfinished`: the conversation was interrupted before the test ended.
"""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class AfterFarewell(_Frozen):
    """The reply to a test's last question, asked again after its farewell in turn `turn`.

    `score` is the score that the reply would have had as the answer: 0 if the agent reveals nothing any more.
    """

    score: float | None
    reason: str
    turn: int


@final
class TestResult(_Frozen):
    """The result of one test.

    `span_dealt` (as charged), `span_used` (with actual replies) and evidence are in tokens. `turns` are the turns that prove the grade.
    `refused` counts the test's messages that the agent refused to answer.

    `tags` select and group tests. A test without `counts` is left out of its scenario's score. `trunk` is the conversation that the test's
    conversation branches off, or None. `certified` is None for a test about a recorded history.

    `numbers` counts things planted in the test, such as `similar` facts and `updates` (see `Scenario.numbers`).

    A person's `correction` overrides the grader's `machine_score`. `farewell` is the result of repeating the last question after the test's
    farewell, or None; it does not affect any score.
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
    """The mean score and population standard deviation over a scenario's tests that count, None if one has no score.

    `about` describes what the scenario tests.
    """

    score: float | None
    std: float | None
    chance: float
    tests: int
    about: str = ""


ScoreVerdict = Literal[
    "distance costs", "no loss shown", "better", "not shown", "unknown", "can do", "cannot do", "ideal", "too few", "no score"
]
"""The meaning of a run's score.

With a control, `distance costs`: tests score significantly less at a distance, and `no loss shown`: they do not. Without one, `better`: the
score is significantly better than guessing, `not shown`: it is not, and `unknown`: the score of guessing is unknown. Without distance, `can
do`: the score is significantly better than guessing, and `cannot do`: it is not. `ideal`: the agent is given the answers. `too few`: too
few tests to decide. `no score`: no test has a score.
"""


@final
class Meaning(_Frozen):
    """The meaning of a run's score: a `verdict` and a `sentence`.

    `scenarios` lists the scenarios where the agent is significantly better than guessing; with a control, over the tests with and without
    distance together. `advice` is the next step, and `command` is the shell command for it. Both are empty if no step follows.
    """

    verdict: ScoreVerdict
    sentence: str
    scenarios: list[str] = []
    advice: str = ""
    command: str = ""


@final
class StageResult(_Frozen):
    """A stage of a memory: the evidence `stored`, the evidence `found` among the first `k` memories, or the score of the answers
    (`answered`).

    `share` is the mean over the `questions` that rest on evidence. `interval` is its 95% interval, None if it cannot be estimated.
    Undecided answers, and evidence with unreported storage or retrieval, count as 0 in `share` and as 1 in `share_at_most`. The latter is
    None without any.
    """

    stage: Literal["stored", "found", "answered"]
    k: int | None = None
    questions: int
    share: Share
    share_at_most: Share | None = None
    interval: tuple[Share, Share] | None

    @property
    def shown(self) -> str:
        """The share as text: a range if it is not known exactly."""
        return format_share_range(self.share, self.share if self.share_at_most is None else self.share_at_most)


@final
class MemoryResult(_Frozen):
    """The fate of the evidence in an agent's memory, according to its traces.

    `kinds` has the stages by kind of question. `needles` counts the needles that questions needed, by outcome. `inferred` counts those with
    an outcome inferred because memories named no turns. `sentence` describes them.
    """

    stages: list[StageResult]
    kinds: dict[str, list[StageResult]] = {}
    needles: dict[str, int]
    inferred: dict[str, int] = {}
    sentence: str

    @property
    def found(self) -> StageResult | None:
        """The stage `found` with the most memories."""
        return max((each for each in self.stages if each.stage == "found"), key=lambda each: each.k or 0, default=None)


@final
class CallsOf(_Frozen):
    """An agent's inner calls of its model for one purpose.

    `failed` counts the calls that failed or had an unusable answer. `problem` is the most frequent one.
    """

    calls: int
    failed: int
    problem: str


@final
class StuckResult(_Frozen):
    """Signs that an agent is stuck.

    `alike` of its `answers` are nearly the same as at least two others; answers that something is unknown do not count. `expected_alike` is
    the same for the expected answers. `most_alike` is the size of the largest group, and `example` the beginning of one of its answers. Of
    the `replies`, `echoed` repeat the message, and `borrowed` have a format that only another test asked for; `formats` lists the most
    frequent ones. Of the messages that only state something (`told`), `declined` were answered as if they had asked for something unknown,
    for example by `declining`. `refusing` counts answers that refuse to help, other than refusals that the agent reports. `wrong` counts,
    by the name of the sign (`alike`, `echoed`, `borrowed`, `declined`, `refusing`), the replies where the agent also fails. Only these show
    that it is stuck.
    """

    answers: int
    alike: int
    expected_alike: int
    most_alike: int
    example: str
    replies: int
    echoed: int = 0
    borrowed: int
    formats: list[str] = []
    told: int
    declined: int
    declining: str
    refusing: int
    wrong: dict[str, int] = {}


@final
class Result(_Frozen):
    """The results of the run called `run` (see `Manifest.run_name`), as stored in result.json.

    docs/reference/journal.md describes every field.

    `meaning`: the meaning of the score; None in results of earlier versions.

    `costs`: the usage of the conversations and of the judge, by part. `spending`: the total cost of the run, including checks and
    repetitions; None if nothing was paid for.

    `measure` and `remarks`: the displayed name of `score`, and remarks on it (see `Scenario.measure`).

    `data_changes`: the changes made to the data, in sentences (see `Scenario.changed`).

    `faults`: errors of scenarios' code that left all grades intact, in sentences.

    `dropped`: what was left out of requests because a server rejects it, by role: agent, answerer or judge.

    `leaks`: whether the questions about a history were asked one after another, so that one may reveal another's answer. `unchecked`:
    whether the memory was played without its checks. `twins`, `lesions` and `control` are the effects of experiments, None without any;
    they do not affect the score.

    `memory`: the evidence that the agent's memory stored and found; None if its traces do not report it.

    `stuck`: signs that the agent repeats itself instead of answering; None in results of earlier versions.

    `calls`: the inner calls of the agent's model by purpose, according to its traces.
    """

    run: str | None = None
    meaning: Meaning | None = None
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
    spending: SpendingTotals | None = None
    scenarios: dict[str, ScenarioResult]
    tests: list[TestResult]
    left_out: list[str]
    damage: list[str] = []
    data_changes: list[str] = []
    faults: list[str] = []
    refused: int = 0
    dropped: dict[str, list[str]] = {}
    leaks: bool = False
    unchecked: bool = False
    twins: Effect | None = None
    lesions: Effect | None = None
    control: Effect | None = None
    memory: MemoryResult | None = None
    reach: Annotated[list[ReachResult], BeforeValidator(keep_reach)] = []
    stuck: StuckResult | None = None
    calls: dict[str, CallsOf] = {}

    @property
    def cost_usd(self) -> float | None:
        """The cost of the run in dollars; None if unknown."""
        if self.spending is not None:
            return self.spending.cost_usd
        return total_cost(part.cost_usd for part in self.costs.values()) if self.costs else None

    @property
    def known_usd(self) -> float:
        """The known cost of the run in dollars."""
        return self.spending.known_usd if self.spending is not None else sum_known_costs(part.cost_usd for part in self.costs.values())

    @property
    def cost_remarks(self) -> list[str]:
        """Remarks on money spent outside turns, spent more than once, or possibly spent."""
        if self.spending is None:
            return []
        turns, told = sum_known_costs(part.cost_usd for part in self.costs.values()), []
        if self.spending.again_usd or abs(self.spending.known_usd - turns) >= NOTABLE_USD:
            unknown = " or more (a price is unknown)" if self.spending.cost_usd is None else ""
            again = f"; ${self.spending.again_usd:.4f} of it was paid more than once" if self.spending.again_usd else ""
            told.append(f"${self.spending.known_usd:.4f}{unknown} in all, with checks, experiments and repetitions{again}")
        if self.spending.unanswered:
            calls = f"{self.spending.unanswered:,} call{'s'[: self.spending.unanswered != 1]} ended without a known cost"
            possibly = self.spending.possibly_usd
            told.append(f"{calls}, possibly {'an unknown amount' if possibly is None else f'up to ${possibly:.4f}'} more")
        return told

    @property
    def chance(self) -> float:
        """The score of guessing without any memory."""
        return fsum(scenario.chance for scenario in self.scenarios.values())

    @property
    def measured(self) -> str:
        """The name of the score, with remarks in brackets: "token F1 (no judge)"."""
        return f"{self.measure}{self._remarks}"

    def named(self, score: float) -> str:
        """Return a test's score with its name: "token F1 0.29 (no judge)"."""
        return f"{self.measure} {score:.2f}{self._remarks}"

    @property
    def full(self) -> int:
        """The number that divides scores to give a share of full marks: 1 if no test counts."""
        return self.max_score or 1

    @property
    def headline(self) -> str:
        """The score as a share and in points, with its name: "token F1 29% (0.29 of 1) (no judge)"."""
        if self.ungraded:
            return f"no test is graded{self._remarks}"
        if (found := self.searched) is not None:
            return f"evidence found {found.shown} among the first {found.k}, search only{self._remarks}"
        low, high = self.score_bounds
        return (
            f"{self.measure} {format_share_range(low / self.full, high / self.full)} ({format_points(low, high)} of "
            f"{self.max_score}){self._remarks}"
        )

    @property
    def _remarks(self) -> str:
        return f" ({', '.join(self.remarks)})" if self.remarks else ""

    @property
    def interrupted(self) -> int:
        """The number of tests that had not ended when the run was interrupted or the agent failed."""
        return sum(test.status in ("unfinished", "agent_error") for test in self.tests)

    @property
    def searched(self) -> StageResult | None:
        """The recall of a memory that only searched, so that no test has a score; None for all other runs."""
        if self.memory is None or any(test.score is not None for test in self.tests):
            return None
        return self.memory.found

    @property
    def ungraded(self) -> bool:
        """Whether the run was interrupted before any test was graded. Such a run has no score, and its bounds are meaningless."""
        return bool(self.interrupted) and all(test.score is None for test in self.tests)


def scenario_result(tests: Sequence[TestResult], about: str = "") -> ScenarioResult:
    """Return the mean and the standard deviation of a scenario's scores. `about` describes what the scenario tests."""
    counted = [test for test in tests if test.counts]
    scores = [test.score for test in counted if test.score is not None]
    complete = bool(counted) and len(scores) == len(counted)
    return ScenarioResult(
        score=round_figure(fmean(scores)) if complete else None,
        std=round_figure(pstdev(scores)) if complete else None,
        chance=round_figure(fmean(test.chance for test in counted or tests)),
        tests=len(tests),
        about=about,
    )


def recall_of(results: Sequence[Result]) -> float | None:
    """Return the mean recall of runs whose memory only searched; None for all other runs."""
    found = [result.searched for result in results]
    return fmean(each.share for each in found if each is not None) if found and None not in found else None


def round_figure(value: float) -> float:
    """Round a figure to six digits; more would only show floating-point errors."""
    return round(value, 6)


def read_result(run: RunFolder) -> Result:
    """Return the results in a run's folder.

    Raises FileNotFoundError if the folder has no results, InputError if they cannot be used, and JournalError if they belong to another
    run.
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
        result = Result.model_validate_json(verify_checksum(content, path, remedy))
    except ValidationError as error:
        raise InputError(f"{path}: not results of this version: {first_problem(error)}; {remedy}") from None
    manifest = run.manifest
    run.owner().compare(result.run, None, path, remedy)
    planned = sorted(planned.id for _, planned in manifest.graded)
    claimed = (result.suite, result.span, result.seed, result.agent, sorted(test.id for test in result.tests))
    if claimed != (manifest.suite.name, manifest.span, manifest.seed, manifest.agent, planned):
        raise InputError(f"{run.path}: its result.json does not match its manifest; {remedy}")
    return result
