"""Run folders with made-up results and no conversations, for tests that only read results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from longspan.simulator.base.files.file_io import write_json
from longspan.simulator.contract.rungs import make_rung
from longspan.simulator.contract.scenario import Skill
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.results.analysis.statistics import total_score
from longspan.simulator.results.result import Result, TestResult, read_result, scenario_result
from longspan.simulator.subject.ledger import Spending
from longspan.simulator.suite.manifest import Manifest, PlannedTest, package_versions
from longspan.simulator.suite.suite import Suite

__all__ = ["SKILLS", "interrupt", "made_run"]

SKILLS: dict[str, list[Skill]] = {
    "chapterbreak": ["information integration"],
    "colours": ["conflicting information"],
    "jokes": ["episodic memory"],
    "locations": ["spatial memory", "information integration"],
    "name_list": ["recall", "conflicting information"],
    "prospective_memory": ["prospective memory"],
    "restaurant": ["conflicting information", "information integration"],
    "sally_anne": ["theory of mind"],
    "shopping": ["recall", "conflicting information", "information integration"],
    "spy_meeting": ["recall", "information integration"],
    "trigger_response": ["recall", "prospective memory"],
}


def made_run(
    out: Path,
    agent: str,
    score: Callable[[str, int], float | Sequence[float] | None],
    *,
    name: str | None = None,
    span: int = 2_000,
    seed: int = 0,
    scenarios: tuple[str, ...] = tuple(SKILLS),
    tests: int = 3,
    isolated: bool = False,
    cost: float | None = None,
    left_out: tuple[str, ...] = (),
    parameters: Mapping[str, dict[str, Any]] | None = None,
    recorded: Callable[[int], str | None] = lambda number: None,
    recall: Callable[[str, int], float] | None = None,
    **manifest: Any,
) -> Path:
    """Create a run's folder `name` in `out`. `score` returns the score of a scenario's test number, None for unscored, or the scores of its
    questions, if it asks for plain facts at many distances. `recall` returns the share of its evidence that a memory found.

    `cost`: dollars of the agent; None where it reports none. `left_out`: scenarios that do not fit into the span.
    `parameters` are those of scenarios, `manifest` other fields. `recorded`: what the test of a number is about, if it is recorded.
    """
    fitting = [scenario for scenario in scenarios if scenario not in left_out]
    ids = {f"{scenario}-{number}": (scenario, number) for scenario in fitting for number in range(1, tests + 1)}
    planned = {
        id: PlannedTest(id=id, scenario=scenario, skills=list(SKILLS.get(scenario, ["recall"])), chance=0.1, recorded=recorded(number))
        for id, (scenario, number) in ids.items()
    }
    made = Manifest.model_validate(
        {
            "suite": Suite(name="ltm", tests=tests, scenarios={scenario: (parameters or {}).get(scenario, {}) for scenario in scenarios}),
            "span": span,
            "seed": seed,
            "agent": agent,
            "placement": "uniform",
            "isolated": isolated,
            "tokenizer": "cl100k_base",
            "filler": None,
            "filler_sha256": None,
            "filler_size": 2000,
            "starts_at": "2024-01-01T09:00:00",
            "pace_s": 30.0,
            "conversations": {id: [plan] for id, plan in planned.items()} if isolated else {"main": list(planned.values())},
            "left_out": [f"{scenario} does not fit" for scenario in left_out],
            "late": [],
            "nonce": "0" * 64,
            "commitment": "0" * 64,
            "versions": package_versions(),
        }
        | manifest
    )
    random = Random(f"{agent}/{seed}/{span}")
    found = {id: None if recall is None else recall(*ids[id]) for id in ids}
    outcomes = [_outcome(planned[id], score(*ids[id]), found[id], span, id if isolated else "main", random) for id in ids]
    folder = out / (name or f"run-{len(list(out.glob('run-*')))}")
    folder.mkdir(parents=True)
    write_json(folder / "manifest.json", made)
    write_json(folder / "result.json", _result(made, outcomes, cost))
    return folder


def interrupt(folder: Path, graded: int = 0) -> None:
    """Make a made-up run one that was interrupted after its first tests, as many as are `graded`."""
    run = RunFolder(folder)
    result = read_result(run)
    lost: dict[str, Any] = {"status": "unfinished", "score": None, "machine_score": None, "evidence": [], "turns": []}
    tests = [test if number < graded else test.model_copy(update=lost) for number, test in enumerate(result.tests)]
    write_json(folder / "result.json", _result(run.manifest, tests, None))


def _outcome(
    plan: PlannedTest, given: float | Sequence[float] | None, recall: float | None, span: int, conversation: str, random: Random
) -> TestResult:
    asked = given if isinstance(given, Sequence) else ()
    score = fmean(given) if isinstance(given, Sequence) else given
    items = [
        make_rung(
            f"fact {turn}", "plain facts", each, type="dog", at_once=False, chance=0.1, heard=0.2, outcome="", note="made up", turn=turn
        )
        for turn, each in enumerate(asked, 2)
    ]
    return TestResult(
        id=plan.id,
        scenario=plan.scenario,
        skills=list(plan.skills),
        status="unscored" if score is None else "scored",
        score=score,
        chance=plan.chance,
        certified=True,
        at_distance=True,
        exempt=None,
        span_dealt=span,
        span_used=span,
        evidence=list(_evidence(len(items) or 1, recall, span, random)),
        items=items,
        reason="made up",
        turns=[2],
        conversation=conversation,
        machine_score=score,
        correction=None,
    )


def _evidence(questions: int, recall: float | None, span: int, random: Random) -> Iterator[Evidence]:
    """Yield a needle for each question, or ten of which a memory found the share `recall`."""
    for turn in range(2, 2 + questions):
        distance = random.randrange(span)
        if recall is None:
            yield Evidence(1, turn, distance, distance)
            continue
        for needle in range(10):
            found = needle < round(10 * recall)
            yield Evidence(needle, turn + 10, distance, distance, stored=True, retrieved=found, rank=1 if found else None, k=20)


def _result(manifest: Manifest, tests: list[TestResult], cost: float | None) -> Result:
    by_scenario = {name: [test for test in tests if test.scenario == name] for name in {test.scenario: 0 for test in tests}}
    low = total_score({name: [test.score or 0.0 for test in group] for name, group in by_scenario.items()})
    high = total_score({name: [1.0 if test.score is None else test.score for test in group] for name, group in by_scenario.items()})
    return Result(
        suite=manifest.suite.name,
        span=manifest.span,
        seed=manifest.seed,
        agent=manifest.agent,
        score=low if low == high else None,
        score_bounds=(low, high),
        max_score=len(by_scenario),
        turns=300,
        tokens=10 * manifest.span,
        filler_tokens=5 * manifest.span,
        switch_rate=0.7,
        mean_open=6.0,
        certified=1.0,
        at_distance=1.0,
        metrics={},
        tables=[],
        costs={} if cost is None else {"agent": Spending(input_tokens=1000, output_tokens=100, cost_usd=cost)},
        scenarios={name: scenario_result(group) for name, group in by_scenario.items()},
        tests=tests,
        left_out=[],
    )
