"""Options for a model's price if no price list has it: behind a gateway, or in a user's agent."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from longspan.agents.base import AgentOptions
from longspan.simulator.subject.ledger import Rates

__all__ = ["PriceOptions", "is_price"]

Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PriceOptions(AgentOptions):
    """The price of a model's tokens."""

    price_in: Price | None = None
    """Dollars per million tokens of input. It needs `price_out`."""
    price_cached: Price | None = None
    """Dollars per million tokens of input that were read from a cache. Default: as other input."""
    price_out: Price | None = None
    """Dollars per million tokens of output, thinking included."""

    @model_validator(mode="after")
    def _prices_belong_together(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            given, missing = ("price_in", "price_out") if self.price_out is None else ("price_out", "price_in")
            raise ValueError(f"{given} needs {missing} too; write {missing}=0 if it is free")
        if self.price_cached is not None and self.price_in is None:
            raise ValueError("price_cached needs price_in and price_out too")
        return self

    @property
    def rates(self) -> Rates | None:
        """The prices, None if not given."""
        if self.price_in is None or self.price_out is None:
            return None
        return Rates(self.price_in, self.price_in if self.price_cached is None else self.price_cached, self.price_out)


def is_price(option: str) -> bool:
    """Return whether an option sets a model's price. In an untrusted spec, it could be too low for `--max-cost` to work."""
    return option.startswith("price_")
