"""A memory by stage: storing, finding and answering, the cost of adding, and the delay until a fact can be found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.scenarios.histories.conftest import published
from trio.testing import MockClock

from longspan.agents.base import Message
from longspan.agents.memory.agent import AnsweringAgent
from longspan.agents.memory.attributed import AttributedMemory
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.memory_kinds import MemoryOptions
from longspan.agents.memory.sources import InferredTurns, Sources
from longspan.agents.memory.turns import Turn
from longspan.scenarios.histories import read_histories
from longspan.simulator.base.fields import validate_options
from longspan.simulator.contract.messages import Usage
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTurn
from longspan.simulator.pages.report.comparison_tables import comparison_tables
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.measures.ingestion import Ingestion, figures_of
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.lag import Lag, measure_lag
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

START = datetime(2024, 5, 7, 18)


def message(number: int, text: str) -> Message:
    return Message(text, START + timedelta(minutes=number), f"t{number}")


class Late(Memory):
    """Finds a turn once so many others were added after it, or so many seconds later. It drops every `drops`-th turn."""

    tells_turns = False

    def __init__(self, turns: int = 0, seconds: float = 0.0, drops: int | None = None) -> None:
        super().__init__()
        self.lag, self.drops = Lag(turns, seconds), drops
        self.kept: list[tuple[str, float]] = []
        self.calls = 0

    async def add(self, turns: Sequence[Turn], at: datetime) -> None:
        self.calls += 1
        self.kept += [(turn.document, trio.current_time()) for turn in turns]

    def used(self) -> Used:
        calls, self.calls = self.calls, 0
        return Used({"memory": Usage(100 * calls, 0, 20 * calls)}, {"memory": 0.001 * calls}) if calls else Used()

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        self.calls += 1
        ripe = self.kept[: max(0, len(self.kept) - (self.lag.turns or 0))]
        kept = [text for number, (text, _) in enumerate(ripe, 1) if self.drops is None or number % self.drops]
        late = {text for text, since in ripe if trio.current_time() - since < (self.lag.seconds or 0)}
        words = set(query.split())
        return [MemoryItem(text) for text in sorted(kept, key=lambda text: -len(words & set(text.split())))[:k] if text not in late]


def around(memory: Memory, **options: Any) -> AnsweringAgent:
    return AnsweringAgent(AttributedMemory(memory), None, validate_options(MemoryOptions, {"answerer": "none", "batch": "turn", **options}))


@pytest.mark.parametrize(("turns", "seconds"), [(0, 0.0), (1, 0.0), (7, 0.0), (0, 0.25), (0, 4.0), (10**6, 0.0)])
def test_a_known_lag_is_recovered_exactly(turns: int, seconds: float) -> None:
    async def scenario() -> Lag:
        agent = around(Late(turns, seconds), k=1000)
        said: list[Message] = []

        def next_message(text: str) -> Message:
            said.append(message(len(said), text))
            return said[-1]

        async def tell(number: int) -> None:
            await agent.observe(next_message(f"The colour of harbour number {number} is teal."), "")

        async def finds(number: int) -> bool:
            reply = await agent.reply(next_message(f"What is the colour of harbour number {number}?"))
            return any(f"number {number} is teal" in memory["text"] for memory in (reply.trace or {})["read"])

        return await measure_lag(tell, finds)

    found = trio.run(scenario, clock=MockClock(autojump_threshold=0))
    if turns == 10**6:
        assert found == (None, None)
    else:
        assert found.turns == turns
        assert found.seconds == pytest.approx(seconds)


def test_what_is_found_without_a_date_has_that_of_the_turn_it_comes_from() -> None:
    async def scenario() -> None:
        memory = AttributedMemory(Late())
        turns = [Turn(f"t{day}", f"On day {day} the heron stood at pier {day}.", START + timedelta(days=day), "") for day in range(3)]
        await memory.add(turns, turns[-1].sent_at)
        found = await memory.search("Where was the heron on day 1 at pier 1?", 3, START + timedelta(days=9))
        assert {item.turns[0]: item.at for item in found} == {turn.turn_id: turn.sent_at for turn in turns}

    trio.run(scenario)


def test_a_store_that_tells_nothing_is_probed_for_what_it_has_and_its_costs_are_those_of_adding() -> None:
    async def scenario() -> None:
        agent = around(Late(drops=5), probe="true", k=3)
        for number in range(20):
            told = await agent.observe(message(number, f"Ship {number} carries cargo called c{number} and lamps."), "")
            assert told is not None
            assert told.trace == {"added": {"turns": 1, "calls": 1, "tokens": 120, "cost_usd": 0.001}}
            assert told.besides == {"memory": Usage(100, 0, 20)}
        settled = await agent.settle()
        assert settled.trace is not None
        assert {memory["turn"] for memory in settled.trace["written"]} == {f"t{number}" for number in range(20) if (number + 1) % 5}
        assert settled.trace["until"] == "t19"
        assert "added" not in settled.trace
        assert settled.besides == {"memory": Usage(2000, 0, 400)}, "a search for each turn"
        await agent.mark()
        reply = await agent.reply(message(20, "Which ship carries c7?"))
        assert reply.trace is not None
        assert not reply.trace.keys() & {"written", "added"}, "all of it has been told"
        assert reply.besides == {"memory": Usage(100, 0, 20)}

    trio.run(scenario)


def test_marking_a_memory_that_is_probed_saves_it_once_and_tells_what_probing_took_once() -> None:
    saves: list[int] = []

    class Saved(Late):
        async def save(self, folder: Path) -> None:
            saves.append(len(self.kept))

        async def load(self, folder: Path) -> None:
            """Everything is kept."""

    async def scenario() -> None:
        agent = around(Saved(), probe="true", k=3)
        for number in range(4):
            await agent.observe(message(number, f"Ship {number} carries cargo called c{number} and lamps."), "")
        await agent.mark()
        assert saves == [4]
        told = []
        for number in range(4, 6):
            told.append(await agent.reply(message(number, "Which ship carries c2?")))
            await agent.rewind()
        assert [reply.besides for reply in told] == [{"memory": Usage(500, 0, 100)}, {"memory": Usage(100, 0, 20)}]
        await agent.mark()
        assert saves == [4, 4]

    trio.run(scenario)


def test_a_memory_is_traced_back_to_the_turn_that_it_is_likest() -> None:
    sources = Sources()
    turns = [
        "My dog Bertram likes the sea and old rope.",
        "The harbour master has a red boat.",
        "Does the harbour master have a red boat, or a green boat?",
        "Yes.",
    ]
    for number, text in enumerate(turns):
        sources.keep(Turn(f"t{number}", text, START, ""))
    assert sources.of("the harbour master has a red boat").turns == ("t1",)
    assert sources.of("[2024] My dog Bertram likes the sea and old rope.").turns == ("t0",)
    assert sources.of("Dog Bertram likes rope").turns == ("t0",)
    assert sources.of("Something about a lighthouse") == sources.of("") == InferredTurns((), "")


def test_what_adding_takes_is_for_each_thousand_tokens_and_compared_at_beginning_and_end() -> None:
    ingestion = Ingestion()

    def turn(number: int, tokens: int, asked: bool, seconds: float, trace: Any = None, **measured: float) -> None:
        said = events.Message(turn=number, turn_id=f"t{number}", kind="line", text="", tokens=tokens, start=0, sent_at=START)
        measured["latency_s"] = seconds
        reply = events.Reply(turn=number, text="", tokens=0, end=0, asked=asked, trace=trace, measured=measured)
        ingestion.fold(reply, PlayedTurn(said, reply))

    for number in range(8):  # each twice as slow as the one before, in seconds for a token
        turn(number, 100, False, 0.1 * 2**number)
    turn(8, 200, True, 1.0, {"added": {"turns": 8, "calls": 4, "tokens": 500, "cost_usd": 0.002}}, add_s=3.0, search_s=0.5, settle_s=2.0)
    turn(
        9,
        1000,
        True,
        1.0,
        {"read": [], "added": {"turns": "x", "calls": -3, "tokens": None, "cost_usd": 10**400}, "beyond_k": 5},
        search_s=1.5,
    )
    assert figures_of([ingestion]) == {
        "add_seconds_per_1k": 1.5,
        "add_calls_per_1k": 2.0,
        "add_tokens_per_1k": 250.0,
        "add_usd_per_1k": 0.001,
        "add_growth": 64.0,
        "search_seconds": 1.0,
        "settle_seconds": 2.0,
        "beyond_k": 2.5,
    }
    assert figures_of([Ingestion()]) == {}


def test_memories_are_compared_by_stage_on_the_questions_of_locomo(tmp_path: Path) -> None:
    """Through the suite, as users play it: each question has the recall worked out here from the facts told and the memories found."""
    data = published("locomo") / "locomo10.json.gz"
    suite = load_suite("locomo").apply_changes(["locomo.questions=8"], [f"locomo={data}"], [], 2)
    specs = [f"memory/{kind}?answerer=none&batch=turn" for kind in ("bm25", "full", "none")]
    plans = [plan_run(RunSettings(suite=suite, span=2000, agent=spec), tmp_path) for spec in specs]
    results = [read_result(RunFolder(outcome.folder)) for outcome in trio.run(play_plans, plans)]
    recalls = [[result.metrics[f"evidence_recall@{k}"] for k in (5, 10, 20)] for result in results]
    assert recalls[1:] == [[1, 1, 1], [0, 0, 0]]
    assert [result.metrics["evidence_stored"] for result in results] == [1, 1, 0]
    assert {test.status for test in results[0].tests} == {"unscored"}
    assert all(result.metrics["add_calls_per_1k"] > 0 for result in results)

    run = RunFolder(next(path for path in tmp_path.iterdir() if "bm25" in path.name))
    histories = {history.id: history for history in read_histories("locomo", data)}
    shares: list[list[float]] = []
    for id, trunk in run.manifest.trunks.items():
        told = [event.turn_id for event in run.events(trunk) if isinstance(event, events.Message)]
        history = histories[trunk.removeprefix("locomo-")]
        question = history.questions[int(id.rpartition("-q")[2])]
        (reply,) = [event for event in run.events(id) if isinstance(event, events.Reply)]
        if question.answerable and question.evidence:
            where = {turn.id: number for number, turn in enumerate(history.turns)}
            wanted = {told[len(told) - len(history.turns) + where[each]] for each in question.evidence}
            found = [memory["turns"][0] for memory in (reply.trace or {})["read"]]
            shares.append([len({*found[:k]} & wanted) / len(wanted) for k in (5, 10, 20)])
    assert recalls[0] == pytest.approx([sum(column) / len(shares) for column in zip(*shares, strict=True)], abs=1e-6)
    assert len(shares) >= 10

    shown = {table.title.partition(" [")[0]: table for table in comparison_tables(load_comparison([tmp_path]))}
    assert [row[0] for row in shown["Memories by stage"].rows] == ["full", "bm25", "none"], "the memory that finds most comes first"
    assert [row[3].split()[0] for row in shown["Memories by stage"].rows] == ["100%", "100%", "0%"]
    by_place = shown["Evidence found, by the number of memories looked at"]
    assert by_place.columns[2:] == ["first 5", "first 10", "first 20"]
    assert [[cell.split()[0] for cell in row[2:]] for row in by_place.rows] == [
        [f"{recall:.0%}" for recall in recalls[n]] for n in (1, 0, 2)
    ]
