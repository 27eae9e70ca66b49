"""An arena as a page: one HTML file that loads nothing and runs nothing, with the facts that each summary has and lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from longspan.simulator.arena.results import Comparison, Result
from longspan.simulator.arena.tables import tables
from longspan.simulator.errors import InputError
from longspan.simulator.files import write_json, write_text
from longspan.simulator.report.page import environment, policy

__all__ = ["POLICY", "as_html", "write"]

STYLES: Final = ("base.css", "arena.css")

POLICY: Final = policy((), STYLES)
"""The Content-Security-Policy of every arena's page that this longspan writes."""

MOST: Final = 300
"""Comparisons, or checks, that are shown; the JSON file has all."""


def write(folder: Path, result: Result) -> tuple[Path, Path]:
    """Write a result and its page, each whole or not at all, over those of the same metric and number of facts. Returns their
    paths. Raises InputError where the disk refuses."""
    facts = "" if result.rules.metric == "faithfulness" else f"-{result.rules.facts}"
    found, page = (folder / f"{result.rules.metric}{facts}.{ending}" for ending in ("json", "html"))
    try:
        write_json(found, result)
        write_text(page, as_html(result))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}; choose another place with --out") from error
    return found, page


def as_html(result: Result) -> str:
    """The page. What summaries, files and the judge say is escaped."""
    standings, *others = tables(result)
    shown = [*result.comparisons[:MOST], *result.checks[:MOST]]
    return (
        environment()
        .get_template("arena.html.j2")
        .render(
            result=result,
            standings=standings,
            tables=others,
            comparisons=[_compared(result, each) for each in result.comparisons[:MOST]],
            checks=result.checks[:MOST],
            hidden=len(result.comparisons) + len(result.checks) - len(shown),
            policy=POLICY,
            styles=STYLES,
        )
    )


def _compared(result: Result, comparison: Comparison) -> dict[str, Any]:
    """A comparison with its scores, and for each summary the sentences that no fact follows from."""
    sides = []
    for number, system in enumerate(comparison.systems):
        side = comparison.sides[number] if comparison.sides else None
        cited = {at for each in side.cited for at in each or ()} if side is not None else set()
        sides.append(
            {
                "system": system,
                "cited": side.cited if side is not None else [],
                "used": cited,
                "score": result.score(comparison, number) if side is not None else None,
                "sentences": result.sentences[comparison.source][system],
            }
        )
    return {"about": comparison, "sides": sides}
