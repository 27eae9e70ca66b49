"""What agents of one's own say that they cost, and limits that stop them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Service

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.memory.memory_answers import SearchAnswer
from longspan.agents.outside.protocol import ReplyAnswer, WorkAnswer, read_answer
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.subject.ledger import price_usage
from longspan.simulator.subject.spending_limit import Amount, limit_of
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite

SUITE = load_suite("ltm").apply_changes([], [], ["colours"], 1)

PAYER = """
asked = 0
class Payer:
    def reply(self, message):
        global asked
        asked += 1
        return {{"text": "OK.", **{said}}}
"""
OBSERVER = PAYER + "    def observe(self, message, reply): pass\n"

OPENAI = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "prompt_tokens_details": {"cached_tokens": 600}}
GPT = price_usage("openai/gpt-4o", Usage(1000, 600, 10)) or 0.0

Module = Callable[[str], str]


def planned(out: Path, agent: str) -> Plan:
    return plan_run(RunSettings(suite=SUITE, span=2000, seed=0, agent=agent), out)


def replies(run: RunFolder) -> list[events.Reply]:
    return [event for event in read_journal(run.journal("main")) if isinstance(event, events.Reply) and event.asked]


@pytest.mark.parametrize(
    ("said", "options", "each"),
    [
        ({"cost_usd": 0.01}, "", 0.01),
        ({"usage": {**OPENAI, "model": "openai/gpt-4o"}}, "", GPT),
        ({"usage": OPENAI}, "?price_in=10&price_cached=1&price_out=100", (400 * 10 + 600 + 10 * 100) / 1e6),
        ({"usage": {**OPENAI, "model": "openai/gpt-4o"}, "cost_usd": 0.25}, "?price_in=10&price_out=100", 0.25),
    ],
)
def test_a_priced_agent_stops_at_max_cost_and_goes_on_with_more(
    said: dict[str, Any], options: str, each: float, module: Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = module(OBSERVER.format(said=said))
    agent = f"python:{name}:Payer{options}"
    limit = limit_of(3.5 * each)
    (stopped,) = trio.run(lambda: play_plans([planned(tmp_path, agent)], limit=limit))
    assert isinstance(stopped.error, StoppedError)
    assert f"exceed the limit of ${3.5 * each:.2f}" in str(stopped.error)
    assert ("not known beforehand" in capsys.readouterr().err) == (not options)
    run = RunFolder(stopped.folder)
    assert [reply.cost_usd for reply in replies(run)] == [{"agent": pytest.approx(each)}] * 3

    again = trio.run(lambda: resume_run(run, agent, limit=limit))
    assert isinstance(again.error, StoppedError)
    assert len(replies(run)) == 3, "what it has cost so far counts, and what its replies cost"

    resumed = trio.run(lambda: resume_run(run, agent, limit=limit_of(100)))
    assert resumed.error is None
    assert resumed.result is not None
    assert resumed.result.costs["agent"].cost_usd == pytest.approx(each * len(replies(run)))


COMPONENTS = """
from types import SimpleNamespace
class Payer:
    def reply(self, message):
        besides = {{"embedder": SimpleNamespace(prompt_tokens=5)}}
        return dict(text="OK.", usage={{"input_tokens": 9, "output_tokens": 1}}, besides=besides, measured={{"search_s": 0.25}}, {cost})
