"""The effects of experiments: tests' scores beside their scores in twins and lesions, for one run and for several together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.analysis.statistics import Difference, Interval, effect_interval
from longspan.simulator.analysis.units import Key, Units, keys
from longspan.simulator.base.document import Chapter, Document, Section, Sentence
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.journal.experiment import ExperimentKind
from longspan.simulator.measures.group_tables import one_line
from longspan.simulator.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.effects import Effect, TestEffect, is_shown, paired_interval
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.result import Result, TestResult, rounded
from longspan.simulator.subject.ledger import Spending, tally, total_cost
from longspan.simulator.suite.manifest import Manifest

__all__ = ["EXPERIMENTS", "Experiments", "Pooled", "experiment_rows", "pooled_effects", "told"]

EXPERIMENTS: Final[dict[str, type]] = {
    "agent": str,
    "span": int,
    "seed": int,
    "experiment": str,
    "tokens": int,
    "test": str,
    "scenario": str,
    "score": float,
    "score_without": float,
    "difference": float,
    "reason": str,
}
"""The columns of the table of experiments; docs/python.md describes each."""


KINDS: Final[Mapping[ExperimentKind, str]] = {"twin": "twins", "lesion": "lesions"}
"""The kinds of experiments, and the keys of result.json that hold their effects."""

HOW_TWINS: Final = "Each of these tests was played a second time in the same conversation, with small talk in the place of its needles."


@final
class Experiments(Measure):
    """The effects of twins and lesions. They are shown beside the run's score and are no part of it."""

    name = "experiments"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {key: _of_kind(run, kind) for kind, key in KINDS.items()}

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        sections = []
        if result.twins is not None:
            sections.append(_section("Twins", "without needles", HOW_TWINS, result.twins))
        if result.lesions is not None:
            left = f"the last {result.lesions.tokens or 0:,} tokens"
            how = f"Each question of these tests was asked again, of an agent that knew {left} before it and nothing else."
            sections.append(_section("Lesions", "with these alone", how, result.lesions))
        found = [(name, effect) for name, effect in (("twins", result.twins), ("lesions", result.lesions)) if effect is not None]
        lines = [Sentence(f"{told(effect)}{_cost(effect)}", name) for name, effect in found]
        about = "They come beside the run, and are no part of its score."
        return Document(lines=lines, chapters=[Chapter("Experiments", about, sections)] if sections else [])

    @classmethod
    def compared(cls, side: SideBySide) -> Document:
        pooled = pooled_effects(side.runs)
        return Document(tables=[_table(name, pooled) for name in dict.fromkeys(each.name for each in pooled)])


def _of_kind(run: GradedTests, kind: ExperimentKind) -> Effect | None:
    """Return the effect that a kind of experiment has on the run's tests; None if the run has no such experiments."""
    planned = {id: experiment for id, experiment in run.manifest.experiments.items() if experiment.kind == kind}
    if not planned:
        return None
    results = {test.id: test for test in run.tests}
    transcripts = [run.transcripts[id] for id in planned if id in run.transcripts]
    return _effect_of(
        [_test_effect(run, id, results[experiment.test]) for id, experiment in planned.items()],
        tokens=next(iter(planned.values())).tokens,
        turns=sum(t.own_turns for t in transcripts),
        conversation_tokens=sum(t.own_tokens for t in transcripts),
        costs=tally(entry for t in transcripts for entry in t.used),
    )


def _test_effect(run: GradedTests, id: str, test: TestResult) -> TestEffect:
    """Return a test's score beside its score in an experiment."""
    transcript = run.transcripts.get(id)
    played = transcript.tests.get(test.id) if transcript is not None else None
    grade = Grade(score=None, reason="it was not played to the end of the test")
    if played is not None and played.status == "played":
        grade = run.grade(id, played)
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


