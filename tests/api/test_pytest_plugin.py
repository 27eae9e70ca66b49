"""longspan in pytest: assertions, a fixture, and each memory test as a test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import final
from xml.etree import ElementTree

import pytest

import longspan

BOT = """
class Bot:
    heard = ()
    def reply(self, message):
        self.heard = (*self.heard, message.text)
        return "OK."
class Broken:
    def reply(self, message):
        raise ValueError("no connection")
class Unclosed(Bot):
    def close(self):
        raise ValueError("no way out")
"""

ASKED = ("--longspan", "ltm@2k", "--longspan-scenario", "shopping", "--longspan-scenario", "jokes")


@final
class Project:
    """A project with a test of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "bot.py").write_text(BOT, "utf-8")
        (path / "test_own.py").write_text("def test_own(): pass", "utf-8")
        (path / "pytest.ini").write_text(
            "[pytest]\nfilterwarnings = error\naddopts = --strict-markers -p no:langsmith_plugin\npythonpath = .\n", "utf-8"
        )

    def pytest(self, *options: str, installed: bool = False) -> tuple[dict[str, int], str]:
        """Run pytest with longspan's plugin and xdist, or with all that are installed, which are many.

        Return the number of tests by outcome, and the output.
        """
        named = [] if installed else ["-p", "xdist.plugin", "-p", "longspan.simulator.api.pytest_plugin"]
        env = os.environ if installed else os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-m", "pytest", *named, *options]
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr
        last = printed.strip().splitlines()[-1]
        return {outcome: int(count) for count, outcome in re.findall(r"(\d+) (passed|failed|deselected)", last)}, printed


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_each_memory_test_is_selected_reported_and_run_again(project: Project) -> None:
    agents = ("--longspan-agent", "notebook", "--longspan-agent", "oracle", "--longspan-seed", "4")
    outcomes, shown = project.pytest(*ASKED, *agents, "--longspan-out", "kept", installed=True)
    failed = sorted(set(re.findall(r"^FAILED (longspan::ltm@2k::\S+)", shown, re.MULTILINE)))
    assert failed
    assert outcomes == {"failed": len(failed), "passed": 13 - len(failed)}
    assert all("::notebook::seed4::" in name for name in failed)
    told = r"^\w+-\d, seed 4: score 0\.\d\d: .*\nneedle, turn \d+: (.|\n)*?\nquestion, turn \d+: .*\nreply: "
    assert re.search(told, shown, re.MULTILINE)
    (runs,) = {path.parent.parent for path in (project.path / "kept").glob("*/*/*/manifest.json")}
    assert {row["agent"] for row in longspan.load(runs).scores} == {"notebook", "oracle"}

    assert project.pytest(*ASKED, *agents, "--lf")[0] == {"failed": len(failed), "deselected": 13 - len(failed)}
    lenient = project.pytest(*ASKED, *agents, "--longspan-at-least", "0", "-m", "longspan", "-k", "jokes")
    assert lenient[0] == {"passed": 6, "deselected": 7}


def test_each_memory_test_has_the_time_that_the_agent_took_for_it(project: Project) -> None:
    asked = (*ASKED, "--longspan-agent", "python:bot:Bot", "--longspan-out", "kept", "--junit-xml", "pytest.xml")
    project.pytest(*asked, "-m", "longspan", "-o", "junit_duration_report=call")
    results = longspan.load(next((project.path / "kept").glob("*/0")))
    times = {case.get("name"): case.get("time") for case in ElementTree.parse(project.path / "pytest.xml").iter("testcase")}  # noqa: S314
    shown = [results.show(test) for test in results.tests["test"]]
    assert times == {test.id: f"{test.seconds:.3f}" for test in shown}
    assert len(times) == 6


def test_workers_of_xdist_play_a_suite_once(project: Project) -> None:
    assert project.pytest(*ASKED, "--longspan-agent", "oracle", "--longspan-out", "kept", "-n", "2")[0] == {"passed": 7}
    assert len(list((project.path / "kept").glob("*/*/*/manifest.json"))) == 1


