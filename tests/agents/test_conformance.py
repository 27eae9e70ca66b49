"""What `longspan check` says of memories with a fault each, and what a new run does with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from math import inf
from pathlib import Path

import pytest
import trio
from tests.agents import faulty_memories

from longspan.agents.memory.bm25 import Bm25
from longspan.agents.memory.conformance import Conformance
from longspan.agents.memory.lent import LentModels
from longspan.agents.memory.ltm.embedders import EmbeddedTexts, HashEmbedder
from longspan.agents.memory.memory import MemoryItem, Used
from longspan.agents.memory.turns import Turn
from longspan.agents.outside.bridge import Models
from longspan.simulator.base.errors import AgentError, InputError, StoppedError
from longspan.simulator.contract.findings import Finding
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.spending_limit import Amount
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

NAMES = ("what was told", "k", "two users", "sources", "dates", "searching", "copy", "rewind", "errors in add", "forget", "two runs")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is not found at once is waited for."""
    monkeypatch.setattr("longspan.simulator.subject.lag.MOST_SECONDS", 0.0)
    faulty_memories.Shared.everybody.clear()
    faulty_memories.Remembers.left.clear()


def named(memory: str, options: str = "") -> str:
    return f"memory/python:tests.agents.faulty_memories:{memory}?answerer=none&batch=turn{options}"


def found(spec: str) -> dict[str, Finding]:
    async def collect() -> dict[str, Finding]:
        return {finding.check: finding async for finding in check_agent(AgentSpec.parse(spec)) if finding.check in NAMES}

    return trio.run(collect)


def test_a_sound_memory_passes_every_check_in_their_order() -> None:
    findings = found(named("Sound"))
    assert tuple(findings) == NAMES
    assert {name: finding for name, finding in findings.items() if finding.verdict != "good"} == {}


@pytest.mark.parametrize(
    ("memory", "name", "verdict", "part"),
    [
        ("IgnoresK", "k", "bad", "a search for 2 memories returned 6"),
        ("Empty", "what was told", "bad", "none of 6 facts is found"),
        ("Lossy", "what was told", "note", "3 of 6 facts are not found"),
        ("Shared", "two users", "bad", "finds facts of another: 'The lamp in the boathouse is painted vermilion.'"),
        ("Invents", "sources", "bad", "'According to my records, nothing relevant was ever mentioned"),
        ("Misattributes", "sources", "bad", "names check/1 as its source, which has other words"),
        ("NamesNoTurn", "sources", "bad", "names '1' as its source, but there is no such turn"),
        ("Today", "dates", "bad", "is found with the date 1 January 2031"),
        ("StoresQuestions", "searching", "bad", "although it declares `read_only_search`"),
        ("SavesHalf", "copy", "bad", "finds other memories"),
        ("OnDisk", "copy", "bad", "keeps writing to the folder that it was loaded from"),
        ("StaysWhereItSaved", "copy", "bad", "needs the folder that it saved to"),
        ("LoadsMore", "rewind", "bad", "it still finds facts added after `save`"),
        ("Swallows", "errors in add", "bad", "braces, quotes and a backslash stored nothing and raised no error"),
        ("ForgetsNothing", "forget", "bad", "is still found"),
        ("KeepsNotes", "forget", "bad", "in a derived memory"),
        ("Remembers", "two runs", "bad", "finds facts of an earlier one"),
        ("ResetsNothing", "two runs", "bad", "after `reset`, it still finds facts"),
    ],
)
def test_each_fault_is_caught_by_the_check_that_names_it(memory: str, name: str, verdict: str, part: str) -> None:
    findings = found(named(memory))
    assert findings[name].verdict == verdict, findings
    assert part in findings[name].what


class Priced:
    """An embedder that costs a token for each text."""

    name = model = "openai/priced"

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        return (await HashEmbedder().embed(texts))._replace(tokens=len(texts))


class Careless(Bm25):
    """Keeps turns whether or not they could be embedded, in an index that nobody misses, and never says what that took."""

    def __init__(self, careless: bool) -> None:
        super().__init__()
        self.lender: LentModels = LentModels(None, Priced())
        self.careless = careless

    def used(self) -> Used:
        return Used() if self.careless else self.lender.take()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        try:
            await trio.to_thread.run_sync(Models(self.lender.url, self.lender.key).embed, [turn.text for turn in turns])
        except RuntimeError as error:
            if not self.careless:
                raise AgentError(str(error)) from error
        return await super().add(turns, at)

    async def close(self) -> None:
        self.lender.close()


