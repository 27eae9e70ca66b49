"""What the shell completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_cli import MAIN
from tests.made_runs import made_run

from longspan.simulator.cli import completion

MARK = "\x1b]0;owned\x07"


def completed(line: str, where: Path, shell: str = "bash") -> list[str]:
    """What a shell is told, for the command line that has been typed."""
    given = {"_LONGSPAN_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    given |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(MAIN, cwd=where, env=os.environ | given, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sho", ["show"]),
        ("run --span 1", ["16k", "120k"]),
        ("run --placement ", ["spread", "uniform", "early"]),
        ("sweep --js", ["--json"]),
        ("list su", ["suites"]),
        ("show runs/o", ["runs/one", "runs/other"]),
        ("show runs/one colours-", ["colours-1", "colours-2"]),
        ("show elsewhere/", ["elsewhere/one"]),
        ("cre", ["cream"]),
        ("cream ar", ["arena"]),
        ("cream arena --js", ["--json"]),
        ("summhay annotate runs/on", ["runs/one"]),
        ("import good", ["goodai-log"]),
        ("calibrate --rubric elitr-t", ["elitr-ten"]),
        ("list schema cream-", ["cream-arena", "cream-reproduce"]),
    ],
)
def test_a_shell_is_told_what_may_follow(typed: str, offered: list[str], tmp_path: Path) -> None:
    for folder, name in (("runs", "one"), ("runs", "other"), ("elsewhere", "one")):
        made_run(tmp_path / folder, "silent", lambda scenario, number: 1.0, name=name, scenarios=("colours", "jokes"), tests=2)
    assert completed(f"longspan {typed}", tmp_path) == offered


def test_a_command_that_has_moved_completes_like_an_unknown_one_without_a_message(tmp_path: Path) -> None:
    assert completed("longspan annotate ", tmp_path) == completed("longspan nothing ", tmp_path)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_in_their_own_way(shell: str, tmp_path: Path) -> None:
    told = "\n".join(completed("longspan run --agent or", tmp_path, shell))
    assert told == ("""_arguments '*: :(("oracle"))'""" if shell == "zsh" else "oracle")


def test_what_is_installed_is_offered() -> None:
    ours = ["beam", "counting-stars", "elitr", "history", "locomo", "longmemeval", "ltm", "memory", "personamem", "reach", "summhay"]
    assert completion.complete_suites("") == ours
    assert completion.complete_suites("ltm+e") == ["ltm+elitr"]
    assert {"notebook", "openai", "python"} <= set(completion.complete_agents(""))
    assert completion.complete_scenarios("colo") == ["colours"]


def test_names_that_a_shell_would_take_for_something_else_are_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("$(touch owned)", "`touch owned`", "a b", "a\nb", "a'b", f"a{MARK}", "*", "plain"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        ids = [{"id": name}, {"id": "jokes-1"}, {"id": 3}]
        (tmp_path / "runs" / name / "manifest.json").write_text(json.dumps({"conversations": {"main": ids}}), "utf-8")
    assert completion.complete_runs("") == ["runs/plain"]


@pytest.mark.parametrize("content", ["{", "[]", '{"conversations": [1]}', '{"conversations": {"main": 3}}', "[" * 100_000])
def test_a_manifest_that_cannot_be_read_offers_nothing(content: str, tmp_path: Path) -> None:
    class Context:
        params = {"run": tmp_path}  # noqa: RUF012

    (tmp_path / "manifest.json").write_text(content, "utf-8")
    assert completion.complete_tests(Context(), "") == []  # type: ignore[arg-type]


def test_completing_imports_nothing_heavy() -> None:
    code = "import sys; from longspan.simulator.cli import main\ntry: main()\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
    given = {"_LONGSPAN_COMPLETE": "complete_bash", "COMP_WORDS": "longspan run --agent o", "COMP_CWORD": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | given, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ollama", "openai", "openrouter", "oracle"]
    assert set(done.stderr.split()).isdisjoint({"trio", "tiktoken", "jinja2", "numpy", "openai", "longspan.simulator.contract.plugins"})
