"""What all tests share: the peers' published data, where it is at hand; and a strict way to skip."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser import Open

# The examples of property-based tests are the same each time, so that a failure is somebody's change; `explore` looks further.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")

PEER_DATA = Path(os.environ.get("LONGSPAN_PEER_DATA") or Path(__file__).parents[1] / ".." / "shared" / "data")


def skip(reason: str) -> None:
    """Skip the test that runs, or fail it where nothing may be skipped (LONGSPAN_REQUIRE_ALL=1, as in CI)."""
    if os.environ.get("LONGSPAN_REQUIRE_ALL") == "1":
        pytest.fail(f"LONGSPAN_REQUIRE_ALL=1 and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def goodai() -> Path:
    """The folder of the GoodAI benchmark's published data."""
    folder = (PEER_DATA / "goodai-ltm").resolve()
    if not folder.is_dir():
        skip(f"there is no published data at {PEER_DATA}; LONGSPAN_PEER_DATA names another place")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache folder for the tests, so that they neither use nor change the user's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LONGSPAN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def openai_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for servers that ask for none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium: one for all tests of pages, which Playwright insists on."""
    from tests.browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Opens pages: `visit(address, **context)`. They are left when the test is over, if they were not before."""
    from tests.browser import visiting

    with visiting(browser) as opened:
        yield opened
