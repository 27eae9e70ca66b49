"""Parses times of day: "9:30 a.m.", "half past nine", "at 9", "nine o'clock", "09h00"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from longspan.simulator.base.words import SMALL
from longspan.simulator.reading.replies.values import ValueMatch

__all__ = ["CLOCK", "Times", "find_hours", "is_clock", "read_clock"]

_HOUR: Final = "|".join([r"2[0-4]|[01]?\d", *reversed(SMALL[1:13])])
CLOCK: Final = re.compile(
    rf"\b(?:(?P<named>noon|midday|midnight)|(?P<past>half past|quarter past|quarter to) (?P<from>{_HOUR})"
    rf"|(?<![\d.,:/-])(?P<hour>{_HOUR})(?:(?P<mark>[:h.])(?P<minutes>[0-5]\d)(?!\d)| (?P<thirty>thirty)\b(?!-))?)"
    r"(?P<oclock> ?(?:o['\u2019]?clock|uhr))?"
    r"(?: ?(?:(?P<am>a\.?m\b\.?|in the morning)|(?P<pm>p\.?m\b\.?|in the (?:afternoon|evening))|(?P<night>at night)))?"
    r"(?P<end>(?=\W{0,3}\Z))?",
    re.IGNORECASE,
)
_BARE: Final = re.compile(r"(?:\A|\b(?:at|around|about|by))\W{0,3}\Z", re.IGNORECASE)
_LED: Final = re.compile(r"(?<!\d )\b(?:at|from|to|is|by|until|around|about|open\w*) \Z", re.IGNORECASE)
_FOLLOWED: Final = re.compile(r" ?(?:h|hrs?|hours|sharp)\b", re.IGNORECASE)
"""Words that turn the bare number after them, or before them, into an hour where a time is asked for."""
_PAST: Final = {"half past": 30, "quarter past": 15, "quarter to": -15}


def read_clock(match: re.Match[str], *, asked: bool = False) -> Sequence[int]:
    """Return the minutes of the day that a match of CLOCK may mean: none if it is no time, two if it may be a.m. or p.m.

    If a time was `asked` for, a bare number counts after "from", "opens" and the like, and before "sharp".
    """
    if match["named"]:
        return [0 if match["named"].casefold() == "midnight" else 12 * 60]
    half = match["am"] or match["pm"] or match["night"]
    before = match.string[max(0, match.start() - 12) : match.start()]
    bare = (match["end"] is not None and _BARE.search(before)) or (
        asked and (_LED.search(before) or _FOLLOWED.match(match.string, match.end()))
    )
    marked = half or match["past"] or match["oclock"] or match["thirty"] or match["mark"] in (":", "h", "H")
    if not (marked or (bare and not match["mark"])):
        return []
    written = match["hour"] or match["from"]
    hour = int(written) if written.isdecimal() else SMALL.index(written.casefold())
    minutes = int(match["minutes"] or (30 if match["thirty"] else 0)) + _PAST.get((match["past"] or "").casefold(), 0)
    if half:
        late = bool(match["pm"]) or (match["night"] is not None and 5 <= hour < 12)
        hours = [hour % 12 + 12 * late]
    else:
        hours = [hour % 24] if hour > 12 or hour == 0 or written.startswith("0") else [hour % 24, (hour + 12) % 24]
    return [(60 * each + minutes) % (24 * 60) for each in hours]


def is_clock(answer: str) -> bool:
    """Return whether a gold answer is a time of day."""
    match = CLOCK.fullmatch(answer.strip(" ."))
    marks = ("named", "past", "minutes", "thirty", "oclock", "am", "pm", "night")
    return match is not None and any(match[group] for group in marks) and bool(read_clock(match))


def find_hours(text: str) -> list[str]:
    """Return the full hours in `text` as "midnight", "noon" or "8 oclock", without repeats and without those named as a word.

    Reads "24:00", "at 8", "8 p.m." and "eight in the evening". Takes time linear in the length of the text. Never raises.
    """
    times = [read_clock(match, asked=True)[:1] for match in CLOCK.finditer(text) if not match["named"]]
    hours = [minutes // 60 for (minutes,) in filter(None, times) if minutes % 60 == 0]
    return list(dict.fromkeys({0: "midnight", 12: "noon"}.get(hour, f"{hour % 12} oclock") for hour in hours))


@final
class Times:
    """Times such as "9:30" as possible answers. Implements `Findable`.

    Any other time is a wrong answer, found with the value "". So is the same hour p.m.: the expected times are all in the morning.
    """

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values

    def find(self, text: str) -> list[ValueMatch]:
        """Return the times that plain text names, in text order."""
        times = ((match, read_clock(match, asked=True)) for match in CLOCK.finditer(_MINUTES.sub(":", text)))
        found = [(f"{minutes[0] // 60}:{minutes[0] % 60:02}", *match.span()) for match, minutes in times if minutes]
        # A lone word may be a heading: "One: it opens at 9:30."
        return [
            ValueMatch(time if time in self.values else "", *span) for time, *span in found if time in self.values or not text.isalpha()
        ]


_MINUTES: Final = re.compile(r"(?<=\d) (?=[0-5]\d\b)")
"""The space of plain text where a time had a colon."""
