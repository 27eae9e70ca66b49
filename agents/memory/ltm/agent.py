"""The memory agent of the paper (GoodAI, section 4.2), around any core.

    ltm/openai/gpt-4o?memory=json&context=16k

A prompt starts with the stable parts: the system message and the recent turns, which are dropped in whole blocks. Notes, memories and the
message change each time and come last. A provider that caches prefixes thus reads most of every prompt from its cache, and a local model
has already computed it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Danger, Message, Reply, Usage
from longspan.agents.memory.calls import Calls
from longspan.agents.memory.ltm import reply_trace
from longspan.agents.memory.ltm.budget import FRAME, MAX_QUERIES, Budget
from longspan.agents.memory.ltm.embedders import (
    THREADS,
    DryEmbedder,
    Embedder,
    choose_embedder_option,
    default_embedder,
    embedder_address,
    embedder_danger,
    make_embedder,
    tell_meaning,
)
from longspan.agents.memory.ltm.fragments import Fragment, split_text, split_turn
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.notes import Notes
from longspan.agents.memory.ltm.options import LtmOptions, core_of
from longspan.agents.memory.ltm.prompt_history import History, PromptTurn
from longspan.agents.memory.ltm.prompts import format_age, render_prompt
from longspan.agents.memory.ltm.scratchpad import make_pad
from longspan.agents.memory.ltm.snapshot import Snapshot, State, read_snapshot, write_snapshot
from longspan.agents.memory.ltm.vector_memory import Memories, ScoredMemory
from longspan.agents.memory.turns import Turn
from longspan.agents.models.chat import cut_middle
from longspan.agents.models.core import (
    ChatMessage,
    ContextOverflowError,
    Core,
    clean_unicode,
    core_at_once,
    core_danger,
    core_environment,
    costs_nothing,
    more_room,
    stamp_message,
)
from longspan.agents.models.dry import DryCore
from longspan.agents.models.model_speed import pace_of
from longspan.agents.models.openai import OPENAI
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.contract.agent import Pace, worst_danger
from longspan.simulator.subject.ledger import Rates

__all__ = ["DryLtm", "LtmAgent", "MemoryAgent"]

MAX_QUERY: Final = 300
"""The maximum characters of a query."""

MAX_TIMES: Final = 3
"""The maximum number of a memory's times in a prompt, newest first."""

OVERFLOWS: Final = 4
"""The maximum retries of a prompt that exceeds the provider's limit. Each retry drops a block of turns."""

MARGIN: Final = 256
"""Tokens that a provider may add to a prompt."""

MAX_RATIO: Final = 2.0
"""The maximum ratio of a provider's count of a prompt to ours."""


