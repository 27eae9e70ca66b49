"""Keeping the scratchpad: turns that are no longer recent go to the core, which notes what will be needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, final

from longspan.agents.memory.ltm.calls import Calls
from longspan.agents.memory.ltm.fragments import Count, Turn
from longspan.agents.memory.ltm.history import History
from longspan.agents.memory.ltm.prompts import prompt, stamped
from longspan.agents.memory.ltm.scratchpad import Pad
from longspan.agents.models.chat import cut_middle
from longspan.agents.models.core import ChatMessage

__all__ = ["Notes"]

FRAME: Final = 16
"""Tokens that a message's frame may take."""


@final
class Notes:
    """A scratchpad, and the blocks of turns that are still to be noted, oldest first.

    A block is noted in calls of its own, of at most `most` tokens each, that show it and the notes alone. So the notes follow
    from the turns and the core's answers: when a block is noted, at once or after a break, changes nothing.
    """

    def __init__(self, pad: Pad, history: History, most: int, count: Count) -> None:
        self.pad = pad
        self.blocks: deque[range] = deque()
        self._history = history
        self._most = most
        self._count = count

    def add(self, numbers: range) -> None:
        """Have a block of turns noted, next time."""
        self.blocks.append(numbers)

    def restore(self, text: str, blocks: Sequence[tuple[int, int]], left: int) -> None:
        """Become notes with this text, and these blocks, of the `left` turns that are no longer recent, still to be noted.
        Raises ValueError where they cannot be."""
        ends = [end for block in blocks for end in block]
        if blocks and (ends != sorted(ends) or ends[0] < 0 or ends[-1] != left or any(first >= end for first, end in blocks)):
            raise ValueError(f"{blocks!r:.80} are not the blocks that were last to leave, {left} turns in all")
        self.pad.restore(text)
        self.blocks = deque(range(first, end) for first, end in blocks)

    @property
    def frame(self) -> int:
        """Tokens of a prompt without what is noted and what is shown."""
        return self._count(prompt(self.pad.template, notes="", messages="", most=self.pad.most)) + FRAME

    async def take(self, calls: Calls) -> bool:
        """Note all blocks. Returns whether there were any. Never fails: an answer that is of no use changes nothing."""
        taken = bool(self.blocks)
        while self.blocks:
            for messages in self._portions(self._turns(self.blocks[0])):
                text = prompt(self.pad.template, notes=self.pad.text, messages=messages, most=self.pad.most)
                answer = await calls.inner("notes", [ChatMessage("user", text)])
                problem = self.pad.update(answer) if answer is not None else None
                if problem:
                    calls.problem(problem)
            self.blocks.popleft()
        return taken

    def worst(self, more: int) -> tuple[int, int]:
        """How many calls, with how many tokens of prompts at most, it takes to note all blocks and turns of `more` tokens."""
        tokens = more + sum(self._count(self._told(turn)) + FRAME for block in self.blocks for turn in self._turns(block))
        calls = len(self.blocks) + 1 + 2 * tokens // self._room
        return calls, tokens + calls * (self.frame + self.pad.most)

    @property
    def _room(self) -> int:
        """Tokens of turns that one call shows."""
        return max(1, self._most - self.frame - self.pad.most)

    def _turns(self, block: range) -> Sequence[Turn]:
        return self._history.turns[block.start : block.stop]

    def _portions(self, turns: Sequence[Turn]) -> Iterator[str]:
        """What was said in turns, in portions that one call can show. Of a turn that is larger the middle is left out."""
        held: list[str] = []
        room = self._room
        for turn in turns:
            told = self._told(turn)
            tokens = self._count(told) + 1
            if tokens > self._room:
                told = cut_middle(told, self._room, self._count)
                tokens = self._room
            if held and tokens > room:
                yield "\n".join(held)
                held, room = [], self._room
            held.append(told)
            room -= tokens
        yield "\n".join(held)

    def _told(self, turn: Turn) -> str:
        return f"{stamped(turn.text, turn.sent_at)}\nAssistant: {turn.reply}"
