"""How far back an agent remembers: the fields stored in result.json, and their description in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import LAST
from longspan.simulator.filler.draws import join_words
from longspan.simulator.suite.manifest import Manifest

__all__ = [
    "STAGES",
    "SURE",
    "TYPES_SHOWN",
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
    "describe_extent",
    "describe_types",
    "keep_reach",
    "span_for",
]

Kind = Literal["message window", "token window", "time window", "decay", "none", "random misses", "by type of fact", "nothing", "unclear"]
"""The kind of limit. `none`: no limit up to the span; `nothing`: no fact is recalled; `unclear`: no kind fits, or several do."""

Unit = Literal["tokens", "messages", "seconds", "nights"]

Stage = Literal["answered", "found", "stored"]
"""The quantity that shares measure: right answers, facts retrieved for the question, or facts stored."""

STAGES: Final[Mapping[Stage, str]] = {"answered": "Recalls", "found": "Finds", "stored": "Stored"}

SURE: Final = 0.9
"""The minimum probability of a kind of limit that results name."""

HALF: Final = 0.5

ABLE: Final = 0.2
"""The least share of right answers to questions without need for memory that shows an agent can do the task."""

NEVER: Final = 0.025
"""If far recall is below one half with a probability under this, recall counts as more than half at every distance."""

TYPES_SHOWN: Final = 0.01
"""The p-value below which recall is reported to depend on the type of fact."""

STEP: Final = 100
"""Spans are rounded up to a multiple of this many tokens. It also covers the message that states a fact, and the charge for its turn."""

BEYOND, MORE = 3, 2_000
"""The default span for a reach is this many times as long, plus this many tokens.

Then several questions lie around that distance and beyond it, even if replies are short. The shortest allowed span has at most one, which
cannot decide.
"""

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
    """A share or a distance with its 95% credible interval. None stands for a distance beyond the furthest question."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def in_percent(self) -> str:
        return f"{format_percent(self.value or 0)} ({format_percent(self.low or 0)} to {format_percent(self.high or 0)})"


@final
class DistancesByUnit(_Frozen):
    """A distance in tokens, in messages of both sides, in seconds of virtual time and in nights. A unit without a significant finding is
    None."""

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
    """The results of one strand of questions, split at the reach of plain facts, or else at their drop.

    Without either, all questions count as `within`.
    """

    name: str
    within: Count
    beyond: Count


