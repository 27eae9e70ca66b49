"""The arena's page: one HTML file without scripts or external resources. It shows the facts that each summary contains and lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from longspan.scenarios.cream.arena_result import ArenaResult, Comparison
from longspan.scenarios.cream.ranking_tables import ranking_tables
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import write_json, write_text
from longspan.simulator.pages.report.page import content_policy, page_environment

__all__ = ["POLICY", "as_html", "write_arena"]

TEMPLATES: Final = Path(__file__).parent / "templates"

STYLES: Final = ("base.css", TEMPLATES / "arena.css")

POLICY: Final = content_policy((), STYLES)
"""The Content-Security-Policy of the arena's pages."""

MAX_SHOWN: Final = 300
"""The most comparisons or checks shown on the page. The JSON file has all of them."""


def write_arena(folder: Path, result: ArenaResult) -> tuple[Path, Path]:
    """Write a result and its page atomically. They replace an earlier result with the same metric and number of facts. Return their paths.

    Raises InputError if they cannot be written.
    """
    anew = "-anew" if result.rules.extraction == "summary" else ""
    facts = "" if result.rules.metric == "faithfulness" else f"-{result.rules.facts}{anew}"
    data, page = (folder / f"{result.rules.metric}{facts}.{ending}" for ending in ("json", "html"))
    try:
        write_json(data, result)
        write_text(page, as_html(result))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}; choose another folder with --out") from error
    return data, page


def as_html(result: ArenaResult) -> str:
    """Render the page. All text from summaries, files and the judge is escaped."""
    standings, *others = ranking_tables(result)
    shown = [*result.comparisons[:MAX_SHOWN], *result.checks[:MAX_SHOWN]]
    return (
        page_environment(TEMPLATES)
        .get_template("arena.html.j2")
        .render(
            result=result,
            standings=standings,
            tables=others,
            comparisons=[_comparison_view(result, comparison) for comparison in result.comparisons[:MAX_SHOWN]],
            checks=result.checks[:MAX_SHOWN],
            hidden=len(result.comparisons) + len(result.checks) - len(shown),
            policy=POLICY,
            styles=STYLES,
        )
    )


def _comparison_view(result: ArenaResult, comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for the template, with scores and the cited sentences of each summary."""
    sides = []
    for place, system in enumerate(comparison.systems):
        side = comparison.sides[place] if comparison.sides else None
        cited = {number for numbers in side.cited for number in numbers or ()} if side is not None else set()
        sides.append(
            {
                "system": system,
                "facts": side.facts if side is not None else [],
                "cited": side.cited if side is not None else [],
                "used": cited,
                "score": result.score(comparison, place) if side is not None else None,
                "sentences": result.sentences[comparison.source][system],
            }
        )
    return {"about": comparison, "sides": sides}
