"""The memory agent survives being killed at any moment: nothing is forgotten, and nothing is remembered twice."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from random import Random

import pytest
import trio

from longspan.simulator.journal.events import Event
from longspan.simulator.journal.journal import Journal
from longspan.simulator.running.runner import play_plans
from tests.durability.test_crash import SHARE, entries, only, planned, survives
from tests.halfway import halfway
from tests.loopback import Server

SPAN = 2_000
EVENTS = 160
"""The events of a run at least."""
WORDS = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]
KEY = "sk-a-key-that-is-nowhere-else"


def answer(text: str) -> str:
    """Return an answer that depends on every word of the model's last prompt, including memories and notes."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    words = " ".join(WORDS[int(digit, 16) % len(WORDS)] for digit in digest[: 1 + int(digest[0], 16)])
    if text.startswith("You keep notes"):
        return f'{{"{digest[1]}": "{words}"}}'
    return f'{{"queries": ["{words}"]}}' if "Do not answer it yet." in text else words


@pytest.fixture(scope="module")
def spec() -> Iterator[str]:
    """A memory agent whose model outlives longspan, whose memory is needed early, and whose prompts are too short for a cache."""
    with pytest.MonkeyPatch.context() as patch, Server(reply=answer).running() as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        yield f"ltm/openai/m?base_url={server.base_url('openai')}&context=1450&embedder=hash"


@pytest.fixture(scope="module")
def whole(spec: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run. Beside it are copies of its folder at some events, half of each written: what a kill leaves."""
    out = tmp_path_factory.mktemp("ltm") / "whole"
    places = set(range(1, EVENTS) if SHARE == 1 else Random("ltm").sample(range(1, EVENTS), 6))

    def copy(journal: Journal, written: int, last: Event | None) -> None:
        if written in places:
            shutil.copytree(out, out.parent / str(written))

    with halfway(copy):
        (outcome,) = trio.run(lambda: play_plans([planned(out, spec, SPAN, 1)]))
    assert outcome.error is None
    return out


def test_a_run_of_the_memory_agent_killed_at_an_event_is_resumed_to_the_same_journal(spec: str, whole: Path) -> None:
    expected = entries(only(whole))
    assert len(expected) >= EVENTS
    assert sum(len(entry.get("trace", {}).get("read", [])) for entry in expected) > 100, "memories are looked up"
    copies = [path for path in whole.parent.iterdir() if path != whole]
    assert len(copies) >= 6
    for copied in copies:
        differ = [pair for pair in zip_longest(survives(copied, spec), expected) if pair[0] != pair[1]]
        assert not differ, f"killed at event {copied.name}, differs first in {differ[0]}"


def test_a_run_records_what_was_remembered_when_and_at_what_cost(whole: Path) -> None:
    journal = entries(only(whole))
    replies = [entry for entry in journal if entry["type"] == "reply"]
    ids = {entry["turn_id"]: entry["turn"] for entry in journal if entry["type"] == "message"}
    for reply in replies:
        if not reply["asked"]:
            assert "trace" not in reply
            continue
        trace = reply["trace"]
        since = ids[trace["recent"]["since"]] if trace["recent"]["since"] else reply["turn"]
        assert reply["turn"] - since == trace["recent"]["turns"]
        assert all(ids[turn] < since for memory in trace["read"] for turn in memory["turns"])
        for name, total in reply["usage"].items():
            assert total == sum(call["usage"][name] for call in trace["calls"])
    everything = "".join(path.read_text("utf-8", "replace") for path in whole.rglob("*") if path.is_file())
    assert KEY not in everything
