"""How far back an agent remembers: plain facts that were asked for at many distances, in a sentence, a table, and a fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.analysis.distances import needs
from longspan.simulator.analysis.reach import Recalled, reach
from longspan.simulator.base.document import Chapter, Data, Document, Section, Sentence
from longspan.simulator.base.sizes import short
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.rungs import Rung, rungs
from longspan.simulator.filler.draws import listed
from longspan.simulator.journal.transcript import Evidence, Transcript
from longspan.simulator.measures.group_tables import place
from longspan.simulator.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.reach import STAGES, Extent, ReachOf, Stage, StrandOf
from longspan.simulator.results.result import Result, TestResult, rounded
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Placed", "Reach", "asked_later", "reaches"]

PLAIN: Final = "plain facts"
"""The strand that the reach is measured by."""

BINS: Final = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600, inf)

NOTE: Final = (
    "The reach is the furthest distance at which at least half of the plain facts are recalled. Its interval is a 95% credible one, over "
    "windows of messages and of tokens, decay, missing some whatever the distance, no limit, and no memory at all. A distance is from the "
    "end of what was told to the question, with the agent's replies as they are."
)

NEAREST: Final = 3
"""One in so many questions is among the nearest."""


@final
class Placed(NamedTuple):
    """A rung that was asked later: its distances, and whether its fact was stored and found, None if the agent does not tell."""

    rung: Rung
    tokens: int
    dealt: int
    messages: int
    seconds: float
    stored: bool | None
    found: bool | None


@final
class Reach(Measure):
    """How far back plain facts are recalled, and what kind of limit that looks like. Only tests with rungs tell (see `contract.rungs`)."""

    name = "reach"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        return {"reach": _reaches((test, run.transcripts.get(test.conversation or "")) for test in run.tests)}

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        if not result.reach:
            return Document()
        first, *others = result.reach
        strands = [sentence for strand in first.strands if (sentence := _strand(strand, first))]
        lines = [*(Sentence(each.sentence) for each in others), *map(Sentence, strands)]
        about = first.sentence
        section = Section("By distance", "", NOTE, _by_distance(result))
        return Document(
            opening=[_opening(first)],
            lines=lines,
            chapters=[Chapter("How far back it remembers", " ".join([about, *(line.text for line in lines)]), [section])],
        )

    @classmethod
    def listed(cls, runs: Sequence[Graded]) -> Document:
        found = [
            (f"{agent}{column.at}{f', {len(group)} runs' if len(group) > 1 else ''}", stages)
            for (agent, column), (group, stages) in _grouped(runs).items()
        ]
        return Document(opening=[_opening(stages[0], whose) for whose, stages in found])

    @classmethod
    def compared(cls, side: SideBySide) -> Document:
        rows, data = [], []
        pooled = _grouped(side.runs)
        for agent, column, _ in side.places:
            for each in pooled[agent, column][1] if (agent, column) in pooled else ():
                rows.append([side.called.names[agent], str(column), each.stage, *_cells(each)])
                extents = {"tokens": each.tokens, "messages": each.messages}
                ends = {f"{unit}{end}": getattr(extent, key) for unit, extent in extents.items() for key, end in ENDS.items()}
                asked = {"asked": each.asked, "recalled": each.recalled, "at_once": each.at_once, "able": each.able, "chance": each.chance}
                data.append(place(column, agent=agent) | {"stage": each.stage, "kind": each.kind} | ends | asked)
        title = "How far back plain facts are recalled [95% interval]"
        table = Table(title=title, columns=["agent", "span", "stage", *COLUMNS], rows=rows, note=NOTE)
        return Document(leading=[table] if rows else [], data=[Data("reach", {}, data)] if data else [])


def reaches(runs: Iterable[Graded]) -> list[ReachOf]:
    """Return how far back plain facts are recalled, one for each agent and span, over all of its runs; of a memory, its last stage."""
    return [stages[0] for _, stages in _grouped(runs).values()]


def asked_later(tests: Iterable[TestResult]) -> list[Placed]:
    """Return the plain facts of tests that were asked later, nearest first. Virtual time is not known here."""
    placed = [each for test in tests for each in _placed(test, rungs(test.items), None) if each.rung.strand == PLAIN]
    return sorted(placed, key=lambda each: each.tokens)


ENDS: Final = {"value": "", "low": "_low", "high": "_high"}

COLUMNS: Final = ("tokens back", "messages", "looks like", "right", "at once")


def _cells(each: ReachOf) -> list[str]:
    asked = f"{each.able:.3g} of {each.at_once}" if each.at_once else "–"
    return [_extent(each.tokens), _extent(each.messages), each.named, f"{each.recalled:.3g} of {each.asked}", asked]


def _extent(extent: Extent) -> str:
    if extent.value == 0:
        return "none"
    value, low, high = ("all" if each is None else short(each) for each in (extent.value, extent.low, extent.high))
    return f"{value} [{low}, {high}]" if (low, high) != (value, value) else value


# ---- one run


def _opening(each: ReachOf, whose: str = "") -> Sentence:
    return Sentence(f"{whose}: {each.sentence}" if whose else each.sentence, tone="plain" if each.can else "warning")


def _grouped(runs: Iterable[Graded]) -> dict[tuple[str, Column], tuple[list[Graded], list[ReachOf]]]:
    """Return the runs that asked for facts at many distances by agent and column, each with how far its stages reach over all runs.

    Virtual time is known of a single run only.
    """
    groups: dict[tuple[str, Column], list[Graded]] = {}
    for run in runs:
        if run.result.reach:
            groups.setdefault((run.agent, run.column), []).append(run)
    return {
        key: (group, group[0].result.reach if len(group) == 1 else _reaches((test, None) for run in group for test in run.result.tests))
        for key, group in groups.items()
    }


def _reaches(tests: Iterable[tuple[TestResult, Transcript | None]]) -> list[ReachOf]:
    """Return how far each stage reaches, over all tests. Virtual time is known with a test's transcript alone."""
    found = [(test, rungs(test.items), transcript) for test, transcript in tests if test.counts]
    placed = [each for test, ladder, transcript in found for each in _placed(test, ladder, transcript)]
    at_once = [each for _, ladder, _ in found for each in ladder if each.at_once and each.strand == PLAIN]
    return [each for stage in STAGES if (each := _fitted(stage, placed, at_once)) is not None]


