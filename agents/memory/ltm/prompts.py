"""Prompts for the core: templates, and times in words."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment

from longspan.simulator.base.templating import make_environment

__all__ = ["format_age", "render_prompt"]

TEMPLATES: Final = Path(__file__).parent / "templates"

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@cache
def _environment() -> Environment:
    return make_environment(TEMPLATES, trim_blocks=True, lstrip_blocks=True)


def render_prompt(template: str, **values: Any) -> str:
    """Render a template with `values`."""
    return _environment().get_template(f"{template}.j2").render(values)


def format_age(then: datetime, now: datetime) -> str:
    """Return the time since `then` in the two largest units: "2 days 3 hours ago"."""
    rest = max(timedelta(), now - then) // timedelta(seconds=1)
    amounts = []
    for unit, seconds in _UNITS:
        number, rest = divmod(rest, seconds)
        if number:
            amounts.append(f"{number} {unit}{'s'[: number != 1]}")
    return f"{' '.join(amounts[:2])} ago" if amounts else "just now"
