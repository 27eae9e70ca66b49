"""Judge summaries within a cost limit, and rank the systems."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from longspan.scenarios.cream.arena_result import ArenaResult, Rules
from longspan.scenarios.cream.contest import Contest
from longspan.scenarios.cream.ranking import rank_systems
from longspan.scenarios.cream.summaries import SummaryCollection
from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.reading.matching import join_some
from longspan.simulator.results.judging.cached_model import CachedModel, check_model
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import limit_of

__all__ = ["check_judge", "judge_and_rank"]


def check_judge(gathered: SummaryCollection, rules: Rules, judge: str, max_cost: float = inf) -> None:
    """Raise InputError if the judge is invalid, its price is unknown despite a limit `max_cost` in dollars, or a needed document is
    missing."""
    check_model(judge, max_cost)
    if rules.metric == "faithfulness":
        without = [source for source, by_system in gathered.sources.items() if gathered.document(source, next(iter(by_system))) is None]
        if without:
            raise InputError(f"faithfulness needs the text of every source; no document for {escape_invisible(join_some(without))}")


async def judge_and_rank(
    gathered: SummaryCollection,
    rules: Rules,
    judge: str,
    store: AnswerStore,
    *,
    max_cost: float = inf,
    on_progress: Callable[[int, int], None] | None = None,
) -> ArenaResult:
    """Judge all summaries and rank the systems. Answers already in `store` are reused, and new ones are added to it.

    Raises InputError as `check_judge` does, StoppedError if more than `max_cost` dollars could be spent, and JournalError if answers cannot
    be stored.
    """
    check_judge(gathered, rules, judge, max_cost)
    ledger = Ledger(limit_of(max_cost))
    model = CachedModel(judge, store, ledger)
    contest = Contest(gathered, model, rules.facts, rules.extraction, on_progress)
    try:
        compared = await contest.compare() if rules.metric != "faithfulness" else []
        checked = await contest.check() if rules.metric == "faithfulness" else []
    except StoppedError:
        raise StoppedError(
            f"the judge's next answer could exceed the limit of ${max_cost:.2f} (${ledger.spent.dollars:.4f} spent); "
            f"its answers are kept in {store.folder}: the same command continues from there"
        ) from None
    return rank_systems(
        rules,
        judge=str(model.spec),
        systems=gathered.systems,
        sentences=contest.sentences,
        pairs=contest.pairs,
        comparisons=compared,
        checks=checked,
        notes=[*gathered.notes, *_self_judged(judge, gathered.systems)],
    )


def _self_judged(judge: str, systems: list[str]) -> list[str]:
    """Return a note if the judge is one of the systems."""
    model = judge.partition("?")[0]
    judged = [system for system in systems if model == system.partition(" ")[0].partition("?")[0]]
    return [f"The judge, {model}, judges its own summaries: models favour their own writing"] if judged else []
