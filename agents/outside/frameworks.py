"""Agents of common frameworks, recognised by the module and the name of their classes. `adapt` gives such an object a method `reply`.

Like the bridge, this module needs only Python 3.8 and the standard library, so that it also runs in other environments. Each adapter
imports its framework when it needs it. To support another framework, write its adapter and add a line to FRAMEWORKS.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial
from itertools import takewhile
from typing import Any

USER, ASSISTANT = "user", "assistant"


class FrameworkAgent:
    """One conversation with a framework's object `agent`, which several conversations may share.

    `kept` is what the conversation has stored. It is replaced and never changed in place. With `timestamps`, messages begin with their
    virtual date and time.
    """

    takes_turns = False
    """Whether the object serves one call at a time, because it stores the state of a conversation itself."""

    def __init__(self, agent: Any, timestamps: str = "true") -> None:
        if timestamps not in ("true", "false"):
            raise ValueError(f"timestamps must be true or false, got {timestamps!r:.40}")
        self.agent = agent
        self.lock = _LOCKS.setdefault(id(agent), threading.Lock()) if self.takes_turns else threading.Lock()
        self.timestamps = timestamps == "true"
        self.reset()

    def reset(self) -> None:
        """Begin a new conversation."""
        self.kept: Any = []

    async def ask(self, text: str) -> tuple[Any, Any]:
        """Return the reply to a message, and its usage or None."""
        raise NotImplementedError

    async def reply(self, message: Any) -> dict[str, Any]:
        """Return the reply to a message."""
        async with self.turn():
            said, usage = await self.ask(self.stamp(message))
        return {"text": said if isinstance(said, str) else str(said), "usage": usage}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until no other conversation uses the object, if that matters."""
        while not self.lock.acquire(blocking=False):
            await asyncio.sleep(0.01)  # an asyncio lock would not do: the other conversation may run in another thread's loop
        try:
            yield
        finally:
            self.lock.release()

    def stamp(self, message: Any) -> str:
        """Return a message's text with its time."""
        return f"[{message.sent_at:%a %Y-%m-%d %H:%M:%S}] {message.text}" if self.timestamps else message.text


_LOCKS: dict[int, threading.Lock] = {}
"""The locks of objects that serve one call at a time, by the objects' ids: not all of them are hashable."""


class MarkingAgent(FrameworkAgent):
    """A conversation that can return to an earlier state."""

    def mark(self) -> None:
        """Remember the present state."""
        self.marked = self.kept

    def rewind(self) -> None:
        """Return to the marked state."""
        self.kept = self.marked


class SavingAgent(MarkingAgent):
    """A conversation that can be saved as JSON."""

    def dump(self) -> Any:
        """Return what is kept as JSON."""
        return self.kept

    def restore(self, data: Any) -> Any:
        """Return what was kept from its JSON."""
        return data

    def save(self, folder: Any) -> None:
        """Write what is kept."""
        (folder / "kept.json").write_text(json.dumps(self.dump()), "utf-8")

    def load(self, folder: Any) -> None:
        """Read what was kept."""
        self.kept = self.restore(json.loads((folder / "kept.json").read_text("utf-8")))


class HistoryAgent(SavingAgent):
    """A conversation that is a list of messages. Subclasses define `answer`, or `ask` if the framework returns the list."""

    def write(self, role: str, text: str) -> Any:
        """Return a message of the framework."""
        return {"role": role, "content": text}

    async def answer(self, text: str) -> tuple[str, Any]:
        """Return the reply to a message, and its usage or None, and keep nothing."""
        raise NotImplementedError

    async def ask(self, text: str) -> tuple[Any, Any]:
        said, usage = await self.answer(text)
        self.kept = [*self.kept, self.write(USER, text), self.write(ASSISTANT, said)]
        return said, usage

    def observe(self, message: Any, reply: str) -> None:
        """Store a turn."""
        self.kept = [*self.kept, self.write(USER, self.stamp(message)), self.write(ASSISTANT, reply)]


