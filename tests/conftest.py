"""Fixtures for all tests, and a way to skip tests that CI does not allow."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.attack import ALL, TRIED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser import Open

# NumPy's threads spin while they wait for work, and the workers need the processors. Set before NumPy is imported; a command sets its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What is imported and collected stays: to search it for garbage meanwhile would find nothing, and take a third of the time.
gc.disable()

# Property-based tests use the same examples each time, so that a failure means a change. `explore` uses others.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")

PEER_DATA = Path(os.environ.get("LONGSPAN_PEER_DATA") or Path(__file__).parents[1] / ".." / "shared" / "data")


LONGEST = (
    *("scenarios/reach/test_reach_results.py", "simulator/test_sweep.py", "docs/test_docs.py", "scenarios/test_chance.py"),
    *("scenarios/test_wordings.py", "agents/test_local.py", "agents/test_gguf.py", "durability/test_crash.py", "durability/test_faults.py"),
    *("scenarios/test_every.py", "scenarios/histories/test_rules.py", "scenarios/test_inverted.py", "report/test_against.py"),
    *("cli/test_streams.py", "test_house.py", "test_ltm.py", "view/test_server.py", "test_benchmarks.py", "test_extras.py"),
    *("durability/test_memory_crash.py", "test_packaging.py", "api/test_pytest_plugin.py", "agents/test_apis.py"),
    *("scenarios/test_sally_anne.py", "agents/test_mcp.py", "agents/test_ltm.py", "simulator/test_ray.py", "test_wording.py"),
    *("report/test_browser.py", "view/test_browser.py", "cli/test_cli.py", "simulator/test_controls.py"),
)
"""The files that take longest, which begin first: a worker that begins one last has the others wait for it."""


def skip(reason: str) -> None:
    """Skip the current test, or fail it if nothing may be skipped (LONGSPAN_REQUIRE_ALL=1, as in CI)."""
    if os.environ.get("LONGSPAN_REQUIRE_ALL") == "1":
        pytest.fail(f"LONGSPAN_REQUIRE_ALL=1 and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def goodai() -> Path:
    """The folder of the GoodAI benchmark's published data."""
    folder = (PEER_DATA / "goodai-ltm").resolve()
    if not folder.is_dir():
        skip(f"there is no published data at {PEER_DATA}; set LONGSPAN_PEER_DATA to its folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Separate folders for the cache and for trusted plugins, so that tests do not use the user's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LONGSPAN_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patched.setenv("LONGSPAN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def openai_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API key for servers that do not check it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium. Playwright allows only one for all tests."""
    from tests.browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """A function `visit(address, **context)` that opens pages. Pages still open at the end of the test are closed."""
    from tests.browser import visiting

    with visiting(browser) as opened:
        yield opened


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the longest files to the front."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among what was collected."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the numbers of attacks from a worker of xdist to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["attacks"] = dict(TRIED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TRIED.update(getattr(node, "workeroutput", {}).get("attacks", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many attacks were tried."""
    if TRIED:
        size = "all of them" if ALL else "a tenth of them; LONGSPAN_ATTACK=all tries all"
        terminalreporter.section(f"attacks tried ({size})")
        for kind, count in sorted(TRIED.items()):
            terminalreporter.line(f"{count:7,} {kind}")
        terminalreporter.line(f"{TRIED.total():7,} in all")
