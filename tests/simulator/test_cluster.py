"""The parts of a sweep on a cluster, without a cluster: segments, leases, shared limits."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from itertools import islice
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
import trio
from tests.made_runs import made_run

from longspan.agents.base import BaseAgent
from longspan.agents.models.limits import Limiter, Slot
from longspan.simulator.base.errors import InputError, JournalError, StoppedError
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.sweeps.ray import driver, folder_copy
from longspan.simulator.running.sweeps.ray.driver import requested_resources
from longspan.simulator.running.sweeps.ray.folder_copy import pack_folder
from longspan.simulator.running.sweeps.ray.limit_server import LimitServer
from longspan.simulator.running.sweeps.ray.segment_store import SegmentStore
from longspan.simulator.running.sweeps.ray.segments import Answer, Piece, Segment, Shipper
from longspan.simulator.subject.ledger import UnpricedCall
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_limit import UNLIMITED, Amount, limit_of
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

LINES = [b'{"seq":0}\n', b'{"seq":1}\n', b'{"seq":2}\n']
JOURNAL = "conversations/main/journal.jsonl"
SNAPSHOTS = "conversations/main/snapshots"
RECORD = "conversations/main/snapshots.jsonl"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> SegmentStore:
    """A store of one run, whose folder has only a manifest."""
    made = made_run(tmp_path / "home", "bot", lambda scenario, number: None, name="run")
    (made / "result.json").unlink()
    return SegmentStore({"run": tmp_path / "home" / "run"}, clock)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "run"


def node(tmp_path: Path, name: str, store: SegmentStore, lease: int) -> tuple[Path, Shipper]:
    """A node that has fetched the run: its folder and its shipper."""
    files = store.fetch("run", lease)
    assert files is not None
    folder = tmp_path / name / "run"
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder, Shipper(folder, lease, store.take)


def write(folder: Path, content: bytes, name: str = JOURNAL) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(content)


def test_another_node_continues_from_what_was_shipped(tmp_path: Path, store: SegmentStore, home: Path) -> None:
    one, shipper = node(tmp_path, "one", store, store.grant("run"))
    write(one, LINES[0] + LINES[1][:4])
    shipper.ship()
    assert (home / JOURNAL).read_bytes() == LINES[0], "half a line is not shipped"
    write(one, LINES[1][4:])
    shipper.heartbeat()
    other, its = node(tmp_path, "other", store, store.grant("run", "the node was lost"))
    assert (other / JOURNAL).read_bytes() == LINES[0] + LINES[1]
    write(other, LINES[2])
    write(other, b"{}", "result.json")
    its.finish()
    assert (home / JOURNAL).read_bytes() == b"".join(LINES)
    assert (home / "result.json").read_bytes() == b"{}"
    assert [each["type"] for each in RunFolder(home).incidents()] == ["moved"]


def test_a_folder_in_the_place_of_results_is_not_deleted(tmp_path: Path, store: SegmentStore, home: Path) -> None:
    one, shipper = node(tmp_path, "one", store, store.grant("run"))
    write(one, b"{}", "report.html")
    write(home, b"beach", "report.html/beach.jpg")
    with pytest.raises(JournalError, match="cannot be written: Is a directory"):
        shipper.finish()
    assert (home / "report.html" / "beach.jpg").exists()


def test_a_previous_owner_is_refused(tmp_path: Path, store: SegmentStore, home: Path) -> None:
    one, shipper = node(tmp_path, "one", store, store.grant("run"))
    lease = store.grant("run", "silent")
    write(one, LINES[0])
    with pytest.raises(StoppedError, match="another node"):
        shipper.heartbeat()
    assert not (home / JOURNAL).exists()
    assert store.fetch("run", lease - 1) is None
    _, its = node(tmp_path, "other", store, lease)
    its.heartbeat()


def test_a_run_without_an_owner_takes_nothing(tmp_path: Path, store: SegmentStore) -> None:
    one, shipper = node(tmp_path, "one", store, store.grant("run"))
    store.release("run")
    write(one, LINES[0])
    with pytest.raises(StoppedError):
        shipper.ship()


def test_a_run_is_locked_while_it_has_an_owner(store: SegmentStore, home: Path) -> None:
    store.grant("run")
    with pytest.raises(InputError, match="another process is playing this run"), RunFolder(home).lock():
        pass
    store.release("run")
    with RunFolder(home).lock():
        pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "damaged in transit"),
        ({"pieces": (Piece(JOURNAL, 0, b"[]\n"),)}, "damaged in transit"),
        ({"number": 3}, "out of order after segment 0"),
        ({"pieces": (Piece(JOURNAL, 7, LINES[0]),)}, "expected 7 bytes here, got 0"),
        ({"pieces": (Piece("../elsewhere", 0, b""),)}, "cannot write to"),
        ({"pieces": (Piece("manifest.json", 2, b"{}"),)}, "cannot write to"),
        ({"pieces": (Piece("/elsewhere", 0, b""),)}, "cannot write to"),
        ({"renames": (("conversations/..", "x"),)}, "cannot write to"),
    ],
)
def test_an_invalid_segment_is_refused_and_nothing_is_written(
    change: dict[str, object], message: str, store: SegmentStore, home: Path
) -> None:
    segment = Segment.seal("run", store.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])])
    wrong = dataclasses.replace(segment, **change)  # type: ignore[arg-type]
    if "damaged" not in message:
        wrong = Segment.seal(wrong.run, wrong.lease, wrong.number, wrong.pieces, wrong.renames)
    with pytest.raises(JournalError, match=message):
        store.take(wrong)
    assert sorted(path.name for path in home.iterdir()) == [".lock", "manifest.json"]
    assert store.take(segment) == "continue"


def test_a_link_is_not_followed(store: SegmentStore, home: Path, tmp_path: Path) -> None:
    (tmp_path / "target" / "main").mkdir(parents=True)
    segment = Segment.seal("run", store.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])])
    (home / "conversations").symlink_to(tmp_path / "target")
    for step in (lambda: store.take(segment), lambda: store.fetch("run", 1), lambda: store.grant("run")):
        with pytest.raises(JournalError, match="conversations: is a symbolic link"):
            step()
    assert not list((tmp_path / "target" / "main").iterdir())


def test_a_segment_that_arrives_twice_is_stored_once(store: SegmentStore, home: Path) -> None:
    segment = Segment.seal("run", store.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])])
    assert [store.take(segment), store.take(segment)] == ["continue", "continue"]
    assert (home / JOURNAL).read_bytes() == LINES[0]


def test_a_large_file_takes_several_segments(tmp_path: Path, store: SegmentStore, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.running.sweeps.ray.segments.MAX_BYTES", 16)
    taken: list[Segment] = []

    def take(segment: Segment) -> Answer:
        taken.append(segment)
        return store.take(segment)

    one, _ = node(tmp_path, "one", store, store.grant("run"))
    shipper = Shipper(one, 1, take)
    write(one, b"".join(LINES) + b'{"text":"longer than any segment"}\n')
    write(one, b"x" * 40, "report.html")
    shipper.finish()
    assert (home / JOURNAL).read_bytes() == (one / JOURNAL).read_bytes()
    assert (home / "report.html").read_bytes() == b"x" * 40
    assert [segment.number for segment in taken] == list(range(1, len(taken) + 1))
    assert max(len(piece.content) for segment in taken for piece in segment.pieces) <= 16


class Saves(BaseAgent):
    """Has a snapshot of two files."""

    async def reply(self, message: Message) -> Reply:
        return Reply("OK.")

    async def save(self, folder: Path) -> None:
        (folder / "memory").mkdir()
        (folder / "memory" / "state.txt").write_bytes(b"state")
        (folder / "empty").touch()

    async def load(self, folder: Path) -> None:
        assert (folder / "memory" / "state.txt").read_bytes() == b"state"


def test_two_snapshots_are_kept_and_no_others_seen(tmp_path: Path, store: SegmentStore, home: Path) -> None:
    one, shipper = node(tmp_path, "one", store, store.grant("run"))
    for turn in (10, 20, 30):
        trio.run(Snapshots(one / SNAPSHOTS).save, Saves(), turn)
        shipper.heartbeat()
    JsonLines(one / RECORD).append({"turn": 40})
    shipper.heartbeat()
    write(home, b"half", f"{SNAPSHOTS}/.00000040.partial/state.txt")
    for foreign in ("20240617", ".20240617.partial"):
        write(home, b"a photo", f"{SNAPSHOTS}/{foreign}/beach.jpg")
    other, _ = node(tmp_path, "other", store, store.grant("run", "lost"))
    kept = sorted((other / SNAPSHOTS).iterdir())
    assert [path.name for path in kept] == ["00000020", "00000030"]
    assert (kept[1] / "empty").read_bytes() == b""
    assert trio.run(Snapshots(other / SNAPSHOTS).restore, Saves(), 35) == 30
    assert sorted(path.name for path in (home / SNAPSHOTS).iterdir()) == [".20240617.partial", "00000020", "00000030", "20240617"]


def test_a_node_replaces_only_what_the_records_name(tmp_path: Path, store: SegmentStore, home: Path) -> None:
    store.grant("run")
    (home / RECORD).parent.mkdir(parents=True)
    JsonLines(home / RECORD).append({"turn": 10})
    for source, target in (
        (f"{SNAPSHOTS}/.20240617.partial", f"{SNAPSHOTS}/20240617"),
        (f"{SNAPSHOTS}/20240617", f"{SNAPSHOTS}/00000010"),
        (".mine.partial", "mine"),
    ):
        for name in (source, target):
            write(home, b"a photo", f"{name}/beach.jpg")
        with pytest.raises(JournalError, match="the run's records do not name it"):
            store.take(Segment.seal("run", 1, 1, [], [(source, target)]))
        assert (home / source / "beach.jpg").exists()
    store.take(Segment.seal("run", 1, 1, [Piece(f"{SNAPSHOTS}/.00000010.partial/state.txt", 0, b"state")]))
    store.take(Segment.seal("run", 1, 2, [], [(f"{SNAPSHOTS}/.00000010.partial", f"{SNAPSHOTS}/00000010")]))
    assert [path.name for path in (home / SNAPSHOTS / "00000010").iterdir()] == ["state.txt"]


def test_silent_owners_are_listed(tmp_path: Path, store: SegmentStore, clock: Clock) -> None:
    lease = store.grant("run")
    clock.now = 100
    assert store.silent_owners(10) == [], "it has not started"
    _, shipper = node(tmp_path, "one", store, lease)
    clock.now = 109
    shipper.heartbeat()
    clock.now = 118
    assert store.silent_owners(10) == []
    clock.now = 120
    assert store.silent_owners(10) == [("run", lease)]


def test_the_answer_to_a_segment_stops_the_node(tmp_path: Path, store: SegmentStore) -> None:
    _, shipper = node(tmp_path, "one", store, store.grant("run"))
    shipper.heartbeat()
    assert not shipper.stopped
    store.stopping = True
    shipper.heartbeat()
    assert shipper.stopped
    assert store.fetch("run", 1) is None, "a node that has not started does not start"


# Shared limits.

KEY = ("openai", "http://127.0.0.1:1")
LIMITS = (2.0, inf, inf)


@pytest.fixture
def limits() -> LimitServer:
    return LimitServer(limit=limit_of(1.0), spent=Amount(0.2))


def test_a_limit_holds_for_all_owners(limits: LimitServer) -> None:
    tickets = [limits.enter((owner, 1), KEY, Limiter, LIMITS, Slot(0.0, 10)) for owner in "abc"]
    let_through = [ticket.result(10) for ticket in islice(as_completed(tickets, 10), 2)]
    (waiting,) = (ticket for ticket in tickets if not ticket.done())
    limits.release(let_through[0], Slot(0.0, 10, answered=True)).result(10)
    waiting.result(10)


def test_the_slots_of_a_lost_owner_are_free_again(limits: LimitServer) -> None:
    for _ in range(2):
        limits.enter(("gone", 1), KEY, Limiter, LIMITS, Slot(0.0, 10)).result(10)
    waiting = limits.enter(("here", 1), KEY, Limiter, LIMITS, Slot(0.0, 10))
    limits.revoke(("gone", 1)).result(10)
    waiting.result(10)
    with pytest.raises(StoppedError, match="another node"):
        limits.enter(("gone", 1), KEY, Limiter, LIMITS, Slot(0.0, 10)).result(10)


def test_dollars_are_shared_and_those_of_a_lost_owner_are_spent(limits: LimitServer) -> None:
    first = limits.reserve(("a", 1), Amount(0.5)).result(10)
    second = limits.reserve(("b", 1), Amount(0.4))
    assert not second.done()
    limits.release(first, Amount(0.1)).result(10)  # $0.30 are spent by now
    second.result(10)
    third = limits.reserve(("a", 1), Amount(0.5))
    limits.revoke(("b", 1)).result(10)  # $0.70
    with pytest.raises(StoppedError, match="exceed the limit"):
        third.result(10)
    limits.reserve(("a", 1), Amount(0.2)).result(10)


def test_until_a_price_is_known_one_node_asks(limits: LimitServer) -> None:
    call = UnpricedCall("agent", 100)
    first = limits.reserve(("a", 1), call).result(10)
    others = {limits.reserve((node, 1), call): node for node in ("b", "c")}
    known = limits.reserve(("d", 1), Amount(0.1)).result(10)
    assert not any(other.done() for other in others)
    limits.release(first, Amount(0.3)).result(10)
    (second,), (third,) = wait(others, timeout=10, return_when=FIRST_COMPLETED)  # nobody says which of them comes first
    assert second.result() is not None
    assert not third.done(), "each is taken to take as much: $1.20 in all"
    limits.release(known, None).result(10)  # it failed
    limits.revoke((others[second], 1)).result(10)  # $0.90
    with pytest.raises(StoppedError, match="exceed the limit"):
        third.result(10)


# Resources.


@pytest.mark.parametrize(
    ("agent", "cpus", "gpus"),
    [
        ("oracle", 1, 0),
        ("gguf/model.gguf", 1, 0),
        ("gguf/model.gguf?gpu_layers=0", 1, 0),
        ("gguf/model.gguf?gpu_layers=-1", 1, 1),
        ("ltm/gguf/model.gguf?memory=json&gpu_layers=20", 1, 1),
        ("openai/some?base_url=http://127.0.0.1:1/v1", 0.25, 0),
    ],
)
def test_a_run_requires_what_its_agent_needs(agent: str, cpus: float, gpus: float, tmp_path: Path) -> None:
    planned = plan_run(
        RunSettings(suite=load_suite("ltm").apply_changes([], [], ["colours"], 1), span=2000, seed=0, agent="oracle"), tmp_path
    )
    assert requested_resources(dataclasses.replace(planned, agent=AgentSpec.parse(agent))) == (cpus, gpus)


@pytest.mark.parametrize(("failures", "error"), [(0, None), (1, None), (2, "there is no module 'mine'")])
def test_a_run_that_a_node_cannot_begin_is_played_once_more(failures: int, error: str | None, home: Path, tmp_path: Path) -> None:
    answers = [{"error": "there is no module 'mine'", "stopped": False, "unfit": True}] * failures + [{"error": None, "stopped": False}]
    probes: list[None] = []

    def called(answer: Callable[..., Any]) -> Any:
        def remote(*given: Any) -> Any:
            future: Future[Any] = Future()
            future.set_result(answer(*given))
            return SimpleNamespace(future=lambda: future)

        return SimpleNamespace(remote=remote)

    async def probe_again() -> None:
        probes.append(None)
        await trio.lowlevel.checkpoint()

    task = SimpleNamespace(options=lambda **_: called(lambda *_: answers.pop(0)))
    coordinator = SimpleNamespace(grant=called(lambda *_: 1), release=called(lambda *_: None), silent_owners=called(lambda _: []))
    errors = SimpleNamespace(RayError=ValueError, TaskCancelledError=KeyError, RayTaskError=KeyError)
    nodes = SimpleNamespace(placement=dict, probe_new=trio.lowlevel.checkpoint, probe_again=probe_again)
    player = driver.Driver(SimpleNamespace(remote=lambda play: task, exceptions=errors), coordinator, nodes, UNLIMITED, None)  # type: ignore[arg-type]
    settings = RunSettings(suite=load_suite("ltm").apply_changes([], [], ["colours"], 1), span=2000, agent="oracle")
    (outcome,) = trio.run(player.play, [(plan_run(settings, tmp_path), RunFolder(home))])
    assert (str(outcome.error) if outcome.error else None) == error
    assert len(probes) == min(failures, 1)


# The copy of the current folder.

COPIED = ("agent.py", "data/facts.txt", "environment.py", "keyboard.key.py", "tokens.json")
LEFT_OUT = (
    *(".env", "prod.env", "server.key", "data/CERT.PEM", "id_rsa", "credentials.json", "my_secrets.yaml", ".git/config", "linked.py"),
    *("__pycache__/agent.pyc", "venv/pyvenv.cfg", "venv/lib/module.py", "runs/one/manifest.json", "runs/one/conversations/main"),
    *("swept/sweep.json", "out/notes.txt"),
)


def test_the_copy_of_a_folder_has_neither_keys_nor_runs_and_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, archive = tmp_path / "here", tmp_path / "copy.zip"
    for name in (*COPIED, *LEFT_OUT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "linked.py":
            (folder / name).symlink_to(tmp_path)
        else:
            (folder / name).write_text("0123456789", "utf-8")
    os.mkfifo(folder / "pipe")
    pack_folder(folder, folder / "out", archive)
    with ZipFile(archive) as packed:
        assert sorted(packed.namelist()) == sorted(COPIED)
    monkeypatch.setattr(folder_copy, "MAX_BYTES", 49)
    with pytest.raises(InputError, match=r"/here: more than 0 MB to send .* or add --no-ship if the nodes have the folder"):
        pack_folder(folder, folder / "out", archive)


def test_giving_up_a_run_is_recorded_when_nobody_else_writes_there(
    store: SegmentStore, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class RayError(Exception):
        """The node was lost."""

    run = RunFolder(home)
    types: list[list[str]] = []

    def remote(method: Callable[..., Any]) -> Any:
        return SimpleNamespace(remote=method)

    def release(name: str, lease: int) -> None:
        types.append([entry["type"] for entry in run.incidents()])
        store.release(name)

    async def at_once(answer: Any) -> Any:
        await trio.lowlevel.checkpoint()
        if answer is lost:
            raise RayError
        return answer

    lost = object()
    task = SimpleNamespace(options=lambda **_: remote(lambda *_: lost))
    monkeypatch.setattr(driver, "answer_of", at_once)
    coordinator = SimpleNamespace(
        grant=remote(lambda name, lease, why: store.grant(name, why)), release=remote(release), silent_owners=remote(lambda seconds: [])
    )
    others = {"TaskCancelledError": KeyError, "RayTaskError": KeyError}
    ray = SimpleNamespace(remote=lambda play: task, exceptions=SimpleNamespace(RayError=RayError, **others))
    settings = RunSettings(suite=load_suite("ltm").apply_changes([], [], ["colours"], 1), span=2000, agent="oracle")
    nodes = SimpleNamespace(placement=dict, probe_new=trio.lowlevel.checkpoint)
    player = driver.Driver(ray, coordinator, nodes, UNLIMITED, None)  # type: ignore[arg-type]
    (outcome,) = trio.run(player.play, [(plan_run(settings, tmp_path), run)])
    assert "lost 4 times without a new turn; the last time: the node was lost: RayError" in str(outcome.error)
    assert types == [["moved"] * 3]
    assert [entry["type"] for entry in run.incidents()] == ["moved"] * 3 + ["interrupted"]
