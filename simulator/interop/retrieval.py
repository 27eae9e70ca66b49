"""Finding documents with a model: embedders and rerankers, found by entry point.

What is paid for is asked once: its scores are kept in the user's cache, so that a run that is gone on with, or played again,
finds the same documents without asking anybody.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from longspan.simulator.errors import AgentError, InputError
from longspan.simulator.plugins import load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EMBEDDERS", "RERANKERS", "Embeds", "Reranks", "nearness", "relevance"]

EMBEDDERS: Final = "longspan.embedders"
"""The entry-point group of embedders: the first part of a name such as openai/MODEL, and what makes one of the whole name."""

RERANKERS: Final = "longspan.rerankers"
"""The same for rerankers, such as cohere/MODEL."""

Value = TypeVar("Value")
Scores = list[list[float]]


class Vectors(Protocol):
    """Vectors of length 1, one a row."""

    @property
    def vectors(self) -> NDArray[np.float32]: ...


class Embeds(Protocol):
    """Makes vectors of texts: near ones for texts that are about the same. `model`: what is paid for; None where nothing is."""

    @property
    def model(self) -> str | None: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, of which there is at least one. Raises AgentError."""
        ...


class Reranks(Protocol):
    """Says how much each document has to do with a query. Somebody is paid for it."""

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """A finite number for each document, the larger the more. Raises AgentError."""
        ...


def nearness(embedder: str, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> Scores:
    """For each query the cosine of its vector with that of each document, which comes in pieces: the mean of theirs.

    Blocks, also inside Trio. Raises InputError for an embedder that there is not, or that fails. What is kept needs no key.
    """

    def embedded() -> tuple[Scores, bool]:
        made: Embeds = _made(EMBEDDERS, "embedder", embedder)
        pieces = [piece for document in documents for piece in document]
        found = _waited(f"embedder {embedder}", made.embed, [*queries, *pieces])
        return _cosines(found.vectors, len(queries), [*map(len, documents)]), made.model is not None

    return _kept(["nearness", embedder, queries, documents], (len(queries), len(documents)), embedded)


def relevance(reranker: str, queries: Sequence[str], documents: Sequence[str]) -> Scores:
    """For each query what the reranker says of each document; otherwise as `nearness`."""

    def asked(query: str) -> Callable[[], tuple[Scores, bool]]:
        return lambda: ([_waited(f"reranker {reranker}", _made(RERANKERS, "reranker", reranker).rerank, query, documents)], True)

    return [_kept(["relevance", reranker, query, documents], (1, len(documents)), asked(query))[0] for query in queries]


def _made(group: str, what: str, name: str) -> Any:
    return load(group, what, name.partition("/")[0])(name)


def _waited(who: str, call: Callable[..., Awaitable[Value]], *arguments: Any) -> Value:
    """What an asynchronous call gives, in a thread with a Trio of its own: tests are made outside Trio and inside it."""
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
    means = np.stack([part.mean(axis=0) for part in np.split(pieces, np.cumsum(lengths)[:-1])])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    found: Scores = np.round(asked @ means.T, 6).tolist()  # the last digits are the machine's own
    return found


def _kept(about: Sequence[Any], shape: tuple[int, int], ask: Callable[[], tuple[Scores, bool]]) -> Scores:
    """What was asked before about the same, or is asked now and, where `ask` says so, kept. A cache that cannot be written is done
    without."""
    key = hashlib.sha256(json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
    path = _cache() / f"{key}.json"
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_bytes())
        if _are_scores(found, *shape):
            return found  # type: ignore[no-any-return]
    scores, dear = ask()
    if not dear:
        return scores
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, suffix=".partial", delete=False) as file:
            json.dump(scores, file)
        Path(file.name).replace(path)
    return scores


def _are_scores(found: Any, rows: int, columns: int) -> bool:
    """Whether what a file holds are finite numbers in so many rows and columns."""
    if not isinstance(found, list) or len(found) != rows or not all(isinstance(row, list) and len(row) == columns for row in found):
        return False
    return all(type(value) in (int, float) and isfinite(value) for row in found for value in row)


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "longspan" / "retrieval"
