"""The recipes for other people's libraries. test_recipes_outside.py runs those whose packages the tests do not need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.docs_outputs import ROOT, page_named
from tests import forked


def block(page: str, name: str) -> str:
    """Return the block of a page that begins with a file's name."""
    text = page_named(page).read_text("utf-8")
    (found,) = re.findall(rf"^```\w+\n((?:#|//) {re.escape(name)}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


INSPECT = (("inspect.md", "evaluate_memory.py"), ("inspect.md", "memory.py"), ("inspect.md", "test_deepeval.py"))


def test_the_recipes_are_there_with_the_versions_that_they_were_tried_with() -> None:
    for page, name in (
        ("python.md", "log_to_mlflow.py"),
        ("python.md", "log_to_wandb.py"),
        ("connecting.md", "fastapi_agent.py"),
        *INSPECT,
    ):
        compile(block(page, name), name, "exec")
    assert "createInterface" in block("connecting.md", "agent.mjs")
    tried = re.findall(
        r"Tried with (.*)", "".join(page_named(page).read_text("utf-8") for page in ("python.md", "connecting.md", "inspect.md"))
    )
    assert len(tried) == 5
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


def test_promptfoos_functions_play_and_grade_what_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "examples" / "pytest-project" / "bot.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    functions: dict[str, Any] = {}
    exec(block("inspect.md", "memory.py"), functions)  # noqa: S102
    stated = yaml.safe_load(block("inspect.md", "promptfooconfig.yaml"))
    (provider,), (prompt,), (test,) = stated["providers"], stated["prompts"], stated["tests"]
    context = {"vars": test["vars"], "prompt": prompt, "test": test}
    provider["config"]["run"]["seeds"] = 0
    output = functions["call_api"](prompt, {"id": provider["id"], "config": provider["config"]}, context)["output"]
    graded = functions["get_assert"](output, context)
    assert 0.3 <= graded["score"] < 1
    assert graded["pass"] is True
    assert "colours-1: " in graded["reason"]
    assert functions["get_assert"](output, {"vars": {"at_least": 1}})["pass"] is False
    assert sys.modules.pop("bot").__file__ == str(tmp_path / "bot.py")


def test_an_agent_behind_fastapi_is_ready_for_a_long_run(fastapi: str, tmp_path: Path) -> None:
    done = forked.longspan("check", "--agent", fastapi, where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout
