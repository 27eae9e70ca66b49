"""Tests of whether runs are worse than a baseline: one-sided, over whole conversations paired by seed, with the verdict as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.results.analysis.comparable import check_comparable, describe_differences, describe_pooling
from longspan.simulator.results.analysis.pairing import pair_tests
from longspan.simulator.results.analysis.stage_estimates import places_of, recall_bounds
from longspan.simulator.results.analysis.statistics import ADVISED, ALPHA, Difference, by_conversation, detectable_shift, fall_p
from longspan.simulator.results.analysis.units import describe_repeats
from longspan.simulator.results.graded_runs import GradedRun, Unusable, load_runs, without_ungraded
from longspan.simulator.results.result import TestResult

__all__ = ["LEAST", "Fall", "ScenarioFall", "detectable_fall", "load_fall", "measure_fall"]

LEAST: Final = 5
"""The fewest paired conversations that can show a fall: a permutation test of n has no one-sided p below 1 / 2**n."""

Verdict = Literal["worse", "not worse", "undecided"]


class ScenarioFall(NamedTuple):
    """A scenario's mean scores, from 0 to 1, in the tests that both sides have. `name` includes the span if there are several."""

    name: str
    old: float
    new: float


@final
@dataclass(frozen=True, slots=True)
class Fall:
    """How far scores have fallen below a baseline, as shares of full marks, in the tests that both sides have.

    `p`: the probability of a fall at least this large if the true fall were `margin`. `detectable`: the true fall that would be shown in
    four of five cases, or None if it cannot be estimated. Tests without a score count as 0; `unscored` is their number. `conversations`:
    the number of independent conversations. If `recorded`, they are recorded histories, and each counts once however often it is played.
    `measured`: the quantity that the scores measure. `warnings`: other differences, and anything that was left out.
    """

    old: float
    new: float
    margin: float
    conversations: int
    tests: int
    unscored: int
    p: float
    detectable: float | None
    scenarios: list[ScenarioFall]
    warnings: list[str]
    recorded: bool = False
    measured: str = "score"

    @property
    def verdict(self) -> Verdict:
        """Whether the fall significantly exceeds the margin; undecided with too few conversations."""
        if self.conversations < LEAST:
            return "undecided"
        return "worse" if self.p < ALPHA else "not worse"

    @property
    def sentence(self) -> str:
        """The verdict and the evidence for it."""
        beyond = f"by more than {self.margin:.1%} of full marks " if self.margin else ""
        unit = ("history", "histories") if self.recorded else ("conversation", "conversations")
        paired = f"{self.conversations} paired {unit[self.conversations != 1]}"
        by = f" by {self.measured}" if self.measured != "score" else ""
        scores = f"{self.new:.1%} of full marks{by}, {self.old:.1%} before, in {self.tests:,} tests"
        if self.unscored:
            scores += f", {self.unscored:,} of them without a score in one or the other, which counts as 0"
        if self.verdict == "undecided":
            return f"undecided: {paired} cannot show a fall; {self._remedy}" + (f" ({scores})" if self.conversations else "")
        tested = f"p = {self.p:.2g}, one-sided" if self.p >= 0.0005 else "p < 0.0005, one-sided"
        if self.verdict == "worse":
            return f"worse {beyond}than the baseline: {scores} of {paired} ({tested})"
        power = (
            "" if self.detectable is None else f"; a true fall of {self.detectable:.1%} of full marks would be shown in four of five cases"
        )
        return f"not shown to be worse {beyond}than the baseline: {scores} of {paired} ({tested}){power}"

    @property
    def _remedy(self) -> str:
        """The advice on how to obtain a decision."""
        more = LEAST - self.conversations
        if self.recorded:
            data = f"data with {more} more histor{'ies' if more > 1 else 'y'}"
            return (
                f"other seeds only repeat the same history, which counts once; {LEAST} would do, that is {data}; {ADVISED} are recommended"
            )
        return f"{LEAST} would do, that is {more} more seed{'s' * (more > 1)} in both; {ADVISED} are recommended"

    def __str__(self) -> str:
        return self.sentence


