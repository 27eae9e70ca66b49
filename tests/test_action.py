"""action.yml: its steps as they stand, run by bash as GitHub runs them, on a sample repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import longspan

ROOT = Path(__file__).parents[1]

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

BOT = (ROOT / "examples" / "pytest-project" / "bot.py").read_text(encoding="utf-8")

FORGETFUL = """

class Forgetful(DiaryBot):
    def __init__(self):
        super().__init__(pages=0)
"""

HOSTILE = ['"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "x\ntouch pwned\n", "--help", "* ~ 'x' ${IFS}", "]; touch pwned"]


class Runner:
    """A runner of GitHub Actions with one checked-out repository. It ran the steps in `ran`."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.programs, self.repository, self.temporary = folder / "bin", folder / "repository", folder / "runner"
        for each in (self.programs, self.repository, self.temporary):
            each.mkdir()
        self.inputs = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | inputs
        self.event = "pull_request"
        self.ran: list[str] = []
        self.said = ""

    def install(self, program: str, script: str) -> None:
        """Put a program on PATH."""
        path = self.programs / program
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def read(self, name: str) -> str:
        """Return a file that steps wrote for the runner, such as the summary."""
        path = self.temporary / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def called(self, program: str) -> list[list[str]]:
        """Return the arguments of each call of a recording program."""
        return [call.split("\0") for call in self.read(f"{program}.calls").split("\0\0\0")[:-1]]

    def run(self, *leave_out: str) -> int:
        """Run the steps until one fails. Return the exit code."""
        outputs: dict[str, str] = {}
        for step in ACTION["runs"]["steps"]:
            if step["name"] in leave_out or not self._wants(step.get("if")):
                continue
            assert step["shell"] == "bash"
            script = self.temporary / "script.sh"
            script.write_text(step["run"], encoding="utf-8")
            environment = {name: self._fill(value, outputs) for name, value in step.get("env", {}).items()}
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
                cwd=self.repository / self._fill(step.get("working-directory", "."), outputs),
                env=self._github() | environment,
                capture_output=True,
                text=True,
                check=False,
            )
            self.ran.append(step["name"])
            self.said += ended.stdout + ended.stderr
            if ended.returncode:
                return ended.returncode
            outputs |= dict(line.split("=", 1) for line in self.read("output").splitlines())
        return 0

    def _github(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
        return kept | {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_JOB": "memory",
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "GITHUB_REPOSITORY": "someone/bot",
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "GITHUB_WORKFLOW": "memory",
            "RUNNER_TEMP": str(self.temporary),
        }

    def _wants(self, condition: str | None) -> bool:
        assert condition in (None, "inputs.comment == 'true' && github.event_name == 'pull_request'")
        return condition is None or (self.inputs["comment"] == "true" and self.event == "pull_request")

    def _fill(self, text: str, outputs: Mapping[str, str]) -> str:
        """Fill in expressions, as GitHub does in `env` and `working-directory`."""
        values = {f"inputs.{name}": value for name, value in self.inputs.items()}
        values |= {f"steps.compare.outputs.{name}": value for name, value in outputs.items()}
        values |= {"github.token": "secret", "github.event.pull_request.number": "7"}
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)


RECORD = r"""printf '%s\0' "$@" >> "$RUNNER_TEMP/{0}.calls"; printf '\0\0' >> "$RUNNER_TEMP/{0}.calls" """


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The diary's runs. Only the files that a repository needs are left."""
    made: dict[str, Any] = {}
    exec(BOT, made)  # noqa: S102
    folder = tmp_path_factory.mktemp("action") / "baseline"
    longspan.run(agent=made["DiaryBot"], span="2k", scenarios="colours", seeds="0-4", out=folder)
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("manifest.json", "result.json"):
            path.unlink()
    return folder


def play(runner: Runner, agent: str, baseline: Path) -> int:
    """Play an agent that the repository's module defines, and compare it with the baseline."""
    runner.inputs |= {"agent": f"python:bot:{agent}", "scenarios": "colours", "span": "2k", "seeds": "0-4", "comment": "true"}
    runner.inputs |= {"baseline": "baseline"}
    runner.install("longspan", f'exec {shlex.quote(sys.executable)} -m longspan "$@"')
    (runner.repository / "bot.py").write_text(BOT + FORGETFUL, encoding="utf-8")
    shutil.copytree(baseline, runner.repository / "baseline")
    return runner.run("Install longspan")


