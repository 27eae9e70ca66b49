"""A run survives being killed at any moment: once resumed, its journal equals an uninterrupted run's.

By default a few of the kills, drawn by a seed, are tested. To test all:

    LONGSPAN_KILLS=all python -m pytest tests/durability/test_crash.py
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest
import trio

from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.running.scoring import score_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.suite.trust import admit_manifest
from tests.forked import PROCESSES
from tests.halfway import halfway, killed_at
from tests.loopback import Stateful
from tests.sealing import nameless

PEER = Path(__file__).parent / "peer.py"
AGENTS = {name: f"python:tests.durability.agents:{name}" for name in ("Keeper", "Forgetful", "Deaf", "Remote")}
AGENTS["Exec"] = f"exec:{sys.executable} -S {PEER}"
AGENTS["ExecDeaf"] = f"exec:{sys.executable} -S {PEER} deaf"
SHARE = 1.0 if os.environ.get("LONGSPAN_KILLS") == "all" else 0.1

Whole = Callable[..., list[dict[str, Any]]]


def planned(out: Path, agent: str, span: int, tests: int = 3) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], [], tests)
    return plan_run(RunSettings(suite=suite, span=span, seed=5, agent=AGENTS.get(agent, agent)), out)


def begin(out: Path, agent: str, span: int, tests: int, kill_at: int | None) -> None:
    """Play a run in a child process, which kills itself halfway through writing an event, or is killed by its parent."""
    with killed_at(kill_at):
        trio.run(lambda: play_plans([planned(out, agent, span, tests)]))


def entries(run: RunFolder) -> list[dict[str, Any]]:
    """Return a journal without what may differ: the run's name, measurements, and marks of turns that may have been sent twice."""
    entries = nameless(run.journal("main"))
    for entry in entries:
        entry.pop("repeated", None)
    return entries


