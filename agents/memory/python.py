"""Memories written as a class with the methods `add` and `search`, named `memory/python:package.module:Class`.

    class Everything:
        def __init__(self):
            self.kept = []

        def add(self, turns, at):                 # or `async def`, under asyncio
            self.kept += turns

        def search(self, query, k, at):
            return [{"text": turn.document, "turns": [turn.turn_id]} for turn in self.kept[-k:]]

Optional methods, plain or async: `settle()`, `reset()`, `save(folder)`, `load(folder)` and `close()`. An instance lives in a separate
thread with an asyncio loop; subclasses of `longspan.Memory` run under Trio. Undeclared options of the spec become keyword arguments of the
class, as strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, final

from longspan.agents.base import AgentError, AgentOptions, InputError
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.memory_answers import AddAnswer, SearchAnswer, UsageTracker
from longspan.agents.memory.outside import RemoteMemory
from longspan.agents.memory.turns import Turn
from longspan.agents.outside.bridge import as_items, find_problem, to_plain
from longspan.agents.outside.in_process import InProcess
from longspan.agents.outside.loop_thread import LoopThread
from longspan.agents.outside.protocol import read_answer
from longspan.agents.outside.python import PythonOptions, find_maker
from longspan.agents.outside.remote import CLOSE_SECONDS, RemoteOptions
from longspan.simulator.base.errors import one_line

__all__ = ["PythonMemory"]

Kind = TypeVar("Kind", AddAnswer, SearchAnswer)


@final
class PythonMemory(Memory):
    """A user's class in this Python. With `interpreter`, the kind makes a program that runs it in another.

    `arguments` replace the ones in the options, and `name` is the name in errors.
    """

    takes_target = True
    tells_turns = False

    class Options(PythonOptions):
        """The memory's options."""

    @classmethod
    def make(cls, target: str, options: AgentOptions) -> Memory:
        """Create the memory, in this Python or in the one that the options name."""
        settings = options if isinstance(options, cls.Options) else cls.Options()
        program = settings.program(f"memory/python:{target}", target, "memory")
        return cls(target, settings) if program is None else RemoteMemory(program, settings, target)

    def __init__(
        self, target: str, options: AgentOptions | None = None, *, arguments: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        super().__init__(target, options)
        settings = options if isinstance(options, RemoteOptions) else PythonOptions()
        given = settings.arguments if isinstance(settings, PythonOptions) else {}
        self._name = name or f"memory/python:{target}"
        found, self._make = find_maker(target, given if arguments is None else arguments)
        in_trio = isinstance(found, Memory) or (isinstance(found, type) and issubclass(found, Memory))
        self._process = InProcess(self._name, None if in_trio else LoopThread(self._name), settings.timeout)
        self._object = self._process.run_now("its constructor", self._make)
        self._is_new = True
        self._spent = UsageTracker(settings.rates)
        if problem := find_problem(self._object, "memory"):
            raise InputError(f"{self._name}: {problem}")

    @property
    def has_snapshots(self) -> bool:
        """Whether the class can both save and load."""
        if isinstance(self._object, Memory):
            return self._object.has_snapshots
        return self._has("save") and self._has("load")

    @property
    def read_only_search(self) -> bool:
        """Whether the class declares that a search changes nothing."""
        return getattr(self._object, "read_only_search", False) is True

    @property
    def models(self) -> Any:
        """The models of a `Memory` subclass; otherwise the model, if its price is given."""
        return self._object.models if isinstance(self._object, Memory) else self._spent.models

    def used(self) -> Used:
        return self._object.used() if isinstance(self._object, Memory) else self._spent.take()

    async def start(self) -> None:
        if isinstance(self._object, Memory):
            await self._call("start")

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        return self._read("add", AddAnswer, await self._call("add", turns, at)).found

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        return self._read("search", SearchAnswer, await self._call("search", query, k, at)).found

    @property
    def consolidates(self) -> bool:
        """Whether the class consolidates."""
        return self._object.consolidates if isinstance(self._object, Memory) else self._has("consolidate")

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        return self._read("consolidate", AddAnswer, await self._call("consolidate", at)).found

    @property
    def forgets(self) -> bool:
        """Whether the class can forget."""
        return self._object.forgets if isinstance(self._object, Memory) else self._has("forget")

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        return self._read("forget", AddAnswer, await self._call("forget", text, at)).found

    async def settle(self) -> None:
        if self._has("settle"):
            await self._call("settle")

    async def size(self) -> int | None:
        return await self._object.size() if isinstance(self._object, Memory) else await super().size()

    async def reset(self) -> None:
        if self._has("reset"):
            await self._call("reset")
        else:
            if self._has("close"):
                await self._call("close")
            self._object = await self._process.run("its constructor", self._make)
        self._is_new = True

    async def save(self, folder: Path) -> None:
        if self.has_snapshots:
            await self._call("save", folder)

    async def load(self, folder: Path) -> None:
        if not self.has_snapshots:
            raise AgentError(f"{self._name} has no snapshots: it needs both save(folder) and load(folder)")
        if not self._is_new:
            await self.reset()
        await self._call("load", folder)

    async def close(self) -> None:
        try:
            if self._has("close"):
                await self._process.run("close", self._object.close, CLOSE_SECONDS)
        finally:
            if self._process.thread is not None:
                await self._process.thread.close()

    def _has(self, name: str) -> bool:
        return callable(getattr(self._object, name, None))

    async def _call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the user's object and await its result."""
        self._is_new = False
        return await self._process.run(name, lambda: getattr(self._object, name)(*arguments))

    def _read(self, call: str, kind: type[Kind], result: Any) -> Kind:
        """Validate a method's result like the answer of a memory in another process. Raises AgentError."""
        try:
            answer = read_answer(json.dumps(as_items(result), allow_nan=False, default=to_plain).encode(), kind)
        except AgentError as error:
            raise AgentError(f"{self._name}: {call}: {error}") from error.__cause__
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentError(f"{self._name}: {call}: {one_line(error)}") from None
        self._spent.add(answer)
        return answer
