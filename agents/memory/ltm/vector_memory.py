"""Long-term memory: fragments of turns, retrieved by meaning."""

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

__all__ = ["Memories", "ScoredMemory"]

MAX_WAITING: Final = 128
"""The maximum fragments that wait to be embedded together. A search embeds them first."""

EXACT: Final = 1000
"""Up to this number of memories, each is compared with the query. Chroma's search is approximate: after a restore, it once missed one of a
hundred memories that it had found before.
"""


class ScoredMemory(NamedTuple):
    """A search result: the fragments of a memory, which have the same text, oldest first, and its cosine with the query."""

    number: int
    fragments: Sequence[Fragment]
    score: float

    @property
    def newest(self) -> Fragment:
        return self.fragments[-1]


@final
class Memories:
    """Fragments, embedded in batches in the order they were added.

    With `dedupe`, fragments whose texts differ only in case and white space form one memory. It keeps all times, so nothing is lost, and
    takes only one of the few places in a prompt. Nearly identical fragments stay separate: many questions are about a number or a name that
    has changed.

    `tokens` sums the provider's counts for the embedder; the caller resets it to 0. Calls must not overlap.
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
        self.dimensions = 0
        self.tokens = 0

    def __len__(self) -> int:
        return len(self._memories)

    @property
    def waiting(self) -> list[str]:
        """The texts waiting to be embedded."""
        return [memory[0].text for memory in self._memories[self._embedded :]]

    async def open(self) -> None:
        """Connect to the database. Raises AgentError."""
        await trio.to_thread.run_sync(self._index.open, limiter=THREADS)

    async def reset(self) -> None:
        """Forget everything."""
        self._forget()
        await trio.to_thread.run_sync(self._index.clear, limiter=THREADS)

    async def add(self, fragments: Sequence[Fragment]) -> None:
        """Add fragments. Raises AgentError if they cannot be embedded or stored."""
        for fragment in fragments:
            self._note(fragment)
        if len(self._memories) - self._embedded >= MAX_WAITING:
            await self.flush()

    async def flush(self) -> None:
        """Embed and store all waiting fragments. Raises AgentError."""
        texts = self.waiting
        if texts:
            vectors, tokens = await self._embedder.embed(texts)
            self.tokens += tokens
            await self._store(_round_vectors(vectors))

    async def search(self, queries: Sequence[str], limit: int) -> list[ScoredMemory]:
        """Return at most `limit` memories with a cosine above 0 to any of the queries, nearest first, newest first among equals.

        Raises AgentError.
        """
        await self.flush()
        if not self._memories or not queries or not limit:
            return []
        vectors, tokens = await self._embedder.embed(queries)
        self.tokens += tokens
        if self._index.is_here and self._embedded <= EXACT:
            nearest = self._compare(vectors)
        else:
            nearest = await trio.to_thread.run_sync(self._index.nearest, vectors, limiter=THREADS)
        scores: dict[int, float] = {}
        for number, score in (pair for pairs in nearest for pair in pairs):
            if not 0 <= number < len(self._memories):
                raise AgentError(f"Chroma returned a memory {number} that was never stored: another program writes to its collection")
            scores[number] = max(round(score, 6), scores.get(number, 0.0))
        best = sorted((number for number, score in scores.items() if score > 0), key=lambda number: (-scores[number], -number))[:limit]
        return [ScoredMemory(number, tuple(self._memories[number]), scores[number]) for number in best]

    def _compare(self, queries: Vectors) -> list[list[tuple[int, float]]]:
        """Return the number and cosine of every memory, for each query."""
        import numpy as np

        known = np.frombuffer(bytes(self._vectors), dtype="<f2").astype(np.float64).reshape(self._embedded, self.dimensions)
        asked = queries.astype(np.float64)
        lengths = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(known, axis=1)
        cosines = asked @ known.T / np.maximum(lengths, np.finfo(np.float64).tiny)
        return [list(enumerate(row)) for row in cosines.tolist()]

    async def vectors(self) -> bytes:
        """Return all vectors as 16-bit floats, in the order of the memories. `restore` needs them and the fragments."""
        await self.flush()
        return bytes(self._vectors)

    async def restore(self, fragments: Sequence[Fragment], vectors: bytes, dimensions: int) -> None:
        """Restore the memories of `fragments` with vectors of `dimensions` dimensions. Raises ValueError if the two do not match."""
        import numpy as np

        await self.reset()
        for fragment in fragments:
            self._note(fragment)
        if not self._memories:
            if vectors:
                raise ValueError("there are vectors without memories")
            return
        if not dimensions or len(vectors) != 2 * dimensions * len(self._memories):
            raise ValueError(f"{len(vectors)} bytes of vectors do not match {len(self._memories)} memories of {dimensions} dimensions")
        array = np.frombuffer(vectors, dtype="<f2").astype(np.float32).reshape(len(self._memories), dimensions)
        if not np.isfinite(array).all() or not array.any(axis=1).all():
            raise ValueError("a vector is zero or not finite")
        await self._store(array)

    def _note(self, fragment: Fragment) -> None:
        number = len(self._memories)
        if self._dedupe:
            text = " ".join(fragment.text.casefold().split()).encode("utf-8", "replace")
            number = self._known.setdefault(hashlib.blake2b(text, digest_size=16).digest(), number)
        if number < len(self._memories):
            self._memories[number].append(fragment)
        else:
            self._memories.append([fragment])

    async def _store(self, vectors: Vectors) -> None:
        if self.dimensions not in (0, vectors.shape[1]):
            raise AgentError(f"embedder {self._embedder.name} gave vectors of {self.dimensions} and of {vectors.shape[1]} dimensions")
        await trio.to_thread.run_sync(self._index.add, self._embedded, vectors, limiter=THREADS)
        self.dimensions = vectors.shape[1]
        self._vectors += vectors.astype("<f2").tobytes()
        self._embedded += len(vectors)


def _round_vectors(vectors: Vectors) -> Vectors:
    """Round vectors to 16-bit floats, as snapshots store them, so that a restored agent finds the same memories."""
    import numpy as np

    rounded: Vectors = vectors.astype("<f2").astype(np.float32)
    return rounded
