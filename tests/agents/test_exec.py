from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import skip

from longspan.agents.base import AgentError, InputError, Message
from longspan.agents.outside import faketime, program
from longspan.agents.outside.exec import ExecAgent
from longspan.agents.outside.remote import RemoteAgent
from longspan.simulator.contract.agent import Agent
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

HELLO = "print('{\"protocol\": 1}', flush=True)"


def message(text: str = "x", at: datetime = datetime(2024, 5, 1, 9, 0)) -> Message:
    return Message(text, at, "t-1")


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., ExecAgent]:
    """Return an agent that is a Python program: it answers `hello`, then runs the source. `reads`: it reads a request first."""

    def make(source: str, *, hello: str = HELLO, reads: bool = False, **options: Any) -> ExecAgent:
        path = tmp_path / "program.py"
        read = "sys.stdin.readline()\n"
        path.write_text(f"import json, os, sys, time\n{read}{hello}\n{read * reads}{source}")
        return ExecAgent(f"{sys.executable} -S {path}", ExecAgent.Options(**{"timeout": 20, **options}))

    return make


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time to exit: many programs here do not exit by themselves."""
    monkeypatch.setattr(program, "EXIT_SECONDS", 0.3)


def play(agent: Agent, *calls: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of the last call, and close the agent."""

    async def whole() -> Any:
        assert isinstance(agent, RemoteAgent)
        try:
            for call in calls:
                result = await call()
            return result
        finally:
            await agent.close()

    return trio.run(whole)


