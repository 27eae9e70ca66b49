"""Rendering of the templates of `longspan view`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.responses import HTMLResponse

from longspan.simulator.report.page import environment

__all__ = ["page"]

TEMPLATES: Final = Path(__file__).parent / "templates"


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a template as a response."""
    return HTMLResponse(environment(TEMPLATES).get_template(template).render(**values), status)
