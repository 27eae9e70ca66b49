"""A run's record of spending agrees with a provider that counts, whatever happens to the run: kills, limits, failures, resumes, sweeps.

By default some sequences of mishaps, drawn by a seed, are tested. To test all fifty:

    LONGSPAN_KILLS=all python -m pytest tests/durability/test_spending.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import trio

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.subject.spending_limit import limit_of
from longspan.simulator.subject.spending_record import SpendingTotals
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from longspan.simulator.suite.trust import admit_manifest
from tests.durability.provider import PRICES, Provider
from tests.forked import PROCESSES
from tests.halfway import killed_at

SEQUENCES = 50 if os.environ.get("LONGSPAN_KILLS") == "all" else 5
ROOT = Path(__file__).parents[2]

AGENTS = {
    "chat": "openai/m?base_url={url}&" + PRICES + "&context=1k&max_tokens=40",
    "ltm": "ltm/openai/m?base_url={url}&" + PRICES + "&context=2k&max_tokens=40&embedder=hash",
    "lent": "memory/python:tests.durability.payers:Lent?answerer=none&batch=turn",
    "background": "memory/python:tests.durability.payers:Background?answerer=none&batch=turn",
    "own": "memory/python:tests.durability.payers:Own?answerer=openai/m&answerer.base_url={url}&"
    + PRICES.replace("price", "answerer.price")
    + "&answerer.max_tokens=40&batch=turn",
}
"""Agents that pay: by their replies, in several calls for each, by a lent model, from a thread, and with a client of their own."""

UNREPORTED = ("own",)
"""Agents of whose failed calls nobody knows what they have cost."""

CHECKED = 6
"""The most requests that one call of longspan to such a memory makes: the check before a run tells it six facts at once."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().running() as provider:
        yield provider


def planned(out: Path, agent: str) -> Plan:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    return plan_run(RunSettings(suite=suite, span=2000, seed=3, agent=agent), out)


def step(out: Path, agent: str, environment: dict[str, str], limit: float | None, event: int | None) -> None:
    """Play the run in `out`, or go on with it."""
    os.environ |= environment
    with killed_at(event):
        if runs := list(out.glob("*/manifest.json")):
            run = RunFolder(runs[0].parent)
            admit_manifest(run.path, run.manifest, trust=True)
            trio.run(lambda: resume_run(run, agent, limit=limit_of(limit)))
        else:
            trio.run(lambda: play_plans([planned(out, agent)], limit=limit_of(limit)))


def totals_in(out: Path) -> SpendingTotals:
    """The record of all runs in a folder."""
    known = [RunFolder(path.parent).spending.totals() for path in out.glob("*/manifest.json")]
    possibly = [totals.possibly_usd for totals in known]
    return SpendingTotals(
        known_usd=sum(totals.known_usd for totals in known),
        unanswered=sum(totals.unanswered for totals in known),
        possibly_usd=None if None in possibly else sum(each or 0 for each in possibly),
    )


def agrees(provider: Provider, totals: SpendingTotals, kind: str) -> None:
    """Check a record against what the provider has charged."""
    if provider.lost == 0 and totals.unanswered == 0:
        assert totals.known_usd == pytest.approx(provider.dollars, abs=1e-9)
    assert totals.known_usd <= provider.dollars + 1e-9
    if totals.possibly_usd is not None:
        assert provider.dollars <= totals.known_usd + totals.possibly_usd + 1e-9
    else:
        assert kind in UNREPORTED


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("seed", range(SEQUENCES // len(AGENTS)))
def test_the_record_is_what_the_provider_has_counted(kind: str, seed: int, provider: Provider, tmp_path: Path) -> None:
    random = Random(f"{kind} {seed}")
    agent, out = AGENTS[kind].format(url=provider.url), tmp_path / "out"
    environment = {"PAYERS_URL": provider.url, "OPENAI_API_KEY": "sk-of-the-test", "PAYERS_COUNT": str(tmp_path / "count")}
    for _ in range(random.randrange(2, 6)):
        before, limit, event, fail_at = provider.dollars, None, None, 0
        provider.fates.clear()
        mishap = random.choice(["kill before", "kill after", "refuse", "garble", "drop", "limit", "fail", "event"])
        if mishap == "limit":
            limit = before + random.uniform(0.003, 0.03)
        elif mishap == "event":
            event = random.randrange(60)
        elif mishap == "fail":
            (tmp_path / "count").unlink(missing_ok=True)
            fail_at = random.randrange(1, 15)
        else:
            provider.plan(random.randrange(12), mishap)  # type: ignore[arg-type]
        process = PROCESSES.Process(target=step, args=(out, agent, environment | {"PAYERS_FAIL_AT": str(fail_at)}, limit, event))
        process.start()
        provider.victim = process.pid
        process.join()
        agrees(provider, totals_in(out), kind)
        if limit is not None:
            call = provider.dearest / 1e6 * (CHECKED if kind in UNREPORTED else 1)
            assert provider.dollars <= max(limit, before) + call + 1e-9
    provider.fates.clear()
    process = PROCESSES.Process(target=step, args=(out, agent, environment | {"PAYERS_FAIL_AT": "0"}, None, None))
    process.start()
    process.join()
    agrees(provider, totals_in(out), kind)
    (folder,) = out.iterdir()
    assert RunFolder(folder).transcripts()["main"].closed
