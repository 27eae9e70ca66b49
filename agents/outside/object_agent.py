"""An agent that is any object with a method `reply`. Missing abilities are emulated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from longspan.agents.base import AgentError, BaseAgent, InputError, Message, Reply, Usage
from longspan.agents.outside.bridge import find_problem
from longspan.agents.outside.counts import drop_reply, price_reply
from longspan.agents.outside.frameworks import adapt
from longspan.agents.outside.in_process import Home, InProcessAgent
from longspan.agents.outside.protocol import WorkAnswer
from longspan.agents.outside.remote import CLOSE_SECONDS, RemoteOptions
from longspan.simulator.contract.agent import has_snapshots

__all__ = ["ObjectAgent"]


class ObjectAgent(InProcessAgent):
    """An agent around the object that `make` returns. `make` is called on first use, where the object runs (see `InProcessAgent`)."""

    def __init__(self, name: str, settings: RemoteOptions, thread: Home | None, make: Callable[[], Any]) -> None:
        super().__init__(name, settings, thread)
        self._make = make
        self._made: Any = None

    @property
    def object(self) -> Any:
        """The object. The first access may raise AgentError, or InputError if it has no method `reply`."""
        if self._made is None:
            self._made = self._check_made(self.run_now("its constructor", self._make))
        return self._made

    @property
    def has_snapshots(self) -> bool:
        """Whether the object can both save and load."""
        return self.has("save") and self.has("load") and has_snapshots(self.object)

    @property
    def rewinds(self) -> bool:
        """Whether the object can both mark and rewind."""
        return self.has("mark") and self.has("rewind") and getattr(self.object, "rewinds", True) is True

    @property
    def observes(self) -> bool:
        """Whether the object has a method `observe`."""
        return self.has("observe")

    @property
    def repeatable(self) -> bool:
        """Whether the object declares with `repeatable = True` that a repeated turn is harmless."""
        return getattr(self.object, "repeatable", False) is True

    async def reply(self, message: Message) -> Reply:
        await self.begin("reply")
        answer = await self.run("reply", partial(self.object.reply, message))
        if isinstance(answer, str):
            return Reply(answer)
        if isinstance(answer, dict):
            return self.parse_answer(answer)
        if not isinstance(answer, Reply):
            what = f"reply returned {type(answer).__name__}"
            raise AgentError(f"{self.name}: {what}; it must return a str, a dict with text, usage and trace, or a longspan.Reply")
        expected = {"text": str, "usage": Usage | None, "trace": dict | None, "refused": bool}
        for name, kind in expected.items():
            if not isinstance(getattr(answer, name), kind):
                raise AgentError(f"{self.name}: reply returned a Reply whose {name} is {type(getattr(answer, name)).__name__}")
        return price_reply(answer, self.rates)

    async def observe(self, message: Message, reply: str) -> Reply | None:
        if not self.observes:
            return drop_reply(await self.reply(message))
        took = await self.call("observe", message, reply)
        return took if isinstance(took, Reply) else None

    async def reset(self) -> None:
        if self.has("reset") and getattr(type(self.object), "reset", None) is not BaseAgent.reset:
            await self.call("reset")
        else:
            if self.has("close"):
                await self.call("close")
            self._made = self._check_made(await self.run("its constructor", self._make))

    async def save(self, folder: Any) -> None:
        if self.has_snapshots:
            await self.call("save", folder)

    async def load(self, folder: Any) -> None:
        if not self.has_snapshots:
            raise AgentError(f"{self.name} has no snapshots: it needs both save(folder) and load(folder)")
        await self.call("load", folder)

    @property
    def consolidates(self) -> bool:
        """Whether the object has a method `consolidate`."""
        return self.has("consolidate") and getattr(self.object, "consolidates", True) is True

    async def consolidate(self, at: datetime) -> Reply | None:
        answer = await self.call("consolidate", at)
        if answer is None or isinstance(answer, Reply):
            return answer and price_reply(answer, self.rates)
        if not isinstance(answer, dict):
            what = f"consolidate returned {type(answer).__name__}"
            raise AgentError(f"{self.name}: {what}; it must return nothing, or a dict with usage, cost_usd and trace")
        return self.parse_answer(answer, "consolidate", WorkAnswer)

    async def mark(self) -> None:
        await self.call("mark")

    async def rewind(self) -> None:
        await self.call("rewind")

    async def close(self) -> None:
        try:
            if self._made is not None and self.has("close"):
                await self.run("close", self._made.close, CLOSE_SECONDS)
        finally:
            if self.thread is not None:
                await self.thread.close()

    def has(self, name: str) -> bool:
        """Return whether the object has a method."""
        return callable(getattr(self.object, name, None))

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the object and await its result."""
        await self.begin(name)
        return await self.run(name, partial(getattr(self.object, name), *arguments))

    async def begin(self, name: str) -> None:
        """Prepare the object for a call of a method. The default does nothing."""

    def _check_made(self, made: Any) -> Any:
        """Return the object made, or the adapter of a framework's. Raises InputError if a method is missing or has other parameters."""
        agent = adapt(made)
        if problem := find_problem(agent, "agent"):
            raise InputError(f"{self.name}: {problem}")
        self._process.code = type(agent)
        return agent
