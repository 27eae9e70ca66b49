"""Turns in the format that memories receive, and files of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, final

__all__ = ["Turn", "as_turn", "message_in", "read_turns", "write_turns"]


@final
class Turn(NamedTuple):
    """A turn's message, virtual time without a time zone, and reply. `reply` may be empty."""

    turn_id: str
    text: str
    sent_at: datetime
    reply: str

    @property
    def document(self) -> str:
        """The turn's full text, with the speakers' roles if there is a reply."""
        return f"user: {self.text}\nassistant: {self.reply}" if self.reply else self.text

    @property
    def entry(self) -> list[str]:
        """The turn as JSON: see `as_turn`."""
        return [self.turn_id, self.text, self.sent_at.isoformat(), self.reply]


def message_in(document: str) -> str:
    """Return the message in a turn's document or in a piece of one."""
    message, _, other = document.removeprefix("user: ").rpartition("\nassistant: ")
    return message or other


def as_turn(entry: Any) -> Turn:
    """Parse a turn from JSON. Raises ValueError."""
    if not isinstance(entry, list) or len(entry) != 4 or not all(isinstance(part, str) for part in entry):
        raise ValueError("a turn must be four strings")
    turn_id, text, sent_at, reply = entry
    at = datetime.fromisoformat(sent_at)
    if at.tzinfo is not None:
        raise ValueError("virtual time must not have a time zone")
    return Turn(turn_id, text, at, reply)


def write_turns(path: Path, turns: Iterable[Turn]) -> None:
    """Write turns to a file, one per line. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for turn in turns:
            file.write(json.dumps(turn.entry, ensure_ascii=False) + "\n")


def read_turns(path: Path) -> Iterator[Turn]:
    """Yield the turns of a file. Raises OSError, and ValueError for a line that is not a turn."""
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            yield as_turn(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}, line {number}: {error}") from None
