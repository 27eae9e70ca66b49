"""Sweeps: every run in the file is played once, whatever is killed in between, and a failing run does not affect others."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.forked import longspan
from tests.loopback import Server
from tests.sealing import nameless

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder

ROOT = Path(__file__).parents[2]
MAIN = [sys.executable, "-c", "from longspan.simulator.cli import main; main()"]
MODULE = "python:tests.simulator.sweepers"
TWO = ("--jobs", "2")
PRICED = Path(__file__).parent / "priced"

LIMIT = 0.02
"""Dollars that a sweep may cost."""
WORST = 1e-6 * 2500
"""Maximum dollars of a turn, at $1 per million tokens: a context of 2k, the longest answer, and what a provider may add."""


def start(where: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    return subprocess.Popen(
        [*MAIN, "sweep", *arguments], cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def sweep(where: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `longspan sweep` in its own process, and check its exit code."""
    if "PYTHONPATH" in os.environ:  # something is loaded when Python starts
        with start(where, *arguments) as process:
            out, err = process.communicate(timeout=120)
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    else:
        done = longspan("sweep", *arguments, where=where, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == code, done.stdout + done.stderr
    return done


def write(where: Path, **content: Any) -> None:
    """Write a sweep of two scenarios with the test's overrides. JSON is valid YAML."""
    (where / "s.yaml").write_text(json.dumps({"scenarios": ["colours", "name_list"], "tests": 2} | content), "utf-8")


def journals(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The journals of a sweep by run, without what may differ between plays."""
    found = {}
    for path in sorted(out.glob("*/manifest.json")):
        lines = nameless(RunFolder(path.parent).journal("main"))
        found[path.parent.name] = [{key: value for key, value in entry.items() if key != "repeated"} for entry in lines]
    return found


def index(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "sweep.json").read_text("utf-8"))["runs"]
    return found


def wait_for_all(out: Path) -> None:
    """Wait until all processes that play the sweep have exited."""
    with (out / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[dict[str, Any]]]]:
    """The journals of an agent's uninterrupted sweep."""
    known: dict[str, dict[str, list[dict[str, Any]]]] = {}

    def of(agent: str) -> dict[str, list[dict[str, Any]]]:
        if agent not in known:
            where = tmp_path_factory.mktemp("whole")
            (where / "killed").touch()
            write(where, agents=[f"{MODULE}:{agent}"], seeds=[0, 1, 2], spans=["2k"], tests=6)
            sweep(where, "s.yaml", "--out", "out", "--trust")
            known[agent] = journals(where / "out")
        return known[agent]

    return of


@pytest.mark.parametrize(("agent", "jobs"), [("Killer", ()), ("Orphan", TWO)])
def test_a_killed_sweep_continues(
    agent: str, jobs: Sequence[str], tmp_path: Path, whole: Callable[[str], dict[str, list[dict[str, Any]]]]
) -> None:
    write(tmp_path, agents=[f"{MODULE}:{agent}"], seeds=[0, 1, 2], spans=["2k"], tests=6)
    arguments = ["s.yaml", "--out", "out", "--trust", *jobs]
    sweep(tmp_path, *arguments, code=-signal.SIGKILL)
    wait_for_all(tmp_path / "out")
    assert (tmp_path / "killed").exists()
    before = {path: path.read_bytes() for path in (tmp_path / "out").glob("*/conversations/main/journal.jsonl")}
    assert before
    assert not all(b'"type":"close"' in content for content in before.values())
    sweep(tmp_path, *arguments)
    assert journals(tmp_path / "out") == whole(agent)
    for path, content in before.items():  # everything played is kept, except for a line that the kill truncated
        assert path.read_bytes().startswith(content[: content.rfind(b"\n") + 1])
    assert {each["state"] for each in index(tmp_path / "out")} == {"finished"}


def test_a_job_plays_one_run_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, agents=[f"{MODULE}:Ordered"], seeds=[0, 1])
    sweep(tmp_path, "s.yaml", "--trust", "--jobs", "1")
    order = [name for name, _ in groupby((tmp_path / "order").read_text().splitlines())]
    assert len(order) == 2


def test_a_process_that_dies_interrupts_only_its_run(tmp_path: Path, whole: Callable[[str], dict[str, list[dict[str, Any]]]]) -> None:
    write(tmp_path, agents=[f"{MODULE}:Killer"], seeds=[0, 1, 2], spans=["2k"], tests=6)
    message = sweep(tmp_path, "s.yaml", "--out", "out", "--trust", "--jobs", "2", code=1).stderr
    assert "ended with signal SIGKILL" in message
    assert sorted(each["state"] for each in index(tmp_path / "out")) == ["finished", "finished", "interrupted"]
    sweep(tmp_path, "s.yaml", "--out", "out", "--trust", "--jobs", "2")
    assert journals(tmp_path / "out") == whole("Killer")


@pytest.mark.parametrize("jobs", [(), TWO])
def test_a_failing_run_does_not_affect_the_others(jobs: Sequence[str], tmp_path: Path) -> None:
    write(tmp_path, agents=[f"{MODULE}:Failing", "oracle"], seeds=[0, 1])
    (tmp_path / "broken").touch()
    message = sweep(tmp_path, "s.yaml", "--trust", *jobs, code=1).stderr
    assert message.count("out of order") == 2
    assert [each["state"] for each in index(tmp_path / "runs" / "s")] == ["interrupted", "interrupted", "finished", "finished"]
    (tmp_path / "broken").unlink()
    assert "4 of 4 runs finished, 2 of them before" in sweep(tmp_path, "s.yaml", "--trust", *jobs).stdout


def test_contrasts_are_tested_when_all_runs_are_finished_and_before_in_those_that_are(tmp_path: Path) -> None:
    contrast = {"agents": ["oracle", f"{MODULE}:Failing"], "sides": 1}
    write(tmp_path, agents=[f"{MODULE}:Failing", "oracle"], seeds=[0, 1], contrasts=[contrast], alpha=0.3)
    (tmp_path / "broken").touch()
    said = sweep(tmp_path, "s.yaml", "--trust", "--jobs", "2", code=1).stdout
    assert said.endswith("to test finished ones: longspan compare runs/s --contrasts s.yaml\n")
    assert not (tmp_path / "runs" / "s" / "results").exists()
    found = longspan("compare", "runs/s", "--contrasts", "s.yaml", where=tmp_path).stdout
    assert "2 runs are left out, not finished or damaged: ltm-2k-python" in found
    assert found.endswith(f"Undecided: oracle and {MODULE}:Failing have no test in common.\n")
    (tmp_path / "broken").unlink()
    said = sweep(tmp_path, "s.yaml", "--trust", "--jobs", "2").stdout
    assert "before any run had begun" in said
    assert f"oracle scores higher than {MODULE}:Failing: " in said
    assert "in 2 paired conversations" in said
    text = (tmp_path / "runs" / "s" / "results" / "methods.md").read_text("utf-8")
    assert "4 runs, 4 conversations and 16 tests" in text


def test_a_finished_sweep_is_not_changed(tmp_path: Path) -> None:
    write(tmp_path, agents=["oracle", "silent"])
    first = json.loads(sweep(tmp_path, "s.yaml", "--json").stdout)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.glob("runs/s/*/**/*.*") if path.is_file()}
    assert json.loads(sweep(tmp_path, "s.yaml", "--json").stdout) == first
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert [(each["agent"], each["score"]) for each in first] == [("oracle", 2.0), ("silent", 0.0)]


