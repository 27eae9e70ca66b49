"""Shows the progress of runs in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from threading import Event, Thread
from types import TracebackType
from typing import Final, final

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table

from longspan.simulator.base.address_space import free_address_space
from longspan.simulator.base.terminal import as_line, prints_to_terminal
from longspan.simulator.running.planning import Plan
from longspan.simulator.running.player import RunEvent
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.standings import Standing, Standings

__all__ = ["Progress"]

FIGURES: Final = {
    "tests": 7,
    "score": 10,
    "left": 6,
    "elapsed": 7,
    "cost": 8,
    "turn": 4,
    "done": 4,
    "tokens": 9,
    "open": 4,
    "virtual time": 16,
}
"""The columns of the live table with their widths in characters, most important first. A narrow terminal shows only the first few."""

ORDER: Final = ("tests", "done", "elapsed", "left", "cost", "turn", "tokens", "virtual time", "open", "score")
"""The columns of the live table from left to right."""

NAME: Final = 18
"""The minimum width of a run's name in characters."""

EVERY: Final = 60.0
"""The most seconds without a line if there is no terminal."""

MARGIN: Final = 2
GAP: Final = 3
"""The number of characters around the live table (MARGIN), and between two of its columns (GAP)."""


@final
class Progress:
    """Live progress of several runs, on standard error: tests, share done, time, cost, turn, tokens, virtual time, open tests, score.

    A terminal shows a live table. Other outputs get a line when a run starts, for each tenth of its tests, and each minute. If a person is
    the agent, nothing is shown: they use the terminal, and must not see their score yet.
    """

    def __init__(self, plans: Sequence[Plan], console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._plans = list(plans)
        self._quiet = any(plan.agent.kind == "human" for plan in plans)
        self._live_table = self._console.is_terminal and bool(plans) and not self._quiet
        self.standings: Final = Standings(plans)
        self._said = 0
        self._over = Event()
        self._ticking = Thread(target=self._tick, name="longspan: progress", daemon=True)
        # Redirect standard output above the live table only if both share the terminal. Output to a pipe or a file must go there.
        shared = prints_to_terminal()
        self._live = Live(console=self._console, get_renderable=self.table, refresh_per_second=8, transient=True, redirect_stdout=shared)

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
        elif self._plans and not self._quiet and not self._console.is_terminal and free_address_space() is None:
            self._ticking.start()  # not with limited memory: a thread reserves address space that the run may need
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live_table:
            self._live.stop()
        self._over.set()
        self.standings.close()
        if self._ticking.is_alive():
            self._ticking.join()

    def _tick(self) -> None:
        """After each minute without a line, print how far the unfinished runs are, even while a reply is pending."""
        said = 0
        while not self._over.wait(EVERY):
            if said == self._said and not self._quiet:
                try:
                    for run in self.standings:
                        if not run.done:
                            self._say(f"{run.name}: {run.line()}")
                except (OSError, SystemExit):  # Rich exits when a pipe is closed
                    self._quiet = True
            said = self._said

    def _say(self, line: str) -> None:
        self._said += 1
        self._console.say(line)

    def take_event(self, heard: RunEvent) -> None:
        """Process the next event of a run's conversation. A closed terminal does not stop the run."""
        if self._quiet:
            return
        try:
            self._take_event(heard)
        except (OSError, SystemExit):  # Rich exits when a pipe is closed
            self._quiet = True

    def _take_event(self, heard: RunEvent) -> None:
        run, ended = self.standings.take_event(heard)
        if self._console.is_terminal:
            return
        if run.first_reply(heard.change):
            besides = f", and {count} experiment{'s' * (count != 1)}" if (count := run.status.experiments) else ""
            self._say(f"{run.name}: {run.total} {'test' if run.total == 1 else 'tests'} to play{besides}")
        if ended and run.milestone():
            self._say(f"{run.name}: {run.line()}")

    def table(self) -> RenderableType:
        """Return the current table."""
        shown, hidden = self._split_shown()
        rows = [run.figures() for run in shown]
        room = self._console.width - MARGIN - NAME
        fitting = []
        for name, width in FIGURES.items():
            wanted = GAP + max([width, len(name), *(len(row[name]) for row in rows)])
            if name == "cost" and not any(row["cost"] for row in rows):
                continue
            if room < wanted:
                break
            room -= wanted
            fitting.append(name)
        room += NAME
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("run", no_wrap=True, min_width=min(24, room))
        columns = [name for name in ORDER if name in fitting]
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        for run, row in zip(shown, rows, strict=True):
            table.add_row(_cut(run.name, room), *(row[name] for name in columns))  # cut here: Rich would cut the figures too
        if hidden:
            done = sum(run.done for run in hidden)
            table.caption = f"{len(hidden)} more runs, {done} finished"
            table.caption_justify = "left"
        return table if self.standings else "creating the tests ..."

    def _split_shown(self) -> tuple[list[Standing], list[Standing]]:
        """Return the runs that fit on the terminal, unfinished ones first, and the other runs."""
        room = max(3, self._console.height - 6)
        runs = sorted(self.standings, key=lambda run: (run.done, run.place))
        if len(runs) <= room:
            return list(self.standings), []
        return sorted(runs[: room - 1], key=lambda run: run.place), runs[room - 1 :]


def _cut(name: str, room: int) -> str:
    """Cut a run's name to `room` characters. The end is kept, because it has the seed."""
    return name if len(name) <= room else f"{name[: max(1, room - 9)]}…{name[-8:]}"
