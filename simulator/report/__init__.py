"""The report of a run: one self-contained HTML file, made from the files in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, final

from longspan.simulator import measures
from longspan.simulator.analysis.distances import Distances, narrow, points, spans_kept, spans_said
from longspan.simulator.analysis.groups import by_distance, by_skill, grouped
from longspan.simulator.analysis.interference import planted
from longspan.simulator.analysis.stages import Estimate, EvidenceQuestions
from longspan.simulator.analysis.units import placed
from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.files.reading import write_text
from longspan.simulator.judging.calibration import calibration_notes
from longspan.simulator.measures.kinds import by_kind, places
from longspan.simulator.measures.memory_losses import OUTCOMES, MemoryLosses
from longspan.simulator.report.chart import chart
from longspan.simulator.report.curve import lay_out
from longspan.simulator.report.excerpts import script_list
from longspan.simulator.report.folded import fold
from longspan.simulator.report.memory import memory_map, split, stages
from longspan.simulator.report.page import environment, policy
from longspan.simulator.report.prompts import add_prompts
from longspan.simulator.report.reading import ConversationView, Reading, TestView, with_branches
from longspan.simulator.report.summary import failures, further_figures, score_interval, times, without_score
from longspan.simulator.report.timeline import fates, grade_of, panels, played_in
from longspan.simulator.report.verdict import standing, verdict
from longspan.simulator.results.result import Result

__all__ = ["POLICY", "Report", "report_of", "write_report"]

FILE_NAME: Final = "report.html"

SCRIPTS: Final = ("markdown.js", "turns.js", "views.js", "conversation.js", "tests.js", "timeline.js", "story.js", "playing.js")
STYLES: Final = ("base.css", "pictures.css", "head.css", "timeline.css", "run.css", "result.css")

DISTANCES_NOTE: Final = "Graded questions by their evidence distance. Each row has questions of other scenarios."

MAX_TOLD: Final = 20_000_000
"""The most characters of told turns on a page. If a history is longer, only the turns that tests need are kept: a browser could not open
the rest."""

DEFLATED_FROM: Final = 100_000
"""From this many characters of turns, a page has its conversations deflated: the file is a third as long and opens faster."""

BUFFERED_PIECES: Final = 500
"""The number of pieces of the rendered template that are written together."""

POLICY: Final = policy(SCRIPTS, STYLES)
"""The Content-Security-Policy of all reports."""


@final
class Report:
    """The page of a run that is being played or read."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._reading = Reading(run)
        self.heard: Final = self._reading.heard
        self.forget: Final = self._reading.forget

    def write(self, result: Result) -> None:
        """Write the page of these results; see `write_report`."""
        write_report(self._run, result, self._reading)


def write_report(run: RunFolder, result: Result, reading: Reading | None = None) -> Path:
    """Write `report.html` into a run's folder atomically and return its path.

    The conversations come from `reading`, which is changed, or else from the folder's journals. A missing or incomplete journal is shown as
    far as it goes. Raises JournalError if a journal is damaged, and OSError if the file cannot be written.
    """
    path = run.path / FILE_NAME
    write_text(path, report_of(run, result, reading))
    return path


