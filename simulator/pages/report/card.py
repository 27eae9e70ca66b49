"""A run's result as one picture to share: agent, score with interval, a lane for each test, and the commitment to its tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Literal, final
from xml.sax.saxutils import escape

from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.curve import CurveLayout, lay_out
from longspan.simulator.pages.report.figures import INK, Format, draw_curve, render_figure
from longspan.simulator.pages.report.run_view import RunView, TestView
from longspan.simulator.pages.report.styles import wrap_label
from longspan.simulator.pages.report.summary import score_interval
from longspan.simulator.pages.report.timeline import Grade, Lane, Tick, make_panels
from longspan.simulator.pages.report.verdict import loss_verdict
from longspan.simulator.results import measures
from longspan.simulator.results.analysis.statistics import Interval
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.memory_losses import OUTCOMES, MemoryLosses, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_card"]

WIDTH: Final = 640
"""The width of the card. All lengths are in points, and measured from the top."""

MARGIN: Final = 24
LEFT: Final = 156
RIGHT: Final = 572
"""The right end of the lanes. They begin at `LEFT`."""

LANES: Final = 470
"""The maximum height of all lanes together. A single lane has at most `LANE`."""

LANE: Final = 13

CURVE: Final = 200
"""The height of a curve."""

MAX_VECTOR_MARKS: Final = 3_000
"""More needles and questions than this are drawn as a bitmap, since each mark adds a path to an SVG."""

PAPER: Final = "#ffffff"
SOFT: Final = "#555d66"
TRACK: Final = "#e6e8ea"
GOT: Final = "#2f74b5"
CHANCE: Final = "#b3261e"
ARC_STEPS: Final = 12

GRADES: Final[dict[Grade, str]] = {"full": "#14548f", "part": "#8a5a00", "low": "#990f3d", "none": "#666e77"}

DARK: Final = {
    INK: "#e4e7ea",
    PAPER: "#1d2125",
    SOFT: "#a3abb3",
    TRACK: "#343a40",
    GOT: "#5a9fdd",
    CHANCE: "#ff9c8f",
    **dict(zip(GRADES.values(), ("#8ec4f5", "#ffd76e", "#ff668a", "#a0a8b0"), strict=True)),
}
"""The replacement for each colour on a dark screen, as in the report."""

MEANINGS: Final[dict[Grade, str]] = {"full": "all points", "part": "more than chance", "low": "no more than chance", "none": "no score"}
FILLS: Final[dict[Grade, Any]] = {"full": "full", "part": "left", "low": "none", "none": "none"}
FATES: Final[dict[Outcome | Literal["instead"], str]] = {
    "instead": GRADES["none"],
    "unknown": GRADES["none"],
    "forgotten": GRADES["none"],
    "not_stored": GRADES["low"],
    "not_retrieved": GRADES["part"],
    "not_shown": GRADES["part"],
    "found_undecided": GOT,
    "found_wrong": GOT,
    "found_right": GRADES["full"],
}
"""The colours of arcs and needles, as in the report."""

NEEDLES: Final[dict[Outcome, dict[str, Any]]] = {
    "unknown": {"marker": "o", "markersize": 3, "markerfacecolor": PAPER},
    "forgotten": {"marker": "^", "markersize": 4, "markerfacecolor": PAPER},
    "not_stored": {"marker": "x", "markersize": 4, "markeredgewidth": 1.3},
    "not_retrieved": {"marker": "o", "markersize": 4, "markerfacecolor": PAPER, "markeredgewidth": 1.3},
    "not_shown": {"marker": "s", "markersize": 4, "markerfacecolor": PAPER, "markeredgewidth": 1.3},
    "found_undecided": {"marker": "o", "markersize": 4, "markerfacecolor": PAPER},
    "found_wrong": {"marker": "o", "markersize": 4.5, "fillstyle": "left", "markerfacecoloralt": PAPER},
    "found_right": {"marker": "o", "markersize": 4.5},
}
"""The marks of needles, by fate."""


@final
@dataclass(frozen=True)
class Card:
    """The contents of a card.

    `lanes` are listed by scenario. `ticks` are the axis of the conversation that all lanes share; empty if they share none. A card with a
    `curve` has no lanes.
    """

    run: GradedRun
    interval: Interval | None
    sentence: str
    lanes: Mapping[str, Sequence[Lane]]
    ticks: Sequence[Tick]
    curve: CurveLayout | None = None

    @classmethod
    def of(cls, run: GradedRun) -> Card:
        """Read a run's journals. Raises JournalError if one is damaged."""
        result = run.result
        if curves := measures.document_run(run.manifest, result).curves:
            return cls(run, score_interval(run.manifest, result.tests), curves[0].sentence, {}, [], lay_out(curves[0]))
        conversations = RunView.of(run.folder).conversations
        drawn = make_panels([TestView.of(test, conversations) for test in result.tests], conversations)
        lanes = [lane for panel in drawn for lane in panel.lanes]
        return cls(
            run,
            score_interval(run.manifest, result.tests),
            loss_verdict(MemoryLosses.of(result.tests, result.span)),
            {name: [lane for lane in lanes if lane.test.result.scenario == name] for name in result.scenarios},
            drawn[0].ticks if len(drawn) == 1 else [],
        )

    @property
    def score(self) -> str:
        result = self.run.result
        if result.ungraded:
            return "–"
        if result.searched is not None:
            return f"{result.searched.share:.0%}"
        bounds = [result.score] if result.score is not None else result.score_bounds
        return " to ".join(f"{bound / result.full:.0%}" for bound in bounds)

    @property
    def title(self) -> str:
        result = self.run.result
        return escape_invisible(
            f"{result.suite} at {result.span:,} tokens" if result.span and not self.run.manifest.alone else result.suite
        )

    @property
    def commitment(self) -> str:
        manifest = self.run.manifest
        return f"commitment {manifest.commitment}" if manifest.imported is None else "an imported conversation, without a commitment"


