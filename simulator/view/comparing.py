"""Comparisons of runs in the view: of chosen runs, or of all in a folder with the contrasts that were stated there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final
from urllib.parse import quote, urlencode

from longspan.simulator.base.errors import LongspanError

if TYPE_CHECKING:
    from longspan.simulator.report.comparison import Links
    from longspan.simulator.report.contrasts import Family

__all__ = ["Compared", "compared"]


@final
class Compared(NamedTuple):
    """A comparison as a page with its policy, and its figures as CSV and JSON."""

    page: str
    policy: str
    csv: str
    json: str


def compared(paths: Sequence[Path], root: Path, folder: Path | None, number: int) -> Compared:
    """Compare runs below `root`: all of a `folder`, or else some that were chosen and play the same tests.

    Those of a folder that play the same tests are a group; the one with this number is shown, or else the first. Raises InputError if none
    can be compared. The imports are slow, so they are here.
    """
    from longspan.simulator.measures.comparing import load_comparison, load_comparisons
    from longspan.simulator.report.comparison import POLICY, as_html
    from longspan.simulator.report.comparison_tables import as_csv, as_rows, notes

    if folder is None:
        shown, others, family, query = load_comparison(paths), [], None, [("run", quote(_name(path, root))) for path in paths]
    else:
        groups = load_comparisons(paths)
        number = number if 0 < number <= len(groups) else 1
        shown = [*groups.values()][number - 1]
        query = [("in", _name(folder, root))]
        others = [(name, f"/compare?{urlencode([*query, ('group', at)])}", at == number) for at, name in enumerate(groups, 1)]
        family = _stated(folder, paths)
        query = [*query, ("group", str(number))]
    links = _links(root, folder, urlencode(query), others if len(others) > 1 else [])
    told = {"suite": shown.suite, "agents": list(shown.agents), "runs": shown.runs, "rows": as_rows(shown), "notes": notes(shown)}
    return Compared(as_html(shown, links, family), POLICY, as_csv(shown), json.dumps(told, ensure_ascii=False, default=str))


def _stated(folder: Path, paths: Sequence[Path]) -> Family | None:
    """Return what the contrasts that were stated in a folder come to in its runs; None if there are none, or if they cannot be tested."""
    from longspan.simulator.analysis.statements import statements
    from longspan.simulator.measures.comparing import load_finished
    from longspan.simulator.report.outcome import family_of

    with suppress(LongspanError):
        known = statements(folder)
        if known:
            runs, unusable = load_finished(paths)
            return family_of(known[-1].contrasts, runs, unusable, known)
    return None


def _links(root: Path, folder: Path | None, query: str, groups: Sequence[tuple[str, str, bool]]) -> Links:
    from longspan.simulator.report.comparison import Links

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
