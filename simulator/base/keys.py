"""Redacts keys from the environment, and secrets of this process, in all text that is written, in any spelling."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from typing import Any, Final, NamedTuple, final

__all__ = ["MAX_LENGTH", "forget_secret", "note_key", "note_secret", "redact", "redact_json"]

NAMES: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
"""The names of environment variables that contain keys."""

MIN_LENGTH: Final = 8
"""The minimum length of a key to redact. A shorter value could match ordinary text."""

MIN_PLAIN: Final = 16
"""The minimum length of a key that is only letters or only digits, like a word or a date."""

MAX_LENGTH: Final = 4_096
"""The longest spelling of a key that is redacted even where text was cut."""

FOUND_BY: Final = 20
"""The number of first characters that identify a longer key, so that a truncated key is found too."""

DEPTH: Final = 6
"""The deepest nesting of escapes, as for JSON inside JSON inside a URL."""

MAX_READINGS: Final = 32
"""The most readings of one text that are searched: undone in another order, escapes can mean something else."""

_ESCAPES: Final = tuple(
    (sign, re.compile(pattern))
    for sign, pattern in (
        ("\\", r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[rn]|[^\w\r\n])"),
        ("%", r"%[0-9a-fA-F]{2}"),
        ("&", r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-z]{2,6});"),
        ("\n", r"\r?\n[ \t]*"),
    )
)
"""Escapes of one character in JSON, C and shells, in URLs, and in HTML, each with the sign that it contains; and line ends, because base64
is wrapped. They are undone one kind at a time: a key may contain a sign of another kind, as `\\:` in a key on a page."""

_noted: Final[set[str]] = set()

_made: Final[dict[str, str]] = {}
"""The secrets that this process made, each with the name to write in its place."""


class _Secret(NamedTuple):
    """A spelling to redact, the part that identifies it, and the name of its environment variable."""

    spelling: str
    found_by: str
    name: str


class _Span(NamedTuple):
    start: int
    end: int
    name: str


def note_key(name: str) -> None:
    """Note that an environment variable contains a key, even if its name does not say so."""
    _noted.add(name)


def note_secret(name: str, value: str) -> None:
    """Redact a secret that this process made, as `[name]`, until `forget_secret`. It may be outside the environment."""
    _made[value] = name


def forget_secret(value: str) -> None:
    """Stop redacting a secret that no longer gives access to anything."""
    _made.pop(value, None)


def redact(text: str) -> str:
    """Return `text` with every key replaced by the name of its environment variable.

    Finds keys in plain text, with any of their characters escaped, in hexadecimal and in base64, even inside longer encoded text. Values
    shorter than MIN_LENGTH are left alone, and so are words and numbers shorter than MIN_PLAIN.
    """
    return _redact_text(text, _secrets())


def redact_json(value: Any) -> Any:
    """Return a JSON value with all of its strings redacted, object keys included. Other values are converted to JSON first, if possible.

    Raises RecursionError for a value that contains itself.
    """
    secrets = _secrets()
    return _redact_json(value, secrets) if secrets else value


def _redact_json(value: Any, secrets: Sequence[_Secret]) -> Any:
    if isinstance(value, str):
        return _redact_text(value, secrets)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {_redact_json(name, secrets): _redact_json(item, secrets) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_json(item, secrets) for item in value]
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return _redact_json(to_jsonable_python(value), secrets)
    except (PydanticSerializationError, ValueError):
        return value  # it has no JSON form, so it will not be written either


def _redact_text(text: str, secrets: Sequence[_Secret]) -> str:
    if len(text) < MIN_LENGTH:
        return text
    pieces, written = [], 0
    for start, end, name in _merge_spans(_find_secrets(text, secrets, DEPTH, {hash(text)})):
        pieces += [text[written:start], f"[{name}]"]
        written = end
    return "".join([*pieces, text[written:]]) if written else text


def _merge_spans(spans: list[_Span]) -> list[_Span]:
    """Return spans in order, with overlapping ones merged. A merged span has the name of its first span; of several, the longest."""
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _find_secrets(text: str, secrets: Sequence[_Secret], depth: int, seen: set[int]) -> list[_Span]:
    """Return the positions of secrets in `text`, plain or behind up to `depth` levels of escapes. `seen`: hashes of the readings so far."""
    spans = [span for secret in secrets for span in _occurrences(text, secret)]
    for sign, escape in _ESCAPES if depth else ():
        meant = escape.sub(_decode_escape, text) if sign in text else text
        if meant == text or hash(meant) in seen or len(seen) >= MAX_READINGS:
            continue
        seen.add(hash(meant))
        if inside := _find_secrets(meant, secrets, depth - 1, seen):
            places = _Places(text, escape)
            spans += [_Span(places.of(span.start).start, places.of(span.end - 1).stop, span.name) for span in inside]
    return spans


def _occurrences(text: str, secret: _Secret) -> Iterator[_Span]:
    start = text.find(secret.found_by)
    while start >= 0:
        end = start + len(secret.found_by)
        while end - start < len(secret.spelling) and text[end : end + 1] == secret.spelling[end - start]:
            end += 1
        yield _Span(start, end, secret.name)
        start = text.find(secret.found_by, end)


@final
class _Places:
    """Maps positions in unescaped text back to positions in the original text."""

    def __init__(self, text: str, escape: re.Pattern[str]) -> None:
        self._meant: list[int] = []
        self._written: list[tuple[int, int, int]] = []
        saved = 0
        for match in escape.finditer(text):
            length = len(_decode_escape(match))
            self._meant.append(match.start() - saved)
            self._written.append((match.start(), match.end(), length))
            saved += match.end() - match.start() - length

    def of(self, place: int) -> range:
        """Return where the original text has the character at `place` of the unescaped text."""
        last = bisect_right(self._meant, place) - 1
        if last < 0:
            return range(place, place + 1)
        start, end, length = self._written[last]
        further = place - self._meant[last] - length
        return range(start, end) if further < 0 else range(end + further, end + further + 1)


def _decode_escape(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for, or "" for a line end."""
    text = escape[0]
    if text[0] == "\\":
        if text[1] in "ux":
            return chr(int(text[2:], 16))
        return "" if text[1] in "rn" else text[1] if len(text) == 2 else chr(int(text[1:], 8))
    if text[0] == "%":
        return chr(int(text[1:], 16))
    return unescape(text)[:1] if text[0] == "&" else ""


