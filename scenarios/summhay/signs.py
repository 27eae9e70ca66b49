"""The signs that identify an insight in prose: words, numbers and dates in any notation."""

from __future__ import annotations

import re
from typing import Final

from longspan.simulator.reading.dates import MONTHS

__all__ = ["CITED", "find_signs", "without_citations"]

CITED: Final = re.compile(r"\[([0-9, ]+)\]")
"""A citation: [3], or [1, 4]."""

_MONTH: Final = "|".join(f"{month[:3]}(?:{month[3:]})?" if month[3:] else month for month in MONTHS) + "|sept"
_DAY: Final = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_DAY_FIRST: Final = re.compile(rf"(?<![0-9.,]){_DAY}(?:\s+of)?\s+({_MONTH})\b\.?")
_MONTH_FIRST: Final = re.compile(rf"\b({_MONTH})\.?\s+(?:the\s+)?{_DAY}(?![0-9])")
_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,30}(?:\.[0-9]{1,10})?")
_WORD: Final = re.compile(r"[^\W\d_]{1,40}")
_FULL: Final = {month[:3]: month for month in MONTHS}


def find_signs(text: str) -> frozenset[str]:
    """Return every word, number ("1,200" as "1200") and date ("14 march") in `text`, without citations. Runs in linear time."""
    folded = without_citations(text).casefold()
    dates = {f"{int(day)} {_FULL[month[:3]]}" for day, month in _DAY_FIRST.findall(folded)}
    dates |= {f"{int(day)} {_FULL[month[:3]]}" for month, day in _MONTH_FIRST.findall(folded)}
    numbers = {number.replace(",", "") for number in _NUMBER.findall(folded)}
    return frozenset(dates | numbers | set(_WORD.findall(folded)))


def without_citations(text: str) -> str:
    """Return `text` without its citations."""
    return CITED.sub(" ", text)
