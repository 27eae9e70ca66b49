"""Sweeps on a Ray cluster of two nodes on this machine: one of them dies, both share limits, one does not see the user's files, and no
other machine can reach them."""

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
alone, shared = sys.argv[1:]
node = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args=node | {"env_vars": {"HIDDEN": alone}})
other = cluster.add_node(**node, env_vars={"HIDDEN": f"{alone}:{shared}"})
print(cluster.address, cluster.head_node.node_id, other.node_id, flush=True)
for line in sys.stdin:
    if line == "add\\n":
        cluster.add_node(**node)
    else:
        cluster.remove_node(other, allow_graceful=False)
    print("done", flush=True)
cluster.shutdown()
"""

HIDING = """
import os, sys
hidden = tuple(filter(None, os.environ.get("HIDDEN", "").split(":")))
def hide(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.chdir") and str(arguments[0]).startswith(hidden):
        raise FileNotFoundError(2, "not on this node", str(arguments[0]))
if hidden:
    sys.addaudithook(hide)
"""
"""Hides folders from the processes of a node, as if it were another machine."""

MEETING = """
import os, ray
from pathlib import Path

class Meeting:
    \"\"\"Each of two conversations waits for the other, so they are played by two nodes, which have one processor each.\"\"\"

    def __init__(self, log):
        self.log = Path(log)
        self.text = Path("beside.txt").read_text() + str(sorted(set(os.listdir()) - {"__pycache__"}))
        self.has_met = False

    def reply(self, message):
        if not self.has_met:
            self.has_met = True
            self.meet()
        return self.text

    def observe(self, message, reply):
        pass

    def meet(self):
        with self.log.open("a") as log:
            log.write(f"{ray.get_runtime_context().get_node_id()} {self.text}\\n")
        (self.log.parent / "meeting").open("w" if self.is_first() else "r").close()

    def is_first(self):
        try:
            os.close(os.open(self.log.parent / "first", os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False

class Alone(Meeting):
    def meet(self):
        with self.log.open("a") as log:
            log.write(f"{ray.get_runtime_context().get_node_id()} {self.text}\\n")
"""


class TwoNodes:
    """A cluster in its own process."""

    def __init__(self, where: Path, environment: dict[str, str]) -> None:
        self.alone, self.shared = where / "seen-by-nobody", where / "seen-by-the-head"
        (where / "hiding").mkdir()
        (where / "hiding" / "sitecustomize.py").write_text(HIDING + (PRICED / "sitecustomize.py").read_text("utf-8"), "utf-8")
        environment["PYTHONPATH"] = os.pathsep.join([str(where / "hiding"), environment["PYTHONPATH"]])
        command = [sys.executable, "-c", CLUSTER, str(self.alone), str(self.shared)]
        self.process = subprocess.Popen(command, cwd=where, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("127.0.0.1:"):
                self.address, self.head, self.other = line.split()
                return
        raise RuntimeError("the cluster did not start")

    def kill_other(self) -> None:
        """Kill the node that is not the head."""
        self._do("remove")

    def add(self) -> None:
        """Add a node that sees all files."""
        self._do("add")

    def _do(self, what: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

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


def prepare(where: Path, log: Path, name: str) -> None:
    """Write the module of a user, files beside it, and a sweep of two runs."""
    where.mkdir(exist_ok=True)
    (where / "mine.py").write_text(MEETING, "utf-8")
    (where / "beside.txt").write_text("beside ", "utf-8")
    (where / "server.key").write_text("a key", "utf-8")
    (where / ".env").write_text("KEY=1", "utf-8")
    write(where, agents=[f"python:mine:{name}?log={log / 'log'}"], seeds=[0, 1], tests=1)
    os.mkfifo(log / "meeting")


def logged(folder: Path) -> dict[str, str]:
    """The files that the agents saw, by node."""
    return {line.split()[0]: line.partition("beside ")[2] for line in (folder / "log").read_text("utf-8").splitlines()}


def test_a_node_that_cannot_import_the_users_module_is_named_and_gets_no_runs(cluster: TwoNodes, tmp_path: Path) -> None:
    prepare(cluster.shared, tmp_path, "Alone")
    said = sweep(cluster.shared, "s.yaml", "--out", "alone", "--trust", "--on", "ray", "--no-ship").stderr
    (line,) = [line for line in said.splitlines() if "gets no runs" in line]
    why = "python:mine:Alone: there is no module 'mine'; start longspan in the folder that contains it"
    assert line == f"node 127.0.0.1 ({cluster.other[:8]}) gets no runs: {why}"
    assert [each["state"] for each in index(cluster.shared / "alone")] == ["finished"] * 2
    assert logged(tmp_path).keys() == {cluster.head}


def test_a_node_without_the_current_folder_gets_a_copy_without_keys(cluster: TwoNodes, tmp_path: Path) -> None:
    prepare(cluster.shared, tmp_path, "Meeting")
    said = sweep(cluster.shared, "s.yaml", "--out", "both", "--trust", "--on", "ray").stderr
    assert "gets no runs" not in said
    assert [each["state"] for each in index(cluster.shared / "both")] == ["finished"] * 2
    seen = logged(tmp_path)
    assert seen[cluster.other] == "['beside.txt', 'mine.py', 's.yaml']"
    assert "server.key" in seen[cluster.head], "it has the folder itself"


def test_a_sweep_that_no_node_can_play_is_an_error_of_one_line(cluster: TwoNodes, tmp_path: Path) -> None:
    prepare(cluster.alone, tmp_path, "Alone")
    said = sweep(cluster.alone, "s.yaml", "--trust", "--on", "ray", "--no-ship", code=2).stderr
    last = said.splitlines()[-1]
    assert last.startswith("longspan: no node of the Ray cluster can play the runs: node 127.0.0.1 (")
    assert last.count("there is no module 'mine'") == 2


def test_the_runs_of_a_dead_node_continue_elsewhere(cluster: TwoNodes, tmp_path: Path) -> None:
    content = {"agents": [f"{MODULE}:Logged"], "seeds": [0, 1, 2], "spans": ["2k"], "tests": 6}
    write(tmp_path, **content)
    (tmp_path / "head").write_text(cluster.head)
    os.mkfifo(tmp_path / "begun")
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


def test_a_node_that_joins_gets_runs_that_wait(cluster: TwoNodes, tmp_path: Path) -> None:
    prepare(tmp_path, tmp_path, "Meeting")
    process = start(tmp_path, "s.yaml", "--out", "out", "--trust", "--on", "ray")
    cluster.add()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert len(logged(tmp_path)) == 2


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


def test_a_worker_starts_while_another_node_unpacks_its_folder_again(tmp_path: Path) -> None:
    """Nodes on one machine share the copies of folders, and each that joins unpacks them again under the feet of the others."""
    copy = tmp_path / "copy"
    copy.mkdir()
    code = (
        "import os, shutil; shutil.rmtree(os.getcwd()); import longspan.simulator.running.sweeps.ray.node as node; print(node.STARTED_IN)"
    )
    environment = os.environ | {"PWD": str(copy), "PYTHONPATH": str(ROOT)}
    output = subprocess.run([sys.executable, "-c", code], cwd=copy, env=environment, capture_output=True, text=True, check=True).stdout
    assert output.strip() == str(copy)
