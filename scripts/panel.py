"""Tables about a panel of agents that played several suites: scores, agreement between suites, reliability, and what weaving costs.

A column has the runs of one suite or more sweeps, by agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum, isnan, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from longspan.simulator.results.analysis.statistics import total_interval
from longspan.simulator.results.analysis.units import observe_tests
from longspan.simulator.results.effects import difference_interval
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.suite.agent_spec import AgentSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Components",
    "Panel",
    "count_minutes",
    "estimate_components",
    "guessed_share",
    "make_agreement",
    "make_reliability",
    "make_scores",
    "make_weaving",
    "name_memory",
    "render_table",
]

Panel = Mapping[str, Mapping[str, Sequence[GradedRun]]]
"""The runs of each column by agent."""

ENDS: Final = ("oracle", "stateless")
"""Agents that show the ends of the scale. They are no part of agreement and reliability, where they would only add to the spread."""

MOMENT: Final = 0.1
"""Minutes; runs without a model take less."""

SEEDS: Final = (1, 2, 3, 5, 10)


def share_of(runs: Sequence[GradedRun]) -> float:
    """Return the mean share of full marks over an agent's runs."""
    return fmean((run.result.score or 0.0) / run.result.max_score for run in runs)


def guessed_share(runs: Iterable[GradedRun]) -> float:
    """Return the mean share of full marks that guessing gets in some runs."""
    return fmean(run.result.chance / run.result.max_score for run in runs)


def count_minutes(run: GradedRun) -> float:
    """Return the minutes that a run's agent took for its replies."""
    events = (event for conversation in run.manifest.conversations for event in run.folder.events(conversation))
    return fsum((event.measured or {}).get("latency_s", 0.0) for event in events) / 60


def name_memory(agent: str) -> str:
    """Return the name of an agent's memory, or of the window of the model alone."""
    parsed = AgentSpec.parse(agent)
    options = parsed.options
    if "drop" in options:
        return f"drops {float(options['drop']):.0%} of the messages"
    if "hours" in options:
        return f"forgets after {options['hours']} hours"
    if parsed.kind == "gguf":
        return f"prompts of up to {options['context']}" + (f', "{options["system"]}"' if "system" in options else "")
    if parsed.kind == "memory":
        return f"`memory/{parsed.target}" + (f"?tokens={options['tokens']}`" if "tokens" in options else "`")
    return f"`{agent}`"


def render_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, ["---"] * len(heads), *lines))


def make_scores(panel: Panel) -> str:
    """Return a table with each agent's share of full marks in each column, with the 95% interval over its seeds.

    The last lines have the score of guessing, the seeds, and the minutes that a run with a model took.
    """
    agents = dict.fromkeys(agent for of in panel.values() for agent in of)
    lines = [[name_memory(agent), *(_score(of.get(agent, ())) for of in panel.values())] for agent in agents]
    played = [[run for runs in of.values() for run in runs] for of in panel.values()]
    lines.append(["guessing", *(f"{guessed_share(runs):.0%}" if runs else "–" for runs in played)])
    lines.append(["seeds", *(", ".join(sorted({str(run.manifest.seed) for run in runs})) for runs in played)])
    took = [[minutes for run in runs if (minutes := count_minutes(run)) > MOMENT] for runs in played]
    lines.append(["minutes per run", *(f"{min(each):.0f} to {max(each):.0f}" if each else "–" for each in took)])
    return render_table(["memory", *panel], lines)


def _score(runs: Sequence[GradedRun]) -> str:
    if not runs:
        return "–"
    interval = total_interval(observe_tests((run.manifest, run.result.tests) for run in runs))
    size = runs[0].result.max_score
    return f"{share_of(runs):.0%}" + (f" ({interval.low / size:.0%} to {interval.high / size:.0%})" if interval else "")


def make_agreement(panel: Panel) -> str:
    """Return a table with Kendall's rank correlation (tau-b) between each two columns, and the number of agents in both."""
    from scipy.stats import kendalltau

    cells: dict[tuple[str, str], str] = {}
    for one, other in combinations(panel, 2):
        both = [agent for agent in panel[one] if agent in panel[other] and agent not in ENDS]
        scores = [[share_of(panel[sweep][agent]) for agent in both] for sweep in (one, other)]
        tau = float(kendalltau(*scores).statistic) if len(both) > 2 else float("nan")
        cells[one, other] = cells[other, one] = "–" if isnan(tau) else f"{tau:.2f} ({len(both)} agents)"
    return render_table(["", *panel], ([sweep, *(cells.get((sweep, other), "") for other in panel)] for sweep in panel))


# ---- reliability


@final
class Components(NamedTuple):
    """The components of the variance of scores in agents × scenarios × seeds, with one score in each cell.

    `rest` contains the interaction of all three. `scenarios` is the number of scenarios that a score is the mean of.
    """

    agent: float
    scenario: float
    seed: float
    agent_scenario: float
    agent_seed: float
    scenario_seed: float
    rest: float
    scenarios: int

    def error(self, seeds: int) -> float:
        """Return the standard error of an agent's score over seeds. The scenarios are the suite's, and so no source of error."""
        return sqrt((self.seed + self.agent_seed) / seeds + (self.scenario_seed + self.rest) / (seeds * self.scenarios))

    def error_of_difference(self, seeds: int) -> float:
        """Return the standard error of the difference between two agents that played the same seeds."""
        return sqrt(2 * (self.agent_seed / seeds + self.rest / (seeds * self.scenarios)))


