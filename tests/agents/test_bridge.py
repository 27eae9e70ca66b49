"""Agent classes in another environment's Python, which has only the standard library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
import trio
from tests.conftest import skip

from longspan.agents.base import AgentError, InputError, Message, Reply, Usage
from longspan.agents.outside import bridge, faketime, program
from longspan.agents.outside.exec import ProgramAgent
from longspan.simulator.contract.agent import can_observe, can_repeat_turn, close_agent, has_snapshots
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

pytestmark = pytest.mark.usefixtures("install")

Module = Callable[[str], str]


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a separate environment without pip and longspan."""
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def make(module: Module, elsewhere: Path) -> Callable[..., ProgramAgent]:
    def make(source: str, *, options: str = "", name: str = "Mine") -> ProgramAgent:
        agent = make_agent(AgentSpec.parse(f"python:{module(source)}:{name}?interpreter={elsewhere}{options}"))
        assert isinstance(agent, ProgramAgent)
        return agent

    return make


def message(text: str = "x", turn: str = "t-1") -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), turn)


def play(agent: ProgramAgent, *calls: Callable[[], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        try:
            for call in calls:
                result = await call()
            return result
        finally:
            await close_agent(agent)

    return trio.run(whole)


def test_it_runs_in_the_other_environment(make: Callable[..., ProgramAgent], elsewhere: Path) -> None:
    agent = make("""
import sys
class Mine:
    def reply(self, message):
        try:
            import trio
        except ImportError:
            return f"{sys.executable} {message.sent_at.year} {message.turn_id} {message.text}"
""")
    assert play(agent, lambda: agent.reply(message("hello"))) == Reply(f"{elsewhere} 2024 t-1 hello")


@pytest.mark.parametrize("reset", ["", "    def reset(self): self.said = []\n"])
def test_its_process_outlives_a_snapshot_that_is_loaded_and_keeps_nothing_else(
    make: Callable[..., ProgramAgent], reset: str, tmp_path: Path
) -> None:
    agent = make(f"""
import os
class Mine:
    def __init__(self): self.said = []
    def reply(self, message):
        self.said.append(message.text)
        return f"{{os.getpid()}} {{' '.join(self.said)}}"
    def save(self, folder): (folder / "said").write_text(" ".join(self.said))
    def load(self, folder): self.said += (folder / "said").read_text().split()
{reset}""")

    async def script() -> None:
        pid = (await agent.reply(message("one"))).text.removesuffix(" one")
        await agent.save(tmp_path)
        for text in ("two", "three"):
            await agent.reply(message("lost"))
            await agent.load(tmp_path)
            assert (await agent.reply(message(text))).text == f"{pid} one {text}"

    play(agent, script)


FULL = """
{imports}
class Mine:
    repeatable = True
    def __init__(self, greeting="hello"):
        self.log = [greeting]
    {a}def reply(self, message):
        {wait}
        return " ".join(self.log)
    {a}def observe(self, message, reply):
        self.log.append(message.text + "/" + reply)
    {a}def reset(self):
        self.log = ["reset"]
    {a}def save(self, folder):
        (folder / "log").write_text("\\n".join(self.log))
    {a}def load(self, folder):
        self.log = (folder / "log").read_text().split("\\n")
"""


ASYNC = {"a": "async ", "wait": "await asyncio.sleep(0)", "imports": "import asyncio"}


@pytest.mark.parametrize("style", [dict.fromkeys(ASYNC, ""), ASYNC], ids=["plain", "async"])
def test_all_methods_of_the_class_are_used(make: Callable[..., ProgramAgent], tmp_path: Path, style: dict[str, str]) -> None:
    agent = make(FULL.format(**style), options="&greeting=good day")

    async def says(what: str) -> None:
        assert (await agent.reply(message("?"))).text == what

    async def script() -> None:
        await agent.observe(message("told"), "OK.")
        await says("good day told/OK.")
        assert has_snapshots(agent)
        assert can_observe(agent)
        assert can_repeat_turn(agent)
        await agent.save(tmp_path)
        await agent.reset()
        await says("reset")
        await agent.load(tmp_path)
        await says("good day told/OK.")

    play(agent, script)


PLAIN = """
class Mine:
    def __init__(self):
        self.heard = []
    def reply(self, message):
        self.heard.append(message.text)
        return {"text": " ".join(self.heard), "usage": {"input_tokens": 10, "output_tokens": 1}}
"""


def test_missing_methods_are_emulated(make: Callable[..., ProgramAgent], tmp_path: Path) -> None:
    agent = make(PLAIN)

    async def script() -> None:
        assert await agent.observe(message("told"), "OK.") == Reply("", besides={"dropped": Usage(10, 0, 1)})
        assert await agent.reply(message("asked")) == Reply("told asked", Usage(10, 0, 1))
        assert not has_snapshots(agent)
        assert not can_repeat_turn(agent)
        await agent.reset()
        assert (await agent.reply(message("again"))).text == "again"

    play(agent, script)


def test_a_reply_object_is_accepted(make: Callable[..., ProgramAgent]) -> None:
    agent = make("""
class Usage: input_tokens, cached_tokens, output_tokens = 9, 4, 1
class Mine:
    text, usage, trace, refused = "whole", Usage, {"written": []}, True
    def reply(self, message): return self
""")
    assert play(agent, lambda: agent.reply(message())) == Reply("whole", Usage(9, 4, 1), {"written": []}, refused=True)


def test_printing_and_reading_in_the_class_is_harmless(make: Callable[..., ProgramAgent]) -> None:
    agent = make("""
import os, subprocess, sys
print("imported")
class Mine:
    def reply(self, message):
        print('{"text": "printed"}')
        os.write(1, b'{"text": "written"}\\n')
        subprocess.run(["echo", '{"text": "echoed"}'])
        sys.stdout.write("x" * 10**6)
        return "said" + sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True).stdout
""")
    assert play(agent, *[lambda: agent.reply(message())] * 3).text == "said"


def test_its_loop_runs_between_calls_and_its_tasks_end_with_it(make: Callable[..., ProgramAgent], tmp_path: Path) -> None:
    agent = make(f"""
import asyncio, pathlib
class Mine:
    ticks, task = None, None
    async def reply(self, message):
        self.ticks = self.ticks or asyncio.Queue()
        self.task = self.task or asyncio.create_task(self.tick())
        return str(await self.ticks.get())
    async def tick(self):
        try:
            for number in range(10**9):
                await self.ticks.put(number)
                pathlib.Path({str(tmp_path / "ticks")!r}).write_text(str(number))
                await asyncio.sleep(0.01)
        finally:
            pathlib.Path({str(tmp_path / "ended")!r}).write_text("cancelled")
    async def close(self):
        pathlib.Path({str(tmp_path / "closed")!r}).write_text("closed")
""")

    async def script() -> None:
        assert [(await agent.reply(message())).text for _ in range(2)] == ["0", "1"]
        while int((tmp_path / "ticks").read_text() or 0) < 3:
            await trio.sleep(0)

    play(agent, script)
    assert {path.name for path in tmp_path.iterdir()} >= {"closed", "ended"}


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("raise ValueError('no\\nway')", "reply: failed: ValueError: no way"),
        ("raise SystemExit(3)", "reply: failed: SystemExit: 3"),
        ("raise GeneratorExit", "reply: failed: GeneratorExit"),
        ("raise KeyboardInterrupt", "reply: failed: KeyboardInterrupt"),
        ("import asyncio; raise asyncio.CancelledError", "reply: failed: CancelledError"),
        ("return None", "reply: failed: TypeError: reply returned NoneType"),
        ("return {'text': 7}", "reply: gave an invalid answer: text"),
        ("return {'txet': 'x'}", "txet: unknown key"),
        ("return {'text': 'x', 'trace': {'a': float('nan')}}", "failed: ValueError: Out of range float"),
        ("return {'text': 'x', 'trace': {'a': object()}}", "failed: TypeError: Object of type object is not JSON"),
        ("import os; os._exit(4)", "exited with status 4 before it answered"),
        ("import os; print('goodbye', flush=True); os._exit(4)", "its last line on standard error: goodbye"),
        ("import sys; sys.stdout.close(); return 'x'", "failed: ValueError: I/O operation on closed file"),
    ],
)
def test_errors_of_the_class_are_one_line(make: Callable[..., ProgramAgent], body: str, part: str) -> None:
    agent = make(f"class Mine:\n    def reply(self, message):\n        {body}\n")
    with pytest.raises(AgentError, match=re.escape(part)) as caught:
        play(agent, lambda: agent.reply(message()))
    assert str(caught.value).startswith("python:")
    assert str(caught.value).isprintable()


