"""Choose where facts are stated and asked for, so that the questions cover all distances evenly."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from random import Random
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.simulator.contract.script import LAST

__all__ = ["NEAREST", "Layout", "Sizes", "draw_layout", "spread_distances"]

NEAREST: Final = 32
"""Tokens between fact and question on the nearest rung, apart from questions asked in the same message: the fact is in the message
before."""

MESSAGE: Final = 28
"""Lower bound for the tokens of a message and its reply. A larger bound would leave gaps after each message, each filled by a tiny
remark."""

STRETCH: Final = 6
"""Approximate number of consecutive messages without filler between them."""

UNEVEN: Final = 2.5
"""Standard deviation of the logarithm of the filler between two stretches. The more the filler varies, the better the test separates a
limit in messages from a limit in tokens."""

NEAR: Final = 0.1
"""Largest accepted difference between a question's distance and its rung, as a share of the rung."""

SHORT: Final = 600
"""Distances up to this many tokens are short. They are placed first, because only neighbouring slots can serve them."""

LAYOUTS: Final = 30
"""Maximum number of layouts to draw. The one that best separates tokens from messages is used."""

MORE_LAYOUTS: Final = 100
"""The same maximum for tests with paraphrased questions, which leave the plain ones fewer slots."""

ENOUGH: Final = 1.25
"""Stop drawing layouts once this many questions, averaged over limits, separate tokens from messages."""

LIMITS: Final = 12
"""Number of token limits used to evaluate a layout."""

ROOMY: Final = 4000
"""Smallest span in tokens that has paraphrased questions. In smaller spans they would use up the room for filler. With four of them at
2,000 tokens, a simulated token window was identified in 0 of 30 runs instead of 27; with five at 3,000 tokens, in 19 instead of 30."""

SURE: Final = 2
"""Questions needed to separate a token limit from every message limit. Further ones add nothing."""

FEW: Final = 10
"""Of the pairs at about the right distance, one tenth counts as having the fewest (or the most) messages in between."""