def load_fall(new: Sequence[Path], old: Sequence[Path], margin: float = 0.0) -> Fall:
    """Compare runs in folders with a baseline's runs. Raises InputError."""
    runs, unusable = load_runs(new)
    before, unusable_before = load_runs(old)
    return measure_fall(runs, before, margin, [*unusable, *unusable_before])


def measure_fall(new: Sequence[GradedRun], old: Sequence[GradedRun], margin: float = 0.0, unusable: Sequence[Unusable] = ()) -> Fall:
    """Compare runs of one agent with a baseline's runs, which may be of another agent.

    `margin`: the fall to tolerate, as a share of full marks. Raises InputError if either side has several agents, or if the two sides do
    not play the same tests.
    """
    for runs, name in ((new, "the new runs"), (old, "the baseline")):
        if len(agents := sorted({run.agent for run in runs})) > 1:
            raise InputError(f"{name} are of {len(agents)} agents ({', '.join(agents)}): name the runs of one"[:300])
    check_comparable([*new, *old])
    (new, ungraded), (old, ungraded_before) = without_ungraded(new), without_ungraded(old)
    left_out = [*unusable, *ungraded, *ungraded_before]
    both, k = pair_tests(old, new), _common_k([*new, *old])
    if k is not None:
        both = [each for each in both if all(_has_recall(test, k) for test in (*each.one, *each.other))]
    values = [each.scores if k is None else (_recall(each.one, k), _recall(each.other, k)) for each in both]
    apart = [Difference(each.scenario, each.conversation, was - now) for each, (was, now) in zip(both, values, strict=True)]
    groups: dict[str, list[tuple[float, float]]] = {}
    for each, scores in zip(both, values, strict=True):
        groups.setdefault(each.scenario, []).append(scores)
    scenarios = [ScenarioFall(name, *map(fmean, zip(*scores, strict=True))) for name, scores in sorted(groups.items())]
    return Fall(
        old=fmean(each.old for each in scenarios) if scenarios else 0.0,
        new=fmean(each.new for each in scenarios) if scenarios else 0.0,
        margin=margin,
        conversations=len({each.conversation for each in apart}),
        tests=len(both),
        unscored=sum(each.unscored for each in both) if k is None else 0,
        p=fall_p(apart, margin) if apart else 1.0,
        detectable=detectable_fall(apart, margin, len(scenarios)),
        scenarios=scenarios,
        recorded=any(each.recorded for each in both),
        measured="; ".join(dict.fromkeys(run.result.measured for run in [*new, *old])) if k is None else f"recall@{k}",
        warnings=[
            *describe_differences([*new, *old]),
            *describe_pooling(new),
            *describe_pooling(old),
            *describe_repeats([*new, *old]),
            *(f"{run.folder.path}: not played by longspan, its answers were given elsewhere" for run in [*new, *old] if _is_claim(run)),
            *(f"left out: {run.why}" for run in left_out),
        ],
    )


def _is_claim(run: GradedRun) -> bool:
    imported = run.manifest.imported
    return imported is not None and imported.only_answers


def _common_k(runs: Sequence[GradedRun]) -> int | None:
    """Return the number of memories that recall is measured at, if no run was answered and all are compared by recall, else None."""
    if any(run.result.searched is None for run in runs):
        return None
    return min(max(places_of(test.evidence for test in run.result.tests)) for run in runs)


def _has_recall(test: TestResult, k: int) -> bool:
    """Return whether it is known for all evidence of a test whether it was found."""
    bounds = recall_bounds(test, k)
    return bounds is not None and bounds[0] == bounds[1]


def _recall(tests: Sequence[TestResult], k: int) -> float:
    """Return the mean recall of a test's results, which must all be known."""
    return fmean(bounds[0] for test in tests if (bounds := recall_bounds(test, k)) is not None)


def detectable_fall(apart: Sequence[Difference], margin: float, scenarios: int) -> float | None:
    """Return the true fall that a permutation test of this many conversations would show with a probability of POWER."""
    parts = by_conversation(apart)
    if len(parts) < LEAST:
        return None
    error = stdev(parts) * len(parts) / scenarios
    return margin + error * detectable_shift(len(parts)) if error > 0 else None
