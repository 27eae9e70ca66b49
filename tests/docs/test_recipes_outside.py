"""Recipes for libraries that the tests do not need: MLflow, Weights & Biases, and the AI SDK.

Collected only if LONGSPAN_RECIPES names a folder with a virtual environment `venv` that has mlflow and wandb, and with `node_modules` that
has ai and @ai-sdk/openai-compatible.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from tests.docs.test_recipes import block
from tests.loopback.service import Service
from tests.made_runs import made_run

RECIPES = Path(os.environ["LONGSPAN_RECIPES"]).resolve()


@pytest.mark.parametrize("name", ["log_to_mlflow.py", "log_to_wandb.py"])
def test_results_are_logged_without_longspan_and_without_a_network(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        run = made_run(tmp_path / "runs", "notebook", lambda scenario, number: 0.5, seed=seed, scenarios=("colours", "jokes"))
        (run / "report.html").write_text("<!doctype html>")
    (tmp_path / name).write_text(block("python.md", name))
    kept = {"WANDB_SILENT": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "HOME": str(tmp_path)}
    python = RECIPES / "venv" / "bin" / "python"
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


def test_an_agent_with_the_ai_sdk_is_ready_for_a_long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def say(body: dict[str, Any]) -> tuple[int, bytes]:
        message = {"role": "assistant", "content": f"Noted: {body['messages'][-1]['content']}"[:200]}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}
        return 200, json.dumps(answer).encode()

    (tmp_path / "agent.mjs").write_text(block("connecting.md", "agent.mjs"))
    (tmp_path / "node_modules").symlink_to(RECIPES / "node_modules")
    with Service(say).running() as service:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        done = forked.longspan("check", "--agent", "exec:node agent.mjs some-model", where=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready for a long run" in done.stdout
    assert "11 + 7 tokens as the agent counts" in done.stdout
