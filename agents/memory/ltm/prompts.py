"""What the core is told: templates, and times in words."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment

from longspan.simulator.templating import environment

__all__ = ["ago", "prompt", "stamped"]

HERE: Final = Path(__file__).parent / "templates"

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@cache
def _environment() -> Environment:
    return environment(HERE, trim_blocks=True, lstrip_blocks=True)


def prompt(template: str, **values: Any) -> str:
    """The text of a template with `values` filled in."""
    return _environment().get_template(f"{template}.j2").render(values)


def stamped(text: str, sent_at: datetime) -> str:
    """A message with its virtual time. It is absolute, so that the message stays the same in every later prompt."""
    return f"[{sent_at:%a %Y-%m-%d %H:%M:%S}] {text}"


def ago(then: datetime, now: datetime) -> str:
    """How long ago something was, in its largest two units: "2 days 3 hours ago"."""
    left = max(timedelta(), now - then) // timedelta(seconds=1)
    parts = []
    for name, seconds in _UNITS:
        number, left = divmod(left, seconds)
        if number:
            parts.append(f"{number} {name}{'s'[: number != 1]}")
    return f"{' '.join(parts[:2])} ago" if parts else "just now"