"""
BY_PART = "cost_usd={'agent': 0.02, 'embedder': 0.001}"


@pytest.mark.parametrize("options", ["", f"?interpreter={sys.executable}"])
@pytest.mark.parametrize(
    ("cost", "prices", "costs"),
    [
        (BY_PART, "", {"agent": 0.02, "embedder": 0.001}),
        ("cost_usd=0.5", "", {"agent": 0.5, "embedder": 0}),
        ("", "price_in=1&price_out=1", {"agent": 10 / 1e6, "embedder": None}),
        ("", "", {"agent": None, "embedder": None}),
    ],
)
def test_what_a_reply_says_of_its_components_is_journaled(
    options: str, cost: str, prices: str, costs: dict[str, float | None], module: Module, tmp_path: Path
) -> None:
    name = module(COMPONENTS.format(cost=cost))
    separator = "" if not prices else "&" if options else "?"
    (outcome,) = trio.run(lambda: play_plans([planned(tmp_path, f"python:{name}:Payer{options}{separator}{prices}")]))
    assert outcome.error is None
    run = RunFolder(outcome.folder)
    for reply in replies(run):
        assert (reply.besides, reply.cost_usd) == ({"embedder": {"input_tokens": 5, "cached_tokens": 0, "output_tokens": 0}}, costs)
        assert (reply.measured or {})["search_s"] == 0.25
    dropped = [event for event in read_journal(run.journal("main")) if isinstance(event, events.Reply) and not event.asked]
    assert dropped
    for reply in dropped:
        assert reply.cost_usd == {"dropped": costs["agent"], "embedder": costs["embedder"]}


def test_the_models_of_components_are_priced() -> None:
    answer = {"text": "x", "besides": {"reranker": {"model": "openai/gpt-4o", **OPENAI}, "embedder": {"input_tokens": 3}}}
    assert ReplyAnswer.model_validate(answer).reply().cost_usd == {"reranker": pytest.approx(GPT)}


GROWING = """
import asyncio

taken = []

class Payer:
    # What a reply takes grows with the conversation, as the bill of a model does that is sent all of it.
    def __init__(self):
        self.said = 0

    async def reply(self, message):
        self.said += len(message.text)
        await asyncio.sleep(0)
        tokens = self.said ** 2 // 1000 + 10
        taken.append(tokens)
        return {"text": "OK.", "usage": {"input_tokens": tokens, "output_tokens": 0}, "cost_usd": tokens / 100_000}

    async def observe(self, message, reply):
        self.said += len(message.text) + len(reply)
"""


class Growing:
    """The same as a server, which holds all conversations."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.said: dict[str, int] = {}

    def __call__(self, request: dict[str, Any]) -> tuple[int, bytes]:
        said = self.said[request["conversation"]] = self.said.get(request["conversation"], 0) + len(request.get("text", ""))
        if request["call"] != "reply":
            return 200, json.dumps({"protocol": 1, "can": ["observe"]} if request["call"] == "hello" else {}).encode()
        tokens = said**2 // 1000 + 10
        self.taken.append(tokens)
        answer = {"text": "OK.", "usage": {"input_tokens": tokens, "output_tokens": 0}, "cost_usd": tokens / 100_000}
        return 200, json.dumps(answer).encode()


@pytest.mark.parametrize("limit", [limit_of(0.05), limit_of(None, 5_000)], ids=["dollars", "tokens"])
@pytest.mark.parametrize(("kind", "tests"), [("python", 1), ("python", 20), ("python", 100), ("http", 1), ("http", 20), ("http", 100)])
def test_conversations_at_once_exceed_a_limit_by_what_one_reply_takes_at_most(
    kind: str, tests: int, limit: Amount, module: Module, tmp_path: Path
) -> None:
    server = Growing()
    with Service(server).running() as service:
        name = module(GROWING)
        agent = f"python:{name}:Payer" if kind == "python" else service.address
        suite = load_suite("ltm").apply_changes([], [], ["colours", "shopping"], tests)
        planned = plan_run(RunSettings(suite=suite, span=2000, seed=0, agent=agent, isolated=True), tmp_path)
        (outcome,) = trio.run(lambda: play_plans([planned], limit=limit))
    taken = __import__(name).taken if kind == "python" else server.taken
    most = 5_000 if limit.tokens == 5_000 else 0.05 * 100_000
    assert sum(taken) <= most + max(taken)
    assert isinstance(outcome.error, StoppedError) if tests > 1 else sum(taken) < most, str(outcome.error)
    assert outcome.result is not None
    spent = outcome.result.costs["agent"]
    assert (spent.input_tokens, spent.cost_usd) == (sum(taken), pytest.approx(sum(taken) / 100_000))
    if tests > 1:
        assert sum(taken) > most - 2 * max(taken), "what is left would not do for another reply"


