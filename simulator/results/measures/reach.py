"""How far back an agent remembers: recall of plain facts at many distances, in a sentence, tables and a fit."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.base.document import Chapter, Curve, Data, Document, Section, Sentence, Tone
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.rungs import Rung, find_rungs
from longspan.simulator.filler.draws import join_words
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.analysis.distances import find_needs
from longspan.simulator.results.analysis.heterogeneity import measure_heterogeneity
from longspan.simulator.results.analysis.reach_fit import CredibleEstimate, ScoredQuestion, estimate_share, fit_reach
from longspan.simulator.results.analysis.reach_gate import GateDecision, PlacedAnswer, decide_gate
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.experiments import p_told
from longspan.simulator.results.measures.group_tables import Row, place_columns
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.measures.reach_curve import make_curve
from longspan.simulator.results.reach_result import (
    STAGES,
    TYPES_SHOWN,
    Count,
    DistancesByUnit,
    Extent,
    ReachResult,
    Stage,
    StrandResult,
    Third,
    TypeResult,
    Unit,
    describe_extent,
    describe_types,
)
from longspan.simulator.results.result import Result, TestResult, round_figure
from longspan.simulator.suite.manifest import Manifest

__all__ = ["PlacedRung", "Reach", "decide_reach", "estimate_luck", "place_rungs", "pool_reach"]

PLAIN: Final = "plain facts"
"""The strand that measures the reach."""

BINS: Final = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600, inf)

NOTE: Final = (
    "The reach is the furthest distance where at least half of the plain facts are recalled. It is only given if recall beyond it "
    "is significantly below half. Near and far are recall at the nearest and the furthest distance. Intervals are 95% credible ones, over "
    "curves with one level, with a step between two levels, and with a gradual fall. A distance is from the end of the statement to the "
    "question, with the agent's replies as they are."
)

THIRDS: Final = 3


@final
class PlacedRung(NamedTuple):
    """A rung that was asked later, with the furthest needle that it needs.

    `stored` and `found`: whether its fact was stored and retrieved; None if unreported.
    """

    rung: Rung
    needle: Evidence
    stored: bool | None
    found: bool | None

    @property
    def tokens(self) -> int:
        return self.needle.tokens

    def get_score(self, stage: Stage) -> float | None:
        """Return the score of a stage, None if undecided or unreported."""
        if stage == "answered":
            return self.rung.score
        known = self.found if stage == "found" else self.stored
        return None if known is None else float(known)

    def as_question(self, score: float) -> ScoredQuestion:
        needle = self.needle
        turns = needle.needle_turn, needle.question_turn
        return ScoredQuestion(self.tokens, 2 * (turns[1] - turns[0]), needle.seconds, needle.nights, *turns, self.rung.type, score)


@final
class Reach(Measure):
    """How far back plain facts are recalled, and the kind of limit. Only tests with rungs have one (see `contract.rungs`)."""

    name = "reach"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {"reach": _fit_stages(run.tests)}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        if not result.reach:
            return Document()
        first, *others = result.reach
        lines = [Sentence(line) for each in others for line in [each.sentence]] + [Sentence(line) for line in _describe_details(first)]
        section = Section("By distance", "", NOTE, _tabulate_distances(result))
        return Document(
            opening=[_make_opening(first)],
            lines=lines,
            chapters=[Chapter("How far back it remembers", " ".join([first.sentence, *(line.text for line in lines)]), [section])],
            curves=_draw(manifest.labelled, Column.of(manifest).at.strip(), first, result.tests),
        )

    @classmethod
    def describe_runs(cls, runs: Sequence[GradedRun]) -> Document:
        found = [
            (f"{agent}{column.at}{f', {len(group)} runs' if len(group) > 1 else ''}", stages)
            for (agent, column), (group, stages) in _group_runs(runs).items()
        ]
        return Document(opening=[*(_make_opening(stages[0], whose) for whose, stages in found), *_compare_spans(runs)])

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        rows, data, curves = [], [], []
        pooled = _group_runs(side.runs)
        for agent, column, _ in side.places:
            if (agent, column) in pooled:
                runs, stages = pooled[agent, column]
                note = f"{column.at.strip()}{f', {len(runs)} runs' if len(runs) > 1 else ''}"
                curves += _draw(agent, note, stages[0], [test for run in runs for test in run.result.tests])
            for each in pooled[agent, column][1] if (agent, column) in pooled else ():
                rows.append([side.called.names[agent], str(column), each.stage, *_make_cells(each)])
                data.append(place_columns(column, agent=agent) | _make_row(each))
        title = "How far back plain facts are recalled [95% interval]"
        table = Table(title=title, columns=["agent", "span", "stage", *COLUMNS], rows=rows, note=NOTE)
        return Document(
            verdicts=[*_compare_spans(side.runs)],
            leading=[table] if rows else [],
            data=[Data("reach", FLAT_COLUMNS, data, always=ALWAYS)] if data else [],
            curves=curves,
        )


def pool_reach(runs: Iterable[GradedRun]) -> list[ReachResult]:
    """Return how far back plain facts are recalled, for each agent and span, over all its runs.

    For a memory, this is its last known stage.
    """
    return [stages[0] for _, stages in _group_runs(runs).values()]


def place_rungs(tests: Iterable[TestResult]) -> list[PlacedRung]:
    """Return the rungs of plain facts in tests that came later than their fact, nearest first."""
    placed = [each for test in tests for each in _place_rungs(test) if each.rung.strand == PLAIN]
    return sorted(placed, key=lambda each: each.tokens)


def decide_reach(runs: Iterable[Iterable[TestResult]], limit: int, share: float = 0.5) -> GateDecision:
    """Decide whether one agent recalls at least a share of plain facts at every distance up to a limit, over all its runs together.

    The limit is in tokens, with the agent's replies at their actual length. For a memory that only searches, retrieval counts.
    """
    conversations: dict[object, list[PlacedAnswer]] = {}
    for number, tests in enumerate(runs):
        placed = [(test.conversation, each) for test in tests if test.counts for each in _place_rungs(test) if each.rung.strand == PLAIN]
        stage: Stage = next((stage for stage in STAGES if any(each.get_score(stage) is not None for _, each in placed)), "answered")
        for conversation, each in placed:
            if (score := each.get_score(stage)) is not None:
                conversations.setdefault((number, conversation), []).append(PlacedAnswer(each.tokens, score))
    return decide_gate(list(conversations.values()), limit, share)


def _draw(agent: str, note: str, each: ReachResult, tests: Iterable[TestResult]) -> list[Curve]:
    """Return the curve of a result with its tests; none if a damaged file lacks their questions."""
    counted = [test for test in tests if test.counts]
    answers = [(placed.tokens, score) for placed in place_rungs(counted) if (score := placed.get_score(each.stage)) is not None]
    asked = [rung for test in counted for rung in find_rungs(test.items) if rung.at_once and rung.strand == PLAIN] if each.at_once else []
    at_once = [rung.score for rung in asked if rung.score is not None]
    return [make_curve(agent, note, each, answers, at_once)] if answers else []


# ---- fitting


def _group_runs(runs: Iterable[GradedRun]) -> dict[tuple[str, Column], tuple[list[GradedRun], list[ReachResult]]]:
    """Return the runs that asked for facts at many distances by agent and column, each group with the result of its stages."""
    groups: dict[tuple[str, Column], list[GradedRun]] = {}
    for run in runs:
        if run.result.reach:
            groups.setdefault((run.agent, run.column), []).append(run)
    return {
        key: (group, group[0].result.reach if len(group) == 1 else _fit_stages(test for run in group for test in run.result.tests))
        for key, group in groups.items()
    }


def _fit_stages(tests: Iterable[TestResult]) -> list[ReachResult]:
    """Return the result of each stage that is known, over all tests."""
    counted = [test for test in tests if test.counts]
    placed = [each for test in counted for each in _place_rungs(test)]
    at_once = [each for test in counted for each in find_rungs(test.items) if each.at_once and each.strand == PLAIN]
    return [each for stage in STAGES if (each := _fit_stage(stage, placed, at_once)) is not None]


def _place_rungs(test: TestResult) -> Iterator[PlacedRung]:
    """Yield the rungs of a test that were asked later."""
    pairs: dict[int, list[Evidence]] = {}
    for need in find_needs(test):
        pairs.setdefault(need.turn, []).append(need.nearest)
    for rung in find_rungs(test.items):
        if not rung.at_once and (needed := pairs.get(rung.turn)):
            furthest = max(needed, key=lambda pair: pair.tokens)
            yield PlacedRung(rung, furthest, _know_all(pair.stored for pair in needed), _know_all(pair.retrieved for pair in needed))


def _know_all(known: Iterable[bool | None]) -> bool | None:
    values = list(known)
    return None if None in values else all(values)


def _fit_stage(stage: Stage, placed: Sequence[PlacedRung], at_once: Sequence[Rung]) -> ReachResult | None:
    """Return the result of a stage; None if unknown."""
    scored = [(each, score) for each in placed if (score := each.get_score(stage)) is not None]
    plain = sorted(((each, score) for each, score in scored if each.rung.strand == PLAIN), key=lambda pair: pair[0].tokens)
    guesses = stage == "answered"  # storage and retrieval cannot be guessed
    chance, heard = (fmean([getattr(each.rung, name) for each, _ in plain]) if plain and guesses else 0.0 for name in ("chance", "heard"))
    questions = [each.as_question(score) for each, score in plain]
    outcomes = Counter(each.rung.outcome for each, _ in plain if each.rung.outcome not in ("", "right")) if guesses else Counter[str]()
    fit = fit_reach(questions, guessed=estimate_luck(outcomes["confused"], len(plain), heard))
    if fit is None:
        return None
    asked = [rung for rung in at_once if rung.score is not None] if guesses else []
    thirds = _make_thirds(plain)
    limit = fit.reach.get(fit.unit) or fit.drop.get(fit.unit)
    split = _split(scored, fit.unit, limit)
    within, beyond = split.get(PLAIN, (Count(asked=0, right=0.0),) * 2)
    types = [each.rung.type for each, _ in plain]
    sides = [limit is not None and (getattr(each, fit.unit) or 0) > limit.value for each in questions]
    return ReachResult(
        stage=stage,
        near=_make_extent(fit.near) if fit.fits else thirds[0].share,
        far=_make_extent(fit.far) if fit.fits else thirds[-1].share,
        drop=_make_distances(fit.drop),
        reach=_make_distances(fit.reach),
        kind=fit.kind,
        fits=fit.fits,
        kinds={kind: round_figure(probability) for kind, probability in fit.kinds.items()},
        alike=fit.alike,
        unit=fit.unit,
        within=within,
        beyond=beyond,
        below=round_figure(fit.below),
        share=_make_extent(fit.share),
        thirds=thirds,
        by_type=_count_types(plain),
        types_p=measure_heterogeneity([score for _, score in plain], types, sides) if all(types) else None,
        asked=len(plain),
        recalled=round_figure(sum(score for _, score in plain)),
        chance=round_figure(chance),
        heard=round_figure(heard),
        outcomes=dict(outcomes),
        at_once=len(asked),
        able=round_figure(sum(rung.score or 0 for rung in asked)),
        furthest=max(each.tokens for each, _ in plain),
        strands=[StrandResult(name=name, within=near, beyond=far) for name, (near, far) in sorted(split.items()) if name != PLAIN],
    )


def estimate_luck(confused: int, asked: int, heard: float) -> float:
    """Return the share of answers that guessing explains, among values already stated, where one guess is right with probability `heard`.

    Guesses that miss name a value stated for another person, so an agent with few `confused` answers has few lucky ones.
    """
    return min(heard, confused * heard / (1 - heard) / asked) if asked and heard < 1 else heard


def _make_extent(estimate: CredibleEstimate) -> Extent:
    return Extent(**{name: round_figure(value) if isfinite(value) else None for name, value in estimate._asdict().items()})


def _make_distances(found: Mapping[Unit, CredibleEstimate]) -> DistancesByUnit | None:
    return DistancesByUnit(**{unit: _make_extent(estimate) for unit, estimate in found.items()}) if found else None


def _count(scores: Sequence[float]) -> Count:
    return Count(asked=len(scores), right=round_figure(sum(scores)))


def _estimate(scores: Sequence[float]) -> Extent:
    return _make_extent(estimate_share(scores))


def _make_thirds(plain: Sequence[tuple[PlacedRung, float]]) -> list[Third]:
    """Return the thirds of the questions by distance, or fewer parts of fewer questions."""
    number = min(THIRDS, len(plain))
    parts = [plain[len(plain) * part // number : len(plain) * (part + 1) // number] for part in range(number)]
    return [
        Third(furthest=part[-1][0].tokens, count=_count(scores), share=_estimate(scores))
        for part in parts
        for scores in [[score for _, score in part]]
    ]


def _count_types(plain: Sequence[tuple[PlacedRung, float]]) -> dict[str, TypeResult]:
    found: dict[str, list[float]] = {}
    for each, score in plain:
        found.setdefault(each.rung.type, []).append(score)
    return {name: TypeResult(count=_count(scores), share=_estimate(scores)) for name, scores in sorted(found.items()) if name}


def _split(scored: Sequence[tuple[PlacedRung, float]], unit: Unit, limit: CredibleEstimate | None) -> dict[str, tuple[Count, Count]]:
    """Return each strand's questions up to the limit and beyond it; without a limit, all are within."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for each, score in scored:
        beyond = limit is not None and (getattr(each.as_question(score), unit) or 0) > limit.value
        found.setdefault(each.rung.strand, ([], []))[beyond].append(score)
    return {name: (_count(near), _count(far)) for name, (near, far) in found.items()}


