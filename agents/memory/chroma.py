"""A Chroma vector store over pieces of turns: the agent `ltm` without notes and window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, final

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.agents.base import AgentError, AgentOptions, Danger, Usage
from longspan.agents.memory.ltm.embedders import (
    THREADS,
    DryEmbedder,
    Embedder,
    choose_embedder_option,
    embedder_danger,
    make_embedder,
    tell_meaning,
)
from longspan.agents.memory.ltm.fragments import Fragment, split_text
from longspan.agents.memory.ltm.index import Index
from longspan.agents.memory.ltm.vector_memory import Memories
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.turns import Turn, read_turns, write_turns
from longspan.simulator.base.errors import first_problem, one_line
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.subject.ledger import Rates

__all__ = ["Chroma"]

TURNS: Final = "turns.jsonl"
VECTORS: Final = "vectors.f2"
STATE: Final = "chroma.json"
"""The snapshot files: turns, the vectors of their pieces as 16-bit floats, and the settings that produced them."""


@final
class _State(BaseModel):
    """The settings of a snapshot. `tokens`: embedder usage not reported yet."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    embedder: str
    chunk: int
    overlap: int
    dimensions: int = Field(ge=0)
    tokens: int = Field(ge=0)


@final
class Chroma(Memory):
    """Pieces of turns by their meaning, in a Chroma database."""

    read_only_search = True
    at_door = False

    class Options(AgentOptions):
        """`embedder`: makes vectors, by default `local` if it is installed, and `embedder_url` is its address. `chroma_url`: a Chroma
        server. `chunk`, `overlap`: tokens of a piece, and of its overlap with the one before."""

        embedder: str = "minilm"
        embedder_url: str | None = None
        chroma_url: str | None = None
        chunk: int = Field(default=200, ge=16, le=2000)
        overlap: int = Field(default=40, ge=0, le=2000)

        @model_validator(mode="after")
        def _overlap_is_at_most_half(self) -> Chroma.Options:
            if self.overlap > self.chunk // 2:
                raise ValueError(f"overlap={self.overlap} is more than half of chunk={self.chunk}")
            return self

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return the danger of its embedder."""
        return embedder_danger(options)

    @classmethod
    def defaults_here(cls, options: AgentOptions) -> Mapping[str, str]:
        """Return the installed default embedder, unless the options name one."""
        return {} if "embedder" in options.model_fields_set else choose_embedder_option()

    def __init__(self, target: str = "", options: AgentOptions | None = None, embedder: Embedder | None = None) -> None:
        super().__init__(target, options)
        self._options = options if isinstance(options, self.Options) else self.Options()
        self._embedder = embedder or make_embedder(self._options.embedder, self._options.embedder_url)
        self._memories = Memories(self._embedder, Index(self._options.chroma_url))
        tell_meaning(self._embedder)
        self._count = Tokenizer().count
        self._turns: list[Turn] = []

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The embedder, if it costs money."""
        return {"embedder": self._embedder.model} if self._embedder.model else {}

    def without_model(self) -> Memory:
        """Return this memory with an embedder that only counts tokens."""
        local = self._options.model_copy(update={"chroma_url": None})
        return Chroma("", local, DryEmbedder(self._embedder.model, self._count))

    def used(self) -> Used:
        """Return the embedder's usage."""
        tokens, self._memories.tokens = self._memories.tokens, 0
        return Used({"embedder": Usage(tokens)}) if tokens and self._embedder.model else Used()

    async def start(self) -> None:
        await self._memories.open()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem]:
        made = [fragment for number, turn in enumerate(turns, len(self._turns)) for fragment in self._fragments(number, turn)]
        self._turns += turns
        await self._memories.add(made)
        await self._memories.flush()
        return [MemoryItem(each.text, (each.turn_id,), None, each.id, each.sent_at) for each in made]

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        queries = split_text(query, self._count, self._options.chunk, 0)
        found = await self._memories.search(queries if len(queries) < 3 else [queries[0], queries[-1]], k)
        return [
            MemoryItem(each.newest.text, tuple(part.turn_id for part in each.fragments), each.score, each.newest.id, each.newest.sent_at)
            for each in found
        ]

    async def reset(self) -> None:
        self._turns = []
        await self._memories.reset()

    async def close(self) -> None:
        await self._memories.reset()

    async def save(self, folder: Path) -> None:
        vectors = await self._memories.vectors()
        state = _State(**self._made_with, dimensions=self._memories.dimensions, tokens=self._memories.tokens)

        def write() -> None:
            write_turns(folder / TURNS, self._turns)
            (folder / VECTORS).write_bytes(vectors)
            (folder / STATE).write_text(state.model_dump_json(), "utf-8")

        await trio.to_thread.run_sync(write, limiter=THREADS)

    async def load(self, folder: Path) -> None:
        def read() -> tuple[_State, list[Turn], bytes]:
            state = _State.model_validate_json((folder / STATE).read_bytes())
            return state, list(read_turns(folder / TURNS)), (folder / VECTORS).read_bytes()

        try:
            state, turns, vectors = await trio.to_thread.run_sync(read, limiter=THREADS)
            made_with = state.model_dump(include=set(self._made_with))
            if made_with != self._made_with:
                raise AgentError(f"{folder}: a snapshot of memory chroma with other options: {made_with}; it is now {self._made_with}")
            made = [fragment for number, turn in enumerate(turns) for fragment in self._fragments(number, turn)]
            await self._memories.restore(made, vectors, state.dimensions)
        except ValidationError as error:
            raise AgentError(f"{folder / STATE}: not a snapshot of memory chroma: {first_problem(error)}") from None
        except (OSError, ValueError) as error:
            raise AgentError(f"{folder}: not a snapshot of memory chroma: {one_line(error)}") from error
        self._turns, self._memories.tokens = turns, state.tokens

    @property
    def _made_with(self) -> dict[str, Any]:
        """The options that determine how turns are stored."""
        return {"embedder": self._embedder.name, "chunk": self._options.chunk, "overlap": self._options.overlap}

    def _fragments(self, number: int, turn: Turn) -> list[Fragment]:
        texts = split_text(turn.document, self._count, self._options.chunk, self._options.overlap)
        return [Fragment(f"{number}.{piece}", turn.turn_id, turn.sent_at, text) for piece, text in enumerate(texts)]