def test_the_same_agent_passes_and_the_summary_becomes_a_comment(tmp_path: Path, baseline: Path) -> None:
    runner = Runner(tmp_path)
    runner.install("gh", RECORD.format("gh"))
    assert play(runner, "DiaryBot", baseline) == 0, runner.said
    assert runner.ran == ["Play", "Compare", "Comment", "Gate"]
    summary = runner.read("summary")
    assert summary.startswith("not shown to be worse than the baseline: ")
    assert "\n| colours | " in summary
    looked, posted = runner.called("gh")
    assert looked[:3] == ["api", "--paginate", "repos/someone/bot/issues/7/comments"]
    assert posted[:4] == ["api", "--method", "POST", "repos/someone/bot/issues/7/comments"]
    assert posted[-2:] == ["--field", f"body=@{runner.temporary}/longspan-comment.md"]
    assert runner.read("longspan-comment.md") == f"<!-- longspan: memory, memory, longspan-runs -->\n\n{summary}"


def test_a_worse_agent_fails_after_its_comment_was_updated(tmp_path: Path, baseline: Path) -> None:
    runner = Runner(tmp_path)
    runner.install("gh", f"{RECORD.format('gh')}\n[[ $* == *--paginate* ]] && printf '%s\\n' 41 42 || true")
    assert play(runner, "Forgetful", baseline) == 1, runner.said
    assert runner.ran[-1] == "Gate"
    assert runner.read("summary").startswith("worse than the baseline: ")
    assert runner.called("gh")[1][:4] == ["api", "--method", "PATCH", "repos/someone/bot/issues/comments/41"]


def test_hostile_inputs_reach_longspan_as_they_are_and_no_shell(tmp_path: Path) -> None:
    for number, hostile in enumerate(HOSTILE):
        folder = tmp_path / str(number)
        folder.mkdir()
        runner = Runner(folder, **{name: hostile for name in ACTION["inputs"] if name not in ("working-directory", "comment", "baseline")})
        (runner.repository / "baseline").mkdir()
        runner.inputs |= {"comment": "true", "baseline": "baseline"}
        for program in ("python", "longspan", "gh"):
            runner.install(program, RECORD.format(program))
        assert runner.run() == 0, runner.said
        assert not [*folder.rglob("pwned")]
        assert not [*tmp_path.glob("pwned")]
        (installed,) = runner.called("python")
        assert installed == ["-m", "pip", "install", "--quiet", f"{ROOT}[{hostile}]"]
        played, compared = runner.called("longspan")
        scenarios = [f"--scenario={line.strip()}" for line in hostile.splitlines() if line.strip()]
        options = [f"--{name}={hostile}" for name in ("agent", "seed", "out", "span", "replies")]
        assert played == ["run", *options, *scenarios, "--", hostile]
        gate = ["--baseline=baseline", f"--margin={hostile}", "--fail-if-worse"]
        assert compared == ["compare", "--brief", "--format=markdown", *gate, "--", hostile]
        assert hostile in runner.read("longspan-comment.md")
        assert "could not compare" in runner.read("summary")
    assert not any("${{" in step["run"] for step in ACTION["runs"]["steps"])


def test_the_guide_describes_each_input_and_its_workflow_uses_them() -> None:
    text = (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8")
    section = text.partition("\n## GitHub Actions\n")[2].partition("\nWithout the action")[0]
    workflow = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    (used,) = (step["with"] for step in workflow["jobs"]["memory"]["steps"] if "longspan@" in step.get("uses", ""))
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= used.keys() <= ACTION["inputs"].keys()
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)} == ACTION["inputs"].keys()


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"baseline": "nowhere"}, 2, "the input baseline is no folder"),
        ({"out": "."}, 2, "the folder of the input out exists already"),
        ({}, 0, "| agent |"),
    ],
)
def test_without_a_baseline_the_summary_shows_the_scores(tmp_path: Path, inputs: dict[str, str], code: int, said: str) -> None:
    runner = Runner(tmp_path, agent="silent", comment="true", **inputs)
    runner.install("longspan", 'echo "| agent |"')
    runner.install("gh", "exit 1")
    assert runner.run("Install longspan") == code
    assert said in runner.said
    assert ("::warning::longspan could not comment" in runner.said) == (code == 0)
