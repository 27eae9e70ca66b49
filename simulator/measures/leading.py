"""The leading agent in a comparison, whether its lead is significant, and where the first two agents differ most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from longspan.simulator.analysis.pairs import Pair
from longspan.simulator.base.document import Sentence
from longspan.simulator.base.shares import percent, spanned
from longspan.simulator.filler.draws import listed
from longspan.simulator.measures.cells import Cell, Played, by
from longspan.simulator.measures.experiments import p_told
from longspan.simulator.measures.measure import SideBySide
from longspan.simulator.measures.pair_tables import counted_conversations, name_conversations
from longspan.simulator.results.graded_runs import Column

__all__ = ["leading"]

IDEAL: Final = "oracle"
"""The agent that is handed the answers, and is therefore not ranked."""


NAMED, LARGE = 2, 0.1
"""The maximum number of scenarios named as those where agents differ most, and the least difference of their shares."""


def leading(side: SideBySide, tests: Sequence[Played], pairs: Sequence[Pair]) -> Iterator[Sentence]:
    """Yield a sentence for each column with several agents. `tests`: those that count."""
    for column in side.columns:
        found = {agent: cell for (agent, place), cell in side.cells.items() if place == column and agent.partition(" ")[0] != IDEAL}
        ranked = sorted(found, key=lambda agent: (-found[agent].share[0], agent))
        if len(ranked) > 1:
            told = _of(column, ranked[0], ranked[1], found, pairs, side.called.names)
            yield Sentence(told + _differing(ranked[0], ranked[1], [each for each in tests if each.run.column == column]))


def _of(column: Column, first: str, second: str, found: Mapping[str, Cell], pairs: Sequence[Pair], names: Mapping[str, str]) -> str:
    shares = f"{_share(found[first])} against {_share(found[second])}"
    one, other = names[first], names[second]
    pair = next((pair for pair in pairs if pair.column == column and {pair.agent, pair.other} == {first, second}), None)
    if pair is None:
        return f"{one} leads{column.at}, before {other}: {shares} of full marks. They share no test that would tell whether it is better."
    told = f"p {p_told(pair.corrected)} over {counted_conversations(pair.conversations, recorded=pair.recorded)}"
    if pair.agent == first and pair.verdict == "better":
        return f"{one} is better than {other}{column.at}: {shares} of full marks ({told})."
    if pair.agent == first and pair.verdict == "better here":
        told = f"p {p_told(pair.p_of_tests)} over {pair.tests:,} {pair.counted}"
        where = f"{name_conversations([pair])}{column.at}"
        return f"{one} and {other} differ in {where}: {shares} of full marks ({told}); other conversations may differ."
    if _share(found[first]) == _share(found[second]):
        return f"{one} and {other} tie{column.at}: {shares} of full marks."
    return f"{one} leads{column.at}, before {other}, but is not shown to be better: {shares} of full marks ({told})."


def _differing(first: str, second: str, tests: Sequence[Played]) -> str:
    """Name the scenarios where two agents differ most; an empty string if there is only one, or if no difference is large."""
    scores = {
        agent: {name: fmean(each.test.lowest for each in group) for name, group in by(played, lambda each: [each.test.scenario]).items()}
        for agent, played in by(tests, lambda each: [each.run.agent]).items()
        if agent in (first, second)
    }
    one, other = scores.get(first, {}), scores.get(second, {})
    both = sorted(one.keys() & other.keys(), key=lambda name: (-abs(one[name] - other[name]), name))
    far = [name for name in both[:NAMED] if abs(one[name] - other[name]) >= LARGE]
    large = [f"{name} ({percent(one[name])} against {percent(other[name])})" for name in far]
    return f" They differ most in {listed(large)}." if large and len(both) > 1 else ""


def _share(cell: Cell) -> str:
    return spanned(*cell.share)
