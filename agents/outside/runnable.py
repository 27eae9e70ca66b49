"""Agents that are objects with `ainvoke` or `invoke`, as in LangChain and LangGraph, named `runnable:package.module:object`.

All conversations share an object of the module, in one asyncio loop. A function of the module is called for each conversation and returns a
separate object. LangChain is not imported: messages are dicts, or objects with the same fields.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, final

import trio
from pydantic import ValidationError

from longspan.agents.base import AgentError, AgentOptions, InputError, Message, Reply
from longspan.agents.models.core import stamp_message
from longspan.agents.outside.bridge import as_usage
from longspan.agents.outside.counts import Counts, drop_reply, price_reply, sum_of
from longspan.agents.outside.frameworks import LangChainAgent, find_adapter, is_graph, read_langchain
from longspan.agents.outside.in_process import InProcessAgent
from longspan.agents.outside.loop_thread import LoopThread, share_thread
from longspan.agents.outside.protocol import decode_json, make_printable
from longspan.agents.outside.remote import RemoteOptions
from longspan.simulator.base.errors import first_problem
from longspan.simulator.base.keys import redact
from longspan.simulator.contract.plugins import find_object

__all__ = ["RunnableAgent"]

HISTORY: Final = "history.json"
"""The snapshot file with the turns so far."""

_Message = dict[str, str]
"""A message in LangChain's format: `role`, `content` and `id`, which is the turn's."""


@final
class RunnableAgent(InProcessAgent):
    """A LangChain runnable or a compiled LangGraph graph."""

    class Options(RemoteOptions):
        """The options of a runnable."""

        history: bool | None = None
        """Send the whole conversation so far, as longspan keeps it. Default: only to graphs without a checkpointer."""
        timestamps: bool = True
        """Each message begins with its virtual date and time."""
        observe: bool = True
        """False asks a graph that has a checkpointer to reply to all turns, so that its nodes see them. Else they are only added to its
        messages."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, self.Options) else self.Options()
        named = find_object("runnable", target)
        _refuse_others(named, target)
        is_shared = _is_runnable(named)
        name = f"runnable:{target}"
        super().__init__(name, settings, share_thread(f"runnable:{target.partition(':')[0]}") if is_shared else LoopThread(name))
        self._settings = settings
        self._object = named if is_shared else self._make_object(named)
        self._is_graph = is_graph(self._object)
        self._has_checkpointer = self._is_graph and bool(getattr(self._object, "checkpointer", None))
        if settings.history and self._has_checkpointer:
            raise InputError(f"{self.name}: history=true: the graph has a checkpointer, which keeps the messages; leave history out")
        self._keeps_history = settings.history if settings.history is not None else self._is_graph and not self._has_checkpointer
        self._history: list[_Message] = []
        self._thread_id = token_hex(16)

    @property
    def has_snapshots(self) -> bool:
        """Whether longspan keeps the history."""
        return self._keeps_history

    @property
    def repeatable(self) -> bool:
        """Whether longspan keeps the history, which contains each turn once."""
        return self._keeps_history

    @property
    def observes(self) -> bool:
        """Whether turns can be added to the history without a reply."""
        return self._keeps_history or (self._has_checkpointer and self._settings.observe)

    async def reply(self, message: Message) -> Reply:
        messages = [*self._before(message), self._make_message(message)]
        sent = {"messages": messages} if self._is_graph else messages if self._keeps_history else messages[-1]["content"]
        config = self._config(message)
        returned = await self.run("invoke", lambda: _invoke(self._object, sent, config))
        reply = self._read(returned)
        reply = replace(reply, text=redact(reply.text))  # snapshots keep it
        if self._keeps_history:
            self._history = [*messages, {"role": "assistant", "content": reply.text, "id": f"{message.turn_id}/reply"}]
        return reply

    async def observe(self, message: Message, reply: str) -> Reply | None:
        turn = [self._make_message(message), {"role": "assistant", "content": reply, "id": f"{message.turn_id}/reply"}]
        if self._keeps_history:
            self._history = [*self._before(message), *turn]
        elif self.observes:
            config = self._config(message)
            await self.run("update_state", lambda: self._object.aupdate_state(config, {"messages": turn}, as_node="__start__"))
        else:
            return drop_reply(await self.reply(message))
        return None

    async def reset(self) -> None:
        self._history, self._thread_id = [], token_hex(16)

    async def save(self, folder: Path) -> None:
        if self.has_snapshots:
            await trio.Path(folder / HISTORY).write_text(json.dumps(self._history), "ascii")

    async def load(self, folder: Path) -> None:
        try:
            history = decode_json(await trio.Path(folder / HISTORY).read_bytes())
        except (OSError, AgentError):
            history = None
        if not self.has_snapshots or not isinstance(history, list) or not all(map(_is_message, history)):
            raise AgentError(f"{folder}: not a snapshot of a runnable whose history longspan keeps")
        self._history = history

    async def close(self) -> None:
        if self.thread is not None:
            await self.thread.close()

    def _make_object(self, function: Any) -> Any:
        """Return the object that a function of the module creates, awaited if it is async."""
        if not callable(function):
            raise InputError(f"{self.name} has neither ainvoke nor invoke; name a runnable, or a function that returns one")
        made = self.run_now("the function that makes it", function)
        _refuse_others(made, self.name.partition(":")[2])
        if not _is_runnable(made):
            raise InputError(f"{self.name} returned {type(made).__name__}, which has neither ainvoke nor invoke")
        return made

    def _before(self, message: Message) -> list[_Message]:
        """Return the messages before this one, which may be a repetition."""
        return [each for each in self._history if each["id"] not in (message.turn_id, f"{message.turn_id}/reply")]

    def _make_message(self, message: Message) -> _Message:
        text = stamp_message(message.text, message.sent_at) if self._settings.timestamps else message.text
        return {"role": "user", "content": text, "id": message.turn_id}

    def _config(self, message: Message) -> dict[str, Any]:
        """Return a call's configuration: the conversation's id, under both common names, and the message's time and turn."""
        names = {"thread_id": self._thread_id, "session_id": self._thread_id}
        return {"configurable": names | {"sent_at": message.sent_at.isoformat(), "turn_id": message.turn_id}}

    def _read(self, returned: Any) -> Reply:
        """Convert a call's result to a Reply: text, a message, a state with messages, or an answer of the protocol."""
        if isinstance(returned, dict) and "text" in returned:
            return self.parse_answer(returned)
        try:
            text, messages = read_langchain(returned)
        except TypeError as error:
            raise AgentError(f"{self.name}: {make_printable(str(error))}") from None
        try:
            counts = [each for each in map(_counts, messages) if each is not None]
        except (ValidationError, TypeError) as error:
            problem = make_printable(first_problem(error) if isinstance(error, ValidationError) else str(error))
            raise AgentError(f"{self.name}: invoke returned a message with invalid usage: {problem}") from None
        usage = sum_of(each.usage for each in counts) if counts else None
        return price_reply(Reply(text, usage), self.rates, counts)


