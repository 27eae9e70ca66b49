"""Contrasts: comparisons of two agents stated before the runs. They are tested like pairs and corrected for their number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.fields import Names, Spans
from longspan.simulator.base.suggestions import suggest, with_keys
from longspan.simulator.results.analysis.comparable import other_data
from longspan.simulator.results.analysis.pairing import pair_tests
from longspan.simulator.results.analysis.statistics import (
    ADVISED,
    difference_limits,
    fall_p,
    holm,
    least_conversations,
    least_p,
    paired_permutation_p,
)
from longspan.simulator.results.analysis.units import Key, Units, test_keys
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "KEYS",
    "Contrast",
    "ContrastResult",
    "Contrasts",
    "Verdict",
    "agent_named",
    "correct_ps",
    "evaluate_contrasts",
    "least_to_confirm",
    "read_contrasts",
]

Correction = Literal["holm", "bonferroni", "none"]

Verdict = Literal["higher", "lower", "not shown", "undecided"]
"""The result of a contrast for its first agent. `undecided` means that there are too few conversations to show anything."""

MAX: Final = 1_000
"""The most contrasts in one file."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Contrast(_Frozen):
    """Two agents, the tests to compare them in (by default all that both play), and the question to test.

    `sides`: 2 asks whether the agents differ, 1 whether the first scores more than the second. `margin` is a share of full marks, for one
    side only: by how much more the first must score, or if negative, how much less is tolerated.
    """

    agents: Annotated[list[str], Field(min_length=2, max_length=2)]
    suites: Names = []
    spans: Spans = []
    scenarios: Names = []
    sides: Literal[1, 2] = 2
    margin: float = Field(default=0.0, ge=-1, le=1)

    @model_validator(mode="after")
    def _check(self) -> Contrast:
        if self.margin and self.sides == 2:
            raise ValueError("a margin is for one side: add sides: 1, to ask whether the first agent scores more than the second by that")
        return self

    def wants(self, key: Key) -> bool:
        """Return whether the agents are compared in a test. A test without a span belongs to every span."""
        return (
            key.suite in (self.suites or [key.suite])
            and (not self.spans or key.column.span in (0, *self.spans))
            and key.scenario in (self.scenarios or [key.scenario])
        )


