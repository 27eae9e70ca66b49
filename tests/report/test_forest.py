"""Differences as a forest plot: of contrasts that were stated, and of all agents from any baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from longspan.simulator.pages.report.comparison import as_html
from longspan.simulator.pages.report.contrast_words import Family
from longspan.simulator.pages.report.forest import draw_forest, forests_by_baseline
from longspan.simulator.results.analysis.contrasts import Contrast, Contrasts, evaluate_contrasts
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.results.measures.comparing import Comparison, load_comparison
from tests.made_runs import made_run
from tests.report.pages import Page

SCORES = {
    "good <b>": [0.8, 0.7, 0.9, 0.8, 0.6, 0.7, 0.8, 0.8],
    "bad": [0.3, 0.4, 0.2, 0.3, 0.1, 0.4, 0.3, 0.38],
    "short": [0.1, 0.1, 0.1],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three agents, one of which has too few to show anything."""
    place = tmp_path_factory.mktemp("runs")
    for agent, scores in SCORES.items():
        for seed, score in enumerate(scores):
            made_run(place, agent, lambda scenario, number, score=score: score, seed=seed, tests=1)  # type: ignore[misc]
    return place


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return load_comparison([folder])


def test_a_contrast_is_drawn_on_an_axis_with_zero_in_its_middle(folder: Path) -> None:
    of = Contrasts(
        contrasts=[
            Contrast(agents=["bad", "good <b>"]),
            Contrast(agents=["good <b>", "short"]),
            Contrast(agents=["good <b>", "bad"], sides=1, margin=-0.05),
            Contrast(agents=["bad", "good <b>"], sides=1, margin=0.2, scenarios=["colours"]),
        ],
        correction="none",
    )
    forest = draw_forest(evaluate_contrasts(of, load_runs([folder])[0]))
    one, few, not_worse, unshown = forest.lines
    assert (one.badge, few.badge, not_worse.badge, unshown.badge) == ("lower", "too few", "not worse", "not shown")
    assert one.difference == "\N{MINUS SIGN}46.5%"
    assert one.at == pytest.approx(0.5 - 50 * 0.465 / forest.limit, abs=1e-3)
    assert one.low is not None
    assert one.high is not None
    assert 0 <= one.low < one.at < one.high < 0.5
    assert not_worse.margin == pytest.approx(0.5 - 50 * 0.05 / forest.limit)
    assert (unshown.where, one.where) == ("colours", "")


def test_every_agent_can_be_the_baseline(comparison: Comparison) -> None:
    found = forests_by_baseline(comparison)
    assert list(found) == ["good <b>", "bad", "short"]
    from_good, from_bad = (found[agent].lines for agent in ("good <b>", "bad"))
    assert [(line.agent, line.badge) for line in from_good] == [("bad", "worse"), ("short", "worse here")]
    assert (from_bad[0].agent, from_bad[0].difference) == ("good <b>", "+46%")
    one, turned = from_good[0], from_bad[0]
    assert (one.low, one.high) == (pytest.approx(1 - (turned.high or 0)), pytest.approx(1 - (turned.low or 0)))


def test_the_page_has_both_and_names_are_only_text(folder: Path, comparison: Comparison, tmp_path: Path) -> None:
    of = Contrasts(contrasts=[Contrast(agents=["good <b>", "bad"])])
    family = Family(of, evaluate_contrasts(of, load_runs([folder])[0]))
    (tmp_path / "page.html").write_text(as_html(comparison, family=family), "utf-8")
    page = Page(tmp_path / "page.html").root
    stated, *others = page.all("table", class_="forest")
    assert [cell.words for cell in stated.one("tbody").all("th")] == ["good <b> against bad"]
    assert stated.one("tbody").one("span", class_="badge").words == "higher"
    assert len(others) == 3
    assert [label.words for label in page.one("section", class_="baselines").all("label")] == ["good <b>", "bad", "short"]
