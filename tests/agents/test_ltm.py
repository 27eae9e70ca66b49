"""The memory agent: its prompts, its memories, and its robustness against any answer of the core."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.agents.thinker import START, Thinker, memory_agent, message, play, sensible

from longspan.agents.base import AgentError, InputError, Usage
from longspan.agents.memory.ltm.agent import DryLtm
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.prompts import format_age
from longspan.agents.models.core import ContextOverflowError
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.contract.agent import IdealReplyAgent, can_observe, can_repeat_turn, has_snapshots, never_asked, replay_turn
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

KEY = "sk-a-key-that-is-nowhere-else"


def chatter(number: int) -> tuple[str, str]:
    """Return small talk of about forty tokens a turn, which no question is about."""
    return f"Here is remark number {number} about the weather at the coast: it rained on {number} of the days, and the wind blew.", "Noted."


def chat(count: int, first: int = 0) -> list[tuple[str, str | None]]:
    return [chatter(number) for number in range(first, first + count)]


# Its prompts.


def test_an_old_statement_is_found_and_shown_with_its_age() -> None:
    core = Thinker()
    agent = memory_agent(core, memory="semantic")
    play(agent, [("My bicycle is called Bertram.", None), *chat(60)])
    (reply,) = play(agent, [("What is my bicycle called?", None)], first=170)
    last = core.prompts[-1][-1].text
    assert "- 1 hour 25 minutes ago: User: My bicycle is called Bertram.\nAssistant: I say" in last
    assert last.endswith("[Mon 2024-01-01 10:25:00] What is my bicycle called?")
    assert not any("Bertram" in message.text for message in core.prompts[-1][:-1]), "it was not shown in the window anyway"
    assert reply is not None
    assert reply.trace is not None
    (found,) = [memory for memory in reply.trace["read"] if "Bertram" in memory["text"]]
    assert found["turns"] == ["c-0"]
    assert found["id"] == "0.0"
    assert 0.3 < found["score"] <= 1


def test_memories_are_limited_and_in_order_of_time() -> None:
    core = Thinker()
    agent = memory_agent(core, memory="semantic", memories=4)
    play(agent, [(f"Ship number {number} carries lamps.", "Noted.") for number in range(20)] + chat(40, 20))
    (reply,) = play(agent, [("Which ship carries lamps?", None)], first=60)
    assert reply is not None
    assert reply.trace is not None
    shown = [int(number) for number in re.findall(r"Ship number (\d+) carries", core.prompts[-1][-1].text)]
    assert shown == sorted(shown)
    numbers = [int(memory["id"].partition(".")[0]) for memory in reply.trace["read"]]
    assert sorted(numbers) == shown
    assert len(numbers) == 4
    scores = [memory["score"] for memory in reply.trace["read"]]
    assert scores == sorted(scores, reverse=True), "a trace has the best first"
    assert core.prompts[-1][-1].text.count("\n- ") == 4


TURNS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 400), st.one_of(st.none(), st.integers(0, 60))), min_size=1, max_size=40).map(
    lambda drawn: [("word" + str(kind) + " tide" * size, None if reply is None else "gull " * reply) for kind, size, reply in drawn]
)


@given(turns=TURNS, memory=st.sampled_from(["semantic", "json", "text"]), eviction=st.sampled_from(["block", "sliding"]))
@settings(max_examples=40)
def test_prompts_fit_the_context_and_recent_turns_are_not_memories(
    turns: Sequence[tuple[str, str | None]], memory: str, eviction: str
) -> None:
    core = Thinker()
    agent = memory_agent(core, memory=memory, eviction=eviction, context=1500)
    for number, turn in enumerate(turns):
        (reply,) = play(agent, [turn], first=number)
        if reply is not None:
            assert reply.trace is not None
            shown = range(number - reply.trace["recent"]["turns"], number)
            assert reply.trace["recent"]["since"] == (f"c-{shown[0]}" if shown else None)
            assert all(int(memory["id"].partition(".")[0]) < shown.start for memory in reply.trace["read"])
            assert reply.usage == sum_of(reply.trace["calls"])
            assert reply.trace["prompt_tokens"] == core.size(core.prompts[-1])
    assert max((core.size(prompt) for prompt in core.prompts), default=0) <= 1500


def sum_of(calls: Sequence[dict[str, Any]]) -> Usage:
    return Usage(*(sum(call["usage"][name] for call in calls) for name in ("input_tokens", "cached_tokens", "output_tokens")))


def test_prompts_start_like_the_previous_one_until_a_block_is_dropped() -> None:
    core = Thinker()
    agent = memory_agent(core, context=4000)
    play(agent, [(text, None) for text, _ in chat(150)])
    prompts = [prompt for prompt in core.prompts if not prompt[-1].text.startswith("You keep notes")]
    broken = sum(before[:-1] != after[: len(before) - 1] for before, after in pairwise(prompts))
    left = len(core.asked_for("notes"))
    assert broken == left
    assert 0 < left < 15, "a block is a good many turns"
    assert len({len(prompt) for prompt in prompts}) > 10


def test_semantic_memory_asks_the_core_only_for_replies() -> None:
    core = Thinker()
    play(memory_agent(core, memory="semantic"), [(text, None) for text, _ in chat(60)])
    assert len(core.prompts) == len(core.asked_for("reply")) == 60


@pytest.mark.parametrize("memory", ["json", "text"])
def test_dropped_turns_are_noted_once_in_order_and_notes_are_shown(memory: str) -> None:
    def answer(kind: str, text: str) -> str:
        if kind == "notes":
            return '{"boat": "Calypso"}' if memory == "json" else "The boat is called Calypso."
        return sensible(kind, text)

    core = Thinker(answer)
    replies = play(memory_agent(core, memory=memory), [(text, None) for text, _ in chat(60)])
    noted = "\n".join(prompt[-1].text for prompt in core.asked_for("notes"))
    numbers = [number for number in range(60) if f"remark number {number} about" in noted]
    assert numbers == list(range(len(numbers)))
    assert 30 < len(numbers) < 60
    assert noted.count("remark number 7 about") == 1
    assert "Calypso" in core.asked_for("reply")[-1][-1].text
    assert "Calypso" in core.asked_for("queries")[-1][-1].text
    traces = [reply.trace for reply in replies if reply is not None and reply.trace is not None]
    assert {call["for"] for trace in traces for call in trace["calls"]} == {"reply", "queries", "notes"}
    assert [trace["notes"] for trace in traces if "notes" in trace][-1].count("Calypso") == 1


def test_the_core_chooses_queries() -> None:
    def answer(kind: str, text: str) -> str:
        return 'Sure!\n```json\n{"queries": ["lamps on ships", 7, "  "]}\n```' if kind == "queries" else "OK."

    core = Thinker(answer)
    agent = memory_agent(core)
    play(agent, [("Forty lamps are carried by the ships.", "Noted."), *chat(60)])
    (reply,) = play(agent, [("How about that cargo?", None)], first=61)
    assert reply is not None
    assert reply.trace is not None
    assert reply.trace["queries"] == ["lamps on ships"]
    assert "Forty lamps" in core.prompts[-1][-1].text


def test_observing_costs_nothing() -> None:
    core = Thinker()
    agent = memory_agent(core)
    play(agent, chat(200))
    assert core.prompts == []
    assert can_observe(agent)
    assert can_repeat_turn(agent)


def test_a_repeated_statement_is_one_memory_with_all_its_times() -> None:
    core = Thinker()
    agent = memory_agent(core, memory="semantic")
    play(agent, [("Two lamps, please.", "Noted."), *chat(10, 1), ("two  lamps, PLEASE.", "Noted."), *chat(60, 12)])
    (reply,) = play(agent, [("How many lamps?", None)], first=80)
    assert "- 40 minutes ago and 34 minutes ago: User: two  lamps, PLEASE." in core.prompts[-1][-1].text
    assert reply is not None
    assert reply.trace is not None
    assert [memory["turns"] for memory in reply.trace["read"] if "lamps" in memory["text"].casefold()] == [["c-0", "c-11"]]


# Failures.


@given(answers=st.lists(st.one_of(st.text(max_size=300), st.just("{" * 300), st.just('{"queries": 3}')), min_size=1, max_size=8))
@example(answers=["{" * 300])
@example(answers=['{"queries": 3}'])
@example(answers=["", "[]", "\ud800", '{"": [null]}', '{"queries": [{}, 3, ""]}', '{"queries": ["lamp"], "notes": 3}'])
@settings(max_examples=15)
@pytest.mark.parametrize("memory", ["json", "text"])
def test_invalid_queries_and_notes_never_fail_a_turn(memory: str, answers: list[str]) -> None:
    replies = iter(answers * 100)
    core = Thinker(lambda kind, text: "OK." if kind == "reply" else next(replies))
    agent = memory_agent(core, memory=memory)
    for number, reply in enumerate(play(agent, [(text, None) for text, _ in chat(40)])):
        assert reply is not None, number
        assert reply.text == "OK."
        json.dumps(reply.trace, ensure_ascii=False).encode()
    assert max(core.size(prompt) for prompt in core.prompts) <= 1500


def test_failed_inner_calls_are_traced_and_the_turn_continues() -> None:
    core = Thinker(lambda kind, text: "OK." if kind == "reply" else AgentError("no JSON here"))
    replies = play(memory_agent(core), [(text, None) for text, _ in chat(40)])
    calls = [call for reply in replies if reply is not None and reply.trace is not None for call in reply.trace["calls"]]
    assert {call["for"] for call in calls if call.get("problem") == "no JSON here"} == {"queries", "notes"}
    assert all("problem" not in call for call in calls if call["for"] == "reply")


def test_a_reply_that_fails_fails_the_turn_and_leaves_nothing_behind() -> None:
    core = Thinker()
    agent = memory_agent(core, memory="semantic")
    play(agent, chat(5))
    core.answer = lambda kind, text: AgentError("gone")
    with pytest.raises(AgentError, match="gone"):
        play(agent, [("Are you there?", None)], first=5)
    core.answer = sensible
    (reply,) = play(agent, [("Are you there?", None)], first=5)
    assert reply is not None
    assert [message.text for message in core.prompts[-1]].count("Are you there?") == 0
    assert sum("Are you there?" in message.text for message in core.prompts[-1]) == 1


def test_a_repeated_turn_gets_the_same_reply_and_is_stored_once() -> None:
    core = Thinker()
    agent = memory_agent(core)
    turns: list[tuple[str, str | None]] = [*chat(30), ("The parcel is in locker 4417.", None)]
    (*_, first) = play(agent, turns)
    asked = len(core.prompts)
    (again,) = play(agent, [("The parcel is in locker 4417.", None)], first=30)
    play(agent, [chatter(3)], first=3)
    assert first is not None
    assert again is not None
    assert again.text == first.text
    assert len(core.prompts) == asked
    play(agent, chat(60, 31))
    play(agent, [("Where is the parcel?", None)], first=91)
    assert core.prompts[-1][-1].text.count("4417") == 1


def test_a_message_larger_than_the_window_is_an_error_or_cut_but_stored_whole() -> None:
    long = "The first lamp is red. " + "Waves come and go. " * 500 + "The last lamp is green. " + "Waves come and go. " * 20 + "Right?"
    with pytest.raises(AgentError, match=r"a message of 2,\d+ tokens is larger than the whole window of \d+: .*overflow=truncate"):
        play(memory_agent(Thinker()), [(long, None)])
    core = Thinker()
    agent = memory_agent(core, overflow="truncate", memory="semantic")
    (reply,) = play(agent, [(long, None)])
    assert reply is not None
    assert reply.trace is not None
    assert reply.trace["truncated"]["from"] > 2000 > reply.trace["truncated"]["to"]
    assert "The first lamp is red." in core.prompts[-1][-1].text
    assert core.prompts[-1][-1].text.endswith("Right?")
    (reply,) = play(agent, [("What colour is the last lamp?", None)], first=1)
    assert "green" in core.prompts[-1][-1].text


def test_observing_a_long_message_is_not_an_error() -> None:
    core = Thinker()
    agent = memory_agent(core, memory="semantic")
    play(agent, [("Waves come and go. " * 500 + "The ferry sails at noon.", "Noted."), *chat(3, 1)])
    play(agent, [("When does the ferry sail?", None)], first=4)
    assert "sails at noon" in core.prompts[-1][-1].text


def test_a_model_with_less_context_than_declared_gets_shorter_prompts() -> None:
    core = Thinker(max_prompt=1000)
    agent = memory_agent(core, memory="semantic")
    replies = play(agent, [(text, None) for text, _ in chat(40)])
    assert all(reply is not None for reply in replies)
    assert max(core.size(prompt) for prompt in core.prompts) <= 1000
    core.max_prompt = 10
    with pytest.raises(AgentError, match="too long"):
        play(agent, [("Hello?", None)], first=40)


def test_traces_are_bounded() -> None:
    core = Thinker()
    agent = memory_agent(core, context=16_000)
    play(agent, [(f"{number} " + "Waves and gulls. " * 1500, "Noted.") for number in range(4)])
    (reply,) = play(agent, [("Gulls and waves. " * 1500, None)], first=4)
    assert reply is not None
    assert len(reply.trace["written"] if reply.trace else []) == 20
    assert len(json.dumps(reply.trace)) < 15_000


# Snapshots and replays.


@pytest.mark.parametrize("memory", ["semantic", "json", "text"])
def test_replaying_its_turns_restores_its_state(memory: str) -> None:
    first, second = Thinker(), Thinker()
    one, other = memory_agent(first, memory=memory), memory_agent(second, memory=memory)
    texts = [text for text, _ in chat(70)]
    replies = play(one, [(text, None) for text in texts])
    play(other, [(text, reply.text if reply else "") for text, reply in zip(texts, replies, strict=True)])
    play(one, [("And now?", None)], first=70)
    play(other, [("And now?", None)], first=70)
    assert first.asked_for("reply")[-1] == second.asked_for("reply")[-1]
    assert [prompt[-1] for prompt in first.asked_for("notes")] == [prompt[-1] for prompt in second.asked_for("notes")]


@given(turns=TURNS, memory=st.sampled_from(["semantic", "json", "text"]), max_prompt=st.sampled_from([1_200, 100_000]))
@settings(max_examples=12)
def test_what_it_answered_is_shown_to_it_again_without_asking_its_model(
    turns: Sequence[tuple[str, str | None]], memory: str, max_prompt: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A copy that is shown the turns, with the traces of its replies, is what the agent is, whose prompts were too long or not."""
    first, second = Thinker(max_prompt=max_prompt), Thinker()
    one, other = memory_agent(first, memory=memory), memory_agent(second, memory=memory)
    folder, again = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    turns = [*chat(30), *turns, ("And now?", None)]

    async def scenario() -> None:
        for number, (text, told) in enumerate(turns):
            if told is not None:
                await one.observe(message(number, text), told)
                await other.observe(message(number, text), told)
            else:
                try:
                    reply = await one.reply(message(number, text))
                except ContextOverflowError:
                    return  # this one ends the conversation
                await replay_turn(other, message(number, text), reply)
        await one.save(folder)
        await other.save(again)

    trio.run(scenario)
    assert files(folder) == files(again)
    assert second.prompts == []