def ends(pid: int, within: float = 20) -> bool:
    """Return whether a process has ended, or ends soon. It may be a grandchild, which is not waited for."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    found = poll.poll(1000 * within)
    os.close(descriptor)
    return bool(found)


# The spec.


@pytest.mark.usefixtures("install")
@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("exec:", ["exec:COMMAND"]),
        ("exec", ["exec:COMMAND"]),
        ("exec:python3 'half", ["No closing quotation"]),
        ("exec:no-such-program-at-all --x", ["program 'no-such-program-at-all' does not exist", "./NAME"]),
        ("exec:python3 a\0b", ["exec:COMMAND"]),
        ("exec:python3?timeout=0", ["timeout", "greater than 0"]),
        ("exec:python3?timeout=nan", ["timeout"]),
        ("exec:python3?faketime=perhaps", ["faketime"]),
        ("exec:python3?speed=7", ["unknown option 'speed'", "timeout, at_once, faketime"]),
    ],
)
def test_the_error_for_a_missing_program_has_a_remedy(spec: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_agent(AgentSpec.parse(spec))
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_the_command_is_split_into_words_without_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "tell.py"
    path.write_text(f"import json, sys\ninput()\n{HELLO}\ninput()\nprint(json.dumps({{'text': json.dumps(sys.argv[1:])}}))\n")
    agent = ExecAgent(f"{sys.executable} -S {path} 'two words' $HOME | tee log; * %d")
    reply = play(agent, lambda: agent.reply(message()))
    assert reply.text == '["two words", "$HOME", "|", "tee", "log;", "*", "%d"]'


def test_nothing_is_started_before_the_first_request(script: Callable[..., ExecAgent], tmp_path: Path) -> None:
    agent = script(f"open({str(tmp_path / 'started')!r}, 'w')\nprint(json.dumps({{'text': 'OK.'}}))\n")
    trio.run(agent.close)
    assert not (tmp_path / "started").exists()


def test_a_file_that_is_not_a_program_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"\x00\x01\x02")
    path.chmod(0o755)
    agent = ExecAgent(str(path))
    with pytest.raises(AgentError, match="hello: cannot be started: Exec format error"):
        play(agent, lambda: agent.reply(message()))


# Its output and exit.


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("sys.exit(3)", "exited with status 3 before it answered"),
        ("os.kill(os.getpid(), 9)", "was killed by signal 9 before it answered"),
        ("raise ValueError('no\\nkey')", "exited with status 1 before it answered; its last line on standard error: key"),
        ("sys.stderr.write('\\x1b[31mred\\xff' * 10**5); sys.exit(1)", "exited with status 1"),
        ("os.close(1); time.sleep(60)", "closed its standard output before it answered"),
        (
            "print('Loading ...', flush=True); time.sleep(60)",
            "a line that is not an answer: Loading ...; standard output is for answers",
        ),
        ('print(\'{"text": "x"\', flush=True); time.sleep(60)', "not JSON"),
        ('sys.stdout.buffer.write(b\'{"text": "\\xff"}\\n\'); sys.stdout.flush(); time.sleep(60)', "not UTF-8"),
        ("print(json.dumps({'error': 'no luck'}), flush=True); time.sleep(60)", "reply: failed: no luck"),
        ("print(json.dumps({'text': 7}), flush=True); time.sleep(60)", "reply: gave an invalid answer: text"),
        ("while True: sys.stdout.write('x' * 10**6)", "wrote more than 33,554,432 bytes in one line"),
        ("while True: sys.stdout.write('{' * 10**6)", "wrote more than 33,554,432 bytes in one line"),
        ("print('{\"text\":\"half', end='', flush=True); sys.exit(0)", "exited with status 0 before it answered"),
    ],
)
def test_errors_of_a_program_are_one_line(script: Callable[..., ExecAgent], source: str, part: str) -> None:
    agent = script(source, reads=True)
    with pytest.raises(AgentError, match=re.escape(part)) as caught:
        play(agent, lambda: agent.reply(message()))
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600
    assert text.startswith("exec:")


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(60)",
        "while True: print(flush=True)",
        "while True: sys.stderr.write('x' * 1000)",
        "sys.stdin.readline()\nfor c in '{\"text\": \"slowly\"}' * 100:\n    print(c, end='', flush=True)\n    time.sleep(0.05)",
        "os.close(0)\ntime.sleep(60)",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)",
    ],
)
def test_a_program_that_hangs_is_abandoned_after_the_timeout(script: Callable[..., ExecAgent], source: str) -> None:
    agent = script(source, timeout=0.7)
    with pytest.raises(AgentError, match=r"(hello|reply): no complete answer within 0\.7 s.*\?timeout=SECONDS") as caught:
        play(agent, lambda: agent.reply(message("x" * 200_000)))
    assert "\n" not in str(caught.value)


def test_the_error_for_a_hanging_program_has_its_last_line(script: Callable[..., ExecAgent]) -> None:
    agent = script("print('waiting for the model', file=sys.stderr, flush=True)\ntime.sleep(60)", timeout=0.7, reads=True)
    with pytest.raises(AgentError, match=r"its last line on standard error: waiting for the model; set "):
        play(agent, lambda: agent.reply(message()))


def test_two_lines_for_one_request_are_an_error(script: Callable[..., ExecAgent]) -> None:
    agent = script('for line in sys.stdin:\n    sys.stdout.write(\'{"text": "a"}\\n{"text": "b"}\\n\')\n    sys.stdout.flush()')
    with pytest.raises(AgentError, match="wrote more than one line for one request"):
        play(agent, lambda: agent.reply(message()), lambda: agent.reply(message()))


def test_blank_lines_and_long_standard_error_are_harmless(script: Callable[..., ExecAgent]) -> None:
    source = "for line in sys.stdin:\n    sys.stderr.write('x' * 10**6)\n    print('\\n\\n{\"text\": \"OK.\"}\\r\\n \\n', flush=True)"
    agent = script(source)
    assert play(agent, *[lambda: agent.reply(message("y" * 10**6))] * 3).text == "OK."


def test_after_an_error_it_is_restarted(script: Callable[..., ExecAgent], tmp_path: Path) -> None:
    mark = tmp_path / "came before"
    hello = HELLO.replace("1}", '1, "can": ["reset"]}')
    first = f"if not os.path.exists({str(mark)!r}):\n    open({str(mark)!r}, 'w')\n    sys.exit(1)\n"
    agent = script(first + "print('{}', flush=True)\nsys.stdin.readline()\nprint(json.dumps({'text': 'OK.'}))", hello=hello, reads=True)

    async def fails() -> None:
        with pytest.raises(AgentError, match="exited with status 1"):
            await agent.reply(message())

    assert play(agent, fails, agent.reset, lambda: agent.reply(message())).text == "OK."


LINES = [b"\n", b'{"text": "x"}\n', b'{"text": "x"', b'{"protocol": 1}\n', b'{"error": "e"}\n', b"[" * 2000, b'{"text": NaN}\n']


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=60) | st.sampled_from(LINES), max_size=4), st.booleans())
def test_any_output_of_a_program_is_a_reply_or_an_agent_error(tmp_path: Path, writes: list[bytes], greets: bool) -> None:
    path = tmp_path / "output"
    path.write_bytes((b'{"protocol": 1}\n' if greets else b"") + b"".join(writes))
    agent = ExecAgent(f"cat {path}", ExecAgent.Options(timeout=10))
    try:
        outcome = play(agent, lambda: agent.reply(message())).text
    except AgentError as error:
        outcome = str(error)
    assert outcome == "x" or re.match("exec:cat .*: (hello|reply): ", outcome)
    assert outcome.isprintable()


# Its processes.

CHILD = "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
PIDS = CHILD + "for line in sys.stdin:\n    print(json.dumps({'text': f'{os.getpid()} {child.pid}'}), flush=True)\n"


def test_it_is_stopped_with_its_children(script: Callable[..., ExecAgent]) -> None:
    agent = script(PIDS + "time.sleep(600)")
    pids = [int(pid) for pid in play(agent, lambda: agent.reply(message())).text.split()]
    assert len(pids) == 2
    assert all(map(ends, pids))


def test_it_may_clean_up_when_its_input_ends(script: Callable[..., ExecAgent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "EXIT_SECONDS", 20)
    done = tmp_path / "done"
    agent = script(f"for line in sys.stdin:\n    print(json.dumps({{'text': 'OK.'}}), flush=True)\nopen({str(done)!r}, 'w')")
    play(agent, lambda: agent.reply(message()))
    assert done.exists()


def test_a_cancelled_call_kills_it(script: Callable[..., ExecAgent], tmp_path: Path) -> None:
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    agent = script(f"{CHILD}sys.stdin.readline()\nopen({str(fifo)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\ntime.sleep(600)")
    pids: list[int] = []

    def wait() -> None:
        pids.extend(int(pid) for pid in fifo.read_text().split())

    async def whole() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.reply, message())
            await trio.to_thread.run_sync(wait)
            nursery.cancel_scope.cancel()

    trio.run(whole)
    assert len(pids) == 2
    assert all(map(ends, pids))


LONGSPAN = """
import sys, trio
from datetime import datetime
from longspan.agents.base import Message
from longspan.agents.outside.exec import ExecAgent
async def main():
    agent = ExecAgent(sys.argv[1])
    print((await agent.reply(Message("x", datetime(2024, 1, 1), "t"))).text, flush=True)
    await trio.sleep_forever()
