"""The leading agent in a comparison, whether its lead is significant, and where the first two agents differ most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from longspan.simulator.base.document import Sentence
from longspan.simulator.base.shares import format_percent, format_share_range
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.pairs import Pair
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.cells import Cell, RunTest, group_by
from longspan.simulator.results.measures.experiments import p_told
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.pair_tables import count_conversations, name_conversations

__all__ = ["describe_leaders"]

IDEAL: Final = "oracle"
"""The agent that is given the answers, and is therefore not ranked."""


NAMED, LARGE = 2, 0.1
"""The maximum number of scenarios named as those where agents differ most, and the least difference to name one."""


def describe_leaders(side: SideBySide, tests: Sequence[RunTest], pairs: Sequence[Pair]) -> Iterator[Sentence]:
    """Yield a sentence for each column with several agents. `tests` are the tests that count."""
    for column in side.columns:
        found = {agent: cell for (agent, place), cell in side.cells.items() if place == column and agent.partition(" ")[0] != IDEAL}
        ranked = sorted(found, key=lambda agent: (-found[agent].share[0], agent))
        if len(ranked) > 1:
            told = _of(column, ranked[0], ranked[1], found, pairs, side.called.names)
            yield Sentence(told + _describe_differing(ranked[0], ranked[1], [each for each in tests if each.run.column == column]))


def _of(column: Column, first: str, second: str, found: Mapping[str, Cell], pairs: Sequence[Pair], names: Mapping[str, str]) -> str:
    shares = f"{_share(found[first])} against {_share(found[second])}"
    one, other = names[first], names[second]
    pair = next((pair for pair in pairs if pair.column == column and {pair.agent, pair.other} == {first, second}), None)
    if pair is None:
        return f"{one} leads{column.at}, ahead of {other}: {shares} of full marks. They share no tests, so neither is known to be better."
    told = f"p {p_told(pair.corrected)} over {count_conversations(pair.conversations, recorded=pair.recorded)}"
    if pair.agent == first and pair.verdict == "better":
        return f"{one} is better than {other}{column.at}: {shares} of full marks ({told})."
    if pair.agent == first and pair.verdict == "better here":
        told = f"p {p_told(pair.p_of_tests)} over {pair.tests:,} {pair.counted}"
        where = f"{name_conversations([pair])}{column.at}"
        return f"{one} and {other} differ in {where}: {shares} of full marks ({told}); other conversations may differ."
    if _share(found[first]) == _share(found[second]):
        return f"{one} and {other} tie{column.at}: {shares} of full marks."
    return f"{one} leads{column.at}, ahead of {other}, but is not shown to be better: {shares} of full marks ({told})."


def _describe_differing(first: str, second: str, tests: Sequence[RunTest]) -> str:
    """Name the scenarios where two agents differ most; an empty string if there is only one, or if no difference is large."""
    scores = {
        agent: {
            name: fmean(each.test.lowest for each in group) for name, group in group_by(played, lambda each: [each.test.scenario]).items()
        }
        for agent, played in group_by(tests, lambda each: [each.run.agent]).items()
        if agent in (first, second)
    }
    one, other = scores.get(first, {}), scores.get(second, {})
    both = sorted(one.keys() & other.keys(), key=lambda name: (-abs(one[name] - other[name]), name))
    far = [name for name in both[:NAMED] if abs(one[name] - other[name]) >= LARGE]
    large = [f"{name} ({format_percent(one[name])} against {format_percent(other[name])})" for name in far]
    return f" They differ most in {join_words(large)}." if large and len(both) > 1 else ""


def _share(cell: Cell) -> str:
    return format_share_range(*cell.share)
