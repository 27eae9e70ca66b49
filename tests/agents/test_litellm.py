"""LiteLLM in a thread under Trio, against a server that speaks three vendors' APIs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Act, Cut, Hang, Raw, Say, Server, Status, Use

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.models.chat import ChatAgent
from longspan.agents.models.core import ChatMessage, Completion, Tool
from longspan.agents.models.litellm import LiteLLMCore
from longspan.simulator.base.keys import redact
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.spending_record import SPENDING
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite

KEY = "sk-marker-7f3a9c51-marker"
PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "mistral": "openai"}
"""Providers that LiteLLM asks in three ways: with the vendor's library, in the vendor's format, and in OpenAI's format."""

ENDS = {"openai": ("length", "content_filter"), "anthropic": ("max_tokens", "refusal")}

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.filterwarnings("ignore")]  # LiteLLM's own

both = pytest.mark.parametrize("stream", ["false", "true"])
each = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)


def agent(server: Server, provider: str = "openai", **options: Any) -> ChatAgent:
    given = {"base_url": server.base_url(PROVIDERS[provider]), "timeout": 20} | options
    made = make_agent(AgentSpec.parse(f"litellm/{provider}/some-model?{'&'.join(f'{name}={value}' for name, value in given.items())}"))
    assert isinstance(made, ChatAgent)
    return made


def ask(chat: ChatAgent) -> Any:
    return trio.run(chat.reply, Message("Where is the parcel?", datetime(2024, 1, 1, 9), "c-0"))


@both
@each
def test_it_asks_answers_and_reports_what_was_used(server: Server, provider: str, stream: str) -> None:
    chat = agent(server, provider, stream=stream, system="be brief", max_tokens=77, temperature=0.5, context="16k")

    async def talk() -> list[Usage | None]:
        messages = [Message("word " * 1500, datetime(2024, 1, 1, 9), f"c-{number}") for number in range(3)]
        return [(await chat.reply(message)).usage for message in messages]

    used = trio.run(talk)
    assert [asked.used and Usage(asked.used.prompt, asked.used.read, asked.used.output) for asked in server.asked] == used
    assert used[2] is not None
    assert used[2].cached_tokens > 1000 or provider == "anthropic", "LiteLLM sets no marks for the cache"
    body = server.asked[2].body
    assert (body["max_tokens"], body["temperature"]) == (77, 0.5)
    assert [role for role, _ in server.asked[2].texts] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert any(KEY in value for value in server.asked[0].headers.values()), "LiteLLM has found the key"


@both
@each
@pytest.mark.parametrize(
    "act",
    [Status(429, headers={"retry-after": "0.01"}), Status(500), Status(529, code="overloaded_error"), Status(408), Cut(), Raw(b"{}")],
    ids=repr,
)
def test_it_recovers(server: Server, provider: str, stream: str, act: Act) -> None:
    server.script([act, act])
    assert ask(agent(server, provider, stream=stream)).text == "re: Where is the parcel?"
    assert len(server.asked) == 3, "LiteLLM retries nothing itself"


@both
@each
@pytest.mark.parametrize("status", [429, 529])
def test_retry_after_is_respected(server: Server, provider: str, stream: str, status: int) -> None:
    server.script([Status(status, headers={"retry-after": "0.3"})])
    ask(agent(server, provider, stream=stream))
    assert server.asked[1].at - server.asked[0].at >= 0.3


