"""The API for memories, which store turns and retrieve them.

    class Latest(Memory):
        async def add(self, turns, at):
            self.turn = turns[-1]

        async def search(self, query, k, at):
            return [MemoryItem(self.turn.text, (self.turn.turn_id,))]

Register the class in the entry-point group `longspan.memories`, or name it `memory/python:package.module:Class`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, final

from longspan.agents.base import AgentOptions, Danger, InputError, Usage
from longspan.agents.memory.turns import Turn
from longspan.simulator.contract.agent import measure_snapshot
from longspan.simulator.subject.ledger import Rates

__all__ = ["Extent", "Lender", "Memory", "MemoryItem", "Used"]

Extent = Literal["", "whole", "part"]
"""How much of a memory's text its inferred turns explain: "whole", or "part" if it may come from other turns as well. Empty without
inference.
"""


@final
@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory that was stored or found.

    `turns`: the ids of its source turns, if known. `score`: how well it fits the query; higher is better. `at`: the virtual time when its
    content was said or last changed. `derived`: the text is not verbatim, such as a summary or a fact extracted by a model. `inferred`: the
    memory named no turns, so longspan inferred `turns` from its wording (see `Extent`).
    """

    text: str
    turns: tuple[str, ...] = ()
    score: float | None = None
    id: str | None = None
    at: datetime | None = None
    derived: bool = False
    inferred: Extent = ""


class Lender(Protocol):
    """A lender of a model and an embedder to a memory."""

    @property
    def asked(self) -> int:
        """The number of requests."""
        ...

    @property
    def tokens(self) -> int:
        """The total input and output tokens that cost money."""
        ...

    def broken(self) -> AbstractContextManager[None]:
        """Fail all requests in the meantime."""
        ...


class Used(NamedTuple):
    """Usage and cost in dollars of models, by role, where known."""

    usage: Mapping[str, Usage] = MappingProxyType({})
    cost_usd: Mapping[str, float] = MappingProxyType({})


class Memory(ABC):
    """A memory of one conversation. A subclass must define `add` and `search`. Without `reset`, the instance is recreated.

    Calls never overlap and run under Trio. Raise AgentError for errors that end the conversation and InputError for wrong options.
    """

    takes_target: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    """Whether a search returns the newest turns, oldest first, regardless of the query and of `k`."""

    keeps: ClassVar[bool] = True
    """Whether it keeps anything. A memory that keeps nothing is a floor for comparisons."""

    at_door: ClassVar[bool] = True
    """Whether a new run checks it first (see `conformance`). Built-in memories need no check."""

    lender: Lender | None = None
    """The lender of its model and embedder, if longspan lends them."""

    tells_turns: ClassVar[bool] = True
    """Whether the memories found always have `turns`. If not, missing turns are inferred from the wording."""

    _made_of: tuple[tuple[Any, ...], dict[str, Any]]

    class Options(AgentOptions):
        """No options."""

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._made_of = arguments, named
        return made

    @classmethod
    def make(cls, target: str, options: AgentOptions) -> Memory:
        """Create a memory. A kind whose options decide what runs the memory may return another class's instance."""
        return cls(target, options)

    @classmethod
    def defaults_here(cls, options: AgentOptions) -> Mapping[str, str]:
        """Return the options whose defaults depend on what is installed here."""
        return {}

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst that an untrusted spec could make the memory do (see `BaseAgent.danger`). The default is to run code."""
        return "run"

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        if target and not self.takes_target:
            raise InputError(f"memory {type(self).__name__.lower()} takes no target, got {target!r:.60}")
        self.target = target

    @property
    def has_snapshots(self) -> bool:
        """Whether the class overrides both `save` and `load`."""
        return type(self).save is not Memory.save and type(self).load is not Memory.load

    @property
    def read_only_search(self) -> bool:
        """Whether `search` changes nothing. If not, the memory is loaded again for each question about a history."""
        return False

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models that cost money, as PROVIDER/MODEL by role ("embedder"): empty if it costs nothing, None if unknown."""
        return {}

    def without_model(self) -> Memory | None:
        """Return this memory without models that cost money, for estimates; None if impossible."""
        return None

    def used(self) -> Used:
        """Return its models' usage since the last call. The default is nothing."""
        return Used()

    async def start(self) -> None:  # noqa: B027
        """Prepare for use. The default does nothing."""

    @abstractmethod
    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        """Store turns, oldest first, at the virtual time `at`. Return the memories made from them, None if unknown.

        Each returned memory has `turns` and a unique `id`.
        """

    @abstractmethod
    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        """Return at most `k` memories for a query at the virtual time `at`, best first. Memories beyond `k` are counted but not used."""

    async def settle(self) -> None:  # noqa: B027
        """Wait until everything added can be found. The default returns immediately."""

    @property
    def consolidates(self) -> bool:
        """Whether the class overrides `consolidate`."""
        return type(self).consolidate is not Memory.consolidate

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        """Consolidate the stored memories in a virtual night that ends at `at`.

        Return the memories made from others as `add` does, None if unknown. The default raises NotImplementedError.
        """
        raise NotImplementedError

    @property
    def forgets(self) -> bool:
        """Whether the class overrides `forget`."""
        return type(self).forget is not Memory.forget

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        """Forget a subject on the user's request at the virtual time `at`. Return the memories removed, None if unknown.

        `text` names the subject in the user's words: the message up to the request. If the message says only "forget that", `text` is the
        previous message. All earlier turns have been added. The default raises NotImplementedError.
        """
        raise NotImplementedError

    async def size(self) -> int | None:
        """Return the size of the memory in bytes, None if unknown. The default saves a snapshot to find out."""
        return await measure_snapshot(self.save) if self.has_snapshots else None

    async def reset(self) -> None:
        """Forget everything. The default closes the memory and recreates it with the same arguments."""
        arguments, named = self._made_of
        await self.close()
        vars(self).clear()
        self._made_of = arguments, named
        type(self).__init__(self, *arguments, **named)
        await self.start()

    async def save(self, folder: Path) -> None:  # noqa: B027
        """Write the state into `folder`. The default does nothing."""

    async def load(self, folder: Path) -> None:  # noqa: B027
        """Replace the state with the one saved in `folder`. Raises AgentError if it cannot be read. The default does nothing."""

    async def close(self) -> None:  # noqa: B027
        """Release all resources. The default does nothing."""
