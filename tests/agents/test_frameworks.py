"""Objects of agent frameworks as agents: real ones as far as the tests' environment has them, otherwise stand-ins with the same interface.

scripts/frameworks.py tries the real ones, each in an environment of its own.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio

import longspan
from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.outside import frameworks
from longspan.simulator.contract.agent import can_observe, can_rewind, close_agent, has_snapshots
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

pytestmark = [
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # LangChain's own
    pytest.mark.filterwarnings("default::PendingDeprecationWarning"),
]

RECALL = """
def recall(texts):
    return " | ".join(text.partition("] ")[2] or text for text in texts)
"""
"""All stand-in models answer with the user's messages so far, without their dates."""

STAND_INS = {
    "pydantic_ai/agent.py": """
from collections import namedtuple
from recall import recall
class Usage:
    def __init__(self): self.input_tokens, self.output_tokens, self.cache_read_tokens = 10, 2, 4
class Result:
    def __init__(self, output, messages): self.output, self.messages, self.usage = output, messages, Usage()
    def all_messages(self): return self.messages
class AbstractAgent: pass
class Agent(AbstractAgent):
    async def run(self, prompt, *, message_history, capabilities):
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
        messages = [*message_history, ModelRequest([UserPromptPart(prompt)])]
        output = recall([message.parts[0].content for message in messages if isinstance(message, ModelRequest)])
        return Result(output, [*messages, ModelResponse([TextPart(output)])])
agent = Agent()
""",
    "pydantic_ai/messages.py": """
class Part:
    def __init__(self, content): self.content = content
class UserPromptPart(Part): pass
class TextPart(Part): pass
class Made:
    def __init__(self, parts): self.parts = parts
class ModelRequest(Made): pass
class ModelResponse(Made): pass
class ModelMessagesTypeAdapter:
    @staticmethod
    def dump_python(messages, mode): return [[type(each).__name__, each.parts[0].content] for each in messages]
    @staticmethod
    def validate_python(data): return [globals()[name]([Part(content)]) for name, content in data]
""",
    "pydantic_ai/capabilities.py": "class ReinjectSystemPrompt: pass\n",
    "agents/__init__.py": """
from types import SimpleNamespace
from recall import recall
class Runner:
    @staticmethod
    async def run(agent, items):
        output = recall([item["content"] for item in items if item["role"] == "user"])
        items = [*items, {"role": "assistant", "content": output}]
        usage = {"input_tokens": 10, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
        return SimpleNamespace(final_output=output, to_input_list=lambda: items, context_wrapper=SimpleNamespace(usage=usage))
""",
    "agents/agent.py": "class Agent: pass\nagent = Agent()\ndef make(): return agent\n",
    "llama_index/core/llms.py": """
from enum import Enum
class Role(Enum):
    user, assistant = "user", "assistant"
class ChatMessage:
    def __init__(self, role, content): self.role, self.content = Role(role), content
""",
    "llama_index/core/agent.py": """
from recall import recall
def answer(text, history):
    return recall([*(message.content for message in history if message.role.value == "user"), text])
class BaseWorkflowAgent:
    async def run(self, user_msg, chat_history): return answer(user_msg, chat_history)
class BaseChatEngine:
    async def achat(self, message, chat_history): return answer(message, chat_history)
agent, engine = BaseWorkflowAgent(), BaseChatEngine()
""",
    "crewai/__init__.py": """
import copy, re
from types import SimpleNamespace
from recall import recall
class Metrics:
    def __init__(self, calls): self.prompt_tokens, self.completion_tokens, self.cached_prompt_tokens = 10 * calls, 2 * calls, 4 * calls
class BaseAgent:
    async def kickoff_async(self, messages):
        raw = recall([message["content"] for message in messages if message["role"] == "user"])
        return SimpleNamespace(raw=raw, usage_metrics=vars(Metrics(1)))
class Crew:
    def __init__(self, task): self.task, self.calls = task, 0
    def copy(self): return copy.copy(self)
    def fetch_inputs(self): return set(re.findall(r"{(.+?)}", self.task))
    def calculate_usage_metrics(self): return Metrics(self.calls)
    async def kickoff_async(self, inputs):
        self.calls += 1
        self.task = "filled in"
        said = [line.removeprefix("user: ") for line in inputs["history"].splitlines() if line.startswith("user: ")]
        return SimpleNamespace(raw=recall([*said, inputs["question"]]), token_usage=Metrics(self.calls))
assistant, agent, other = BaseAgent(), Crew("{question} {history}"), Crew("{question} {mood}")
""",
    "autogen_core/__init__.py": "class CancellationToken: pass\n",
    "autogen_core/models.py": """
class UserMessage:
    def __init__(self, content, source): self.content, self.source = content, source
class AssistantMessage(UserMessage): pass
""",
    "autogen_agentchat/agents.py": """
from types import SimpleNamespace
from recall import recall
class TaskRunner:
    name = "assistant"
    def __init__(self): self.said = []
    async def save_state(self): return {"said": self.said}
    async def load_state(self, state): self.said = state["said"]
    async def run(self, task):
        self.said = [*self.said, task]
        text, usage = recall(self.said), SimpleNamespace(prompt_tokens=10, completion_tokens=2)
        messages = [SimpleNamespace(models_usage=None), SimpleNamespace(to_text=lambda: text, models_usage=usage)]
        return SimpleNamespace(messages=messages)
class Team(TaskRunner):
    async def reset(self): self.said = []
class AssistantAgent(TaskRunner):
    @property
    def model_context(self): return self
    async def add_message(self, message): self.said = [*self.said, *[message.content] * (message.source == "user")]
    async def on_reset(self, token): self.said = []
agent, team = AssistantAgent(), Team()
""",
    "smolagents/agents.py": """
from types import SimpleNamespace
from recall import recall
class MultiStepAgent:
    def __init__(self): self.memory = SimpleNamespace(steps=[])
    def run(self, task, reset, return_full_result):
        from smolagents.memory import TaskStep
        self.memory.steps.append(TaskStep(task))
        output = recall([step.task for step in self.memory.steps if isinstance(step, TaskStep)])
        return SimpleNamespace(output=output, token_usage=SimpleNamespace(input_tokens=10, output_tokens=2))
agent = MultiStepAgent()
""",
    "smolagents/memory.py": """
class TaskStep:
    def __init__(self, task): self.task = task
class ActionStep:
    def __init__(self, step_number, timing, model_output): self.model_output = model_output
""",
    "smolagents/monitoring.py": "class Timing:\n    def __init__(self, start_time, end_time): pass\n",
    "dspy/__init__.py": """
from types import SimpleNamespace
from recall import recall
class History:
    def __init__(self, messages): self.messages = messages
class Prediction(dict):
    def get_lm_usage(self):
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        return {"openai/gpt-4o": usage}
class Module:
    def __call__(self, **inputs): return self.forward(**inputs)
    def predictors(self): return []
class Chat(Module):
    def forward(self, message, history):
        return Prediction(reasoning="-", reply=recall([*(turn["message"] for turn in history.messages), message]))
class Predict(Module):
    signature = SimpleNamespace(input_fields=["question", "history"], output_fields=["answer"])
    def predictors(self): return [self]
    def forward(self, **kwargs):
        return Prediction(answer=recall([*(turn["question"] for turn in kwargs["history"].messages), kwargs["question"]]))
class Two(Module):
    def forward(self, message, mood): pass
agent, predict, other = Chat(), Predict(), Two()
""",
    "semantic_kernel/contents.py": """
from enum import Enum
class AuthorRole(Enum):
    user, assistant = "user", "assistant"
class ChatMessageContent:
    def __init__(self, role, content, metadata=()): self.role, self.content, self.metadata = AuthorRole(role), content, dict(metadata)
    def __str__(self): return self.content
    def model_dump(self, mode): return {"role": self.role.value, "content": self.content}
    @classmethod
    def model_validate(cls, data): return cls(**data)
class ChatHistory:
    def __init__(self, messages): self.messages = messages
""",
    "semantic_kernel/agents.py": """
from types import SimpleNamespace
from recall import recall
from semantic_kernel.contents import ChatMessageContent
class ChatHistoryAgentThread:
    def __init__(self, history): self.history = history
    async def get_messages(self):
        for message in self.history.messages: yield message
class ChatCompletionAgent:
    async def get_response(self, messages, thread):
        kept = thread.history.messages
        kept.append(ChatMessageContent("user", messages))
        text = recall([message.content for message in kept if message.role.value == "user"])
        usage = SimpleNamespace(prompt_tokens=10, completion_tokens=2)
        kept.append(ChatMessageContent("assistant", text, {"usage": usage}))
        return SimpleNamespace(message=kept[-1])
agent = ChatCompletionAgent()
""",
    "google/adk/agents.py": "class BaseAgent:\n    name = 'assistant'\nagent = BaseAgent()\n",
    "google/adk/events.py": """
from types import SimpleNamespace
class Event(SimpleNamespace):
    usage_metadata = None
    def is_final_response(self): return self.author != "user"
""",
    "google/adk/runners.py": """
from types import SimpleNamespace
from google.adk.events import Event
from google.genai.types import Content, Part
from recall import recall
class Sessions:
    def __init__(self): self.sessions = {}
    async def create_session(self, app_name, user_id):
        session_id = str(len(self.sessions))
        self.sessions[session_id] = SimpleNamespace(id=session_id, events=[])
        return self.sessions[session_id]
    async def get_session(self, app_name, user_id, session_id): return self.sessions[session_id]
    async def append_event(self, session, event): session.events.append(event)
class Runner: pass
class InMemoryRunner(Runner):
    def __init__(self, agent, app_name): self.agent, self.app_name, self.session_service = agent, app_name, Sessions()
    async def run_async(self, user_id, session_id, new_message):
        session = self.session_service.sessions[session_id]
        session.events.append(Event(author="user", content=new_message))
        text = recall([each.content.parts[0].text for each in session.events if each.author == "user"])
        usage = SimpleNamespace(prompt_token_count=10, candidates_token_count=2)
        session.events.append(Event(author="assistant", content=Content(parts=[Part(text=text)]), usage_metadata=usage))
        yield Event(author="user", content=new_message)
        yield session.events[-1]
""",
}

