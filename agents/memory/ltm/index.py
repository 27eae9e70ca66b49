"""Chroma: which vectors are nearest. What they stand for is known elsewhere (`memory.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, final
from uuid import uuid4
from weakref import finalize

from longspan.agents.base import AgentError, InputError
from longspan.simulator.errors import one_line

if TYPE_CHECKING:
    from longspan.agents.memory.ltm.embedders import Vectors

__all__ = ["Index"]

AT_ONCE: Final = 1000
"""Vectors added in one request."""

NEAREST: Final = 200
"""How many vectors are found. That is more than are wanted, since Chroma gives those of the same distance in any order: whoever
asks can put them into an order of its own."""

HNSW: Final = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 500}
"""Chroma's index. With its own parameters (16, 100, 100) it missed 12 % of the ten nearest in the 9,143 memories of a 500k
conversation, with these hardly any: with more to search (1500) it found no more of them, and took a quarter longer."""

_URL = re.compile(r"(?P<scheme>https?)://(?P<host>[^\s/:?#@]+)(?::(?P<port>\d{1,5}))?/?")


@final
class Index:
    """Vectors by number: 0, 1, 2... Blocks: call it in a thread. One call at a time.

    Without `url` they are in this process, in Chroma's memory; with it in a new collection on that Chroma server. Either is
    deleted by `clear`.

    Raises InputError where chromadb is missing, or the address is none; later AgentError.
    """

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._address = _address(url) if url else None
        self._chromadb, self._settings = _chroma()
        self._client: Any = None
        self._collection: Any = None

    def open(self) -> None:
        """Make contact, where that is not made yet. Raises AgentError."""
        if self._client is not None:
            return
        if self._address is None:
            self._client = self._chromadb.EphemeralClient(settings=self._settings)
            return
        host, port, secure = self._address
        try:
            self._client = self._chromadb.HttpClient(host=host, port=port, ssl=secure, settings=self._settings)
        except Exception as error:
            raise AgentError(f"no Chroma server answers at {self._url} ({one_line(error, 120)}); start one: chroma run") from error

    def clear(self) -> None:
        """Forget all vectors, and let go of the server. Raises AgentError."""
        client, collection, self._client, self._collection = self._client, self._collection, None, None
        try:
            if collection is not None:
                with self._errors():
                    client.delete_collection(collection.name)
        finally:
            if client is not None and self._url:
                _hang_up(client)

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors numbered from `first`. Adding them again is harmless. Raises AgentError."""
        self.open()
        with self._errors():
            if self._collection is None:
                self._collection = self._create()
            for at in range(0, len(vectors), AT_ONCE):
                batch = vectors[at : at + AT_ONCE]
                ids = [str(first + number) for number in range(at, at + len(batch))]
                self._collection.upsert(ids=ids, embeddings=batch)

    def nearest(self, vectors: Vectors) -> list[list[tuple[int, float]]]:
        """For each vector, the numbers of the nearest with their cosine. Raises AgentError."""
        if self._collection is None:
            return [[] for _ in vectors]
        with self._errors():
            found = self._collection.query(query_embeddings=vectors, n_results=NEAREST, include=["distances"])
            pairs = zip(found["ids"], found["distances"], strict=True)
            return [[(int(id), 1.0 - float(far)) for id, far in zip(*each, strict=True)] for each in pairs]

    def _create(self) -> Any:
        name = f"longspan-{uuid4().hex}"
        collection = self._client.create_collection(name, embedding_function=None, configuration={"hnsw": HNSW})
        if self._url is None:  # all agents of a process share Chroma's memory
            finalize(self, _drop, self._client, name)
        return collection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            where = f"Chroma at {self._url}" if self._url else "Chroma"
            raise AgentError(f"{where} failed: {one_line(error)}") from error


def _hang_up(client: Any) -> None:
    """Close a server's client, and its connections, which Chroma's `close` leaves open."""
    for part in (client, client._admin_client):
        with suppress(AttributeError):
            part._server._session.close()
    client.close()


def _drop(client: Any, name: str) -> None:
    with suppress(Exception):  # cleared already, or the process is ending
        client.delete_collection(name)


def _address(url: str) -> tuple[str, int, bool]:
    """Host and port of a server, and whether it is spoken to in secret. Raises InputError for an address that is none."""
    found = _URL.fullmatch(url)
    if not found:
        raise InputError(f"chroma_url is the address of a Chroma server, such as http://127.0.0.1:8000; got {url!r:.80}")
    secure = found["scheme"] == "https"
    return found["host"], int(found["port"] or (443 if secure else 80)), secure


def _chroma() -> tuple[Any, Any]:
    """The package, which takes most of a second to import, and settings under which nothing is sent anywhere.

    Settings in a file .env or in the environment are another program's.
    """
    try:
        chromadb, config = import_module("chromadb"), import_module("chromadb.config")
    except ImportError:
        raise InputError("agent ltm needs the package chromadb: pip install 'longspan[ltm]'") from None
    return chromadb, config.Settings(_env_file=None, anonymized_telemetry=False, chroma_otel_collection_endpoint="")
