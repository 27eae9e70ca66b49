"""What an agent that never stops talking does to a report: how long it takes to open, and how long its table of tests is."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report, write_report
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["AGENT", "measure"]

AGENT = "python:benchmarks._wordy:Wordy"
SCREEN: ViewportSize = {"width": 1280, "height": 800}
OPENINGS = 7

OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
SCREENS = "document.querySelector('section[aria-labelledby=tests]').getBoundingClientRect().height / innerHeight"


def measure(span: int) -> dict[str, float]:
    """Measure the report of a run of the ltm suite at `span`, and the report of the same run without its turns, opened alternately.

    `cpu` is the CPU time of the page's main thread and `wall` the time until it was loaded, in milliseconds, the best of some
    openings; `screens` is the height of the tests, none of them open, in windows of 1280 x 800.
    """
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        settings = RunSettings(suite=load_suite("ltm"), span=span, seed=0, agent=AGENT)
        (outcome,) = trio.run(lambda: play_plans([plan_run(settings, Path(folder))], pages=Report))
        report, empty = outcome.folder / "report.html", _without_turns(outcome.folder, Path(folder) / "empty")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        times = [(_opened(browser, report), _opened(browser, empty)) for _ in range(OPENINGS)]
        full, bare = ({name: min(opening[name] for opening in each) for name in each[0]} for each in zip(*times, strict=True))
        ratios = {f"{name} / empty": full[name] / bare[name] for name in ("cpu", "wall")}
        return {"megabytes": report.stat().st_size / 1e6} | full | {f"empty: {name}": value for name, value in bare.items()} | ratios


def _without_turns(run: Path, copy: Path) -> Path:
    """Return the report of a copy of a run that has played nothing."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "conversations")
    return write_report(RunFolder(copy), grade_run(RunFolder(copy)))


def _opened(browser: Browser, report: Path) -> dict[str, float]:
    page = browser.new_page(viewport=SCREEN)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(report.as_uri())
    metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
    found = {"cpu": 1000 * metrics["TaskDuration"], "wall": page.evaluate(OPENED), "screens": page.evaluate(SCREENS)}
    page.close()
    return found
