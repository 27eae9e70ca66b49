"""The driver of a sweep on a Ray cluster: assigns runs, follows them, and moves a lost node's runs to another node."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import trio

from longspan.simulator.base.closing import report_failure
from longspan.simulator.base.errors import AgentError, InputError, JournalError, LongspanError, StoppedError, one_line
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.terminal import complain
from longspan.simulator.journal.journal_tail import JournalTail
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.results.gradebook.worker import GradingWorker
from longspan.simulator.running.planning import Plan
from longspan.simulator.running.player import Listener, Outcome, RunEvent
from longspan.simulator.running.scoring import Pages
from longspan.simulator.running.sweeps.processes import result_of
from longspan.simulator.running.sweeps.ray.coordinator import Coordinator
from longspan.simulator.running.sweeps.ray.folder_copy import pack_folder
from longspan.simulator.running.sweeps.ray.node import Order, answer_of, play_order
from longspan.simulator.running.sweeps.ray.nodes import Nodes
from longspan.simulator.subject.ledger import LOCAL, models_of
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED, Amount
from longspan.simulator.suite.agent_spec import AgentSpec, inspect_agent

__all__ = ["Driver", "import_ray", "play_on_ray", "requested_resources"]

MAX_CALLS: Final = 100_000
"""The maximum number of concurrent calls to the coordinator: conversations that wait for a rate limit, and segments."""

POLL_INTERVAL: Final = 0.5
"""The number of seconds between checks of the runs' progress."""

JOIN_INTERVAL: Final = 2.0
"""The number of seconds between searches for nodes that have joined the cluster."""

JOB: Final = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""An environment variable of drivers started by `ray job submit`. Their folder is already a copy, on all nodes."""

NODE_TIMEOUT: Final = 60.0
"""A node counts as lost after this many seconds without a segment, even if Ray considers it alive."""

MAX_LOSSES: Final = 3
"""After this many losses in a row without a new turn, a run fails: the run itself is then the likely cause, not the nodes."""

NETWORK_CPUS: Final = 0.25
"""The fraction of a CPU required by a run whose agent only waits for a network."""


def import_ray() -> Any:
    """Return the module `ray`. Raises InputError if it is not installed."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise InputError(f"--on ray needs an extra: {install_extra('ray')}") from error
    return ray


def play_on_ray(
    pairs: Sequence[tuple[Plan, RunFolder]],
    *,
    listener: Listener | None = None,
    pages: Pages | None = None,
    limit: Amount = UNLIMITED,
    spent: Amount = NOTHING,
    dearest: Amount = NOTHING,
    ships: bool = True,
) -> list[Outcome]:
    """Play runs from where their journals end as tasks of a Ray cluster, and grade them.

    The cluster is the one at RAY_ADDRESS or on this machine. Otherwise a cluster is started that only this machine can reach. At most
    `limit` is spent in all, including the amount that the sweep has already `spent`. `dearest` is the least cost assumed for a call that
    cannot report its own. SIGINT, SIGTERM and SIGHUP stop the runs as they stop `play_order`. With `ships`, nodes without the current
    folder get a copy.

    Raises InputError if Ray is not installed, no cluster answers, no node can play the runs, or none has the resources for a run.
    """
    out = pairs[0][1].path.parent if ships and JOB not in os.environ else None
    with _connect_ray(out) as (ray, has_copy):
        nodes = Nodes(ray, _samples(pairs, has_copy))
        trio.run(nodes.probe_new)
        nodes.placement()
        _check_resources(nodes, pairs)
        here = ray.get_runtime_context().get_node_id()
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        coordinator = (
            ray.remote(Coordinator)
            .options(num_cpus=0, max_concurrency=MAX_CALLS, scheduling_strategy=affinity)
            .remote({run.path.name: run.path.resolve() for _, run in pairs}, limit, spent, dearest)
        )
        failure: BaseException | None = None
        try:
            return trio.run(Driver(ray, coordinator, nodes, limit, listener, pages, has_copy=has_copy).play, list(pairs))
        except* ray.exceptions.RayError as group:
            failure = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise LongspanError(f"the Ray cluster failed: {one_line(failure)}; start the sweep again to continue")


