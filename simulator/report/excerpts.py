"""Untrusted text prepared for a page: shortened, with invisible characters made visible, or as JSON in a script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, final

from markupsafe import Markup
from pydantic_core import to_json

__all__ = ["EXCERPT_CHARS", "MAX_CHARS", "TRACE_CHARS", "Excerpt", "script_json", "script_list", "visible"]

MAX_CHARS: Final = 20_000
"""Characters shown of a message, a reply or a piece of JSON. Of a longer one, its start and end are shown."""

EXCERPT_CHARS: Final = 800
"""Characters shown of a message or a reply next to a test, which links to the whole turn."""

TRACE_CHARS: Final = 4_000
"""Characters shown of a trace: every turn may have one."""

_INVISIBLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that HTML forbids, that cannot be encoded, or that change the direction of the text after them."""

_PLAIN: Final = bytes([*b"\t\n\r", *range(0x20, 0x7F)])

_SCRIPT_ENDING: Final = "<>&\u2028\u2029"
"""Characters that could end a script or start a comment in it, or that older JavaScript treats as line ends."""


@final
class Excerpt(NamedTuple):
    """A text of `length` characters: all of it in `head`, or its start in `head` and its end in `tail`."""

    head: str
    tail: str
    length: int

    @classmethod
    def of(cls, text: str, max_chars: int = MAX_CHARS) -> Excerpt:
        return cls(text, "", len(text)).shorter(max_chars)

    @property
    def left_out(self) -> int:
        return self.length - len(self.head) - len(self.tail)

    def shorter(self, max_chars: int = EXCERPT_CHARS) -> Excerpt:
        """At most `max_chars` characters of it, a quarter of them from its end."""
        if len(self.head) + len(self.tail) <= max_chars:
            return self
        end = max_chars // 4
        return Excerpt(self.head[: max_chars - end], (self.tail or self.head)[-end:], self.length)

    def data(self) -> str | list[str | int]:
        """Itself as JSON: the text, or its start, its end and its length."""
        if not self.left_out:
            return visible(self.head)
        return [visible(self.head), visible(self.tail), self.length]


def visible(text: str) -> str:
    """Replace characters that are invisible or not allowed in HTML with their code points."""
    if text.isascii() and not text.encode().translate(None, _PLAIN):  # much faster than the pattern
        return text
    return _INVISIBLE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def script_list(values: Iterable[Any]) -> Markup:
    """Like `script_json`, for a list. Converting its items one by one is faster."""
    return Markup("[" + ",".join(map(script_json, values)) + "]")  # noqa: S704


def script_json(value: Any) -> Markup:
    """Return JSON that is safe inside a script element. Its texts must have gone through `visible`."""
    text = to_json(value).decode()
    for character in _SCRIPT_ENDING:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704
