"""The progress of runs in numbers, for any display."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import final

import trio

from longspan.simulator.base.address_space import free_address_space
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.play.dry_run import Length, dry_run
from longspan.simulator.results.gradebook.run_status import RunStatus
from longspan.simulator.running.planning import Plan, setting_of
from longspan.simulator.running.player import RunEvent
from longspan.simulator.running.preflight.estimate import predict_fresh_tokens
from longspan.simulator.subject.spending_record import SpendingFollower

__all__ = ["Standing", "Standings", "format_duration"]


@final
class Standings:
    """The progress of each run that has started, in the order of the plans."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._names = [plan.name for plan in plans]
        self._runs: dict[Path, Standing] = {}
        self._over = Event()

    def __iter__(self) -> Iterator[Standing]:
        return iter(sorted(self._runs.values(), key=lambda run: run.place))

    def __len__(self) -> int:
        return len(self._runs)

    def close(self) -> None:
        """End the predictions that are still being made."""
        self._over.set()

    def take_event(self, heard: RunEvent) -> tuple[Standing, bool]:
        """Process the next event of a run's conversation. Return the run, and whether a test has ended."""
        run = self._runs.get(heard.folder)
        if run is None:
            place = self._names.index(heard.plan.name) if heard.plan.name in self._names else 0
            spending = SpendingFollower(heard.folder, Owner(heard.plan.manifest.run_name))
            predict = _Prediction(heard.plan, self._over)
            status = RunStatus(heard.gradebook, cache(partial(_lengths, heard.plan)), spending.totals, predict)
            run = self._runs[heard.folder] = Standing(heard.folder.name, status, place)
        return run, run.status.add(heard.conversation, heard.change) is not None


@final
class _Prediction:
    """The fresh tokens of a run's prompts, predicted in a thread since it takes a while: playing 2,000 tokens without a model, 0.4 s."""

    def __init__(self, plan: Plan, over: Event) -> None:
        self._plan = plan
        self._over = over
        self._begun = False
        self._found: dict[str, list[int]] = {}

    def __call__(self, replies: int) -> Mapping[str, Sequence[int]]:
        if not self._begun and free_address_space() is None:  # a thread reserves address space that the run may need
            self._begun = True
            Thread(target=self._find, args=(replies,), name="longspan: predicting", daemon=True).start()
        return self._found

    def _find(self, replies: int) -> None:
        # Whatever fails here, the run goes on: its time is then estimated from the replies so far.
        with suppress(Exception):
            self._found = trio.run(predict_fresh_tokens, self._plan, replies, self._over.is_set)


@final
class Standing:
    """The progress of a run."""

    def __init__(self, name: str, status: RunStatus, place: int) -> None:
        self.name = name
        self.status = status
        self.place = place
        self._tenths = 0
        self._answered = False
        self._began = monotonic()
        self._took: float | None = None

    @property
    def ended(self) -> int:
        return self.status.ended

    @property
    def total(self) -> int:
        return self.status.total

    @property
    def done(self) -> bool:
        """Whether all tests and experiments of the run have ended."""
        return self.ended == self.total and self.status.experiments_ended == self.status.experiments

    def first_reply(self, change: Change) -> bool:
        """Return whether a change is the run's first reply, which proves that its agent answers."""
        first = isinstance(change, PlayedTurn) and change.reply is not None and not self._answered
        self._answered = self._answered or first
        return first

    def milestone(self) -> bool:
        """Return whether another tenth of the tests has ended since the last call."""
        tenths = 10 * self.ended // self.total
        new, self._tenths = tenths > self._tenths, tenths
        return new

    @property
    def elapsed(self) -> float:
        """The seconds from the start of the run until now, or until it was done."""
        if self._took is None and self.done:
            self._took = monotonic() - self._began
        return monotonic() - self._began if self._took is None else self._took

    def figures(self) -> dict[str, str]:
        """The figures for the table, as text. The score is the mean over scenarios that have one so far."""
        figures = self.status.figures()
        known = figures.share is not None and figures.left is not None
        again = f" + {self.status.experiments_ended}/{self.status.experiments}" if self.status.experiments else ""
        return {
            "tests": f"{self.ended}/{self.total}{again}",
            "done": f"{figures.share:.0%}" if figures.share is not None else "",
            "elapsed": format_duration(self.elapsed),
            "left": format_duration(figures.left) if known and figures.left is not None else "",
            "cost": ""
            if not figures.used
            else f"${figures.cost:.4f}"
            if figures.cost is not None
            else f"{format_tokens(figures.model_tokens)} tok",
            "turn": f"{figures.turns:,}",
            "tokens": f"{figures.tokens:,}",
            "virtual time": f"{figures.now:%a %d %b %H:%M}" if figures.now is not None else "",
            "open": str(figures.open),
            "score": format_percent(figures.score / figures.scenarios) if figures.scenarios else "",
        }

    def line(self) -> str:
        """The figures as one line."""
        shown = self.figures()
        far = f"{shown['done']} done, " * bool(shown["done"]) + f"about {shown['left']} left, " * bool(shown["left"])
        time = f"after {shown['elapsed']}, " * (self.elapsed >= 1)
        cost = f"{shown['cost']}, " * bool(shown["cost"])
        spoken = f"turn {shown['turn']}, {shown['tokens']} tokens, virtual time {shown['virtual time']}"
        score = f", score so far {shown['score']}" * bool(shown["score"])
        return f"{shown['tests']} tests, {time}{far}{cost}{spoken}{score}"


def _lengths(plan: Plan) -> dict[str, Length]:
    """Return the lengths of a run's conversations by id."""
    return {id: dry_run(setting_of(plan.manifest, id), tests) for id, tests in plan.tests.items()}


def format_duration(seconds: float) -> str:
    """Format a duration in its largest unit: `40 s`, `12 min`, `1.5 h`, `2.3 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600)):
        if round(seconds / size, 1) >= 1:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if round(seconds) >= 60 else f"{seconds:.0f} s"
