"""What agents of one's own say that a reply took: tokens, in longspan's words or a vendor's, and dollars.

| words | of whom |
| --- | --- |
| `input_tokens`, `cached_tokens`, `output_tokens` | longspan: those cached are part of the input |
| `prompt_tokens`, `completion_tokens`, `prompt_tokens_details` | OpenAI's chat completions, LiteLLM and most gateways |
| `input_tokens`, `output_tokens`, `input_tokens_details` | OpenAI's responses |
| `input_tokens`, `output_tokens`, `cache_read_input_tokens`, `cache_creation_input_tokens` | Anthropic: these are not part of the input |
| `input_tokens`, `output_tokens`, `input_token_details` | LangChain |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, final

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from longspan.agents.base import Reply, Usage
from longspan.simulator.amounts import Amount
from longspan.simulator.ledger import DROPPED, MAX_DOLLARS, MAX_TOKENS, Rates, price, stated_by, total_cost, used_by

__all__ = ["Counts", "Dollars", "DroppedReplies", "models_at", "plain", "priced", "sum_of"]

Count = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Dollars = Annotated[float, Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False)]


class _Details(BaseModel):
    """A vendor's details of a count."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    cached_tokens: Count | None = None
    cache_read: Count | None = None


@final
class Counts(BaseModel):
    """Tokens as the agent's provider counts them, and the model as PROVIDER/MODEL.

    Other keys are refused, since they are probably misspelt, unless there is a key that only a vendor has: vendors have many more.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    model: Annotated[str, Field(max_length=200)] | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    input_token_details: _Details | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    total_tokens: Count | None = None

    @model_validator(mode="after")
    def _keys_are_known(self) -> Counts:
        unknown = next(iter(self.model_extra or {}), None)
        if unknown is not None and not self.model_fields_set & VENDORS:
            raise PydanticCustomError("unknown_key", "unknown key {key}", {"key": f"{unknown!r:.60}"})
        if self.cached_tokens is not None and self.cached_tokens > (self.input_tokens or self.prompt_tokens or 0):
            raise ValueError(f"cached_tokens ({self.cached_tokens}) must not exceed input_tokens ({self.input_tokens or 0})")
        return self

    @property
    def usage(self) -> Usage:
        """The counts in longspan's words."""
        details = (self.prompt_tokens_details, self.input_tokens_details, self.input_token_details)
        found = [self.cached_tokens, self.cache_read_input_tokens, *(count for each in details if each for count in _cached(each))]
        cached = max((count for count in found if count is not None), default=0)
        tokens = self.prompt_tokens
        if tokens is None:
            tokens = (self.input_tokens or 0) + (self.cache_read_input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        output = self.output_tokens if self.completion_tokens is None else self.completion_tokens
        return Usage(tokens, min(cached, tokens), output or 0)

    @property
    def cost_usd(self) -> float | None:
        """The cost at list prices in dollars; None if the model is not named or has no known price."""
        return price(self.model, self.usage) if self.model is not None else None


OURS: Final = {"model", "input_tokens", "cached_tokens", "output_tokens"}

VENDORS: Final = Counts.model_fields.keys() - OURS
"""Keys that only vendors have."""


def _cached(details: _Details) -> Iterable[int | None]:
    return details.cached_tokens, details.cache_read


def plain(value: Any) -> Any:
    """Return a vendor's object, such as the usage of OpenAI's library, as a dict, for json. Raises TypeError for others."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def priced(reply: Reply, rates: Rates | None, counts: Sequence[Counts] = ()) -> Reply:
    """Return a reply with its cost: as it says itself, else by the rates of the spec, else at list prices of the models it names."""
    if reply.cost_usd is not None or reply.usage is None:
        return reply
    costs = [rates.cost(reply.usage)] if rates is not None else [each.cost_usd for each in counts]
    return replace(reply, cost_usd=total_cost(costs)) if costs else reply


def models_at(rates: Rates | None) -> Mapping[str, Rates] | None:
    """Return the models of an agent whose price the spec gives, by part; None if it does not."""
    return {"agent": rates, DROPPED: rates} if rates is not None else None


def sum_of(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    usages = list(usages)
    return Usage(
        sum(usage.input_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages),
    )


@final
class DroppedReplies:
    """What dropped replies took: an agent that does not support `observe` has to reply instead."""

    def __init__(self) -> None:
        self._usages: list[Usage] = []
        self._costs: list[float | None] = []

    @property
    def amount(self) -> Amount:
        """What has not been reported yet, as far as it is known."""
        usage = sum_of(self._usages)
        return Amount(sum(cost or 0.0 for cost in self._costs), usage.input_tokens + usage.output_tokens)

    def add(self, reply: Reply) -> None:
        """Add what a dropped reply took."""
        used, stated = used_by(reply), stated_by(reply)
        if used or stated:
            self._usages = [sum_of([*self._usages, *used.values()])]
            known = stated.keys() >= used.keys()
            self._costs = [*self._costs, sum(stated.values()) if known else None]

    def attach_to(self, reply: Reply) -> Reply:
        """Return the next reply with what was taken by those dropped before it."""
        if not self._costs:
            return reply
        stated = stated_by(reply)
        if None not in self._costs:
            stated[DROPPED] = sum(cost or 0.0 for cost in self._costs)
        reply = replace(reply, besides={**reply.besides, DROPPED: self._usages[0]}, cost_usd=stated or None)
        self._usages, self._costs = [], []
        return reply
