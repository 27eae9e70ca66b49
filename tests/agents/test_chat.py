from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.models.chat import ChatAgent, ChatOptions, cut_middle
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError
from longspan.simulator.contract.agent import CompletionModel, IdealReplyAgent, has_snapshots
from longspan.simulator.subject.ledger import Rates

START = datetime(2024, 1, 1, 9, 0)


class Words:
    """A fake core whose tokens are words. It answers with the result of `reply` for the last message."""

    name: str = "words/model"
    priced_as: str | Rates = name
    overhead = 1

    def __init__(
        self,
        *,
        window: int | None = None,
        max_prompt: int | None = None,
        weight: float = 1.0,
        reply: Callable[[str], str] = lambda text: f"re: {text.split()[-1]}",
    ) -> None:
        self.window, self.max_prompt, self.weight, self.reply = window, max_prompt, weight, reply
        self.max_output = 10
        self.prompts: list[list[ChatMessage]] = []
        self.counted = 0

    def count(self, text: str) -> int:
        self.counted += 1
        return len(text.split())

    def size(self, messages: Sequence[ChatMessage]) -> int:
        return sum(len(message.text.split()) + self.overhead for message in messages)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        await trio.lowlevel.checkpoint()
        if self.max_prompt is not None and self.size(messages) > self.max_prompt:
            raise ContextOverflowError(f"{self.name}: the prompt is too long")
        self.prompts.append(list(messages))
        text = self.reply(messages[-1].text)
        return Completion(text, Usage(round(self.size(messages) * self.weight), 0, len(text.split())))


def agent(core: Words, **options: Any) -> ChatAgent:
    return ChatAgent(core, ChatOptions(**({"context": 100, "timestamps": False} | options)))


def message(number: int, text: str = "") -> Message:
    return Message(text or f"message number {number}", START + number * timedelta(seconds=30), f"c-{number}")


def play(chat: ChatAgent, turns: Sequence[tuple[int, str, str | None]]) -> list[dict[str, Any]]:
    """Play turns: a number and a message, with a reply if the agent only observes the turn. Return the traces of the others."""
    traces = []

    async def play_all() -> None:
        for number, text, reply in turns:
            if reply is None:
                traces.append((await chat.reply(message(number, text))).trace or {})
            else:
                await chat.observe(message(number, text), reply)

    trio.run(play_all)
    return traces


TURNS = st.lists(
    st.tuples(st.integers(1, 40), st.one_of(st.none(), st.integers(0, 40))).map(
        lambda sizes: (" ".join(["w"] * sizes[0]), None if sizes[1] is None else " ".join(["r"] * sizes[1]))
    ),
    min_size=1,
    max_size=40,
)


@given(TURNS, st.sampled_from(["block", "sliding"]), st.sampled_from(["", "be brief"]))
def test_a_prompt_is_the_system_message_the_newest_turns_that_fit_and_the_message(
    turns: list[tuple[str, str | None]], eviction: Literal["block", "sliding"], system: str
) -> None:
    core = Words()
    chat = agent(core, eviction=eviction, system=system)
    traces = iter(play(chat, [(n, text, reply) for n, (text, reply) in enumerate(turns)]))
    spoken: list[ChatMessage] = []
    prompts = iter(core.prompts)
    for number, (text, reply) in enumerate(turns):
        if reply is None:
            prompt = next(prompts)
            head = [ChatMessage("system", system)] if system else []
            history = prompt[len(head) : -1]
            assert prompt[: len(head)] == head
            assert prompt[-1] == ChatMessage("user", text)
            assert history == spoken[len(spoken) - len(history) :]
            assert len(history) % 2 == 0
            assert core.size(prompt) <= 100
            shown = len(history) // 2
            recent = {"turns": shown, "since": f"c-{number - shown}" if shown else None}
            assert next(traces) == {"recent": recent, "prompt_tokens": core.size(prompt)}
        spoken += ChatMessage("user", text), ChatMessage("assistant", core.reply(text) if reply is None else reply)


def test_every_message_is_counted_once_however_long_the_conversation() -> None:
    core = Words()
    chat = agent(core, system="be brief")
    before = core.counted
    play(chat, [(n, "", None) for n in range(200)])
    assert core.counted - before == 2 * 200


