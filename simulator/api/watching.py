"""Shows progress while a program waits for its runs: a live table on a terminal, bars in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol, final

from longspan.simulator.api.markup import escape_html
from longspan.simulator.running.planning import Plan
from longspan.simulator.running.player import RunEvent
from longspan.simulator.terminal.progress import Progress
from longspan.simulator.terminal.standings import Standing, Standings

__all__ = ["Watcher", "make_watcher"]

FIGURES: Final = ("score", "left", "cost")
"""The figures shown next to a run's bar."""

MOST: Final = 30
"""The most runs that get a bar."""


class Watcher(Protocol):
    """Shows the progress of runs. The thread that waits for the runs calls `refresh`; the thread that plays them calls the rest."""

    def begin(self, plans: Sequence[Plan]) -> None:
        """Start to watch runs."""
        ...

    def take_event(self, event: RunEvent) -> None:
        """Process the next event."""
        ...

    def end(self) -> None:
        """Stop watching."""
        ...

    def refresh(self) -> None:
        """Show the current progress."""
        ...


def make_watcher(wanted: bool | None) -> Watcher | None:
    """Return a watcher if `wanted`, else None. By default, a notebook and a terminal get one."""
    if wanted is False:
        return None
    if _in_notebook():
        return _Notebook()
    return _Terminal() if wanted or (sys.__stdout__ is not None and sys.__stdout__.isatty()) else None


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@final
class _Terminal:
    """The live table of the command line."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def begin(self, plans: Sequence[Plan]) -> None:
        self._progress = Progress(plans).__enter__()

    def take_event(self, event: RunEvent) -> None:
        if self._progress is not None:
            self._progress.take_event(event)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)

    def refresh(self) -> None:
        """Do nothing: the table refreshes itself."""


@final
class _Notebook:
    """A bar for each run, in the cell's output. Unlike the live table on a terminal, it leaves standard output alone."""

    def __init__(self) -> None:
        self._standings: Standings | None = None
        self._handle: Any = None

    def begin(self, plans: Sequence[Plan]) -> None:
        self._standings = Standings(plans)

    def take_event(self, event: RunEvent) -> None:
        if self._standings is not None:
            self._standings.take_event(event)

    def end(self) -> None:
        """Do nothing: the last `refresh` shows the end."""

    def refresh(self) -> None:
        cell: Any = import_module("IPython.display")  # Any, because IPython may not be installed when types are checked
        page = cell.HTML(self._bars())
        if self._handle is None:
            self._handle = cell.display(page, display_id=True)
        else:
            self._handle.update(page)

    def _bars(self) -> str:
        runs = list(self._standings or [])
        rows = "".join(self._row(run) for run in runs[:MOST])
        head = "".join(f"<th>{name}</th>" for name in ("run", "", "tests", *FIGURES))
        more = f"<p>{len(runs) - MOST:,} more runs</p>" if len(runs) > MOST else ""
        return f"<table><tr>{head}</tr>{rows}</table>{more}" if runs else "<p>creating the tests ...</p>"

    def _row(self, run: Standing) -> str:
        figures = run.figures()
        bar = f"<td><progress value='{run.ended}' max='{run.total}'></progress></td><td>{run.ended}/{run.total}</td>"
        return (
            f"<tr><td>{escape_html(run.name)}</td>{bar}"
            + "".join(f"<td>{escape_html(figures[figure])}</td>" for figure in FIGURES)
            + "</tr>"
        )
