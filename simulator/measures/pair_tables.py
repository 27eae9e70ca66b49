"""Pairs of agents as a table for people, and as rows for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from longspan.simulator.analysis.pairs import Pair
from longspan.simulator.analysis.statistics import ALPHA
from longspan.simulator.base.tables import Table
from longspan.simulator.measures.group_tables import Row, one_line, place

__all__ = ["p_text", "pair_row", "pair_table"]

P_NOTE: Final = "p is over whole conversations."

PAIRS_NOTE: Final = (
    f"{P_NOTE} Significant: p below 0.05 after Holm's correction. More conversations needed: for a significant difference in four of five "
    "cases, if the true one is the observed one."
)

TESTS_NOTE: Final = "The p of these tests takes them one by one: it is about these tests, not about other conversations, and not corrected."


def pair_table(what: str, pairs: Sequence[Pair], counted: str, *, several: bool, of: str = "scores", stated: bool = False) -> Table:
    """Return a table of pairs `of` scores, or what else they differ in, under the heading `what`. `counted` names what both have had, such
    as the same tests.

    `several`: there are several spans. Where contrasts were `stated`, it does not say how many more conversations are needed.
    """
    few = any(pair.p_of_tests is not None for pair in pairs)
    rows = [
        [
            *([str(pair.column)] if several else []),
            one_line(pair.better),
            one_line(pair.other),
            f"{pair.difference:.2f}{'' if pair.between is None else ' [{:.2f}, {:.2f}]'.format(*pair.between)}",
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


def _more(pair: Pair, of: str) -> str:
    if pair.corrected < ALPHA:
        return "significant"
    return f"equal {of}" if pair.more is None else f"{max(1, pair.more):,}"


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
