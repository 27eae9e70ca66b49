"""Convert a reply in any form to plain lines: Markdown, tables and JSON become lines that read like prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from longspan.simulator.base.words import SMALL, normalise_text, plain
from longspan.simulator.reading.matching import is_slip, split_json
from longspan.simulator.reading.replies.layout import drop_struck
from longspan.simulator.reading.replies.mentions import drop_replaced

__all__ = ["MARKER", "lay_out"]

MARKER = re.compile(r"\x1e(\d+)\x1f")
"""A step's number, in a notation that no later rule mistakes for a distance."""

MAX_BLANKS, MAX_LINES = 20, 8
"""Longest significant runs of blanks and of empty lines. Text beyond them is unrelated."""

MAX_DEPTH = 20
"""JSON nested deeper than this is not a list of steps."""

_HALVES = {"\u00bc": ".25", "\u00bd": ".5", "\u00be": ".75"}
_LETTERS = dict(zip("n ne e se s sw w nw".split(), "north northeast east southeast south southwest west northwest".split(), strict=True))
_COMPASS = re.compile(r"north|south|east|west", re.IGNORECASE)
_DIRECTION = re.compile(r"(?:due|to(?:wards?)?)?(?:the)?(?:north|south|east|west){1,3}(?:wards?|bound|ern|erly)?")
_SUMS = re.compile(r"total|sum|net|overall|displacement", re.IGNORECASE)
_STEP = r"(?:step|leg|stage|part|stop|segment|direction)"
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(SMALL[1:11])})\b"
_TITLE = (
    r"(?!(?:north|south|east|west|due|go|walk|head|then|for|turn|about|and)\w*\b)[A-Za-z]{3,12}[ \t]{1,3}#?"
    rf"{_COUNT}[ \t]*(?:[:)]|[\u2013\u2014-](?![ \t]*\d))"
    rf"|(?:{_STEP}|stretch|section|phase)[ \t][A-K][ \t]*[:)\u2013\u2014-]"
)
"""A heading of any word with a number: "Stretch 2 - "."""
_HEAD = re.compile(
    rf"([ \t]*)(?:[-\u2022+>][ \t]+)?(?:{_STEP}[ \t]*\d{{1,3}}\b[ \t]*[.):\]\u2013\u2014-]*|{_TITLE}"
    r"|[(\[]?\d{1,3}[.):\]]+(?=\s|$))[ \t]*",
    re.IGNORECASE,
)
_INLINE = re.compile(
    rf"(?<=[\s,;.:])(?:{_STEP}[ \t]*\d{{1,3}}[ \t]*[.):]|\(\d{{1,3}}\)|\d{{1,3}}[.)])(?=[ \t]+(?!km|kilomet|mile|met)[A-Za-z])"
    rf"|(?<=[.;] ){_TITLE}",
    re.IGNORECASE,
)
_BEFORE_DISTANCE = re.compile(r"(?:\b(?:north|south|east|west)\w*|\b(?-i:[NESW]{1,3})|\bfor|\bby|\bdistance|=)[\s,:=(]*$", re.IGNORECASE)
_RULE = re.compile(r"[\s|:+=-]+")

_ATTRIBUTES = re.compile(r"<\w{1,30}(?:\s{1,9}[\w:-]{1,30}=\"[^\"<>\n]{0,80}\"){1,9}\s{0,9}/?>")
_ELEMENTS = re.compile(r"<(\w{1,30})>(?:\s{0,9}<(\w{1,30})>[^<>\n]{0,80}</\2>\s{0,9}){1,9}</\1>")
_SEMICOLONS = re.compile(r"^([NSEW]{1,2}|north|south|east|west);[ ]?(?=\d)", re.IGNORECASE | re.MULTILINE)
_DIRECT = re.compile(r"\bthe direct (?:way|route)\b[^.;:\n]{0,200}?(?=\bbut\b)", re.IGNORECASE)
"""A description of the direct way."""
_CALLED = re.compile(r"\b\w{1,20}\(\s?['\"](\w{1,10})['\"],\s?(\d{1,4}(?:\.\d{1,3})?)\)")
"""A step in the form of a function call: go("north", 2)."""
_WIND = r"(?:north|south|east|west)[a-z]{0,10}"
_DISTANCE = r"\b\d{1,4}(?:\.\d{1,3})?\s?[a-z]{1,10}\b"
_FURTHER = re.compile(
    rf"\b(?:(another|a further|an additional) (?!one\b)({_COUNT})|({_COUNT}) (?=(?:more|further)\b))"
    r"(?! ?(?:more |further )?(?:[kK]|[mM](?!ore)))"
)
"""A distance without a unit that continues others: "another three to the Mill", "one more"."""
_REMARK = re.compile(
    r"\([^()\d\n]{0,60}\b(?:of where you (?:started|began|set off)|by the way|incidentally)\b[^()\d\n]{0,60}\)", re.IGNORECASE
)
"""A remark on a place's location next to the way to it."""
_TELEGRAM = re.compile(r"(?<=[A-Z]) STOP\b")
_SLIPS = re.compile(r"\b[ns][a-z]{3,5}\b")

