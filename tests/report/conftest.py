"""Runs shared by the tests of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.pages import Page, played, report


@pytest.fixture(scope="session")
def woven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two scenarios in one conversation, all answered correctly."""
    return played(tmp_path_factory.mktemp("woven"), "colours", "prospective_memory")


@pytest.fixture(scope="session")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two conversations with an agent that knows nothing."""
    return played(tmp_path_factory.mktemp("isolated"), "colours", agent="silent", isolated=True)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run with several kinds of test and mixed scores."""
    folder = played(tmp_path_factory.mktemp("mixed"), "colours", "jokes", "shopping", "prospective_memory", agent="notebook", tests=1)
    return folder / "report.html"


@pytest.fixture(scope="session")
def page(woven: Path) -> Page:
    return report(woven)
