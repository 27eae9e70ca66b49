"""The options of a model from a GGUF file, checked before loading anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from longspan.agents.base import InputError, Tokens
from longspan.agents.models.core import CoreOptions
from longspan.simulator.base.files.file_io import open_regular

__all__ = ["CacheType", "GgufOptions"]

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]
"""The types of keys and values in a cache: floating-point numbers, or quantised (q, iq) with that many bits."""

MAX_TEMPLATE: Final = 2**20
"""The maximum bytes of a chat template."""

MAX_DEVICES: Final = 16
"""The maximum number of GPUs that llama.cpp divides a model among."""


def _split(value: Any) -> Any:
    """Parse shares such as 3,1. Raises ValueError."""
    try:
        shares = tuple(float(part) for part in value.split(",")) if isinstance(value, str) else tuple(value)
    except (TypeError, ValueError):
        shares = ()
    if not 1 <= len(shares) <= MAX_DEVICES or not all(0 <= share <= 1_000_000 for share in shares) or not any(shares):
        raise ValueError(f"expected shares for at most {MAX_DEVICES} GPUs, such as 3,1; got {value!r:.60}")
    return shares


class GgufOptions(CoreOptions):
    """How llama.cpp loads and asks a model from a GGUF file."""

    n_ctx: Tokens | None = None
    """Tokens that the model takes, prompt and answer together. Default: what `context` needs, at least 8,192, and at most the length that
    the model was trained on."""
    gpu_layers: int = Field(default=0, ge=-1, le=10_000)
    """Layers that the GPU computes; -1: all."""
    tensor_split: Annotated[tuple[float, ...] | None, BeforeValidator(_split)] = None
    """The share of each of several GPUs, such as 3,1. Default: by their free memory."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """Processors used. Default: all cores; fewer write the answer while other programs use them."""
    n_batch: int | None = Field(default=None, ge=1, le=65_536)
    """Tokens of a prompt that are given to llama.cpp together. Default: 512."""
    n_ubatch: int | None = Field(default=None, ge=1, le=65_536)
    """How many of these are computed together. Default: `n_batch`."""
    flash_attention: bool | None = None
    """Whether attention is computed without a large table in between. Default: llama.cpp decides."""
    cache_k: CacheType = "f16"
    """How the cache stores keys: `f32`, `f16`, `bf16`, or quantised as `q8_0` (half of `f16`), `q5_1`, `q5_0`, `q4_1`, `q4_0` or
    `iq4_nl`."""
    cache_v: CacheType = "f16"
    """How the cache stores values, as `cache_k`. Quantised values need `flash_attention=true`."""
    seed: int = Field(default=0, ge=0, lt=2**32 - 1)
    """The seed for sampling at temperatures above 0: the same prompt gets the same answer."""
    temperature: float = Field(default=0.0, ge=0, le=2, allow_inf_nan=False)
    """From 0 to 2; 0 takes the likeliest token."""
    top_p: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    """Sample from the likeliest tokens that together have this probability, above 0 and up to 1."""
    repetition_penalty: float = Field(default=1.0, gt=0, le=10, allow_inf_nan=False)
    """Above 1, tokens of the prompt or the answer become less likely to be repeated."""
    max_tokens: Tokens = 256
    """The most tokens of an answer."""
    conversations: int = Field(default=4, ge=1, le=1000)
    """Number of conversations that keep their computed state, each in a separate cache."""
    keep_thinking: bool = False
    """Leave the thoughts between `<think>` and `</think>` in the reply, instead of in its trace."""
    chat_template: str | None = None
    """A file with a chat template in Jinja. Default: the model's own template."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if "q" in self.cache_v and not self.flash_attention:
            raise ValueError(f"cache_v={self.cache_v} is quantised, which needs flash_attention=true")
        if self.tensor_split is not None and not self.gpu_layers:
            raise ValueError("tensor_split divides layers among GPUs: it needs gpu_layers, such as gpu_layers=-1")
        if self.n_ubatch is not None and self.n_batch is not None and self.n_ubatch > self.n_batch:
            raise ValueError(f"n_ubatch={self.n_ubatch} is more than n_batch={self.n_batch}")
        return self

    def template(self) -> str | None:
        """Return the text of the chat template, None for the model's own. Raises InputError if the file is not one."""
        if self.chat_template is None:
            return None
        path = Path(self.chat_template).absolute()
        with open_regular(path) as file:
            text = file.read(MAX_TEMPLATE + 1)
        if len(text) > MAX_TEMPLATE:
            raise InputError(f"chat_template: {path} has more than {MAX_TEMPLATE:,} bytes: it is no chat template")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"chat_template: {path} is not UTF-8 text") from None