_Cells = Iterable[tuple[str, Any]]
"""Cells of one step, each with the name of its column or key, or ""."""


def lay_out(text: str, unit: str) -> str:
    """Return `text` as plain lines: one for each table row or JSON object, step numbers as MARKERs, no markup.

    A row or object becomes "from A 4 km east to B", followed by its other words. A distance without a unit gets `unit`. Sums are
    dropped.
    """
    text = _FURTHER.sub(lambda step: f"{step[1] or ''} {step[2] or step[3]} {unit} ", _normal(drop_struck(text)))
    text = "".join(_data(piece, value, unit) for piece, value in split_json(text))
    return "\n".join(_rows(text.split("\n"), unit))


def _normal(text: str) -> str:
    """Return `text` without markup and control characters, with newlines as line ends, and normalised (NFKC).

    Longer runs of blanks and of empty lines are cut to MAX_BLANKS and MAX_LINES, which bounds the time that later patterns take.
    """
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\s?\{([^{}]*)\}|\\[,;: ]|\$", r"\1 ", text)
    text = re.sub("[\u00bc-\u00be]", lambda match: _HALVES[match[0]], text)
    text = re.sub("(\\d)\ufe0f?\u20e3", r"\1. ", normalise_text(text))
    text = re.sub(r"\r\n?|[\v\f\x85\u2028\u2029]", "\n", text)
    text = _CALLED.sub(r'{"direction": "\1", "distance": "\2"}', _ATTRIBUTES.sub(_object, _ELEMENTS.sub(_element, text)))
    text = _DIRECT.sub(" ", _SEMICOLONS.sub(r"\1 ", text))
    text = _SLIPS.sub(_correct_direction, _TELEGRAM.sub(".", _REMARK.sub(" ", text)))
    for value in (rf"{_DISTANCE}\s(?:to\sthe\s)?{_WIND}", _WIND, _DISTANCE):
        text = drop_replaced(text, value)
    text = re.sub(r"[*`#~\u2248\x00-\x08\x0e-\x1f\u200b-\u200f]", "", text).replace("_", " ")
    text = re.sub(rf"([^\S\n]{{{MAX_BLANKS}}})[^\S\n]+", r"\1", text)
    return re.sub(rf"(?:[^\S\n]*+\n){{{MAX_LINES},}}+", "\n" * MAX_LINES, text)


def _object(tag: re.Match[str]) -> str:
    """Return the attributes of an XML element as a JSON object."""
    pairs = re.findall(r"([\w:-]{1,30})=\"([^\"]{0,80})\"", tag[0])
    return "\n{" + ", ".join(f'"{key}": "{value}"' for key, value in pairs) + "}\n"


def _element(element: re.Match[str]) -> str:
    """Return an XML element with text-only children as a JSON object."""
    pairs = re.findall(r"<(\w{1,30})>([^<>\n]{0,80})</\1>", element[0])
    return "\n{" + ", ".join(f'"{key}": "{value}"' for key, value in pairs) + "}\n"


def _correct_direction(word: re.Match[str]) -> str:
    """Return a direction with one wrong letter corrected."""
    return next((meant for meant in ("north", "south") if is_slip(word[0], meant)), word[0])


def _data(piece: str, value: Any, unit: str) -> str:
    """Return a piece of JSON as lines if it contains steps; otherwise only remove its brackets."""
    if value is None:
        return piece
    holds = isinstance(value, dict) or (len(value) > 1 and all(isinstance(item, (dict, list)) or _is_step(str(item)) for item in value))
    lines = list(_lines(value, unit, 0)) if holds else []
    if any(_is_step(line) for line in lines):
        return "\n".join(["", *lines, ""])
    return re.sub(r"[\[\]{}]", " ", piece)


def _is_step(line: str) -> bool:
    return bool(_COMPASS.search(line) and re.search(r"\d", line))