def test_the_traceback_of_an_error_is_its_cause(make: Callable[..., ProgramAgent]) -> None:
    agent = make("class Mine:\n    def reply(self, message):\n        return message.txet\n")
    with pytest.raises(AgentError) as caught:
        play(agent, lambda: agent.reply(message()))
    assert "line 3, in reply\n    return message.txet" in "".join(format_exception(caught.value.__cause__))


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("class Yours: pass", "has no attribute 'Mine'"),
        ("1 / 0", "ZeroDivisionError"),
        ("class Mine: pass", "it has no method reply"),
        ("class Mine:\n    def __init__(self, model): pass", "missing 1 required positional argument: 'model'"),
        ("import trio", "No module named 'trio'"),
    ],
)
def test_a_class_that_cannot_be_loaded_is_reported_when_first_needed(make: Callable[..., ProgramAgent], source: str, part: str) -> None:
    agent = make(source)
    with pytest.raises(AgentError, match=f"hello: failed: .*{re.escape(part)}"):
        play(agent, lambda: agent.reply(message()))


def test_a_class_that_hangs_is_abandoned_after_the_timeout(make: Callable[..., ProgramAgent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "EXIT_SECONDS", 0.2)
    agent = make("import time\nclass Mine:\n    def reply(self, message): time.sleep(600)\n", options="&timeout=0.7")
    with pytest.raises(AgentError, match=r"no complete answer within 0\.7 s"):
        play(agent, lambda: agent.reply(message()))


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("python:m:C?interpreter=no/such/python", "program 'no/such/python' does not exist"),
        ("python:m?interpreter=python3", "python:package.module:Class"),
        ("python:./m.py:C?interpreter=python3", "python: takes a module's name, not a file's path"),
        ("python:m:C?interpreter=python3&timeout=soon", "timeout: must be a number"),
    ],
)
def test_an_invalid_spec_is_rejected_at_once(spec: str, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        make_agent(AgentSpec.parse(spec))


def test_the_bridge_needs_python_3_8_and_its_standard_library() -> None:
    source = Path(bridge.__file__).read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    optional = {"opentelemetry"}  # which most interpreters lack, including the one that runs these tests
    assert {name.partition(".")[0] for name in imported} - optional <= sys.stdlib_module_names


CLOCK = """
import asyncio, datetime

BEGAN = datetime.datetime.now()

class Mine:
    async def reply(self, message):
        await asyncio.wait_for(asyncio.to_thread(asyncio.run, asyncio.sleep(0.01)), 20)
        return f"{BEGAN} / {datetime.datetime.now()}"
"""


def test_its_clock_shows_the_virtual_time_from_its_start(make: Callable[..., ProgramAgent]) -> None:
    if not any((place / faketime.LIBRARY).exists() for place in faketime.FOLDERS):
        skip("libfaketime is not installed: on Debian, apt install libfaketime")
    agent = make(CLOCK, options="&faketime=true&timeout=20")
    times = [datetime(2031, 7, 1, 9), datetime(2031, 7, 1, 9, 0, 30), datetime(2033, 1, 1)]

    async def shown(at: datetime) -> None:
        began, now = map(datetime.fromisoformat, (await agent.reply(Message("x", at, "t-1"))).text.split(" / "))
        assert -0.001 <= (began - times[0]).total_seconds() < 20
        assert -0.001 <= (now - at).total_seconds() < 20

    play(agent, *[lambda at=at: shown(at) for at in times])


def test_without_an_interpreter_there_is_no_clock_to_set() -> None:
    with pytest.raises(InputError, match="add interpreter="):
        make_agent(AgentSpec.parse("python:m:C?faketime=true"))
