"""The HTTP client for vendors' libraries. It limits in one place how much a server can do to longspan."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from math import inf
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.core import ContextOverflowError
from longspan.agents.models.limits import TransientError
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.keys import redact
from longspan.simulator.subject.purse import note_free

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "RejectedError",
    "check_header",
    "check_url",
    "http_client",
    "is_loopback",
    "list_causes",
    "read_error",
    "refusal_in",
    "retry_after",
    "status_error",
    "stream_error",
    "translate_error",
]

MAX_BYTES: Final = 32 * 2**20
"""The maximum bytes of an answer."""

CONNECT_SECONDS: Final = 15.0
"""The connect timeout. The turn's deadline limits everything else."""

OVERLOADED: Final = (429, 503, 529)
"""Statuses of an overloaded provider."""

RETRYABLE: Final = (408, 409, 425)
"""Statuses of requests that may succeed if repeated."""

REJECTED: Final = (400, 404, 415, 422, 501)
"""Statuses of requests with a field or a value that the provider does not accept."""

REJECTION: Final = re.compile(r"invalid_request|bad_?request|unsupported|UnsupportedParams", re.IGNORECASE)
"""Codes of the same in an answer with status 200."""

UNSUPPORTED: Final = re.compile(r"not support|unsupported|unknown (field|parameter)|unrecognized|not permitted", re.IGNORECASE)
"""Phrases for the same in an error of the server, such as a failure of its chat template."""

ECHOES: Final = ("body", "input", "messages", "prompt", "request")
"""Fields of errors that repeat the request."""

PROMPT_TOO_LONG: Final = re.compile(
    r"context[ _](length|window|size)|prompt is too long|maximum context|input token count .{0,80}exceed|input is too long", re.IGNORECASE
)
"""Providers' phrases for a prompt that is too long."""

FILTERED: Final = re.compile(
    r"\bcontent_filter\b|content_policy_violation|content filtering policy|content management policy"
    r"|flagged as potentially violating|input was flagged",
    re.IGNORECASE,
)
"""Providers' phrases for a prompt or answer rejected by a content filter: OpenAI, Azure, Anthropic, OpenRouter."""

OUT_OF_CREDIT: Final = ("insufficient_quota", "billing_hard_limit_reached")
"""Error codes for an account without credit. A retry does not help, though an overload has the same status."""


MAX_MESSAGE: Final = 10_000
"""The maximum characters processed of an error's message. Fewer are shown."""

MAX_HEADER: Final = 1000
"""The maximum characters of a header's value."""

FRAMING: Final = frozenset(
    "accept-encoding connection content-encoding content-length content-type expect host te trailer transfer-encoding upgrade".split()
)
"""Headers that control how a request is sent."""

SECRET: Final = re.compile("auth|key|token|secret|cookie|passw|credential|session", re.IGNORECASE)
"""Names of headers that could hold a secret."""


class RejectedError(AgentError):
    """The provider rejected the form of a request. `parameter` is what its error gives as the reason, and `text` all that it says."""

    status = 0
    parameter = ""
    text = ""


class _FilteredError(AgentError):
    """A content filter rejected the prompt or the answer."""


def check_url(url: str, what: str = "base_url", key: str = "the environment") -> str:
    """Return `url` if it is a plain address without user name, password and query, which may be secret. Raises InputError otherwise.

    In errors, `what` names the address and `key` the place for a key.
    """
    expected = f"{what}: not a valid address{'' if set(url) & set('@?') else f': {url!r:.80}'}; expected http(s)://host:port/path"
    if "@" in re.split(r"[/?#]", url.partition("//")[2])[0]:
        raise InputError(f"{what}: a user name or password in the address would be written to files; set the key in {key}")
    if "?" in url:
        raise InputError(f"{what}: a query in the address would be written to files, and may hold a key; set the key in {key}")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise InputError(expected) from None
    plain = parts.scheme in ("http", "https") and port != 0 and "#" not in url and re.fullmatch(r"[!-~]+", url)
    if not plain or not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%\w+)?", host):
        raise InputError(expected)
    return url


