"""Vectors by a model in a GGUF file, with llama.cpp, on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.gguf.library import library, load, take_error
from longspan.agents.models.gguf.trial import try_out
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.simulator.contract.agent import will_be_asked

__all__ = ["GgufVectors"]

MAX_TOKENS: Final = 512
"""The maximum tokens that are embedded; the rest of a longer text is ignored."""

NONE: Final = 0
MEAN: Final = 1
"""llama.cpp's numbers for two ways of pooling token vectors into one: none, and their mean."""


@final
class GgufVectors:
    """An embedding model. If the model names no pooling, the vector is the mean over the tokens.

    The constructor loads it, unless nothing will be asked. Raises InputError if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._lock = Lock()
        self._context: Any = None
        if not path.is_file():
            raise InputError(f"embedder=gguf/{path}: there is no such file")
        if will_be_asked():
            try:
                try_out(path)
                self._open(path)
            except InputError as error:
                raise InputError(f"embedder=gguf/{path}: {error}") from None

    def rows(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text. Blocks: call it in a thread. Raises AgentError."""
        with self._lock:
            return [self._row(text) for text in texts]

    def _open(self, path: Path) -> None:
        self._llama = library()
        self._model = load(path)
        self._vocabulary = Vocabulary(self._model)
        self._size: int = self._llama.llama_model_n_embd(self._model)
        self._context = self._new_context()
        if self._llama.llama_pooling_type(self._context) == NONE:
            self._llama.llama_free(self._context)
            self._context = self._new_context(pooling_type=MEAN)

    def _new_context(self, **settings: int) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = min(MAX_TOKENS, self._llama.llama_model_n_ctx_train(self._model))
        params.embeddings = True
        for name, value in settings.items():
            setattr(params, name, value)
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            raise InputError(f"it makes no vectors: {take_error()}")
        return context

    def _row(self, text: str) -> list[float]:
        tokens = self._vocabulary.tokens(text, special=True)[: self._llama.llama_n_ctx(self._context)]
        if not tokens:
            tokens = self._vocabulary.tokens(" ", special=True)
        self._llama.llama_memory_clear(self._llama.llama_get_memory(self._context), True)
        array = (self._llama.llama_token * len(tokens))(*tokens)
        batch = self._llama.llama_batch_get_one(array, len(tokens))
        compute = self._llama.llama_encode if self._llama.llama_model_has_encoder(self._model) else self._llama.llama_decode
        if compute(self._context, batch):
            raise AgentError(f"llama.cpp makes no vector: {take_error()}")
        found = self._llama.llama_get_embeddings_seq(self._context, 0)
        if not found:
            raise AgentError(f"llama.cpp makes no vector: {take_error()}")
        return list(found[: self._size])
