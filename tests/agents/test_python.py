from __future__ import annotations

import re
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from longspan.agents.base import Message, Reply, Usage
from longspan.simulator.base.errors import AgentError, InputError
from longspan.simulator.contract.agent import Agent, close_agent, has_snapshots
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

pytestmark = pytest.mark.usefixtures("install")

Module = Callable[[str], str]


def _message(text: str, turn: str = "1") -> Message:
    return Message(text, datetime(2024, 5, 1, 9, 0), turn)


def _agent(module: Module, source: str, *, name: str = "Mine", options: str = "") -> Agent:
    return make_agent(AgentSpec.parse(f"python:{module(source)}:{name}{options}"))


def _run(play: Callable[[], Awaitable[Any]]) -> Any:
    return trio.run(play)


PLAIN = """
class Mine:
    def __init__(self):
        self.heard = []
    def reply(self, message):
        self.heard.append(message.text)
        return " ".join(self.heard)
"""

ASYNC = """
import asyncio
from longspan.simulator.contract.messages import Reply, Usage
class Mine:
    async def reply(self, message):
        await asyncio.sleep(0)
        return Reply(message.text.upper(), Usage(output_tokens=3), {"memories": []})
"""


def test_a_plain_method_is_enough(module: Module) -> None:
    agent = _agent(module, PLAIN)

    async def play() -> list[str]:
        return [(await agent.reply(_message(text))).text for text in ("one", "two")]

    assert _run(play) == ["one", "one two"]


def test_an_async_method_may_return_a_reply_object(module: Module) -> None:
    agent = _agent(module, ASYNC)
    reply = trio.run(agent.reply, _message("hello"))
    assert (reply.text, reply.usage, reply.trace) == ("HELLO", Usage(output_tokens=3), {"memories": []})


def test_a_coroutine_from_a_plain_method_is_awaited(module: Module) -> None:
    agent = _agent(module, "class Mine:\n    def reply(self, m): return self.later(m)\n    async def later(self, m): return m.text\n")
    assert trio.run(agent.reply, _message("hello")).text == "hello"


def test_a_blocking_method_does_not_block_others(module: Module) -> None:
    source = """
import threading
go = threading.Event()
class Mine:
    def reply(self, message):
        return "freed" if go.wait(20) else "held up"
"""
    agent = _agent(module, source)
    go = sys.modules[type(agent.object).__module__].go  # type: ignore[attr-defined]
    replies = []

    async def ask() -> None:
        replies.append((await agent.reply(_message("x"))).text)

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            go.set()

    _run(play)
    assert replies == ["freed"]


def test_missing_methods_are_emulated(module: Module, tmp_path: Path) -> None:
    agent = _agent(module, PLAIN)

    async def play() -> None:
        await agent.observe(_message("told"), "OK.")
        assert (await agent.reply(_message("asked"))).text == "told asked"
        await agent.reset()
        assert (await agent.reply(_message("again"))).text == "again"
        await agent.save(tmp_path)
        with pytest.raises(AgentError, match="both save"):
            await agent.load(tmp_path)

    _run(play)
    assert not has_snapshots(agent)


