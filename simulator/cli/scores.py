"""The summary printed after runs have been played: scores, cost, failures, and where to find everything."""

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

from longspan.simulator.analysis.distances import Distances
from longspan.simulator.analysis.stages import EvidenceQuestions, recall_bounds
from longspan.simulator.analysis.statistics import Interval
from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.base import tables
from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.document import Document, Sentence, Tone
from longspan.simulator.base.errors import AgentError, InputError, JournalError
from longspan.simulator.base.shares import between, percent, points, spanned
from longspan.simulator.base.terminal import as_line, complain, typed
from longspan.simulator.cli.console import Console
from longspan.simulator.cli.printed_tables import cut, print_table
from longspan.simulator.measures import listed, shown
from longspan.simulator.measures.kinds import by_kind, places
from longspan.simulator.report.summary import score_interval
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.result import Result, TestResult
from longspan.simulator.running.player import Outcome
from longspan.simulator.subject.agent_log import telling
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import is_trusted

__all__ = ["FAILED", "print_opening", "print_outcome", "print_outcomes", "print_scores", "tell_interruption"]

MOST_LINES: Final = 6
"""The most runs that have a line each."""

FAILED: Final = 5
"""The number of failed tests that are printed by default."""

MAX_ROWS: Final = 20
"""The most rows printed of a scenario's own table. A longer table is only in the report."""

MAX_NAMED: Final = 5
"""The most tests that are named individually if they have no score for the same reason."""

LAST_LINES: Final = 4
"""The number of lines printed from a failed agent's traceback or standard error."""

ONE_CONVERSATION: Final = "95% interval: it says nothing about other conversations; more seeds would"
"""The note on an interval from a single conversation."""

COLOURS: Final[Mapping[Tone, str | None]] = {"plain": None, "warning": "yellow"}

GAP: Final = 2
"""The number of characters between two columns of the table of scores."""


@final
class _Column(NamedTuple):
    """A column of the table of scores: its cells below the head, and the figure for the whole run."""

    name: str
    cells: list[str]
    whole: str = ""

    @property
    def width(self) -> int:
        return GAP + max(map(cell_len, (self.name, *self.cells, self.whole)))


def print_outcome(outcome: Outcome, console: Console | None = None, failed: int = FAILED) -> None:
    """Print a run's scores, the paths of its folder and report, and where its memory lost needles. If the run was interrupted, the reason
    goes to standard error."""
    console = console or Console()
    closing: Sequence[Sentence] = ()
    if outcome.result is not None:
        manifest = RunFolder(outcome.folder).manifest
        print_scores(manifest, outcome.result, console)
        closing = shown(manifest, outcome.result).closing
        print_failed(outcome.result, outcome.folder, console, failed)
    _print_interruption(outcome, console)
    for label, path in (("run", outcome.folder), ("report", outcome.folder / "report.html")):
        console.say(f"{label:8}{path}")
    for sentence in closing:
        console.print(as_line(sentence.text), style="bold")


