"""A model loaded by llama.cpp, and the conversations whose prompts it has computed.

Each conversation has a context of its own, a cache of keys and values. Of the other ways to keep several (sequences in one
cache, shared or divided; states copied out and in) none was faster, and a context takes memory only once it is needed:
docs/performance.md has the figures.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import cpu_count
from pathlib import Path
from typing import Any, Final, NamedTuple, final
from weakref import ref

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.gguf.library import complaint, library, load
from longspan.agents.models.gguf.vocabulary import Vocabulary

__all__ = ["Generated", "Model", "Sampling"]

WINDOW: Final = 8192
"""Tokens of a conversation, unless told otherwise. Models are trained on more, but the cache of all that may not fit into memory."""

BATCH: Final = 64
GPU_BATCH: Final = 512
"""Tokens of a prompt computed together: as few as are no slower than more, since nothing can be stopped in between."""

TAIL: Final = 64
"""Tokens at the end of a prompt by which its conversation is known again."""


class Sampling(NamedTuple):
    """How a token is chosen: the likeliest at temperature 0, else drawn; of those that `grammar` (in GBNF) allows, if there is one.

    `top_p`: drawn are only the likeliest that together have this probability. `penalty`: by which tokens are made less likely that
    stand in the prompt or the answer; 1 for none.
    """

    temperature: float = 0.0
    seed: int = 0
    grammar: str | None = None
    top_p: float = 1.0
    penalty: float = 1.0


LIKELIEST: Final = Sampling()


class Generated(NamedTuple):
    """What a model said, in how many tokens, and how many tokens of its prompt had been computed before."""

    text: str
    tokens: int
    cached: int


@final
class _Context:
    """A conversation's cache: whose it is, which tokens are in it, the end of its last prompt, and when it was used last."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.owner: Callable[[], object | None] = _nobody
        self.tokens: list[int] = []
        self.tail = b""
        self.used = 0

    def shared(self, prompt: Sequence[int]) -> int:
        """How many tokens of `prompt` it begins with; without the last, which is computed in any case."""
        most = min(len(self.tokens), len(prompt) - 1)
        return next((at for at in range(most) if self.tokens[at] != prompt[at]), most)

    def continued_by(self, prompt: Sequence[int]) -> bool:
        """Whether `prompt` goes on with its conversation, of which the oldest turns may have been dropped."""
        return 2 * self.shared(prompt) >= len(self.tokens) or self.tail in array("i", prompt).tobytes()


def _nobody() -> None:
    """The owner of a context that may be taken."""


