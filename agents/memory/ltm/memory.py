"""Long-term memory: fragments of turns, found again by what they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from longspan.agents.base import AgentError
from longspan.agents.memory.ltm.embedders import THREADS, Embedder
from longspan.agents.memory.ltm.fragments import Fragment
from longspan.agents.memory.ltm.index import Index

if TYPE_CHECKING:
    from longspan.agents.memory.ltm.embedders import Vectors

__all__ = ["Found", "Memories"]

WAITING: Final = 128
"""Fragments that may wait to be embedded together. None waits when something is looked for."""


class Found(NamedTuple):
    """A memory: the fragments that say the same, oldest first, and the cosine by which it was found."""

    number: int
    fragments: Sequence[Fragment]
    score: float

    @property
    def newest(self) -> Fragment:
        return self.fragments[-1]


@final
class Memories:
    """Fragments, embedded in batches in the order in which they were added.

    With `dedupe`, fragments whose texts differ in nothing but case and white space are one memory: nothing is lost, since it
    knows all its times, and it takes one place of the few that are shown. What says nearly the same is kept apart: a number
    or a name that has changed is what many questions are about.

    `tokens` counts what the embedder's provider counted; take it and set it to 0. Calls may not overlap.
    """

    def __init__(self, embedder: Embedder, index: Index, *, dedupe: bool = True) -> None:
        self._embedder = embedder
        self._index = index
        self._dedupe = dedupe
        self._forget()

    def _forget(self) -> None:
        self._memories: list[list[Fragment]] = []
        self._known: dict[bytes, int] = {}
        self._embedded = 0
        self._vectors = bytearray()
        self._dimensions = 0
        self.tokens = 0

    def __len__(self) -> int:
        return len(self._memories)

    @property
    def waiting(self) -> list[str]:
        """The texts that are still to be embedded."""
        return [memory[0].text for memory in self._memories[self._embedded :]]

    async def open(self) -> None:
        """Make contact with the database. Raises AgentError."""
        await trio.to_thread.run_sync(self._index.open, limiter=THREADS)

    async def reset(self) -> None:
        """Forget everything."""
        self._forget()
        await trio.to_thread.run_sync(self._index.clear, limiter=THREADS)

    async def add(self, fragments: Sequence[Fragment]) -> None:
        """Remember fragments. Raises AgentError where they cannot be embedded or stored."""
        for fragment in fragments:
            self._note(fragment)
        if len(self._memories) - self._embedded >= WAITING:
            await self.flush()

    async def flush(self) -> None:
        """Embed and store what waits for it. Raises AgentError."""
        texts = self.waiting
        if texts:
            vectors, tokens = await self._embedder.embed(texts)
            self.tokens += tokens
            await self._store(_rounded(vectors))

    async def search(self, queries: Sequence[str], most: int) -> list[Found]:
        """At most `most` memories that have to do with any of the queries (cosine above 0), nearest first; of those as near the
        newest. Raises AgentError."""
        await self.flush()
        if not self._memories or not queries or not most:
            return []
        vectors, tokens = await self._embedder.embed(queries)
        self.tokens += tokens
        nearest = await trio.to_thread.run_sync(self._index.nearest, vectors, limiter=THREADS)
        scores: dict[int, float] = {}
        for number, score in (each for found in nearest for each in found):
            if not 0 <= number < len(self._memories):
                raise AgentError(f"Chroma knows of a memory {number} that was never stored: another program writes its collection")
            scores[number] = max(round(score, 6), scores.get(number, 0.0))
        best = sorted((number for number, score in scores.items() if score > 0), key=lambda number: (-scores[number], -number))[:most]
        return [Found(number, tuple(self._memories[number]), scores[number]) for number in best]

    async def vectors(self) -> bytes:
        """All vectors, two bytes a number, in the order of the memories; with their fragments what `restore` needs."""
        await self.flush()
        return bytes(self._vectors)

    async def restore(self, fragments: Sequence[Fragment], vectors: bytes) -> None:
        """Become the memory of `fragments` with these vectors. Raises ValueError where they do not belong together."""
        import numpy as np

        await self.reset()
        for fragment in fragments:
            self._note(fragment)
        if not self._memories:
            if vectors:
                raise ValueError("there are vectors and nothing that they stand for")
            return
        dimensions, rest = divmod(len(vectors), 2 * len(self._memories))
        if rest or not dimensions:
            raise ValueError(f"{len(vectors)} bytes of vectors do not fit {len(self._memories)} memories")
        found = np.frombuffer(vectors, dtype="<f2").astype(np.float32).reshape(len(self._memories), dimensions)
        if not np.isfinite(found).all() or not found.any(axis=1).all():
            raise ValueError("a vector is not one of numbers, or has no direction")
        await self._store(found)

    def _note(self, fragment: Fragment) -> None:
        number = len(self._memories)
        if self._dedupe:
            said = " ".join(fragment.text.casefold().split()).encode("utf-8", "replace")
            number = self._known.setdefault(hashlib.blake2b(said, digest_size=16).digest(), number)
        if number < len(self._memories):
            self._memories[number].append(fragment)
        else:
            self._memories.append([fragment])

    async def _store(self, vectors: Vectors) -> None:
        if self._dimensions not in (0, vectors.shape[1]):
            raise AgentError(f"embedder {self._embedder.name} made vectors of {self._dimensions} and of {vectors.shape[1]} numbers")
        await trio.to_thread.run_sync(self._index.add, self._embedded, vectors, limiter=THREADS)
        self._dimensions = vectors.shape[1]
        self._vectors += vectors.astype("<f2").tobytes()
        self._embedded += len(vectors)


def _rounded(vectors: Vectors) -> Vectors:
    """Vectors as they will be read back from two bytes a number, so that a copy finds what the original finds."""
    import numpy as np

    rounded: Vectors = vectors.astype("<f2").astype(np.float32)
    return rounded
