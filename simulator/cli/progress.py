"""A run at the terminal: its progress while it plays, and its scores afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Final, final

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table

from longspan.simulator.analysis.distances import Distances
from longspan.simulator.cli.console import Console
from longspan.simulator.cli.tables import print_table
from longspan.simulator.dry_run import Length, dry_run
from longspan.simulator.errors import AgentError, InputError
from longspan.simulator.gate import is_trusted
from longspan.simulator.grading.grades import Result
from longspan.simulator.grading.run_status import RunStatus
from longspan.simulator.planning import Plan, setting_of
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import Outcome, RunEvent
from longspan.simulator.terminal import as_line, complain

__all__ = ["Progress", "print_outcome", "print_scores", "tell_interruption"]

FIGURES: Final = {"done": 68, "left": 77, "turn": 85, "tokens": 61, "virtual time": 111, "open": 92, "score so far": 0}
"""Columns of the live table, each with the least width of the terminal at which it is shown."""

MAX_ROWS: Final = 20
"""Rows of a scenario's own table. A longer one is only in the report."""

MARGIN: Final = 2
GAP: Final = 3
"""Characters around the live table, and between two of its columns."""


@final
class Progress:
    """Live progress of several runs: how far, time left, turn, tokens, virtual time, open tests, score so far.

    On a terminal it is a live table. Elsewhere it is a line when a run starts, and one for each tenth of its tests.
    Nothing is shown when a person is the agent: they use the terminal, and must not see their score yet.
    """

    def __init__(self, plans: Sequence[Plan], console: Console | None = None) -> None:
        self._console = console or Console()
        self._plans = list(plans)
        self._quiet = any(plan.agent.kind == "human" for plan in plans)
        self._live_table = self._console.is_terminal and bool(plans) and not self._quiet
        self._runs: dict[Path, _Run] = {}
        self._live = Live(console=self._console, get_renderable=self._table, refresh_per_second=8, transient=True)

    def __enter__(self) -> Progress:
        notes: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for plan in self._plans:
            late = f"the form of {', '.join(plan.manifest.late)} forbids early placement"
            for line in [*plan.manifest.left_out, *([late] if plan.manifest.late else [])]:
                what, _, why = line.partition(": ")
                notes[what].append((plan.name, why and f": {why}"))
        for what, runs in notes.items():
            name, why = runs[0]
            line = f"{name}: {what}{why}" if len(runs) == 1 else f"{len(runs)} runs: {what}{why and f'; for {name}{why}'}"
            self._console.print(as_line(line), style="yellow", soft_wrap=not self._console.is_terminal)
        if self._live_table:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live_table:
            self._live.stop()

    def heard(self, heard: RunEvent) -> None:
        """Take the next event of a run's conversation. A closed terminal does not stop the run."""
        if self._quiet:
            return
        try:
            self._heard(heard)
        except (OSError, SystemExit):  # rich exits when a pipe is closed
            self._quiet = True

    def _heard(self, heard: RunEvent) -> None:
        run = self._runs.get(heard.folder)
        if run is None:
            place = next((n for n, plan in enumerate(self._plans) if plan.name == heard.plan.name), 0)
            run = self._runs[heard.folder] = _Run(
                heard.folder.name, RunStatus(heard.gradebook, cache(partial(_lengths, heard.plan))), place
            )
            if not self._console.is_terminal:
                self._console.say(f"{run.name}: {run.total} tests to play")
        ended = run.status.add(heard.conversation, heard.change)
        if ended is not None and not self._console.is_terminal and run.milestone():
            self._console.say(f"{run.name}: {run.line()}")

    def _table(self) -> RenderableType:
        shown, hidden = self._shown()
        fitting = ["tests", *(name for name, width in FIGURES.items() if self._console.width >= width)]
        rows = [{"tests": f"{run.ended}/{run.total}"} | dict(zip(FIGURES, run.figures(), strict=True)) for run in shown]
        room = self._console.width - MARGIN - sum(GAP + max([len(name), *(len(row[name]) for row in rows)]) for name in fitting)
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("run", no_wrap=True, min_width=min(24, room))
        for name in fitting:
            table.add_column(name, justify="right", no_wrap=True)
        for run, row in zip(shown, rows, strict=True):
            table.add_row(_cut(run.name, room), *(row[name] for name in fitting))  # rich would cut the figures too
        if hidden:
            done = sum(run.done for run in hidden)
            table.caption = f"{len(hidden)} more runs, {done} finished"
            table.caption_justify = "left"
        return table if self._runs else "creating the tests ..."

    def _shown(self) -> tuple[list[_Run], list[_Run]]:
        """The runs that fit on the terminal, unfinished ones first, and the rest."""
        room = max(3, self._console.height - 6)
        runs = sorted(self._runs.values(), key=lambda run: (run.done, run.place))
        if len(runs) <= room:
            return sorted(runs, key=lambda run: run.place), []
        return sorted(runs[: room - 1], key=lambda run: run.place), runs[room - 1 :]