# ---- in words


def _make_opening(each: ReachResult, whose: str = "") -> Sentence:
    tone: Tone = "plain" if each.tells and each.fits else "warning"
    return Sentence(f"{whose}: {each.sentence}" if whose else each.sentence, tone=tone)


def _describe_details(each: ReachResult) -> Iterator[str]:
    """Yield further findings on a run's answers: other strands, types of facts, wrong answers and guessing."""
    for strand in each.strands if each.tells else ():
        parts = [(strand.within, "within" if each.drop else "right"), (strand.beyond, "beyond")]
        yield f"{strand.name.capitalize()}: {', '.join(f'{count.text} {where}' for count, where in parts if count.asked)}."
    if each.types_p is not None and each.types_p >= TYPES_SHOWN:
        yield f"By type: {describe_types(each)}; no significant differences (p {p_told(each.types_p)})."
    if each.outcomes:
        named = [
            f"{format_percent(each.outcomes[name] / each.asked)} name {what}" for name, what in OUTCOMES.items() if each.outcomes.get(name)
        ]
        yield f"Of the answers, {join_words(named)}."
    if each.chance:
        yield f"A guess among all values scores {format_percent(each.chance)}, among values already stated {format_percent(each.heard)}."


OUTCOMES: Final = {
    "none": "no value",
    "confused": "a value stated for another person",
    "several": "several values",
    "other": "a value never stated",
}
"""Descriptions of the values in wrong answers."""


