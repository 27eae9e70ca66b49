"""A JSON server over HTTP on a loopback address, for clients that send its key.

It runs h11 on Trio's streams, the simplest design with limits. All connections share one thread, so a half-open one costs only a task. h11
parses strictly, limits headers, and comes with httpx2. The standard library's server needs a thread per connection and has no limits.
hypercorn is an extra, and a middleware never sees a connection that sends no request (see simulator/pages/view/connections.py).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from hmac import compare_digest
from http import HTTPStatus
from math import inf
from secrets import token_urlsafe
from threading import Event, Thread
from typing import Any, Final, NamedTuple, final

import h11
import trio

from longspan.agents.base import AgentError
from longspan.agents.outside.bridge import KEY_VARIABLE
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.keys import forget_secret, note_secret

__all__ = ["LIMITS", "GuardedServer", "Limits"]

LOOPBACK: Final = "127.0.0.1"

MAX_HEADERS: Final = 16 * 2**10
"""The maximum bytes of a request before its body, and of a single read."""

Route = Callable[[bytes], Awaitable[Any]]
"""A coroutine function that returns the JSON answer to a request's body."""


class Limits(NamedTuple):
    """Limits on clients.

    A new connection above `strangers` closes the oldest one without the key, so a flood cannot lock out a client with the key. Requests
    with the key above `callers` are refused.
    """

    body_bytes: int = 64 * 2**20
    strangers: int = 64
    """Open connections that have not yet sent a request with the key."""
    callers: int = 256
    """Concurrent requests with the key. A memory may well embed a hundred texts in parallel."""
    seconds: float = 30.0
    """The time for sending a complete request, and for receiving its answer. Answering itself may take any time."""


LIMITS: Final = Limits()


