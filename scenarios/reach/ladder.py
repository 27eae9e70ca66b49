"""The ladder: at which places of the span facts are told and asked for, so that questions are spread over all distances."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from random import Random
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.contract.script import LAST

__all__ = ["NEAREST", "Layout", "Sizes", "distances", "layout"]

NEAREST: Final = 32
"""Tokens of the nearest rung above asking at once: the message before."""

MESSAGE: Final = 28
"""Tokens that a message of these tests takes with its reply, at least: with more, a tiny remark would fill up after each."""

STRETCH: Final = 6
"""Messages that follow each other without filler, about."""

UNEVEN: Final = 2.5
"""The standard deviation of the logarithm of the filler between two stretches. The more it varies, the better a window of messages is told
from a window of tokens."""

NEAR: Final = 0.1
"""How far a question's distance may be from its rung, as a share of it."""

SHORT: Final = 600
"""Tokens up to which distances are short: these are placed first, since only neighbours will do."""

LAYOUTS: Final = 30
"""How many layouts are drawn at most, to take the one that best tells tokens from messages."""

MORE_LAYOUTS: Final = 100
"""The same with paraphrased questions, which take places from the plain ones."""

ENOUGH: Final = 1.25
"""Of how many questions that tell them apart, on average over limits, no more layout is drawn."""

LIMITS: Final = 12
"""At how many limits in tokens a layout is judged."""

ROOMY: Final = 4000
"""Tokens of the smallest span with paraphrased questions. In smaller ones they would take the room for filler. With four of them at 2,000
tokens, a simulated window of tokens was named in none of 30 runs instead of 27, and with five at 3,000 in 19 instead of 30."""

SURE: Final = 2
"""Questions that tell a limit in tokens from any limit in messages: more of them are not needed."""

FEW: Final = 10
"""Of the pairs that are about as far apart as a rung asks for, one in so many are those with the fewest messages in between."""