def test_of_an_agent_that_does_not_tell_its_cost_one_reply_is_asked_however_many_conversations_wait(module: Module, tmp_path: Path) -> None:
    name = module(OBSERVER.format(said={"usage": {"input_tokens": 9}}))
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 20)
    planned = plan_run(RunSettings(suite=suite, span=2000, seed=0, agent=f"python:{name}:Payer", isolated=True), tmp_path)
    (outcome,) = trio.run(lambda: play_plans([planned], limit=limit_of(1)))
    assert isinstance(outcome.error, AgentError)
    assert __import__(name).asked == 1


@pytest.mark.parametrize("limit", [0.02, 0.05])
def test_a_memory_that_is_told_a_history_stops_at_the_limit_too(limit: float, tmp_path: Path) -> None:
    suite = Suite(name="diary", tests=3, scenarios={"python:tests.diary:Diary": {"entries": 30}})
    agent = "memory/python:tests.agents.memories:Billing?answerer=none&batch=2&unchecked=true"
    (outcome,) = trio.run(
        lambda: play_plans([plan_run(RunSettings(suite=suite, span=2000, seed=0, agent=agent), tmp_path)], limit=limit_of(limit))
    )
    assert isinstance(outcome.error, StoppedError)
    assert "exceed the limit of" in str(outcome.error)
    run = RunFolder(outcome.folder)
    told = costs_of(run)
    each = max(told)
    assert limit - each <= sum(told) <= limit + each
    assert outcome.result is not None
    assert outcome.result.costs["memory"].cost_usd == pytest.approx(sum(told))


def test_nights_stop_at_the_limit_too(tmp_path: Path) -> None:
    agent = "memory/python:tests.agents.memories:Billing?answerer=none&batch=turn"
    plans = [plan_run(RunSettings(suite=SUITE, span=2000, seed=seed, agent=agent, nights=3), tmp_path) for seed in range(4)]
    outcomes = trio.run(lambda: play_plans(plans, limit=limit_of(1.2)))
    spent = [cost for outcome in outcomes for cost in costs_of(RunFolder(outcome.folder))]
    assert 0.5 in spent, "a night"
    assert sum(spent) <= 1.2 + max(spent)
    assert "exceed the limit" in " ".join(str(outcome.error) for outcome in outcomes)


def costs_of(run: RunFolder) -> list[float]:
    """What a memory tells that its turns and nights cost, in all conversations that have begun."""
    journals = [run.journal(id) for id in run.manifest.conversations if run.journal(id).exists()]
    told = [
        event.cost_usd or {} for journal in journals for event in read_journal(journal) if isinstance(event, events.Reply | events.Night)
    ]
    return [each["memory"] or 0.0 for each in told if "memory" in each]


def test_replies_that_are_dropped_count_too(module: Module, tmp_path: Path) -> None:
    name = module(PAYER.format(said={"cost_usd": 0.01}))
    agent = f"python:{name}:Payer"
    (stopped,) = trio.run(lambda: play_plans([planned(tmp_path, agent)], limit=limit_of(0.055)))
    assert isinstance(stopped.error, StoppedError)
    assert __import__(name).asked == 5
    whole = trio.run(lambda: resume_run(RunFolder(stopped.folder), agent))
    assert whole.result is not None
    assert whole.result.costs["agent"].cost_usd == pytest.approx(0.01 * len(replies(RunFolder(stopped.folder))))
    run = RunFolder(stopped.folder)
    dropped = [event.cost_usd for event in read_journal(run.journal("main")) if isinstance(event, events.Reply) and not event.asked]
    assert dropped
    assert all(cost == {"dropped": 0.01} for cost in dropped), "each with its own turn"
    assert whole.result.costs["dropped"].cost_usd == pytest.approx(0.01 * len(dropped))