@final
class _Run:
    """One row of the table."""

    def __init__(self, name: str, status: RunStatus, place: int) -> None:
        self.name = name
        self.status = status
        self.place = place
        self._tenths = 0

    @property
    def ended(self) -> int:
        return self.status.ended

    @property
    def total(self) -> int:
        return self.status.total

    @property
    def done(self) -> bool:
        """Whether all its tests have ended."""
        return self.ended == self.total

    def milestone(self) -> bool:
        """Whether another tenth of the tests has ended."""
        tenths = 10 * self.ended // self.total
        new, self._tenths = tenths > self._tenths, tenths
        return new

    def figures(self) -> list[str]:
        """The share played, time left, turn, tokens, virtual time, open tests, and the score so far of the scenarios that have one."""
        figures = self.status.figures()
        return [
            f"{figures.share:.0%}" if figures.share is not None else "",
            _duration(figures.left) if figures.share is not None and figures.left is not None else "",
            f"{figures.turns:,}",
            f"{figures.tokens:,}",
            f"{figures.now:%a %d %b %H:%M}" if figures.now is not None else "",
            str(figures.open),
            f"{figures.score:.2f} of {figures.scenarios}",
        ]

    def line(self) -> str:
        """The same figures in one line."""
        done, left, turn, tokens, now, _, score = self.figures()
        far = f"{done} done, " * bool(done) + f"about {left} left, " * bool(left)
        return f"{self.ended}/{self.total} tests, {far}turn {turn}, {tokens} tokens, {now}, score so far {score}"


def _lengths(plan: Plan) -> dict[str, Length]:
    """Return the lengths of a run's conversations by id."""
    return {id: dry_run(setting_of(plan.manifest, id), tests) for id, tests in plan.tests.items()}


def _duration(seconds: float) -> str:
    """Return a time to wait in its largest unit: `40 s`, `12 min`, `1.5 h`, `2.3 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600)):
        if round(seconds / size, 1) >= 1:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if round(seconds) >= 60 else f"{seconds:.0f} s"


def _cut(name: str, room: int) -> str:
    """A run's name cut to `room` characters. Its end, which has the seed, is kept."""
    return name if len(name) <= room else f"{name[: max(1, room - 9)]}…{name[-8:]}"


def print_outcome(outcome: Outcome, console: Console | None = None) -> None:
    """Print a run's scores and the paths of its folder and report. Why it was interrupted goes to standard error."""
    console = console or Console()
    if outcome.result is not None:
        print_scores(outcome.result, console)
    if outcome.error is not None:
        tell_interruption(outcome)
        if isinstance(outcome.error, AgentError) and outcome.error.__cause__ is not None:
            console.say(f"details {outcome.folder / 'incidents.jsonl'}")
        code = " --trust" if _needs_trust(outcome.folder) else ""
        console.say(f"resume  longspan resume {outcome.folder}{code}")
    for label, path in (("run", outcome.folder), ("report", outcome.folder / "report.html")):
        console.say(f"{label:8}{path}")


def tell_interruption(outcome: Outcome) -> None:
    """Print why a run was interrupted on standard error. Does nothing if it was not."""
    if outcome.error is not None:
        complain(f"longspan: {outcome.folder.name}: interrupted: {outcome.error}")


def _needs_trust(folder: Path) -> bool:
    """Return whether resuming a run asks for --trust."""
    with suppress(InputError):
        return not is_trusted(folder, RunFolder(folder).manifest)
    return False


def print_scores(result: Result, console: Console | None = None) -> None:
    """Print a run's scores by scenario, its scenarios' own tables, and the total."""
    console = console or Console()
    span = "" if all(test.exempt == "alone" for test in result.tests) else f" at {result.span:,} tokens"
    title = as_line(f"{result.suite}{span} · {result.agent} · seed {result.seed}")
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scenario")
    for column in ("score", "std", "chance", "tests", "evidence distance", *(["of span"] if span else [])):
        table.add_column(column, justify="right")
    for name, scenario in result.scenarios.items():
        evidence = Distances.of([test for test in result.tests if test.scenario == name], result.span)
        table.add_row(
            name,
            _figure(scenario.score),
            _figure(scenario.std),
            _figure(scenario.chance),
            str(scenario.tests),
            evidence.in_tokens,
            *([evidence.of_span] if span else []),
        )
    console.print(table)
    for own in result.tables:
        if len(own.rows) <= MAX_ROWS:
            print_table(console, own)
    if left := [own.title for own in result.tables if len(own.rows) > MAX_ROWS]:
        console.print(as_line(f"in the report: {', '.join(left)}"), style="dim")
    for test in result.tests:
        if test.status in ("unscored", "scenario_error"):
            console.say(f"{test.id} has no score: {test.reason}", "yellow")
    if unfinished := sum(test.status in ("unfinished", "agent_error") for test in result.tests):
        text = f"{unfinished} of {len(result.tests)} tests have no score: the conversation ended before they did"
        console.print(text, style="yellow")
    if result.refused:
        console.say(result.refused_sentence, "yellow")
    for sentence in result.damage:
        console.say(sentence, "red")
    low, high = result.score_bounds
    total = f"{result.score:.2f}" if result.score is not None else f"between {low:.2f} and {high:.2f}"
    console.print(
        f"score {total} of {result.max_score} · {result.turns:,} turns · {result.tokens:,} tokens, {result.filler_tokens:,} of them filler"
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
