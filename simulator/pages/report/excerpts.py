"""Untrusted text prepared for a page: shortened, with invisible characters made visible, or as JSON in a script."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, final

from markupsafe import Markup
from pydantic_core import to_json

from longspan.simulator.base.terminal import escape_invisible

__all__ = ["EXCERPT_CHARS", "MAX_CHARS", "TRACE_CHARS", "Excerpt", "embed_json", "script_json", "script_list"]

MAX_CHARS: Final = 20_000
"""The maximum characters shown of a message, a reply or a piece of JSON. Of longer text, the start and the end are shown."""

EXCERPT_CHARS: Final = 800
"""The number of characters shown of a message or a reply next to a test. The test links to the whole turn."""

TRACE_CHARS: Final = 4_000
"""The maximum characters shown of a trace. It is small because every turn may have one."""

_SCRIPT_ENDING: Final = "<>&\u2028\u2029"
"""Characters that could end a script or start a comment in it, or that older JavaScript treats as line ends."""


_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")

ASCII_SHARE: Final = 0.95
"""Text is escaped to ASCII if its share of ASCII characters is greater than this: a browser reads a page of one-byte characters faster.
Other text would grow."""


@final
class Excerpt(NamedTuple):
    """An excerpt from text of `length` characters: all of it in `head`, or its start in `head` and its end in `tail`."""

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
        """Return an excerpt of at most `max_chars` characters, a quarter of them from the end."""
        if len(self.head) + len(self.tail) <= max_chars:
            return self
        end = max_chars // 4
        return Excerpt(self.head[: max_chars - end], (self.tail or self.head)[-end:], self.length)

    def data(self) -> str | list[str | int]:
        """Return the excerpt as JSON: the whole text, or a list of its start, its end and its length."""
        if not self.left_out:
            return escape_invisible(self.head)
        return [escape_invisible(self.head), escape_invisible(self.tail), self.length]


def script_list(values: Iterable[Any]) -> Markup:
    """Like `script_json`, for a list. Converting its items one by one is faster."""
    return Markup("[" + ",".join(map(script_json, values)) + "]")  # noqa: S704


def script_json(value: Any) -> Markup:
    """Return JSON that is safe inside a script element. The strings in it must have gone through `escape_invisible`."""
    text = to_json(value).decode()
    for character in _SCRIPT_ENDING:
        text = text.replace(character, f"\\u{ord(character):04x}")
    if not text.isascii() and ASCII_SHARE * len(text.encode()) < len(text):
        text = _NOT_ASCII.sub(_escape_character, text)
    return Markup(text)  # noqa: S704


def embed_json(json: str, *, deflated: bool) -> Markup:
    """Return a script element with JSON from `script_json`, for the page's script: unchanged, or deflated and in base64."""
    if not deflated:
        return Markup(f'<script type="application/json">{json}</script>')  # noqa: S704
    packing = zlib.compressobj(4, wbits=-15)  # level 6 takes half as long again for 3% less
    packed = b64encode(packing.compress(json.encode()) + packing.flush()).decode()
    return Markup(f'<script type="text/plain" class="deflated">{packed}</script>')  # noqa: S704


def _escape_character(match: re.Match[str]) -> str:
    """Return a character as JSON escapes: two if it is beyond the basic plane."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
