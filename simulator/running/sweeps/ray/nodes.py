"""The nodes of a Ray cluster. Each node is probed before it receives runs; a node that fails receives none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import trio

from longspan import __version__
from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.base.terminal import complain
from longspan.simulator.running.sweeps.ray.node import Order, answer_of, probe_node

__all__ = ["Nodes"]

PROBE_TIMEOUT: Final = 120.0
"""The seconds that a node has to start a process, unpack the current folder, import longspan and create each agent."""


@final
class Nodes:
    """The nodes of a cluster, and their problems with the runs of `orders`."""

    def __init__(self, ray: Any, orders: Sequence[Order]) -> None:
        self._ray = ray
        self._orders = tuple(orders)
        self._probe = ray.remote(probe_node)
        self._problems: dict[str, str] = {}  # by id, for probed nodes; empty after a passed probe
        self._names: dict[str, str] = {}
        self._lock = trio.Lock()

    @property
    def usable(self) -> list[dict[str, Any]]:
        """The nodes that are alive and have passed the probe, as Ray describes them."""
        return [node for node in self._alive() if self._problems.get(node["NodeID"]) == ""]

    def placement(self) -> dict[str, str]:
        """Return the label selector of tasks for usable nodes only. Raises InputError without usable nodes."""
        ids = [node["NodeID"] for node in self.usable]
        if not ids:
            problems = "; ".join(f"{self._names[id]}: {problem}" for id, problem in self._problems.items() if problem)
            raise InputError(f"no node of the Ray cluster can play the runs: {problems or 'all have left'}")
        return {"ray.io/node-id": f"in({','.join(ids)})"}  # a space after a comma would crash Ray 2.60

    async def probe_new(self) -> bool:
        """Probe the nodes that have joined, and name those that fail. Return whether there is a new one that passes."""
        async with self._lock:
            new = [node for node in self._alive() if node["NodeID"] not in self._problems]
            async with trio.open_nursery() as nursery:
                for node in new:
                    nursery.start_soon(self._examine, node)
            return any(not self._problems[node["NodeID"]] for node in new)

    async def probe_again(self) -> None:
        """Probe the nodes that have passed once more, because a run failed on one of them."""
        self._problems = {id: problem for id, problem in self._problems.items() if problem}
        await self.probe_new()

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    async def _examine(self, node: dict[str, Any]) -> None:
        id, errors = node["NodeID"], self._ray.exceptions
        there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(id, soft=False)
        task = self._probe.options(num_cpus=0, max_retries=0, scheduling_strategy=there, name="longspan probe").remote(
            self._orders, __version__
        )
        problem = f"it did not answer within {PROBE_TIMEOUT:g} s"
        with trio.move_on_after(PROBE_TIMEOUT) as limit:
            try:
                problem = await answer_of(task)
            except errors.TaskUnschedulableError:
                problem = "it has left the cluster"
            except errors.RayError as error:  # such as an import of longspan that fails
                problem = one_line(getattr(error, "cause", None) or error)
        if limit.cancelled_caught:
            self._ray.cancel(task, force=True)
        self._problems[id] = problem
        self._names[id] = f"node {node['NodeManagerAddress']} ({id[:8]})"
        if problem:
            complain(f"{self._names[id]} gets no runs: {problem}")
