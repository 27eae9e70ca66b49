"""How far back an agent remembers, as result.json stores it, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.shares import percent
from longspan.simulator.base.sizes import short
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import LAST
from longspan.simulator.filler.draws import listed
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "STAGES",
    "SURE",
    "Count",
    "DistancesByUnit",
    "Extent",
    "Kind",
    "ReachResult",
    "Stage",
    "StrandResult",
    "Third",
    "TypeResult",
    "Unit",
    "check_reach",
    "keep_reach",
    "span_for",
]

Kind = Literal["message window", "token window", "time window", "decay", "none", "random misses", "by type of fact", "nothing", "unclear"]
"""The kind of limit. `none`: no limit up to the span; `nothing`: no fact is recalled; `unclear`: no kind fits, or several do."""

Unit = Literal["tokens", "messages", "seconds", "nights"]

Stage = Literal["answered", "found", "stored"]
"""What the shares are shares of: right answers, facts that a memory found for the question, facts that it stored."""

STAGES: Final[Mapping[Stage, str]] = {"answered": "Recalls", "found": "Finds", "stored": "Stored"}

SURE: Final = 0.8
"""The probability from which on a kind of limit is named."""

HALF: Final = 0.5

STEP: Final = 100
"""Spans are rounded up to hundreds of tokens. So many are left for the message that states a fact, and for what its turn is charged."""

BEYOND: Final = 2.5
"""The default span for a reach is so many times as long, so that several questions lie around that distance and beyond it. In the least
span that is allowed there is about one in a conversation, which can only decide with many seeds."""

LEAST_SPAN: Final = 4_000
"""The least default span, since shorter ones ask few questions."""

_KINDS: Final[Mapping[Kind, str]] = {
    "message window": "a message window",
    "token window": "a token window",
    "time window": "a time window",
    "decay": "decay",
    "none": "no limit",
    "random misses": "random misses",
    "by type of fact": "misses that depend on the type of fact",
    "nothing": "no memory",
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Extent(_Frozen):
    """A share or a distance with its 95% credible interval. A distance of None is further than any that was asked."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def in_percent(self) -> str:
        return f"{percent(self.value or 0)} ({percent(self.low or 0)} to {percent(self.high or 0)})"


@final
class DistancesByUnit(_Frozen):
    """A distance in tokens, in messages of both sides, in seconds of virtual time and in nights; None where nothing is shown in a unit."""

    tokens: Extent | None = None
    messages: Extent | None = None
    seconds: Extent | None = None
    nights: Extent | None = None

    def get(self, unit: Unit) -> Extent | None:
        found: Extent | None = getattr(self, unit)
        return found


@final
class Count(_Frozen):
    """The number of questions, and the sum of their scores."""

    asked: int
    right: float

    @property
    def text(self) -> str:
        return f"{self.right:.3g} of {self.asked}"


@final
class Third(_Frozen):
    """A third of the questions by distance: the furthest distance in tokens, and the share recalled."""

    furthest: int
    count: Count
    share: Extent


@final
class TypeResult(_Frozen):
    """The questions for one type of fact, and the share recalled."""

    count: Count
    share: Extent


@final
class StrandResult(_Frozen):
    """A strand's questions: those as far back as the reach or the drop of plain facts and those further back. Without either, all are
    `within`."""

    name: str
    within: Count
    beyond: Count


