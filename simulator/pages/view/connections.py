"""Serves connections. It limits the number of connections without the token, and the time of connections without a request.

Connections are served one by one, since Hypercorn's public `serve` with an ASGI middleware would not suffice. A middleware sees only
requests: it never sees a connection without one, and cannot close a connection. `serve` shields its sending, so a client that reads nothing
would keep it from stopping until the kernel gives up after `UNREAD_S`. tests/view/test_connections.py shows both.
"""

from __future__ import annotations

import logging
import socket
from typing import Any, Final, final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from starlette.types import ASGIApp, Receive, Scope, Send

from longspan.simulator.base.terminal import complain
from longspan.simulator.pages.view.guard import KNOWN

__all__ = ["MAX_STRANGERS", "REQUEST_S", "Connections"]

MAX_STRANGERS: Final = 64
"""The maximum number of open connections without a request that has the token. A new one closes the oldest."""

REQUEST_S: Final = 5.0
"""The number of seconds within which the next request must be sent, except for its body."""

UNREAD_S: Final = 60
"""A connection ends after this many seconds if its client reads nothing."""


@final
class Connections:
    """Serves `app` to the connections of `listener` until cancelled."""

    def __init__(self, app: ASGIApp, listener: socket.socket, *, max_strangers: int = MAX_STRANGERS, request_s: float = REQUEST_S) -> None:
        self._app = app
        self._listener = listener
        self._max_strangers = max_strangers
        self._strangers: dict[trio.SocketStream, None] = {}  # oldest first
        self._config = _config(request_s)
        self._context = WorkerContext(None)

    async def serve(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_S * 1000)
        self._listener.listen(self._config.backlog)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._listener))
        await trio.serve_listeners(self._connection, [listener], task_status=task_status)

    async def _connection(self, stream: trio.SocketStream) -> None:
        """Serve one connection. Raises only Cancelled."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self._app({**scope, KNOWN: lambda: self._strangers.pop(stream, None)}, receive, send)

        self._strangers[stream] = None
        if len(self._strangers) > self._max_strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.socket.close()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_close_when_cancelled, stream)
                await TCPServer(ASGIWrapper(app), self._config, self._context, ConnectionState({}), stream)  # type: ignore[arg-type]
                nursery.cancel_scope.cancel()
        finally:
            self._strangers.pop(stream, None)


async def _close_when_cancelled(stream: trio.SocketStream) -> None:
    """Close a connection immediately when cancelled. Sending to it cannot be cancelled, and may wait for a client that does not read."""
    try:
        await trio.sleep_forever()
    finally:
        stream.socket.close()


def _config(request_s: float) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = _error_log()
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.keep_alive_timeout = request_s
    return config


def _error_log() -> logging.Logger:
    """Return a log on standard error, for the server's own errors."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for line in self.format(record).splitlines():
                complain(line)

    log = logging.getLogger("longspan.view")
    log.handlers = [Handler()]
    log.propagate = False
    return log