def test_an_agent_that_fails_is_an_error_of_one_line_in_each_test(project: Project) -> None:
    outcomes, shown = project.pytest(*ASKED, "--longspan-agent", "python:bot:Broken")
    assert outcomes == {"passed": 1, "failed": 6}
    assert len(re.findall(r"^AgentError: .*ValueError: no connection \(bot\.py:\d+\)$", shown, re.MULTILINE)) == 6


def test_an_agent_that_cannot_be_closed_fails_the_session(project: Project) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "longspan.simulator.api.pytest_plugin", *ASKED, "--longspan-at-least", "0"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for agent, code, shown in (("Bot", 0, 0), ("Unclosed", 1, 1)):
        asked = [*command, "--longspan-agent", f"python:bot:{agent}"]
        done = subprocess.run(asked, cwd=project.path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout
        assert done.stdout.count("longspan: python:bot:Unclosed: close raised ValueError: no way out (bot.py:12)\n") == shown
        assert " 7 passed" in done.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--longspan", "lmt"), "ERROR: --longspan lmt: there is no suite 'lmt'"),
        (("--longspan", "ltm@2k", "--longspan-agent", "python:bot:Nobody"), "ERROR: --longspan ltm@2k: python:bot:Nobody: "),
    ],
)
def test_what_cannot_be_played_is_an_error_of_usage(options: tuple[str, ...], error: str, project: Project) -> None:
    assert error in project.pytest(*options)[1]


def test_the_data_that_are_played_are_named(project: Project) -> None:
    log = project.path / "log.jsonl"
    log.write_text('{"role": "user", "content": "My cat is Olive."}\n{"question": "What is my cat called?", "answer": "Olive"}\n', "utf-8")
    suite = ("--longspan", "history+elitr", "--longspan-data", "history=log.jsonl", "--longspan-agent", "oracle")
    shown = project.pytest(*suite, "--collect-only")[1]
    assert shown.count("::history-1-q") == 1
    assert f"longspan history+elitr: plays {log}\n" in shown
    assert "longspan history+elitr: elitr is made up; --longspan-data elitr=PATH plays your data\n" in shown


def test_an_assertion_says_what_was_not_remembered(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        longspan.check("silent", suite="ltm@2k", scenarios=["colours", "jokes"], at_least=0.5, out=tmp_path)
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("silent at 2k: 0% [0%, ")
    assert lines[1] == "0.0% of full marks are less than 50.0%"
    assert {name for line in lines if (name := line.partition("-")[0]) in ("colours", "jokes")} == {"colours", "jokes"}
    assert [line.partition(",")[0] for line in lines if line.startswith(("needle", "question"))].count("question") >= 3
    assert lines[-1] == f"the runs: {tmp_path}"
    assert longspan.check("oracle", suite="ltm@2k", scenarios=["colours"], at_least=1.0).share == 1
    with pytest.raises(longspan.InputError, match=r"^longspan\.check: specify an assertion"):
        longspan.check("oracle")


def test_a_baseline_gives_the_seeds_and_too_few_of_them_are_not_green(tmp_path: Path) -> None:
    what = {"suite": "ltm@2k", "scenarios": ["colours"], "tests": 1}
    longspan.run(agent="notebook", seeds=range(10, 15), out=tmp_path / "baseline", progress=False, **what)
    assert longspan.check("oracle", no_worse_than=tmp_path / "baseline", **what).tests["seed"] == [10, 11, 12, 13, 14]
    with pytest.raises(AssertionError, match=r"^undecided: 1 paired conversation cannot show a fall; 5 would do"):
        longspan.check("oracle", no_worse_than=tmp_path / "baseline", seeds=10, **what)
    longspan.run(agent="oracle", seeds=range(10, 15), out=tmp_path / "full", progress=False, **what)
    with pytest.raises(AssertionError, match=r"^worse than the baseline: 0\.0% of full marks, 100\.0% before, in 5 tests of 5 paired"):
        longspan.check("silent", no_worse_than=tmp_path / "full", **what)
    assert longspan.check("silent", no_worse_than=tmp_path / "full", margin=1.0, **what).share == 0


def test_it_costs_nothing_where_it_is_not_used() -> None:
    code = "import pytest, sys; before = set(sys.modules); import longspan.simulator.api.pytest_plugin; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        *("longspan", "longspan.simulator", "longspan.simulator.api", "longspan.simulator.api.pytest_plugin")
    }
