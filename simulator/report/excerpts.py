"""Texts of anybody's, made fit for a page: shortened, with what could not be seen in them made visible, or as JSON in a script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, final

from markupsafe import Markup
from pydantic_core import to_json

__all__ = ["EXCERPT", "MOST", "TRACE", "Excerpt", "script_json", "script_list", "visible"]

MOST: Final = 20_000
"""Characters of a message, a reply or a piece of JSON that are shown; of a longer one, its beginning and its end."""

EXCERPT: Final = 800
"""The same beside a test, from where a link leads to the turn in its conversation."""

TRACE: Final = 4_000
"""The same of what an agent tells about a reply: there may be one for every turn."""

_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that HTML forbids, that cannot be encoded, or that turn the direction of the text after them."""

_SEEN: Final = bytes([*b"\t\n\r", *range(0x20, 0x7F)])

_ENDING: Final = "<>&\u2028\u2029"
"""Characters that could end a script or begin a comment in one, or that scripts once took for the end of a line."""


@final
class Excerpt(NamedTuple):
    """A text of `length` characters: all of it in `head`, or its beginning there and its end in `tail`."""

    head: str
    tail: str
    length: int

    @classmethod
    def of(cls, text: str, most: int = MOST) -> Excerpt:
        return cls(text, "", len(text)).shorter(most)

    @property
    def left_out(self) -> int:
        return self.length - len(self.head) - len(self.tail)

    def shorter(self, most: int = EXCERPT) -> Excerpt:
        """At most `most` characters of it, a quarter of them from its end."""
        if len(self.head) + len(self.tail) <= most:
            return self
        end = most // 4
        return Excerpt(self.head[: most - end], (self.tail or self.head)[-end:], self.length)

    def data(self) -> str | list[str | int]:
        """It as JSON: a text, or its beginning, its end and its length."""
        if not self.left_out:
            return visible(self.head)
        return [visible(self.head), visible(self.tail), self.length]


def visible(text: str) -> str:
    """The text with what could not be seen in it, or must not stand in a page, given by its code point."""
    if text.isascii() and not text.encode().translate(None, _SEEN):  # much faster than to look for each
        return text
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def script_list(values: Iterable[Any]) -> Markup:
    """The JSON of a list, as `script_json`: piece by piece, which is faster than all at once."""
    return Markup("[" + ",".join(map(script_json, values)) + "]")  # noqa: S704


def script_json(value: Any) -> Markup:
    """JSON that may stand inside a script element, whatever texts it holds. They have to be `visible` already."""
    text = to_json(value).decode()
    for character in _ENDING:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704
