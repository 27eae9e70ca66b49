"""Reads replies about the rooms and days of clubs: which one a reply settles on for now, for a past date, or in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import groupby, islice
from typing import Final

from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.abstentions import abstains
from longspan.simulator.grading.dates import MONTHS, dates
from longspan.simulator.grading.matching import json_values, plain
from longspan.simulator.grading.reading.layout import laid_out, unmarked
from longspan.simulator.grading.reading.lexicon import LEXICON
from longspan.simulator.grading.reading.reading import Reading, Settled
from longspan.simulator.grading.reading.splitting import SENTENCE, TURN
from longspan.simulator.grading.reading.values import Values

__all__ = ["DAYS", "admits", "days_now", "rooms_held", "rooms_in_order", "rooms_now", "rooms_then"]

DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

_DAY: Final = re.compile(
    r"\b(?:(?P<name>(?i:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b|(?P<short>Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun)\b(?:\.(?=\s+[a-z(]|,))?)"
)
_AFTER: Final = re.compile(r"\bafter [^,;.!?()\n]{1,80}", re.IGNORECASE)
_ITEM: Final = re.compile(r"[^\S\n]*(?:[-*\u2022+]|\(?\d{1,3}[.):])[^\S\n]*(?=\S)")
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019]s\b")
_UNTIL: Final = re.compile(r"\b(?:until|till|up to|by|before|through)\b", re.IGNORECASE)


def rooms_now(reply: str, group: str, others: Iterable[str]) -> Settled:
    """Return the rooms that a reply settles on for a group: one if it answers, several if it hedges."""
    whose = _whose(group, others)
    settled = Reading(_AFTER.sub(" ", reply)).of(Values(_rooms()), whose)
    return settled if settled.values else Reading(reply).of(Values(_rooms()), whose)


def days_now(reply: str, group: str, others: Iterable[str]) -> Settled:
    """Return the days of the week that a reply settles on. "Thursdays" and "Thurs" name Thursday."""
    return Reading(_DAY.sub(_day, reply)).of(Values(DAYS), _whose(group, others))


def rooms_held(reply: str, group: str, others: Iterable[str], on: date | None = None) -> Settled:
    """Return the rooms that a reply settles on as the belief held `on` a past date. Remarks on later knowledge do not count."""
    return _without("known since", reply, _whose(group, others), on)


def rooms_then(reply: str, group: str, others: Iterable[str], on: date | None = None) -> Settled:
    """Return the rooms that a reply settles on as the truth `on` a past date. Remarks on what people were told then do not count."""
    return _without("told then", reply, _whose(group, others), on)


def rooms_in_order(reply: str) -> list[str]:
    """Return the rooms that a reply lists, in order, each as often as it comes anew: a JSON list, a list of lines, or a sentence."""
    reply = unmarked(reply)
    for value in json_values(reply):
        entries = next((each for each in value.values() if isinstance(each, list)), ()) if isinstance(value, dict) else value
        if listed := list(_listed(map(str, entries))):
            return listed
    lines = [line for line in reply.splitlines() if _ITEM.match(line)]
    if len(listed := list(_listed(_ITEM.sub("", line, count=1) for line in lines))) > 1:
        return listed
    return _anew(room for piece in Reading(reply).pieces(SENTENCE, "()[];") if not LEXICON.has("left out", piece) for room in _named(piece))


def admits(reply: str, known: Sequence[str]) -> bool:
    """Return whether a reply says that the answer was not told, and offers none. Its statements about `known` groups do not count as
    one."""
    if not abstains(reply):
        return False
    others = _mentioning(known)
    offers = (part for part in Reading(_DAY.sub(_day, reply)).pieces(TURN) if any(_named(part)) or Values(DAYS).find(part))
    return all(others.search(part) and not LEXICON.has("guessed", part) for part in offers)


def _rooms() -> Sequence[str]:
    rooms: Sequence[str] = words("clubs")["rooms"]
    return rooms


def _day(match: re.Match[str]) -> str:
    start = (match["name"] or match["short"])[:3].casefold()
    return next(day for day in DAYS if day[:3].casefold() == start)


def _whose(group: str, others: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return a group's names and the others' names, with their owners and without."""
    foreign = [name for other in others for name in (other, _sort(other)) if other != group and _sort(other) != _sort(group)]
    return [group, _sort(group)], foreign


def _without(asides: str, reply: str, whose: tuple[list[str], list[str]], on: date | None) -> Settled:
    """Return the rooms that a reply settles on without the clauses that say something else, unless no others name a room.

    These are the clauses with words of the group of `asides`, and clauses about later events.
    """
    said, values = Reading(reply), Values(_rooms())
    foreign: set[int] = set()
    when = ""  # "On 29 March, it moved": a date, and the clause that it is of
    for at, clause in enumerate(said.clauses):
        if not values.find(clause.text):
            when = clause.raw if dates(clause.raw[:200]) else ""
        elif LEXICON.has(asides, clause.text) or _is_later(f"{when} {clause.raw}", on):
            foreign.add(at)
    settled = said.of(values, whose, heeds=lambda clause: clause not in foreign)
    return settled if settled.values else said.of(values, whose)


def _is_later(clause: str, on: date | None) -> bool:
    """Return whether a clause dates its statement after a date, and does not say that it was so until then."""
    if on is None or _UNTIL.search(clause):
        return False
    days = [(MONTHS.index(month) + 1, int(day)) for month, _, day in (found.partition(" ") for found in dates(clause[:400]))]
    # the year is seldom said: what seems to be more than half a year later was before
    return any(0 < ((month - on.month) * 31 + day - on.day) % 372 < 186 for month, day in days)


def _mentioning(groups: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of the sorts of some groups, in plain words."""
    return re.compile("|".join(re.escape(plain(_sort(group))) for group in groups) or "(?!)")


def _named(text: str) -> Iterator[str]:
    """Yield the rooms that `text` names, in its order."""
    rooms = _by_plain_name()
    return (rooms[word] for word in plain(_POSSESSIVE.sub("", text)).split() if word in rooms)


@cache
def _by_plain_name() -> Mapping[str, str]:
    return {plain(room): room for room in _rooms()}


def _listed(entries: Iterable[str]) -> Iterator[str]:
    """Yield the first room of each entry of a list that names one and does not leave it out."""
    for entry in entries:
        if not LEXICON.has("left out", plain(laid_out(entry))):
            yield from islice(_named(entry), 1)


def _anew(rooms: Iterable[str]) -> list[str]:
    return [room for room, _ in groupby(rooms)]


def _sort(group: str) -> str:
    """Return a group without its owner: "choir" of "my sister's choir"."""
    sorts: Sequence[str] = words("clubs")["groups"]
    return next(sort for sort in sorts if group.endswith(f" {sort}"))
