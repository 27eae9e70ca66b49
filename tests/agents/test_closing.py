"""Everything that agents start has ended before the interpreter exits, and what cannot be closed is an exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLAYED = ["--span", "2k", "--tests", "1", "--scenario", "colours"]

COMMAND = """
import sys, threading
sys.path.insert(0, "")
import longspan.agents.outside.loop_thread as loop_thread
from longspan.simulator.cli import main
loop_thread.CLOSE_SECONDS = float(sys.argv.pop(1))
try:
    main()
finally:
    print("left:", *(each.name for each in threading.enumerate() if each.name.startswith(("longspan", "asyncio"))))
"""

PROGRAM = """
import sys
sys.path.insert(0, "")
import longspan
longspan.run("ltm@2k", agent=sys.argv[1], tests=1, scenarios=["colours"], progress=False)
"""

AGENTS = """
import asyncio, threading

class Pooled:
    def invoke(self, sent, config):
        return "OK."

class Tidying:
    tasks = set()
    async def ainvoke(self, sent, config):
        self.tasks.add(asyncio.create_task(self.tidy()))
        return await asyncio.to_thread(lambda: "OK.")
    async def tidy(self):
        try:
            await asyncio.Event().wait()
        finally:
            await self.finish()
            print("tidied")
    async def finish(self):
        await asyncio.sleep(0)

class Threaded(Tidying):
    async def finish(self):
        await asyncio.to_thread(lambda: None)

class Failing(Tidying):
    async def finish(self):
        raise ValueError("no way out")

class Hanging:
    def invoke(self, sent, config):
        threading.Event().wait()

pooled, tidying, threaded, failing, hanging = Pooled(), Tidying(), Threaded(), Failing(), Hanging()

def own_tidying():
    return Tidying()

def own_failing():
    return Failing()

class Unclosed:
    def reply(self, message):
        return "OK."
    def close(self):
        raise ValueError("no way out")
"""


def python(where: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (where / "mine.py").write_text(AGENTS, "utf-8")
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=where, capture_output=True, text=True, check=False, timeout=120)


def run(where: Path, agent: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return python(where, COMMAND, str(seconds), "run", *PLAYED, "--agent", agent)


@pytest.mark.parametrize("name", ["pooled", "threaded", "own_tidying"])
def test_threads_and_tasks_have_ended_before_a_command_exits(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"runnable:mine:{name}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("left:\n")
    assert ("tidied\n" in done.stdout) == (name != "pooled")
    assert "Traceback" not in done.stderr


def test_threads_and_tasks_have_ended_before_a_program_exits(tmp_path: Path) -> None:
    done = python(tmp_path, PROGRAM, "runnable:mine:tidying")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tidied\n" in done.stdout


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("runnable:mine:failing", "runnable:mine: its asyncio loop ended with ValueError: no way out"),
        ("runnable:mine:own_failing", "runnable:mine:own_failing: its asyncio loop ended with ValueError: no way out"),
        ("python:mine:Unclosed", "python:mine:Unclosed: close raised ValueError: no way out (mine.py:{line})"),
    ],
)
def test_what_cannot_be_closed_is_a_line_and_an_exit_code(agent: str, message: str, tmp_path: Path) -> None:
    done = run(tmp_path, agent)
    assert done.returncode == 1
    assert "score 0%" in done.stdout, "the results stay"
    line = AGENTS[: AGENTS.rindex("raise")].count("\n") + 1
    assert done.stderr.count(f"longspan: {message.format(line=line)}\n") == 1
    assert "Traceback" not in done.stderr


def test_a_call_that_never_returns_does_not_keep_the_process(tmp_path: Path) -> None:
    done = run(tmp_path, "runnable:mine:hanging?timeout=0.1", 0.1)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "longspan: runnable:mine:hanging: invoke: no complete answer within 0.1 s; set ?timeout=SECONDS if it needs longer\n"
        "longspan: runnable:mine: its thread did not end: calls or tasks have not returned\n"
    )


@pytest.mark.parametrize(("agent", "code"), [("runnable:mine:tidying", 0), ("runnable:mine:failing", 1), ("python:mine:Unclosed", 1)])
def test_worker_processes_of_a_sweep_end_as_a_command_does(agent: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"agents: [{agent}]\nspans: 2k\nseeds: 0-1\ntests: 1\nscenarios: colours\n", "utf-8")
    done = python(tmp_path, COMMAND, "60", "sweep", "s.yaml", "--out", "out", "--trust", "--jobs", "2")
    assert done.returncode == code, done.stderr
    assert "2 of 2 runs finished" in done.stdout
    assert ("no way out" in done.stderr) == (code == 1)
    assert ("tidied" in done.stdout + done.stderr) == (code == 0)