trio.run(main)
"""


def test_it_does_not_outlive_longspan_even_when_that_is_killed(script: Callable[..., ExecAgent]) -> None:
    agent = script(PIDS + "time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", LONGSPAN, agent.target], stdout=subprocess.PIPE, text=True) as longspan:
        assert longspan.stdout is not None
        pids = [int(pid) for pid in longspan.stdout.readline().split()]
        assert len(pids) == 2
        assert not any(ends(pid, within=0) for pid in pids)
        longspan.send_signal(signal.SIGKILL)
    assert all(map(ends, pids))


def test_a_program_that_left_its_group_is_still_killed(script: Callable[..., ExecAgent]) -> None:
    agent = script("os.setsid()\nfor line in sys.stdin:\n    print(json.dumps({'text': str(os.getpid())}), flush=True)\ntime.sleep(600)")
    pid = int(play(agent, lambda: agent.reply(message())).text)
    assert ends(pid)


def test_a_program_that_does_not_exit_is_killed_soon(script: Callable[..., ExecAgent]) -> None:
    agent = script("for line in sys.stdin:\n    print(json.dumps({'text': str(os.getpid())}), flush=True)\nwhile True: time.sleep(600)")
    assert ends(int(play(agent, lambda: agent.reply(message())).text))


# Its clock.


@pytest.fixture
def library() -> None:
    """Skip the test if libfaketime is missing."""
    if not any((place / faketime.LIBRARY).exists() for place in faketime.FOLDERS):
        skip("libfaketime is not installed: on Debian, apt install libfaketime")


CLOCK = """
import datetime, subprocess
for line in sys.stdin:
    time.sleep(0.01)
    now, utc = datetime.datetime.now(), datetime.datetime.now(datetime.timezone.utc)
    local = subprocess.run(["date", "+%FT%T"], capture_output=True, text=True).stdout.strip()
    print(json.dumps({"text": f"{now.isoformat()} {utc.isoformat()} {local}"}), flush=True)