def test_several_processes_play_what_one_plays(tmp_path: Path) -> None:
    write(tmp_path, agents=["oracle", "notebook"], seeds=[0, 1])
    sweep(tmp_path, "s.yaml", "--out", "one")
    sweep(tmp_path, "s.yaml", "--out", "several", "--jobs", "3")
    assert journals(tmp_path / "several") == journals(tmp_path / "one")
    assert len(journals(tmp_path / "one")) == 4


def test_scores_are_printed_as_shares_first(tmp_path: Path) -> None:
    write(tmp_path, agents=["oracle"], tests=1, runs=[{"scenarios": ["colours"]}, {"scenarios": ["colours", "name_list"]}])
    printed = sweep(tmp_path, "s.yaml").stdout
    assert [word for word in ("100% · 1.00 of 1", "100% · 2.00 of 2") if word not in printed] == []


def test_runs_are_added_by_adding_them_to_the_file(tmp_path: Path) -> None:
    write(tmp_path, agents=["oracle"])
    sweep(tmp_path, "s.yaml")
    write(tmp_path, runs=[{"agents": ["oracle"]}, {"agents": ["oracle"], "set": ["colours.changes=5"]}, {"agents": ["oracle"]}])
    assert "2 of 2 runs finished, 1 of them before" in sweep(tmp_path, "s.yaml").stdout


