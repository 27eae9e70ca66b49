"""An agent that answers from a memory, named `memory/NAME?answerer=KIND/MODEL&k=20&batch=session`.

Turns are added to the memory in batches. Each message first adds all earlier turns, then searches the memory and asks the answerer with the
memories found. All memories use the same answerer prompt (`templates/answer.j2`), `k` and batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, Literal, final
from weakref import finalize

import trio
from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Danger, Message, Reply
from longspan.agents.memory import trace
from longspan.agents.memory.answerer import Answerer
from longspan.agents.memory.attributed import AttributedMemory
from longspan.agents.memory.batches import Batches
from longspan.agents.memory.conformance import Conformance
from longspan.agents.memory.forgetting import request_in
from longspan.agents.memory.memory import Memory, MemoryItem
from longspan.agents.memory.memory_kinds import (
    MemoryOptions,
    answerer_at_once,
    answerer_danger,
    answerer_environment,
    answerer_of,
    make_memory,
    memory_danger,
    memory_defaults,
    needs_check,
)
from longspan.agents.memory.pending import PendingAdditions
from longspan.agents.memory.reader import Reader
from longspan.agents.memory.turns import Turn, as_turn
from longspan.agents.models.core import Core, clean_unicode
from longspan.agents.models.dry import DryCore
from longspan.agents.models.model_speed import pace_of
from longspan.simulator.base.errors import first_problem
from longspan.simulator.contract.agent import Pace, worst_danger
from longspan.simulator.contract.findings import Examination
from longspan.simulator.subject.ledger import Rates

__all__ = ["AnsweringAgent", "MemoryAgent"]

STATE: Final = "state.json"
"""The snapshot file for everything outside the memory."""

MEMORY: Final = "memory"
"""The snapshot folder that the memory writes to."""

UNANSWERED: Final = "(not answered: the memory was only searched)"
"""The reply when there is no answerer."""


@final
class _State(BaseModel):
    """The contents of a snapshot, apart from the memory.

    `waiting`: turns not yet added. `last`: the last message answered, by turn id, and its reply. `since`: turns since the mark, None
    without a mark. `pending`: additions and costs not reported yet. `before`: the previous message, if the memory can forget. `unsaid`:
    whether the memory has not reported how it stored the turns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Literal[1] = 1
    memory: str
    waiting: list[list[str]]
    last: tuple[str, str] | None
    since: list[list[str]] | None
    pending: PendingAdditions
    before: str = ""
    unsaid: bool = False