def _secrets() -> Sequence[_Secret]:
    held = ((name, os.environ.get(name, "").strip()) for name in os.environ if name in _noted or _is_of_key(name))
    made = [(name, value) for value, name in tuple(_made.items())]  # a copy, because other threads make secrets too
    return _spell_secrets((*sorted((name, key) for name, key in held if _is_key(key) and key not in name), *made))


@lru_cache(maxsize=1024)
def _is_of_key(name: str) -> bool:
    """Return whether a variable is named like a key. Cached, because each call of `redact` checks the whole environment."""
    return NAMES.search(name) is not None


def _is_key(value: str) -> bool:
    """Return whether a value is distinct enough from ordinary text to be redacted."""
    return len(value) >= (MIN_PLAIN if value.isalpha() or value.isdigit() else MIN_LENGTH)


@lru_cache(maxsize=32)
def _spell_secrets(held: tuple[tuple[str, str], ...]) -> Sequence[_Secret]:
    return [_Secret(text, text[:FOUND_BY], name) for name, key in held for text in dict.fromkeys(_spellings(key))]


def _spellings(key: str) -> Iterator[str]:
    data = key.encode("utf-8", "surrogateescape")
    yield key
    yield re.sub(r"\r?\n[ \t]*", "", key)  # for text without its line ends
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        code = b64encode(bytes(before) + data).decode()
        whole = code[(0, 2, 3)[before] : (before + len(data)) * 4 // 3]  # only the characters that depend on the key alone
        yield whole
        yield whole.translate({ord("+"): "-", ord("/"): "_"})
