"""Near and far recall of an agent, the distance where recall falls, and the kind of limit.

The method compares simple curves of recall by distance. They have one level at all distances, a step between two levels, a gradual fall, or
levels that depend on the type of fact. Steps are in messages, tokens or virtual time. All levels are free parameters. Each kind of curve
has a prior, and its marginal likelihood comes from `recall_curves`. As a check of fit, these curves compete with others that no agent with
a limit has. Their recall rises with distance, has three levels in any order, or depends on where a fact was stated or asked for in the
conversation. If those are likelier, no kind of limit fits.

Near recall, far recall and the drop are averaged over one level, steps and gradual falls, weighted by their probability. The reach is
derived: the furthest distance where half of the facts are recalled. It is only reported if recall beyond it is lower with a probability of
SHOWN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, pi
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from longspan.simulator.results.analysis.recall_curves import (
    MARGIN,
    SLOPE_LEVELS,
    WINDOW_WIDTHS,
    Answers,
    Slopes,
    Steps,
    add_logs,
    get_levels,
    group_answers,
    weigh_levels,
    weigh_pieces,
    weigh_slopes,
    weigh_steps,
)
from longspan.simulator.results.reach_result import SURE, Kind, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["HALF", "SHOWN", "CredibleEstimate", "ReachFit", "ScoredQuestion", "estimate_share", "fit_reach"]

HALF: Final = 0.5
"""The recall that defines the reach."""

SHOWN: Final = 0.975
"""The least probability that shows a drop, or recall below one half."""

TAIL: Final = 0.025
"""The probability beyond either end of an interval."""

FLAT: Final = 0.2
"""If recall falls by less than this and no drop is shown, it is alike at all distances."""

LIKELY: Final = 0.8
"""The least probability that recall falls with distance in some unit, for a drop to be reported in any."""

CLEARLY: Final = 3
"""A time window is reported in nights if that is at least this many times as probable as a window in seconds. Decay is reported in another
unit than tokens under the same condition."""

FEW: Final = 8
"""The fewest questions that a kind of limit is named for."""

FULL: Final = 0.9
"""The least recall of an agent that has no limit, rather than random misses, if no drop is shown."""

NOTHING: Final = 0.1
"""The highest recall of an agent that recalls nothing, unless guessing scores more."""

PRIORS: Final[Mapping[str, float]] = {
    "one level": 0.34,
    "level by type": 0.06,
    "fall by type": 0.04,
    "messages": 0.12,
    "tokens": 0.14,
    "seconds": 0.06,
    "nights": 0.04,
    "gradual": 0.1,
    "other": 0.1,
}
"""The prior probability of each kind of curve. The name of a unit means a step in it."""

BY_TYPE: Final = 0.25
"""The prior probability that a step's levels depend on the type of fact."""

IN_UNIT: Final = {"one level": 0.45, "step": 0.45, "gradual": 0.1}
"""The prior probabilities for estimates of near recall, far recall and the drop in one unit.

A higher one for gradual falls makes intervals around a window wider than necessary. With a lower one, intervals for decay contain its reach
too rarely (`python -m benchmarks reach`).
"""

BLURRED: Final = 0.15
"""The prior probability that a window's edge is not sharp."""

NEGLIGIBLE: Final = 1e-9
"""Curves with less than this share of the likeliest one's weight are left out of intervals."""

PARTS: Final = 4
"""The number of parts of the gap between two questions. A step may lie anywhere in the gap, and intervals end between parts."""


@final
class ScoredQuestion(NamedTuple):
    """A question and its score in [0, 1].

    Distances are from the end of the statement to the question. They are in tokens, in messages of both sides, in seconds of virtual time,
    and in nights (midnights). The latter two are None if times are unknown. `stated` and `asked` are the turns of both in their
    conversation. `type` is the type of the fact, empty if unknown.
    """

    tokens: float
    messages: float
    seconds: float | None
    nights: float | None
    stated: float
    asked: float
    type: str
    score: float


@final
class CredibleEstimate(NamedTuple):
    """A share or a distance with its 95% credible interval."""

    value: float
    low: float
    high: float


