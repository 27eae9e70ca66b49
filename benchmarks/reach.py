"""How well the reach, the drop, the kind of limit and the gate are found for agents that forget in a known way.

python -m benchmarks reach --part coverage     how often intervals contain the drop and the reach of a step, how wide they are, and how
                                               often a drop is shown, by limit, near level, floor and number of seeds
python -m benchmarks reach --part kinds        how often each kind of limit is named, for agents inside and outside the family
python -m benchmarks reach --part spans        how often the intervals of a limit agree at 8k, 32k and 128k tokens
python -m benchmarks reach --part gate         how often the gate passes, fails and stays undecided, at 1, 2, 4 and 8 seeds, and with seeds
                                               added until it decides

What is played is the layout: `oracle` plays SEEDS conversations at each span. Which questions an agent would have answered is drawn.
--draws N draws that often for each figure, which takes an hour for `coverage`; --seeds 4 takes four seeds together only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from math import exp, inf, isnan, log, nan
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from longspan.simulator.api.playing import run
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.analysis.reach_fit import CredibleEstimate, ReachFit, ScoredQuestion, fit_reach
from longspan.simulator.results.analysis.reach_gate import PlacedAnswer, decide_gate
from longspan.simulator.results.measures.reach import place_rungs
from longspan.simulator.results.reach_result import Unit
from longspan.simulator.results.result import read_result

__all__ = ["OPTIONS", "SPAN", "measure"]

SPAN: Final = 8_000
SPANS: Final = (8_000, 32_000, 128_000)
SEEDS: Final = 40
"""Conversations whose layouts are played at each span, fewer at long ones."""
DRAWS: Final = 400
GROUPS: Final = (1, 2, 4, 8)

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--part": {"choices": ["coverage", "kinds", "spans", "gate"], "required": True},
    "--draws": {"type": int, "default": DRAWS},
    "--seeds": {"type": int, "nargs": "*", "default": GROUPS},
}


class Asked(NamedTuple):
    """A question as it was played: its place, and what a guess earns. `order` counts the facts stated before."""

    question: ScoredQuestion
    chance: float
    order: int


Recall = Callable[[Asked], float]
"""The probability that an agent recalls a fact."""


@cache
def play_layouts(span: int) -> list[list[Asked]]:
    """Return the questions for plain facts of several conversations as they are played."""
    seeds = SEEDS if span <= SPAN else SEEDS // 2
    with TemporaryDirectory() as folder:
        folders = run("reach", agent="oracle", span=span, seeds=f"0-{seeds - 1}", out=folder, progress=False).folders
        results = [read_result(RunFolder(Path(each))) for each in folders]
    found = []
    for result in results:
        placed = place_rungs(result.tests)
        stated = sorted(each.needle.needle_turn for each in placed)
        found.append([Asked(each.as_question(1.0), each.rung.chance, stated.index(each.needle.needle_turn)) for each in placed])
    return found


def draw(layouts: Sequence[Sequence[Asked]], recall: Recall, random: Random) -> list[list[tuple[Asked, float]]]:
    """Draw the scores of an agent in several conversations."""
    return [[(each, float(random.random() < recall(each) or random.random() < each.chance)) for each in layout] for layout in layouts]


def fit(drawn: Sequence[Sequence[tuple[Asked, float]]]) -> ReachFit:
    found = fit_reach([each.question._replace(score=score) for one in drawn for each, score in one], guessed=0.18)
    if found is None:
        raise ValueError("no questions were drawn")
    return found


def step(limit: float, near: float = 1.0, far: float = 0.0, unit: Unit = "tokens") -> Recall:
    return lambda asked: near if (getattr(asked.question, unit) or 0) <= limit else far


def logistic(half: float, width: float) -> Recall:
    return lambda asked: 1 / (1 + (asked.question.tokens / half) ** (1 / width))


# ---- coverage

LIMITS: Final = (200, 600, 1_500)
NEAR: Final = (1.0, 0.9, 0.7)
FLOORS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)


class Covered(NamedTuple):
    """Of one quantity: the share of draws in which it is shown, the share of those whose interval contains the truth, the share of all in
    which it is not missed (it is not shown, or its interval contains the truth), and the median ratio of the interval's ends."""

    shown: float
    contained: float
    not_missed: float
    ratio: float


def count_covered(found: Sequence[CredibleEstimate | None], true: float) -> Covered:
    shown = [each for each in found if each is not None]
    contained = sum(each.low <= true <= each.high for each in shown)
    return Covered(
        shown=len(shown) / len(found),
        contained=contained / len(shown) if shown else nan,
        not_missed=(len(found) - len(shown) + contained) / len(found),
        ratio=median(each.high / max(each.low, 1.0) for each in shown) if shown else nan,
    )


