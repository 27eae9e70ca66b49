"""Scripted reactions of the server to a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Act", "Cut", "Hang", "Raw", "Say", "Status", "Use"]


@dataclass(frozen=True)
class Say:
    """Answer with `text`. `ends` is the vendor's finish reason. `usage`: whether the answer reports it. `shape` makes the content from the
    text: marked text, or parts."""

    text: str | None = "OK."
    ends: str | None = ""
    usage: bool = True
    shape: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class Use:
    """Call tools, each given by its name and its arguments; those that are text are sent as they are."""

    calls: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Status:
    """Answer with an HTTP status and an error in the vendor's format."""

    status: int
    message: str = "not now"
    code: str = "some_error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Answer with these bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


@dataclass(frozen=True)
class Cut:
    """Start to answer with the text, and close the connection in the middle of it."""

    text: str = "The connection ends before this does."


@dataclass(frozen=True)
class Hang:
    """Do not answer until the client disconnects."""


Act = Say | Use | Status | Raw | Cut | Hang
