"""Each suite can be removed: longspan plays the others without its folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.environments import PROJECT, ROOT, register

FOLDERS = sorted(path.parent.name for path in (ROOT / "scenarios").glob("*/__init__.py"))

CODE = """
import json
import longspan
from longspan.simulator.cli import run_command

assert longspan.__file__.startswith({copy!r}), longspan.__file__
for command in json.loads({commands!r}):
    print("$", *command, flush=True)
    assert run_command(command) == 0, command
"""
"""Runs commands one after another in one process, which starts only once."""


def copied(to: Path, without: str) -> tuple[set[str], set[str]]:
    """Copy longspan without one of the folders in scenarios/, without what is registered in it and the suites of its scenarios.

    Return the names of the scenarios and of the suites that were left out.
    """
    shutil.copytree(ROOT / "src" / "longspan", to / "longspan", symlinks=True)
    for folder in ("simulator", "scenarios", "agents"):
        (to / "longspan" / folder).unlink()
        shutil.copytree(ROOT / folder, to / "longspan" / folder)  # with the compiled modules, which keeps the commands fast
    shutil.rmtree(to / "longspan" / "scenarios" / without)
    points = PROJECT["entry-points"]
    home = f"longspan.scenarios.{without}."
    left = {group: {name: at for name, at in known.items() if not at.startswith(home)} for group, known in points.items()}
    register(PROJECT | {"entry-points": left}, to)
    scenarios = points["longspan.scenarios"].keys() - left["longspan.scenarios"].keys()
    suites = set()
    for path in (to / "longspan" / "simulator" / "suites").glob("*.yaml"):
        if not scenarios.isdisjoint(yaml.safe_load(path.read_text("utf-8"))["scenarios"]):
            suites.add(path.stem)
            path.unlink()
    return scenarios, suites


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in ("shared", "reach")])  # the test plays the suite reach
def test_longspan_plays_without_a_suites_folder(folder: str, tmp_path: Path) -> None:
    scenarios, suites = copied(tmp_path / "copy", folder)
    commands = [
        ["--help"],
        ["list", "scenarios"],
        ["list", "scenarios", "--json"],
        ["list", "suites", "--json"],
        ["list", "schema", "run"],
        ["run", "reach", "--agent", "notebook", "--span", "2k", "--json"],
    ]
    code = CODE.format(copy=str(tmp_path / "copy"), commands=json.dumps(commands))
    given = os.environ | {"PYTHONPATH": str(tmp_path / "copy")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = dict(part.split("\n", 1) for part in done.stdout.split("$ ")[1:])
    listed = {row["scenario"] for row in json.loads(printed["list scenarios --json"])["scenarios"]}
    assert listed == PROJECT["entry-points"]["longspan.scenarios"].keys() - scenarios
    known = {row["suite"] for row in json.loads(printed["list suites --json"])["suites"]}
    assert known == {path.stem for path in (ROOT / "simulator" / "suites").glob("*.yaml")} - suites
    (result,) = json.loads(printed["run reach --agent notebook --span 2k --json"])
    assert (result["suite"], [test["status"] for test in result["tests"]]) == ("reach", ["scored"])


def test_every_folder_but_the_shared_one_registers_something() -> None:
    targets = [target for points in PROJECT["entry-points"].values() for target in points.values()]
    homes = {target.split(".")[2] for target in targets if target.startswith("longspan.scenarios.")}
    assert homes == {*FOLDERS} - {"shared"}
