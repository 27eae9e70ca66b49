"""The report of a run: one self-contained HTML file, made from the files in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, final

from longspan.simulator.base.files.file_io import write_text
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.chart import make_chart
from longspan.simulator.pages.report.curve import lay_out
from longspan.simulator.pages.report.excerpts import script_list
from longspan.simulator.pages.report.folded import fold_rows
from longspan.simulator.pages.report.memory_pictures import funnel_stages, memory_map, split_bar
from longspan.simulator.pages.report.page import content_policy, page_environment
from longspan.simulator.pages.report.prompt_excerpts import add_prompts
from longspan.simulator.pages.report.run_view import ConversationView, RunView, TestView, with_branches
from longspan.simulator.pages.report.summary import further_figures, last_failures, reply_times, score_interval, without_score
from longspan.simulator.pages.report.timeline import count_fates, grade_of, make_panels, tests_by_conversation
from longspan.simulator.pages.report.verdict import compare_with_guessing, loss_verdict
from longspan.simulator.results import measures
from longspan.simulator.results.analysis.distances import Distances, describe_narrow_scenarios, graded_points, spans_kept, spans_said
from longspan.simulator.results.analysis.groups import by_distance, by_skill, group_tests
from longspan.simulator.results.analysis.interference import group_by_planted
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions, ShareEstimate
from longspan.simulator.results.analysis.units import observe_questions
from longspan.simulator.results.judging.calibration import calibration_notes
from longspan.simulator.results.measures.kinds import by_kind, common_ranks
from longspan.simulator.results.measures.memory_losses import OUTCOMES, MemoryLosses
from longspan.simulator.results.result import Result

__all__ = ["POLICY", "Report", "report_of", "write_report"]

FILE_NAME: Final = "report.html"

SCRIPTS: Final = ("markdown.js", "turns.js", "views.js", "conversation.js", "tests.js", "timeline.js", "story.js", "playing.js")
STYLES: Final = ("base.css", "pictures.css", "head.css", "timeline.css", "run.css", "result.css")

DISTANCES_NOTE: Final = "Graded questions by their evidence distance. The rows contain questions of different scenarios."

MAX_TOLD: Final = 20_000_000
"""The maximum characters of history turns on a page.

Of a longer history, only the turns that tests need are kept, since a browser could not open all of it.
"""

DEFLATED_FROM: Final = 100_000
"""Conversations with this many characters or more are deflated: the file is a third as long and opens faster."""

BUFFERED_PIECES: Final = 500
"""The number of pieces of the rendered template that are written together."""

POLICY: Final = content_policy(SCRIPTS, STYLES)
"""The Content-Security-Policy of all reports."""


@final
class Report:
    """The page of a run while it is played or read."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._reading = RunView(run)
        self.take_change: Final = self._reading.take_change
        self.forget: Final = self._reading.forget

    def write(self, result: Result) -> None:
        """Write the page with these results; see `write_report`."""
        write_report(self._run, result, self._reading)


def write_report(run: RunFolder, result: Result, reading: RunView | None = None) -> Path:
    """Write `report.html` into a run's folder atomically and return its path.

    The conversations come from `reading`, which is changed, or else from the folder's journals. A missing or incomplete journal is shown up
    to its end. Raises JournalError if a journal is damaged, and OSError if the file cannot be written.
    """
    path = run.path / FILE_NAME
    write_text(path, report_of(run, result, reading))
    return path


