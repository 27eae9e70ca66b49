"""A gate on recall of plain facts: it passes if recall is at least a share at every distance up to a limit.

It fails if recall is not, and is undecided if neither is shown. The decision rests on curves of `recall_curves`, including levels in any
order. It uses the probability of all curves that recall the share at every distance up to the limit. There are no bins of distance: with
four bins, a window of 1,800 tokens passes a limit of 2,000. The decision is a posterior probability over whole curves, and only extreme
ones decide. So adding conversations until it decides hardly raises the share of wrong decisions (`python -m benchmarks reach`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from longspan.simulator.results.analysis.recall_curves import (
    WINDOW_WIDTHS,
    Answers,
    add_logs,
    get_levels,
    group_answers,
    weigh_levels,
    weigh_pieces,
    weigh_slopes,
    weigh_steps,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["DECIDED", "GateDecision", "PlacedAnswer", "decide_gate"]

DECIDED: Final = 0.975
"""The least probability for the gate to pass, or to fail."""

NEAR_LIMIT: Final = 0.9
AT_LIMIT: Final = 4
"""To pass, at least AT_LIMIT questions must lie at this share of the limit (NEAR_LIMIT) or beyond. With fewer, lucky answers alone could
pass an agent whose limit is just below."""

PRIORS: Final = {"level": 0.4, "sharp": 0.32, "blurred": 0.06, "gradual": 0.14, "two": 0.02, "three": 0.06}

TIMES: Final = (2, 3, 4, 6, 8, 12, 16, 32)
"""The multiples of the present conversations that are tried to estimate the number needed."""

TRIALS: Final = 8
ENOUGH: Final = 0.75
"""The least share of simulated continuations that the estimated number decides."""

Verdict = Literal["passed", "failed", "undecided"]


@final
class PlacedAnswer(NamedTuple):
    """A question's distance in tokens, and its score in [0, 1]."""

    distance: float
    score: float


@final
class GateDecision(NamedTuple):
    """Whether recall is at least `share` at every distance up to `limit`, in tokens.

    `probability`: the probability of that. `at_limit`: the number of questions near the limit or beyond it. `conversations`: the number
    played. `needed`: if undecided, an estimate of the number that would decide; None if even 32 times this number would not.
    """

    verdict: Verdict
    limit: int
    share: float
    probability: float
    at_limit: int
    conversations: int
    needed: int | None = None

    @property
    def sentence(self) -> str:
        wanted = f"at least {self.share:.0%} of plain facts at every distance up to {self.limit:,} tokens"
        match self.verdict:
            case "passed":
                return f"passed: recalls {wanted} (probability {self.probability:.3f})."
            case "failed":
                return f"failed: does not recall {wanted} (probability {self.probability:.3f})."
        seeds = f"{self.conversations} seed{'s' * (self.conversations != 1)}"
        if self.at_limit == 0:
            more = "no question lies that far back: use a longer span"
        elif self.needed is None:
            more = f"even {TIMES[-1] * self.conversations} seeds may not decide, since recall is close to that: use a longer span"
        else:
            more = f"roughly {self.needed} seeds would decide"
        if self.probability >= DECIDED:
            why = f"{self.at_limit} of the {AT_LIMIT} questions needed lie near that distance or beyond"
        else:
            why = f"probability {self.probability:.3f}, {DECIDED} passes"
        return f"undecided: {seeds} cannot show whether it recalls {wanted} ({why}); {more}."


def decide_gate(conversations: Sequence[Sequence[PlacedAnswer]], limit: int, share: float = 0.5, *, forecast: bool = True) -> GateDecision:
    """Decide the gate from the answers about plain facts in each conversation, pooled.

    With `forecast`, an undecided gate estimates the conversations needed, which takes a second or two.
    """
    import numpy as np

    answers = [each for one in conversations for each in one]
    distance, score = np.array([each.distance for each in answers], dtype=float), np.array([each.score for each in answers], dtype=float)
    verdict, probability = _decide(distance, score, limit, share)
    at_limit = int((distance >= NEAR_LIMIT * limit).sum())
    forecast = forecast and verdict == "undecided" and at_limit > 0
    needed = _estimate_needed(distance, score, limit, share, len(conversations)) if forecast else None
    return GateDecision(verdict, limit, share, probability, at_limit, len(conversations), needed)