def test_a_folder_that_a_crash_left_incomplete_is_made_again(tmp_path: Path) -> None:
    write(tmp_path, agents=["oracle"])
    sweep(tmp_path, "s.yaml")
    (run,) = (path.parent for path in tmp_path.glob("runs/s/*/manifest.json"))
    run.rename(tmp_path / "aside")
    run.mkdir()
    (run / ".manifest.json.partial").write_text('{"form')
    sweep(tmp_path, "s.yaml")
    assert [each["folder"] for each in index(tmp_path / "runs" / "s")] == [run.name]
    assert json.loads((run / "result.json").read_text("utf-8"))["score"] == 2


def test_two_processes_cannot_play_one_sweep(tmp_path: Path) -> None:
    write(tmp_path, agents=[f"{MODULE}:Waiting"], spans=["2k"], tests=6)
    os.mkfifo(tmp_path / "reached")
    os.mkfifo(tmp_path / "continue")
    process = start(tmp_path, "s.yaml", "--trust")
    assert (tmp_path / "reached").read_text() == "reached"
    message = sweep(tmp_path, "s.yaml", "--trust", code=2).stderr
    (tmp_path / "continue").write_text("continue")
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert "another process is playing this sweep" in message


@pytest.mark.parametrize("jobs", [(), TWO])
def test_a_stopped_sweep_continues(jobs: Sequence[str], tmp_path: Path) -> None:
    write(tmp_path, agents=[f"{MODULE}:Waiting"], spans=["2k"], tests=6, seeds=[0, 1, 2])
    os.mkfifo(tmp_path / "reached")
    os.mkfifo(tmp_path / "continue")
    process = start(tmp_path, "s.yaml", "--trust", *jobs)
    assert (tmp_path / "reached").read_text() == "reached"
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert any("stopping" in line for line in process.stderr), "lines before it tell the progress"
    (tmp_path / "continue").write_text("continue")
    process.communicate(timeout=120)
    assert process.returncode == 130
    states = [each["state"] for each in index(tmp_path / "runs" / "s")]
    assert "interrupted" in states
    assert f"3 of 3 runs finished, {states.count('finished')} of them before" in sweep(tmp_path, "s.yaml", "--trust", *jobs).stdout


def dollars(server: Server) -> float:
    """The cost of all requests to a server in dollars."""
    return 1e-6 * sum(each.used.prompt + each.used.output for each in server.asked if each.used)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_processes_of_a_sweep_share_limits(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(PRICED)]))
    with Server(latency=0.02).running() as server:
        agent = f"openai/some?context=2k&max_tokens=100&at_once=2&base_url={server.base_url('openai')}"
        write(tmp_path, agents=[agent], seeds=[0, 1, 2, 3], tests=1)
        arguments = ["s.yaml", "--trust", *(["--jobs", str(jobs)] if jobs > 1 else [])]
        message = sweep(tmp_path, *arguments, "--max-cost", str(LIMIT), code=130).stderr
        assert "exceed the limit of $0.0" in message
        assert server.most_at_once <= 2
        assert LIMIT - jobs * WORST <= dollars(server) <= LIMIT
        sweep(tmp_path, *arguments, "--max-cost", str(LIMIT), code=130)
        assert dollars(server) <= LIMIT, "earlier costs count"


