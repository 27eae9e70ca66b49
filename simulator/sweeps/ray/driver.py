"""A sweep on a Ray cluster, from where it was started: hands out runs, follows them, and has those of a dead node go on elsewhere."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, Final, final

import trio

from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.errors import AgentError, InputError, JournalError, LongspanError, StoppedError, one_line
from longspan.simulator.grading.grades import Gradebook
from longspan.simulator.journal_tail import JournalTail
from longspan.simulator.ledger import LOCAL, models_of
from longspan.simulator.planning import Plan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import Listener, Outcome, RunEvent
from longspan.simulator.sweeps.processes import result_of
from longspan.simulator.sweeps.ray.coordinator import Hub
from longspan.simulator.sweeps.ray.node import Order, answer_of, play

__all__ = ["import_ray", "play_on_ray", "wants"]

AT_ONCE: Final = 100_000
"""Calls that the hub serves at once: those of all conversations that wait for a place, and the segments beside them."""

LOOK: Final = 0.5
"""Seconds between looks at how far the runs are."""

SILENCE: Final = 60.0
"""Seconds without a segment after which a node counts as lost, whatever Ray thinks of it."""

LOSSES: Final = 3
"""How often in a row a run may be lost without a new turn, before it is broken off: then it is not the nodes' fault."""

WAITING: Final = 0.25
"""The part of a processor that a run is given whose agent waits on a network."""