def _compare_spans(runs: Iterable[GradedRun]) -> Iterator[Sentence]:
    """Yield a sentence for each agent with limits at two spans that exclude each other: such an agent has no fixed limit."""
    by_agent: dict[str, list[tuple[Column, ReachResult]]] = {}
    for (agent, column), (_, stages) in _group_runs(runs).items():
        by_agent.setdefault(agent, []).append((column, stages[0]))
    for agent, found in by_agent.items():
        units = {each.unit for _, each in found if each.reach is not None}
        if len(found) < 2 or len(units) != 1:
            continue
        (unit,) = units
        known = [(column, each.reach.get(unit) if each.reach else None) for column, each in found]
        ends = [(column, extent.low or 0.0, inf if extent.high is None else extent.high) for column, extent in known if extent]
        (first, low, _), (last, _, high) = max(ends, key=lambda end: end[1]), min(ends, key=lambda end: end[2])
        without = [column for column, extent in known if extent is None]
        if low > high:
            yield Sentence(f"{agent} reaches further at {first} than at {last}: its limit is not a fixed distance.", tone="warning")
        elif without:
            yield Sentence(
                f"{agent} has a limit at {ends[0][0]} and none at {without[0]}: its limit is not a fixed distance.", tone="warning"
            )


# ---- tables


