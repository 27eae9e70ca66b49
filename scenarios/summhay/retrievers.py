"""Select and order the documents to show (section 5): all of them, or the best by a retriever's scores up to a token budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Final, Literal, NamedTuple, final

from longspan.scenarios.summhay.checks import SMALL
from longspan.scenarios.summhay.haystacks import Haystack, Subtopic
from longspan.scenarios.summhay.retrieval import score_by_embedder, score_by_reranker
from longspan.scenarios.summhay.signs import find_signs
from longspan.simulator.base.tokens import Tokenizer

__all__ = ["Position", "Retriever", "ShownDocument", "arrange_documents", "pick_best", "score_by_keywords", "score_documents"]

Retriever = Literal["full", "rand", "kws", "vect", "longe", "rerank", "oracle"]

Position = Literal["stored", "top", "middle", "bottom"]
"""Position of the relevant documents in a whole haystack (section 5, position bias)."""

SENTENCE: Final = 384
"""Maximum number of tokens that a sentence embedder reads. A long embedder reads the whole text, in pieces of this length."""

EMBEDDER: Final = "hash"
RERANKER: Final = "cohere/rerank-english-v3.0"
"""Default models, used if none is named and a published haystack has no scores."""

STORED: Final[Mapping[str, Callable[[str], bool]]] = {
    "kws": lambda name: name == "keywords",
    "vect": lambda name: name == "vector",
    "longe": lambda name: "/" in name,  # named after its model
    "rerank": lambda name: name == "rerank3",
}
"""Predicates for the names of these retrievers' scores in published haystacks."""


@final
class ShownDocument(NamedTuple):
    """A document to show: its number, and its text, possibly truncated."""

    number: int
    text: str


def score_documents(haystack: Haystack, subtopic: Subtopic, retriever: Retriever, seed: str, model: str | None) -> list[float]:
    """Return the relevance of each document to the subtopic, by the retriever. `seed`: of `rand`; `model`: the embedder or reranker.

    Raises InputError for a model that is unknown or cannot be used.
    """
    if retriever == "rand":
        random = Random(f"{seed}/{haystack.id}/{subtopic.id}")
        return [random.random() for _ in haystack.documents]
    if retriever == "oracle":
        return [float(score) for score in haystack.relevance(subtopic)]
    if model is None and (stored := _stored_scores(haystack, subtopic, retriever)):
        return stored
    if retriever == "kws":
        return score_by_keywords(haystack, subtopic)
    return _by_model(_Haystack(haystack), retriever, model)[subtopic.id]


def arrange_documents(haystack: Haystack, subtopic: Subtopic, position: Position, seed: str) -> list[ShownDocument]:
    """Return all documents, with the relevant ones at `position`. The others keep their order, for "middle" on both sides."""
    every = [ShownDocument(number, document.text) for number, document in enumerate(haystack.documents, 1)]
    if position == "stored":
        return every
    ranks = haystack.relevance(subtopic)
    if position == "middle":
        random = Random(f"{seed}/{haystack.id}/{subtopic.id}/middle")
        above = max(ranks, default=0) + 1
        ranks = [rank or random.choice((0, above)) for rank in ranks]
    return sorted(every, key=lambda document: ranks[document.number - 1], reverse=position != "bottom")


def pick_best(haystack: Haystack, found: Sequence[float], budget: int) -> list[ShownDocument]:
    """Return the documents with the highest scores (`found`), up to `budget` tokens of cl100k_base. The last one is truncated.

    Documents with equal scores keep their order.
    """
    tokenizer = Tokenizer("cl100k_base")
    left = budget
    shown: list[ShownDocument] = []
    for number in sorted(range(1, len(found) + 1), key=lambda number: -found[number - 1]):
        text = haystack.documents[number - 1].text
        tokens = tokenizer.encode(text)
        if len(tokens) >= left:
            shown.append(ShownDocument(number, tokenizer.decode(tokens[:left]).rstrip("\ufffd")))
            break
        shown.append(ShownDocument(number, text))
        left -= len(tokens)
    return [document for document in shown if document.text.strip()]


def score_by_keywords(haystack: Haystack, subtopic: Subtopic) -> list[float]:
    """Return the share of the query's words, without function words, that each document contains."""
    wanted = find_signs(_query(subtopic)) - SMALL
    return [len(wanted & _signs(document.text)) / max(1, len(wanted)) for document in haystack.documents]


_signs = lru_cache(maxsize=512)(find_signs)


def _query(subtopic: Subtopic) -> str:
    return f"{subtopic.query} {subtopic.subtopic}"


def _stored_scores(haystack: Haystack, subtopic: Subtopic, retriever: str) -> list[float]:
    """Return the scores that came with the haystack; empty unless all of its documents have one."""
    known = next((found for name, found in subtopic.stored.items() if STORED[retriever](name)), {})
    if any(document.id not in known for document in haystack.documents):
        return []
    return [known[document.id] for document in haystack.documents]


@final
class _Haystack:
    """A haystack that equals any other with the same name and texts, as a cheap key for the cache below."""

    def __init__(self, haystack: Haystack) -> None:
        self.whole = haystack
        self._key = (haystack.id, hash(tuple(document.text for document in haystack.documents)), tuple(map(_query, haystack.subtopics)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Haystack) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4)
def _by_model(haystack: _Haystack, retriever: str, model: str | None) -> Mapping[str, list[float]]:
    """Return the scores of all documents by subtopic. The documents are embedded once for all subtopics."""
    every = haystack.whole
    queries = [_query(subtopic) for subtopic in every.subtopics]
    texts = [document.text for document in every.documents]
    if retriever == "rerank":
        found = score_by_reranker(model or RERANKER, queries, texts)
    else:
        found = score_by_embedder(model or EMBEDDER, queries, [_pieces(text, None if retriever == "longe" else 1) for text in texts])
    return {subtopic.id: row for subtopic, row in zip(every.subtopics, found, strict=True)}


def _pieces(text: str, limit: int | None) -> list[str]:
    """Cut `text` into pieces as long as a sentence embedder reads; return at most `limit` of them."""
    tokenizer = Tokenizer("cl100k_base")
    tokens = tokenizer.encode(text)
    starts = range(0, max(1, len(tokens)), SENTENCE)
    return [tokenizer.decode(tokens[at : at + SENTENCE]) for at in starts][:limit]
