"""Memories of one's own: classes, servers and MCP servers; and Chroma. Each remembers, is saved and restored, and errors name it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.agents.memories import Answering, Slow
from tests.loopback import Server, Service

from longspan.agents.base import AgentError, InputError, Message
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

HERE = Path(__file__).parent
START = datetime(2024, 5, 7, 18)
MCP = {
    "mcp, files": f"mcp:{sys.executable} {HERE}/mcp_memory.py {{folder}}/facts.json",
    "mcp, calls": f"mcp:{sys.executable} -S {HERE}/mcp_rude.py remember",
}
KINDS = {
    "chroma": "chroma?embedder=hash&chunk=40&overlap=10",
    "plain": "python:tests.agents.memories:Plain?pages=30",
    "asyncio": "python:tests.agents.memories:Slow",
    "elsewhere": f"python:tests.agents.memories:Plain?interpreter={sys.executable}",
    **MCP,
}


def message(number: int, text: str) -> Message:
    return Message(text, START + timedelta(minutes=number), f"t{number}")


def made(kind: str, options: str = "answerer=none&batch=turn") -> Any:
    return make_agent(AgentSpec.parse(f"memory/{kind}{'&' if '?' in kind else '?'}{options}"))


@pytest.fixture
def served() -> Iterator[str]:
    with Service(Answering()).running() as service:
        yield f"{service.address}/memory"


@pytest.fixture(params=[*KINDS, "http"])
def kind(request: pytest.FixtureRequest, served: str) -> str:
    return KINDS.get(request.param, served)


async def _fill(agent: Any) -> list[Any]:
    texts = [f"Person {number} likes the colour number {number % 7}." for number in range(20)]
    told = [await agent.observe(message(number, text), "I see.") for number, text in enumerate(texts)]
    return [*told, await agent.observe(message(20, "Brunhilde keeps an axolotl."), "")]


def test_what_it_is_told_is_found_and_a_restored_one_finds_the_same(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        one = made(kind)
        try:
            await _fill(one)
            first = await one.reply(message(21, "What does Brunhilde keep? An axolotl?"))
            best = first.trace["read"][0]
            assert "axolotl" in best["text"]
            assert best["turns"] == ["t20"], "as it says itself, or by its words"
            if "Slow" not in kind:
                assert best["text"] in ("Brunhilde keeps an axolotl.", "[Tue 2024-05-07 18:20:00] Brunhilde keeps an axolotl.")
            assert ("written" in first.trace) == ("Slow" not in kind and "mcp" not in kind)
            if not one.has_snapshots:
                assert "Slow" in kind
                return
            await one.save(tmp_path)
            other = made(kind)
            try:
                await other.load(tmp_path)
                question = message(22, "Who likes the colour number 3?")
                assert (await one.reply(question)).trace == (await other.reply(question)).trace
                await other.reset()
                found = (await other.reply(message(23, "An axolotl?"))).trace["read"]
                assert [each for each in found if "axolotl" in each["text"]] == []
            finally:
                await other.close()
        finally:
            await one.close()

    trio.run(scenario)


@pytest.mark.parametrize("changes", ["Refreshing", "Logging"])
@pytest.mark.parametrize("interpreter", ["", f"?interpreter={sys.executable}"])
def test_what_a_search_changes_is_taken_back_so_that_each_question_finds_what_a_fresh_copy_would(
    changes: str, interpreter: str, tmp_path: Path
) -> None:
    """42 questions, each with one turn of evidence, asked of one memory, of a fresh copy for each, and of one whose search is said to
    change nothing though it does."""
    names = [f"Q{chr(97 + number // 6)}{chr(97 + number % 6)}ren" for number in range(42)]
    asked = [Message(f"Which berth does {name} rent?", START + timedelta(days=9), f"q{name}") for name in names]

    async def told(kind: str) -> Any:
        agent = made(f"python:tests.agents.memories:{kind}{interpreter}")
        for number, name in enumerate(names):
            await agent.observe(message(number, f"{name} rents the berth with the number {number + 100} for a boat."), "Noted.")
        return agent

    async def found(kind: str) -> list[list[str]]:
        agent = await told(kind)
        try:
            await agent.mark()
            replies = []
            for question in asked:
                replies.append(await agent.reply(question))
                await agent.rewind()
            return [[memory["turns"][0] for memory in reply.trace["read"]] for reply in replies]
        finally:
            await agent.close()

    async def found_afresh() -> list[list[str]]:
        first = await told(changes)
        await first.save(tmp_path)
        await first.close()
        turns = []
        for question in asked:
            agent = made(f"python:tests.agents.memories:{changes}")
            await agent.load(tmp_path)
            turns.append([memory["turns"][0] for memory in (await agent.reply(question)).trace["read"]])
            await agent.close()
        return turns

    def recall(turns: list[list[str]]) -> float:
        return sum(f"t{number}" in found[:5] for number, found in enumerate(turns)) / len(turns)

    one = trio.run(found, changes)
    assert recall(one) == 1.0
    if not interpreter:
        assert one == trio.run(found_afresh)
        assert recall(trio.run(found, f"Says{changes}")) < 0.75, "as they were asked of one and the same memory"


def test_each_memory_tells_truly_whether_its_search_only_reads(kind: str) -> None:
    async def scenario() -> None:
        agent = made(kind)
        try:
            await agent.start()
            read_only = kind.startswith(("chroma", "http")) or "mcp_memory" in kind
            assert agent.memory.read_only_search == read_only
            assert agent.rewinds == ("Slow" not in kind)
            await _fill(agent)
            await agent.mark()
            question = message(21, "Who likes the colour number 3?")
            found = []
            for _ in range(2):
                found.append((await agent.reply(question)).trace["read"])
                await agent.rewind()
            assert found[0] == found[1] != []
        finally:
            await agent.close()

    trio.run(scenario)


@pytest.mark.parametrize("name", ["chroma", "elsewhere", "mcp, files"])
def test_it_is_ready_for_a_long_run(name: str) -> None:
    async def findings() -> list[tuple[str, str]]:
        spec = KINDS[name]
        found = check_agent(AgentSpec.parse(f"memory/{spec}{'&' if '?' in spec else '?'}answerer=none"))
        return [(finding.check, finding.verdict) async for finding in found]

    assert {check: verdict for check, verdict in trio.run(findings) if verdict != "good"} == {"forget": "note"}


def test_what_a_memorys_own_models_take_is_told_with_each_batch_and_marked_ones_have_settled(openai_key: None) -> None:
    settled = Slow.settled

    async def scenario() -> None:
        with Server().running() as server:
            agent = made(KINDS["asyncio"], f"answerer=openai/gpt-4o-mini&answerer.base_url={server.base_url('openai')}&batch=2")
            told = await _fill(agent)
            assert [each is not None for each in told] == [number % 2 == 1 for number in range(21)]
            await agent.mark()
            reply = await agent.reply(message(21, "What does Brunhilde keep?"))
            for each in (*told[1::2], reply):
                assert (each.besides["memory"].input_tokens, each.besides["memory"].output_tokens) == (100, 10)
                assert each.cost_usd == {"memory": 0.25}
            assert agent.models.keys() == {"agent"}
            assert "user: Person 3 likes" in server.asked[-1].texts[-1][1]
            assert Slow.settled == settled + 1
            await agent.close()

    trio.run(scenario)


def test_embeddings_are_counted_and_priced(openai_key: None) -> None:
    async def scenario() -> None:
        def say(body: dict[str, Any]) -> tuple[int, bytes]:
            data = [{"index": number, "embedding": [len(text), 1, text.count("a")]} for number, text in enumerate(body["input"])]
            return 200, json.dumps({"data": data, "usage": {"prompt_tokens": 10 * len(data)}}).encode()

        with Service(say).running() as service:
            agent = made(f"chroma?embedder=openai/text-embedding-3-small&embedder_url={service.address}/v1")
            told = [each for each in await _fill(agent) if each is not None]
            reply = await agent.reply(message(21, "What does Brunhilde keep?"))
            assert sum(each.besides["embedder"].input_tokens for each in (*told, reply)) == 230
            assert agent.models.keys() == {"embedder"}
            await agent.close()

    trio.run(scenario)


FRESH = """
from longspan import Memory, MemoryItem