@final
class Contrasts(_Frozen):
    """Contrasts that are tested together: all p-values are corrected for the number of contrasts, and compared with `alpha`."""

    contrasts: Annotated[list[Contrast], Field(min_length=1, max_length=MAX)]
    correction: Correction = "holm"
    alpha: float = Field(default=0.05, ge=1e-6, le=0.5)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()

    def settle_names(self, manifests: Iterable[Manifest], where: str) -> Contrasts:
        """Return the contrasts with each agent under its name in the manifests of the runs to be compared.

        Raises InputError with a message that begins with `where` for an agent, a suite, a span or a scenario that does not exist.
        """
        planned = list(manifests)
        known = [key for manifest in planned for key in test_keys(manifest).values()]
        found = []
        for number, given in enumerate(self.contrasts):
            place = f"{where}: contrasts.{number}"
            contrast = given.model_copy(update={"suites": [name.replace("+", "_") for name in given.suites]})
            agents = [agent_named(name, planned, place) for name in contrast.agents]
            if agents[0] == agents[1]:
                raise InputError(f"{place}: {agents[0]} is compared with itself; name two agents")
            values: list[tuple[str, Sequence[object], Iterable[object]]] = [
                ("suites", contrast.suites, (key.suite for key in known)),
                ("spans", contrast.spans, (manifest.span for manifest in planned)),
                ("scenarios", contrast.scenarios, (key.scenario for key in known)),
            ]
            for field, wanted, there in values:
                names = list(dict.fromkeys(map(str, there)))
                for each in map(str, wanted):
                    if each not in names:
                        among = f"there are {', '.join(names):.200}"
                        raise InputError(f"{place}: no run has {field[:-1]} {each!r:.60}{suggest(each, names, among)}")
            found.append(contrast.model_copy(update={"agents": agents}))
        if double := next((contrast for place, contrast in enumerate(found) if contrast in found[:place]), None):
            raise InputError(f"{where}: contrasts: {' and '.join(double.agents)} are compared twice in the same way; leave out one of them")
        return self.model_copy(update={"contrasts": found})

    def check_can_show(self, manifests: Iterable[Manifest], where: str) -> None:
        """Raise InputError for a contrast that no scores of the runs could confirm. Its message begins with `where`."""
        by_agent: dict[str, list[Manifest]] = {}
        for manifest in manifests:
            by_agent.setdefault(manifest.labelled, []).append(manifest)
        shared = [_shared_units(contrast, by_agent) for contrast in self.contrasts]
        lowest = correct_ps([least_p(len(each), contrast.sides) for each, contrast in zip(shared, self.contrasts, strict=True)], self)
        for number, (contrast, conversations, p) in enumerate(zip(self.contrasts, shared, lowest, strict=True)):
            if p >= self.alpha:
                have, need = len(conversations), least_to_confirm(contrast, self)
                lacking = need - have
                agents = " and ".join(contrast.agents)
                if not have:
                    raise InputError(f"{where}: contrasts.{number}: {agents} play no test in common there; compare them where both play")
                of = f" of one of {len(self.contrasts)} contrasts" if len(self.contrasts) > 1 and self.correction != "none" else ""
                common = f"{have} conversation{'s' * (have > 1)} of {agents}"
                if any(key.recorded for manifests in by_agent.values() for manifest in manifests for key in test_keys(manifest).values()):
                    what = f"data with {lacking} more histor{'ies' if lacking > 1 else 'y'}, since each counts once for all seeds"
                else:
                    what = f"{lacking} more seed{'s' * (lacking > 1)}"
                more = f"{need} would do, that is {what}" + (f"; {ADVISED} are recommended" if need < ADVISED else "")
                raise InputError(f"{where}: contrasts.{number}: {common} cannot show a difference{of}, however large; {more}")


KEYS: Final = tuple(Contrasts.model_fields)
"""The keys of a sweep's file that concern contrasts."""


def read_contrasts(content: Mapping[str, object], where: str) -> Contrasts | None:
    """Return the contrasts among the keys of a sweep's file; None if it has none. Raises InputError with a message that begins with
    `where`."""
    given = {name: content[name] for name in KEYS if name in content}
    if not given:
        return None
    if "contrasts" not in given:
        raise InputError(f"{where}: {next(iter(given))}: no contrasts; list the pairs of agents to compare")
    try:
        return Contrasts.model_validate(given)
    except ValidationError as error:
        problem = first_problem(error)
        if problem.endswith(("unknown key", "is missing")):
            problem = with_keys(problem, "a contrast's", Contrast.model_fields)
        raise InputError(f"{where}: {problem}") from None


def least_to_confirm(contrast: Contrast, of: Contrasts) -> int:
    """Return the fewest conversations that can confirm a contrast, even if no other contrast is confirmed."""
    return least_conversations(1 if of.correction == "none" else len(of.contrasts), sides=contrast.sides, alpha=of.alpha)


def correct_ps(ps: Sequence[float], of: Contrasts) -> list[float]:
    """Return the p-values corrected for the number of contrasts."""
    match of.correction:
        case "holm":
            return holm(ps)
        case "bonferroni":
            return [min(1.0, len(ps) * p) for p in ps]
        case "none":
            return list(ps)


def agent_named(name: str, manifests: Sequence[Manifest], where: str) -> str:
    """Return the agent, with its label, that a name stands for.

    The name may be complete, or just the spec or the label if that matches one agent only. Raises InputError with a message that begins
    with `where`.
    """
    called = {manifest.labelled: (manifest.agent, manifest.label) for manifest in manifests}
    if name in called:
        return name
    having = [labelled for labelled, names in called.items() if name in names]
    # The environment may have set options that the file does not name.
    having = having or [labelled for labelled, (spec, _) in called.items() if spec.startswith((f"{name}?", f"{name}&"))]
    if len(having) == 1:
        return having[0]
    if having:
        raise InputError(f"{where}: {name!r:.60} may be any of {'; '.join(having):.200}; name one of them in full")
    names = list(dict.fromkeys(each for labelled, named in called.items() for each in (labelled, *named) if each is not None))
    there = f"there are {'; '.join(called):.200}"
    raise InputError(f"{where}: no run has agent {name!r:.60}{suggest(name, names, there)}")