GRAPHS = """
from recall import recall
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, convert_to_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "input_token_details": {"cache_read": 4}}

def answer(state):
    text = recall([message.content for message in state["messages"] if message.type == "human"])
    return {"messages": [AIMessage(text, usage_metadata=USAGE)]}

class Model(GenericFakeChatModel):
    def _generate(self, messages, *rest, **options):
        self.messages = iter(answer({"messages": messages})["messages"])
        return super()._generate(messages, *rest, **options)

steps = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
graph, stored, model = steps.compile(), steps.compile(checkpointer=InMemorySaver()), Model(messages=iter([]))
def makes(): return graph
"""

HAYSTACK = """
from recall import recall
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage

@component
class Generator:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None):
        text = recall([message.text for message in messages if message.role.value == "user"])
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        return {"replies": [ChatMessage.from_assistant(text, meta={"usage": usage})]}

agent = Agent(chat_generator=Generator(), system_prompt="Remember everything.")
"""

OBJECTS = {
    **{f"graphs:{name}": Usage(10, 4, 2) for name in ("graph", "stored", "model", "makes")},
    "stack:agent": Usage(10, 4, 2),
    "pydantic_ai.agent:agent": Usage(10, 4, 2),
    "agents.agent:agent": Usage(10, 4, 2),
    "llama_index.core.agent:agent": None,
    "llama_index.core.agent:engine": None,
    "crewai:assistant": Usage(10, 4, 2),
    "crewai:agent": Usage(10, 4, 2),
    "autogen_agentchat.agents:agent": Usage(10, 0, 2),
    "autogen_agentchat.agents:team": Usage(10, 0, 2),
    "smolagents.agents:agent": Usage(10, 0, 2),
    "dspy:agent": Usage(10, 4, 2),
    "dspy:predict": Usage(10, 4, 2),
    "semantic_kernel.agents:agent": Usage(10, 0, 2),
    "google.adk.agents:agent": Usage(10, 0, 2),
}
"""Objects, and the usage of a reply."""

