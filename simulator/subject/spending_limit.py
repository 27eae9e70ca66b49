"""Amounts of dollars and tokens that conversations spend, and their limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, inf, isnan
from typing import Final, final

from longspan.simulator.base.errors import InputError

__all__ = ["NOTHING", "UNLIMITED", "Amount", "limit_of", "total"]


@final
@dataclass(frozen=True, slots=True)
class Amount:
    """Dollars, and tokens that models read and wrote: spent, reserved, or the most that may be spent."""

    dollars: float = 0.0
    tokens: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.dollars + other.dollars, self.tokens + other.tokens)

    def beyond(self, other: Amount) -> Amount:
        """Return what exceeds the other amount, separately for dollars and tokens."""
        return Amount(max(0.0, self.dollars - other.dollars), max(0.0, self.tokens - other.tokens))

    def is_used_up_by(self, other: Amount) -> bool:
        """Return whether the other amount is as large, in dollars or in tokens."""
        return other != NOTHING and (other.dollars >= self.dollars > 0 or other.tokens >= self.tokens > 0)

    def most(self, other: Amount) -> Amount:
        """Return the larger of the two amounts, separately for dollars and tokens."""
        return Amount(max(self.dollars, other.dollars), max(self.tokens, other.tokens))


NOTHING: Final = Amount()
UNLIMITED: Final = Amount(inf, inf)


def limit_of(max_cost: float | None, max_tokens: float | None = None) -> Amount:
    """Return a limit in dollars and tokens, with None for no limit. Raises InputError for a limit that is not a number."""
    if max_cost is not None and isnan(max_cost):
        raise InputError("--max-cost: must be a number of dollars, such as 2.50")
    return Amount(inf if max_cost is None else max_cost, inf if max_tokens is None else max_tokens)


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts."""
    amounts = list(amounts)
    return Amount(fsum(each.dollars for each in amounts), fsum(each.tokens for each in amounts))
