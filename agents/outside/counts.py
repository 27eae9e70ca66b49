"""Usage as external agents report it: tokens, in longspan's or a vendor's keys, and dollars.

| keys | vendor |
| --- | --- |
| `input_tokens`, `cached_tokens`, `output_tokens` | longspan: the input includes cached tokens |
| `prompt_tokens`, `completion_tokens`, `prompt_tokens_details` | OpenAI's chat completions, LiteLLM and most gateways |
| `input_tokens`, `output_tokens`, `input_tokens_details` | OpenAI's responses |
| `input_tokens`, `output_tokens`, `cache_read_input_tokens`, `cache_creation_input_tokens` | Anthropic: the input excludes cache tokens |
| `input_tokens`, `output_tokens`, `input_token_details` | LangChain |
| `input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens` | pydantic-ai: the input includes cache tokens |
| `prompt_tokens`, `completion_tokens`, `cached_prompt_tokens` | CrewAI |
| `prompt_token_count`, `candidates_token_count`, `thoughts_token_count`, `cached_content_token_count` | Google |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Final, final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from longspan.agents.base import Reply, Usage
from longspan.simulator.subject.ledger import (
    DROPPED,
    MAX_DOLLARS,
    MAX_TOKENS,
    Rates,
    price_usage,
    reported_costs,
    total_cost,
    usage_by_part,
)

__all__ = ["Counts", "Dollars", "drop_reply", "models_at", "price_reply", "sum_of"]

Count = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Dollars = Annotated[float, Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False)]


class _Details(BaseModel):
    """A vendor's breakdown of a count."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    cached_tokens: Count | None = None
    cache_read: Count | None = None


Details = Annotated[_Details | None, BeforeValidator(lambda value: value if isinstance(value, dict) else None)]
"""A breakdown as parsed. Google's is a list by modality, which is ignored."""


@final
class Counts(BaseModel):
    """Token counts in a provider's keys, and the model as PROVIDER/MODEL. At least one count of input or output must be known.

    Unknown keys are rejected as probable typos, unless a key shows that the counts come from a vendor: vendors have many more keys.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    model: Annotated[str, Field(max_length=200)] | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: Details = None
    input_tokens_details: Details = None
    input_token_details: Details = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    cached_prompt_tokens: Count | None = None
    prompt_token_count: Count | None = None
    tool_use_prompt_token_count: Count | None = None
    cached_content_token_count: Count | None = None
    candidates_token_count: Count | None = None
    thoughts_token_count: Count | None = None
    total_tokens: Count | None = None
    total_token_count: Count | None = None

    @model_validator(mode="after")
    def _keys_are_known(self) -> Counts:
        unknown = next(iter(self.model_extra or {}), None)
        if unknown is not None and not self.model_fields_set & VENDORS:
            raise PydanticCustomError("unknown_key", "unknown key {key}", {"key": f"{unknown!r:.60}"})
        if self.cached_tokens is not None and self.cached_tokens > (self._input or 0):
            raise ValueError(f"cached_tokens ({self.cached_tokens}) must not exceed input_tokens ({self._input or 0})")
        if self._input is None and self._output is None:
            names = [*(name for name in Counts.model_fields if name in self.model_fields_set), *(self.model_extra or {})]
            told = ", ".join(name for name in names if name != "model") or "nothing"
            what = "no count of tokens is known (it has {told}); give input_tokens and output_tokens"
            raise PydanticCustomError("no_count", what, {"told": f"{told:.100}"})
        return self

    @property
    def _input(self) -> int | None:
        """Input tokens, including cached ones; None if unknown."""
        if self.prompt_tokens is not None:
            return self.prompt_tokens
        if self.prompt_token_count is not None:
            return self.prompt_token_count + (self.tool_use_prompt_token_count or 0)
        parts = [self.input_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens]
        return _sum(parts)

    @property
    def _output(self) -> int | None:
        """Output tokens, None if unknown."""
        if self.completion_tokens is not None:
            return self.completion_tokens
        return self.output_tokens if self.output_tokens is not None else _sum([self.candidates_token_count, self.thoughts_token_count])

    @property
    def usage(self) -> Usage:
        """The counts in longspan's terms. A missing count is the rest of the total."""
        details = (self.prompt_tokens_details, self.input_tokens_details, self.input_token_details)
        found = [
            *(self.cached_tokens, self.cache_read_input_tokens, self.cache_read_tokens, self.cached_prompt_tokens),
            self.cached_content_token_count,
            *(count for each in details if each for count in (each.cached_tokens, each.cache_read)),
        ]
        cached = max((count for count in found if count is not None), default=0)
        total = self.total_tokens if self.total_tokens is not None else self.total_token_count or 0
        tokens = self._input if self._input is not None else max(0, total - (self._output or 0))
        output = self._output if self._output is not None else max(0, total - tokens)
        return Usage(tokens, min(cached, tokens), output)

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars at list prices; None if the model is missing or has no known price."""
        return price_usage(self.model, self.usage) if self.model is not None else None


OURS: Final = {"model", "input_tokens", "cached_tokens", "output_tokens"}

VENDORS: Final = Counts.model_fields.keys() - OURS
"""Keys that only vendors use."""


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def price_reply(
    reply: Reply, rates: Rates | None, counts: Sequence[Counts] = (), besides: Mapping[str, Counts] = MappingProxyType({})
) -> Reply:
    """Return a reply with its cost: as reported, else by the spec's rates, else at list prices of the models it names.

    Components with unknown prices are missing from the cost.
    """
    if reply.cost_usd is not None:
        return reply
    own = None
    if reply.usage is not None and (rates is not None or counts):
        own = rates.cost(reply.usage) if rates is not None else total_cost([each.cost_usd for each in counts])
    if not reply.besides:
        return replace(reply, cost_usd=own)
    costs = {"agent": own} | {part: each.cost_usd for part, each in besides.items()}
    return replace(reply, cost_usd={part: cost for part, cost in costs.items() if cost is not None} or None)


def models_at(rates: Rates | None) -> Mapping[str, Rates] | None:
    """Return the prices of an agent's models by component, if the spec gives them; otherwise None."""
    return {"agent": rates, DROPPED: rates} if rates is not None else None


def sum_of(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    usages = list(usages)
    return Usage(
        sum(usage.input_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages),
    )


def drop_reply(reply: Reply) -> Reply:
    """Return the usage of a dropped reply. An agent without `observe` has to reply instead."""
    used, stated = usage_by_part(reply), reported_costs(reply)
    costs = {DROPPED if part == "agent" else part: cost for part, cost in stated.items()}
    return Reply("", besides={DROPPED if part == "agent" else part: usage for part, usage in used.items()}, cost_usd=costs or None)
