"""Rendering of the templates of `longspan view`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.responses import HTMLResponse

from longspan.simulator.pages.report.page import page_environment

__all__ = ["render_page"]

TEMPLATES: Final = Path(__file__).parent / "templates"


def render_page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a template as a response."""
    return HTMLResponse(page_environment(TEMPLATES).get_template(template).render(**values), status)
