"""Users' own agents in whole runs: what they keep lasts, and no more of them live at once than they allow."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from tests.loopback import Server

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

Module = Callable[[str], str]


def played(agent: str, out: Path, *, tests: int = 1, isolated: bool = False) -> Result:
    """Play the scenario colours and return its result."""
    suite = load_suite("ltm").model_copy(update={"scenarios": {"colours": {}}, "tests": tests})
    settings = RunSettings(suite=suite, span=2000, agent=agent, isolated=isolated)
    (outcome,) = trio.run(play_plans, [plan_run(settings, out)])
    assert outcome.error is None
    return read_result(RunFolder(outcome.folder))


# Asyncio.

KEPT_CLIENT = """
import asyncio, json, os, pathlib
from openai import AsyncOpenAI

class Mine:
    def __init__(self, url):
        self.client = AsyncOpenAI(base_url=url, api_key="none")
        self.said = []

    async def reply(self, message):
        self.said.append({"role": "user", "content": message.text})
        if len(self.said) >= int(os.environ.get("KILLED_AT", 10**9)):
            os.kill(os.getpid(), 9)
        answer = await self.client.chat.completions.create(model="m", messages=self.said)
        text = answer.choices[0].message.content
        self.said.append({"role": "assistant", "content": text})
        usage = {"input_tokens": answer.usage.prompt_tokens, "output_tokens": answer.usage.completion_tokens}
        return {"text": text, "usage": usage}

    async def observe(self, message, reply):
        await asyncio.sleep(0)
        self.said += [{"role": "user", "content": message.text}, {"role": "assistant", "content": reply}]

    def save(self, folder):
        (folder / "said.json").write_text(json.dumps(self.said))

    def load(self, folder):
        self.said = json.loads((folder / "said.json").read_text())

    async def close(self):
        await self.client.close()
"""


def test_an_asyncio_class_with_a_kept_client_plays_is_killed_and_plays_on(module: Module, tmp_path: Path) -> None:
    name = module(KEPT_CLIENT)
    with Server(reply=lambda text: "Blue.").running() as server:
        agent = f"python:{name}:Mine?url={server.address}/v1"
        arguments = ["run", "--scenario", "colours", "--tests", "1", "--span", "2k", "--agent", agent, "--out", str(tmp_path / "runs")]
        command = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *arguments]
        killed = subprocess.run(command, env=os.environ | {"KILLED_AT": "5"}, capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        (manifest,) = (tmp_path / "runs").glob("*/manifest.json")
        run = RunFolder(manifest.parent)
        run.manifest.allow([agent])
        outcome = trio.run(resume_run, run, agent)
    gc.collect()  # anything left open warns, and a warning is an error
    assert outcome.error is None
    assert [test.status for test in read_result(run).tests] == ["scored"]
    asked = [request.body["messages"][-1]["content"] for request in server.asked]
    assert len(asked) == len(set(asked)) > 3, "no turn was asked twice"


GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

async def answer(state):
    return {"messages": [AIMessage(f"{len(state['messages'])} messages")]}

mine = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=InMemorySaver())
"""


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::PendingDeprecationWarning")  # LangChain's own
def test_a_graph_plays_a_run(module: Module, tmp_path: Path) -> None:
    (test,) = played(f"runnable:{module(GRAPH)}:mine", tmp_path).tests
    assert test.status == "scored"


# How many at once.

COUNTING = """
import json, os, sys
folder = sys.argv[1]

def live():
    return [name for name in os.listdir(folder) if name.startswith("live-")]

for number in range(100):
    try:
        os.close(os.open(f"{folder}/number-{number}", os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        pass
os.close(os.open(f"{folder}/live-{number}", os.O_CREAT))
if number < 2:  # the first two wait for each other
    open(f"{folder}/both", "rw"[number]).close()
open(f"{folder}/count-{number}", "w").write(str(len(live())))
for line in sys.stdin:
    hello = json.loads(line)["call"] == "hello"
    print(json.dumps({"protocol": 1, "can": ["observe"]} if hello else {"text": "OK."} if '"reply"' in line[:20] else {}), flush=True)
os.unlink(f"{folder}/live-{number}")
"""


def test_nine_isolated_tests_start_as_many_processes_at_once_as_the_agent_allows(tmp_path: Path) -> None:
    program, folder = tmp_path / "counting.py", tmp_path / "processes"
    program.write_text(COUNTING)
    folder.mkdir()
    os.mkfifo(folder / "both")
    result = played(f"exec:{sys.executable} -S {program} {folder}?at_once=2", tmp_path, tests=9, isolated=True)
    assert [test.status for test in result.tests] == ["scored"] * 9
    counts = [int(path.read_text()) for path in folder.glob("count-*")]
    assert (len(counts), max(counts)) == (9, 2)
    assert not list(folder.glob("live-*"))
