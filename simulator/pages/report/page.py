"""Rendering of pages: templates that escape everything, and a policy that allows inline scripts and styles by their hash."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment
from markupsafe import Markup

from longspan.simulator.base import templating
from longspan.simulator.base.tables import format_decimals
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.excerpts import Excerpt, embed_json, script_json, script_list
from longspan.simulator.results.analysis.interference import describe_planted

__all__ = ["ASSETS", "content_policy", "element_id", "load_asset", "page_environment"]

ASSETS: Final = Path(__file__).parent / "assets"

SEPARATORS: Final = re.compile(r"(?<=[-_/?&=:,])(?=[^-_/?&=:,\s])")
"""Matches the places where a name may be broken."""

TEMPLATES: Final = Path(__file__).parent / "templates"


@cache
def load_asset(name: str | Path) -> Markup:
    """Return one of longspan's own scripts or styles, to be inserted into a page: a name in `ASSETS`, or the path of a benchmark's."""
    return Markup((ASSETS / name).read_text("utf-8"))  # noqa: S704


@cache
def content_policy(scripts: tuple[str | Path, ...], styles: tuple[str | Path, ...]) -> str:
    """Return the Content-Security-Policy of a page with these assets: no network, no other script or style."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hashes(names: Sequence[str | Path]) -> str:
    digests = (b64encode(sha256(load_asset(name).encode()).digest()).decode() for name in names)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


@cache
def page_environment(folder: Path = TEMPLATES) -> Environment:
    """Return the environment for the templates in `folder` and in `TEMPLATES`. Every value is made visible, then escaped."""
    env = templating.make_environment(folder, TEMPLATES, autoescape=True, finalize=_visible, trim_blocks=True, lstrip_blocks=True)
    env.globals |= {"asset": load_asset}
    env.filters |= {
        "number": "{:,}".format,
        "figure": lambda value: "–" if value is None else f"{value:.2f}",
        "small": format_decimals,
        "signed": _format_signed,
        "percent": lambda value: "–" if value is None else f"{value:.0%}",
        "share": lambda value: f"{100 * min(1.0, max(0.0, value)):.2f}%",
        "dollars": _dollars,
        "duration": _duration,
        "anchor": element_id,
        "pieces": partial(re.split, SEPARATORS),
        "excerpt": Excerpt.of,
        "pretty": lambda value: json.dumps(value, ensure_ascii=False, indent=2, default=str),  # parameters may be paths
        "embedded": embed_json,
        "script_json": script_json,
        "script_list": script_list,
        "planted": describe_planted,
    }
    return env


def element_id(name: str) -> str:
    """Return a name as part of an element's id."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


def _format_signed(value: float) -> str:
    rounded = round(value, 2)
    return f"{rounded:+.2f}".replace("-", "−") if rounded else "0.00"


def _dollars(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60:,} h {minutes % 60} min"


def _visible(value: Any) -> Any:
    """Prepare a value for the page. Jinja escapes the result. Markup, which is not a plain str, is unchanged: its parts have been prepared
    before."""
    return escape_invisible(value) if type(value) is str else value