def _placed(test: TestResult, ladder: Sequence[Rung], transcript: Transcript | None) -> Iterator[Placed]:
    """Yield the rungs of a test that were asked later, with the distances of the furthest needle that each needs."""
    pairs: dict[int, list[Evidence]] = {}
    for need in needs(test):
        pairs.setdefault(need.turn, []).append(need.nearest)
    for rung in ladder:
        if rung.at_once or rung.turn not in pairs:
            continue
        needed = pairs[rung.turn]
        furthest = max(needed, key=lambda pair: pair.tokens)
        yield Placed(
            rung,
            furthest.tokens,
            furthest.tokens if furthest.dealt is None else furthest.dealt,
            2 * (furthest.question_turn - furthest.needle_turn),
            _seconds(transcript, furthest),
            _all(pair.stored for pair in needed),
            _all(pair.retrieved for pair in needed),
        )


def _seconds(transcript: Transcript | None, pair: Evidence) -> float:
    if transcript is None:
        return 0.0
    told, asked = (transcript.history[turn].sent_at for turn in (pair.needle_turn, pair.question_turn))
    return 0.0 if told is None or asked is None else (asked - told).total_seconds()


def _all(known: Iterator[bool | None]) -> bool | None:
    values = list(known)
    return None if None in values else all(values)


