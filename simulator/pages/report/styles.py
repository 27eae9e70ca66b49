"""The styles of agents in figures: the same in every figure, and distinguishable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final, Literal, NamedTuple, final

from longspan.simulator.base.terminal import escape_invisible

__all__ = ["COLOURS", "MARKERS", "Style", "assign_styles", "label_agents", "wrap_label"]

Fill = Literal["full", "none", "left", "bottom"]

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6fd0", "#8c8c8c")
"""Colours that are distinguishable with any kind of colour vision (after Okabe and Ito), on white and on black."""

MARKERS: Final = "osD^vPX*"
HATCHES: Final = ("", "////", "....", "xx", "\\\\\\\\", "++", "oo", "--")
DASHES: Final[tuple[tuple[float, ...], ...]] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2))
FILLS: Final[tuple[Fill, ...]] = ("full", "none", "left", "bottom")

MAX_WIDTH: Final = 44
"""The number of characters in a line of a label."""

MAX_LINES: Final = 3
"""The number of lines in a label. A longer label is cut."""


@final
class Style(NamedTuple):
    """An agent's style. Its model decides the colour and the marker.

    Hatch, dashes (lengths in points, empty for a solid line) and the marker's fill distinguish agents with the same model. The
    first of them is solid, as in the paper's Figure 5 (GoodAI).
    """

    colour: str
    marker: str
    hatch: str
    dashes: tuple[float, ...]
    fill: Fill


def assign_styles(agents: Sequence[str]) -> dict[str, Style]:
    """Return a style for each agent. Agents with the same model share its colour; the bare model comes first."""
    models: dict[str, list[str]] = {}
    for agent in sorted(agents, key=lambda agent: (_depth(agent), agents.index(agent))):
        models.setdefault(_model(agent), []).append(agent)
    order = sorted(models, key=lambda model: min(map(agents.index, models[model])))
    return {agent: _style(order.index(model), nth) for model, group in models.items() for nth, agent in enumerate(group)}


def _style(model: int, nth: int) -> Style:
    nth += model // len(COLOURS)  # with more models than colours, colours are reused with the next hatch
    return Style(
        COLOURS[model % len(COLOURS)],
        MARKERS[model % len(MARKERS)],
        HATCHES[nth % len(HATCHES)],
        DASHES[nth % len(DASHES)],
        FILLS[nth % len(FILLS)],
    )


def _model(agent: str) -> str:
    """Return the model in a spec: `openai/gpt-4o` for `ltm/openai/gpt-4o?memory=json`."""
    return "/".join(_kind(agent).split("/")[-2:])


def _depth(agent: str) -> int:
    return _kind(agent).count("/")


def _kind(agent: str) -> str:
    """Return a spec without its options and its run's label."""
    return agent.partition("?")[0].partition(" [")[0]


def label_agents(agents: Sequence[str]) -> dict[str, str]:
    """Return a label for each agent. If labels would be equal after cutting, they are numbered."""
    texts: dict[str, str] = {}
    for agent in agents:
        text = wrap_label(agent)
        same = sum(wrap_label(other) == text for other in texts)
        texts[agent] = f"{text} ({same + 1})" if same else text
    return texts


def wrap_label(agent: str) -> str:
    """Return a spec wrapped to fit next to a figure, with line breaks before its options where possible."""
    text = escape_invisible(" ".join(agent.split())) or "(no name)"
    lines: list[str] = []
    for part in text.replace("?", "\0?").replace("&", "\0&").split("\0"):
        if lines and len(lines[-1]) + len(part) <= MAX_WIDTH:
            lines[-1] += part
        else:
            lines += wrap(part, MAX_WIDTH, break_on_hyphens=False) or [""]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES - 1 :] = [f"{lines[MAX_LINES - 1][: MAX_WIDTH - 1]}…"]
    return "\n".join(lines)
