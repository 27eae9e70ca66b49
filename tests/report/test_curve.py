"""The curve of recall by distance, which leads all pages about plain facts at many distances, and the lanes of facts."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from playwright.sync_api import expect

from longspan.simulator.base.document import Curve
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.report.card import draw_card
from longspan.simulator.pages.report.comparison import as_html
from longspan.simulator.pages.report.curve import lay_out
from longspan.simulator.pages.report.figures import draw_figure
from longspan.simulator.results import measures
from longspan.simulator.results.graded_runs import GradedRun, load_runs
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.browser import PHONE, Open
from tests.report.pages import Page, report
from tests.report.test_hostile_report import HOSTILE
from tests.view.serving import serving

WINDOW = "python:tests.report.windowed:Windowed"
ALL = f"{WINDOW}?tokens=1000000"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of an agent with a window of 600 tokens, and of one that recalls everything."""
    out = tmp_path_factory.mktemp("reach")
    settings = [RunSettings(suite=load_suite("reach"), span=8_000, seed=seed, agent=agent) for agent in (WINDOW, ALL) for seed in (0, 1)]
    trio.run(lambda: play_plans([plan_run(each, out) for each in settings], pages=Report))
    return out


@pytest.fixture(scope="module")
def run(runs: Path) -> GradedRun:
    (graded, *_), _ = load_runs([runs])
    assert graded.agent == WINDOW
    return graded


@pytest.fixture(scope="module")
def curve(run: GradedRun) -> Curve:
    (found,) = measures.document_run(run.manifest, run.result).curves
    return found


def test_all_questions_are_in_its_points_with_intervals(run: GradedRun, curve: Curve) -> None:
    (reach,) = run.result.reach
    assert sum(point.questions for point in curve.points) == reach.asked == 45
    assert sum(point.share * point.questions for point in curve.points) == pytest.approx(reach.recalled)
    assert curve.start is not None
    assert (curve.start.questions, curve.start.share) == (reach.at_once, 1)
    for point in (curve.start, *curve.points):
        assert 0 <= point.low <= point.share <= point.high <= 1
        assert point.high - point.low > 0.1, "an interval of a few questions is wide"
    distances = [point.distance for point in curve.points]
    assert distances == sorted(distances)


def test_its_line_falls_inside_the_band_of_the_reach(run: GradedRun, curve: Curve) -> None:
    (reach,) = run.result.reach
    assert reach.reach is not None
    assert reach.reach.tokens is not None
    assert curve.band is not None
    assert (curve.band.low, curve.band.value, curve.band.high) == (
        reach.reach.tokens.low,
        reach.reach.tokens.value,
        reach.reach.tokens.high,
    )
    (_, near), (start, before), (end, after), (_, far) = curve.fitted
    assert (near, far) == (before, after) == (reach.near.value, reach.far.value)
    assert curve.band.low <= start < end <= (curve.band.high or 0)


def test_its_axis_is_logarithmic_and_has_few_ticks(curve: Curve) -> None:
    layout = lay_out(curve)
    assert layout.start is not None
    assert 0 < layout.start.x < layout.axis < layout.points[0].x < layout.points[-1].x < 1
    places = {tick.label: tick.at for tick in layout.ticks}
    assert 2 <= len(places) <= 5
    assert all(each.counted for each in lay_out(curve._replace(start=None)).points[:1])
    assert places["1k"] - places["100"] == pytest.approx(places["100"] - places["10"])


def test_a_report_opens_on_the_sentence_and_the_curve(visit: Open, run: GradedRun, curve: Curve) -> None:
    seen = visit(run.folder.path / "report.html")
    expect(seen.page.locator(".head .result")).to_have_text(curve.sentence)
    expect(seen.page.get_by_text("Sees and uses")).to_have_count(0)
    picture = seen.page.locator(".curve.recall")
    expect(picture).to_be_in_viewport()
    expect(picture.locator(".group")).to_have_count(len(curve.points) + 1)
    for group in picture.locator(".group").all():
        box = group.locator("line").bounding_box()
        assert box is not None
        assert box["height"] > 10, "each point has an error bar"
    assert picture.locator(".count").first.text_content() == "12"
    expect(picture.locator(".limit-label")).to_have_text(re.compile(r"^reach \d+ \(\d+ to \d+\)$"))
    order = seen.page.evaluate("[...document.querySelectorAll('.curve.recall, .lanes')].map((each) => each.classList[0])")
    assert order == ["curve", "lanes"]
    assert seen.faults() == []
    seen.picture("reach-report", whole=True)


