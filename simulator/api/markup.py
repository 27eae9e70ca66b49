"""HTML for notebooks. All text in it is untrusted, so it is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from longspan.simulator.base.terminal import escape_invisible

__all__ = ["embed_page", "escape_html", "preformat", "render_table"]


def escape_html(value: str) -> str:
    """Return text as HTML."""
    return escape(escape_invisible(value))


def preformat(value: str) -> str:
    """Return text with several lines as HTML."""
    return f"<pre style='white-space: pre-wrap'>{escape_html(value)}</pre>"


def render_table(columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return a table as HTML, with a note below it."""
    head = "".join(f"<th>{escape_html(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{f'<p>{escape_html(note)}</p>' if note else ''}"


def embed_page(page: str, height: int) -> str:
    """Return HTML that embeds a whole page in a sandbox, where it can only run its own scripts. `height` is in pixels."""
    style = f"width: 100%; height: {height}px; border: 1px solid #8c959f"
    return f'<iframe sandbox="allow-scripts" srcdoc="{escape(page)}" style="{style}"></iframe>'