COLUMNS: Final = ("reach", "in tokens", "near", "far", "kind of limit", "right", "at once")


def _make_cells(each: ReachResult) -> list[str]:
    asked = Count(asked=each.at_once, right=each.able).text if each.at_once else "–"
    reach = each.reach or DistancesByUnit()
    shares = [
        f"{format_percent(share.value or 0)} [{format_percent(share.low or 0)}, {format_percent(share.high or 0)}]"
        for share in (each.near, each.far)
    ]
    own, tokens = reach.get(each.unit), reach.tokens
    in_tokens = "–" if tokens is None else describe_extent("tokens", tokens).replace(" tokens", "")
    distances = ["–" if own is None else describe_extent(each.unit, own), in_tokens]
    return [*distances, *shares, each.named, Count(asked=each.asked, right=each.recalled).text, asked]


ALWAYS: Final = ("near", "far", "drop_tokens", "drop_messages", "drop_seconds", "reach_tokens", "reach_messages", "reach_seconds")
"""The columns that each row for programs has; null without a finding."""


FLAT_COLUMNS: Final[Mapping[str, type]] = {
    "stage": str,
    "kind": str,
    "fits": bool,
    **{f"{name}{end}": float for name in ALWAYS for end in ("", "_low", "_high")},
    "types_p": float,
    "asked": int,
    "recalled": float,
    "at_once": int,
    "able": float,
    "heard": float,
}
"""The columns for programs that have no nested values, as CSV."""


