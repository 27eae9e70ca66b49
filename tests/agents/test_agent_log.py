"""What agents in other processes leave when they crash: their standard error with times, and their traceback."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
import trio
from tests.loopback import Server

from longspan.simulator.base.errors import AgentError, JournalError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.subject import agent_log
from longspan.simulator.subject.agent_log import AgentLog
from longspan.simulator.subject.current_turn import set_moment
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_outcome

CLASS = """
import ctypes, os, sys

class Mine:
    turns = 0

    def __init__(self, how="raises"):
        self.how = how

    def observe(self, message, reply):
        print("was told", message.turn_id)

    def reply(self, message):
        Mine.turns += 1
        print("was asked", message.turn_id, "\\x1b[31m", os.environ["MY_API_KEY"])
        if Mine.turns == 3:
            return self.crash()
        return "OK."

    def crash(self):
        return {}["no such memory"] if self.how == "raises" else ctypes.string_at(0)
"""

PROGRAM = """
import json, sys, user_class
mine = user_class.Mine()
for line in sys.stdin:
    request = json.loads(line)
    if request["call"] == "hello":
        answer = {"protocol": 1}
    else:
        sys.stdout, kept = sys.stderr, sys.stdout
        from types import SimpleNamespace
        answer = {"text": mine.reply(SimpleNamespace(turn_id=request["turn"]))}
        sys.stdout = kept
    print(json.dumps(answer), flush=True)
"""

LINE = re.compile(r"(\d+) 2024-01-01T09:\d\d:\d\d (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z (.*)")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "user_class.py").write_text(CLASS)
    (tmp_path / "user_program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_API_KEY", "sk-something-secret")
    monkeypatch.setenv("LONGSPAN_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def crashed(agent: str, out: Path) -> Outcome:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, agent=agent), out)], pages=Report))
    assert isinstance(outcome.error, AgentError)
    return outcome


AGENTS: dict[str, tuple[str, str, str]] = {
    "interpreter=": (f"python:user_class:Mine?interpreter={sys.executable}", "traceback", "KeyError: 'no such memory'"),
    "interpreter=, below Python": (f"python:user_class:Mine?interpreter={sys.executable}&how=deeper", "stderr", "in string_at"),
    "exec:": (f"exec:{sys.executable} user_program.py", "stderr", "KeyError: 'no such memory'"),
}


@pytest.mark.parametrize(("agent", "where", "end"), AGENTS.values(), ids=AGENTS)
def test_a_crash_leaves_its_traceback_and_its_log(agent: str, where: str, end: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = crashed(agent, here / "runs")
    run = RunFolder(outcome.folder)
    (incident,) = run.incidents()
    assert end in incident[where]
    assert re.search(r'user_class\.py", line \d+,? in crash', incident[where])
    assert "was asked" in incident["stderr"]

    written = run.agent_log("main").read_text("utf-8")
    lines = [LINE.fullmatch(line) for line in written.splitlines()]
    assert None not in lines
    found = [(int(line[1]), line[3]) for line in lines if line is not None]
    turns = [turn for turn, text in found if text.startswith("was asked")]
    assert turns[:2] == [0, 1]
    assert all(text.endswith("[U+001B][31m [MY_API_KEY]") for _, text in found if text.startswith("was asked"))
    assert any(end in text and turn == turns[-1] for turn, text in found)
    assert all("something-secret" not in path.read_text("utf-8") for path in run.path.rglob("*.*") if path.is_file())

    print_outcome(outcome, Console())
    printed = capsys.readouterr().out
    assert f"details {run.path / 'incidents.jsonl'}" in printed
    assert end in printed.replace("\n", " ")
    assert "in crash" in printed.replace("\n", " ")
    assert "user_class.py" in (run.path / "report.html").read_text("utf-8")


def test_a_resumed_run_appends_to_its_log(here: Path) -> None:
    outcome = crashed(f"python:user_class:Mine?interpreter={sys.executable}", here / "runs")
    run = RunFolder(outcome.folder)
    before = run.agent_log("main").read_bytes()
    (here / "user_class.py").write_text(CLASS.replace("== 3", "== 30"))
    assert trio.run(resume_run, RunFolder(outcome.folder, run.manifest), run.manifest.agent).error is None
    after = run.agent_log("main").read_bytes()
    assert after.startswith(before)
    shown_again = after[len(before) :].decode().splitlines()[0]
    assert shown_again.startswith("0 2024-01-01T09:00:00 ")
    assert " was told " in shown_again


def test_whatever_bytes_are_written_the_log_is_text_of_bounded_lines(tmp_path: Path) -> None:
    path, log = tmp_path / "agent.log", AgentLog()
    with log.keep_at(path):
        set_moment(7, datetime(2024, 1, 1, 9))
        for chunk in (b"one\r\ntwo\rthr", b"ee\n\n  \n\x1b]0;title\x07\x00\xff\xe2\x80\xae\n", b"x" * 10_001, b"\nend"):
            log.write(chunk)
        assert log.last_lines[-1] == "end"
    lines = path.read_text("utf-8").splitlines()
    texts = [line.split(" ", 3)[3] for line in lines]
    assert texts[:4] == ["one", "two", "three", "[U+001B]]0;title[U+0007][U+0000]\N{REPLACEMENT CHARACTER}[U+202E]"]
    assert texts[4:-1] == ["x" * 2_000] * 5 + ["x"]
    assert texts[-1] == "end"
    assert all(line.startswith("7 2024-01-01T09:00:00 ") for line in lines)


def test_an_endless_log_takes_bounded_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_log, "MAX_FILE", 100_000)
    path, log = tmp_path / "agent.log", AgentLog()
    with log.keep_at(path):
        for _ in range(50):
            log.write(b"y" * 65_536)
        assert sum(map(len, log.last_lines)) <= 82_000
    assert path.stat().st_size < 101_000
    assert path.read_text("utf-8").splitlines()[-1].endswith("the log is full; later output is dropped")


LEAKING = """
import json, os, sys
answers = [{"text": "OK."}, {"protocol": 1}]
for line in sys.stdin:
    keys = os.environ["MY_GATEWAY"], os.environ["MY_API_KEY"]
    print(*keys, file=sys.stderr)
    print("x" * 1990 + keys[1] + "x" * 9000, file=sys.stderr, flush=True)
    failed = {"error": f"rejected {keys}", "traceback": f"{keys}"}
    print(json.dumps(answers.pop() if answers else failed), flush=True)
"""


def test_a_key_is_in_no_file_whatever_its_name_and_wherever_it_is_cut(here: Path) -> None:
    (here / "leaking.py").write_text(LEAKING)
    with Server().running() as server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("MY_GATEWAY", "sk-something-secret-too")
        suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
        judge = f"{server.model()}&key_env=MY_GATEWAY"
        settings = RunSettings(suite=suite, span=2_000, agent=f"exec:{sys.executable} leaking.py", judge=judge)
        (outcome,) = trio.run(lambda: play_plans([plan_run(settings, here / "runs")], pages=Report))
    written = [path.read_text("utf-8") for path in outcome.folder.rglob("*.*") if path.is_file()]
    assert any("rejected ('[MY_GATEWAY]', '[MY_API_KEY]')" in text for text in written)
    assert any("[MY_GATEWAY] [MY_API_KEY]" in text for text in written)
    assert all("something-" not in text and "ng-secret" not in text for text in written)


def test_a_log_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("dear diary\n")
    (tmp_path / "agent.log").symlink_to(tmp_path / "diary")
    with pytest.raises(JournalError, match="symbolic link"), AgentLog().keep_at(tmp_path / "agent.log"):
        pass
