"""Access control: the right host name, no requests from other sites, and a token, since this machine may have other users."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["AccessGuard"]

DEFAULT_POLICY: Final = "; ".join(
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
"""The Content-Security-Policy of responses that do not set their own."""

HEADERS: Final = {
    "Content-Security-Policy": DEFAULT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

FORM_PATHS: Final = re.compile(r"/questions|/runs/(?:[^/.][^/]*/)+(?:annotate|question)")
"""The only paths that accept forms."""

HOST: Final = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]*)?")
"""A Host header: an IPv6 address in brackets, or a name or another address, and a port."""

KNOWN: Final = "longspan.known"
"""The key, in a request's scope, of a function to call if the request has the token."""

_STYLE: Final = "code{white-space:nowrap}body{font:1rem/1.5 system-ui,sans-serif;margin:3rem auto;max-width:40rem;padding:0 1rem}"

_NO_TOKEN: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>longspan: the token is missing</title>
<style>{_STYLE}</style>
<main>
<h1>The token is missing</h1>
<p>Open the address that <code>longspan view</code> printed in its terminal. It ends in <code>?token=</code> and a token,
which is new each time. The browser then keeps the token in a cookie.</p>
</main>
</html>
"""

_NO_TOKEN_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@final
class AccessGuard:
    """Passes allowed requests on to `app`, and sets the security headers of every response.

    `names`: host names, in addition to addresses, that requests may use. Any other name may belong to another site that makes it resolve to
    this machine (DNS rebinding). Starlette's TrustedHostMiddleware knows lists of names, but not "any address of this machine". `local`:
    accept only loopback addresses. `token`: the secret that a client sends once, as `?token=`, and from then on in a cookie.
    """

    def __init__(self, app: ASGIApp, *, names: frozenset[str], local: bool, token: str) -> None:
        self._app = app
        self._names = names
        self._local = local
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is None and KNOWN in scope:
                scope[KNOWN]()
            response = refusal or self._app
            await response(scope, receive, _with_headers(send))
        # A websocket gets no answer, which closes it.

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that is refused, or redirected to its URL without the token; None if it is allowed."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_known(_without_port(host)):
            return PlainTextResponse("longspan: unknown host name; open the address that `longspan view` printed\n", 421)
        if _is_foreign(headers, f"{scope['scheme']}://{host}"):
            return PlainTextResponse("longspan: requests from other sites are refused\n", 403)
        without_token = self._check_token(scope, headers)
        if without_token is None and scope["method"] not in ("GET", "HEAD") and not _may_write(scope, headers):
            return PlainTextResponse("longspan: only GET and HEAD are allowed here\n", 405, {"Allow": "GET, HEAD"})
        return without_token

    def _is_known(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return host.lower() in self._names
        return address.is_loopback or not self._local

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        cookie = f"longspan-{scope['server'][1]}"  # all ports of a host share cookies, so each server needs a separate name
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if tokens and self._is_token(tokens[0]):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = f"/{scope['path'].lstrip('/')}"  # "//name" would be another server
            response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            response.set_cookie(cookie, self._token, httponly=True, samesite="lax")  # also sent when a link on another site is followed
            return response
        kept = cookie_parser("; ".join(headers.getlist("cookie"))).get(cookie)  # continues after another server's odd cookies
        if kept is not None and self._is_token(kept):
            return None
        return HTMLResponse(_NO_TOKEN, 403, {"Content-Security-Policy": _NO_TOKEN_POLICY})

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _is_foreign(headers: Headers, own: str) -> bool:
    """Return whether a page from another origin sent the request.

    Following a link is allowed, because the other page cannot read the response.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None:
        return origin != own
    return site not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate"


def _may_write(scope: Scope, headers: Headers) -> bool:
    """Return whether the request is a form from one of our own pages. Its origin has already been checked."""
    return scope["method"] == "POST" and FORM_PATHS.fullmatch(scope["path"]) is not None and "origin" in headers


def _without_port(host: str) -> str:
    """Return the name or address in a Host header, with or without a port; empty if the header is invalid."""
    found = HOST.fullmatch(host)
    return "" if found is None else found["address"] or found["name"]


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
