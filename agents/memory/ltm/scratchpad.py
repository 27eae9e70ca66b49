"""Notes that the core keeps for itself: a JSON object, or text. Bounded, and changed by whatever it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, final

from longspan.simulator.grading.lenient_json import find_json

__all__ = ["JsonPad", "Pad", "TextPad", "make_pad"]

READ: Final = 100_000
"""Characters of an answer that are looked at."""

DEEPEST: Final = 8
"""Objects and lists inside others, beyond which a value is left out."""


class Pad(Protocol):
    """A scratchpad of at most `most` tokens. `template` names the prompt that asks for its update."""

    template: str
    most: int

    @property
    def text(self) -> str:
        """What is noted, as prompts show it; empty where nothing is."""
        ...

    def update(self, answer: str) -> str | None:
        """Change it as an answer says. Returns what was wrong with the answer, None where nothing was. Never raises."""
        ...

    def restore(self, text: str) -> None:
        """Become what `text` was. Raises ValueError where it is no scratchpad's."""
        ...


def make_pad(kind: Literal["json", "text"], most: int, count: Callable[[str], int]) -> Pad:
    """An empty scratchpad of at most `most` tokens by `count`."""
    return JsonPad(most, count) if kind == "json" else TextPad(most, count)


@final
class JsonPad:
    """A JSON object. An update is a merge patch (RFC 7396): null takes a key away, an object goes into the one there is, any
    other value stands in for the old one. What is too much makes the keys go that were changed longest ago."""

    template = "notes_json"

    def __init__(self, most: int, count: Callable[[str], int]) -> None:
        self.most = most
        self._count = count
        self._notes: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return _dumped(self._notes) if self._notes else ""

    def update(self, answer: str) -> str | None:
        found = [each.value for each in find_json(answer[:READ]) if isinstance(each.value, dict)]
        if not found:
            return "no JSON object in the answer"
        self._notes = _merged(self._notes, _bounded(found[-1], DEEPEST))
        return self._shorten()

    def restore(self, text: str) -> None:
        notes = json.loads(text) if text else {}
        if not isinstance(notes, dict) or _bounded(notes, DEEPEST) != notes:
            raise ValueError("the notes are not a JSON object that could have been noted")
        self._notes = notes

    def _shorten(self) -> str | None:
        """Let the oldest keys go until what is left is short enough."""
        room = self.most - self._count("{}")
        kept: list[str] = []
        for key in reversed(self._notes):
            room -= self._count(_dumped({key: self._notes[key]}))  # a little more than it takes inside the whole
            if room < 0:
                break
            kept.append(key)
        gone = len(self._notes) - len(kept)
        self._notes = {key: self._notes[key] for key in reversed(kept)}
        return f"the notes outgrew {self.most} tokens: {gone} of their oldest keys are gone" if gone else None


@final
class TextPad:
    """Text. An update is the whole of it anew; what is too much goes from its end."""

    template = "notes_text"

    def __init__(self, most: int, count: Callable[[str], int]) -> None:
        self.most = most
        self._count = count
        self._text = ""

    @property
    def text(self) -> str:
        return self._text

    def update(self, answer: str) -> str | None:
        text = answer[:READ].strip().removeprefix("```").removesuffix("```").strip()
        if not text:
            return "no notes in the answer"
        low, high = 0, len(text)
        if self._count(text) <= self.most:
            low = high
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(text[:middle]) <= self.most else (low, middle - 1)
        self._text = text[:low].rstrip()
        return None if low == len(text) else f"the notes outgrew {self.most} tokens: their end is gone"

    def restore(self, text: str) -> None:
        self._text = text


def _merged(old: Any, patch: Any) -> Any:
    """A value with a patch applied to it. Keys that it changes come last."""
    if not isinstance(patch, dict):
        return patch
    whole = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        before = whole.pop(key, None)
        if value is not None:
            whole[key] = _merged(before, value)
    return whole


def _bounded(value: Any, depth: int) -> Any:
    """A value as it can be noted: what is nested too deep becomes None, which a patch takes for nothing."""
    if isinstance(value, dict):
        return {str(key): _bounded(each, depth - 1) for key, each in value.items()} if depth else None
    if isinstance(value, list):
        return [_bounded(each, depth - 1) for each in value] if depth else None
    return value


def _dumped(notes: dict[str, Any]) -> str:
    return json.dumps(notes, ensure_ascii=False)
