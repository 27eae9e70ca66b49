"""Repair faults of published files without losing content. Every repair is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, final

from longspan.scenarios.histories.history import Session

__all__ = ["Labels", "drop_backward_dates", "number_duplicates", "parse_date", "sort_labels"]


@final
class Labels(NamedTuple):
    """Distinct evidence labels: those that name exactly one thing, and the others."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]


def number_duplicates(ids: Iterable[str]) -> list[str]:
    """Return unique ids: the second `a` becomes `a#2`, or `a#3` if `a#2` is taken."""
    ids = list(ids)
    given, repeated, found = set(ids), Counter[str](), []
    for id in ids:
        repeated[id] += 1
        while repeated[id] > 1 and f"{id}#{repeated[id]}" in given:
            repeated[id] += 1
        found.append(id if repeated[id] == 1 else f"{id}#{repeated[id]}")
    return found


def sort_labels(labels: Iterable[str], ids: Iterable[str]) -> Labels:
    """Separate labels that name exactly one of the published `ids` from those that name none or several."""
    counts = Counter(ids)
    each = tuple(dict.fromkeys(labels))
    return Labels(tuple(label for label in each if counts[label] == 1), tuple(label for label in each if counts[label] != 1))


def drop_backward_dates(sessions: Sequence[Session]) -> tuple[tuple[Session, ...], int]:
    """Return the sessions in order, without dates earlier than a preceding session's, and the number of dates dropped."""
    last = datetime.min
    found, back = [], 0
    for session in sessions:
        goes_back = session.at is not None and session.at < last
        back += goes_back
        found.append(replace(session, at=None) if goes_back else session)
        last = found[-1].at or last
    return tuple(found), back


def parse_date(text: str, *forms: str) -> datetime | None:
    """Return a date in one of these `strptime` formats, or None."""
    for form in forms:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
