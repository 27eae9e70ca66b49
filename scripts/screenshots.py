"""Make the pictures in docs/pictures: play small runs offline with the reference agents, and take screenshots of the pages.

python -m scripts.screenshots [NAME...]
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio
from PIL import Image
from playwright.sync_api import Browser, Error, Page
from scripts import results
from scripts.docs_outputs import files
from scripts.memory_curves import PICTURE, measure, picture
from tests.browser import chromium
from tests.loopback import Server
from tests.scenarios.cream.judges import by_sentences
from tests.scenarios.cream.judges import lines as summaries
from tests.view.serving import serving

from longspan.scenarios.cream.arena_page import as_html as arena_page
from longspan.scenarios.cream.arena_result import Rules
from longspan.scenarios.cream.evaluate import judge_and_rank
from longspan.scenarios.cream.summaries import gather_summaries
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.report.card import draw_card
from longspan.simulator.pages.report.comparison import as_html as comparison_page
from longspan.simulator.pages.report.figures import draw_figure
from longspan.simulator.results.graded_runs import GradedRun, load_runs
from longspan.simulator.results.measures.comparing import compare_runs, load_comparison
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["FOLDER", "PICTURES", "WINDOW", "Studio"]

FOLDER: Final = Path(__file__).parents[1] / "docs/pictures"

WINDOW: Final = (1200, 760)

TRIES: Final = 4
"""How often a picture is asked for, at most."""

COLOURS: Final = 96
"""Colours that are left of a screenshot."""

SPAN: Final = 32_000

SUMMARIES: Final = {
    "monday": {
        "long": "Anna leads the project. The budget grew by five. The next meeting is on Friday. Everybody was in good spirits.",
        "short": "Anna leads the project. The budget grew by five.",
        "vague": "A project was talked about. The budget grew by five. Nobody minded.",
    },
    "friday": {
        "long": "Ben takes over from Anna. The launch is moved to May. Two people are hired.",
        "short": "The launch is moved to May.",
        "vague": "The launch is moved to May. Somebody is hired. It rained.",
    },
}
"""What three systems wrote about two meetings, for the arena."""


HIDE: Final = """home => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(home, "/home/ada");
}"""
"""Replaces the folder that everything is made in, whose name is another each time."""


@dataclass(frozen=True)
class Studio:
    """A browser, the folder that everything is made in, and the span of the runs in tokens."""

    browser: Browser
    folder: Path
    span: int = SPAN

    def run(self, agent: str, seed: int = 0, suite: str = "ltm", change: Sequence[str] = ()) -> Path:
        """The folder of a run, which is played the first time."""
        settings = RunSettings(suite=load_suite(suite).apply_changes(list(change), [], [], None), span=self.span, seed=seed, agent=agent)
        planned = plan_run(settings, self.folder / "runs")
        if not (planned.out / planned.name).exists():
            trio.run(partial(play_plans, pages=Report), [planned])
        return planned.out / planned.name

    @contextmanager
    def page(self, address: str | Path) -> Iterator[Page]:
        width, height = WINDOW
        context = self.browser.new_context(viewport={"width": width, "height": height})
        page = context.new_page()
        page.goto(address.as_uri() if isinstance(address, Path) else address)
        yield page
        context.close()

    def shot(self, page: Page, heading: str | None = None) -> bytes:
        """What a page's window shows, from the heading with this id on, with few colours."""
        if heading is not None:
            page.evaluate("id => document.getElementById(id).scrollIntoView()", heading)
        page.evaluate(HIDE, str(self.folder))
        found, content = Image.open(io.BytesIO(_taken(page))), io.BytesIO()
        found.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(content, "png", optimize=True)
        return content.getvalue()


def _taken(page: Page) -> bytes:
    """A screenshot. Chromium on a busy machine has no frame to give now and then, and has one when it is asked again."""
    for _ in range(TRIES - 1):
        with suppress(Error):
            return page.screenshot(animations="disabled")
    return page.screenshot(animations="disabled")


# ---- a run


def reach(studio: Studio) -> bytes:
    """Two agents of docs/start/reach.md: one keeps its last 20 messages, the other all."""
    runs = _forgetful(studio, "reach", {"20": [0], "100000": [0]})
    return draw_figure(compare_runs(runs), "reach", "svg")


def trend(studio: Studio) -> bytes:
    """The first of these agents, as if the number of messages that it keeps were changed from version to version."""
    versions = {"6": "v1", "20": "v1.1", "60": "v1.2", "200": "v2"}
    runs = [
        replace(run, manifest=run.manifest.model_copy(update={"agent": spec, "label": versions[keeps]}))
        for run in _forgetful(studio, "trend", dict.fromkeys(versions, range(4)))
        for spec, _, keeps in [run.manifest.agent.partition("?keeps=")]
    ]
    return draw_figure(compare_runs(runs), "trend", "svg")


def _forgetful(studio: Studio, name: str, played: Mapping[str, Iterable[int]]) -> list[GradedRun]:
    """Play the agent of docs/start/reach.md. `played` has the seeds by the number of messages that it keeps."""
    (studio.folder / "forgetful.py").write_text(files()["forgetful.py"].content, "utf-8")
    settings = RunSettings(suite=load_suite("reach"), span=8_000, agent="silent")
    with chdir(studio.folder):
        specs = [({"agent": f"python:forgetful:Forgetful?keeps={keeps}"}, seed) for keeps, seeds in played.items() for seed in seeds]
        plans = [plan_run(settings.model_copy(update=spec | {"seed": seed}), studio.folder / name) for spec, seed in specs]
        trio.run(play_plans, plans)
    return load_runs([studio.folder / name])[0]


def card(studio: Studio) -> bytes:
    (graded,), _ = load_runs([studio.run("notebook")])
    return draw_card(graded, "svg")


def report(studio: Studio) -> bytes:
    with studio.page(studio.run("notebook") / "report.html") as page:
        page.locator("#story .parts").wait_for()
        return studio.shot(page)


def memory(studio: Studio) -> bytes:
    with studio.page(f"{(studio.run('notebook') / 'report.html').as_uri()}#memory") as page:
        return studio.shot(page)


def timeline(studio: Studio) -> bytes:
    with studio.page(studio.run("notebook") / "report.html") as page:
        page.get_by_role("slider").fill("21000")
        page.locator("#moment summary").click()
        return studio.shot(page)


def tests(studio: Studio) -> bytes:
    with studio.page(f"{(studio.run('notebook') / 'report.html').as_uri()}#failures") as page:
        page.locator("#test-colours-1 summary").first.click()
        return studio.shot(page)


# ---- several runs


def compare(studio: Studio) -> bytes:
    runs = [studio.run(agent, seed) for agent in ("oracle", "notebook", "silent") for seed in (0, 1)]
    path = studio.folder / "comparison.html"
    path.write_text(comparison_page(load_comparison(runs)), "utf-8")
    with studio.page(path) as page:
        return studio.shot(page)


def runs(studio: Studio) -> bytes:
    for agent in ("oracle", "notebook", "silent"):
        studio.run(agent)
    with played(studio), serving(studio.folder / "runs") as server, studio.page(server.at()) as page:
        return studio.shot(page)


def side_by_side(studio: Studio) -> bytes:
    one, other = (studio.run(agent).name for agent in ("oracle", "notebook"))
    with serving(studio.folder / "runs") as server, studio.page(server.at()) as page:
        page.goto(f"{server.home}side-by-side?run={one}&run={other}&test=colours-1")
        return studio.shot(page)


def live(studio: Studio) -> bytes:
    with played(studio) as name, serving(studio.folder / "runs") as server, studio.page(server.at(f"runs/{name}/live")) as page:
        page.locator(".turn").first.wait_for()
        return studio.shot(page)


@contextmanager
def played(studio: Studio) -> Iterator[str]:
    """The name of a run that looks as if it were being played: its journal ends somewhere, and it is locked."""
    run = RunFolder(studio.run("notebook", seed=2))
    for made in ("report.html", "result.json"):
        (run.path / made).unlink(missing_ok=True)
    journal = run.journal("main")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    with run.lock():
        yield run.path.name
    shutil.rmtree(run.path)


def annotate(studio: Studio) -> bytes:
    run = studio.run("oracle", suite="summhay", change=["documents=20", "words=100", "subtopics=1"])
    with serving(run.parent) as server, studio.page(server.at(f"runs/{run.name}/annotate")) as page:
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("radio").first.check()
        return studio.shot(page)


def arena(studio: Studio) -> bytes:
    os.environ.setdefault("OPENAI_API_KEY", "none is needed")
    found = gather_summaries([summaries(studio.folder / "summaries.jsonl", SUMMARIES)])
    rules = Rules(metric="completeness", facts=16, orders=100)
    with Server(reply=by_sentences).running() as server:
        result = trio.run(lambda: judge_and_rank(found, rules, server.model(), AnswerStore.create(studio.folder / "arena")))
    path = studio.folder / "arena.html"
    path.write_text(re.sub(r"\?base_url=\S*temperature=0", "", arena_page(result)), "utf-8")
    with studio.page(path) as page:
        return studio.shot(page)


PICTURES: Final[dict[str, Callable[[Studio], bytes]]] = {
    "card.svg": card,
    "reach.svg": reach,
    "trend.svg": trend,
    PICTURE.name: lambda studio: picture(measure(studio.folder)),
    results.PICTURE.name: lambda _: results.make_pages()[results.PICTURE],
    **{f"{made.__name__}.png": made for made in (report, memory, timeline, tests, compare, runs, live, side_by_side, annotate, arena)},
}
"""What makes each picture, by its file."""


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, chromium() as browser:
        studio = Studio(browser, Path(folder))
        for name in names or PICTURES:
            (FOLDER / name).write_bytes(PICTURES[name](studio))


if __name__ == "__main__":
    main(sys.argv[1:])