class Mine(Memory):
    opened = 0

    def __init__(self, word="nothing"):
        super().__init__()
        self.word, self.kept = word, []

    async def start(self):
        type(self).opened += 1

    async def close(self):
        type(self).opened -= 1

    async def add(self, turns, at):
        self.kept += [turn.text for turn in turns]

    async def search(self, query, k, at):
        return [MemoryItem(f"{self.word}: {text}") for text in self.kept]
"""


def test_a_class_derived_from_memory_without_reset_is_made_anew(module: Callable[[str], str]) -> None:
    name = module(FRESH)

    async def conversations() -> None:
        agent = made(f"python:{name}:Mine?word=said")
        await agent.start()
        for number, text in enumerate(("One.", "Two.")):
            await agent.observe(message(2 * number, text), "")
            reply = await agent.reply(message(2 * number + 1, "What?"))
            assert [item["text"] for item in reply.trace["read"]] == [f"said: {text}"]
            await agent.reset()
        assert sys.modules[name].Mine.opened == 1
        await agent.close()
        assert sys.modules[name].Mine.opened == 0

    trio.run(conversations)


BAD = """
class NoSearch:
    def add(self, turns, at): ...

class Returns:
    def __init__(self, what):
        self.what = what
    def add(self, turns, at): ...
    def search(self, query, k, at):
        if self.what == "fails":
            return 1 / 0
        return {"text": ["a"], "none": None, "str": "abc", "object": [object()], "score": [{"text": "a", "score": float("nan")}],
                "key": [{"text": "a", "body": "b"}], "nothing": [{"turns": ["t1"]}]}[self.what]

