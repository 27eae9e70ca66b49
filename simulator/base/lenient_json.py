"""Finds JSON in a reply and parses it as leniently as a person would, in time linear in the length of the reply.

The json-repair library is not suitable for grading. It turns any bracketed prose ("[Note]") into a list, cuts strings at apostrophes, and
takes minutes for some malformed replies of 100 kB.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, final

__all__ = ["JsonSpan", "find_json"]

_DEPTH = 40
"""The deepest nesting to parse. No sensible answer is nested deeper, and the limit bounds the recursion."""

_TAIL = 200
"""An unclosed string counts as truncated if at most this many characters of the text remain."""

_PAIRS = {"[": "]", "{": "}", "(": ")"}
_OPEN = re.compile(r"[\[{]")
_DEEP = re.compile(rf"(?:[\[{{]\s*+){{{_DEPTH},}}+")
_GAP = re.compile(r"(?:[\s,;]|//[^\n]*|#[^\n]*|\.\.\.|…|\\(?=[\[\]{}]))*+")
_COLON = re.compile(r"\s*+:\s*+")
_KEY = re.compile(r"[A-Za-z_][\w -]{0,40}+(?=\s*:)")

_AFTER = r"\\?[,;\]}):]|\n|\Z|//|#|```"
_END = rf"(?=[^\S\n]*+(?:{_AFTER}))"
_QUOTE_END = rf"[^\S\n]*+(?:{_AFTER}|\\?[\"'“„‘`\[{{])"
"""Matches after a closing quotation mark. Any other mark is an apostrophe or a quotation inside the string."""

_NUMBER = re.compile(r"[-+]?(?:\d{1,18}|(?=\.\d))(?P<real>(?:\.\d{1,18})?(?:[eE][-+]?\d{1,2})?)" + _END, re.ASCII)
_NAMED = re.compile(r"(?:([Tt]rue)|([Ff]alse)|null|None)" + _END)
_BARE = re.compile(r"[\w$€£][^,\[\]{}()\"“”:\n]{0,59}+(?=[,\]})\n])")
"""A value without quotation marks: short, and followed by a comma, a bracket or the end of the line."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _quote_pattern(opening: str, closing: str) -> re.Pattern[str]:
    """Return a pattern for a quoted string on one line. A mark closes the string only where a value may end."""
    return re.compile(rf"{opening}((?:[^{closing}\\\n]|\\.|[{closing}](?!{_QUOTE_END}))*+)[{closing}]")


_STRINGS = {
    '"': _quote_pattern('"', '"'),
    "'": _quote_pattern("'", "'"),
    "`": _quote_pattern("`", "`"),
    "“": _quote_pattern("“", '”“"'),
    "„": _quote_pattern("„", '”“"'),
    "‘": _quote_pattern("‘", "’‘'"),
    "\\": re.compile(rf'\\"((?:[^"\\\n]|\\(?!"{_QUOTE_END}).)*+)\\"'),  # a list within a JSON string
}


class JsonSpan(NamedTuple):
    """A JSON value at `text[begin:end]`. `firm` is False if it has only words without quotation marks."""

    begin: int
    end: int
    value: Any
    firm: bool


