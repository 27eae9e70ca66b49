"""LangChain's runnables and LangGraph's graphs as agents."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.agents.base import AgentError, InputError, Message, Reply, Usage
from longspan.simulator.contract.agent import Agent, can_observe, can_repeat_turn, close_agent, has_snapshots
from longspan.simulator.subject.ledger import price_usage
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

pytestmark = [
    pytest.mark.usefixtures("install"),
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # LangChain's own
    pytest.mark.filterwarnings("default::PendingDeprecationWarning"),
]

Module = Callable[[str], str]

GRAPHS = """
from typing import Annotated
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

seen = []

async def think(state, config):
    seen.append((config["configurable"]["thread_id"], config["configurable"]["sent_at"]))
    call = {"name": "look", "args": {}, "id": "1"}
    return {"messages": [AIMessage("", tool_calls=[call], usage_metadata={"input_tokens": 4, "output_tokens": 1, "total_tokens": 5})]}

async def answer(state):
    said = [f"{m.type}:{m.content}" for m in state["messages"] if m.content]
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7, "input_token_details": {"cache_read": 3}}
    return {"messages": [AIMessage([{"type": "text", "text": " | ".join(said)}], usage_metadata=usage)]}

def graph(**more):
    steps = StateGraph(MessagesState).add_node("think", think).add_node("answer", answer)
    return steps.add_edge(START, "think").add_edge("think", "answer").add_edge("answer", END).compile(**more)

keeps = graph(checkpointer=InMemorySaver())
forgets = graph()
async def made():
    return graph(checkpointer=InMemorySaver())
"""


def message(text: str, turn: str = "t-1") -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), turn)


def make(module: Module, source: str, name: str, options: str = "?timestamps=false") -> Agent:
    return make_agent(AgentSpec.parse(f"runnable:{module(source)}:{name}{options}"))


def run(agent: Agent, script: Callable[[], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        try:
            return await script()
        finally:
            await close_agent(agent)

    return trio.run(whole)


@pytest.mark.parametrize("name", ["keeps", "made", "forgets"])
def test_a_graph_has_all_messages_whoever_keeps_them(module: Module, name: str) -> None:
    agent = make(module, GRAPHS, name)

    async def script() -> Reply:
        await agent.observe(message("told", "t-0"), "noted")
        await agent.reply(message("one", "t-1"))
        await agent.observe(message("also told", "t-2"), "noted too")
        return await agent.reply(message("two", "t-3"))

    first = "human:told | ai:noted | human:one"
    shown = "[{'type': 'text', 'text': '" + first + "'}]" if name != "forgets" else first
    reply = run(agent, script)
    assert reply.text == f"{first} | ai:{shown} | human:also told | ai:noted too | human:two"
    assert reply.usage == Usage(9, 3, 3), "that of all calls of the turn"


PRICED = """
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

def said(usage, **about):
    return RunnableLambda(lambda text: AIMessage("OK.", usage_metadata=usage, response_metadata=about))

