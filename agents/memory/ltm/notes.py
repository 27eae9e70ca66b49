"""Updates of the scratchpad: the core notes important content of turns that are no longer recent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, final

from longspan.agents.memory.calls import Calls
from longspan.agents.memory.ltm.fragments import Count
from longspan.agents.memory.ltm.prompt_history import History
from longspan.agents.memory.ltm.prompts import render_prompt
from longspan.agents.memory.ltm.scratchpad import Pad
from longspan.agents.memory.turns import Turn
from longspan.agents.models.chat import cut_middle
from longspan.agents.models.core import ChatMessage, stamp_message

__all__ = ["Notes"]

FRAME: Final = 16
"""The maximum tokens that frame a message."""


@final
class Notes:
    """A scratchpad, and the blocks of turns that wait to be noted, oldest first.

    A block is noted in separate calls of at most `max_tokens` tokens, which contain only the block and the notes. The notes thus depend
    only on the turns and the core's answers, not on when a block is noted.
    """

    def __init__(self, pad: Pad, history: History, max_tokens: int, count: Count) -> None:
        self.pad = pad
        self.blocks: deque[range] = deque()
        self._history = history
        self._max_tokens = max_tokens
        self._count = count

    def add(self, numbers: range) -> None:
        """Queue a block of turns."""
        self.blocks.append(numbers)

    def restore(self, text: str, blocks: Sequence[tuple[int, int]], left: int) -> None:
        """Restore the notes' text and the waiting blocks. `left` is the number of turns that left the window.

        Raises ValueError if these are inconsistent.
        """
        ends = [end for block in blocks for end in block]
        if blocks and (ends != sorted(ends) or ends[0] < 0 or ends[-1] != left or any(first >= end for first, end in blocks)):
            raise ValueError(f"{blocks!r:.80} are not the last blocks of the {left} turns that left the window")
        self.pad.restore(text)
        self.blocks = deque(range(first, end) for first, end in blocks)

    @property
    def frame(self) -> int:
        """Tokens of a prompt without notes and turns."""
        return self._count(render_prompt(self.pad.template, notes="", messages="", most=self.pad.max_tokens)) + FRAME

    async def note_blocks(self, calls: Calls) -> bool:
        """Note all blocks. Return whether there were any. Never fails: an unusable answer changes nothing."""
        any_blocks = bool(self.blocks)
        while self.blocks:
            for messages in self._portions(self._turns(self.blocks[0])):
                text = render_prompt(self.pad.template, notes=self.pad.text, messages=messages, most=self.pad.max_tokens)
                answer = await calls.inner_call("notes", [ChatMessage("user", text)])
                problem = self.pad.update(answer) if answer is not None else None
                if problem:
                    calls.problem(problem)
            self.blocks.popleft()
        return any_blocks

    def worst_case(self, more: int) -> tuple[int, int]:
        """Return the maximum calls, and tokens of their prompts, for noting all blocks plus turns of `more` tokens."""
        tokens = more + sum(self._count(self._render(turn)) + FRAME for block in self.blocks for turn in self._turns(block))
        calls = len(self.blocks) + 1 + 2 * tokens // self._room
        return calls, tokens + calls * (self.frame + self.pad.max_tokens)

    @property
    def _room(self) -> int:
        """The maximum tokens of turns in one call."""
        return max(1, self._max_tokens - self.frame - self.pad.max_tokens)

    def _turns(self, block: range) -> Sequence[Turn]:
        return self._history.turns[block.start : block.stop]

    def _portions(self, turns: Sequence[Turn]) -> Iterator[str]:
        """Yield the turns' texts in portions for one call each. A turn that is too large has its middle cut."""
        texts: list[str] = []
        room = self._room
        for turn in turns:
            text = self._render(turn)
            tokens = self._count(text) + 1
            if tokens > self._room:
                text = cut_middle(text, self._room, self._count)
                tokens = self._room
            if texts and tokens > room:
                yield "\n".join(texts)
                texts, room = [], self._room
            texts.append(text)
            room -= tokens
        yield "\n".join(texts)

    def _render(self, turn: Turn) -> str:
        return f"{stamp_message(turn.text, turn.sent_at)}\nAssistant: {turn.reply}"