@final
@dataclass(frozen=True, slots=True)
class ReachFit:
    """The findings from the answers.

    `kinds`: the probability of each kind of limit. `kind` is the likeliest one if its probability is at least SURE, else "unclear". `fits`:
    whether some kind fits the answers. `unit`: the unit of the limit, tokens if no limit is shown. `near` and `far`: recall at the nearest
    and the furthest distance. `drop`: the distance where recall falls, by unit. `reach`: the furthest distance where half is recalled, by
    unit. Both lack units without a finding. `share`: recall if distance does not matter. `below`: the probability that far recall is below
    one half. `alike`: whether recall is alike at all distances.
    """

    kinds: dict[Kind, float]
    kind: Kind
    fits: bool
    unit: Unit
    near: CredibleEstimate
    far: CredibleEstimate
    share: CredibleEstimate
    below: float
    alike: bool
    drop: dict[Unit, CredibleEstimate] = field(default_factory=dict)
    reach: dict[Unit, CredibleEstimate] = field(default_factory=dict)


def fit_reach(questions: Sequence[ScoredQuestion], guessed: float = 0.0) -> ReachFit | None:
    """Fit questions; return None without any. `guessed`: the maximum score of guessing, as a share.

    Takes time proportional to the number of questions.
    """
    if not questions:  # most runs: they need not import NumPy, for which memory may be too small
        return None
    import numpy as np

    score = np.array([each.score for each in questions], dtype=float)
    types = _group_by_type(questions)
    units = {
        unit: fit for unit in _units(questions) if (fit := _fit_unit(unit, np.array([getattr(each, unit) for each in questions]), score))
    }
    weights = _weigh_kinds(questions, score, types, units)
    share = estimate_share([each.score for each in questions])
    flat: Kind = "none" if share.value >= FULL else "nothing" if share.value <= max(NOTHING, guessed) else "random misses"
    steps = {unit: weights[unit] for unit in units}
    time: Unit = "nights" if steps.get("nights", 0.0) > CLEARLY * steps.get("seconds", 0.0) else "seconds"
    kinds: dict[Kind, float] = {
        "message window": steps.get("messages", 0.0),
        "token window": steps.get("tokens", 0.0),
        "time window": steps.get("seconds", 0.0) + steps.get("nights", 0.0),
        "decay": weights["gradual"],
        flat: weights["one level"],
        "by type of fact": weights["level by type"] + weights["fall by type"],
        "unclear": weights["other"],
    }
    fits = kinds["unclear"] < HALF
    windows: dict[Unit, float] = {"messages": kinds["message window"], "tokens": kinds["token window"], time: kinds["time window"]}
    unit = max(windows, key=windows.__getitem__)
    falls = (sum(windows.values()) + kinds["decay"]) / (1 - kinds["unclear"]) if fits else 0.0
    shown = bool(units) and falls >= LIKELY and units[unit].falls >= SHOWN
    if not shown:
        unit = "tokens"
    elif windows[unit] <= kinds["decay"]:
        unit = _choose_decay_unit(units)
    own = units.get(unit)
    near, far = (own.near, own.far) if own else (share, share)
    alike = not shown and fits and own is not None and own.differs < FLAT and len(questions) >= FEW
    claimed = shown and own is not None and own.has_reach
    return ReachFit(
        kinds=kinds,
        kind=_name_kind(kinds, flat, shown=shown, alike=alike),
        fits=fits,
        unit=unit,
        near=near,
        far=far,
        share=share,
        below=own.below if own else 0.0,
        alike=alike,
        drop={name: each.drop for name, each in units.items() if each.falls >= SHOWN} if shown else {},
        reach={name: each.reach for name, each in units.items() if each.has_reach} if claimed else {},
    )


def _choose_decay_unit(units: Mapping[Unit, _UnitFit]) -> Unit:
    """Return the unit of a gradual fall: tokens, unless another unit is clearly more probable."""
    gradual: dict[Unit, float] = {unit: fit.gradual for unit, fit in units.items() if unit != "nights"}
    unit = max(gradual, key=gradual.__getitem__)
    return unit if gradual[unit] - gradual.get("tokens", -inf) > log(CLEARLY) else "tokens"


