"""Embeddings from a model in a GGUF file, by llama.cpp on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.gguf.library import load_library, load_model, read_context, take_error
from longspan.agents.models.gguf.pace import count_cores
from longspan.agents.models.gguf.trial import try_out
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.simulator.contract.agent import will_be_asked

__all__ = ["GgufVectors"]

MAX_TOKENS: Final = 512
"""The maximum tokens embedded; the rest of a longer text is ignored."""

SEQUENCES: Final = 32
"""The maximum texts computed together."""

NONE: Final = 0
MEAN: Final = 1
"""llama.cpp's codes for pooling token vectors: not at all, or by their mean."""


@final
class GgufVectors:
    """An embedding model. If the model names no pooling, the vector is the mean over the tokens.

    The constructor loads it, unless the run will ask nothing. Raises InputError if the file cannot be used.
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
        """Return a vector for each text. Blocks: call it in a thread. Raises AgentError.

        Texts are computed together up to the limits, each as a separate sequence, so that no text changes another's vector.
        """
        with self._lock:
            batches: list[list[list[int]]] = []
            for tokens in map(self._tokens, texts):
                last = batches[-1] if batches else []
                if not last or len(last) == SEQUENCES or sum(map(len, last)) + len(tokens) > self._room:
                    batches.append([])
                batches[-1].append(tokens)
            return [row for batch in batches for row in self._compute(batch)]

    def _open(self, path: Path) -> None:
        self._llama = load_library()
        self._model = load_model(path)
        self._vocabulary = Vocabulary(self._model)
        self._size: int = self._llama.llama_model_n_embd(self._model)
        self._context = self._new_context()
        if self._llama.llama_pooling_type(self._context) == NONE:
            self._llama.llama_free(self._context)
            self._context = self._new_context(pooling_type=MEAN)
        self._room = min(MAX_TOKENS, read_context(self._model))

    def _new_context(self, **settings: int) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = min(MAX_TOKENS, read_context(self._model))
        params.n_seq_max, params.kv_unified = SEQUENCES, True
        params.n_threads = params.n_threads_batch = count_cores()
        params.embeddings = True
        for name, value in settings.items():
            setattr(params, name, value)
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            raise InputError(f"it makes no vectors: {take_error()}")
        return context

    def _tokens(self, text: str) -> list[int]:
        return self._vocabulary.tokens(text, special=True)[: self._room] or self._vocabulary.tokens(" ", special=True)

    def _compute(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the vectors of texts computed together."""
        llama = self._llama
        if (memory := llama.llama_get_memory(self._context)) is not None:  # encoders have no memory
            llama.llama_memory_clear(memory, True)
        batch = llama.llama_batch_init(self._room, 0, 1)
        try:
            for number, tokens in enumerate(texts):
                for position, token in enumerate(tokens):
                    at = batch.n_tokens
                    batch.token[at], batch.pos[at], batch.n_seq_id[at], batch.seq_id[at][0], batch.logits[at] = (
                        token,
                        position,
                        1,
                        number,
                        1,
                    )
                    batch.n_tokens = at + 1
            compute = llama.llama_encode if llama.llama_model_has_encoder(self._model) else llama.llama_decode
            if compute(self._context, batch):
                raise AgentError(f"llama.cpp makes no vector: {take_error()}")
        finally:
            llama.llama_batch_free(batch)
        found = [llama.llama_get_embeddings_seq(self._context, number) for number in range(len(texts))]
        if not all(found):
            raise AgentError(f"llama.cpp makes no vector: {take_error()}")
        return [list(vector[: self._size]) for vector in found]