@both
@each
@pytest.mark.parametrize(
    ("act", "part", "requests"),
    [
        (Status(500), r"failed \(500: .*not now.* \(tried 6 times\)", 6),
        (Status(401, f"no such key as {KEY}"), r"rejected the key \(401: .*no such key as \[\w+_API_KEY\]", 1),
        (Status(404, "no such model"), r"rejected the request \(404: .*no such model", 1),
        (Status(400, "temperature is deprecated"), "temperature is deprecated", 1),
        (Status(429, "pay first", "insufficient_quota"), "rejected the request .429: .*pay first", 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_permanent_failure_is_a_one_line_error(server: Server, provider: str, stream: str, act: Act, part: str, requests: int) -> None:
    server.always = act
    with pytest.raises(AgentError, match=part) as caught:
        ask(agent(server, provider, stream=stream))
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(server.asked) == requests


@both
@each
def test_a_refusal_is_a_reply(server: Server, provider: str, stream: str) -> None:
    ends = ENDS[PROVIDERS[provider]]
    server.script([Say("No.", ends=ends[1]), Status(400, "Output blocked by content filtering policy", "invalid_request_error")])
    for text in ("No.", "(no reply: content filter)"):
        reply = ask(agent(server, provider, stream=stream))
        assert (reply.text, reply.refused) == (text, True)


@both
@each
def test_a_prompt_too_long_for_the_model_is_shortened(server: Server, provider: str, stream: str) -> None:
    server.window = 700
    chat = agent(server, provider, stream=stream, context="2k")

    async def talk() -> None:
        for number in range(12):
            await chat.reply(Message("word " * 100, datetime(2024, 1, 1, 9), f"c-{number}"))

    trio.run(talk)
    assert max(asked.used.prompt for asked in server.asked if asked.used) <= 700


@both
@each
def test_a_cut_answer_is_marked_and_an_empty_one_is_an_answer(server: Server, provider: str, stream: str) -> None:
    server.script([Say("So far", ends=ENDS[PROVIDERS[provider]][0]), Say("")])
    assert (ask(agent(server, provider, stream=stream)).trace or {})["cut"]["by"] == "max_tokens"
    assert ask(agent(server, provider, stream=stream)).text == ""


@both
def test_a_cancelled_request_is_abandoned(server: Server, stream: str) -> None:
    chat = agent(server, stream=stream)
    server.script([Hang()])

    async def talk() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chat.reply, Message("Hm?", datetime(2024, 1, 1, 9), "c-0"))
            while not server.asked:
                await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
        return (await chat.reply(Message("Where is the parcel?", datetime(2024, 1, 1, 9), "c-1"))).text

    assert trio.run(talk) == "re: Where is the parcel?"


def test_a_turn_has_a_deadline(server: Server) -> None:
    server.always = Hang()
    with pytest.raises(AgentError, match=r"no answer within 0\.3 s"):
        ask(agent(server, timeout=0.3))


@each
def test_it_calls_tools(server: Server, provider: str) -> None:
    server.script([Use((("look", {"where": "shed"}),))])
    core = LiteLLMCore(f"{provider}/m", LiteLLMCore.Options(base_url=server.base_url(PROVIDERS[provider])))
    tools = [Tool("look", "Look somewhere.", {"type": "object", "properties": {"where": {"type": "string"}}})]

    async def talk() -> tuple[Completion, Completion]:
        asked = [ChatMessage("user", "Where is the parcel?")]
        called = await core.use_tools(asked, tools)
        (call,) = called.calls
        answered = [*asked, ChatMessage("assistant", called.text, raw=called.raw), ChatMessage("tool", "A box.", call=call)]
        return called, await core.use_tools(answered, tools)

    called, then = trio.run(talk)
    assert (called.calls[0].name, json.loads(called.calls[0].arguments)) == ("look", {"where": "shed"})
    assert then.text.startswith("re: ")
    assert server.asked[1].texts[-1][1] == "A box."


def test_prices_and_windows_come_from_the_price_list_or_else_from_litellm(server: Server) -> None:
    listed = make_agent(AgentSpec.parse("litellm/openai/gpt-4o"))
    assert isinstance(listed, ChatAgent)
    assert listed.models == {"agent": "litellm/openai/gpt-4o"}
    assert listed.context == 128_000 - 4096
    core = LiteLLMCore("watsonx/ibm/granite-3-8b-instruct", LiteLLMCore.Options())
    assert isinstance(core.priced_as, Rates)
    assert core.priced_as.input > 0
    assert core.window
    given = LiteLLMCore("watsonx/ibm/granite-3-8b-instruct", LiteLLMCore.Options(price_in=1, price_out=2))
    assert given.priced_as == Rates(1, 1, 2)
    assert LiteLLMCore("openai/no-such-model", LiteLLMCore.Options()).priced_as == "litellm/openai/no-such-model"


def test_what_litellm_does_not_know_is_refused_at_the_door() -> None:
    for target in ("nobody/m", "gpt-4o"):
        with pytest.raises(InputError, match=f"expected litellm/PROVIDER/MODEL .*got litellm/{target}"):
            make_agent(AgentSpec.parse(f"litellm/{target}"))


@each
def test_without_a_key_there_is_one_attempt_and_a_clear_error(server: Server, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server.always = Status(401, "no key")
    monkeypatch.delenv(f"{provider.upper()}_API_KEY")
    with pytest.raises(AgentError, match=r"Missing credentials|Missing Anthropic API Key|rejected the key"):
        ask(agent(server, provider))
    assert len(server.asked) <= 1


def test_a_named_key_is_sent_and_keys_are_redacted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "mine-0123456789")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-0123456789")
    ask(agent(server, key_env="MINE"))
    assert server.asked[0].headers["authorization"] == "Bearer mine-0123456789"
    assert redact("mine-0123456789 bedrock-0123456789") == "[MINE] [AWS_BEARER_TOKEN_BEDROCK]"


def test_options_are_sent(server: Server) -> None:
    ask(agent(server, extra_body='{"service_tier":"flex"}', seed=7, top_p=0.9, **{"header.X-Team": "memory"}))
    body, headers = server.asked[0].body, {name.casefold(): value for name, value in server.asked[0].headers.items()}
    assert (body["service_tier"], body["seed"], body["top_p"], headers["x-team"]) == ("flex", 7, 0.9, "memory")


def test_a_run_with_a_judge_is_metered_and_leaves_no_key(server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    server.reply = lambda text: Say('{"reason": "as said", "verdict": true}' if "JSON" in text else "Green.")
    server.script([Status(429, headers={"retry-after": "0.01"}), Hang()])
    spec = f"litellm/openai/gpt-4o?base_url={server.base_url('openai')}&price_in=1&price_out=2&timeout=4"
    suite = Suite(name="ltm", tests=1, scenarios={"jokes": {}})
    settings = RunSettings(suite=suite, span=1500, agent=f"{spec}&context=4k", judge=spec, filler_size=500)
    (outcome,) = trio.run(play_plans, [plan_run(settings, tmp_path)])
    assert outcome.error is None
    assert read_result(RunFolder(outcome.folder)).cost_usd
    lines = [json.loads(line) for line in (outcome.folder / SPENDING).read_text().splitlines()]
    asked, paid = ([line["call"] for line in lines if name in line] for name in ("by", "input_tokens"))
    assert len(asked) == len(server.asked)
    assert len(paid) == len(asked) - 2, "the first was refused; the second was abandoned, so its cost is unknown"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"litellm/openai/gpt-4o" in written
    assert KEY.encode() not in written
    assert capfd.readouterr() == ("", "")