def _lines(value: Any, unit: str, depth: int) -> Iterator[str]:
    """Yield the lines of a JSON value."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        cells = {str(key): item for key, item in value.items() if not _SUMS.search(str(key))}
        if line := _row(((key, item) for key, item in cells.items() if not isinstance(item, (dict, list))), unit):
            yield line
        for item in cells.values():
            if isinstance(item, (dict, list)):
                yield from _lines(item, unit, depth + 1)
    elif isinstance(value, list) and value and not any(isinstance(item, (dict, list)) for item in value) and any(map(_is_direction, value)):
        yield _row(_name_cells(list(map(str, value)), [], unit), unit)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            for k, line in enumerate(_lines(item, unit, depth + 1)):
                yield line if k else f"\x1e{number}\x1f {line}"
    else:
        yield str(value)


def _row(cells: _Cells, unit: str) -> str:
    """Return a step: the origin, then distance and direction next to each other, then the rest."""
    origin, distance, direction, rest = "", "", "", []
    for name, value in cells:
        cell = str(value).strip()
        if not cell or value is None:
            continue
        measure = _measure(name, unit)
        if _is_number(cell) and _COMPASS.fullmatch(name):  # {"east": 4}
            rest += [f"{cell} {unit} {name}"] if re.search("[1-9]", cell) else []
        elif _is_number(cell):
            distance = f"{cell} {measure}" if measure else distance
        elif _is_direction(cell):
            direction = _LETTERS.get(cell.casefold(), cell)
        elif measure and not distance:
            distance = cell
        elif re.match(r"from|origin|start", name, re.IGNORECASE):
            origin = f"from {cell}"
        elif re.match(r"to\b|dest|end|arriv|target", name, re.IGNORECASE):
            rest.append(f"to {cell}")
        else:
            rest.append(cell)
    return " ".join(part for part in (origin, distance, direction, "; ".join(rest)) if part)


def _measure(name: str, unit: str) -> str:
    """Return the unit of the distances in a column or key with this name; "" if it has no distances."""
    for words, measure in ((r"\bmiles?\b", "miles"), (r"\bkm|kilomet", "km"), (r"\bmet(?:er|re)s\b", "metres"), (r"dist|length", unit)):
        if re.search(words, name, re.IGNORECASE):
            return measure
    return ""


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"\d{1,6}(?:[.,]\d{1,3})?", cell))


def _is_direction(cell: Any) -> bool:
    """Return whether a cell is a compass direction and nothing else."""
    word = re.sub(r"[\s.-]", "", str(cell)[:40]).casefold()
    return word in _LETTERS or bool(_DIRECTION.fullmatch(word))


def _rows(lines: list[str], unit: str) -> Iterator[str]:
    """Yield the lines, with each row of a table as a step."""
    header: list[str] = []
    row = 0
    for line in lines:
        cells = _cells(line)
        if not cells:
            header, row = [], 0
            yield _mark_steps(line)
        elif _RULE.fullmatch(line):
            continue
        elif not row and not header and not any(_is_direction(cell) or re.search(r"\d", cell) for cell in cells):
            header = cells
        else:
            row += 1
            yield f"\x1e{row}\x1f {_row(_name_cells(cells, header, unit), unit)}"


def _cells(line: str) -> list[str]:
    """Return the cells of a table row; empty for other lines."""
    for separator in ("|", "\t"):
        if line.strip(" ").count(separator) >= 2:
            return [cell.strip() for cell in line.strip(" ").strip(separator).split(separator)]
    values = [cell.strip() for cell in line.split(",")]
    listed = 2 <= len(values) <= 8 and sum(map(_is_direction, values)) == 1 and any(map(_is_number, values))
    return values if listed and all(len(value) < 40 for value in values) else []


def _name_cells(cells: list[str], header: list[str], unit: str) -> _Cells:
    """Return cells with their columns' names. Without a header, the last bare number is the distance; an earlier one counts rows."""
    if len(header) == len(cells):
        return list(zip(header, cells, strict=True))
    numbers = [k for k, cell in enumerate(cells) if _is_number(cell)]
    return [("distance" if numbers[-1:] == [k] else "", cell) for k, cell in enumerate(cells)]


def _mark_steps(line: str) -> str:
    """Return a line of prose with its step numbers, at the beginning and inside, as MARKERs; nested ones are dropped."""
    head = _HEAD.match(line)
    rest = line[head.end() :] if head else line

    def inline(match: re.Match[str]) -> str:
        before = rest[max(0, match.start() - 20) : match.start()]
        return match[0] if _BEFORE_DISTANCE.search(before) else _marker(match[0])

    rest = _INLINE.sub(inline, rest)
    if not head:
        return rest
    return ("" if len(head[1]) >= 3 else _marker(head[0])) + rest


def _marker(text: str) -> str:
    digits = "".join(char for char in text if char.isdecimal())
    words = plain(text).split()
    return f"\x1e{digits or next((at for at, word in enumerate(SMALL) if word in words), 'abcdefghijk'.find(words[-1]) + 1)}\x1f "
