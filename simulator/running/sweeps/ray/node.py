"""The task of a node of a Ray cluster: plays one run and ships its files once a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import trio

from longspan import __version__
from longspan.simulator.base.closing import take_failures
from longspan.simulator.base.errors import InputError, LongspanError, StoppedError, one_line
from longspan.simulator.contract.agent import can_repeat_turn
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTurn
from longspan.simulator.running.planning import replan_run
from longspan.simulator.running.player import RunEvent
from longspan.simulator.running.runner import play_runs
from longspan.simulator.running.scoring import Pages
from longspan.simulator.running.sweeps.ray.segments import Answer, Segment, Shipper
from longspan.simulator.subject.ledger import Ledger, Worst
from longspan.simulator.subject.shared_limits import SHARED_LIMITS, SharedLedger
from longspan.simulator.subject.spending_limit import UNLIMITED, Amount
from longspan.simulator.suite.agent_spec import AgentSpec, inspect_agent
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import vouch_for

__all__ = ["Order", "answer_of", "play_order", "probe_node"]

SHIP_INTERVAL: Final = 1.0
"""The number of seconds between segments."""


def _current_folder() -> Path:
    """Return the current folder, even if it was replaced: another node on this machine may just have unpacked the shared copy again."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ["PWD"])


STARTED_IN: Final = _current_folder()
"""The copy of the current folder, if any: Ray starts the processes of a node there."""

SHIP_TIMEOUT: Final = 60.0
"""The maximum number of seconds to store a segment."""


@final
@dataclass(frozen=True, slots=True)
class Order:
    """An order for a node to play a run, given by its folder's name, under a lease and under the `limit` of the whole sweep.

    `manifest` is the run's manifest as JSON, which the process that started the sweep has checked. `folder`, `cwd` and `path` are the run's
    folder, the current folder and sys.path of that process, to import users' agents and read their files. `has_copy`: nodes that cannot
    access the run's folder have a copy of the current folder.
    """

    run: str
    lease: int
    manifest: str
    limit: Amount
    folder: str
    cwd: str
    path: tuple[str, ...]
    has_copy: bool = False


async def answer_of(reference: Any) -> Any:
    """Await the result of a Ray call in Trio. Raises the call's exception."""
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
        cause = getattr(error, "cause", None)  # Ray wraps our errors to add a traceback
        raise (cause if isinstance(cause, LongspanError) else error) from None


def play_order(coordinator: Any, order: Order, pages: Pages | None = None) -> dict[str, Any]:
    """Play a run to its end from the state that the coordinator has, and write its page. Return the outcome. Runs as a Ray task."""
    _enter(order)
    files: Mapping[str, bytes] | None = coordinator.fetch.remote(order.run, order.lease).future().result()
    if files is None:
        return {"error": "stopped before its first turn", "stopped": True}
    with TemporaryDirectory(prefix="longspan-") as folder:
        manifest = Manifest.model_validate_json(order.manifest)
        vouch_for(manifest)
        run = RunFolder(Path(folder) / order.run, manifest)
        for name, content in files.items():
            path = run.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        SHARED_LIMITS.set(_RemoteLimits(coordinator, order))
        error = trio.run(_NodePlayer(coordinator, order, run, pages).play)
    return {
        "error": None if error is None else str(error),
        "stopped": isinstance(error, StoppedError),
        "unfit": isinstance(error, InputError),
        "unclosed": take_failures(),
    }


def probe_node(orders: Sequence[Order], required: str) -> str:
    """Return why this node cannot play the runs of the orders; an empty string if it can. Runs as a Ray task.

    The node needs the `required` version of longspan, and everything that each run needs before its first turn.
    """
    if (own := __version__) != required:
        return f"it has longspan {own}, and the sweep was started by longspan {required}"
    try:
        for order in orders:
            _enter(order)
            manifest = Manifest.model_validate_json(order.manifest)
            vouch_for(manifest)
            with TemporaryDirectory(prefix="longspan-") as folder, inspect_agent(replan_run(manifest, manifest.agent, Path(folder)).agent):
                pass
            if manifest.judge is not None:
                with inspect_agent(AgentSpec.parse(manifest.judge)):
                    pass
    except Exception as error:
        return str(error) if isinstance(error, LongspanError) else one_line(error)
    return ""


def _enter(order: Order) -> None:
    """Change to the folder where the sweep was started, or to its copy, and extend sys.path as it was there."""
    cwd, path = Path(order.cwd), order.path
    if order.has_copy and _sees(order):
        sys.path[:] = [entry for entry in sys.path if entry != str(STARTED_IN)]
    elif order.has_copy:
        there, cwd = cwd, STARTED_IN
        path = tuple(str(cwd / Path(entry).relative_to(there)) if Path(entry).is_relative_to(there) else entry for entry in path)
    with suppress(OSError):
        os.chdir(cwd)
    sys.path += [entry for entry in path if entry not in sys.path]


