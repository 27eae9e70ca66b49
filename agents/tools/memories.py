"""The memories that a model stores with tools, and the memories that results show, for reports on where a memory was lost.

Tools report neither, so both are inferred. The arguments of a call that may store something count as one memory. A result shows a memory if
it contains nearly all of its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.words import plain

__all__ = ["Memories", "Memory", "cut_for_trace"]

SHARE: Final = 0.8
"""The share of a memory's words that a result must contain to show it."""

MAX_SHOWN: Final = 200
"""The maximum memories attributed to a result; the newest count."""

MAX_TEXT: Final = 300
"""The maximum characters of a memory in a trace."""

MAX_WORDS: Final = 2000
"""The maximum words of a memory that are matched."""


class Memory(NamedTuple):
    """A memory and the turn that stored it."""

    id: str
    turn: str
    text: str


@final
class Memories:
    """The memories stored in a conversation, oldest first."""

    def __init__(self) -> None:
        self._kept: list[tuple[Memory, frozenset[str]]] = []

    def __iter__(self) -> Iterator[Memory]:
        return (memory for memory, _ in self._kept)

    def keep(self, memory: Memory) -> None:
        """Add an existing memory."""
        self._kept.append((memory, frozenset(plain(memory.text).split()[:MAX_WORDS])))

    def store(self, turn: str, arguments: Any) -> dict[str, Any] | None:
        """Store a call's arguments as a memory of `turn`. Return it as a trace lists it, None if the arguments contain no text."""
        text = " ".join(_texts(arguments))
        if not text.strip():
            return None
        memory = Memory(f"{turn}/{len(self._kept)}", turn, text)
        self.keep(memory)
        return {"id": memory.id, "text": cut_for_trace(text)}

    def find_shown(self, text: str) -> list[dict[str, Any]]:
        """Return the memories that a result shows, as a trace lists them. They are inferred from shared words."""
        words = set(plain(text).split())
        shown = [(memory, wanted) for memory, wanted in self._kept if wanted and len(wanted & words) >= SHARE * len(wanted)]
        explained = words & {word for _, wanted in shown for word in wanted}
        extent = "whole" if len(explained) >= SHARE * len(words) else "part"
        return [
            {"id": memory.id, "turns": [memory.turn], "text": cut_for_trace(memory.text), "inferred": extent}
            for memory, _ in shown[-MAX_SHOWN:]
        ]


def cut_for_trace(text: str) -> str:
    """Return `text`, or its start if it is too long for a trace."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings and numbers in JSON."""
    left = [value]
    while left:
        match left.pop():
            case bool() | None:
                pass
            case dict() as inner:
                left += reversed(inner.values())
            case list() as inner:
                left += reversed(inner)
            case leaf:
                yield str(leaf)
