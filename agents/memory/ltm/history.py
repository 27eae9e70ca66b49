"""The turns of the conversation: all of them, and which are recent enough to be shown in every prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

from longspan.agents.memory.ltm.fragments import Turn
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.window import Eviction, Window

__all__ = ["History", "Shown"]


class Shown(NamedTuple):
    """A turn as prompts show it, and its tokens."""

    user: ChatMessage
    assistant: ChatMessage
    tokens: int


@final
class History:
    """All turns, by their number: 0, 1, 2... The recent ones, with the next message, have at most `most` tokens.

    Which are recent follows from the turns alone, not from whether they were asked or told of. So an agent that is shown
    turns again, after a break, is where it was.
    """

    def __init__(self, most: int, eviction: Eviction, show: Callable[[Turn], Shown]) -> None:
        self._window: Window[Shown] = Window(most, eviction)
        self._show = show
        self.clear()

    def clear(self) -> None:
        """Forget all turns."""
        self.turns: list[Turn] = []
        self._numbers: dict[str, int] = {}
        self._window.clear()

    @property
    def most(self) -> int:
        return self._window.most

    @property
    def recent_tokens(self) -> int:
        return self._window.used

    @property
    def first_recent(self) -> int:
        """The number of the oldest turn that is recent; how many no longer are."""
        return len(self.turns) - len(self._window)

    def recent(self) -> Iterator[ChatMessage]:
        """What prompts show, oldest first."""
        return (message for shown in self._window for message in (shown.user, shown.assistant))

    def find(self, turn_id: str) -> Turn | None:
        """The turn with this id, if it is over."""
        number = self._numbers.get(turn_id)
        return None if number is None else self.turns[number]

    def make_room(self, tokens: int) -> range:
        """Let the oldest turns leave until `tokens` more fit in. Returns their numbers."""
        before = self.first_recent
        self._window.make_room(tokens)
        return range(before, self.first_recent)

    def drop_block(self) -> range:
        """Let the oldest turns leave, a block. Returns their numbers."""
        before = self.first_recent
        self._window.drop_block()
        return range(before, self.first_recent)

    def add(self, turn: Turn) -> int:
        """Add the newest turn. Returns its number."""
        number = len(self.turns)
        self._remember(turn)
        shown = self._show(turn)
        self._window.add(shown, shown.tokens)
        return number

    def restore(self, turns: Sequence[Turn], first_recent: int) -> None:
        """Become a history of `turns`, recent from `first_recent` on. Raises ValueError where that cannot be."""
        self.clear()
        if not 0 <= first_recent <= len(turns):
            raise ValueError(f"{first_recent} turns of {len(turns)} cannot have left")
        for turn in turns[:first_recent]:
            self._remember(turn)
        for turn in turns[first_recent:]:
            self.add(turn)
        if len(self._numbers) < len(turns):
            raise ValueError("a turn is there twice")

    def _remember(self, turn: Turn) -> None:
        self._numbers[turn.turn_id] = len(self.turns)
        self.turns.append(turn)
