"""Memories that differ in what they store, and in what they say of where it comes from."""

from __future__ import annotations

import re
from typing import Any


class Named:
    """Stores each turn word for word, and names the turn. It finds the newest. With `drops=N`, it loses every N-th turn."""

    read_only_search = True
    names_turns, copies = True, True

    def __init__(self, drops: str = "0") -> None:
        self.drops, self.seen = int(drops), 0
        self.kept: list[dict[str, Any]] = []

    def add(self, turns: Any, at: Any) -> Any:
        made = []
        for turn in turns:
            self.seen += 1
            if not self.drops or self.seen % self.drops:
                text = turn.document if self.copies else in_other_words(turn.document)
                made.append({"id": f"m{self.seen}", "text": text} | ({"turns": [turn.turn_id]} if self.names_turns else {}))
        self.kept += made
        return made

    def search(self, query: str, k: int, at: Any) -> Any:
        return self.kept[-k:]


class Copying(Named):
    """Stores each turn word for word, and names none."""

    names_turns = False


class Silent(Copying):
    """The same, but it reports nothing that it stores, and finds texts alone."""

    def add(self, turns: Any, at: Any) -> Any:
        super().add(turns, at)

    def search(self, query: str, k: int, at: Any) -> Any:
        return [each["text"] for each in self.kept[-k:]]


class Paraphrasing(Copying):
    """Stores every turn in its own words, and names none."""

    copies = False


class ParaphrasingTexts(Paraphrasing):
    """The same, but it finds texts alone. So they cannot be told to be what it stored."""

    def search(self, query: str, k: int, at: Any) -> Any:
        return [each["text"] for each in self.kept[-k:]]


class Denying(ParaphrasingTexts):
    """The same, but it reports that it stores nothing."""

    def add(self, turns: Any, at: Any) -> Any:
        super().add(turns, at)
        return []


class Buffering(ParaphrasingTexts):
    """The same, but it keeps some turns back, and stores what they say together with that of later ones."""

    def __init__(self, drops: str = "0") -> None:
        super().__init__(drops)
        self.waiting: list[Any] = []

    def add(self, turns: Any, at: Any) -> Any:
        self.waiting += turns
        if len(self.waiting) % 3:
            return None
        made, self.waiting = super().add(self.waiting, at), []
        return made


def in_other_words(text: str) -> str:
    """Return as many words, none of which anybody says."""
    return re.sub(r"\w+", lambda word: "".join(2 * chr(97 + (ord(letter) + 7) % 26) for letter in word[0]), text)