def _decide(distance: Array, score: Array, limit: int, share: float) -> tuple[Verdict, float]:
    if not len(distance):
        return "undecided", 0.5
    probability = find_probability(group_answers(distance, score), limit, share)
    if probability <= 1 - DECIDED:
        return "failed", probability
    enough = (distance >= NEAR_LIMIT * limit).sum() >= AT_LIMIT
    return "passed" if probability >= DECIDED and enough else "undecided", probability


def find_probability(answers: Answers, limit: float, share: float) -> float:
    """Return the probability that recall is at least `share` at every distance up to `limit`."""
    import numpy as np

    values, falls = get_levels().values, get_levels().falls
    good = values >= share
    level = weigh_levels(float(answers.right.sum()), float(answers.wrong.sum()))
    weights = {"level": (add_logs(level), add_logs(level[good]))}
    if len(answers.at) > 1:
        steps, slopes = weigh_steps(answers), weigh_slopes(answers)
        low, high = np.log1p(steps.low), np.log1p(steps.high)
        beyond = np.clip((high - np.log1p(limit)) / (high - low), 0, 1)  # the share of a step's gap that lies beyond the limit
        near, both = (np.exp(steps.weigh(allowed) - steps.log_prior) for allowed in (falls & good[:, None], falls & good[:, None] & good))
        with np.errstate(divide="ignore"):
            weights["sharp"] = add_logs(steps.weigh(falls)), add_logs(np.log(near * beyond + both * (1 - beyond)) + steps.log_prior)
        kept = np.where(slopes.recall_at(float(np.log1p(limit))) >= share, slopes.log_weight, -np.inf)
        first = len(WINDOW_WIDTHS)
        for name, part in (("blurred", slice(first)), ("gradual", slice(first, None))):
            widths = len(slopes.log_weight[part])
            weights[name] = add_logs(slopes.log_weight[part]) - log(widths), add_logs(kept[part]) - log(widths)
        all_, within = weigh_pieces(answers), weigh_pieces(answers, limit, share)
        weights |= {"two": (all_.two, within.two), "three": (all_.three, within.three)}
    whole, kept_ = (add_logs(np.array([pair[of] + log(PRIORS[name]) for name, pair in weights.items()])) for of in (0, 1))
    return float(np.exp(kept_ - whole))


def _estimate_needed(distance: Array, score: Array, limit: int, share: float, conversations: int) -> int | None:
    """Estimate how many conversations would decide: draw curves that explain the answers so far, and simulate continuations with them."""
    import numpy as np

    random = np.random.default_rng(0)
    curves = _draw_curves(group_answers(distance, score), TRIALS, random)
    scale = np.log1p(distance)
    apart = np.ptp(scale) / max(1.0, len(scale) / conversations)  # between two questions of one conversation
    for times in TIMES:
        decided = 0
        for place, near, far in curves:
            more = np.repeat(scale, times - 1)
            more = np.clip(more + random.uniform(-apart / 2, apart / 2, len(more)), scale.min(), scale.max())
            drawn = (random.random(len(more)) < np.where(more <= place, near, far)).astype(float)
            verdict, _ = _decide(np.concatenate([distance, np.expm1(more)]), np.concatenate([score, drawn]), limit, share)
            decided += verdict != "undecided"
        if decided >= ENOUGH * TRIALS:
            return times * conversations
    return None


def _draw_curves(answers: Answers, number: int, random: Generator) -> list[tuple[float, float, float]]:
    """Draw curves with one level or one step by their probability. A curve is its step's place on the scale, recall up to there, and recall
    beyond."""
    import numpy as np

    levels = get_levels()
    level = weigh_levels(float(answers.right.sum()), float(answers.wrong.sum()))
    steps = weigh_steps(answers) if len(answers.at) > 1 else None
    by_step = np.array([]) if steps is None else steps.weigh(levels.falls)
    logs = np.concatenate([level + log(PRIORS["level"]), by_step + log(PRIORS["sharp"])])
    found = []
    for each in random.choice(len(logs), number, p=np.exp(logs - add_logs(logs))):
        if steps is None or each < len(level):
            found.append((0.0, levels.values[each % len(level)], levels.values[each % len(level)]))
            continue
        step = each - len(level)
        pairs = (steps.before[step][:, None] * steps.after[step][None, :] * levels.falls).ravel()
        near, far = divmod(int(random.choice(len(pairs), p=pairs / pairs.sum())), len(level))
        place = random.uniform(np.log1p(steps.low[step]), np.log1p(steps.high[step]))
        found.append((float(place), levels.values[near], levels.values[far]))
    return found
