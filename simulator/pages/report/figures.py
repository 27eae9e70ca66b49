"""The figures of a comparison, drawn by matplotlib for files and pages. The same data gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, log2
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.curve import CurveLayout, lay_out_alike
from longspan.simulator.pages.report.styles import COLOURS, MARKERS, Style, assign_styles, label_agents, wrap_label
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.cells import Cell
from longspan.simulator.results.measures.comparing import Comparison
from longspan.simulator.results.measures.trends import REACH, has_versions, measure_trends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

__all__ = [
    "DRAWN",
    "FIGURES",
    "FORMATS",
    "INK",
    "WIDE",
    "FigureName",
    "Format",
    "agent_lines",
    "draw_curve",
    "draw_figure",
    "draw_legend",
    "draw_level",
    "level_marks",
    "line_look",
    "missing_figures",
    "render_figure",
]

FigureName = Literal["bars", "spans", "distance", "reach", "cost", "trend"]
FIGURES: Final[tuple[FigureName, ...]] = get_args(FigureName)

Format = Literal["svg", "png", "pdf"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

INK: Final = "#1d2126"
"""The colour of text and lines. No other element has this colour, so that a page can replace it."""

WIDE: Final = 10
"""An axis of distances is logarithmic if it extends beyond this many times the smallest span."""

ACROSS: Final = 2
"""The maximum number of pictures of agents in a row."""

NAMED: Final = 14
"""The maximum number of versions that a trend names. With more, only every second or third is named."""

METADATA: Final[dict[Format, dict[str, Any]]] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
"""Metadata to omit, since they would make two files with the same figure differ."""

SETTINGS: Final[Any] = {
    "svg.hashsalt": "longspan",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.parse_math": False,  # so that a dollar sign in an agent's name does not start a formula
    "font.size": 10,
    "hatch.linewidth": 0.6,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def missing_figures(comparison: Comparison) -> dict[FigureName, str]:
    """Return the figures that cannot be drawn for a comparison, with the reason."""
    found: dict[FigureName, str] = {}
    if not comparison.said.curves:
        found["reach"] = "no run asks for facts at many distances, as the suite reach does"
    if not has_versions(run.manifest for run in comparison.side.runs):
        found["trend"] = "no agent has runs of several versions; give each version's runs a --label"
    if not comparison.side.answering:
        return dict.fromkeys((name for name in FIGURES if name not in ("reach", "trend")), "no test has a score") | found
    if not comparison.curves:
        found["distance"] = "too few questions have an evidence distance"
    answering = comparison.side.answering
    if not any(cell.cost_usd for (agent, _), cell in comparison.cells.items() if agent in answering):
        found["cost"] = "no run has a known cost"
    return found


def draw_figure(comparison: Comparison, figure: FigureName, format: Format, *, page: bool = False) -> bytes:
    """Return the content of a file with one figure of a comparison, which `missing_figures` must not list.

    Scores are drawn as shares of their maximum. For a `page`, the background is transparent.
    """
    return render_figure(lambda drawn: DRAWN[figure](as_shares(comparison), drawn), format, page=page)


def render_figure(fill: Callable[[Figure], None], format: Format, *, page: bool = False) -> bytes:
    """Return the content of a file with the figure that `fill` draws, regardless of the user's matplotlib settings."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    content = io.BytesIO()
    with matplotlib.rc_context(), _no_glyph_warnings():
        matplotlib.rcdefaults()  # ignore the user's matplotlibrc
        matplotlib.rcParams.update(SETTINGS)
        # A bare Figure instead of pyplot, whose global state is not safe in threads.
        drawn = Figure()
        FigureCanvasAgg(drawn)
        fill(drawn)
        drawn.savefig(content, format=format, dpi=160, bbox_inches="tight", pad_inches=0.15, transparent=page, metadata=METADATA[format])
    return content.getvalue()


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    """Silence the warning about glyphs that the font lacks: names in other scripts are drawn as boxes."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


# ---- figures


def _bars(comparison: Comparison, figure: Figure) -> None:
    """Draw bars grouped by span, as in the paper's Figure 5 (GoodAI). The pale end shows the possible points of tests without a score."""
    agents, looks = comparison.side.answering, assign_styles(comparison.agents)
    figure.set_size_inches(max(6.0, 1.4 + 0.24 * (len(agents) + 1.2) * len(comparison.columns)), 4)
    axes = _axes(figure, comparison)
    width = 0.8 / len(agents)
    for place, column in enumerate(comparison.columns):
        for number, agent in enumerate(agents):
            cell = comparison.cells.get((agent, column))
            if cell is not None:
                _bar(axes, place + (number - (len(agents) - 1) / 2) * width, width, cell, looks[agent])
        cells = _cells(comparison, column)
        draw_level(axes, place - 0.45, place + 0.45, max(cell.chance for cell in cells), (4, 2))
        draw_level(axes, place - 0.45, place + 0.45, max(cell.maximum for cell in cells), (1, 2))
    axes.set_xticks(range(len(comparison.columns)), [str(column) for column in comparison.columns])
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("span in tokens")
    draw_legend(figure, axes, _patches(agents, looks), level_marks())


