"""All vendors' libraries under Trio, against a server that speaks their APIs."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.loopback import Act, Asked, Cut, Hang, Raw, Say, Server, Status
from trio.testing import MockClock

from longspan.agents.base import AgentError, InputError, Message, Reply, Usage
from longspan.agents.models.chat import ChatAgent
from longspan.agents.models.core import ChatMessage
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

KINDS = ["openai", "anthropic", "google"]

pytestmark = [
    pytest.mark.parametrize("kind", KINDS),
    pytest.mark.usefixtures("impatient"),
    # The libraries drop the rest of an invalid or too long stream without closing it, which Trio warns about.
    pytest.mark.filterwarnings("ignore:Async generator '(google|httpx2|httpcore2|longspan.agents.models.web)"),
]

both = pytest.mark.parametrize("stream", ["false", "true"])


def agent(server: Server, kind: str, **options: Any) -> ChatAgent:
    given = "&".join(f"{name}={value}" for name, value in ({"base_url": server.base_url(kind), "timeout": 20} | options).items())
    made = make_agent(AgentSpec.parse(f"{kind}/some-model?{given}"))
    assert isinstance(made, ChatAgent)
    return made


def message(text: str = "Where is the parcel?", turn: str = "c-0") -> Message:
    return Message(text, datetime(2024, 1, 1, 9, 0), turn)


def ask(chat: ChatAgent, text: str = "Where is the parcel?") -> Any:
    return trio.run(chat.reply, message(text))


@both
def test_it_asks_and_answers(server: Server, kind: str, stream: str) -> None:
    chat = agent(server, kind, stream=stream, system="be brief", max_tokens=77, temperature=0.5, top_p=0.9)

    async def talk() -> None:
        first = await chat.reply(message())
        assert first.text == "re: Where is the parcel?"
        await chat.observe(message("It rains.", "c-1"), "So it does.")
        await chat.reply(message("And now?", "c-2"))

    trio.run(talk)
    assistant = "model" if kind == "google" else "assistant"
    stamp = "[Mon 2024-01-01 09:00:00]"
    assert server.asked[1].texts == [
        ("system", "be brief"),
        ("user", f"{stamp} Where is the parcel?"),
        (assistant, "re: Where is the parcel?"),
        ("user", f"{stamp} It rains."),
        (assistant, "So it does."),
        ("user", f"{stamp} And now?"),
    ]
    body = server.asked[0].body
    settings = body.get("generationConfig", body)
    assert settings["temperature"] == 0.5
    assert settings["topP" if kind == "google" else "top_p"] == 0.9
    assert 77 in settings.values()


@both
def test_usage_is_as_the_provider_reports(server: Server, kind: str, stream: str) -> None:
    chat = agent(server, kind, stream=stream, context="16k")

    async def talk() -> list[Usage | None]:
        return [(await chat.reply(message("word " * 1500, f"c-{n}"))).usage for n in range(3)]

    used = trio.run(talk)
    assert [asked.used and Usage(asked.used.prompt, asked.used.read, asked.used.output) for asked in server.asked] == used
    assert used[2] is not None
    assert used[2].cached_tokens > 1000


@both
def test_without_a_provider_count_usage_is_our_own_count(server: Server, kind: str, stream: str) -> None:
    server.script([Say("Fine.", usage=False)])
    chat = agent(server, kind, stream=stream)
    usage = ask(chat).usage
    assert 10 <= usage.input_tokens <= 40
    assert 1 <= usage.output_tokens <= 5


@both
@pytest.mark.parametrize(
    "act",
    [
        Status(429, headers={"retry-after": "0.01"}),
        Status(429, headers={"retry-after-ms": "10"}),
        Status(429, headers={"retry-after": "soon"}),
        Status(500),
        Status(503),
        Status(529, code="overloaded_error"),
        Status(408),
        Cut(),
        Raw(b""),
        Raw(b"{"),
        Raw(b"null"),
        Raw(b"{}"),
        Raw(b"[]"),
        Raw(b"\xff\xfe"),
        Raw(b"<html>Bad gateway</html>", 502, {"content-type": "text/html"}),
    ],
    ids=repr,
)
def test_it_recovers(server: Server, kind: str, stream: str, act: Act) -> None:
    server.script([act, act])
    assert ask(agent(server, kind, stream=stream)).text == "re: Where is the parcel?"
    assert len(server.asked) == 3


def test_a_request_without_an_answer_is_retried(server: Server, kind: str) -> None:
    server.script([Hang()])
    assert ask(agent(server, kind, timeout=3)).text == "re: Where is the parcel?"


def test_retry_after_is_respected(server: Server, kind: str) -> None:
    server.script([Status(429, headers={"retry-after": "0.3"})])
    ask(agent(server, kind))
    assert server.asked[1].at - server.asked[0].at >= 0.3


@both
@pytest.mark.parametrize(
    ("act", "part", "requests"),
    [
        (Raw(b"{}"), "tried 6 times", 6),
        (Cut(), "tried 6 times", 6),
        (Status(500), r"failed \(500: not now\) \(tried 6 times\)", 6),
        (Status(401, "no such key"), r"rejected the key \(401: no such key\)", 1),
        (Status(404, "no such model"), r"rejected the request \(404: no such model\)", 1),
        (Status(400, "temperature is deprecated"), r"rejected the request \(400: temperature is deprecated\)", 1),
        (Status(429, "pay first", "insufficient_quota"), "rejected the request .429: pay first", 1),
        (Raw(b"", 307, {"location": "http://127.0.0.1:1/"}), "status 307 instead of 200", 1),
        (Raw(b"x", headers={"content-encoding": "gzip"}), "though identity was requested", 1),
        (Raw(b"x" * (32 * 2**20 + 1)), "answered with more than 33,554,432 bytes", 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_permanent_failure_is_a_one_line_error(server: Server, kind: str, stream: str, act: Act, part: str, requests: int) -> None:
    server.always = act
    with pytest.raises(AgentError, match=part) as caught:
        ask(agent(server, kind, stream=stream))
    assert "\n" not in str(caught.value)
    assert "/some-model: " in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(server.asked) == requests


def test_a_stream_without_an_end_marker_is_incomplete(server: Server, kind: str) -> None:
    server.script([Say("Half an", ends=None)])
    assert ask(agent(server, kind, stream="true")).text == "re: Where is the parcel?"


def test_a_turn_has_a_deadline(server: Server, kind: str) -> None:
    server.always = Status(429)
    with pytest.raises(AgentError, match=r"no answer within 1 s; the last attempt: is overloaded \(429: not now\)"):
        ask(agent(server, kind, timeout=1))
    server.always = Hang()
    with pytest.raises(AgentError, match=r"no answer within 0\.3 s"):
        ask(agent(server, kind, timeout=0.3))


@both
def test_an_empty_answer_is_an_answer(server: Server, kind: str, stream: str) -> None:
    server.script([Say("")])
    chat = agent(server, kind, stream=stream)

    async def talk() -> None:
        assert (await chat.reply(message())).text == ""
        assert (await chat.reply(message("Well?", "c-1"))).text

    trio.run(talk)
    texts = [text for role, text in server.asked[1].texts if role not in ("user", "system")]
    assert texts == ([""] if kind == "openai" else [])  # the others refuse prompts with empty messages


@both
def test_an_answer_that_reached_max_tokens_is_marked(server: Server, kind: str, stream: str) -> None:
    server.script([Say("So far", ends={"openai": "length", "anthropic": "max_tokens", "google": "MAX_TOKENS"}[kind]), Say("All.")])
    chat = agent(server, kind, stream=stream, max_tokens=50)

    async def talk() -> list[Any]:
        return [
            ((await chat.reply(message(text, f"c-{number}"))).trace or {}).get("cut") for number, text in enumerate(("Hello.", "Well?"))
        ]

    first, second = trio.run(talk)
    assert first["by"] == "max_tokens"
    assert first["tokens"] > 0
    assert second is None


@both
def test_an_answer_of_thinking_alone_is_an_error_with_a_remedy(server: Server, kind: str, stream: str) -> None:
    server.script([Say("", ends={"openai": "length", "anthropic": "max_tokens", "google": "MAX_TOKENS"}[kind])])
    with pytest.raises(AgentError, match="used all 50 tokens of its answer for thinking: set a larger max_tokens="):
        ask(agent(server, kind, stream=stream, max_tokens=50))


REFUSES = {"openai": "content_filter", "anthropic": "refusal", "google": "SAFETY"}
WHY = {"openai": "content filter", "anthropic": "the model refused", "google": "SAFETY"}


@both
@pytest.mark.parametrize("said", ["", "I had better"])
def test_a_refusal_is_the_reply_and_the_conversation_goes_on(server: Server, kind: str, stream: str, said: str) -> None:
    server.script([Say(said, ends=REFUSES[kind])])
    chat = agent(server, kind, stream=stream)

    async def talk() -> None:
        refused = await chat.reply(message())
        assert refused.refused
        assert refused.text == (said or f"(no reply: {WHY[kind]})")
        assert (refused.trace or {})["refusal"] == WHY[kind]
        assert refused.usage == Usage(server.asked[0].used.prompt, 0, server.asked[0].used.output) if server.asked[0].used else False
        assert await chat.reply(message()) == Reply(refused.text, refused=True), "the same turn again is the same request"
        assert not (await chat.reply(message("And now?", "c-1"))).refused

    trio.run(talk)
    assert len(server.asked) == 2
    assert server.asked[1].texts[1][1] == (said or f"(no reply: {WHY[kind]})")


def test_a_refusal_is_an_error_if_asked_for(server: Server, kind: str) -> None:
    server.script([Say("", ends=REFUSES[kind])])
    with pytest.raises(AgentError, match=f"refused to answer: {WHY[kind]}"):
        ask(agent(server, kind, on_refusal="error"))
    assert len(server.asked) == 1


def test_a_judge_that_refuses_gives_no_answer(server: Server, kind: str) -> None:
    server.script([Say('{"is_so": true}', ends=REFUSES[kind])])
    with pytest.raises(AgentError, match="refused to answer"):
        trio.run(lambda: agent(server, kind).complete("Is it so?", schema={"type": "object"}))


@both
@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (400, "content_filter", "The response was filtered"),
        (400, "invalid_request_error", "Output blocked by content filtering policy"),
        (400, "invalid_prompt", "Invalid prompt: your prompt was flagged as potentially violating our usage policy"),
        (403, "403", "some/model requires moderation. Your input was flagged"),
    ],
)
def test_an_error_of_a_content_filter_is_a_refusal(server: Server, kind: str, stream: str, status: int, code: str, text: str) -> None:
    server.script([Status(status, text, code)])
    reply = ask(agent(server, kind, stream=stream))
    assert (reply.text, reply.refused) == ("(no reply: content filter)", True)
    assert reply.usage.input_tokens > 0, "it may have been charged"
    assert len(server.asked) == 1


TOOL_CALLS: dict[str, Any] = {
    "openai": {
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": {"content": None, "tool_calls": [{"function": {"name": "look"}}]}}
        ]
    },
    "anthropic": {"type": "message", "content": [{"type": "tool_use", "name": "look", "input": {}}], "stop_reason": "tool_use"},
    "google": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "look"}}]}, "finishReason": "STOP"}]},
}


def test_a_tool_call_without_text_is_a_refusal(server: Server, kind: str) -> None:
    server.script([Raw(json.dumps(TOOL_CALLS[kind]).encode())])
    reply = ask(agent(server, kind))
    assert (reply.text, reply.refused) == ("(no reply: a tool call)", True)


@both
def test_a_prompt_too_long_for_the_model_is_shortened(server: Server, kind: str, stream: str) -> None:
    server.window = 700
    chat = agent(server, kind, stream=stream, context="2k")

    async def talk() -> None:
        for number in range(12):
            await chat.reply(message("word " * 100, f"c-{number}"))

    trio.run(talk)
    assert max(asked.used.prompt for asked in server.asked if asked.used) <= 700
    with pytest.raises(AgentError, match="set a smaller context="):
        ask(agent(server, kind, stream=stream), "word " * 900)


@both
def test_json_is_requested_in_each_vendors_format(server: Server, kind: str, stream: str) -> None:
    schema = {"type": "object", "properties": {"is_so": {"type": "boolean"}}, "required": ["is_so"], "additionalProperties": False}
    server.script([Say('{"is_so": true}')])
    chat = agent(server, kind, stream=stream)

    async def judge() -> Any:
        return await chat.complete("Is it so?", schema=schema)

    assert json.loads(trio.run(judge).text) == {"is_so": True}
    body = server.asked[0].body
    asked_for = {
        "openai": lambda: body["response_format"]["json_schema"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "google": lambda: body["generationConfig"]["responseJsonSchema"],
    }[kind]()
    assert asked_for == schema
    assert server.asked[0].texts == [("user", "Is it so?")]


@both
def test_a_cancelled_request_leaves_a_client_that_works(server: Server, kind: str, stream: str) -> None:
    chat = agent(server, kind, stream=stream)
    server.script([Hang()])

    async def talk() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chat.reply, message())
            while not server.asked:
                await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
        return (await chat.reply(message())).text

    assert trio.run(talk) == "re: Where is the parcel?"


def test_all_agents_of_a_provider_share_its_limits(server: Server, kind: str) -> None:
    server.latency = 0.03

    async def talk() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(agent(server, kind, at_once=2).reply, message())
            nursery.start_soon(lambda: agent(server, kind).complete("Is it so?", schema={"type": "object"}))

    trio.run(talk)
    assert len(server.asked) == 5
    assert server.most_at_once == 2


def test_overload_slows_all_agents_of_a_provider(server: Server, kind: str) -> None:
    server.script([Status(429, headers={"retry-after": "0.2"})] * 4)

    async def talk() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(agent(server, kind).reply, message())
            await trio.sleep(0.1)
            nursery.start_soon(agent(server, kind).reply, message())

    trio.run(talk)
    times = [asked.at - server.asked[0].at for asked in server.asked]
    assert len(times) == 9
    assert not [at for at in times if 0.1 < at < 0.2]


def test_invalid_unicode_is_replaced(server: Server, kind: str) -> None:
    server.script([Say("half of \ud83d"), Say()])
    chat = agent(server, kind)

    async def talk() -> None:
        assert (await chat.reply(message("\udc00 half", "c-0"))).text == "half of ?"
        await chat.reply(message("more", "c-1"))

    trio.run(talk)
    assert next(text for _, text in server.asked[1].texts).endswith("? half")


# Keys.


@pytest.fixture
def keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


VARIABLES = {"openai": ["OPENAI_API_KEY"], "anthropic": ["ANTHROPIC_API_KEY"], "google": ["GEMINI_API_KEY", "GOOGLE_API_KEY"]}


@pytest.mark.usefixtures("keyless")
def test_the_error_for_a_missing_key_names_the_variable(kind: str) -> None:
    with pytest.raises(InputError, match=f"needs a key: set the environment variable {' or '.join(VARIABLES[kind])}$"):
        make_agent(AgentSpec.parse(f"{kind}/some-model"))
    with pytest.raises(InputError, match=r"^agent|example\.org/some-model needs a key"):
        make_agent(AgentSpec.parse(f"{kind}/some-model?base_url=https://example.org/v1"))


@pytest.mark.usefixtures("keyless")
def test_no_key_is_needed_on_this_machine(server: Server, kind: str) -> None:
    assert ask(agent(server, kind)).text


@pytest.mark.usefixtures("keyless")
def test_a_key_comes_from_its_variable(server: Server, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES[kind]:
        monkeypatch.setenv(variable, "sk-from-the-environment\n")
        ask(agent(server, kind))
        monkeypatch.delenv(variable)
    assert all(any(value.endswith("sk-from-the-environment") for value in asked.headers.values()) for asked in server.asked)
    monkeypatch.setenv(VARIABLES[kind][0], "sk-with-an-ö")
    with pytest.raises(InputError, match="unprintable characters") as caught:
        agent(server, kind)
    assert "sk-with" not in str(caught.value)


def test_the_key_is_in_no_error_and_no_answer(server: Server, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789-secret"
    monkeypatch.setenv(VARIABLES[kind][0], key)
    chat = agent(server, kind)
    server.script([Say(f"Your key is {key}."), Status(401, f"wrong key: {key}"), Status(404, "x" * 290 + key)])
    nonsense = {"type": "message", "content": [{"type": "text", "text": [key]}], "choices": key, "candidates": [key]}
    server.always = Raw(json.dumps(nonsense).encode())

    async def talk() -> list[str]:
        texts = [(await chat.reply(message())).text]
        for turn in ("c-1", "c-2", "c-3"):
            with pytest.raises(AgentError) as caught:
                await chat.reply(message(turn=turn))
            texts.append(str(caught.value))
        return texts

    texts = trio.run(talk)
    assert texts[0] == f"Your key is [{VARIABLES[kind][0]}]."
    assert key[:8] not in "".join(texts)  # nor its start, where a message is cut
    assert key not in repr(vars(chat)) + repr(vars(chat.core))


def test_the_error_for_a_missing_library_has_a_remedy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = {"google": "google.genai"}.get(kind, kind)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=re.escape(install_extra(kind))):
        make_agent(AgentSpec.parse(f"{kind}/some-model?base_url=http://127.0.0.1:1"))


# Options.


@pytest.mark.parametrize("model", ["", "two words", "a/../b", "a%3Fb", "a#b", "a\nb"])
def test_an_invalid_model_name_is_rejected(kind: str, model: str) -> None:
    with pytest.raises(InputError, match=f"a model is named {kind}/MODEL"):
        make_agent(AgentSpec.parse(f"{kind}/{model}?base_url=http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("base_url=localhost:8000", "http.s.://host:port/path"),
        ("base_url=ftp://host/", "http.s.://host:port/path"),
        ("base_url=http://", "http.s.://host:port/path"),
        ("base_url=http://host:port/", "not a valid address"),
        ("base_url=http://[::1/", "not a valid address"),
        ("base_url=http://host/v1?key=sk-secret", "a query in the address would be written to files"),
        ("base_url=http://me:sk-secret@host/", "set the key in the environment"),
        ("timeout=0", "timeout"),
        ("timeout=nan", "timeout"),
        ("at_once=0", "at_once"),
        ("rpm=0", "rpm"),
        ("tpm=few", "tpm"),
        ("temperature=hot", "temperature"),
        ("temperature=3", "temperature"),
        ("top_p=0", "top_p"),
        ("top_p=1.1", "top_p"),
        ("max_tokens=0", "max_tokens"),
        ("stream=perhaps", "stream"),
        ("eviction=random", "eviction"),
        ("overflow=ignore", "overflow"),
        ("contxt=16k", r"unknown option 'contxt'; did you mean context\?"),
    ],
)
def test_an_invalid_option_is_rejected(kind: str, option: str, part: str) -> None:
    separator = "&" if "base_url" not in option else "&timeout=1&"
    address = "" if "base_url" in option else "base_url=http://127.0.0.1:1"
    with pytest.raises(InputError, match=part) as caught:
        make_agent(AgentSpec.parse(f"{kind}/some-model?{address}{separator if address else ''}{option}"))
    assert "sk-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_seed_and_penalty_are_sent_to_openai_compatible_servers(server: Server, kind: str) -> None:
    if kind != "openai":
        with pytest.raises(InputError, match="unknown option 'seed'"):
            agent(server, kind, seed=2023)
        return
    ask(agent(server, kind, seed=2023, repetition_penalty=1.1))
    sent = {name: server.asked[-1].body[name] for name in ("seed", "repetition_penalty", "repeat_penalty")}
    assert sent == {"seed": 2023, "repetition_penalty": 1.1, "repeat_penalty": 1.1}
    with pytest.raises(InputError, match="OpenAI's own models do not support repetition_penalty"):
        make_agent(AgentSpec.parse("openai/gpt-4o?repetition_penalty=1.1"))


def test_an_unreachable_server_is_reported_soon(kind: str) -> None:
    chat = make_agent(AgentSpec.parse(f"{kind}/some-model?base_url=http://127.0.0.1:1"))
    with pytest.raises(AgentError, match=r"cannot be reached: .* \(tried 3 times\)"):
        trio.run(chat.reply, message())


# Arbitrary answers.


def wholes(kind: str) -> list[Any]:
    """Return valid answers, to be damaged."""
    from tests.loopback.apis import APIS, Used

    api = next(api for api in APIS if api.kind == kind)
    return [api.answer("Fine.", api.ends, Used(10, 0, 0, 2)), api.error(500, "some_error", "no")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def damaged(value: Any, draw: Any) -> Any:
    """Return a JSON value with a part replaced by anything."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(value)))
        return value | {name: damaged(value[name], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        return [damaged(value[0], draw), *value[1:]]
    return draw(JSON)


@both
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_server_response_is_an_answer_or_an_agent_error(server: Server, kind: str, stream: str, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["bytes", "json", "damaged", "events"]))
    if form == "bytes":
        body = data.draw(st.binary(max_size=200))
    elif form == "json":
        body = json.dumps(data.draw(JSON)).encode()
    else:
        values = [damaged(whole, data.draw) for whole in wholes(kind)[: 1 if form == "damaged" else 2]]
        lines = [json.dumps(value) for value in values]
        body = lines[0].encode() if form == "damaged" else "".join(f"event: x\ndata: {line}\n\n" for line in lines).encode()
    status = data.draw(st.sampled_from([200, 200, 200, 200, 400, 401, 413, 418, 429, 500, 503, 999]))
    server.always = Raw(body, status, {"content-type": "text/event-stream" if form == "events" else "application/json"})
    chat = agent(server, kind, stream=stream, timeout=1 if status in (429, 503) else 20)

    async def talk() -> str:
        try:
            reply = await chat.reply(message())
        except AgentError as error:
            return str(error)
        assert reply.usage is not None
        assert 0 <= reply.usage.cached_tokens <= reply.usage.input_tokens <= 10**9
        reply.text.encode()
        return ""

    text = trio.run(talk, clock=MockClock(rate=20) if status in (429, 503) else None)  # these are tried again until the timeout
    assert "\n" not in text
    text.encode()


def test_the_server_logs_prompts_as_sent(server: Server, kind: str) -> None:
    """The core alone, as used by judges and memory agents."""
    chat = agent(server, kind)
    prompt = [ChatMessage("system", "s"), ChatMessage("user", "u"), ChatMessage("assistant", "a"), ChatMessage("user", "v")]

    async def complete() -> None:
        await chat.core.complete(prompt, max_tokens=5)

    trio.run(complete)
    asked: Asked = server.asked[0]
    assert [text for _, text in asked.texts] == ["s", "u", "a", "v"]
    assert 5 in asked.body.get("generationConfig", asked.body).values()
