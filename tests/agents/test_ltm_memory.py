"""The parts of the memory agent: fragments, vectors, Chroma, and embedders against servers on this machine."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents.thinker import START, Thinker, memory_agent, message, play
from tests.loopback import Service

from longspan.agents.base import AgentError, InputError
from longspan.agents.memory.ltm.agent import MemoryAgent
from longspan.agents.memory.ltm.embedders import EmbeddedTexts, HashEmbedder, make_embedder
from longspan.agents.memory.ltm.fragments import Fragment, split_text, split_turn
from longspan.agents.memory.ltm.index import Index, close_client
from longspan.agents.memory.ltm.options import LtmOptions
from longspan.agents.memory.ltm.vector_memory import Memories
from longspan.agents.memory.turns import Turn
from longspan.simulator.base.own_installation import install_extra

KEY = "sk-a-key-that-is-nowhere-else"


def count(text: str) -> int:
    return len(text.split())


def fragment(number: int, text: str) -> Fragment:
    return Fragment(f"{number}.0", f"c-{number}", START + number * timedelta(seconds=30), text)


def embedded(*texts: str) -> Any:
    return trio.run(HashEmbedder().embed, texts).vectors


# Pieces.

TEXTS = st.lists(st.sampled_from(["sand", "tide.", "gull\n", "pier!", "rope", "x" * 40, " ", "é漢字", "\n\n"]), max_size=120).map(" ".join)


@given(text=TEXTS, size=st.integers(1, 30))
def test_pieces_are_small_enough_and_together_the_whole_text(text: str, size: int) -> None:
    found = split_text(text, count, size, 0)
    assert all(count(piece) <= size for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@given(text=TEXTS, size=st.integers(4, 30))
def test_pieces_overlap_by_whole_units(text: str, size: int) -> None:
    apart, overlapping = (split_text(text, count, size, overlap) for overlap in (0, size // 2))
    assert all(count(piece) <= size for piece in overlapping)
    words = text.split()
    assert sum(map(count, overlapping)) >= len(words)
    assert len(overlapping) >= len(apart)
    for piece in overlapping:
        inside = piece.split()
        assert any(words[at : at + len(inside)] == inside for at in range(len(words)))


def test_a_piece_starts_with_the_end_of_the_previous_one() -> None:
    text = "One lamp is red. Two lamps are blue. Three lamps are green. Four lamps are out."
    assert split_text(text, count, 9, 4) == [
        "One lamp is red. Two lamps are blue.",
        "Two lamps are blue. Three lamps are green.",
        "Three lamps are green. Four lamps are out.",
    ]


def test_a_text_without_spaces_is_still_cut() -> None:
    tokens = Thinker().count
    found = split_text("x7" * 50_000, tokens, 200, 40)
    assert max(map(tokens, found)) <= 210
    assert len("".join(split_text("x7" * 50_000, tokens, 200, 0))) == 100_000


def test_a_short_turn_is_one_memory_and_a_long_one_says_who_speaks() -> None:
    short = split_turn(3, Turn("c-3", "Hello there.", START, "Hi."), count, 10, 2)
    assert short == [Fragment("3.0", "c-3", START, "User: Hello there.\nAssistant: Hi.")]
    long = split_turn(4, Turn("c-4", "Sand and tide. " * 8, START, "Gulls and piers. " * 8), count, 10, 0)
    assert [fragment.id for fragment in long] == [f"4.{part}" for part in range(len(long))]
    speakers = [fragment.text.partition(":")[0] for fragment in long]
    assert speakers == sorted(speakers, reverse=True)
    assert set(speakers) == {"User", "Assistant"}


# Hashes.


def test_hashed_vectors_are_the_same_everywhere() -> None:
    vectors = embedded("My bicycle is called Bertram.", "", "Größe: 7 \ud800 漢字")
    assert hashlib.sha256((vectors * 1000).round().astype("<i2").tobytes()).hexdigest()[:16] == "26ca29e0d487dcd4"
    assert abs((vectors**2).sum(axis=1) - 1).max() < 1e-5


def test_texts_that_share_words_or_their_parts_are_near() -> None:
    asked, same, parts, other, common = embedded(
        "What is my bicycle called?",
        "My bicycle is called Bertram.",
        "Two bicycles.",
        "The harbour freezes in winter.",
        "What is it that the one is?",
    )
    assert asked @ same > 0.5 > asked @ parts > 0.1
    assert abs(asked @ other) < 0.05
    assert abs(asked @ common) < 0.1


# Chroma.


def remembered(texts: Sequence[str], groups: Sequence[int], index: Index | None = None) -> Memories:
    """Return memories of texts, added in groups of these sizes."""
    memories = Memories(HashEmbedder(), index or Index())
    at = 0
    for size in [*groups, len(texts)]:
        trio.run(memories.add, [fragment(number, texts[number]) for number in range(at, min(at + size, len(texts)))])
        trio.run(memories.flush)
        at = min(at + size, len(texts))
    return memories


@given(groups=st.lists(st.integers(1, 300), max_size=6))
@settings(max_examples=8)
def test_results_do_not_depend_on_batches(groups: list[int]) -> None:
    texts = [f"Ship {number} carries {('lamps', 'ropes', 'salt')[number % 3]} to port {number // 7}." for number in range(400)]
    queries = ["Which ship carries salt to port 12?", "lamps", "ship 7"]
    one, other = remembered(texts, groups), remembered(texts, [])
    for query in queries:
        found = trio.run(one.search, [query], 10)
        assert found == trio.run(other.search, [query], 10)
        assert [memory.score for memory in found] == sorted((memory.score for memory in found), reverse=True)


def test_results_equal_those_of_an_exhaustive_search() -> None:
    texts = [f"Ship {number} carries {number % 17} lamps and {number % 23} ropes to port {number // 7}." for number in range(1500)]
    memories = remembered(texts, [])
    every = embedded(*texts)
    for query in ["Which ship carries 16 lamps?", "What goes to port 99?"]:
        (asked,) = embedded(query)
        best = sorted((every @ asked).tolist(), reverse=True)[:10]
        found = [memory.score for memory in trio.run(memories.search, [query], 10)]
        assert found == pytest.approx(best, abs=2e-3)


def test_a_few_hundred_are_all_compared_whatever_chroma_overlooks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"Ship {number} carries {number % 17} lamps and {number % 23} ropes to port {number // 7}." for number in range(300)]
    memories = remembered(texts, [100, 1])
    monkeypatch.setattr(Index, "nearest", lambda self, vectors: [[] for _ in vectors])
    every, (asked,) = embedded(*texts), embedded("Which ship carries 16 lamps?")
    found = [memory.score for memory in trio.run(memories.search, ["Which ship carries 16 lamps?"], 10)]
    assert found == pytest.approx(sorted((every @ asked).tolist(), reverse=True)[:10], abs=1e-3)


def test_several_queries_find_the_best_of_each() -> None:
    memories = remembered(["The ferry sails at noon.", "My dog is called Ada.", *(f"Remark {n} about waves." for n in range(50))], [])
    found = trio.run(memories.search, ["When does the ferry sail?", "What is my dog called?"], 2)
    assert {memory.newest.id for memory in found} == {"0.0", "1.0"}


def test_agents_of_one_process_do_not_find_each_others_memories() -> None:
    one, other = remembered(["The ferry sails at noon."], []), remembered(["The ferry sails at nine."], [])
    assert [memory.newest.text for memory in trio.run(one.search, ["ferry"], 5)] == ["The ferry sails at noon."]
    trio.run(one.reset)
    assert trio.run(one.search, ["ferry"], 5) == []
    assert len(trio.run(other.search, ["ferry"], 5)) == 1


@pytest.mark.parametrize(("dedupe", "kept"), [(True, 1), (False, 3)])
def test_repeated_texts_are_merged_only_with_dedupe(dedupe: bool, kept: int) -> None:
    memories = Memories(HashEmbedder(), Index(), dedupe=dedupe)
    trio.run(memories.add, [fragment(0, "Two lamps."), fragment(1, "two \n lamps."), fragment(2, "Two lamps.")])
    found = trio.run(memories.search, ["lamps"], 5)
    assert len(found) == kept
    assert sum(len(memory.fragments) for memory in found) == 3
    assert found[0].newest.id == "2.0"


def test_vectors_that_do_not_match_the_memories_are_rejected() -> None:
    memories = remembered(["One.", "Two."], [])
    vectors = trio.run(memories.vectors)
    kept = [fragment(0, "One."), fragment(1, "Two.")]
    trio.run(memories.restore, kept, vectors, memories.dimensions)
    assert len(memories) == 2
    for wrong_fragments, wrong in [
        (kept, vectors[:-1]),
        (kept, b""),
        ([], vectors),
        (kept, b"\xff" * len(vectors)),
        (kept, bytes(1024)),
        (kept, vectors[: len(vectors) // 2]),
    ]:
        with pytest.raises(ValueError, match=r"\w"):
            trio.run(memories.restore, wrong_fragments, wrong, len(vectors) // 4)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Chroma server."""
    port = free_port()
    folder = tmp_path_factory.mktemp("chroma")
    run = "import sys; from chromadb.cli.cli import app; sys.argv = ['chroma', *sys.argv[1:]]; app()"
    command = [sys.executable, "-c", run, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "Connect to Chroma at" in line or "localhost" in line:
                break
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def wait_for(port: int) -> None:
    """Retry until the server accepts connections."""
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=20).close()
        except ConnectionRefusedError:
            threading.Event().wait(0.02)
        else:
            return
    raise TimeoutError(port)


