"""Sweeps on a Ray cluster of two nodes on this machine: one of them dies, both share limits, and no other machine can reach them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.loopback import Server
from tests.simulator.test_sweep import LIMIT, MODULE, PRICED, ROOT, WORST, dollars, index, journals, start, sweep, wait_for_all, write

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args=node)
other = cluster.add_node(**node)
print(cluster.address, cluster.head_node.node_id, other.node_id, flush=True)
for line in sys.stdin:
    cluster.remove_node(other, allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
"""


class TwoNodes:
    """A cluster in its own process."""

    def __init__(self, where: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER], cwd=where, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("127.0.0.1:"):
                self.address, self.head, self.other = line.split()
                return
        raise RuntimeError("the cluster did not start")

    def kill_other(self) -> None:
        """Kill the node that is not the head."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("remove\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "removed\n"

    def stop(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # or else Ray replaces 127.0.0.1 by the machine's own address
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("OPENAI_API_KEY", "sk-nothing")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PRICED)]))
        nodes = TwoNodes(tmp_path_factory.mktemp("cluster"), dict(os.environ))
        patch.setenv("RAY_ADDRESS", nodes.address)
        try:
            yield nodes
        finally:
            nodes.stop()


def lines(out: Path, name: str, text: str) -> list[str]:
    """The lines with `text` in all files of a sweep that are called `name`."""
    return [line for path in sorted(out.rglob(name)) for line in path.read_text("utf-8").splitlines() if text in line]


def test_the_nodes_share_limits(cluster: TwoNodes, tmp_path: Path) -> None:
    with Server(latency=0.02).running() as server:
        agent = f"openai/some?context=2k&max_tokens=100&at_once=1&base_url={server.base_url('openai')}"
        write(tmp_path, agents=[agent], seeds=[0, 1], tests=1)
        output = sweep(tmp_path, "s.yaml", "--trust", "--on", "ray", "--max-cost", str(LIMIT), code=130).stderr
        assert f"exceed the limit of ${LIMIT}" in output
        assert server.most_at_once == 1
        assert LIMIT - WORST <= dollars(server) <= LIMIT
        journaled = [each for run in journals(tmp_path / "runs" / "s").values() for each in run if each.get("cost_usd")]
        assert len(journaled) == len(server.asked)
        assert len(journals(tmp_path / "runs" / "s")) == 2


def test_the_runs_of_a_dead_node_continue_elsewhere(cluster: TwoNodes, tmp_path: Path) -> None:
    content = {"agents": [f"{MODULE}:Logged"], "seeds": [0, 1, 2], "spans": ["2k"], "tests": 6}
    write(tmp_path, **content)
    (tmp_path / "head").write_text(cluster.head)
    os.mkfifo(tmp_path / "reached")
    process = start(tmp_path, "s.yaml", "--out", "out", "--trust", "--on", "ray")
    assert (tmp_path / "reached").read_text() == cluster.other
    cluster.kill_other()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    wait_for_all(tmp_path / "out")
    assert [each["state"] for each in index(tmp_path / "out")] == ["finished"] * 3, "no run is lost"

    asked = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    turns = Counter(tuple(turn) for _, *turn in asked if not turn[1].endswith("-0"))  # all runs share the first turn
    twice = [turn for turn, times in turns.items() if times > 1]
    assert len(twice) == 1, "no run is played twice: only the turn in hand of the dead node was asked again"
    assert [node for node, *turn in asked if tuple(turn) == twice[0]] == [cluster.other, cluster.head]
    assert len(lines(tmp_path / "out", "journal.jsonl", '"repeated":true')) == 1, "and it is marked"
    assert lines(tmp_path / "out", "incidents.jsonl", '"moved"')
    write(tmp_path, **(content | {"agents": [f"{MODULE}:Keeper"]}))
    sweep(tmp_path, "s.yaml", "--out", "here", "--trust")
    assert list(journals(tmp_path / "out").values()) == list(journals(tmp_path / "here").values())


def listening(*names: str) -> set[str]:
    """The addresses that processes with one of these names listen on, as Linux writes them."""
    sockets = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            begins = (process / "cmdline").read_bytes().split(b"\0")[0].decode().rpartition("/")[2]
            if begins.startswith(names):
                sockets |= {str(handle.readlink()) for handle in (process / "fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_ray_on_one_machine_is_reachable_only_from_there(cluster: TwoNodes) -> None:
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    addresses = listening("raylet", "gcs_server", "ray::")
    assert addresses
    assert addresses <= loopback
