"""The protocol with agents in another process, over HTTP and over pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from longspan.agents.base import AgentError, Message, Reply, Usage
from longspan.agents.outside.exec import ExecAgent
from longspan.agents.outside.http import HttpAgent
from longspan.agents.outside.protocol import (
    MAX_TRACE,
    EmptyAnswer,
    HelloAnswer,
    ReplyAnswer,
    SaveAnswer,
    encode_request,
    make_printable,
    read_answer,
)
from longspan.agents.outside.remote import RemoteAgent
from longspan.simulator.contract.agent import can_observe, can_repeat_turn, has_snapshots
from longspan.simulator.subject.snapshots import Snapshots

PEER = [sys.executable, "-S", str(Path(__file__).parent / "peer.py")]
ALL = "observe,reset,save,load,close"

Make = Callable[..., RemoteAgent]


def message(text: str, turn: str = "t-1", hour: int = 9) -> Message:
    return Message(text, datetime(2024, 5, 1, hour, 0), turn)


def heard(reply: Reply) -> list[str]:
    return [request["text"] for request in json.loads(reply.text)["heard"]]


# Parsing answers.


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (b"", "not JSON: nothing"),
        (b"Loading the model ...", "not JSON: Loading the model ..."),
        (b'{"text": "half', "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8"),
        ('{"text": "x"}'.encode("utf-16"), "not UTF-8"),
        (b'["text"]', "a list, expected a JSON object"),
        (b"7", "a number, expected"),
        (b'"text"', "a text, expected"),
        (b"null", "null, expected"),
        (b"{}", "text: is missing"),
        (b'{"text": 7}', "text: must be text"),
        (b'{"text": null}', "text: must be text"),
        (b'{"text": "x", "uasge": {}}', "uasge: unknown key"),
        (b'{"text": "x", "usage": {"input_tokens": -1}}', "usage.input_tokens"),
        (b'{"text": "x", "usage": {"input_tokens": 1.5}}', "usage.input_tokens"),
        (b'{"text": "x", "usage": {"input_tokens": true}}', "usage.input_tokens"),
        (b'{"text": "x", "usage": {"input_tokens": 1' + b"0" * 30 + b"}}", "usage.input_tokens"),
        (b'{"text": "x", "usage": {"cached_tokens": 1}}', "must not exceed input_tokens"),
        (b'{"text": "x", "usage": {"prompt_tokens": "5"}}', "usage.prompt_tokens: must be a whole number"),
        (
            b'{"text": "x", "usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": -1}}}',
            "prompt_tokens_details.cached_tokens",
        ),
        (b'{"text": "x", "usage": {"input_tokens": 5, "cache_read_input_tokens": 1e3}}', "usage.cache_read_input_tokens"),
        (b'{"text": "x", "usage": {"input_tokens": 5, "model": 7}}', "usage.model"),
        (b'{"text": "x", "usage": [5]}', "usage"),
        (b'{"text": "x", "cost_usd": -0.01}', "cost_usd: must be at least 0"),
        (b'{"text": "x", "cost_usd": 1e7}', "cost_usd: must be at most"),
        (b'{"text": "x", "cost_usd": true}', "cost_usd"),
        (b'{"text": "x", "cost_usd": "0.01"}', "cost_usd"),
        (b'{"text": "x", "cost_usd": NaN}', "not JSON"),
        (b'{"text": "x", "cost_usd": {"embedder": -1}}', "cost_usd.embedder: must be at least 0"),
        (b'{"text": "x", "cost_usd": {"embedder": null}}', "cost_usd.embedder: must be"),
        (b'{"text": "x", "cost_usd": [1]}', "cost_usd: must be"),
        (b'{"text": "x", "besides": {"embedder": {}}}', "besides.embedder: no count of tokens is known"),
        (b'{"text": "x", "besides": {"agent": {"input_tokens": 1}}}', "besides: agent is the agent's own model; give its tokens as usage"),
        (b'{"text": "x", "measured": {"search_s": -1}}', "measured.search_s: must be at least 0"),
        (b'{"text": "x", "measured": {"search_s": "fast"}}', "measured.search_s: must be"),
        (b'{"text": "x", "trace": []}', "trace"),
        (b'{"text": "x", "refused": "no"}', "refused"),
        (b'{"text": "x", "trace": {"written": [{"text": "no id"}]}}', "trace: written.0.id"),
        (b'{"text": "x", "trace": {"read": {"id": "m"}}}', "trace: read"),
        (b'{"text": "x", "trace": {"calls": [{"usage": {"tokens": 1}}]}}', "calls.0.usage: unknown key 'tokens'"),
        (b'{"text": "x", "trace": {"a": "' + b"x" * MAX_TRACE + b'"}}', "the trace has more than 1,048,576 bytes"),
        (b'{"text": NaN}', "not JSON"),
        (b'{"text": "x", "trace": {"a": NaN}}', "not JSON"),
        (b'{"text": "x", "trace": {"a": -Infinity}}', "not JSON"),
        (b'{"text": "x", "trace": {"a": 1e999}}', "not JSON"),
        (b'{"text": "x", "trace": {"a": 1' + b"0" * 5000 + b"}}", "not JSON"),
        (b'{"text": "x", "trace": {"a":' + b"[" * 101 + b"]" * 101 + b"}}", "more than 100 deep"),
        (b"[" * 10**6, "not JSON"),
        (b"[" + b"{}," * 10**6 + b"{}]", "more than 1,000,000 objects and lists"),
        (b'{"error": "no key\\nat all \\u001b[31m"}', "failed: no key at all �[31m"),
        (b'{"error": {"code": 7}}', 'failed: {"code": 7}'),
        (b'{"error": ""}', "failed: no reason given"),
        (b'{"error": "' + b"x" * 10**6 + b'"}', "failed: xxx"),
    ],
)
def test_an_invalid_answer_is_a_one_line_error(answer: bytes, part: str) -> None:
    with pytest.raises(AgentError) as caught:
        read_answer(answer, ReplyAnswer)
    said = str(caught.value)
    assert part in said
    assert said.isprintable()
    assert len(said) < 500


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (b"{}", "protocol: is missing"),
        (b'{"protocol": 2}', "protocol: must be 1"),
        (b'{"protocol": 1, "can": ["fly"]}', "can.0"),
        (b'{"protocol": 1, "can": "observe"}', "can"),
        (b'{"protocol": 1, "repeatable": "yes"}', "repeatable"),
    ],
)
def test_an_invalid_hello_is_explained(answer: bytes, part: str) -> None:
    with pytest.raises(AgentError, match=part):
        read_answer(answer, HelloAnswer)


def test_a_complete_answer_is_parsed() -> None:
    trace = {"written": [{"id": "m1", "text": "a", "of": 3}], "read": [{"turns": ["t"]}], "recent": {"since": "t"}, "prompt_tokens": 7}
    trace["calls"] = [{"for": "notes", "usage": {"input_tokens": 3}}]
    answer = {"text": "Ada", "usage": {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 1}, "trace": trace, "refused": True}
    assert read_answer(json.dumps(answer).encode(), ReplyAnswer).reply() == Reply("Ada", Usage(9, 4, 1), trace, refused=True)
    answer |= {"besides": {"embedder": {"prompt_tokens": 5}}, "cost_usd": {"agent": 0.02, "embedder": 0.001}, "measured": {"search_s": 0.2}}
    reply = read_answer(json.dumps(answer).encode(), ReplyAnswer).reply()
    assert (reply.besides, reply.cost_usd) == ({"embedder": Usage(5, 0, 0)}, {"agent": 0.02, "embedder": 0.001})
    assert reply.measured == {"search_s": 0.2}


def test_lone_surrogates_become_question_marks() -> None:
    reply = read_answer(b'{"text": "a\\ud83d", "trace": {"\\udc00": "\\ud800"}}', ReplyAnswer).reply()
    assert (reply.text, reply.trace) == ("a?", {"?": "?"})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(
    [
        "text",
        "usage",
        "besides",
        "cost_usd",
        "measured",
        "trace",
        "error",
        "protocol",
        "can",
        "repeatable",
        "state",
        "written",
        "read",
        "calls",
        "id",
    ]
)
answers = st.one_of(
    st.binary(max_size=200),
    values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(keys, values | st.dictionaries(keys, values, max_size=3), max_size=5).map(lambda value: json.dumps(value).encode()),
)


@given(answers, st.sampled_from([HelloAnswer, ReplyAnswer, SaveAnswer, EmptyAnswer]))
def test_any_bytes_are_an_answer_or_an_agent_error(answer: bytes, kind: Any) -> None:
    problem = ""
    try:
        found = read_answer(answer, kind)
        if isinstance(found, ReplyAnswer):
            json.dumps(found.reply().trace, ensure_ascii=False, allow_nan=False).encode()
            found.reply().text.encode()
    except AgentError as error:
        problem = str(error)
    assert not problem or problem.isprintable()


@given(st.text(st.characters()))
def test_any_text_is_sent_as_one_line(text: str) -> None:
    sent = encode_request("reply", "c", {"text": text})
    assert sent.isascii()
    assert sent.count(b"\n") == 1
    assert sent.endswith(b"\n")
    got = json.loads(sent)["text"]
    assert got.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


@given(st.text() | st.binary(), st.integers(10, 50))
def test_quotes_of_foreign_text_are_short_and_harmless(text: str | bytes, limit: int) -> None:
    shown = make_printable(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()


# The same agent over HTTP and pipes.


@pytest.fixture(params=["exec", "http"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Return a function that creates agents of a peer with given abilities. Over HTTP, those with equal abilities share a server."""
    servers: dict[str, str] = {}

    def make(can: str = "", repeatable: str = "", timeout: float = 20) -> RemoteAgent:
        if request.param == "exec":
            words = [*PEER, "exec", can or "''", *([repeatable] if repeatable else [])]
            return ExecAgent(" ".join(words), ExecAgent.Options(timeout=timeout))
        if can + repeatable not in servers:
            process = stack.enter_context(subprocess.Popen([*PEER, "http", can, repeatable], stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            servers[can + repeatable] = process.stdout.readline().strip()
        return HttpAgent(f"//127.0.0.1:{servers[can + repeatable]}/agent", HttpAgent.Options(timeout=timeout))

    with ExitStack() as stack:
        yield make


def play(agents: list[RemoteAgent], script: Callable[[], Any]) -> Any:
    async def whole() -> Any:
        try:
            return await script()
        finally:
            for agent in agents:
                await agent.close()

    return trio.run(whole)


def test_a_message_carries_text_time_turn_and_an_id_of_the_conversation(make: Make) -> None:
    agent = make(ALL)
    text = "Zeile eins\nZeile zwei, \u2028 \x00 \U0001f600 \"und\" '}'"

    async def script() -> Reply:
        return await agent.reply(message(text))

    reply = play([agent], script)
    (asked,) = json.loads(reply.text)["heard"]
    assert len(asked.pop("conversation")) == 32
    assert asked == {"call": "reply", "turn": "t-1", "sent_at": "2024-05-01T09:00:00", "text": text}
    assert reply.usage == Usage(100, 10, 1)
    assert reply.trace == {"written": [{"id": "m1", "text": text}], "prompt_tokens": 7}


def test_an_agents_abilities_come_from_its_hello(make: Make) -> None:
    able, unable = make(ALL, "repeatable"), make()

    async def script() -> None:
        for agent in (able, unable):
            await agent.start()
            await agent.start()

    play([able, unable], script)
    assert (has_snapshots(able), can_observe(able), can_repeat_turn(able)) == (True, True, True)
    assert (has_snapshots(unable), can_observe(unable), can_repeat_turn(unable)) == (False, False, False)


def test_an_agent_with_all_abilities_observes_resets_saves_and_loads(make: Make, tmp_path: Path) -> None:
    agent, twin = make(ALL), make(ALL)

    async def script() -> None:
        await agent.observe(message("told", "t-1"), "OK.")
        assert heard(await agent.reply(message("asked", "t-2"))) == ["told", "asked"]
        await agent.save(tmp_path)
        assert heard(await agent.reply(message("later", "t-3"))) == ["told", "asked", "later"]
        await agent.reset()
        assert heard(await agent.reply(message("anew", "t-4"))) == ["anew"]
        await agent.load(tmp_path)
        await twin.load(tmp_path)
        for copy in (agent, twin):
            assert heard(await copy.reply(message("again", "t-5"))) == ["told", "asked", "again"]

    play([agent, twin], script)


def test_missing_abilities_are_emulated(make: Make, tmp_path: Path) -> None:
    agent = make()

    async def script() -> None:
        told = await agent.observe(message("told", "t-1"), "OK.")
        reply = await agent.reply(message("asked", "t-2"))
        assert heard(reply) == ["told", "asked"]
        assert all(request["call"] == "reply" for request in json.loads(reply.text)["heard"])
        assert (told and told.besides) == {"dropped": Usage(100, 10, 1)}, "what the dropped reply cost is told with its turn"
        assert reply.besides == {}
        assert (await agent.reply(message("x", "t-3"))).besides == {}
        await agent.reset()
        assert heard(await agent.reply(message("anew", "t-4"))) == ["anew"]
        with pytest.raises(AgentError, match="has no snapshots"):
            await agent.load(tmp_path)

    (tmp_path / "state.json").write_text('{"state": null, "now": null}')
    play([agent], script)


def test_conversations_know_nothing_of_each_other(make: Make) -> None:
    agents = [make(ALL) for _ in range(50 if isinstance(make(ALL), HttpAgent) else 5)]

    async def talk(agent: RemoteAgent, name: str) -> None:
        for turn in range(5):
            assert heard(await agent.reply(message(name, f"t-{turn}"))) == [name] * (turn + 1)

    async def script() -> None:
        async with trio.open_nursery() as nursery:
            for number, agent in enumerate(agents):
                nursery.start_soon(talk, agent, f"I am {number}.")

    play(agents, script)


def test_a_server_learns_that_a_conversation_has_ended_and_starts_a_new_one(make: Make) -> None:
    agent, other = make(ALL), make(ALL)
    if isinstance(agent, ExecAgent):
        return  # its process has ended

    async def script() -> None:
        (asked,) = json.loads((await agent.reply(message("one"))).text)["heard"]
        await agent.close()
        found = json.loads((await other.reply(message("two"))).text)
        assert found["closed"] == [asked["conversation"]]
        assert heard(await agent.reply(message("three"))) == ["three"]

    play([agent, other], script)


@pytest.mark.parametrize("content", ["", "{}", '{"state": 1}', '{"state": 1, "now": 7}', '{"state": 1, "now": "noon"}', "[" * 10**5, "7"])
def test_a_damaged_snapshot_is_an_error(make: Make, tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    agent = make(ALL)

    async def script() -> None:
        with pytest.raises(AgentError, match=r"state\.json: not a snapshot"):
            await agent.load(tmp_path)
        (tmp_path / "state.json").unlink()
        with pytest.raises(AgentError, match="cannot be read: No such file"):
            await agent.load(tmp_path)

    play([agent], script)


def test_texts_of_ten_megabytes_go_both_ways(make: Make) -> None:
    agent = make(ALL)
    text = "Gedächtnis \U0001f9e0 " * 500_000
    assert len(text.encode()) > 8_000_000

    async def script() -> None:
        await agent.observe(message(text, "t-1"), text)
        assert heard(await agent.reply(message("x", "t-2")))[0] == text

    play([agent], script)


def test_a_snapshot_outlives_an_agent_that_cannot_be_reached(make: Make, tmp_path: Path) -> None:
    agent = make(ALL)
    gone = HttpAgent("//127.0.0.1:9/", HttpAgent.Options(timeout=0.1))

    async def script() -> None:
        await agent.observe(message("told"), "OK.")
        await Snapshots(tmp_path / "snapshots").save(agent, 3)
        with pytest.raises(AgentError):
            await Snapshots(tmp_path / "snapshots").restore(gone, 5)
        assert await Snapshots(tmp_path / "snapshots").restore(agent, 5) == 3
        assert heard(await agent.reply(message("x"))) == ["told", "x"]

    play([agent], script)
