"""Agents behind A2A, against a stub that speaks both versions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import trio
from tests.loopback import Stateful

from longspan.agents.base import AgentError, InputError, Message, Reply
from longspan.agents.outside.a2a import A2aAgent
from longspan.simulator.contract.agent import can_observe, can_rejoin, can_repeat_turn, can_rewind, has_snapshots

NOW = datetime(2024, 1, 1, 9, 0)


@pytest.fixture(params=["0.3.0", "1.0"])
def server(request: pytest.FixtureRequest) -> Iterator[Stateful]:
    with Stateful(lambda said: f"{len(said)} said", version=request.param).running() as running:
        yield running


def agent(server: Stateful, **options: Any) -> A2aAgent:
    return A2aAgent(server.address, A2aAgent.Options(**{"timeout": 20, "timestamps": False, **options}))


def message(number: int, text: str = "Hello.") -> Message:
    return Message(text, NOW, f"c-{number}")


def talk(asked: A2aAgent, *numbers: int) -> list[Reply]:
    async def ask() -> list[Reply]:
        return [await asked.reply(message(number)) for number in numbers]

    return trio.run(ask)


def sent(server: Stateful) -> list[dict[str, Any]]:
    return [body["params"]["message"] for _, _, body in server.asked if "message" in body.get("params", {})]


def test_the_agents_context_keeps_the_conversation(server: Stateful) -> None:
    replies = talk(agent(server), 1, 2, 3)
    assert [reply.text for reply in replies] == ["1 said", "3 said", "5 said"]
    assert [reply.trace for reply in replies] == 3 * [{"server": {"id": "context-1"}}]
    assert [each.get("contextId") for each in sent(server)] == [None, "context-1", "context-1"]
    assert len({each["messageId"] for each in sent(server)}) == 3
    paths = [path for path, _, _ in server.asked]
    assert paths == ["/.well-known/agent-card.json", *3 * ["/rpc"]]
    assert {headers["a2a-version"] for _, headers, body in server.asked if body} == {server.version}


def test_messages_have_the_virtual_time(server: Stateful) -> None:
    talk(agent(server, timestamps=True), 1)
    assert sent(server)[0]["parts"][0]["text"] == "[Mon 2024-01-01 09:00:00] Hello."


def test_an_unfinished_task_is_asked_for_until_it_is_done(server: Stateful) -> None:
    server.modes += ["working", "completed"]
    replies = talk(agent(server), 1, 2)
    assert [reply.text for reply in replies] == ["1 said", "3 said"]
    old = server.version != "1.0"
    methods = [body["method"] for _, _, body in server.asked if body]
    send, get = ("message/send", "tasks/get") if old else ("SendMessage", "GetTask")
    assert methods == [send, get, get, send]


def test_a_task_that_needs_input_gets_the_next_message(server: Stateful) -> None:
    server.modes += ["input-required", "completed"]
    replies = talk(agent(server), 1, 2, 3)
    assert [reply.text for reply in replies] == ["1 said", "3 said", "5 said"]
    assert [each.get("taskId") for each in sent(server)] == [None, "task-1", None]
    assert replies[0].trace == {"server": {"id": "context-1", "task": "task-1"}}


def test_a_rejected_task_is_a_refusal(server: Stateful) -> None:
    server.modes.append("rejected")
    (reply,) = talk(agent(server), 1)
    assert (reply.text, reply.refused) == ("1 said", True)


@pytest.mark.parametrize(
    ("mode", "said"), [("failed", "its task is failed: 1 said"), ("auth-required", "its task is auth-required: 1 said")]
)
def test_a_task_that_ends_otherwise_is_an_error(server: Stateful, mode: str, said: str) -> None:
    server.modes.append(mode)
    with pytest.raises(AgentError, match=rf"^a2a:{server.address}: {said}$"):
        talk(agent(server), 1)


def test_it_says_what_it_cannot_do_and_continues_where_its_trace_says(server: Stateful) -> None:
    first = agent(server)
    assert not any(can(first) for can in (can_observe, has_snapshots, can_rewind, can_repeat_turn))
    assert can_rejoin(first)

    async def interrupt() -> tuple[Reply, Reply]:
        told = await first.observe(message(1), "Noted.")
        again = agent(server)
        assert not await again.rejoin(message(0), Reply("OK."))
        assert await again.rejoin(message(1), told)
        return told, await again.reply(message(2))

    told, reply = trio.run(interrupt)
    assert (told.text, told.trace, reply.text) == ("", {"server": {"id": "context-1"}}, "3 said")


def test_a_new_conversation_is_a_new_context(server: Stateful) -> None:
    asked = agent(server)

    async def begin_again() -> list[str]:
        before = await asked.reply(message(1))
        await asked.reset()
        return [before.text, (await asked.reply(message(1))).text]

    assert trio.run(begin_again) == ["1 said", "1 said"]
    assert len(server.sessions) == 2


def test_a_lost_context_is_an_error(server: Stateful) -> None:
    asked = agent(server)
    talk(asked, 1)
    answer = {"messageId": "m", "contextId": "another", "parts": [{"text": "Hello?"}]}
    server.acts.append((200, {"jsonrpc": "2.0", "id": "1", "result": answer}))
    with pytest.raises(AgentError, match="answered in another context: it has lost the conversation"):
        talk(asked, 2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {"jsonrpc": "2.0", "id": "1", "error": {"code": -32600, "message": "no such\nskill"}}), "failed: no such skill"),
        ((200, {"jsonrpc": "2.0", "id": "1"}), "gave an answer without a result"),
        ((200, {"jsonrpc": "2.0", "id": "1", "result": {"parts": [{"text": "Hi."}]}}), "without a valid contextId"),
        ((200, {"jsonrpc": "2.0", "id": "1", "result": {"contextId": 7, "artifacts": 3, "parts": "x"}}), "without a valid contextId"),
        ((200, b"<html>"), "answered with something that is not JSON: <html>"),
        ((302, {}), "redirects"),
        ((401, {}), r"rejected the request \(401 {}\); to send a key, set MY_KEY"),
    ],
)
def test_what_is_no_answer_is_an_error_of_one_line(server: Stateful, answer: tuple[int, Any], said: str) -> None:
    asked = agent(server, key_env="MY_KEY")
    server.acts += [(200, server.card()), answer]
    with pytest.raises(AgentError, match=said) as raised:
        talk(asked, 1)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ((404, {}), r"its card, http://127\.0\.0\.1:\d+/\.well-known/agent-card\.json: rejected the request \(404"),
        ((200, {"name": "x"}), "its card names no interface for JSON-RPC"),
        ((200, {"supportedInterfaces": [{"protocolBinding": "GRPC", "url": "http://127.0.0.1:9"}]}), "names no interface for JSON-RPC"),
        ((200, {"supportedInterfaces": 7, "additionalInterfaces": {"url": 1}}), "names no interface for JSON-RPC"),
    ],
)
def test_a_card_that_names_no_way_is_an_error(server: Stateful, card: tuple[int, Any], said: str) -> None:
    server.acts.append(card)
    with pytest.raises(AgentError, match=said):
        talk(agent(server), 1)


def test_a_card_that_names_another_server_is_refused(server: Stateful) -> None:
    server.acts.append((200, {"url": "https://elsewhere.example/rpc"}))
    with pytest.raises(InputError, match=r"its card names another server, https://elsewhere\.example/rpc: use a2a: with"):
        talk(agent(server), 1)
    assert len(server.asked) == 1


def test_a_key_is_sent_as_a_bearer_token(server: Stateful, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cr3t-0123456789")
    talk(agent(server, key_env="MY_KEY"), 1)
    assert {headers["authorization"] for _, headers, _ in server.asked} == {"Bearer s3cr3t-0123456789"}
    with pytest.raises(InputError, match="MY_KEY is only sent over https or to this machine"):
        A2aAgent("http://agent.example", A2aAgent.Options(key_env="MY_KEY"))


def test_a_task_that_never_ends_is_given_up(server: Stateful) -> None:
    old = server.version != "1.0"
    task = {"id": "t", "contextId": "c", "status": {"state": "working" if old else "TASK_STATE_WORKING"}}
    asked = agent(server, timeout=0.5)
    server.acts += [(200, server.card()), *20 * [(200, {"result": task})]]
    with pytest.raises(AgentError, match=r"no complete answer within 0\.5 s"):
        talk(asked, 1)