def test_a_chroma_server_finds_the_same_and_is_cleaned_up(chroma: str) -> None:
    import chromadb

    texts = [f"Ship {number} carries lamps to port {number // 7}." for number in range(150)]
    there, here = remembered(texts, [70], Index(chroma)), remembered(texts, [])
    address = chroma.removeprefix("http://").split(":")
    client = chromadb.HttpClient(host=address[0], port=int(address[1]))
    assert len(client.list_collections()) == 1
    for query in ["lamps", "port 12", "Which ship is number 90?"]:
        assert [memory.newest.id for memory in trio.run(there.search, [query], 10)] == [
            memory.newest.id for memory in trio.run(here.search, [query], 10)
        ]
    trio.run(there.reset)
    assert client.list_collections() == []
    close_client(client)


def test_a_failing_chroma_server_is_an_agent_error(chroma: str) -> None:
    import chromadb

    memories = remembered(["Two lamps."], [], Index(chroma))
    address = chroma.removeprefix("http://").split(":")
    client = chromadb.HttpClient(host=address[0], port=int(address[1]))
    for collection in client.list_collections():
        client.delete_collection(collection.name)
    close_client(client)
    with pytest.raises(AgentError, match=f"Chroma at {chroma} failed: "):
        trio.run(memories.search, ["lamps"], 3)
    with pytest.raises(AgentError, match=f"Chroma at {chroma} failed: "):
        trio.run(memories.reset)
    trio.run(memories.reset)  # a missing collection need not be deleted again


