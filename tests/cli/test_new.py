"""`longspan new`: each project passes its own tests, and its class is played by the name that it registers."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.environments import ROOT, register

from longspan.simulator.cli import main

NAMES = {"scenario": "moved_things", "memory": "shared_words", "agent": "bot2"}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(["new", *arguments])
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def test_each_project_passes_its_tests_and_is_played_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, name in NAMES.items():
        assert run(kind, name) == 0
        register(tomllib.loads((tmp_path / name / "pyproject.toml").read_text("utf-8"))["project"], tmp_path / "site")
        assert {path.name for path in (tmp_path / name).iterdir()} == {"README.md", f"{name}.py", "pyproject.toml", f"test_{name}.py"}
    assert "next    cd shared_words && python -m pytest && longspan check --agent 'memory/python:shared_words:" in capsys.readouterr().out
    path = os.pathsep.join(map(str, (ROOT / "src", tmp_path / "site", *(tmp_path / name for name in NAMES.values()))))
    given = os.environ | {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    commands = [
        ["pytest", "-q", "-p", "no:cacheprovider", *NAMES.values()],
        [
            "longspan",
            "run",
            "--scenario",
            "moved_things",
            "--span",
            "2k",
            "--agent",
            "bot2",
            "--agent",
            "memory/shared_words?answerer=none",
        ],
    ]
    for command in commands:
        done = subprocess.run([sys.executable, "-m", *command], env=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("scenario", "My-Things"),
            "'My-Things' cannot be the name: a name has lower-case letters, digits and single underscores between them,",
        ),
        (("agent", "../up"), "'../up' cannot be the name: a name has lower-case letters, "),
        (("agent", "a_\n"), "'a_\\n' cannot be the name: a name has lower-case letters, "),
        (("memory", "a" * 99), "cannot be the name: a name has lower-case letters, digits and single underscores between them, "),
        (("memory", "bm25"), "'bm25' cannot be the name: there is a memory of this name"),
        (("agent", "oracle"), "'oracle' cannot be the name: there is an agent of this name"),
        (("scenario", "class"), "'class' cannot be the name: it is a keyword of Python"),
        (("scenario", "json"), "'json' cannot be the name: it is the name of another module"),
        (("scenario", "longspan"), "'longspan' cannot be the name: it is the name of another module"),
        (("scenario", "mine", "there"), "there: already exists; name another after the name"),
        (("scenario", "mine", "file/below"), "file/below: cannot create the folder: "),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(
    arguments: tuple[str, ...], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert (problem in said, said.count("\n")) == (True, 1), said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "there"]
