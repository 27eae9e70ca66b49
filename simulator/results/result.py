"""The results of a run, as stored in result.json."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from statistics import fmean, pstdev
from typing import Annotated, Final, Literal, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from longspan.simulator.archive.run_folder import MAX_BYTES, RESULT, Correction, RunFolder
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.shares import points, spanned
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item
from longspan.simulator.files.checksums import checked
from longspan.simulator.files.folders import read_file
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.effects import Effect
from longspan.simulator.results.reach import ReachResult, keep_reach
from longspan.simulator.subject.ledger import Spending, known_cost, total_cost
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
    "rounded",
    "scenario_result",
]

NOTABLE_USD: Final = 0.00005
"""The least difference in dollars that is worth a remark: figures have four decimals."""

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
    """The reply to a test's last question, asked once more after its farewell in turn `turn`. `score` is the score that it would have got
    as the answer: 0 if the agent no longer reveals any of it."""

    score: float | None
    reason: str
    turn: int


@final
class TestResult(_Frozen):
    """The result of one test. `span_dealt` (as charged), `span_used` (as said) and evidence are in tokens; `turns` are the turns that prove
    the grade. `refused`: how many of its own messages got a refusal.

    `tags` are words to select and group tests by. A test that does not count (`counts`) is left out of its scenario's score. `trunk`: the
    conversation that its own branches off, or None. `certified` is None for a test about a history that is told.

    `numbers` counts things planted in it, such as `similar` facts and `updates` (see `Scenario.numbers`).

    A person's `correction` overrides the grader's `machine_score`. `farewell` is the result of asking its last question again after its
    farewell, or None; it counts toward nothing else.
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
    """The mean score and population standard deviation over a scenario's tests that count; None if one has no score. `about` says what the
    scenario tests."""

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
do`: the score is significantly better than guessing, and `cannot do`: it is not. `ideal`: the agent is handed the answers. `too few`: too
few tests to decide. `no score`: no test has one.
"""


@final
class Meaning(_Frozen):
    """What a run's score shows: a `verdict` and a `sentence`. `scenarios` are those in which the agent is shown to be better than guessing,
    with a control over the tests with and without distance together. `advice` says what to do next, and `command` is what to type in a
    shell for it. Both are empty where there is nothing to do."""

    verdict: ScoreVerdict
    sentence: str
    scenarios: list[str] = []
    advice: str = ""
    command: str = ""


@final
class StageResult(_Frozen):
    """A stage of a memory: the share of the evidence that was `stored`, that was `found` among the first `k` memories, or the score of the
    answers (`answered`). `share` is the mean over `questions` that rest on evidence, and `interval` its 95% interval, None if it cannot
    be estimated. Undecided answers, and evidence of which it is unknown whether it was stored or found, count as 0 in `share` and as 1 in
    `share_at_most`, which is None without any.
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
        return spanned(self.share, self.share if self.share_at_most is None else self.share_at_most)


@final
class MemoryResult(_Frozen):
    """What became of the evidence in an agent's memory, as its traces tell. `kinds` has the stages by kind of question. `needles` counts
    the needles that questions needed, by what became of them, `inferred` those whose outcome was inferred because memories named no turns,
    and `sentence` says so.
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
    """The inner calls of an agent's model for one purpose: how many `failed`, or had an answer that could not be used, and the most
    frequent `problem`."""

    calls: int
    failed: int
    problem: str


@final
class StuckResult(_Frozen):
    """Signs that an agent is stuck. Of its `answers` to questions, `alike` are nearly the same as at least two others, without
    those that say that something is not known; of the answers that were expected, `expected_alike` are. `most_alike` is the largest
    group, and `example` the beginning of one of its answers. Of its `replies`, `echoed` repeat the message, and `borrowed` have a
    format that only another test asked for, `formats` the most frequent ones. Of the messages that only `told` something,
    `declined` were answered as if something unknown had been asked for, for example by `declining`. `refusing` answers refuse to
    help, other than by a refusal that the agent reports. `wrong` counts the replies with a sign, by its name (`alike`, `echoed`,
    `borrowed`, `declined`, `refusing`), where the agent fails; only these are signs that it is stuck.
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
    """The results of the run called `run` (see `Manifest.run_name`), as written to result.json. docs/journal.md describes every field.

    `meaning`: what the score shows; None in results of earlier versions.

    `costs`: what the conversations used by part, in the journals and of the judge; `spending`: what the run has cost in all, checks and
    repetitions included, None if nothing was paid for.

    `measure` and `remarks`: the name of `score` wherever it is shown, and remarks on it (see `Scenario.measure`).

    `data_changes`: the changes made to the data, in sentences (see `Scenario.changed`).

    `faults`: errors of scenarios' code that cost no grade, in sentences.

    `leaks`: the questions about a history were asked one after another, so that one may give away another's answer. `unchecked`: the
    memory was played although it had not been checked. `twins`, `lesions` and `control` are the effects of experiments, None without any;
    they count toward nothing else.

    `memory`: the evidence that the agent's memory stored and found; None if its traces do not tell.

    `stuck`: signs that the agent repeats itself instead of answering; None in results of earlier versions.

    `calls`: the inner calls of its model by purpose, as its traces tell.
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
        return self.spending.known_usd if self.spending is not None else known_cost(part.cost_usd for part in self.costs.values())

    @property
    def cost_remarks(self) -> list[str]:
        """Remarks on money that the run spent outside its turns, more than once, or perhaps."""
        if self.spending is None:
            return []
        turns, told = known_cost(part.cost_usd for part in self.costs.values()), []
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
        """The divisor of scores for a share of full marks: 1 if no test can earn any."""
        return self.max_score or 1

    @property
    def headline(self) -> str:
        """The score as a share and in points, with its name: "token F1 29% (0.29 of 1) (no judge)"."""
        if self.ungraded:
            return f"no test is graded{self._remarks}"
        if (found := self.searched) is not None:
            return f"evidence found {found.shown} among the first {found.k}, nobody answered{self._remarks}"
        low, high = self.score_bounds
        return f"{self.measure} {spanned(low / self.full, high / self.full)} ({points(low, high)} of {self.max_score}){self._remarks}"

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
        """Whether the run was interrupted before any test was graded. It then has no score, and its bounds are meaningless."""
        return bool(self.interrupted) and all(test.score is None for test in self.tests)


def scenario_result(tests: Sequence[TestResult], about: str = "") -> ScenarioResult:
    """Return the mean and the standard deviation of a scenario's scores. `about` says what it tests."""
    counted = [test for test in tests if test.counts]
    scores = [test.score for test in counted if test.score is not None]
    complete = bool(counted) and len(scores) == len(counted)
    return ScenarioResult(
        score=rounded(fmean(scores)) if complete else None,
        std=rounded(pstdev(scores)) if complete else None,
        chance=rounded(fmean(test.chance for test in counted or tests)),
        tests=len(tests),
        about=about,
    )


def recall_of(results: Sequence[Result]) -> float | None:
    """Return the mean recall of runs of a memory that was only searched; None for all other runs."""
    found = [result.searched for result in results]
    return fmean(each.share for each in found if each is not None) if found and None not in found else None


def rounded(value: float) -> float:
    """Return a figure rounded to six digits; more would only show floating-point errors."""
    return round(value, 6)


def read_result(run: RunFolder) -> Result:
    """Return the results in a run's folder. Raises FileNotFoundError if the folder has none, InputError if they cannot be used, and
    JournalError if they belong to another run."""
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