@contextmanager
def _connect_ray(out: Path | None) -> Iterator[tuple[Any, bool]]:
    """Connect Ray to a cluster, and ship the current folder without `out`, unless that is None.

    Yields Ray, and whether the nodes have a copy.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise InputError(f"RAY_ADDRESS={address!r:.80}: Ray Client is not supported; start the sweep on a machine of the cluster")
    ray = import_ray()
    try:
        has_copy = _connect(ray, address, out)
    except (ConnectionError, RuntimeError, ValueError) as error:
        remedy = "start one with `ray start --head`, or unset RAY_ADDRESS"
        raise InputError(f"no Ray cluster answers: {one_line(error)}; {remedy}") from error
    try:
        yield ray, has_copy
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, out: Path | None) -> bool:
    """Connect Ray to a cluster. Return whether its nodes have a copy of the current folder."""
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    try:
        if out is None or not address:
            ray.init(address=address or "auto", **quiet)
        if out is None:
            return False
        ray.shutdown()  # a folder can only be sent while connecting, and until now there may have been no cluster to send it to
        with TemporaryDirectory(prefix="longspan-") as folder:
            archive = Path(folder) / "current-folder.zip"
            pack_folder(Path.cwd(), out, archive)
            ray.init(address=address or "auto", runtime_env={"working_dir": str(archive)}, **quiet)
    except ConnectionError:
        if address:
            raise
        # Unless clusters are disabled, Ray replaces 127.0.0.1 by the machine's own address and listens on the network.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        ray._private.ray_constants.ENABLE_RAY_CLUSTER = False
        # Ray would write the token to a file in the home folder, which other users can often read.
        os.environ.setdefault("RAY_AUTH_TOKEN", token_urlsafe(32))
        ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        return False
    return True


def requested_resources(planned: Plan) -> tuple[float, float]:
    """Return the CPUs and the GPUs that a run requires.

    It requires a GPU if a model computes layers on one (`gpu_layers`), and only a fraction of a CPU if it waits for an API.
    """
    specs = [planned.agent, *([AgentSpec.parse(planned.manifest.judge)] if planned.manifest.judge is not None else [])]
    gpus = float(any(spec.options.get("gpu_layers", "0") != "0" for spec in specs))
    if any(spec.kind == LOCAL or spec.target.startswith(f"{LOCAL}/") for spec in specs):
        return 1.0, gpus
    with inspect_agent(planned.agent) as agent:
        return NETWORK_CPUS if models_of(agent) else 1.0, gpus


def _check_resources(nodes: Nodes, pairs: Sequence[tuple[Plan, RunFolder]]) -> None:
    resources = [node["Resources"] for node in nodes.usable]
    for planned, _ in pairs:
        cpus, gpus = requested_resources(planned)
        if not any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in resources):
            raise InputError(f"agent {planned.agent} requires {cpus:g} CPUs and {gpus:g} GPUs, which no node has that can play its runs")


def _samples(pairs: Sequence[tuple[Plan, RunFolder]], has_copy: bool) -> list[Order]:
    """Return an order for each combination of agent, judge and suite: the shortest run's, since a node plans it to probe itself."""
    samples: dict[tuple[str | None, ...], Order] = {}
    for planned, run in sorted(pairs, key=lambda pair: pair[0].manifest.span):
        manifest = planned.manifest
        needs = manifest.agent, manifest.judge, manifest.suite.model_dump_json()
        samples.setdefault(needs, _order(planned, run, 0, UNLIMITED, has_copy))
    return list(samples.values())


def _order(planned: Plan, run: RunFolder, lease: int, limit: Amount, has_copy: bool) -> Order:
    folder, cwd = str(run.path.resolve()), str(Path.cwd())
    return Order(run.path.name, lease, planned.manifest.model_dump_json(), limit, folder, cwd, tuple(sys.path), has_copy)