def _refuse_others(value: Any, target: str) -> None:
    """Raise InputError for the agent of another framework, which may have a method `invoke` of another meaning."""
    if (adapter := find_adapter(value)) and not issubclass(adapter, LangChainAgent):
        raise InputError(f"runnable:{target} is a {type(value).__module__}.{type(value).__qualname__}: name it python:{target}")


def _is_runnable(value: Any) -> bool:
    return any(callable(getattr(value, name, None)) for name in ("ainvoke", "invoke"))


def _invoke(runnable: Any, sent: Any, config: dict[str, Any]) -> Awaitable[Any]:
    ainvoke: Callable[..., Awaitable[Any]] | None = getattr(runnable, "ainvoke", None)
    return ainvoke(sent, config=config) if callable(ainvoke) else asyncio.to_thread(runnable.invoke, sent, config=config)


def _counts(message: Any) -> Counts | None:
    """Return a message's usage with the model that it names. Raises ValidationError if it is invalid."""
    usage = as_usage(getattr(message, "usage_metadata", None))
    if not usage:
        return None
    about = getattr(message, "response_metadata", None)
    provider, model = (about.get("model_provider"), about.get("model_name")) if isinstance(about, Mapping) else (None, None)
    return Counts.model_validate({**usage, "model": f"{provider}/{model}" if provider and model else None})


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"role", "content", "id"} and all(isinstance(text, str) for text in value.values())
