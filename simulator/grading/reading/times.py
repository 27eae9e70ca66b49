"""Times of the clock in replies: "9:30 a.m.", "half past nine", "at 9", "nine o'clock", "09h00"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from longspan.simulator.grading.matching import SMALL
from longspan.simulator.grading.reading.values import Found

__all__ = ["Times"]

_HOUR: Final = "|".join([r"[01]?\d", "2[0-4]", *SMALL[1:13]])
_AT: Final = "|".join(rf"(?<=\b{word} )(?<!\d {word} )" for word in "at from to is by around about open opens opening".split())
"""Words before a bare number that make it an hour."""
_TIME: Final = re.compile(
    rf"\b(?:half past (?P<half>{_HOUR})"
    rf"|(?P<at>{_AT})?(?P<hour>{_HOUR})(?:(?:h| ?)(?P<minutes>[0-5]\d)| (?P<thirty>thirty))?"
    r"(?P<mark> ?(?:o ?clock|am|h|hrs?|hours|sharp|in the morning))*(?P<late> ?(?:pm|in the (?:afternoon|evening)))?)\b"
)


@final
class Times:
    """Times such as "9:30" that a question may be answered with. Any other time is another answer, and so is the same hour p.m."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values

    def find(self, text: str) -> list[Found]:
        """Return the times that plain text names, in its order."""
        return [
            Found(self._value(match), match.start(), match.end())
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
