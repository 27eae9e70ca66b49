"""What keeps a sweep on many machines whole, without the machines: segments, leases, shared limits."""

from __future__ import annotations

import dataclasses
from concurrent.futures import as_completed
from itertools import islice
from math import inf
from pathlib import Path

import pytest

from longspan.agents.models.limits import Limiter, Slot
from longspan.simulator.agent_spec import AgentSpec
from longspan.simulator.errors import InputError, JournalError, StoppedError
from longspan.simulator.planning import plan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import load_suite
from longspan.simulator.sweeps.ray.driver import wants
from longspan.simulator.sweeps.ray.limit_server import Desk
from longspan.simulator.sweeps.ray.segment_store import Depot
from longspan.simulator.sweeps.ray.segments import Answer, Piece, Segment, Shipper

LINES = [b'{"seq":0}\n', b'{"seq":1}\n', b'{"seq":2}\n']
JOURNAL = "conversations/main/journal.jsonl"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def depot(tmp_path: Path, clock: Clock) -> Depot:
    """A depot of one run, whose folder has a manifest and no more."""
    (tmp_path / "home" / "run").mkdir(parents=True)
    (tmp_path / "home" / "run" / "manifest.json").write_text("{}")
    return Depot({"run": tmp_path / "home" / "run"}, clock)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "run"


def node(tmp_path: Path, name: str, depot: Depot, lease: int) -> tuple[Path, Shipper]:
    """A node that has fetched the run: its folder, and what ships it."""
    files = depot.fetch("run", lease)
    assert files is not None
    folder = tmp_path / name / "run"
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder, Shipper(folder, lease, depot.take)


def write(folder: Path, content: bytes, name: str = JOURNAL) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(content)


def test_what_was_shipped_is_there_and_goes_on_elsewhere(tmp_path: Path, depot: Depot, home: Path) -> None:
    one, shipper = node(tmp_path, "one", depot, depot.grant("run"))
    write(one, LINES[0] + LINES[1][:4])
    shipper.ship()
    assert (home / JOURNAL).read_bytes() == LINES[0], "half a line is not shipped"
    write(one, LINES[1][4:])
    shipper.beat()
    other, its = node(tmp_path, "other", depot, depot.grant("run", "the node was lost"))
    assert (other / JOURNAL).read_bytes() == LINES[0] + LINES[1]
    write(other, LINES[2])
    write(other, b"{}", "result.json")
    its.end()
    assert (home / JOURNAL).read_bytes() == b"".join(LINES)
    assert (home / "result.json").read_bytes() == b"{}"
    assert [each["type"] for each in RunFolder(home).incidents()] == ["moved"]


def test_an_owner_of_before_is_refused(tmp_path: Path, depot: Depot, home: Path) -> None:
    one, shipper = node(tmp_path, "one", depot, depot.grant("run"))
    lease = depot.grant("run", "silent")
    write(one, LINES[0])
    with pytest.raises(StoppedError, match="another node"):
        shipper.beat()
    assert not (home / JOURNAL).exists()
    assert depot.fetch("run", lease - 1) is None
    _, its = node(tmp_path, "other", depot, lease)
    its.beat()


def test_a_run_that_nobody_owns_takes_nothing(tmp_path: Path, depot: Depot) -> None:
    one, shipper = node(tmp_path, "one", depot, depot.grant("run"))
    depot.release("run")
    write(one, LINES[0])
    with pytest.raises(StoppedError):
        shipper.ship()


def test_a_run_that_is_owned_is_locked_and_let_go(depot: Depot, home: Path) -> None:
    depot.grant("run")
    with pytest.raises(InputError, match="another process is playing this run"), RunFolder(home).lock():
        pass
    depot.release("run")
    with RunFolder(home).lock():
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "damaged on its way"),
        ({"pieces": (Piece(JOURNAL, 0, b"[]\n"),)}, "damaged on its way"),
        ({"number": 3}, "came after segment 0"),
        ({"pieces": (Piece(JOURNAL, 7, LINES[0]),)}, "has 0 bytes here, and should have 7"),
        ({"pieces": (Piece("../elsewhere", 0, b""),)}, "nothing is written to"),
        ({"pieces": (Piece("manifest.json", 2, b"{}"),)}, "nothing is written to"),
        ({"pieces": (Piece("/elsewhere", 0, b""),)}, "nothing is written to"),
        ({"named": (("conversations/..", "x"),)}, "nothing is written to"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(change: dict[str, object], said: str, depot: Depot, home: Path) -> None:
    segment = Segment.seal("run", depot.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])])
    wrong = dataclasses.replace(segment, **change)  # type: ignore[arg-type]
    if "damaged" not in said:
        wrong = Segment.seal(wrong.run, wrong.lease, wrong.number, wrong.pieces, wrong.named)
    with pytest.raises(JournalError, match=said):
        depot.take(wrong)
    assert sorted(path.name for path in home.iterdir()) == [".lock", "manifest.json"]
    assert depot.take(segment) == "go on"


def test_a_link_is_not_followed(depot: Depot, home: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (home / "conversations").symlink_to(tmp_path / "target")
    with pytest.raises(JournalError, match="is a link"):
        depot.take(Segment.seal("run", depot.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])]))
    assert not list((tmp_path / "target").iterdir())


def test_a_segment_that_comes_twice_is_kept_once(depot: Depot, home: Path) -> None:
    segment = Segment.seal("run", depot.grant("run"), 1, [Piece(JOURNAL, 0, LINES[0])])
    assert [depot.take(segment), depot.take(segment)] == ["go on", "go on"]
    assert (home / JOURNAL).read_bytes() == LINES[0]


