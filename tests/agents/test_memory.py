"""Memories around one answerer: when turns are added, which memories are found, what the answerer sees, and what stays."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.agents.thinker import Thinker
from tests.loopback import Server
from tests.sealing import nameless

from longspan.agents.base import AgentError, InputError, Message
from longspan.agents.memory.agent import AnsweringAgent
from longspan.agents.memory.answerer import Answerer
from longspan.agents.memory.attributed import AttributedMemory
from longspan.agents.memory.baseline_memories import Full
from longspan.agents.memory.memory import Memory, MemoryItem
from longspan.agents.memory.memory_kinds import MemoryOptions
from longspan.agents.memory.turns import Turn
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.base.fields import validate_options
from longspan.simulator.contract.agent import Agent
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.measures.evidence_recall import recall_by_k
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_scores

START = datetime(2024, 5, 7, 18)
KINDS = ["full", "none", "recent?tokens=200", "bm25"]


def message(number: int, text: str, minutes: float | None = None) -> Message:
    return Message(text, START + timedelta(minutes=number / 2 if minutes is None else minutes), f"t{number}")


def agent(kind: str, options: str = "answerer=none") -> Any:
    return make_agent(AgentSpec.parse(f"memory/{kind}{'&' if '?' in kind else '?'}{options}"))


class Shelf(Memory):
    """Remembers the requests it got."""

    def __init__(self, items: Sequence[MemoryItem] = ()) -> None:
        super().__init__()
        self.items = items
        self.calls: list[Any] = []

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        self.calls.append([turn.turn_id for turn in turns])
        return None

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        self.calls.append((query, k, at))
        return self.items


def around(memory: Memory, core: Thinker | None = None, **options: Any) -> AnsweringAgent:
    settings = validate_options(MemoryOptions, options)
    return AnsweringAgent(memory, None if core is None else Answerer(core, settings.context, "reply"), settings)


async def tell(agent: Agent, turns: Sequence[tuple[str, str]], first: int = 0) -> None:
    for number, (text, reply) in enumerate(turns, first):
        await agent.observe(message(number, text), reply)


# Batches.


@pytest.mark.parametrize(
    ("batch", "added"),
    [
        ("turn", [["t0"], ["t1"], ["t2"], ["t3"], ["t4"]]),
        ("session", [["t0", "t1", "t2"], ["t3", "t4"]]),
        ("2", [["t0", "t1"], ["t2", "t3"], ["t4"]]),
    ],
)
def test_turns_are_added_in_batches_and_all_of_them_before_a_search(batch: str, added: list[list[str]]) -> None:
    async def scenario() -> None:
        shelf = Shelf()
        subject = around(shelf, batch=batch, k=7)
        for number, minutes in enumerate([0, 20, 40, 90, 91]):
            await subject.observe(message(number, "Hello.", minutes), "Hi.")
        await subject.reply(message(5, "Who was it?", 92))
        asked = ("Who was it?", 7, START + timedelta(minutes=92))
        assert shelf.calls == [*added, asked, *([["t5"]] if batch == "turn" else [])]
        await subject.reply(message(5, "Who was it?", 92))
        assert shelf.calls.count(asked) == 1, "the same request again"
        await subject.reply(message(6, "Well?", 93))
        assert ["t5"] in shelf.calls, "what was asked is added as well"

    trio.run(scenario)


def test_after_the_mark_nothing_is_added_and_each_question_finds_the_same() -> None:
    async def scenario() -> None:
        subject = agent("bm25", "answerer=none&batch=turn")
        told = [
            await subject.observe(message(number, text), "")
            for number, text in enumerate(("Quentin lives in Lisbon.", "Rosa lives in Oslo."))
        ]
        await subject.mark()
        traces = []
        for _ in range(2):
            traces.append((await subject.reply(message(2, "Who lives where: Quentin?"))).trace)
            await subject.observe(message(3, "Quentin lives in Quito."), "Oh.")
            await subject.rewind()
        assert [memory["turns"] for memory in traces[0]["read"]] == [["t0"], ["t1"]]
        assert traces[0]["read"] == traces[1]["read"]
        assert [[memory["turn"] for memory in each.trace["written"]] for each in told] == [["t0"], ["t1"]]
        assert not any("written" in each for each in traces), "there is nothing new"

    trio.run(scenario)


# The memories found, and the answerer's prompt.


def test_bm25_finds_what_shares_rare_words_the_newest_first_among_equals() -> None:
    async def scenario() -> None:
        subject = agent("bm25", "answerer=none&k=3")
        await tell(subject, [("The cat sleeps.", "Good."), ("The DOG sleeps.", ""), ("the dog sleeps.", ""), ("Nothing at all.", "")])
        reply = await subject.reply(message(4, "Does the dog sleep?"))
        assert [memory["turns"] for memory in reply.trace["read"]] == [["t2"], ["t1"], ["t0"]]
        assert [memory["text"] for memory in reply.trace["read"]][1:] == ["The DOG sleeps.", "user: The cat sleeps.\nassistant: Good."]
        first, second, third = (memory["score"] for memory in reply.trace["read"])
        assert first == second > third > 0
        assert reply.trace["answers"] is False

    trio.run(scenario)


def test_the_answerer_is_shown_what_was_found_with_its_dates_and_without_what_does_not_fit() -> None:
    async def scenario() -> None:
        items = [MemoryItem("Rosa lives in Oslo.", ("t1",), 0.5, "m1", START), MemoryItem("Ann paints.", score=0.1)]
        core = Thinker()
        subject = around(Shelf(items), core, k=2)
        reply = await subject.reply(message(9, "Where does Rosa live?"))
        ((prompt,),) = core.prompts
        assert "- [Tue 2024-05-07 18:00:00] Rosa lives in Oslo.\n- Ann paints.\n" in prompt.text
        assert prompt.text.endswith("The time now: Tue 2024-05-07 18:04:30\n\nThe message:\nWhere does Rosa live?")
        assert reply.trace is not None
        assert reply.trace["read"] == [
            {"id": "m1", "turns": ["t1"], "text": "Rosa lives in Oslo.", "score": 0.5},
            {"text": "Ann paints.", "score": 0.1},
        ]
        assert "written" not in reply.trace, "the memory does not tell what it wrote"
        assert reply.usage is not None

        assert "beyond_k" not in reply.trace

        many = [MemoryItem("word " * 40, (f"t{number}",)) for number in range(50)]
        for context in ("1k", None):  # by our count, and by the model's refusal
            small = Thinker(max_prompt=900)
            subject = around(Shelf(many), small, k=50, **({"context": context} if context else {}))
            cut = (await subject.reply(message(9, "Well?"))).trace
            assert cut is not None
            assert 0 < len(cut["read"]) < 50
            assert [memory["turns"] for memory in cut["read"]] == [[f"t{number}"] for number in range(len(cut["read"]))]

    trio.run(scenario)


@pytest.mark.parametrize("attributed", [False, True])
def test_what_is_found_beyond_k_is_not_used_but_counted(attributed: bool) -> None:
    async def scenario() -> None:
        core = Thinker()
        shelf: Memory = Shelf([MemoryItem(f"Pier {number}.", (f"t{number}",)) for number in range(7)])
        subject = around(AttributedMemory(shelf) if attributed else shelf, core, k=3)
        reply = await subject.reply(message(9, "Which pier?"))
        assert reply.trace is not None
        assert [memory["turns"] for memory in reply.trace["read"]] == [["t0"], ["t1"], ["t2"]]
        assert reply.trace["beyond_k"] == 4
        assert "Pier 3." not in core.prompts[-1][-1].text

    trio.run(scenario)


def test_of_a_whole_conversation_the_oldest_is_left_out_and_the_trace_says_from_where_on() -> None:
    async def scenario() -> None:
        core = Thinker()
        subject = around(Full(), core, context="1k")
        await tell(subject, [(f"Number {number}: " + "word " * 50, "") for number in range(30)])
        reply = await subject.reply(message(30, "Which number was the last?"))
        assert reply.trace is not None
        first = int(reply.trace["recent"]["since"].removeprefix("t"))
        assert 5 < first < 29
        text = core.prompts[-1][-1].text
        assert f"Number {first}:" in text
        assert f"Number {first - 1}:" not in text
        assert "Number 29:" in text

    trio.run(scenario)


def test_the_reader_by_words_answers_from_all_as_the_notebook_does_and_else_from_what_is_found_alone() -> None:
    async def scenario() -> None:
        full, found, notebook = agent("full", "answerer=words"), agent("bm25", "answerer=words&k=1"), Notebook()
        facts = ["Ann has moved to Oslo.", "Ann's cat is called Tom.", "The cat of Ben is called Fay.", "Ann has moved to Rome now."]
        for number, text in enumerate(facts):
            for subject in (full, found, notebook):
                await subject.observe(message(number, text), "OK.")
        questions = [
            "Where has Ann moved to?",
            "What is Ann's cat called?",
            'What are the cats called? Answer as JSON: {"cats": [...]}',
            "Fine.",
        ]
        for number, text in enumerate(questions, len(facts)):
            one, other = await full.reply(message(number, text)), await notebook.reply(message(number, text))
            assert one.text == other.text
            assert one.usage is None
        assert full.models == {}
        assert (await found.reply(message(9, "Where has Ann moved to?"))).text == "Ann has moved to Oslo.", (
            "it is shorter: BM25 puts it first"
        )
        assert (await agent("none", "answerer=words").reply(message(0, questions[0]))).text == "I don't know."

    trio.run(scenario)


# Snapshots, and whole runs.


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_memory_goes_on_as_if_nothing_had_happened(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        one, other = agent(kind), agent(kind)
        facts = [(f"Person {number} likes colour {number % 7}.", "I see.") for number in range(20)]
        await tell(one, facts)
        await one.reply(message(20, "Hello."))
        await tell(one, [("Person 3 likes red.", "")], 21)
        await one.save(tmp_path)
        await other.load(tmp_path)
        replies = []
        for subject in (one, other):
            await subject.observe(message(22, "Person 4 likes red."), "Ah.")
            replies.append(await subject.reply(message(23, "Who likes red?")))
        assert replies[0] == replies[1]
        with pytest.raises(AgentError, match="a snapshot of memory"):
            await agent("full" if kind != "full" else "bm25").load(tmp_path)
        (tmp_path / "state.json").write_text("{}")
        with pytest.raises(AgentError, match="not a snapshot of agent memory"):
            await other.load(tmp_path)

    trio.run(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_is_ready_for_a_long_run_and_searching_costs_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.subject.lag.MOST_SECONDS", 0.1)
    spec = f"memory/{kind}{'&' if '?' in kind else '?'}answerer=none"

    async def findings() -> list[tuple[str, str]]:
        return [(finding.check, finding.verdict) async for finding in check_agent(AgentSpec.parse(spec))]

    noted = [check for check, verdict in trio.run(findings) if verdict != "good"]
    assert noted == ["lag", "forget"][kind != "none" :], "of `none` nothing is found, however late"
    suite = load_suite("ltm").model_copy(update={"tests": 1})
    planned = plan_run(RunSettings(suite=suite, span=2000, agent=spec), tmp_path)
    (outcome,) = trio.run(play_plans, [planned])
    result = read_result(RunFolder(outcome.folder))
    assert {(test.status, test.reason) for test in result.tests} == {("unscored", "not answered: the agent only searched its memory")}
    assert result.costs == {}
    recall = [result.metrics[f"evidence_recall@{k}"] for k in (5, 10, 20)]
    assert {"full": recall == [1, 1, 1], "none": recall == [0, 0, 0]}.get(kind, 0 < recall[0] <= recall[2] < 1)
    assert result.metrics["evidence_stored"] == float(kind != "none")


@pytest.mark.parametrize(("k", "places"), [(3, [3]), (5, [5]), (7, [5, 7]), (20, [5, 10, 20]), (50, [5, 10, 20, 50])])
def test_evidence_is_looked_for_among_as_many_memories_as_were_asked_for(k: int, places: list[int], tmp_path: Path) -> None:
    suite = load_suite("ltm").model_copy(update={"tests": 1, "scenarios": {"name_list": {}}})
    planned = plan_run(RunSettings(suite=suite, span=2000, agent=f"memory/bm25?answerer=none&k={k}"), tmp_path)
    (outcome,) = trio.run(play_plans, [planned])
    result = read_result(RunFolder(outcome.folder))
    assert list(recall_by_k(result.metrics)) == places
    on = io.StringIO()
    print_scores(planned.manifest, result, Console(file=on, width=200))
    (said,) = (line for line in on.getvalue().splitlines() if line.startswith("evidence found:"))
    assert re.findall(r"among the first (\d+)", said) == list(map(str, places))


KILLED = """
import os, sys
from longspan.agents.memory import agent
asked = agent.AnsweringAgent.reply

