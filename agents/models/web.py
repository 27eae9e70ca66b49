"""The HTTP client that vendors' libraries are given, so that what a server may do to longspan is decided in one place."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from ipaddress import ip_address
from math import inf
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.core import ContextOverflowError
from longspan.agents.models.limits import TransientError
from longspan.simulator.errors import one_line

if TYPE_CHECKING:
    import httpx2

__all__ = ["broken_off", "check_url", "explained", "http_client", "is_loopback"]

LARGEST: Final = 32 * 2**20
"""Bytes of an answer, at most."""

CONNECT: Final = 15.0
"""Seconds that a connection may take to be made. All else is limited by the turn's deadline."""

BUSY: Final = (429, 503, 529)
"""Statuses by which a provider says that it has too much to do."""

AGAIN: Final = (408, 409, 425)
"""Statuses of requests that may succeed when they are made again."""

TOO_LONG: Final = re.compile(
    r"context[ _](length|window|size)|prompt is too long|maximum context|input token count .{0,80}exceed|input is too long", re.IGNORECASE
)
"""How providers say that a prompt is too long."""

SPENT: Final = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of providers that have been paid too little: asking again does not help, though the status is that of overload."""


def check_url(url: str) -> str:
    """`url` without a slash at its end. Raises InputError for what is no plain address, or has a password in it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputError(f"base_url: {url!r:.80} is no address") from None
    if parts.username is not None or parts.password is not None:
        raise InputError("base_url: an address with a name or a password in it would be written to files; keys come from the environment")
    plain = parts.scheme in ("http", "https") and parts.hostname and port != 0 and not parts.query and not parts.fragment
    if not plain or not re.fullmatch(r"[!-~]+", url):
        raise InputError(f"base_url: an address is http(s)://host:port/path, got {url!r:.80}")
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def http_client(url: str, secret: str) -> httpx2.AsyncClient:
    """A client for the API at `url`. It follows no redirect, since vendors' keys would go along, and gives no answer with the
    `secret` in it (unless that is empty)."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=CONNECT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30),
        follow_redirects=False,
        verify=not url.startswith("http:"),  # without TLS there are no certificates to load
        trust_env=not is_loopback(url),  # a proxy does not reach this machine
        headers={"accept-encoding": "identity"},  # what is small here must not be huge once unpacked
        event_hooks={"response": [partial(_check, secret.encode())]},
    )


async def _check(secret: bytes, response: httpx2.Response) -> None:
    """Refuse what is no answer, in the same words for all vendors, before a vendor's library reads it."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise AgentError(f"answers in {response.headers['content-encoding']!r:.40}, though only plain text was asked for")
    response.stream = _read_whole(response.stream, secret)
    if response.status_code != 200:
        body = await response.aread()
        raise _problem(response.status_code, response.headers, body)


def _read_whole(stream: Any, secret: bytes) -> Any:
    """A response's stream in one piece, without the secret. It ends in an error where it would be too large to hold.

    Nobody here needs an answer before its end, and a secret may lie across two pieces.
    """
    import httpx2

    class Whole(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = bytearray()
            async for part in stream:
                body += part
                if len(body) > LARGEST:
                    raise AgentError(f"answers more than {LARGEST:,} bytes")
            yield bytes(body).replace(secret, b"[key]") if secret else bytes(body)

        async def aclose(self) -> None:
            await stream.aclose()

    return Whole()


def _problem(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """What an answer with an HTTP status other than 200 means."""
    code, message = _message(body)
    said = f"{status}: {message}" if message else str(status)
    retry_after = _retry_after(headers, body)
    if status in BUSY and code not in SPENT:
        return TransientError(f"is overloaded ({said})", overload=True, attempts=inf, retry_after=retry_after)
    if status in AGAIN:
        return TransientError(f"failed ({said})", retry_after=retry_after)
    if status >= 400 and TOO_LONG.search(f"{code} {message}"):
        return ContextOverflowError(f"the prompt is too long ({said})")
    if status >= 500:
        return TransientError(f"failed ({said})", overload=True, retry_after=retry_after)
    if status in (401, 403):
        return AgentError(f"refuses the key ({said})")
    if status < 400:
        return AgentError(f"answers with the status {said} instead of 200: is base_url right?")
    hint = "; some models take none: leave it out, or write temperature=none" if "temperature" in message else ""
    return AgentError(f"refuses the request ({said}){hint}")


def broken_off(error: Any) -> TransientError:
    """The error that came in the middle of an answer."""
    code, message = _told(error)
    overload = re.search(r"overloaded|rate_limit|unavailable", code, re.IGNORECASE) is not None
    return TransientError(f"broke off its answer ({code}: {message})", overload=overload)


def _message(body: bytes) -> tuple[str, str]:
    """A code, and a message in one line, from the body of an error; empty where there are none."""
    try:
        return _told(json.loads(body))
    except (ValueError, RecursionError):
        return "", " ".join(body[:300].decode("utf-8", "replace").split())


def _told(found: Any) -> tuple[str, str]:
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, str):
        return "", _line(found)
    if not isinstance(found, dict):
        return "", ""
    codes = [_line(found.get(name)) for name in ("code", "type", "status")]
    return next(filter(None, codes), ""), _line(found.get("message") or found.get("detail"))


def _line(value: object) -> str:
    return " ".join(value[:1000].split())[:300].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _retry_after(headers: Mapping[str, str], body: bytes) -> float | None:
    """Seconds that the provider asks to wait, in a header or as Google does; a date counts from the date of its answer. None
    where it does not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / unit
            if 0 <= seconds < inf:
                return seconds
    with suppress(ValueError, TypeError, OverflowError):
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    delay = re.search(rb'"retryDelay": *"([0-9]{1,6}(?:\.[0-9]{1,9})?)s"', body)
    return float(delay[1]) if delay else None


def explained(error: Exception, answers: int) -> Exception:
    """What a vendor's library raised, as an error of ours. `answers`: how many the provider has given before."""
    import httpx2

    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, AgentError | TransientError):
            return cause
    for cause in causes:
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            return TransientError(f"cannot be reached: {one_line(cause)}", attempts=6 if answers else 3)
        if isinstance(cause, httpx2.TransportError):
            return TransientError(f"broke off the connection: {one_line(cause)}")
    return TransientError(f"gave an answer that cannot be read: {one_line(error)}")


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