def check_header(name: str, value: str) -> str:
    """Return the name of an HTTP header. Raises ValueError if it cannot be sent, is reserved, or could hold a secret."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name):
        raise ValueError(f"{name!r:.60} is not the name of an HTTP header")
    if not value or not value.isascii() or not value.isprintable() or len(value) > MAX_HEADER:
        raise ValueError(f"{name}: expected 1 to {MAX_HEADER:,} printable ASCII characters")
    if name.casefold() in FRAMING:
        raise ValueError(f"{name} cannot be set: it belongs to the connection")
    if SECRET.search(name):
        raise ValueError(f"{name} could hold a key, which would be written to files: name the key's variable with key_env=")
    return name


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):  # a name, not an address
        return ip_address(host).is_loopback
    return host == "localhost"


def http_client(url: str, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client for the API at `url`, which sends `headers` with each request.

    It follows no redirects, which would pass on the key.
    """
    import httpx2

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30),
        follow_redirects=False,
        verify=not url.startswith("http:"),  # without TLS there are no certificates to load
        trust_env=not is_loopback(url),  # proxies do not reach this machine
        headers={"accept-encoding": "identity"},  # a small answer must not unpack to a huge one
        event_hooks={"request": [partial(_add, headers)], "response": [_check]},
    )


async def _add(headers: Mapping[str, str], request: httpx2.Request) -> None:
    request.headers.update(headers)