def _name_kind(kinds: Mapping[Kind, float], flat: Kind, *, shown: bool, alike: bool) -> Kind:
    """Return the kind that the answers show, or "unclear". Kinds are compared only with each other; another check asks whether one fits."""
    likeliest = max(kinds, key=kinds.__getitem__)
    if shown:
        return likeliest if kinds[likeliest] >= SURE * (1 - kinds["unclear"]) else "unclear"
    if kinds["by type of fact"] >= SURE:
        return "by type of fact"
    return flat if alike and kinds["by type of fact"] < HALF else "unclear"


def _units(questions: Sequence[ScoredQuestion]) -> list[Unit]:
    timed = all(each.seconds is not None and each.nights is not None for each in questions)
    return ["tokens", "messages", "seconds", "nights"] if timed else ["tokens", "messages"]


def _group_by_type(questions: Sequence[ScoredQuestion]) -> Array:
    """Number the types of the questions' facts, shape (questions,)."""
    import numpy as np

    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(each.type, len(numbers)) for each in questions])


# ---- one unit


@final
@dataclass(frozen=True, slots=True)
class _UnitFit:
    """The findings in distances of one unit.

    `step` and `gradual` are the logarithms of marginal likelihoods. `falls`: the probability that recall falls by MARGIN or more;
    `differs`: by FLAT or more. `below` and `above`: the probabilities that far recall is below one half, and near recall is not.
    """

    step: float
    gradual: float
    falls: float
    differs: float
    below: float
    above: float
    near: CredibleEstimate
    far: CredibleEstimate
    drop: CredibleEstimate
    reach: CredibleEstimate

    @property
    def has_reach(self) -> bool:
        return self.falls >= SHOWN and self.below >= SHOWN and self.above >= HALF


def _fit_unit(unit: Unit, distance: Array, score: Array) -> _UnitFit | None:
    """Return the findings in one unit; None if all questions have the same distance."""
    import numpy as np

    answers = group_answers(distance, score)
    if len(answers.at) < 2:
        return None
    level = weigh_levels(float(answers.right.sum()), float(answers.wrong.sum()))
    steps, slopes = weigh_steps(answers), weigh_slopes(answers)
    by_step = steps.weigh(get_levels().falls)
    windows, decay = slopes.log_weight[: len(WINDOW_WIDTHS)], slopes.log_weight[len(WINDOW_WIDTHS) :]
    sharp, blurred, gradual = (
        add_logs(by_step),
        add_logs(windows) - log(len(windows)),
        add_logs(decay) - log(len(decay)),
    )
    step = float(np.logaddexp(sharp + log(1 - BLURRED), blurred + log(BLURRED)))
    log_shares = np.array(
        [
            add_logs(level) + log(IN_UNIT["one level"]),
            sharp + log(IN_UNIT["step"] * (1 - BLURRED)),
            blurred + log(IN_UNIT["step"] * BLURRED),
            gradual + log(IN_UNIT["gradual"]),
        ]
    )
    flat, sharp_share, blurred_share, gradual_share = np.exp(log_shares - add_logs(log_shares))
    weights = _Weights(
        level=np.exp(level - add_logs(level)) * flat,
        step=np.exp(by_step - sharp) * sharp_share,
        pairs=steps.weigh_pairs() * sharp_share,
        slope=np.concatenate(
            [
                np.exp(windows - blurred) / len(windows) * blurred_share,
                np.exp(decay - gradual) / len(decay) * gradual_share,
            ]
        ),
    )
    return _summarize(answers, steps, slopes, weights, step, gradual)


class _Weights(NamedTuple):
    """The posterior probabilities of all curves in one unit: by level, by step, by pair of levels of steps, and by gradual fall."""

    level: Array
    step: Array
    pairs: Array
    slope: Array