async def reply(self, message):
    if message.turn_id.endswith(f"-{os.environ['KILLED_AT']}"):
        os.kill(os.getpid(), 9)
    return await asked(self, message)

agent.AnsweringAgent.reply = reply
from longspan.simulator.cli import main
main()
"""


def test_a_killed_run_plays_on_to_the_same_journal_and_its_answers_are_scored_and_priced(tmp_path: Path, openai_key: None) -> None:
    journals = []
    for name, at in (("whole", "none"), ("killed", "9")):
        with Server(reply=lambda text: "Blue, red and green.").running() as server:
            spec = f"memory/bm25?answerer=openai/gpt-4o-mini&answerer.base_url={server.base_url('openai')}"
            spec += "&answerer.price_in=1&answerer.price_out=1"
            arguments = ["run", "--scenario", "colours", "--tests", "2", "--span", "2k", "--agent", spec, "--out", str(tmp_path / name)]
            command = [sys.executable, "-c", KILLED]
            done = subprocess.run([*command, *arguments], env=os.environ | {"KILLED_AT": at}, capture_output=True, text=True, check=False)
            assert done.returncode == (0 if at == "none" else -9), done.stderr
            (folder,) = (path.parent for path in (tmp_path / name).glob("*/manifest.json"))
            if at != "none":
                subprocess.run([*command, "resume", str(folder)], env=os.environ | {"KILLED_AT": "none"}, capture_output=True, check=True)
        journals.append(nameless(RunFolder(folder).journal("main")))
    result = read_result(RunFolder(folder))
    assert journals[0] == journals[1]
    assert {test.status for test in result.tests} == {"scored"}
    assert (result.costs["agent"].cost_usd or 0) > 0


def test_an_estimate_prices_the_answerer(tmp_path: Path, openai_key: None) -> None:
    suite = load_suite("ltm").model_copy(update={"scenarios": {"colours": {}}, "tests": 1})

    def guess(spec: str) -> Any:
        return trio.run(estimate_run, plan_run(RunSettings(suite=suite, span=2000, agent=spec), tmp_path))

    costs = [guess(f"memory/{kind}?answerer=openai/gpt-4o").cost_usd for kind in ("none", "bm25", "full")]
    assert costs == sorted(costs)
    assert costs[0] > 0
    assert not guess("memory/bm25?answerer=none").cost_usd


# Specs.


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("memory", "agent memory needs a memory: memory/NAME, where NAME is one of "),
        ("memory/bm25", "needs answerer=KIND/MODEL, .* or answerer=none, which only searches"),
        ("memory/bm26?answerer=none", "there is no memory 'bm26'; did you mean bm25?"),
        ("memory/bm25/x?answerer=none", "memory bm25 takes no target, got 'x'"),
        ("memory/bm25?answerer=none&kk=3", "unknown option 'kk'; did you mean k?"),
        ("memory/bm25?answerer=none&batch=0", "batch: must be session, turn, or a number of turns"),
        ("memory/bm25?answerer=none&answerer.seed=0", "answerer=none is no model and has no options; got answerer.seed"),
        ("memory/bm25?answerer=words&context=2k", "answerer=words is no model and has no options; got context"),
        ("memory/bm25?answerer=openai/x&answerer.sed=0", "unknown option 'sed'; did you mean seed?"),
        ("memory/recent?answerer=none&tokens=x", "tokens: .*; its options are answerer, .*, tokens"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said_at_once(spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_agent(AgentSpec.parse(spec))
