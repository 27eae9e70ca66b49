"""The report of a run: one HTML file that explains itself, made from the run's files alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Final

from longspan.simulator.analysis.groups import by_distance, by_skill, grouped
from longspan.simulator.files import write_text
from longspan.simulator.grading.grades import Result
from longspan.simulator.judging.calibration import calibration_notes
from longspan.simulator.ledger import total_cost
from longspan.simulator.report.page import environment, policy
from longspan.simulator.report.reading import Reading, Test
from longspan.simulator.report.summary import failures, score_interval, times, without_score
from longspan.simulator.report.timeline import grade_of, panels
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.script import LAST

__all__ = ["POLICY", "Reading", "report_of", "write_report"]

NAME: Final = "report.html"

SCRIPTS: Final = ("turns.js", "conversation.js", "timeline.js")
STYLES: Final = ("base.css", "run.css")

DISTANCES: Final = "Tokens between a needle and the question that needs it, their mean for each test. Tests of other scenarios in each row."

PIECES: Final = 500
"""Pieces of the template's that are written at once."""

POLICY: Final = policy(SCRIPTS, STYLES)
"""The Content-Security-Policy of every report that this longspan writes."""


def write_report(run: RunFolder, result: Result, reading: Reading | None = None) -> Path:
    """Write `report.html` into a run's folder, whole or not at all, and return its path.

    All else it shows is read from the folder's manifest, journals and incidents; or from `reading`, which it uses up, where the
    journals were read. A journal that is missing or breaks off is shown as far as it goes. Raises JournalError for one that is
    damaged, OSError for a disk that refuses.
    """
    path = run.path / NAME
    write_text(path, report_of(run, result, reading))
    return path


def report_of(run: RunFolder, result: Result, reading: Reading | None = None) -> Iterator[str]:
    """The page, piece by piece. All is read before the first. Raises JournalError for a damaged journal."""
    conversations = (reading or Reading.of(run)).conversations
    tests = {name: [Test.of(test, conversations) for test in result.tests if test.scenario == name] for name in result.scenarios}
    page = environment().get_template("run.html.j2")
    pieces = page.stream(
        manifest=run.manifest,
        result=result,
        chance=fsum(scenario.chance for scenario in result.scenarios.values()),
        last=LAST,
        scenarios=tests,
        bounds={name: _bounds(group) for name, group in tests.items()},
        kinds=[
            ("skills", "Skills", "A test counts for each skill that its scenario names.", grouped(result.tests, by_skill)),
            ("distances", "Evidence distances", DISTANCES, grouped(result.tests, by_distance)),
        ],
        panels=panels([test for group in tests.values() for test in group], conversations),
        conversations=conversations,
        interval=score_interval(run.manifest, result),
        failures=failures(run, conversations),
        times=times(conversations.values()),
        cost=total_cost(part.cost_usd for part in result.costs.values()),
        without=without_score(result),
        calibrations=calibration_notes(run),
        grade_of=grade_of,
        policy=POLICY,
        scripts=SCRIPTS,
        styles=STYLES,
    )
    pieces.enable_buffering(PIECES)  # a write for each expression in the page would be many
    return pieces


def _bounds(tests: Iterable[Test]) -> tuple[float, float]:
    """The least and the most that the mean score of `tests` can be, whatever those without a score deserve."""
    results = [test.result for test in tests]
    return fmean(result.lowest for result in results), fmean(result.highest for result in results)