def test_dropping_a_block_keeps_the_start_of_the_prompt_for_many_turns() -> None:
    def beginnings(eviction: str) -> int:
        core = Words()
        play(agent(core, context=200, eviction=eviction), [(n, "", None) for n in range(100)])
        return len({prompt[0].text for prompt in core.prompts})

    # The window holds 28 turns of 7 words, so that 72 of 100 have to go; a block is 7 of them.
    assert beginnings("block") <= 1 + 72 // 7 + 1
    assert beginnings("sliding") >= 72


def test_each_message_is_prefixed_with_its_date_and_time() -> None:
    core = Words()
    play(agent(core, timestamps=True), [(0, "hello", None), (3, "later", "noted"), (5, "now", None)])
    texts = [entry.text for entry in core.prompts[-1]]
    stamps = ["[Mon 2024-01-01 09:00:00] hello", "[Mon 2024-01-01 09:01:30] later", "[Mon 2024-01-01 09:02:30] now"]
    assert texts == [stamps[0], "re: hello", stamps[1], "noted", stamps[2]]


def test_observing_a_turn_makes_no_request() -> None:
    core = Words()
    play(agent(core), [(0, "told", "noted")])
    assert core.prompts == []


def test_a_repeated_turn_is_the_same_request() -> None:
    core = Words()
    chat = agent(core)

    async def twice() -> None:
        first = await chat.reply(message(0))
        again = await chat.reply(message(0))
        assert (first.text, again.text, again.usage) == ("re: 0", "re: 0", None)
        await chat.observe(message(1), "noted")
        await chat.observe(message(1), "noted")
        await chat.reply(message(2))

    trio.run(twice)
    assert [entry.text for entry in core.prompts[-1]] == ["message number 0", "re: 0", "message number 1", "noted", "message number 2"]


@pytest.mark.parametrize("observed", [False, True])
def test_a_message_larger_than_the_window_is_an_error_with_a_remedy(observed: bool) -> None:
    with pytest.raises(AgentError, match="a message of 102 tokens is larger than the whole window of 100: set a larger context="):
        play(agent(Words()), [(0, "w " * 101, "noted" if observed else None)])


def test_with_overflow_truncate_its_middle_is_cut_and_traced() -> None:
    core = Words()
    chat = agent(core, overflow="truncate")
    text = "begin " + "middle " * 500 + "end"

    async def ask() -> None:
        await chat.observe(message(0, text), "noted")
        reply = await chat.reply(message(1, text))
        assert reply.trace is not None
        assert reply.trace["truncated"]["from"] == 503
        assert 97 <= reply.trace["truncated"]["to"] <= 100
        assert list(reply.trace["truncated_before"]) == ["c-0"]
        assert "truncated" not in ((await chat.reply(message(2))).trace or {})

    trio.run(ask)
    sent = core.prompts[0][-1].text
    assert sent.startswith("begin middle")
    assert sent.endswith("middle end")
    assert "[...]" in sent


@given(st.text(max_size=400), st.integers(5, 50))
def test_a_cut_text_is_as_long_as_allowed(text: str, max_tokens: int) -> None:
    cut = cut_middle(text, max_tokens, len)
    assert len(cut) <= max(max_tokens, len("\n[...]\n"))
    if len(text) > max_tokens >= 9:
        assert len(cut) >= max_tokens - 1


def test_a_prompt_that_the_provider_finds_too_long_is_shortened() -> None:
    core = Words(max_prompt=60)
    play(agent(core, context=100), [(n, "", None) for n in range(40)])
    assert len(core.prompts) == 40
    assert all(core.size(prompt) <= 60 for prompt in core.prompts)


def test_a_single_message_too_long_for_the_model_is_an_error() -> None:
    with pytest.raises(AgentError, match="larger than the model's window: set a smaller context="):
        play(agent(Words(max_prompt=20)), [(0, "", None), (1, "w " * 30, None)])


@pytest.mark.parametrize("weight", [0.8, 1.0, 1.5])
def test_the_window_follows_the_providers_count(weight: float) -> None:
    core = Words(weight=weight)
    play(agent(core, context=1000), [(n, "", None) for n in range(300)])
    largest = max(core.size(prompt) * weight for prompt in core.prompts)
    assert 1000 * 0.95 <= largest <= 1000


@pytest.mark.parametrize("weight", [0.0, 1e6])
def test_implausible_counts_are_bounded(weight: float) -> None:
    core = Words(weight=weight)
    play(agent(core, context=1000), [(n, "", None) for n in range(300)])
    assert 500 * 0.7 <= core.size(core.prompts[-1]) <= 1000 / 0.75


