"""The figure of interference: scores by evidence distance, by similar facts and by updates, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.pages.report.figures import (
    INK,
    WIDE,
    Format,
    agent_lines,
    draw_legend,
    draw_level,
    level_marks,
    line_look,
    render_figure,
)
from longspan.simulator.pages.report.styles import Style, assign_styles
from longspan.simulator.results.analysis.interference import CAUSES, Cause, Interference, Level

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_interference"]

PANELS: Final[Mapping[Cause, str]] = {"similar": "similar facts in between", "updates": "updates of the requested fact"}

MISSING: Final[Mapping[Cause, str]] = {cause: f"no scenario was played\nwith different numbers of\n{PANELS[cause]}" for cause in CAUSES}
"""The text of an empty panel."""


def draw_interference(found: Mapping[str, Interference], format: Format) -> bytes:
    """Return the content of a file with the figure. `found` has the disturbances of each agent, by name.

    Raises InputError if no agent has any.
    """
    if not any(each.distance or each.effects for each in found.values()):
        raise InputError(
            "--figure interference: too few questions have an evidence distance, and no scenario was played with different numbers of "
            "similar facts or updates; play runs with --set similar=0, --set similar=8"
        )
    return render_figure(partial(_fill, found), format)


def _fill(found: Mapping[str, Interference], figure: Figure) -> None:
    looks = assign_styles(list(found))
    figure.set_size_inches(11, 4)
    panels = figure.subplots(1, 1 + len(CAUSES), sharey=True)
    for axes in panels:
        axes.set_ylim(0, 1.04)
        axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].set_ylabel("expected score")
    _distance(panels[0], found, looks)
    for axes, cause in zip(panels[1:], CAUSES, strict=True):
        _cause(axes, cause, found, looks)
    figure.subplots_adjust(wspace=0.08, bottom=0.2)
    draw_legend(figure, panels[1], agent_lines(list(found), looks), level_marks()[:1])


def _distance(axes: Axes, found: Mapping[str, Interference], looks: Mapping[str, Style]) -> None:
    axes.set_xlabel("tokens from the furthest needle that is needed")
    curves = {agent: each.distance for agent, each in found.items() if each.distance is not None}
    if not curves:
        _empty(axes, "too few questions have\nan evidence distance")
        return
    for agent, curve in curves.items():
        low, high = ([getattr(score, end) for score in curve.scores] for end in ("low", "high"))
        axes.fill_between(curve.distances, low, high, color=looks[agent].colour, alpha=0.15, linewidth=0)
        look = line_look(looks[agent]) | {"markevery": 8, "markersize": 4}
        axes.plot(curve.distances, [score.value for score in curve.scores], linewidth=1.5, **look)
    nearest, furthest = min(curve.distances[0] for curve in curves.values()), max(curve.distances[-1] for curve in curves.values())
    if nearest > 0 and furthest > 10 * WIDE * nearest:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: format_tokens(value))
    draw_level(axes, 0, 1, max(curve.chance for curve in curves.values()), (4, 2), axes.get_yaxis_transform())


def _cause(axes: Axes, cause: Cause, found: Mapping[str, Interference], looks: Mapping[str, Style]) -> None:
    effects = {agent: each.effects[cause] for agent, each in found.items() if cause in each.effects}
    names = list(dict.fromkeys(name for effect in effects.values() for name in effect.scenarios))
    axes.set_xlabel(PANELS[cause])
    if not effects:
        _empty(axes, MISSING[cause])
        return
    axes.set_title(", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""), fontsize=9)
    numbers = sorted({level.number for effect in effects.values() for level in effect.levels})
    step = (numbers[-1] - numbers[0]) * 0.012
    for place, (agent, effect) in enumerate(effects.items()):
        at = [level.number + (place - (len(effects) - 1) / 2) * step for level in effect.levels]
        below, above = zip(*map(_reach, effect.levels), strict=True)
        scores = [level.score for level in effect.levels]
        axes.errorbar(at, scores, yerr=[below, above], capsize=2.5, elinewidth=0.9, linewidth=1.5, **line_look(looks[agent]))
    axes.set_xticks(numbers if len(numbers) <= 8 else numbers[:: len(numbers) // 8 + 1])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    chance = max(level.chance for effect in effects.values() for level in effect.levels)
    draw_level(axes, 0, 1, chance, (4, 2), axes.get_yaxis_transform())


def _reach(level: Level) -> tuple[float, float]:
    """Return how far a level's interval extends below and above its score."""
    if level.interval is None:
        return 0.0, 0.0
    return max(0.0, level.score - level.interval.low), max(0.0, level.interval.high - level.score)


def _empty(axes: Axes, text: str) -> None:
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=9)
