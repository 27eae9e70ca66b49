"""Memory systems by name, as far as their packages are here; and what longspan lends to them."""

from __future__ import annotations

import base64
import json
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.agents.fake_letta import Letta

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.memory.lent import LentModels
from longspan.agents.memory.ltm.embedders import HashEmbedder
from longspan.agents.memory.system import ADAPTERS, SystemMemory
from longspan.agents.models.core import ChatMessage, Completion, Tool, ToolCall
from longspan.agents.outside.bridge import Models
from longspan.simulator.contract.agent import close_agent
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

HERE = ("langgraph", "langchain", "haystack")
"""The systems that can share an environment with the tests. scripts/memory_systems.py tries the others, each in one of its own."""

START = datetime(2024, 5, 7, 18)


def spec(system: str, options: str = "") -> str:
    return f"memory/{system}?answerer=none&embedder=hash{options}"


@pytest.mark.parametrize(("system", "options"), [*((system, "") for system in HERE), ("langchain", f"&interpreter={sys.executable}")])
def test_a_system_passes_every_check_here_and_in_another_environment(system: str, options: str) -> None:
    async def findings() -> dict[str, str]:
        return {finding.check: finding.verdict async for finding in check_agent(AgentSpec.parse(spec(system, options)))}

    found = trio.run(findings)
    assert {check for check, verdict in found.items() if verdict != "good"} == {"forget"}
    assert "two runs" in found


@pytest.mark.parametrize("system", HERE)
def test_a_system_is_played(system: str, tmp_path: Path) -> None:
    suite = load_suite("memory").model_copy(update={"tests": 1})
    planned = plan_run(RunSettings(suite=suite, span=8_000, agent=spec(system)), tmp_path)
    (outcome,) = trio.run(play_plans, [planned])
    assert outcome.error is None
    assert read_result(RunFolder(outcome.folder)).metrics["evidence_recall@20"] > 0.5


def systems() -> dict[str, type[SystemMemory]]:
    """The systems that are registered, by name."""
    found = {point.name: point.load() for point in entry_points(group="longspan.memories") if point.value.startswith("longspan.")}
    return {name: cls for name, cls in found.items() if issubclass(cls, SystemMemory)}


def test_each_adapter_is_registered_and_its_package_is_asked_for_where_it_is_missing() -> None:
    registered = systems()
    files = {path.stem for path in ADAPTERS.glob("*.py")} - {"__init__"}
    assert {name.replace("-", "_") for name in registered} == files
    for name, cls in registered.items():
        assert name == cls.name
        if cls.installed() is None and cls.package:
            with pytest.raises(InputError, match=f"memory/{name} needs the package {cls.package}: pip install {cls.package}"):
                make_agent(AgentSpec.parse(spec(name)))


def test_an_adapter_imports_nothing_of_longspan() -> None:
    assert [
        path.name for path in ADAPTERS.glob("*.py") if "import longspan" in path.read_text() or "from longspan" in path.read_text()
    ] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("&model=gpt", "memory/langgraph: model= takes KIND/MODEL"),
        ("&shelves=3", "does not accept the option 'shelves'"),
        ("&interpreter=/nowhere/python", "program '/nowhere/python' does not exist"),
        ("&model=openai/gpt-4o&model.temprature=1", "unknown option 'temprature'"),
    ],
)
def test_a_wrong_option_is_said_at_once(options: str, said: str, openai_key: None) -> None:
    with pytest.raises(InputError, match=said):
        make_agent(AgentSpec.parse(spec("langgraph", options)))


# A service, against a fake of its published API.


def test_lettas_archival_memory_passes_every_check_and_leaves_no_agent_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "sk-let")
    letta = Letta()

    async def findings(url: str) -> dict[str, str]:
        found = check_agent(AgentSpec.parse(f"memory/letta?answerer=none&url={url}&embedding=openai/text-embedding-3-small"))
        return {finding.check: finding.verdict async for finding in found}

    with letta.running() as url:
        found = trio.run(findings, url)
    assert {check for check, verdict in found.items() if verdict != "good"} == {"forget"}
    assert letta.agents == {}
    assert letta.keys == {"Bearer sk-let"}


def test_an_error_of_a_service_is_an_error_of_the_memory() -> None:
    letta = Letta()

    async def told(url: str) -> None:
        agent = make_agent(AgentSpec.parse(f"memory/letta?answerer=none&batch=turn&url={url}"))
        try:
            letta.broken = True
            await agent.observe(Message("The tide turns at nine.", START, "t1"), "")
        finally:
            await close_agent(agent)

    with letta.running() as url, pytest.raises(AgentError, match=r"memory/letta: add raised .*archival-memory: 500 .*no embedder"):
        trio.run(told, url)
    with pytest.raises(AgentError, match="url must begin with http"):
        make_agent(AgentSpec.parse("memory/letta?answerer=none&url=file:///etc/passwd"))


# What is lent.