class PydanticAIAgent(HistoryAgent):
    """pydantic-ai's agents: the conversation is their `message_history`."""

    def __init__(self, agent: Any, timestamps: str = "true") -> None:
        # Without this, an agent's `system_prompt` is left out if a conversation begins with observed turns.
        from pydantic_ai.capabilities import ReinjectSystemPrompt

        super().__init__(agent, timestamps)
        self.capabilities = [ReinjectSystemPrompt()]

    async def ask(self, text: str) -> tuple[Any, Any]:
        result = await self.agent.run(text, message_history=self.kept, capabilities=self.capabilities)
        self.kept = result.all_messages()
        return result.output, result.usage() if inspect.ismethod(result.usage) else result.usage  # a property since 2.0

    def write(self, role: str, text: str) -> Any:
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

        return ModelRequest(parts=[UserPromptPart(text)]) if role == USER else ModelResponse(parts=[TextPart(text)])

    def dump(self) -> Any:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        return ModelMessagesTypeAdapter.dump_python(self.kept, mode="json")

    def restore(self, data: Any) -> Any:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        return ModelMessagesTypeAdapter.validate_python(data)


class OpenAIAgent(HistoryAgent):
    """Agents of the OpenAI Agents SDK: the conversation is their list of input items."""

    async def ask(self, text: str) -> tuple[Any, Any]:
        from agents import Runner  # type: ignore[attr-defined]  # mypy finds the repository's folder of that name

        result = await Runner.run(self.agent, [*self.kept, self.write(USER, text)])
        self.kept = result.to_input_list()
        return result.final_output, result.context_wrapper.usage


class LangChainAgent(FrameworkAgent):
    """LangChain's runnables, which get a message's text, and LangGraph's graphs, which get messages.

    The object stores the conversation under a thread's id, or not at all.
    """

    def reset(self) -> None:
        super().reset()
        self.config = {"configurable": dict.fromkeys(("thread_id", "session_id"), uuid.uuid4().hex)}

    async def ask(self, text: str) -> tuple[Any, Any]:
        return await self.invoke([{"role": USER, "content": text}] if is_graph(self.agent) else text)

    async def invoke(self, sent: Any) -> tuple[Any, Any]:
        """Return the reply to messages or a text, and its usage."""
        returned = await self.agent.ainvoke({"messages": sent} if is_graph(self.agent) else sent, self.config)
        said, messages = read_langchain(returned)
        return said, add_up(getattr(message, "usage_metadata", None) for message in messages)


class LangGraphThread(LangChainAgent):
    """LangGraph's graphs with a checkpointer."""

    async def observe(self, message: Any, reply: str) -> None:
        """Add a turn to the graph's messages. No node runs."""
        turn = [{"role": USER, "content": self.stamp(message)}, {"role": ASSISTANT, "content": reply}]
        await self.agent.aupdate_state(self.config, {"messages": turn}, as_node="__start__")


class LangChainHistory(HistoryAgent, LangChainAgent):
    """LangChain's chat models, and LangGraph's graphs without a checkpointer: each gets the whole conversation."""

    async def answer(self, text: str) -> tuple[str, Any]:
        return await self.invoke([*self.kept, self.write(USER, text)])


class LlamaIndexAgent(HistoryAgent):
    """LlamaIndex's agents: the conversation is their `chat_history`."""

    async def answer(self, text: str) -> tuple[str, Any]:
        return str(await self.agent.run(user_msg=text, chat_history=list(self.kept))), None

    def write(self, role: str, text: str) -> Any:
        from llama_index.core.llms import ChatMessage

        return ChatMessage(role=role, content=text)

    def dump(self) -> Any:
        return [[message.role.value, message.content] for message in self.kept]

    def restore(self, data: Any) -> Any:
        return [self.write(*message) for message in data]


class LlamaIndexChat(LlamaIndexAgent):
    """LlamaIndex's chat engines."""

    takes_turns = True

    async def answer(self, text: str) -> tuple[str, Any]:
        return str(await self.agent.achat(text, chat_history=list(self.kept))), None


class CrewAIAgent(HistoryAgent):
    """CrewAI's agents: each gets the whole conversation."""

    takes_turns = True

    async def answer(self, text: str) -> tuple[str, Any]:
        result = await self.agent.kickoff_async([*self.kept, self.write(USER, text)])
        return result.raw, add_up([result.usage_metrics])


