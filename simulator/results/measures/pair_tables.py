"""Pairs of agents as a table for people, and as rows for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.base.tables import Table
from longspan.simulator.results.analysis.pairs import Pair
from longspan.simulator.results.analysis.statistics import ADVISED, least_conversations
from longspan.simulator.results.measures.group_tables import Row, place_columns

__all__ = ["count_conversations", "describe_verdicts", "name_conversations", "p_text", "pair_row", "pair_table", "too_few"]

P_NOTE: Final = "p is over whole conversations. Better or worse: p (Holm) is below 0.05."

HERE_NOTE: Final = (
    "The p of these {counted} swaps them one by one, and is corrected likewise. Better or worse here: it is below 0.05, but other "
    "conversations may differ."
)

MORE_NOTE: Final = "More conversations needed: a rough forecast of how many would show this difference in four of five cases."


def pair_table(
    what: str, pairs: Sequence[Pair], names: Mapping[str, str], *, several: bool, points: bool = False, stated: bool = False
) -> Table:
    """Return a table of pairs under the heading `what`, with the agents' `names`.

    `points`: differences are also given as scores. `several`: there are several spans. With `stated` contrasts, the table does not forecast
    the conversations still needed.
    """
    rest, cells, note = describe_verdicts(pairs, stated=stated)
    rows = [
        [
            *([str(pair.column)] if several else []),
            names[pair.agent],
            names[pair.other],
            format_percent(pair.difference) + (f" ({pair.points:.2f})" if points else format_interval(pair.interval, sign=True)),
            *row,
        ]
        for pair, row in zip(pairs, cells, strict=True)
    ]
    columns = [*(["span"] if several else []), "higher", "lower", "difference", *rest]
    correction = f", Holm-corrected for all {len(rows)} pairs" if len(rows) > 1 else ""
    title = f"{what}{'' if several or not pairs else pairs[0].column.at}: paired permutation tests of conversations{correction}"
    return Table(title=title, columns=columns, rows=rows, note=note)


def describe_verdicts(pairs: Sequence[Pair], *, stated: bool = False) -> tuple[list[str], list[list[str]], str]:
    """Return the headings of the columns with each pair's verdict, their cells, and an explanatory note."""
    few = any(pair.p_of_tests is not None for pair in pairs)
    forecast = not stated and any(pair.more is not None for pair in pairs)
    counted = "questions" if any(pair.counted == "questions" for pair in pairs) else "tests"
    columns = ["conversations", f"same {counted}", "p", "p (Holm)", *([f"p of these {counted}"] if few else []), "verdict"]
    rows = [
        [
            f"{pair.conversations:,}",
            f"{pair.tests:,}{f' ({pair.unscored} without a score)' if pair.unscored else ''}",
            p_text(pair.p),
            p_text(pair.corrected),
            *([p_text(pair.p_of_tests)] if few else []),
            pair.verdict,
            *(["" if pair.more is None else f"{pair.more:,}"] if forecast else []),
        ]
        for pair in pairs
    ]
    note = " ".join([P_NOTE, *([HERE_NOTE.format(counted=counted)] if few else []), *([MORE_NOTE] if forecast else [])])
    return [*columns, *(["more conversations needed"] if forecast else [])], rows, note


def count_conversations(number: int, *, recorded: bool = False) -> str:
    """Return a number of conversations, or of recorded histories, in words."""
    one, several = ("recorded history", "recorded histories") if recorded else ("conversation", "conversations")
    return f"{number:,} {one if number == 1 else several}"


def name_conversations(pairs: Sequence[Pair]) -> str:
    """Return "this conversation", or "these 2 conversations": the largest number that any pair has in common."""
    most = max(pairs, key=lambda pair: pair.conversations)
    counted = count_conversations(most.conversations, recorded=most.recorded)
    return f"this {counted.removeprefix('1 ')}" if most.conversations == 1 else f"these {counted}"


def too_few(pairs: Sequence[Pair]) -> str:
    """Explain that agents have too few conversations in common to generalise, and give a remedy; empty if they have enough.

    `pairs` are all compared pairs, since p-values are corrected for their number.
    """
    least = least_conversations(len(pairs) or 1)
    few = sorted({pair.conversations for pair in pairs if pair.conversations < least})
    if not few:
        return ""
    recorded = any(pair.recorded for pair in pairs)
    have = (
        f"{few[0]:,} to {count_conversations(few[-1], recorded=recorded)}" if len(few) > 1 else count_conversations(*few, recorded=recorded)
    )
    lacking = least - few[0]
    if recorded:
        more = f"Take data with {lacking:,} more histor{'y' if lacking == 1 else 'ies'}: other seeds only repeat the same"
    else:
        more = f"Play {lacking:,} more seed{'s' * (lacking > 1)} of each"
    advised = f"; {ADVISED} are recommended" if least < ADVISED else ""
    needed = f"{least:,}{f' for {len(pairs):,} pairs of agents' if len(pairs) > 1 else ''}"
    if any(pair.verdict.endswith("here") for pair in pairs):
        return f"With {have} in common, results do not generalise to others: this needs {needed}. {more}{advised}."
    chance = "Even an agent that is better in all of them could be so by chance"
    return f"Too few conversations: {have} in common. {chance}; this needs {needed}. {more}{advised}."


def p_text(value: float | None) -> str:
    """Return a p-value as text, empty without one."""
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def pair_row(pair: Pair) -> Row:
    """Return a pair as a row for programs."""
    return place_columns(pair.column, agent=pair.agent, other=pair.other) | {
        pair.counted: pair.tests,
        "unscored": pair.unscored if pair.counted == "tests" else None,
        "difference": pair.points,
        "conversations": pair.conversations,
        "p": pair.p,
        "p_holm": pair.corrected,
        "p_of_tests": pair.p_of_tests,
        "verdict": pair.verdict,
        "more_conversations": pair.more,
    }
