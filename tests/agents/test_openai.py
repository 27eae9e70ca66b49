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
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.openai import OPENAI, OpenAIAgent, OpenAICore
from longspan.simulator.tokens import Tokenizer

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def vendors_own(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stands where the vendor's own would be."""
    monkeypatch.setattr(OpenAICore, "vendor", replace(OPENAI, url=server.base_url("openai")))


def core(model: str = "gpt-4o", **options: Any) -> OpenAICore:
    return OpenAICore(model, OpenAICore.Options(**options))


def complete(model: OpenAICore, **options: Any) -> str:
    async def ask() -> str:
        return (await model.complete([ChatMessage("user", "Where is the parcel?")], **options)).text

    return trio.run(ask)


def test_the_longest_answer_has_the_name_that_the_server_knows(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(core(base_url=server.base_url("openai")), most=7)
    monkeypatch.setattr(OpenAICore, "vendor", replace(OPENAI, url=server.base_url("openai")))
    complete(core(), most=8)
    limits = [{name: value for name, value in asked.body.items() if "tokens" in name} for asked in server.asked]
    assert limits == [{"max_tokens": 7}, {"max_completion_tokens": 8}]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [("gpt-4o", "o200k_base"), ("gpt-4o-mini-2024-07-18", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5-turbo", "cl100k_base")],
)
def test_tokens_are_counted_as_the_model_does(server: Server, model: str, encoding: Any) -> None:
    text = "Wo liegt das Päckchen? 我的猫叫阿达。 " * 7
    assert core(model, base_url=server.base_url("openai")).count(text) == Tokenizer(encoding).count(text)


def test_those_of_unknown_models_are_taken_to_be_more(server: Server) -> None:
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
def test_what_a_model_takes_is_known_for_the_vendors_own() -> None:
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
def test_it_is_named_after_whose_server_it_is(base_url: str | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    found = core(base_url=base_url)
    assert found.name == name
    assert found.window == (128_000 if name == "openai/gpt-4o" else None)


@pytest.mark.usefixtures("vendors_own")
def test_the_environment_does_not_lead_it_elsewhere(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert complete(core()) == "re: Where is the parcel?"


@pytest.mark.parametrize("closed", [True, False])
def test_a_schema_is_strict_where_it_can_be(server: Server, closed: bool) -> None:
    schema = {"type": "object", "properties": {}} | ({"additionalProperties": False} if closed else {})
    complete(core(base_url=server.base_url("openai")), schema=schema)
    assert server.asked[0].body["response_format"]["json_schema"]["strict"] is closed


class Refusal(BaseModel):
    """The model's own words for that it will not."""

    choices: list[dict[str, Any]] = [{"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I must not."}}]


def test_a_refusal_in_words_is_told(server: Server) -> None:
    server.script([Raw(Refusal().model_dump_json().encode())])
    with pytest.raises(AgentError, match=r"refuses to answer: I must not\."):
        complete(core(base_url=server.base_url("openai")))


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "some_error"])
def test_an_error_in_the_middle_of_a_stream_is_tried_again(server: Server, code: str) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "Half"}, "finish_reason": None}]}
    error = {"error": {"message": "not now", "code": code}}
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in (piece, error)).encode()
    server.script([Raw(body, headers={"content-type": "text/event-stream"})])
    assert complete(core(base_url=server.base_url("openai"), stream=True)) == "re: Where is the parcel?"


def test_a_server_that_answers_a_stream_with_one_piece_is_an_error(server: Server) -> None:
    server.always = Raw(json.dumps({"choices": []}).encode())
    with pytest.raises(AgentError, match="broke off its answer before the end"):
        complete(core(base_url=server.base_url("openai"), stream=True))


def test_null_where_text_was_due_is_an_error(server: Server) -> None:
    server.always = Say(None)
    with pytest.raises(AgentError, match="NoneType where text was due"):
        complete(core(base_url=server.base_url("openai")))
