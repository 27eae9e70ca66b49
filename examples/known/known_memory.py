"""A memory whose losses are known: it drops a share of the messages, or forgets them after some hours. It finds the rest with BM25."""

from datetime import timedelta
from hashlib import sha256

from longspan import Memory
from longspan.agents.memory.bm25 import Bm25


class Known(Memory):
    read_only_search = True

    def __init__(self, drop="0", hours="inf", seed="0"):
        self.drop, self.hours, self.seed = float(drop), float(hours), seed
        self.kept = Bm25()

    def drops(self, text):
        """Return whether a message is dropped. This depends on its text and the seed alone."""
        number = int.from_bytes(sha256(f"{self.seed}: {text}".encode()).digest()[:8])
        return number < self.drop * 2**64

    def forgets_after(self, passed):
        """Return whether a message is forgotten once so much time has passed."""
        return passed / timedelta(hours=1) > self.hours

    async def add(self, turns, at):
        return await self.kept.add([turn for turn in turns if not self.drops(turn.text)], at)

    async def search(self, query, k, at):
        found = await self.kept.search(query, len(self.kept.turns), at)
        return [item for item in found if not self.forgets_after(at - item.at)][:k]

    async def save(self, folder):
        await self.kept.save(folder)

    async def load(self, folder):
        await self.kept.load(folder)
