"""A run made by 0.2, whose conversation followed the agent's replies: it is read as before, and not played again."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result

PACKED = Path(__file__).parent / "made-by-0.2.tar.xz"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "made-by-0.2"


def longspan(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


@pytest.mark.parametrize("command", [["resume"], ["replay"], ["replay", "--agent", "silent"]])
def test_it_is_not_played_again(command: list[str], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert longspan(command[0], run, *command[1:], "--trust") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "made by longspan 0.2.0.dev0" in said
    assert "`longspan score`, `view`, `compare` and `export` read it" in said


def test_it_is_scored_as_it_was(run: Path) -> None:
    was = read_result(RunFolder(run))
    assert longspan("score", run) == 0
    now = read_result(RunFolder(run))
    for of in (lambda test: test.score, lambda test: test.span_used, lambda test: test.certified, lambda test: test.at_distance):
        assert {test.id: of(test) for test in now.tests} == {test.id: of(test) for test in was.tests}
    assert (run / "report.html").exists()


def test_it_is_compared_and_exported_without_being_scored_again(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert longspan("compare", run, run) == 0
    assert longspan("export", run, "--format", "jsonl", "--out", tmp_path / "tables") == 0
    assert "oracle" in capsys.readouterr().out
    turns = [json.loads(line) for line in (tmp_path / "tables" / "turns.jsonl").read_text().splitlines()]
    assert len(turns) == read_result(RunFolder(run)).turns
