"""User code that ends its process: `os._exit`, SystemExit and crashes, in processes of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longspan.simulator.journal.run_folder import RunFolder

MAIN = [sys.executable, "-c", "from longspan.simulator.cli import main; main()"]

ENDING = """
import asyncio, ctypes, os, sys, threading

def end(how):
    if how == "exit": os._exit(3)
    if how == "success": os._exit(0)
    if how == "system": sys.exit(0)
    if how == "crash": ctypes.string_at(0)
    if how == "thread":
        thread = threading.Thread(target=lambda: os._exit(0))
        thread.start()
        thread.join()
    if how == "fork":
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

class Memory:
    def __init__(self, at="", how=""):
        self.at, self.how, self.kept = at, how, []
    def add(self, turns, at):
        if self.at == "add" and len(self.kept) > 2:
            end(self.how)
        self.kept += turns
    def search(self, query, k, at):
        if self.at == "search" and len(self.kept) > 2:
            end(self.how)
        return [{"text": turn.document, "turns": [turn.turn_id]} for turn in self.kept[-k:]]

class Agent:
    def __init__(self, how=""):
        self.turns, self.how = 0, how
    async def reply(self, message):
        self.turns += 1
        if self.turns == 3 and not os.path.exists("mended"):
            if self.how == "task":
                self.task = asyncio.create_task(self.end_later())
                await asyncio.Event().wait()
            end(self.how)
        return "I see."
    async def end_later(self):
        os._exit(0)
"""

LINES = ENDING.splitlines()
EXIT, SUCCESS, SYSTEM, CRASH, THREAD = (
    1 + LINES.index(f"    {text}")
    for text in (
        'if how == "exit": os._exit(3)',
        'if how == "success": os._exit(0)',
        'if how == "system": sys.exit(0)',
        'if how == "crash": ctypes.string_at(0)',
        "    thread = threading.Thread(target=lambda: os._exit(0))",
    )
)
TASK = len(LINES)
WARNING = "which would end longspan; raise an exception instead"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ending.py").write_text(ENDING)
    return tmp_path


def longspan(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([*MAIN, *arguments], cwd=where, env=environment, capture_output=True, text=True, check=False)


def play(where: Path, agent: str) -> tuple[int, str]:
    """Play a run with an agent. Return the exit code and the last line on standard error."""
    done = longspan(where, "run", "--scenario", "colours", "--tests", "1", "--span", "1k", "--agent", agent, "--out", "runs")
    return done.returncode, done.stderr.splitlines()[-1] if done.stderr else ""


@pytest.mark.parametrize(
    ("agent", "what"),
    [
        (
            "memory/python:ending:Memory?answerer=words&at=add&how=exit",
            f"add raised HardExitError: it called os._exit(3), {WARNING} (ending.py:{EXIT})",
        ),
        (
            "memory/python:ending:Memory?answerer=words&at=search&how=exit",
            f"search raised HardExitError: it called os._exit(3), {WARNING} (ending.py:{EXIT})",
        ),
        ("memory/python:ending:Memory?answerer=words&at=add&how=system", f"add raised SystemExit: 0 (ending.py:{SYSTEM})"),
        ("python:ending:Agent?how=success", f"reply raised HardExitError: it called os._exit(0), {WARNING} (ending.py:{SUCCESS})"),
        ("python:ending:Agent?how=system", f"reply raised SystemExit: 0 (ending.py:{SYSTEM})"),
    ],
)
def test_code_that_ends_the_process_in_a_call_is_a_failure_of_the_agent(folder: Path, agent: str, what: str) -> None:
    code, line = play(folder, agent)
    assert code == 1
    assert line.endswith(what)
    assert line.startswith("longspan: ")
    assert agent.partition("?")[0] in line


@pytest.mark.parametrize(("agent", "at"), [("python:ending:Agent?how=thread", THREAD), ("python:ending:Agent?how=task", TASK)])
def test_a_thread_or_task_that_ends_the_process_is_named_and_the_run_is_resumed(folder: Path, agent: str, at: int) -> None:
    code, line = play(folder, agent)
    assert code == 1
    assert line == f"longspan: os._exit(0) was called at ending.py:{at}, which ends longspan; `longspan resume` continues a run"
    (run,) = folder.glob("runs/*")
    before = RunFolder(run).journal("main").read_bytes()
    (folder / "mended").touch()
    assert longspan(folder, "resume", str(run), "--trust", "--yes").returncode == 0
    assert RunFolder(run).journal("main").read_bytes().startswith(before)


def test_a_forked_process_may_end_as_it_likes(folder: Path) -> None:
    assert play(folder, "memory/python:ending:Memory?answerer=words&at=add&how=fork")[0] == 0


def test_a_crash_in_native_code_shows_the_line_that_ran(folder: Path) -> None:
    done = longspan(folder, "run", "--scenario", "colours", "--tests", "1", "--span", "1k", "--agent", "python:ending:Agent?how=crash")
    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr
    assert f'ending.py", line {CRASH} in end' in done.stderr


@pytest.mark.parametrize(
    ("how", "why", "line"),
    [
        ("success", "reply raised HardExitError: it called os._exit(0), which would end longspan", SUCCESS),
        ("thread", " ended with exit code 1", THREAD),
    ],
)
def test_a_sweep_reports_the_run_whose_agent_ends_its_process(folder: Path, how: str, why: str, line: int) -> None:
    agents = [f"python:ending:Agent?how={how}", "oracle", "silent"]
    (folder / "s.yaml").write_text(json.dumps({"scenarios": ["colours"], "tests": 1, "spans": ["1k"], "agents": agents}))
    done = longspan(folder, "sweep", "s.yaml", "--trust", "--jobs", "2")
    assert done.returncode == 1
    assert "2 of 3 runs finished" in done.stdout
    assert why in done.stderr
    assert f"ending.py:{line}" in done.stderr
