"""Follows runs while they are played. A journal is read as it grows, once for all clients."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import trio

from longspan.simulator.base.errors import LongspanError, one_line
from longspan.simulator.base.files.locks import is_locked
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.contract.plugins import installed_scenarios
from longspan.simulator.journal.journal_tail import MAX_LINES, JournalTail
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTest, PlayedTurn
from longspan.simulator.pages.report.excerpts import EXCERPT_CHARS
from longspan.simulator.pages.report.run_view import RunView, TestView, TurnView
from longspan.simulator.pages.report.timeline import lane_of
from longspan.simulator.pages.view.run_list import has_results
from longspan.simulator.play.dry_run import Length, dry_run
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.run_status import RunProgress, RunStatus
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.results.result import TestResult
from longspan.simulator.running.planning import replan_run, setting_of
from longspan.simulator.subject.spending_record import SpendingFollower
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import list_dangers

__all__ = ["LiveEvent", "LiveRun", "LiveRuns"]

POLL_INTERVAL: Final = 0.25
"""The number of seconds between two reads of the journals."""

LENGTHS_LIMITER: Final = trio.CapacityLimiter(1)
"""Limits the number of runs whose tests are made again concurrently, to compute how long their conversations will be."""

MAX_TURNS: Final = 300
"""The number of turns kept for clients that connect later or read slowly."""


@final
class LiveEvent(NamedTuple):
    """A server-sent event: its kind, and its data as JSON."""

    kind: str
    data: str


@final
class LiveRun:
    """A run that clients follow.

    `tests` has events for the lanes of tests, as in a report's timeline: when a test opens or ends, and after each of its turns.
    `turn_count` is the number of events for turns; the last `MAX_TURNS` of them are kept. `status` has the run's figures so far, as JSON.
    `damage` is the reason why the run cannot be followed any further.
    """

    def __init__(self, run: RunFolder) -> None:
        self.tests: list[LiveEvent] = []
        self.turn_count = 0
        self.status = ""
        self.damage: LiveEvent | None = None
        self._run = run
        self._turns: deque[LiveEvent] = deque(maxlen=MAX_TURNS)
        self._changed = trio.Event()
        self._reading = RunView(run)
        self._places: dict[str, dict[str, Any]] = {}  # by conversation, the fields that the events of its turns share
        self._pending: dict[str, PlayedTurn] = {}  # by conversation, the message that has no reply yet
        self._announced: set[str] = set()  # conversations whose pending message has already had its event
        self._lengths: Mapping[str, Length] | None = None
        self._wanted = False  # whether replies have taken so long that the lengths are of interest
        self._measuring = False

    def turns(self, number: int) -> list[LiveEvent]:
        """Return the events of turns after the first `number`, if they are still kept."""
        new = min(len(self._turns), self.turn_count - number)
        return list(self._turns)[len(self._turns) - new :]

    async def changes(self) -> None:
        """Wait for the next event or status."""
        await self._changed.wait()

    async def follow(self) -> None:
        """Read the journals as they grow, until cancelled or until one is damaged."""
        async with trio.open_nursery() as nursery:
            try:
                await self._follow(nursery)
            except Exception as error:  # the files are untrusted, so any error means a damaged run
                why = str(error) if isinstance(error, LongspanError) else one_line(error)
                self.damage = _event("damaged", why=escape_invisible(why))
                self._wake()
            nursery.cancel_scope.cancel()

    async def _follow(self, nursery: trio.Nursery) -> None:
        tails = {id: JournalTail(self._run.journal(id), self._run.owner(id)) for id in self._run.manifest.conversations}
        manifest = self._run.manifest
        gradebook = Gradebook(manifest, installed_scenarios(manifest.suite.scenarios))  # so that no code named by a run is run
        worker, status = (
            GradingWorker(gradebook),
            RunStatus(gradebook, self._find_lengths, SpendingFollower(self._run.path, self._run.owner()).totals),
        )
        figures = _json(status.figures())
        ended: set[str] = set()
        results = False
        while True:
            lines = 0
            for id, tail in tails.items():
                trunk = manifest.trunks.get(id)
                if id in ended or (trunk is not None and trunk not in ended):
                    continue
                events = tail.read()
                lines = max(lines, len(events))
                for event in events:
                    change = gradebook.add(id, event)
                    if id not in self._places:
                        branch = {"trunk": trunk, "first": gradebook.transcripts[id].before} if trunk is not None else {}
                        self._places[id] = {"conversation": id} | branch
                    await worker.on_change(id, change)
                    status.add(id, change)
                    self._add(id, change)
                    self._reading.take_change(id, gradebook.transcripts[id], change)
                    if (test := _test_of(change)) is not None and (result := gradebook.so_far(id, test)) is not None:
                        self._add_lane(id, result)
                if events and gradebook.transcripts[id].closed:
                    ended.add(id)
                await trio.lowlevel.checkpoint()
            caught_up = lines < MAX_LINES
            if caught_up:
                self._add_pending()
            if lines or (self._lengths is not None and figures["share"] is None):
                figures = _json(status.figures())
            results = (results and not lines) or has_results(self._run)
            running = is_locked(self._run.path)
            if running and self._wanted and not self._measuring:
                self._measuring = True
                nursery.start_soon(self._measure)
            self._set_status(json.dumps(figures | {"results": results, "running": running}))
            await trio.sleep(POLL_INTERVAL if caught_up else 0)

    def _find_lengths(self) -> Mapping[str, Length] | None:
        self._wanted = True
        return self._lengths

    async def _measure(self) -> None:
        """Compute the lengths of the conversations, in a thread, as the terminal of the player does.

        A run goes without lengths if its tests cannot, or must not, be made from its manifest.
        """
        with suppress(Exception):  # the manifest is untrusted
            self._lengths = await trio.to_thread.run_sync(lengths_of, self._run.manifest, abandon_on_cancel=True, limiter=LENGTHS_LIMITER)

    def _add(self, id: str, change: Change) -> None:
        match change:
            case PlayedTurn(reply=None):
                self._announced.discard(id)
                self._pending[id] = change
            case PlayedTurn():
                del self._pending[id]
                self._add_turn(TurnView.of(id, change, EXCERPT_CHARS))

    def _add_lane(self, id: str, result: TestResult) -> None:
        """Add the event of a test's lane."""
        conversation = self._reading.conversations[id]
        lane = lane_of(TestView.of(result, self._reading.conversations), conversation, max(1, conversation.tokens)).data()
        ended = result.status != "unfinished"
        grade = {} if ended else {"grade": "open", "status": ""}
        self.tests.append(
            LiveEvent("lane", json.dumps(lane | grade | {"reason": escape_invisible(result.reason[:EXCERPT_CHARS]) if ended else ""}))
        )
        self._wake()

    def _add_pending(self) -> None:
        for id, turn in self._pending.items():
            if id not in self._announced:
                self._announced.add(id)
                self._add_turn(TurnView.of(id, turn, EXCERPT_CHARS), waiting=True)

    def _set_status(self, status: str) -> None:
        if status != self.status:
            self.status = status
            self._wake()

    def _add_turn(self, turn: TurnView, **more: bool) -> None:
        """Add the event of a turn, shortened, since the report has the whole turn."""
        turn.trace = None
        self._turns.append(_event("turn", **turn.data(), **more, **self._places[turn.conversation]))
        self.turn_count += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def lengths_of(manifest: Manifest) -> Mapping[str, Length] | None:
    """Return the lengths of a run's conversations by id, for a run that a process of this machine is playing.

    None if code or files named in its manifest would make its tests: only the user who plays it has agreed to run and read those.
    """
    if list_dangers(manifest, ["scenarios", "sources"]):
        return None
    plan = replan_run(manifest, "silent", Path())
    return {id: dry_run(setting_of(manifest, id), tests) for id, tests in plan.tests.items()}