def test_the_worst_case_bounds_the_usage() -> None:
    core = Words(weight=1.2)
    chat = agent(core)

    async def ask() -> None:
        for number in range(100):
            worst = chat.worst_case(message(number))["agent"]
            reply = await chat.reply(message(number))
            assert reply.usage is not None
            assert reply.usage.input_tokens <= worst.input_tokens
            assert reply.usage.output_tokens <= worst.output_tokens

    trio.run(ask)
    assert chat.models == {"agent": "words/model"}


# Snapshots.


@given(TURNS, st.data())
def test_a_copy_from_a_snapshot_continues_in_the_same_way(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, str | None]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("snapshot")
    cores = Words(weight=1.3), Words(weight=1.3)
    chat, copy = (agent(core, overflow="truncate") for core in cores)
    at = data.draw(st.integers(0, len(turns)))
    numbered = [(n, text, reply) for n, (text, reply) in enumerate(turns)]
    play(chat, numbered[:at])
    trio.run(chat.save, folder)
    trio.run(copy.load, folder)
    before = len(cores[0].prompts)
    play(chat, numbered[at:])
    play(copy, numbered[at:])
    assert cores[0].prompts[before:] == cores[1].prompts
    assert has_snapshots(chat)


def test_a_snapshot_remembers_the_last_turn(tmp_path: Path) -> None:
    chat, copy = agent(Words()), agent(Words())
    play(chat, [(0, "", None)])
    trio.run(chat.save, tmp_path)
    trio.run(copy.load, tmp_path)
    assert trio.run(copy.reply, message(0)).text == "re: 0"
    trio.run(copy.reset)
    play(copy, [(1, "", None)])
    assert isinstance(copy.core, Words)
    assert [entry.text for entry in copy.core.prompts[0]] == ["message number 1"]


GOOD = {"version": 1, "turns": [["hello", "OK."]], "last": {"turn_id": "c-0", "reply": "OK."}, "ratio": 1.0, "cuts": []}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"turns": None},
        {"turns": [["hello"]]},
        {"turns": [["hello", 7]]},
        {"turns": [["hello", "OK.", "more"]]},
        {"last": {}},
        {"ratio": "1"},
        {"ratio": 0},
        {"ratio": float("nan")},
        {"ratio": 1e999},
        {"cuts": [{"turn_id": "c", "before": -1, "after": 0}]},
        {"more": 1},
    ],
)
def test_an_invalid_snapshot_is_rejected(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(AgentError, match=r"chat\.json: not a snapshot") as caught:
        trio.run(agent(Words()).load, tmp_path)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_bytes_in_a_snapshot_raise_an_agent_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "chat.json").write_bytes(content)
    with pytest.raises(AgentError):
        trio.run(agent(Words()).load, folder)


def test_a_missing_snapshot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="cannot be read"):
        trio.run(agent(Words()).load, tmp_path)


# Options, and use by judges and estimates.


@pytest.mark.parametrize(
    ("core", "options", "part"),
    [
        (Words(window=50), {"context": 41}, "set context=40 or less"),
        (Words(window=10), {"context": None}, "leaves no room for a prompt in the model's 10 tokens"),
        (Words(), {"context": 63}, "leaves no room for messages"),
        (Words(), {"system": "w " * 50}, "the system message has 51 tokens"),
    ],
)
def test_an_impossible_context_is_rejected(core: Words, options: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError, match=part):
        agent(core, **options)


def test_the_default_context_is_the_models_window_or_16k() -> None:
    assert agent(Words(window=1000), context=None).context == 990
    assert agent(Words(), context=None).context == 16_000


def test_prompts_for_a_judge_do_not_affect_the_conversation() -> None:
    core = Words()
    chat = agent(core)
    assert isinstance(chat, CompletionModel)

    async def ask() -> None:
        assert (await chat.complete("one prompt", schema={"type": "object"})).text == "re: prompt"
        with pytest.raises(AgentError, match="larger than the context"):
            await chat.complete("w " * 200, schema={})
        await chat.reply(message(0))

    trio.run(ask)
    assert [entry.text for entry in core.prompts[-1]] == ["message number 0"]


def test_without_its_model_it_counts_the_tokens_of_requests() -> None:
    core = Words()
    chat = agent(core)
    dry = chat.without_model()
    assert isinstance(dry, IdealReplyAgent)
    dry.prompt("the ideal reply")
    reply = trio.run(dry.reply, message(0))
    assert (reply.text, reply.usage) == ("the ideal reply", Usage(4, 0, 3))
    assert core.prompts == []
    assert not isinstance(chat, IdealReplyAgent)
