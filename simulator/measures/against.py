"""Agents beside a chosen one, the baseline: by how much each is better or worse, and whether that is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.analysis.pairing import paired
from longspan.simulator.analysis.statistics import ALPHA, holm, limits, more_conversations, paired_p
from longspan.simulator.base.document import Sentence
from longspan.simulator.base.shares import between, percent
from longspan.simulator.base.tables import Table
from longspan.simulator.filler.draws import listed
from longspan.simulator.measures.group_tables import Row, place
from longspan.simulator.measures.measure import SideBySide
from longspan.simulator.measures.pair_tables import p_text
from longspan.simulator.results.graded_runs import Column

__all__ = ["Against", "against", "against_rows", "against_table", "told_against"]

AGAINST_NOTE: Final = (
    "Differences are to the baseline, above 0 where the agent is better, in the tests that both had; their intervals are not corrected. p "
    "is over whole conversations, and corrected for these comparisons alone. Needed: how many more conversations would show such a "
    "difference in four of five cases."
)


@final
class Against(NamedTuple):
    """An agent against the baseline in a column. `share` and `of_baseline` are shares of full marks, or of the evidence found, in the tests
    that both had; `interval` is the 95% interval of their difference, None if all conversations differ by the same. `corrected` is `p`,
    corrected for all comparisons. `more` is how many more conversations would show the difference, None if no number would."""

    column: Column
    agent: str
    share: float
    of_baseline: float
    interval: tuple[float, float] | None
    conversations: int
    tests: int
    p: float
    corrected: float
    more: int | None

    @property
    def difference(self) -> float:
        return self.share - self.of_baseline


def against(side: SideBySide) -> list[Against]:
    """Compare each agent with the baseline in each column where they share tests: by scores, a test without one counting as 0, or where all
    are memories by the evidence that they found."""
    found = list(_by_recall(side) if side.by_recall else _by_score(side))
    return [each._replace(corrected=p) for each, p in zip(found, holm([each.p for each in found]), strict=True)]


def _others(side: SideBySide) -> list[tuple[Column, str]]:
    return [
        (column, agent)
        for column in side.columns
        if (side.baseline, column) in side.cells
        for agent in side.agents
        if agent != side.baseline and (agent, column) in side.cells
    ]


def _by_score(side: SideBySide) -> Iterator[Against]:
    others = _others(side)
    for column, agent in others:
        both = paired(side.of(agent, column), side.of(side.baseline or "", column))
        scores: dict[str, list[tuple[float, float]]] = {}
        for each in both:
            scores.setdefault(each.scenario, []).append(each.scores)
        if both:
            apart = [each.difference for each in both]
            share, of_baseline = (fmean(fmean(pair[place] for pair in pairs) for pairs in scores.values()) for place in (0, 1))
            conversations, p, more = len({each.conversation for each in apart}), paired_p(apart), more_conversations(apart, len(others))
            yield Against(column, agent, share, of_baseline, limits(apart, ALPHA / 2), conversations, len(both), p, p, more)


def _by_recall(side: SideBySide) -> Iterator[Against]:
    for pair in side.recall_pairs:
        better = pair.better != side.baseline
        agent, sign = pair.better if better else pair.other, 1 if better else -1
        found = side.memories[agent, pair.column].found(side.k)
        share = 0.0 if found is None else found.low
        ends = None if pair.between is None else tuple(sorted(sign * end for end in pair.between))
        interval = None if ends is None else (ends[0], ends[1])
        of_baseline = share - sign * pair.difference
        yield Against(pair.column, agent, share, of_baseline, interval, pair.conversations, pair.tests, pair.p, pair.p, pair.more)


def told_against(side: SideBySide, found: Sequence[Against]) -> Iterator[Sentence]:
    """Yield a sentence for each column: who is shown to be better or worse than the baseline, and of whom nothing is shown."""
    names = side.called.names
    for column in side.columns:
        here = [each for each in found if each.column == column]
        shown = [each for each in here if each.corrected < ALPHA]
        groups = {
            "better than": [each for each in shown if each.difference > 0],
            "worse than": [each for each in shown if each.difference < 0],
            "not shown to differ from": [each for each in here if each not in shown],
        }
        for how, agents in groups.items():
            if agents:
                who = listed([f"{names[each.agent]} ({percent(each.difference, sign=True)})" for each in agents])
                be = "is" if len(agents) == 1 else "are"
                yield Sentence(f"{who} {be} {how} {names[side.baseline or agents[0].agent]}{column.at}.")


def against_table(side: SideBySide, found: Sequence[Against]) -> Table:
    """Return a table of the agents against the baseline, without rows if there is none."""
    names = side.called.names
    several, measured = len(side.columns) > 1, f"found among first {side.k}" if side.by_recall else "score"
    rows = [
        [
            names[each.agent],
            *([str(each.column)] if several else []),
            percent(each.share),
            percent(each.of_baseline),
            f"{percent(each.difference, sign=True)}{between(each.interval, sign=True)}",
            f"{each.conversations:,}",
            f"{each.tests:,}",
            p_text(each.p),
            p_text(each.corrected),
            "shown" if each.corrected < ALPHA else "equal" if each.more is None else f"{max(1, each.more):,}",
        ]
        for each in found
    ]
    span, counted = ["span"] if several else [], "questions" if side.by_recall else "tests"
    columns = ["agent", *span, measured, "baseline", "difference", "conversations", counted, "p", "p (Holm)", "needed"]
    title = f"Differences to {'' if side.baseline is None else names[side.baseline]}{'' if several else side.columns[0].at} [95% interval]"
    return Table(title=title, columns=columns, rows=rows, note=AGAINST_NOTE)


def against_rows(side: SideBySide, found: Sequence[Against]) -> Iterator[Row]:
    """Yield the same as rows for programs. Scores and differences are shares."""
    for each in found:
        low, high = each.interval or (None, None)
        yield (
            place(each.column, agent=each.agent, other=side.baseline or "")
            | {
                "share": each.share,
                "difference": each.difference,
                "interval_low": low,
                "interval_high": high,
                "maximum": 1,
                "tests": each.tests,
                "conversations": each.conversations,
                "p": each.p,
                "p_holm": each.corrected,
                "more_conversations": each.more,
            }
            | ({"k": side.k} if side.by_recall else {})
        )
