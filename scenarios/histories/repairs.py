"""What published files get wrong, put right so that nothing is lost and everything is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, final

from longspan.scenarios.histories.history import Session

__all__ = ["Labels", "date", "distinct", "onward", "sort_labels"]


@final
class Labels(NamedTuple):
    """Labels of evidence, each once: those that name one thing, and the others."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]


def distinct(ids: Iterable[str]) -> list[str]:
    """Return unique ids: the second `a` becomes `a#2`, or `a#3` if another id is `a#2`."""
    ids = list(ids)
    given, repeated, found = set(ids), Counter[str](), []
    for id in ids:
        repeated[id] += 1
        while repeated[id] > 1 and f"{id}#{repeated[id]}" in given:
            repeated[id] += 1
        found.append(id if repeated[id] == 1 else f"{id}#{repeated[id]}")
    return found


def sort_labels(labels: Iterable[str], ids: Iterable[str]) -> Labels:
    """Tell labels that name one of the published `ids` from those that name none, or several."""
    counts = Counter(ids)
    each = tuple(dict.fromkeys(labels))
    return Labels(tuple(label for label in each if counts[label] == 1), tuple(label for label in each if counts[label] != 1))


def onward(sessions: Sequence[Session]) -> tuple[tuple[Session, ...], int]:
    """Return sessions, in their order, without the dates that lie before an earlier one's, and how many these were."""
    last = datetime.min
    found, back = [], 0
    for session in sessions:
        goes_back = session.at is not None and session.at < last
        back += goes_back
        found.append(replace(session, at=None) if goes_back else session)
        last = found[-1].at or last
    return tuple(found), back


def date(text: str, *forms: str) -> datetime | None:
    """Return a date written in one of these forms of `strptime`, or None if it is in none of them."""
    for form in forms:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
