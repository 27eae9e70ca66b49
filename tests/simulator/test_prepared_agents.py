"""An object of the user's is made once for each conversation, and closed again even if nothing is played."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import longspan

COUNTING = """
from pathlib import Path

class Mine:
    def __init__(self, log="log"):
        self.log = Path(log)
        self.write("made")

    def write(self, what):
        with self.log.open("a") as log:
            log.write(f"{what}\\n")

    def reply(self, message):
        return "OK."

    def close(self):
        self.write("closed")
"""


def run(folder: Path, *options: str) -> int:
    """Run the suite `reach` with the class above."""
    (folder / "mine.py").write_text(COUNTING)
    command = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", "run", "reach", "--span", "2k"]
    return subprocess.run([*command, "--agent", "python:mine:Mine", *options], cwd=folder, capture_output=True, check=False).returncode


def test_a_run_makes_an_object_once_for_each_conversation(tmp_path: Path) -> None:
    assert run(tmp_path, "--seed", "0", "--seed", "1") == 0
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["closed"] * 2 + ["made"] * 2


def test_so_does_a_run_with_a_limit(tmp_path: Path) -> None:
    assert run(tmp_path, "--max-cost", "1") == 1, "its first reply costs an unknown sum"
    assert (tmp_path / "log").read_text().splitlines() == ["made", "closed"]


def test_an_object_is_closed_if_nothing_is_played(tmp_path: Path) -> None:
    assert run(tmp_path, "--fail-under-reach", "400k") == 2
    assert (tmp_path / "log").read_text().splitlines() == ["made", "closed"]


def test_a_program_makes_an_object_once(tmp_path: Path) -> None:
    made = []

    class Mine:
        def __init__(self) -> None:
            made.append(self)

        def reply(self, message: longspan.Message) -> str:
            return "OK."

    longspan.run("reach", agent=Mine, span="2k", out=tmp_path, progress=False)
    assert len(made) == 1