def test_what_is_larger_than_a_segment_comes_in_several(tmp_path: Path, depot: Depot, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.sweeps.ray.segments.LARGEST", 16)
    taken: list[Segment] = []

    def take(segment: Segment) -> Answer:
        taken.append(segment)
        return depot.take(segment)

    one, _ = node(tmp_path, "one", depot, depot.grant("run"))
    shipper = Shipper(one, 1, take)
    write(one, b"".join(LINES) + b'{"text":"longer than any segment"}\n')
    write(one, b"x" * 40, "report.html")
    shipper.end()
    assert (home / JOURNAL).read_bytes() == (one / JOURNAL).read_bytes()
    assert (home / "report.html").read_bytes() == b"x" * 40
    assert [segment.number for segment in taken] == list(range(1, len(taken) + 1))
    assert max(len(piece.content) for segment in taken for piece in segment.pieces) <= 16


def test_two_snapshots_are_kept_and_half_ones_never_seen(tmp_path: Path, depot: Depot, home: Path) -> None:
    one, shipper = node(tmp_path, "one", depot, depot.grant("run"))
    for turn in (10, 20, 30):
        write(one, b"state", f"conversations/main/snapshots/{turn:08d}/memory/state.txt")
        write(one, b"", f"conversations/main/snapshots/{turn:08d}/empty")
        shipper.beat()
    write(home, b"half", "conversations/main/snapshots/.00000040.partial/state.txt")
    other, _ = node(tmp_path, "other", depot, depot.grant("run", "lost"))
    kept = sorted((other / "conversations" / "main" / "snapshots").iterdir())
    assert [path.name for path in kept] == ["00000020", "00000030"]
    assert (kept[1] / "memory" / "state.txt").read_bytes() == b"state"
    assert (kept[1] / "empty").read_bytes() == b""
    assert sorted(path.name for path in (home / "conversations" / "main" / "snapshots").iterdir()) == ["00000020", "00000030"]


def test_who_is_not_heard_of_is_told(tmp_path: Path, depot: Depot, clock: Clock) -> None:
    lease = depot.grant("run")
    clock.now = 100
    assert depot.quiet(10) == [], "it has not begun"
    _, shipper = node(tmp_path, "one", depot, lease)
    clock.now = 109
    shipper.beat()
    clock.now = 118
    assert depot.quiet(10) == []
    clock.now = 120
    assert depot.quiet(10) == [("run", lease)]


def test_a_sweep_that_stops_is_told_with_the_next_segment(tmp_path: Path, depot: Depot) -> None:
    _, shipper = node(tmp_path, "one", depot, depot.grant("run"))
    shipper.beat()
    assert not shipper.stopped
    depot.stopping = True
    shipper.beat()
    assert shipper.stopped
    assert depot.fetch("run", 1) is None, "who has not begun does not begin"


# The desk.

KEY = ("openai", "http://127.0.0.1:1")
LIMITS = (2.0, inf, inf)


@pytest.fixture
def desk() -> Desk:
    return Desk(limit=1.0, spent=0.2)


def test_a_limit_holds_for_all_owners(desk: Desk) -> None:
    tickets = [desk.enter((owner, 1), KEY, Limiter, LIMITS, Slot(0.0, 10)) for owner in "abc"]
    let_through = [ticket.result(10) for ticket in islice(as_completed(tickets, 10), 2)]
    (waiting,) = (ticket for ticket in tickets if not ticket.done())
    desk.give_back(let_through[0], Slot(0.0, 10, answered=True)).result(10)
    waiting.result(10)


def test_what_an_owner_held_who_has_gone_is_free_again(desk: Desk) -> None:
    for _ in range(2):
        desk.enter(("gone", 1), KEY, Limiter, LIMITS, Slot(0.0, 10)).result(10)
    waiting = desk.enter(("here", 1), KEY, Limiter, LIMITS, Slot(0.0, 10))
    desk.forget(("gone", 1)).result(10)
    waiting.result(10)
    with pytest.raises(StoppedError, match="another node"):
        desk.enter(("gone", 1), KEY, Limiter, LIMITS, Slot(0.0, 10)).result(10)


def test_dollars_are_shared_and_those_of_who_has_gone_are_spent(desk: Desk) -> None:
    first = desk.reserve(("a", 1), 0.5).result(10)
    second = desk.reserve(("b", 1), 0.4)
    assert not second.done()
    desk.give_back(first, 0.1).result(10)  # 0.3 are spent by now
    second.result(10)
    third = desk.reserve(("a", 1), 0.5)
    desk.forget(("b", 1)).result(10)  # 0.7
    with pytest.raises(StoppedError, match="exceed the limit"):
        third.result(10)
    desk.reserve(("a", 1), 0.2).result(10)


# What a run is given.


@pytest.mark.parametrize(
    ("agent", "processors", "gpus"),
    [
        ("oracle", 1, 0),
        ("gguf/model.gguf", 1, 0),
        ("gguf/model.gguf?gpu_layers=0", 1, 0),
        ("gguf/model.gguf?gpu_layers=-1", 1, 1),
        ("ltm/gguf/model.gguf?memory=json&gpu_layers=20", 1, 1),
        ("openai/some?base_url=http://127.0.0.1:1/v1", 0.25, 0),
    ],
)
def test_a_run_is_given_what_its_agent_needs(agent: str, processors: float, gpus: float, tmp_path: Path) -> None:
    planned = plan(RunSettings(suite=load_suite("ltm").changed([], [], ["colours"], 1), span=2000, seed=0, agent="oracle"), tmp_path)
    assert wants(dataclasses.replace(planned, agent=AgentSpec.parse(agent))) == (processors, gpus)
