from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.loopback import Raw, Server

from longspan.agents.base import Message, Usage
from longspan.agents.models.anthropic import AnthropicAgent, AnthropicCore, cache_breakpoints
from longspan.agents.models.core import ChatMessage

pytestmark = pytest.mark.usefixtures("impatient")


def agent(server: Server, **options: Any) -> AnthropicAgent:
    return AnthropicAgent("claude-test", AnthropicAgent.Options(base_url=server.base_url("anthropic"), **options))


def message(number: int, text: str) -> Message:
    return Message(text, datetime(2024, 1, 1, 9, 0), f"c-{number}")


@given(st.integers(0, 400), st.integers(3, 4))
def test_marks_cover_all_turns_since_the_last_request(messages: int, limit: int) -> None:
    marks = cache_breakpoints(messages, limit)
    assert len(marks) <= limit
    assert all(0 <= mark < messages for mark in marks)
    if messages >= 3:
        assert {messages - 1, messages - 2} <= marks
        looked_at = {mark - back for mark in marks for back in range(20)}
        assert looked_at >= set(range(max(0, messages - 2 - 20 * (limit - 1) + 1), messages))


def test_a_single_prompt_is_not_written_to_the_cache(server: Server) -> None:
    async def judge() -> None:
        await agent(server, system="be fair").complete("Is it so? " * 1000, schema={"type": "object"})

    trio.run(judge)
    assert "cache_control" not in str(server.asked[0].body)


@pytest.mark.parametrize("observed", [0, 1, 8, 15])
@pytest.mark.parametrize("system", ["", "be brief"])
def test_the_conversation_so_far_is_read_from_the_cache(server: Server, observed: int, system: str) -> None:
    """Also after up to 15 observed turns, 30 messages."""
    chat = agent(server, context=100_000, system=system)

    async def talk() -> list[Usage]:
        used, turn = [], 0
        for _ in range(6):
            for _ in range(observed):
                turn += 1
                await chat.observe(message(turn, "It rains on the pier. " * 20), "So it does.")
            turn += 1
            reply = await chat.reply(message(turn, "And what of the boats? " * 60))
            assert reply.usage is not None
            used.append(reply.usage)
        return used

    used = trio.run(talk)
    for before, after in pairwise(used[2:]):
        assert after.cached_tokens == before.input_tokens  # all of the prompt before this one


def test_a_last_message_that_is_never_repeated_costs_only_itself(server: Server) -> None:
    """Memory agents send such messages: memories are in the last message and are not kept."""
    core = AnthropicCore("claude-test", AnthropicCore.Options(base_url=server.base_url("anthropic")))

    async def talk() -> list[Usage]:
        history: list[ChatMessage] = []
        used = []
        for turn in range(8):
            question = f"Question {turn}: " + "what of the boats? " * 60
            asked = [*history, ChatMessage("user", f"You remember {turn} things. {question}")]
            used.append((await core.complete(asked)).usage)
            history += ChatMessage("user", question), ChatMessage("assistant", "They lie at the pier.")
        return used

    used = trio.run(talk)
    turn = used[-1].input_tokens - used[-2].input_tokens
    for usage in used[5:]:
        assert usage.input_tokens - usage.cached_tokens <= 2 * turn + 10


def test_input_tokens_include_cached_ones(server: Server) -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 400, "output_tokens": 2}
    body = {"type": "message", "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn", "usage": usage}
    server.script([Raw(json.dumps(body).encode())])
    assert trio.run(agent(server).reply, message(0, "Is it so?")).usage == Usage(435, 400, 2)


def test_an_error_in_the_middle_of_a_stream_is_retried(server: Server) -> None:
    events = [
        'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 0}}}',
        'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Half"}}',
        'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
    ]
    server.script([Raw("\r\n\r\n".join([*events, ""]).encode(), headers={"content-type": "text/event-stream"})])
    assert trio.run(agent(server, stream=True).reply, message(0, "Is it so?")).text.endswith("Is it so?")


def test_thinking_is_not_part_of_the_reply(server: Server) -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}, {"type": "text", "text": " Surely."}]
    body = {"type": "message", "content": content, "stop_reason": "end_turn", "usage": None}
    server.script([Raw(json.dumps(body).encode())])
    assert trio.run(agent(server).reply, message(0, "Is it so?")).text == "Yes. Surely."
