"""http and https: an agent that is a server, asked by POST (docs/agents.md has the protocol).

    http://127.0.0.1:8000/path        https://agent.example/path?timeout=60

Each conversation has an id of its own, so that one server may hold many at once. Each call is a connection of its own: kept
open, one to a server of Python's standard library would take 40 ms longer for each answer, which comes in two packets.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlsplit

import trio

from longspan.agents.base import AgentError, AgentOptions, InputError
from longspan.agents.models.web import is_loopback
from longspan.agents.outside.protocol import LARGEST, printable
from longspan.agents.outside.remote import RemoteAgent, RemoteOptions, Request
from longspan.simulator.errors import one_line

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpAgent", "HttpsAgent"]

KEY: Final = "LONGSPAN_AGENT_KEY"
"""The environment variable whose value is sent as a bearer key, where there is one."""

SHORT: Final = 8
"""Characters below which a key is too short to be looked for in what a server sends."""

PAUSES: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds before a call is tried again that the server cannot have taken, or may take twice."""

BUSY: Final = (429, 502, 503, 504)
"""Statuses by which a server, or one before it, says that it has not got to it."""

ASCII: Final = "".join(map(chr, range(ord("!"), ord("~") + 1)))


class HttpAgent(RemoteAgent):
    """A server, asked by POST.

    It follows no redirect, and takes no more than LARGEST bytes. The key goes to this machine or over https, nowhere else.
    """

    scheme: ClassVar[str] = "http"

    class Options(RemoteOptions):
        """`timeout` alone."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        self.url = _address(f"{self.scheme}:{target}")
        self._key = _key(self.url)
        super().__init__(target, options, self.url)

    async def exchange(self, request: Request) -> bytes:
        for pause in PAUSES:
            try:
                return await self._post(request.line)
            except _PassingError as error:
                if error.taken and not request.repeatable:
                    raise AgentError(str(error)) from None
            await trio.sleep(pause)
        try:
            return await self._post(request.line)
        except _PassingError as error:
            raise AgentError(f"{error} (tried {len(PAUSES) + 1} times)") from None

    async def _post(self, body: bytes) -> bytes:
        """Send a request once. Raises _PassingError for what may be otherwise the next time, else AgentError."""
        import httpx2

        try:
            async with (
                _client(self.url) as client,
                client.stream("POST", self.url, content=body, headers=self._headers()) as response,
            ):
                answer = self._without_key(await _body(response))
        except AgentError:
            raise
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _PassingError(f"cannot be reached: {one_line(error)}; is it running?", taken=False) from None
        except httpx2.NetworkError as error:
            raise _PassingError(f"broke off the connection: {one_line(error)}", taken=True) from None
        except Exception as error:  # neither cause nor context goes along: they hold the request, and that holds the key
            raise AgentError(f"gave an answer that cannot be read: {self._shown(one_line(error))}") from None
        if response.is_success:
            return answer or b"{}"
        raise self._refusal(response, answer)

    def _headers(self) -> dict[str, str]:
        plain = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        return plain | ({"authorization": f"Bearer {self._key}"} if self._key else {})

    def _refusal(self, response: httpx2.Response, answer: bytes) -> Exception:
        """What an answer with a status that is no success means."""
        status = response.status_code
        if 300 <= status < 400:
            where = self._shown(response.headers.get("location", "nowhere"))
            return AgentError(f"is elsewhere ({status}, {where}): redirects are not followed, name that address instead")
        said = f"{status} {printable(answer)}".strip()
        if status in BUSY:
            return _PassingError(f"is not there for it ({said})", taken=True)
        hint = f"; a key is taken from {KEY}" if status in (401, 403) and not self._key else ""
        return AgentError(f"refuses ({said}){hint}")

    def _shown(self, text: str) -> str:
        return printable(self._without_key(text.encode("utf-8", "replace")))

    def _without_key(self, text: bytes) -> bytes:
        """What a server sent, without the key that it was sent: all of it may be written to files."""
        return text.replace(self._key.encode(), b"[key]") if len(self._key) >= SHORT else text


class HttpsAgent(HttpAgent):
    """A server, asked by POST over TLS."""

    scheme = "https"


class _PassingError(Exception):
    """A call failed, and may succeed when it is made again. `taken`: the server may have acted on it."""

    def __init__(self, why: str, *, taken: bool) -> None:
        super().__init__(why)
        self.taken = taken


def _client(url: str) -> httpx2.AsyncClient:
    """A client for one call. Its only limit of time is the call's own."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=None,
        follow_redirects=False,
        trust_env=not is_loopback(url),  # a proxy does not reach this machine
        verify=_tls(),
    )


@cache
def _tls() -> Any:
    """What servers' certificates are checked with: read once, since that takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


async def _body(response: httpx2.Response) -> bytes:
    """An answer's bytes as they were sent: none are unpacked. Raises AgentError where they are too many."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise AgentError(f"answers in the encoding {printable(encoding, 40)}, though none was asked for")
    parts, size = [], 0
    try:
        async for part in response.aiter_raw():
            parts.append(part)
            size += len(part)
            if size > LARGEST:  # the iteration has to come to an end of its own: nobody else would clean up after it
                parts.clear()
                await response.extensions["network_stream"].aclose()
    except Exception:
        if size <= LARGEST:
            raise
    if size > LARGEST:
        raise AgentError(f"answers with more than {LARGEST:,} bytes")
    return b"".join(parts)


def _address(text: str) -> str:
    """A spec as the address that it is. Raises InputError for what is none, or has a password in it."""
    url = quote(text, safe=ASCII)
    example = "an agent over HTTP is named http://host:port/path"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise InputError(f"{example}; got {text!r:.80}") from None
    if "@" in parts.netloc:
        raise InputError(f"{example}: a name or a password in it would be written to files; put a key into {KEY}")
    if not host or port == 0 or "#" in url or not re.fullmatch(r"[A-Za-z0-9.:_-]+", host):
        raise InputError(f"{example}; got {text!r:.80}")
    return url


def _key(url: str) -> str:
    """The key that goes to `url`; empty where there is none. Raises InputError where it would go unprotected."""
    key = os.environ.get(KEY, "").strip()
    if not key:
        return ""
    if not key.isascii() or not key.isprintable():
        raise InputError(f"what the environment variable {KEY} holds is no key: it has odd characters in it")
    if not url.startswith("https:") and not is_loopback(url):
        raise InputError(f"{url}: {KEY} is set, and goes over https or to this machine alone; name an https address, or unset it")
    return key
