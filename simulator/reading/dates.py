"""Parses dates in the notations that replies use, and returns them in one notation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, final

from longspan.simulator.base.words import ORDINALS, plain
from longspan.simulator.reading.replies.values import ValueMatch

__all__ = ["MONTHS", "Days", "find_dates", "the_day"]

MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = rf"(?P<month>{'|'.join(rf'{name[:3]}(?:{name[3:]}|{name[3:4]})?' if name != 'may' else 'may' for name in MONTHS)})"
_DAY: Final = rf"(?P<day>{'|'.join(sorted(ORDINALS, key=len, reverse=True))}|\d\d?(?:st|nd|rd|th)?)"
_SPOKEN: Final = (
    re.compile(rf"\b{_DAY} (?:day )?(?:of )?{_MONTH}\b"),
    re.compile(rf"\b{_MONTH} (?:the )?{_DAY}\b"),
)
_WRITTEN: Final = re.compile(  # 2024-02-29, 29/02/2024, 29.2., 02-29
    r"(?<![\d./-])(?:\d{4}([-/.])(?P<a>\d\d?)\1(?P<b>\d\d?)|(?P<c>\d\d?)/(?P<d>\d\d?)(?:/\d\d(?:\d\d)?)?"
    r"|(?P<e>\d\d?)\.\s?(?P<f>\d\d?)\.(?:\s?\d\d(?:\d\d)?)?|(?P<g>\d\d)-(?P<h>\d\d)(?:-\d{4})?)(?![\d/%-])"
)


def find_dates(text: str) -> list[str]:
    """Return the days of the year in `text`, as "february 29", without repeats.

    Reads "Feb 29th", "29/02", "the twenty-ninth of February" and "02-29". An ambiguous date in figures ("1/4") yields both readings.
    Takes time linear in the length of the text. Never raises.
    """
    return list(dict.fromkeys(f"{MONTHS[month - 1]} {day}" for month, day in _dates(text) if 1 <= month <= 12 and 1 <= day <= 31))


def _dates(text: str) -> Iterator[tuple[int, int]]:
    words = plain(text)
    for pattern in _SPOKEN:
        for match in pattern.finditer(words):
            day = match["day"]
            number = ORDINALS.get(day) or int(re.sub(r"\D", "", day))
            yield next(at for at, name in enumerate(MONTHS, 1) if name[:3] == match["month"][:3]), number
    for match in _WRITTEN.finditer(text):
        first, second = (int(part) for name in "abcdefgh" if (part := match[name]))
        yield first, second
        yield second, first


def the_day(text: str) -> int | None:
    """Return the only day of the year in `text`, or None if there is no date or more than one.

    Days count from 0, with 31 days in every month: good enough to order dates, and it needs no leap year.
    """
    named = {(month, day) for month, day in _dates(text) if 1 <= month <= 12 and 1 <= day <= 31}
    if len(named) != 1:
        return None
    ((month, day),) = named
    return 31 * (month - 1) + day - 1


@final
class Days:
    """Days of the year, such as "29 February", as possible answers in any notation. Implements `Findable`.

    An ambiguous date in figures ("1/4") is read as one of the `likely` days if either reading is among them.
    """

    def __init__(self, likely: Sequence[str]) -> None:
        self.values = [f"{day} {month.title()}" for month in MONTHS for day in range(1, 32)]
        self._likely = frozenset(likely)

    def find(self, text: str) -> list[ValueMatch]:
        """Return the days that plain text names, in text order."""
        found: list[ValueMatch] = []
        for match in sorted(
            (match for pattern in (*_SPOKEN, _FIGURES) for match in pattern.finditer(text)), key=lambda match: match.start()
        ):
            days = list(_readings(match))
            if days and (not found or match.start() >= found[-1].end):
                found.append(ValueMatch(next((day for day in days if day in self._likely), days[0]), match.start(), match.end()))
        return found


_FIGURES: Final = re.compile(r"\b(?:\d{4} (?P<a>\d\d?) (?P<b>\d\d?)|(?P<c>\d\d?) (?P<d>\d\d?)(?: (?:\d\d){1,2})?)\b")


def _readings(match: re.Match[str]) -> Iterator[str]:
    """Yield the valid days that a matched date may stand for, the day-first reading first."""
    groups = match.groupdict()
    if "month" in groups:
        day = ORDINALS.get(groups["day"]) or int(re.sub(r"\D", "", groups["day"]))
        pairs = [(next(at for at, name in enumerate(MONTHS, 1) if name[:3] == groups["month"][:3]), day)]
    else:
        first, second = (int(part) for part in groups.values() if part)
        pairs = [(second, first), (first, second)]
    yield from (f"{day} {MONTHS[month - 1].title()}" for month, day in pairs if 1 <= month <= 12 and 1 <= day <= 31)
