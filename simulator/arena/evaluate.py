"""Judges summaries within a cost limit, and ranks the systems."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from longspan.simulator.archive.answer_store import AnswerStore
from longspan.simulator.arena.contest import Contest
from longspan.simulator.arena.ranking import rank
from longspan.simulator.arena.results import Result, Rules
from longspan.simulator.arena.summaries import Gathered
from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.terminal import visible
from longspan.simulator.grading.matching import some
from longspan.simulator.judging.cached_model import CachedModel, check_model
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import limit_of

__all__ = ["check", "judge_and_rank"]


def check(gathered: Gathered, rules: Rules, judge: str, max_cost: float = inf) -> None:
    """Raise InputError if the judge is invalid, if its price is unknown although `max_cost` (dollars) is a limit, or if a source lacks the
    document that the metric needs."""
    check_model(judge, max_cost)
    if rules.metric == "faithfulness":
        without = [source for source, by_system in gathered.sources.items() if gathered.document(source, next(iter(by_system))) is None]
        if without:
            raise InputError(f"faithfulness needs the text of every source; no document for {visible(some(without))}")


async def judge_and_rank(
    gathered: Gathered,
    rules: Rules,
    judge: str,
    store: AnswerStore,
    *,
    max_cost: float = inf,
    on_progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Judge all summaries and rank the systems. Answers already in `store` are reused, and new ones are added to it.

    Raises InputError as `check` does, StoppedError if more than `max_cost` dollars could be spent, and JournalError if answers cannot be
    stored.
    """
    check(gathered, rules, judge, max_cost)
    ledger = Ledger(limit_of(max_cost))
    model = CachedModel(judge, store, ledger)
    contest = Contest(gathered, model, rules.facts, rules.extraction, on_progress)
    try:
        compared = await contest.compare() if rules.metric != "faithfulness" else []
        checked = await contest.check() if rules.metric == "faithfulness" else []
    except StoppedError:
        raise StoppedError(
            f"the judge's next answer could pass the limit of ${max_cost:.2f}, ${ledger.spent.dollars:.4f} being spent; "
            f"its answers are kept in {store.folder}: the same command continues from there"
        ) from None
    return rank(
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