USAGE = {"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010, "input_token_details": {"cache_read": 600}}
listed = said(USAGE, model_provider="openai", model_name="gpt-4o")
unlisted = said(USAGE, model_name="mine")
hostile = said(USAGE | {"output_tokens": -1})
"""


def test_a_model_that_names_itself_is_priced(module: Module) -> None:
    name = module(PRICED)

    def reply(target: str) -> Reply:
        agent = make_agent(AgentSpec.parse(f"runnable:{name}:{target}"))
        answer: Reply = run(agent, lambda: agent.reply(message("one")))
        return answer

    usage = Usage(1000, 600, 10)
    assert reply("listed") == Reply("OK.", usage, cost_usd=price_usage("openai/gpt-4o", usage))
    assert reply("unlisted") == Reply("OK.", usage)
    assert reply("unlisted?price_in=1&price_out=2").cost_usd == pytest.approx(1020e-6)
    with pytest.raises(AgentError, match=r"invoke returned a message with invalid usage: output_tokens: must be at least 0"):
        reply("hostile")


def test_conversations_share_a_graph_and_nothing_else(module: Module) -> None:
    name = module(GRAPHS)
    agents = [make_agent(AgentSpec.parse(f"runnable:{name}:keeps")) for _ in range(2)]

    async def script() -> None:
        texts: list[str] = []

        async def talk(agent: Agent, text: str) -> None:
            texts.append((await agent.reply(message(text))).text)

        async with trio.open_nursery() as nursery:
            for agent, text in zip(agents, ("one", "two"), strict=True):
                nursery.start_soon(talk, agent, text)
        assert sorted(texts) == ["human:[Wed 2024-05-01 09:00:00] one", "human:[Wed 2024-05-01 09:00:00] two"]
        await agents[0].reset()
        assert (await agents[0].reply(message("again"))).text == "human:[Wed 2024-05-01 09:00:00] again"
        await close_agent(agents[1])

    run(agents[0], script)
    seen = sys.modules[name].seen
    assert len({thread for thread, _ in seen}) == 3
    assert {time for _, time in seen} == {"2024-05-01T09:00:00"}


MODELS = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.runnables import RunnableLambda

model = GenericFakeChatModel(messages=iter([AIMessage("one"), AIMessage("two")]))
shout = RunnableLambda(lambda text: text.upper())
count = RunnableLambda(lambda messages: " | ".join(f"{m.type}:{m.content}" for m in convert_to_messages(messages)))
protocol = RunnableLambda(lambda text: {"text": text, "usage": {"output_tokens": 1}})
odd = RunnableLambda(lambda text: {"answer": text})
tool = RunnableLambda(lambda text: {"messages": convert_to_messages([("user", text)])})
def broken(text): raise ValueError("no\\nway")
fails = RunnableLambda(broken)
class Plain:
    def invoke(self, text, config):
        return text + config["configurable"]["turn_id"]
plain = Plain()
number = 3
def nothing(): return number
"""


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("model", Reply("one")),
        ("shout", Reply("HELLO")),
        ("protocol", Reply("hello", Usage(output_tokens=1))),
        ("plain", Reply("hellot-1")),
    ],
)
def test_a_runnable_gets_text_and_returns_text_or_a_message(module: Module, name: str, reply: Reply) -> None:
    agent = make(module, MODELS, name)
    assert run(agent, lambda: agent.reply(message("hello"))) == reply
    assert not has_snapshots(agent)
    assert not can_observe(agent)


def test_a_history_that_longspan_keeps_is_saved_and_has_each_turn_once(module: Module, tmp_path: Path) -> None:
    agent = make(module, MODELS, "count", "?timestamps=false&history=true")

    async def script() -> str:
        await agent.observe(message("told", "t-0"), "noted")
        for _ in range(2):
            await agent.reply(message("one", "t-1"))
        await agent.save(tmp_path)
        await agent.reset()
        assert (await agent.reply(message("new", "t-2"))).text == "human:new"
        await agent.load(tmp_path)
        return (await agent.reply(message("two", "t-2"))).text

    assert run(agent, script) == "human:told | ai:noted | human:one | ai:human:told | ai:noted | human:one | human:two"
    assert has_snapshots(agent)
    assert can_repeat_turn(agent)


@pytest.mark.parametrize("content", ["", "{}", '[{"role": "user"}]', '[{"role": "user", "content": 3, "id": "x"}]'])
def test_a_damaged_snapshot_is_an_error(module: Module, tmp_path: Path, content: str) -> None:
    agent = make(module, MODELS, "count", "?history=true")
    (tmp_path / "history.json").write_text(content)
    with pytest.raises(AgentError, match="not a snapshot of a runnable"):
        trio.run(agent.load, tmp_path)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("odd", "invoke returned dict with the keys answer, expected text, a message, or a state whose last message is a reply"),
        ("tool", "invoke returned dict with the keys messages, expected"),
        ("fails", "invoke raised ValueError: no way"),
    ],
)
def test_errors_of_a_runnable_are_one_line(module: Module, name: str, part: str) -> None:
    agent = make(module, MODELS, name)
    with pytest.raises(AgentError, match=re.escape(part)) as caught:
        run(agent, lambda: agent.reply(message("x")))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("nobody", "", "has no 'nobody'"),
        ("number", "", "has neither ainvoke nor invoke; name a runnable, or a function that returns one"),
        ("nothing", "", "returned int, which has neither ainvoke nor invoke"),
        ("keeps", "?history=true", "the graph has a checkpointer, which keeps the messages"),
        ("shout", "?k=3", "unknown option 'k'"),
    ],
)
def test_an_invalid_spec_is_rejected_at_once(module: Module, name: str, options: str, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        make(module, MODELS if name != "keeps" else GRAPHS, name, options)