class MemoryAgent(BaseAgent):
    """An agent that prompts `core` with recent turns and memories of older ones.

    Turns that are no longer recent are stored as pieces in the vector database, and noted: see `Memories` and `Notes`. Raises InputError if
    the context exceeds the core's window.
    """

    takes_target = True

    def __init__(self, core: Core, options: LtmOptions, embedder: Embedder, index: Index, target: str = "") -> None:
        super().__init__(target)
        self.core = core
        self.options = options
        system = render_prompt("system", notes=options.memory != "semantic")
        self.budget = Budget.of(core, options, system)
        self._system = ChatMessage("system", system)
        self.embedder = embedder
        self.memories = Memories(embedder, index, dedupe=options.dedupe)
        self._history = History(self.budget.conversation, options.eviction, self._show)
        self._notes = self._new_notes()
        self._ratio = 1.0

    def _new_notes(self) -> Notes | None:
        kind = self.options.memory
        if kind == "semantic":
            return None
        return Notes(make_pad(kind, self.budget.notes, self.core.count), self._history, self.budget.context, self.core.count)

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The models that cost money. A model that runs in this process is free."""
        core: dict[str, str | Rates] = {} if costs_nothing(self.core) else {"agent": self.core.priced_as}
        return core | ({"embedder": self.embedder.model} if self.embedder.model else {})

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """Return the maximum tokens for answering `message`."""
        new = self._history.recent_tokens + self._size(stamp_message(message.text, message.sent_at))
        calls, tokens = (1, self.budget.context)
        if self._notes is not None:
            noting, more = self._notes.worst_case(new)
            calls, tokens = noting + 2, more + 2 * self.budget.context
        usage = {"agent": Usage(round(tokens * self._ratio) + calls * MARGIN, 0, calls * self.core.max_output)}
        if self.embedder.model:
            waiting = sum(map(self.core.count, self.memories.waiting))
            usage["embedder"] = Usage(self.memories.tokens + 2 * (waiting + new) + MAX_QUERIES * MAX_QUERY + MARGIN)
        return usage

    async def pace(self) -> Pace | None:
        """Time the model if it runs in this process."""
        return await pace_of(self.core)

    def without_model(self) -> DryLtm:
        """Return this agent without its model and embedder, for estimates."""
        embedder = DryEmbedder(self.embedder.model, self.core.count)
        return DryLtm(DryCore(self.core), self.options, embedder, Index(), self.target)

    async def start(self) -> None:
        await self.memories.open()

    async def reply(self, message: Message) -> Reply:
        finished = self._history.find(message.turn_id)
        if finished is not None:
            return Reply(finished.reply)  # a repeated request uses nothing more
        trace_fields = self._check_size(message)
        calls = Calls(self.core)
        text = self._display(message)
        await self._archive(self._history.make_room(self._size(text)))
        if self._notes is not None and await self._notes.note_blocks(calls):
            trace_fields["notes"] = self._notes.pad.text
        queries = await self._queries(calls, text)
        memories = await self.memories.search([*self._pieces_like(message), *queries], self.options.memories)
        answer = await self._ask(calls, message, self._fit_memories(memories), trace_fields)
        number = self._history.add(Turn(message.turn_id, clean_unicode(message.text), message.sent_at, answer))
        trace_fields |= {"queries": queries, "written": reply_trace.trace_fragments(self._fragments(number)), "calls": calls.records}
        if calls.refusal is not None:
            trace_fields["refusal"] = calls.refusal
        return Reply(answer, calls.usage, trace_fields, self._take_usage(), refused=calls.refusal is not None)

    @property
    def pays_to_observe(self) -> bool:
        """Whether its embedder costs money."""
        return bool(self.embedder.model)

    async def observe(self, message: Message, reply: str) -> Reply | None:
        if self._history.find(message.turn_id) is None:
            await self._archive(self._history.make_room(self._size(self._display(message))))
            self._history.add(Turn(message.turn_id, clean_unicode(message.text), message.sent_at, clean_unicode(reply)))
        return self._account()

    async def replay(self, message: Message, reply: Reply) -> Reply | None:
        """Add a turn that was already answered. Its trace provides the notes, so that no note is written and paid for twice."""
        if self._history.find(message.turn_id) is None:
            told = reply_trace.parse_trace(reply.trace)
            await self._archive(self._history.make_room(self._size(self._display(message))))
            if self._notes is not None and told.notes is not None:
                self._notes.restore(told.notes, (), self._history.first_recent)
            await self.memories.flush()  # the original reply's search flushed too
            while told.recent.turns < len(self._history.turns) - self._history.first_recent:  # the provider had rejected a longer prompt
                await self._archive(self._history.drop_block())
            if told.calls:
                self._learn(told.calls[-1].usage.input_tokens, told.prompt_tokens)
            self._history.add(Turn(message.turn_id, clean_unicode(message.text), message.sent_at, clean_unicode(reply.text)))
        return self._account()

    async def settle(self) -> Reply | None:
        """Embed the stored fragments. Return the cost."""
        await self.memories.flush()
        return self._account()

    def _account(self) -> Reply | None:
        """Return the embedder's usage that no reply has reported."""
        used = self._take_usage()
        return Reply("", besides=used) if used else None

    async def reset(self) -> None:
        self._history.clear()
        self._notes = self._new_notes()
        self._ratio = 1.0
        await self.memories.reset()

    async def close(self) -> None:
        await self.memories.reset()

    async def save(self, folder: Path) -> None:
        vectors = await self.memories.vectors()
        state = State(
            made_with=self._made_with,
            left=self._history.first_recent,
            blocks=[(block.start, block.stop) for block in self._notes.blocks] if self._notes else [],
            notes=self._notes.pad.text if self._notes else "",
            tokens=self.memories.tokens,
            dimensions=self.memories.dimensions,
            ratio=self._ratio,
        )
        await trio.to_thread.run_sync(write_snapshot, folder, Snapshot(state, self._history.turns, vectors), limiter=THREADS)

    async def load(self, folder: Path) -> None:
        saved = await trio.to_thread.run_sync(read_snapshot, folder, limiter=THREADS)
        state = saved.state
        if state.made_with != self._made_with:
            raise AgentError(f"{folder}: a snapshot of agent ltm with other options: {state.made_with}; it is now {self._made_with}")
        await self.reset()
        try:
            self._history.restore(saved.turns, state.left)
            stored = []
            for number in range(state.left):
                stored += self._fragments(number)
                await trio.lowlevel.checkpoint()  # counting a long conversation takes a second
            await self.memories.restore(stored, saved.vectors, state.dimensions)
            if self._notes is not None:
                self._notes.restore(state.notes, state.blocks, state.left)
        except (ValueError, RecursionError) as error:
            await self.reset()
            raise AgentError(f"{folder}: not a snapshot of agent ltm: {one_line(error)}") from error
        self.memories.tokens, self._ratio = state.tokens, state.ratio

    @property
    def _made_with(self) -> dict[str, Any]:
        """The options that determine which turns are recent and how others are stored."""
        names = ("memory", "chunk", "overlap", "dedupe", "eviction")
        return {"embedder": self.embedder.name, "room": self.budget.conversation} | {name: getattr(self.options, name) for name in names}

    # Messages and turns.

    def _size(self, text: str) -> int:
        return self.core.count(text) + self.core.overhead

    def _display(self, message: Message | Turn) -> str:
        """Return a message as prompts show it: with its time, and with its middle cut if it exceeds the whole window."""
        text = stamp_message(clean_unicode(message.text), message.sent_at)
        if self._size(text) <= self._history.max_tokens:
            return text
        return cut_middle(text, self._history.max_tokens - self.core.overhead, self.core.count)

    def _show(self, turn: Turn) -> PromptTurn:
        user = self._display(turn)
        return PromptTurn(ChatMessage("user", user), ChatMessage("assistant", turn.reply), self._size(user) + self._size(turn.reply))

    def _check_size(self, message: Message) -> dict[str, Any]:
        """Return the trace's first field, how a message is cut. Raises AgentError if `overflow` forbids cutting."""
        size = self._size(stamp_message(clean_unicode(message.text), message.sent_at))
        if size <= self._history.max_tokens:
            return {}
        if self.options.overflow == "error":
            raise AgentError(
                f"{self.core.name}: a message of {size:,} tokens is larger than the whole window of {self._history.max_tokens:,}: "
                f"{more_room(self.core, self.budget.context)}, or overflow=truncate"
            )
        return {"truncated": {"from": size, "to": self._size(self._display(message))}}

    # Turns that are no longer recent.

    async def _archive(self, numbers: range) -> None:
        """Store turns that just left the window and queue them for the notes."""
        if numbers:
            await self.memories.add([fragment for number in numbers for fragment in self._fragments(number)])
            if self._notes is not None:
                self._notes.add(numbers)

    def _fragments(self, number: int) -> list[Fragment]:
        return split_turn(number, self._history.turns[number], self.core.count, self.options.chunk, self.options.overlap)

    def _pieces_like(self, message: Message) -> list[str]:
        """Return queries for text similar to a message: the message, or the first and last piece of a long one."""
        texts = split_text(clean_unicode(message.text), self.core.count, self.options.chunk, 0)
        return texts if len(texts) < 3 else [texts[0], texts[-1]]

    async def _queries(self, calls: Calls, text: str) -> list[str]:
        """Return the core's queries: paraphrases of the message, and things that it implies."""
        if self._notes is None or not len(self.memories):
            return []
        request = render_prompt("queries", notes=self._notes.pad.text, message=text, most=MAX_QUERIES)
        answer = await calls.inner_call("queries", self._prompt(request))
        if answer is None:
            return []
        values = [found.value.get("queries") for found in find_json(answer[:10_000]) if isinstance(found.value, dict)]
        queries = values[-1] if values and isinstance(values[-1], list) else None
        if queries is None:
            calls.problem("no queries in the answer")
            return []
        return [query[:MAX_QUERY] for query in queries if isinstance(query, str) and query.strip()][:MAX_QUERIES]

    def _fit_memories(self, memories: Sequence[ScoredMemory]) -> list[ScoredMemory]:
        """Return the best memories that fit into the budget, in order of time."""
        room, kept = self.budget.memories, []
        for memory in memories:
            tokens = self.core.count(memory.newest.text) + FRAME
            if tokens <= room:
                room -= tokens
                kept.append(memory)
        return sorted(kept, key=lambda memory: (memory.newest.sent_at, memory.number))

    # The core.

    def _prompt(self, last: str) -> list[ChatMessage]:
        return [self._system, *self._history.recent(), ChatMessage("user", last)]

    async def _ask(self, calls: Calls, message: Message, memories: Sequence[ScoredMemory], trace_fields: dict[str, Any]) -> str:
        """Return the core's answer. If the prompt exceeds the provider's limit, retry a few times with fewer turns."""
        dated = [{"when": _when(memory, message), "text": memory.newest.text} for memory in memories]
        notes = self._notes.pad.text if self._notes else ""
        last = render_prompt("ask", notes=notes, memories=dated, message=self._display(message))
        for attempt in range(OVERFLOWS + 1):
            tokens = self._size(self._system.text) + self._history.recent_tokens + self._size(last)
            try:
                completion = await calls.reply(self._prompt(last), self.options.on_refusal)
            except ContextOverflowError:
                if attempt == OVERFLOWS or self._history.first_recent == len(self._history.turns):
                    raise
                await self._archive(self._history.drop_block())
            else:
                break
        self._learn(completion.usage.input_tokens, tokens)
        trace_fields |= {
            "prompt_tokens": tokens,
            "recent": self._recent(),
            "read": reply_trace.trace_memories(sorted(memories, key=lambda memory: -memory.score)),
        } | completion.told
        return completion.text

    def _learn(self, counted: int, tokens: int) -> None:
        """Learn by how much the provider's count of a prompt exceeds ours."""
        self._ratio = min(MAX_RATIO, max(self._ratio, counted / tokens))

    def _recent(self) -> dict[str, Any]:
        """Return how many turns the prompt contained, and the first one's id."""
        first, turns = self._history.first_recent, self._history.turns
        return {"turns": len(turns) - first, "since": turns[first].turn_id if first < len(turns) else None}

    def _take_usage(self) -> dict[str, Usage]:
        """Return the embedder's usage since the last reply, if it costs money."""
        tokens, self.memories.tokens = self.memories.tokens, 0
        return {"embedder": Usage(tokens)} if tokens and self.embedder.model else {}


