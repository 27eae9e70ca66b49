"""Forms of `longspan view`: their pages, and what they send."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from longspan.simulator.base.errors import InputError
from longspan.simulator.pages.view.page_rendering import render_page

__all__ = ["FORM_HEADERS", "read_form", "render_form"]

MAX_FORM_BYTES: Final = 10_000

FORM_HEADERS: Final = {"Referrer-Policy": "same-origin"}
"""With the stricter policy of other pages, browsers would not send the origin of a form either."""


def render_form(template: str, status: int = 200, **values: Any) -> Response:
    """Render a page with a form."""
    response = render_page(template, status, **values)
    response.headers.update(FORM_HEADERS)
    return response


async def read_form(request: Request, most: int = MAX_FORM_BYTES) -> dict[str, list[str]]:
    """Return the values of a form's fields. Raises InputError if it is invalid or too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise InputError(f"the form has more than {most:,} bytes")
    try:
        return parse_qs(body.decode("utf-8"), max_num_fields=40)
    except ValueError as error:
        raise InputError("the form is invalid") from error