def _make_row(each: ReachResult) -> Row:
    drop, reach = each.drop or DistancesByUnit(), each.reach or DistancesByUnit()
    units: tuple[Unit, ...] = ("tokens", "messages", "seconds")
    extents = {"near": each.near, "far": each.far}
    distances = {f"{name}_{unit}": found.get(unit) for name, found in (("drop", drop), ("reach", reach)) for unit in units}
    return {
        "stage": each.stage,
        **{name: None if extent is None else extent.model_dump() for name, extent in (extents | distances).items()},
        "kind": each.kind,
        "fits": each.fits,
        "by_type": {name: found.count.model_dump() | found.share.model_dump() for name, found in each.by_type.items()},
        "types_p": each.types_p,
        "outcomes": each.outcomes,
        "asked": each.asked,
        "recalled": each.recalled,
        "at_once": each.at_once,
        "able": each.able,
        "chance": each.chance,
        "heard": each.heard,
    }


def _tabulate_distances(result: Result) -> Table:
    """Return a table of recall by distance and strand."""
    cells: dict[tuple[str, int], list[float]] = {}
    names: dict[str, None] = {}
    for test in result.tests:
        ladder = find_rungs(test.items)
        for rung in {each.turn: each for each in ladder if each.at_once}.values():
            cells.setdefault((rung.strand, -1), []).append(rung.score or 0)
        for each in _place_rungs(test):
            if each.rung.score is not None:
                cells.setdefault((each.rung.strand, bisect_left(BINS, each.tokens + 1) - 1), []).append(each.rung.score)
        names |= dict.fromkeys(each.strand for each in ladder)
    rows = [
        [_name_bin(at), *(_count(scores).text if (scores := cells.get((name, at))) else "–" for name in names)]
        for at in sorted({at for _, at in cells})
    ]
    return Table(title="Right answers by distance", columns=["tokens back", *names], rows=rows)


def _name_bin(at: int) -> str:
    if at < 0:
        return "at once"
    low, high = BINS[at], BINS[at + 1]
    return f"{format_tokens(low)} or more" if high == inf else f"{format_tokens(low)} to {format_tokens(high)}"
