"""Agents compared with a baseline agent: the differences, and whether they are significant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from longspan.simulator.base.document import Sentence
from longspan.simulator.base.shares import format_interval, format_percent
from longspan.simulator.base.tables import Table
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.pairs import Pair
from longspan.simulator.results.measures.experiments import p_told
from longspan.simulator.results.measures.group_tables import Row
from longspan.simulator.results.measures.measure import SideBySide
from longspan.simulator.results.measures.pair_tables import describe_verdicts, name_conversations, pair_row

__all__ = ["against_rows", "against_table", "describe_against"]

AGAINST_NOTE: Final = "Differences are above 0 where the agent is better, in what both had; their intervals are not corrected."


def describe_against(side: SideBySide, found: Sequence[Pair]) -> Iterator[Sentence]:
    """Yield sentences for each column: the agents better or worse than the baseline, and those without a significant difference."""
    if not found:
        yield Sentence(f"{side.called.names[side.baseline or '']} shares no graded tests with another agent: nothing is compared with it.")
    for column in side.columns:
        here = [pair for pair in found if pair.column == column]
        for verdicts in (("better",), ("worse",), ("better here", "worse here"), ("tie",), ("not shown",), ("too few",)):
            if pairs := [pair for pair in here if pair.verdict in verdicts]:
                yield Sentence(f"{_describe(pairs, side)}.")


def _describe(pairs: Sequence[Pair], side: SideBySide) -> str:
    """Describe how agents with the same verdict compare with the baseline in a column."""
    names, first = side.called.names, pairs[0]
    baseline, is_one = f"{names[first.other]}{first.column.at}", len(pairs) == 1
    figures = [format_percent(pair.difference, sign=True) for pair in pairs]
    if first.verdict == "tie":
        figures = [format_percent(pair.share) for pair in pairs]
    elif first.verdict.endswith("here"):
        figures = [f"{figure}, p {p_told(pair.p_of_tests)}" for pair, figure in zip(pairs, figures, strict=True)]
    who = join_words([f"{names[pair.agent]} ({figure})" for pair, figure in zip(pairs, figures, strict=True)])
    match first.verdict:
        case "better" | "worse":
            return f"{who} {'is' if is_one else 'are'} {first.verdict} than {baseline}"
        case "better here" | "worse here":
            return (
                f"{who} {'differs' if is_one else 'differ'} from {baseline} in {name_conversations(pairs)}; other conversations may differ"
            )
        case "tie":
            return f"{who} {'ties' if is_one else 'tie'} with {baseline}"
        case "too few":
            return f"{name_conversations(pairs).capitalize()} cannot separate {who} from {baseline}"
        case "not shown":
            return f"{who} {'is' if is_one else 'are'} not shown to differ from {baseline}"


def against_table(side: SideBySide, found: Sequence[Pair]) -> Table:
    """Return a table of the agents against the baseline. It has no rows without a baseline."""
    names = side.called.names
    several, measured = len(side.columns) > 1, f"found among first {side.k}" if side.by_recall else "score"
    rest, cells, note = describe_verdicts(found)
    rows = [
        [
            names[pair.agent],
            *([str(pair.column)] if several else []),
            format_percent(pair.share),
            format_percent(pair.of_other),
            f"{format_percent(pair.difference, sign=True)}{format_interval(pair.interval, sign=True)}",
            *row,
        ]
        for pair, row in zip(found, cells, strict=True)
    ]
    columns = ["agent", *(["span"] if several else []), measured, "baseline", "difference", *rest]
    correction = f", Holm-corrected for all {len(rows)}" if len(rows) > 1 else ""
    baseline = f"{'' if side.baseline is None else names[side.baseline]}{'' if several else side.columns[0].at}"
    title = f"Differences to {baseline} [95% interval]{correction}"
    return Table(title=title, columns=columns, rows=rows, note=f"{AGAINST_NOTE} {note}")


def against_rows(side: SideBySide, found: Sequence[Pair]) -> Iterator[Row]:
    """Yield the rows of `against_table` for programs. Scores and differences are shares."""
    for pair in found:
        low, high = pair.interval or (None, None)
        shares = {"share": pair.share, "difference": pair.difference, "interval_low": low, "interval_high": high, "maximum": 1}
        yield pair_row(pair) | shares | ({"k": side.k} if side.by_recall else {})