@pytest.mark.parametrize(("jobs", "limit", "more"), [((), ["--max-cost", "0.045"], "9"), (TWO, ["--max-tokens-total", "450"], "1m")])
def test_limits_hold_for_agents_that_tell_what_they_take(jobs: Sequence[str], limit: list[str], more: str, tmp_path: Path) -> None:
    write(tmp_path, agents=[f"{MODULE}:Paying"], seeds=[0, 1], tests=1, scenarios=["colours"])
    arguments = ["s.yaml", "--trust", *jobs]
    message = sweep(tmp_path, *arguments, *limit, code=130).stderr
    assert "exceed the limit of" in message
    assert message.count("not known beforehand") == 1, "one line for the sweep, not one for each process"
    asked = [event for events in journals(tmp_path / "runs" / "s").values() for event in events if event.get("usage")]
    assert len(asked) == 4
    sweep(tmp_path, *arguments, limit[0], more)


def test_max_cost_requires_known_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    write(tmp_path, agents=["oracle", "openai/no-such-model"])
    message = sweep(tmp_path, "s.yaml", "--trust", "--max-cost", "1", code=2).stderr
    assert "--max-cost: agent openai/no-such-model: the price of openai/no-such-model is unknown" in message
    assert "set price_in= and price_out=" in message
    assert not (tmp_path / "runs").exists()


def test_words_are_read_as_written(tmp_path: Path) -> None:
    content = "{scenarios: [colours], tests: 1, spans: [2k], agents: [silent], branch: off, label: no, isolated: yes}"
    (tmp_path / "s.yaml").write_text(content, "utf-8")
    sweep(tmp_path, "s.yaml")
    (path,) = (tmp_path / "runs" / "s").glob("*/manifest.json")
    manifest = RunFolder(path.parent).manifest
    assert (manifest.branch, manifest.label, manifest.isolated) == ("off", "no", True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents: [oracle", "sweep s.yaml: not YAML: line 1, column 16: while parsing a flow sequence, expected"),
        ("[oracle]", "sweep s.yaml: expected a mapping; its keys are suites"),
        ("tests: 1\nagents: [oracle]\ntests: 2", "sweep s.yaml: not YAML: line 3, column 1: the key 'tests' is given twice"),
        ("agnts: [oracle]", "sweep s.yaml: agnts: unknown key; did you mean agents?"),
        ("nonsense: 1", "sweep s.yaml: nonsense: unknown key; its keys are suites"),
        ("agents: []", "sweep s.yaml: agents: must not be empty"),
        ("spans: [0]", "sweep s.yaml: spans.0: a size must be a whole number of tokens"),
        ("runs: []", "sweep s.yaml: runs: expected a list of overrides"),
        ("runs: [{seeds: [one]}]", "sweep s.yaml: runs.0: seeds: expected one whole number in plain digits, such as 7; got 'one'"),
        ("runs: [{agents: [oracel-9]}]", "there is no kind of agent 'oracel-9'"),
        ("suites: [elsewhere]", "there is no suite 'elsewhere'"),
        ("set: [colours.size=3]", "there is no parameter 'colours.size'"),
        ("definitions: nowhere", "nowhere: folder does not exist"),
        ("agents: ['python:json:Nothing']", "s.yaml names code to run: python:json:Nothing; --trust runs it"),
        ("judge: 'openai/x?base_url=http://127.0.0.1:1/v1'", "s.yaml names an address to call"),
    ],
)
def test_an_invalid_file_is_reported_in_one_line_before_anything_is_written(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(text, "utf-8")
    with pytest.raises(SystemExit) as exiting:
        main(["sweep", "s.yaml"])
    assert exiting.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "runs").exists()
