"""The effects of experiments: scores in the run against scores in twins, lesions and controls, for one run or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.base.document import Chapter, Document, Section, Sentence
from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.results.analysis.statistics import Difference, Interval, effect_interval, paired_permutation_p, permutation_p
from longspan.simulator.results.analysis.units import Key, Units, test_keys
from longspan.simulator.results.effects import Effect, Paired, ScenarioEffect, TestEffect, difference_interval, is_shown
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.result import Result, TestResult, round_figure
from longspan.simulator.subject.ledger import tally_spending, total_cost
from longspan.simulator.suite.experiment import ExperimentKind
from longspan.simulator.suite.manifest import Manifest

__all__ = ["EXPERIMENTS", "Experiments", "PooledEffect", "describe_effect", "effect_of", "experiment_rows", "p_told", "pool_effects"]

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
"""The columns of the table of experiments; docs/guides/python.md describes each."""


KINDS: Final[Mapping[ExperimentKind, str]] = {"twin": "twins", "lesion": "lesions", "control": "control"}
"""The kinds of experiments, and the keys of their effects in result.json."""

HOW_TWINS: Final = "Each of these tests was played a second time in the same conversation, with small talk instead of its needles."

HOW_CONTROL: Final = "Each test was played a second time in a separate conversation, with nothing between its lines."

OVER_TESTS: Final = "Means of the same tests; intervals and p compare them test by test, and cover similar tests in this conversation."


@final
class Experiments(Measure):
    """The effects of twins, lesions and controls. They appear next to the run's score and do not count toward it."""

    name = "experiments"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {key: effect_of(run, kind) for kind, key in KINDS.items()}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        sections = []
        if result.twins is not None:
            sections.append(_section("Twins", "without needles", HOW_TWINS, result.twins, "twin"))
        if result.lesions is not None:
            left = f"the last {result.lesions.tokens or 0:,} tokens"
            how = f"Each question of these tests was asked again, to an agent that knew only {left} before it."
            sections.append(_section("Lesions", "with these alone", how, result.lesions, "lesion"))
        tables = []
        control = result.control
        if control is not None and control.paired:
            tables.append(_by_scenario(control))
            sections.append(Section("With and without distance", f"{describe_effect(control, 'control')}.", HOW_CONTROL, tables[0]))
        if control is not None:
            sections.append(_section("Controls", "without distance", HOW_CONTROL, control, "control"))
        effects = [("twins", result.twins), ("lesions", result.lesions), ("control", control)]
        kinds = {name: kind for kind, name in KINDS.items()}
        lines = [Sentence(f"{describe_effect(effect, kinds[name])}{_cost(effect)}", name) for name, effect in effects if effect is not None]
        about = "They are played in addition to the run and do not affect its score."
        return Document(lines=lines, tables=tables, chapters=[Chapter("Experiments", about, sections)] if sections else [])

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        pooled = pool_effects(side.runs)
        names = dict.fromkeys((each.kind, each.name) for each in pooled)
        return Document(
            tables=[
                (_control_table if kind == "control" else _table)([each for each in pooled if each.name == name], side.called.names)
                for kind, name in names
            ]
        )


def effect_of(run: GradedTests, kind: ExperimentKind) -> Effect | None:
    """Return the effect that a kind of experiment has on the run's tests; None if the run has no such experiments."""
    planned = {id: experiment for id, experiment in run.manifest.experiments.items() if experiment.kind == kind}
    if not planned:
        return None
    results = {test.id: test for test in run.tests}
    transcripts = [run.transcripts[id] for id in planned if id in run.transcripts]
    tests = [_test_effect(run, id, results[experiment.test]) for id, experiment in planned.items()]
    by_scenario = {name: [each for each in tests if each.scenario == name] for name in sorted({each.scenario for each in tests})}
    return Effect(
        **_paired_fields(tests),
        tokens=next(iter(planned.values())).tokens,
        scenarios={name: ScenarioEffect(**_paired_fields(group)) for name, group in by_scenario.items()},
        share=_share(tests) if kind != "control" else None,
        turns=sum(t.own_turns for t in transcripts),
        conversation_tokens=sum(t.own_tokens for t in transcripts),
        costs=tally_spending(entry for t in transcripts for entry in t.used),
        tests=tests,
    )


def _test_effect(run: GradedTests, id: str, test: TestResult) -> TestEffect:
    """Return a test's score with its score in an experiment."""
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
        difference=_round_or_none((test.score or 0.0) - (grade.score or 0.0)) if known else None,
        reason=grade.reason,
    )


def _pairs(tests: Sequence[TestEffect]) -> list[tuple[float, float]]:
    """Return both scores of the tests that have them."""
    return [(each.score, each.score_without) for each in tests if each.score is not None and each.score_without is not None]