def measure_coverage(span: int, draws: int, groups: Sequence[int]) -> Iterator[tuple[str, float]]:
    layouts = play_layouts(span)
    for together in groups:
        for limit, near, floor in product(LIMITS, NEAR, FLOORS):
            random = Random(f"{together}/{limit}/{near}/{floor}")
            fits = [fit(draw(random.sample(layouts, together), step(limit, near, floor), random)) for _ in range(draws)]
            where = f"{together} seeds, limit {limit}, {near:.0%} to {floor:.0%}"
            yield from _name(f"{where}: drop", count_covered([each.drop.get("tokens") for each in fits], limit))
            yield from _name(f"{where}: reach", count_covered([each.reach.get("tokens") for each in fits], limit if floor < 0.5 else inf))
        random = Random(f"{together}/decay")
        reaches, truths = [], []
        for _ in range(draws):
            half = exp(random.uniform(log(10), log(5_000)))
            drawn = draw(random.sample(layouts, together), logistic(half, random.uniform(0.3, 1.0)), random)
            reach = fit(drawn).reach.get("tokens")
            truths.append(reach is not None and reach.low <= half <= reach.high)
            reaches.append(reach)
        shown = sum(each is not None for each in reaches)
        yield f"{together} seeds, decay: reach shown", shown / draws
        yield f"{together} seeds, decay: reach contained", sum(truths) / max(1, shown)


def _name(where: str, covered: Covered) -> Iterator[tuple[str, float]]:
    for name, value in covered._asdict().items():
        if not isnan(value):
            yield f"{where} {name}", value


# ---- kinds


def _is_number(asked: Asked) -> bool:
    return asked.question.type in ("locker", "birthday")


def _in_u(asked: Asked) -> float:
    return 0.2 if 100 < asked.question.tokens < 1_200 else 1.0