@final
class LtmAgent(MemoryAgent):
    """A chat model with a long-term memory: a vector database, and notes that the model keeps."""

    class Options(LtmOptions):
        """Options that are not declared here are the model's."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the worst danger of its model and embedder."""
        return worst_danger(core_danger(target, options), embedder_danger(options))

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return its model's limit of concurrent conversations."""
        return core_at_once(f"ltm/{target}", target, options.model_extra or {}, LtmOptions.model_fields)

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the addresses of its model and embedder that the environment sets."""
        if not isinstance(options, LtmOptions):
            return {}
        model = core_environment(f"ltm/{target}", target, options.model_extra or {}, LtmOptions.model_fields)
        return model | embedder_address(options.embedder or "", options.embedder_url)

    @classmethod
    def defaults_here(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the installed default embedder, unless the options name one or the model's provider has one."""
        if not isinstance(options, LtmOptions) or options.embedder is not None:
            return {}
        address = (options.model_extra or {}).get("base_url", OPENAI.url).rstrip("/")
        provider = target.replace(":", "/") if address == OPENAI.url else ""
        return choose_embedder_option() if default_embedder(provider) == "minilm" else {}

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, LtmOptions) else LtmOptions()
        core = core_of(target, settings)
        embedder = make_embedder(settings.embedder or default_embedder(core.name), settings.embedder_url)
        super().__init__(core, settings, embedder, Index(settings.chroma_url), target)
        tell_meaning(embedder)


@final
class DryLtm(MemoryAgent):
    """A memory agent without its model, for estimates: it gives prepared replies and counts the tokens that it would have used."""

    def __init__(self, core: DryCore, options: LtmOptions, embedder: Embedder, index: Index, target: str) -> None:
        super().__init__(core, options, embedder, index, target)
        self._dry = core

    def prompt(self, ideal: str) -> None:
        """Set the next reply."""
        self._dry.reply = ideal


def _when(memory: ScoredMemory, message: Message) -> str:
    """Return how long before a message a memory was said, for its newest times."""
    times = [format_age(fragment.sent_at, message.sent_at) for fragment in memory.fragments[-MAX_TIMES:]]
    more = f"{len(memory.fragments)} times, last " if len(memory.fragments) > MAX_TIMES else ""
    return more + " and ".join(dict.fromkeys(times))