def draw_card(run: GradedRun, format: Format) -> bytes:
    """Return the content of a file with a run's card. An SVG adapts to light and dark screens.

    The same run gives the same bytes. Raises JournalError if a journal is damaged.
    """
    card = Card.of(run)
    drawn = render_figure(lambda figure: _fill(figure, card) if card.curve is None else _fill_curve(figure, card, card.curve), format)
    return _adaptive(drawn, card) if format == "svg" else drawn


def _adaptive(svg: bytes, card: Card) -> bytes:
    """Return a drawn SVG with a title, and with a style that replaces its colours on a dark screen."""
    rules = "".join(
        f'[style*="{paint}: {light}"]{{{paint}:{dark}!important}}' for light, dark in DARK.items() for paint in ("fill", "stroke")
    )
    agent = escape_invisible(" ".join(card.run.result.agent.split()))
    headline = f"{escape_invisible(card.run.result.headline.removeprefix('score '))} in {card.title}"
    title = escape(f"{agent}: {headline if card.curve is None else card.sentence}; {card.commitment}")
    head, body = svg.decode().split("<metadata>", 1)
    return f"{head}<title>{title}</title><style>@media (prefers-color-scheme: dark){{{rules}}}</style><metadata>{body}".encode()


def _fill_curve(figure: Figure, card: Card, layout: CurveLayout) -> None:
    """Draw the result in words, and the curve in place of score and lanes."""
    lines, said = wrap_label(card.run.result.agent).splitlines(), wrap(card.sentence, 56)
    top = 84 + 26 * len(lines) + 24 * len(said)
    height = top + CURVE + 100
    axes = _begin(figure, height)
    _name(axes, card, lines)
    for number, line in enumerate(said):
        _write(axes, MARGIN, 66 + 26 * len(lines) + 24 * number, line, 17, weight="bold")
    plot = figure.add_axes((64 / WIDTH, 1 - (top + CURVE) / height, (WIDTH - MARGIN - 64) / WIDTH, CURVE / height), facecolor="none")
    draw_curve(plot, layout, (INK, GOT))
    guesses = [
        f"{line}: {name} ({level:.0%})" for line, (name, level) in zip(("dashed", "dotted"), layout.curve.levels.items(), strict=False)
    ]
    _write(axes, MARGIN, top + CURVE + 58, "; ".join(["n: questions", *guesses]), 10.5, SOFT, va="center")
    _write(axes, MARGIN, top + CURVE + 78, card.commitment, 10.5, SOFT, va="center", family="monospace")