def report_of(
    run: RunFolder,
    result: Result,
    reading: Reading | None = None,
    home: str | None = None,
    live: str | None = None,
    run_path: str = "",
) -> Iterator[str]:
    """Yield the page in pieces. All files are read before the first piece. `home` is the address of the list of runs, `live` that of the
    page that follows the run while it is played, if there are such pages, and `run_path` is the run's folder as commands name it: a page
    that opens from disk knows it by itself.

    Raises JournalError if a journal is damaged.
    """
    conversations = (reading or Reading.of(run)).conversations
    add_prompts(run, conversations)
    asked = points(result.tests, result.span)
    tests = {name: [TestView.of(test, conversations) for test in result.tests if test.scenario == name] for name in result.scenarios}
    shown = [test for group in tests.values() for test in group]
    losses = MemoryLosses.of(result.tests, result.span)
    recalled = _recalled(run, result)
    kinds = by_kind(result.tests)
    drawn = panels(shown, conversations)
    said = measures.shown(run.manifest, result)
    more = environment().get_template("more.html.j2")
    page = environment().get_template("run.html.j2")
    pieces = page.stream(
        home=home,
        live=live,
        folder=run.path.resolve().name,
        run_path=run_path,
        manifest=run.manifest,
        result=result,
        chance=result.chance,
        scenarios=tests,
        folded=fold((test.result.id, more.render(test=test, result=result)) for test in shown),
        bounds={name: _bounds(group) for name, group in tests.items()},
        intervals={name: score_interval(run.manifest, [test.result for test in group]) for name, group in tests.items()},
        evidence={name: Distances.of([test.result for test in group], result.span) for name, group in tests.items()},
        all_evidence=Distances.of(result.tests, result.span),
        kinds=kinds,
        places=places(kinds.values()),
        planted=planted(run.manifest, result),
        groups=[
            ("skills", "Skills", "A test counts for each skill of its scenario.", grouped(result.tests, by_skill)),
            ("distances", "Evidence distances", DISTANCES_NOTE, grouped(asked, by_distance)),
        ]
        if not recalled
        else [],
        recalled=recalled,
        k=result.searched.k if result.searched is not None else None,
        spans_kept=result.certified in (None, 1),
        spans=[sentence for sentence in (spans_kept(result), spans_said(result)) if sentence],
        curve=chart(placed([(run.manifest, result.tests)])),
        narrow=narrow(asked),
        losses=losses,
        stages=stages(losses),
        split=split,
        outcomes=OUTCOMES,
        memory_map=None if recalled else memory_map(asked, result.tests, conversations),
        panels=drawn,
        lanes=script_list(panel.data() for panel in drawn),
        fates=fates(drawn),
        verdict=verdict(losses),
        standing=standing(result),
        conversations=conversations,
        branches=with_branches(conversations.values()),
        kept=_kept(conversations, shown),
        deflated=sum(turn.size for conversation in conversations.values() for turn in conversation.turns) >= DEFLATED_FROM,
        played_in=played_in(shown, conversations),
        interval=score_interval(run.manifest, result.tests),
        failures=failures(run, conversations),
        times=times(conversations.values()),
        cost=result.cost_usd,
        without=without_score(result),
        figures=further_figures(result),
        questions=len(asked),
        said=said,
        leading=[lay_out(curve) for curve in said.curves],
        calibrations=calibration_notes(run),
        grade_of=grade_of,
        policy=POLICY,
        scripts=SCRIPTS,
        styles=STYLES,
    )
    pieces.enable_buffering(BUFFERED_PIECES)  # otherwise, each expression in the template would be written separately
    return pieces


def _recalled(run: RunFolder, result: Result) -> Mapping[str, Estimate]:
    """Return the recall of a memory that was only searched, by scenario and in all, which has no name; empty for all other runs."""
    if result.searched is None:
        return {}
    asked, k = EvidenceQuestions.of([(run.manifest, result.tests)]), result.searched.k or 0
    found = {name: asked.found(k, lambda test, name=name: test.scenario == name) for name in result.scenarios}  # type: ignore[misc]
    return {name: estimate for name, estimate in {**found, "": asked.found(k)}.items() if estimate is not None}


def _kept(conversations: Mapping[str, ConversationView], tests: Iterable[TestView]) -> dict[str, set[int]] | None:
    """Return the turns of histories that the page keeps, by conversation and number; None if it keeps all of them."""
    if sum(turn.size for conversation in conversations.values() for turn in conversation.turns if turn.told) <= MAX_TOLD:
        return None
    found: dict[str, set[int]] = {}
    for test in tests:
        for turn in test.turns:
            found.setdefault(turn.conversation, set()).add(turn.number)
    return found


def _bounds(tests: Sequence[TestView]) -> tuple[float, float]:
    """Return the lowest and highest possible mean score of `tests`: tests without a score count as 0 or as 1."""
    results = [test.result for test in tests if test.result.counts] or [test.result for test in tests]
    return fmean(result.lowest for result in results), fmean(result.highest for result in results)