def _paired_fields(tests: Sequence[TestEffect]) -> dict[str, Any]:
    """Return the fields of `Paired`."""
    pairs = _pairs(tests)
    if not pairs:
        return {"paired": 0, "score": None, "score_without": None, "difference": None, "interval": None}
    score, without = (fmean(column) for column in zip(*pairs, strict=True))
    differences = [one - other for one, other in pairs]
    return {
        "paired": len(pairs),
        "score": round_figure(score),
        "score_without": round_figure(without),
        "difference": round_figure(score - without),
        "interval": difference_interval(differences),
        "p": round_figure(permutation_p(differences)),
    }


def _share(tests: Sequence[TestEffect]) -> float | None:
    """Return the difference as a share of the score; None where the interval includes 0."""
    pairs = _pairs(tests)
    score = fmean(score for score, _ in pairs) if pairs else 0.0
    if not score or not is_shown(difference_interval([score - without for score, without in pairs])):
        return None
    return round_figure((score - fmean(without for _, without in pairs)) / score)


def _round_or_none(value: float | None) -> float | None:
    return None if value is None else round_figure(value)


# ---- in words


LACKING: Final[Mapping[ExperimentKind, str]] = {
    "twin": "without needles",
    "lesion": "with the last {tokens:,} tokens",
    "control": "without distance",
}
"""The description of tests in an experiment, by kind: the part that they lack, or that is left."""

IS: Final[Mapping[ExperimentKind, str]] = {"twin": "is due to memory", "lesion": "requires older turns"}


def _describe_lack(kind: ExperimentKind, tokens: int | None) -> str:
    return LACKING[kind].format(tokens=tokens or 0)


def describe_effect(effect: Effect, kind: ExperimentKind) -> str:
    """Return the effect of a kind of experiment in words."""
    lacking = _describe_lack(kind, effect.tokens)
    tests = f"{len(effect.tests):,} test{'s' * (len(effect.tests) != 1)}"
    if effect.score is None or effect.score_without is None or effect.difference is None or effect.interval is None:
        return f"{tests}, none with a score both in the run and {lacking}"
    both = f", {effect.paired:,} with both scores" if effect.paired < len(effect.tests) else ""
    scores = f"{tests}{both}: {format_percent(effect.score)}, and {format_percent(effect.score_without)} {lacking}"
    low, high = effect.interval
    if kind == "control":
        return f"{tests}{both}: {by_distance(effect)}"
    if effect.difference < 0:
        return f"{scores}: {format_percent(-effect.difference)}{format_interval((-high, -low), sign=True)} more"
    share = f" ({format_percent(effect.share)} of it)" if effect.share is not None else ""
    return f"{scores}: {format_percent(effect.difference)}{format_interval((low, high), sign=True)}{share} {IS[kind]}"


def by_distance(effect: Paired) -> str:
    """Describe the mean scores with and without distance, and the cost of distance. Only tests with both scores count."""
    if effect.score is None or effect.score_without is None or effect.difference is None or effect.interval is None:
        return "no test has both scores"
    low, high = effect.interval
    scores = f"{format_percent(effect.score)} with distance, {format_percent(effect.score_without)} without"
    change = f"{format_percent(abs(effect.difference))} {'more with' if effect.difference > 0 else 'lost to'} distance"
    ends = (low, high) if effect.difference > 0 else (-high, -low)
    return f"{scores}: {change}{format_interval(ends, sign=True)}, p {p_told(effect.p)}"


def p_told(p: float | None) -> str:
    """Return a p-value with its sign: "= 0.012", "< 0.001"."""
    return "unknown" if p is None else "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _cost(effect: Effect) -> str:
    dollars = [part.cost_usd for part in effect.costs.values()]
    return f"; ${total:.4f}" if dollars and (total := total_cost(dollars)) is not None else ""


def _small_p(p: float | None) -> str:
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _section(heading: str, without: str, explained: str, effect: Effect, kind: ExperimentKind) -> Section:
    columns = ["test", "score", without, "from turn", "why"]
    rows = [
        [row.test, _figure(row.score), _figure(row.score_without), "" if row.turn is None else str(row.turn), row.reason]
        for row in effect.tests
    ]
    if kind == "control":  # a control shares no turns, so a column is superfluous
        columns, rows = [*columns[:3], columns[4]], [[*row[:3], row[4]] for row in rows]
    table = Table(title=heading, columns=columns, rows=rows, heads=len(columns) - 1)
    return Section(heading, f"{describe_effect(effect, kind)}.", explained, table)


def _by_scenario(control: Effect) -> Table:
    """Return a table of the tests' scores with distance and without, by scenario."""
    rows = [
        [
            name,
            str(each.paired),
            _figure(each.score),
            _figure(each.score_without),
            _figure(None if each.difference is None else 0.0 - each.difference),
            "" if each.interval is None else format_interval((-each.interval[1], -each.interval[0])).strip(),
            _small_p(each.p),
        ]
        for name, each in [*control.scenarios.items(), *([("in total", control)] if len(control.scenarios) > 1 else [])]
    ]
    columns = ["scenario", "tests", "with", "without", "lost", "95% interval", "p"]
    return Table(title="The same tests with and without distance", columns=columns, rows=rows, note=OVER_TESTS)


