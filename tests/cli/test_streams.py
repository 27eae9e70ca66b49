"""Results go to standard output and progress to standard error, whether they are terminals or not.

With --json, standard output has one JSON value and nothing else."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Literal

import pytest
from tests.schemas import check_output

PRINTING = """
import os, subprocess, sys
from longspan import Reply, Usage
print("imported")

class Talker:
    def reply(self, message):
        print("asked")
        subprocess.run([sys.executable, "-c", "print('in a process')"])
        os.write(1, b"written\\n")
        return "OK."

class Failing(Talker):
    def __init__(self, after="4"):
        self.left = int(after)
    def reply(self, message):
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("the line is dead")
        return super().reply(message)

class Stopping(Failing):
    def reply(self, message):
        if self.left == 1:
            os.kill(os.getpid(), 2)
        self.left -= 1
        return "OK."

class Spending:
    def reply(self, message):
        return Reply("OK.", usage=Usage(input_tokens=100, output_tokens=2))
"""

Stream = Literal["pipe", "terminal"]


def read_to_end(descriptor: int, into: list[bytes]) -> None:
    while True:
        try:
            read = os.read(descriptor, 1 << 16)
        except OSError:  # how the end of a terminal is told
            return
        if not read:
            return
        into.append(read)


def longspan(*arguments: str, where: Path, out: Stream, err: Stream) -> tuple[int, str, str]:
    """Run a command with each stream a pipe or a terminal. Return its exit code and what it wrote to them."""
    ends = [pty.openpty() if stream == "terminal" else os.pipe() for stream in (out, err)]
    start = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(where), *sys.path]), "TERM": "xterm"}
    process = subprocess.Popen(start, cwd=where, stdin=subprocess.DEVNULL, stdout=ends[0][1], stderr=ends[1][1], env=environment)
    read: list[list[bytes]] = [[], []]
    readers = [Thread(target=read_to_end, args=(end, into)) for (end, _), into in zip(ends, read, strict=True)]
    for (_, writing), reader in zip(ends, readers, strict=True):
        os.close(writing)
        reader.start()
    code = process.wait(timeout=120)
    for (reading, _), reader in zip(ends, readers, strict=True):
        reader.join()
        os.close(reading)
    written, complained = (b"".join(each).decode().replace("\r\n", "\n") for each in read)
    return code, written, complained


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    (tmp_path / "talker.py").write_text(PRINTING)
    agents = "agents: ['python:talker:Talker', oracle]"
    (tmp_path / "s.yaml").write_text(f"scenarios: [colours]\ntests: 1\nspans: [2k]\nseeds: [0, 1]\n{agents}\n")
    return tmp_path


RUN = ("run", "--scenario", "colours", "--tests", "1", "--agent")
COMMANDS = {
    "run": (*RUN, "python:talker:Talker"),
    "sweep": ("sweep", "s.yaml", "--trust"),
    "sweep --jobs": ("sweep", "s.yaml", "--trust", "--jobs", "2"),
    "check": ("check", "--agent", "python:talker:Talker"),
    "estimate": ("estimate", *RUN[1:], "python:talker:Talker"),
}


@pytest.mark.parametrize(("out", "err"), [("pipe", "pipe"), ("pipe", "terminal"), ("terminal", "terminal"), ("terminal", "pipe")])
@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_alone_on_standard_output(command: str, out: Stream, err: Stream, workshop: Path) -> None:
    code, printed, complained = longspan(*COMMANDS[command], "--json", where=workshop, out=out, err=err)
    assert code == 0, complained
    assert check_output(command.split()[0], printed)
    assert "in a process" in complained or command == "estimate"
    assert "imported" in complained


@pytest.mark.parametrize(("out", "err"), [("pipe", "pipe"), ("pipe", "terminal"), ("terminal", "terminal")])
@pytest.mark.parametrize("json_", [(), ("--json",)], ids=["tables", "json"])
def test_progress_is_on_standard_error_and_results_are_not(json_: tuple[str, ...], out: Stream, err: Stream, workshop: Path) -> None:
    code, printed, complained = longspan(*RUN, "oracle", *json_, where=workshop, out=out, err=err)
    assert code == 0
    progress = "elapsed" if err == "terminal" else "1 test to play"
    result = '"score": 1.0' if json_ else "report.html"
    assert (progress in complained, progress in printed) == (True, False)
    assert (result in complained, result in printed) == (False, True)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_fails_prints_what_was_played(jobs: str, workshop: Path) -> None:
    code, printed, complained = longspan(*RUN, "python:talker:Failing", "--json", where=workshop, out="pipe", err="pipe")
    assert (code, [each["score"] for each in check_output("run", printed)]) == (1, [None])
    assert "the line is dead" in complained
    (workshop / "t.yaml").write_text((workshop / "s.yaml").read_text().replace("Talker", "Failing"))
    code, printed, _ = longspan("sweep", "t.yaml", "--trust", "--jobs", jobs, "--json", where=workshop, out="pipe", err="pipe")
    assert code == 1
    assert sorted(each["score"] is None for each in check_output("sweep", printed)) == [False, False, True, True]


def test_a_run_that_reaches_a_limit_prints_what_was_played(workshop: Path) -> None:
    limited = (*RUN, "python:talker:Spending", "--max-tokens-total", "500", "--json")
    code, printed, complained = longspan(*limited, where=workshop, out="pipe", err="pipe")
    assert (code, [each["score"] for each in check_output("run", printed)]) == (130, [None])
    assert "exceed the limit of 500" in complained


def test_an_interrupted_run_prints_what_was_played(workshop: Path) -> None:
    code, printed, complained = longspan(*RUN, "python:talker:Stopping", "--json", where=workshop, out="pipe", err="pipe")
    assert code == 128 + signal.SIGINT
    (result,) = check_output("run", printed)
    assert [test["status"] for test in result["tests"]] == ["unfinished"]
    assert "stopping after the current turn" in complained


@pytest.mark.parametrize("arguments", [(*RUN, "nobody"), ("show", "nowhere"), ("list", "runs", "nowhere")], ids=" ".join)
def test_wrong_input_prints_nothing(arguments: tuple[str, ...], workshop: Path) -> None:
    code, printed, complained = longspan(*arguments, "--json", where=workshop, out="pipe", err="pipe")
    assert (code, printed) == (2, "")
    assert complained.startswith("longspan: ")


def test_a_pipe_that_is_closed_is_no_traceback(workshop: Path) -> None:
    """As in `longspan list scenarios --json | true`."""
    start = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", "list", "scenarios", "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(start, cwd=workshop, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
    whole = subprocess.run(start, cwd=workshop, capture_output=True, text=True, check=True)
    assert json.loads(whole.stdout)["scenarios"]
