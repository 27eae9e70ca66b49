"""Runs that several tests of the view look at, and a server that shows them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.pages import played
from tests.view.serving import Server, serving


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: of two agents, and one in which each test had a conversation of its own."""
    folder = tmp_path_factory.mktemp("runs")
    played(folder, "colours", "jokes", agent="oracle")
    played(folder, "colours", "jokes", agent="silent")
    played(folder, "colours", agent="silent", isolated=True)
    return folder


@pytest.fixture(scope="session")
def server(made: Path) -> Iterator[Server]:
    with serving(made) as found:
        yield found


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of these runs, to be damaged."""
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


ORACLE = "ltm-2k-oracle-seed0"
SILENT = "ltm-2k-silent-seed0"
ISOLATED = "ltm-2k-isolated-silent-seed0"
