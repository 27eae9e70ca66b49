"""An arena's result as tables: the ranking, and the scores of each pair of systems."""

from __future__ import annotations

from collections import defaultdict

from longspan.scenarios.cream.arena_result import ArenaResult, Standing, exact_mean
from longspan.simulator.base.tables import Table

__all__ = ["ranking_tables"]

NOTE = (
    "Elo: in the chosen order. Mean: over random orders, with a 95% interval, which shows how much depends on the order alone. "
    "Bradley-Terry: independent of the order, with a 95% interval over resampled sources."
)


def ranking_tables(result: ArenaResult) -> list[Table]:
    """Return tables of the ranking, and of the mean scores of each pair of systems against each other."""
    return [_standings(result), _head_to_head(result)]


def _standings(result: ArenaResult) -> Table:
    metric = result.rules.metric
    columns = ["system", "Elo", f"mean of {result.rules.orders:,} orders", "Bradley-Terry", "won", "drawn", "lost", f"mean {metric}"]
    rows = [
        [
            each.system,
            f"{each.elo:.1f}",
            f"{each.mean:.1f} [{each.low:.1f}, {each.high:.1f}]",
            _strength(each),
            str(each.wins),
            str(each.draws),
            str(each.losses),
            "" if each.score is None else f"{each.score:.1%}",
        ]
        for each in result.standings
    ]
    anew = ", named anew for each summary" if result.rules.extraction == "summary" else ""
    facts = "" if metric == "faithfulness" else f", at most {result.rules.facts} key facts{anew}"
    return Table(title=f"Ranking by {metric}{facts}", columns=columns, rows=rows, note=NOTE)


def _strength(each: Standing) -> str:
    if each.strength is None:
        return ""
    between = "" if each.strength_low is None else f" [{each.strength_low:.1f}, {each.strength_high:.1f}]"
    return f"{each.strength:.1f}{between}"


def _head_to_head(result: ArenaResult) -> Table:
    """Return the mean scores of each row's system against each column's (Table 3 of the paper)."""
    scores_by_pair: dict[tuple[str, str], list[float]] = defaultdict(list)
    for match in result.matches:
        for (system, other), score in zip((match.systems, match.systems[::-1]), match.scores, strict=True):
            scores_by_pair[system, other].append(score)
    order = [standing.system for standing in result.standings]
    scores = [
        [exact_mean(scores_by_pair[system, other]) if (system, other) in scores_by_pair else None for other in order] for system in order
    ]
    rows = [[system, *("" if score is None else f"{score:.1%}" for score in row)] for system, row in zip(order, scores, strict=True)]
    return Table(
        title=f"Mean {result.rules.metric} of the row's system against the column's",
        columns=["system", *order],
        rows=rows,
        shades=[[None, *row] for row in scores],
    )
