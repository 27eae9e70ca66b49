"""Extracts the items of lists in replies: bullets, numbered lines, tables, or one item per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from longspan.simulator.base.words import plain
from longspan.simulator.reading.labelled_lists import ListLabel, classify_label
from longspan.simulator.reading.replies.layout import drop_markup
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance

__all__ = ["split_items"]

_MARK: Final = re.compile(r"\s{0,8}(?:[-*\u2022\u2013+]|\(?\d{1,3}[.):]|[^\w\s'\"(\[{|<>]{1,2}(?=\s))\s{1,4}(?=\S)")
_RULE: Final = re.compile(r"[-:|\s]+")
_DETAIL: Final = re.compile(r"\s{1,8}(?:[-*\u2022+]\s{1,4})?[A-Za-z]{1,20}:\s{0,4}\d{1,6}\s{0,9}")
"""A line under an item with a number that belongs to it: "Quantity: 3"."""
_HTML: Final = re.compile(r"</?(?:ul|ol|li)>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z]\w{0,20}/?>")
_FIELD: Final = re.compile(
    r"\s{0,12}(?:[-*\u2022]\s{1,3})?((?!(?i:user|human|assistant)\b)[A-Za-z_]{1,20})"
    r"((?: [\w-]{1,20}=\"[^\"\n]{0,40}\"){0,3}):\s{0,3}(\S[^\n]{0,80})"
)
"""A line with a property of an item: "name: apple". An XML element keeps its attributes."""
_ATTRIBUTE: Final = re.compile(r'="([^"]{0,40})"')
BARE: Final = 4
"""The most words of an item on an unmarked line. Longer lines are prose."""


def split_items(text: str) -> list[Sequence[str]]:
    """Return the items of the lists in a reply. Each item is a sequence of cells: one, or one per column of a table.

    Headings are left out, and so is a list whose heading excludes it ("Removed:"). Takes time linear in the length of the text. Never
    raises.
    """
    text = _HTML.sub("\n", drop_markup(text))
    lines = (_TAG.sub("\n", text) if "</" in text else text).splitlines()
    if records := _records(lines):
        return records
    found: list[Sequence[str]] = []
    bare: list[Sequence[str]] = []
    kept, below = True, False
    for line, following in pairwise([*lines, ""]):
        said = line.strip()
        if not plain(said):
            below = below and not said
        elif said.count("|") > 1:
            if not (_RULE.fullmatch(following.strip()) and "|" in following):
                found += [[cell.strip() for cell in said.strip("|").split("|")]]
        elif found and _DETAIL.fullmatch(line):
            found[-1] = [*found[-1], said]
        elif mark := _MARK.match(line):
            if kept or not below:
                found.append([line[mark.end() :].strip()])
        elif said.endswith(":") or said.startswith("#"):
            kept, below = not _is_another(said), True
        else:
            kept, below = True, False
            bare += [[said]] if len(plain(said).split()) <= BARE else []
    if table := _split_by_commas(bare if not found else []):
        return table
    untitled = [line for line in lines if plain(line) and not line.startswith("#")]
    return found or (bare if 1 < len(bare) == len(untitled) else [])


def _records(lines: Sequence[str]) -> list[Sequence[str]]:
    """Return records written as `key: value` lines. A line with the first key starts a new record; its cells are the values.

    Returns an empty list if the lines are not records.
    """
    fields = [(field[1].casefold(), field[3].strip(), _ATTRIBUTE.findall(field[2])) for line in lines if (field := _FIELD.fullmatch(line))]
    keys = [key for key, _, _ in fields]
    if (
        not fields
        or keys.count(keys[0]) < 2
        or all(value.isdecimal() for _, value, _ in fields)
        or len(fields) < sum(bool(plain(line)) for line in lines) - SIDES
    ):
        return []
    records: list[list[str]] = []
    for key, value, attributes in fields:
        if key == fields[0][0]:
            records.append([])
        records[-1] += [value, *attributes]
    return list(records)


SIDES: Final = 2
"""The number of other lines around the properties, such as a heading or a code fence."""


def _split_by_commas(lines: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return comma-separated lines as cells, if each but a header ends with a number. Return an empty list otherwise."""
    rows = [[cell.strip() for cell in line.split(",")] for (line,) in lines]
    counted = [row for row in rows if len(row) > 1 and row[-1].isdecimal()]
    return list(counted) if len(counted) > 1 and len(rows) - len(counted) <= 1 else []


def _is_another(heading: str) -> bool:
    return classify_label(heading) is ListLabel.OTHER or LEXICON.stance(plain(heading)) == Stance.DENIED
