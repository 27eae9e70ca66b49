"""Assertions about an agent's memory, for test suites."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from longspan.simulator.api.agents import AnyAgent
from longspan.simulator.api.playing import run_if
from longspan.simulator.api.results import Results, load
from longspan.simulator.api.shown import ShownTest
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import parse_size
from longspan.simulator.results.reach_result import check_reach, span_for
from longspan.simulator.running.planning import Plan

__all__ = ["check", "describe_failure"]

SHOWN: Final = 3
"""The number of tests that a failed assertion shows."""


def check(
    agent: AnyAgent,
    *,
    suite: str | None = None,
    reaches: int | str | None = None,
    at_least: float | None = None,
    no_worse_than: str | Path | None = None,
    margin: float = 0.0,
    seeds: int | Iterable[int] | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Results:
    """Play a suite against an agent, and assert how much it remembers. Returns the results.

    `suite` may include a span, as in "ltm@2k". Choose the assertion with one of these:

    - `reaches`: at every distance up to this many tokens, such as 8_000 or "8k", the agent must recall half of the plain facts, or the
    share `at_least`. All seeds count together. The default suite is then `reach`, at about three times the distance; otherwise it is `ltm`.
    - `at_least` alone: the minimum share of full marks in [0, 1], or, for a memory without an answerer, of the evidence that it retrieves.
    - `no_worse_than`: the folder of a baseline's runs, with at least five seeds and preferably eight. The fall is tested as in
      `longspan compare --fail-if-worse`, and may be up to `margin` of full marks.

    `seeds`: by default 0, or the baseline's seeds. `out`: the folder for the runs, by default a temporary one. Other parameters are the
    same as for `longspan.run`.

    Raises AssertionError, with the worst tests, if the agent remembers less, or if the runs cannot show whether it does. Raises InputError
    and AgentError as `longspan.run` does.
    """
    __tracebackhide__ = True
    if at_least is None and no_worse_than is None and reaches is None:
        raise InputError("longspan.check: specify an assertion: reaches=8_000, at_least=0.8 or no_worse_than='baseline'")
    wanted = parse_size(str(reaches)) if reaches is not None else None
    if at_least is not None and not (isinstance(at_least, int | float) and 0 <= at_least <= 1):
        raise InputError(f"longspan.check: at_least must be a share from 0 to 1, got {at_least!r:.60}")
    if wanted is not None and at_least in (0, 1):
        raise InputError(f"longspan.check: with reaches, at_least must be a share between 0 and 1, such as 0.9, got {at_least}")
    if suite is None:
        suite = "ltm" if wanted is None else f"reach@{span_for(wanted)}"
    baseline = load(no_worse_than) if no_worse_than is not None else None
    if seeds is None:
        seeds = sorted(set(baseline.tests["seed"])) if baseline is not None else 0
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="longspan-"))

    def fits(plan: Plan) -> None:
        if wanted is not None:
            check_reach(plan.manifest, plan.tests, wanted)

    results = run_if(fits, suite, agent=agent, seeds=seeds, out=folder, **{"progress": False} | settings)
    if wanted is not None:
        decision = results.decide_reach(wanted, 0.5 if at_least is None else at_least)
        if decision.verdict != "passed":
            reach = "\n".join(each.sentence for each in results.reach)
            raise AssertionError(f"{results!r}\n{decision.sentence}\n{reach}\n\nthe runs: {folder}")
        at_least = None
    recall = results.recall if at_least is not None else None
    if recall is not None and recall < (at_least or 0) - 1e-9:
        raise AssertionError(
            _describe_failures(results, f"{results!r}\n{recall:.1%} of the evidence found is less than {at_least:.1%}", folder)
        )
    if at_least is not None and recall is None and results.share < at_least - 1e-9:
        raise AssertionError(
            _describe_failures(results, f"{results!r}\n{results.share:.1%} of full marks are less than {at_least:.1%}", folder)
        )
    if baseline is not None and (fall := results.compare(baseline, margin=margin)).verdict != "not worse":
        raise AssertionError(_describe_failures(results, "\n".join([fall.sentence, *fall.warnings]), folder))
    return results


def describe_failure(test: ShownTest) -> str:
    """Describe a test that lost points, with all that a developer needs to understand why."""
    return f"{test.id}, seed {test.seed}: {test.summary}"


def _describe_failures(results: Results, why: str, folder: Path) -> str:
    failed = results.failed()
    which = f"{len(failed)} tests lost points; the worst:" if len(failed) > SHOWN else "tests that lost points:"
    return "\n\n".join([why, which, *map(describe_failure, _different(failed)), f"the runs: {folder}"])


def _different(failed: Sequence[ShownTest]) -> list[ShownTest]:
    """Return up to SHOWN failed tests, from as different scenarios as possible."""
    firsts = list({test.scenario: test for test in reversed(failed)}.values())[::-1]
    return [*firsts, *(test for test in failed if test not in firsts)][:SHOWN]