def test_a_report_has_a_lane_for_each_fact_which_tells_why(visit: Open, run: GradedRun) -> None:
    seen = visit(run.folder.path / "report.html")
    shown = seen.page.locator(".lane.fact:visible")
    expect(shown).to_have_count(16)
    seen.page.get_by_role("button", name="Show all 45").click()
    expect(shown).to_have_count(45)
    back = [int(float(text.removesuffix("k")) * (1000 if "k" in text else 1)) for text in shown.locator(".value").all_text_contents()]
    assert back == sorted(back), "by distance"
    right = shown.evaluate_all("lanes => lanes.map((lane) => lane.classList.contains('full'))")
    assert right == sorted(right, reverse=True), "a window"
    shown.last.locator(".stem").click()
    expect(seen.page.locator("#story .why")).to_have_text(re.compile("^Wrong: expected .*, the reply settles on nothing"))
    parts = dict(zip(*(seen.page.locator(f"#story .parts {tag}").all_text_contents() for tag in ("dt", "dd")), strict=True))
    assert parts.keys() == {"Asked", "Needed", "Expected", "Replied"}
    assert parts["Replied"] == "I do not know."
    assert parts["Expected"].strip(".") in parts["Needed"]
    again = visit(seen.page.url)
    expect(again.page.locator(".lane.chosen")).to_have_count(1)


def test_a_report_fits_a_phone(visit: Open, run: GradedRun) -> None:
    seen = visit(run.folder.path / "report.html", viewport=PHONE, has_touch=True, is_mobile=True)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(seen.page.locator(".curve.recall")).to_be_in_viewport()
    counts = [box for each in seen.page.locator(".curve .count").all() if (box := each.bounding_box())]
    assert all(one["x"] + one["width"] < other["x"] for one, other in pairwise(counts)), "numbers do not overlap"
    seen.picture("reach-phone", whole=True)


def test_a_comparison_leads_with_a_curve_for_each_agent_over_its_seeds(visit: Open, runs: Path, tmp_path: Path) -> None:
    comparison = load_comparison([runs])
    path = tmp_path / "comparison.html"
    path.write_text(as_html(comparison), "utf-8")
    seen = visit(path)
    assert seen.page.locator("main h2").first.text_content() == "Recall by distance"
    expect(seen.page.locator(".curve.recall")).to_have_count(2)
    expect(seen.page.locator(".curves small")).to_have_text(["at 8k, 2 runs"] * 2)
    assert [sum(point.questions for point in each.points) for each in comparison.said.curves] == [90, 90]
    ticks = [figure.locator("text").all_text_contents() for figure in seen.page.locator(".curve.recall").all()]
    assert ticks[0][:6] == ticks[1][:6], "all on the same axis"
    assert seen.faults() == []
    seen.picture("reach-comparison", whole=True)


def test_the_figure_of_files_has_counts_and_the_reach(runs: Path) -> None:
    svg = draw_figure(load_comparison([runs]), "reach", "svg").decode()
    written = re.findall(r"<!-- (.*?) -->", svg)
    assert written.count("n") == 2
    assert "10" in written
    assert any(text.startswith("reach ") for text in written)


def test_the_card_has_the_sentence_and_the_curve_in_place_of_the_score(run: GradedRun, curve: Curve) -> None:
    svg = draw_card(run, "svg").decode()
    written = re.findall(r"<!-- (.*?) -->", svg)
    assert curve.sentence in " ".join(written)
    assert curve.band is not None
    assert curve.band.label in written
    assert f"{run.result.score:.0%}" not in written
    assert f"commitment {run.manifest.commitment}" in written


def test_the_list_of_runs_has_the_result_in_place_of_the_score(visit: Open, runs: Path, curve: Curve) -> None:
    with serving(runs) as server:
        seen = visit(server.at())
        expect(seen.page.locator("svg.spark:visible")).to_have_count(2)
        expect(seen.page.locator(".seed").get_by_text(curve.brief, exact=True)).to_have_count(1)
        assert seen.faults() == []


@pytest.mark.parametrize("text", HOSTILE[:9])
def test_a_hostile_name_of_a_type_is_text(run: GradedRun, text: str) -> None:
    def named(name: str) -> Page:
        def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
            (each,) = result.reach
            return manifest, result.model_copy(update={"reach": [each.model_copy(update={"by_type": {name: each.by_type["dog"]}})]})

        return report(run.folder.path, change)

    changed = named(text)
    assert changed.root.skeleton == named("dog").root.skeleton
    assert text in [row.text for row in changed.root.walk() if row.tag == "bdi"]


def test_results_whose_questions_are_gone_have_no_curve(run: GradedRun) -> None:
    tests = [test.model_copy(update={"items": []}) for test in run.result.tests]
    page = report(run.folder.path, lambda manifest, result: (manifest, result.model_copy(update={"tests": tests})))
    assert not [element for element in page.root.walk() if element.tag == "svg" and "recall" in element.attributes.get("class", "")]


def test_other_suites_lead_with_the_score_and_have_a_lane_for_each_test(page: Page) -> None:
    classes = [element.attributes.get("class", "").split() for element in page.root.walk()]
    assert not any({"recall", "leading", "result"} & set(each) for each in classes)
    assert '"facts": true' not in page.source
    assert '"fact"' not in page.source
