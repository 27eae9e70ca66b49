"""What agents of one's own say that they cost, and limits that stop them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.outside.protocol import ReplyAnswer
from longspan.simulator import events
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.amounts import limit_of
from longspan.simulator.errors import StoppedError
from longspan.simulator.grading.grades import grade_run
from longspan.simulator.journal import read_journal
from longspan.simulator.ledger import price
from longspan.simulator.planning import Plan, plan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import play, resume
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import load_suite

SUITE = load_suite("ltm").changed([], [], ["colours"], 1)

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
GPT = price("openai/gpt-4o", Usage(1000, 600, 10)) or 0.0

Module = Callable[[str], str]


def planned(out: Path, agent: str) -> Plan:
    return plan(RunSettings(suite=SUITE, span=2000, seed=0, agent=agent), out)


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
    (stopped,) = trio.run(lambda: play([planned(tmp_path, agent)], limit=limit))
    assert isinstance(stopped.error, StoppedError)
    assert f"exceed the limit of ${3.5 * each:.2f}" in str(stopped.error)
    assert ("not known beforehand" in capsys.readouterr().err) == (not options)
    run = RunFolder(stopped.folder)
    assert [reply.cost_usd for reply in replies(run)] == [{"agent": pytest.approx(each)}] * 3

    again = trio.run(lambda: resume(run, agent, limit=limit))
    assert isinstance(again.error, StoppedError)
    assert len(replies(run)) == 3, "what it has cost so far counts, and what its replies cost"

    resumed = trio.run(lambda: resume(run, agent, limit=limit_of(100)))
    assert resumed.error is None
    assert resumed.result is not None
    assert resumed.result.costs["agent"].cost_usd == pytest.approx(each * len(replies(run)))


def test_replies_that_are_dropped_count_too(module: Module, tmp_path: Path) -> None:
    name = module(PAYER.format(said={"cost_usd": 0.01}))
    agent = f"python:{name}:Payer"
    (stopped,) = trio.run(lambda: play([planned(tmp_path, agent)], limit=limit_of(0.055)))
    assert isinstance(stopped.error, StoppedError)
    assert __import__(name).asked == 5
    whole = trio.run(lambda: resume(RunFolder(stopped.folder), agent))
    assert whole.result is not None
    assert whole.result.costs["agent"].cost_usd == pytest.approx(0.01 * len(replies(RunFolder(stopped.folder))))
    assert (whole.result.costs["dropped"].cost_usd or 0) > 0


def test_a_limit_of_tokens_stops_a_run_too(module: Module, tmp_path: Path) -> None:
    agent = f"python:{module(OBSERVER.format(said={'usage': OPENAI}))}:Payer"
    (stopped,) = trio.run(lambda: play([planned(tmp_path, agent)], limit=limit_of(None, 4000)))
    assert "could take 1,010 tokens and exceed the limit of 4,000: 3,030 are used; `longspan resume --max-tokens-total`" in str(
        stopped.error
    )
    run = RunFolder(stopped.folder)
    used = grade_run(run).costs["agent"]
    assert (used.input_tokens, used.cached_tokens, used.output_tokens, used.cost_usd) == (3000, 1800, 30, None)
    assert trio.run(lambda: resume(run, agent, limit=limit_of(None, 1e6))).error is None


@pytest.mark.parametrize(
    ("said", "limit", "problem"),
    [
        ({}, limit_of(1), "does not tell its cost, so that --max-cost cannot be enforced; give cost_usd"),
        ({"usage": {"input_tokens": 1, "model": "mine"}}, limit_of(1), "does not tell its cost"),
        ({"cost_usd": 1}, limit_of(None, 1e6), "has no usage, so that --max-tokens-total cannot be enforced"),
    ],
)
def test_a_reply_that_does_not_tell_what_is_limited_ends_the_run(
    said: dict[str, Any], limit: Any, problem: str, module: Module, tmp_path: Path
) -> None:
    name = module(OBSERVER.format(said=said))
    (failed,) = trio.run(lambda: play([planned(tmp_path, f"python:{name}:Payer")], limit=limit))
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
    ],
)
def test_usage_is_understood_in_vendors_words(usage: dict[str, Any], counted: Usage) -> None:
    assert ReplyAnswer.model_validate({"text": "x", "usage": usage}).reply().usage == counted


@pytest.mark.parametrize("where", ["", f"?interpreter={sys.executable}"])
def test_a_vendors_object_may_be_given_as_it_is(where: str, module: Module) -> None:
    source = f"from openai.types import CompletionUsage\nusage = CompletionUsage(**{OPENAI})\n"
    name = module(source + "class Mine:\n    def reply(self, message): return {'text': 'x', 'usage': usage}\n")

    async def script() -> Usage | None:
        agent: Any = make_agent(AgentSpec.parse(f"python:{name}:Mine{where}"))
        try:
            usage: Usage | None = (await agent.reply(Message("hello", datetime(2024, 5, 1), "t-1"))).usage
            return usage
        finally:
            await agent.close()

    assert trio.run(script) == Usage(1000, 600, 10)


@pytest.mark.parametrize("options", ["price_in=1", "price_out=1", "price_cached=1", "price_in=-1&price_out=1", "price_in=nan&price_out=1"])
@pytest.mark.parametrize("kind", ["http://127.0.0.1:1/", "openai/gpt-4o"])
def test_prices_are_checked_at_the_door(kind: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    with pytest.raises(InputError, match="price_"):
        make_agent(AgentSpec.parse(f"{kind}?{options}"))
