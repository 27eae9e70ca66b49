"""Memories with one fault each, for the check that has to name it. `Sound` has none."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


class Sound:
    """Finds the turns that share a word with a query, best first, and can do all that a memory can."""

    read_only_search = True

    def __init__(self) -> None:
        self.kept: list[dict[str, str]] = []

    def add(self, turns: Any, at: datetime) -> None:
        self.kept += [{"text": turn.document, "turn": turn.turn_id, "at": turn.sent_at.isoformat()} for turn in turns]

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        wanted = words(query)
        scored = [(len(wanted & words(each["text"])), each) for each in self.kept]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [self.item(each) for _, each in best[:k]]

    def item(self, each: dict[str, str]) -> dict[str, Any]:
        return {"text": each["text"], "turns": [each["turn"]], "at": each["at"]}

    def forget(self, text: str, at: datetime) -> None:
        self.kept = [each for each in self.kept if not words(text) <= words(each["text"])]

    def reset(self) -> None:
        self.kept = []

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps(self.kept))

    def load(self, folder: Path) -> None:
        self.kept = json.loads((folder / "kept.json").read_text())


class IgnoresK(Sound):
    """Returns 30 results to whoever asks for 10."""

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        return super().search(query, 1000, at)


class Empty(Sound):
    """Searches another store than it adds to."""

    def add(self, turns: Any, at: datetime) -> None:
        self.elsewhere = list(turns)


class Lossy(Sound):
    """Keeps every second turn."""

    def add(self, turns: Any, at: datetime) -> None:
        super().add(turns[::2], at)


class Shared(Sound):
    """All users have one store."""

    everybody: ClassVar[list[dict[str, str]]] = []

    def __init__(self) -> None:
        self.kept = self.everybody

    def add(self, turns: Any, at: datetime) -> None:
        self.kept.extend({"text": turn.document, "turn": turn.turn_id, "at": turn.sent_at.isoformat()} for turn in turns)


class Invents(Sound):
    """Returns a sentence of its own."""

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        return [*super().search(query, k - 1, at), {"text": "According to my records, nothing relevant was ever mentioned."}]


class Misattributes(Sound):
    """Says that everything comes from the first turn."""

    def item(self, each: dict[str, str]) -> dict[str, Any]:
        return super().item(each) | {"turns": ["check/1"]}


class NamesNoTurn(Sound):
    """Numbers turns itself."""

    def item(self, each: dict[str, str]) -> dict[str, Any]:
        return super().item(each) | {"turns": [each["turn"].removeprefix("check/")]}


class Today(Sound):
    """Dates everything by the machine's clock."""

    def item(self, each: dict[str, str]) -> dict[str, Any]:
        return super().item(each) | {"at": "2031-01-01T00:00:00"}


class StoresQuestions(Sound):
    """Stores what it is asked, and says that a search changes nothing."""

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        found = super().search(query, k, at)
        self.kept.append({"text": query, "turn": self.kept[-1]["turn"] if self.kept else "check/1", "at": at.isoformat()})
        return found


class LoadsMore(Sound):
    """Adds what it loads to what it has, also when it is reset first."""

    def reset(self) -> None:
        self.dropped = self.kept
        self.kept = []

    def load(self, folder: Path) -> None:
        self.kept = [*json.loads((folder / "kept.json").read_text()), *getattr(self, "dropped", [])]


class SavesHalf(Sound):
    """Saves the newest memories alone."""

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps(self.kept[-2:]))


class OnDisk(Sound):
    """Keeps everything in a file, and goes on using the one that it loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def add(self, turns: Any, at: datetime) -> None:
        super().add(turns, at)
        (self.folder / "kept.json").write_text(json.dumps(self.kept))

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        if self.kept:
            self.kept = json.loads((self.folder / "kept.json").read_text())
        return super().search(query, k, at)

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.folder = folder


class StaysWhereItSaved(OnDisk):
    """Goes on using the folder that it saved to."""

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.folder = folder

    def load(self, folder: Path) -> None:
        Sound.load(self, folder)
        shutil.copy(folder / "kept.json", self.folder)


class Swallows(Sound):
    """Has an error with braces, and tells nobody."""

    def add(self, turns: Any, at: datetime) -> None:
        try:
            for turn in turns:
                if "{" in turn.text:
                    raise ValueError("not a template")
            super().add(turns, at)
        except ValueError:
            pass


class ForgetsNothing(Sound):
    """Says that it has forgotten."""

    def forget(self, text: str, at: datetime) -> None:
        """Do nothing."""


class KeepsNotes(Sound):
    """Forgets a turn, and not the note that it made of it."""

    def search(self, query: str, k: int, at: datetime) -> list[dict[str, Any]]:
        notes = [{"text": f"Note to self: {note}", "derived": True} for note in self.notes if words(note) & words(query)]
        return [*super().search(query, k, at), *notes][:k]

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def add(self, turns: Any, at: datetime) -> None:
        super().add(turns, at)
        self.notes += [turn.text for turn in turns]

    def save(self, folder: Path) -> None:
        (folder / "kept.json").write_text(json.dumps([self.kept, self.notes]))

    def load(self, folder: Path) -> None:
        self.kept, self.notes = json.loads((folder / "kept.json").read_text())

    def reset(self) -> None:
        self.kept, self.notes = [], []


class Remembers(Sound):
    """Its constructor finds what the last conversation left."""

    left: ClassVar[list[dict[str, str]]] = []

    def __init__(self) -> None:
        self.kept = list(self.left)

    def close(self) -> None:
        type(self).left[:] = self.kept


class ResetsNothing(Sound):
    """Its reset does nothing."""

    def reset(self) -> None:
        """Do nothing."""

    def load(self, folder: Path) -> None:
        self.kept = json.loads((folder / "kept.json").read_text())