class Dear:
    def add(self, turns, at):
        raise ValueError("out of paper")
    def search(self, query, k, at):
        return []
"""


@pytest.mark.parametrize("interpreter", ["", f"&interpreter={sys.executable}"])
def test_what_a_class_does_wrong_is_said_in_one_line(interpreter: str, module: Callable[[str], str]) -> None:
    name = module(BAD)

    async def reply(spec: str) -> None:
        agent = made(spec + (interpreter if "?" in spec else interpreter.replace("&", "?")))
        try:
            await agent.observe(message(0, "Hello."), "Hi.")
            await agent.reply(message(1, "Hello?"))
        finally:
            await agent.close()

    trio.run(reply, f"python:{name}:Returns?what=text")
    for spec, said in {
        f"{name}:NoSearch": "has no method search: add `def search\\(self, query, k, at\\)` that returns",
        f"{name}:Returns?what=none": "search: .*items: must be a list",
        f"{name}:Returns?what=str": "search: .*it returned str; it must return a list of memories",
        f"{name}:Returns?what=object": "search: .*a memory is object; it must be a str, or a dict",
        f"{name}:Returns?what=score": "search: .*(not JSON|JSON compliant)",
        f"{name}:Returns?what=key": "search: .*items.0.body: unknown key",
        f"{name}:Returns?what=nothing": "search: .*items.0.text: is missing",
        f"{name}:Returns?what=fails": "search.* ZeroDivisionError",
        f"{name}:Dear": "add.* ValueError: out of paper",
    }.items():
        with pytest.raises((AgentError, InputError), match=f"memory/python:{name}.*{said}"):
            trio.run(reply, f"python:{spec}")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"items": [{"text": 3}]}, "search: gave an invalid answer: items.0.text: must be text"),
        ({}, "search: gave an invalid answer: items: is missing"),
        ({"items": [], "cost_usd": -1}, "search: gave an invalid answer: cost_usd: must be at least 0"),
        ({"items": [{"text": "a", "at": "yesterday"}]}, "search: gave an invalid answer: items.0.at: "),
        ({"error": "no room"}, "search: failed: no room"),
    ],
)
def test_what_a_server_answers_is_validated(answer: Any, said: str) -> None:
    def say(request: dict[str, Any]) -> tuple[int, bytes]:
        return 200, json.dumps({"hello": {"protocol": 1}, "search": answer}.get(request["call"], {})).encode()

    async def ask() -> None:
        agent = made(service.address)
        try:
            await agent.reply(message(0, "Hello?"))
        finally:
            await agent.close()

    with Service(say).running() as service, pytest.raises(AgentError, match=said):
        trio.run(ask)


STRUCTURED = """
import json, sys