def test_a_limit_of_tokens_stops_a_run_too(module: Module, tmp_path: Path) -> None:
    agent = f"python:{module(OBSERVER.format(said={'usage': OPENAI}))}:Payer"
    (stopped,) = trio.run(lambda: play_plans([planned(tmp_path, agent)], limit=limit_of(None, 4000)))
    assert "could take 1,010 tokens and exceed the limit of 4,000: 3,030 are used; `longspan resume --max-tokens-total`" in str(
        stopped.error
    )
    run = RunFolder(stopped.folder)
    used = grade_run(run).costs["agent"]
    assert (used.input_tokens, used.cached_tokens, used.output_tokens, used.cost_usd) == (3000, 1800, 30, None)
    assert trio.run(lambda: resume_run(run, agent, limit=limit_of(None, 1e6))).error is None


@pytest.mark.parametrize(
    ("said", "limit", "problem"),
    [
        ({}, limit_of(1), "does not state its cost, so that --max-cost cannot be enforced; give cost_usd"),
        ({"usage": {"input_tokens": 1, "model": "mine"}}, limit_of(1), "does not state its cost"),
        ({"cost_usd": 1}, limit_of(None, 1e6), "has no usage, so that --max-tokens-total cannot be enforced"),
    ],
)
def test_a_reply_that_does_not_tell_what_is_limited_ends_the_run(
    said: dict[str, Any], limit: Any, problem: str, module: Module, tmp_path: Path
) -> None:
    name = module(OBSERVER.format(said=said))
    (failed,) = trio.run(lambda: play_plans([planned(tmp_path, f"python:{name}:Payer")], limit=limit))
    assert isinstance(failed.error, AgentError)
    assert problem in str(failed.error)
    assert __import__(name).asked == 1


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 9, "cached_tokens": 4, "output_tokens": 2}, Usage(9, 4, 2)),
        (OPENAI, Usage(1000, 600, 10)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 0, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_tokens_details": {"cached_tokens": 4}}, Usage(9, 4, 2)),
        (
            {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "service_tier": "a"},
            Usage(54, 40, 2),
        ),
        ({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": None, "cache_creation_input_tokens": None}, Usage(9, 0, 2)),
        ({"prompt_tokens": 54, "completion_tokens": 2, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5}, Usage(54, 40, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_token_details": {"cache_read": 4}}, Usage(9, 4, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 10}}, Usage(9, 9, 0)),
        ({"prompt_tokens": 9, "total_tokens": 11}, Usage(9, 0, 2)),
        ({"output_tokens": 2, "total_tokens": 11}, Usage(9, 0, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 4, "cache_write_tokens": 1, "requests": 1}, Usage(9, 4, 2)),
    ],
)
def test_usage_is_understood_in_vendors_words(usage: dict[str, Any], counted: Usage) -> None:
    assert ReplyAnswer.model_validate({"text": "x", "usage": usage}).reply().usage == counted


@pytest.mark.parametrize(
    ("usage", "problem"),
    [
        ({}, "no count of tokens is known (it has nothing); give input_tokens and output_tokens"),
        ({"model": "openai/gpt-4o"}, "no count of tokens is known (it has nothing)"),
        ({"total_tokens": 7}, "no count of tokens is known (it has total_tokens)"),
        ({"prompt_tokens": None, "completion_tokens": None}, "no count of tokens is known (it has prompt_tokens, completion_tokens)"),
        ({"prompt_tokens_details": None, "prompt_token_counts": 9}, "prompt_token_counts"),
        ({"tokens_in": 9, "tokens_out": 2}, "unknown key 'tokens_in'"),
    ],
)
@pytest.mark.parametrize("kind", [ReplyAnswer, WorkAnswer, SearchAnswer])
def test_usage_without_a_count_is_refused_and_never_nothing(kind: Any, usage: dict[str, Any], problem: str) -> None:
    answer = {ReplyAnswer: {"text": "x"}, SearchAnswer: {"items": []}}.get(kind, {})
    with pytest.raises(AgentError) as refused:
        read_answer(json.dumps({**answer, "usage": usage}).encode(), kind)
    assert "usage" in str(refused.value)
    assert problem in str(refused.value)


GOOGLE = """
from google.genai.types import GenerateContentResponseUsageMetadata, ModalityTokenCount
usage = GenerateContentResponseUsageMetadata(
    prompt_token_count=1000, cached_content_token_count=600, candidates_token_count=7, thoughts_token_count=3, total_token_count=1010,
    prompt_tokens_details=[ModalityTokenCount(modality="TEXT", token_count=1000)])
"""
PYDANTIC_AI = """
from dataclasses import dataclass, field
@dataclass(kw_only=True)
class RunUsage:
    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    input_audio_tokens: int = 0
    details: dict = field(default_factory=dict)
    requests: int = 0
    tool_calls: int = 0
usage = RunUsage(input_tokens=1000, cache_read_tokens=600, output_tokens=10, requests=1, details={"reasoning_tokens": 3})
"""
AUTOGEN = """
from dataclasses import dataclass
@dataclass
class RequestUsage:
    prompt_tokens: int
    completion_tokens: int
usage = RequestUsage(prompt_tokens=1000, completion_tokens=10)
"""
OF_OPENAI = f"from openai.types import CompletionUsage\nusage = CompletionUsage(**{OPENAI})\n"
SLOTS = """
class Counted:
    def __init__(self): self.input_tokens, self.output_tokens = 1000, 10
usage = Counted()
"""


@pytest.mark.parametrize("where", ["", f"?interpreter={sys.executable}"])
@pytest.mark.parametrize("answer", ["{'text': 'x', 'usage': usage}", "Answer()"])
@pytest.mark.parametrize(
    ("source", "cached"),
    [(OF_OPENAI, 600), (GOOGLE, 600), (PYDANTIC_AI, 600), (AUTOGEN, 0), (SLOTS, 0)],
    ids=["openai", "google", "pydantic-ai", "autogen", "object"],
)
def test_a_vendors_object_may_be_given_as_it_is(source: str, cached: int, answer: str, where: str, module: Module) -> None:
    if answer == "Answer()" and not where:
        answer = "__import__('longspan').Reply('x', __import__('longspan').Usage(1000, %d, 10))" % cached  # noqa: UP031
    source += "class Answer:\n    text = 'x'\n    def __init__(self): self.usage = usage\n"
    name = module(source + f"class Mine:\n    def reply(self, message): return {answer}\n")

    async def script() -> Usage | None:
        agent: Any = make_agent(AgentSpec.parse(f"python:{name}:Mine{where}"))
        try:
            usage: Usage | None = (await agent.reply(Message("hello", datetime(2024, 5, 1), "t-1"))).usage
            return usage
        finally:
            await agent.close()

    assert trio.run(script) == Usage(1000, cached, 10)


@pytest.mark.parametrize("where", ["", f"?interpreter={sys.executable}"])
def test_an_object_without_counts_is_refused_by_name(where: str, module: Module) -> None:
    name = module("class Mine:\n    def reply(self, message): return {'text': 'x', 'usage': self.reply}\n")

    async def script() -> None:
        agent: Any = make_agent(AgentSpec.parse(f"python:{name}:Mine{where}"))
        try:
            await agent.reply(Message("hello", datetime(2024, 5, 1), "t-1"))
        finally:
            await agent.close()

    with pytest.raises(AgentError, match="usage is method; it must be a dict or an object with input_tokens and output_tokens"):
        trio.run(script)


def test_a_runnables_message_may_have_googles_usage(module: Module) -> None:
    source = (
        GOOGLE
        + """
class Said:
    type, content, usage_metadata = "ai", "x", usage

class Runnable:
    def invoke(self, sent, config): return Said()

runnable = Runnable()
"""
    )
    agent: Any = make_agent(AgentSpec.parse(f"runnable:{module(source)}:runnable"))
    assert trio.run(agent.reply, Message("hello", datetime(2024, 5, 1), "t-1")).usage == Usage(1000, 600, 10)


@pytest.mark.parametrize("options", ["price_in=1", "price_out=1", "price_cached=1", "price_in=-1&price_out=1", "price_in=nan&price_out=1"])
@pytest.mark.parametrize("kind", ["http://127.0.0.1:1/", "openai/gpt-4o"])
def test_prices_are_checked_at_the_door(kind: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    with pytest.raises(InputError, match="price_"):
        make_agent(AgentSpec.parse(f"{kind}?{options}"))
