"""Runs from Python: what can be an agent, where runs may be awaited, and how they are interrupted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.threads import asyncio_run

import longspan
from longspan.simulator.api.playing import plan_runs
from longspan.simulator.journal import events
from longspan.simulator.running.runner import MAX_CONVERSATIONS

SMALL: dict[str, Any] = {"span": "2k", "scenarios": ["colours"], "tests": 1}


def replies(results: longspan.Results) -> list[list[str]]:
    """The replies of each run, in order."""
    journals = [longspan.read_journal(folder / "conversations" / "main" / "journal.jsonl") for folder in results.folders]
    return [[event.text for event in journal if isinstance(event, events.Reply) and event.asked] for journal in journals]


class Counter:
    """An agent that says how many messages it has had."""

    def __init__(self) -> None:
        self.had = 0
        self.closed = False

    def reply(self, message: longspan.Message) -> str:
        self.had += 1
        return str(self.had)

    def close(self) -> None:
        self.closed = True


class Forgetful(Counter):
    def reset(self) -> None:
        self.had = 0


class Awaited(Counter):
    async def reply(self, message: longspan.Message) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().reply(message)


class OfOurs(longspan.BaseAgent):
    had = 0

    async def reply(self, message: longspan.Message) -> longspan.Reply:
        await trio.lowlevel.checkpoint()
        self.had += 1
        return longspan.Reply(str(self.had))


def counting() -> Callable[[str], str]:
    """Make a function that counts."""
    had: list[str] = []

    def reply(text: str) -> str:
        had.append(text)
        return str(len(had))

    return reply


shared = Forgetful()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (shared, "Forgetful"),
        (Counter, "Counter"),
        (Awaited, "Awaited"),
        (OfOurs, "OfOurs"),
        (OfOurs(), "OfOurs"),
        (counting, "counting"),
        (lambda: [Counter()][0], "function"),
        ({"mine": counting}, "mine"),
        ([counting], "counting"),
    ],
)
def test_anything_that_replies_is_an_agent_and_each_conversation_has_it_from_the_beginning(agent: Any, name: str, tmp_path: Path) -> None:
    results = longspan.run("ltm", agent=agent, seeds=range(2) if name != "OfOurs" else 0, out=tmp_path, **SMALL)
    assert {row["agent"] for row in results.tests} == {f"given:{name}"}
    for said in replies(results):
        assert said[0] == "1"
        assert [int(text) for text in said] == sorted({int(text) for text in said})  # replies to filler are dropped
        assert len(said) >= 5


def test_what_is_shared_is_reset_before_each_conversation_called_in_one_thread_and_never_closed(tmp_path: Path) -> None:
    calls: list[str] = []
    threads: set[int] = set()

    class Watched(Forgetful):
        def reply(self, message: longspan.Message) -> str:
            calls.append(message.turn_id)
            threads.add(threading.get_ident())
            return super().reply(message)

        def reset(self) -> None:
            calls.append("reset")
            super().reset()

    agent = Watched()
    longspan.run("ltm", agent=agent, seeds=range(3), out=tmp_path, **SMALL)
    stretches = " ".join(calls).split("reset")
    assert stretches[0] == ""
    assert [len(set(stretch.split())) for stretch in stretches[1:]] == [len(stretch.split()) for stretch in stretches[1:]]
    assert (len(stretches), len(threads), agent.closed) == (4, 1, False)


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        (counting(), "agent reply would carry its memory through 2 conversations: pass a class or a factory"),
        (Counter(), "agent Counter would carry its memory through 2 conversations"),
        (7, "agent int: a int cannot be an agent; give a spec such as 'openai/gpt-4o', an object with a method reply"),
        (dict, "agent: no agent is given"),
        (str, "agent str: the class has no method reply"),
        (lambda one, two: "", "agent function: the function takes 2 arguments; it must take one, the message's text, or none"),
        ([counting, Counter], None),
        ([lambda: 1, lambda: 2], "agent: two agents are called function; choose names"),
        ({"my bot": Counter}, "agent: 'my bot' cannot be a name"),
        ("nothing", "there is no kind of agent 'nothing'"),
        ("given:me", "given:me is an object of a Python program"),
    ],
)
def test_what_cannot_be_an_agent_is_an_error_before_anything_is_written(agent: Any, error: str | None, tmp_path: Path) -> None:
    if error is None:
        longspan.run("ltm", agent=agent, out=tmp_path, **SMALL)
        return
    given = {} if agent is dict else agent
    with pytest.raises(longspan.InputError) as raised:
        longspan.run("ltm", agent=given, seeds=range(2), out=tmp_path, **SMALL)
    assert str(raised.value).startswith(error)
    assert list(tmp_path.iterdir()) == []


def test_parameters_and_data_are_dicts_or_the_values_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"turns": [{"speaker": "user", "text": "I like figs."}]}\n{"question": "What do I like?", "answer": "figs", "kind": "fact"}\n'
    )
    as_dicts = plan_runs("history", agent="silent", set={"questions": 1, "kinds": ["fact"]}, data={"history": path})
    as_lists = plan_runs("history", agent="silent", set=["questions=1", 'kinds=["fact"]'], data=[f"history={path}"])
    assert [plan.manifest.suite for plan in as_dicts] == [plan.manifest.suite for plan in as_lists]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"sapn": 3}, "longspan.run takes no 'sapn'; did you mean span?"),
        ({"seed": 3}, "longspan.run takes no 'seed'; did you mean seeds?"),
        ({"span": "2x"}, "span: "),
        ({"seeds": 1.5}, "seeds"),
        ({"suite": "lmt"}, "there is no suite"),
        ({"tests": 0}, "tests: "),
    ],
)
def test_wrong_settings_are_errors_that_name_the_parameter(settings: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(longspan.InputError, match=rf"^{error}"):
        longspan.run(**{"agent": "silent", "out": tmp_path} | settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"suite": "history", "data": {"history": "log"}}, r": branch=off asks them .*; branch=retell repeats the \d+ tokens"),
        ({"suite": "history", "data": {"histry": "log"}}, r"^data histry=log: .* did you mean history\?"),
        ({"suite": "history", "data": {"history": "log"}, "branch": "off", "nights": 1}, "^nights: every test has a separate conversation"),
        ({**SMALL, "out": "log"}, "; choose another with out=$"),
        ({**SMALL, "lesion": 3000}, "^lesion=3000: must be less than the span"),
        ({"suite": "x.yaml", "agent": "python:nobody:Knows"}, "; trust=True runs it, if you trust its author$"),
    ],
)
def test_errors_name_pythons_parameters(settings: dict[str, Any], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    questions = '{"question": "Who?", "answer": "A"}\n' * 2
    Path("log").write_text('{"role": "user", "content": "I am A."}\n' + questions, "utf-8")
    Path("x.yaml").write_text("name: x\nscenarios: {'python:nobody:Knows': {}}\n", "utf-8")
    with pytest.raises(longspan.InputError, match=error) as raised:
        longspan.run(**{"agent": Counter, "progress": False} | settings)
    assert "--" not in str(raised.value)


def test_async_functions_are_awaited_in_the_callers_loop_which_goes_on_and_several_runs_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        loops, beats = set(), []

        async def reply(text: str) -> str:
            loops.add(asyncio.get_running_loop())
            beats.append("asked")
            await asyncio.sleep(0)
            return "OK."

        async def beat() -> None:
            while True:
                beats.append("beat")
                await asyncio.sleep(0)

        beating = asyncio.create_task(beat())
        one, other = await asyncio.gather(
            longspan.run_async("ltm", agent=reply, out=tmp_path, **SMALL),
            longspan.run_async("ltm", agent={"reply": counting}, seeds=1, out=tmp_path, **SMALL),
        )
        beating.cancel()
        assert loops == {asyncio.get_running_loop()}
        assert replies(one)[0] == ["OK."] * len(replies(one)[0])
        assert "beat" in beats[beats.index("asked") :]
        assert replies(other)[0][0] == "1"
        with pytest.raises(longspan.AgentError, match=r"ValueError: no \{idea\}") as raised:
            await longspan.run_async("ltm", agent={"failing": lambda: failing_after(2)}, out=tmp_path, **SMALL)
        assert raised.value.__notes__[0].startswith("finished turns are saved; longspan.resume(")
        before = set(tmp_path.iterdir())
        with pytest.raises(longspan.AgentError, match=r"ValueError: no \{idea\} \(test_run.py:\d+\)$") as raised:
            await longspan.run_async("ltm", agent={"failing": lambda: failing_after(0)}, out=tmp_path, **SMALL)
        assert not hasattr(raised.value, "__notes__"), "nothing was played"
        assert set(tmp_path.iterdir()) == before

    asyncio_run(main)


def failing_after(replies: int) -> Callable[[str], Awaitable[str]]:
    left = ["OK."] * replies

    async def failing(text: str) -> str:
        if not left:
            raise ValueError("no {idea}")
        return left.pop()

    return failing


def test_a_call_that_blocks_works_in_a_thread_that_runs_asyncio_as_notebooks_have_it(tmp_path: Path) -> None:
    async def main() -> longspan.Results:
        return longspan.run("ltm", agent=Awaited, out=tmp_path, **SMALL)

    assert replies(asyncio_run(main))[0][:2] == ["1", "2"]


def test_under_trio_runs_are_played_where_they_are_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        here = trio.lowlevel.current_trio_token()
        tokens = set()

        async def reply(text: str) -> str:
            tokens.add(trio.lowlevel.current_trio_token())
            return "OK."

        results = await longspan.run_async("ltm", agent=reply, out=tmp_path, **SMALL)
        assert results.score == 0
        assert tokens == {here}
        with pytest.raises(longspan.InputError, match=r"write `await longspan\.run_async\(\.\.\.\)`"):
            longspan.run("ltm", agent=reply, out=tmp_path, **SMALL)

    trio.run(main)


def test_what_is_cancelled_is_kept_and_resumed(tmp_path: Path) -> None:
    async def main() -> Path:
        asked = asyncio.Event()

        async def reply(text: str) -> str:
            asked.set()
            await asyncio.sleep(3600)
            return "never"

        task = asyncio.create_task(longspan.run_async("ltm", agent=reply, out=tmp_path, **SMALL))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (folder,) = tmp_path.iterdir()
        return folder

    folder = asyncio_run(main)
    with pytest.raises(longspan.InputError, match=r"given:reply was an object of a Python program; pass it again as agent="):
        longspan.resume(folder)
    results = longspan.resume(folder, agent=counting)
    assert replies(results)[0][:2] == ["1", "2"]
    assert results.folders == longspan.load(folder).folders == [folder]
    assert results.tests[0]["agent"] == "given:reply"


INTERRUPTED = """
import os, signal, sys
import longspan

