"""Read the rooms and weekdays of clubs from replies: the current ones, those at a past date, or all in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import groupby, islice
from typing import Final

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.reading.abstentions import is_abstention
from longspan.simulator.reading.dates import MONTHS, find_dates
from longspan.simulator.reading.matching import json_values
from longspan.simulator.reading.replies.layout import drop_markup, flatten_layout
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.reading import Reading, SettledValues
from longspan.simulator.reading.replies.splitting import SENTENCE, TURN
from longspan.simulator.reading.replies.values import Values

__all__ = ["DAYS", "admits_ignorance", "days_now", "rooms_held", "rooms_in_order", "rooms_now", "rooms_then"]

DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

_DAY: Final = re.compile(
    r"\b(?:(?P<name>(?i:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b|(?P<short>Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun)\b(?:\.(?=\s+[a-z(]|,))?)"
)
_AFTER: Final = re.compile(r"\bafter [^,;.!?()\n]{1,80}", re.IGNORECASE)
_ITEM: Final = re.compile(r"[^\S\n]*(?:[-*\u2022+]|\(?\d{1,3}[.):])[^\S\n]*(?=\S)")
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019]s\b")
_UNTIL: Final = re.compile(r"\b(?:until|till|up to|by|before|through)\b", re.IGNORECASE)


def rooms_now(reply: str, group: str, others: Iterable[str]) -> SettledValues:
    """Return the rooms that a reply gives for a group: one if it answers, several if it hedges."""
    whose = _whose(group, others)
    settled = Reading(_AFTER.sub(" ", reply)).of(Values(_rooms()), whose)
    return settled if settled.values else Reading(reply).of(Values(_rooms()), whose)


def days_now(reply: str, group: str, others: Iterable[str]) -> SettledValues:
    """Return the weekdays that a reply gives for a group. "Thursdays" and "Thurs" both mean Thursday."""
    return Reading(_DAY.sub(_day, reply)).of(Values(DAYS), _whose(group, others))


def rooms_held(reply: str, group: str, others: Iterable[str], on: date | None = None) -> SettledValues:
    """Return the rooms that, according to a reply, were believed right `on` a past date. Remarks on later knowledge are ignored."""
    return _without("known since", reply, _whose(group, others), on)


def rooms_then(reply: str, group: str, others: Iterable[str], on: date | None = None) -> SettledValues:
    """Return the rooms that, according to a reply, were in fact right `on` a past date. Remarks on what was believed then are ignored."""
    return _without("told then", reply, _whose(group, others), on)


def rooms_in_order(reply: str) -> list[str]:
    """Return the rooms that a reply lists, in order, from a JSON list, a list of lines or a sentence. Immediate repetitions count once."""
    reply = drop_markup(reply)
    for value in json_values(reply):
        entries = next((each for each in value.values() if isinstance(each, list)), ()) if isinstance(value, dict) else value
        if listed := list(_first_rooms(map(str, entries))):
            return listed
    lines = [line for line in reply.splitlines() if _ITEM.match(line)]
    if len(listed := list(_first_rooms(_ITEM.sub("", line, count=1) for line in lines))) > 1:
        return listed
    return _anew(
        room for piece in Reading(reply).pieces(SENTENCE, "()[];") if not LEXICON.has("left out", piece) for room in _find_rooms(piece)
    )


def admits_ignorance(reply: str, known: Sequence[str]) -> bool:
    """Return whether a reply says that it was not told the answer, and offers none. Statements about the `known` groups are no offers."""
    if not is_abstention(reply):
        return False
    others = _sorts_pattern(known)
    offers = (part for part in Reading(_DAY.sub(_day, reply)).pieces(TURN) if any(_find_rooms(part)) or Values(DAYS).find(part))
    return all(others.search(part) and not LEXICON.has("guessed", part) for part in offers)


def _rooms() -> Sequence[str]:
    rooms: Sequence[str] = load_words("clubs")["rooms"]
    return rooms


def _day(match: re.Match[str]) -> str:
    start = (match["name"] or match["short"])[:3].casefold()
    return next(day for day in DAYS if day[:3].casefold() == start)


def _whose(group: str, others: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of a group and of the other groups, each with and without its owner."""
    foreign = [name for other in others for name in (other, _sort(other)) if other != group and _sort(other) != _sort(group)]
    return [group, _sort(group)], foreign


def _without(asides: str, reply: str, whose: tuple[list[str], list[str]], on: date | None) -> SettledValues:
    """Return the rooms that a reply gives, leaving out clauses with words from the lexicon group `asides` and clauses about later
    events.

    If no other clause names a room, all clauses count.
    """
    said, values = Reading(reply), Values(_rooms())
    foreign: set[int] = set()
    when = ""  # the date clause before the current one: "On 29 March, it moved"
    for at, clause in enumerate(said.clauses):
        if not values.find(clause.text):
            when = clause.raw if find_dates(clause.raw[:200]) else ""
        elif LEXICON.has(asides, clause.text) or _is_later(f"{when} {clause.raw}", on):
            foreign.add(at)
    settled = said.of(values, whose, heeds=lambda clause: clause not in foreign)
    return settled if settled.values else said.of(values, whose)


def _is_later(clause: str, on: date | None) -> bool:
    """Return whether a clause dates its statement after `on` without saying that it held until then."""
    if on is None or _UNTIL.search(clause):
        return False
    days = [(MONTHS.index(month) + 1, int(day)) for month, _, day in (found.partition(" ") for found in find_dates(clause[:400]))]
    # replies rarely give the year, so a date that seems over half a year later (186 days) is taken for an earlier one; 372 = 12 * 31
    return any(0 < ((month - on.month) * 31 + day - on.day) % 372 < 186 for month, day in days)


def _sorts_pattern(groups: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches the short names of groups in plain words."""
    return re.compile("|".join(re.escape(plain(_sort(group))) for group in groups) or "(?!)")


def _find_rooms(text: str) -> Iterator[str]:
    """Yield the rooms that `text` names, in order."""
    rooms = _by_plain_name()
    return (rooms[word] for word in plain(_POSSESSIVE.sub("", text)).split() if word in rooms)


@cache
def _by_plain_name() -> Mapping[str, str]:
    return {plain(room): room for room in _rooms()}


def _first_rooms(entries: Iterable[str]) -> Iterator[str]:
    """Yield the first room of each list entry, skipping entries without a room and entries that exclude theirs."""
    for entry in entries:
        if not LEXICON.has("left out", plain(flatten_layout(entry))):
            yield from islice(_find_rooms(entry), 1)


def _anew(rooms: Iterable[str]) -> list[str]:
    return [room for room, _ in groupby(rooms)]


def _sort(group: str) -> str:
    """Return a group's name without its owner: "choir" for "my sister's choir"."""
    sorts: Sequence[str] = load_words("clubs")["groups"]
    return next(sort for sort in sorts if group.endswith(f" {sort}"))