@final
class Sizes(NamedTuple):
    """Numbers of questions in a test, by strand, and of facts asked for in the message that states them (`at_once`)."""

    plain: int
    paraphrased: int
    updates: int
    lists: int
    at_once: int

    @classmethod
    def of(cls, span: int) -> Sizes:
        """Return the sizes for a span in tokens: 16 plain facts at 2,000 tokens, 45 at 8,000, and 64 from 12,700 on.

        From ROOMY tokens on, paraphrased questions number about a third of the plain ones: 7 at 4,000 tokens, 13 at 8,000, at most 19.
        """
        plain = min(64, max(4, round(16 * (span / 2000) ** 0.75)))
        paraphrased = plain // 3 - 2 if span >= ROOMY else 0
        return cls(plain, paraphrased, max(2, plain // 6), max(1, plain // 9), min(12, max(3, plain // 3)))

    @property
    def messages(self) -> int:
        """Number of messages in the test."""
        return 2 * (self.plain + self.paraphrased) + 3 * self.updates + 4 * self.lists + self.at_once


def spread_distances(number: int, span: int) -> list[float]:
    """Return `number` distances in tokens, evenly spaced on a logarithmic scale from NEAREST to nearly the span.

    If only one is requested, it is the largest.
    """
    furthest = LAST * span
    nearest = min(NEAREST, furthest / 2)
    return [furthest * (nearest / furthest) ** (1 - step / max(1, number - 1)) if number > 1 else furthest for step in range(number)]


def _places(messages: int, span: int, random: Random) -> list[float]:
    """Return the positions of `messages` messages in tokens, in order: the first at 0, the last at LAST of the span.

    Messages come in stretches, and the filler between stretches varies widely in length, so that distances in tokens do not follow from
    distances in messages. Where the span has no room for filler, the messages follow each other directly.
    """
    stretches = max(2, round(messages / STRETCH))
    cuts = sorted(random.sample(range(1, messages), stretches - 1)) if messages > stretches else []
    shares = [math.exp(random.gauss(0, UNEVEN)) for _ in cuts]
    *_, total = accumulate(shares, initial=0.0)  # since Python 3.12, sum() rounds differently, and a seed would mean another test
    filler = max(0.0, LAST * span - MESSAGE * (messages - 1))
    gaps = dict(zip(cuts, (filler * share / total for share in shares), strict=True))
    step = min(MESSAGE, LAST * span / max(1, messages - 1))
    return list(accumulate((step + gaps.get(number, 0.0) for number in range(1, messages)), initial=0.0))


@final
class _Slots:
    """The positions of the messages. Each slot can be taken once."""

    def __init__(self, at: Sequence[float], random: Random) -> None:
        self._at = at
        self._random = random
        self._free = list(range(len(at)))
        self._pairs = 0

    def pair(self, distance: float, before: int = 0, between: int = 0) -> tuple[int, ...]:
        """Take two free slots about `distance` tokens apart, and return all slots taken in order.

        `before` more slots are taken in front of the pair and `between` more inside it. Among the pairs at the right distance, calls
        alternate between one with few messages in between and one with many, so that distances in messages do not follow from distances
        in tokens.
        """
        best: tuple[float, int, int] | None = None
        near: list[tuple[int, int]] = []
        free = self._free
        where, final = [self._at[slot] for slot in free], len(free) - 1
        for place in range(before, final - between):
            nearest = place + 1 + between
            there = bisect_left(where, where[place] + distance, lo=nearest)
            for other in {there - 1 if there > nearest else nearest, there if there < final else final}:
                off = abs(where[other] - where[place] - distance) / distance
                if off <= NEAR:
                    near.append((place, other))
                if best is None or off < best[0]:
                    best = off, place, other
        if best is None:
            raise ValueError(f"{2 + before + between} slots are needed, but only {len(free)} are left")
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
        """Take all remaining slots, in random order."""
        left, self._free = self._free, []
        return self._random.sample(left, len(left))


@final
class Layout(NamedTuple):
    """Positions of a test's messages in tokens (`at`), and the message numbers of each fact in order, the question last.

    `at_once` lists the messages that state a fact and ask for it.
    """

    at: list[float]
    plain: list[tuple[int, ...]]
    paraphrased: list[tuple[int, ...]]
    updates: list[tuple[int, ...]]
    lists: list[tuple[int, ...]]
    at_once: list[int]

    def unlike(self) -> float:
        """Return how many plain questions separate a token limit from every message limit, averaged over token limits.

        At most SURE questions count for each limit.
        """
        tokens = [self.at[last] - self.at[first] for first, last in self.plain]
        filler = list(accumulate((after - before > 2 * MESSAGE for before, after in pairwise(self.at)), initial=0))
        messages = [last - first + filler[last] - filler[first] for first, last in self.plain]
        by_messages = [each for _, each in sorted(zip(messages, tokens, strict=True))]
        ordered = sorted(tokens)
        limits = [ordered[len(ordered) * step // (LIMITS + 1)] for step in range(1, LIMITS + 1)]
        return fmean(min(SURE, _count_told_apart(by_messages, limit)) for limit in limits)


def draw_layout(sizes: Sizes, span: int, random: Random) -> Layout:
    """Draw layouts and return the one that best separates a token window from a message window."""
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
    others = [(paraphrased, distance) for distance in spread_distances(sizes.paraphrased, span)]
    rungs = [*((plain, distance) for distance in spread_distances(sizes.plain, span)[:-1]), *others[:-1]]
    # Short distances come first because only neighbouring slots serve them. So does the longest paraphrased one: it needs slots near both
    # ends, which the other strands would take.
    for strand, distance in [*(rung for rung in rungs if rung[1] <= SHORT), *others[-1:]]:
        strand.append(slots.pair(distance))
    lists = [slots.pair(distance, between=2) for distance in spread_distances(sizes.lists, span)]
    updates = [slots.pair(distance, before=1) for distance in spread_distances(sizes.updates, span)]
    long = [rung for rung in rungs if rung[1] > SHORT]
    for strand, distance in random.sample(long, len(long)):
        strand.append(slots.pair(distance))
    return Layout(at, plain, paraphrased, updates, lists, slots.rest())


def _count_told_apart(tokens: Sequence[float], limit: float) -> int:
    """Return how many questions a window of `limit` tokens and the most similar message window treat differently.

    `tokens` are the questions' distances in tokens, sorted by their distances in messages.
    """
    beyond = sum(each > limit for each in tokens)
    # The running sum is the number of disagreements with a message window that ends after each question; the best window has the fewest.
    return min(accumulate((1 if each > limit else -1 for each in tokens), initial=len(tokens) - beyond))
