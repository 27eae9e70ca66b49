"""Amounts of dollars and tokens, and spending limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, inf, isnan
from typing import Final, final

from longspan.simulator.base.errors import InputError

__all__ = ["NOTHING", "UNLIMITED", "Amount", "limit_of", "sum_amounts"]


@final
@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of dollars, and of tokens read and written by models."""

    dollars: float = 0.0
    tokens: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.dollars + other.dollars, self.tokens + other.tokens)

    def beyond(self, other: Amount) -> Amount:
        """Return the excess over another amount, separately for dollars and tokens."""
        return Amount(max(0.0, self.dollars - other.dollars), max(0.0, self.tokens - other.tokens))

    def is_used_up_by(self, other: Amount) -> bool:
        """Return whether another amount is at least as large, in dollars or in tokens."""
        return other != NOTHING and (other.dollars >= self.dollars > 0 or other.tokens >= self.tokens > 0)

    def most(self, other: Amount) -> Amount:
        """Return the maximum of two amounts, separately for dollars and tokens."""
        return Amount(max(self.dollars, other.dollars), max(self.tokens, other.tokens))


NOTHING: Final = Amount()
UNLIMITED: Final = Amount(inf, inf)


def limit_of(max_cost: float | None, max_tokens: float | None = None) -> Amount:
    """Return a limit in dollars and tokens; None means no limit. Raises InputError if the cost is not a number."""
    if max_cost is not None and isnan(max_cost):
        raise InputError("--max-cost: must be a number of dollars, such as 2.50")
    return Amount(inf if max_cost is None else max_cost, inf if max_tokens is None else max_tokens)


def sum_amounts(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts."""
    amounts = list(amounts)
    return Amount(fsum(each.dollars for each in amounts), fsum(each.tokens for each in amounts))
