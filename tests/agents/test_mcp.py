"""mcp: models that use an MCP server's tools, each through its vendor's own dialect."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Act, Say, Server, Use
from tests.loopback.apis import Block

from longspan.agents.base import AgentError, InputError, Message, Reply
from longspan.agents.tools.agent import McpAgent
from longspan.agents.tools.server import McpServer
from longspan.simulator.contract.agent import close_agent, start_agent
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

HERE = Path(__file__).parent
REAL = f"{HERE}/mcp_memory.py {{folder}}/facts.json"
RUDE = f"-S {HERE}/mcp_rude.py"
START = datetime(2024, 1, 1, 9)


class Model:
    """Acts like a model with a memory: stores statements, looks up questions, and answers with the results."""

    def __init__(self, stores: str) -> None:
        self.stores = stores

    def __call__(self, blocks: list[Block]) -> Act:
        last = blocks[-1]
        if last.role == "tool":
            return Say("Noted." if last.text.startswith("Stored") else f"I know: {last.text}")
        asks = last.text.endswith("?")
        return Use((("recall", {"query": last.text.removesuffix("?")}),) if asks else ((self.stores, {"fact": last.text}),))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(decide=Model("memory_remember")).running() as running:
        yield running


def spec(server: Server, kind: str = "openai", command: str = RUDE, **options: object) -> str:
    given = {"base_url": server.base_url(kind), "timestamps": "false", "context": "3k"} | options
    return f"mcp:{sys.executable} {command}?model={kind}/m&" + "&".join(f"{name}={value}" for name, value in given.items())


def made(spec: str) -> McpAgent:
    agent = make_agent(AgentSpec.parse(spec))
    assert isinstance(agent, McpAgent)
    return agent


@asynccontextmanager
async def talking(spec: str) -> AsyncIterator[Callable[[str], Awaitable[Reply]]]:
    """Make an agent, and yield what asks it."""
    agent, turn = made(spec), 0

    async def ask(text: str) -> Reply:
        nonlocal turn
        turn += 1
        return await agent.reply(message(text, turn))

    try:
        yield ask
    finally:
        await agent.close()


def message(text: str, turn: int) -> Message:
    return Message(text, START + turn * timedelta(seconds=30), f"t-{turn}")


def traced(reply: Reply) -> dict[str, Any]:
    assert reply.trace is not None
    return reply.trace


@pytest.mark.parametrize(("kind", "command"), [("openai", REAL), ("anthropic", REAL), ("google", RUDE)])
def test_a_model_stores_and_looks_up_by_itself(kind: str, command: str, server: Server) -> None:
    async def body() -> tuple[Reply, Reply]:
        async with talking(spec(server, kind, command)) as ask:
            return await ask("The tide turns at nine."), await ask("When is the tide?")

    server.decide = Model("remember" if command == REAL else "memory_remember")
    told, asked = trio.run(body)
    assert (told.text, asked.text) == ("Noted.", "I know: The tide turns at nine.")
    (stored,) = traced(told)["written"]
    assert (stored["text"], traced(told)["read"]) == ("The tide turns at nine.", [])
    assert (traced(asked)["written"], traced(asked)["read"]) == ([], [stored | {"turns": ["t-1"], "inferred": "whole"}])
    (call,) = traced(asked)["tools"]
    assert call == {"tool": "recall", "arguments": {"query": "When is the tide"}, "result": "The tide turns at nine."}
    assert told.usage is not None
    rounds = [request.used for request in server.asked[:2] if request.used is not None]
    assert told.usage.input_tokens == sum(used.prompt for used in rounds), "usage is that of all rounds"
    assert [each["usage"]["input_tokens"] for each in traced(told)["calls"]] == [used.prompt for used in rounds]
    system = server.asked[0].texts[0][1]
    assert ("Remember what the user tells you." in system) == (command == REAL), "what the server says of itself"


def test_a_restored_server_is_given_the_calls_it_was_given(server: Server, tmp_path: Path) -> None:
    told = [message(text, n) for n, text in enumerate(["The tide is low.", "The tide is high.", "What is the tide?"])]

    async def body() -> tuple[str, str]:
        agent, other = made(spec(server)), made(spec(server))
        try:
            await agent.reply(told[0])
            await agent.save(tmp_path)
            after = await agent.reply(told[1])
            known = await agent.reply(told[2])
            await other.load(tmp_path)
            asked = len(server.asked)
            await other.replay(told[1], after)
            assert len(server.asked) == asked, "the model is not asked again"
            restored = await other.reply(told[2])
            assert restored.trace == known.trace
            await other.reset()
            return known.text, (await other.reply(told[2])).text
        finally:
            await agent.close()
            await other.close()

    assert trio.run(body) == ("I know: The tide is low.\nThe tide is high.", "I know: Nothing.\n[image]")


def test_half_a_character_in_a_call_is_not_sent_back(server: Server) -> None:
    async def body() -> Reply:
        async with talking(spec(server)) as ask:
            return await ask("The tide turns at nine.")

    server.script([Use((("tide\ud800", {}),))])
    assert trio.run(body).text == "I know: Error: there is no tool 'tide?'"
    assert "tide?" in str(server.asked[-1].body)


def test_a_tools_error_is_told_to_the_model(server: Server) -> None:
    calls = (("recall", "no json"), ("recall", {"wrong": 1}), ("forget", {}), *(("recall", {"query": "x"}),) * 14)
    server.script([Use(calls), Say("So what.")])

    async def body() -> Reply:
        async with talking(spec(server)) as ask:
            return await ask("Hello.")

    reply = trio.run(body)
    assert reply.text == "So what."
    told = [text for role, text in server.asked[-1].texts if role == "tool"]
    assert told[0] == "Error: its arguments are not a JSON object"
    assert "unexpected keyword" in told[1]
    assert told[2] == "Error: there is no tool 'forget'"
    assert told[15:] == ["Nothing.\n[image]", "Error: not called: at most 16 calls at once"]
    assert [call.get("failed", False) for call in traced(reply)["tools"]] == [True] * 3 + [False] * 13 + [True]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_calls_and_results_of_a_turn_are_bounded(kind: str, server: Server) -> None:
    server.always = Use((("memory_remember", {"fact": "SHOUT"}),) * 2)

    async def body(**options: object) -> Reply:
        agent = made(spec(server, kind, **options))
        try:
            reply = await agent.reply(message("Hello.", 1))
            assert reply.text == "(no reply: a tool call)", "it is told not to call, and does"
            assert server.asked[-1].body["tool_choice"] in ("none", {"type": "none"})
            assert reply.usage is not None
            assert agent.worst_case(message("Hello.", 1))["agent"].input_tokens >= reply.usage.input_tokens
            return reply
        finally:
            await agent.close()

    assert len(traced(trio.run(lambda: body(rounds=2, result_tokens=50)))["calls"]) == 3, "two rounds with calls, and the answer"
    results = [text for role, text in server.asked[-1].texts if role == "tool"]
    assert len(results) == 4
    assert all(len(text) < 1000 and "[...]" in text for text in results)
    trio.run(lambda: body(rounds=100))
    last = server.asked[-1].used
    assert last is not None
    assert last.prompt < 4000, "what does not fit into the context is not called for: each result has 2,000"


@pytest.mark.parametrize(
    ("fact", "problem"),
    [
        ("DIE", r"tool memory.remember: exited with status 3 before it answered; its last line on standard error: out of \S*paper"),
        ("HANG", "tool memory_remember: no answer within 3 s; set tool_timeout= if it needs longer"),
        ("BABBLE", "tool memory.remember: wrote more than 33,554,432 bytes in one line"),
    ],
)
def test_a_server_that_fails_ends_the_conversation_which_can_go_on(
    fact: str, problem: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = McpServer.start

    async def impatient(started: McpServer) -> None:
        """Start a server, which may take long, and then wait 3 s for its answers."""
        await begin(started)
        started.timeout = 3

    async def body() -> str:
        agent = made(spec(server))
        try:
            with monkeypatch.context() as patch:
                if fact == "HANG":
                    patch.setattr(McpServer, "start", impatient)
                with pytest.raises(AgentError, match=problem):
                    await agent.reply(message(fact, 1))
            await agent.reset()
            return (await agent.reply(message("The tide is low.", 1))).text
        finally:
            await agent.close()

    assert trio.run(body) == "Noted."


def endless(act: str, *arguments: object) -> str:
    return " ".join(["-S", f"{HERE}/mcp_endless.py", act, *map(str, arguments)])


@pytest.mark.parametrize("act", ["silent", "half", "child", "garbage", "blank", "errors", "notes"])
@pytest.mark.parametrize("kind", ["agent", "memory"])
def test_a_server_that_never_offers_its_tools_has_one_deadline(act: str, kind: str, server: Server) -> None:
    if kind == "memory" and act not in ("silent", "notes"):
        return  # the same code
    given = spec(server, command=endless(act), tool_timeout=1)
    agent = make_agent(AgentSpec.parse(given if kind == "agent" else f"memory/{given.partition('?')[0]}?answerer=words&tool_timeout=1"))

    late, flooded = (
        r"did not start within 1 s.*; set tool_timeout= if it needs longer$",
        "sent more than 10,000 messages before it answered",
    )

    async def body() -> None:
        try:
            with pytest.raises(AgentError, match=f"{late}|{flooded}" if act == "notes" else late):  # which comes first, nobody knows
                await start_agent(agent)
        finally:
            await close_agent(agent)

    trio.run(body)


MEASURED = """
import sys, trio
import mcp
from longspan.agents.base import AgentError
from longspan.agents.tools.server import McpServer
from pathlib import Path

