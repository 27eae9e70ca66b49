"""The recipes for other people's libraries. test_recipes_outside.py runs those whose packages the tests do not need."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.docs_outputs import page_named
from tests import forked


def block(page: str, name: str) -> str:
    """Return the block of a page that begins with a file's name."""
    text = page_named(page).read_text("utf-8")
    (found,) = re.findall(rf"^```\w+\n((?:#|//) {re.escape(name)}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_recipes_are_there_with_the_versions_that_they_were_tried_with() -> None:
    for page, name in (("python.md", "log_to_mlflow.py"), ("python.md", "log_to_wandb.py"), ("connecting.md", "fastapi_agent.py")):
        compile(block(page, name), name, "exec")
    assert "createInterface" in block("connecting.md", "agent.mjs")
    tried = re.findall(r"Tried with (.*)", "".join(page_named(page).read_text("utf-8") for page in ("python.md", "connecting.md")))
    assert len(tried) == 3
    assert all(re.search(r"\d+\.\d+", each) for each in tried)


@pytest.fixture
def fastapi(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "fastapi_agent.py").write_text(block("connecting.md", "fastapi_agent.py"))
    command = [sys.executable, "-m", "uvicorn", "fastapi_agent:app", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        yield f"{address}/"
        server.kill()


def test_an_agent_behind_fastapi_is_ready_for_a_long_run(fastapi: str, tmp_path: Path) -> None:
    done = forked.longspan("check", "--agent", fastapi, where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout
