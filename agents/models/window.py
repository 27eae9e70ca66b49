"""What of a conversation a model is shown: the newest turns that fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, Literal, TypeVar, final

__all__ = ["BLOCK", "Eviction", "Window"]

Item = TypeVar("Item")

Eviction = Literal["block", "sliding"]
"""What goes when the window is full: `block`, the oldest quarter at once; `sliding`, the oldest item alone."""

BLOCK: Final = 0.25
"""The share of what is held that a block is. Dropped at once, the beginning of the prompt then stays the same for many turns,
and providers read it from their cache; dropped turn by turn, it is new each time."""


@final
class Window(Generic[Item]):
    """The newest items that fit into `most` tokens, oldest first.

    An item is counted once, by whoever adds it. What room is made for, and what is dropped, takes time by the items
    dropped alone, however long the conversation has been.
    """

    def __init__(self, most: int, eviction: Eviction = "block") -> None:
        self.most = most
        self.eviction = eviction
        self.used = 0
        self._items: deque[tuple[Item, int]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return (item for item, _ in self._items)

    def add(self, item: Item, tokens: int) -> None:
        """Add the newest item, of so many tokens."""
        self._items.append((item, tokens))
        self.used += tokens

    def make_room(self, tokens: int) -> None:
        """Drop what has to go for `tokens` more to fit in. Where they do not fit in alone, everything goes."""
        while self._items and self.used + tokens > self.most:
            if self.eviction == "block":
                self.drop_block()
            else:
                self._drop()

    def drop_block(self) -> None:
        """Drop the oldest items, a block of tokens together."""
        end = self.used * (1 - BLOCK)
        while self._items and self.used > end:
            self._drop()

    def clear(self) -> None:
        """Drop all items."""
        self._items.clear()
        self.used = 0

    def _drop(self) -> None:
        self.used -= self._items.popleft()[1]