"""


@pytest.mark.usefixtures("library")
def test_its_own_clock_shows_the_virtual_time_and_jumps_with_it(script: Callable[..., ExecAgent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    agent = script(CLOCK, faketime=True)
    dates = ["2024-01-01T09:00", "2024-01-01T09:00:30", "2024-02-29T23:59", "2031-07-01T00:00", "2031-07-01T00:00"]
    times = [datetime.fromisoformat(date) for date in dates]

    async def shown(at: datetime) -> None:
        shown_times = (await agent.reply(message(at=at))).text.split()
        assert len(shown_times) == 3
        for time in shown_times:  # by the program, in UTC, and by a program that it starts
            late = datetime.fromisoformat(time).replace(tzinfo=None) - at
            assert -0.001 <= late.total_seconds() < 20

    play(agent, *[lambda at=at: shown(at) for at in times])


@pytest.mark.usefixtures("library")
def test_the_clock_removes_only_the_files_of_its_own_killed_program(script: Callable[..., ExecAgent]) -> None:
    """libfaketime leaves files in shared memory when a process is killed. Other programs may have left some there before."""
    agent = script("for line in sys.stdin:\n    print(json.dumps({'text': str(os.getpid())}), flush=True)\ntime.sleep(600)", faketime=True)
    foreign = faketime.find_leftovers(2**22 + os.getpid())  # no process has such an id: Linux counts to 2**22
    own: list[Path] = []

    async def run() -> None:
        own.extend(faketime.find_leftovers(int((await agent.reply(message())).text)))
        assert all(path.exists() for path in own)

    try:
        for path in foreign:
            path.touch()
        play(agent, run)
        assert not any(path.exists() for path in own)
        assert all(path.exists() for path in foreign)
    finally:
        for path in foreign:
            path.unlink(missing_ok=True)


@pytest.mark.usefixtures("library")
def test_after_a_snapshot_the_clock_continues_from_the_last_message(script: Callable[..., ExecAgent], tmp_path: Path) -> None:
    source = """
import datetime
began = str(datetime.datetime.now().year)
for line in sys.stdin:
    print(json.dumps({"text": began} if '"call": "reply"' in line else {}), flush=True)
"""
    hello = HELLO.replace("1}", '1, "can": ["save", "load"]}')
    agent, twin = (script(source, hello=hello, faketime=True) for _ in range(2))

    async def save() -> None:
        await agent.reply(message(at=datetime(1999, 1, 1)))
        await agent.save(tmp_path)

    play(agent, save)
    assert play(twin, lambda: twin.load(tmp_path), lambda: twin.reply(message(at=datetime(2005, 1, 1)))).text == "1999"


def test_a_missing_library_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faketime, "FOLDERS", ())
    with pytest.raises(InputError, match="apt install libfaketime"):
        ExecAgent("cat", ExecAgent.Options(faketime=True))