@final
class Model:
    """The model in the GGUF file `path`, with a window of so many tokens for each of at most `contexts` conversations.

    `gpu_layers` layers are computed on the GPU, all for -1; without `threads`, half of the processors are used. To be used
    by one thread at a time. Raises InputError for a file that is no such model, for a window that it was not trained on
    or that has no room in memory, and for a GPU that is not there.
    """

    def __init__(
        self, path: Path, *, window: int | None = None, gpu_layers: int = 0, threads: int | None = None, contexts: int = 4
    ) -> None:
        self._llama = llama = library()
        if gpu_layers and not llama.llama_supports_gpu_offload():
            raise InputError("gpu_layers: llama.cpp was compiled for no GPU, or finds none; leave it out, or install it for yours")
        self._model = load(path, n_gpu_layers=gpu_layers)
        if llama.llama_model_has_encoder(self._model) or not llama.llama_model_has_decoder(self._model):
            raise InputError("it is no model that goes on with a text, as chat models do")
        trained: int = llama.llama_model_n_ctx_train(self._model)
        self.window = window or min(WINDOW, trained)
        if self.window > trained:
            raise InputError(f"n_ctx={self.window} is more than the {trained:,} tokens that the model was trained on")
        self.vocabulary = Vocabulary(self._model)
        self._batch = GPU_BATCH if gpu_layers else BATCH
        self._threads = threads or max(1, (cpu_count() or 1) // 2)
        self._most = contexts
        self._contexts: list[_Context] = []
        self._calls = 0
        if not self._grow():
            raise InputError(f"there is no memory for n_ctx={self.window}, take less: {complaint()}")

    def close(self) -> None:
        """Free its memory. It is used no more."""
        while self._contexts:
            self._llama.llama_free(self._contexts.pop().handle)
        self._llama.llama_model_free(self._model)

    def generate(
        self, prompt: Sequence[int], most: int, *, owner: object, sampling: Sampling = LIKELIEST, stopped: Callable[[], bool] = bool
    ) -> Generated:
        """What the model says after `prompt`, at most `most` tokens; prompt and answer together fit into the window.

        What has been computed for `owner` and is still kept is not computed again. Once `stopped` says so it says no more.
        Raises AgentError where llama.cpp fails.
        """
        with self._sampler(sampling, prompt) as sampler:
            context = self._context(prompt, owner)
            cached = self._trim(context, prompt)
            for start in range(cached, len(prompt), self._batch):
                if stopped():
                    return Generated("", 0, cached)
                self._compute(context, prompt[start : start + self._batch])
            context.tail = array("i", prompt[-TAIL:]).tobytes()
            answer = self._answer(context, most, sampler, stopped)
        return Generated(self.vocabulary.text(answer), len(answer), cached)

    def _answer(self, context: _Context, most: int, sampler: Any, stopped: Callable[[], bool]) -> list[int]:
        answer: list[int] = []
        while True:
            token = self._llama.llama_sampler_sample(sampler, context.handle, -1)
            if self.vocabulary.ends(token):
                return answer
            answer.append(token)
            if len(answer) >= most or stopped():
                return answer
            self._compute(context, [token])

    def _compute(self, context: _Context, tokens: Sequence[int]) -> None:
        """Add tokens to a context, and compute what comes after them. After an error nothing in it is relied on."""
        given = (self._llama.llama_token * len(tokens))(*tokens)
        code = self._llama.llama_decode(context.handle, self._llama.llama_batch_get_one(given, len(tokens)))
        if code:
            context.tokens.clear()
            raise AgentError(f"llama.cpp failed to go on with a conversation ({code}): {complaint()}")
        context.tokens += tokens

    # Contexts.

    def _context(self, prompt: Sequence[int], owner: object) -> _Context:
        """The context of the owner's that `prompt` goes on with; or one of nobody's, a new one, or the one used longest ago."""
        known = [context for context in self._contexts if context.owner() is owner and context.continued_by(prompt)]
        free = [context for context in self._contexts if context.owner() is None]
        if known:
            chosen = max(known, key=lambda context: context.shared(prompt))
        elif free:
            chosen = free[0]
        elif len(self._contexts) < self._most and self._grow():
            chosen = self._contexts[-1]
        else:
            chosen = min(self._contexts, key=lambda context: context.used)
        self._calls += 1
        chosen.used, chosen.owner = self._calls, ref(owner)
        return chosen

    def _grow(self) -> bool:
        """Add a context. False where there is no memory for it."""
        llama = self._llama
        params = llama.llama_context_default_params()
        params.n_ctx = self.window
        params.n_batch = params.n_ubatch = self._batch
        params.n_threads = params.n_threads_batch = self._threads
        params.n_outputs_max = 1  # only what comes after the last token is of interest
        params.no_perf = True
        handle = llama.llama_init_from_model(self._model, params)
        if handle:
            self._contexts.append(_Context(handle))
        return bool(handle)

    def _trim(self, context: _Context, prompt: Sequence[int]) -> int:
        """Drop what the context holds beyond its part of `prompt`, and return how much that is."""
        memory = self._llama.llama_get_memory(context.handle)
        shared = context.shared(prompt)
        if not self._llama.llama_memory_seq_rm(memory, 0, shared, -1):
            shared = 0  # a model with a state instead of a cache: it cannot go back
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
                    raise AgentError(f"llama.cpp does not take the grammar of a JSON schema: {complaint()}")
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
        """What makes tokens less likely that have been there, those of the prompt included."""
        llama = self._llama
        tokens = llama.llama_vocab_n_tokens(self.vocabulary.handle)
        sampler = llama.llama_sampler_init_penalties(tokens, self.window, penalty, 0.0, 0.0)
        for token in prompt:
            llama.llama_sampler_accept(sampler, token)
        return sampler