@final
class Driver:
    """Plays runs on a cluster."""

    def __init__(
        self,
        ray: Any,
        coordinator: Any,
        nodes: Nodes,
        limit: Amount,
        listener: Listener | None,
        pages: Pages | None = None,
        *,
        has_copy: bool = False,
    ) -> None:
        self._ray = ray
        self._coordinator = coordinator
        self._nodes = nodes
        self._has_copy = has_copy
        self._recalled: set[tuple[str, int]] = set()
        self._limit = limit
        self._listener = listener
        self._pages = pages
        self._task = ray.remote(play_order)
        self._stopped = False
        self._tasks: dict[tuple[str, int], tuple[Any, trio.CancelScope]] = {}
        self._gradebooks: dict[Path, tuple[Gradebook, GradingWorker]] = {}
        self._tails: dict[tuple[Path, str], JournalTail] = {}
        self._unheard: deque[RunEvent] = deque()

    async def play(self, pairs: list[tuple[Plan, RunFolder]]) -> list[Outcome]:
        """Play all runs and return their outcomes."""
        outcomes: dict[Path, Outcome] = {}

        async def one(planned: Plan, run: RunFolder) -> None:
            error = await self._play_until_done(planned, run)
            if isinstance(error, AgentError):  # only now, since until it was released the coordinator could write there too
                run.incident(conversation="", type="interrupted", error=str(error))
            outcomes[run.path] = Outcome(run.path, result_of(run), error)

        async with trio.open_nursery() as nursery:
            await nursery.start(self._handle_signals)
            nursery.start_soon(self._poll, pairs)
            nursery.start_soon(self._welcome_nodes)
            async with trio.open_nursery() as runs:
                for planned, run in pairs:
                    runs.start_soon(one, planned, run)
            nursery.cancel_scope.cancel()
        await self._notify_listener(pairs)
        return [outcomes[run.path] for _, run in pairs]

    async def _play_until_done(self, planned: Plan, run: RunFolder) -> LongspanError | None:
        """Play a run, on another node after each loss. Return the error that interrupted it."""
        name, lease, why, losses, known, was_unfit = run.path.name, 0, None, 0, -1, False
        try:
            while True:
                if self._stopped:
                    return StoppedError("stopped before its first turn" if why is None else why)
                lease = await answer_of(self._coordinator.grant.remote(name, lease, why))
                answer, why = await self._try(planned, run, lease)
                if answer is not None:
                    if not answer.get("unfit") or was_unfit or self._stopped:
                        for problem in answer.get("unclosed", ()):
                            report_failure(problem)
                        return _outcome_error(answer)
                    was_unfit, why = True, answer["error"]  # the fault is in the node, since the run was planned here
                    await self._nodes.probe_again()
                    continue
                if why is None:
                    continue
                turns = _journal_bytes(run)
                losses, known = (losses + 1 if turns <= known else 1), max(turns, known)
                if losses > MAX_LOSSES:
                    return AgentError(f"lost {losses} times without a new turn; the last time: {why}")
        except LongspanError as error:
            return error
        finally:
            with trio.CancelScope(shield=True), suppress(self._ray.exceptions.RayError):
                await answer_of(self._coordinator.release.remote(name, lease))

    async def _try(self, planned: Plan, run: RunFolder, lease: int) -> tuple[dict[str, Any] | None, str | None]:
        """Have a node play a run.

        Returns the node's answer, or None and the reason for the loss of the node; both are None if the run was recalled before it began.
        """
        cpus, gpus = requested_resources(planned)
        name, place = run.path.name, self._nodes.placement()
        order = _order(planned, run, lease, self._limit, self._has_copy)
        options = self._task.options(num_cpus=cpus, num_gpus=gpus, max_retries=0, label_selector=place, name=f"longspan {name}")
        task = options.remote(self._coordinator, order, self._pages)
        errors = self._ray.exceptions
        with trio.CancelScope() as scope:
            self._tasks[name, lease] = task, scope
            try:
                return await answer_of(task), None
            except errors.TaskCancelledError:
                if (name, lease) in self._recalled and not self._stopped:
                    return None, None
                return {"error": "stopped before its first turn", "stopped": True}, None
            except errors.RayTaskError as error:
                return {"error": f"the node failed: {one_line(error.cause or error)}", "stopped": False, "unfit": True}, None
            except errors.RayError as error:
                return None, f"the node was lost: {type(error).__name__}"
            finally:
                del self._tasks[name, lease]
        self._ray.cancel(task, force=True)
        return None, f"the node was lost: it sent nothing for {NODE_TIMEOUT:g} s"

    async def _poll(self, pairs: list[tuple[Plan, RunFolder]]) -> None:
        """Pass new events to the listener, and give up on silent nodes."""
        while True:
            await trio.sleep(POLL_INTERVAL)
            await self._notify_listener(pairs)
            for key in await answer_of(self._coordinator.silent_owners.remote(NODE_TIMEOUT)):
                if tuple(key) in self._tasks:
                    self._tasks[tuple(key)][1].cancel()

    async def _welcome_nodes(self) -> None:
        """Probe nodes that join, and let runs that have not begun move to them."""
        while True:
            await trio.sleep(JOIN_INTERVAL)
            if await self._nodes.probe_new() and not self._stopped:
                for (name, lease), (task, _) in list(self._tasks.items()):
                    if not await answer_of(self._coordinator.has_started.remote(name, lease)):
                        self._recalled.add((name, lease))
                        self._ray.cancel(task)

    async def _notify_listener(self, pairs: list[tuple[Plan, RunFolder]]) -> None:
        if self._listener is None:
            return
        for planned, run in pairs:
            if run.path not in self._gradebooks:
                gradebook = Gradebook(planned.manifest)
                self._gradebooks[run.path] = gradebook, GradingWorker(gradebook)
            gradebook, _ = self._gradebooks[run.path]
            for id in planned.tests:
                try:
                    tail = self._tails.setdefault((run.path, id), JournalTail(run.journal(id), run.owner(id)))
                    while batch := tail.read():
                        for event in batch:
                            self._unheard.append(RunEvent(planned, run.path, gradebook, id, event, gradebook.add(id, event)))
                except JournalError:  # reported when the run is graded
                    continue
        while self._unheard:
            heard = self._unheard[0]
            await self._gradebooks[heard.folder][1].on_change(heard.conversation, heard.change)
            self._listener(self._unheard.popleft())

    async def _handle_signals(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stop after the current turns at the first signal, and immediately at the second."""
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *hangup) as received:
            task_status.started()
            async for _ in received:
                at_once, self._stopped = self._stopped, True
                if not at_once:
                    complain("stopping after the current turn; press Ctrl-C again to stop immediately")
                    await answer_of(self._coordinator.stop.remote())
                for (name, lease), (task, _) in list(self._tasks.items()):
                    if at_once or not await answer_of(self._coordinator.has_started.remote(name, lease)):
                        self._ray.cancel(task, force=at_once)


def _outcome_error(answer: dict[str, Any]) -> LongspanError | None:
    if answer["error"] is None:
        return None
    return StoppedError(answer["error"]) if answer["stopped"] else LongspanError(answer["error"])


def _journal_bytes(run: RunFolder) -> int:
    """Return the size of a run's journals in bytes."""
    return sum(run.journal(id).stat().st_size for id in run.manifest.conversations if run.journal(id).exists())