class CrewAICrew(HistoryAgent):
    """CrewAI's crews: their inputs are the message, under any name, and `{history}` with the conversation."""

    takes_turns = True

    def __init__(self, agent: Any, timestamps: str = "true") -> None:
        super().__init__(agent, timestamps)
        self.agent = agent.copy()  # a call fills in the inputs for good
        self.input = choose_input(sorted(self.agent.fetch_inputs()))

    async def answer(self, text: str) -> tuple[str, Any]:
        history = "\n".join(f"{message['role']}: {message['content']}" for message in self.kept)
        before = vars(self.agent.calculate_usage_metrics())  # of all calls so far
        result = await self.agent.kickoff_async(inputs={self.input: text, "history": history})
        usage = {name: count - before[name] for name, count in vars(result.token_usage).items() if isinstance(count, int)}
        return result.raw, add_up([usage])


class GoogleADKAgent(FrameworkAgent):
    """Agents and runners of Google's ADK: the conversation is a session of the runner's."""

    def __init__(self, agent: Any, timestamps: str = "true") -> None:
        if not hasattr(agent, "session_service"):
            from google.adk.runners import InMemoryRunner

            agent = InMemoryRunner(agent=agent, app_name="longspan")
        super().__init__(agent, timestamps)

    def reset(self) -> None:
        super().reset()
        self.session: Any = None

    async def open(self) -> Any:
        """Return the conversation's session. A new one begins with the events that are kept."""
        if self.session is None:
            self.session = await self.agent.session_service.create_session(app_name=self.agent.app_name, user_id=USER)
            for event in self.kept:
                await self.agent.session_service.append_event(self.session, event)
        return self.session

    def write(self, role: str, text: str) -> Any:
        from google.genai.types import Content, Part

        return Content(role=role, parts=[Part(text=text)])

    async def ask(self, text: str) -> tuple[Any, Any]:
        ids = {"user_id": USER, "session_id": (await self.open()).id}
        said, usages = "", []
        async for event in self.agent.run_async(new_message=self.write(USER, text), **ids):
            usages.append(event.usage_metadata)
            if event.is_final_response() and event.content:
                said = "".join(part.text or "" for part in event.content.parts or [] if not part.thought)
        self.session = await self.agent.session_service.get_session(app_name=self.agent.app_name, **ids)
        return said, add_up(usages)

    async def observe(self, message: Any, reply: str) -> None:
        """Add a turn to the session."""
        from google.adk.events import Event

        for author, role, text in ((USER, USER, self.stamp(message)), (self.agent.agent.name, "model", reply)):
            await self.agent.session_service.append_event(await self.open(), Event(author=author, content=self.write(role, text)))

    async def mark(self) -> None:
        """Remember the session's events."""
        self.marked = list((await self.open()).events)

    def rewind(self) -> None:
        """Return to the marked events, in a new session."""
        self.session, self.kept = None, self.marked


class AutoGenTeam(SavingAgent):
    """AutoGen's agents and teams: the conversation is the state that they save and load."""

    takes_turns = True

    async def resume(self) -> None:
        """Make the object continue this conversation."""
        from autogen_core import CancellationToken

        await (self.agent.reset() if hasattr(self.agent, "reset") else self.agent.on_reset(CancellationToken()))
        if self.kept:
            await self.agent.load_state(self.kept)

    async def ask(self, text: str) -> tuple[Any, Any]:
        await self.resume()
        result = await self.agent.run(task=text)
        self.kept = await self.agent.save_state()
        return result.messages[-1].to_text(), add_up(message.models_usage for message in result.messages)


class AutoGenAgent(AutoGenTeam):
    """AutoGen's assistants, whose model context can be extended by a turn."""

    async def observe(self, message: Any, reply: str) -> None:
        """Store a turn."""
        from autogen_core.models import AssistantMessage, UserMessage

        async with self.turn():
            await self.resume()
            await self.agent.model_context.add_message(UserMessage(content=self.stamp(message), source=USER))
            await self.agent.model_context.add_message(AssistantMessage(content=reply, source=self.agent.name))
            self.kept = await self.agent.save_state()


class SmolAgent(MarkingAgent):
    """The agents of smolagents: the conversation is the steps in their memory."""

    takes_turns = True

    async def ask(self, text: str) -> tuple[Any, Any]:
        self.agent.memory.steps = list(self.kept)
        result = await run_in_thread(self.agent.run, text, reset=False, return_full_result=True)
        self.kept = list(self.agent.memory.steps)
        return result.output, result.token_usage

    def observe(self, message: Any, reply: str) -> None:
        """Store a turn."""
        from smolagents.memory import ActionStep, TaskStep
        from smolagents.monitoring import Timing

        step = ActionStep(step_number=1, timing=Timing(start_time=0.0, end_time=0.0), model_output=reply)
        self.kept = [*self.kept, TaskStep(task=self.stamp(message)), step]


