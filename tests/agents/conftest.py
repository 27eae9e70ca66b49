"""Fixtures for tests of agents: installed kinds of agent, modules with users' classes, and a fake server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.loopback import Server

collect_ignore = [] if "LONGSPAN_PROTOCOLS" in os.environ else ["test_protocol_sdks.py"]

Install = Callable[[str, dict[str, str]], None]

OURS = {
    "oracle": "longspan.agents.reference.oracle:Oracle",
    "silent": "longspan.agents.reference.silent:Silent",
    "stateless": "longspan.agents.reference.stateless:Stateless",
    "notebook": "longspan.agents.reference.notebook:Notebook",
    "python": "longspan.agents.outside.python:PythonAgent",
    "runnable": "longspan.agents.outside.runnable:RunnableAgent",
    "http": "longspan.agents.outside.http:HttpAgent",
    "https": "longspan.agents.outside.http:HttpsAgent",
    "exec": "longspan.agents.outside.exec:ExecAgent",
    "human": "longspan.agents.outside.human:Human",
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution that registers kinds of agent. It hides an installed one of the same name.

    longspan's own kinds are registered, whether or not it is installed.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(distribution: str, kinds: dict[str, str]) -> None:
        folder = site / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{kind} = {value}" for kind, value in kinds.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[longspan.agents]", *lines]) + "\n")

    install("longspan", OURS)
    return install


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that writes a module into a new current folder and returns its name, a new one each time."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("sys.path", list(sys.path))
    names = iter(f"user_{abs(hash(str(tmp_path)))}_{n}" for n in range(100))

    def write(source: str) -> str:
        name = next(names)
        (here / f"{name}.py").write_text(source)
        return name

    return write


@pytest.fixture
def server() -> Iterator[Server]:
    """A fake server that speaks the vendors' APIs."""
    with Server(reply=lambda text: f"re: {text[-20:]}").running() as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries of failed requests almost immediate."""
    monkeypatch.setattr("longspan.agents.models.limits.FIRST_PAUSE", 0.001)
