"""The summary printed after runs: scores, cost, failures, and where to find everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple, final

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.table import Table

from longspan.simulator.base import tables
from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.document import Document, Sentence, Tone
from longspan.simulator.base.errors import AgentError, InputError, JournalError
from longspan.simulator.base.shares import format_interval, format_percent, format_points, format_share_range
from longspan.simulator.base.terminal import as_line, complain, quote_command
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.summary import score_interval
from longspan.simulator.results.analysis.distances import Distances
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions, recall_bounds
from longspan.simulator.results.analysis.statistics import Interval
from longspan.simulator.results.analysis.units import advise_generalising
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures import document_run, document_runs
from longspan.simulator.results.measures.kinds import by_kind, common_ranks
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.running.player import Outcome
from longspan.simulator.subject.agent_log import pick_telling_lines
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import is_trusted
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.printed_tables import cut_line, print_table

__all__ = ["FAILED", "print_opening", "print_outcome", "print_outcomes", "print_scores", "tell_interruption"]

MOST_LINES: Final = 6
"""The most runs that get a line each. More runs are summarised in a table."""

FAILED: Final = 5
"""The default number of failed tests to print."""

MAX_ROWS: Final = 20
"""The most rows of a scenario's own table to print. A longer table appears only in the report."""

MAX_NAMED: Final = 5
"""The most tests to name one by one if they have no score for the same reason."""

LAST_LINES: Final = 4
"""The number of lines to print from a failed agent's traceback or standard error."""

ONE_CONVERSATION: Final = "95% interval for this one conversation"
"""The note on an interval from a single conversation, before the advice."""

COLOURS: Final[Mapping[Tone, str | None]] = {"plain": None, "warning": "yellow"}

GAP: Final = 2
"""The number of characters between two columns of the table of scores."""


@final
class _Column(NamedTuple):
    """A column of the table of scores: its cells below the heading, and the figure for the whole run."""

    name: str
    cells: list[str]
    whole: str = ""

    @property
    def width(self) -> int:
        return GAP + max(map(cell_len, (self.name, *self.cells, self.whole)))


def print_outcome(outcome: Outcome, console: Console | None = None, failed: int = FAILED) -> None:
    """Print a run's scores, the paths of its folder and report, and where its memory lost needles.

    If the run was interrupted, the reason goes to standard error.
    """
    console = console or Console()
    closing: Sequence[Sentence] = ()
    if outcome.result is not None:
        manifest = RunFolder(outcome.folder).manifest
        print_scores(manifest, outcome.result, console)
        closing = document_run(manifest, outcome.result).closing
        print_failed(outcome.result, outcome.folder, console, failed)
    _print_interruption(outcome, console)
    for label, path in (("run", outcome.folder), ("report", outcome.folder / "report.html")):
        console.say(f"{label:8}{path}")
    for sentence in closing:
        console.print(as_line(sentence.text), style="bold")


