"""A memory survives being killed: wherever it is, a resumed run has the journal of an uninterrupted one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from longspan.agents.memory.agent import AnsweringAgent
from longspan.simulator.journal.events import Event, Snapshot
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from longspan.simulator.suite.trust import admit_manifest
from tests.agents.memories import Answering
from tests.agents.test_memory_kinds import KINDS
from tests.durability.test_crash import SHARE, entries, only, planned, survives
from tests.halfway import halfway
from tests.loopback import Service

SPAN = 2_000
EVENTS = 160
"""The events of a run at least."""
OURS = {"full": "full", "bm25": "bm25", "recent": "recent?tokens=1k"}


@pytest.mark.parametrize("name", [*OURS, *(name for name in KINDS if name != "asyncio"), "http"])
def test_a_run_killed_at_an_event_is_resumed_to_the_same_journal(name: str, tmp_path: Path) -> None:
    with Service(Answering()).running() as service:
        kind = (OURS | KINDS).get(name, service.address)
        agent = f"memory/{kind}{'&' if '?' in kind else '?'}answerer=none&batch={'turn' if name == 'bm25' else 'session'}&unchecked=true"
        places = set(Random(name).sample(range(1, EVENTS), EVENTS // (4 if SHARE == 1 else 80)))
        copies: list[Path] = []

        def copy(journal: Journal, written: int, last: Event | None) -> None:
            saved = isinstance(last, Snapshot) and not any(path.name == "saved" for path in copies)
            if saved or written in places:
                copies.append(tmp_path / ("saved" if saved else str(written)))
                shutil.copytree(tmp_path / "whole", copies[-1])

        with halfway(copy):
            trio.run(lambda: play_plans([planned(tmp_path / "whole", agent, SPAN, 1)]))
        expected = entries(only(tmp_path / "whole"))
        assert len(expected) >= EVENTS
        assert len(copies) >= len(places)
        for copied in copies:
            assert survives(copied, agent) == expected, f"killed at event {copied.name}"


# What a memory costs is told once, however often a run is killed.

BILLING = "memory/python:tests.agents.memories:{}?answerer=none&batch={}"
HISTORY = Suite(name="diary", tests=1, scenarios={"python:tests.diary:Diary": {"entries": 10}})


def history(out: Path, agent: str) -> Plan:
    return plan_run(RunSettings(suite=HISTORY, span=2_000, seed=4, agent=agent), out)


def with_nights(out: Path, agent: str) -> Plan:
    suite = load_suite("memory").apply_changes([], [], ["forget"], 1)
    return plan_run(RunSettings(suite=suite, span=2_000, seed=4, agent=agent, nights=3), out)


def with_experiments(out: Path, agent: str) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    return plan_run(RunSettings(suite=suite, span=2_000, seed=4, agent=agent, twins=1, lesion=500), out)


def told(run: RunFolder, outcome: Outcome) -> dict[str, Any]:
    """Return all that a run tells: its journals and its results, without what the clock measured, and its snapshots' events."""
    assert outcome.error is None
    assert outcome.result is not None
    assert trio.run(replay_run, run).costs == outcome.result.costs
    assert (spending := outcome.result.spending) is not None
    once = sum(part.cost_usd or 0 for part in outcome.result.costs.values())
    assert spending.known_usd - spending.again_usd >= once - 1e-9, "what the journals tell is in the record too"

    def essential(line: str) -> dict[str, Any]:
        entry = {name: value for name, value in json.loads(line).items() if name not in ("measured", "repeated", "sum")}
        if entry["type"] == "begin":
            del entry["run"]  # each run has a name of its own
            entry |= {"trunk": entry["trunk"] | {"sum": None}} if "trunk" in entry else {}
        return entry

    journals = {id: [essential(line) for line in run.journal(id).read_text().splitlines()] for id in run.manifest.played}
    return {"journals": journals, "result": timeless(outcome.result)}


def timeless(result: Result) -> dict[str, Any]:
    fields = result.model_dump(exclude={"run", "spending"})  # a run that was killed has paid for more
    fields["metrics"] = {name: value for name, value in fields["metrics"].items() if "seconds" not in name and name != "add_growth"}
    return fields


def killed(out: Path, go: Callable[[], Outcome], places: dict[int, Path]) -> tuple[Outcome, int]:
    """Play on in `out`, and copy the folder at events, by their numbers, half of each written. Return how many were written."""
    halves = 0

    def copy(journal: Journal, written: int, last: Event | None) -> None:
        nonlocal halves
        halves = written + 1
        if written in places:
            shutil.copytree(out, places[written])

    with halfway(copy):
        outcome = go()
    return outcome, halves


def resumed(out: Path) -> Outcome:
    run = only(out)
    admit_manifest(run.path, run.manifest, trust=True)
    return trio.run(lambda: resume_run(run, run.manifest.agent))


@pytest.mark.parametrize(
    ("planned", "memory", "batch", "rewinds"),
    [
        (history, "Billing", "4", True),
        (history, "Billing", "turn", False),
        (history, "Billing", "session", False),
        (history, "Unsaved", "4", True),
        (with_nights, "Billing", "4", True),
        (with_nights, "Unsaved", "turn", True),
        (with_experiments, "Billing", "3", True),
        (with_experiments, "Unsaved", "3", True),
    ],
)
def test_what_a_memory_took_is_told_once_however_often_it_is_killed(
    planned: Callable[[Path, str], Plan], memory: str, batch: str, rewinds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not rewinds:
        monkeypatch.setattr(AnsweringAgent, "rewinds", False)
    agent, whole = BILLING.format(memory, batch), tmp_path / "whole"
    outcome, length = killed(whole, lambda: trio.run(lambda: play_plans([planned(whole, agent)]))[0], {})
    expected = told(only(whole), outcome)
    assert expected["result"]["costs"]["memory"]["cost_usd"] > 0
    if planned is history:
        for id, journal in expected["journals"].items():
            added = sum(entry.get("trace", {}).get("added", {}).get("turns", 0) for entry in journal)
            assert added == 10 if id == "diary-d1" else added <= 1, "a history is added once for all its questions"

    random = Random(f"{planned.__name__} {memory} {batch} {rewinds}")
    for chain in range(2 if SHARE < 1 else 40):
        half, out = length // 2, tmp_path / f"{chain}-0"
        at = random.randrange(1, half) + chain % 2 * half
        go: Callable[[], Outcome] = lambda: trio.run(lambda: play_plans([planned(tmp_path / f"{chain}", agent)]))[0]  # noqa: B023, E731
        killed(tmp_path / f"{chain}", go, {at: out})
        for again in range(1, 4):
            after = random.randrange(1, max(2, length // 4))
            later = tmp_path / f"{chain}-{again}"
            outcome, _ = killed(out, lambda: resumed(out), {after: later})  # noqa: B023
            assert told(only(out), outcome) == expected, f"killed at event {at}, then after {again}"
            if not later.exists():
                break
            out = later