FULL = """
class Mine:
    def __init__(self, greeting="hello", name="you"):
        self.log = [greeting, name]
    def reply(self, message):
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


@pytest.mark.parametrize("a", ["", "async "])
def test_all_methods_of_the_class_are_used(module: Module, tmp_path: Path, a: str) -> None:
    agent = _agent(module, FULL.format(a=a), options="?greeting=good day")
    assert has_snapshots(agent)

    async def says() -> str:
        return (await agent.reply(_message("?"))).text

    async def play() -> None:
        await agent.observe(_message("told"), "OK.")
        assert await says() == "good day you told/OK."
        await agent.save(tmp_path)
        await agent.reset()
        assert await says() == "reset"
        await agent.load(tmp_path)
        assert await says() == "good day you told/OK."

    _run(play)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("raise ValueError('no\\nway')", "reply raised ValueError: no way"),
        ("raise KeyError('x')", "reply raised KeyError: 'x'"),
        ("raise SystemExit(3)", "reply raised SystemExit: 3"),
        ("raise GeneratorExit", "reply raised GeneratorExit"),
        ("raise KeyboardInterrupt", "reply raised KeyboardInterrupt"),
        ("import asyncio; raise asyncio.CancelledError('gone')", "reply raised CancelledError: gone"),
        ("raise type('Odd', (BaseException,), {})('kin')", "reply raised Odd: kin"),
        ("raise BaseExceptionGroup('all', [SystemExit(1), ValueError()])", "reply raised BaseExceptionGroup"),
        ("raise ValueError('x' * 10**6)", "reply raised ValueError: xxx"),
        ("raise StopIteration", "reply raised"),
        ("return None", "reply returned NoneType; it must return a str, a dict with text, usage and trace, or a longspan.Reply"),
        ("return {'txet': 'x'}", "reply: gave an invalid answer: txet: unknown key"),
        ("return {'text': 'x', 'trace': {'a': object()}}", "reply returned a dict that is not JSON: TypeError: Object of type object"),
        ("from longspan.simulator.contract.messages import Reply; return Reply(7)", "text"),
        ("from longspan.simulator.contract.messages import Reply; return Reply('x', trace=[])", "trace"),
        ("from longspan.simulator.contract.messages import Reply; return Reply('x', refused=1)", "refused"),
        (
            "import trio; trio.current_time()",
            ":3); async methods run under asyncio: to run under Trio, derive the class from longspan.BaseAgent",
        ),
    ],
)
@pytest.mark.parametrize("a", ["", "async "])
def test_errors_of_the_class_are_one_line(module: Module, body: str, part: str, a: str) -> None:
    agent = _agent(module, f"class Mine:\n    {a}def reply(self, message):\n        {body}\n")
    # In a separate thread: Playwright's fixtures leave an asyncio loop running in the tests' thread.
    with ThreadPoolExecutor(1) as thread, pytest.raises(AgentError, match=re.escape(part)) as caught:
        thread.submit(trio.run, agent.reply, _message("x")).result()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    assert ":Mine" in message


def test_the_cause_of_an_error_is_kept(module: Module) -> None:
    agent = _agent(module, "class Mine:\n    def reply(self, message): return 1 / 0\n")
    with pytest.raises(AgentError) as caught:
        trio.run(agent.reply, _message("x"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("method", ["observe", "reset", "save", "load"])
def test_errors_of_the_other_methods_name_them(module: Module, method: str, tmp_path: Path) -> None:
    agent = _agent(module, FULL.format(a="") + f"    def {method}(self, *a): raise OSError('disk')\n")
    calls: dict[str, Callable[[], Awaitable[None]]] = {
        "observe": lambda: agent.observe(_message("x"), "y"),
        "reset": agent.reset,
        "save": lambda: agent.save(tmp_path),
        "load": lambda: agent.load(tmp_path),
    }
    with pytest.raises(AgentError, match=f"{method} raised OSError: disk"):
        trio.run(calls[method])


@pytest.mark.parametrize("a", ["", "async "])
def test_ctrl_c_interrupts_whatever_the_class_does(module: Module, a: str) -> None:
    source = f"""
import asyncio, signal, time
class Mine:
    {a}def reply(self, message):
        signal.raise_signal(signal.SIGINT)
        {"await asyncio.sleep(600)" if a else "time.sleep(0)"}
"""
    agent = _agent(module, source)

    async def play() -> None:
        await LiveAgent(agent).reply(_message("x"), "")
        await trio.sleep_forever()  # until the interrupt is delivered

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        trio.run(play)
    assert caught.group_contains(KeyboardInterrupt) if isinstance(caught.value, BaseExceptionGroup) else caught.type is KeyboardInterrupt


def test_a_cancelled_call_cancels_its_asyncio_task(module: Module) -> None:
    agent = _agent(
        module,
        """
import asyncio
class Mine:
    begun, ended = [], []
    async def reply(self, message):
        self.begun.append(message.text)
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.ended.append(message.text)
            raise
    def reset(self): pass
""",
    )

    mine = agent.object  # type: ignore[attr-defined]

    async def play() -> list[str]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.reply, _message("x"))
            while not mine.begun:
                await trio.sleep(0)
            nursery.cancel_scope.cancel()
        await agent.reset()
        await close_agent(agent)
        ended: list[str] = mine.ended
        return ended

    assert _run(play) == ["x"]


ONE_LOOP = """
import asyncio, threading
class Mine:
    def __init__(self):
        self.seen = {threading.get_ident()}
        self.told = asyncio.Queue()
        self.background = None
    async def reply(self, message):
        self.seen.add((threading.get_ident(), asyncio.get_running_loop())[0])
        self.background = self.background or asyncio.create_task(self.count())
        return f"{len(self.seen)} {await self.told.get()}"
    async def count(self):
        async def forever():
            try:
                await asyncio.sleep(600)
            finally:
                self.seen.add("ended")
        other = asyncio.create_task(forever())
        for number in range(10**9):
            await self.told.put(number)
            await asyncio.sleep(0.001)
    def observe(self, message, reply):
        self.seen.add(threading.get_ident())
        async def alone(): return asyncio.get_running_loop()
        assert asyncio.run(alone()) is not None
    async def close(self):
        self.seen.add("closed")
"""


def test_a_class_has_one_thread_and_one_loop_which_runs_between_calls_and_ends_its_tasks(module: Module) -> None:
    agent = _agent(module, ONE_LOOP)

    async def play() -> set[object]:
        assert [(await agent.reply(_message("?"))).text for _ in range(3)] == ["1 0", "1 1", "1 2"]
        await agent.observe(_message("told"), "OK.")
        mine = agent.object  # type: ignore[attr-defined]
        while mine.told.empty():
            await trio.sleep(0)
        await close_agent(agent)
        assert mine.background.cancelled()
        seen: set[object] = mine.seen
        return seen

    seen = _run(play)
    assert len(seen) == 3
    assert seen >= {"closed", "ended"}


def test_an_agent_that_nobody_closes_leaves_neither_thread_nor_loop(module: Module) -> None:
    before = set(threading.enumerate())
    agent = _agent(module, PLAIN)
    assert trio.run(agent.reply, _message("one")).text == "one"
    (thread,) = (each for each in set(threading.enumerate()) - before if each.name == "longspan: an agent")
    del agent
    thread.join()


def test_a_class_derived_from_base_agent_runs_under_trio(module: Module) -> None:
    source = """
