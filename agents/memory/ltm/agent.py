"""ltm: the memory agent of the paper (GoodAI, section 4.2), around any core.

    ltm/openai/gpt-4o?memory=json&context=16k

Prompts begin with what stays the same from turn to turn: the system message and the recent turns, to which each turn is
added and of which a block leaves at once. What is new each time comes last: notes, memories and the message. So a
provider that caches prefixes reads most of every prompt from its cache, and a local model has computed it already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply, Usage
from longspan.agents.memory.ltm import trace
from longspan.agents.memory.ltm.budget import FRAME, QUERIES, Budget
from longspan.agents.memory.ltm.calls import Calls
from longspan.agents.memory.ltm.embedders import THREADS, DryEmbedder, Embedder, make_embedder
from longspan.agents.memory.ltm.fragments import Fragment, Turn, fragments, pieces
from longspan.agents.memory.ltm.history import History, Shown
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.memory import Found, Memories
from longspan.agents.memory.ltm.notes import Notes
from longspan.agents.memory.ltm.options import LtmOptions, make_core
from longspan.agents.memory.ltm.prompts import ago, prompt, stamped
from longspan.agents.memory.ltm.scratchpad import make_pad
from longspan.agents.memory.ltm.snapshot import Saved, State, read, write
from longspan.agents.models.chat import cut_middle
from longspan.agents.models.core import ChatMessage, ContextOverflowError, Core, clean
from longspan.agents.models.dry import DryCore
from longspan.simulator.errors import one_line
from longspan.simulator.grading.lenient_json import find_json

__all__ = ["DryLtm", "LtmAgent", "MemoryAgent"]

QUERY: Final = 300
"""Characters of what the core looks for, at most."""

TIMES: Final = 3
"""Of the times at which a memory was said, so many are told: the newest."""

OVERFLOWS: Final = 4
"""How often a block is dropped and the core asked again because its prompt was too long after all."""

MARGIN: Final = 256
"""Tokens that a provider may add to a prompt on its own."""

HIGH: Final = 2.0
"""How many of a provider's tokens one of ours is believed to be, at most."""


