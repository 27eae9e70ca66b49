"""An agent that is a server, called by POST (docs/guides/connecting.md describes the protocol).

    http://127.0.0.1:8000/path        https://agent.example/path?timeout=60

Each conversation has an id, so a server may serve many concurrently. Each call opens a new connection. On a reused one, servers built on
Python's standard library would take 40 ms longer, since they send an answer in two packets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, final
from urllib.parse import quote

import trio

from longspan.agents.base import AgentError, AgentOptions, Danger, InputError
from longspan.agents.models.web import check_url, is_loopback, retry_after
from longspan.agents.outside.protocol import MAX_BYTES, make_printable
from longspan.agents.outside.remote import RemoteAgent, RemoteOptions, Request
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.keys import note_key
from longspan.simulator.subject.telemetry import current_traceparent

if TYPE_CHECKING:
    import httpx2

__all__ = ["ASCII", "KEY", "Connection", "HttpAgent", "HttpsAgent"]

KEY: Final = "LONGSPAN_AGENT_KEY"
"""The environment variable with the key. If set, the key is sent as a bearer token."""

RETRY_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds before each retry of a call that the server did not process, or may safely process twice."""

UNAVAILABLE: Final = (429, 502, 503, 504)
"""Statuses of a server or proxy that did not process the call."""

OVERLOADED: Final = (429, 503)
"""Statuses of a server that did not process the call and may ask for a later retry (Retry-After)."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

ASCII: Final = "".join(map(chr, range(ord("!"), ord("~") + 1)))


@final
class Connection:
    """A connection to the server at `url`, with the key in the environment variable `key_variable`.

    Redirects are not followed, and answers have at most MAX_BYTES bytes. The key is only sent to this machine or over https.
    """

    def __init__(self, url: str, key_variable: str = KEY) -> None:
        self._url = url
        self._key_variable = key_variable
        self._key = _key(url, key_variable)

    async def send(
        self, body: bytes | None, *, repeatable: bool, url: str = "", headers: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """Return the answer to a POST of `body`, or to a GET without one, at another `url` of the server if given.

        `repeatable`: sending it twice is harmless. Raises AgentError. A timeout cancels it.
        """
        pauses, tries = iter(RETRY_PAUSES), 0
        while True:
            tries += 1
            try:
                return await self._send(body, url or self._url, headers)
            except _RetryableError as error:
                if error.may_be_processed and not repeatable:
                    raise AgentError(str(error)) from None
                pause = next(pauses, None) if error.retry_after is None else max(error.retry_after, RETRY_PAUSES[0])
                if pause is None:
                    raise AgentError(f"{error} (tried {tries} times)") from None
                if trio.current_time() + pause > trio.current_effective_deadline():
                    raise AgentError(f"{error}; it asks for a pause of {pause:g} s, which exceeds ?timeout=SECONDS") from None
            await trio.sleep(pause)

    async def _send(self, body: bytes | None, url: str, headers: Mapping[str, str]) -> bytes:
        """Send a request once. Raises _RetryableError if a retry may succeed, else AgentError."""
        import httpx2

        method = "GET" if body is None else "POST"
        try:
            async with (
                _client(self._url) as client,
                client.stream(method, url, content=body, headers=self._headers() | dict(headers)) as response,
            ):
                answer = await _body(response)
        except AgentError:
            raise
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _RetryableError(f"cannot be reached: {one_line(error)}; is it running?", may_be_processed=False) from None
        except httpx2.NetworkError as error:
            raise _RetryableError(f"closed the connection: {one_line(error)}", may_be_processed=True) from None
        except httpx2.RemoteProtocolError as error:
            problem = f"gave an unreadable answer: {make_printable(one_line(error))}"
            if not re.search("closed connection|disconnected", str(error)):  # the server does not speak HTTP
                raise AgentError(problem) from None
            raise _RetryableError(problem, may_be_processed=True) from None
        except Exception as error:  # not chained: it refers to the request, which contains the key
            raise AgentError(f"gave an unreadable answer: {make_printable(one_line(error))}") from None
        if response.is_success:
            return answer or b"{}"
        raise self._refusal(response, answer)

    def _headers(self) -> dict[str, str]:
        plain = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        key = {"authorization": f"Bearer {self._key}"} if self._key else {}
        span = {"traceparent": name} if (name := current_traceparent()) is not None else {}
        return plain | key | span

    def _refusal(self, response: httpx2.Response, answer: bytes) -> Exception:
        """Return the error for an unsuccessful status."""
        status = response.status_code
        if 300 <= status < 400:
            location = make_printable(response.headers.get("location", "nowhere"))
            return AgentError(f"redirects to {location} ({status}): redirects are not followed, use that address instead")
        details = f"{status} {make_printable(answer)}".strip()
        if status in UNAVAILABLE:
            wait = retry_after(response.headers, b"") if status in OVERLOADED else None
            return _RetryableError(f"is unavailable ({details})", may_be_processed=wait is None, retry_after=wait)
        hint = f"; to send a key, set {self._key_variable}" if status in (401, 403) and not self._key else ""
        return AgentError(f"rejected the request ({details}){hint}")


class HttpAgent(RemoteAgent):
    """An agent that is a server, called by POST."""

    scheme: ClassVar[str] = "http"

    class Options(RemoteOptions):
        """`timeout` and `at_once`."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> Danger | None:
        """Return "call": it sends requests to its target."""
        return "call"

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        self.url = check_url(quote(f"{self.scheme}:{target}", safe=ASCII), "agent over HTTP", KEY)
        self._connection = Connection(self.url)
        super().__init__(target, options, self.url)

    async def exchange(self, request: Request) -> bytes:
        return await self._connection.send(request.line, repeatable=request.repeatable)