def _test_of(change: Change) -> str | None:
    """Return the test whose lane a change affects, if any."""
    if isinstance(change, PlayedTest):
        return change.id
    return change.message.test if isinstance(change, PlayedTurn) and change.reply is not None else None


def _json(figures: RunProgress) -> dict[str, Any]:
    return figures._asdict() | {"now": f"{figures.now:%Y-%m-%d %H:%M}" if figures.now is not None else None}


def _event(kind: str, **data: Any) -> LiveEvent:
    return LiveEvent(kind, json.dumps(data))


@final
@dataclass(slots=True)
class _FollowedRun:
    run: LiveRun
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    clients: int = 0


@final
class LiveRuns:
    """The runs that are being followed. A run's journals are read as long as it has a client."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._followed: dict[str, _FollowedRun] = {}

    @contextmanager
    def follow(self, name: str, run: RunFolder) -> Iterator[LiveRun]:
        """Follow the run `name` while the block lasts."""
        followed = self._followed.get(name)
        if followed is None:
            followed = self._followed[name] = _FollowedRun(LiveRun(run))
            self._nursery.start_soon(self._follow, followed)
        followed.clients += 1
        try:
            yield followed.run
        finally:
            followed.clients -= 1
            if not followed.clients:
                followed.scope.cancel()
                del self._followed[name]

    async def _follow(self, followed: _FollowedRun) -> None:
        with followed.scope:
            await followed.run.follow()