def only(out: Path) -> RunFolder:
    (path,) = out.iterdir()
    return RunFolder(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The journal of an uninterrupted run, by agent, span and tests of each scenario."""
    known: dict[tuple[str, int, int], list[dict[str, Any]]] = {}

    def of(agent: str, span: int, tests: int = 3) -> list[dict[str, Any]]:
        if (agent, span, tests) not in known:
            out = tmp_path_factory.mktemp("whole")
            trio.run(lambda: play_plans([planned(out, agent, span, tests)]))
            known[agent, span, tests] = entries(only(out))
        return known[agent, span, tests]

    return of


def crash(out: Path, agent: str, span: int, tests: int = 3, *, kill_at: int | None = None, after: float | None = None) -> bool:
    """Start a run and kill it at an event or after some seconds. Return whether it had begun."""
    process = PROCESSES.Process(target=begin, args=(out, agent, span, tests, kill_at))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    return out.exists() and any(path.joinpath("manifest.json").exists() for path in out.iterdir())


def survives(out: Path, agent: str) -> list[dict[str, Any]]:
    run = only(out)
    admit_manifest(run.path, run.manifest, trust=True)
    outcome = trio.run(lambda: resume_run(run, AGENTS.get(agent, agent)))
    assert outcome.error is None
    return entries(run)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Agents that are servers in separate processes, which outlive longspan and remember earlier conversations."""
    specs = {}
    with ExitStack() as stack:
        for name, arguments in {"Http": [], "HttpDeaf": ["deaf"]}.items():
            command = [sys.executable, "-S", str(PEER), *arguments, "http"]
            server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(server.kill)
            assert server.stdout is not None
            specs[name] = f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        specs["Responses"] = f"responses/m?base_url={stack.enter_context(Stateful().running()).address}/v1"
        yield specs


def test_what_a_kill_at_an_event_leaves_is_resumed_to_the_same_journal(tmp_path: Path, whole: Whole) -> None:
    """One run is played, and its folder copied at the events, half of each written: what a kill leaves, for an agent in process."""
    tests = 3 if SHARE == 1 else 1
    expected = whole("Keeper", 2_000, tests)
    places = set(range(1, len(expected)))
    if SHARE < 1:  # each kind of event, when it first and when it last occurs, and some more
        kinds = [entry["type"] for entry in expected]
        ends = {place for kind in set(kinds) for place in (kinds.index(kind), len(kinds) - 1 - kinds[::-1].index(kind))} - {0}
        places = ends | set(Random("Keeper").sample(sorted(places), len(expected) // (2 if SHARE == 1 else 40)))

    def copy(journal: Journal, written: int, last: Event | None) -> None:
        if written in places:
            shutil.copytree(tmp_path / "whole", tmp_path / str(written))

    with halfway(copy):
        trio.run(lambda: play_plans([planned(tmp_path / "whole", "Keeper", 2_000, tests)]))
    for place in sorted(places):
        assert survives(tmp_path / str(place), "Keeper") == expected, f"killed at event {place}"


@pytest.mark.parametrize("agent", ["Keeper", "Forgetful", "Deaf", "Remote", "Exec", "ExecDeaf", "Http", "HttpDeaf", "Responses"])
def test_a_run_killed_at_an_event_is_resumed_to_the_same_journal(agent: str, tmp_path: Path, whole: Whole, servers: dict[str, str]) -> None:
    # A sample of the events of a short conversation: it proves how each kind of agent is restored, not the engine once more.
    random = Random(agent)
    agent = servers.get(agent, agent)
    expected = whole(agent, 2_000, 1)
    for place in sorted(random.sample(range(1, len(expected)), len(expected) // (2 if SHARE == 1 else 40))):
        out = tmp_path / str(place)
        assert crash(out, agent, 2_000, 1, kill_at=place)
        assert survives(out, agent) == expected, f"killed at event {place}"


def test_a_run_killed_at_any_moment_is_resumed_to_the_same_journal(tmp_path: Path, whole: Whole) -> None:
    span, tests = (32_000, 3) if SHARE == 1 else (8_000, 1)  # with both, snapshots are taken and removed many times
    expected = whole("Keeper", span, tests)
    random = Random(0)
    began = monotonic()
    crash(tmp_path / "whole", "Keeper", span, tests)
    length = monotonic() - began
    killed, tries = 0, 200 if SHARE == 1 else 8
    for number in range(tries):
        out = tmp_path / str(number)
        if crash(out, "Keeper", span, tests, after=random.uniform(0.2, 1) * length):
            killed += 1
            assert survives(out, "Keeper") == expected
    assert killed > tries / 20


def test_a_run_killed_repeatedly_finishes(tmp_path: Path, whole: Whole) -> None:
    expected = whole("Keeper", 2_000, 1)
    assert crash(tmp_path, "Keeper", 2_000, 1, kill_at=40)
    run = only(tmp_path)
    for _ in range(3):
        process = PROCESSES.Process(target=resume_and_die, args=(run.path, 45))
        process.start()
        process.join()
    assert survives(tmp_path, "Keeper") == expected


def resume_and_die(path: Path, events: int) -> None:
    """Resume a run in a child process, which kills itself after some new events."""
    with killed_at(events):
        trio.run(lambda: resume_run(RunFolder(path), AGENTS["Keeper"]))


def test_a_turn_that_may_have_been_sent_twice_is_marked(tmp_path: Path) -> None:
    assert crash(tmp_path, "Keeper", 2_000, 1, kill_at=8)
    run = only(tmp_path)
    torn = run.journal("main").read_text().splitlines()
    pending = [json.loads(line) for line in torn[:-1]][-1]
    assert pending["type"] == "message", "killed while the reply was being written"
    survives(tmp_path, "Keeper")
    marked = [json.loads(line) for line in run.journal("main").read_text().splitlines()]
    assert [entry["turn"] for entry in marked if entry.get("repeated")] == [pending["turn"]]


def test_an_incomplete_last_line_is_cut_off(tmp_path: Path) -> None:
    trio.run(lambda: play_plans([planned(tmp_path, "Keeper", 2_000, tests=1)]))
    run = only(tmp_path)
    path = run.journal("main")
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with Journal(path) as journal:
        assert journal.torn
    assert path.read_bytes().endswith(b"\n")
    path.write_bytes(content)
    with Journal(path) as journal:
        assert not journal.torn


def test_after_a_damaged_snapshot_the_one_before_is_used(tmp_path: Path, whole: Whole) -> None:
    expected = whole("Keeper", 2_000)
    assert crash(tmp_path, "Keeper", 2_000, kill_at=len(expected) // 2)
    kept = sorted(only(tmp_path).snapshots("main").iterdir())
    assert len(kept) == 2
    (kept[-1] / "state.txt").unlink()
    assert survives(tmp_path, "Keeper") == expected


def test_two_processes_cannot_play_one_run(tmp_path: Path) -> None:
    trio.run(lambda: play_plans([planned(tmp_path, "Keeper", 2_000, tests=1)]))
    run = only(tmp_path)
    with run.lock(), pytest.raises(InputError, match="another process is playing this run"):
        trio.run(lambda: resume_run(RunFolder(run.path), AGENTS["Keeper"]))
    assert trio.run(lambda: resume_run(run, AGENTS["Keeper"])).error is None


@pytest.fixture
def started(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`longspan run` in a child process that has had its first reply."""
    command = [sys.executable, "-u", "-c", "from longspan.simulator.cli import main; main()"]
    arguments = ["run", "ltm", "--span", "32k", "--agent", AGENTS["Keeper"], "--out", str(tmp_path), "--seed", "5"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "to play" in line:
            break
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_after_a_complete_turn_and_says_how_to_resume(
    sent: signal.Signals, started: subprocess.Popen[str], tmp_path: Path, whole: Whole
) -> None:
    started.send_signal(sent)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    run = only(tmp_path)
    assert "stopped after turn" in err
    assert f"longspan resume {run.path}" in out.replace("\n", "")
    last = json.loads(run.journal("main").read_text().splitlines()[-1])
    assert last["type"] != "message", "the current turn was finished"
    turns = sum(entry["type"] == "reply" for entry in entries(run))
    assert max(int(path.name) for path in run.snapshots("main").iterdir()) == turns, "the agent was saved where it stopped"
    assert survives(tmp_path, "Keeper") == whole("Keeper", 32_000)


def test_a_process_left_behind_by_the_agent_does_not_lock_the_run(tmp_path: Path) -> None:
    trio.run(lambda: play_plans([planned(tmp_path, "Keeper", 2_000, tests=1)]))
    run = only(tmp_path)
    reader, writer = os.pipe()
    with run.lock():
        child = os.fork()
        if child == 0:
            os.write(writer, b"!")
            signal.pause()
            os._exit(0)
        os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    try:
        with run.lock():
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_nothing_is_written_through_links_in_an_untrusted_run(tmp_path: Path) -> None:
    trio.run(lambda: play_plans([planned(tmp_path / "runs", "Keeper", 2_000, tests=1)]))
    run = only(tmp_path / "runs")
    mine = tmp_path / "mine.txt"
    mine.write_text("mine\n")
    (run.path / ".result.json.partial").symlink_to(mine)
    score_run(run)
    (run.path / "grades.jsonl").unlink()
    (run.path / "grades.jsonl").symlink_to(mine)
    with pytest.raises(JournalError):
        score_run(run)
    assert mine.read_text() == "mine\n"
