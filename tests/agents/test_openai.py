from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import trio
from pydantic import BaseModel
from tests.loopback import Raw, Say, Server

from longspan.agents.base import AgentError, Message
from longspan.agents.models.core import ChatMessage, RefusalError
from longspan.agents.models.openai import OPENAI, OpenAIAgent, OpenAICore
from longspan.simulator.base.tokens import Tokenizer

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def vendors_own(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake server takes the place of the vendor's own."""
    monkeypatch.setattr(OpenAICore, "vendor", replace(OPENAI, url=server.base_url("openai")))


def core(model: str = "gpt-4o", **options: Any) -> OpenAICore:
    return OpenAICore(model, OpenAICore.Options(**options))


def complete(model: OpenAICore, **options: Any) -> str:
    async def ask() -> str:
        return (await model.complete([ChatMessage("user", "Where is the parcel?")], **options)).text

    return trio.run(ask)


def test_the_answer_limit_has_the_name_that_the_server_knows(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(core(base_url=server.base_url("openai")), max_tokens=7)
    monkeypatch.setattr(OpenAICore, "vendor", replace(OPENAI, url=server.base_url("openai")))
    complete(core(), max_tokens=8)
    limits = [{name: value for name, value in asked.body.items() if "tokens" in name} for asked in server.asked]
    assert limits == [{"max_tokens": 7}, {"max_completion_tokens": 8}]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [("gpt-4o", "o200k_base"), ("gpt-4o-mini-2024-07-18", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5-turbo", "cl100k_base")],
)
def test_tokens_are_counted_as_the_model_does(server: Server, model: str, encoding: Any) -> None:
    text = "Wo liegt das Päckchen? 我的猫叫阿达。 " * 7
    assert core(model, base_url=server.base_url("openai")).count(text) == Tokenizer(encoding).count(text)


def test_tokens_of_unknown_models_are_overestimated(server: Server) -> None:
    text = "My cat is called Ada. " * 10
    assert core("llama-3", base_url=server.base_url("openai")).count(text) >= 1.2 * Tokenizer("o200k_base").count(text)


def test_the_window_is_filled_as_the_provider_counts(server: Server) -> None:
    agent = OpenAIAgent("gpt-4o", OpenAIAgent.Options(base_url=server.base_url("openai"), context=2000))

    async def talk() -> None:
        for number in range(60):
            await agent.reply(Message(f"Box {number} holds {'apples and pears ' * 10}.", datetime(2024, 1, 1, 9, 0), f"c-{number}"))

    trio.run(talk)
    prompts = [asked.used.prompt for asked in server.asked if asked.used]
    assert 1930 <= max(prompts) <= 2000


@pytest.mark.usefixtures("vendors_own")
def test_the_window_of_the_vendors_own_models_is_known() -> None:
    assert core("gpt-4o").window == 128_000
    assert OpenAIAgent("gpt-4o", OpenAIAgent.Options()).context == 128_000 - 4096
    assert core("no-such-model").window is None
    assert OpenAIAgent("no-such-model").context == 16_000


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000/gpt-4o"),
        ("https://openrouter.ai/api/v1", "openrouter/gpt-4o"),
        ("https://api.openai.com/v1/", "openai/gpt-4o"),
        (None, "openai/gpt-4o"),
    ],
)
def test_it_is_named_after_the_servers_provider(base_url: str | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    found = core(base_url=base_url)
    assert found.name == name
    assert found.window == (128_000 if name == "openai/gpt-4o" else None)


@pytest.mark.usefixtures("vendors_own")
def test_an_address_that_is_given_is_not_the_environments(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert complete(core(base_url=server.base_url("openai"))) == "re: Where is the parcel?"


@pytest.mark.parametrize("closed", [True, False])
def test_a_schema_is_strict_if_possible(server: Server, closed: bool) -> None:
    schema = {"type": "object", "properties": {}} | ({"additionalProperties": False} if closed else {})
    complete(core(base_url=server.base_url("openai")), schema=schema)
    assert server.asked[0].body["response_format"]["json_schema"]["strict"] is closed


class Refusal(BaseModel):
    """The model's own words of refusal."""

    choices: list[dict[str, Any]] = [{"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I must not."}}]


def test_a_refusal_in_the_models_words_is_quoted(server: Server) -> None:
    server.script([Raw(Refusal().model_dump_json().encode())])
    with pytest.raises(RefusalError, match=r"refused to answer: I must not\."):
        complete(core(base_url=server.base_url("openai")))
    pieces = [{"refusal": "I must"}, {"refusal": " not."}, {}]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]} for delta in pieces]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    server.script([Raw(body, headers={"content-type": "text/event-stream"})])
    with pytest.raises(RefusalError) as caught:
        complete(core(base_url=server.base_url("openai"), stream=True))
    assert caught.value.text == "I must not."


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "some_error"])
def test_an_error_in_the_middle_of_a_stream_is_retried(server: Server, code: str) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "Half"}, "finish_reason": None}]}
    error = {"error": {"message": "not now", "code": code}}
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in (piece, error)).encode()
    server.script([Raw(body, headers={"content-type": "text/event-stream"})])
    assert complete(core(base_url=server.base_url("openai"), stream=True)) == "re: Where is the parcel?"


def test_a_server_that_answers_a_stream_without_a_message_is_an_error(server: Server) -> None:
    server.always = Raw(json.dumps({"choices": []}).encode())
    with pytest.raises(AgentError, match="gave an unreadable answer"):
        complete(core(base_url=server.base_url("openai"), stream=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "Blue"}, {"type": "text", "text": "."}, {"type": "image_url", "image_url": {"url": "a"}}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Blue."}],
        [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}, {"type": "output_text", "text": {"value": "Blue."}}],
        ["Blue", "."],
        [{"text": "Blue."}],
    ],
)
def test_content_may_be_a_list_of_parts(server: Server, content: Any, stream: bool) -> None:
    server.script([Say("", shape=lambda _: content)])
    assert complete(core(base_url=server.base_url("openai"), stream=stream)) == "Blue."


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_read_in_the_form_that_the_server_chose(server: Server, stream: bool) -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Blue."}, "delta": {"content": ""}, "finish_reason": "stop"}]}
    pieces = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": "stop"}]} for piece in ("Bl", "ue.")]
    body = json.dumps(whole) if stream else "".join(f": wait\n\ndata: {json.dumps(piece)}\n\n" for piece in pieces)
    server.script([Raw(body.encode())])
    assert complete(core(base_url=server.base_url("openai"), stream=stream)) == "Blue."


def test_thoughts_without_an_answer_are_an_empty_answer(server: Server) -> None:
    answer = {"choices": [{"index": 0, "message": {"content": None, "reasoning": "Hm."}, "finish_reason": "stop"}]}
    server.script([Raw(json.dumps(answer).encode())])
    assert complete(core(base_url=server.base_url("openai"))) == ""


def test_null_instead_of_text_is_an_error(server: Server) -> None:
    server.always = Say(None)
    with pytest.raises(AgentError, match="expected text, got NoneType"):
        complete(core(base_url=server.base_url("openai")))