def estimate_components(scores: NDArray[Any]) -> Components:
    """Estimate the components from scores of shape (agents, scenarios, seeds), each at least 2, by their expected mean squares.

    Negative estimates count as 0 (Brennan, Generalizability Theory, 2001, chapter 3).
    """
    import numpy as np

    sizes = scores.shape
    grand = scores.mean()

    def effect(*axes: int) -> NDArray[Any]:
        """Return the means over the other axes."""
        means: NDArray[Any] = scores.mean(axis=tuple(axis for axis in range(3) if axis not in axes), keepdims=True)
        return means

    def square(part: NDArray[Any], *axes: int) -> float:
        """Return the mean square of an effect on some axes."""
        each = np.prod([sizes[axis] for axis in range(3) if axis not in axes])
        return float(each * (part**2).sum() / np.prod([sizes[axis] - 1 for axis in axes]))

    one = [square(effect(axis) - grand, axis) for axis in range(3)]
    pairs = {}
    left = scores - grand
    for axis in range(3):
        left = left - (effect(axis) - grand)
    for axes in combinations(range(3), 2):
        part = effect(*axes) - effect(axes[0]) - effect(axes[1]) + grand
        pairs[axes] = square(part, *axes)
        left = left - part
    rest = square(left, 0, 1, 2)
    agents, scenarios, seeds = sizes
    found = [
        (one[0] - pairs[0, 1] - pairs[0, 2] + rest) / (scenarios * seeds),
        (one[1] - pairs[0, 1] - pairs[1, 2] + rest) / (agents * seeds),
        (one[2] - pairs[0, 2] - pairs[1, 2] + rest) / (agents * scenarios),
        (pairs[0, 1] - rest) / seeds,
        (pairs[0, 2] - rest) / scenarios,
        (pairs[1, 2] - rest) / agents,
        rest,
    ]
    return Components(*(max(0.0, each) for each in found), scenarios)


def read_cube(of: Mapping[str, Sequence[GradedRun]]) -> NDArray[Any]:
    """Return the scores of a sweep's agents, with shape (agents, scenarios, seeds).

    Left out are agents that did not play all seeds, and scenarios without a score in a run.
    """
    import numpy as np

    seeds = {run.manifest.seed for runs in of.values() for run in runs}
    played = [
        sorted(runs, key=lambda run: run.manifest.seed) for agent, runs in of.items() if agent not in ENDS and len(runs) == len(seeds)
    ]
    scored = [{name for name, each in run.result.scenarios.items() if each.score is not None} for runs in played for run in runs]
    scenarios = sorted(set.intersection(*scored))
    return np.array([[[run.result.scenarios[name].score for run in runs] for name in scenarios] for runs in played])


def make_reliability(panel: Panel) -> str:
    """Return a table with the components of each column, as shares of their sum, and standard errors by number of seeds."""
    found = {sweep: estimate_components(read_cube(of)) for sweep, of in panel.items()}
    lines = []
    for field in Components._fields[:-1]:
        shares = [getattr(each, field) / sum(each[:-1]) for each in found.values()]
        lines.append([field.replace("_", " × "), *(f"{share:.0%}" for share in shares)])
    for seeds in SEEDS:
        cells = [f"{each.error(seeds):.1%}, {each.error_of_difference(seeds):.1%}" for each in found.values()]
        lines.append([f"standard error of a score, and of a difference, with {seeds} seed{'s' * (seeds != 1)}", *cells])
    return render_table(["", *panel], lines)


# ---- weaving


def make_weaving(panel: Panel) -> str:
    """Return a table with each agent's score in the first column and in the second, over the same tests, and the difference.

    The last two cells have the share of replies in a format that only another test asked for.
    """
    (apart, isolated), (together, woven) = panel.items()
    lines = []
    for agent in (agent for agent in isolated if agent in woven):
        alone, mixed = (_scores_by_test(of[agent]) for of in (isolated, woven))
        pairs = [(alone[test], mixed[test]) for test in alone if test in mixed]
        losses = [one - other for one, other in pairs]
        low, high = difference_interval(losses)
        means = [f"{fmean(scores):.0%}" for scores in zip(*pairs, strict=True)]
        lost = f"{fmean(losses):+.0%} ({low:+.0%} to {high:+.0%})"
        lines.append([name_memory(agent), *means, lost, str(len(pairs)), _borrowed(isolated[agent]), _borrowed(woven[agent])])
    return render_table(["memory", apart, together, "loss", "tests", f"borrowed, {apart}", f"borrowed, {together}"], lines)


def _scores_by_test(runs: Iterable[GradedRun]) -> dict[tuple[int, str], float]:
    return {(run.manifest.seed, test.id): test.lowest for run in runs for test in run.result.tests if test.counts}


def _borrowed(runs: Iterable[GradedRun]) -> str:
    stuck = [run.result.stuck for run in runs if run.result.stuck is not None]
    replies = sum(each.replies for each in stuck)
    return f"{sum(each.borrowed for each in stuck) / replies:.0%}" if replies else "–"