kept = []
TEXT = {"type": "string"}
ENTITIES = {"type": "array", "items": {"type": "object"}}
TOOLS = [
    {"name": "add_relation", "inputSchema": {"type": "object", "properties": {"one": TEXT, "other": TEXT}, "required": ["one", "other"]}},
    {"name": "create_entities", "inputSchema": {"type": "object", "properties": {"entities": ENTITIES}, "required": ["entities"]}},
    {"name": "search_nodes", "inputSchema": {"type": "object", "properties": {"query": TEXT, "most": {"type": "integer"}}}},
]
for line in sys.stdin:
    request = json.loads(line)
    method, given = request.get("method"), request.get("params", {})
    if "id" not in request:
        continue
    result = {"tools": TOOLS}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "graph", "version": "1"}}
    elif method == "tools/call" and given["name"] == "create_entities":
        kept += given["arguments"]["entities"]
        result = {"content": [{"type": "text", "text": "ok"}]}
    elif method == "tools/call":
        wanted = given["arguments"]["query"].lower().strip("?")
        found = [each for each in kept if wanted in each["observations"][0].lower()]
        text = json.dumps({"entities": found[: given["arguments"].get("most", 1000)], "relations": []})
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
"""An MCP server that keeps entities with observations, as the reference server for memories does."""


def test_a_tool_that_takes_more_than_one_text_is_given_a_template(tmp_path: Path) -> None:
    server = tmp_path / "graph.py"
    server.write_text(STRUCTURED)
    add = '{"entities": [{"name": "{turn}", "type": "turn", "observations": ["{text}", "{date}"]}]}'
    search = '{"query": "{text}", "most": "{k}"}'

    async def scenario() -> None:
        agent = made(f"mcp:{sys.executable} -S {server}", f"answerer=none&batch=turn&k=1&add_args={add}&search_args={search}")
        try:
            await agent.observe(message(0, "Brunhilde keeps an axolotl."), "")
            await agent.observe(message(1, "Ada keeps {k} axolotl and {text}."), "")
            reply = await agent.reply(message(2, "Axolotl?"))
            assert [each["text"] for each in reply.trace["read"]] == ["Brunhilde keeps an axolotl.\n2024-05-07T18:00:00"]
            found = (await agent.reply(message(3, "Ada?"))).trace["read"]
            assert found[0]["text"].startswith("Ada keeps {k} axolotl and {text}."), "what is said is no template"
        finally:
            await agent.close()

    trio.run(scenario)

    async def guessed() -> None:
        agent = made(f"mcp:{sys.executable} -S {server}", "answerer=none")
        try:
            await agent.start()
        finally:
            await agent.close()

    with pytest.raises(AgentError, match="no tool's name says that it is the one to add memories"):
        trio.run(guessed)
    with pytest.raises(InputError, match="add_args: must be a JSON object with"):
        made(f"mcp:{sys.executable} -S {server}", "answerer=none&add_args=entities")


@pytest.mark.parametrize(
    ("tools", "options", "said"),
    [
        ("lookup", "", r"no tool's name says that it is the one to add memories; name one with add=TOOL: lookup, recall"),
        ("remember", "&search=find", r"there is no tool 'find'; name one with search=TOOL: remember, recall"),
        ("lookup", "&add=lookup", None),
    ],
)
def test_the_tools_of_an_mcp_server_are_found_by_name_or_named(tools: str, options: str, said: str | None) -> None:
    async def start() -> None:
        agent = made(f"mcp:{sys.executable} -S {HERE}/mcp_rude.py {tools}", f"answerer=none{options}")
        try:
            await agent.start()
        finally:
            await agent.close()

    if said is None:
        trio.run(start)
    else:
        with pytest.raises(AgentError, match=said):
            trio.run(start)
