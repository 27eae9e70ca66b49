"""The window of a conversation in a model's prompts: the newest turns that fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, Literal, TypeVar, final

__all__ = ["BLOCK", "Eviction", "Window"]

Item = TypeVar("Item")

Eviction = Literal["block", "sliding"]
"""How a full window makes room: `block` drops the oldest quarter, `sliding` only the oldest item."""

BLOCK: Final = 0.25
"""A block's share of the window's tokens. After a block is dropped, prompts start the same way for many turns, so providers read the start
from their cache. If turns are dropped one by one, each prompt starts differently.
"""


@final
class Window(Generic[Item]):
    """The newest items that fit into `max_tokens` tokens, oldest first.

    The caller counts an item once, when adding it. Dropping takes time proportional to the items dropped, for any length of the
    conversation.
    """

    def __init__(self, max_tokens: int, eviction: Eviction = "block") -> None:
        self.max_tokens = max_tokens
        self.eviction = eviction
        self.used = 0
        self._items: deque[tuple[Item, int]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return (item for item, _ in self._items)

    def add(self, item: Item, tokens: int) -> None:
        """Add the newest item, which has `tokens` tokens."""
        self._items.append((item, tokens))
        self.used += tokens

    def make_room(self, tokens: int) -> None:
        """Drop items until `tokens` more fit. If they do not fit even alone, drop everything."""
        while self._items and self.used + tokens > self.max_tokens:
            if self.eviction == "block":
                self.drop_block()
            else:
                self._drop()

    def drop_block(self) -> None:
        """Drop a block of the oldest items."""
        end = self.used * (1 - BLOCK)
        while self._items and self.used > end:
            self._drop()

    def keep(self, items: int) -> None:
        """Drop all but the newest `items`."""
        while len(self._items) > items:
            self._drop()

    def copy(self) -> Window[Item]:
        """Return a window with the same items."""
        copied = Window[Item](self.max_tokens, self.eviction)
        copied.used, copied._items = self.used, self._items.copy()
        return copied

    def clear(self) -> None:
        """Drop all items."""
        self._items.clear()
        self.used = 0

    def _drop(self) -> None:
        self.used -= self._items.popleft()[1]
