"""A comparison as one HTML file with its figures. It loads nothing and has no scripts."""

from __future__ import annotations

from typing import Final

from longspan.simulator.analysis.comparing import Comparison
from longspan.simulator.report.figures import FIGURES, FigureName, draw
from longspan.simulator.report.inline_svg import inline_svg
from longspan.simulator.report.page import environment, policy
from longspan.simulator.report.tables import notes, tables

__all__ = ["POLICY", "as_html"]

STYLES: Final = ("base.css", "compare.css")

POLICY: Final = policy((), STYLES)
"""The Content-Security-Policy of all comparison pages."""

CAPTIONS: Final[dict[FigureName, str]] = {
    "bars": "Scores by span, as in the paper's Figure 5. Lines are 95% intervals; pale ends are what tests without a score could add.",
    "spans": "Score by span, with 95% intervals.",
    "radar": "Mean score of each scenario, with one chart for each span.",
    "cost": "Score by the cost of a run at list prices.",
}
SHARES: Final = " Scores are shares of full marks, which differ."


def as_html(comparison: Comparison) -> str:
    """Return the page. Text from agents and files is escaped; in figures it is drawn as outlines."""
    priced = any(cell.cost_usd is not None for cell in comparison.cells.values())
    drawn = [name for name in FIGURES if name != "cost" or priced]
    captions = {name: f"{text}{SHARES}" if comparison.mixed and name != "radar" else text for name, text in CAPTIONS.items()}
    figures = {name: inline_svg(draw(comparison, name, "svg", page=True), name, captions[name]) for name in drawn}
    all_tables = tables(comparison)
    template = environment().get_template("compare.html.j2")
    return template.render(
        comparison=comparison,
        notes=notes(comparison),
        scores=all_tables[0],
        tables=all_tables[1:],
        figures=figures,
        captions=captions,
        policy=POLICY,
        styles=STYLES,
    )