SHAPES: Final[dict[str, Recall]] = {
    "the last 20 messages": step(20, unit="messages"),
    "the last 600 tokens": step(600),
    "the last 600 tokens, and 30% beyond": step(600, 1, 0.3),
    "the last 600 tokens, and 60% beyond": step(600, 1, 0.6),
    "90% of the last 600 tokens, and 30% beyond": step(600, 0.9, 0.3),
    "the last 24 hours": step(86_400, unit="seconds"),
    "everything since midnight": step(0, unit="nights"),
    "half lost with every 800 tokens": lambda asked: 0.5 ** (asked.question.tokens / 800),
    "75% at random": lambda asked: 0.75,
    "45% at random": lambda asked: 0.45,
    "everything": lambda asked: 1.0,
    "nothing": lambda asked: 0.0,
    "no numbers": lambda asked: float(not _is_number(asked)),
    "no numbers, and the last 600 tokens": lambda asked: float(not _is_number(asked) and asked.question.tokens <= 600),
    "20% between 100 and 1,200 tokens": _in_u,
    "only what is 20 messages old": lambda asked: float(asked.question.messages > 20),
    "20% of what is newer than 20 messages, 95% of the rest": lambda asked: 0.95 if asked.question.messages > 20 else 0.2,
    "only what was stated before midnight": lambda asked: float((asked.question.nights or 0) >= 1),
    "the first 30 facts": lambda asked: float(asked.order < 30),
    "nothing after the 80th turn": lambda asked: float(asked.question.asked < 80),
    "all of 200 tokens, 60% of 1,800, 5% beyond": lambda asked: (
        1.0 if asked.question.tokens < 200 else 0.6 if asked.question.tokens < 1_800 else 0.05
    ),
    "every second ten turns": lambda asked: float(asked.question.stated // 10 % 2 == 0),
}
"""Ways to forget. Those from the U-shape on are outside the family."""


def measure_kinds(span: int, draws: int, groups: Sequence[int]) -> Iterator[tuple[str, float]]:
    layouts = play_layouts(span)
    for together in groups:
        for name, recall in SHAPES.items():
            random = Random(f"{together}/{name}")
            fits = [fit(draw(random.sample(layouts, together), recall, random)) for _ in range(draws)]
            for kind, number in Counter(each.kind for each in fits).most_common():
                yield f"{together} seeds, {name}: {kind}", number / draws
            yield f"{together} seeds, {name}: fits", sum(each.fits for each in fits) / draws
            yield f"{together} seeds, {name}: drop shown", sum(bool(each.drop) for each in fits) / draws
            yield f"{together} seeds, {name}: reach shown", sum(bool(each.reach) for each in fits) / draws


# ---- spans

PLANTED_LIMITS: Final[dict[str, tuple[Unit, float]]] = {
    "20 messages": ("messages", 20),
    "60 messages": ("messages", 60),
    "600 tokens": ("tokens", 600),
    "1,500 tokens": ("tokens", 1_500),
    "24 hours": ("seconds", 86_400),
}


def measure_spans(span: int, draws: int, groups: Sequence[int]) -> Iterator[tuple[str, float]]:
    for together, (name, (unit, limit)), floor in product(groups, PLANTED_LIMITS.items(), (0.0, 0.3)):
        random, agree, contained = Random(f"{together}/{name}/{floor}"), 0, 0
        for _ in range(draws):
            fits = [fit(draw(random.sample(play_layouts(each), together), step(limit, 1, floor, unit), random)) for each in SPANS]
            known = [extent for each in fits if (extent := each.drop.get(unit)) is not None]
            agree += len(known) == len(SPANS) and max(each.low for each in known) <= min(each.high for each in known)
            contained += sum(each.low <= limit <= each.high for each in known)
        yield f"{together} seeds, {name}, {floor:.0%} beyond: intervals agree", agree / draws
        yield f"{together} seeds, {name}, {floor:.0%} beyond: intervals contain the limit", contained / draws / len(SPANS)


# ---- the gate

LIMIT: Final = 2_000


GATED: Final[dict[str, tuple[bool, Recall]]] = {
    "window of .75 of the limit": (False, step(0.75 * LIMIT)),
    "window of .9 of the limit": (False, step(0.9 * LIMIT)),
    "window of 1.1 of the limit": (True, step(1.1 * LIMIT)),
    "window of 1.25 of the limit": (True, step(1.25 * LIMIT)),
    "half recalled at .8 of the limit": (False, lambda asked: 1 / (1 + (asked.question.tokens / (0.8 * LIMIT)) ** 2)),
    "half recalled at 1.25 of the limit": (True, lambda asked: 1 / (1 + (asked.question.tokens / (1.25 * LIMIT)) ** 2)),
    "half lost with every .8 of the limit": (False, lambda asked: 0.5 ** (asked.question.tokens / (0.8 * LIMIT))),
    "75% at random": (True, lambda asked: 0.75),
    "40% at random": (False, lambda asked: 0.4),
    "everything": (True, lambda asked: 1.0),
    "600 tokens, and 30% beyond": (False, step(600, 1, 0.3)),
    "window of .9, and 30% beyond": (False, step(0.9 * LIMIT, 1, 0.3)),
    "window of 1.1, and 30% beyond": (True, step(1.1 * LIMIT, 1, 0.3)),
    "20% between .2 and .6 of the limit": (False, lambda asked: 0.2 if 0.2 < asked.question.tokens / LIMIT <= 0.6 else 1.0),
}
"""Agents, and whether they recall half at every distance up to LIMIT."""

MOST: Final = 10
"""Seeds that are added one by one."""


def measure_gate(span: int, draws: int, groups: Sequence[int]) -> Iterator[tuple[str, float]]:
    layouts = play_layouts(span)
    for name, (good, recall) in GATED.items():
        for together in groups:
            random = Random(f"{name}/{together}")
            verdicts = Counter(decide(draw(random.sample(layouts, together), recall, random)) for _ in range(draws))
            yield f"{together} seeds, {name}: wrong", verdicts["failed" if good else "passed"] / draws
            yield f"{together} seeds, {name}: decided", 1 - verdicts["undecided"] / draws
        random, wrong = Random(f"{name}/sequence"), 0
        for _ in range(draws // 4):
            drawn = draw(random.sample(layouts, MOST), recall, random)
            verdict = next((found for seeds in range(1, MOST + 1) if (found := decide(drawn[:seeds])) != "undecided"), "undecided")
            wrong += verdict == ("failed" if good else "passed")
        yield f"up to {MOST} seeds, one by one, {name}: wrong", wrong / (draws // 4)


def decide(drawn: Sequence[Sequence[tuple[Asked, float]]]) -> str:
    return decide_gate([[PlacedAnswer(each.question.tokens, score) for each, score in one] for one in drawn], LIMIT, forecast=False).verdict


PARTS: Final = {"coverage": measure_coverage, "kinds": measure_kinds, "spans": measure_spans, "gate": measure_gate}


def measure(span: int, part: str, draws: int, seeds: Sequence[int]) -> dict[str, float]:
    return dict(PARTS[part](span, draws, seeds))
