"""How far back an agent remembers, as result.json has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, Literal, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import short
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import LAST
from longspan.simulator.suite.manifest import Manifest

__all__ = ["STAGES", "Extent", "Kind", "ReachOf", "Stage", "StrandOf", "Unit", "check_reach", "falls_short", "span_for"]

Kind = Literal["window of messages", "window of tokens", "decay", "misses some", "no limit", "nothing"]

Unit = Literal["tokens", "messages", "seconds"]

Stage = Literal["answered", "found", "stored"]
"""What is asked of a question's fact: whether the answer was right, whether a memory found it for the question, whether it was stored."""


STAGES: Final[Mapping[Stage, str]] = {"answered": "Recalls", "found": "Finds", "stored": "Has stored"}

FEW: Final = 8
"""With fewer questions than this, a kind of limit is not named."""

SURE: Final = 0.8
"""The probability from which on one kind of limit is named."""

UNKNOWN: Final = "not clear"

STEP: Final = 100
"""Spans are given in hundreds of tokens. So many are left for the message that tells a fact, and for what its turn is charged."""

LIMITS: Final[Mapping[Kind, str]] = {
    "window of messages": "a window of messages",
    "window of tokens": "a window of tokens",
    "decay": "decay",
    "misses some": "missing some, near and far alike",
    "no limit": "no limit up to the span",
    "nothing": "no memory from one message to the next",
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Extent(_Frozen):
    """A distance, or a share, with its 95% credible interval. A distance of 0 is nearer than any that was asked, None is further."""

    value: float | None
    low: float | None
    high: float | None


@final
class StrandOf(_Frozen):
    """A strand's questions: how many lie within the reach of plain facts and how many beyond it, and the sums of their scores."""

    name: str
    within: int
    right_within: float
    beyond: int
    right_beyond: float


@final
class ReachOf(_Frozen):
    """How far back plain facts are recalled, in tokens, in messages of both sides and in seconds of virtual time.

    The reach is the furthest distance at which at least half of them are recalled. `dealt` is the reach in tokens as every agent is
    charged for them, None where there is no limit; `furthest` and `furthest_dealt` are the furthest distance that was asked. `asked`
    counts the questions, `recalled` is the sum of their scores, and `beyond` the mean score beyond the reach, None if nothing was asked
    there. A guess earns `chance`. `at_once` facts were asked for in the message that told them, and `able` is the sum of these scores;
    both are 0 for a stage of a memory. `nearest` is the mean score of the third that lies nearest. `share` is the share recalled if
    distance does not matter. `kinds` says how likely each kind of limit is.
    """

    stage: Stage
    tokens: Extent
    messages: Extent
    seconds: Extent
    dealt: float | None
    furthest: int
    furthest_dealt: int
    asked: int
    recalled: float
    beyond: float | None
    chance: float
    at_once: int
    able: float
    nearest: float
    share: Extent
    kinds: dict[Kind, float]
    strands: list[StrandOf] = []

    @property
    def kind(self) -> Kind:
        """The likeliest kind of limit."""
        return max(self.kinds, key=self.kinds.__getitem__)

    @property
    def can(self) -> bool:
        """Whether at least half of the facts asked for at once were answered, or of the nearest. Otherwise, nothing is known of the agent's
        memory: it cannot do the task."""
        return not self.at_once or self.able >= self.at_once / 2 or self.nearest >= 1 / 2

    @property
    def sentence(self) -> str:
        """The reach in words."""
        return _sentence(self)

    @property
    def named(self) -> str:
        """The kind of limit in a word or two; "not clear" where no kind is much likelier than all others together."""
        if not self.can:
            return "cannot do it"
        return self.kind if self.asked >= FEW and self.kinds[self.kind] >= SURE else UNKNOWN


# ---- what is wanted


def span_for(reach: int) -> int:
    """Return a span in tokens in which facts are asked for at this distance."""
    return STEP * ceil((reach + STEP) / LAST / STEP)


def check_reach(manifest: Manifest, tests: Mapping[str, Sequence[Test]], reach: int) -> None:
    """Raise InputError if a run of these tests, by conversation, cannot show whether an agent reaches so many tokens back."""
    if not any(test.scenario.ladder for group in tests.values() for test in group):
        raise InputError(f"suite {manifest.suite.name} does not measure how far back an agent remembers; use the suite reach")
    if manifest.isolated:
        raise InputError("a reach cannot be measured in isolated tests, where nothing lies between; leave out --isolated")
    if manifest.span < (least := span_for(reach)):
        raise InputError(f"a reach of {reach:,} tokens needs a span of at least {least:,}, got {manifest.span:,}: use --span {least}")


def falls_short(runs: Iterable[Sequence[ReachOf]], reach: int) -> str | None:
    """Return in a sentence how one agent's runs fall short of a reach, in tokens as every agent is dealt them. None if they do not. Of
    several runs, the middle one counts, or the worse one of two."""
    found = [stages[0] if stages else None for stages in runs]
    order = sorted(found, key=_reached)
    middle = order[(len(order) - 1) // 2] if order else None
    if _reached(middle) >= reach:
        return None
    return f"wanted a reach of {reach:,} tokens: {middle.sentence if middle is not None else 'nothing is known of the reach.'}"


def _reached(each: ReachOf | None) -> float:
    """Return the reach as dealt; the furthest distance asked, if there is no limit up to that; below 0 if nothing is known."""
    if each is None or not each.can:
        return -1
    return each.furthest_dealt if each.dealt is None else each.dealt


# ---- in words


def _sentence(each: ReachOf) -> str:
    """Return the reach in words."""
    if not each.can:
        return f"Cannot do the task even at once ({each.able:.3g} of {each.at_once} right): this says nothing about memory."
    verb, furthest = STAGES[each.stage], f"{short(each.furthest)} tokens back"
    right = f"{each.recalled:.3g} of {each.asked}"
    able = f", though {each.able:.3g} of {each.at_once} are right at once" if each.at_once else ""
    guess = f", guessing would be {each.chance:.0%}" if each.chance else ""
    match each.named:
        case "nothing":
            return f"{verb} no plain facts from earlier messages ({right}{able})."
        case "no limit":
            return f"{verb} plain facts at all distances that were asked, up to {furthest} ({right}): no limit up to the span."
        case "misses some":
            share = each.share
            return (
                f"{verb} {share.value:.0%} of plain facts ({share.low:.0%} to {share.high:.0%}), near and far alike, up to {furthest}"
                f"{guess}: it misses some, whatever the distance."
            )
    extent = each.tokens
    if extent.value == 0:
        return f"{verb} less than half of the plain facts at any distance ({right}{guess}). {_looks(each)}"
    if extent.value is None:
        return f"{verb} at least half of the plain facts up to {furthest}, the furthest that was asked ({right}). {_looks(each)}"
    if extent.high is None:
        most = f", at least half of them up to {short(extent.low)} tokens back" if extent.low else ""
        return f"{verb} {each.recalled / each.asked:.0%} of plain facts ({right}), up to {furthest}{most}{guess}. {_looks(each)}"
    beyond = f"; beyond that {each.beyond:.0%}{guess}" if each.beyond is not None else ""
    messages = each.messages.value
    about = f", about {messages:,.0f} messages" if messages else ""
    time = f" or {_duration(each.seconds.value)}" if each.seconds.value and about else ""
    back = f"{short(extent.value)} tokens back ({short(extent.low or 0)} to {short(extent.high)})"
    return f"{verb} plain facts up to {back}{about}{time}{beyond}. {_looks(each)}"


def _looks(each: ReachOf) -> str:
    return f"It looks like {_limit(each)}." if _limit(each) != UNKNOWN else "What kind of limit that is, it is too early to tell."


def _limit(each: ReachOf) -> str:
    """Return the kind of limit in words: the likeliest one, or those that cannot be told apart."""
    if each.asked < FEW:
        return UNKNOWN
    if each.named != UNKNOWN:
        return LIMITS[each.kind]
    likely = sorted(each.kinds, key=each.kinds.__getitem__, reverse=True)
    if set(likely[:2]) == {"window of messages", "window of tokens"} and sum(each.kinds[kind] for kind in likely[:2]) >= SURE:
        return "a window, of messages or of tokens"
    return f"{LIMITS[likely[0]]}, or {LIMITS[likely[1]]}"


def _duration(seconds: float | None) -> str:
    if not seconds:
        return ""
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name} of virtual time"
    return f"{seconds:.0f} seconds of virtual time"