class DSPyProgram(HistoryAgent):
    """DSPy's modules: their inputs are the message, under any name, and `history`; the reply is their last output."""

    def __init__(self, agent: Any, timestamps: str = "true") -> None:
        super().__init__(agent, timestamps)
        inputs, predictors = list(inspect.signature(type(agent).forward).parameters)[1:], agent.predictors()
        if inputs == ["kwargs"]:
            inputs = list(predictors[0].signature.input_fields)
        self.input = choose_input(inputs)
        self.output = list(predictors[-1].signature.output_fields)[-1] if predictors else "answer"

    async def answer(self, text: str) -> tuple[str, Any]:
        from dspy import History

        pairs = zip(self.kept[::2], self.kept[1::2])  # noqa: B905 - Python 3.8 has no strict
        turns = [{self.input: asked["content"], self.output: told["content"]} for asked, told in pairs]
        output = await run_in_thread(self.agent, **{self.input: text}, history=History(messages=turns))
        return str(list(output.values())[-1]), add_up((output.get_lm_usage() or {}).values())


class HaystackAgent(HistoryAgent):
    """Haystack's agents: each gets the whole conversation."""

    async def ask(self, text: str) -> tuple[Any, Any]:
        messages = [*self.kept, self.write(USER, text)]
        result = await self.agent.run_async(messages=messages)
        self.kept = [message for message in result["messages"] if message.role.value != "system"]
        return result["last_message"].text, add_up(message.meta.get("usage") for message in self.kept[len(messages) :])

    def write(self, role: str, text: str) -> Any:
        from haystack.dataclasses import ChatMessage

        return ChatMessage.from_user(text) if role == USER else ChatMessage.from_assistant(text)

    def dump(self) -> Any:
        return [message.to_dict() for message in self.kept]

    def restore(self, data: Any) -> Any:
        from haystack.dataclasses import ChatMessage

        return [ChatMessage.from_dict(message) for message in data]


class SemanticKernelAgent(HistoryAgent):
    """Chat completion agents of Semantic Kernel: the conversation is their thread."""

    async def ask(self, text: str) -> tuple[Any, Any]:
        from semantic_kernel.agents import ChatHistoryAgentThread
        from semantic_kernel.contents import ChatHistory

        thread = ChatHistoryAgentThread(ChatHistory(messages=list(self.kept)))
        response = await self.agent.get_response(messages=text, thread=thread)
        self.kept = [message async for message in thread.get_messages()]
        return response.message, response.message.metadata.get("usage")

    def write(self, role: str, text: str) -> Any:
        from semantic_kernel.contents import AuthorRole, ChatMessageContent

        return ChatMessageContent(role=AuthorRole(role), content=text)

    def dump(self) -> Any:
        return [message.model_dump(mode="json") for message in self.kept]

    def restore(self, data: Any) -> Any:
        from semantic_kernel.contents import ChatMessageContent

        return [ChatMessageContent.model_validate(message) for message in data]


FRAMEWORKS: dict[str, Any] = {
    "pydantic_ai:AbstractAgent": PydanticAIAgent,
    "agents.agent:Agent": OpenAIAgent,
    "langchain_core:BaseChatModel": LangChainHistory,
    "langchain_core:Runnable": LangChainAgent,
    "llama_index.core:BaseChatEngine": LlamaIndexChat,
    "llama_index.core:BaseWorkflowAgent": LlamaIndexAgent,
    "llama_index.core:AgentWorkflow": LlamaIndexAgent,
    "crewai:Crew": CrewAICrew,
    "crewai:BaseAgent": CrewAIAgent,
    "google.adk:BaseAgent": GoogleADKAgent,
    "google.adk:Runner": GoogleADKAgent,
    "autogen_agentchat:AssistantAgent": AutoGenAgent,
    "autogen_agentchat:TaskRunner": AutoGenTeam,
    "smolagents:MultiStepAgent": SmolAgent,
    "dspy:Module": DSPyProgram,
    "haystack:Agent": HaystackAgent,
    "semantic_kernel:ChatCompletionAgent": SemanticKernelAgent,
}
"""Adapters by PACKAGE:CLASS. An object is recognised if its class, or one that it derives from, has this name in the package."""