def _fitted(stage: Stage, placed: Sequence[Placed], at_once: Sequence[Rung]) -> ReachOf | None:
    """Return how far a stage reaches; None if nothing is known of it."""
    scored = [(each, score) for each in placed if (score := _score(stage, each)) is not None]
    plain = [(each, score) for each, score in scored if each.rung.strand == PLAIN]
    chance = float(stage == "answered")  # what is stored and found is not guessed
    fitted = reach([Recalled(each.tokens, each.messages, each.seconds, score, chance * each.rung.chance) for each, score in plain])
    if fitted is None:
        return None
    asked = [rung for rung in at_once if rung.score is not None] if stage == "answered" else []
    within = fitted.distances["tokens"].value
    value, low, high = map(rounded, fitted.share)
    return ReachOf(
        stage=stage,
        **{unit: Extent(**{name: _finite(each) for name, each in found._asdict().items()}) for unit, found in fitted.distances.items()},
        dealt=_dealt(within, [each for each, _ in plain]),
        furthest=max(each.tokens for each, _ in plain),
        furthest_dealt=max(each.dealt for each, _ in plain),
        asked=len(plain),
        recalled=rounded(sum(score for _, score in plain)),
        beyond=None if fitted.beyond is None else rounded(fitted.beyond),
        chance=rounded(fmean(chance * each.rung.chance for each, _ in plain)),
        at_once=len(asked),
        able=rounded(sum(rung.score or 0 for rung in asked)),
        nearest=rounded(fmean(score for _, score in sorted(plain, key=lambda each: each[0].tokens)[: -(-len(plain) // NEAREST)])),
        share=Extent(value=value, low=low, high=high),
        kinds={kind: rounded(likely) for kind, likely in fitted.kinds.items()},
        strands=_strands(scored, within),
    )


def _score(stage: Stage, each: Placed) -> float | None:
    if stage == "answered":
        return each.rung.score
    known = each.found if stage == "found" else each.stored
    return None if known is None else float(known)


def _finite(value: float) -> float | None:
    return rounded(value) if isfinite(value) else None


def _dealt(tokens: float, placed: Sequence[Placed]) -> float | None:
    """Return a distance in tokens as charged: that of the furthest question within it. None if it is infinite."""
    return float(max((each.dealt for each in placed if each.tokens <= tokens), default=0)) if isfinite(tokens) else None


def _strands(scored: Sequence[tuple[Placed, float]], within: float) -> list[StrandOf]:
    found = []
    for name in dict.fromkeys(each.rung.strand for each, _ in scored):
        near, far = (
            [score for each, score in scored if each.rung.strand == name and (each.tokens <= within) is side] for side in (True, False)
        )
        found.append(
            StrandOf(name=name, within=len(near), right_within=rounded(sum(near)), beyond=len(far), right_beyond=rounded(sum(far)))
        )
    return sorted(found, key=lambda strand: strand.name != PLAIN)


# ---- in words


def _strand(strand: StrandOf, whole: ReachOf) -> str:
    """Return how a strand other than plain facts fares, in words."""
    if strand.name == PLAIN or not whole.can:
        return ""
    parts = [
        f"{right:.3g} of {asked} right {where}"
        for right, asked, where in (
            (strand.right_within, strand.within, "within that reach"),
            (strand.right_beyond, strand.beyond, "beyond it"),
        )
        if asked
    ]
    return f"{strand.name.capitalize()}: {listed(parts)}." if parts else ""


def _by_distance(result: Result) -> Table:
    """Return what was recalled by distance and strand."""
    cells: dict[tuple[str, int], list[float]] = {}
    names: dict[str, None] = {}
    for test in result.tests:
        ladder = rungs(test.items)
        turns = {each.turn: each for each in ladder if each.at_once}
        for rung in turns.values():
            cells.setdefault((rung.strand, -1), []).append(rung.score or 0)
        for each in _placed(test, ladder, None):
            if each.rung.score is not None:
                at = bisect_left(BINS, each.tokens + 1) - 1
                cells.setdefault((each.rung.strand, at), []).append(each.rung.score)
        names |= dict.fromkeys(each.strand for each in ladder)
    seen = sorted({at for _, at in cells})
    rows = [
        [_bin(at), *(f"{sum(scores):.3g} of {len(scores)}" if (scores := cells.get((name, at))) else "–" for name in names)] for at in seen
    ]
    return Table(title="Right answers by distance", columns=["tokens back", *names], rows=rows)


def _bin(at: int) -> str:
    if at < 0:
        return "at once"
    low, high = BINS[at], BINS[at + 1]
    return f"{short(low)} or more" if high == inf else f"{short(low)} to {short(high)}"
