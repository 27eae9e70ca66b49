"""Which documents are shown: by each retriever, up to a number of tokens, and in each order. A reranking API is a server here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import trio
from tests.loopback import Service

from longspan.agents.models.cohere import CohereReranker
from longspan.scenarios.summhay.generated import generate_haystack
from longspan.scenarios.summhay.haystacks import Haystack
from longspan.scenarios.summhay.retrieval import score_by_embedder
from longspan.scenarios.summhay.retrievers import arrange_documents, pick_best, score_by_keywords, score_documents
from longspan.scenarios.summhay.scenario import SummHay
from longspan.scenarios.summhay.topic_files import read_haystacks
from longspan.simulator.base.errors import AgentError, InputError
from longspan.simulator.base.tokens import Tokenizer

KEY = "cohere-key-0123456789"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def haystack() -> Haystack:
    return generate_haystack(Random("x"), domain="news", subtopics=4, documents=40, words=300, name="1")


def share(haystack: Haystack, found: Sequence[float]) -> float:
    """The relevant material in the best ten documents, as a share of the most that ten documents can hold."""
    relevance = haystack.relevance(haystack.subtopics[0])
    order = sorted(range(len(found)), key=lambda at: -found[at])[:10]
    return sum(relevance[at] for at in order) / sum(sorted(relevance)[-10:])


def test_the_oracle_knows_and_words_and_vectors_find_more_than_chance(haystack: Haystack) -> None:
    for retriever, model in (("kws", None), ("vect", None), ("longe", "hash")):
        found = [share(haystack, score_documents(haystack, each, retriever, "0", model)) for each in haystack.subtopics[:1]]
        assert found[0] > 0.35, retriever
    assert share(haystack, score_documents(haystack, haystack.subtopics[0], "oracle", "0", None)) == 1


def test_random_scores_are_the_seeds(haystack: Haystack) -> None:
    first, again, other, elsewhere = (
        score_documents(haystack, haystack.subtopics[at], "rand", seed, None) for at, seed in ((0, "0"), (0, "0"), (0, "1"), (1, "0"))
    )
    assert first == again
    assert len({tuple(first), tuple(other), tuple(elsewhere)}) == 3


@pytest.mark.parametrize("budget", [100, 1000, 15_000, 100_000])
def test_documents_are_shown_by_score_until_the_budget_and_the_last_is_cut(haystack: Haystack, budget: int) -> None:
    found = [float(number % 7) for number in range(40)]
    shown = pick_best(haystack, found, budget)
    tokenizer = Tokenizer()
    whole = sum(tokenizer.count(document.text) for document in haystack.documents)
    assert sum(tokenizer.count(each.text) for each in shown) == pytest.approx(min(budget, whole), abs=3)
    numbers = [each.number for each in shown]
    assert numbers == sorted(range(1, 41), key=lambda number: (-found[number - 1], number))[: len(shown)]
    for each in shown[:-1]:
        assert each.text == haystack.documents[each.number - 1].text
    assert haystack.documents[numbers[-1] - 1].text.startswith(shown[-1].text)


def test_relevant_documents_stand_where_they_are_wanted(haystack: Haystack) -> None:
    subtopic = haystack.subtopics[0]
    relevance = haystack.relevance(subtopic)

    def where(position: Any) -> list[bool]:
        shown = arrange_documents(haystack, subtopic, position, "0")
        assert sorted(each.number for each in shown) == list(range(1, 41))
        return [relevance[each.number - 1] > 0 for each in shown]

    held = sum(score > 0 for score in relevance)
    assert where("top") == [True] * held + [False] * (40 - held)
    assert where("bottom") == [False] * (40 - held) + [True] * held
    middle = where("middle")
    first = middle.index(True)
    assert middle[first : first + held] == [True] * held
    assert 0 < first < 40 - held
    assert where("stored") == [score > 0 for score in relevance]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"retriever": "kws", "position": "top"}, "is for retriever=full"),
        ({"retriever": "kws", "embedder": "hash"}, "embedder is for"),
        ({"retriever": "vect", "reranker": "cohere/x"}, "reranker is for"),
        ({"data": "x", "grading": "rules"}, "grading=rules is only for"),
        ({"documents": 5}, "greater than or equal to 20"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SummHay.model_validate(parameters)


def test_an_embedder_that_there_is_not_is_named(haystack: Haystack) -> None:
    with pytest.raises(InputError, match="there is no embedder 'word2vec'; there are gguf, hash, local, minilm, openai, wordllama"):
        score_documents(haystack, haystack.subtopics[0], "vect", "0", "word2vec")


# published haystacks


def test_the_oracle_and_keywords_score_as_the_published_haystacks_say(summhay: Path) -> None:
    for haystack in read_haystacks(summhay, "news"):
        for subtopic in haystack.subtopics:
            ids = [document.id for document in haystack.documents]
            assert score_documents(haystack, subtopic, "oracle", "0", None) == [subtopic.stored["oracle"][id] for id in ids]
            theirs = [subtopic.stored["keywords"][id] for id in ids]
            assert np.corrcoef(score_by_keywords(haystack, subtopic), theirs)[0, 1] > 0.85


def test_published_scores_of_models_are_taken_unless_another_is_named(summhay: Path) -> None:
    (haystack, *_) = read_haystacks(summhay, "news")
    subtopic = haystack.subtopics[0]
    ids = [document.id for document in haystack.documents]
    for retriever, stored in (("kws", "keywords"), ("vect", "vector"), ("longe", "dwzhu/e5-base-4k"), ("rerank", "rerank3")):
        assert score_documents(haystack, subtopic, retriever, "0", None) == [subtopic.stored[stored][id] for id in ids]  # type: ignore[arg-type]
    assert score_documents(haystack, subtopic, "vect", "0", "hash") != score_documents(haystack, subtopic, "vect", "0", None)


# a reranking API


def ranked(body: dict[str, Any]) -> tuple[int, bytes]:
    """Longer documents are better; in an order of its own."""
    results = [{"index": at, "relevance_score": len(text) / 1e6} for at, text in enumerate(body["documents"])]
    return 200, json.dumps({"results": sorted(results, key=lambda each: -each["relevance_score"])}).encode()


@pytest.fixture
def reranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    with Service(ranked).running() as service:
        monkeypatch.setenv("CO_API_URL", service.address)
        monkeypatch.setenv("COHERE_API_KEY", KEY)
        yield service


def test_a_reranker_is_asked_once_for_each_subtopic_and_never_again(
    reranks: Service, haystack: Haystack, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = score_documents(haystack, haystack.subtopics[1], "rerank", "0", None)
    assert found == [len(document.text) / 1e6 for document in haystack.documents]
    assert len(reranks.asked) == 4
    path, authorization, body = reranks.asked[1]
    assert (path, authorization) == ("/v2/rerank", f"Bearer {KEY}")
    assert body["model"] == "rerank-english-v3.0"
    assert haystack.subtopics[1].query in body["query"]
    assert body["top_n"] == len(body["documents"]) == 40
    again = replace(haystack, id="again")
    monkeypatch.delenv("COHERE_API_KEY")
    assert score_documents(again, haystack.subtopics[1], "rerank", "0", None) == found, "kept: no key is needed"
    assert len(reranks.asked) == 4
    for kept, damaged in zip(cache.iterdir(), ("[[NaN", "[[1.0]]", json.dumps([[True] * 40]), "{}"), strict=True):
        kept.write_text(damaged, "utf-8")
    again = replace(haystack, id="once more")
    assert score_documents(again, haystack.subtopics[1], "rerank", "0", None) == found, "what is damaged is asked again"
    assert len(reranks.asked) == 8


def test_it_can_be_asked_inside_trio(reranks: Service, haystack: Haystack) -> None:
    """Runs are planned again there when they are resumed."""

    async def inside() -> list[float]:
        return score_documents(haystack, haystack.subtopics[0], "rerank", "0", "cohere/other")

    assert len(trio.run(inside)) == 40


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": 7}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}]}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": NaN}]}',
        b'{"results": [{"index": 0, "relevance_score": 0.5}, {"index": true, "relevance_score": 0.5}]}',
        b'{"results": [{"index": [], "relevance_score": 0.5}, 3]}',
    ],
)
def test_what_is_no_ranking_is_an_error(answer: bytes, reranks: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.agents.models.limits.FIRST_PAUSE", 0.001)
    reranks.say = lambda body: (200, answer)
    with pytest.raises(AgentError, match="rerank") as caught:
        trio.run(CohereReranker("cohere/rerank-x").rerank, "q", ["one", "two"])
    assert KEY not in str(caught.value)


def test_a_key_that_is_refused_is_said_in_a_line_without_the_key(reranks: Service, haystack: Haystack) -> None:
    reranks.say = lambda body: (401, json.dumps({"message": f"bad key {KEY}"}).encode())
    with pytest.raises(InputError, match=r"reranker cohere/secret: .*rejected the key") as caught:
        score_documents(haystack, haystack.subtopics[0], "rerank", "0", "cohere/secret")
    assert KEY not in str(caught.value)


def test_a_key_that_is_missing_is_asked_for(haystack: Haystack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COHERE_API_KEY", "CO_API_KEY", "CO_API_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="COHERE_API_KEY or CO_API_KEY"):
        score_documents(haystack, haystack.subtopics[0], "rerank", "0", "cohere/missing")


def test_long_documents_are_near_by_the_mean_of_their_pieces() -> None:
    (row,) = score_by_embedder("hash", ["the harbour wall"], [["the harbour wall", "nothing else"], ["nothing else"], ["the harbour wall"]])
    assert row[2] > row[0] > row[1]
    assert row[2] == pytest.approx(1, abs=1e-5)