@pytest.mark.parametrize(
    ("name", "careless", "verdict", "part"),
    [
        ("errors in add", True, "bad", "its model or embedder failed"),
        ("errors in add", False, "good", "that fails is an error"),
        ("cost", True, "bad", "reports 0 tokens of the lent model and embedder for adding a turn, but used 1"),
        ("cost", False, "good", "tokens for a turn: 1"),
    ],
)
def test_what_is_lent_has_to_be_paid_for_and_to_be_missed(name: str, careless: bool, verdict: str, part: str) -> None:
    async def finding() -> Finding:
        checks = Conformance(lambda: Careless(careless), at_door=True)
        try:
            found = [await check.find() for check in checks.checks]
            return next(each for each in found if each is not None and each.check == name)
        finally:
            await checks.close()

    found = trio.run(finding)
    assert (found.verdict, part in found.what) == (verdict, True)


def test_what_is_not_told_of_an_ability_is_told_of_its_absence() -> None:
    findings = found("memory/python:tests.agents.memories:Slow?answerer=none&batch=turn")
    assert {name for name, finding in findings.items() if finding.verdict == "note"} == {"copy", "forget"}
    assert "bad" not in {finding.verdict for finding in findings.values()}


@pytest.mark.parametrize("kind", ["full", "none", "recent", "bm25", "chroma?embedder=hash"])
def test_longspans_own_memories_pass_and_none_but_one_forgets(kind: str) -> None:
    findings = found(f"memory/{kind}{'&' if '?' in kind else '?'}answerer=none")
    assert [name for name, finding in findings.items() if finding.verdict == "bad"] == []
    assert [name for name, finding in findings.items() if finding.verdict == "note"] == ["forget"]
    assert found("memory/bm25?answerer=none&forget=1")["forget"].verdict == "good"


# New runs.


def played(spec: str, out: Path) -> Outcome:
    suite = load_suite("ltm").model_copy(update={"tests": 1, "scenarios": {"name_list": {}}})
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=2000, agent=spec), out)])
    return outcome


@pytest.mark.parametrize(("memory", "said"), [("IgnoresK", "k: a search"), ("Empty", "what was told: none"), ("Shared", "two users: one")])
def test_a_new_run_is_not_begun_with_a_memory_that_fails_unless_its_user_insists_and_the_result_says_so(
    memory: str, said: str, tmp_path: Path
) -> None:
    outcome = played(named(memory), tmp_path)
    assert isinstance(outcome.error, InputError)
    assert said in str(outcome.error)
    assert "unchecked=true" in str(outcome.error)
    assert list(tmp_path.iterdir()) == [], "nothing was played"
    outcome = played(named(memory, "&unchecked=true"), tmp_path)
    assert outcome.error is None
    result = read_result(RunFolder(outcome.folder))
    assert result.unchecked
    assert "unchecked" in json.loads((outcome.folder / "result.json").read_text())


def test_what_the_checks_cost_counts_against_the_limit(tmp_path: Path) -> None:
    """Billing charges a tenth of a cent for each word that it is told; one word more than the checks take is left for the run."""
    suite = load_suite("ltm").model_copy(update={"tests": 1, "scenarios": {"name_list": {}}})
    spec = "memory/python:tests.agents.memories:Billing?answerer=none&batch=turn"
    (outcome,) = trio.run(
        lambda: play_plans([plan_run(RunSettings(suite=suite, span=2000, agent=spec), tmp_path)], limit=Amount(0.05, inf))
    )
    assert isinstance(outcome.error, StoppedError)
    assert "exceed the limit of $0.05" in str(outcome.error)
    assert outcome.result is not None
    assert outcome.result.turns == 0, "and is part of no turn"


def test_a_sound_memory_is_played_and_what_else_fails_is_left_to_check(tmp_path: Path) -> None:
    for memory in ("Sound", "Today"):
        outcome = played(named(memory), tmp_path)
        assert outcome.error is None
        assert not read_result(RunFolder(outcome.folder)).unchecked