def _bar(axes: Axes, at: float, width: float, cell: Cell, style: Style) -> None:
    low, high = cell.bounds
    looks = _bar_look(style)
    axes.bar(at, low, width, **looks)
    if high > low:
        axes.bar(at, high - low, width, bottom=low, **looks | {"alpha": 0.3, "hatch": ""})
    if cell.interval is not None:
        middle, below, above = _error(cell)
        axes.errorbar(at, middle, yerr=[[below], [above]], color=INK, linewidth=0.9, capsize=min(3.0, 12 * width))
    if not high:  # an agent without a run here gets no bar either
        top = cell.interval.high if cell.interval is not None else 0
        axes.annotate("0", (at, top), (0, 2), textcoords="offset points", ha="center", fontsize=8)


def _bar_look(style: Style) -> dict[str, Any]:
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": INK, "linewidth": 0.6}


def _spans(comparison: Comparison, figure: Figure) -> None:
    """Draw score by span, with intervals. Isolated tests are on the left, apart from the spans."""
    agents, looks = comparison.side.answering, assign_styles(comparison.agents)
    figure.set_size_inches(max(7.5, 1.6 * len(comparison.columns)), 4.2)
    axes = _axes(figure, comparison)
    places = _places(comparison.columns)
    reach = max(places.values()) - min(places.values()) or 1.0
    for number, agent in enumerate(agents):
        offset = (number - (len(agents) - 1) / 2) * reach * 0.006
        points = [(places[c] + offset, cell, c.isolated) for c in comparison.columns if (cell := comparison.cells.get((agent, c)))]
        _points(axes, points, looks[agent])
    for isolated in (True, False):
        columns = [column for column in comparison.columns if column.isolated is isolated]
        if columns:
            _stairs(axes, [(places[c], max(cell.chance for cell in _cells(comparison, c))) for c in columns], reach, (4, 2))
            _stairs(axes, [(places[c], max(cell.maximum for cell in _cells(comparison, c))) for c in columns], reach, (1, 2))
    axes.set_xticks(list(places.values()), [str(column) for column in places], rotation=30 if len(places) > 6 else 0)
    axes.set_xlabel("span in tokens (logarithmic)")
    draw_legend(figure, axes, agent_lines(agents, looks), level_marks())


def _points(axes: Axes, points: Sequence[tuple[float, Cell, bool]], style: Style) -> None:
    """Draw an agent's scores. A line joins the scores of tests that are not isolated."""
    for isolated in (True, False):
        values = [(at, *_error(cell)) for at, cell, alone in points if alone is isolated]
        if values:
            at, middle, below, above = zip(*values, strict=True)
            axes.errorbar(at, middle, yerr=[below, above], capsize=2.5, elinewidth=0.9, linewidth=1.5, **line_look(style))


def _distance(comparison: Comparison, figure: Figure) -> None:
    """Draw score by evidence distance: a curve for each agent, with its interval. With several spans, the axis is logarithmic."""
    agents, looks = list(comparison.curves), assign_styles(comparison.agents)
    figure.set_size_inches(7.5, 4.2)
    axes = _axes(figure, comparison)
    axes.set_ylim(0, 1.04)
    axes.set_ylabel(f"expected {escape_invisible(comparison.measured)}")
    for agent in agents:
        curve, line = comparison.curves[agent], line_look(looks[agent]) | {"markevery": 8, "markersize": 4}
        low, high = ([getattr(score, end) for score in curve.scores] for end in ("low", "high"))
        axes.fill_between(curve.distances, low, high, color=looks[agent].colour, alpha=0.15, linewidth=0)
        axes.plot(curve.distances, [score.value for score in curve.scores], linewidth=1.5, **line)
    draw_level(axes, 0, 1, max(curve.chance for curve in comparison.curves.values()), (4, 2), axes.get_yaxis_transform())
    if max(curve.distances[-1] for curve in comparison.curves.values()) > WIDE * min(column.span for column in comparison.columns):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: format_tokens(value))
    axes.set_xlabel("tokens from the furthest needle that a question needs")
    draw_legend(figure, axes, agent_lines(agents, looks), level_marks()[:1])


