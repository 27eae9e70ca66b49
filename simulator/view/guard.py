"""Who may look: the right host, no other site's scripts, and beyond this machine only those with the token."""

from __future__ import annotations

import re
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PAGES", "Guard"]

PAGES: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)
"""The Content-Security-Policy of all that brings none of its own."""

HEADERS: Final = {
    "Content-Security-Policy": PAGES,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


FORMS: Final = re.compile(r"/runs/[^/]+/annotate")
"""The only addresses that forms are sent to."""


@final
class Guard:
    """Lets through to `app` what may pass, and sees to the headers of every response.

    `names`: the host names, besides addresses, under which the server may be asked: any other is a foreign page that had
    its name resolve to this machine. `local`: only this machine's own addresses count then. `token`: what a client has to
    bring once, as `?token=`, and then keeps in a cookie; None for none.
    """

    def __init__(self, app: ASGIApp, *, names: frozenset[str], local: bool, token: str | None) -> None:
        self._app = app
        self._names = names
        self._local = local
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._refused(scope) or self._app
            await answer(scope, receive, _with_headers(send))
        # A websocket gets no answer, which closes it: there is none here.

    def _refused(self, scope: Scope) -> Response | None:
        """The response to what may not pass, or has to come again without its token."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._known(_without_port(host)):
            return PlainTextResponse("longspan: this is not the server's address; use the one that `longspan view` printed\n", 421)
        if _foreign(headers, f"{scope['scheme']}://{host}"):
            return PlainTextResponse("longspan: another site's pages may not look at runs\n", 403)
        if scope["method"] not in ("GET", "HEAD") and not _may_write(scope, headers):
            return PlainTextResponse("longspan: there is nothing to be changed here\n", 405, {"Allow": "GET, HEAD"})
        return self._without_token(scope, headers)

    def _known(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return host.lower() in self._names
        return address.is_loopback or not self._local

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        if self._token is None:
            return None
        cookie = f"longspan-{scope['server'][1]}"  # cookies know no ports: each server has its own
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and self._right(given[0]):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = f"/{scope['path'].lstrip('/')}"  # "//name" would be another server
            response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            response.set_cookie(cookie, self._token, httponly=True, samesite="strict")
            return response
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(cookie)
        except CookieError:
            kept = None
        if kept is not None and self._right(kept.value):
            return None
        return PlainTextResponse("longspan: open the address that `longspan view` printed, with its token\n", 403)

    def _right(self, given: str) -> bool:
        return compare_digest(given.encode(), (self._token or "").encode())


def _foreign(headers: Headers, own: str) -> bool:
    """Whether a page of another origin asks. Following a link from one is no asking: its page sees nothing of what comes."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None:
        return origin != own
    return site not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate"


def _may_write(scope: Scope, headers: Headers) -> bool:
    """Whether it is a form that a page of ours sent to where forms go: then its browser names our origin, which was looked at."""
    return scope["method"] == "POST" and FORMS.fullmatch(scope["path"]) is not None and "origin" in headers


def _without_port(host: str) -> str:
    """The name or address in a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent
