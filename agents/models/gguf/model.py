"""A model loaded by llama.cpp, with a cache for each of several conversations.

Each conversation has a separate context, which is a cache of keys and values. The alternatives (sequences in one cache, shared or divided;
states copied out and in) were not faster, and a context takes memory only once used. docs/internals/performance.md has the figures.
"""

from __future__ import annotations

import os
import subprocess
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import CDLL, Array, addressof, c_char, c_float, c_void_p, cast, create_string_buffer
from functools import cache
from pathlib import Path
from threading import Lock
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple, final
from weakref import ref

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.core import Cut
from longspan.agents.models.gguf.library import load_library, load_model, read_context, take_error
from longspan.agents.models.gguf.pace import Pace, count_cores
from longspan.agents.models.gguf.repetition import Repetition
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.simulator.base.terminal import complain

__all__ = ["DEFAULT_WINDOW", "Generation", "Model", "Sampling", "Settings", "Stop"]

DEFAULT_WINDOW: Final = 8192
"""The default tokens of a conversation. Models are trained on more, but a cache of that size may not fit into memory."""

BATCH: Final = 512
"""Tokens of a prompt computed together. Larger batches were no faster."""

ABORTED: Final = 2
"""llama_decode's return value when it was stopped."""

BF16: Final = 30
"""The number of ggml's type bf16, which llama-cpp-python does not name."""

TAIL: Final = 64
"""Tokens at the end of a prompt that identify its conversation."""


class Sampling(NamedTuple):
    """How tokens are chosen: the likeliest at temperature 0, else sampled.

    `grammar` (in GBNF) restricts the tokens. `top_p`: only the likeliest tokens that together have this probability are sampled. `penalty`:
    makes tokens of prompt and answer less likely; 1 for no penalty.
    """

    temperature: float = 0.0
    seed: int = 0
    grammar: str | None = None
    top_p: float = 1.0
    penalty: float = 1.0


GREEDY: Final = Sampling()


class Settings(NamedTuple):
    """How a model is loaded and computed. None leaves a setting to llama.cpp or `Model`.

    `window`: tokens for each of at most `contexts` conversations. Without it, a model takes `room` if that is more than its default and no
    more than its training. `gpu_layers`: layers computed on the GPU, -1 for all. `split`: the share of each of several GPUs. `batch`:
    tokens passed to llama.cpp together. `ubatch`: how many of these it computes together. `flash`: whether to use flash attention. `cache`:
    the types of keys and values in the cache.
    """

    window: int | None = None
    room: int = 0
    gpu_layers: int = 0
    split: tuple[float, ...] | None = None
    threads: int | None = None
    contexts: int = 4
    batch: int | None = None
    ubatch: int | None = None
    flash: bool | None = None
    cache: tuple[str, str] = ("f16", "f16")


class Generation(NamedTuple):
    """A model's answer, its tokens, and the prompt's tokens found in the cache. `cut`: why it ends early, if it does."""

    text: str
    tokens: int
    cached: int
    cut: Cut = ""


