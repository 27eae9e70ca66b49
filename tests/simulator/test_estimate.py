"""The estimate of what a run will take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from tests.loopback import Server

from longspan import BaseAgent, Message, Reply
from longspan.simulator.cli import main
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.estimate import Estimate, estimate_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("openai_key")

SUITE = load_suite("ltm").apply_changes([], [], ["colours", "name_list", "shopping"], 2)


def estimated(agent: str, span: int = 8000) -> Estimate:
    return trio.run(estimate_run, plan_run(RunSettings(suite=SUITE, span=span, seed=0, agent=agent), Path("nowhere")))


def test_the_estimate_is_close_to_the_run(tmp_path: Path) -> None:
    """The server replies "OK." to everything; ideal replies are longer, so that the estimate is slightly higher."""
    with Server().running() as server:
        agent = f"openai/gpt-4o?context=4k&base_url={server.base_url('openai')}"
        told = estimated(agent)
        (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=SUITE, span=8000, seed=0, agent=agent), tmp_path)])
    assert not Path("nowhere").exists()
    took = grade_run(RunFolder(outcome.folder))
    assert told.tokens == pytest.approx(took.tokens, rel=0.05)
    assert told.parts["agent"].input_tokens == pytest.approx(took.costs["agent"].input_tokens, rel=0.08)
    assert told.cost_usd is None, "what somebody's own server costs is not known"


class Wordy(BaseAgent):
    """Talks at length."""

    async def reply(self, message: Message) -> Reply:
        return Reply(f"You say: {message.text} " + "And so on. " * (len(message.text) % 50))


@pytest.mark.parametrize("isolated", [False, True])
def test_the_users_side_is_exact_whatever_the_agent_says(isolated: bool, tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "prospective_memory", "trigger_response"], 2)
    planned = plan_run(RunSettings(suite=suite, span=4000, seed=1, agent=f"python:{__name__}:Wordy", isolated=isolated), tmp_path)
    told = trio.run(estimate_run, planned)
    (outcome,) = trio.run(play_plans, [planned])
    run = RunFolder(outcome.folder)
    entries = [event for id in run.manifest.conversations for event in run.events(id)]
    sent = [event for event in entries if isinstance(event, events.Message)]
    asked = [event for event in entries if isinstance(event, events.Reply) and event.asked]
    assert (told.turns, told.asked, told.user_tokens) == (len(sent), len(asked), sum(message.tokens for message in sent))
    assert told.tokens < grade_run(run).tokens, "replies are longer than ideal ones"


def test_with_a_dynamic_test_turns_are_exact(tmp_path: Path) -> None:
    planned = plan_run(
        RunSettings(suite=SUITE.apply_changes([], [], ["colours", "restaurant"], 2), span=2000, seed=0, agent="silent"), tmp_path
    )
    told = trio.run(estimate_run, planned)
    (outcome,) = trio.run(play_plans, [planned])
    took = grade_run(RunFolder(outcome.folder))
    assert told.turns == took.turns
    assert any(test.scenario == "restaurant" and test.score < 1 for test in took.tests if test.score is not None), "it left places"


def test_prices_are_from_the_price_list_and_a_stable_prefix_is_cheaper() -> None:
    block, sliding = (estimated(f"openai/gpt-4o?context=4k&eviction={way}") for way in ("block", "sliding"))
    assert block.cost_usd is not None
    assert sliding.cost_usd is not None
    assert 0 < block.cost_usd < sliding.cost_usd
    cached = [estimate.parts["agent"].cached_tokens / estimate.parts["agent"].input_tokens for estimate in (block, sliding)]
    assert cached[0] > cached[1]


def test_for_an_agent_without_estimates_only_the_conversation_is_estimated() -> None:
    told = estimated("notebook")
    assert (told.parts, told.cost_usd) == ({}, None)
    assert 0 < told.asked < told.turns


def test_an_agent_that_does_not_observe_is_asked_all_filler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "echoing.py").write_text("class Echo:\n    def reply(self, message): return message.text\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = estimated("python:echoing:Echo")
    assert told.asked == told.turns


def test_an_estimate_needs_no_key_and_a_run_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    arguments = ["ltm", "--scenario", "colours", "--tests", "1", "--agent", "openai/gpt-4o", "--agent", "ltm/openai/gpt-4o"]
    with pytest.raises(SystemExit) as ended:
        main(["estimate", *arguments, "--json"])
    assert ended.value.code == 0
    assert all(told["cost_usd"] > 0 for told in json.loads(capsys.readouterr().out))
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    assert ended.value.code == 2
    assert "needs a key" in capsys.readouterr().err


def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["estimate", "ltm", "--scenario", "colours", "--tests", "1", "--agent", "openai/gpt-4o", "--agent", "silent"]
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--json"])
    assert left.value.code == 0
    paid, free = json.loads(capsys.readouterr().out)
    assert paid["cost_usd"] > 0
    assert (free["parts"], free["cost_usd"]) == ({}, None)
    with pytest.raises(SystemExit):
        main(arguments)
    told = capsys.readouterr().out
    assert "of them from cache" in told
    assert "only its replies may report usage" in told
    total = told.splitlines()[-1]
    agent = paid["parts"]["agent"]
    assert total.startswith(f"2 runs in total read {agent['input_tokens']:,} tokens")
    assert total.endswith(f"write {agent['output_tokens']:,}: ${paid['cost_usd']:.4f} and 1 of unknown cost")