def _begin(figure: Figure, height: float) -> Axes:
    """Return axes over the whole of a figure, with lengths measured from the top."""
    figure.set_size_inches(WIDTH / 72, height / 72)
    figure.set_facecolor(PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return axes


def _name(axes: Axes, card: Card, lines: Sequence[str]) -> None:
    _write(axes, MARGIN, 28, f"longspan · {card.title}", 13, SOFT)
    for number, line in enumerate(lines):
        _write(axes, MARGIN, 58 + 26 * number, line, 22, weight="bold")


def _fill(figure: Figure, card: Card) -> None:
    lines = wrap_label(card.run.result.agent).splitlines()
    said = wrap(card.sentence, 84) if card.sentence else []
    lanes_at = 168 + 26 * len(lines) + 19 * len(said)
    places, groups, bottom = _places(card, lanes_at)
    axes = _begin(figure, bottom + 58 + 18 * _legend_lines(card))
    _head(axes, card, lines, said)
    _draw_lanes(axes, places)
    if groups:
        _write(axes, WIDTH - MARGIN, lanes_at - 6, "mean", 10.5, SOFT, ha="right")
    for name, at in groups.items():
        mean = card.run.result.scenarios[name].score
        _write(axes, LEFT - 12, at, escape_invisible(name).replace("_", " ")[:24], 11.5, ha="right", va="center")
        _write(axes, WIDTH - MARGIN, at, "–" if mean is None else f"{mean:.0%}", 11.5, ha="right", va="center")
    _foot(axes, card, bottom)


def _head(axes: Axes, card: Card, lines: Sequence[str], said: Sequence[str]) -> None:
    result = card.run.result
    full = result.full
    low, high = result.score_bounds
    _name(axes, card, lines)
    at = 84 + 26 * len(lines)
    _write(axes, MARGIN, at + 13, card.score, 40, weight="bold")
    named = f", {escape_invisible(result.measured)}" if result.measured != "score" else ""
    beside = MARGIN + 29 * len(card.score) + 12
    points = f"{low:.2f}" if result.score is not None else f"{low:.2f} to {high:.2f}"
    searched = result.searched
    if searched is not None:
        of = f"of the evidence found among the first {searched.k} memories, search only"
    else:
        of = "interrupted, no test is graded" if result.ungraded else f"{points} of {result.max_score} points{named}"
    _write(axes, beside, at - 7, of, 15)
    if searched is not None:
        between = "" if searched.interval is None else "95% interval {:.0%} to {:.0%}".format(*searched.interval)
        _write(axes, beside, at + 13, between, 13, SOFT)
        _bar(axes, at + 34, [searched.share, searched.share], None, 1)
    else:
        between = f"95% interval {card.interval.low / full:.0%} to {card.interval.high / full:.0%} · " if card.interval is not None else ""
        _write(axes, beside, at + 13, f"{between}guessing scores {result.chance / full:.0%}", 13, SOFT)
        low, high = (0, 0) if result.ungraded else (low, high)
        _bar(axes, at + 34, [share / full for share in (low, high, result.chance)], card.interval, full)
    for number, line in enumerate(said):
        _write(axes, MARGIN, at + 68 + 19 * number, line, 13)


def _bar(axes: Axes, at: float, shares: Sequence[float], interval: Interval | None, full: float) -> None:
    low, high, *chance = (MARGIN + share * (WIDTH - 2 * MARGIN) for share in shares)
    for end, colour, alpha in ((WIDTH - MARGIN, TRACK, 1.0), (high, GOT, 0.4), (low, GOT, 1.0)):
        axes.plot([MARGIN, max(MARGIN, end)], [at, at], color=colour, alpha=alpha, linewidth=11, solid_capstyle="butt")
    if interval is not None:
        ends = [MARGIN + end / full * (WIDTH - 2 * MARGIN) for end in (interval.low, interval.high)]
        axes.plot(ends, [at, at], color=INK, linewidth=1.6, marker="|", markersize=9, markeredgewidth=1.6)
    for mark in chance:
        axes.plot([mark, mark], [at - 9, at + 9], color=CHANCE, linewidth=2.5)


def _places(card: Card, top: float) -> tuple[list[tuple[Lane, float]], dict[str, float], float]:
    """Return the position of each lane, the position of each scenario's name, and where the lanes end."""
    groups = {name: lanes for name, lanes in card.lanes.items() if lanes}
    pitch = min(float(LANE), LANES / max(1, sum(map(len, groups.values()))))
    at, places, names = top, [], {}
    for name, lanes in groups.items():
        names[name] = at + pitch * len(lanes) / 2
        places += [(lane, at + pitch * (number + 0.5)) for number, lane in enumerate(lanes)]
        at += max(pitch * len(lanes), 14.0) + 5
    return places, names, at


def _draw_lanes(axes: Axes, places: Sequence[tuple[Lane, float]]) -> None:
    from matplotlib.collections import LineCollection

    def x(share: float) -> float:
        return LEFT + (RIGHT - LEFT) * share

    many = sum(len(lane.marks) for lane, _ in places) > MAX_VECTOR_MARKS
    axes.add_collection(LineCollection([[(LEFT, at), (RIGHT, at)] for _, at in places], colors=TRACK, linewidths=1))
    for fate, colour in FATES.items():
        arcs = [
            _arc(x(arc.start / lane.tokens), x(arc.end / lane.tokens), at, 1 if fate == "instead" else -1)
            for lane, at in places
            for arc in (*lane.arcs, *lane.instead)
            if arc.fate == fate
        ]
        axes.add_collection(LineCollection(arcs, colors=colour, linewidths=1, linestyles=(0, (2, 1.5)) if fate == "instead" else "solid"))
    looks: dict[tuple[str, str], dict[str, Any]] = {("needle", fate): look | {"color": FATES[fate]} for fate, look in NEEDLES.items()}
    looks.update({("question", grade): _diamond(grade) | {"color": colour} for grade, colour in GRADES.items()})
    for (shape, drawn), look in looks.items():
        marks = [(x(mark.at / lane.tokens), at) for lane, at in places for mark in lane.marks if (mark.shape, mark.look) == (shape, drawn)]
        if marks:
            across, down = zip(*marks, strict=True)
            axes.plot(across, down, linestyle="", rasterized=many, **look)


def _arc(start: float, end: float, at: float, side: int) -> list[tuple[float, float]]:
    """Return an arc above a lane (`side` -1) or below it, the higher the further it reaches."""
    height = side * (1.5 + 4 * abs(end - start) / (RIGHT - LEFT))
    steps = [step / ARC_STEPS for step in range(ARC_STEPS + 1)]
    return [(start + share * (end - start), at + height * 4 * share * (1 - share)) for share in steps]


def _diamond(grade: Grade) -> dict[str, Any]:
    return {"marker": "D", "markersize": 5.5, "fillstyle": FILLS[grade], "markerfacecoloralt": PAPER, "markeredgewidth": 1.2} | (
        {"markerfacecolor": PAPER, "fillstyle": "full"} if FILLS[grade] == "none" else {}
    )


def _foot(axes: Axes, card: Card, bottom: float) -> None:
    if card.ticks:
        _write(axes, WIDTH - MARGIN, bottom + 10, "tokens", 10.5, SOFT, ha="right", va="center")
    for tick in card.ticks:
        _write(axes, LEFT + (RIGHT - LEFT) * tick.at, bottom + 10, tick.label, 10.5, SOFT, ha="center", va="center")
    at = float(MARGIN)
    line = bottom + 36
    for text, look in _legend(card):
        if at + 15 + 6.1 * len(text) > WIDTH - MARGIN:
            at, line = float(MARGIN), line + 18
        axes.plot([at + 5], [line], linestyle="", **look)
        at += 15 if look else 0
        _write(axes, at, line, text, 11.5, SOFT, va="center")
        # About 6.1 points a character at this size. Measuring text would need a renderer before the figure has its height.
        at += 14 + 6.1 * len(text)
    _write(axes, MARGIN, bottom + 26 + 18 * _legend_lines(card) + 18, card.commitment, 10.5, SOFT, va="center", family="monospace")


def _legend(card: Card) -> Iterator[tuple[str, dict[str, Any]]]:
    lanes = [lane for lanes in card.lanes.values() for lane in lanes]
    fates = {arc.fate for lane in lanes for arc in lane.arcs}
    for fate, look in NEEDLES.items():
        if fate in fates:
            yield OUTCOMES[fate], look | {"color": FATES[fate]}
    if any(lane.instead for lane in lanes):
        yield "retrieved instead", {"marker": "_", "markersize": 9, "color": FATES["instead"]}
    yield "question:", {}
    for grade, meaning in MEANINGS.items():
        if grade in {lane.grade for lane in lanes}:
            yield meaning, {"color": GRADES[grade]} | _diamond(grade)


def _legend_lines(card: Card) -> int:
    """Return the number of lines in the legend."""
    at, lines = float(MARGIN), 1
    for text, look in _legend(card):
        if at + 15 + 6.1 * len(text) > WIDTH - MARGIN:
            at, lines = float(MARGIN), lines + 1
        at += (15 if look else 0) + 14 + 6.1 * len(text)
    return lines


def _write(axes: Axes, x: float, y: float, text: str, size: float, colour: str = INK, **look: Any) -> None:
    axes.text(x, y, text, fontsize=size, color=colour, **look)
