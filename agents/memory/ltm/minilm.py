"""all-MiniLM-L6-v2 from the extra `local`, run by onnxruntime on the CPU."""

from __future__ import annotations

import lzma
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from longspan.agents.base import InputError
from longspan.agents.models.weights import MINILM, locate_weights
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.own_installation import install_extra

__all__ = ["WORD_PIECES", "MiniLM", "load_minilm", "make_tokenizer"]

NAME: Final = "embedder=local"

WORD_PIECES: Final = Path(__file__).with_name("word_pieces.xz")
"""BERT's lower-case vocabulary, one word piece per line, in the order of their numbers (NOTICE)."""

CLS: Final = ("[CLS]", 101)
SEP: Final = ("[SEP]", 102)
"""The word pieces that mark the beginning and the end of the input, with their ids."""

MAX_TOKENS: Final = 256
"""The maximum word pieces, as in training; the rest of a longer text is ignored."""

BATCH: Final = 16
"""Texts computed together. Larger batches are no faster and take more memory."""


class MiniLM:
    """The model in the ONNX file `path`."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, (os.cpu_count() or 2) // 2)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads must not burn CPU
        self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._tokenizer = make_tokenizer()

    def rows(self, texts: Sequence[str]) -> Any:
        """Return a vector for each text: the mean over its word pieces. Blocks: call it in a thread."""
        import numpy as np

        pieces = [found.ids for found in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda number: len(pieces[number]))  # texts of equal length need no padding
        vectors = np.empty((len(texts), 384), dtype=np.float32)
        for at in range(0, len(order), BATCH):
            chosen = order[at : at + BATCH]
            vectors[chosen] = self._compute([pieces[number] for number in chosen])
        return vectors

    def _compute(self, batch: Sequence[Sequence[int]]) -> Any:
        import numpy as np

        numbers = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        for row, ids in zip(numbers, batch, strict=True):
            row[: len(ids)] = ids
        mask = (numbers != 0).astype(np.int64)
        (states,) = self._session.run(None, {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(numbers)})
        weights = mask[..., None].astype(np.float32)
        return (states * weights).sum(axis=1) / weights.sum(axis=1)


def make_tokenizer() -> Any:
    """Return BERT's tokenizer without capitals and accents."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = lzma.decompress(WORD_PIECES.read_bytes()).decode("utf-8").split("\n")[:-1]
    made = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(SEP, CLS)
    made.enable_truncation(MAX_TOKENS)
    return made


def load_minilm(*, asked: bool) -> MiniLM | None:
    """Return the model, loaded once per process; None unless the run will have it `asked`. Raises InputError if it cannot be used."""
    path = locate_weights(MINILM, NAME)
    try:
        import onnxruntime  # noqa: F401
        import tokenizers  # noqa: F401
    except Exception as error:  # missing or broken
        raise InputError(f"{NAME} needs an extra: {install_extra('local')} ({one_line(error, 120)})") from error
    if not asked:
        return None
    try:
        return _load_cached(path)
    except Exception as error:
        raise InputError(f"{NAME}: {path} cannot be loaded: {one_line(error, 120)}; {MINILM.remedy}") from error


@cache
def _load_cached(path: Path) -> MiniLM:
    return MiniLM(path)