def print_outcomes(outcomes: Sequence[Outcome], compared: Sequence[Path], console: Console | None = None) -> None:
    """Print a line for each of several runs, or a table of agents by spans for many. Then print interruptions and follow-up commands.

    `compared`: the folders to compare, runs or folders of runs.
    """
    console = console or Console()
    finished = [(outcome, outcome.result) for outcome in outcomes if outcome.result is not None]
    called = {result.measured for _, result in finished}
    intervals = [_interval(outcome.folder, result) for outcome, result in finished]
    rows = [_row(*each, whole, named=len(called) > 1) for each, whole in zip(finished, intervals, strict=True)]
    scored = any(result.searched is None for _, result in finished)
    columns = [
        name
        for name in _Row._fields
        if (name not in ("cost", "found", "stored", "recall") or any(getattr(row, name) for row in rows))
        and (name not in ("score", "interval", "chance", "failed") or scored)
    ]
    named = {
        "recall": "evidence found",
        "found": "95% interval",
        "interval": "95% interval",
        "score": as_line(next(iter(called))) if len(called) == 1 else "score",
    }
    heads = [named.get(name, name) for name in columns]
    lines = [heads, *([getattr(row, name) for name in columns] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    print_opening(document_runs(list(_find_graded(finished))), console)
    if len(rows) > MOST_LINES:
        print_table(console, _by_agent(finished))
        lines = []
    for number, line in enumerate(lines):  # the run's name comes last, so that it is never broken
        figures = "  ".join(f"{' ' * (width - cell_len(cell))}{cell}" for cell, width in zip(line[:-1], widths, strict=False))
        console.say(f"{figures}  {line[-1]}", "bold" if number == 0 else None)
    narrow = [
        RunFolder(each.folder).manifest for (each, _), found in zip(finished, intervals, strict=True) if found and found.by == "tests"
    ]
    if lines and narrow:
        console.print(f"{ONE_CONVERSATION}; {advise_generalising(narrow)}", style="dim")
    for outcome in outcomes:
        _print_interruption(outcome, console)
    if rows:
        together = compared if len(compared) <= MOST_LINES else list(dict.fromkeys(path.parent for path in compared))
        console.say(f"compare {quote_command('longspan', 'compare', *together)}")
        console.say(
            f"show    {quote_command('longspan', 'show', next(outcome.folder for outcome in outcomes if outcome.result is not None))}"
        )


def _by_agent(finished: Sequence[tuple[Outcome, Result]]) -> tables.Table:
    """Return the mean share of full marks, or of the evidence retrieved, by agent and span, best agents first."""
    shares: dict[str, dict[Column, list[float]]] = {}
    for outcome, result in finished:
        manifest = RunFolder(outcome.folder).manifest
        share = result.searched.share if result.searched is not None else result.score_bounds[0] / result.full
        shares.setdefault(manifest.labelled, {}).setdefault(Column.of(manifest), []).append(share)
    columns = sorted({column for by_column in shares.values() for column in by_column})

    def cell(found: Sequence[float]) -> str:
        return f"{format_percent(fmean(found))}{f' ({len(found)})' if len(found) > 1 else ''}" if found else ""

    best = sorted(shares, key=lambda agent: (-fmean(fmean(found) for found in shares[agent].values()), agent))
    called = short_names(best)
    rows = [[called.names[agent], *(cell(shares[agent].get(column, [])) for column in columns)] for agent in best]
    note = "Mean shares of full marks, with the number of runs in brackets. A run without a score counts with its lowest possible score."
    note = f"{note} {called.describe_omissions()}".rstrip()
    return tables.Table(title=f"{len(finished):,} runs", columns=["agent", *map(str, columns)], rows=rows, note=note)


def print_opening(said: Document, console: Console) -> int:
    """Print the sentences that come before everything else about runs. Return the number of terminal rows they fill."""
    rows = 0
    for sentence in said.opening:
        line = f"{sentence.text} {sentence.command}".rstrip()
        console.say(line, COLOURS[sentence.tone])
        rows += ceil(cell_len(line) / console.width)
    return rows


def _find_graded(finished: Sequence[tuple[Outcome, Result]]) -> Iterator[GradedRun]:
    """Yield the runs with usable results. A sweep's folder may contain results that are not."""
    for outcome, result in finished:
        with suppress(InputError):
            run = RunFolder(outcome.folder)
            if not result.ungraded and all(0 <= test.lowest <= test.highest <= 1 and 0 <= test.chance <= 1 for test in result.tests):
                yield GradedRun(run, run.manifest, result)


@final
class _Row(NamedTuple):
    """One of several runs, as strings. `recall` is the recall of its memory, and `found` the interval of its recall."""

    stored: str
    recall: str
    found: str
    score: str
    interval: str
    chance: str
    cost: str
    failed: str
    run: str


def _row(outcome: Outcome, result: Result, whole: Interval | None, *, named: bool) -> _Row:
    """Return a run's row. If `named`, the score includes the name of its measure."""
    dollars = result.cost_usd
    score = _range(result) if result.ungraded else f"{_range(result)} · {format_points(*result.score_bounds)} of {result.max_score}"
    memory, searched = result.memory, result.searched is not None
    found = None if memory is None else memory.found
    stored = next((each for each in memory.stages if each.stage == "stored"), None) if memory is not None else None
    return _Row(
        stored="" if stored is None else stored.shown,
        recall="" if found is None else f"{found.shown} among first {found.k}",
        found="" if found is None else format_interval(found.interval).strip(),
        score="" if searched else as_line(result.headline) if named else score,
        interval=format_interval(whole, whole=result.full).strip(),
        chance="" if searched else format_percent(result.chance / result.full),
        cost=f"${dollars:.4f}" if dollars is not None else "",
        failed="" if searched else f"{sum(test.score == 0 for test in result.tests)} of {len(result.tests)}",
        run=f"{outcome.folder}{'' if outcome.error is None else ' (interrupted)'}",
    )


def _interval(folder: Path, result: Result) -> Interval | None:
    if not all(0 <= test.lowest <= test.highest <= 1 for test in result.tests):  # results from a sweep's folder may be forged
        return None
    with suppress(InputError):
        return score_interval(RunFolder(folder).manifest, result.tests)
    return None


def tell_interruption(outcome: Outcome) -> None:
    """Print on standard error why a run was interrupted. Does nothing if it was not."""
    if outcome.error is not None:
        complain(f"longspan: {outcome.folder.name}: interrupted: {outcome.error}")


def _print_interruption(outcome: Outcome, console: Console) -> None:
    """Print why a run was interrupted, where to find the details, and how to resume it."""
    tell_interruption(outcome)
    if outcome.error is not None:
        if isinstance(outcome.error, AgentError):
            _print_details(RunFolder(outcome.folder), outcome.error, console)
        print_resume(outcome.folder, console)


def print_resume(folder: Path, console: Console) -> None:
    """Print the command that resumes a run."""
    trust = ["--trust"] * _needs_trust(folder)
    console.say(f"resume  {quote_command('longspan', 'resume', folder, *trust)}")


def _print_details(run: RunFolder, error: AgentError, console: Console) -> None:
    """Print the end of a failed agent's output, and the path of the rest."""
    with suppress(JournalError):
        details = next((failure.details for failure in run.failures().values() if failure.error == str(error)), "")
        if details:
            for line in pick_telling_lines(details.rstrip().splitlines(), LAST_LINES):
                console.say(f"  {line}", "dim")
            console.say(f"details {run.path / 'incidents.jsonl'}")


def _needs_trust(folder: Path) -> bool:
    """Return whether resuming a run requires --trust."""
    with suppress(InputError):
        return not is_trusted(folder, RunFolder(folder).manifest)
    return False


def print_scores(manifest: Manifest, result: Result, console: Console | None = None) -> None:
    """Print a run's scores by scenario and in total, the scenarios' own tables, the tests without a score, and the cost."""
    console = console or Console()
    said = document_run(manifest, result)
    print_opening(said, console)
    whole = score_interval(manifest, result.tests)
    title, columns = _scores(manifest, result, whole)
    room = console.width - columns[0].width + GAP
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.show_footer = len(result.scenarios) > 1
    for number, column in enumerate(columns):
        room -= column.width if number else 0
        if room >= 0:
            table.add_column(column.name, column.whole, justify="right" if number else "left", no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row[: len(table.columns)])
    console.print(as_line(title), style="bold")
    console.print(table)
    if whole is not None and whole.by == "tests":
        console.print(f"{ONE_CONVERSATION}; {advise_generalising([manifest])}", style="dim")
    _print_kinds(result, console)
    for own in result.tables:
        if len(own.rows) <= MAX_ROWS:
            print_table(console, own)
    if left := [own.title for own in result.tables if len(own.rows) > MAX_ROWS]:
        console.print(as_line(f"in the report: {', '.join(left)}"), style="dim")
    for reason, ids in _unscored_by_reason(result).items():
        for id in ids if len(ids) <= MAX_NAMED else ():
            console.say(f"{id} has no score: {reason}", "yellow")
        if len(ids) > MAX_NAMED:
            console.say(f"{len(ids):,} tests have no score: {reason}", "yellow")
    if result.interrupted:
        text = f"{result.interrupted} of {len(result.tests)} tests have no score: the run was interrupted before they ended"
        console.say(text, "yellow")
    for own in said.tables:
        print_table(console, own)
    for notice in said.notices:
        console.say(notice.text, COLOURS[notice.tone])
    for change in result.data_changes[:MAX_NAMED]:
        console.say(f"data    {change}", "dim")
    if more := len(result.data_changes) - MAX_NAMED if len(result.data_changes) > MAX_NAMED else 0:
        console.say(f"data    {more} more changes: in the report", "dim")
    for fault in result.faults[:MAX_NAMED]:
        console.say(fault, "yellow")
    for damage in result.damage:
        console.say(damage, "red")
    console.print(
        f"{as_line(result.headline)} · {result.turns:,} turns · {result.tokens:,} tokens, {result.filler_tokens:,} of them filler"
    )
    if uncounted := sum(not test.counts for test in result.tests):
        console.print(f"{uncounted:,} of {len(result.tests):,} tests are graded, but not in the score")
    for line in said.lines:
        if line.label or line.tone == "warning":
            console.say(f"{f'{line.label:8}' if line.label else ''}{line.text}", COLOURS[line.tone])
        else:
            console.print(as_line(line.text))


def _print_kinds(result: Result, console: Console) -> None:
    """Print the scores by kind of test, and the share of the evidence that was retrieved. Prints nothing if the tests have no tags."""
    if not (kinds := by_kind(result.tests)):
        return
    console.print()
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("kind", overflow="fold")
    found = common_ranks(kinds.values())
    scored = result.searched is None
    for name in (
        *(["score"] if scored else []),
        "tests",
        *(f"{'' if number else 'evidence found among '}first {k}" for number, k in enumerate(found)),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for name, kind in kinds.items():
        tests, score = kind.group.tests, kind.group.low if kind.group.std is not None else None
        counted = "" if kind.counted == tests else f" ({'' if not kind.counted else f'{tests - kind.counted:,} '}not in the score)"
        shares = [_figure(score)] if scored else []
        table.add_row(f"{as_line(name)}{counted}", *shares, f"{tests:,}", *(_figure(kind.recall.get(k)) for k in found))
    console.print(table)


def _unscored_by_reason(result: Result) -> dict[str, list[str]]:
    """Return the ids of tests that ended without a score, by reason."""
    found: dict[str, list[str]] = {}
    for test in result.tests:
        if test.status in ("unscored", "scenario_error"):
            found.setdefault(test.reason, []).append(test.id)
    return found


def _scores(manifest: Manifest, result: Result, whole: Interval | None) -> tuple[str, list[_Column]]:
    """Return the title and the columns of the table of scores, most important first. A value shared by all rows moves to the title."""
    alone = all(test.exempt == "alone" for test in result.tests)
    tests = [scenario.tests for scenario in result.scenarios.values()]
    groups = {name: [test for test in result.tests if test.scenario == name] for name in result.scenarios}
    evidence = [Distances.of(group, result.span) for group in groups.values()]
    intervals = [format_interval(score_interval(manifest, group)).strip() for group in groups.values()]
    title = f"{result.suite}{'' if alone else f' at {result.span:,} tokens'} · {manifest.labelled} · seed {result.seed}"
    same = len(set(tests)) == 1
    of_each = f" · {tests[0]} test{'s' * (tests[0] > 1)}{' of each' * (len(tests) > 1)}" if same else ""
    searched = result.searched
    if searched is not None:
        asked = EvidenceQuestions.of([(manifest, result.tests)])
        found = [asked.estimate_found(searched.k or 0, lambda test, name=name: test.scenario == name) for name in groups]  # type: ignore[misc]
        figures = [
            _Column(
                f"found among first {searched.k}",
                ["–" if each is None else format_share_range(each.low, each.high) for each in found],
                searched.shown,
            ),
            _Column(
                "95% interval",
                ["" if each is None else format_interval(each.interval).strip() for each in found],
                format_interval(searched.interval).strip(),
            ),
        ]
    else:
        figures = [
            _Column(as_line(result.measure), [_figure(scenario.score) for scenario in result.scenarios.values()], _range(result)),
            *([_Column("95% interval", intervals, format_interval(whole, whole=result.full).strip())] if whole is not None else []),
            _Column(
                "chance",
                [_figure(scenario.chance) for scenario in result.scenarios.values()],
                format_percent(result.chance / result.full),
            ),
        ]
    columns = [
        _Column("scenario", list(result.scenarios), "in total"),
        *figures,
        *([] if same else [_Column("tests", list(map(str, tests)), str(len(result.tests)))]),
        _Column("evidence distance", [found.in_tokens for found in evidence]),
        *([] if alone else [_Column("of span", [found.of_span for found in evidence])]),
    ]
    return f"{title}{of_each}", columns


def print_failed(result: Result, folder: Path, console: Console, most: int) -> None:
    """Print a line with the reason for each test that lost points, `most` at most, starting with the worst of each scenario."""
    lost = [test for test in result.tests if test.score is not None and test.score < 1]
    if not lost or not most:
        return
    failed = sum(test.score == 0 for test in lost)
    partly = f", {len(lost) - failed} partial" if len(lost) > failed else ""
    console.say(f"failed  {failed} of {len(result.tests)} tests{partly}", "bold")
    shown = _worst(lost)[:most]
    for line in describe_failed(shown, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    if more := len(lost) - len(shown):
        console.say(f"  {more} more: {quote_command('longspan', 'show', folder)}")


def describe_failed(tests: Sequence[TestResult], width: int) -> list[str]:
    """Return a line for each test, cut to `width` characters: its id, its score and the reason."""
    return _lines([(test.id, test.score, test.reason) for test in tests], width)


def by_recall(tests: Sequence[TestResult], k: int) -> list[TestResult]:
    """Sort tests by the share of their evidence that was retrieved, lowest last. Tests without evidence come first."""
    return sorted(tests, key=lambda test: -2.0 if (bounds := recall_bounds(test, k)) is None else -bounds[0])


def describe_found(tests: Sequence[TestResult], k: int, width: int) -> list[str]:
    """Return a line for each test of a memory without an answerer, cut to `width`: its id, its recall and its retrieved evidence."""
    recalls = [bounds[0] if (bounds := recall_bounds(test, k)) else None for test in tests]
    return _lines([(test.id, recall, _describe_search(test, k)) for test, recall in zip(tests, recalls, strict=True)], width)


def _describe_search(test: TestResult, k: int) -> str:
    told = [pair for pair in test.evidence if pair.retrieved is not None]
    if not told:
        return "unreported: the trace has no search results" if test.evidence else "needs no evidence"
    found = sum(pair.rank is not None and pair.rank <= k for pair in told)
    lost, unreported = sum(pair.stored is False for pair in told), len(test.evidence) - len(told)
    remarks = f"{f', {lost} not stored' if lost else ''}{f', {unreported} unreported' if unreported else ''}"
    return f"found {found} of {len(test.evidence)} needle{'s' * (len(test.evidence) > 1)}{remarks}"


def _lines(rows: Sequence[tuple[str, float | None, str]], width: int) -> list[str]:
    ids = [as_line(id) for id, _, _ in rows]
    longest = max(map(cell_len, ids), default=0)
    return [
        cut_line(f"  {id}{' ' * (longest - cell_len(id))}  {_figure(figure):>4}  {as_line(' '.join(reason.split()))}", width)
        for id, (_, figure, reason) in zip(ids, rows, strict=True)
    ]


def _worst(tests: Sequence[TestResult]) -> list[TestResult]:
    """Sort tests by score. Equal scores alternate between scenarios, so that the first few show different kinds of failure."""
    seen: Counter[tuple[str, float | None]] = Counter()
    turns = []
    for test in tests:
        seen[test.scenario, test.score] += 1
        turns.append(seen[test.scenario, test.score])
    order = sorted(range(len(tests)), key=lambda number: (tests[number].lowest, turns[number], number))
    return [tests[number] for number in order]


def _range(result: Result) -> str:
    if result.ungraded:
        return "no score"
    return format_share_range(*(bound / result.full for bound in result.score_bounds))


def _figure(value: float | None) -> str:
    return "–" if value is None else format_percent(value)
