"""What a node of a Ray cluster does: plays one run and ships it, second by second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import trio

from longspan.simulator.agent import repeatable
from longspan.simulator.agent_spec import make_agent
from longspan.simulator.errors import LongspanError, StoppedError
from longspan.simulator.ledger import Account, Ledger, known_cost
from longspan.simulator.planning import replan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import RunEvent, play_runs
from longspan.simulator.sweeps.ray.segments import Answer, Segment, Shipper
from longspan.simulator.sweeps.shared_limits import GATE
from longspan.simulator.transcript import Turn

__all__ = ["Order", "answer_of", "play"]

EACH: Final = 1.0
"""Seconds between segments."""

PATIENCE: Final = 60.0
"""Seconds that a segment may take to be kept."""


@final
@dataclass(frozen=True, slots=True)
class Order:
    """What a node is to play: a run, by its folder's name, as owner of a lease; with at most `most` dollars for the sweep. `here`
    and `path` are the current folder and sys.path of who started the sweep, where agents of one's own are looked for."""

    run: str
    lease: int
    most: float
    here: str
    path: tuple[str, ...]


async def answer_of(reference: Any) -> Any:
    """What a call of Ray's gives, awaited in Trio. Raises what it raised."""
    done, token = trio.Event(), trio.lowlevel.current_trio_token()
    future: Future[Any] = reference.future()

    def wake(_: Future[Any]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(done.set)

    future.add_done_callback(wake)
    await done.wait()
    try:
        return future.result()
    except Exception as error:
        cause = getattr(error, "cause", None)  # an error of our own comes wrapped, for its traceback
        raise (cause if isinstance(cause, LongspanError) else error) from None


def play(hub: Any, order: Order) -> dict[str, Any]:
    """Play a run from where the depot has it to its end, and say how it came out. Runs as a task of Ray."""
    with suppress(OSError):
        os.chdir(order.here)
    sys.path += [each for each in order.path if each not in sys.path]
    files: Mapping[str, bytes] | None = hub.fetch.remote(order.run, order.lease).future().result()
    if files is None:
        return {"error": "stopped before its first turn", "stopped": True}
    with TemporaryDirectory(prefix="longspan-") as folder:
        run = RunFolder(Path(folder) / order.run)
        for name, content in files.items():
            path = run.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        GATE.set(_Gate(hub, order))
        error = trio.run(_Playing(hub, order, run).play)
    return {"error": None if error is None else str(error), "stopped": isinstance(error, StoppedError)}


@final
class _Playing:
    """A run being played and shipped."""

    def __init__(self, hub: Any, order: Order, run: RunFolder) -> None:
        self._hub = hub
        self._order = order
        self._run = run
        self._shipper = Shipper(run.path, order.lease, self._send)
        self._over = threading.Event()
        self._stop = trio.Event()
        self._scope = trio.CancelScope()
        self._lost: Exception | None = None

    async def play(self) -> LongspanError | None:
        """Play the run to its end, ship all of it, and return what broke it off."""
        token = trio.lowlevel.current_trio_token()
        beating = threading.Thread(target=self._beat, args=(token,))
        beating.start()
        error: LongspanError | None = None
        try:
            with self._scope:
                error = await self._play()
        finally:
            self._over.set()
            beating.join()
        if self._lost is not None:
            raise self._lost
        self._shipper.end()
        return error

    async def _play(self) -> LongspanError | None:
        order, run = self._order, self._run
        try:
            each = replan(run.manifest, run.manifest.agent, run.path.parent)
            careful = not repeatable(make_agent(each.agent))
            ledger = Ledger() if order.most == inf else _SharedLedger(order.most, hub=self._hub, owner=(order.run, order.lease))
            heard = self._heard if careful else None
            return (await play_runs([(each, run)], ledger, listener=heard, stop=self._stop))[0].error
        except LongspanError as failure:
            return failure

    def _heard(self, heard: RunEvent) -> None:
        """Ship a message before the agent is given it, where giving it twice would have to be told."""
        if isinstance(heard.change, Turn) and heard.change.reply is None:
            self._shipper.ship(self._run.journal(heard.conversation))

    def _beat(self, token: trio.lowlevel.TrioToken) -> None:
        """Ship what there is each second, until the run is over; stop it where that is wanted."""
        while not self._over.wait(EACH):
            try:
                self._shipper.beat()
            except Exception as error:  # the run is another's, or whoever keeps it has gone
                self._lost = error
                _soon(token, self._scope.cancel)
                return
            if self._shipper.stopped:
                _soon(token, self._stop.set)

    def _send(self, segment: Segment) -> Answer:
        try:
            answer: Answer = self._hub.take.remote(segment).future().result(PATIENCE)
        except Exception as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, LongspanError) else error) from None
        return answer


def _soon(token: trio.lowlevel.TrioToken, action: Any) -> None:
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(action)


@final
class _Gate:
    """The limits of all the sweep's runs, kept at the hub (see simulator/gate.py)."""

    def __init__(self, hub: Any, order: Order) -> None:
        self._hub = hub
        self._owner = order.run, order.lease

    @asynccontextmanager
    async def through(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AsyncIterator[None]:
        ticket = await answer_of(self._hub.enter.remote(self._owner, key, limiter, limits, slot))
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                await answer_of(self._hub.give_back.remote(ticket, slot))


class _SharedLedger(Ledger):
    """Dollars of all the sweep's runs, kept at the hub."""

    def __init__(self, limit: float, *, hub: Any, owner: tuple[str, int]) -> None:
        super().__init__(limit)
        self._hub = hub
        self._owner = owner

    @asynccontextmanager
    async def paying(self, models: Mapping[str, str] | None, worst: float = 0.0) -> AsyncIterator[Account]:
        ticket = await answer_of(self._hub.reserve.remote(self._owner, worst))
        account = Account(models)
        try:
            yield account
        finally:
            costs = account.costs
            dollars = worst if costs is None else known_cost(costs.values())
            with trio.CancelScope(shield=True):
                await answer_of(self._hub.give_back.remote(ticket, dollars))
