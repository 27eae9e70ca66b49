"""Dates in words, for questions whose date is known only when they are asked."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

__all__ = ["PLACEHOLDER_DATE", "parse_said_date", "say_date"]

PLACEHOLDER_DATE: Final = "1 January 2024"
"""Placeholder for a date that is not known yet. All dates with four-digit years have the same number of tokens."""


def say_date(day: date) -> str:
    """Return a date in words: "29 February 2024"."""
    return f"{day.day} {day:%B} {day.year}"


def parse_said_date(text: str) -> date | None:
    """Return the date that `say_date` turns into `text`, or None."""
    try:
        return datetime.strptime(text, "%d %B %Y").date()
    except ValueError:
        return None