def _shared_units(contrast: Contrast, by_agent: Mapping[str, Sequence[Manifest]]) -> set[object]:
    """Return the units of the tests that both agents will play."""
    planned = [by_agent.get(agent, ()) for agent in contrast.agents]
    units = Units(manifest for manifests in planned for manifest in manifests)
    mine, theirs = ({key for manifest in manifests for key in test_keys(manifest).values() if contrast.wants(key)} for manifests in planned)
    return {units.of(key) for key in mine & theirs}


# ---- testing


@final
@dataclass(frozen=True, slots=True)
class ContrastResult:
    """The result of a contrast. Scores are shares of full marks in the tests that both agents have had; a test without a score counts as 0.

    `difference`: the first agent's score minus the second's, or None without a test in common. `interval`: the interval at the level
    `level`, or None if all conversations differ by the same amount. `corrected` is `p` after the correction. `needed`: the number of
    conversations that can show something.
    """

    contrast: Contrast
    one: float
    other: float
    difference: float | None
    interval: tuple[float, float] | None
    level: float
    conversations: int
    tests: int
    unscored: int
    p: float
    corrected: float
    verdict: Verdict
    needed: int


def evaluate_contrasts(contrasts: Contrasts, runs: Sequence[GradedRun]) -> list[ContrastResult]:
    """Test `settled` contrasts by whole conversations, paired by seed. Raises InputError if one name stands for different data."""
    if unlike := other_data(runs):
        raise InputError(f"{unlike[0]}: name only runs of one of them")
    by_agent: dict[str, list[GradedRun]] = {}
    for run in runs:
        by_agent.setdefault(run.agent, []).append(run)
    both = [
        pair_tests(by_agent.get(one, []), by_agent.get(other, []), each.wants)
        for each in contrasts.contrasts
        for one, other in [each.agents]
    ]
    apart = [[each.difference for each in tests] for tests in both]
    sizes = [len({each.conversation for each in found}) for found in apart]
    sided = [each.sides for each in contrasts.contrasts]
    ps = [
        1.0 if not found else fall_p(found, each.margin) if each.sides == 1 else paired_permutation_p(found)
        for each, found in zip(contrasts.contrasts, apart, strict=True)
    ]
    lowest = correct_ps([least_p(size, sides) for size, sides in zip(sizes, sided, strict=True)], contrasts)
    known: list[ContrastResult] = []
    for place, (each, p) in enumerate(zip(contrasts.contrasts, correct_ps(ps, contrasts), strict=True)):
        scores: dict[str, list[tuple[float, float]]] = {}
        for test in both[place]:
            scores.setdefault(test.scenario, []).append(test.scores)
        one, other = (fmean(fmean(pair[of] for pair in pairs) for pairs in scores.values()) if scores else 0.0 for of in (0, 1))
        tail = contrasts.alpha / each.sides
        known.append(
            ContrastResult(
                contrast=each,
                one=one,
                other=other,
                difference=one - other if scores else None,
                interval=difference_limits(apart[place], tail),
                level=1 - 2 * tail,
                conversations=sizes[place],
                tests=len(both[place]),
                unscored=sum(test.unscored for test in both[place]),
                p=ps[place],
                corrected=p,
                verdict=_verdict(p, lowest[place], contrasts.alpha, one >= other + each.margin),
                needed=least_to_confirm(each, contrasts),
            )
        )
    return known


def _verdict(p: float, lowest: float, alpha: float, higher: bool) -> Verdict:
    if lowest >= alpha:
        return "undecided"
    return "not shown" if p >= alpha else "higher" if higher else "lower"
