"""Runs shared by the tests of the view, and a server that shows them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.pages import played
from tests.view.serving import Server, serving


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of two agents, and one with isolated tests."""
    folder = tmp_path_factory.mktemp("runs")
    played(folder, "colours", "jokes", agent="oracle")
    played(folder, "colours", "jokes", agent="silent")
    played(folder, "colours", agent="silent", isolated=True)
    return folder


@pytest.fixture(scope="session")
def server(made: Path) -> Iterator[Server]:
    with serving(made) as server:
        yield server


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of these runs that a test may damage."""
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


ORACLE = "ltm-2k-oracle-seed0"
SILENT = "ltm-2k-silent-seed0"
ISOLATED = "ltm-2k-isolated-silent-seed0"