def import_ray() -> Any:
    """The module ray. Raises InputError where it is not installed."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise InputError("--on ray needs more than longspan itself: pip install 'longspan[ray]'") from error
    return ray


def play_on_ray(
    pairs: Sequence[tuple[Plan, RunFolder]], *, listener: Listener | None = None, most: float = inf, paid: float = 0.0
) -> list[Outcome]:
    """Play runs from where their journals end as tasks of a Ray cluster, and grade them.

    The cluster is that of RAY_ADDRESS, or the one that runs on this machine, or else one is started for it, reached by nobody
    but this machine. All in all at most `most` dollars are spent, `paid` being spent already. SIGINT, SIGTERM and SIGHUP stop
    the runs as they stop `play`.

    Raises InputError where Ray is not installed, no cluster answers, or the cluster cannot play a run.
    """
    with _connected() as ray:
        _check_resources(ray, pairs)
        here = ray.get_runtime_context().get_node_id()
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        hub = (
            ray.remote(Hub)
            .options(num_cpus=0, max_concurrency=AT_ONCE, scheduling_strategy=affinity)
            .remote({run.path.name: run.path.resolve() for _, run in pairs}, most, paid)
        )
        failure: BaseException | None = None
        try:
            return trio.run(_Driver(ray, hub, most, listener).play, list(pairs))
        except* ray.exceptions.RayError as group:
            failure = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise LongspanError(f"the Ray cluster failed: {one_line(failure)}; start the sweep again to go on")


@contextmanager
def _connected() -> Iterator[Any]:
    """Ray, connected to a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise InputError(f"RAY_ADDRESS={address!r:.80}: a sweep is started on a machine of the cluster, not through its client")
    ray = import_ray()
    try:
        _connect(ray, address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        remedy = "start one with `ray start --head`, or leave RAY_ADDRESS out"
        raise InputError(f"no Ray cluster answers: {one_line(error)}; {remedy}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    try:
        ray.init(address=address or "auto", **quiet)
    except ConnectionError:
        if address:
            raise
        # Ray takes the machine's own address for 127.0.0.1 and would listen to everybody, unless it is told of no clusters.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        ray._private.ray_constants.ENABLE_RAY_CLUSTER = False
        ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)


def wants(each: Plan) -> tuple[float, float]:
    """The processors and the GPUs that a run is given: a GPU where a model computes layers on one (`gpu_layers`), and a part of
    a processor where all it does is wait for an API."""
    specs = [each.agent, *([AgentSpec.parse(each.manifest.judge)] if each.manifest.judge is not None else [])]
    gpus = float(any(spec.options.get("gpu_layers", "0") != "0" for spec in specs))
    if any(spec.kind == LOCAL or spec.target.startswith(f"{LOCAL}/") for spec in specs):
        return 1.0, gpus
    return WAITING if models_of(make_agent(each.agent)) else 1.0, gpus


def _check_resources(ray: Any, pairs: Sequence[tuple[Plan, RunFolder]]) -> None:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for each, _ in pairs:
        cpus, gpus = wants(each)
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
            raise InputError(f"agent {each.agent} wants {cpus:g} processors and {gpus:g} GPUs, which no node of the Ray cluster has")


@final
class _Driver:
    """Runs being played on a cluster."""

    def __init__(self, ray: Any, hub: Any, most: float, listener: Listener | None) -> None:
        self._ray = ray
        self._hub = hub
        self._most = most
        self._listener = listener
        self._task = ray.remote(play)
        self._stopped = False
        self._tasks: dict[tuple[str, int], tuple[Any, trio.CancelScope]] = {}
        self._gradebooks: dict[Path, Gradebook] = {}
        self._tails: dict[tuple[Path, str], JournalTail] = {}

    async def play(self, pairs: list[tuple[Plan, RunFolder]]) -> list[Outcome]:
        """Play all of them, and return what came out."""
        outcomes: dict[Path, Outcome] = {}

        async def one(each: Plan, run: RunFolder) -> None:
            error = await self._see_through(each, run)
            outcomes[run.path] = Outcome(run.path, result_of(run), error)

        async with trio.open_nursery() as nursery:
            await nursery.start(self._obey)
            nursery.start_soon(self._look, pairs)
            async with trio.open_nursery() as runs:
                for each, run in pairs:
                    runs.start_soon(one, each, run)
            nursery.cancel_scope.cancel()
        self._follow(pairs)
        return [outcomes[run.path] for _, run in pairs]

    async def _see_through(self, each: Plan, run: RunFolder) -> LongspanError | None:
        """Play a run, on another node whenever one is lost. Returns what broke it off."""
        name, lease, why, losses, known = run.path.name, 0, None, 0, -1
        try:
            while True:
                if self._stopped:
                    return StoppedError("stopped before its first turn" if why is None else why)
                lease = await answer_of(self._hub.grant.remote(name, lease, why))
                answer, why = await self._try(each, name, lease)
                if answer is not None:
                    return _error(answer)
                turns = _lines(run)
                losses, known = (losses + 1 if turns <= known else 1), max(turns, known)
                if losses > LOSSES:
                    run.incident(conversation="", type="broken_off", error=str(why))
                    return AgentError(f"lost {losses} times without a new turn; the last time: {why}")
        except LongspanError as error:
            return error
        finally:
            with trio.CancelScope(shield=True), suppress(self._ray.exceptions.RayError):
                await answer_of(self._hub.release.remote(name, lease))

    async def _try(self, each: Plan, name: str, lease: int) -> tuple[dict[str, Any] | None, str | None]:
        """Have a node play a run: how it came out, or None and why it was lost."""
        cpus, gpus = wants(each)
        order = Order(name, lease, self._most, str(Path.cwd()), tuple(sys.path))
        options = self._task.options(num_cpus=cpus, num_gpus=gpus, max_retries=0, name=f"longspan {name}")
        task = options.remote(self._hub, order)
        errors = self._ray.exceptions
        with trio.CancelScope() as scope:
            self._tasks[name, lease] = task, scope
            try:
                return await answer_of(task), None
            except errors.TaskCancelledError:
                return {"error": "stopped before its first turn", "stopped": True}, None
            except errors.RayTaskError as error:
                return {"error": f"the node failed: {one_line(error.cause or error)}", "stopped": False}, None
            except errors.RayError as error:
                return None, f"the node was lost: {type(error).__name__}"
            finally:
                del self._tasks[name, lease]
        self._ray.cancel(task, force=True)
        return None, f"the node was lost: nothing was heard of it for {SILENCE:g} s"

    async def _look(self, pairs: list[tuple[Plan, RunFolder]]) -> None:
        """Tell the listener what has come, and give up nodes that nothing is heard of."""
        while True:
            await trio.sleep(LOOK)
            self._follow(pairs)
            for key in await answer_of(self._hub.quiet.remote(SILENCE)):
                if tuple(key) in self._tasks:
                    self._tasks[tuple(key)][1].cancel()

    def _follow(self, pairs: list[tuple[Plan, RunFolder]]) -> None:
        if self._listener is None:
            return
        for each, run in pairs:
            if run.path not in self._gradebooks:
                self._gradebooks[run.path] = Gradebook(each.manifest)
            gradebook = self._gradebooks[run.path]
            for id in each.tests:
                tail = self._tails.setdefault((run.path, id), JournalTail(run.journal(id)))
                try:
                    while found := tail.read():
                        for event in found:
                            change = gradebook.add(id, event)
                            self._listener(RunEvent(each, run.path, gradebook, id, event, change))
                except JournalError:  # told when the run is graded
                    continue

    async def _obey(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stop on the first signal, after the turns in hand; on the second at once."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                at_once, self._stopped = self._stopped, True
                if not at_once:
                    print("stopping after the turn in hand; once more stops at once", file=sys.stderr, flush=True)
                    await answer_of(self._hub.stop.remote())
                for (name, lease), (task, _) in list(self._tasks.items()):
                    if at_once or not await answer_of(self._hub.begun.remote(name, lease)):
                        self._ray.cancel(task, force=at_once)


def _error(answer: dict[str, Any]) -> LongspanError | None:
    if answer["error"] is None:
        return None
    return StoppedError(answer["error"]) if answer["stopped"] else LongspanError(answer["error"])


def _lines(run: RunFolder) -> int:
    """How much of a run there is: the bytes of its journals."""
    return sum(run.journal(id).stat().st_size for id in run.manifest.conversations if run.journal(id).exists())