@final
class ReachResult(_Frozen):
    """How far back plain facts are recalled. All intervals are 95% credible ones.

    `near` and `far` are the shares recalled at the nearest and the furthest distance, or, if no kind of limit `fits`, of the nearest and
    the furthest third. `drop` is where recall falls from near to far; None if no fall is shown. `reach` is the furthest distance at which
    half of the facts are recalled; None unless recall beyond it is shown to be below one half. `unit` is the unit of the limit; `within`
    and `beyond` count the questions up to the reach, or else the drop, and those further back, in that unit. `below` is the probability
    that far recall is below one half.

    `kind` is the kind of limit that the answers show, and `kinds` the probabilities. `alike`: recall is alike at all distances. `share` is
    the share recalled at all distances together; `thirds` are those by distance. `by_type` has the types of facts, and `types_p` the
    p-value of a test whether recall depends on them, None if there are too few.

    `asked` counts the questions, and `recalled` is the sum of their scores. A guess among all values of a type earns `chance`, one among
    the values stated so far `heard`. `outcomes` counts what wrong answers settled on: see `contract.rungs`. `at_once` facts were asked for
    in the message that stated them, and `able` is the sum of these scores; both are 0 for a stage of a memory. `furthest` is the furthest
    distance in tokens. `strands` are the other questions.
    """

    stage: Stage
    near: Extent
    far: Extent
    drop: DistancesByUnit | None
    reach: DistancesByUnit | None
    kind: Kind
    fits: bool
    kinds: dict[Kind, float]
    alike: bool
    unit: Unit
    within: Count
    beyond: Count
    below: float
    share: Extent
    thirds: list[Third]
    by_type: dict[str, TypeResult] = {}
    types_p: float | None = None
    asked: int
    recalled: float
    chance: float
    heard: float
    outcomes: dict[str, int] = {}
    at_once: int
    able: float
    furthest: int
    strands: list[StrandResult] = []

    @property
    def can(self) -> bool:
        """Whether the agent can do the task: it answers half of the questions that need no memory, or half of those at some distance."""
        return not self.at_once or self.able >= self.at_once / 2 or any((each.share.value or 0) >= HALF for each in self.thirds)

    @property
    def hedges(self) -> bool:
        """Whether half of the answers name several values, so that nothing is known of what was recalled."""
        return self.outcomes.get("several", 0) >= self.asked / 2

    @property
    def named(self) -> str:
        """The kind of limit in a few words."""
        if self.hedges:
            return "hedges"
        if not self.can:
            return "cannot do it"
        if not self.fits:
            return "no kind fits"
        return "no drop shown" if self.kind == "unclear" and self.drop is None else self.kind

    @property
    def sentence(self) -> str:
        """The result in one or two sentences."""
        return _describe(self)


def keep_reach(value: Any) -> Any:
    """Return what result.json has under `reach`, or nothing if an earlier version wrote it: another method worked it out, and `longspan
    score` does it anew."""
    if isinstance(value, list) and any(isinstance(each, dict) and "near" not in each for each in value):
        return []
    return value


# ---- what is wanted


def span_for(reach: int) -> int:
    """Return a span in tokens that can show in a few seeds whether an agent reaches that far back."""
    return max(LEAST_SPAN, STEP * ceil(BEYOND * reach / STEP))


def check_reach(manifest: Manifest, tests: Mapping[str, Sequence[Test]], reach: int) -> None:
    """Raise InputError if a run of these tests, by conversation, cannot show whether an agent reaches that many tokens back."""
    if not any(test.scenario.ladder for group in tests.values() for test in group):
        raise InputError(f"suite {manifest.suite.name} does not measure how far back an agent remembers; use the suite reach")
    if manifest.isolated:
        raise InputError("a reach cannot be measured in isolated tests, where nothing lies between; leave out --isolated")
    if manifest.span < (least := STEP * ceil((reach + STEP) / LAST / STEP)):
        advice = f"use --span {span_for(reach)}, or at least {least}"
        raise InputError(f"a reach of {reach:,} tokens needs a span of at least {least:,}, got {manifest.span:,}: {advice}")


# ---- in words