@final
class Sizes(NamedTuple):
    """How many questions a test asks, by strand, and how many of the facts are asked for at once."""

    plain: int
    paraphrased: int
    updates: int
    lists: int
    at_once: int

    @classmethod
    def of(cls, span: int) -> Sizes:
        """Return what a span in tokens has room for: 16 plain facts at 2,000 tokens, 45 at 8,000 and 64 from 12,700 on.

        From ROOMY tokens on, there are about a third as many paraphrased questions: 7 at 4,000 tokens, 13 at 8,000 and 19 at most.
        """
        plain = min(64, max(4, round(16 * (span / 2000) ** 0.75)))
        paraphrased = plain // 3 - 2 if span >= ROOMY else 0
        return cls(plain, paraphrased, max(2, plain // 6), max(1, plain // 9), min(12, max(3, plain // 3)))

    @property
    def messages(self) -> int:
        """How many messages the test says."""
        return 2 * (self.plain + self.paraphrased) + 3 * self.updates + 4 * self.lists + self.at_once


def distances(number: int, span: int) -> list[float]:
    """Return `number` distances in tokens, from NEAREST to nearly the span, evenly on a logarithmic scale. One alone is the furthest."""
    furthest = LAST * span
    nearest = min(NEAREST, furthest / 2)
    return [furthest * (nearest / furthest) ** (1 - step / max(1, number - 1)) if number > 1 else furthest for step in range(number)]


def _places(messages: int, span: int, random: Random) -> list[float]:
    """Return the places of `messages` messages in tokens, in order: the first at 0, the last at LAST of the span.

    They come in stretches. The filler between two stretches is of very different lengths, so that distances in tokens are not just
    distances in messages. Where the span has no room for filler, they follow each other.
    """
    stretches = max(2, round(messages / STRETCH))
    cuts = sorted(random.sample(range(1, messages), stretches - 1)) if messages > stretches else []
    shares = [math.exp(random.gauss(0, UNEVEN)) for _ in cuts]
    filler = max(0.0, LAST * span - MESSAGE * (messages - 1))
    gaps = dict(zip(cuts, (filler * share / sum(shares) for share in shares), strict=True))
    step = min(MESSAGE, LAST * span / max(1, messages - 1))
    return list(accumulate((step + gaps.get(number, 0.0) for number in range(1, messages)), initial=0.0))


@final
class _Slots:
    """The messages' places, of which each is taken once."""

    def __init__(self, at: Sequence[float], random: Random) -> None:
        self._at = at
        self._random = random
        self._free = list(range(len(at)))
        self._pairs = 0

    def pair(self, distance: float, before: int = 0, between: int = 0) -> tuple[int, ...]:
        """Take two free slots about `distance` tokens apart, with `before` more in front of them and `between` more in between. Return all
        of them in order.

        Of the pairs that are that far apart, one with few messages in between is taken, and the next time one with many: so distances in
        messages do not follow from distances in tokens.
        """
        best: tuple[float, int, int] | None = None
        near: list[tuple[int, int]] = []
        free = self._free
        for place in range(before, len(free) - 1 - between):
            goal = self._at[free[place]] + distance
            there = bisect_left(free, goal, lo=place + 1 + between, key=self._at.__getitem__)
            for other in {max(there - 1, place + 1 + between), min(there, len(free) - 1)}:
                apart = self._at[free[other]] - self._at[free[place]]
                off = abs(apart - distance) / distance
                if off <= NEAR:
                    near.append((place, other))
                if best is None or off < best[0]:
                    best = off, place, other
        if best is None:
            raise ValueError(f"{len(free)} slots are left, of {2 + before + between} that are needed")
        self._pairs += 1
        near.sort(key=lambda pair: (free[pair[1]] - free[pair[0]], pair))
        some = max(1, len(near) // FEW)
        first, last = self._random.choice(near[:some] if self._pairs % 2 else near[-some:]) if near else best[1:]
        chosen = [
            *sorted(self._random.sample(range(first), before)),
            first,
            *sorted(self._random.sample(range(first + 1, last), between)),
            last,
        ]
        taken = tuple(free[place] for place in chosen)
        self._free = [slot for slot in free if slot not in taken]
        return taken

    def ends(self) -> tuple[int, int]:
        """Take the first and the last slot."""
        first, last = self._free[0], self._free[-1]
        self._free = self._free[1:-1]
        return first, last

    def rest(self) -> list[int]:
        """Take all that are left, in random order."""
        left, self._free = self._free, []
        return self._random.sample(left, len(left))


@final
class Layout(NamedTuple):
    """Where a test's messages lie: their places `at` in tokens, and the numbers of the messages of each fact, in order. The last one
    asks. A message that tells and asks at once stands for itself."""

    at: list[float]
    plain: list[tuple[int, ...]]
    paraphrased: list[tuple[int, ...]]
    updates: list[tuple[int, ...]]
    lists: list[tuple[int, ...]]
    at_once: list[int]

    def unlike(self) -> float:
        """Return how many questions about plain facts tell a limit in tokens from every limit in messages, on average over such limits,
        where no more than SURE count."""
        tokens = [self.at[last] - self.at[first] for first, last in self.plain]
        filler = list(accumulate((after - before > 2 * MESSAGE for before, after in pairwise(self.at)), initial=0))
        messages = [last - first + filler[last] - filler[first] for first, last in self.plain]
        by_messages = [each for _, each in sorted(zip(messages, tokens, strict=True))]
        ordered = sorted(tokens)
        limits = [ordered[len(ordered) * step // (LIMITS + 1)] for step in range(1, LIMITS + 1)]
        return fmean(min(SURE, _told_apart(by_messages, limit)) for limit in limits)


def layout(sizes: Sizes, span: int, random: Random) -> Layout:
    """Draw layouts, and return the one that best tells a window of tokens from a window of messages."""
    best = _layout(sizes, span, random)
    most = best.unlike()
    for _ in range(1, MORE_LAYOUTS if sizes.paraphrased else LAYOUTS):
        if most >= ENOUGH:
            break
        drawn = _layout(sizes, span, random)
        if (unlike := drawn.unlike()) > most:
            best, most = drawn, unlike
    return best


def _layout(sizes: Sizes, span: int, random: Random) -> Layout:
    at = _places(sizes.messages, span, random)
    slots = _Slots(at, random)
    plain: list[tuple[int, ...]] = [slots.ends()]
    paraphrased: list[tuple[int, ...]] = []
    others = [(paraphrased, distance) for distance in distances(sizes.paraphrased, span)]
    rungs = [*((plain, distance) for distance in distances(sizes.plain, span)[:-1]), *others[:-1]]
    # Only neighbours will do for short distances. The furthest pair needs messages near both ends, which the other strands would take.
    for strand, distance in [*(rung for rung in rungs if rung[1] <= SHORT), *others[-1:]]:
        strand.append(slots.pair(distance))
    lists = [slots.pair(distance, between=2) for distance in distances(sizes.lists, span)]
    updates = [slots.pair(distance, before=1) for distance in distances(sizes.updates, span)]
    long = [rung for rung in rungs if rung[1] > SHORT]
    for strand, distance in random.sample(long, len(long)):
        strand.append(slots.pair(distance))
    return Layout(at, plain, paraphrased, updates, lists, slots.rest())


def _told_apart(tokens: Sequence[float], limit: float) -> int:
    """Return how many questions a window of `limit` tokens and the most similar window of messages treat differently. `tokens` are the
    questions' distances, in the order of their distances in messages."""
    beyond = sum(each > limit for each in tokens)
    return min(accumulate((1 if each > limit else -1 for each in tokens), initial=len(tokens) - beyond))
