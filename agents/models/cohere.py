"""Cohere's reranking API, which scores documents by their relevance to a query.

CO_API_URL names another server that speaks it. Run files cannot: an untrusted file could have the key sent elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, final

from longspan.agents.base import InputError, Usage
from longspan.agents.models.api import dig_value
from longspan.agents.models.core import clean_unicode
from longspan.agents.models.limits import TransientError
from longspan.agents.models.provider import Provider, ProviderOptions, Vendor
from longspan.simulator.base.integers import is_finite

__all__ = ["COHERE", "CohereReranker"]


def _client(key: str, url: str, http: Any) -> Any:
    http.headers["authorization"] = f"Bearer {key}"
    return http


COHERE: Final = Vendor(
    kind="cohere",
    extra="all",
    module="httpx2",
    keys=("COHERE_API_KEY", "CO_API_KEY"),
    url="https://api.cohere.com",
    url_variable="CO_API_URL",
    make=_client,
)


@final
class CohereReranker:
    """A reranker, named `cohere/MODEL`. Raises InputError without the key or a valid address."""

    def __init__(self, name: str) -> None:
        kind, _, self._model = name.partition("/")
        if kind != "cohere" or not self._model:
            raise InputError(f"reranker: expected cohere/MODEL, such as cohere/rerank-english-v3.0; got {name!r:.60}")
        self._provider = Provider(COHERE, self._model, ProviderOptions())

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return a score in [0, 1] for each document. Raises AgentError."""
        tokens = sum(map(len, documents)) // 4
        scores, _ = await self._provider.call(
            partial(self._ask, clean_unicode(query), [*map(clean_unicode, documents)], tokens), Usage(tokens)
        )
        return scores

    async def _ask(self, query: str, documents: Sequence[str], tokens: int, client: Any) -> tuple[list[float], Usage]:
        """Make one request. The answer is checked, since servers may send anything."""
        body = {"model": self._model, "query": query, "documents": documents, "top_n": len(documents)}
        response = await client.post(f"{self._provider.url}/v2/rerank", json=body)
        results = dig_value(json.loads(await response.aread()), "results")
        valid = [result for result in results if _is_valid(result)] if isinstance(results, list) else []
        scores = {result["index"]: result["relevance_score"] for result in valid}
        if set(scores) != set(range(len(documents))):
            raise TransientError("did not give a score for each document")
        return [float(scores[number]) for number in range(len(documents))], Usage(tokens)


def _is_valid(result: Any) -> bool:
    index, score = dig_value(result, "index"), dig_value(result, "relevance_score")
    return type(index) is int and is_finite(score)
