"""Options of models behind an API: what they add to requests, whose key they send, and which address they ask."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio
from tests.loopback import Raw, Say, Server
from tests.timing import growth

from longspan.agents.base import InputError, Message, Reply
from longspan.agents.models.chat import ChatAgent
from longspan.agents.models.thinking import split_thinking
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import plan_run, replan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent, resolve_spec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite
from longspan.simulator.suite.trust import require_trust

KINDS = ["openai", "anthropic", "google"]
ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}
SCHEMA = {"type": "object", "properties": {"is_so": {"type": "boolean"}}}

pytestmark = pytest.mark.usefixtures("impatient")


def agent(server: Server, kind: str, *given: str) -> ChatAgent:
    made = make_agent(AgentSpec.parse(f"{kind}/some-model?{'&'.join([f'base_url={server.base_url(kind)}', 'timeout=20', *given])}"))
    assert isinstance(made, ChatAgent)
    return made


def ask(chat: ChatAgent) -> Reply:
    return trio.run(chat.reply, Message("Where is the parcel?", datetime(2024, 1, 1, 9), "c-0"))


def planned(out: Path, agent: str, **more: Any) -> Any:
    suite = Suite(name="ltm", tests=1, scenarios={"colours": {}})
    return plan_run(RunSettings(suite=suite, span=1500, agent=agent, filler_size=500, **more), out)


# What they add to requests.


@pytest.mark.parametrize(
    ("kind", "options", "field", "value"),
    [
        ("openai", ["reasoning_effort=low"], "reasoning_effort", "low"),
        ("anthropic", ["reasoning_effort=low"], "output_config", {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}),
        ("anthropic", ["thinking_budget=2000"], "thinking", {"type": "enabled", "budget_tokens": 2000}),
        ("anthropic", ["thinking_budget=0"], "thinking", {"type": "disabled"}),
        ("google", ["reasoning_effort=low"], "generationConfig.thinkingConfig", {"thinkingLevel": "LOW"}),
        ("google", ["thinking_budget=-1"], "generationConfig.thinkingConfig", {"thinkingBudget": -1}),
        *((kind, ['extra_body={"tier": {"a": [1]}}'], "tier", {"a": [1]}) for kind in KINDS),
        ("google", ['extra_body={"generationConfig": {"topK": 4}}'], "generationConfig.topK", 4),
        ("openai", ['extra_body={"response_format": {"type": "json_object"}}'], "response_format.type", "json_object"),
        ("anthropic", ['extra_body={"output_config": {"effort": "max"}}'], "output_config.effort", "max"),
    ],
)
def test_an_option_is_a_field_of_the_request(server: Server, kind: str, options: list[str], field: str, value: Any) -> None:
    trio.run(lambda: agent(server, kind, *options).complete("Is it so?", schema=SCHEMA))
    found: Any = server.asked[0].body
    for name in field.split("."):
        found = found[name]
    assert found == value
    assert server.asked[0].texts == [("user", "Is it so?")]


@pytest.mark.parametrize("kind", KINDS)
def test_headers_belong_to_the_agent_that_names_them(server: Server, kind: str) -> None:
    async def talk() -> None:
        for given in (["header.X-Team=memory%20team", "header.user-agent=mine"], []):
            await agent(server, kind, *given).reply(Message("Hm?", datetime(2024, 1, 1, 9), "c-0"))

    trio.run(talk)
    first, second = ({name.casefold(): value for name, value in asked.headers.items()} for asked in server.asked)
    assert (first["x-team"], first["user-agent"]) == ("memory team", "mine")
    assert "x-team" not in second
    assert second["user-agent"] != "mine"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("openai/m?extra_body=[1]", "extra_body: expected a JSON object, got list"),
        ("openai/m?extra_body={", "extra_body: expected JSON, such as"),
        ('openai/m?extra_body={"model": "dear"}', "extra_body: model cannot be set"),
        ('google/m?extra_body={"generationConfig": {"maxOutputTokens": 9}}', "extra_body: maxOutputTokens cannot be set"),
        ('openai/m?extra_body={"provider": [{"apiKey": "k"}]}', "extra_body: 'apiKey' could be a key, which would be written to files"),
        ('google/m?extra_body={"a": NaN}', "extra_body: expected JSON"),
        ("openai/m?header.Authorization=Bearer", "Authorization could hold a key, which would be written to files: .*key_env="),
        ("ltm/openai/m?header.x-api-key=sk", "x-api-key could hold a key"),
        ("openai/m?header.Host=example.org", "Host cannot be set"),
        ("openai/m?header.a%20b=c", "unknown option 'header.a%20b'|is not the name of an HTTP header"),
        ("openai/m?header.a=%0a", "expected 1 to 1,000 printable ASCII characters"),
        ("openai/m?header.=c", "unknown option 'header.'"),
        ("openai/m?headers=c", "unknown option 'headers'; did you mean header.NAME"),
        ("openai/m?key_env=sk-123", "key_env"),
        ("openai/m?base_url=http://127.0.0.1:1&key_env=NO_SUCH_KEY", "needs a key: set the environment variable NO_SUCH_KEY$"),
        ("openai/m?thinking_budget=2000", "unknown option 'thinking_budget'"),
        ("anthropic/m?thinking_budget=100", "thinking_budget=100: expected 0, or 1,024 to less than max_tokens=4096"),
        ("anthropic/m?thinking_budget=4096", "less than max_tokens=4096"),
        ("google/m?thinking_budget=1&reasoning_effort=low", "thinking_budget or reasoning_effort, not both"),
        ("openai/m?reasoning_effort=some", "reasoning_effort"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_the_door(spec: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_agent(AgentSpec.parse(spec))


# Keys.


def test_an_agent_and_a_judge_on_two_gateways_have_a_key_each(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", "sk-first-marker")
    monkeypatch.setenv("SECOND_KEY", "sk-second-marker")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-third-marker")
    specs = [f"{server.model(name)}&key_env={key}" for name, key in (("one", "FIRST_KEY"), ("two", "SECOND_KEY"))]

    async def talk() -> None:
        for spec in specs:
            await make_agent(AgentSpec.parse(spec)).reply(Message("Hm?", datetime(2024, 1, 1, 9), "c-0"))
        await play_plans([planned(tmp_path, specs[0], judge=specs[1])])

    trio.run(talk)
    sent = {(asked.body["model"], asked.headers["authorization"]) for asked in server.asked}
    assert sent == {("one", "Bearer sk-first-marker"), ("two", "Bearer sk-second-marker")}
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"FIRST_KEY" in written
    assert not re.search(rb"sk-\w+-marker", written)


# The address.


@pytest.mark.parametrize("kind", KINDS)
def test_the_address_that_the_environment_names_is_asked_and_shown(
    kind: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESSES[kind], f"{server.base_url(kind)}/")
    spec = resolve_spec(AgentSpec.parse(f"{kind}/some-model?context=8k"))
    assert str(spec) == f"{kind}/some-model?context=8k&base_url={server.base_url(kind)}"
    assert AgentSpec.parse(str(spec)) == spec
    assert resolve_spec(spec) == spec
    assert ask(make_agent(AgentSpec.parse(f"{kind}/some-model"))).text  # type: ignore[arg-type]
    monkeypatch.setenv(ADDRESSES[kind], "https://me:secret@example.org")
    with pytest.raises(InputError, match=rf"^{ADDRESSES[kind]}: a user name or password"):
        resolve_spec(AgentSpec.parse(f"{kind}/some-model"))


def test_a_run_keeps_the_address_that_it_was_begun_with(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("LONGSPAN_STATE_DIR", str(tmp_path / "state"))
    official = planned(tmp_path, "openai/m", judge="openai/j").manifest
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    made = planned(tmp_path, "ltm/openai/m?embedder=openai/e", judge="openai/j")
    address = quote(server.base_url("openai"), safe="/:")
    assert made.manifest.agent == f"ltm/openai/m?embedder=openai/e&base_url={address}&embedder_url={address}"
    assert made.manifest.judge == f"openai/j?base_url={address}"
    run = RunFolder.create(made.out, made.name, made.manifest)
    require_trust(run.manifest, "agent", "judge")  # it is the user's own

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert str(replan_run(run.manifest, run.manifest.agent, tmp_path).agent) == made.manifest.agent
    with pytest.raises(InputError, match=r"begun with openai/m; the environment now adds base_url=http://127.0.0.1:1/v1: unset"):
        replan_run(official, official.agent, tmp_path)
    with pytest.raises(InputError, match="an address to call"):
        require_trust(type(run.manifest).read(tmp_path / "elsewhere", run.manifest.model_dump_json().encode()), "agent")


# Thinking.


TAGS = [
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
]
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "reply", "thinking"),
    [
        ("Blue.", "Blue.", ""),
        ("<think>Hm. Sky?</think>\n\nBlue.", "Blue.", "Hm. Sky?"),
        ("Hm. Sky?\n</think>\nBlue.", "Blue.", "Hm. Sky?"),
        ("<think>\n</think>Blue.", "Blue.", ""),
        ("<think>Hm. Sky", "", "Hm. Sky"),
        ("<think>a</think>It is <think>b</think>blue.", "It is blue.", "a\nb"),
        ("Write <think> before it.", "Write <think> before it.", ""),
        ("<think>a<think>b</think>c", "c", "a<think>b"),
        *((f"{opened}Hm. Sky?{closed}\nBlue.", "Blue.", "Hm. Sky?") for opened, closed in TAGS),
        *((f"{opened}Hm. Sky", "", "Hm. Sky") for opened, _ in TAGS),
        ("Say [think] or <reason>.", "Say [think] or <reason>.", ""),
        (f"<|channel|>analysis<|message|>Hm. Sky?{FINAL}Blue.<|return|>", "Blue.", "Hm. Sky?"),
        (f"analysis<|message|>Hm. Sky?{FINAL}Blue.", "Blue.", "Hm. Sky?"),
        (f"Hm. Sky?{FINAL}Blue.", "Blue.", "Hm. Sky?"),
        ("<|channel|>analysis<|message|>Hm. Sky", "", "Hm. Sky"),
        ("<|channel|>final<|message|>Blue.", "Blue.", ""),
        (f"<|channel|>commentary to=functions.look <|constrain|>json<|message|>{{}}<|call|>{FINAL}Blue.", "Blue.", "{}"),
        ('<|channel|>final <|constrain|>JSON<|message|>{"a": 1}', '{"a": 1}', ""),
        ("analysisHm. Sky?assistantfinalBlue.", "Blue.", "Hm. Sky?"),
        ("analysis of the sky", "analysis of the sky", ""),
    ],
)
def test_thinking_is_split_from_the_reply(text: str, reply: str, thinking: str) -> None:
    assert split_thinking(text) == (reply, thinking)


MARKS = ["<|start|>a<|channel|>", "<|channel|>analysis<|message|>", "<|message|>", "<|channel|><|message|><|end|>", "analysis", "[THINK]"]


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<think></think>", "a<think>", "<think></think>a<think>", *MARKS])
def test_splitting_takes_linear_time(piece: str) -> None:
    assert growth(lambda size: split_thinking(piece * size), 20_000) < 30


THOUGHT: dict[str, Any] = {
    "openai": {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Blue.", "reasoning_content": "Hm."}}]},
    "anthropic": {
        "type": "message",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Blue."}],
        "stop_reason": "end_turn",
    },
    "google": {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Blue."}]}, "finishReason": "STOP"}]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("written", [False, True])
def test_thinking_goes_into_the_trace(server: Server, kind: str, written: bool) -> None:
    server.script([Say("<think>Hm.</think>Blue.") if written else Raw(json.dumps(THOUGHT[kind]).encode())])
    reply = ask(agent(server, kind))
    assert reply.text == "Blue."
    assert (reply.trace or {})["thinking"] == "Hm."


def test_thinking_stays_in_the_reply_if_asked_for(server: Server) -> None:
    server.script([Say("<think>Hm.</think>Blue.")])
    assert ask(agent(server, "openai", "keep_thinking=true")).text == "<think>Hm.</think>Blue."
