"""Chat servers that keep the conversation under an id: `history=server`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import trio
from tests.loopback import Stateful

from longspan.agents.base import InputError, Message, Reply
from longspan.agents.models.stateful import SessionAgent
from longspan.simulator.contract.agent import can_observe, can_rejoin, can_repeat_turn, can_rewind, has_snapshots
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

pytestmark = pytest.mark.usefixtures("impatient")

NOW = datetime(2024, 1, 1, 9, 0)


@pytest.fixture
def server() -> Iterator[Stateful]:
    with Stateful(lambda said: " ".join(text for role, text in said if role != "assistant")).running() as running:
        yield running


def agent(server: Stateful, options: str = "") -> SessionAgent:
    made = make_agent(AgentSpec.parse(f"openai/m?base_url={server.address}/v1&history=server&timestamps=false&timeout=20{options}"))
    assert isinstance(made, SessionAgent)
    return made


def message(text: str) -> Message:
    return Message(text, NOW, f"c-{text}")


def talk(asked: SessionAgent, *texts: str) -> list[Reply]:
    async def ask() -> list[Reply]:
        return [await asked.reply(message(text)) for text in texts]

    return trio.run(ask)


def test_the_server_gets_the_newest_message_and_the_system_message_once(server: Stateful) -> None:
    replies = talk(agent(server, "&system=Brief."), "one", "two", "three")
    assert [reply.text for reply in replies] == ["Brief. one", "Brief. one two", "Brief. one two three"]
    assert [[each["role"] for each in body["messages"]] for _, _, body in server.asked] == [["system", "user"], ["user"], ["user"]]
    (id,) = {headers["x-session-id"] for _, headers, _ in server.asked}
    assert [reply.trace for reply in replies if reply.trace] == 3 * [{"server": {"id": id}}]


@pytest.mark.parametrize(("place", "named"), [("session_id", ["session_id"]), ("metadata.chat.id", ["metadata", "chat", "id"])])
def test_the_id_may_be_a_field(server: Stateful, place: str, named: list[str]) -> None:
    server.acts += 2 * [(200, {"choices": [{"message": {"content": "OK."}, "finish_reason": "stop"}]})]
    body = f'&conversation=body:{place}&extra_body={{"metadata":{{"team":"memory"}}}}'
    talk(agent(server, body), "one", "two")
    found = []
    for _, _, sent in server.asked:
        assert sent["metadata"]["team"] == "memory"
        value: Any = sent
        for name in named:
            value = value[name]
        found.append(value)
    assert len(set(found)) == 1
    assert len(found) == 2


def test_each_conversation_has_its_own_id(server: Stateful) -> None:
    one, other = agent(server), agent(server)
    talk(one, "one")
    talk(other, "two")

    async def begin_again() -> str:
        await one.reset()
        return (await one.reply(message("three"))).text

    assert trio.run(begin_again) == "three"
    assert len(server.sessions) == 3


def test_an_interrupted_conversation_continues_on_the_server(server: Stateful) -> None:
    asked = agent(server, "&system=Brief.")

    async def resume() -> tuple[Reply, Reply]:
        told = await asked.observe(message("one"), "Noted.")
        again = agent(server, "&system=Brief.")
        assert await again.rejoin(message("one"), told)
        return told, await again.reply(message("two"))

    told, reply = trio.run(resume)
    assert told.text == ""
    assert set(told.besides) == {"dropped"}
    assert reply.text == "Brief. one two"
    assert len(server.sessions) == 1


def test_it_says_what_it_cannot_do(server: Stateful) -> None:
    asked = agent(server)
    assert not any(can(asked) for can in (can_observe, has_snapshots, can_rewind, can_repeat_turn))
    assert can_rejoin(asked)
    talk(asked, "one", "one")
    assert len(server.asked) == 2, "a turn that is sent again is in the conversation twice, and nobody pretends that it is not"


def test_a_message_that_was_sent_again_is_marked(server: Stateful) -> None:
    server.acts.append((500, {"error": {"message": "not now"}}))
    replies = talk(agent(server), "one", "two")
    assert [(reply.trace or {}).get("sent") for reply in replies] == [2, None]


def test_a_refused_message_is_in_the_conversation_all_the_same(server: Stateful) -> None:
    refusal = {"choices": [{"message": {"role": "assistant", "refusal": "I must not."}, "finish_reason": "stop"}]}
    server.acts.append((200, refusal))
    replies = talk(agent(server), "one", "two")
    assert replies[0].refused
    assert "server" in (replies[0].trace or {})
    assert [len(body["messages"]) for _, _, body in server.asked] == [1, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("base_url=http://127.0.0.1:9/v1&conversation=header:X-Id", "conversation needs history=server"),
        ("history=server", "history=server needs base_url="),
        ("base_url=http://127.0.0.1:9/v1&history=server&context=8k", "leave out context"),
        *(
            (f"base_url=http://127.0.0.1:9/v1&history=server&conversation={place}", said)
            for place, said in {
                "X-Id": "expected header:NAME or body:FIELD",
                "header:X Id": "expected header:NAME or body:FIELD",
                "body:a..b": "expected header:NAME or body:FIELD",
                "header:Authorization": "Authorization cannot be set",
                "header:content-length": "content-length cannot be set",
                "body:messages": "messages cannot be set",
            }.items()
        ),
    ],
)
def test_a_place_that_cannot_be_used_is_refused(options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_agent(AgentSpec.parse(f"openai/m?{options}"))
