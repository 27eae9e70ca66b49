"""WordLlama: the mean of the token vectors of the input, from the package's files. Its code requires a network and is not imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from longspan.agents.base import InputError
from longspan.agents.models.weights import WORDLLAMA, WORDLLAMA_TOKENS, locate_weights
from longspan.simulator.base.errors import one_line

__all__ = ["WordLlama", "load_wordllama"]

NAME: Final = "embedder=wordllama"

TENSOR: Final = "embedding.weight"
"""The only tensor of the file: one row per token."""


class WordLlama:
    """Token vectors from a safetensors file, and the tokenizer that numbers them."""

    def __init__(self, weights: Path, tokens: Path) -> None:
        import numpy as np
        from tokenizers import Tokenizer

        content = weights.read_bytes()
        size = int.from_bytes(content[:8], "little")
        told = json.loads(content[8 : 8 + size])[TENSOR]
        begin, end = told["data_offsets"]
        data = content[8 + size + begin : 8 + size + end]
        self._vectors = np.frombuffer(data, {"F16": "<f2", "F32": "<f4"}[told["dtype"]]).reshape(told["shape"]).astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(tokens))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def rows(self, texts: Sequence[str]) -> Any:
        """Return a vector for each text. Blocks: call it in a thread."""
        import numpy as np

        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return np.stack([self._vectors[each.ids].mean(axis=0) if each.ids else self._vectors[0] for each in found])


def load_wordllama(*, asked: bool) -> WordLlama | None:
    """Return the model, loaded once per process; None unless the run will have it `asked`. Raises InputError if it cannot be used."""
    paths = locate_weights(WORDLLAMA, NAME), locate_weights(WORDLLAMA_TOKENS, NAME)
    try:
        import tokenizers  # noqa: F401
    except Exception as error:  # missing or broken
        raise InputError(f"{NAME} needs the package tokenizers: pip install tokenizers ({one_line(error, 120)})") from error
    if not asked:
        return None
    try:
        return _load_cached(*paths)
    except Exception as error:
        raise InputError(f"{NAME}: {paths[0]} cannot be loaded: {one_line(error, 120)}; {WORDLLAMA.remedy}") from error


@cache
def _load_cached(weights: Path, tokens: Path) -> WordLlama:
    return WordLlama(weights, tokens)
