"""A model of providers' prompt caches.

OpenAI and Google find the longest prefix that an earlier prompt had too, in steps of 128 tokens. Anthropic writes prefixes that
end at a mark, and reads those that end at a mark or at one of the 20 blocks before it. The minimum is 1,024 tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.loopback.apis import Block

__all__ = ["Cache"]

MIN_TOKENS = 1024
STEP = 128
LOOKBACK = 20


class Cache:
    """The prefixes of all prompts so far. `marks`: caches as Anthropic does, else as OpenAI and Google do."""

    def __init__(self, marks: bool) -> None:
        self._marks = marks
        self._seen: set[int] = set()

    def look_up(self, blocks: Sequence[Block], sizes: Sequence[int]) -> tuple[int, int]:
        """Return a prompt's tokens that are read from the cache, and those written to it."""
        chain, total = [], 0
        digest = 0
        for block, size in zip(blocks, sizes, strict=True):
            digest, total = hash((digest, block.role, block.text)), total + size
            chain.append((digest, total))
        return self._by_marks(blocks, chain) if self._marks else self._by_prefix(chain)

    def _by_prefix(self, chain: list[tuple[int, int]]) -> tuple[int, int]:
        known = max((total for digest, total in chain if digest in self._seen), default=0)
        self._seen.update(digest for digest, _ in chain)
        return (known // STEP * STEP if known >= MIN_TOKENS else 0), 0

    def _by_marks(self, blocks: Sequence[Block], chain: list[tuple[int, int]]) -> tuple[int, int]:
        marked = [n for n, block in enumerate(blocks) if block.marked and chain[n][1] >= MIN_TOKENS]
        looked_at = {n - back for n in marked for back in range(LOOKBACK) if n >= back}
        read = max((chain[n][1] for n in looked_at if chain[n][0] in self._seen), default=0)
        self._seen.update(chain[n][0] for n in marked)
        written = max((chain[n][1] for n in marked), default=0)
        return read, max(0, written - read)