def find_adapter(value: Any) -> Any:
    """Return the adapter of a framework's object; None for a class, an object with `reply`, and other objects."""
    if isinstance(value, type) or callable(getattr(value, "reply", None)):
        return None
    for cls in type(value).__mro__:
        for name, adapter in FRAMEWORKS.items():
            package, _, class_name = name.partition(":")
            if cls.__name__ == class_name and f"{cls.__module__}.".startswith(f"{package}."):
                if adapter is LangChainAgent and is_graph(value):
                    return LangGraphThread if getattr(value, "checkpointer", None) else LangChainHistory
                return adapter
    return None


def adapt(value: Any) -> Any:
    """Return a framework's object with a method `reply`, and other objects unchanged."""
    adapter = find_adapter(value)
    return value if adapter is None else adapter(value)


def is_finished(value: Any) -> bool:
    """Return whether a module's value is an agent or a memory itself, rather than a class or a function that makes one."""
    if isinstance(value, type):
        return False
    return find_adapter(value) is not None or not callable(value) or any(callable(getattr(value, name, None)) for name in ("reply", "add"))


def copy_finished(value: Any, options: dict[str, str]) -> Any:
    """Return an agent or a memory for one conversation: the adapter of a framework's object, or a copy of any other object.

    Raises TypeError if the object cannot be copied, or takes no options.
    """
    adapter = find_adapter(value)
    if adapter is not None:
        return adapter(value, **options)
    if options:
        raise TypeError(f"it is an object, which takes no options, got {', '.join(options)}; name its class instead")
    try:
        return deepcopy(value)
    except Exception as error:
        why = f"it cannot be copied for each conversation ({type(error).__name__}: {error})"
        raise TypeError(f"{why}; name its class, or a function that returns a new one") from error


def choose_input(names: Any) -> Any:
    """Return the name of the input besides `history`. Raises ValueError if there are others, or one is missing."""
    others = [name for name in names if name != "history"]
    if len(others) != 1 or len(names) != 2:
        told = f"its inputs are {', '.join(names) or 'none'}; it must have one for the message, and `history` for the conversation"
        raise ValueError(f"{told}; otherwise name a class with a method reply that calls it")
    return others[0]


async def run_in_thread(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a blocking function in a thread and return its result."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments, **options))


def is_graph(value: Any) -> bool:
    """Return whether an object is a LangGraph graph whose state has messages."""
    return "messages" in (getattr(value, "channels", None) or ())


def read_langchain(returned: Any) -> tuple[str, list[Any]]:
    """Return a reply and its messages from what a runnable returned: text, a message, or a state with messages."""
    if isinstance(returned, str):
        return returned, []
    messages = [returned]
    if isinstance(returned, dict):  # a state: the messages after the user's last one
        state = returned.get("messages")
        new = takewhile(lambda each: getattr(each, "type", None) != "human", reversed(state if isinstance(state, list) else []))
        messages = list(new)[::-1]
    text = text_of(messages[-1]) if messages else None
    if text is None:
        keys = f" with the keys {', '.join(map(str, returned))}" if isinstance(returned, dict) else ""
        what = f"invoke returned {type(returned).__name__}{keys}"
        raise TypeError(f"{what}, expected text, a message, or a state whose last message is a reply")
    return text, messages


def text_of(message: Any) -> str | None:
    """Return the text of a LangChain message, joining its parts; None if it is not a reply."""
    content = getattr(message, "content", None)
    if getattr(message, "type", "ai") not in ("ai", "AIMessageChunk"):
        return None
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else part.get("text", "") for part in content if isinstance(part, (str, dict))]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def add_up(usages: Any) -> dict[str, Any] | None:
    """Return the sums of usages' counts, also of nested ones; None if all are 0, as with models that report none."""
    found: dict[str, Any] = {}
    for usage in usages:
        for name, count in (usage if isinstance(usage, dict) else getattr(usage, "__dict__", {})).items():
            if isinstance(count, dict):
                found[name] = add_up([found.get(name), count])
            elif isinstance(count, int):
                found[name] = found.get(name, 0) + count
    return found if any(found.values()) else None
