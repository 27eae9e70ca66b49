"""A chat model from a GGUF file, run in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from longspan.agents.base import AgentError, Danger, InputError, Usage
from longspan.agents.models.chat import MARGIN, ChatOptions
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError
from longspan.agents.models.gguf.chat_prompts import Prompts
from longspan.agents.models.gguf.model import DEFAULT_WINDOW, Model, Sampling, Settings, Stop
from longspan.agents.models.gguf.options import GgufOptions
from longspan.agents.models.gguf.trial import try_out
from longspan.agents.models.thinking import split_thinking
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.files.file_io import open_regular
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.prompt_log import note_rendered
from longspan.simulator.subject.telemetry import model_call

__all__ = ["GgufCore"]

MAGIC: Final = b"GGUF"
"""The first bytes of a GGUF file."""

MAX_STRING: Final = 300
"""The maximum characters of a string in JSON, unless its schema sets them: about 75 tokens."""

ESCAPES: Final = str.maketrans({"%": "%25", "?": "%3F", "&": "%26"})
"""Characters of a path that a spec must escape."""


class _ModelKey(NamedTuple):
    """The identity of a loaded model: its file, modification time and size, its settings, and a custom chat template."""

    path: Path
    changed: tuple[int, int]
    settings: Settings
    template: str | None


class _LoadedModel(NamedTuple):
    model: Model
    prompts: Prompts
    one_call: trio.CapacityLimiter


class GgufCore:
    """The chat model in the file `target`. `name` identifies it in errors.

    Cores of the same file and options share one model in the process. Calls may overlap, but run one at a time. The constructor loads the
    model, which takes seconds if it is large. Raises InputError if the file is missing or is not a chat model.
    """

    Options = GgufOptions

    @staticmethod
    def at_once(options: GgufOptions) -> int:
        """Return the number of cached conversations: beyond it, each turn would recompute its conversation."""
        return options.conversations

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return its danger: it loads a file."""
        return "use"

    def __init__(self, target: str, options: GgufOptions | None = None, name: str | None = None) -> None:
        self.options = options or GgufOptions()
        self.priced_as: str | Rates = f"gguf/{target.translate(ESCAPES)}"
        self.name = name or self.priced_as
        try:
            self.model, self.prompts, self._one_call = _load(_model_key(target, self.options))
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error.__cause__
        self.overhead = self.prompts.overhead
        self.window: int | None = self.model.window - self.prompts.base
        self.max_output = self.options.max_tokens
        trained = self.model.trained
        self.more_window = (
            "set a larger n_ctx=" if self.model.window < trained else f"use a model that was trained on more than {trained:,} tokens"
        )

    def count(self, text: str) -> int:
        """Return the tokens of `text` inside a prompt, by the model's tokenizer and template."""
        return self.prompts.count(text)

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer. When cancelled, it stops within milliseconds, or on a GPU after the current batch of the prompt."""
        max_tokens = max_tokens or self.max_output

        stop = Stop(_is_cancelled)

        def work() -> Completion:
            try:
                return self._complete(messages, max_tokens, schema, stop)
            finally:
                trio.from_thread.check_cancelled()

        with model_call(self.name) as used:
            completion: Completion | Exception
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_when_cancelled, stop.set)
                try:
                    completion = await trio.to_thread.run_sync(work, limiter=self._one_call)
                except Exception as error:  # else the nursery would wrap it
                    completion = error
                nursery.cancel_scope.cancel()
            if isinstance(completion, Exception):
                raise completion
            used(completion.usage)
        note_rendered(self.name, lambda: self.prompts.text(messages))
        return completion

    def release(self) -> None:
        """Give its caches to other conversations. It can still be used, but computes its next prompt from the start."""
        self.model.release(self)

    def _complete(self, messages: Sequence[ChatMessage], max_tokens: int, schema: Mapping[str, Any] | None, stop: Stop) -> Completion:
        try:
            prompt = self.prompts.tokens(messages, stop)
            if len(prompt) + max_tokens > self.model.window:
                raise ContextOverflowError(
                    f"a prompt of {len(prompt):,} tokens and an answer of {max_tokens:,} are more than n_ctx={self.model.window}"
                )
            grammar = _grammar(json.dumps(_bound_strings(dict(schema)))) if schema is not None else None
            options = self.options
            sampling = Sampling(options.temperature, options.seed, grammar, options.top_p, options.repetition_penalty)
            generated = self.model.generate(prompt, max_tokens, owner=self, sampling=sampling, stop=stop)
        except AgentError as error:
            raise type(error)(f"{self.name}: {error}") from error.__cause__
        text, thinking = (generated.text, "") if self.options.keep_thinking else split_thinking(generated.text)
        return Completion(text, Usage(len(prompt), generated.cached, generated.tokens), thinking=thinking, cut=generated.cut)


def _model_key(target: str, options: GgufOptions) -> _ModelKey:
    """Return the key of the model to load. Raises InputError if it is not a GGUF file."""
    path = Path(target).absolute()
    with open_regular(path) as file:
        magic = file.read(len(MAGIC))
        status = os.fstat(file.fileno())
    if magic != MAGIC:
        raise InputError(f"{path} is not a GGUF file: it does not start with {MAGIC.decode()}")
    changed = (status.st_mtime_ns, status.st_size)
    needed = options.context + options.max_tokens + MARGIN if isinstance(options, ChatOptions) and options.context else 0
    settings = Settings(
        window=options.n_ctx,
        room=needed if needed > DEFAULT_WINDOW else 0,  # smaller contexts share one loaded model
        gpu_layers=options.gpu_layers,
        split=options.tensor_split,
        threads=options.threads,
        contexts=options.conversations,
        batch=options.n_batch,
        ubatch=options.n_ubatch,
        flash=options.flash_attention,
        cache=(options.cache_k, options.cache_v),
    )
    return _ModelKey(path, changed, settings, options.template())


@cache
def _check_file(path: Path, changed: tuple[int, int], template: str | None, settings: Settings) -> None:
    """Raise InputError if the file is unsafe to load. Each combination of file, template and settings is tried once."""
    try_out(path, template, settings)


@cache
def _load(key: _ModelKey) -> _LoadedModel:
    """Return a model, loaded once per process, and its limit of one call at a time."""
    settings = key.settings
    computed = Settings(gpu_layers=settings.gpu_layers, split=settings.split, flash=settings.flash, cache=settings.cache)
    _check_file(key.path, key.changed, key.template, computed)
    model = Model(key.path, key.settings)
    return _LoadedModel(model, Prompts(model.vocabulary, key.template), trio.CapacityLimiter(1))


async def _when_cancelled(act: Callable[[], None]) -> None:
    """Call `act` once this task is cancelled."""
    try:
        await trio.sleep_forever()
    finally:
        act()


def _is_cancelled() -> bool:
    """Return whether the task behind this thread was cancelled."""
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    return False


def _bound_strings(schema: Any) -> Any:
    """Return a JSON schema with a maximum length for all strings, so that an answer cannot run on inside one until it is cut."""
    if isinstance(schema, list):
        return [_bound_strings(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {name: _bound_strings(value) for name, value in schema.items()}
    return {"maxLength": MAX_STRING} | bounded if schema.get("type") == "string" and not {"enum", "const"} & schema.keys() else bounded


@lru_cache(maxsize=64)
def _grammar(schema: str) -> str:
    """Return the grammar (GBNF) of a JSON schema. Raises AgentError for a schema that a grammar cannot express."""
    try:
        grammar: str = import_module("llama_cpp.llama_grammar").json_schema_to_gbnf(schema)
    except Exception as error:
        raise AgentError(f"the JSON schema cannot be converted to a grammar: {one_line(error)}") from error
    return grammar
