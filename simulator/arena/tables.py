"""An arena's result as tables: who stands where, who met whom, and how the matches went."""

from __future__ import annotations

from collections import defaultdict

from longspan.simulator.arena.results import Result, Standing, mean
from longspan.simulator.tables import Table

__all__ = ["tables"]

NOTE = (
    "Elo: in the order that was chosen. Mean: over random orders, with the interval that holds 95 % of them, which says how much "
    "hangs on the order alone. Bradley-Terry: without an order; its interval is that of other sources drawn from these."
)


def tables(result: Result) -> list[Table]:
    """The standings, and each two systems' mean scores against each other."""
    return [_standings(result), _crossed(result)]


def _standings(result: Result) -> Table:
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
    facts = "" if metric == "faithfulness" else f", at most {result.rules.facts} key facts"
    return Table(title=f"Ranking by {metric}{facts}", columns=columns, rows=rows, note=NOTE)


def _strength(each: Standing) -> str:
    if each.strength is None:
        return ""
    between = "" if each.strength_low is None else f" [{each.strength_low:.1f}, {each.strength_high:.1f}]"
    return f"{each.strength:.1f}{between}"


def _crossed(result: Result) -> Table:
    """What a row's system scored when it met a column's (as Table 3 of the paper)."""
    met: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each in result.matches:
        for (system, other), score in zip((each.systems, each.systems[::-1]), each.scores, strict=True):
            met[system, other].append(score)
    order = [each.system for each in result.standings]
    scores = [[mean(met[system, other]) if (system, other) in met else None for other in order] for system in order]
    rows = [[system, *("" if score is None else f"{score:.1%}" for score in row)] for system, row in zip(order, scores, strict=True)]
    return Table(
        title=f"Mean {result.rules.metric} of the row's system where it met the column's",
        columns=["system", *order],
        rows=rows,
        shades=[[None, *row] for row in scores],
    )