def _summarize(answers: Answers, steps: Steps, slopes: Slopes, weights: _Weights, step: float, gradual: float) -> _UnitFit:
    import numpy as np

    levels = get_levels().values
    slope = weights.slope.ravel()
    nearest, furthest = answers.scale[0], answers.scale[-1]
    first, last = slopes.recall_at(nearest).ravel(), slopes.recall_at(furthest).ravel()
    near = np.concatenate([levels, levels, first]), np.concatenate([weights.level, weights.pairs.sum(axis=1), slope])
    far = np.concatenate([levels, levels, last]), np.concatenate([weights.level, weights.pairs.sum(axis=0), slope])
    apart = levels[:, None] - levels[None, :] >= FLAT
    # Steps are known by their gaps, gradual falls by a place.
    edges = np.linspace(np.log1p(steps.low), np.log1p(steps.high), PARTS + 1)
    low, high = edges[:-1].ravel(), edges[1:].ravel()
    part = np.tile(weights.step / PARTS, PARTS)
    places = np.broadcast_to(slopes.places[None, :, None], weights.slope.shape).ravel()
    drop = _estimate_distance((low, high, part), (places, slope))
    # The reach is the step itself where recall crosses one half there.
    high_levels = levels >= HALF
    crosses = np.exp(steps.weigh(get_levels().falls & high_levels[:, None] & ~high_levels[None, :]) - steps.weigh(get_levels().falls))
    place = slopes.reach_of(HALF).ravel()
    place = np.where(place > furthest, inf, np.where(place < nearest, -inf, place))
    always = weights.level[high_levels].sum() + weights.pairs[np.ix_(high_levels, high_levels)].sum()
    never = weights.level[~high_levels].sum() + weights.pairs[~high_levels].sum()
    reach = _estimate_distance(
        (low, high, part * np.tile(crosses, PARTS)),
        (np.concatenate([place, [inf, -inf]]), np.concatenate([slope, [always, never]])),
    )
    return _UnitFit(
        step=step,
        gradual=gradual,
        falls=float(weights.step.sum() + slope[first - last >= MARGIN].sum()),
        differs=float(weights.pairs[apart].sum() + slope[first - last >= FLAT].sum()),
        below=float(far[1][far[0] < HALF].sum()),
        above=float(near[1][near[0] >= HALF].sum()),
        near=_estimate_recall(*near, slope=len(slope)),
        far=_estimate_recall(*far, slope=len(slope)),
        drop=drop,
        reach=reach,
    )


def _find_quantiles(values: Array, weights: Array, *shares: float) -> list[float]:
    """Return the values below which each share of the weight lies."""
    import numpy as np

    known = weights > NEGLIGIBLE * weights.max()  # most curves are next to impossible, and sorting them takes long
    values, weights = values[known], weights[known]
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return [float(values[order][min(int(np.searchsorted(summed, share * summed[-1])), len(order) - 1)]) for share in shares]


def _estimate(values: Array, weights: Array) -> CredibleEstimate:
    """Return the median and the 95% interval of weighted values."""
    return CredibleEstimate(*_find_quantiles(values, weights, HALF, TAIL, 1 - TAIL))


def _estimate_recall(values: Array, weights: Array, slope: int) -> CredibleEstimate:
    """Return the estimate of recall at a distance.

    The last `slope` values come from gradual falls. These have so few levels that each represents a range, which the interval includes in
    full.
    """
    import numpy as np

    angle = np.arcsin(np.sqrt(values))
    half = np.where(np.arange(len(values)) < len(values) - slope, 0.0, pi / 4 / SLOPE_LEVELS)
    low, high = (np.sin(np.clip(angle + side * half, 0, pi / 2)) ** 2 for side in (-1, 1))
    return CredibleEstimate(
        *_find_quantiles(values, weights, HALF), *_find_quantiles(low, weights, TAIL), *_find_quantiles(high, weights, 1 - TAIL)
    )


def _estimate_distance(steps: tuple[Array, Array, Array], points: tuple[Array, Array]) -> CredibleEstimate:
    """Return the median of a distance, which lies between two ends or at a point, and its 95% interval, rounded outward to the ends.

    All are on the scale of `Answers.scale`; the distances returned are not. Minus infinity becomes 0.
    """
    import numpy as np

    low, high, weights = steps
    place, own = points
    both = np.concatenate([weights, own])

    def find(of: Array, share: float) -> float:
        (found,) = _find_quantiles(np.concatenate([of, place]), both, share)
        return 0.0 if found == -inf else round(float(np.expm1(found)), 6)  # an end at a question must equal its distance

    return CredibleEstimate(find((low + high) / 2, HALF), find(low, TAIL), find(high, 1 - TAIL))


