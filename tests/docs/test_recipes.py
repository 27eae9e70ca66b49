"""The recipes for other people's libraries are run where these are installed: LONGSPAN_RECIPES names a folder with a virtual environment
`venv` that has mlflow, wandb, fastapi and uvicorn, and with `node_modules` that has ai and @ai-sdk/openai-compatible. CI has none."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from tests.loopback.service import Service
from tests.made_runs import made_run

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def recipes() -> Path:
    where = os.environ.get("LONGSPAN_RECIPES")
    if not where:
        pytest.skip("LONGSPAN_RECIPES names no folder with the recipes' packages")
    return Path(where).resolve()


def block(page: str, name: str) -> str:
    """Return the block of a page that begins with a file's name."""
    text = (DOCS / page).read_text("utf-8")
    (found,) = re.findall(rf"^```\w+\n((?:#|//) {re.escape(name)}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_recipes_are_there_with_the_versions_that_they_were_tried_with() -> None:
    for page, name in (("python.md", "log_to_mlflow.py"), ("python.md", "log_to_wandb.py"), ("connecting.md", "fastapi_agent.py")):
        compile(block(page, name), name, "exec")
    assert "createInterface" in block("connecting.md", "agent.mjs")
    tried = re.findall(r"Tried with (.*)", "".join((DOCS / page).read_text("utf-8") for page in ("python.md", "connecting.md")))
    assert len(tried) == 3
    assert all(re.search(r"\d+\.\d+", each) for each in tried)


@pytest.mark.parametrize("name", ["log_to_mlflow.py", "log_to_wandb.py"])
def test_results_are_logged_without_longspan_and_without_a_network(name: str, recipes: Path, tmp_path: Path) -> None:
    for seed in range(2):
        run = made_run(tmp_path / "runs", "notebook", lambda scenario, number: 0.5, seed=seed, scenarios=("colours", "jokes"))
        (run / "report.html").write_text("<!doctype html>")
    (tmp_path / name).write_text(block("python.md", name))
    kept = {"WANDB_SILENT": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "HOME": str(tmp_path)}
    python = recipes / "venv" / "bin" / "python"
    subprocess.run([python, name, "runs"], cwd=tmp_path, env=os.environ | kept, check=True, capture_output=True, text=True)
    if name == "log_to_wandb.py":
        assert len(list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))) == 2
        return
    asked = (
        "import mlflow; mlflow.set_tracking_uri('sqlite:///mlflow.db'); found = mlflow.search_runs(experiment_names=['longspan']); "
        "print(sorted(zip(found['params.seed'], found['metrics.share'], found['metrics.scenario/jokes'])))"
    )
    done = subprocess.run([python, "-c", asked], cwd=tmp_path, env=os.environ | kept, check=True, capture_output=True, text=True)
    assert done.stdout.strip().splitlines()[-1] == "[('0', 0.5, 0.5), ('1', 0.5, 0.5)]"


@pytest.fixture
def fastapi(recipes: Path, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "fastapi_agent.py").write_text(block("connecting.md", "fastapi_agent.py"))
    command = [recipes / "venv" / "bin" / "uvicorn", "fastapi_agent:app", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        yield f"{address}/"
        server.kill()


def test_an_agent_behind_fastapi_is_ready_for_a_long_run(fastapi: str, tmp_path: Path) -> None:
    done = forked.longspan("check", "--agent", fastapi, where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout


def test_an_agent_with_the_ai_sdk_is_ready_for_a_long_run(recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def say(body: dict[str, Any]) -> tuple[int, bytes]:
        message = {"role": "assistant", "content": f"Noted: {body['messages'][-1]['content']}"[:200]}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}
        return 200, json.dumps(answer).encode()

    (tmp_path / "agent.mjs").write_text(block("connecting.md", "agent.mjs"))
    (tmp_path / "node_modules").symlink_to(recipes / "node_modules")
    with Service(say).running() as service:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        done = forked.longspan("check", "--agent", "exec:node agent.mjs some-model", where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout
    assert "11 + 7 tokens as the agent counts" in done.stdout