async def body():
    for act in sys.argv[2:]:
        server = McpServer("tide", [sys.executable, "-S", sys.argv[1], act], Path(), 100)
        try:
            await server.start()
        except AgentError as error:
            print(error)
        finally:
            await server.end()

trio.run(body)
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


def test_tools_are_counted_and_measured_before_they_take_memory() -> None:
    def measured(*acts: str) -> tuple[list[str], int]:
        command = [sys.executable, "-c", MEASURED, f"{HERE}/mcp_endless.py", *acts]
        *told, size = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
        return told, int(size)

    _, before = measured("pages")
    told, after = measured("tools", "nothings", "parts", "line", "notes", "pages")
    may = "before its tools were known: it may have 128, described in 262,144 characters"
    assert told == [
        *[f"tide: wrote more than 2,097,152 bytes in one line, {may}"] * 2,
        f"tide: answered with more than 20,000 objects and lists, {may}",
        f"tide: wrote more than 2,097,152 bytes in one line, {may}",
        f"tide: sent more than 10,000 messages before it answered, {may}",
        "tide: offers no tools",
    ]
    assert after - before < 50, "MiB"


@pytest.mark.parametrize("command", [["check"], ["run", "ltm", "--span", "2k"]])
def test_ctrl_c_ends_a_server_that_never_offers_its_tools(command: list[str], server: Server, tmp_path: Path) -> None:
    agent = spec(server, command=endless("silent", started := tmp_path / "started"), tool_timeout=86_000)
    longspan = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *command, "--agent", agent]
    with subprocess.Popen(longspan, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            while not started.exists():
                assert running.poll() is None, running.communicate()
                time.sleep(0.05)
            running.send_signal(signal.SIGINT)
            if command[0] == "run":  # which first waits for the turn to end
                assert running.stderr is not None
                while "press Ctrl-C again" not in running.stderr.readline():
                    assert running.poll() is None
                running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=60)
        finally:
            running.kill()
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert running.returncode in (130, -signal.SIGINT)


