"""What a run pays for outside its turns, or more than once: each is recorded, and limits include it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.durability.provider import PRICES, Provider
from tests.forked import longspan

from longspan.simulator.base.errors import AgentError, InputError, JournalError, StoppedError
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.contract.messages import Usage
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play_plans, resume_run, sum_spending
from longspan.simulator.subject.spending_limit import Amount, limit_of
from longspan.simulator.subject.spending_record import SPENDING, Expense, Purpose, SpendingRecord
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

ROOT = Path(__file__).parents[2]
PAYERS = "memory/python:tests.durability.payers"
LENT = f"{PAYERS}:Lent?answerer=none&batch=turn"
UNSAVED = f"{PAYERS}:Unsaved?answerer=none&batch=turn&unchecked=true"
BACKGROUND = f"{PAYERS}:Background?answerer=none&batch=turn"


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with Provider().running() as provider:
        monkeypatch.setenv("PAYERS_URL", provider.url)
        monkeypatch.setenv("PAYERS_COUNT", str(tmp_path / "count"))
        monkeypatch.setenv("PAYERS_FAIL_AT", "0")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
        yield provider


def planned(out: Path, agent: str, seed: int = 3) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    return plan_run(RunSettings(suite=suite, span=2000, seed=seed, agent=agent), out)


def first(out: Path, agent: str, limit: float | None = None) -> Outcome:
    return trio.run(lambda: play_plans([planned(out, agent)], limit=limit_of(limit)))[0]


def again(outcome: Outcome, agent: str, limit: float | None = None) -> Outcome:
    return trio.run(lambda: resume_run(RunFolder(outcome.folder), agent, limit=limit_of(limit)))


def works(run: RunFolder) -> list[str]:
    return [call.before.work for call in run.spending.calls()]


def test_turns_that_are_added_again_are_recorded_and_count_against_the_next_limit(provider: Provider, tmp_path: Path) -> None:
    """The memory cannot be saved: each resume tells it everything again."""
    outcome, limit = first(tmp_path, UNSAVED, 0.03), 0.03
    assert isinstance(outcome.error, StoppedError)
    run = RunFolder(outcome.folder)
    for _ in range(3):
        before = provider.dollars
        assert isinstance(again(outcome, UNSAVED, limit).error, StoppedError)
        assert provider.dollars == before, "the limit is reached already"
    whole = again(outcome, UNSAVED)
    assert whole.error is None
    assert "replay" in works(run)
    spending = grade_run(run).spending
    assert spending is not None
    assert spending.known_usd == pytest.approx(provider.dollars, abs=1e-9)
    costs = sum(part.cost_usd or 0 for part in grade_run(run).costs.values())
    assert spending.again_usd == pytest.approx(provider.dollars - costs, abs=1e-6)
    assert spending.again_usd > 0.01


def test_the_check_before_a_run_stops_at_the_limit(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, LENT, 0.01)
    assert isinstance(outcome.error, StoppedError)
    assert provider.dollars <= 0.01
    assert set(works(RunFolder(outcome.folder))) == {"check"}, "the run's folder stays, with the record"
    more = again(outcome, LENT, 0.012)
    assert isinstance(more.error, StoppedError)
    assert provider.dollars <= 0.012
    assert again(outcome, LENT, 5).error is None
    assert RunFolder(outcome.folder).spending.totals().known_usd == pytest.approx(provider.dollars, abs=1e-9)


def test_a_failing_add_reaches_the_limit_however_often_it_is_tried_again(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 0.15
    monkeypatch.setenv("PAYERS_FAIL_AT", "5")
    agent = LENT + "&unchecked=true"
    outcome = first(tmp_path, agent, limit)
    assert isinstance(outcome.error, AgentError)
    monkeypatch.setenv("PAYERS_FAIL_AT", "1")
    for _ in range(60):
        (tmp_path / "count").unlink()
        tried = again(outcome, agent, limit)
        assert RunFolder(outcome.folder).spending.totals().known_usd == pytest.approx(provider.dollars, abs=1e-9)
        if isinstance(tried.error, StoppedError):
            break
        assert isinstance(tried.error, AgentError)
    assert isinstance(tried.error, StoppedError)
    assert provider.dollars <= limit + provider.dearest / 1e6
    assert RunFolder(outcome.folder).spending.totals().again_usd > 0.05


def test_a_memory_that_asks_without_end_is_stopped_within_its_turn(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, f"{PAYERS}:Endless?answerer=none&batch=turn&unchecked=true", 0.05)
    assert isinstance(outcome.error, StoppedError)
    assert provider.dollars <= 0.05
    assert RunFolder(outcome.folder).spending.totals().known_usd == pytest.approx(provider.dollars, abs=1e-9)


def test_calls_of_a_memorys_own_threads_are_recorded_and_limited(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, BACKGROUND + "&unchecked=true")
    assert outcome.error is None
    run = RunFolder(outcome.folder)
    assert run.spending.totals().known_usd == pytest.approx(provider.dollars, abs=1e-9)
    assert "background" in works(run) or len(works(run)) == provider.requests
    before = provider.dollars
    limited = first(tmp_path / "limited", BACKGROUND + "&unchecked=true", 0.01)
    assert isinstance(limited.error, StoppedError)
    assert provider.dollars - before <= 0.01 + provider.dearest / 1e6


def test_stopping_at_a_limit_saves_the_agent(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, LENT + "&unchecked=true", 0.05)
    assert isinstance(outcome.error, StoppedError)
    run = RunFolder(outcome.folder)
    assert again(outcome, LENT + "&unchecked=true").error is None
    assert "replay" not in works(run), "nothing is told again"
    assert run.spending.totals().again_usd == 0


def test_a_priced_lent_model_with_a_free_embedder_and_no_answerer_can_be_limited(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, LENT, 5)
    assert outcome.error is None
    assert 0 < provider.dollars < 5


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_sweep_that_is_run_again_and_again_stays_below_its_limit(jobs: str, provider: Provider, tmp_path: Path) -> None:
    spec = f"openai/m?base_url={provider.url}&{PRICES}&context=1k&max_tokens=40"
    runs = f'"suites": ["ltm"], "scenarios": ["colours"], "tests": 1, "spans": [2000], "seeds": [0, 1], "agents": ["{spec}", "{UNSAVED}"]'
    (tmp_path / "s.yaml").write_text("{" + runs + "}")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    limit = 0.1
    for _ in range(3):
        options = ("--out", "out", "--trust", "--jobs", jobs, "--max-cost", str(limit))
        done = longspan("sweep", "s.yaml", *options, where=tmp_path, env=environment)
        assert done.returncode == 130, done.stderr
        folders = [path.parent for path in (tmp_path / "out").rglob("manifest.json")]
        known = sum(RunFolder(folder).spending.totals().known_usd for folder in folders)
        assert known == pytest.approx(provider.dollars, abs=1e-9)
        assert provider.dollars <= limit + provider.dearest / 1e6


def test_estimate_of_a_run_says_what_it_has_cost_so_far(provider: Provider, tmp_path: Path) -> None:
    agent = f"openai/m?base_url={provider.url}&{PRICES}&context=1k&max_tokens=40"
    outcome = first(tmp_path, agent, 0.02)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = longspan("estimate", str(outcome.folder), "--trust", "--json", where=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)
    assert entry["spending"]["known_usd"] == pytest.approx(provider.dollars, abs=1e-9)
    said = longspan("estimate", str(outcome.folder), "--trust", where=tmp_path, env=environment).stdout
    assert f"so far    ${provider.dollars:.4f} in {provider.requests} calls" in said
    refused = longspan("estimate", str(outcome.folder), "--trust", "--span", "4k", where=tmp_path, env=environment)
    assert refused.returncode == 2
    assert "is a run, and its manifest has the settings" in refused.stderr


def test_a_run_without_its_record_takes_no_limit(provider: Provider, tmp_path: Path) -> None:
    outcome = first(tmp_path, LENT + "&unchecked=true", 0.05)
    run = RunFolder(outcome.folder)
    run.spending.path.unlink()
    with pytest.raises(InputError, match=r"spending\.jsonl: missing, .*restore it from a copy"):
        again(outcome, LENT + "&unchecked=true", 0.1)
    assert again(outcome, LENT + "&unchecked=true").error is None


def test_without_paid_calls_there_is_no_record(tmp_path: Path) -> None:
    outcome = first(tmp_path, "notebook")
    assert not RunFolder(outcome.folder).spending.path.exists()
    assert outcome.result is not None
    assert outcome.result.spending is None


# The file.

OWNER = Owner("a run")
Step = tuple[int, float, bool]


def written(folder: Path, steps: list[Step]) -> SpendingRecord:
    """Write a record of calls: the turn that each serves, what it costs, and whether it is answered."""
    record = SpendingRecord(folder, OWNER)
    for turn, cost, answered in steps:
        purpose = Purpose("reply", "main", turn, task=record.new_task())
        call = record.begin("agent", "openai/m", purpose, Amount(cost * 2, 10))
        if answered:
            record.end(call, [Expense(Usage(5, 0, 2), cost)])
    return record


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.001, 1), st.booleans()), max_size=8), st.randoms(use_true_random=False))
def test_a_record_cut_at_any_byte_has_all_complete_lines_and_is_continued(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], random: Random
) -> None:
    folder = tmp_path_factory.mktemp("record")
    record = written(folder, steps)
    whole = record.totals()
    assert whole.known_usd == pytest.approx(sum(cost for _, cost, answered in steps if answered), abs=1e-9)
    assert whole.unanswered == sum(not answered for *_, answered in steps)
    newest = {turn: number for number, (turn, *_) in enumerate(steps)}
    vain = sum(cost for number, (turn, cost, answered) in enumerate(steps) if answered and newest[turn] != number)
    assert whole.again_usd == pytest.approx(vain, abs=1e-9)
    if not steps:
        return
    content = record.path.read_bytes()
    cut = random.randrange(len(content))
    record.path.write_bytes(content[:cut])
    part = SpendingRecord(folder, OWNER)
    totals = part.totals()
    assert totals.known_usd <= whole.known_usd + 1e-9
    assert totals.calls + totals.unanswered <= whole.calls + whole.unanswered + 1
    number = part.begin("agent", "openai/m", Purpose("reply", "main", 9, task=part.new_task()), Amount())
    part.end(number, [Expense(Usage(), 1.0)])
    assert part.totals().known_usd == pytest.approx(totals.known_usd + 1, abs=1e-9)
    assert number == totals.calls + 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace('"cost_usd":0.5', '"cost_usd":0.1', 1), "damaged at line 2"),
        (lambda text: text.replace("a run", "another", 1), "damaged at line 1"),
        (lambda text: "\n".join([*text.splitlines()[:1], *text.splitlines()[2:]]) + "\n", "damaged at line 2"),
        (lambda text: "[]\n" + text, "damaged at line 1"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(damage: object, said: str, tmp_path: Path) -> None:
    written(tmp_path, [(0, 0.5, True), (1, 0.5, True)])
    path = tmp_path / SPENDING
    path.write_text(damage(path.read_text()))  # type: ignore[operator]
    with pytest.raises(JournalError, match=said):
        SpendingRecord(tmp_path, OWNER).totals()
    with pytest.raises(JournalError):
        SpendingRecord(tmp_path, OWNER).new_task()


def test_the_record_of_another_run_is_refused(tmp_path: Path) -> None:
    written(tmp_path, [(0, 0.5, True)])
    with pytest.raises(JournalError, match="it is of another run"):
        SpendingRecord(tmp_path, Owner("its own")).totals()


def test_forged_lines_with_right_checksums_are_refused(tmp_path: Path) -> None:
    from longspan.simulator.base.files.json_lines import JsonLines

    begin = {"call": 1, "by": "agent", "work": "reply", "task": 1}
    for lines, said in (
        ([begin, begin], "begins twice"),
        ([{"call": 7}], "line 1: not a line of spending"),
        ([begin, {"call": 1, "cost_usd": -1}], "line 2: not a line of spending"),
        ([begin, {"call": 1, "cost_usd": float("nan")}], "line 2"),
        ([{**begin, "work": "gift"}], "line 1"),
        ([{**begin, "call": 0}], "line 1"),
    ):
        (tmp_path / SPENDING).unlink(missing_ok=True)
        JsonLines(tmp_path / SPENDING, OWNER).append(*(dict(line) for line in lines))
        with pytest.raises(JournalError, match=said):
            SpendingRecord(tmp_path, OWNER).totals()


def test_what_was_spent_before_counts_calls_without_a_known_cost_as_their_worst_case(tmp_path: Path) -> None:
    outcome = first(tmp_path, "notebook")
    run = RunFolder(outcome.folder)
    record = run.spending
    task = record.new_task()
    for answered in (True, True, False):
        call = record.begin("agent", "openai/m", Purpose("reply", "main", 1, task=task), Amount(0.5, 50))
        if answered:
            record.end(call, [Expense(Usage(10, 0, 5), 0.2)])
    assert sum_spending([run, run]) == (Amount(pytest.approx(1.8), 160), Amount(pytest.approx(0.9), 80))