def print_outcomes(outcomes: Sequence[Outcome], compared: Sequence[Path], console: Console | None = None) -> None:
    """Print a line for each of several runs, or a table of agents by spans if they are many; then reasons for interruptions, and commands
    to compare and show the runs.

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
    print_opening(listed(list(_graded(finished))), console)
    if len(rows) > MOST_LINES:
        print_table(console, _by_agent(finished))
        lines = []
    for number, line in enumerate(lines):  # the run comes last, so that its name is never broken
        figures = "  ".join(f"{' ' * (width - cell_len(cell))}{cell}" for cell, width in zip(line[:-1], widths, strict=False))
        console.say(f"{figures}  {line[-1]}", "bold" if number == 0 else None)
    if lines and any(found is not None and found.by == "tests" for found in intervals):
        console.print(ONE_CONVERSATION, style="dim")
    for outcome in outcomes:
        _print_interruption(outcome, console)
    if rows:
        together = compared if len(compared) <= MOST_LINES else list(dict.fromkeys(path.parent for path in compared))
        console.say(f"compare {typed('longspan', 'compare', *together)}")
        console.say(f"show    {typed('longspan', 'show', next(outcome.folder for outcome in outcomes if outcome.result is not None))}")


def _by_agent(finished: Sequence[tuple[Outcome, Result]]) -> tables.Table:
    """Return the mean share of full marks, or of the evidence found, by agent and span, best agents first."""
    shares: dict[str, dict[Column, list[float]]] = {}
    for outcome, result in finished:
        manifest = RunFolder(outcome.folder).manifest
        share = result.searched.share if result.searched is not None else result.score_bounds[0] / result.full
        shares.setdefault(manifest.labelled, {}).setdefault(Column.of(manifest), []).append(share)
    columns = sorted({column for by_column in shares.values() for column in by_column})

    def cell(found: Sequence[float]) -> str:
        return f"{percent(fmean(found))}{f' ({len(found)})' if len(found) > 1 else ''}" if found else ""

    best = sorted(shares, key=lambda agent: (-fmean(fmean(found) for found in shares[agent].values()), agent))
    called = short_names(best)
    rows = [[called.names[agent], *(cell(shares[agent].get(column, [])) for column in columns)] for agent in best]
    note = "Mean shares of full marks, and in brackets of how many runs; of a run without a score, the least that is possible."
    note = f"{note} {called.told()}".rstrip()
    return tables.Table(title=f"{len(finished):,} runs", columns=["agent", *map(str, columns)], rows=rows, note=note)


def print_opening(said: Document, console: Console) -> int:
    """Print the sentences that come before everything else about runs. Return how many rows of the terminal they fill."""
    rows = 0
    for sentence in said.opening:
        line = f"{sentence.text} {sentence.command}".rstrip()
        console.say(line, COLOURS[sentence.tone])
        rows += ceil(cell_len(line) / console.width)
    return rows


def _graded(finished: Sequence[tuple[Outcome, Result]]) -> Iterator[Graded]:
    """Yield the runs whose results can be used: of a sweep's folder they may not be."""
    for outcome, result in finished:
        with suppress(InputError):
            run = RunFolder(outcome.folder)
            if not result.ungraded and all(0 <= test.lowest <= test.highest <= 1 and 0 <= test.chance <= 1 for test in result.tests):
                yield Graded(run, run.manifest, result)


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
    score = _range(result) if result.ungraded else f"{_range(result)} · {points(*result.score_bounds)} of {result.max_score}"
    memory, searched = result.memory, result.searched is not None
    found = None if memory is None else memory.found
    stored = next((each for each in memory.stages if each.stage == "stored"), None) if memory is not None else None
    return _Row(
        stored="" if stored is None else stored.shown,
        recall="" if found is None else f"{found.shown} among first {found.k}",
        found="" if found is None else between(found.interval).strip(),
        score="" if searched else as_line(result.headline) if named else score,
        interval=between(whole, whole=result.full).strip(),
        chance="" if searched else percent(result.chance / result.full),
        cost=f"${dollars:.4f}" if dollars is not None else "",
        failed="" if searched else f"{sum(test.score == 0 for test in result.tests)} of {len(result.tests)}",
        run=f"{outcome.folder}{'' if outcome.error is None else ' (interrupted)'}",
    )


def _interval(folder: Path, result: Result) -> Interval | None:
    if not all(0 <= test.lowest <= test.highest <= 1 for test in result.tests):  # read from a sweep's folder, which may be forged
        return None
    with suppress(InputError):
        return score_interval(RunFolder(folder).manifest, result.tests)
    return None


def tell_interruption(outcome: Outcome) -> None:
    """Print the reason for a run's interruption on standard error. Does nothing if it was not interrupted."""
    if outcome.error is not None:
        complain(f"longspan: {outcome.folder.name}: interrupted: {outcome.error}")


def _print_interruption(outcome: Outcome, console: Console) -> None:
    """Print why a run was interrupted, where to find the details, and how to resume it."""
    tell_interruption(outcome)
    if outcome.error is not None:
        if isinstance(outcome.error, AgentError):
            _print_details(RunFolder(outcome.folder), outcome.error, console)
        trust = ["--trust"] * _needs_trust(outcome.folder)
        console.say(f"resume  {typed('longspan', 'resume', outcome.folder, *trust)}")


def _print_details(run: RunFolder, error: AgentError, console: Console) -> None:
    """Print the end of a failed agent's output, and where the rest is."""
    with suppress(JournalError):
        details = next((failure.details for failure in run.failures().values() if failure.error == str(error)), "")
        if details:
            for line in telling(details.rstrip().splitlines(), LAST_LINES):
                console.say(f"  {line}", "dim")
            console.say(f"details {run.path / 'incidents.jsonl'}")


def _needs_trust(folder: Path) -> bool:
    """Return whether resuming a run asks for --trust."""
    with suppress(InputError):
        return not is_trusted(folder, RunFolder(folder).manifest)
    return False


def print_scores(manifest: Manifest, result: Result, console: Console | None = None) -> None:
    """Print a run's scores by scenario and in total, its scenarios' own tables, the tests without a score, and the cost."""
    console = console or Console()
    said = shown(manifest, result)
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
        console.print(ONE_CONVERSATION, style="dim")
    _print_kinds(result, console)
    for own in result.tables:
        if len(own.rows) <= MAX_ROWS:
            print_table(console, own)
    if left := [own.title for own in result.tables if len(own.rows) > MAX_ROWS]:
        console.print(as_line(f"in the report: {', '.join(left)}"), style="dim")
    for reason, ids in _unscored(result).items():
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
    """Print the scores by kind of test, and the share of the evidence that was found, if the tests have tags."""
    if not (kinds := by_kind(result.tests)):
        return
    console.print()
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("kind", overflow="fold")
    found = places(kinds.values())
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


