"""Benchmarks: they still run, and nothing has become twice as slow."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import gate
from benchmarks.__main__ import main

ROOT = Path(__file__).parents[1]


def test_nothing_has_become_twice_as_slow() -> None:
    found, worse = gate.doubled()
    assert not worse, found


def test_a_benchmark_that_is_twice_as_slow_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    was = {"playing": 2.0, "report": 1.0}
    monkeypatch.setattr(gate, "BASELINES", tmp_path / "baselines.json")
    (tmp_path / "baselines.json").write_text(json.dumps(was))
    monkeypatch.setattr(gate, "TRIES", 3)
    tries = iter([{"playing": 9.0, "report": 2.1}, {"playing": 3.9, "report": 2.2}, {"playing": 8.0, "report": 2.3}])
    monkeypatch.setattr(gate, "ratios", lambda span: next(tries))
    assert gate.doubled() == ({"playing": 3.9, "report": 2.1}, ["report"])
    monkeypatch.setattr(gate, "ratios", lambda span: {"playing": 4.0, "report": 0.1})
    assert gate.doubled()[1] == []


def test_a_benchmark_prints_a_table_and_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(import_module("benchmarks.import"), "RUNS", 1)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "import"])
    main()
    done = capsys.readouterr().out.splitlines()
    found = json.loads(done[-1])
    assert len(done) == len(found) - 1
    assert found["longspan --help: cpu s"] < 1.5
    assert found["all: cpu / tokenizer pass"] > 0


@pytest.mark.parametrize(
    "name",
    [
        "engine",
        "filler",
        "interleaving",
        "llm_path",
        "tests",
        "memory",
        "import",
        "report",
        "wordy",
        "concurrency",
        "telling",
        "local_speed",
    ],
)
def test_benchmarks_have_the_names_in_the_documentation(name: str) -> None:
    assert (ROOT / "benchmarks" / f"{name}.py").is_file()
    assert f"python -m benchmarks {name}" in (ROOT / "docs" / "internals" / "performance.md").read_text("utf-8")
