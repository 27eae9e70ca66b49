"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_is_clean() -> None:
    done = run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_mypy_strict_is_clean() -> None:
    done = run(sys.executable, "-m", "mypy")
    assert done.returncode == 0, done.stdout


def imports(package: str) -> list[tuple[Path, str]]:
    """Every module that a package's modules import, with the file that does."""
    found = []
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found += [(path, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found.append((path, node.module or ""))
    return found


def test_the_engine_imports_neither_scenarios_nor_agents() -> None:
    assert [(path, name) for path, name in imports("simulator") if name.startswith(("longspan.scenarios", "longspan.agents"))] == []


def test_scenarios_see_neither_agents_nor_what_plays_them() -> None:
    engine = (
        "agent",
        "agent_spec",
        "clock",
        "conductor",
        "conversation",
        "grading.grades",
        "journal",
        "manifest",
        "plugins",
        "runner",
        "suite",
    )
    forbidden = {"time", "trio", *(f"longspan.simulator.{name}" for name in engine)}
    assert [(path, name) for path, name in imports("scenarios") if name in forbidden or name.startswith("longspan.agents")] == []


def test_every_dependency_is_pinned_and_no_address_is_in_the_constraints() -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    assert "://" not in constraints
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in constraints.splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {each.partition("[")[0].partition(">")[0].partition("=")[0].lower() for each in wanted} - {"longspan"}
    assert names <= pinned


@pytest.mark.parametrize(("statement", "limit"), [("import longspan", 12), ("from longspan.simulator.cli import app", 250)])
def test_heavy_things_are_imported_late(statement: str, limit: int) -> None:
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    loaded = set(run(sys.executable, "-c", code).stdout.split())
    assert loaded.isdisjoint({"trio", "tiktoken", "pydantic", "jinja2", "numpy", "scipy", "matplotlib"})
    assert len(loaded) < limit