def _describe(each: ReachResult) -> str:
    verb = STAGES[each.stage]
    all_ = Count(asked=each.asked, right=each.recalled).text
    able = Count(asked=each.at_once, right=each.able).text
    upto = f"up to {short(each.furthest)} tokens back"
    if each.hedges:
        several = f"{each.outcomes['several']} of {each.asked} answers"
        return f"Hedges: {several} name several values, so nothing is known about its reach."
    if not each.can:
        return f"Cannot answer even when the fact is in the same message ({able} right): nothing is known about its memory."
    if not each.fits:
        return f"{verb} {_list_thirds(each)}. No kind of limit fits."
    if each.drop is not None:
        return _describe_drop(each, verb, upto)
    match each.kind:
        case "nothing":
            though = f", but {able} in the same message" if each.at_once else ""
            return f"{verb} no plain facts from earlier messages ({all_}{though})."
        case "none":
            return f"{verb} plain facts at every distance asked, {upto} ({all_}): no limit up to the span."
        case "by type of fact":
            return f"{verb} {each.share.in_percent} of plain facts, {upto}. It depends on the type: {_list_types(each)}."
    unrelated = "Misses are unrelated to distance." if each.alike else "No drop with distance is shown."
    return f"{verb} {each.share.in_percent} of plain facts, {upto}. {unrelated}"


def _describe_drop(each: ReachResult, verb: str, upto: str) -> str:
    """Describe recall that falls with distance."""
    drop, reach = each.drop and each.drop.get(each.unit), each.reach and each.reach.get(each.unit)
    looks = "Looks like" if each.kind != "unclear" else "May be"
    kind = f"{looks} {_name_kinds(each)}."
    if reach:
        tokens = each.reach.tokens if each.reach and each.unit != "tokens" else None
        about = f", about {short(tokens.value)} tokens" if tokens and tokens.value else ""
        counts = f"{each.within.text} within, {each.beyond.text} beyond"
        return f"{verb} plain facts {_describe_distance(each.unit, reach)}{about}: {counts}. {kind}"
    falls = f"{verb} {each.near.in_percent} of plain facts nearby and {each.far.in_percent} of the furthest, {upto}"
    if (each.near.value or 0) < HALF:
        return f"{falls}: less than half at any distance. {kind}"
    where = f" Recall falls {_describe_distance(each.unit, drop)}." if drop and each.kind.endswith("window") else ""
    enough = "more than half at every distance" if each.below < 1 - SURE else "add seeds to see whether far recall is below half"
    return f"{falls}: {enough}.{where}"


def _describe_distance(unit: Unit, extent: Extent) -> str:
    """Return a distance back with its interval."""
    value, low, high = extent.value or 0, extent.low or 0, extent.high
    match unit:
        case "tokens":
            return f"up to {short(value)} tokens back ({short(low)} to {'the furthest' if high is None else short(high)})"
        case "messages":
            return f"up to {value:.0f} messages back ({ceil(low):.0f} to {'the furthest' if high is None else f'{high:.0f}'})"
        case "nights":
            return f"up to {value:.0f} nights back" if value >= 1 else "stated since the last midnight"
    end = "the furthest" if high is None else _describe_duration(high)
    return f"up to {_describe_duration(value)} of virtual time back ({_describe_duration(low)} to {end})"


_DURATIONS: Final = ((86_400, "days"), (3600, "hours"), (60, "minutes"))


def _describe_duration(seconds: float) -> str:
    size, name = next(((size, name) for size, name in _DURATIONS if seconds >= 2 * size), (1, "seconds"))
    return f"{seconds / size:.0f} {name}"


def _name_kinds(each: ReachResult) -> str:
    """Return the kind of limit in words, or the two likeliest ones."""
    if each.kind != "unclear":
        return _KINDS[each.kind]
    likely = sorted((kind for kind in each.kinds if kind in _KINDS), key=each.kinds.__getitem__, reverse=True)
    return listed([_KINDS[kind] for kind in likely[:2]], "or")


def _list_thirds(each: ReachResult) -> str:
    """Return the share recalled in each third of the distances."""
    first, *rest = each.thirds
    start = [f"{first.share.in_percent} of plain facts up to {short(first.furthest)} tokens back"]
    return listed(start + [f"{third.share.in_percent} up to {short(third.furthest)}" for third in rest])


def _list_types(each: ReachResult) -> str:
    """Return what was recalled of each type, most first."""
    order = sorted(each.by_type.items(), key=lambda item: (-(item[1].share.value or 0), item[0]))
    return listed([f"{name} {found.count.text}" for name, found in order])