def _unscored(result: Result) -> dict[str, list[str]]:
    """Return the ids of tests that ended without a score, by reason."""
    found: dict[str, list[str]] = {}
    for test in result.tests:
        if test.status in ("unscored", "scenario_error"):
            found.setdefault(test.reason, []).append(test.id)
    return found


def _scores(manifest: Manifest, result: Result, whole: Interval | None) -> tuple[str, list[_Column]]:
    """Return the title and the columns of the table of scores, most important first. A value shared by all rows goes into the title."""
    alone = all(test.exempt == "alone" for test in result.tests)
    tests = [scenario.tests for scenario in result.scenarios.values()]
    groups = {name: [test for test in result.tests if test.scenario == name] for name in result.scenarios}
    evidence = [Distances.of(group, result.span) for group in groups.values()]
    intervals = [between(score_interval(manifest, group)).strip() for group in groups.values()]
    title = f"{result.suite}{'' if alone else f' at {result.span:,} tokens'} · {manifest.labelled} · seed {result.seed}"
    same = len(set(tests)) == 1
    of_each = f" · {tests[0]} test{'s' * (tests[0] > 1)}{' of each' * (len(tests) > 1)}" if same else ""
    searched = result.searched
    if searched is not None:
        asked = EvidenceQuestions.of([(manifest, result.tests)])
        found = [asked.found(searched.k or 0, lambda test, name=name: test.scenario == name) for name in groups]  # type: ignore[misc]
        figures = [
            _Column(
                f"found among first {searched.k}",
                ["–" if each is None else spanned(each.low, each.high) for each in found],
                searched.shown,
            ),
            _Column(
                "95% interval",
                ["" if each is None else between(each.interval).strip() for each in found],
                between(searched.interval).strip(),
            ),
        ]
    else:
        figures = [
            _Column(as_line(result.measure), [_figure(scenario.score) for scenario in result.scenarios.values()], _range(result)),
            *([_Column("95% interval", intervals, between(whole, whole=result.full).strip())] if whole is not None else []),
            _Column(
                "chance",
                [_figure(scenario.chance) for scenario in result.scenarios.values()],
                percent(result.chance / result.full),
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
    """Print a line with the reason for each of at most `most` tests that lost points, the worst of each scenario first."""
    lost = [test for test in result.tests if test.score is not None and test.score < 1]
    if not lost or not most:
        return
    failed = sum(test.score == 0 for test in lost)
    partly = f", {len(lost) - failed} in part" if len(lost) > failed else ""
    console.say(f"failed  {failed} of {len(result.tests)} tests{partly}", "bold")
    shown = _worst(lost)[:most]
    for line in failed_lines(shown, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    if more := len(lost) - len(shown):
        console.say(f"  {more} more: {typed('longspan', 'show', folder)}")


def failed_lines(tests: Sequence[TestResult], width: int) -> list[str]:
    """Return a line of at most `width` characters for each test: its id, its score and the reason."""
    return _lines([(test.id, test.score, test.reason) for test in tests], width)


def by_recall(tests: Sequence[TestResult], k: int) -> list[TestResult]:
    """Sort tests by how much of their evidence was found, least last. Tests without evidence come first."""
    return sorted(tests, key=lambda test: -2.0 if (bounds := recall_bounds(test, k)) is None else -bounds[0])


def found_lines(tests: Sequence[TestResult], k: int, width: int) -> list[str]:
    """Return a line of at most `width` characters for each test of a memory that only searched: its id, recall and what was found."""
    recalls = [bounds[0] if (bounds := recall_bounds(test, k)) else None for test in tests]
    return _lines([(test.id, recall, _found(test, k)) for test, recall in zip(tests, recalls, strict=True)], width)


def _found(test: TestResult, k: int) -> str:
    told = [pair for pair in test.evidence if pair.retrieved is not None]
    if not told:
        return "the agent does not tell what it found" if test.evidence else "it needs nothing that was told"
    found = sum(pair.rank is not None and pair.rank <= k for pair in told)
    lost, unreported = sum(pair.stored is False for pair in told), len(test.evidence) - len(told)
    remarks = f"{f', {lost} not stored' if lost else ''}{f', {unreported} unreported' if unreported else ''}"
    return f"found {found} of {len(test.evidence)} needle{'s' * (len(test.evidence) > 1)}{remarks}"


def _lines(rows: Sequence[tuple[str, float | None, str]], width: int) -> list[str]:
    ids = [as_line(id) for id, _, _ in rows]
    longest = max(map(cell_len, ids), default=0)
    return [
        cut(f"  {id}{' ' * (longest - cell_len(id))}  {_figure(figure):>4}  {as_line(' '.join(reason.split()))}", width)
        for id, (_, figure, reason) in zip(ids, rows, strict=True)
    ]


def _worst(tests: Sequence[TestResult]) -> list[TestResult]:
    """Sort tests by score. Tests with the same score alternate between scenarios, so that the first few show all ways to fail."""
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
    return spanned(*(bound / result.full for bound in result.score_bounds))


def _figure(value: float | None) -> str:
    return "–" if value is None else percent(value)
