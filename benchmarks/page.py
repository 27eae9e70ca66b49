"""How fast a report's page is in Chromium: loading, searching, jumping and scrolling."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from playwright.sync_api import Page, sync_playwright

from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["measure"]

OPENINGS = 3

OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"

USED = """async () => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const tools = document.getElementById("tools").elements;
  const timed = async (action) => { const began = performance.now(); await action(); await painted(); return performance.now() - began; };
  const changed = () => tools.kind.dispatchEvent(new Event("change", { bubbles: true }));
  const search = await timed(async () => { tools.text.value = "the caliper"; changed(); await Conversations.all[0].open(); });
  tools.text.value = "";
  changed();
  document.getElementById("all-turns").open = true;
  document.getElementById("conversations").scrollIntoView();
  await painted();
  const frames = [];
  for (let frame = 0; frame < 200; frame += 1) {
    const began = performance.now();
    scrollBy(0, 300);
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - began);
  }
  frames.sort((one, other) => one - other);
  const last = [...document.querySelectorAll(".lanes use")].at(-1).dataset.turn;
  const jump = await timed(() => { location.hash = `#t-main-${last}`; });
  const story = await timed(() => { document.querySelector(".lane:last-child .value").click(); });
  return { search, jump, story, frame: frames[190] };
}"""


def measure(span: int) -> dict[str, float]:
    """Measure the report of a run of the ltm suite at `span`; times in milliseconds, the best of three.

    They are of loading, searching all of it, jumping to a turn, opening the story of a test, and the 95th percentile of frames while it is
    scrolled.
    """
    with TemporaryDirectory() as folder:
        (outcome,) = trio.run(
            lambda: play_plans(
                [plan_run(RunSettings(suite=load_suite("ltm"), span=span, seed=0, agent="oracle"), Path(folder))], pages=Report
            )
        )
        report = outcome.folder / "report.html"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            times = [_opened(browser.new_page(viewport={"width": 1280, "height": 900}), report) for _ in range(OPENINGS)]
        return {"megabytes": report.stat().st_size / 1e6} | {name: min(opening[name] for opening in times) for name in times[0]}


def _opened(page: Page, report: Path) -> dict[str, float]:
    page.goto(report.as_uri())
    times = {"opened_ms": page.evaluate(OPENED)} | {f"{name}_ms": value for name, value in page.evaluate(USED).items()}
    page.close()
    return times
