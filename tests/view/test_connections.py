"""Connections to `longspan view` that never show the token, or never send a whole request."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import trio
from starlette.responses import PlainTextResponse

from longspan.simulator.pages.view.connections import Connections
from longspan.simulator.pages.view.guard import AccessGuard


@dataclass
class Server:
    """A server behind a guard, and its clients, which are closed with it."""

    port: int
    clients: AsyncExitStack

    async def connect(self, sent: bytes = b"") -> trio.SocketStream:
        stream = await self.clients.enter_async_context(await trio.open_tcp_stream("127.0.0.1", self.port))
        await stream.send_all(sent)
        return stream

    def request(self, token: str = "") -> bytes:
        return f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: longspan-{self.port}={token}\r\n\r\n".encode()


@asynccontextmanager
async def served(*, max_strangers: int = 64, request_s: float = 3600, text: str = "private") -> AsyncIterator[Server]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        guard = AccessGuard(PlainTextResponse(text), names=frozenset(), local=True, token="known")  # noqa: S106
        async with AsyncExitStack() as clients, trio.open_nursery() as nursery:
            await nursery.start(Connections(guard, listener, max_strangers=max_strangers, request_s=request_s).serve)
            yield Server(listener.getsockname()[1], clients)
            nursery.cancel_scope.cancel()


async def answer(stream: trio.SocketStream) -> bytes:
    """A short response, or nothing if the connection was closed."""
    seen = b""
    try:
        while not seen.endswith((b"private", b"</html>\n")):
            if not (part := await stream.receive_some(4096)):
                break
            seen += part
    except trio.BrokenResourceError:
        pass
    return seen


def test_a_request_must_be_complete_in_time() -> None:
    async def half_open() -> None:
        async with served(request_s=0.05) as server:
            for sent in (b"", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
                assert await answer(await server.connect(sent)) == b"", "the server closed it"

    trio.run(half_open)


def test_many_half_open_connections_keep_nobody_out() -> None:
    async def attack() -> None:
        async with served(max_strangers=5) as server:
            known = await server.connect(server.request("known"))
            assert (await answer(known)).startswith(b"HTTP/1.1 200")
            strangers = [await server.connect(b"GET /") for _ in range(30)]
            for stranger in strangers[:25]:
                assert await answer(stranger) == b"", "the oldest are closed"
            for stranger in strangers[25:]:
                await stranger.send_all(server.request().removeprefix(b"GET /"))
                assert (await answer(stranger)).startswith(b"HTTP/1.1 403")
            await known.send_all(server.request("known"))
            assert (await answer(known)).startswith(b"HTTP/1.1 200"), "who has the token is not counted"
            assert (await answer(await server.connect(server.request("known")))).startswith(b"HTTP/1.1 200")

    trio.run(attack)


def test_a_client_that_reads_nothing_does_not_keep_the_server_from_stopping() -> None:
    async def stubborn() -> None:
        async with served(text="x" * 50_000_000) as server:
            stream = await server.connect(server.request("known"))
            assert await stream.receive_some(10)

    trio.run(stubborn)
