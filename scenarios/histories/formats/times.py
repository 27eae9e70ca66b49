"""Parse the times that chat programs write."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final

__all__ = ["TIMES", "find_time", "is_day_first", "parse_time"]

TIMES: Final = (
    *("timestamp", "created_at", "createdAt", "create_time", "created", "time", "date", "sent_at", "send_date", "ts", "at", "datetime"),
    *("date_unixtime", "update_time", "updated_at", "updatedAt"),
)
"""Keys that give the time of a message or conversation, by priority."""

DAYS: Final = (
    "%B %d %Y",
    "%b %d %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d-%m-%Y",
    "%d-%m-%y",
    "%m-%d-%Y",
)
SLASHED: Final = {False: ("%m/%d/%Y", "%m/%d/%y"), True: ("%d/%m/%Y", "%d/%m/%y")}
"""Dates with the month first, and dates with the day first. The file must show which of the two it uses."""
HOURS: Final = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%H:%M:%S.%f")
SCALES: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From these sizes on, numbers are nanoseconds, microseconds and milliseconds. As seconds, they would be in the year 5138 or later."""

_ZONE: Final = re.compile(r"(?:\s*[+-]0000)?\s*(?:UTC|GMT|Z)$")
_SLASHED: Final = re.compile(r"\b([0-9]{1,2})[/-]([0-9]{1,2})[/-](?:[0-9]{4}|[0-9]{2})\b")
_NAMED_ZONE: Final = re.compile(r"\[[^\]]*\]$|(?<=[0-9]) ?(?:[A-Z]{1,2}(?:ST|DT|T))$")
_HALVES: Final = re.compile(r"\b[AP]M\b")
_WEEKDAY: Final = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]* ", re.IGNORECASE)


def find_time(value: Mapping[str, Any]) -> datetime | None:
    """Return the time of a message or conversation, from the first key that gives one, or None. Raises ValueError."""
    key = next((key for key in TIMES if value.get(key) not in (None, "") and not _is_small(value[key])), None)
    if key is None:
        return None
    try:
        return parse_time(value[key])
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{key} must be a time such as 2024-01-31T09:00 or seconds since 1970, got {value[key]!r:.40}") from None


def _is_small(given: Any) -> bool:
    """Return whether a number is no date but, for example, a duration: as seconds since 1970, it would be before March 1973."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1e8


def parse_time(given: Any, *, day_first: bool = False) -> datetime:
    """Return a time, with its zone if it has one. Numbers are units since 1970, in UTC. Raises ValueError, OverflowError or OSError."""
    if isinstance(given, dict):  # MongoDB's and Firestore's
        inner = next((given[key] for key in ("$date", "$numberLong", "seconds", "_seconds") if key in given), None)
        return parse_time(inner)
    if isinstance(given, str):
        if len(given) > 80:
            raise ValueError
        return _parse_text(_NAMED_ZONE.sub("", given.strip()) if given.endswith("]") else given.strip(), day_first)
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) < 1e20:
        raise ValueError
    return _from_number(float(given))


def _from_number(number: float) -> datetime:
    if not math.isfinite(number):
        raise ValueError
    return datetime.fromtimestamp(number / next((scale for size, scale in SCALES if abs(number) >= size), 1), UTC)


@lru_cache(maxsize=64)
def _parse_text(text: str, day_first: bool) -> datetime:
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    if text.lstrip("-").replace(".", "", 1).isdecimal():
        return _from_number(float(text))
    bare = _ZONE.sub("", text)
    with suppress(ValueError):
        found = datetime.fromisoformat(bare.strip())
        return found.replace(tzinfo=found.tzinfo or UTC)
    words = _normalize(bare)
    with suppress(ValueError):
        found = _parse_words(words, day_first)
        return found if bare == text else found.replace(tzinfo=UTC)
    if _HALVES.search(words):  # parsedate_to_datetime ignores them
        raise ValueError
    with suppress(TypeError, IndexError):
        return parsedate_to_datetime(text)
    raise ValueError


def _normalize(text: str) -> str:
    """Return a date in words with single spaces, without weekdays, commas, `at` and ordinals, and with `6:05pm` as `6:05 PM`."""
    text = _NAMED_ZONE.sub("", re.sub("日", " ", re.sub("[年月]", "-", text)))
    text = re.sub(r"[\u200e\u200f\u202a-\u202e]", "", text)
    text = re.sub(r"(\d+)h ?(\d+)m ?(\d+)s(?: ?\d+ms)?", r"\1:\2:\3", text)  # SillyTavern's
    text = re.sub(r"(\d)\s*([ap])\.?\s?m\b\.?", lambda found: f"{found[1]} {found[2].upper()}M", text, flags=re.IGNORECASE)
    text = re.sub(r"\b(\d{1,2})(?:st|nd|rd|th)\b", r"\1", text)
    return _WEEKDAY.sub("", re.sub(r"(?:\b(?:at|on)\b|[,@·\s])+", " ", text).strip()).strip()


def _parse_words(text: str, day_first: bool) -> datetime:
    slashed = _SLASHED.search(text)
    if slashed is not None:
        day_first = (day_first or int(slashed[1]) > 12) and int(slashed[2]) <= 12
    for day in (*SLASHED[day_first], *DAYS):
        for form in (day, *(f"{day} {hour}" for hour in HOURS), *(f"{hour} {day}" for hour in HOURS)):
            with suppress(ValueError):
                return datetime.strptime(text, form)
    raise ValueError


def is_day_first(dates: Iterable[str]) -> tuple[bool, bool]:
    """Return whether dates such as `3/1/24` begin with the day, and whether the dates prove it.

    Proof is a number above 12, or else an order in which the dates never go back.
    """
    pairs = [(int(found[1]), int(found[2]), found[0][-2:]) for date in dates if (found := _SLASHED.search(date)) is not None]
    if any(first > 12 for first, _, _ in pairs) or any(second > 12 for _, second, _ in pairs):
        return not any(second > 12 for _, second, _ in pairs), True
    by_month = [(year, first, second) for first, second, year in pairs]
    by_day = [(year, second, first) for first, second, year in pairs]
    ordered = by_month == sorted(by_month), by_day == sorted(by_day)
    return (True, True) if ordered == (False, True) else (False, ordered == (True, False))