class _RefusedError(Exception):
    """A refusal of a request."""

    def __init__(self, status: HTTPStatus, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


@final
class GuardedServer:
    """A server of `routes`, coroutine functions by path. It runs in a separate thread until closed.

    `host` is the address with its port. Clients send the random `key` as `Authorization: Bearer KEY`. Raises AgentError if the server
    cannot start.
    """

    def __init__(self, routes: Mapping[str, Route], limits: Limits) -> None:
        self._routes, self._limits = routes, limits
        self._strangers: dict[trio.CancelScope, None] = {}  # oldest first
        self._callers = 0
        self._stopped = Event()
        self.key = token_urlsafe(32)
        started: Future[str] = Future()
        Thread(target=self._run, args=(started,), name="longspan: lent models", daemon=True).start()
        try:
            self.host = started.result()
        except OSError as error:
            raise AgentError(f"cannot open an address on this machine: {one_line(error)}; close other programs, or try again") from error
        note_secret(KEY_VARIABLE, self.key)

    def close(self) -> None:
        """Close the address and all connections, and cancel running calls."""
        with suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(self._scope.cancel)
            self._stopped.wait()
        forget_secret(self.key)

    def _run(self, started: Future[str]) -> None:
        try:
            trio.run(self._serve, started)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _serve(self, started: Future[str]) -> None:
        listeners = await trio.open_tcp_listeners(0, host=LOOPBACK)
        async with trio.open_nursery() as nursery:
            self._trio, self._scope = trio.lowlevel.current_trio_token(), nursery.cancel_scope
            started.set_result(f"{LOOPBACK}:{listeners[0].socket.getsockname()[1]}")  # it already listens, so new connections queue
            try:
                await trio.serve_listeners(self._serve_connection, listeners, handler_nursery=nursery)
            finally:
                self._stopped.set()  # the address is closed; cancelled calls may run longer, such as one that computes in a thread

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        """Answer one request and close the connection. Raises only Cancelled.

        Connections are not kept alive: the server might close an idle one just as the client sends its next request.
        """
        with trio.CancelScope() as scope, suppress(trio.BrokenResourceError):
            self._set_deadline(scope)
            self._strangers[scope] = None
            if len(self._strangers) > self._limits.strangers:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                oldest.cancel()
            try:
                async with stream:
                    await self._answer(stream, scope)
            finally:
                self._strangers.pop(scope, None)

    async def _answer(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADERS)
        try:
            request = await _next_event(http, stream)
            if not isinstance(request, h11.Request):
                return  # the client has left
            route = self._admit(request)
            del self._strangers[scope]
            if self._callers >= self._limits.callers:
                raise _RefusedError(
                    HTTPStatus.SERVICE_UNAVAILABLE, f"at most {self._limits.callers} requests at the same time; send it again"
                )
            self._callers += 1
            try:
                if http.they_are_waiting_for_100_continue:
                    await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = bytearray()
                while isinstance(event := await _next_event(http, stream), h11.Data):
                    body += event.data
                scope.deadline = inf
                response = await _respond(route, bytes(body))
            finally:
                self._callers -= 1
            self._set_deadline(scope)
            await stream.send_all(response)
        except (_RefusedError, h11.RemoteProtocolError) as error:
            await stream.send_all(_refusal(error))
            await stream.send_eof()
            while await stream.receive_some(MAX_HEADERS):
                pass  # closing with unread data resets the connection, and the client may lose the answer

    def _set_deadline(self, scope: trio.CancelScope) -> None:
        scope.deadline = trio.current_time() + self._limits.seconds

    def _admit(self, request: h11.Request) -> Route:
        """Return the route of a request. Raises _RefusedError before reading the body."""

        def values(name: bytes) -> list[bytes]:
            return [value for other, value in request.headers if other == name]

        if values(b"host") != [self.host.encode()]:  # DNS rebinding: another site's page may resolve its name to this machine
            raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "Host must be the address as it was given")
        if values(b"origin") or set(values(b"sec-fetch-site")) - {b"none"}:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "requests from web pages are refused")
        tokens = values(b"authorization")
        if len(tokens) != 1 or not compare_digest(tokens[0], f"Bearer {self.key}".encode()):
            why = "the key that came with this address must be sent as `Authorization: Bearer KEY`"
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, why, **{"WWW-Authenticate": "Bearer"})
        path = request.target.partition(b"?")[0].decode("ascii", "replace")
        if path not in self._routes:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"there is no {path!r:.60}, only {' and '.join(self._routes)}")
        if request.method != b"POST":
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is allowed", Allow="POST")
        if [value.partition(b";")[0].strip().lower() for value in values(b"content-type")] != [b"application/json"]:
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
        lengths = values(b"content-length")  # h11 rejects invalid and contradictory lengths
        if not lengths or values(b"transfer-encoding"):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "a request needs Content-Length, and is not sent in chunks")
        if int(lengths[0]) > self._limits.body_bytes:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {self._limits.body_bytes:,} bytes; split it")
        return self._routes[path]


async def _next_event(http: h11.Connection, stream: trio.SocketStream) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await stream.receive_some(MAX_HEADERS))
    return event


async def _respond(route: Route, body: bytes) -> bytes:
    try:
        return _response(HTTPStatus.OK, await route(body))
    except Exception as error:
        # Never send a status that OpenAI's client retries: the failed call may have been paid for.
        return _response(HTTPStatus.BAD_REQUEST, _error(one_line(error), "invalid_request_error"))


def _refusal(error: _RefusedError | h11.RemoteProtocolError) -> bytes:
    if isinstance(error, h11.RemoteProtocolError):  # its message may contain the key
        return _response(HTTPStatus(error.error_status_hint), _error("not a valid HTTP/1.1 request", "invalid_request_error"))
    kind = "server_error" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return _response(error.status, _error(str(error), kind), **error.headers)


def _error(message: str, kind: str) -> dict[str, Any]:
    """Return an error in the format of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _response(status: HTTPStatus, answer: Any, **headers: str) -> bytes:
    body = json.dumps(answer, allow_nan=False).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body
