"""How agents look in figures: the same in each, told apart without colours too."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.report.excerpts import visible

__all__ = ["MARKERS", "Style", "label", "labels", "styles"]

Fill = Literal["full", "none", "left", "bottom"]

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6fd0", "#8c8c8c")
"""Colours that people with any kind of colour vision can tell apart (after Okabe and Ito), on white and on black."""

MARKERS: Final = "osD^vPX*"
HATCHES: Final = ("", "////", "....", "xx", "\\\\\\\\", "++", "oo", "--")
DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2))
FILLS: Final[tuple[Fill, ...]] = ("full", "none", "left", "bottom")

WIDTH: Final = 44
"""Characters of a line of a label."""

LINES: Final = 3
"""Lines of a label; of a longer one its beginning."""


@final
class Style(NamedTuple):
    """A colour and a marker for an agent's model; a hatch, dashes (in points, none for a solid line) and a marker's fill for what
    is around it: the first with a model is solid, as the paper's Figure 5 has it (GoodAI)."""

    colour: str
    marker: str
    hatch: str
    dashes: tuple[float, ...]
    fill: Fill


def styles(agents: Sequence[str]) -> dict[str, Style]:
    """A style for each agent. Those of one model have its colour, a bare model before what is built around it."""
    models: dict[str, list[str]] = {}
    for agent in sorted(agents, key=lambda agent: (_depth(agent), agents.index(agent))):
        models.setdefault(_model(agent), []).append(agent)
    order = sorted(models, key=lambda model: min(map(agents.index, models[model])))
    return {agent: _style(order.index(model), nth) for model, those in models.items() for nth, agent in enumerate(those)}


def _style(model: int, nth: int) -> Style:
    again = model // len(COLOURS)  # more models than colours: the next ones look like other builds of the first
    nth += again
    return Style(
        COLOURS[model % len(COLOURS)],
        MARKERS[model % len(MARKERS)],
        HATCHES[nth % len(HATCHES)],
        DASHES[nth % len(DASHES)],
        FILLS[nth % len(FILLS)],
    )


def _model(agent: str) -> str:
    """The model in a spec: `openai/gpt-4o` of `ltm/openai/gpt-4o?memory=json`."""
    return "/".join(agent.partition("?")[0].split("/")[-2:])


def _depth(agent: str) -> int:
    return agent.partition("?")[0].count("/")


def labels(agents: Sequence[str]) -> dict[str, str]:
    """A label for each agent; agents whose labels would be cut to the same are numbered."""
    made: dict[str, str] = {}
    for agent in agents:
        text = label(agent)
        same = sum(label(other) == text for other in made)
        made[agent] = f"{text} ({same + 1})" if same else text
    return made


def label(agent: str) -> str:
    """A spec in lines that fit beside a figure, broken before its options where it can be."""
    text = visible(" ".join(agent.split())) or "(no name)"
    lines: list[str] = []
    for part in text.replace("?", "\0?").replace("&", "\0&").split("\0"):
        if lines and len(lines[-1]) + len(part) <= WIDTH:
            lines[-1] += part
        else:
            lines += wrap(part, WIDTH, break_on_hyphens=False) or [""]
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"{lines[LINES - 1][: WIDTH - 1]}…"]
    return "\n".join(lines)
