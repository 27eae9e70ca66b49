"""The API for writing memories: what stores turns and finds them again.

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
from longspan.simulator.contract.agent import saved_size
from longspan.simulator.subject.ledger import Rates

__all__ = ["Extent", "Lender", "Memory", "MemoryItem", "Used"]

Extent = Literal["", "whole", "part"]
"""How much of a memory's text its inferred turns explain: the whole, or a part, so that it may come from other turns as well. Empty if
nothing was inferred."""


@final
@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory that was stored or found.

    `turns`: the ids of the turns that it comes from, where these are known. `score`: how well it fits the query, the higher the
    better. `at`: when it was said or last changed, in virtual time. `derived`: the text was made from what was said, such as a summary or
    a fact that a model extracted, and need not have its words. `inferred`: the memory named no turns, and longspan inferred `turns` from
    its wording (see `Extent`).
    """

    text: str
    turns: tuple[str, ...] = ()
    score: float | None = None
    id: str | None = None
    at: datetime | None = None
    derived: bool = False
    inferred: Extent = ""


class Lender(Protocol):
    """What lends a memory its model and its embedder."""

    @property
    def asked(self) -> int:
        """How often it was asked for something."""
        ...

    @property
    def tokens(self) -> int:
        """How many tokens that cost something have been read and written so far."""
        ...

    def broken(self) -> AbstractContextManager[None]:
        """Fail whatever is asked for meanwhile."""
        ...


class Used(NamedTuple):
    """What models used, by role, and what that cost in dollars, where it is known."""

    usage: Mapping[str, Usage] = MappingProxyType({})
    cost_usd: Mapping[str, float] = MappingProxyType({})


class Memory(ABC):
    """A memory of one conversation. A subclass has to write `add` and `search`, and a memory without `reset` is made anew.

    Calls never overlap, and run under Trio. Errors that end the conversation are raised as AgentError, wrong options as InputError.
    """

    takes_target: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    """Whether a search returns the newest turns, oldest first and up to the last, regardless of the query and of `k`."""

    keeps: ClassVar[bool] = True
    """Whether it keeps anything. One that does not is a floor."""

    at_door: ClassVar[bool] = True
    """Whether a new run checks it first (see `conformance`). longspan's own need no check."""

    lender: Lender | None = None
    """What lends it a model and an embedder, if longspan does."""

    tells_turns: ClassVar[bool] = True
    """Whether the memories found always have their `turns`. If not, missing ones are inferred from the wording."""

    _made_of: tuple[tuple[Any, ...], dict[str, Any]]

    class Options(AgentOptions):
        """No options."""

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._made_of = arguments, named
        return made

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst that a stranger could have the memory do, as for an agent (`BaseAgent.danger`). The default is to run code."""
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
        """Whether `search` leaves everything as it was. If not, the memory is loaded again for each question about a history."""
        return False

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models that cost money, as PROVIDER/MODEL by role ("embedder"): empty if it costs nothing, None if unknown."""
        return {}

    def without_model(self) -> Memory | None:
        """Return this memory without models that cost money, for estimates; None if that cannot be done."""
        return None

    def used(self) -> Used:
        """Return what its models used since this was last called. The default is nothing."""
        return Used()

    async def start(self) -> None:  # noqa: B027
        """Get ready. The default does nothing."""

    @abstractmethod
    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        """Store turns that took place, oldest first, at the virtual time `at`. Return the memories made of them, None if unknown.

        Each has its `turns`, and an `id` that no other has.
        """

    @abstractmethod
    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        """Return at most `k` memories for a query that is asked at the virtual time `at`, best first. Those beyond `k` are counted, and not
        used."""

    async def settle(self) -> None:  # noqa: B027
        """Return once all that was added can be found. The default returns at once."""

    @property
    def consolidates(self) -> bool:
        """Whether the class overrides `consolidate`."""
        return type(self).consolidate is not Memory.consolidate

    async def consolidate(self, at: datetime) -> Sequence[MemoryItem] | None:
        """Consolidate the stored memories, in a virtual night that is over at `at`. Return the memories made from others, None if
        unknown. They have the same form as the result of `add`. The default raises NotImplementedError.
        """
        raise NotImplementedError

    @property
    def forgets(self) -> bool:
        """Whether the class overrides `forget`."""
        return type(self).forget is not Memory.forget

    async def forget(self, text: str, at: datetime) -> Sequence[MemoryItem] | None:
        """Forget what the user asks to be forgotten at the virtual time `at`. Return the memories that are gone, None if unknown.

        `text` names the subject in the user's own words: the message up to the request, or the message before, if it says no more than
        "forget that". Everything said before has been added. The default raises NotImplementedError.
        """
        raise NotImplementedError

    async def size(self) -> int | None:
        """Return how many bytes the memory keeps, None if unknown. The default saves a snapshot to find out."""
        return await saved_size(self.save) if self.has_snapshots else None

    async def reset(self) -> None:
        """Forget everything. The default closes the memory and makes it anew with the same arguments."""
        arguments, named = self._made_of
        await self.close()
        vars(self).clear()
        self._made_of = arguments, named
        type(self).__init__(self, *arguments, **named)
        await self.start()

    async def save(self, folder: Path) -> None:  # noqa: B027
        """Write everything into `folder`. The default does nothing."""

    async def load(self, folder: Path) -> None:  # noqa: B027
        """Restore the state saved in `folder`, and drop the present one. Raises AgentError if it cannot be read. The default does
        nothing."""

    async def close(self) -> None:  # noqa: B027
        """Release all resources. The default does nothing."""