@given(turns=TURNS, memory=st.sampled_from(["semantic", "json", "text"]), more=TURNS)
@settings(max_examples=25)
def test_a_copy_from_a_snapshot_continues_like_the_original(
    turns: Sequence[tuple[str, str | None]], memory: str, more: Sequence[tuple[str, str | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    first, second = Thinker(), Thinker()
    one, other = memory_agent(first, memory=memory), memory_agent(second, memory=memory)
    folder, again = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    play(one, turns)
    play(other, [("Something else.", None)])  # is forgotten
    trio.run(one.save, folder)
    trio.run(other.load, folder)
    trio.run(other.save, again)
    assert files(folder) == files(again)
    first.prompts.clear()
    second.prompts.clear()
    assert play(one, more, first=len(turns)) == play(other, more, first=len(turns))
    assert first.prompts == second.prompts
    assert has_snapshots(one)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot. Tests that damage it copy it first."""
    folder = tmp_path_factory.mktemp("saved")
    agent = memory_agent(Thinker())
    play(agent, [(text, None) for text, _ in chat(40)])
    trio.run(agent.save, folder)
    return folder


@given(data=st.data())
@settings(max_examples=60)
def test_a_damaged_snapshot_is_an_agent_error_and_changes_nothing(
    data: st.DataObject, saved: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = shutil.copytree(saved, tmp_path_factory.mktemp("snapshot"), dirs_exist_ok=True)
    path = folder / data.draw(st.sampled_from(["turns.jsonl", "vectors.f2", "state.json"]))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:start] + data.draw(st.binary(max_size=20)) + content[data.draw(st.integers(start, len(content))) :])
    agent = memory_agent(Thinker())
    with suppress(AgentError):
        trio.run(agent.load, folder)
    (reply,) = play(agent, [("Hello.", None)], first=1000)
    assert reply is not None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("state.json", b"[]"),
        ("state.json", b'{"version": 2}'),
        ("turns.jsonl", b'["a", "b", "2024-01-01T09:00:00+00:00", "c"]\n'),
        ("turns.jsonl", b'["a", "b", 3, "c"]\n'),
        ("turns.jsonl", b"[" * 100_000 + b"\n"),
        ("turns.jsonl", b""),
        ("vectors.f2", b""),
        ("vectors.f2", b"\xff" * 1024 * 100),
    ],
)
def test_an_invalid_snapshot_is_rejected(file: str, content: bytes, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    tmp_path.joinpath(file).write_bytes(content)
    with pytest.raises(AgentError, match="snapshot"):
        trio.run(memory_agent(Thinker()).load, tmp_path)


def test_a_snapshot_with_the_first_part_of_its_vectors_is_rejected(saved: Path, tmp_path: Path) -> None:
    """As many bytes as vectors of fewer dimensions would have."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    vectors = tmp_path / "vectors.f2"
    content = vectors.read_bytes()
    vectors.write_bytes(content[: len(content) // 512 * 425])
    with pytest.raises(AgentError, match="do not match"):
        trio.run(memory_agent(Thinker()).load, tmp_path)


def test_a_snapshot_with_other_options_is_rejected(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    with pytest.raises(AgentError, match="other options"):
        trio.run(memory_agent(Thinker(), chunk=100).load, tmp_path)
    with pytest.raises(AgentError, match="not a snapshot"):
        trio.run(memory_agent(Thinker()).load, tmp_path / "nowhere")


def test_reset_forgets_everything() -> None:
    first, second = Thinker(), Thinker()
    one, other = memory_agent(first), memory_agent(second)
    play(one, [(text, None) for text, _ in chat(50)])
    trio.run(one.reset)
    first.prompts.clear()
    assert play(one, chat(50)) == play(other, chat(50))
    play(one, [("And now?", None)], first=50)
    play(other, [("And now?", None)], first=50)
    assert first.prompts == second.prompts


# Concurrency and limits.


def test_searching_does_not_block_other_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = memory_agent(Thinker(), memory="semantic")
    play(agent, chat(60))
    somebody_else_ran = threading.Event()
    nearest = Index.nearest

    def patient(index: Index, vectors: Any) -> Any:
        assert somebody_else_ran.wait(20), "nothing else could run"
        return nearest(index, vectors)

    monkeypatch.setattr(Index, "nearest", patient)

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.reply, message(60, "What about the wind?"))
            await trio.testing.wait_all_tasks_blocked()
            somebody_else_ran.set()

    trio.run(both)


@pytest.mark.parametrize("memory", ["semantic", "json", "text"])
def test_no_reply_uses_more_than_its_worst_case(memory: str) -> None:
    core = Thinker()
    agent = memory_agent(core, memory=memory)
    for number in range(80):
        text = chatter(number)[0]
        if number % 3:
            play(agent, [chatter(number)], first=number)
            continue
        worst = agent.worst_case(message(number, text))["agent"]
        (reply,) = play(agent, [(text, None)], first=number)
        assert reply is not None
        assert reply.usage is not None
        assert reply.usage.input_tokens <= worst.input_tokens
        assert reply.usage.output_tokens <= worst.output_tokens
    assert agent.models == {"agent": "made/thinker"}


def test_without_its_model_it_counts_the_tokens_it_would_have_used() -> None:
    core = Thinker()
    dry = memory_agent(core, memory="semantic").without_model()
    assert isinstance(dry, DryLtm)
    assert isinstance(dry, IdealReplyAgent)
    dry.prompt("Bertram.")
    replies = play(dry, [(text, None) for text, _ in chat(60)])
    assert core.prompts == []
    assert {reply.text for reply in replies if reply} == {"Bertram."}
    last = replies[-1]
    assert last is not None
    assert last.usage is not None
    assert 500 < last.usage.cached_tokens < last.usage.input_tokens <= 1500


# Options.


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("ltm", "ltm/KIND/MODEL"),
        ("ltm/openai", "ltm/KIND/MODEL"),
        ("ltm/parrot/m", "there is no kind of model 'parrot'"),
        ("ltm/openai/m?windows=3", r"unknown option 'windows'; ltm's options are memory, context, .*; openai's are .*base_url"),
        ("ltm/openai/m?memry=json", r"unknown option 'memry'; did you mean memory\?"),
        ("ltm/openai/m?timeout=never", r"timeout: .*; ltm's options are"),
        ("ltm/openai/m?memory=xml", r"memory: .*'semantic', 'json' or 'text'"),
        ("ltm/openai/m?chunk=20&overlap=11", "more than half of chunk=20"),
        ("ltm/openai/m?embedder=word2vec", "expected local, minilm, wordllama, openai/MODEL, gguf/PATH, python:module:Class or hash"),
        ("ltm/openai/m?embedder=hash&embedder_url=http://127.0.0.1:1", "embedder_url requires embedder=openai/MODEL"),
        ("ltm/openai/m?chroma_url=127.0.0.1:8000", r"chroma_url: not a valid address: .*; expected http"),
        ("ltm/openai/m?chroma_url=http://127.0.0.1:8000/path", "such as http://127.0.0.1:8000"),
        ("ltm/openai/m?chroma_url=http://127.0.0.1:8000%3Fkey={KEY}", "a query in the address would be written to files"),
        ("ltm/openai/m?chroma_url=http://me:{KEY}@127.0.0.1:8000", "a user name or password in the address"),
        ("ltm/openai/m?context=300", "context=300 is too small for openai/m"),
        ("ltm/openai/gpt-4o?context=1m", "more than the .* of openai/gpt-4o: set context="),
    ],
)
def test_invalid_specs_are_rejected_before_the_run(spec: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(InputError, match=part) as caught:
        make_agent(AgentSpec.parse(spec.format(KEY=KEY)))
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_options_are_passed_to_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    agent: Any = make_agent(AgentSpec.parse("ltm/openai/gpt-4o?memory=text&temperature=0&context=8k"))
    assert agent.core.name == "openai/gpt-4o"
    assert agent.core.options.temperature == 0
    assert agent.budget.context == 8000
    assert agent.models == {"agent": "openai/gpt-4o", "embedder": "openai/text-embedding-3-small"}, "the provider's own"


def test_a_model_whose_provider_has_no_embedder_gets_a_real_one_and_hash_is_never_fallen_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise OSError("no network")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("chromadb.utils.embedding_functions.ONNXMiniLM_L6_V2._download_model_if_not_exists", refuse)
    spec = AgentSpec.parse("ltm/openai/m?base_url=http://127.0.0.1:1/v1&context=4k")
    with pytest.raises(
        InputError, match=r"minilm: .*\(OSError: no network\); connect to a network once, or use embedder=.*or embedder=hash"
    ):
        make_agent(spec)
    with never_asked():
        agent: Any = make_agent(spec)
    assert agent.embedder.name == "minilm", "an estimate downloads nothing"


def test_a_smaller_window_limits_the_context() -> None:
    assert memory_agent(Thinker(), context=None).budget.context == 16_000
    assert memory_agent(Thinker(window=8192, max_output=192), context=None).budget.context == 8000
    with pytest.raises(InputError, match="set context=8000 or less"):
        memory_agent(Thinker(window=8192, max_output=192), context=9000)


def test_the_error_without_chromadb_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)
    with pytest.raises(InputError, match=re.escape(f"needs the package chromadb: {install_extra('ltm')}")):
        memory_agent(Thinker())


def test_nothing_is_sent_anywhere_and_chroma_is_imported_late(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CHROMA_OTEL_COLLECTION_ENDPOINT=http://127.0.0.1:9\nANONYMIZED_TELEMETRY=True\n")
    code = """
import sys
sys.addaudithook(lambda event, arguments: event == "socket.connect" and print("connects to", arguments[1:]))
import longspan.agents.memory.ltm.agent
assert "chromadb" not in sys.modules and "numpy" not in sys.modules
from tests.agents.thinker import Thinker, memory_agent, play
play(memory_agent(Thinker()), [(f"Lamp {number} is red. " * 9, None) for number in range(60)])
print("done")
"""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stderr == ""
    assert done.stdout == "done\n"


def test_the_documentation_names_all_keys_of_a_trace() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guides" / "memory-agents.md").read_text("utf-8")
    table = text.partition("| key of the trace |")[2].partition("\n\n")[0]
    named = [name for cell in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)]
    core = Thinker()
    replies = play(memory_agent(core, overflow="truncate"), [(text, None) for text, _ in chat(40)] + [("Waves. " * 2000, None)])
    assert sorted(named) == sorted({key for reply in replies if reply and reply.trace for key in reply.trace})


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3600, "1 hour ago"),
        (3_700, "1 hour 1 minute ago"),
        (2 * 86_400 + 3 * 3600 + 59, "2 days 3 hours ago"),
        (86_400 + 120, "1 day 2 minutes ago"),
        (-5, "just now"),
    ],
)
def test_ages_are_in_words(seconds: int, words: str) -> None:
    assert format_age(START, START + timedelta(seconds=seconds)) == words