async def _check(response: httpx2.Response) -> None:
    """Raise an error for a failed request before the vendor's library sees it, so that all vendors' errors read alike."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise AgentError(f"answered with content-encoding {response.headers['content-encoding']!r:.40}, though identity was requested")
    response.stream = _read_whole(response.stream)
    if response.status_code != 200:
        note_free()
        body = await response.aread()
        raise status_error(response.status_code, response.headers, body)


def _read_whole(stream: Any) -> Any:
    """Return a response's stream as a single chunk, since only complete answers are used. Reading raises AgentError above MAX_BYTES."""
    import httpx2

    class Whole(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = bytearray()
            async for chunk in stream:
                body += chunk
                if len(body) > MAX_BYTES:
                    raise AgentError(f"answered with more than {MAX_BYTES:,} bytes")
            yield bytes(body)

        async def aclose(self) -> None:
            await stream.aclose()

    return Whole()


def status_error(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """Return the error for an HTTP status other than 200."""
    code, message = read_error(body)
    details = f"{status}: {message}" if message else str(status)
    wait = retry_after(headers, body)
    if status in OVERLOADED and code not in OUT_OF_CREDIT:
        return TransientError(f"is overloaded ({details})", overload=True, attempts=inf, retry_after=wait)
    if 400 <= status < 500 and FILTERED.search(f"{code} {message}"):
        return _FilteredError(f"refused to answer ({details})")
    if status in RETRYABLE:
        return TransientError(f"failed ({details})", retry_after=wait)
    if status >= 400 and PROMPT_TOO_LONG.search(f"{code} {message}"):
        return ContextOverflowError(f"the prompt is too long ({details})")
    if status in REJECTED or (status == HTTPStatus.INTERNAL_SERVER_ERROR and UNSUPPORTED.search(message)):
        return _rejection(status, details, body)
    if status >= 500:
        return TransientError(f"failed ({details})", overload=True, retry_after=wait)
    if status in (401, 403):
        return AgentError(f"rejected the key ({details})")
    if status < 400:
        return AgentError(f"answered with status {details} instead of 200: check base_url")
    return AgentError(f"rejected the request ({details})")


def _rejection(status: int, details: str, body: bytes) -> RejectedError:
    error = RejectedError(f"rejected the request ({details})")
    error.status = status
    try:
        found = list(_strings(json.loads(body)))
    except (ValueError, RecursionError):
        found = [("", body.decode("utf-8", "replace"))]
    error.parameter = " ".join(text for name, text in found if name in ("param", "loc"))[:MAX_MESSAGE]
    error.text = " ".join(text for _, text in found)[:MAX_MESSAGE]
    return error


def _strings(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings in an error's JSON, each with its field's name, except what repeats the request."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in ECHOES:
                yield from _strings(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, name)


def refusal_in(error: Exception) -> str | None:
    """Return the reason of a provider's refusal, None if a library's error is about something else."""
    return "content filter" if any(isinstance(cause, _FilteredError) for cause in list_causes(error)) else None


def stream_error(error: Any) -> Exception:
    """Return the error for an error event in the middle of an answer, or instead of an answer."""
    code, message = _error_fields(error)
    inner = error.get("error") if isinstance(error, dict) else None
    number = str(inner.get("code") if isinstance(inner, dict) else None)
    status = int(number) if re.fullmatch("[45][0-9][0-9]", number) else 400 if REJECTION.search(code) else 0
    if status:  # a gateway's answer with the provider's status
        if status in REJECTED:
            note_free()
        return status_error(status, {}, json.dumps(error).encode())
    if FILTERED.search(f"{code} {message}"):
        return _FilteredError(f"refused to answer ({code}: {message})")
    overload = re.search(r"overloaded|rate_limit|unavailable", code, re.IGNORECASE) is not None
    return TransientError(f"interrupted its answer ({code}: {message})", overload=overload)


def read_error(body: bytes) -> tuple[str, str]:
    """Return an error body's code and its message in one line, each empty if missing."""
    try:
        return _error_fields(json.loads(body))
    except (ValueError, RecursionError):
        return "", _line(body[:MAX_MESSAGE].decode("utf-8", "replace"))


def _error_fields(error: Any) -> tuple[str, str]:
    if isinstance(error, list) and error:
        error = error[0]
    if isinstance(error, dict):
        error = error.get("error", error)
    if isinstance(error, str):
        return "", _line(error)
    if not isinstance(error, dict):
        return "", ""
    codes = [_line(error.get(name)) for name in ("code", "type", "status")]
    message = error.get("message") or error.get("detail")
    return next(filter(None, codes), ""), _line(message if isinstance(message, str) else " ".join(text for _, text in _strings(message)))


def _line(value: object) -> str:
    return " ".join(redact(value[:MAX_MESSAGE]).split())[:300].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def retry_after(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the seconds that the provider asks to wait, in a header or in the body as Google does; None if absent.

    A date in the header is relative to the date of the answer.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):  # absent, or a date
            seconds = float(headers.get(name, "")) / unit
            if 0 <= seconds < inf:
                return seconds
    with suppress(ValueError, TypeError, OverflowError):  # one of the two dates is absent or malformed
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    delay = re.search(rb'"retryDelay": *"([0-9]{1,6}(?:\.[0-9]{1,9})?)s"', body)
    return float(delay[1]) if delay else None


def translate_error(error: Exception, answers: int) -> Exception:
    """Convert an error of a vendor's library to AgentError or TransientError.

    `answers` counts the provider's earlier answers: a provider that never answered gets fewer attempts.
    """
    import httpx2

    causes = list_causes(error)
    for cause in causes:
        if isinstance(cause, AgentError | TransientError):
            return cause
    for cause in causes:
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            note_free()
            return TransientError(f"cannot be reached: {one_line(cause)}", attempts=6 if answers else 3)
        if isinstance(cause, httpx2.TransportError):
            return TransientError(f"closed the connection: {one_line(cause)}")
    return TransientError(f"gave an unreadable answer: {one_line(error)}")


def list_causes(error: BaseException | None) -> list[BaseException]:
    """Return an error, its cause, the cause of that, and so on."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes
