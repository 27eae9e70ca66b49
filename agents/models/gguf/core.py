"""gguf: a chat model in this process, from a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import trio
from pydantic import Field

from longspan.agents.base import AgentError, InputError, Tokens, Usage
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError, CoreOptions
from longspan.agents.models.gguf.model import Model, Sampling
from longspan.agents.models.gguf.prompts import Prompts
from longspan.agents.models.gguf.trial import try_out
from longspan.simulator.errors import one_line

__all__ = ["GgufCore", "GgufOptions"]

MAGIC: Final = b"GGUF"
"""What a GGUF file begins with."""

ESCAPES: Final = str.maketrans({"%": "%25", "?": "%3F", "&": "%26"})
"""How a spec writes what would mean something else in it."""


class GgufOptions(CoreOptions):
    """`n_ctx`: tokens that the model takes (default: 8,192, or what it was trained on where that is less); `gpu_layers`: how many
    layers the GPU computes, -1 for all; `threads`: processors used (default: half of them); `temperature` 0 takes the
    likeliest token, and above it `seed` decides, among the likeliest that together have the probability `top_p`;
    `repetition_penalty` makes tokens less likely that are there already, in prompt or answer; `max_tokens`: of an answer;
    `conversations`: how many keep what was computed of them, each in a cache of its own."""

    n_ctx: Tokens | None = None
    gpu_layers: int = Field(default=0, ge=-1, le=10_000)
    threads: int | None = Field(default=None, ge=1, le=512)
    seed: int = Field(default=0, ge=0, lt=2**32 - 1)
    temperature: float = Field(default=0.0, ge=0, le=2, allow_inf_nan=False)
    top_p: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    repetition_penalty: float = Field(default=1.0, gt=0, le=10, allow_inf_nan=False)
    max_tokens: Tokens = 1024
    conversations: int = Field(default=4, ge=1, le=1000)


class _Load(NamedTuple):
    """What makes a loaded model another one: the file, as it was last changed, and how it is loaded."""

    path: Path
    changed: tuple[int, int]
    window: int | None
    gpu_layers: int
    threads: int | None
    contexts: int


class _Loaded(NamedTuple):
    model: Model
    prompts: Prompts
    turn: trio.CapacityLimiter


@final
class GgufCore:
    """The chat model in the file `target`, a path. Those with the same file and options share one in the process, and take turns.
    Calls may overlap.

    The model is loaded as it is made, which takes seconds for a large one. Raises InputError where there is none, or it is no
    chat model.
    """

    Options = GgufOptions

    def __init__(self, target: str, options: GgufOptions | None = None) -> None:
        self.options = options or GgufOptions()
        self.name = f"gguf/{target.translate(ESCAPES)}"
        try:
            self._loaded = _load(_wanted(target, self.options))
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error.__cause__
        self.overhead = self._loaded.prompts.overhead
        self.window: int | None = self._loaded.model.window - self._loaded.prompts.base
        self.most_output = self.options.max_tokens

    def count(self, text: str) -> int:
        """Tokens of a text inside a prompt, by the model's own tokenizer and template."""
        return self._loaded.prompts.count(text)

    async def complete(
        self, messages: Sequence[ChatMessage], *, most: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The model's answer. Cancelled, it stops after the token, or the few of a prompt, that it is at."""
        most = most or self.most_output

        def work() -> Completion:
            try:
                return self._complete(messages, most, schema)
            finally:
                trio.from_thread.check_cancelled()

        return await trio.to_thread.run_sync(work, limiter=self._loaded.turn)

    def _complete(self, messages: Sequence[ChatMessage], most: int, schema: Mapping[str, Any] | None) -> Completion:
        model, prompts, _ = self._loaded
        try:
            prompt = prompts.tokens(messages)
            if len(prompt) + most > model.window:
                raise ContextOverflowError(
                    f"a prompt of {len(prompt):,} tokens and an answer of {most:,} are more than the {model.window:,} of n_ctx"
                )
            grammar = _grammar(json.dumps(schema)) if schema is not None else None
            options = self.options
            sampling = Sampling(options.temperature, options.seed, grammar, options.top_p, options.repetition_penalty)
            said = model.generate(prompt, most, owner=self, sampling=sampling, stopped=_cancelled)
        except AgentError as error:
            raise type(error)(f"{self.name}: {error}") from error.__cause__
        return Completion(said.text, Usage(len(prompt), said.cached, said.tokens))


def _wanted(target: str, options: GgufOptions) -> _Load:
    """What is to be loaded. Raises InputError where there is no such file."""
    path = Path(target).absolute()
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if begins != MAGIC:
        raise InputError(f"{path} is no GGUF file: it does not begin with {MAGIC.decode()}")
    changed = (status.st_mtime_ns, status.st_size)
    return _Load(path, changed, options.n_ctx, options.gpu_layers, options.threads, options.conversations)


@cache
def _tried(path: Path, changed: tuple[int, int]) -> None:
    """Raises InputError for a file that is not to be loaded; each is tried once."""
    try_out(path)


@cache
def _load(wanted: _Load) -> _Loaded:
    """A model, loaded once in the process, and a limit of one call at a time."""
    path, changed, window, gpu_layers, threads, contexts = wanted
    _tried(path, changed)
    model = Model(path, window=window, gpu_layers=gpu_layers, threads=threads, contexts=contexts)
    return _Loaded(model, Prompts(model.vocabulary), trio.CapacityLimiter(1))


def _cancelled() -> bool:
    """Whether the task for which this thread works was cancelled."""
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    return False


@lru_cache(maxsize=64)
def _grammar(schema: str) -> str:
    """The grammar (GBNF) of what a JSON schema allows. Raises AgentError for a schema that it cannot say."""
    try:
        grammar: str = import_module("llama_cpp.llama_grammar").json_schema_to_gbnf(schema)
    except Exception as error:
        raise AgentError(f"the JSON schema cannot be made a grammar: {one_line(error)}") from error
    return grammar