class MemoryAgent(BaseAgent):
    """Asks `core` with recent turns, and with what it remembers of older ones.

    A turn that is no longer recent is put into the vector database, in pieces, and noted: see `Memories` and `Notes`.
    Raises InputError for a context that the core does not have.
    """

    takes_target = True

    def __init__(self, core: Core, options: LtmOptions, embedder: Embedder, index: Index, target: str = "") -> None:
        super().__init__(target)
        self.core = core
        self.options = options
        system = prompt("system", notes=options.memory != "semantic")
        self.budget = Budget.of(core, options, system)
        self._system = ChatMessage("system", system)
        self._embedder = embedder
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
    def models(self) -> Mapping[str, str]:
        """The models that are paid for: not one that runs in this process."""
        core = {} if self.core.name.startswith("gguf/") else {"agent": self.core.name}
        return core | ({"embedder": self._embedder.model} if self._embedder.model else {})

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """The most that answering `message` can use."""
        said = self._history.recent_tokens + self._size(stamped(message.text, message.sent_at))
        calls, tokens = (1, self.budget.context)
        if self._notes is not None:
            noting, more = self._notes.worst(said)
            calls, tokens = noting + 2, more + 2 * self.budget.context
        worst = {"agent": Usage(round(tokens * self._ratio) + calls * MARGIN, 0, calls * self.core.most_output)}
        if self._embedder.model:
            waiting = sum(map(self.core.count, self.memories.waiting))
            worst["embedder"] = Usage(self.memories.tokens + 2 * (waiting + said) + QUERIES * QUERY + MARGIN)
        return worst

    def without_model(self) -> DryLtm:
        """This agent with a model that says what it is told to, and an embedder that asks nobody: for estimates."""
        embedder = DryEmbedder(self._embedder.model, self.core.count)
        return DryLtm(DryCore(self.core), self.options, embedder, Index(), self.target)

    async def start(self) -> None:
        await self.memories.open()

    async def reply(self, message: Message) -> Reply:
        over = self._history.find(message.turn_id)
        if over is not None:
            return Reply(over.reply)  # the same request again: nothing more was used
        told = self._check_size(message)
        calls = Calls(self.core)
        text = self._user(message)
        await self._leave(self._history.make_room(self._size(text)))
        if self._notes is not None and await self._notes.take(calls):
            told["notes"] = self._notes.pad.text
        queries = await self._queries(calls, text)
        found = await self.memories.search([*self._like(message), *queries], self.options.memories)
        answer = await self._ask(calls, message, self._fitting(found), told)
        number = self._history.add(Turn(message.turn_id, clean(message.text), message.sent_at, answer))
        told |= {"queries": queries, "written": trace.written(self._fragments(number)), "calls": calls.made}
        return Reply(answer, calls.usage, told, self._embedded())

    async def observe(self, message: Message, reply: str) -> None:
        if self._history.find(message.turn_id) is None:
            await self._leave(self._history.make_room(self._size(self._user(message))))
            self._history.add(Turn(message.turn_id, clean(message.text), message.sent_at, clean(reply)))

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
            ratio=self._ratio,
        )
        await trio.to_thread.run_sync(write, folder, Saved(state, self._history.turns, vectors), limiter=THREADS)

    async def load(self, folder: Path) -> None:
        saved = await trio.to_thread.run_sync(read, folder, limiter=THREADS)
        state = saved.state
        if state.made_with != self._made_with:
            raise AgentError(f"{folder}: a snapshot of agent ltm with other options: {state.made_with}; it is now {self._made_with}")
        await self.reset()
        try:
            self._history.restore(saved.turns, state.left)
            remembered = []
            for number in range(state.left):
                remembered += self._fragments(number)
                await trio.lowlevel.checkpoint()  # counting all of a long conversation takes a second
            await self.memories.restore(remembered, saved.vectors)
            if self._notes is not None:
                self._notes.restore(state.notes, state.blocks, state.left)
        except (ValueError, RecursionError) as error:
            await self.reset()
            raise AgentError(f"{folder}: not a snapshot of agent ltm: {one_line(error)}") from error
        self.memories.tokens, self._ratio = state.tokens, state.ratio

    @property
    def _made_with(self) -> dict[str, Any]:
        """What decides which turns are recent, and what becomes of the others."""
        names = ("memory", "chunk", "overlap", "dedupe", "eviction")
        return {"embedder": self._embedder.name, "room": self.budget.conversation} | {name: getattr(self.options, name) for name in names}

    # One message, and one turn.

    def _size(self, text: str) -> int:
        return self.core.count(text) + self.core.overhead

    def _user(self, message: Message | Turn) -> str:
        """A message as prompts show it: with its time, and without its middle where it is larger than all the room there is."""
        text = stamped(clean(message.text), message.sent_at)
        if self._size(text) <= self._history.most:
            return text
        return cut_middle(text, self._history.most - self.core.overhead, self.core.count)

    def _show(self, turn: Turn) -> Shown:
        user = self._user(turn)
        return Shown(ChatMessage("user", user), ChatMessage("assistant", turn.reply), self._size(user) + self._size(turn.reply))

    def _check_size(self, message: Message) -> dict[str, Any]:
        """The beginning of a trace, which tells of a message that is cut. Raises AgentError where it may not be."""
        whole = self._size(stamped(clean(message.text), message.sent_at))
        if whole <= self._history.most:
            return {}
        if self.options.overflow == "error":
            raise AgentError(
                f"{self.core.name}: one message of {whole:,} tokens is larger than the whole window of {self._history.most:,}: "
                "take a larger context=, or overflow=truncate"
            )
        return {"truncated": {"from": whole, "to": self._size(self._user(message))}}

    # What is no longer recent.

    async def _leave(self, numbers: range) -> None:
        """Remember turns that have just left the window, and have them noted."""
        if numbers:
            await self.memories.add([fragment for number in numbers for fragment in self._fragments(number)])
            if self._notes is not None:
                self._notes.add(numbers)

    def _fragments(self, number: int) -> list[Fragment]:
        return fragments(number, self._history.turns[number], self.core.count, self.options.chunk, self.options.overlap)

    def _like(self, message: Message) -> list[str]:
        """What is like a message: itself, or the beginning and the end of one that is longer than what is remembered."""
        parts = pieces(clean(message.text), self.core.count, self.options.chunk, 0)
        return parts if len(parts) < 3 else [parts[0], parts[-1]]

    async def _queries(self, calls: Calls, text: str) -> list[str]:
        """What the core wants to look for: the message in other words, and what it does not say itself."""
        if self._notes is None or not len(self.memories):
            return []
        request = prompt("queries", notes=self._notes.pad.text, message=text, most=QUERIES)
        answer = await calls.inner("queries", self._prompt(request))
        if answer is None:
            return []
        given = [found.value.get("queries") for found in find_json(answer[:10_000]) if isinstance(found.value, dict)]
        wanted = given[-1] if given and isinstance(given[-1], list) else None
        if wanted is None:
            calls.problem("no queries in the answer")
            return []
        return [each[:QUERY] for each in wanted if isinstance(each, str) and each.strip()][:QUERIES]

    def _fitting(self, found: Sequence[Found]) -> list[Found]:
        """The memories that there is room for, the best first; then in the order of time."""
        room, kept = self.budget.memories, []
        for memory in found:
            tokens = self.core.count(memory.newest.text) + FRAME
            if tokens <= room:
                room -= tokens
                kept.append(memory)
        return sorted(kept, key=lambda memory: (memory.newest.sent_at, memory.number))

    # The core.

    def _prompt(self, last: str) -> list[ChatMessage]:
        return [self._system, *self._history.recent(), ChatMessage("user", last)]

    async def _ask(self, calls: Calls, message: Message, found: Sequence[Found], told: dict[str, Any]) -> str:
        """The core's answer. A prompt that is too long for it after all is made shorter, a few times."""
        memories = [{"when": _when(memory, message), "text": memory.newest.text} for memory in found]
        notes = self._notes.pad.text if self._notes else ""
        last = prompt("ask", notes=notes, memories=memories, message=self._user(message))
        for attempt in range(OVERFLOWS + 1):
            tokens = self._size(self._system.text) + self._history.recent_tokens + self._size(last)
            try:
                completion = await calls.reply(self._prompt(last))
            except ContextOverflowError:
                if attempt == OVERFLOWS or self._history.first_recent == len(self._history.turns):
                    raise
                await self._leave(self._history.drop_block())
            else:
                break
        self._ratio = min(HIGH, max(self._ratio, completion.usage.input_tokens / tokens))
        told |= {"prompt_tokens": tokens, "recent": self._recent(), "read": trace.read(found)}
        return completion.text

    def _recent(self) -> dict[str, Any]:
        """Which turns the prompt showed: how many, and from which on."""
        first, turns = self._history.first_recent, self._history.turns
        return {"turns": len(turns) - first, "since": turns[first].turn_id if first < len(turns) else None}

    def _embedded(self) -> dict[str, Usage]:
        """What the embedder used since the last reply, where that costs something."""
        tokens, self.memories.tokens = self.memories.tokens, 0
        return {"embedder": Usage(tokens)} if tokens and self._embedder.model else {}


@final
class LtmAgent(MemoryAgent):
    """A chat model with a long-term memory: a vector database, and notes that the model keeps."""

    class Options(LtmOptions):
        """The agent's; what it does not know is its model's."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, LtmOptions) else LtmOptions()
        core = make_core(target, settings)
        embedder = make_embedder(settings.embedder, settings.embedder_url)
        super().__init__(core, settings, embedder, Index(settings.chroma_url), target)


@final
class DryLtm(MemoryAgent):
    """A memory agent without its model, for estimates: it answers what it is told to, and counts what asking would have used."""

    def __init__(self, core: DryCore, options: LtmOptions, embedder: Embedder, index: Index, target: str) -> None:
        super().__init__(core, options, embedder, index, target)
        self._dry = core

    def prompt(self, ideal: str) -> None:
        """The next reply is to be `ideal`."""
        self._dry.reply = ideal


def _when(memory: Found, message: Message) -> str:
    """How long before a message a memory was said, each time."""
    times = [ago(fragment.sent_at, message.sent_at) for fragment in memory.fragments[-TIMES:]]
    more = f"{len(memory.fragments)} times, last " if len(memory.fragments) > TIMES else ""
    return more + " and ".join(dict.fromkeys(times))