def report_of(
    run: RunFolder,
    result: Result,
    reading: RunView | None = None,
    home: str | None = None,
    live: str | None = None,
    run_path: str = "",
    question_page: str | None = None,
) -> Iterator[str]:
    """Yield the page in pieces. All files are read before the first piece.

    `home` is the address of the list of runs, `live` of the page that follows the run while it is played, and `question_page` of the page
    that makes a question of a recorded turn; each is None without such a page. `run_path` is the run's folder for commands; a page opened
    from disk knows its own path. Raises JournalError if a journal is damaged.
    """
    conversations = (reading or RunView.of(run)).conversations
    add_prompts(run, conversations)
    asked = graded_points(result.tests, result.span)
    tests = {name: [TestView.of(test, conversations) for test in result.tests if test.scenario == name] for name in result.scenarios}
    shown = [test for group in tests.values() for test in group]
    losses = MemoryLosses.of(result.tests, result.span)
    recalled = _pooled_recall(run, result)
    kinds = by_kind(result.tests)
    drawn = make_panels(shown, conversations)
    said = measures.document_run(run.manifest, result)
    more = page_environment().get_template("more.html.j2")
    page = page_environment().get_template("run.html.j2")
    pieces = page.stream(
        home=home,
        live=live,
        folder=run.path.resolve().name,
        run_path=run_path,
        question_page=question_page,
        manifest=run.manifest,
        result=result,
        chance=result.chance,
        scenarios=tests,
        folded=fold_rows((test.result.id, more.render(test=test, result=result)) for test in shown),
        bounds={name: _bounds(group) for name, group in tests.items()},
        intervals={name: score_interval(run.manifest, [test.result for test in group]) for name, group in tests.items()},
        evidence={name: Distances.of([test.result for test in group], result.span) for name, group in tests.items()},
        all_evidence=Distances.of(result.tests, result.span),
        kinds=kinds,
        places=common_ranks(kinds.values()),
        planted=group_by_planted(run.manifest, result),
        groups=[
            ("skills", "Skills", "A test counts for each skill of its scenario.", group_tests(result.tests, by_skill)),
            ("distances", "Evidence distances", DISTANCES_NOTE, group_tests(asked, by_distance)),
        ]
        if not recalled
        else [],
        recalled=recalled,
        k=result.searched.k if result.searched is not None else None,
        spans_kept=result.certified in (None, 1),
        spans=[sentence for sentence in (spans_kept(result), spans_said(result)) if sentence],
        curve=make_chart(observe_questions([(run.manifest, result.tests)])),
        narrow=describe_narrow_scenarios(asked),
        losses=losses,
        stages=funnel_stages(losses),
        split=split_bar,
        outcomes=OUTCOMES,
        memory_map=None if recalled else memory_map(asked, result.tests, conversations),
        panels=drawn,
        lanes=script_list(panel.data() for panel in drawn),
        fates=count_fates(drawn),
        verdict=loss_verdict(losses),
        standing=compare_with_guessing(result),
        conversations=conversations,
        branches=with_branches(conversations.values()),
        kept=_turns_to_keep(conversations, shown),
        deflated=sum(turn.size for conversation in conversations.values() for turn in conversation.turns) >= DEFLATED_FROM,
        played_in=tests_by_conversation(shown, conversations),
        interval=score_interval(run.manifest, result.tests),
        failures=last_failures(run, conversations),
        times=reply_times(conversations.values()),
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


def _pooled_recall(run: RunFolder, result: Result) -> Mapping[str, ShareEstimate]:
    """Return the recall of a memory that only searched, by scenario, and in total under an empty name; empty for all other runs."""
    if result.searched is None:
        return {}
    asked, k = EvidenceQuestions.of([(run.manifest, result.tests)]), result.searched.k or 0
    found = {name: asked.estimate_found(k, lambda test, name=name: test.scenario == name) for name in result.scenarios}  # type: ignore[misc]
    return {name: estimate for name, estimate in {**found, "": asked.estimate_found(k)}.items() if estimate is not None}


def _turns_to_keep(conversations: Mapping[str, ConversationView], tests: Iterable[TestView]) -> dict[str, set[int]] | None:
    """Return the turns of histories that the page keeps, by conversation and number; None if it keeps all of them."""
    if sum(turn.size for conversation in conversations.values() for turn in conversation.turns if turn.told) <= MAX_TOLD:
        return None
    found: dict[str, set[int]] = {}
    for test in tests:
        for turn in test.turns:
            found.setdefault(turn.conversation, set()).add(turn.number)
    return found


def _bounds(tests: Sequence[TestView]) -> tuple[float, float]:
    """Return the lowest and highest possible mean score of `tests`. Tests without a score count as 0 or as 1."""
    results = [test.result for test in tests if test.result.counts] or [test.result for test in tests]
    return fmean(result.lowest for result in results), fmean(result.highest for result in results)
