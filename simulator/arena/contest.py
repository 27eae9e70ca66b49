"""Holding an arena: a judge is asked about every two summaries of a source, both ways round, or about each with its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import final

from longspan.simulator.arena.questions import alignment, faithful, key_facts
from longspan.simulator.arena.results import Check, Comparison, Side
from longspan.simulator.arena.sentences import sentences
from longspan.simulator.arena.summaries import Gathered
from longspan.simulator.gather import gather
from longspan.simulator.judging.cached_model import CachedModel
from longspan.simulator.queries import Answered, Query

__all__ = ["Contest"]


@final
class _UndecidedError(Exception):
    """The judge did not decide; the message says why."""


@final
class Contest:
    """Asks a judge about summaries. `facts`: how many key facts it is to name at most; `heard` is told after each comparison or
    check how many are done, of how many. What the judge fails to answer leaves its comparison undecided, and no other."""

    def __init__(self, gathered: Gathered, judge: CachedModel, facts: int, heard: Callable[[int, int], None] | None = None) -> None:
        self.sentences = {
            source: {system: sentences(each.summary) for system, each in by_system.items()}
            for source, by_system in gathered.sources.items()
        }
        self._gathered = gathered
        self._judge = judge
        self._facts = facts
        self._heard = heard

    @property
    def pairs(self) -> list[tuple[str, tuple[str, str]]]:
        """Each source with each two systems that summarised it, in the order of the sources, then of the systems."""
        return [
            (source, pair)
            for source, by_system in self._gathered.sources.items()
            for pair in combinations([system for system in self._gathered.systems if system in by_system], 2)
        ]

    async def compare(self) -> list[Comparison]:
        """Compare every pair, each both ways round: what stands first may sway what a judge finds important.

        Raises StoppedError where a limit of dollars would be passed, JournalError where answers cannot be kept.
        """
        both = [(source, way) for source, pair in self.pairs for way in (pair, (pair[1], pair[0]))]
        return await gather(self._compare, both, self._heard)

    async def check(self) -> list[Check]:
        """Check every summary against its document (the paper's baseline, section 3). Raises as `compare` does."""
        every = [(source, system) for source, by_system in self._gathered.sources.items() for system in by_system]
        return await gather(self._check, every, self._heard)

    async def _compare(self, wanted: tuple[str, tuple[str, str]]) -> Comparison:
        source, systems = wanted
        first, second = (self._gathered.sources[source][system].summary for system in systems)
        facts: list[str] = []
        try:
            facts = (await self._ask(key_facts(first, second, self._facts))).facts[: self._facts]
            if not facts:
                raise _UndecidedError("the judge finds no key fact in them")
            sides = [Side(system=system, cited=await self._cited(facts, self.sentences[source][system])) for system in systems]
        except _UndecidedError as undecided:
            return Comparison(source=source, systems=systems, facts=facts, undecided=str(undecided))
        return Comparison(source=source, systems=systems, facts=facts, sides=sides)

    async def _cited(self, facts: Sequence[str], sentences: Sequence[str]) -> list[list[int] | None]:
        """For each fact the sentences that it follows from. A summary without sentences holds none, which nobody needs to be asked."""
        if not sentences:
            return [None] * len(facts)
        answer = await self._ask(alignment(facts, sentences))
        found = sorted(answer.facts, key=lambda each: each.fact)
        return [sorted(set(each.sentences)) if each.holds else None for each in found]

    async def _check(self, wanted: tuple[str, str]) -> Check:
        source, system = wanted
        written = self.sentences[source][system]
        if not written:
            return Check(source=source, system=system, undecided="the summary has no sentences")
        try:
            answer = await self._ask(faithful(self._gathered.document(source, system) or "", written))
        except _UndecidedError as undecided:
            return Check(source=source, system=system, undecided=str(undecided))
        found = sorted(answer.sentences, key=lambda each: each.sentence)
        return Check(source=source, system=system, errors=[None if each.faithful else each.why[:500] for each in found])

    async def _ask(self, query: Query[Answered]) -> Answered:
        answer = await self._judge.ask(query)
        if isinstance(answer, str):
            raise _UndecidedError(answer)
        return answer
