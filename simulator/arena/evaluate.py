"""From summaries to a result: the judge is asked under a limit of dollars, and what it says is rated."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from longspan.simulator.answer_store import AnswerStore
from longspan.simulator.arena.contest import Contest
from longspan.simulator.arena.ranking import rank
from longspan.simulator.arena.results import Result, Rules
from longspan.simulator.arena.summaries import Gathered
from longspan.simulator.errors import InputError, StoppedError
from longspan.simulator.grading.matching import some
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.ledger import Ledger
from longspan.simulator.report.excerpts import visible

__all__ = ["check", "hold"]


def check(gathered: Gathered, rules: Rules, judge: str, most: float = inf) -> None:
    """Whether an arena can be held. Raises InputError for a judge that cannot be one, or whose price nobody knows where there is a
    limit of `most` dollars, and for sources without a document where the metric needs it."""
    check_model(judge, most)
    if rules.metric == "faithfulness":
        without = [source for source, by_system in gathered.sources.items() if gathered.document(source, next(iter(by_system))) is None]
        if without:
            raise InputError(f"faithfulness needs the text of every source; there is no document for {visible(some(without))}")


async def hold(
    gathered: Gathered,
    rules: Rules,
    judge: str,
    store: AnswerStore,
    *,
    most: float = inf,
    heard: Callable[[int, int], None] | None = None,
) -> Result:
    """Hold an arena. `store` has what the judge answered before, which is not asked again, and gets what it answers now.

    Raises as `check` does, StoppedError where the limit of `most` dollars would be passed, JournalError where answers cannot be kept.
    """
    check(gathered, rules, judge, most)
    ledger = Ledger(most)
    asked = CachedModel(judge, store, ledger)
    contest = Contest(gathered, asked, rules.facts, heard)
    try:
        compared = await contest.compare() if rules.metric != "faithfulness" else []
        checked = await contest.check() if rules.metric == "faithfulness" else []
    except StoppedError:
        raise StoppedError(
            f"the judge's next answer could pass the limit of ${most:.2f}, ${ledger.spent:.4f} being spent; what it has answered is kept "
            f"in {store.folder}: the same command goes on from there"
        ) from None
    return rank(
        rules,
        judge=str(asked.spec),
        systems=gathered.systems,
        sentences=contest.sentences,
        pairs=contest.pairs,
        comparisons=compared,
        checks=checked,
        notes=[*gathered.notes, *_partial(judge, gathered.systems)],
    )


def _partial(judge: str, systems: list[str]) -> list[str]:
    """Whether the judge is one of those it judges."""
    model = judge.partition("?")[0]
    own = [system for system in systems if model == system.partition(" ")[0].partition("?")[0]]
    return [f"The judge, {model}, judges its own summaries: models favour what they wrote themselves"] if own else []
