"""Parses times of day in replies: "9:30 a.m.", "half past nine", "at 9", "nine o'clock", "09h00"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from longspan.simulator.base.words import SMALL
from longspan.simulator.reading.replies.values import ValueMatch

__all__ = ["Times"]

_HOUR: Final = "|".join([r"[01]?\d", "2[0-4]", *SMALL[1:13]])
_AT: Final = "|".join(rf"(?<=\b{word} )(?<!\d {word} )" for word in "at from to is by around about open opens opening".split())
"""Words that turn the bare number after them into an hour."""
_TIME: Final = re.compile(
    rf"\b(?:half past (?P<half>{_HOUR})"
    rf"|(?P<at>{_AT})?(?P<hour>{_HOUR})(?:(?:h| ?)(?P<minutes>[0-5]\d)| (?P<thirty>thirty))?"
    r"(?P<mark> ?(?:o ?clock|am|h|hrs?|hours|sharp|in the morning))*(?P<late> ?(?:pm|in the (?:afternoon|evening)))?)\b"
)


@final
class Times:
    """Times such as "9:30" as possible answers. Implements `Findable`.

    Any other time is a wrong answer, found with the value "". So is the same hour p.m.: the expected times are all in the morning.
    """

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values

    def find(self, text: str) -> list[ValueMatch]:
        """Return the times that plain text names, in text order."""
        return [
            ValueMatch(self._value(match), match.start(), match.end())
            for match in _TIME.finditer(text)
            if match["at"] is not None
            or any(match[group] for group in ("half", "minutes", "thirty", "mark", "late"))
            or (match[0] == text and (text.isdecimal() or self._value(match)))
        ]

    def _value(self, match: re.Match[str]) -> str:
        hour = match["half"] or match["hour"]
        minutes = match["minutes"] or ("30" if match["half"] or match["thirty"] else "00")
        time = f"{int(hour) if hour.isdecimal() else SMALL.index(hour)}:{minutes}"
        return time if time in self.values and not match["late"] else ""