def _reach(comparison: Comparison, figure: Figure) -> None:
    """Draw the share that each agent recalls by distance, a picture for each agent and span on the same axis."""
    layouts, called = lay_out_alike(comparison.said.curves), comparison.side.called
    across = min(ACROSS, len(layouts))
    down = ceil(len(layouts) / across)
    figure.set_size_inches(1 + 4.2 * across, 0.4 + 3.2 * down)
    figure.subplots_adjust(hspace=0.55, wspace=0.2)
    for number, layout in enumerate(layouts, 1):
        axes = figure.add_subplot(down, across, number)
        axes.set_title(f"{wrap_label(called.names[layout.curve.agent])} {layout.curve.note}".strip(), fontsize=9.5, pad=18, loc="left")
        draw_curve(axes, layout)
    omitted = "\n".join(wrap(called.describe_omissions(), 60 * across))
    # In inches, because the labels of the axes are equally tall in a figure of any height.
    figure.text(0.5, 0.11 - 0.6 / figure.get_figheight(), omitted, ha="center", va="top", fontsize=9)


def draw_curve(axes: Axes, layout: CurveLayout, colours: tuple[str, str] = (INK, COLOURS[0])) -> None:
    """Draw a share by distance as on pages. `colours` are the colours of the points and of the fit."""
    ink, fit = colours
    curve, size = layout.curve, 8
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), yticks=(0, 0.5, 1), xlabel="tokens back (logarithmic)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    once = [] if layout.start is None else [(layout.start.x, "at once")]
    at, names = zip(*once, *((tick.at, tick.label) for tick in layout.ticks), strict=True)
    axes.set_xticks(at, names)
    axes.tick_params(labelsize=size, length=0)
    axes.grid(color=ink, alpha=0.15, linewidth=0.6)
    if layout.band is not None and curve.band is not None:
        low, value, high = layout.band
        axes.axvspan(low, high, color=fit, alpha=0.16, linewidth=0)
        axes.axvline(value, color=fit, dashes=(4, 3), linewidth=1)
        place: dict[str, Any] = {"x": low - 0.01, "y": 0.22, "ha": "right"} if layout.before else {"x": high + 0.01, "y": 0.94, "va": "top"}
        axes.text(s=curve.band.label, fontsize=size, weight="bold", color=ink, **place)
    for level, dashes in zip(curve.levels.values(), ((6, 4), (1.5, 3)), strict=False):
        axes.axhline(level, color=ink, alpha=0.6, dashes=dashes, linewidth=0.8)
    if layout.fitted:
        axes.plot(*zip(*layout.fitted, strict=True), color=fit, linewidth=1.8)
    for each in layout.all_points:
        x, point = each.x, each.point
        axes.plot([x, x], [point.low, point.high], color=ink, linewidth=1.1)
        axes.plot([x], [point.share], color=ink, marker="o", markersize=4.5, clip_on=False)
        if each.counted:
            axes.annotate(f"{point.questions}", (x, 1.02), (0, 3), textcoords="offset points", ha="center", fontsize=size, color=ink)
    axes.annotate("n", (0, 1.02), (-5, 3), textcoords="offset points", ha="right", fontsize=size, color=ink)


