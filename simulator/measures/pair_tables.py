"""Pairs of agents as a table for people, and as rows for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from longspan.simulator.analysis.pairs import Pair
from longspan.simulator.analysis.statistics import ADVISED, ALPHA, least_conversations
from longspan.simulator.base.shares import between, percent
from longspan.simulator.base.tables import Table
from longspan.simulator.measures.group_tables import Row, place
from longspan.simulator.results.graded_runs import Column

__all__ = ["counted_conversations", "p_text", "pair_row", "pair_table", "too_few"]

P_NOTE: Final = "p is over whole conversations."

PAIRS_NOTE: Final = (
    f"{P_NOTE} Significant: p below 0.05 after Holm's correction. More conversations needed: for a significant difference in four of five "
    "cases, if the true one is the observed one."
)

TESTS_NOTE: Final = "The p of these tests takes them one by one: it is about these tests, not about other conversations, and not corrected."


def pair_table(
    what: str,
    pairs: Sequence[Pair],
    counted: str,
    names: Mapping[str, str],
    *,
    several: bool,
    of: str = "scores",
    maxima: Mapping[Column, int] | None = None,
    stated: bool = False,
) -> Table:
    """Return a table of pairs `of` scores, or what else they differ in, under the heading `what`. `counted` names what both have had, such
    as the same tests; `names` are those of the agents. Differences of points are also shares of the `maxima` of the columns.

    `several`: there are several spans. Where contrasts were `stated`, it does not say how many more conversations are needed.
    """
    few = any(pair.p_of_tests is not None for pair in pairs)
    rows = [
        [
            *([str(pair.column)] if several else []),
            names[pair.better],
            names[pair.other],
            _apart(pair, maxima),
            str(pair.conversations),
            f"{pair.tests}{f' ({pair.unscored} without a score)' if pair.unscored else ''}",
            p_text(pair.p),
            p_text(pair.corrected),
            *([p_text(pair.p_of_tests)] if few else []),
            *([] if stated else [_more(pair, of)]),
        ]
        for pair in pairs
    ]
    span, tests = ["span"] if several else [], ["p of these tests"] if few else []
    more = [] if stated else ["more conversations needed"]
    columns = [*span, "higher", "lower", "difference", "conversations", counted, "p", "p (Holm)", *tests, *more]
    correction = f", Holm-corrected for all {len(rows)} pairs" if len(rows) > 1 else ""
    title = f"{what}{'' if several or not pairs else pairs[0].column.at}: paired permutation tests of conversations{correction}"
    note = P_NOTE if stated else PAIRS_NOTE
    return Table(title=title, columns=columns, rows=rows, note=f"{note} {TESTS_NOTE}" if few else note)


def _apart(pair: Pair, maxima: Mapping[Column, int] | None) -> str:
    if maxima is None:
        return f"{percent(pair.difference)}{between(pair.between, sign=True)}"
    return f"{percent(pair.difference / maxima[pair.column])} ({pair.difference:.2f})"


def _more(pair: Pair, of: str) -> str:
    if pair.corrected < ALPHA:
        return "significant"
    return f"equal {of}" if pair.more is None else f"{max(1, pair.more):,}"


def counted_conversations(number: int, *, recorded: bool = False) -> str:
    """Return a number of conversations, or of recorded histories, in words."""
    one, several = ("recorded history", "recorded histories") if recorded else ("conversation", "conversations")
    return f"{number:,} {one if number == 1 else several}"


def too_few(pairs: Sequence[Pair]) -> str:
    """Say that agents have too few conversations in common to be told apart, what that means, and what to do; empty if they have enough.
    `pairs` are all that are compared, since p-values are corrected for their number."""
    least = least_conversations(len(pairs) or 1)
    few = sorted({pair.conversations for pair in pairs if pair.conversations < least})
    if not few:
        return ""
    recorded = any(pair.recorded for pair in pairs)
    have = (
        f"{few[0]:,} to {counted_conversations(few[-1], recorded=recorded)}"
        if len(few) > 1
        else counted_conversations(*few, recorded=recorded)
    )
    those = f" for {len(pairs):,} pairs of agents" if len(pairs) > 1 else ""
    lacking = least - few[0]
    if recorded:
        more = f"Take data with {lacking:,} more histor{'y' if lacking == 1 else 'ies'}: other seeds only repeat the same"
    else:
        more = f"Play {lacking:,} more seed{'s' * (lacking > 1)} of each"
    advised = f"; {ADVISED} are recommended" if least < ADVISED else ""
    chance = f"Even an agent that was better in every one of them could owe that to chance; it takes {least:,}{those}"
    return f"Too few to tell: {have} in common. {chance}. {more}{advised}."


def p_text(value: float | None) -> str:
    """Return a p-value as text, empty without one."""
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def pair_row(pair: Pair) -> Row:
    """Return a pair as a row for programs."""
    return place(pair.column, agent=pair.better, other=pair.other) | {
        "tests": pair.tests,
        "unscored": pair.unscored,
        "difference": pair.difference,
        "conversations": pair.conversations,
        "p": pair.p,
        "p_holm": pair.corrected,
        "p_of_tests": pair.p_of_tests,
        "more_conversations": pair.more,
    }
