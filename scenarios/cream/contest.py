"""Ask a judge about every pair of a source's summaries, in both orders, or about each summary and its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import final

from longspan.scenarios.cream.arena_result import Check, Comparison, Extraction, Side
from longspan.scenarios.cream.judge_questions import ask_alignment, ask_faithfulness, ask_new_facts, key_facts
from longspan.scenarios.cream.sentences import split_sentences
from longspan.scenarios.cream.summaries import SummaryCollection
from longspan.simulator.base.gather import gather
from longspan.simulator.contract.queries import Answered, Query
from longspan.simulator.results.judging.cached_model import CachedModel

__all__ = ["Contest"]


@final
class _UndecidedError(Exception):
    """The judge did not decide. The message says why."""


@final
class Contest:
    """Asks a judge about summaries.

    `facts` is the maximum number of key facts, `extraction` says when they are named. `on_progress` is called after each comparison or
    check with the number done and the total. If the judge fails to answer, only that comparison is undecided.
    """

    def __init__(
        self,
        gathered: SummaryCollection,
        judge: CachedModel,
        facts: int,
        extraction: Extraction = "pair",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.sentences = {
            source: {system: split_sentences(summary.summary) for system, summary in by_system.items()}
            for source, by_system in gathered.sources.items()
        }
        self._gathered = gathered
        self._judge = judge
        self._facts = facts
        self._extraction = extraction
        self._on_progress = on_progress

    @property
    def pairs(self) -> list[tuple[str, tuple[str, str]]]:
        """Each source with each pair of systems that summarised it, ordered by source, then by system."""
        return [
            (source, pair)
            for source, by_system in self._gathered.sources.items()
            for pair in combinations([system for system in self._gathered.systems if system in by_system], 2)
        ]

    async def compare(self) -> list[Comparison]:
        """Compare every pair in both orders, since the order may influence which facts the judge considers important.

        Raises StoppedError if a cost limit would be exceeded, and JournalError if answers cannot be stored.
        """
        ordered = [(source, systems) for source, pair in self.pairs for systems in (pair, (pair[1], pair[0]))]
        return await gather(self._compare, ordered, self._on_progress)

    async def check(self) -> list[Check]:
        """Check every summary against its document (the paper's baseline, section 3). Raises as `compare` does."""
        summaries = [(source, system) for source, by_system in self._gathered.sources.items() for system in by_system]
        return await gather(self._check, summaries, self._on_progress)

    async def _compare(self, comparison: tuple[str, tuple[str, str]]) -> Comparison:
        source, systems = comparison
        first, second = (self._gathered.sources[source][system].summary for system in systems)
        facts: list[str] = []
        try:
            if self._extraction == "summary":
                sides = [await self._anew(system, first, second, self.sentences[source][system]) for system in systems]
                return Comparison(source=source, systems=systems, sides=sides)
            facts = (await self._ask(key_facts(first, second, self._facts))).facts[: self._facts]
            if not facts:
                raise _UndecidedError("the judge found no key facts")
            sides = [Side(system=system, cited=await self._find_citations(facts, self.sentences[source][system])) for system in systems]
        except _UndecidedError as undecided:
            return Comparison(source=source, systems=systems, facts=facts, undecided=str(undecided))
        return Comparison(source=source, systems=systems, facts=facts, sides=sides)

    async def _anew(self, system: str, first: str, second: str, sentences: Sequence[str]) -> Side:
        """Return one side of a comparison, with key facts named for this side alone. A summary without sentences contains none of them."""
        named = (await self._ask(ask_new_facts(first, second, sentences, self._facts))).facts[: self._facts]
        if not named:
            raise _UndecidedError("the judge found no key facts")
        cited = [sorted(set(fact.sentences)) if fact.holds and sentences else None for fact in named]
        return Side(system=system, cited=cited, facts=[" ".join(fact.fact.split()) for fact in named])

    async def _find_citations(self, facts: Sequence[str], sentences: Sequence[str]) -> list[list[int] | None]:
        """Return, for each fact, the sentences that it follows from. The judge is not asked about an empty summary."""
        if not sentences:
            return [None] * len(facts)
        answer = await self._ask(ask_alignment(facts, sentences))
        aligned = sorted(answer.facts, key=lambda fact: fact.fact)
        return [sorted(set(fact.sentences)) if fact.holds else None for fact in aligned]

    async def _check(self, summary: tuple[str, str]) -> Check:
        source, system = summary
        written = self.sentences[source][system]
        if not written:
            return Check(source=source, system=system, undecided="the summary has no sentences")
        try:
            answer = await self._ask(ask_faithfulness(self._gathered.document(source, system) or "", written))
        except _UndecidedError as undecided:
            return Check(source=source, system=system, undecided=str(undecided))
        verdicts = sorted(answer.sentences, key=lambda verdict: verdict.sentence)
        return Check(source=source, system=system, errors=[None if verdict.faithful else verdict.why[:500] for verdict in verdicts])

    async def _ask(self, query: Query[Answered]) -> Answered:
        answer = await self._judge.ask(query)
        if isinstance(answer, str):
            raise _UndecidedError(answer)
        return answer