def _cost(comparison: Comparison, figure: Figure) -> None:
    """Draw score by dollars per run, with a marker for each span. Agents without a known cost are only in the legend."""
    agents, looks = comparison.side.answering, assign_styles(comparison.agents)
    figure.set_size_inches(7.5, 4.2)
    axes = _axes(figure, comparison)
    marks = {column: MARKERS[number % len(MARKERS)] for number, column in enumerate(comparison.columns)}
    costs: list[float] = []
    for agent in agents:
        for column, mark in marks.items():
            cell = comparison.cells.get((agent, column))
            if cell is not None and cell.cost_usd is not None:
                costs.append(cell.cost_usd)
                middle, below, above = _error(cell)
                look = line_look(looks[agent]) | {"marker": mark, "linestyle": "", "markersize": 7.5}
                axes.errorbar(cell.cost_usd, middle, yerr=[[below], [above]], elinewidth=0.7, **look)
    if min(costs) > 0 and max(costs) / min(costs) > 10:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, max(costs) * 1.08)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for column in comparison.columns:
        axes.axhline(max(cell.chance for cell in _cells(comparison, column)), color=INK, dashes=(4, 2), linewidth=0.8, alpha=0.6)
    priced = {agent for (agent, _), cell in comparison.cells.items() if cell.cost_usd is not None}
    axes.set_xlabel("dollars per run, at list prices")
    names = {agent: f"{text}{'' if agent in priced else ' (cost unknown)'}" for agent, text in label_agents(agents).items()}
    shapes = [_marker(str(column), mark) for column, mark in marks.items()]
    draw_legend(figure, axes, [_marker(names[agent], "o", looks[agent]) for agent in agents], [*shapes, level_marks()[0]])


def _trend(comparison: Comparison, figure: Figure) -> None:
    """Draw figures by version, oldest first: a picture for each kind of figure, a line for each agent and span."""
    versions, panels = measure_trends(comparison.side)
    places = list(dict.fromkeys(place for lines in panels.values() for place in lines))
    called = short_names([agent for agent, _ in places])
    several = len(called.names) > 1
    names = {(agent, column): f"{called.names[agent]}{column.at}" if several else str(column) for agent, column in places}
    looks = assign_styles(list(names.values()))
    figure.set_size_inches(max(6.0, 1.1 * min(len(versions), NAMED)), 0.4 + 2.8 * len(panels))
    every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (measured, lines) in zip(every, panels.items(), strict=True):
        axes.set_ylabel("share of full marks" if measured == "score" else escape_invisible(measured))
        axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
        for number, (place, points) in enumerate(lines.items()):
            at = [versions.index(name) + (number - (len(lines) - 1) / 2) * 0.06 for name in points]
            values = [value for value, _, _ in points.values()]
            ends = [[value - low for value, low, _ in points.values()], [high - value for value, _, high in points.values()]]
            axes.errorbar(at, values, yerr=ends, capsize=2.5, elinewidth=0.9, linewidth=1.5, **line_look(looks[names[place]]))
        axes.set_ylim(0, None if measured == REACH else 1.04)
        axes.yaxis.set_major_formatter(lambda value, _, measured=measured: format_tokens(value) if measured == REACH else f"{value:.0%}")
        if measured == comparison.measured:
            draw_level(axes, 0, 1, max(cell.chance for cell in comparison.cells.values()), (4, 2), axes.get_yaxis_transform())
    step = (len(versions) - 1) // NAMED + 1
    named = range((len(versions) - 1) % step, len(versions), step)  # the newest version is always named
    axes.set_xticks(named, ["\n".join(wrap(escape_invisible(versions[at]), 13)) for at in named], fontsize=9)
    axes.set_xlabel(wrap_label(called.describe_omissions() or "version" if several else "".join(called.names)), fontsize=9)
    chance = level_marks()[: comparison.measured in panels]
    draw_legend(figure, every[0], agent_lines(list(names.values()), looks), chance, above=True)


DRAWN: Final[dict[FigureName, Callable[[Comparison, Figure], None]]] = {
    "bars": _bars,
    "spans": _spans,
    "distance": _distance,
    "reach": _reach,
    "cost": _cost,
    "trend": _trend,
}


# ---- helpers


def as_shares(comparison: Comparison) -> Comparison:
    """Return the comparison with its scores as shares of full marks."""
    return replace(comparison, cells={key: _as_share(cell) for key, cell in comparison.cells.items()})


def _as_share(cell: Cell) -> Cell:
    low, high = cell.bounds
    between = cell.interval
    return replace(
        cell,
        score=cell.score and cell.score / cell.maximum,
        spread=cell.spread and cell.spread / cell.maximum,
        bounds=(low / cell.maximum, high / cell.maximum),
        interval=between and between._replace(low=between.low / cell.maximum, high=between.high / cell.maximum),
        chance=cell.chance / cell.maximum,
        maximum=1,
    )


