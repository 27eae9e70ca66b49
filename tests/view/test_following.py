"""Following a run: its journals are read as they grow, once for all clients, up to any damage."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.simulator.base.errors import JournalError
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.journal_tail import JournalTail
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.following import MAX_TURNS, LiveRun, LiveRuns
from longspan.simulator.pages.view.pages import SEND_TIMEOUT, EventStream
from tests.report.pages import altered, journal
from tests.view.conftest import ISOLATED, ORACLE, SILENT


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 20_000), max_size=6))
def test_a_growing_journals_events_are_read_once_and_whole(made: Path, cuts: list[int]) -> None:
    source = RunFolder(made / ORACLE).journal("main")
    content = source.read_bytes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        tail = JournalTail(path)
        assert tail.read() == []
        events = []
        for end in sorted({min(cut, len(content)) for cut in cuts} | {len(content)}):
            path.write_bytes(content[:end])
            while batch := tail.read():
                events += batch
        assert events == list(read_journal(source))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{]\n", "it has no checksum"),
        (b"[" * 100_000 + b"\n", "it has no checksum"),
        (b'{"seq":3,"type":"close","turns":1,"tokens":1,"sum":"0123456789abcdef"}\n', "its checksum does not match"),
    ],
)
def test_damage_is_reported_with_its_line(made: Path, tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(RunFolder(made / ORACLE).journal("main").read_bytes().splitlines(keepends=True)[:3]) + line)
    with pytest.raises(JournalError, match=f"damaged at line 4: {why}"):
        JournalTail(path).read()


def test_a_journal_that_becomes_shorter_is_damaged(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    content = RunFolder(made / ORACLE).journal("main").read_bytes()
    path.write_bytes(content)
    tail = JournalTail(path)
    tail.read()
    path.write_bytes(content[:100])
    with pytest.raises(JournalError, match="became shorter"):
        tail.read()


def watch(run: RunFolder, look: Callable[[LiveRun], Awaitable[None]]) -> None:
    """Follow a run with one client."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with LiveRuns(nursery).follow("run", run) as live:
                await look(live)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def all_read(live: LiveRun, turns: int) -> None:
    while live.turn_count < turns:
        await live.changes()


@pytest.mark.parametrize("name", [SILENT, ISOLATED])
def test_turns_tests_and_status_become_events(made: Path, name: str) -> None:
    run = RunFolder(made / name)
    replies = [entry for id in run.manifest.conversations for entry in journal(run.path, id) if entry["type"] == "reply"]

    async def look(live: LiveRun) -> None:
        while not (live.status and json.loads(live.status)["closed"]):
            await live.changes()
        turns = [json.loads(news.data) for news in live.turns(0)]
        assert [turn["reply"] for turn in turns] == [entry["text"] for entry in replies]
        assert {turn["conversation"] for turn in turns} == set(run.manifest.conversations)
        tests = [json.loads(news.data) for news in live.tests]
        questions = {entry["turn"] for id in run.manifest.conversations for entry in journal(run.path, id) if entry.get("needs")}
        assert {arc[1] for test in tests for arc in test.get("arcs", [])} == questions, "arcs grow to each question that needs a needle"
        plans = [plan.id for group in run.manifest.conversations.values() for plan in group]
        assert {test["id"] for test in tests if test["grade"] == "open"} == set(plans)
        assert {test["id"]: test["grade"] for test in tests} == dict.fromkeys(plans, "low")
        assert json.loads(live.status)["results"]

    watch(run, look)


def test_a_message_has_an_event_before_its_reply_and_another_after_it(made: Path, tmp_path: Path) -> None:
    entries = journal(made / ORACLE)
    place = next(i for i, entry in enumerate(entries) if entry["type"] == "message" and entry["turn"] == 2)
    run = RunFolder(altered(made / ORACLE, tmp_path, lambda entries: entries.__delitem__(slice(place + 1, None))))
    rest = RunFolder(made / ORACLE).journal("main").read_bytes().splitlines(keepends=True)[place + 1 : place + 3]

    async def look(live: LiveRun) -> None:
        await all_read(live, 3)
        last = json.loads(live.turns(2)[0].data)
        assert last["number"] == 2
        assert last["waiting"]
        assert "reply" not in last
        with run.journal("main").open("ab") as file:
            file.write(rest[0])
            file.write(rest[1][:-5])
        await all_read(live, 4)
        again = json.loads(live.turns(3)[0].data)
        assert (again["number"], again["reply"]) == (2, json.loads(rest[0])["text"])
        assert "waiting" not in again

    watch(run, look)


def test_long_texts_are_shortened_and_only_the_last_turns_kept(made: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, object]]) -> None:
        opening = entries[:3]
        message, reply = dict(entries[1]), dict(entries[2])
        reply["text"] = "long " * 200_000
        turns = [[message | {"turn": n, "start": 75 * n}, reply | {"turn": n, "end": 75 * (n + 1)}] for n in range(1, MAX_TURNS + 100)]
        entries[:] = opening + [entry for turn in turns[:-1] for entry in turn] + [turns[-1][0], turns[-1][1] | {"text": "the last"}]
        for number, entry in enumerate(entries):
            entry["seq"] = number
            if entry["type"] == "reply" and number < len(entries) - 5:
                entry["text"] = "OK."

    run = RunFolder(altered(made / ORACLE, tmp_path, change))

    async def look(live: LiveRun) -> None:
        await all_read(live, MAX_TURNS + 100)
        kept = [json.loads(news.data) for news in live.turns(0)]
        assert [turn["number"] for turn in kept] == list(range(100, MAX_TURNS + 100))
        head, tail, length = kept[-2]["reply"]
        assert len(head) + len(tail) < length == 1_000_000
        assert kept[-1]["reply"] == "the last"
        assert max(len(news.data) for news in live.turns(0)) < 5_000

    watch(run, look)


def test_damage_is_reported_and_ends_following(made: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, object]]) -> None:
        next(entry for entry in entries if entry["type"] == "reply" and entry["turn"] == 3)["turn"] = 99

    run = RunFolder(altered(made / ORACLE, tmp_path, change))

    async def look(live: LiveRun) -> None:
        while live.damage is None:
            await live.changes()
        assert "a reply to turn 99" in json.loads(live.damage.data)["why"]

    watch(run, look)


def test_a_run_is_read_once_for_all_clients_and_only_while_there_are_any(made: Path) -> None:
    run = RunFolder(made / ORACLE)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            live_runs = LiveRuns(nursery)
            with live_runs.follow("a", run) as first, live_runs.follow("a", run) as second:
                assert first is second
                await trio.testing.wait_all_tasks_blocked()
                assert len(nursery.child_tasks) == 1
            with live_runs.follow("a", run) as again:
                assert again is not first
        # The nursery ends, since without clients the task that reads the journals has stopped.

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("gone", ["vanishes", "never reads"])
def test_a_client_that_disconnects_or_never_reads_is_dropped(made: Path, gone: str) -> None:
    run = RunFolder(made / ORACLE)
    sent = []

    async def receive() -> dict[str, object]:
        if gone == "vanishes":
            await trio.sleep(5)
            return {"type": "http.disconnect"}
        return await trio.sleep_forever()

    async def send(message: dict[str, object]) -> None:
        sent.append(message)
        if gone == "never reads" and len(sent) > 1:
            await trio.sleep_forever()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await EventStream(LiveRuns(nursery), "a", run)({"type": "http"}, receive, send)
        assert trio.current_time() == pytest.approx(5 if gone == "vanishes" else SEND_TIMEOUT, abs=1)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert sent[0]["status"] == 200
    assert len(sent) > 1