class Echo:
    """A core that repeats what it was sent, or calls the first tool."""

    name = priced_as = "openai/echo"
    overhead, window, max_output = 0, None, 100

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[ChatMessage], Any, Any]] = []

    def count(self, text: str) -> int:
        return len(text.split())

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Any = None) -> Completion:
        await trio.lowlevel.checkpoint()
        self.asked.append((messages, max_tokens, schema))
        if "fail" in messages[-1].text:
            raise AgentError("out of paper")
        return Completion(messages[-1].text, Usage(self.count(messages[-1].text), 0, 2))

    async def use_tools(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        await trio.lowlevel.checkpoint()
        return Completion("", Usage(1, 0, 1), (ToolCall("c1", tools[0].name, '{"fact": "tide"}'),))


@pytest.fixture
def core() -> Echo:
    return Echo()


@pytest.fixture
def lent(core: Echo) -> Iterator[LentModels]:
    models = LentModels(core, HashEmbedder())
    yield models
    models.close()


def ask(lent: LentModels, route: str, body: Any) -> Any:
    return Models(lent.url, lent.key).ask(route, body)


def test_a_model_is_lent_with_its_messages_in_the_order_that_cores_take_and_what_it_takes_is_counted(lent: LentModels, core: Echo) -> None:
    said = [
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": [{"type": "text", "text": "Tide"}, {"type": "text", "text": "tables?"}]},
        {"role": "user", "content": "Now."},
    ]
    schema = {"type": "object", "properties": {"facts": {"type": "array"}}}
    body = {"messages": said, "max_tokens": 7, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    answer = ask(lent, "chat/completions", body)
    assert answer["choices"][0]["message"]["content"] == "Tide\ntables?\n\nNow."
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    ((messages, most, given),) = core.asked
    assert [(message.role, message.text) for message in messages] == [
        ("system", "Be brief."),
        ("user", "(The conversation so far.)"),
        ("assistant", "Yes?"),
        ("user", "Tide\ntables?\n\nNow."),
    ]
    assert (most, given) == (7, schema)
    called = ask(lent, "chat/completions", {"messages": said, "tools": [{"type": "function", "function": {"name": "keep"}}]})
    assert called["choices"][0]["finish_reason"] == "tool_calls"
    assert called["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "keep", "arguments": '{"fact": "tide"}'}
    assert lent.take().usage == {"memory": Usage(4, 0, 3)}
    assert lent.take().usage == {}


def test_vectors_are_lent_as_numbers_and_as_bytes(lent: LentModels) -> None:
    models = Models(lent.url, lent.key)
    (tide, quay), (again,) = models.embed(["The tide.", "A quay."]), models.embed(["The tide."])
    assert len(tide) == models.dimensions
    assert tide == again != quay
    packed = ask(lent, "embeddings", {"input": "The tide.", "encoding_format": "base64"})["data"][0]["embedding"]
    assert list(struct.unpack(f"<{models.dimensions}f", base64.b64decode(packed))) == pytest.approx(tide)
    assert models.embed([]) == []
    assert lent.take().usage == {}, "a free embedder takes nothing"


@pytest.mark.parametrize(
    ("route", "body", "said"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "fail"}]}, "out of paper"),
        ("chat/completions", {"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role: must be 'system', "),
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}], "stream": True}, "answers are not streamed"),
        ("chat/completions", {}, "messages: is missing"),
        ("embeddings", {"input": [1]}, "input.0: must be text"),
        ("rerank", {}, "there is no '/v1/rerank', only /v1/embeddings and /v1/chat/completions"),
    ],
)
def test_what_fails_is_an_error_for_the_system(lent: LentModels, route: str, body: Any, said: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(said)):
        ask(lent, route, body)


def test_a_system_that_needs_a_model_is_told_that_none_is_lent() -> None:
    lent = LentModels(None, HashEmbedder())
    try:
        with pytest.raises(RuntimeError, match="add model=KIND/MODEL, such as model=local"):
            Models(lent.url, lent.key).ask("chat/completions", {"messages": []})
    finally:
        lent.close()


def test_a_priced_embedder_is_counted_and_a_failing_one_fails_add(openai_key: None, impatient: None) -> None:
    from tests.loopback import Service

    broken = False

    def say(body: dict[str, Any]) -> tuple[int, bytes]:
        data = [{"index": number, "embedding": [len(text), 1.0]} for number, text in enumerate(body["input"])]
        return (401, b"{}") if broken else (200, json.dumps({"data": data, "usage": {"prompt_tokens": 10 * len(data)}}).encode())

    async def scenario(address: str) -> None:
        nonlocal broken
        options = f"answerer=none&batch=turn&embedder=openai/text-embedding-3-small&embedder_url={address}/v1"
        agent = make_agent(AgentSpec.parse(f"memory/langgraph?{options}"))
        try:
            told = await agent.observe(Message("The tide turns at nine.", START, "t1"), "")
            assert told is not None
            assert told.besides["embedder"].input_tokens == 10
            assert getattr(agent, "models").keys() == {"embedder"}  # noqa: B009
            broken = True
            with pytest.raises(AgentError, match=r"memory/langgraph: add raised .*embeddings"):
                await agent.observe(Message("The quay is wet.", START + timedelta(minutes=1), "t2"), "")
        finally:
            await close_agent(agent)

    with Service(say).running() as service:
        trio.run(scenario, service.address)
