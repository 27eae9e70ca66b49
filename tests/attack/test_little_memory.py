"""Huge replies to a process whose memory is limited: one line names the limit and the remedy, and the run can go on from there."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from longspan.simulator.base.address_space import LEAST

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit a process's address space")

AGENT = """
import os

class Huge:
    def __init__(self):
        self.asked = 0

    def reply(self, message):
        self.asked += 1
        return eval(os.environ["SECOND"]) if self.asked == 2 else "OK."
"""

RUN = ("run", "--scenario", "colours", "--agent", "python:huge:Huge", "--out", "out")


def _longspan(folder: Path, *arguments: str, second: str, limit: int | None) -> subprocess.CompletedProcess[str]:
    (folder / "huge.py").write_text(AGENT)
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}  # which the command sets itself
    return subprocess.run(
        [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *arguments],
        cwd=folder,
        env=kept | {"SECOND": second},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def test_less_memory_than_any_run_takes_is_told_before_there_is_a_run(tmp_path: Path) -> None:
    told = _longspan(tmp_path, *RUN, second="'OK.'", limit=LEAST // 2)
    assert (told.returncode, told.stdout) == (2, "")
    limited = "the memory of this process is limited to 200 MiB (ulimit -v), and any run takes 400"
    assert told.stderr == f"longspan: {limited}: raise it, for example with `ulimit -v 819200`\n"
    assert not (tmp_path / "out").exists()


def test_thirty_megabytes_are_counted_in_the_memory_of_the_smallest_run(tmp_path: Path) -> None:
    played = _longspan(tmp_path, *RUN, second="'hello world ' * 2_500_000", limit=LEAST)
    assert played.returncode == 0, played.stderr
    assert "5,001,8" in played.stderr


def test_a_reply_that_does_not_fit_in_memory_interrupts_the_run_in_one_line(tmp_path: Path) -> None:
    stopped = _longspan(tmp_path, *RUN, second="chr(0x308) * 20_000_000", limit=LEAST)
    full = "interrupted: turn 1: out of memory: no room for the agent's reply"
    assert (stopped.returncode, "Traceback" in stopped.stderr) == (1, False)
    assert [full in line for line in stopped.stderr.splitlines()].count(True) == 1, stopped.stderr
    resumed = _longspan(tmp_path, "resume", "out/ltm-2k-python-huge-Huge-seed0", "--yes", second="'OK.'", limit=LEAST)
    assert resumed.returncode == 0, resumed.stderr
    assert "score 0% (0.00 of 1)" in resumed.stdout
