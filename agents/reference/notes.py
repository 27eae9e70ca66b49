"""Notes: what `notebook` remembers of a conversation, and how it looks things up by words."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, final

from longspan.agents.reference.answers import sender
from longspan.agents.reference.choices import Offer, choice, offers, speaker
from longspan.agents.reference.language import asks, content, enclosed, instructs_form, kind, near, options, requests, sentences
from longspan.agents.reference.ledger import Change, changes
from longspan.agents.reference.orders import Order, order, withdraws

__all__ = ["TALK", "Concept", "Found", "Note", "Notes", "Unit", "estimate"]

MOST_READ = 400_000
"""Of a longer message only so many characters are kept, from its end."""

TALK = 600
"""A longer message is a text to be processed, in characters: what stands in it was not told by whoever passed it on."""

WHOLE = 60
"""A message of up to so many words is looked up as a whole, a longer one by the sentence."""


_PRONOUNS = frozenset("it it's that that's this they he she his her its their".split())


def estimate(text: str) -> int:
    """About how many tokens `text` has: a token for every four characters, which costs nothing to find out."""
    return len(text) // 4 + 1


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """What is looked up at once: a short message, or a sentence of a long one."""

    text: str
    stems: frozenset[str]
    note: int
    sender: str
    """Who sent it, where it is a message of somebody's that was passed on; "" where it is not."""
    brevity: float
    """1, less up to three tenths for a long text: it shares words by chance."""
    told: bool
    """Whether it was told, not read out from a text."""


@final
@dataclass(frozen=True, slots=True)
class Note:
    """One turn as it is remembered. `number` counts the turns of the conversation from 0."""

    number: int
    turn_id: str
    text: str
    sent_at: datetime
    reply: str
    tokens: int
    request: bool
    units: tuple[int, ...]
    order: Order | None
    changes: tuple[Change, ...]
    offers: tuple[Offer, ...]


@final
@dataclass(frozen=True, slots=True)
class Concept:
    """One thing a question is about: stems with how much each of them counts, the word itself most.

    `head`: it is the thing that is asked for, and counts half as much again.
    """

    weights: dict[str, float]
    head: bool

    @classmethod
    def of(cls, one: str, *, head: bool = False) -> Concept:
        weight = 1.5 if head else 1.0
        return cls({one: weight} | {other: 0.6 * weight for other in sorted(near(one)) if other != one}, head)


class Found(NamedTuple):
    """A unit that was looked up, and how well it fits."""

    score: float
    id: int
    unit: Unit