@final
class ReachResult(_Frozen):
    """How far back plain facts are recalled. All intervals are 95% credible intervals.

    `near` and `far` are the recall at the nearest and the furthest distance. If no kind of limit `fits`, they are the recall in the nearest
    and the furthest third. `drop` is where recall falls from near to far; None if no fall is significant. `reach` is the furthest distance
    where half of the facts are recalled; None unless recall beyond it is significantly below one half. `unit` is the unit of the limit.
    `within` and `beyond` count the questions on either side of the reach, or else of the drop, in that unit. `below` is the probability
    that far recall is below one half.

    `kind` is the kind of limit, and `kinds` has the probability of each kind. `alike`: recall is alike at all distances. `share` is the
    recall at all distances together, and `thirds` has it by distance. `by_type` has it by type of fact. `types_p` is the p-value of a test
    of whether recall depends on the type, None with too few types.

    `asked` counts the questions, and `recalled` is the sum of their scores. `chance` is the expected score of a guess among all values of a
    type; `heard`, of a guess among the values stated so far. `outcomes` counts the values in wrong answers (see `contract.rungs`).
    `at_once` counts the questions in the same message as their fact, and `able` is the sum of their scores; both are 0 for a stage of a
    memory. `furthest` is the furthest distance in tokens. `strands` has the other strands.
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
        """Whether the agent can do the task: it answers some questions that need no memory, or half of the questions at some distance."""
        return self.able >= ABLE * self.at_once or any((each.share.value or 0) >= HALF for each in self.thirds)

    @property
    def hedges(self) -> bool:
        """Whether half of the answers name several values, so that it is unknown what was recalled."""
        return self.outcomes.get("several", 0) >= self.asked / 2

    @property
    def guesses(self) -> bool:
        """Whether the agent often names values stated for others, and scores no better than by guessing among the values stated."""
        # Two standard deviations above the expected number of lucky guesses, under the binomial distribution.
        luck = self.asked * self.heard + 2 * sqrt(self.asked * self.heard * (1 - self.heard))
        return self.outcomes.get("confused", 0) >= self.asked / 3 and self.recalled <= luck

    @property
    def tells(self) -> bool:
        """Whether the answers show anything about how far back the agent remembers."""
        return self.can and not self.hedges and not self.guesses

    @property
    def named(self) -> str:
        """The kind of limit in a few words."""
        if not self.tells:
            return "hedges" if self.hedges else "guesses" if self.guesses else "cannot do it"
        if not self.fits:
            return "no kind fits"
        return "no drop shown" if self.kind == "unclear" and self.drop is None else self.kind

    @property
    def brief(self) -> str:
        """The result in a few words."""
        return _summarize(self)

    @property
    def sentence(self) -> str:
        """The result in one or two sentences."""
        return _describe(self)


def keep_reach(value: Any) -> Any:
    """Return result.json's `reach`, or an empty list if an earlier version wrote it.

    Earlier versions used another method; `longspan score` computes the reach again.
    """
    if isinstance(value, list) and any(isinstance(each, dict) and "near" not in each for each in value):
        return []
    return value


# ---- spans for a reach


def span_for(reach: int) -> int:
    """Return a span in tokens that can show in a few seeds whether an agent reaches that far back."""
    return STEP * ceil((BEYOND * reach + MORE) / STEP)


def check_reach(manifest: Manifest, tests: Mapping[str, Sequence[Test]], reach: int) -> None:
    """Raise InputError if a run of these tests, by conversation, cannot show whether an agent reaches that many tokens back."""
    if not any(test.scenario.ladder for group in tests.values() for test in group):
        raise InputError("these tests do not ask for plain facts at many distances; use the suite reach with its scenario reach")
    if manifest.isolated:
        raise InputError("a reach cannot be measured in isolated tests, where nothing lies between; leave out --isolated")
    if manifest.span < (least := STEP * ceil((reach + STEP) / LAST / STEP)):
        advice = f"use --span {span_for(reach)}, or at least {least}"
        raise InputError(f"a reach of {reach:,} tokens needs a span of at least {least:,}, got {manifest.span:,}: {advice}")


# ---- in words


def describe_extent(unit: Unit, extent: Extent) -> str:
    """Return a distance with its interval: "17 messages (13 to 24)"."""
    value, low = extent.value or 0.0, extent.low or 0.0
    high = "the furthest" if extent.high is None else _describe_distance(unit, extent.high)
    name = {"tokens": " tokens", "messages": " messages", "seconds": " of virtual time"}.get(unit, "")
    return f"{_describe_distance(unit, value)}{name} ({_describe_distance(unit, low)} to {high})"


def describe_types(each: ReachResult) -> str:
    """Return the recall of each type of fact, highest first."""
    order = sorted(each.by_type.items(), key=lambda item: (-(item[1].share.value or 0), item[0]))
    return join_words([f"{name} {found.count.text}" for name, found in order])


def _summarize(each: ReachResult) -> str:
    if not each.tells or not each.fits:
        return each.named
    if each.reach is not None and (reach := each.reach.get(each.unit)):
        return f"up to {describe_extent(each.unit, reach)} back"
    if each.drop is not None:
        return f"{format_percent(each.near.value or 0)} nearby, {format_percent(each.far.value or 0)} far away"
    match each.kind:
        case "nothing":
            return "no more than guessing explains" if each.recalled > each.chance * each.asked + 1 else "nothing from earlier messages"
        case "none":
            return f"no limit up to {format_tokens(each.furthest)} tokens"
    return f"{format_percent(each.share.value or 0)} {'at all distances' if each.alike else 'overall'}"


def _describe(each: ReachResult) -> str:
    able = Count(asked=each.at_once, right=each.able).text
    if each.hedges:
        return f"Hedges: {each.outcomes['several']} of {each.asked} answers name several values, so nothing is known about its reach."
    if each.guesses:
        confused = f"{each.outcomes['confused']} of {each.asked} answers name a value stated for another person"
        right = f"{each.recalled:.3g} are right, no more than by guessing among the values stated"
        return f"{confused}, and {right}: nothing is known about its reach."
    if not each.can:
        return f"Cannot answer even when the fact is in the same message ({able} right): nothing is known about its memory."
    parts = [_describe_recall(each)]
    if each.types_p is not None and each.types_p < TYPES_SHOWN:
        parts.append(f"It depends on the type: {describe_types(each)}.")
    if each.able < each.at_once / 2:
        parts.append(f"Even in the same message, {f'only {able} are' if each.able else f'none of {each.at_once} is'} right.")
    return " ".join(parts)


def _describe_recall(each: ReachResult) -> str:
    verb, upto = STAGES[each.stage], f"up to {format_tokens(each.furthest)} tokens back"
    all_ = Count(asked=each.asked, right=each.recalled).text
    if not each.fits:
        return f"{verb} {_list_thirds(each)}: recall does not simply fall with distance, so no limit is given."
    if each.drop is not None:
        return _describe_drop(each, verb)
    if each.kind == "nothing" and each.recalled > each.chance * each.asked + 1:
        return f"{verb} no more plain facts than guessing among the values stated explains ({all_})."
    if each.kind == "nothing":
        return f"{verb} no plain facts from earlier messages ({all_})."
    if each.kind == "none":
        return f"{verb} plain facts at every distance asked, {upto} ({all_}): no limit is found."
    share = f"{verb} {each.share.in_percent} of plain facts, {upto}."
    if each.kind == "by type of fact":
        return share
    alike = "Near and far facts are recalled alike." if each.alike else "A fall with distance is neither shown nor excluded."
    return f"{share} {alike}"


def _describe_drop(each: ReachResult, verb: str) -> str:
    """Describe recall that falls with distance."""
    drop, reach = each.drop and each.drop.get(each.unit), each.reach and each.reach.get(each.unit)
    kind = f"{'Looks like' if each.kind != 'unclear' else 'May be'} {_name_kinds(each)}."
    if reach:
        tokens = each.reach.tokens if each.reach and each.unit != "tokens" else None
        about = f", or {describe_extent('tokens', tokens)}" if tokens and tokens.value else ""
        back = (
            "stated since the last midnight"
            if each.unit == "nights" and (reach.value or 0) < 1
            else f"up to {describe_extent(each.unit, reach)} back"
        )
        return f"{verb} plain facts {back}{about}: {each.within.text} within, {each.beyond.text} beyond. {kind}"
    thirds = f"{verb} {_list_thirds(each)}"
    if (each.near.value or 0) < HALF:
        return f"{thirds}: less than half at any distance. {kind}"
    lowest = min(each.thirds, key=lambda third: third.share.value or 0) is each.thirds[-1]
    where = f" Recall falls at about {describe_extent(each.unit, drop)}." if drop and lowest and each.kind.endswith("window") else ""
    enough = "more than half at every distance" if each.below < NEVER else "add seeds to see whether far recall is below half"
    return f"{thirds}: {enough}.{where}"


_DURATIONS: Final = ((86_400, "days"), (3600, "hours"), (60, "minutes"))


def _describe_distance(unit: Unit, value: float) -> str:
    """Return a distance in few characters, without the name of its unit for tokens and messages."""
    match unit:
        case "tokens":
            return format_tokens(value)
        case "messages":
            return f"{value:.0f}"
        case "nights":  # an edge between two numbers of nights means recall up to the lower one
            return f"{int(value)} night{'s' * (int(value) != 1)}"
    size, name = next(((size, name) for size, name in _DURATIONS if value >= 2 * size), (1, "seconds"))
    return f"{value / size:.0f} {name}"


def _name_kinds(each: ReachResult) -> str:
    """Return the kind of limit in words, or the two likeliest ones."""
    if each.kind != "unclear":
        return _KINDS[each.kind]
    likely = sorted((kind for kind in each.kinds if kind in _KINDS), key=each.kinds.__getitem__, reverse=True)
    return join_words([_KINDS[kind] for kind in likely[:2]], "or")


def _list_thirds(each: ReachResult) -> str:
    """Return the share recalled in each third of the distances."""
    first, *rest = each.thirds
    start = [f"{first.share.in_percent} of plain facts up to {format_tokens(first.furthest)} tokens back"]
    return join_words(start + [f"{third.share.in_percent} up to {format_tokens(third.furthest)}" for third in rest])