def estimate_share(scores: Sequence[float]) -> CredibleEstimate:
    """Return the mean of scores in [0, 1] as an estimate of a share, under Jeffreys' prior."""
    import numpy as np

    weights = weigh_levels(sum(scores), len(scores) - sum(scores))
    return _estimate(get_levels().values, np.exp(weights - weights.max()))


# ---- kinds


def _weigh_kinds(questions: Sequence[ScoredQuestion], score: Array, types: Array, units: Mapping[Unit, _UnitFit]) -> dict[str, float]:
    """Return the probability of each of the curves in PRIORS."""
    import numpy as np

    logs = dict.fromkeys(PRIORS, -inf)
    logs["one level"] = add_logs(weigh_levels(float(score.sum()), float((1 - score).sum())))
    logs["level by type"] = sum(
        add_logs(weigh_levels(float(score[types == each].sum()), float((1 - score)[types == each].sum()))) for each in np.unique(types)
    )
    for unit, fit in units.items():
        distance = np.array([getattr(each, unit) for each in questions])
        typed = _weigh_steps_by_type(distance, score, types)
        logs[unit] = float(np.logaddexp(fit.step + log(1 - BY_TYPE), typed + log(BY_TYPE)))
    if len(np.unique(types)) > 1:
        logs["fall by type"] = _weigh_falls_by_type(np.array([each.tokens for each in questions]), score, types)
    gradual = [fit.gradual for unit, fit in units.items() if unit != "nights"]
    logs["gradual"] = add_logs(np.array(gradual)) - log(len(gradual)) if gradual else -inf
    others = [*_weigh_others(questions, score, units)]
    logs["other"] = add_logs(np.array(others)) - log(len(others))
    posterior = np.array([logs[name] + log(prior) for name, prior in PRIORS.items()])
    return dict(zip(PRIORS, np.exp(posterior - add_logs(posterior)).tolist(), strict=True))


def _weigh_steps_by_type(distance: Array, score: Array, types: Array) -> float:
    """Return the log likelihood of a step at the same distance for all types, with separate levels for each type."""
    import numpy as np

    at = np.unique(distance)
    total: Any = 0.0
    for each in np.unique(types):
        own = types == each
        counts = (np.bincount(np.searchsorted(at, distance[own]), part, len(at)) for part in (score[own], 1 - score[own]))
        steps = weigh_steps(Answers(at, *counts))
        prior = np.diff(np.log1p(at)) / np.ptp(np.log1p(at))
        levels = get_levels().values
        pairs = levels[:, None] >= levels[None, :]  # a type that is never recalled does not fall
        summed = ((steps.before @ pairs) * steps.after).sum(axis=1) / pairs.sum()
        total = total + np.log(summed) + steps.log_prior - np.log(prior)
    return add_logs(total + np.log(prior))


def _weigh_falls_by_type(distance: Array, score: Array, types: Array) -> float:
    """Return the log likelihood of curves where each type has one level, or a step at a separate distance."""
    import numpy as np

    total = 0.0
    for each in np.unique(types):
        answers = group_answers(distance[types == each], score[types == each])
        level = add_logs(weigh_levels(float(answers.right.sum()), float(answers.wrong.sum())))
        step = add_logs(weigh_steps(answers).weigh(get_levels().falls)) if len(answers.at) > 1 else level
        total += float(np.logaddexp(level, step)) - log(2)
    return total


def _weigh_others(questions: Sequence[ScoredQuestion], score: Array, units: Iterable[Unit]) -> Iterable[float]:
    """Yield the log likelihoods of curves that no limit has.

    Their recall rises with distance, has three levels in any order, or depends on the turn when a fact was stated or asked for.
    """
    import numpy as np

    rises = get_levels().falls.T
    for unit in units:
        answers = group_answers(np.array([getattr(each, unit) for each in questions]), score)
        yield add_logs(weigh_steps(answers).weigh(rises))
        if unit != "messages":  # three levels in messages look almost like three levels in tokens
            yield weigh_pieces(answers).three
    for place in ("stated", "asked"):
        yield from weigh_pieces(group_answers(np.array([getattr(each, place) for each in questions]), score))