@final
class _NotJsonError(Exception):
    """The text at `at` is not JSON. `whole` lists the outermost lists and objects parsed before it."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at
        self.whole: list[JsonSpan] = []


@final
class _CutOffError(Exception):
    """The text ends inside a string."""


def find_json(text: str) -> list[JsonSpan]:
    """Return the outermost JSON lists and objects in `text`, in order. Other text is ignored. Never raises.

    Tolerates any or no quotation marks, apostrophes, missing commas, comments, unquoted keys, Python literals, tuples and sets, and
    mismatched brackets. At the end of a truncated text, brackets may be missing. An object without keys becomes a list, and a list of only
    keys and values becomes an object. A list of words without quotation marks counts only if the reply has no other JSON and the list has
    two or more entries: a single one is a stage direction ("[laughs]").
    """
    return _Reader(text).read()


@final
class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: dict[str, int] = {}  # for each quotation mark, the end of a stretch known to have no closing one

    def read(self) -> list[JsonSpan]:
        firm: list[JsonSpan] = []
        bare: list[JsonSpan] = []
        at = 0
        while opening := _OPEN.search(self._text, at):
            at = opening.start()
            if deep := _DEEP.match(self._text, at):
                at = deep.end()
                continue
            try:
                span = self._container(at, "")
            except _NotJsonError as unreadable:
                firm += unreadable.whole
                at = max(unreadable.at, at + 1)  # never parse anything twice: this keeps the time linear
                continue
            except _CutOffError:
                at += 1
                continue
            if span.firm:
                firm.append(span)
            elif len(span.value) > 1:
                bare.append(span)
            at = span.end
        return firm or bare

    def _container(self, begin: int, outer: str) -> JsonSpan:
        """Parse the list or object that opens at `begin`. `outer` lists the closing brackets of the containers around it."""
        opening = self._text[begin]
        closing = _PAIRS[opening]
        at = begin + 1
        if len(outer) >= _DEPTH:
            raise _NotJsonError(at)
        entries: list[tuple[str | None, Any]] = []
        whole: list[JsonSpan] = []
        firm = False
        while True:
            gap = _GAP.match(self._text, at)
            between = gap.group() if gap else ""
            at += len(between)
            cut = at >= len(self._text) or self._text.startswith("```", at)
            ends = cut or self._text[at] in "]})"
            if ends and not entries and (cut or "..." in between or "…" in between):
                raise _NotJsonError(at)
            if ends:
                unclosed = cut or (self._text[at] != closing and self._text[at] in outer)
                return JsonSpan(begin, at if unclosed else at + 1, _build_value(opening, entries), firm or not entries)
            try:
                key, span = self._entry(at, outer + closing, not entries or "," in between or "\n" in between, opening == "{")
            except _NotJsonError as unreadable:
                unreadable.whole[:0] = whole
                raise
            except _CutOffError:
                if not entries:
                    raise
                at = len(self._text)
                continue
            entries.append((key, span.value))
            firm = firm or span.firm
            if span.firm and isinstance(span.value, (list, dict)):
                whole.append(span)
            at = span.end

    def _entry(self, at: int, outer: str, apart: bool, braces: bool) -> tuple[str | None, JsonSpan]:
        """Parse a value, with its key if it has one. `apart`: whether a separator precedes it. `braces`: whether it is in an object."""
        unquoted = _KEY.match(self._text, at) if braces else None
        first = JsonSpan(at, unquoted.end(), unquoted.group().strip(), False) if unquoted else self._value(at, outer, apart)
        colon = _COLON.match(self._text, first.end)
        may_be_key = isinstance(first.value, str) if not braces else not isinstance(first.value, (list, dict))
        if not colon or not may_be_key:
            return None, first
        at = colon.end()
        if at >= len(self._text):
            raise _CutOffError
        if self._text[at] in ",]})":
            return str(first.value), JsonSpan(at, at, None, True)
        return str(first.value), self._value(at, outer, True)

    def _value(self, at: int, outer: str, apart: bool) -> JsonSpan:
        text, char = self._text, self._text[at]
        if char in _PAIRS:
            return self._container(at, outer)
        if char in _STRINGS:
            return self._string(at, char)
        if number := _NUMBER.match(text, at):
            return JsonSpan(at, number.end(), float(number.group()) if number["real"] else int(number.group()), True)
        if named := _NAMED.match(text, at):
            return JsonSpan(at, named.end(), True if named[1] else False if named[2] else None, True)
        if apart and (bare := _BARE.match(text, at)):
            return JsonSpan(at, bare.end(), bare.group().strip(), False)
        raise _NotJsonError(at)

    def _string(self, at: int, mark: str) -> JsonSpan:
        text = self._text
        string = None if at < self._unclosed.get(mark, 0) else _STRINGS[mark].match(text, at)
        if string:
            return JsonSpan(at, string.end(), _unescape(string[1]), True)
        if at >= self._unclosed.get(mark, 0):
            line = text.find("\n", at)
            self._unclosed[mark] = len(text) if line < 0 else line
        if len(text) - at < _TAIL and not re.search(r"[\]}\n]", text[at:]):
            raise _CutOffError
        raise _NotJsonError(at + 1)


def _build_value(opening: str, entries: list[tuple[str | None, Any]]) -> list[Any] | dict[str, Any]:
    """Return an object if all entries have keys, else a list."""
    keyed = {key: value for key, value in entries if key is not None}
    if all(key is not None for key, _ in entries) and (entries or opening == "{"):
        return keyed
    return [value if key is None else {key: value} for key, value in entries]


def _unescape(string: str) -> str:
    if "\\" not in string:
        return string
    string = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPED.get(m[2], m[2]), string)
    return string.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # join surrogate pairs that were escaped as two halves
