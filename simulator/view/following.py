"""Following runs while they are played: their journals are read as they grow, once for all who look on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

import trio

from longspan.simulator.errors import LongspanError, one_line
from longspan.simulator.grading.grades import Gradebook
from longspan.simulator.grading.run_status import EndedTest, RunProgress, RunStatus
from longspan.simulator.journal_tail import MAX_LINES, JournalTail
from longspan.simulator.plugins import installed_scenarios
from longspan.simulator.report.excerpts import EXCERPT, visible
from longspan.simulator.report.reading import Turn
from longspan.simulator.report.timeline import grade_of
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.transcript import Change, PlayedTest
from longspan.simulator.transcript import Turn as Folded
from longspan.simulator.view.run_list import has_results

__all__ = ["Followed", "Followers", "News"]

EVERY: Final = 0.25
"""Seconds between two looks at the journals."""

KEPT: Final = 300
"""Turns that are kept for those who come later or read slowly."""


@final
class News(NamedTuple):
    """Something that happened, as JSON."""

    kind: str
    data: str


@final
class Followed:
    """A run that somebody follows.

    `tests`: news of tests that opened or ended. `count`: how many turns were told of, the last of which are kept.
    `status`: where the run is now, as JSON. `damage`: why it can be followed no further.
    """

    def __init__(self, run: RunFolder) -> None:
        self.tests: list[News] = []
        self.count = 0
        self.status = ""
        self.damage: News | None = None
        self._run = run
        self._turns: deque[News] = deque(maxlen=KEPT)
        self._changed = trio.Event()
        self._pending: dict[str, Folded] = {}  # by conversation, the message that has no reply yet
        self._told: set[str] = set()  # the conversations whose pending message was told

    def turns(self, number: int) -> list[News]:
        """The turns after the first `number`, as far as they are kept."""
        new = min(len(self._turns), self.count - number)
        return list(self._turns)[len(self._turns) - new :]

    async def changes(self) -> None:
        """Wait until there is something new."""
        await self._changed.wait()

    async def follow(self) -> None:
        """Read the journals as they grow, until cancelled or until one is damaged."""
        try:
            await self._follow()
        except Exception as error:  # the files are anybody's: whatever they lead to is theirs
            why = str(error) if isinstance(error, LongspanError) else one_line(error)
            self.damage = _news("damaged", why=visible(why))
            self._wake()

    async def _follow(self) -> None:
        tails = {id: JournalTail(self._run.journal(id)) for id in self._run.manifest.conversations}
        manifest = self._run.manifest
        gradebook = Gradebook(manifest, installed_scenarios(manifest.suite.scenarios))  # a scenario that is code is not run for this
        status = RunStatus(gradebook)
        figures = _json(status.figures())
        while True:
            most = 0
            for id, tail in tails.items():
                found = tail.read()
                most = max(most, len(found))
                for event in found:
                    change = gradebook.add(id, event)
                    self._heard(id, change, status.add(id, change))
                await trio.lowlevel.checkpoint()
            if most < MAX_LINES:
                self._tell_pending()
            if most:
                figures = _json(status.figures())
            self._is_at(json.dumps(figures | {"results": has_results(self._run)}))
            await trio.sleep(EVERY if most < MAX_LINES else 0)

    def _heard(self, id: str, change: Change, ended: EndedTest | None) -> None:
        match change:
            case PlayedTest(status="open"):
                self._tests_change(_news("test", id=change.id, grade="open", score=None, reason=""))
            case Folded(reply=None):
                self._told.discard(id)
                self._pending[id] = change
            case Folded():
                del self._pending[id]
                self._tell(Turn.of(id, change, EXCERPT))
        if ended is not None:
            grade = grade_of(ended.score, ended.chance)
            self._tests_change(_news("test", id=ended.test, grade=grade, score=ended.score, reason=visible(ended.reason[:EXCERPT])))

    def _tell_pending(self) -> None:
        for id, turn in self._pending.items():
            if id not in self._told:
                self._told.add(id)
                self._tell(Turn.of(id, turn, EXCERPT), waiting=True)

    def _is_at(self, now: str) -> None:
        if now != self.status:
            self.status = now
            self._wake()

    def _tests_change(self, news: News) -> None:
        self.tests.append(news)
        self._wake()

    def _tell(self, turn: Turn, **more: bool) -> None:
        """Tell of a turn, shortened: those who want all of it open the report."""
        turn.trace = None
        self._turns.append(_news("turn", **turn.data(), **more, conversation=turn.conversation))
        self.count += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _json(figures: RunProgress) -> dict[str, Any]:
    return figures._asdict() | {"now": f"{figures.now:%Y-%m-%d %H:%M}" if figures.now is not None else None}


def _news(kind: str, **data: Any) -> News:
    return News(kind, json.dumps(data))


@final
@dataclass(slots=True)
class _Held:
    followed: Followed
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    lookers: int = 0


@final
class Followers:
    """Who follows which run. A run's journals are read from when the first looks until the last has left."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._held: dict[str, _Held] = {}

    @contextmanager
    def following(self, name: str, run: RunFolder) -> Iterator[Followed]:
        """The run `name`, followed while the block lasts."""
        held = self._held.get(name)
        if held is None:
            held = self._held[name] = _Held(Followed(run))
            self._nursery.start_soon(self._follow, held)
        held.lookers += 1
        try:
            yield held.followed
        finally:
            held.lookers -= 1
            if not held.lookers:
                held.scope.cancel()
                del self._held[name]

    async def _follow(self, held: _Held) -> None:
        with held.scope:
            await held.followed.follow()