def _effect_of(
    tests: Sequence[TestEffect], *, tokens: int | None, turns: int, conversation_tokens: int, costs: dict[str, Spending]
) -> Effect:
    """Return the joint effect of a kind of experiment."""
    pairs = [(each.score, each.score_without) for each in tests if each.score is not None and each.score_without is not None]
    score, without = (fmean(column) for column in zip(*pairs, strict=True)) if pairs else (None, None)
    difference = score - without if score is not None and without is not None else None
    interval = paired_interval([score - without for score, without in pairs]) if pairs else None
    return Effect(
        tokens=tokens,
        paired=len(pairs),
        score=_rounded(score),
        score_without=_rounded(without),
        difference=_rounded(difference),
        interval=interval,
        share=_rounded(difference / score) if difference is not None and score and interval and is_shown(interval) else None,
        turns=turns,
        conversation_tokens=conversation_tokens,
        costs=costs,
        tests=list(tests),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


# ---- in words


def told(effect: Effect) -> str:
    """Return the effect of a kind of experiment in words."""
    lacking, what = ("without needles", "is memory") if effect.tokens is None else (f"with the last {effect.tokens:,} tokens", "needs more")
    tests = f"{len(effect.tests):,} test{'s' * (len(effect.tests) != 1)}"
    if effect.score is None or effect.score_without is None or effect.difference is None or effect.interval is None:
        return f"{tests}, none of which has a score both in the run and {lacking}"
    both = f", {effect.paired:,} of which have both scores" if effect.paired < len(effect.tests) else ""
    scores = f"{tests}{both}: {effect.score:.2f}, and {effect.score_without:.2f} {lacking}"
    low, high = effect.interval
    if effect.difference < 0:
        return f"{scores}: {-effect.difference:.2f} [{-high:.2f}, {-low:.2f}] more"
    share = f" or {effect.share:.0%}" if effect.share is not None else ""
    return f"{scores}: {effect.difference:.2f} [{low:.2f}, {high:.2f}]{share} {what}"


def _cost(effect: Effect) -> str:
    dollars = [part.cost_usd for part in effect.costs.values()]
    return f"; ${total:.4f}" if dollars and (total := total_cost(dollars)) is not None else ""


def _section(heading: str, without: str, explained: str, effect: Effect) -> Section:
    rows = [
        [row.test, _figure(row.score), _figure(row.score_without), "" if row.turn is None else str(row.turn), row.reason]
        for row in effect.tests
    ]
    table = Table(title=heading, columns=["test", "score", without, "from turn", "why"], rows=rows, heads=4)
    return Section(heading, f"{told(effect)}.", explained, table)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(name: str, pooled: Sequence[Pooled]) -> Table:
    """Return a table of the effects of a kind of experiment, with a row for each agent and span."""
    return Table(
        title=f"The same tests {name}",
        columns=["agent", "at", "tests", "conversations", "score", "left", "difference [95% interval]", "share"],
        rows=[
            [
                one_line(each.agent),
                str(each.column),
                str(each.tests),
                str(each.conversations),
                f"{each.score:.2f}",
                f"{each.without:.2f}",
                f"{each.difference:.2f} [{', '.join(each.interval.ends())}]",
                "" if each.share is None else f"{each.share:.0%}",
            ]
            for each in pooled
            if each.name == name
        ],
        note="Left is what they score so; the difference is that from their score in the run, of which it is the share. "
        "Where the interval includes 0, nothing is shown, and there is no share.",
    )


# ---- over several runs


@final
class Pooled(NamedTuple):
    """The mean effect of an agent's experiments in a column. `name` says what the tests had to do without. The means are over the `tests`
    that have both scores, in `conversations` independent conversations."""

    name: str
    agent: str
    column: Column
    tests: int
    conversations: int
    score: float
    without: float
    interval: Interval

    @property
    def difference(self) -> float:
        return self.score - self.without

    @property
    def share(self) -> float | None:
        """The difference as a share of the score; None where the interval includes 0."""
        shown = is_shown((self.interval.low, self.interval.high))
        return self.difference / self.score if self.score and shown else None


def experiment_rows(runs: Sequence[Graded]) -> Iterator[dict[str, Any]]:
    """Yield a row for each test of each experiment."""
    for run in runs:
        manifest = run.manifest
        for kind, effect in (("twin", run.result.twins), ("lesion", run.result.lesions)):
            if effect is None:
                continue
            for row in effect.tests:
                about = {"agent": run.agent, "span": manifest.span, "seed": manifest.seed, "experiment": kind, "tokens": effect.tokens}
                yield about | row.model_dump(include={name for name in EXPERIMENTS if name not in about})


def pooled_effects(runs: Sequence[Graded]) -> list[Pooled]:
    """Return the effects of the runs' experiments, by agent and column in the order of the runs. Tests without both scores are left out."""
    groups: dict[tuple[str, str, Column], list[tuple[Graded, TestEffect]]] = {}
    for run in runs:
        for effect in filter(None, (run.result.twins, run.result.lesions)):
            name = "without needles" if effect.tokens is None else f"with the last {effect.tokens:,} tokens"
            known = [(run, row) for row in effect.tests if row.difference is not None and row.test in run.roots]
            groups.setdefault((name, run.agent, run.column), []).extend(known)
    return [_pooled(*key, group) for key, group in groups.items() if group]


def _pooled(name: str, agent: str, column: Column, group: Sequence[tuple[Graded, TestEffect]]) -> Pooled:
    units = Units(run.manifest for run, _ in group)
    tests: dict[Key, list[float]] = {}
    for run, row in group:
        tests.setdefault(keys(run.manifest)[row.test], []).append(row.difference or 0.0)
    differences = [Difference(key.scenario, units.of(key), fmean(values)) for key, values in tests.items()]
    return Pooled(
        name,
        agent,
        column,
        tests=len(group),
        conversations=len({each.conversation for each in differences}),
        score=fmean(row.score or 0.0 for _, row in group),
        without=fmean(row.score_without or 0.0 for _, row in group),
        interval=effect_interval(differences),
    )
