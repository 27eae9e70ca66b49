"""Figures: their content, that they are reproducible, and that any name can be drawn."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from PIL import Image

import longspan
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main, run_command
from longspan.simulator.pages.report import figures
from longspan.simulator.pages.report.comparison_tables import comparison_notes
from longspan.simulator.pages.report.figures import FIGURES, FORMATS, FigureName, Format, draw_figure, missing_figures
from longspan.simulator.pages.report.inline_svg import inline_svg
from longspan.simulator.pages.report.styles import COLOURS, MAX_LINES, MAX_WIDTH, assign_styles, label_agents, wrap_label
from longspan.simulator.results.analysis.baseline import load_fall
from longspan.simulator.results.measures.comparing import Comparison, load_comparison, load_comparisons
from tests.made_runs import interrupt, made_run

LONG = [
    "openai/gpt-4o",
    "ltm/openai/gpt-4o?memory=json&context=16k&retrieve=10",
    "ltm/openai/gpt-4o?memory=none",
    "anthropic/claude-opus?context=200k",
    "ltm/anthropic/claude-opus?memory=json&context=16k&embedder=openai/text-embedding-3-large&rewrite=true&more=very-long-values",
    "google/gemini-pro",
    "gguf//models/llama-3-70b-instruct.Q4_K_M.gguf?gpu_layers=-1",
    "notebook",
]


def compared(folder: Path, agents: list[str], spans: list[int], *, isolated: bool = False) -> Comparison:
    for place, agent in enumerate(agents):
        for span in spans:
            made_run(folder, agent, graded(place), span=span, cost=None if place else 0.01 * span)
        if isolated:
            made_run(folder, agent, graded(place), span=32_000, isolated=True, cost=0.5)
    return load_comparison([folder])


def graded(place: int) -> Callable[[str, int], float | None]:
    """Scores that fall from agent to agent. Every other agent has a test without a score."""
    return lambda scenario, number: None if (place % 2, scenario, number) == (1, "jokes", 1) else float((number + place) % 3 > place / 4)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("few"), ["one", "two"], [2_000])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("many"), LONG, [2_000, 32_000, 120_000, 200_000, 500_000], isolated=True)


def drawn(name: FigureName, comparison: Comparison) -> Figure:
    """A drawn matplotlib figure."""
    figure = Figure()
    FigureCanvasAgg(figure)
    figures.DRAWN[name](comparison, figure)
    figure.canvas.draw()
    return figure


OF_SCORES = [name for name in FIGURES if name not in ("reach", "trend")]
"""The figures of any runs; the others need facts that are asked for at many distances (`tests/scenarios/reach`), and versions."""


@pytest.mark.parametrize("name", OF_SCORES)
def test_the_same_runs_give_the_same_bytes(name: FigureName, few: Comparison) -> None:
    for format in FORMATS:
        assert draw_figure(few, name, format) == draw_figure(few, name, format)


@pytest.mark.parametrize("name", ["bars", "spans", "cost"])
def test_scores_are_drawn_as_shares(name: FigureName, tmp_path: Path) -> None:
    for span, left_out in ((2_000, ("chapterbreak",)), (32_000, ())):
        made_run(tmp_path, "one", lambda scenario, number: 0.5, span=span, left_out=left_out, cost=1.0)
    mixed = load_comparison([tmp_path])
    shares = figures.as_shares(mixed)
    assert {cell.bounds for cell in shares.cells.values()} == {(0.5, 0.5)}
    assert draw_figure(mixed, name, "svg") == draw_figure(shares, name, "svg")
    (axes,) = drawn(name, shares).axes
    assert (axes.get_ylabel(), axes.get_ylim()[1]) == ("share of full marks", pytest.approx(1.04))
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["0%", "20%"]


@pytest.mark.parametrize(("format", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_figure_has_the_requested_format_and_no_date(format: Format, begins: bytes, few: Comparison) -> None:
    content = draw_figure(few, "bars", format)
    assert content.startswith(begins)
    assert b"CreationDate" not in content
    assert b"dc:date" not in content


@pytest.mark.parametrize("name", OF_SCORES)
def test_matplotlibs_settings_do_not_change_a_figure(name: FigureName, few: Comparison) -> None:
    import matplotlib

    plain = draw_figure(few, name, "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.color": "green"}):
        assert draw_figure(few, name, "svg") == plain
        assert matplotlib.rcParams["font.size"] == 30, "and a figure does not change the settings"


@pytest.mark.parametrize("name", OF_SCORES)
@pytest.mark.parametrize("size", ["few", "many"])
def test_labels_do_not_overlap_and_the_legend_is_outside(name: FigureName, size: str, request: pytest.FixtureRequest) -> None:
    check_layout(drawn(name, request.getfixturevalue(size)))


def check_layout(figure: Figure) -> None:
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    (legend,) = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend() is not None)]
    box = legend.get_window_extent(renderer)
    for axes in figure.axes:
        inside = axes.get_window_extent(renderer)
        assert not box.overlaps(inside)
        ticks = [text for text in axes.get_xticklabels() if text.get_text() and text.get_visible()]
        texts = [text.get_window_extent(renderer) for text in (*ticks, *axes.texts)]
        assert [pair for pair in combinations(texts, 2) if pair[0].overlaps(pair[1])] == []
    entries = [text.get_window_extent(renderer) for text in legend.get_texts()]
    assert [pair for pair in combinations(entries, 2) if pair[0].overlaps(pair[1])] == []


def test_every_agent_has_a_bar_at_every_span_with_a_pale_end_for_tests_without_a_score(many: Comparison) -> None:
    (axes,) = drawn("bars", many).axes
    bars = [patch for patch in axes.patches if patch.get_width() > 0]
    solid = [bar for bar in bars if bar.get_alpha() is None]
    pale = [bar for bar in bars if bar.get_alpha() is not None]
    assert len(solid) == 8 * 6
    assert len(pale) == 4 * 6
    lows = sorted(cell.bounds[0] for cell in many.cells.values())
    assert sorted(bar.get_height() for bar in solid) == pytest.approx(lows)
    assert {round(bar.get_height(), 6) for bar in pale} == {round(1 / 3, 6)}


def test_a_run_without_a_graded_test_is_not_drawn(tmp_path: Path) -> None:
    made_run(tmp_path, "all", lambda scenario, number: 1.0)
    made_run(tmp_path, "begun", lambda scenario, number: 1.0, name="begun")
    made_run(tmp_path, "gone", lambda scenario, number: 1.0, name="gone")
    interrupt(tmp_path / "begun", graded=3)
    interrupt(tmp_path / "gone")
    comparison = load_comparison([tmp_path])
    (axes,) = drawn("bars", comparison).axes
    assert sorted(round(patch.get_height(), 6) for patch in axes.patches if patch.get_width() > 0) == [1, 10, 11]
    assert comparison.agents == ["all", "begun"]
    why = f"{tmp_path / 'gone'}: interrupted before a test was graded; `longspan resume` continues it"
    assert [each.why for each in comparison.unusable] == [why]
    assert f"Left out: {why}" in comparison_notes(comparison)
    assert (len(comparison.pairs), len(load_comparisons([tmp_path]))) == (1, 1)
    alone = f"no test is graded: {why}"
    for refused in (lambda: load_comparison([tmp_path / "gone"]), lambda: load_fall([tmp_path / "run-0"], [tmp_path / "gone"])):
        with pytest.raises(InputError, match=re.escape(alone)):
            refused()
    results = longspan.load(tmp_path)
    assert {row["agent"] for row in results.scores} == {"all", "begun"}
    assert "interrupted before a test was graded" in results.report().html


def test_a_score_of_zero_is_labelled(tmp_path: Path) -> None:
    made_run(tmp_path, "nothing", lambda scenario, number: 0.0)
    made_run(tmp_path, "all", lambda scenario, number: 1.0)
    made_run(tmp_path, "all", lambda scenario, number: 1.0, span=32_000)
    (axes,) = drawn("bars", load_comparison([tmp_path])).axes
    assert [text.get_text() for text in axes.texts] == ["0"], "one of two agents at 2k; at 32k it has no run"


@pytest.mark.parametrize("name", OF_SCORES)
def test_chance_is_drawn(name: FigureName, few: Comparison) -> None:
    figure = drawn(name, few)
    names = {text.get_text() for axes in figure.axes for legend in [axes.get_legend()] if legend for text in legend.get_texts()}
    names |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert "chance" in names
    (axes,) = figure.axes
    chance = 0.1 if name == "distance" else 11 * 0.1
    assert any(len(set(line.get_ydata())) == 1 and line.get_ydata()[0] == pytest.approx(chance) for line in axes.lines)


def test_an_agent_without_a_cost_is_in_the_legend_only(few: Comparison) -> None:
    (axes,) = drawn("cost", few).axes
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "two (cost unknown)" in texts
    assert "one" in texts
    assert len(axes.containers) == 1


@pytest.mark.parametrize("scenarios", [("colours",), ("colours", "jokes")])
def test_one_or_two_scenarios_can_be_drawn(scenarios: tuple[str, ...], tmp_path: Path) -> None:
    made_run(tmp_path, "one", graded(0), scenarios=scenarios, cost=1.0)
    comparison = load_comparison([tmp_path])
    for name in FIGURES:
        assert name in missing_figures(comparison) or draw_figure(comparison, name, "png")


# Versions.


def passing(tests: float) -> Callable[[str, int], float]:
    return lambda scenario, number: float(number <= tests)


def test_a_trend_has_a_line_for_each_span_and_a_point_for_each_version_in_the_order_of_the_first_runs(tmp_path: Path) -> None:
    commit, start = "abc1234" + "0" * 33, datetime(2026, 1, 1, tzinfo=UTC)
    versions = [(3, "v2", None), (0, None, None), (4, "v2", None), (1, "abc1234", None), (2, None, commit), (5, None, f"{commit}-dirty")]
    for day, label, agent_commit in versions:
        for span in (2_000, 32_000):
            made: dict[str, Any] = {"label": label, "agent_commit": agent_commit, "created": start + timedelta(day)}
            made_run(tmp_path, "gpt-4o", passing(day / 2), span=span, seed=day, **made)
    made_run(tmp_path, "notebook", graded(0), label="v1", created=start)
    comparison = load_comparison([tmp_path])
    assert "trend" not in missing_figures(comparison)
    figure = drawn("trend", figures.as_shares(comparison))
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["no label", "abc1234", "v2", "abc1234-dirty"]
    lines = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    assert len(lines) == 2, "the notebook has one version only"
    for line in lines:
        assert list(line[0].get_ydata()) == pytest.approx([0, 1 / 6, 1 / 2, 2 / 3]), "a label and the same commit are one version"
        ends = [segment[:, 1] for segment in line[2][0].get_segments()]
        assert all(low <= value <= high for (low, high), value in zip(ends, line[0].get_ydata(), strict=True))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["2k", "32k", "chance"]
    assert axes.get_xlabel() == "gpt-4o"
    check_layout(figure)
    assert draw_figure(comparison, "trend", "svg") == draw_figure(comparison, "trend", "svg")


def test_a_trend_of_many_versions_names_the_newest(tmp_path: Path) -> None:
    for number in range(16):
        made: dict[str, Any] = {"label": f"{number} <b>$x_{{ and words up to", "created": datetime(2026, 1, 1 + number, tzinfo=UTC)}
        made_run(tmp_path, LONG[1], lambda *test: None, scenarios=("colours",), recall=lambda *test: 0.5, **made)
        made_run(tmp_path, LONG[2], lambda *test: 0.5, scenarios=("colours",), **made)
    figure = drawn("trend", load_comparison([tmp_path]))
    names = [tick.get_text() for tick in figure.axes[-1].get_xticklabels()]
    assert (len(names), names[-1].split()[0]) == (8, "15")
    assert [axes.get_ylabel() for axes in figure.axes] == ["recall@20", "share of full marks"]
    assert [len(axes.containers) for axes in figure.axes] == [1, 1], "a memory that only searches has no score"
    assert figure.axes[-1].get_xlabel().startswith("Short names: ")
    check_layout(figure)


# Names.


def test_agents_with_the_same_model_share_its_colour_and_differ_otherwise() -> None:
    by_agent = assign_styles(LONG)
    gpt = [by_agent[agent] for agent in LONG[:3]]
    assert len({style.colour for style in gpt}) == 1
    assert len({(style.hatch, style.dashes, style.fill) for style in gpt}) == 3
    assert by_agent["openai/gpt-4o"].hatch == "", "the model alone is solid, as in the paper"
    assert assign_styles(list(reversed(LONG)))["openai/gpt-4o"].hatch == ""
    assert len({style.colour for style in by_agent.values()}) == 5
    more = assign_styles([f"vendor/model-{number}" for number in range(20)])
    assert len(set(more.values())) == 20
    assert {style.colour for style in more.values()} == set(COLOURS)


def test_labels_are_short_and_differ() -> None:
    long = "x" * 500
    assert all(len(line) <= MAX_WIDTH for line in wrap_label(long).splitlines())
    assert len(wrap_label(long).splitlines()) == MAX_LINES
    made = label_agents([f"{long}{number}" for number in range(3)])
    assert len(set(made.values())) == 3
    assert wrap_label("ltm/openai/gpt-4o?memory=json&context=16k&retrieve=10") == "ltm/openai/gpt-4o?memory=json&context=16k\n&retrieve=10"
    assert wrap_label("") == "(no name)"


HOSTILE = ["$x_{", "\\frac{1", "<script>alert(1)</script>", "--><!--", "a\x00b\x1b\u202e", "名前", "]]>", "%&'\"`", "-->\n--!><img src=x>"]


@pytest.mark.parametrize("name", OF_SCORES)
def test_any_name_can_be_drawn(name: FigureName, tmp_path: Path) -> None:
    comparison = compared(tmp_path, HOSTILE, [2_000])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = draw_figure(comparison, name, "svg", page=True)
    element = inline_svg(drawing, name, 'A <title> "quoted"')
    assert "<!--" not in element
    assert "<script" not in element.lower()
    assert "<img" not in element
    assert "style" not in element
    assert "A &lt;title&gt; &quot;quoted&quot;" in element
    assert re.findall(r'(?:xlink:)?href="([^"]*)"', element)
    assert all(href.startswith(f"#{name}-") for href in re.findall(r'(?:xlink:)?href="([^"]*)"', element))
    assert "#1d2126" not in element
    assert "currentColor" in element


# The command.


def test_one_figure_goes_into_a_file_and_all_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_run(tmp_path / "runs", "one", graded(0))
    for arguments in (["--out", f"{tmp_path}/all", "--format", "png"], ["--figure", "bars", "--out", f"{tmp_path}/one.svg"]):
        with pytest.raises(SystemExit, match="0"):
            main(["plot", f"{tmp_path}/runs", *arguments])
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["bars.png", "distance.png", "spans.png"], "no run has a price"
    assert Image.open(io.BytesIO((tmp_path / "all/bars.png").read_bytes())).width > 600
    assert (tmp_path / "one.svg").read_bytes() == draw_figure(load_comparison([tmp_path / "runs"]), "bars", "svg")
    assert capsys.readouterr().out == f"{tmp_path}/all\n{tmp_path}/one.svg\n"


def test_runs_of_different_tests_are_drawn_in_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, scenarios in (("one", ("colours", "jokes")), ("two", ("colours",))):
        made_run(tmp_path / "runs", name, graded(0), scenarios=scenarios)
    groups = list(load_comparisons([tmp_path / "runs"]))
    for arguments in (["--out", f"{tmp_path}/all"], ["--figure", "bars", "--out", f"{tmp_path}/one.svg"]):
        assert run_command(["plot", f"{tmp_path}/runs", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/{file}: {name}"
        for files in (("all/*.svg", "all/*-2.svg"), ("one.svg", "one-2.svg"))
        for file, name in zip(files, groups, strict=True)
    ]
    assert (tmp_path / "all/bars.svg").read_bytes() == (tmp_path / "one.svg").read_bytes()
    assert (tmp_path / "all/bars-2.svg").read_bytes() == (tmp_path / "one-2.svg").read_bytes() != (tmp_path / "one.svg").read_bytes()
    (tmp_path / "new-2.svg").touch()
    assert run_command(["plot", f"{tmp_path}/runs", "--figure", "bars", "--out", f"{tmp_path}/new.svg"]) == 2
    assert f"{tmp_path}/new-2.svg: already exists" in capsys.readouterr().err
    assert not (tmp_path / "new.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--figure", "bars", "--out", "x.gif"], "the name must end in .svg, .png or .pdf"),
        (["--figure", "bars", "--out", "x.svg", "--format", "png"], "the name must end in"),
        (["--out", "x.svg"], "without --figure all are drawn, into a folder"),
        (["--out", "x.gif"], "--out x.gif: figures are .svg, .png or .pdf; without --figure all are drawn, into a folder"),
        (["--figure", "pie", "--out", "x.svg"], "'pie' is not one of"),
        (["--figure", "cost", "--out", "x.svg"], "--figure cost: no run has a known cost"),
        (
            ["--figure", "trend", "--out", "x.svg"],
            "--figure trend: no agent has runs of several versions; give each version's runs a --label",
        ),
        (["--figure", "bars", "--out", "there.svg"], "already exists"),
        (["--out", "there"], "already exists"),
        (["--figure", "bars", "--out", "there.svg/x.svg"], "cannot be written"),
        ([], "Missing option '--out'"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "runs", "one", graded(0))
    (tmp_path / "there").mkdir()
    (tmp_path / "there.svg").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit, match="2"):
        main(["plot", "runs", *arguments])
    printed = capsys.readouterr()
    assert error in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert sorted(tmp_path.rglob("*")) == before, "nothing is left half-written"
