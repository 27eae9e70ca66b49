"""The scratchpad: the core's notes as a JSON object or text, limited in size and updated by its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, final

from longspan.simulator.base.lenient_json import find_json

__all__ = ["JsonPad", "Pad", "TextPad", "make_pad"]

MAX_CHARACTERS: Final = 100_000
"""The maximum characters parsed of an answer."""

MAX_DEPTH: Final = 8
"""The maximum nesting of objects and lists. Deeper values are dropped."""


class Pad(Protocol):
    """A scratchpad of at most `max_tokens` tokens. `template` is the name of the prompt that requests an update."""

    template: str
    max_tokens: int

    @property
    def text(self) -> str:
        """The notes as shown in prompts, possibly empty."""
        ...

    def update(self, answer: str) -> str | None:
        """Apply an answer. Return the problem with it, or None. Never raises."""
        ...

    def restore(self, text: str) -> None:
        """Restore the notes from their `text`. Raises ValueError if it is invalid."""
        ...


def make_pad(kind: Literal["json", "text"], max_tokens: int, count: Callable[[str], int]) -> Pad:
    """Return an empty scratchpad of at most `max_tokens` tokens by `count`."""
    return JsonPad(max_tokens, count) if kind == "json" else TextPad(max_tokens, count)


@final
class JsonPad:
    """A JSON object. An update is a merge patch (RFC 7396): null removes a key, an object is merged, and any other value replaces the old.

    If the notes grow too large, the least recently changed keys are dropped.
    """

    template = "notes_json"

    def __init__(self, max_tokens: int, count: Callable[[str], int]) -> None:
        self.max_tokens = max_tokens
        self._count = count
        self._notes: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return _to_json(self._notes) if self._notes else ""

    def update(self, answer: str) -> str | None:
        patches = [found.value for found in find_json(answer[:MAX_CHARACTERS]) if isinstance(found.value, dict)]
        if not patches:
            return "no JSON object in the answer"
        self._notes = _merge_patch(self._notes, _limit_depth(patches[-1], MAX_DEPTH))
        return self._shorten()

    def restore(self, text: str) -> None:
        notes = json.loads(text) if text else {}
        if not isinstance(notes, dict) or _limit_depth(notes, MAX_DEPTH) != notes:
            raise ValueError("the notes are not a JSON object, or are nested too deeply")
        self._notes = notes

    def _shorten(self) -> str | None:
        """Drop the least recently changed keys until the rest fits."""
        room = self.max_tokens - self._count("{}")
        kept: list[str] = []
        for key in reversed(self._notes):
            room -= self._count(_to_json({key: self._notes[key]}))  # slightly more than inside the whole object
            if room < 0:
                break
            kept.append(key)
        dropped = len(self._notes) - len(kept)
        self._notes = {key: self._notes[key] for key in reversed(kept)}
        return f"the notes exceeded {self.max_tokens} tokens: {dropped} of their oldest keys were dropped" if dropped else None


@final
class TextPad:
    """Text. An update replaces all of it. Text that grows too large is cut at its end."""

    template = "notes_text"

    def __init__(self, max_tokens: int, count: Callable[[str], int]) -> None:
        self.max_tokens = max_tokens
        self._count = count
        self._text = ""

    @property
    def text(self) -> str:
        return self._text

    def update(self, answer: str) -> str | None:
        text = answer[:MAX_CHARACTERS].strip().removeprefix("```").removesuffix("```").strip()
        if not text:
            return "no notes in the answer"
        low, high = 0, len(text)
        if self._count(text) <= self.max_tokens:
            low = high
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(text[:middle]) <= self.max_tokens else (low, middle - 1)
        self._text = text[:low].rstrip()
        return None if low == len(text) else f"the notes exceeded {self.max_tokens} tokens: their end was cut"

    def restore(self, text: str) -> None:
        self._text = text


def _merge_patch(old: Any, patch: Any) -> Any:
    """Apply a patch to a value. Changed keys come last."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        old_value = merged.pop(key, None)
        if value is not None:
            merged[key] = _merge_patch(old_value, value)
    return merged


def _limit_depth(value: Any, depth: int) -> Any:
    """Replace values nested too deeply by None, which a patch ignores."""
    if isinstance(value, dict):
        return {str(key): _limit_depth(item, depth - 1) for key, item in value.items()} if depth else None
    if isinstance(value, list):
        return [_limit_depth(item, depth - 1) for item in value] if depth else None
    return value


def _to_json(notes: dict[str, Any]) -> str:
    return json.dumps(notes, ensure_ascii=False)