def _sees(order: Order) -> bool:
    """Return whether this node can access the folder of the order's run, as on a shared disk.

    A folder of the same name may be another one, so the run's nonce is compared.
    """
    try:
        return RunFolder(Path(order.folder)).manifest.run_nonce == Manifest.model_validate_json(order.manifest).run_nonce
    except (OSError, LongspanError):
        return False


@final
class _NodePlayer:
    """Plays a run and ships it."""

    def __init__(self, coordinator: Any, order: Order, run: RunFolder, pages: Pages | None) -> None:
        self._pages = pages
        self._coordinator = coordinator
        self._order = order
        self._run = run
        self._shipper = Shipper(run.path, order.lease, self._send)
        self._done = threading.Event()
        self._stop = trio.Event()
        self._scope = trio.CancelScope()
        self._lost: Exception | None = None

    async def play(self) -> LongspanError | None:
        """Play the run to its end, ship all of it, and return the error that interrupted it."""
        token = trio.lowlevel.current_trio_token()
        shipping = threading.Thread(target=self._ship_periodically, args=(token,))
        shipping.start()
        error: LongspanError | None = None
        try:
            with self._scope:
                error = await self._play()
        finally:
            self._done.set()
            shipping.join()
        if self._lost is not None:
            raise self._lost
        self._shipper.finish()
        return error

    async def _play(self) -> LongspanError | None:
        order, run = self._order, self._run
        try:
            planned = replan_run(run.manifest, run.manifest.agent, run.path.parent)
            with inspect_agent(planned.agent) as agent:
                ships_messages = not can_repeat_turn(agent)
            ledger = Ledger() if order.limit == UNLIMITED else SharedLedger(order.limit, self)
            listener = self._ship_message if ships_messages else None
            return (await play_runs([(planned, run)], ledger, listener=listener, pages=self._pages, stop=self._stop))[0].error
        except LongspanError as failure:
            return failure

    async def reserve(self, worst: Worst) -> tuple[int, Amount]:
        """Reserve the cost of a call (see `Keeper`)."""
        ticket: tuple[int, Amount] = await answer_of(self._coordinator.reserve.remote((self._order.run, self._order.lease), worst))
        return ticket

    async def release(self, ticket: int, amount: Amount | None) -> None:
        """Return a ticket."""
        await answer_of(self._coordinator.release_ticket.remote(ticket, amount))

    def draw(self, ticket: int, more: Amount) -> str | None:
        """Reserve more for a ticket, and wait for the answer."""
        problem: str | None = self._coordinator.draw.remote(ticket, more).future().result()
        return problem

    def spend(self, amount: Amount) -> None:
        """Count an amount, and wait until that is done."""
        self._coordinator.spend.remote(amount).future().result()

    def _ship_message(self, heard: RunEvent) -> None:
        """Ship a message before the agent gets it, so that a second delivery after a loss is known and marked."""
        if isinstance(heard.change, PlayedTurn) and heard.change.reply is None:
            self._shipper.ship(self._run.journal(heard.conversation))

    def _ship_periodically(self, token: trio.lowlevel.TrioToken) -> None:
        """Ship new bytes every second until the run ends, and stop the run when the coordinator requests it."""
        while not self._done.wait(SHIP_INTERVAL):
            try:
                self._shipper.heartbeat()
            except Exception as error:  # the run has moved to another node, or the coordinator is lost
                self._lost = error
                _run_soon(token, self._scope.cancel)
                return
            if self._shipper.stopped:
                _run_soon(token, self._stop.set)

    def _send(self, segment: Segment) -> Answer:
        try:
            answer: Answer = self._coordinator.take.remote(segment).future().result(SHIP_TIMEOUT)
        except Exception as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, LongspanError) else error) from None
        return answer


def _run_soon(token: trio.lowlevel.TrioToken, action: Any) -> None:
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(action)


@final
class _RemoteLimits:
    """The rate limits that all runs of the sweep share, through the coordinator."""

    def __init__(self, coordinator: Any, order: Order) -> None:
        self._coordinator = coordinator
        self._owner = order.run, order.lease

    @asynccontextmanager
    async def admit(self, key: tuple[str, ...], limiter: type, limits: tuple[float, ...], slot: Any) -> AsyncIterator[None]:
        ticket = await answer_of(self._coordinator.enter.remote(self._owner, key, limiter, limits, slot))
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                await answer_of(self._coordinator.release_ticket.remote(ticket, slot))