@final
class Notes:
    """The turns of a conversation, the newest `window` tokens of it (None: all), with an index of their words.

    Adding a turn costs time in proportion to its length; looking up, in proportion to how often the words occur.
    """

    def __init__(self, window: int | None = None) -> None:
        self._window = window
        self._notes: deque[Note] = deque()
        self._turns: dict[str, Note] = {}
        self._units: dict[int, Unit] = {}
        self._index: dict[str, list[int]] = {}
        self._orders: deque[Note] = deque()
        self._lines: list[tuple[int, frozenset[str]]] = []
        self._tokens = 0
        self._next_unit = 0
        self._oldest_unit = 0
        self.offers: tuple[Offer, ...] = ()
        """What was offered last."""
        self.choices: list[str] = []
        """What was chosen of it."""
        self.offered_by = ""
        """The name that whoever offered it goes by."""
        self.next = 0
        """The number of the next turn."""

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[Note]:
        return iter(self._notes)

    def __reversed__(self) -> Iterator[Note]:
        return reversed(self._notes)

    @property
    def orders(self) -> Iterator[Note]:
        """The turns that gave an order that still stands, the newest first."""
        return reversed(self._orders)

    def turn(self, turn_id: str) -> Note | None:
        """The turn of that id, where it is remembered."""
        return self._turns.get(turn_id)

    def clip(self, text: str) -> str:
        """As much of the end of `text` as is ever kept."""
        return text[-MOST_READ if self._window is None else -min(MOST_READ, 4 * self._window) :]

    def add(self, turn_id: str, text: str, sent_at: datetime, reply: str) -> None:
        """Remember a turn; what no longer fits the window is forgotten. Adding a turn again changes nothing."""
        if turn_id in self._turns:
            return
        text = self.clip(text)
        told, request = _told(text)
        ordered = order(text)
        if ordered and ordered.forget:
            self._lines.append((self.next, ordered.forget))
            self._orders = deque(one for one in self._orders if not withdraws(ordered.forget, one.text))
        note = Note(
            self.next,
            turn_id,
            text,
            sent_at,
            reply,
            estimate(text) + estimate(reply),
            request,
            tuple(self._enter(unit, told=len(text) <= TALK) for unit in told) if ordered is None or not ordered.stands else (),
            ordered,
            () if sender(text) else tuple(changes(text)),
            offers(text),
        )
        self.next += 1
        if note.offers:
            self.offers, self.choices, self.offered_by = note.offers, [], speaker(text)
        if self.offers and (chosen := choice(reply)):
            self.choices.append(chosen)
        self._notes.append(note)
        self._turns[turn_id] = note
        self._tokens += note.tokens
        if ordered and ordered.stands:
            self._orders.append(note)
        self.make_room(0)

    def make_room(self, tokens: int) -> None:
        """Forget the oldest turns, so that `tokens` more fit the window. The newest turn is never forgotten."""
        while self._window is not None and len(self._notes) > 1 and self._tokens + tokens > self._window:
            note = self._notes.popleft()
            self._tokens -= note.tokens
            del self._turns[note.turn_id]
            if note.offers and note.offers is self.offers:
                self.offers, self.choices, self.offered_by = (), [], ""
            if self._orders and self._orders[0] is note:
                self._orders.popleft()
            for unit in note.units:
                self._units.pop(unit, None)
                self._oldest_unit = unit + 1

    def lately(self, characters: int = 40_000) -> dict[str, float]:
        """The words of the newest `characters` that were told, each with how much it tells."""
        seen: set[str] = set()
        for unit in reversed(self._units.values()):
            seen |= unit.stems
            characters -= len(unit.text)
            if characters <= 0:
                break
        return {one: self._rarity(one) for one in sorted(seen)}

    def line(self, stems: Iterable[str]) -> int:
        """The number of the newest turn that said to disregard what was told before about something that `stems` name; 0 for none."""
        meant = {other for one in stems for other in (one, *near(one), kind(one))}
        return next((number for number, about in reversed(self._lines) if 2 * len(about & meant) >= len(about)), 0)

    def units(self, since: int = 0) -> list[Found]:
        """All that was told from the turn `since` on, oldest first."""
        return [Found(1.0, at, unit) for at, unit in self._units.items() if unit.told and unit.note >= since]

    def look_up(self, concepts: Sequence[Concept]) -> list[Found]:
        """The units that are about some of `concepts` and not to be disregarded, best first, the newer first among equals."""
        since = self.line(one for concept in concepts for one in concept.weights)
        scores: dict[int, float] = {}
        for concept in concepts:
            best: dict[int, float] = {}
            for one, weight in concept.weights.items():
                worth = weight * self._rarity(one)
                for unit in self._postings(one):
                    if unit in self._units and self._units[unit].told and self._units[unit].note >= since:
                        best[unit] = max(best.get(unit, 0.0), worth)
            for unit, worth in best.items():
                scores[unit] = scores.get(unit, 0.0) + worth
        found = [Found(score * self._units[at].brevity, at, self._units[at]) for at, score in scores.items()]
        return sorted(found, key=lambda one: (-one.score, -one.id))

    def _rarity(self, one: str) -> float:
        """How much a word tells: from 1 for one that is everywhere to about 5 for one said once."""
        return 1 + math.log10(1 + len(self._units) / max(1, len(self._postings(one))))

    def _postings(self, one: str) -> list[int]:
        """The units that have a stem, oldest first."""
        postings = self._index.get(one, [])
        if postings and postings[0] < self._oldest_unit:
            del postings[: bisect_left(postings, self._oldest_unit)]
        return postings

    def _enter(self, text: str, *, told: bool) -> int:
        unit, stems = self._next_unit, frozenset(content(text))
        self._next_unit += 1
        self._units[unit] = Unit(text, stems, self.next, sender(text), 1 - min(0.3, len(stems) / 150), told)
        for one in stems | {kind(one) for one in stems} - {""}:
            self._index.setdefault(one, []).append(unit)
        return unit


def _told(text: str) -> tuple[list[str], bool]:
    """The parts of a message that tell something to be remembered, and whether the message is a request."""
    request = requests(text)
    if request and (enclosed(text) or options(text)):
        return [], True
    ordered = order(text)
    parts = sentences(ordered.rest if ordered and ordered.forget else text)
    told = [part for part in parts if not asks(part) and not instructs_form(part)] if request else list(parts)
    if len(text.split(None, WHOLE)) <= WHOLE:
        return ([" ".join(told)] if told else []), request
    return _joined(told), request


def _joined(parts: Iterable[str]) -> list[str]:
    """Sentences, where one that begins with a pronoun stays with the one before."""
    units: list[str] = []
    for part in parts:
        first = part.split(None, 1)[0].casefold()
        if units and first in _PRONOUNS and len(units[-1]) < 400:
            units[-1] += " " + part
        else:
            units.append(part)
    return units