@final
class Stop:
    """A switch that stops an answer from another thread. It also kills the process that renders the prompt.

    llama.cpp calls an abort function after each of the few hundred steps of a batch. That function is C's `atoi`, on a string that is "0"
    until `set`. A Python function would wait for the interpreter lock each time.
    """

    def __init__(self, also: Callable[[], bool] = bool) -> None:
        self._also = also
        self._text: Array[c_char] = create_string_buffer(b"0")
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def set(self) -> None:
        """Stop the answer."""
        self._text.value = b"1"
        with self._lock:
            if self._process is not None:
                self._process.kill()

    @contextmanager
    def kill_when_set(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Kill `process` once the switch is set, until the context ends."""
        with self._lock:
            self._process = process
            if self.requested:
                process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._process = None

    @property
    def requested(self) -> bool:
        """Whether the answer should stop: the switch is set, or the constructor's function returns True."""
        return self._text.value == b"1" or self._also()

    def watch_computation(self, llama: Any, context: Any) -> None:
        """Make llama.cpp check the switch while it computes with a context."""
        llama.llama_set_abort_callback(context, cast(_atoi(), llama.ggml_abort_callback), c_void_p(addressof(self._text)))


@cache
def _atoi() -> Any:
    return CDLL("msvcrt" if os.name == "nt" else None).atoi


@final
class _Context:
    """A conversation's cache: its owner, its tokens, the end of its last prompt, and the number of the call that last used it."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.owner: Callable[[], object | None] = _no_owner
        self.tokens: list[int] = []
        self.tail = b""
        self.used = 0

    def count_shared(self, prompt: Sequence[int]) -> int:
        """Return how many leading tokens it shares with `prompt`, without the last one of `prompt`, which is always computed."""
        limit = min(len(self.tokens), len(prompt) - 1)
        return next((at for at in range(limit) if self.tokens[at] != prompt[at]), limit)

    def is_continued_by(self, prompt: Sequence[int]) -> bool:
        """Return whether `prompt` continues its conversation, whose oldest turns may have been dropped."""
        return 2 * self.count_shared(prompt) >= len(self.tokens) or self.tail in array("i", prompt).tobytes()


def _no_owner() -> None:
    """Return None, as the owner of a free context."""


@final
class Model:
    """The model in the GGUF file `path`.

    Without `threads`, it adapts their number to the load. Use it in one thread at a time. Raises InputError if the file is not a chat
    model, the model does not support a setting, or the GPU is missing. The window must not exceed the training's, and must fit into
    memory.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self._llama = llama = load_library()
        self._settings = settings
        self._name = path.name
        if settings.gpu_layers and not llama.llama_supports_gpu_offload():
            raise InputError("gpu_layers: llama.cpp was built without GPU support or finds no GPU; leave it out, or install a GPU build")
        self._model = load_model(path, n_gpu_layers=settings.gpu_layers, **self._split())
        if llama.llama_model_has_encoder(self._model) or not llama.llama_model_has_decoder(self._model):
            raise InputError("it does not generate text, as chat models do")
        self.trained = read_context(self._model)
        self.window = settings.window or min(max(DEFAULT_WINDOW, settings.room), self.trained)
        if self.window > self.trained:
            raise InputError(f"n_ctx={self.window} is more than the {self.trained:,} tokens that the model was trained on")
        self.vocabulary = Vocabulary(self._model)
        self._batch = settings.batch or max(settings.ubatch or 0, BATCH)
        self._pace = Pace(settings.threads or count_cores(), adapts=settings.threads is None and not settings.gpu_layers)
        self._contexts: list[_Context] = []
        self._calls = 0
        if not self._add_context():
            raise InputError(f"no cache can be made: {take_error()}; {self._remedy()}")

    def _split(self) -> dict[str, Any]:
        """Return the shares of several GPUs in llama.cpp's format."""
        if self._settings.split is None:
            return {}
        devices: int = self._llama.llama_max_devices()
        if len(self._settings.split) > devices:
            raise InputError(f"tensor_split has {len(self._settings.split)} shares, and llama.cpp knows at most {devices} GPUs")
        return {"tensor_split": (c_float * devices)(*self._settings.split)}

    def _remedy(self) -> str:
        """Return advice if a cache cannot be created."""
        keys, values = self._settings.cache
        special = [f"cache_k={keys}"] * (keys != "f16") + [f"cache_v={values}"] * (values != "f16")
        special += ["flash_attention"] * (self._settings.flash is not None)
        unless = f", or leave out {' and '.join(special)}, which the model may not support" if special else ""
        return f"if memory is short, set a smaller n_ctx than {self.window}{unless}"

    def close(self) -> None:
        """Free its memory. It cannot be used afterwards."""
        while self._contexts:
            self._llama.llama_free(self._contexts.pop().handle)
        self._llama.llama_model_free(self._model)

    def release(self, owner: object) -> None:
        """Free the owner's contexts for other conversations, without waiting for the garbage collector to find that it is gone."""
        for context in self._contexts:
            if context.owner() is owner:
                context.owner = _no_owner

    def generate(
        self, prompt: Sequence[int], max_tokens: int, *, owner: object, sampling: Sampling = GREEDY, stop: Stop | None = None
    ) -> Generation:
        """Return the model's answer to `prompt`, of at most `max_tokens` tokens. Together they must fit into the window.

        Tokens still cached for `owner` are not recomputed. The answer ends early on `stop`, or when it repeats itself endlessly; a grammar
        disables the latter. Raises AgentError if llama.cpp fails.
        """
        stop = stop or Stop()
        with self._sampler(sampling, prompt) as sampler:
            context = self._context(prompt, owner)
            stop.watch_computation(self._llama, context.handle)
            cached = self._trim(context, prompt)
            for start in range(cached, len(prompt), self._batch):
                if stop.requested or not self._compute(context, prompt[start : start + self._batch]):
                    return Generation("", 0, cached)
            context.tail = array("i", prompt[-TAIL:]).tobytes()
            answer, cut = self._answer(context, max_tokens, sampler, stop, None if sampling.grammar is not None else Repetition())
        if (complaint := self._pace.complaint()) is not None and not self._settings.gpu_layers:
            complain(f"gguf: {self._name}: {complaint}")
        return Generation(self.vocabulary.text(answer), len(answer), cached, cut)

    def _answer(self, context: _Context, max_tokens: int, sampler: Any, stop: Stop, repetition: Repetition | None) -> tuple[list[int], Cut]:
        """Return an answer's tokens, and why it ends early, if it does."""
        answer: list[int] = []
        while True:
            token = self._llama.llama_sampler_sample(sampler, context.handle, -1)
            if self.vocabulary.ends(token):
                return answer, ""
            answer.append(token)
            if repetition is not None and repetition.add(token):
                return answer, "repetition"
            if len(answer) >= max_tokens:
                return answer, "max_tokens"
            if stop.requested or not self._compute(context, [token]):
                return answer, ""

    def _compute(self, context: _Context, tokens: Sequence[int]) -> bool:
        """Add tokens to a context and compute the next one's probabilities. Return False if stopped.

        After an error, the context counts as empty.
        """
        batch = (self._llama.llama_token * len(tokens))(*tokens)
        self._llama.llama_set_n_threads(context.handle, self._pace.threads, self._pace.most)
        wall, cpu = perf_counter(), process_time()
        code = self._llama.llama_decode(context.handle, self._llama.llama_batch_get_one(batch, len(tokens)))
        (self._pace.took if len(tokens) == 1 else self._pace.took_prompt)(perf_counter() - wall, process_time() - cpu)
        if code == ABORTED:
            return False  # `_trim` drops the tokens already computed
        if code:
            context.tokens.clear()
            raise AgentError(f"llama.cpp failed to continue a conversation ({code}): {take_error()}")
        context.tokens += tokens
        return True

    # Contexts.

    def _context(self, prompt: Sequence[int], owner: object) -> _Context:
        """Return the owner's context that `prompt` continues; else a free one, a new one, or the least recently used."""
        own = [context for context in self._contexts if context.owner() is owner and context.is_continued_by(prompt)]
        free = [context for context in self._contexts if context.owner() is None]
        if own:
            chosen = max(own, key=lambda context: context.count_shared(prompt))
        elif free:
            chosen = free[0]
        elif len(self._contexts) < self._settings.contexts and self._add_context():
            chosen = self._contexts[-1]
        else:
            chosen = min(self._contexts, key=lambda context: context.used)
        self._calls += 1
        chosen.used, chosen.owner = self._calls, ref(owner)
        return chosen

    def _add_context(self) -> bool:
        """Add a context. Return False if there is not enough memory."""
        llama = self._llama
        params = llama.llama_context_default_params()
        params.n_ctx = self.window
        params.n_batch, params.n_ubatch = self._batch, min(self._settings.ubatch or self._batch, self._batch)
        params.type_k, params.type_v = (getattr(llama, f"GGML_TYPE_{name.upper()}", BF16) for name in self._settings.cache)
        if self._settings.flash is not None:
            enabled, disabled = llama.LLAMA_FLASH_ATTN_TYPE_ENABLED, llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
            params.flash_attn_type = enabled if self._settings.flash else disabled
        params.n_threads = params.n_threads_batch = self._pace.most
        params.n_outputs_max = 1  # only the prediction after the last token is needed
        params.no_perf = True
        handle = llama.llama_init_from_model(self._model, params)
        if handle:
            self._contexts.append(_Context(handle))
        return bool(handle)

    def _trim(self, context: _Context, prompt: Sequence[int]) -> int:
        """Drop the context's tokens after those it shares with `prompt`. Return how many remain."""
        memory = self._llama.llama_get_memory(context.handle)
        shared = context.count_shared(prompt)
        if not self._llama.llama_memory_seq_rm(memory, 0, shared, -1):
            shared = 0  # a recurrent model has a state instead of a cache, which cannot be rolled back
            self._llama.llama_memory_clear(memory, True)
        del context.tokens[shared:]
        return shared

    # Sampling.

    @contextmanager
    def _sampler(self, sampling: Sampling, prompt: Sequence[int]) -> Iterator[Any]:
        llama = self._llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        try:
            if sampling.grammar is not None:
                rules = llama.llama_sampler_init_grammar(self.vocabulary.handle, sampling.grammar.encode(), b"root")
                if not rules:
                    raise AgentError(f"llama.cpp rejected the grammar of a JSON schema: {take_error()}")
                llama.llama_sampler_chain_add(chain, rules)
            if sampling.penalty != 1:
                llama.llama_sampler_chain_add(chain, self._penalty(sampling.penalty, prompt))
            if sampling.temperature > 0:
                llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_temp(sampling.temperature))
                if sampling.top_p < 1:
                    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_top_p(sampling.top_p, 1))
                llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(sampling.seed))
            else:
                llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_greedy())
            yield chain
        finally:
            llama.llama_sampler_free(chain)

    def _penalty(self, penalty: float, prompt: Sequence[int]) -> Any:
        """Return a sampler that makes tokens of the prompt and the answer less likely."""
        llama = self._llama
        tokens = llama.llama_vocab_n_tokens(self.vocabulary.handle)
        sampler = llama.llama_sampler_init_penalties(tokens, self.window, penalty, 0.0, 0.0)
        for token in prompt:
            llama.llama_sampler_accept(sampler, token)
        return sampler
