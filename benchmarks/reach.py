"""How well a reach is measured: agents that forget in a known way, over conversations as they are really played.

python -m benchmarks reach           how many of RUNS simulated runs at each span have their kind of limit named right, alone and among two;
                                     and of TRUTHS simulated runs, the share whose interval holds the true reach

What is played is the layout: `oracle` plays SEEDS conversations at each span. Which questions an agent would have answered is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from longspan.simulator.analysis.reach import Recalled, reach
from longspan.simulator.api.playing import run
from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.measures.reach import Placed, asked_later
from longspan.simulator.results.reach import SURE, Kind
from longspan.simulator.results.result import read_result

__all__ = ["SPAN", "measure"]

SPAN: Final = 8_000
"""The span of the simulated runs that intervals are counted over."""
SPANS: Final = (2_000, 8_000, 32_000)
SEEDS: Final = 10
RUNS: Final = 30
TOGETHER: Final = 4
"""Seeds that are taken together at the smallest span."""
TRUTHS: Final = 300


Forgets = Callable[[Placed, Random], bool]

PLANTED: Final[dict[Kind, Callable[[int], Forgets]]] = {
    "window of messages": lambda span: lambda asked, random: asked.messages > 20,
    "window of tokens": lambda span: lambda asked, random: asked.tokens > span // 5,
    "decay": lambda span: lambda asked, random: random.random() > 0.5 ** (asked.tokens / (span / 10)),
    "misses some": lambda span: lambda asked, random: random.random() < 0.45,
    "no limit": lambda span: lambda asked, random: False,
    "nothing": lambda span: lambda asked, random: True,
}
"""Ways to forget, for a span."""


def layouts(span: int) -> list[list[Placed]]:
    """Return the plain facts of SEEDS conversations as they are played."""
    with TemporaryDirectory() as folder:
        folders = run("reach", agent="oracle", span=span, seeds=f"0-{SEEDS - 1}", out=folder, progress=False).folders
        results = [read_result(RunFolder(Path(each))) for each in folders]
    return [asked_later(result.tests) for result in results]


def simulated(layout: Sequence[Placed], forgets: Forgets, random: Random) -> list[Recalled]:
    found = []
    for asked in layout:
        right = not forgets(asked, random) or random.random() < asked.rung.chance
        found.append(Recalled(asked.tokens, asked.messages, asked.seconds, float(right), asked.rung.chance))
    return found


def truths(layout: Sequence[Placed], random: Random) -> tuple[Forgets, float]:
    """Return a way to forget with a reach drawn evenly on a logarithmic scale, and that reach: half of the time a window that loses one in
    twenty, and half of the time decay."""
    near, far = (end(asked.tokens for asked in layout) for end in (min, max))
    true = math.exp(random.uniform(math.log(max(near, 10)), math.log(far)))
    if random.random() < 0.5:
        return lambda asked, random: asked.tokens > true or random.random() < 0.05, true
    width = random.uniform(0.3, 1.0)
    return lambda asked, random: random.random() > 1 / (1 + (asked.tokens / true) ** (1 / width)), true


def measure(span: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    played = {each: layouts(each) for each in {*SPANS, span}}
    for each, together in [(each, 1) for each in SPANS] + [(min(SPANS), TOGETHER)]:
        about = f"{each}" if together == 1 else f"{each}, {together} seeds"
        for kind, planted in PLANTED.items():
            named = among = 0
            for number in range(RUNS):
                random = Random(f"{about}/{kind}/{number}")
                runs = random.sample(played[each], together)
                found: Any = reach([asked for layout in runs for asked in simulated(layout, planted(each), random)])
                first, second, *_ = sorted(found.kinds, key=found.kinds.__getitem__, reverse=True)
                named += first == kind
                among += kind in ((first,) if found.kinds[first] >= SURE else (first, second))
            figures[f"{about}: {kind}"] = named
            figures[f"{about}: {kind}, named or one of two"] = among
    held = 0
    for number in range(TRUTHS):
        random = Random(f"truth/{number}")
        layout = random.choice(played[span])
        forgets, true = truths(layout, random)
        extent = reach(simulated(layout, forgets, random)).distances["tokens"]  # type: ignore[union-attr]
        held += extent.low <= true <= extent.high
    return figures | {f"{span}: intervals that hold the reach": held / TRUTHS}
