"""Contrasts in words and as a table, for pages, for the terminal and for papers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from longspan.simulator.base.tables import Table
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.contrasts import Contrast, ContrastResult, Contrasts
from longspan.simulator.results.analysis.statements import Statement, describe_statements
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.group_tables import one_line

__all__ = ["Family", "contrast_table", "describe_contrast", "describe_correction", "describe_place", "percent_of_marks"]

NAMED: Final = 5
"""The maximum number of missing runs that are named; the others are counted."""

UNSTATED: Final = "The contrasts were not stated before the runs were played."

OTHERS: Final = "The contrasts tested here differ from the contrasts stated last."


@final
@dataclass(frozen=True, slots=True)
class Family:
    """Contrasts and their results.

    `statements` has the times when the contrasts were stated, and is empty if they were not stated in the runs' folder. `missing` has the
    names of unfinished or damaged runs.
    """

    contrasts: Contrasts
    tested: Sequence[ContrastResult]
    statements: Collection[Statement] = ()
    missing: Sequence[str] = field(default=())

    @property
    def history(self) -> list[str]:
        """Sentences that say when the contrasts were stated, and which changes were made later."""
        return [*(describe_statements(self.statements) or [UNSTATED]), *([OTHERS] if self._changed else [])]

    @property
    def left_out(self) -> list[str]:
        """A sentence about the missing runs, if there are any."""
        if not self.missing:
            return []
        names = [*map(one_line, self.missing[:NAMED]), *([f"{len(self.missing) - NAMED:,} more"] if len(self.missing) > NAMED else [])]
        runs = "1 run is" if len(self.missing) == 1 else f"{len(self.missing):,} runs are"
        return [f"{runs} left out, not finished or damaged: {join_words(names)}."]

    @property
    def late(self) -> bool:
        """Whether contrasts or runs were stated or changed after some run had begun, or a run is missing."""
        return bool(self.missing) or not self.statements or self._changed or not all(each.beforehand for each in self.statements)

    @property
    def _changed(self) -> bool:
        return bool(self.statements) and [*self.statements][-1].sha256 != self.contrasts.sha256


def percent_of_marks(share: float, *, sign: bool = False) -> str:
    """Format a share of full marks as percent, with a minus sign."""
    text = f"{100 * share:+.1f}%" if sign else f"{100 * share:.1f}%"
    return ("0.0%" if text in ("-0.0%", "+0.0%") else text).replace("-", "\N{MINUS SIGN}")


def describe_correction(contrasts: Contrasts) -> str:
    """Describe how p-values are corrected."""
    number = len(contrasts.contrasts)
    if number == 1:
        return "there is one contrast, so no correction is needed"
    if contrasts.correction == "none":
        return f"p-values are not corrected for the {number:,} contrasts"
    return f"p-values are corrected for the {number:,} contrasts by {'Holm' if contrasts.correction == 'holm' else 'Bonferroni'}'s method"


def describe_place(contrast: Contrast) -> str:
    """Describe where two agents are compared; empty if they are compared everywhere."""
    parts = [join_words(list(contrast.scenarios))] if contrast.scenarios else []
    parts += [join_words(list(contrast.suites))] if contrast.suites else []
    at = f" at {join_words([str(Column(False, span)) for span in contrast.spans])}" if contrast.spans else ""
    return one_line(f"{' of '.join(parts)}{at}".strip())


def describe_contrast(each: ContrastResult, of: Contrasts) -> str:
    """Describe the result of a contrast in a sentence."""
    contrast = each.contrast
    one, other = map(one_line, contrast.agents)
    place = describe_place(contrast)
    there = f" ({place})" if place else ""
    if each.verdict == "undecided":
        if not each.conversations:
            return f"Undecided: {one} and {other} have no test in common{there}."
        number = f"{each.conversations:,} conversation{'s' * (each.conversations > 1)}"
        return f"Undecided: {one} and {other} have only {number} in common{there}, too few to separate them; {each.needed:,} would do."
    return f"{_claim(each, one, other)}{there}: {_figures(each, of)}.{_opposite(each, other)}"


def _claim(each: ContrastResult, one: str, other: str) -> str:
    margin = each.contrast.margin
    shown = each.verdict != "not shown"
    if each.contrast.sides == 2:
        return f"{one} scores {each.verdict} than {other}" if shown else f"No significant difference between {one} and {other}"
    if margin < 0:
        what = f"score less than {percent_of_marks(-margin)} of full marks below {other}"
        return f"{one} is shown to {what}" if shown else f"{one} is not shown to {what}"
    beyond = f" by more than {percent_of_marks(margin)} of full marks" if margin else ""
    return f"{one} scores higher than {other}{beyond}" if shown else f"{one} is not shown to score higher than {other}{beyond}"


def _opposite(each: ContrastResult, other: str) -> str:
    """Report a difference in the other direction, which a one-sided contrast does not test; empty otherwise."""
    if each.contrast.sides == 2 or each.interval is None or each.interval[1] >= 0:
        return ""
    return f" All of the interval is below 0: if anything, {other} scores higher, which a contrast stated for new runs could show."


def _figures(each: ContrastResult, of: Contrasts) -> str:
    scores = f"{percent_of_marks(each.one)} against {percent_of_marks(each.other)} of full marks"
    apart = f"difference {percent_of_marks(each.difference or 0, sign=True)}{_interval(each)}"
    if each.interval is None:
        apart += ", the same in every conversation"
    sides = "one-sided " if each.contrast.sides == 1 else ""
    tested = f"{sides}p {_p(each.p)}"
    if len(of.contrasts) > 1 and of.correction != "none":
        tested += f" (corrected {_p(each.corrected)})"
    unscored = f", {each.unscored:,} of them without a score, which counts as 0," if each.unscored else ""
    tests = f"{each.tests:,} test{'s' * (each.tests > 1)}{unscored} in {each.conversations:,} paired conversations"
    return f"{scores}, {apart}, {tested}, {tests}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _interval(each: ContrastResult) -> str:
    if each.interval is None:
        return ""
    low, high = (percent_of_marks(end, sign=True) for end in each.interval)
    return f" [{100 * each.level:.4g}% interval {low} to {high}]"


def contrast_table(family: Family) -> Table:
    """Return the contrasts as a table."""
    corrects = len(family.tested) > 1 and family.contrasts.correction != "none"
    places = any(describe_place(each.contrast) for each in family.tested)
    levels = {f"{100 * each.level:.4g}%" for each in family.tested}
    rows = [
        [
            f"{one_line(each.contrast.agents[0])} – {one_line(each.contrast.agents[1])}",
            *([describe_place(each.contrast) or "all"] if places else []),
            percent_of_marks(each.one) if each.tests else "",
            percent_of_marks(each.other) if each.tests else "",
            percent_of_marks(each.difference, sign=True) if each.difference is not None else "",
            _ends(each, several=len(levels) > 1),
            f"{each.conversations:,}",
            _cell(each.p),
            *([_cell(each.corrected)] if corrects else []),
            _describe_question(each.contrast),
            each.verdict,
        ]
        for each in family.tested
    ]
    where_ = ["where"] if places else []
    interval = f"{next(iter(levels))} interval" if len(levels) == 1 else "interval"
    correction = [f"p ({family.contrasts.correction.capitalize()})"] if corrects else []
    columns = ["contrast", *where_, "first", "second", "difference", interval, "conversations", "p", *correction, "asked", "shown"]
    return Table(title="Contrasts: paired permutation tests of conversations", columns=columns, rows=rows, note=NOTE)


NOTE: Final = (
    "Scores are shares of full marks in the tests that both agents had. Intervals are the differences that the same test would not reject; "
    "they are not corrected. Shown: the conclusion about the first agent, at the stated level."
)


def _ends(each: ContrastResult, *, several: bool) -> str:
    if each.interval is None:
        return ""
    low, high = (percent_of_marks(end, sign=True) for end in each.interval)
    return f"{low} to {high}{f' ({100 * each.level:.4g}%)' if several else ''}"


def _cell(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _describe_question(contrast: Contrast) -> str:
    if contrast.sides == 2:
        return "different"
    return f"higher by {percent_of_marks(contrast.margin, sign=True)}" if contrast.margin else "higher"