def test_a_program_that_is_no_server_is_told_with_its_last_words(server: Server) -> None:
    async def body() -> None:
        async with talking(spec(server, command="-c 'raise SystemExit(\"no paper\")'")) as ask:
            await ask("Hello.")

    with pytest.raises(AgentError, match="exited with status 1 before it answered; its last line on standard error: no paper"):
        trio.run(body)


def test_a_command_has_words_with_spaces_and_question_marks(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my memory.py").write_text("import sys; sys.exit(repr(sys.argv))")
    monkeypatch.chdir(tmp_path)

    async def body() -> None:
        async with talking(spec(server, command="'my memory.py' 'a b' why%3F {folder}/x plain")) as ask:
            await ask("Hello.")

    with pytest.raises(AgentError, match=r"\['\S*/my memory.py', 'a b', 'why\?', '/\S*/longspan-mcp-\w+/x', 'plain'\]"):
        trio.run(body)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mcp:true", "agent mcp needs a model: mcp:COMMAND.model=KIND/MODEL"),
        ("mcp:nowhere?model=openai/m", "program 'nowhere' does not exist"),
        ("mcp:?model=openai/m", "expected mcp:COMMAND"),
        ("mcp:true?model=openai/m&base_url=http://127.0.0.1:9/v1&stream=true", "leave out stream=true"),
        (
            "mcp:true?model=openai/m&base_url=http://127.0.0.1:9/v1&depth=3",
            "unknown option 'depth'; mcp's options are .*rounds.* openai's are",
        ),
        ("mcp:true?model=openai/m&base_url=http://127.0.0.1:9/v1&rounds=0", "rounds"),
    ],
)
def test_what_is_wrong_is_told_at_the_door(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        make_agent(AgentSpec.parse(text))
