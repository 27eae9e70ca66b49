"""BM25 and embeddings as one memory: both rank the turns, and reciprocal rank fusion joins their ranks (Cormack et al., 2009)."""

from collections import defaultdict

from longspan import Memory, MemoryItem
from longspan.agents.memory.bm25 import Bm25
from longspan.agents.memory.chroma import Chroma

SMOOTHING = 60
"""How little the first ranks are better than the next; 60 is the paper's."""


class Hybrid(Memory):
    read_only_search = True

    def __init__(self, embedder="local"):
        self.by_words, self.by_meaning = Bm25(), Chroma(options=Chroma.Options(embedder=embedder))

    async def start(self):
        await self.by_meaning.start()

    async def add(self, turns, at):
        await self.by_meaning.add(turns, at)
        return await self.by_words.add(turns, at)

    async def search(self, query, k, at):
        documents = {turn.turn_id: turn for turn in self.by_words.turns}
        scores = defaultdict(float)
        for memory in (self.by_words, self.by_meaning):
            turns = [turn for item in await memory.search(query, 2 * k, at) for turn in item.turns]
            for rank, turn in enumerate(dict.fromkeys(turns), 1):  # a turn may be found in several pieces
                scores[turn] += 1 / (SMOOTHING + rank)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:k]
        return [MemoryItem(documents[turn].document, (turn,), scores[turn], turn, documents[turn].sent_at) for turn in best]

    async def save(self, folder):
        for name, memory in (("words", self.by_words), ("meaning", self.by_meaning)):
            (folder / name).mkdir()
            await memory.save(folder / name)

    async def load(self, folder):
        await self.by_words.load(folder / "words")
        await self.by_meaning.load(folder / "meaning")

    async def close(self):
        await self.by_meaning.close()