def test_a_missing_chroma_server_is_reported_before_the_first_turn() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(AgentError, match=f"no Chroma server answers at {url}.* start one: chroma run"):
        trio.run(MemoryAgent(Thinker(), LtmOptions(), HashEmbedder(), Index(url)).start)


# Embedders behind a network.


def vectors_for(body: dict[str, Any]) -> tuple[int, bytes]:
    """Return a valid answer with the vectors in another order."""
    data = [{"index": n, "embedding": [len(text), 1.0, 0.0]} for n, text in enumerate(body["input"])]
    return 200, json.dumps({"data": data[::-1], "usage": {"prompt_tokens": 7 * len(data), "total_tokens": 0}}).encode()


@pytest.fixture
def embeddings(monkeypatch: pytest.MonkeyPatch, impatient: None) -> Iterator[Service]:
    """A server that speaks the embeddings API."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Service(vectors_for).running() as service:
        yield service


def test_openai_embeddings_are_sorted_and_counted(embeddings: Service) -> None:
    embedder = make_embedder("openai/text-embedding-3-small", f"{embeddings.address}/v1")
    texts = ["x" * (number + 1) for number in range(130)]  # two requests
    found: EmbeddedTexts = trio.run(embedder.embed, texts)
    assert found.tokens == 7 * 130
    assert [round(float(row[0] / row[1])) for row in found.vectors] == [len(text) for text in texts]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"data": null}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [0, 0]}]}',
        b'{"data": [{"index": 0, "embedding": ["a"]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
        b'{"data": [{"index": [], "embedding": [1]}]}',
        b'{"data": [{"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": 1}]}',
    ],
)
def test_an_invalid_embedding_is_an_agent_error(answer: bytes, embeddings: Service) -> None:
    url = f"{embeddings.address}/v1"
    embeddings.say = lambda body: (200, answer)
    with pytest.raises(AgentError, match="text-embedding") as caught:
        trio.run(make_embedder("openai/text-embedding-3-small", url).embed, ["One."])
    assert KEY not in str(caught.value)


def test_a_failing_embedder_is_retried_and_a_key_in_its_answer_is_redacted(embeddings: Service) -> None:
    url = f"{embeddings.address}/v1"
    answers = iter([(429, b"{}"), (500, b"{}")])
    embeddings.say = lambda body: next(answers, None) or vectors_for(body)
    embedder = make_embedder("openai/m", url)
    assert len(trio.run(embedder.embed, ["One."]).vectors) == 1
    embeddings.say = lambda body: (401, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())
    with pytest.raises(AgentError, match="rejected the key") as caught:
        trio.run(embedder.embed, ["One."])
    assert KEY not in str(caught.value)


def test_the_embedders_usage_is_counted_separately(embeddings: Service) -> None:
    embedder = make_embedder("openai/text-embedding-3-small", f"{embeddings.address}/v1")
    core = Thinker()
    agent = memory_agent(core, embedder=embedder, memory="semantic")
    play(agent, [(f"Lamp {number} is red. " * 9, "Noted.") for number in range(60)])
    (reply,) = play(agent, [("Which lamp is red?", None)], first=60)
    assert reply is not None
    assert reply.trace is not None
    left = 60 - reply.trace["recent"]["turns"]
    assert reply.besides["embedder"].input_tokens == 7 * (left + 1)
    assert reply.usage is not None
    assert reply.usage.input_tokens == core.size(core.prompts[-1])
    assert set(agent.models) == {"agent", "embedder"}
    assert agent.worst_case(message(61, "And which is green?"))["embedder"].input_tokens > 0


def test_an_embedder_without_a_key_or_a_model_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        make_embedder("openai/text-embedding-3-small")
    with pytest.raises(InputError, match="unknown embedder 'openai/'"):
        make_embedder("openai/")


def test_minilm_without_a_network_names_the_alternatives(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", f"http://127.0.0.1:{free_port()}/onnx.tar.gz")
    with pytest.raises(InputError, match=r"cannot be downloaded .* or use embedder=local .*, embedder=openai/MODEL, or embedder=hash"):
        make_embedder("minilm")


@pytest.mark.parametrize("missing", ["chromadb.utils.embedding_functions", "onnxruntime"])
def test_minilm_without_its_packages_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=re.escape(f"embedder=minilm needs an extra: {install_extra('ltm')}")):
        make_embedder("minilm")
