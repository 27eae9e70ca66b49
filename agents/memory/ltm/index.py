"""Nearest-neighbour search with Chroma. `memory.py` keeps the texts behind the vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, final
from uuid import uuid4
from weakref import finalize

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.web import check_url
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.own_installation import install_extra

if TYPE_CHECKING:
    from longspan.agents.memory.ltm.embedders import Vectors

__all__ = ["Index", "close_client"]

BATCH: Final = 1000
"""Vectors added per request."""

NEAREST: Final = 200
"""The number of vectors that a search returns. It exceeds the need, since Chroma returns equally distant vectors in any order and the
caller sorts them.
"""

HNSW: Final = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 500}
"""Chroma's index parameters. With its defaults (16, 100, 100), it missed 12% of the ten nearest among the 9,143 memories of a 500k
conversation; with these, hardly any. A larger search (1500) found no more and took a quarter longer.
"""

_OPENING: Final = Lock()
"""A lock on creating clients: their shared state in this process cannot be initialised twice at a time."""

_URL = re.compile(r"(?P<scheme>https?)://(?P<host>[^\s/:?#@]+)(?::(?P<port>\d{1,5}))?/?")


@final
class Index:
    """Vectors numbered from 0. The methods block: call them in a thread, one at a time.

    Without `url`, the vectors are in Chroma's memory in this process; with it, in a new collection on that Chroma server. `clear` deletes
    them. The constructor raises InputError without chromadb or for an invalid address.
    """

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._address = _address(url) if url else None
        self._chromadb, self._settings = _chroma()
        self._client: Any = None
        self._collection: Any = None

    @property
    def is_here(self) -> bool:
        """Whether the vectors are in this process."""
        return self._url is None

    def open(self) -> None:
        """Connect, unless already connected. Raises AgentError."""
        if self._client is not None:
            return
        if self._address is None:
            with _OPENING:
                self._client = self._chromadb.EphemeralClient(settings=self._settings)
            return
        host, port, secure = self._address
        try:
            self._client = self._chromadb.HttpClient(host=host, port=port, ssl=secure, settings=self._settings)
        except Exception as error:
            raise AgentError(f"no Chroma server answers at {self._url} ({one_line(error, 120)}); start one: chroma run") from error

    def clear(self) -> None:
        """Delete all vectors and close the connection. Raises AgentError."""
        client, collection, self._client, self._collection = self._client, self._collection, None, None
        try:
            if collection is not None:
                with self._errors():
                    client.delete_collection(collection.name)
        finally:
            if client is not None and self._url:
                close_client(client)

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors numbered from `first`. Adding them again is harmless. Raises AgentError."""
        self.open()
        with self._errors():
            if self._collection is None:
                self._collection = self._create()
            for at in range(0, len(vectors), BATCH):
                batch = vectors[at : at + BATCH]
                ids = [str(first + number) for number in range(at, at + len(batch))]
                self._collection.upsert(ids=ids, embeddings=batch)

    def nearest(self, vectors: Vectors) -> list[list[tuple[int, float]]]:
        """Return for each vector the numbers of its nearest neighbours and their cosines. Raises AgentError."""
        if self._collection is None:
            return [[] for _ in vectors]
        with self._errors():
            results = self._collection.query(query_embeddings=vectors, n_results=NEAREST, include=["distances"])
            rows = zip(results["ids"], results["distances"], strict=True)
            return [[(int(id), 1.0 - float(distance)) for id, distance in zip(*row, strict=True)] for row in rows]

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
            server = f"Chroma at {self._url}" if self._url else "Chroma"
            raise AgentError(f"{server} failed: {one_line(error)}") from error


def close_client(client: Any) -> None:
    """Close a server's client and its connections, which Chroma's `close` leaves open."""
    for api in (client, client._admin_client):
        with suppress(AttributeError):  # private names, which another version of Chroma may lack
            api._server._session.close()
    client.close()


def _drop(client: Any, name: str) -> None:
    with suppress(Exception):  # already cleared, or the process is ending
        client.delete_collection(name)


def _address(url: str) -> tuple[str, int, bool]:
    """Return a server's host, port and whether it uses TLS. Raises InputError if the address is invalid."""
    match = _URL.fullmatch(check_url(url, "chroma_url"))
    if not match:
        raise InputError(f"chroma_url: expected the address of a Chroma server, such as http://127.0.0.1:8000; got {url!r:.80}")
    secure = match["scheme"] == "https"
    return match["host"], int(match["port"] or (443 if secure else 80)), secure


def _chroma() -> tuple[Any, Any]:
    """Return the package, whose import takes most of a second, and settings without telemetry.

    Settings in a .env file are ignored: they belong to another program.
    """
    try:
        chromadb, config = import_module("chromadb"), import_module("chromadb.config")
    except ImportError:
        raise InputError(f"agent ltm needs the package chromadb: {install_extra('ltm')}") from None
    return chromadb, config.Settings(_env_file=None, anonymized_telemetry=False, chroma_otel_collection_endpoint="")
