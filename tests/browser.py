"""A browser for tests. It opens pages, takes screenshots, and records console messages and requests."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.conftest import skip

PATIENCE = 20_000
"""Timeout in milliseconds: much longer than needed, because other tests may run at the same time."""

expect.set_options(timeout=PATIENCE)

PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
LAPTOP: Final[ViewportSize] = {"width": 1024, "height": 768}

SCREENSHOTS = os.environ.get("LONGSPAN_SCREENSHOTS")
"""The folder for pictures of the pages that tests open. A person looks at them, no test does: none is taken unless asked for."""


@dataclass
class Visit:
    """An open page, with its console messages and the addresses it requested.

    `home` is the page's server or file, with which all addresses must begin.
    """

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def leave(self) -> None:
        """Close the page. Fails if it has console messages, or requested an address outside `home`."""
        self.page.context.close()
        assert self.complaints == [], self.complaints
        away = [url for url in self.requests if not url.startswith((self.home, "data:"))]
        assert away == [], away

    def picture(self, name: str, *, whole: bool = False) -> None:
        if SCREENSHOTS:
            self.page.screenshot(path=Path(SCREENSHOTS, f"{name}.png"), full_page=whole)

    def faults(self) -> list[str]:
        """Return the serious accessibility problems that axe-core finds: in light colours as wide as the page is, and in dark
        ones on a phone, where the page must not scroll sideways either, nor on a small laptop."""
        size = self.page.viewport_size
        assert size is not None
        found = self._faults("light")
        self.page.set_viewport_size(PHONE)
        found += self._faults("dark")
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append("on a phone it scrolls sideways")
        self.page.set_viewport_size(LAPTOP)
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append("on a small laptop it scrolls sideways")
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme="null")
        return found

    def _faults(self, scheme: Literal["dark", "light"]) -> list[str]:
        self.page.emulate_media(color_scheme=scheme)
        # What holds is not listed: axe takes most of its time, minutes on a large page, to say where each rule is kept.
        found: dict[str, Any] = Axe().run(self.page, options={"resultTypes": ["violations"]})
        return [
            f"{scheme}: {violation['id']}: {[node['html'][:200] for node in violation['nodes'][:3]]}"
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
        ]


Open = Callable[..., Visit]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. It is never downloaded."""
    path = shutil.which("chromium")
    if path is None:
        skip("there is no chromium on the path; apt-get install chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])


@contextmanager
def visiting(browser: Browser) -> Iterator[Open]:
    """Yield `visit(address, **context)`, which opens pages. Pages still open at the end are closed."""
    visits: list[Visit] = []

    def opened(address: str | Path, **context: Any) -> Visit:
        url = address.as_uri() if isinstance(address, Path) else address
        page = browser.new_context(viewport=context.pop("viewport", {"width": 1200, "height": 900}), **context).new_page()
        page.set_default_timeout(PATIENCE)
        seen = Visit(page, re.sub(r"(?<=[^/:])/.*", "/", url) if url.startswith("http") else re.sub("[?#].*", "", url))
        page.on("console", lambda message: seen.complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        visits.append(seen)
        page.goto(url)
        return seen

    yield opened
    for visit in visits:
        visit.leave()
