"""Embedders and rerankers that retrieve documents. They are found by entry point.

Scores that cost money are cached for the user, so that resuming or replaying a run retrieves the same documents for free.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from longspan.simulator.base import cache
from longspan.simulator.base.errors import AgentError, InputError
from longspan.simulator.base.integers import is_finite
from longspan.simulator.contract.plugins import load_plugin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EMBEDDERS", "RERANKERS", "Embeds", "Reranks", "score_by_embedder", "score_by_reranker"]

EMBEDDERS: Final = "longspan.embedders"
"""Entry-point group of embedders. It maps the first part of a name such as openai/MODEL to a function that takes the whole name."""

RERANKERS: Final = "longspan.rerankers"
"""Entry-point group of rerankers, such as cohere/MODEL."""

Value = TypeVar("Value")
Scores = list[list[float]]


class Vectors(Protocol):
    """Vectors of length 1, one per row."""

    @property
    def vectors(self) -> NDArray[np.float32]: ...


class Embeds(Protocol):
    """Computes vectors for texts; texts on the same subject get nearby vectors. `model` is None if it is free."""

    @property
    def model(self) -> str | None: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text. At least one text is given. Raises AgentError."""
        ...


class Reranks(Protocol):
    """Scores how relevant documents are to a query. It costs money."""

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return a finite score for each document, higher for more relevant ones. Raises AgentError."""
        ...


def score_by_embedder(embedder: str, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> Scores:
    """Return the cosine similarity of each query to each document. A document's vector is the mean over its pieces.

    Blocks, even inside Trio. Cached scores need no API key. Raises InputError if the embedder does not exist or fails.
    """

    def compute() -> tuple[Scores, bool]:
        model: Embeds = _load(EMBEDDERS, "embedder", embedder)
        pieces = [piece for document in documents for piece in document]
        embedded = _run_in_thread(f"embedder {embedder}", model.embed, [*queries, *pieces])
        return _cosines(embedded.vectors, len(queries), [*map(len, documents)]), model.model is not None

    return _cache_scores(["nearness", embedder, queries, documents], (len(queries), len(documents)), compute)


def score_by_reranker(reranker: str, queries: Sequence[str], documents: Sequence[str]) -> Scores:
    """Return the reranker's score of each document for each query; otherwise like `score_by_embedder`."""

    def asked(query: str) -> Callable[[], tuple[Scores, bool]]:
        return lambda: ([_run_in_thread(f"reranker {reranker}", _load(RERANKERS, "reranker", reranker).rerank, query, documents)], True)

    return [_cache_scores(["relevance", reranker, query, documents], (1, len(documents)), asked(query))[0] for query in queries]


def _load(group: str, what: str, name: str) -> Any:
    return load_plugin(group, what, name.partition("/")[0])(name)


def _run_in_thread(who: str, call: Callable[..., Awaitable[Value]], *arguments: Any) -> Value:
    """Run an asynchronous call in a thread with its own Trio loop, since tests are made both outside and inside Trio."""
    from concurrent.futures import ThreadPoolExecutor

    import trio

    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(trio.run, call, *arguments).result()
        except AgentError as error:
            raise InputError(f"{who}: {error}") from error


def _cosines(vectors: NDArray[np.float32], queries: int, lengths: Sequence[int]) -> Scores:
    import numpy as np

    asked, pieces = vectors[:queries], vectors[queries:]
    means = np.stack([piece.mean(axis=0) for piece in np.split(pieces, np.cumsum(lengths)[:-1])])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    scores: Scores = np.round(asked @ means.T, 6).tolist()  # the last digits depend on the machine
    return scores


def _cache_scores(about: Sequence[Any], shape: tuple[int, int], ask: Callable[[], tuple[Scores, bool]]) -> Scores:
    """Return cached scores, or compute them and cache them if they cost money. A cache that cannot be written is ignored."""
    name = f"retrieval-{hashlib.sha256(json.dumps(about, ensure_ascii=False).encode('utf-8', 'replace')).hexdigest()}"
    with suppress(ValueError, RecursionError):
        known = json.loads(cache.read_cached(name) or b"null")
        if _are_scores(known, *shape):
            return known  # type: ignore[no-any-return]
    scores, costly = ask()
    if costly:
        cache.write_cached(name, json.dumps(scores).encode())
    return scores


def _are_scores(content: Any, rows: int, columns: int) -> bool:
    """Return whether a file's content is a matrix of finite numbers of this shape."""
    if not isinstance(content, list) or len(content) != rows or not all(isinstance(row, list) and len(row) == columns for row in content):
        return False
    return all(is_finite(value) for row in content for value in row)
