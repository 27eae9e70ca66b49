"""The tables of real models: the script's sweep can be played, and its tables have the figures of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scripts.results import AGENTS, PARTS, Key, key_of, spec, sweep, tables
from tests.tiny_gguf import write_model

import longspan
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.running.sweeps.sweep import plans_of, read_sweep

ROOT = Path(__file__).parents[2]


def test_the_sweep_has_each_part_with_each_memory_and_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples" / "hybrid")
    model = f"gguf/{write_model(tmp_path / 'tiny.gguf')}"
    file = tmp_path / "results.yaml"
    file.write_text(yaml.safe_dump(sweep({"tiny": model}, {"threads": "1"}, None)), "utf-8")
    grids, contrasts = read_sweep(file)
    assert contrasts is None
    names = plans_of(grids[:2], tmp_path)
    assert len(names) == 1 + len(AGENTS) * 3, "the long run, and the first part"
    assert len(grids) == len(PARTS), "the long run, and the parts but LoCoMo, whose file was not named"


def test_the_tables_have_the_figures_of_the_runs(tmp_path: Path) -> None:
    words = {"words": "words"}  # a reader by words answers in a model's place
    agents = [spec(agent, "words", {}) for agent in ("full", "BM25")]
    played = longspan.run("ltm", span="2k", agent=agents, seeds=[0, 1], out=tmp_path, scenarios=["colours"], tests=1)
    runs = [RunFolder(folder) for folder in played.folders]
    assert key_of(runs[0], words, {}) == Key("`ltm` at 2k, woven", "full", "words")
    page = tables(tmp_path, words, {})
    for agent in ("full", "BM25"):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {agent} |")]
        scores = [read_result(run).score_bounds[0] for run in runs if run.manifest.agent == spec(agent, "words", {})]
        assert f"{sum(scores) / 2:.2f} ({min(scores):.2f} to {max(scores):.2f})" in row
    assert "| recent |" not in page
    assert page.count("### ") == 1