def _axes(figure: Figure, comparison: Comparison) -> Axes:
    axes = figure.add_subplot()
    axes.set_ylim(0, 1.04)
    axes.set_ylabel("share of full marks" if comparison.measured == "score" else escape_invisible(comparison.measured))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y", color=INK, alpha=0.15, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def _cells(comparison: Comparison, column: Column) -> list[Cell]:
    return [cell for (_, place), cell in comparison.cells.items() if place == column]


def _error(cell: Cell) -> tuple[float, float, float]:
    """Return a cell's score (its lower bound), and how far its interval extends below and above it."""
    middle = cell.bounds[0]
    low, high = (cell.interval.low, cell.interval.high) if cell.interval is not None else cell.bounds
    return middle, max(0.0, middle - low), max(0.0, high - middle)


def _places(columns: Sequence[Column]) -> dict[Column, float]:
    """Return the positions of the columns on a logarithmic axis. Isolated tests are to the left of all spans, a step apart."""
    spans = [log2(column.span) for column in columns if not column.isolated]
    first, step = (min(spans), max(1.0, (max(spans) - min(spans)) / 5)) if spans else (0.0, 1.0)
    isolated = [column for column in columns if column.isolated]
    places = {column: first - (len(isolated) - number) * step for number, column in enumerate(isolated)}
    return places | {column: log2(column.span) for column in columns if not column.isolated}


def draw_level(axes: Axes, start: float, end: float, value: float, dashes: tuple[float, ...], scale: Transform | None = None) -> None:
    axes.plot([start, end], [value, value], color=INK, dashes=dashes, linewidth=1, transform=scale or axes.transData)


def _stairs(axes: Axes, points: Sequence[tuple[float, float]], reach: float, dashes: tuple[float, ...]) -> None:
    """Draw a level that may change from point to point. A single point gives a short line."""
    if len(points) == 1:
        draw_level(axes, points[0][0] - 0.06 * reach, points[0][0] + 0.06 * reach, points[0][1], dashes)
    else:
        axes.plot(*zip(*points, strict=True), color=INK, dashes=dashes, linewidth=1)


def line_look(style: Style) -> dict[str, Any]:
    line: dict[str, Any] = {"dashes": style.dashes} if style.dashes else {}
    return line | {"color": style.colour, "marker": style.marker, "fillstyle": style.fill, "markersize": 5.5, "clip_on": False}


# ---- legends


def _patch(text: str, looks: Mapping[str, Any]) -> Any:
    from matplotlib.patches import Patch

    return Patch(label=text, **looks)


def _patches(agents: Sequence[str], looks: Mapping[str, Style]) -> list[Any]:
    names = label_agents(agents)
    return [_patch(names[agent], _bar_look(looks[agent])) for agent in agents]


def agent_lines(agents: Sequence[str], looks: Mapping[str, Style]) -> list[Any]:
    from matplotlib.lines import Line2D

    names = label_agents(agents)
    return [Line2D([], [], label=names[agent], linewidth=1.5, **line_look(looks[agent])) for agent in agents]


def _marker(text: str, mark: str, style: Style | None = None) -> Any:
    from matplotlib.lines import Line2D

    colour, fill = (style.colour, style.fill) if style is not None else (INK, "none")
    return Line2D([], [], label=text, color=colour, marker=mark, linestyle="", fillstyle=fill, markersize=7)


def level_marks() -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], label="chance", color=INK, linewidth=1, dashes=(4, 2)),
        Line2D([], [], label="full marks", color=INK, linewidth=1, dashes=(1, 2)),
    ]


def draw_legend(figure: Figure, owner: Any, agents: Sequence[Any], others: Sequence[Any], *, above: bool = False) -> None:
    """Draw the legend below or `above` the figure, where it hides nothing even if names are long."""
    handles = [*agents, *others]
    longest = max(len(line) for handle in handles for line in str(handle.get_label()).splitlines())
    columns = min(len(handles), 4 if longest <= 14 else 3 if longest <= 22 else 2 if longest <= 44 else 1)
    end = 1.02 if above else -0.17 if owner is not figure else 0.02
    place = f"{'lower' if above else 'upper'} center"
    owner.legend(handles=handles, loc=place, bbox_to_anchor=(0.5, end), ncols=columns, fontsize=9, handlelength=2.6)
