"""Dates as the user says them in questions whose date is known only when they are asked."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

__all__ = ["PLACEHOLDER_DATE", "spoken", "unspoken"]

PLACEHOLDER_DATE: Final = "1 January 2024"
"""Stands for a date until the question is asked. The dates of four-digit years all have as many tokens."""


def spoken(day: date) -> str:
    """Return a date in words: "29 February 2024"."""
    return f"{day.day} {day:%B} {day.year}"


def unspoken(text: str) -> date | None:
    """Return the date that `spoken` said as `text`; None if it did not."""
    try:
        return datetime.strptime(text, "%d %B %Y").date()
    except ValueError:
        return None