import trio
from longspan import BaseAgent, Reply
class Mine(BaseAgent):
    async def reply(self, message):
        await trio.sleep(0)
        return Reply(message.text)
"""
    assert trio.run(_agent(module, source).reply, _message("hello")).text == "hello"


def test_a_class_derived_from_base_agent_without_reset_is_made_anew(module: Module) -> None:
    source = """
from longspan import BaseAgent, Reply
class Mine(BaseAgent):
    def __init__(self):
        super().__init__()
        self.asked = 0
    async def reply(self, message):
        self.asked += 1
        return Reply(str(self.asked))
"""

    async def conversations() -> list[str]:
        agent = _agent(module, source)
        said = []
        for _ in range(2):
            said += [(await agent.reply(_message("x"))).text for _ in range(2)]
            await agent.reset()
        return said

    assert _run(conversations) == ["1", "2", "1", "2"]


@pytest.mark.parametrize("waits", ["def reply(self, message): go.wait(20)", "async def reply(self, message): await asyncio.sleep(600)"])
def test_a_call_that_does_not_return_in_time_ends_the_conversation(module: Module, waits: str) -> None:
    agent = _agent(module, f"import asyncio, threading\ngo = threading.Event()\nclass Mine:\n    {waits}\n", options="?timeout=0.05")

    async def play() -> None:
        with pytest.raises(AgentError, match=r":Mine: reply: no complete answer within 0\.05 s; set \?timeout=SECONDS"):
            await agent.reply(_message("x"))
        await close_agent(agent)

    _run(play)
    sys.modules[type(agent.object).__module__].go.set()  # type: ignore[attr-defined]


def test_a_dict_is_a_reply_as_it_is_in_another_process(module: Module) -> None:
    source = "class Mine:\n    def reply(self, m): return {'text': m.text, 'usage': {'output_tokens': 3}, 'trace': {'written': []}}\n"
    assert trio.run(_agent(module, source).reply, _message("hello")) == Reply("hello", Usage(output_tokens=3), {"written": []})


@pytest.mark.parametrize(
    ("source", "spec", "parts"),
    [
        ("", "{m}", ["python:package.module:Class"]),
        ("", "{m}:", ["python:package.module:Class"]),
        ("", "./agent.py:Mine", ["not a file's path", "in the folder that contains agent.py and write python:agent:Mine"]),
        ("", "agent.py:Mine", ["not a file's path", "python:agent:Mine"]),
        ("", "/srv/agent:Mine", ["not a file's path", "python:agent:Mine"]),
        ("", "no_such_module_at_all:Mine", ["no module 'no_such_module_at_all'", "folder"]),
        ("", "{m}.deeper:Mine", ["no module", "deeper"]),
        ("import no_such_thing", "{m}:Mine", ["importing", "ModuleNotFoundError", "no_such_thing"]),
        ("x = 1\n1 / 0", "{m}:Mine", ["importing", "ZeroDivisionError", ".py:2)"]),
        ("raise SystemExit", "{m}:Mine", ["importing", "SystemExit"]),
        ("class Yours: pass", "{m}:Mine", ["no class 'Mine'", "Yours"]),
        ("Mine = 3", "{m}:Mine", ["is a int, not a class"]),
        ("class Mine: pass", "{m}:Mine", ["no method reply", "def reply(self, message)"]),
        ("class Mine:\n    reply = 'OK.'", "{m}:Mine", ["no method reply"]),
        ("class Mine:\n    def __init__(self, model): pass", "{m}:Mine", ["the class needs model", "did you mean", "?model=...?"]),
        ("class Mine:\n    def __init__(self, model): pass", "{m}:Mine?modle=x", ["the option 'modle'; did you mean model?"]),
    ],
)
def test_the_error_for_a_class_that_cannot_be_loaded_has_a_remedy(module: Module, source: str, spec: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_agent(AgentSpec.parse(f"python:{spec.format(m=module(source))}"))
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_in_the_constructor_names_the_class(module: Module) -> None:
    with pytest.raises(AgentError, match="its constructor raised RuntimeError: no key"):
        _agent(module, "class Mine:\n    def __init__(self): raise RuntimeError('no key')\n    def reply(self, m): ...\n")


def test_a_class_inside_a_class_can_be_named(module: Module) -> None:
    agent = _agent(module, "class Outer:\n    class Mine:\n        def reply(self, message): return 'inner'\n", name="Outer.Mine")
    assert trio.run(agent.reply, _message("x")).text == "inner"
