"""The conversation's turns, and which of them are recent enough for prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

from longspan.agents.memory.turns import Turn
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.window import Eviction, Window

__all__ = ["History", "PromptTurn"]


class PromptTurn(NamedTuple):
    """A turn as prompts show it, and its tokens."""

    user: ChatMessage
    assistant: ChatMessage
    tokens: int


@final
class History:
    """All turns, numbered from 0. The recent ones and the next message have at most `max_tokens` tokens.

    Which turns are recent depends only on the turns, not on whether the agent answered or observed them. An agent that replays turns when
    resuming therefore reaches the same state.
    """

    def __init__(self, max_tokens: int, eviction: Eviction, show: Callable[[Turn], PromptTurn]) -> None:
        self._window: Window[PromptTurn] = Window(max_tokens, eviction)
        self._show = show
        self.clear()

    def clear(self) -> None:
        """Forget all turns."""
        self.turns: list[Turn] = []
        self._numbers: dict[str, int] = {}
        self._window.clear()

    @property
    def max_tokens(self) -> int:
        return self._window.max_tokens

    @property
    def recent_tokens(self) -> int:
        return self._window.used

    @property
    def first_recent(self) -> int:
        """The number of the oldest recent turn, equal to the number of turns that left the window."""
        return len(self.turns) - len(self._window)

    def recent(self) -> Iterator[ChatMessage]:
        """Return the messages of recent turns, oldest first."""
        return (message for turn in self._window for message in (turn.user, turn.assistant))

    def find(self, turn_id: str) -> Turn | None:
        """Return the finished turn with this id, None if unknown."""
        number = self._numbers.get(turn_id)
        return None if number is None else self.turns[number]

    def make_room(self, tokens: int) -> range:
        """Drop the oldest turns from the window until `tokens` more fit. Return their numbers."""
        before = self.first_recent
        self._window.make_room(tokens)
        return range(before, self.first_recent)

    def drop_block(self) -> range:
        """Drop a block of the oldest turns from the window. Return their numbers."""
        before = self.first_recent
        self._window.drop_block()
        return range(before, self.first_recent)

    def add(self, turn: Turn) -> int:
        """Add the newest turn. Return its number."""
        number = len(self.turns)
        self._remember(turn)
        shown = self._show(turn)
        self._window.add(shown, shown.tokens)
        return number

    def restore(self, turns: Sequence[Turn], first_recent: int) -> None:
        """Restore a history of `turns`, recent from `first_recent` on. Raises ValueError if they are inconsistent."""
        self.clear()
        if not 0 <= first_recent <= len(turns):
            raise ValueError(f"{first_recent} of {len(turns)} turns cannot have left the window")
        for turn in turns[:first_recent]:
            self._remember(turn)
        for turn in turns[first_recent:]:
            self.add(turn)
        if len(self._numbers) < len(turns):
            raise ValueError("a turn occurs twice")

    def _remember(self, turn: Turn) -> None:
        self._numbers[turn.turn_id] = len(self.turns)
        self.turns.append(turn)