SLOW = {"graphs:stored", "graphs:model", "graphs:makes", "stack:agent"}
"""Objects that are not tried in another process, where their imports take seconds."""

PACKAGES = {name.partition("/")[0] for name in STAND_INS} - {"google"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with the stand-ins, and the modules `graphs` and `stack` with real objects."""
    for name, source in {**STAND_INS, "recall.py": RECALL, "graphs.py": GRAPHS, "stack.py": HAYSTACK}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_stand_in(name)}
    yield tmp_path
    for name in list(sys.modules):
        if _is_stand_in(name):
            del sys.modules[name]
    sys.modules.update(real)


def _is_stand_in(module: str) -> bool:
    return module.partition(".")[0] in {*PACKAGES, "graphs", "stack", "recall"} or module.startswith("google.adk")


def message(text: str, turn: str) -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), turn)


@pytest.mark.parametrize(
    ("name", "where"),
    [(name, where) for name in OBJECTS for where in ("", f"?interpreter={sys.executable}") if not where or name not in SLOW],
)
def test_a_frameworks_object_holds_conversations_apart(name: str, where: str, installed: Path) -> None:
    spec = AgentSpec.parse(f"python:{name}{where}")

    async def conversations() -> None:
        agent, other = make_agent(spec), make_agent(spec)
        try:
            await agent.observe(message("one", "1"), "OK.")
            reply = await agent.reply(message("two", "2"))
            await other.reply(message("apart", "1"))
            observed = "one | " if can_observe(agent) or "team" in name else ""
            assert (reply.text, reply.usage) == (f"{observed}two", OBJECTS[name])
            if can_rewind(agent):
                await agent.mark()
                for _ in range(2):
                    assert (await agent.reply(message("three", "3"))).text == f"{observed}two | three"
                    await agent.rewind()
            if has_snapshots(agent):
                folder = installed / "saved"
                folder.mkdir()
                await agent.save(folder)
                await other.load(folder)
                assert (await other.reply(message("three", "3"))).text == f"{observed}two | three"
            await agent.reset()
            assert (await agent.reply(message("new", "4"))).text == "new"
        finally:
            await close_agent(agent)
            await close_agent(other)

    trio.run(conversations)


@pytest.mark.parametrize("name", ["graphs:graph", "pydantic_ai.agent:agent", "google.adk.agents:agent"])
def test_a_frameworks_object_may_be_given_from_python(name: str, installed: Path) -> None:
    module, _, attribute = name.partition(":")
    found = getattr(__import__(module, fromlist=[attribute]), attribute)
    results = longspan.run("ltm", span="2k", agent=found, scenarios=["colours"], tests=1, seeds=range(2), out=installed / "runs")
    assert (len(results.folders), results.left_out) == (2, [])
    made = longspan.run("ltm", span="2k", agent={"made": lambda: found}, scenarios=["colours"], tests=1, out=installed / "made")
    assert (len(made.folders), made.left_out) == (1, [])


@pytest.mark.parametrize(("options", "said"), [("", "[Wed 2024-05-01 09:00:00] hello"), ("?timestamps=false", "hello")])
def test_messages_begin_with_the_virtual_time(options: str, said: str, installed: Path) -> None:
    (installed / "recall.py").write_text("def recall(texts): return texts[-1]\n")
    agent = make_agent(AgentSpec.parse(f"python:agents.agent:agent{options}"))
    assert trio.run(agent.reply, message("hello", "1")).text == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("python:crewai:other", "its inputs are mood, question; it must have one for the message, and `history` for the conversation"),
        ("python:dspy:other", "its inputs are message, mood; it must have one for the message"),
        ("python:agents.agent:agent?timestamps=no", "timestamps must be true or false, got 'no'"),
        ("python:agents.agent:agent?speed=3", "unexpected keyword argument 'speed'"),
        ("runnable:agents.agent:agent", "runnable:agents.agent:agent is a agents.agent.Agent: name it python:agents.agent:agent"),
        ("runnable:agents.agent:make", "name it python:agents.agent:make"),
    ],
)
def test_an_object_that_cannot_be_adapted_is_refused(spec: str, said: str, installed: Path) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        make_agent(AgentSpec.parse(spec))


MINE = """
import threading

class Mine:
    def __init__(self, name="Ada"): self.name, self.said = name, []
    def reply(self, message):
        self.said.append(message.text)
        return f"{self.name}: {' '.join(self.said)}"

class Chain:
    def invoke(self, text): return text

class Bot:
    def run(self, text): return text

class Locked(Mine):
    def __init__(self): self.lock = threading.Lock()

class Notes:
    def add(self, turns, at): pass
    def search(self, query, k, at): return []

class Wrong:
    def add(self, turns): pass
    def search(self, query, k, at): return []

class Hasty(Notes):
    def search(self, query): return []

class Keen(Mine):
    def observe(self, text): pass

class Saves(Mine):
    def save(self, path, compress): pass

class Restores(Saves):
    def load(self, folder): pass

mine, chain, bot, locked, notes, number = Mine("Eve"), Chain(), Bot(), Locked(), Notes(), 3
async def make(name="Bob"): return Mine(name)
"""


@pytest.mark.parametrize("where", ["", f"interpreter={sys.executable}"])
@pytest.mark.parametrize(("name", "said"), [("Mine", "Ada"), ("mine", "Eve"), ("make", "Bob"), ("make?name=Tom", "Tom"), ("Saves", "Ada")])
def test_a_class_a_function_or_an_object_makes_an_agent_for_each_conversation(
    name: str, said: str, where: str, module: Callable[[str], str]
) -> None:
    spec = AgentSpec.parse(f"python:{module(MINE)}:{name}{('&' if '?' in name else '?') + where if where else ''}")

    async def conversations() -> list[str]:
        agent, other = make_agent(spec), make_agent(spec)
        try:
            replies = [(await each.reply(message(text, text))).text for each, text in ((agent, "one"), (agent, "two"), (other, "apart"))]
            await agent.reset()
            return [*replies, (await agent.reply(message("new", "new"))).text]
        finally:
            await close_agent(agent)
            await close_agent(other)

    assert trio.run(conversations) == [f"{said}: one", f"{said}: one two", f"{said}: apart", f"{said}: new"]


@pytest.mark.parametrize("where", ["", f"interpreter={sys.executable}"])
@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (
            "python",
            "Notes",
            "it has no method reply, but add and search: it is a memory, so name it memory/python:{m}:Notes?answerer=KIND/MODEL",
        ),
        (
            "python",
            "notes",
            "it has no method reply, but add and search: it is a memory, so name it memory/python:{m}:Notes?answerer=KIND/MODEL",
        ),
        ("python", "Keen", "observe takes text, but longspan passes message and reply: write `def observe(self, message, reply)`"),
        ("python", "Restores", "save takes path and compress, but longspan passes folder: write `def save(self, folder)`"),
        ("python", "locked", "it cannot be copied for each conversation (TypeError: cannot pickle '_thread.lock' object); name its class"),
        ("python", "mine?name=Eve", "it is an object, which takes no options, got name; name its class instead"),
        ("memory/python", "Mine", "it has no method add, but reply: it is an agent, so name it python:{m}:Mine"),
        ("memory/python", "Wrong", "add takes turns, but longspan passes turns and at: write `def add(self, turns, at)`"),
        ("memory/python", "Hasty", "search takes query, but longspan passes query, k and at: write `def search(self, query, k, at)`"),
    ],
)
def test_what_does_not_fit_is_explained_before_the_run(kind: str, name: str, said: str, where: str, module: Callable[[str], str]) -> None:
    m = module(MINE)
    options = "&".join(filter(None, [where, *["answerer=none"] * (kind != "python")]))
    spec = f"{kind}:{m}:{name}{('&' if '?' in name else '?') + options if options else ''}"

    async def begin() -> None:
        agent = make_agent(AgentSpec.parse(spec))
        try:
            await agent.reply(message("hello", "1"))
        finally:
            await close_agent(agent)

    with pytest.raises((InputError, AgentError), match=re.escape(said.format(m=m))) as caught:
        trio.run(begin)
    assert isinstance(caught.value, AgentError if where else InputError)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chain", "chain is a Chain and has no method reply; name it runnable:{m}:chain"),
        ("bot", "bot is a Bot and has no method reply; name a class with a method reply that calls it, "),
        ("bot", "`def reply(self, message): return bot.run(message.text)`"),
        ("number", "number is a int, not a class; it defines Bot, Chain, "),
    ],
)
def test_an_object_without_reply_is_refused_with_a_way(name: str, said: str, module: Callable[[str], str]) -> None:
    m = module(MINE)
    with pytest.raises(InputError, match=re.escape(said.format(m=m))):
        make_agent(AgentSpec.parse(f"python:{m}:{name}"))


def test_a_memory_given_from_python_is_refused_with_its_spec(tmp_path: Path) -> None:
    class Notes:
        def add(self, turns: Any, at: datetime) -> None: ...

        def search(self, query: str, k: int, at: datetime) -> list[str]:
            return []

    with pytest.raises(longspan.InputError, match=r"the class is a memory, with add and search: give its spec, agent='memory/python:"):
        longspan.run("ltm", agent=Notes, out=tmp_path)


def test_the_adapters_need_python_3_8_and_its_standard_library() -> None:
    tree = ast.parse(Path(frameworks.__file__).read_text("utf-8"), feature_version=(3, 8))
    imported = {alias.name.partition(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").partition(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