def reply(text):
    reply.had += 1
    if reply.had == 3:
        os.kill(os.getpid(), signal.SIGINT)
    if reply.had == 4 and sys.argv[2] == "twice":
        raise SystemExit("it was not stopped after its turn")
    return str(reply.had)

reply.had = 0
try:
    longspan.run("ltm", span="2k", agent=reply, out=sys.argv[1], scenarios=["colours"], tests=1)
except KeyboardInterrupt as error:
    print("stopped:", error)
print(longspan.resume(sys.argv[1] + "/ltm-2k-given-reply-seed0", agent=lambda: lambda text: "OK.").score)
"""


def test_ctrl_c_stops_after_the_current_turn_and_resuming_plays_the_rest(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path, "once"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"stopped: the runs are kept: {tmp_path}/ltm-2k-given-reply-seed0", "0.0"], done.stderr
    assert done.stderr == "stopping after the current turn; interrupt again to stop immediately\n"
    said = replies(longspan.load(tmp_path))[0]
    assert said[0] == "1"
    assert said[-1] == "OK."


def test_more_conversations_than_are_held_at_once_are_all_played(tmp_path: Path) -> None:
    """Shared agents hold one at a time, so that the others wait."""
    results = longspan.run("ltm", agent={"a": Forgetful(), "b": Forgetful()}, seeds=range(4), out=tmp_path, **SMALL)
    assert len(results.folders) == 8 < MAX_CONVERSATIONS
    assert {row["agent"]: row["runs"] for row in results.scores} == {"given:a": 4, "given:b": 4}
