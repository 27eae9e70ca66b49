"""What a server that speaks OpenAI's API rejects, and the form of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.loopback.acts import Raw

__all__ = ["Quirks", "say_nothing", "say_openai"]

Complain = Callable[[str], Any]
"""Returns an error's JSON, or its text, for a rejected part of a request."""


def say_openai(part: str) -> Any:
    """Return OpenAI's error."""
    message = f"Unsupported parameter: '{part}' is not supported with this model."
    return {"error": {"message": message, "type": "invalid_request_error", "param": part, "code": "unsupported_parameter"}}


def say_nothing(part: str) -> Any:
    """Return an error that names nothing."""
    return "Bad Request"


@dataclass(frozen=True)
class Quirks:
    """`rejects`: fields, as dotted paths; `PATH=VALUE` rejects one value, and `system` the role. `needs`: fields that must be present.

    `complain` makes the error, with `status`. `shape` makes the content of an answer from its text.
    """

    rejects: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    complain: Complain = say_openai
    status: int = 400
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    shape: Callable[[str], Any] | None = None

    def reject(self, body: Mapping[str, Any]) -> Raw | None:
        """Return the error for a request, None if it is accepted."""
        rejected = [part for part in self.rejects if _has(body, part)] + [part for part in self.needs if not _has(body, part)]
        if not rejected:
            return None
        error = self.complain(rejected[0].partition("=")[0])
        return Raw((error if isinstance(error, str) else json.dumps(error)).encode(), self.status, self.headers)


def _has(body: Mapping[str, Any], part: str) -> bool:
    if part == "system":
        return any(message["role"] == "system" for message in body["messages"])
    path, equals, wanted = part.partition("=")
    value: Any = body
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return not equals or str(value) == wanted