class AnsweringAgent(BaseAgent):
    """An agent that answers with `answerer` from the memories that `memory` finds. Without an answerer, it only searches."""

    takes_target = True

    def __init__(self, memory: Memory, answerer: Answerer | Reader | None, options: MemoryOptions, target: str = "") -> None:
        super().__init__(target)
        self.options = options
        self.memory = memory
        self._answerer = answerer
        self._marked: Path | None = None
        self._discard_marked: finalize[[], AnsweringAgent] | None = None
        self._clear()

    def _clear(self) -> None:
        self._unmark()
        self._batches = Batches(self.options.batch)
        self._last: tuple[str, str] | None = None
        self._since: list[Turn] | None = None
        self._pending = PendingAdditions()
        self._before = ""
        self._unsaid = self._settled = False
        self.memory.used()  # drop the usage of a failed call: it belongs to no account

    @property
    def has_snapshots(self) -> bool:
        """Whether the memory supports snapshots."""
        return self.memory.has_snapshots

    @property
    def rewinds(self) -> bool:
        """Whether each question finds the memory as it was marked: searches do not change it, or it can be loaded again."""
        return self.memory.read_only_search or self.memory.has_snapshots

    @property
    def lacks(self) -> str:
        """The missing abilities that prevent `rewind`."""
        return "a memory with neither save and load nor `read_only_search = True`, which says that a search changes nothing"

    @property
    def models(self) -> Mapping[str, str | Rates] | None:
        """The models that cost money; None if unknown. Models that run in this process are free."""
        of_memory = self.memory.models
        if self._answerer is None:
            return of_memory
        return of_memory if of_memory is None and not self._answerer.models else {**(of_memory or {}), **self._answerer.models}

    @property
    def has_partial_models(self) -> bool:
        """Whether the models that the memory pays for are unknown."""
        return self.memory.models is None

    @property
    def without_model(self) -> Callable[[], DryMemoryAgent] | None:
        """A function that returns this agent without models, for estimates; None if the memory needs its models."""
        dry = self.memory.without_model()
        return None if dry is None else lambda: DryMemoryAgent(dry, self._answerer, self.options, self.target)

    async def pace(self) -> Pace | None:
        """Time the answerer if it runs in this process."""
        return await pace_of(self._answerer.core) if isinstance(self._answerer, Answerer) else None

    async def start(self) -> None:
        await self.memory.start()

    async def reply(self, message: Message) -> Reply:
        if self._last is not None and self._last[0] == message.turn_id:
            return Reply(self._last[1])  # a repeated request uses nothing more
        await self._catch_up()
        began = monotonic()
        found = await self.memory.search(clean_unicode(message.text), self.options.k, message.sent_at)
        seconds = monotonic() - began
        beyond = 0 if self.memory.whole else max(0, len(found) - self.options.k)
        found = found[: len(found) - beyond]
        if self._answerer is None:
            reply = Reply(UNANSWERED, trace={"answers": False} | self._trace_shown(found))
        else:
            answer = await self._answerer.answer(message, found, whole=self.memory.whole)
            reply = Reply(answer.text, answer.usage, {**answer.trace, **self._trace_shown(answer.shown)}, refused=answer.refused)
        searched = self.memory.used()
        await self._keep_turn(message, reply.text)
        told, self._pending = self._pending.make_report(searched, seconds), PendingAdditions()
        trace_fields = {**(reply.trace or {}), **({"beyond_k": beyond} if beyond else {}), **told.trace}
        return Reply(reply.text, reply.usage, trace_fields, told.usage, told.cost_usd or None, reply.refused, told.measured)

    def _trace_shown(self, items: Sequence[MemoryItem]) -> dict[str, Any]:
        """Return the trace of the memories shown and the number requested."""
        return {"k": self.options.k, **trace.trace_shown(items, whole=self.memory.whole)}

    @property
    def pays_to_observe(self) -> bool:
        """Whether adding turns may cost money."""
        return self.memory.models != {}

    async def observe(self, message: Message, reply: str) -> Reply | None:
        """Keep a turn. If it completes a batch, return the memories added and their cost."""
        await self._keep(Turn(message.turn_id, clean_unicode(message.text), message.sent_at, clean_unicode(reply)))
        return None if self._pending.is_empty else self._account()

    async def replay(self, message: Message, reply: Reply) -> Reply:
        """Repeat the additions that followed a message answered before an interruption. Return the cost."""
        await self._catch_up()
        await self._keep_turn(message, reply.text)
        return self._account()

    async def settle(self) -> Reply:
        """Add all turns so far and wait until they can be found. Later turns are not added. Return the cost."""
        await self._settle()
        self._since = []
        return self._account()

    def unreported(self) -> Reply:
        """Return the reported usage of a failed call's models."""
        return self._account()

    def _account(self) -> Reply:
        """Return everything not yet reported, and mark it as reported."""
        told, self._pending = self._pending.make_report(self.memory.used()), PendingAdditions()
        return Reply("", trace=dict(told.trace) or None, besides=told.usage, cost_usd=told.cost_usd or None, measured=told.measured)

    @property
    def consolidates(self) -> bool:
        """Whether the memory consolidates."""
        return self.memory.consolidates

    async def consolidate(self, at: datetime) -> Reply:
        """Add all turns so far and let the memory consolidate them."""
        await self._catch_up()
        made = await self.memory.consolidate(at)
        used = self.memory.used()
        written = [] if made is None else trace.trace_written((), made)
        return Reply("", trace={"written": written} if written else None, besides=used.usage, cost_usd=used.cost_usd or None)

    async def size(self) -> int | None:
        """Return the memory's size in bytes after adding all turns so far; None if unknown."""
        await self._catch_up()
        return await self.memory.size()

    async def mark(self) -> None:
        """Add all turns so far and freeze the memory: later turns are not added until the next mark.

        Searches may still change the memory; `rewind` undoes those changes.
        """
        if await self._settle():
            self._pending.spend(self.memory.used())
        else:
            await self._keep_marked()
        self._since = []

    async def rewind(self) -> None:
        """Return to the mark. If searches may have changed the memory, load it again."""
        self._since, self._last = [], None
        await self._bring_back()

    async def reset(self) -> None:
        self._clear()
        await self.memory.reset()

    async def close(self) -> None:
        self._unmark()
        await self.memory.close()

    async def save(self, folder: Path) -> None:
        state = _State(
            memory=self.target,
            waiting=[turn.entry for turn in self._batches.waiting],
            last=self._last,
            since=None if self._since is None else [turn.entry for turn in self._since],
            pending=self._pending,
            before=self._before,
            unsaid=self._unsaid,
        )
        inner = trio.Path(folder / MEMORY)
        await inner.mkdir()
        await self.memory.save(Path(inner))
        await trio.Path(folder / STATE).write_text(state.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        path = folder / STATE
        try:
            state = _State.model_validate_json(await trio.Path(path).read_bytes())
            waiting = [as_turn(entry) for entry in state.waiting]
            since = None if state.since is None else [as_turn(entry) for entry in state.since]
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of agent memory: {first_problem(error)}") from None
        except (OSError, ValueError) as error:
            raise AgentError(f"{path}: not a snapshot of agent memory: {error}") from error
        if state.memory != self.target:
            raise AgentError(f"{path}: a snapshot of memory {state.memory!r:.80}; it is now {self.target!r:.80}")
        self._clear()
        await self.memory.load(folder / MEMORY)
        self._batches.waiting = waiting
        self._since, self._last, self._pending, self._before = since, state.last, state.pending, state.before
        self._unsaid = state.unsaid

    async def _keep_turn(self, message: Message, reply: str) -> None:
        """Keep the turn of a message just answered. Without an answerer, it has no reply."""
        await self._keep(
            Turn(message.turn_id, clean_unicode(message.text), message.sent_at, clean_unicode(reply) if self._answerer is not None else "")
        )
        self._last = (message.turn_id, reply)

    async def _probe(self, memory: AttributedMemory) -> None:
        """Search for each turn to learn which turns are stored: a turn is stored if the search finds a memory made from it."""
        written: list[trace.Written] = []
        vague = False
        for turn in memory.turns:
            found = await memory.search(turn.document, self.options.k, memory.turns[-1].sent_at)
            sources = [item for item in found if turn.turn_id in item.turns]
            vague |= any(not item.turns for item in found)
            if sources:
                best = min(sources, key=lambda item: item.inferred != "")  # a turn id from the memory is stronger evidence than inference
                written.append({"id": f"probe/{turn.turn_id}", "turn": turn.turn_id, **trace.mark_inferred(best)})
            self._pending.until = turn.turn_id
        self._pending.written = [*(self._pending.written or ()), *written, *([dict(trace.UNKNOWN)] if vague else ())]

    async def _keep_marked(self) -> None:
        """Save the memory if it has snapshots and searches may change it."""
        self._unmark()
        if self.memory.has_snapshots and not self.memory.read_only_search:
            self._pending.spend(self.memory.used())  # or each load would report these costs again
            folder = TemporaryDirectory(prefix="longspan-")
            self._marked, self._discard_marked = Path(folder.name), finalize(self, folder.cleanup)  # even if never closed
            await self.memory.save(self._marked)

    async def _bring_back(self) -> None:
        """Load the marked memory, unless searches leave it unchanged."""
        if self._marked is not None:
            await self.memory.load(self._marked)

    def _unmark(self) -> None:
        if self._discard_marked is not None:
            self._discard_marked()
        self._marked = self._discard_marked = None

    async def _settle(self) -> bool:
        """Add all turns so far and wait until they can be found. Return whether this already saved the memory for the mark."""
        await self._add([*self._batches.take(), *(self._since or ())])
        self._since = None if self._since is None else []
        if not self._settled:
            began = monotonic()
            await self.memory.settle()
            self._pending.settle_s += monotonic() - began
            self._settled = True
        if not (self.options.probe and isinstance(self.memory, AttributedMemory) and self._unsaid):
            return False
        await self._keep_marked()
        await self._probe(self.memory)
        await self._bring_back()
        self._unsaid = False
        return True

    async def _catch_up(self) -> None:
        """Add all waiting turns before a search, unless the memory is marked."""
        if self._since is None:
            await self._add(self._batches.take())

    async def _keep(self, turn: Turn) -> None:
        """Keep a turn. If the memory honours its request to forget, keep only the rest of the message."""
        if self._since is not None:
            self._since.append(turn)
            return
        if self.memory.forgets:
            request, before, self._before = request_in(turn.text), self._before, turn.text
            if request is not None:
                await self._add(self._batches.take())
                gone = await self.memory.forget(request.text or before, turn.sent_at)
                self._pending.forget(gone, self.memory.used())
                if gone is None or gone:
                    turn = turn._replace(text=request.rest)
                    if not turn.text:
                        return
        await self._add(self._batches.put(turn))

    async def _add(self, turns: Sequence[Turn]) -> None:
        if not turns:
            return
        began = monotonic()
        made = await self.memory.add(turns, turns[-1].sent_at)
        self._pending.add(turns, made, self.memory.used(), monotonic() - began, unreported=self._unsaid)
        self._unsaid |= made is None or any(item.id is None or not item.turns for item in made)
        self._settled = False


@final
class MemoryAgent(AnsweringAgent):
    """A memory, and a model that answers from the memories found."""

    class Options(MemoryOptions):
        """Options that are not declared here are the memory's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, MemoryOptions) else MemoryOptions()
        memory = make_memory(target, settings)
        super().__init__(memory, answerer_of(target, settings), settings, target)

    @classmethod
    def examination(cls, target: str, options: AgentOptions) -> Examination:
        """Return the checks of the memory. A new run skips them for built-in memories and with `unchecked`."""
        settings = options if isinstance(options, MemoryOptions) else MemoryOptions()
        return Conformance(lambda: make_memory(target, settings), at_door=needs_check(target, settings))

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst danger of the memory and its answerer."""
        return worst_danger(memory_danger(target, options), answerer_danger(options))

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the answerer's limit of concurrent conversations."""
        return answerer_at_once(target, options) if isinstance(options, MemoryOptions) else None

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the answerer's address, if the environment sets it."""
        return answerer_environment(target, options) if isinstance(options, MemoryOptions) else {}

    @classmethod
    def defaults_here(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the memory's options whose defaults depend on the installed packages."""
        return memory_defaults(target, options) if isinstance(options, MemoryOptions) else {}


@final
class DryMemoryAgent(AnsweringAgent):
    """The agent without its models, for estimates: it gives prepared replies and counts the tokens that it would have used."""

    def __init__(self, memory: Memory, answerer: Answerer | Reader | None, options: MemoryOptions, target: str) -> None:
        self._dry = DryCore(answerer.core) if isinstance(answerer, Answerer) else None
        core: Core | None = self._dry
        super().__init__(memory, answerer if core is None else Answerer(core, options.context, options.on_refusal), options, target)

    def prompt(self, ideal: str) -> None:
        """Set the next reply."""
        if self._dry is not None:
            self._dry.reply = ideal