def _figure(value: float | None) -> str:
    return "" if value is None else format_percent(value)


def _cells(each: PooledEffect, names: Mapping[str, str]) -> list[str]:
    """Return the cells of a row on an agent's experiments: the agent, their number, and the scores."""
    counts = [str(each.tests), str(each.conversations)]
    return [names[each.agent], str(each.column), *counts, format_percent(each.score), format_percent(each.without)]


def _table(pooled: Sequence[PooledEffect], names: Mapping[str, str]) -> Table:
    """Return a table of the effects of twins or lesions, with a row for each agent and span."""
    return Table(
        title=f"The same tests {pooled[0].name}",
        columns=["agent", "at", "tests", "conversations", "score", "left", "difference [95% interval]", "share"],
        rows=[
            [
                *_cells(each, names),
                f"{format_percent(each.difference, sign=True)}{format_interval(each.interval, sign=True)}",
                "" if each.share is None else f"{each.share:.0%}",
            ]
            for each in pooled
        ],
        note="Left: their score in the experiment. Difference: their score in the run minus that, and its share of the score in the run. "
        "There is no share where the interval includes 0.",
    )


def _control_table(pooled: Sequence[PooledEffect], names: Mapping[str, str]) -> Table:
    """Return a table of the cost of distance, with a row for each agent and span."""
    return Table(
        title="The same tests with and without distance",
        columns=["agent", "at", "tests", "conversations", "with", "without", "lost", "95% interval", "p"],
        rows=[
            [
                *_cells(each, names),
                format_percent(-each.difference),
                format_interval((-each.interval.high, -each.interval.low)).strip(),
                _small_p(each.p),
            ]
            for each in pooled
        ],
        note="Means of the same tests, each played again in a separate conversation. p is over whole conversations.",
    )


# ---- over several runs


@final
class PooledEffect(NamedTuple):
    """The mean effect of an agent's experiments in a column.

    `name` is the part that the tests lacked. The means are over the `tests` with both scores, in `conversations` independent conversations.
    """

    name: str
    agent: str
    column: Column
    tests: int
    conversations: int
    score: float
    without: float
    interval: Interval
    kind: ExperimentKind
    p: float

    @property
    def difference(self) -> float:
        return self.score - self.without

    @property
    def share(self) -> float | None:
        """The difference as a share of the score; None where the interval includes 0."""
        shown = is_shown((self.interval.low, self.interval.high))
        return self.difference / self.score if self.score and shown else None


def experiment_rows(runs: Sequence[GradedRun]) -> Iterator[dict[str, Any]]:
    """Yield a row for each test of each experiment."""
    for run in runs:
        manifest = run.manifest
        for kind, effect in _effects(run.result):
            for row in effect.tests:
                about = {"agent": run.agent, "span": manifest.span, "seed": manifest.seed, "experiment": kind, "tokens": effect.tokens}
                yield about | row.model_dump(include={name for name in EXPERIMENTS if name not in about})


def _effects(result: Result) -> list[tuple[ExperimentKind, Effect]]:
    """Return the effects of the kinds of experiments that a run has."""
    found: list[tuple[ExperimentKind, Effect | None]] = [("twin", result.twins), ("lesion", result.lesions), ("control", result.control)]
    return [(kind, effect) for kind, effect in found if effect is not None]


def pool_effects(runs: Sequence[GradedRun]) -> list[PooledEffect]:
    """Return the effects of the runs' experiments, by agent and column in the order of the runs. Tests without both scores are left out."""
    groups: dict[tuple[ExperimentKind, str, str, Column], list[tuple[GradedRun, TestEffect]]] = {}
    for run in runs:
        for kind, effect in _effects(run.result):
            name = _describe_lack(kind, effect.tokens)
            known = [(run, row) for row in effect.tests if row.difference is not None and row.test in run.roots]
            groups.setdefault((kind, name, run.agent, run.column), []).extend(known)
    return [_pool_tests(*key, group) for key, group in groups.items() if group]


def _pool_tests(kind: ExperimentKind, name: str, agent: str, column: Column, group: Sequence[tuple[GradedRun, TestEffect]]) -> PooledEffect:
    units = Units(run.manifest for run, _ in group)
    tests: dict[Key, list[float]] = {}
    for run, row in group:
        tests.setdefault(test_keys(run.manifest)[row.test], []).append(row.difference or 0.0)
    differences = [Difference(key.scenario, units.of(key), fmean(values)) for key, values in tests.items()]
    return PooledEffect(
        name,
        agent,
        column,
        tests=len(group),
        conversations=len({each.conversation for each in differences}),
        score=fmean(row.score or 0.0 for _, row in group),
        without=fmean(row.score_without or 0.0 for _, row in group),
        interval=effect_interval(differences),
        kind=kind,
        p=paired_permutation_p(differences),
    )
