"""HTML for notebooks. All text in it is untrusted, and escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from longspan.simulator.base.terminal import visible

__all__ = ["framed", "preformatted", "table", "text"]


def text(value: str) -> str:
    """Return text as HTML."""
    return escape(visible(value))


def preformatted(value: str) -> str:
    """Return text of several lines as HTML."""
    return f"<pre style='white-space: pre-wrap'>{text(value)}</pre>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return a table as HTML, with a note below it."""
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{f'<p>{text(note)}</p>' if note else ''}"


def framed(page: str, height: int) -> str:
    """Return HTML that embeds a whole page. The page can do nothing but run its own scripts. `height` is in pixels."""
    style = f"width: 100%; height: {height}px; border: 1px solid #8c959f"
    return f'<iframe sandbox="allow-scripts" srcdoc="{escape(page)}" style="{style}"></iframe>'