class HttpsAgent(HttpAgent):
    """An agent that is a server, called by POST over TLS."""

    scheme = "https"


class _RetryableError(Exception):
    """A failed call that may succeed if repeated.

    `may_be_processed`: the server may have processed it. `retry_after`: the pause in seconds that the server asks for, if any.
    """

    def __init__(self, message: str, *, may_be_processed: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.may_be_processed = may_be_processed
        self.retry_after = retry_after


def _client(url: str) -> httpx2.AsyncClient:
    """Return a client for one call. Only the call's own timeout applies."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=None,
        follow_redirects=False,
        trust_env=not is_loopback(url),  # proxies do not reach this machine
        verify=_tls(),
    )


@cache
def _tls() -> Any:
    """Return the TLS context. It is created once, since that takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


async def _body(response: httpx2.Response) -> bytes:
    """Return an answer's bytes. Raises AgentError if they are encoded or exceed MAX_BYTES."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise AgentError(f"answered with content-encoding {make_printable(encoding, 40)}, though identity was requested")
    chunks, size = [], 0
    try:
        async for chunk in response.aiter_raw():
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:  # finish the iteration, since nothing else cleans up after it
                chunks.clear()
                await response.extensions["network_stream"].aclose()
    except Exception:  # closing the stream above makes the iteration raise
        if size <= MAX_BYTES:
            raise
    if size > MAX_BYTES:
        raise AgentError(f"answered with more than {MAX_BYTES:,} bytes")
    return b"".join(chunks)


def _key(url: str, variable: str) -> str:
    """Return the key for `url`, empty without a key. Raises InputError if it would be sent unencrypted."""
    key = os.environ.get(variable, "").strip()
    if not key:
        return ""
    note_key(variable)
    if not key.isascii() or not key.isprintable():
        raise InputError(f"the environment variable {variable} is not a valid key: it has non-ASCII or unprintable characters")
    if not url.startswith("https:") and not is_loopback(url):
        raise InputError(f"{url}: {variable} is only sent over https or to this machine; use an https address, or unset it")
    return key
