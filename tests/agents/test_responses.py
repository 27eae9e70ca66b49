"""Models behind the Responses API, which keeps the conversation, by OpenAI's own library against a stub with state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from pydantic import ValidationError
from tests.loopback import Stateful
from tests.loopback.stateful import response

from longspan.agents.base import AgentError, Message, Reply, Usage
from longspan.agents.models.responses import ResponsesAgent
from longspan.simulator.contract.agent import can_observe, can_rejoin, can_repeat_turn, can_rewind, has_snapshots

pytestmark = pytest.mark.usefixtures("impatient")

NOW = datetime(2024, 1, 1, 9, 0)


@pytest.fixture
def server() -> Iterator[Stateful]:
    with Stateful(lambda said: " ".join(text for role, text in said if role == "user")).running() as running:
        yield running


def agent(server: Stateful, **options: Any) -> ResponsesAgent:
    url = f"{server.address}/v1"
    return ResponsesAgent("gpt-5", ResponsesAgent.Options(**{"base_url": url, "timeout": 20, "timestamps": False, **options}))


def message(text: str) -> Message:
    return Message(text, NOW, f"c-{text}")


def talk(asked: ResponsesAgent, *texts: str) -> list[Reply]:
    async def ask() -> list[Reply]:
        return [await asked.reply(message(text)) for text in texts]

    return trio.run(ask)


def ids(replies: list[Reply]) -> list[str]:
    return [(reply.trace or {})["server"]["id"] for reply in replies]


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_has_the_newest_message_and_the_last_answers_id(server: Stateful, stream: bool) -> None:
    replies = talk(agent(server, stream=stream, system="Be brief."), "one", "two", "three")
    assert [reply.text for reply in replies] == ["one", "one two", "one two three"]
    sent = [body for _, _, body in server.asked]
    assert [body["input"] for body in sent] == [[{"role": "user", "content": text}] for text in ("one", "two", "three")]
    assert [body.get("previous_response_id") for body in sent] == [None, *ids(replies)[:2]]
    assert {(body["store"], body["instructions"], body["max_output_tokens"]) for body in sent} == {(True, "Be brief.", 4096)}


def test_turns_that_are_only_read_go_with_the_next_message(server: Stateful) -> None:
    asked = agent(server)

    async def ask() -> list[Reply]:
        await asked.observe(message("one"), "Noted.")
        await asked.observe(message("two"), "Noted, too.")
        return [await asked.reply(message("three")), await asked.reply(message("four"))]

    replies = trio.run(ask)
    assert [len(body["input"]) for _, _, body in server.asked] == [5, 1]
    assert [item["role"] for item in server.asked[0][2]["input"]] == ["user", "assistant", "user", "assistant", "user"]
    assert replies[1].text == "one two three four"


def test_usage_counts_what_the_server_added_and_cached(server: Stateful) -> None:
    asked = agent(server, price_in=1, price_out=2)
    first, second = talk(asked, "one " * 100, "two")
    assert first.usage == Usage(104, 0, 104)
    assert second.usage is not None
    assert second.usage.cached_tokens == 104 + 104
    worst = asked.worst_case(message("three"))["agent"]
    assert worst.input_tokens > second.usage.input_tokens + second.usage.output_tokens


def test_an_earlier_state_is_exact(server: Stateful, tmp_path: Path) -> None:
    asked = agent(server)

    async def ask() -> list[str]:
        await asked.reply(message("one"))
        await asked.observe(message("two"), "Noted.")
        await asked.mark()
        await asked.save(tmp_path)
        said = [(await asked.reply(message("three"))).text]
        await asked.rewind()
        said.append((await asked.reply(message("four"))).text)
        copy = agent(server)
        await copy.load(tmp_path)
        said.append((await copy.reply(message("five"))).text)
        await copy.reset()
        return [*said, (await copy.reply(message("six"))).text]

    assert trio.run(ask) == ["one two three", "one two four", "one two five", "six"]
    assert all(can(asked) for can in (can_observe, has_snapshots, can_rewind, can_repeat_turn, can_rejoin))


def test_an_interrupted_conversation_continues_from_its_last_answer(server: Stateful) -> None:
    first = agent(server)
    replies = talk(first, "one", "two")
    lost = talk(first, "three")  # answered by the server, and never journaled

    async def resume() -> Reply:
        again = agent(server)
        assert await again.rejoin(message("two"), replies[1])
        return await again.reply(message("three"))

    assert trio.run(resume) == lost[0]


def test_turns_of_another_conversation_are_told_by_their_text(server: Stateful) -> None:
    replies = talk(agent(server), "one", "two")

    async def lesion() -> str:
        knows_the_last = agent(server)
        await knows_the_last.replay(message("two"), replies[1])
        return (await knows_the_last.reply(message("three"))).text

    assert trio.run(lesion) == "two three"


@pytest.mark.parametrize("found", ["resp_1", {"id": 7}, {"id": "x" * 2000}, {"id": "x", "more": 1}])
def test_a_forged_trace_is_an_error(server: Stateful, found: Any) -> None:
    with pytest.raises(AgentError, match="the trace of turn c-one cannot be read"):
        trio.run(agent(server).rejoin, message("one"), Reply("OK.", trace={"server": found}))


def test_a_damaged_snapshot_is_an_error(server: Stateful, tmp_path: Path) -> None:
    asked = agent(server)
    trio.run(asked.save, tmp_path)
    (tmp_path / "server.json").write_text("[]")
    with pytest.raises(AgentError, match="not a snapshot of this kind of agent"):
        trio.run(asked.load, tmp_path)


REASONING = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "content": [{"type": "reasoning_text", "text": "Ah."}],
}


def item(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def test_thoughts_and_remarks_are_no_part_of_the_reply(server: Stateful) -> None:
    output = [REASONING, item("Let me see.", phase="commentary"), item("Blue.", phase="final_answer")]
    server.acts.append((200, response("resp_1", "", output=output)))
    (reply,) = talk(agent(server), "one")
    assert reply.text == "Blue."
    assert (reply.trace or {})["thinking"] == "Hm.Ah.Let me see."


def test_an_answer_that_reached_its_limit_is_marked(server: Stateful) -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    server.acts += [
        (200, response("resp_1", "And so", output=[item("And so")], **cut)),
        (200, response("resp_2", "", output=[REASONING], **cut)),
    ]
    asked = agent(server)
    (reply,) = talk(asked, "one")
    assert (reply.trace or {})["cut"] == {"by": "max_tokens", "tokens": 3}
    with pytest.raises(AgentError, match=r"used all 4,096 tokens of its answer for thinking: set a larger max_tokens="):
        talk(asked, "two")


def test_a_refusal_is_a_reply_and_its_turn_is_told_with_the_next(server: Stateful) -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "I must not."}]}
    filtered = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}
    server.acts += [(200, response("resp_1", "", output=[refused])), (200, response("resp_2", "", **filtered))]
    replies = talk(agent(server), "one", "two", "three")
    assert [(reply.text, reply.refused) for reply in replies[:2]] == [("I must not.", True), ("(no reply: content filter)", True)]
    assert replies[2].text == "one two three"
    assert [body.get("previous_response_id") for _, _, body in server.asked] == [None, None, None]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (response("resp_1", "", status="failed", error={"code": "server_error", "message": "an\nerror"}), r"\(server_error: an error\)"),
        (response("resp_1", "", status="in_progress"), "stopped before the end of its answer"),
        (response("resp_1", "", output=[]), "expected text, got NoneType"),
        ({"id": "resp_1", "output": 5}, "gave an unreadable answer"),
        (response("", "Hi."), "gave an answer without a valid id"),
        (response("r" * 2000, "Hi."), "gave an answer without a valid id"),
    ],
)
def test_what_is_no_answer_is_an_error_of_one_line(server: Stateful, answer: Any, said: str) -> None:
    server.acts += 10 * [(200, answer)]
    with pytest.raises(AgentError, match=said) as raised:
        talk(agent(server), "one")
    assert "\n" not in str(raised.value)


def test_a_state_that_the_server_has_lost_is_an_error(server: Stateful) -> None:
    asked = agent(server)
    talk(asked, "one")
    server.responses.clear()
    with pytest.raises(AgentError, match=r"Previous response with id 'resp_\w+' not found"):
        talk(asked, "two")


def test_a_server_that_keeps_nothing_is_reported(server: Stateful) -> None:
    server.acts += [
        (200, response("resp_1", "OK.", read=900)),
        (200, response("resp_2", "Which parcel?", read=12, previous_response_id=None)),
    ]
    with pytest.raises(AgentError, match="ignores previous_response_id, so that it does not keep the conversation: use openai/MODEL"):
        talk(agent(server), "one", "two")


def test_a_conversation_that_is_too_long_is_the_servers_to_shorten(server: Stateful) -> None:
    server.acts.append((400, {"error": {"message": "Your input exceeds the context window.", "code": "context_length_exceeded"}}))
    with pytest.raises(AgentError, match="its server keeps the conversation, and has to shorten it"):
        talk(agent(server), "one")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"context": 8000}, "the server keeps the conversation and decides what its model sees: leave out context"),
        ({"eviction": "sliding"}, "leave out eviction"),
        ({"extra_body": {"previous_response_id": "resp_1", "store": False}}, "extra_body: previous_response_id, store cannot be set"),
    ],
)
def test_what_the_server_decides_is_no_option(server: Stateful, option: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        agent(server, **option)


def test_a_single_prompt_is_not_stored(server: Stateful) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}

    async def judge() -> Reply:
        return await agent(server, temperature=0, reasoning_effort="low").complete("Is it true?", schema=schema)

    assert trio.run(judge).text == "Is it true?"
    ((_, _, body),) = server.asked
    assert (body["store"], body["temperature"], body["reasoning"]) == (False, 0, {"effort": "low"})
    assert body["text"]["format"]["strict"] is True
    assert json.dumps(body["text"]["format"]["schema"]) == json.dumps(schema)
    assert server.responses == {}
