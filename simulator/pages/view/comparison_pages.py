"""Comparisons of runs in the view: of selected runs, or of all runs in a folder, with the contrasts that were stated there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final
from urllib.parse import quote, urlencode

from longspan.simulator.base.errors import LongspanError

if TYPE_CHECKING:
    from longspan.simulator.pages.report.comparison import Links
    from longspan.simulator.pages.report.contrast_words import Family

__all__ = ["ComparisonPage", "compare_folder"]


@final
class ComparisonPage(NamedTuple):
    """A comparison as a page with its policy, and its figures as CSV and JSON."""

    page: str
    policy: str
    csv: str
    json: str


def compare_folder(paths: Sequence[Path], root: Path, folder: Path | None, number: int) -> ComparisonPage:
    """Compare runs below `root`: all runs of a `folder`, or selected runs that play the same tests.

    Runs of a folder that play the same tests form a group. The group with this number is shown, the first by default, or with number 0 the
    first that has a trend. Raises InputError if no runs can be compared. The imports are inside because they are slow.
    """
    from longspan.simulator.pages.report.comparison import POLICY, as_html
    from longspan.simulator.pages.report.comparison_tables import as_csv, as_rows, comparison_notes
    from longspan.simulator.pages.report.figures import missing_figures
    from longspan.simulator.results.measures.comparing import load_comparison, load_comparisons

    if folder is None:
        shown, others, family, query = load_comparison(paths), [], None, [("run", quote(_name(path, root))) for path in paths]
    else:
        groups = load_comparisons(paths)
        trends = [at for at, each in enumerate(groups.values(), 1) if "trend" not in missing_figures(each)]
        number = number if 0 < number <= len(groups) else (1 if number else next(iter(trends), 1))
        shown = [*groups.values()][number - 1]
        query = [("in", _name(folder, root))]
        others = [(name, f"/compare?{urlencode([*query, ('group', at)])}", at == number) for at, name in enumerate(groups, 1)]
        family = _evaluate_stated(folder, paths)
        query = [*query, ("group", str(number))]
    links = _links(root, folder, urlencode(query), others if len(others) > 1 else [])
    told = {
        "suite": shown.suite,
        "agents": list(shown.agents),
        "runs": shown.runs,
        "rows": as_rows(shown),
        "notes": comparison_notes(shown),
    }
    return ComparisonPage(as_html(shown, links, family), POLICY, as_csv(shown), json.dumps(told, ensure_ascii=False, default=str))


def _evaluate_stated(folder: Path, paths: Sequence[Path]) -> Family | None:
    """Return the results of the contrasts that were stated in a folder; None without contrasts, or if they cannot be tested."""
    from longspan.simulator.pages.report.outcome import family_of
    from longspan.simulator.results.analysis.statements import read_statements
    from longspan.simulator.results.measures.comparing import load_finished

    with suppress(LongspanError):
        known = read_statements(folder)
        if known:
            runs, unusable = load_finished(paths)
            return family_of(known[-1].contrasts, runs, unusable, known)
    return None


def _links(root: Path, folder: Path | None, query: str, groups: Sequence[tuple[str, str, bool]]) -> Links:
    from longspan.simulator.pages.report.comparison import Links

    def side_by_side(one: Path, other: Path, test: str) -> str:
        runs = [("run", quote(_name(run, root))) for run in (one, other)]
        return f"/side-by-side?{urlencode([*runs, ('test', test)])}"

    return Links(
        report=lambda run: f"/runs/{quote(_name(run, root))}/report",
        side_by_side=side_by_side,
        home="/" if folder in (None, root) else f"/?{urlencode({'in': _name(folder or root, root)})}",
        files={"CSV": f"/compare.csv?{query}", "JSON": f"/compare.json?{query}"},
        title="" if folder in (None, root) else _name(folder or root, root),
        groups=groups,
    )


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path != root else ""
