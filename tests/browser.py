"""A browser for tests: pages are opened, looked at and photographed; what they complain of and ask for is on record."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import skip

PATIENCE = 20_000
"""Milliseconds until what is waited for has not come: far longer than it takes, since other tests may run beside."""

expect.set_options(timeout=PATIENCE)

SCREENSHOTS = Path(__file__).parent / ".screenshots"
"""Where pictures of the pages land, for people to look at. Git ignores it."""


@dataclass
class Visit:
    """A page that is open: what it said to the console and which addresses it asked for. `home`: what those have to begin
    with, the page's own server or file."""

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def leave(self) -> None:
        """Close it. It must not have complained, nor asked for anything that is not at home."""
        self.page.context.close()
        assert self.complaints == [], self.complaints
        away = [url for url in self.requests if not url.startswith((self.home, "data:"))]
        assert away == [], away

    def picture(self, name: str, *, whole: bool = False) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)

    def faults(self) -> list[str]:
        """What axe-core finds wrong with it for people with disabilities, as far as it is serious."""
        found: dict[str, Any] = Axe().run(self.page)
        return [
            f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]


Open = Callable[..., Visit]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. It is never downloaded."""
    path = shutil.which("chromium")
    if path is None:
        skip("there is no chromium on the path; apt-get install chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@contextmanager
def visiting(browser: Browser) -> Iterator[Open]:
    """Opens pages: `visit(address, **context)`. They are left at the end, if they were not before."""
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
    for each in visits:
        each.leave()
