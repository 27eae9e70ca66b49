"""`longspan view` in a browser: runs are listed, opened, compared, and followed while they are played."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import expect

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.scoring import score_run
from tests.browser import PHONE, Open
from tests.report.pages import altered, journal, replying
from tests.sealing import change_json, read_lines, write_lines
from tests.view.conftest import ISOLATED, ORACLE, SILENT
from tests.view.serving import Server, serving

EVIL = (
    "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"></textarea>"
    "<a href=\"javascript:document.title = 'owned'\">javascript:alert(1)</a><style>* { display: none }</style>"
    "\nevent: damaged\ndata: {}\n\n\x00\x1b[31m\u202eevil\u2066\u2028"
)


@dataclass
class GatedRun:
    """A run whose agent waits for permission to reply: see gated_agent.py."""

    process: subprocess.Popen[str]
    pipe: int
    name: str

    def allow(self, replies: int) -> None:
        os.write(self.pipe, b"." * replies)

    def finish(self) -> None:
        self.allow(5000)
        assert self.process.wait(60) == 0


@contextmanager
def gated_run(runs: Path, folder: Path, reply: str = "OK.") -> Iterator[GatedRun]:
    """A real run, started in a process of its own."""
    os.mkfifo(folder / "pipe")
    pipe = os.open(folder / "pipe", os.O_RDWR)
    (folder / "reply").write_text(reply, "utf-8")
    agent = f"python:gated_agent:GatedAgent?pipe={folder / 'pipe'}&reply={folder / 'reply'}"
    command = ["run", "--scenario", "colours", "--tests", "2", "--agent", agent, "--out", str(runs)]
    start = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *command]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "asked\n", "a run says that it has begun once its agent has replied"
            (folder_of_run,) = runs.glob("*-gated-agent-*")
            yield GatedRun(process, pipe, folder_of_run.name)
        finally:
            process.kill()
            process.communicate()
            os.close(pipe)


def test_runs_are_listed_and_a_report_opened(visit: Open, server: Server) -> None:
    seen = visit(server.at())
    expect(seen.page.locator("tbody tr")).to_have_count(3)
    seen.picture("view-list")
    assert seen.faults() == []
    seen.page.get_by_role("link", name=ORACLE).click()
    expect(seen.page.get_by_role("heading", level=1)).to_contain_text("ltm at 2,000 tokens")
    expect(seen.page.locator("#matches")).to_have_text(re.compile(r"^\d+ turns$"))
    seen.page.locator("#all-turns > summary").click()
    seen.page.get_by_label("Search").fill("colour")
    expect(seen.page.locator("#matches")).to_have_text(re.compile(r"^\d+ of \d+ turns$"))


def test_the_list_fits_a_phone(visit: Open, server: Server) -> None:
    seen = visit(server.at(), viewport=PHONE, is_mobile=True)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(seen.page.get_by_role("link", name=ORACLE)).to_be_visible()
    expect(seen.page.locator(".agent")).to_have_count(0)  # the names tell the agents
    seen.picture("view-list-phone")


def test_runs_are_filtered(visit: Open, server: Server) -> None:
    page = visit(server.at()).page
    page.locator("select[name=agent]").select_option("silent")
    expect(page.get_by_role("status")).to_have_text("2 of 3 runs")
    page.get_by_label(f"Compare {ISOLATED}").check()
    text = page.get_by_label("Text")
    text.press_sequentially("isolated")
    expect(page.locator("tbody th")).to_have_text([ISOLATED])
    expect(page.locator("#compare")).to_have_text("Compare 1 run")  # it is still selected
    expect(text).to_be_focused()
    expect(page).to_have_url(re.compile(r"\?agent=silent&sort=changed&text=isolated$"))
    text.press_sequentially("x")
    expect(page.get_by_role("status")).to_have_text("0 of 3 runs")
    text.press("Backspace")
    expect(page.locator("tbody th")).to_have_text([ISOLATED])
    text.press("Enter")
    expect(page.locator("tbody th")).to_have_text([ISOLATED])
    expect(page.locator("select[name=agent]")).to_have_value("silent")
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("tbody tr")).to_have_count(3)


def test_selected_runs_are_compared(visit: Open, server: Server) -> None:
    seen = visit(server.at())
    compare = seen.page.locator("#compare")
    expect(compare).to_be_disabled()
    seen.page.get_by_label(f"Compare {ORACLE}").check()
    expect(compare).to_have_text("Compare 1 run")
    seen.page.get_by_label(f"Compare {SILENT}").check()
    expect(compare).to_have_text("Compare 2 runs")
    expect(compare).to_be_in_viewport()
    compare.click()
    expect(seen.page.get_by_role("heading", level=1)).to_contain_text("2 agents")
    expect(seen.page.locator("tbody").first).to_contain_text("oracle")
    seen.picture("view-compare", whole=True)
    assert seen.faults() == []
    seen.page.locator(".matrix td a").first.press("Enter")
    expect(seen.page).to_have_url(re.compile(rf"/runs/{ORACLE}/report#test-colours-1$"))
    seen.page.get_by_role("link", name="All runs").click()
    expect(seen.page).to_have_title("Runs")


def test_a_test_of_two_runs_is_shown_side_by_side(visit: Open, server: Server) -> None:
    seen = visit(server.at(f"compare?run={ORACLE}&run={SILENT}").replace("?token", "&token"))
    page = seen.page
    page.get_by_role("link", name="colours-1", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("colours-1 side by side")
    expect(page.locator(".score")).to_have_text(["● 100%", "○ 0%"])
    expect(page.locator("#parting .label").first).to_have_text("question")
    expect(page.locator("#parting .side").nth(1)).to_contain_text("OK.")
    expect(page.locator(".lane")).to_have_count(2)
    assert page.locator(".lane .arc").count() >= 2
    page.get_by_role("link", name="First difference: turn").press("Enter")
    expect(page.locator("#parting")).to_be_in_viewport()
    assert seen.faults() == []
    seen.picture("view-side", whole=True)
    page.get_by_role("combobox", name="Test").select_option("jokes-2")
    page.get_by_role("button", name="Show").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("jokes-2 side by side")


def test_runs_are_sorted_and_seeds_shown_together(visit: Open, made: Path, tmp_path: Path) -> None:
    runs = Path(shutil.copytree(made, tmp_path / "runs"))
    for seed, name in ((10, "again"), (2, "last")):
        copy = Path(shutil.copytree(made / ORACLE, runs / name))
        for file in ("manifest.json", "result.json"):
            change_json(copy / file, lambda content, seed=seed: content.update(seed=seed))
        run = RunFolder(copy)
        named = {"run": run.manifest.run_name}
        spent = {"calls": 1, "known_usd": 0.25, "cost_usd": 0.25, "again_usd": 0.0, "unanswered": 0, "possibly_usd": 0.0}
        change_json(copy / "result.json", lambda content, changed=named | {"spending": spent}: content.update(changed))
        first, *others = read_lines(run.journal("main"))
        write_lines(run.journal("main"), [first | named, *others])
    with serving(runs) as server:
        seen = visit(server.at("?seeds=each").replace("?token", "&token"))
        page = seen.page
        page.get_by_role("link", name="Score", exact=True).press("Enter")
        expect(page.locator("th[aria-sort]")).to_have_text("Score ↓")
        expect(page.locator("tbody th")).to_have_text(["again", "last", ORACLE, ISOLATED, SILENT])
        page.get_by_label("each seed in a row").uncheck()
        expect(page.locator("tbody th").filter(visible=True)).to_have_text(["ltm-2k-oracle 3 seeds", ISOLATED, SILENT])
        expect(page.locator(".mean .score")).to_contain_text("100% mean of 3")
        expect(page.locator(".mean [data-name=cost]")).to_have_text("$0.5000")
        page.get_by_label("Show the seeds of oracle").check()
        names = ["ltm-2k-oracle 3 seeds", ORACLE, "last", "again", ISOLATED, SILENT]
        expect(page.locator("tbody th").filter(visible=True)).to_have_text(names)
        page.get_by_label("Select all seeds of oracle").check()
        expect(page.locator("#compare")).to_have_text("Compare 3 runs")
        assert seen.faults() == []
        expect(page.get_by_role("link", name="Trend")).to_have_count(0)
        change_json(runs / "last" / "manifest.json", lambda content: content.update(label="v2"))
        page.goto(server.home)
        page.get_by_role("link", name="Trend").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("ltm: 3 agents")
        expect(page.locator("#figure-trend svg")).to_be_in_viewport()
        seen.picture("view-trend")
        seen.leave()


def test_all_runs_can_be_selected_at_once(visit: Open, server: Server) -> None:
    tab = visit(server.at()).page
    every, boxes = tab.get_by_label("Select all"), tab.get_by_role("checkbox", name="Compare")
    compare = tab.locator("#compare")
    every.check()
    assert [box.is_checked() for box in boxes.all()] == [True, True, True]
    expect(compare).to_be_enabled()
    boxes.first.uncheck()
    assert every.evaluate("box => [box.checked, box.indeterminate]") == [False, True]
    every.click()
    expect(every).to_be_checked()
    every.uncheck()
    assert [box.is_checked() for box in boxes.all()] == [False, False, False]
    expect(compare).to_be_disabled()


def test_a_run_is_followed_while_it_is_played(visit: Open, made: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with serving(runs) as server, gated_run(runs, tmp_path) as run:
        seen = visit(server.at())
        page = seen.page
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "0")
        expect(page.locator(".points")).to_have_text("0 of 2 tests")
        page.get_by_role("link", name="follow").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(run.name)
        turn = page.locator("#t-main-0")
        expect(turn.locator("dd").nth(1)).to_have_text("(no reply yet)")
        expect(page.locator("[data-figure=tests]")).to_contain_text("0 of 2")
        run.allow(3)
        expect(turn.locator("dd").nth(1)).to_have_text("OK.")
        expect(page.locator("#lane-colours-1")).to_have_class("lane open")
        expect(page.locator("li.waiting-turn dd").nth(1)).to_have_text("(no reply yet)")
        expect(page.locator("#state")).to_contain_text("Running")
        seen.picture("view-live", whole=True)
        assert seen.faults() == []
        other = visit(server.at(f"runs/{run.name}/live"), viewport=PHONE, is_mobile=True, color_scheme="dark")
        expect(other.page.locator("#t-main-0 dd").nth(1)).to_have_text("OK.")
        run.finish()
        for tab in (page, other.page):
            expect(tab.locator("#state")).to_have_text("Finished: the report has the results.")
            expect(tab.locator("[data-figure=tests]")).to_contain_text("2 of 2")
            expect(tab.locator("#lane-colours-1")).to_have_class("lane low")
            assert tab.locator("#lane-colours-1 .arc").count() == 1
            expect(tab.locator("[data-figure=score]")).to_contain_text("0%0.00 points of 1")
        other.page.locator("#lane-colours-1 button").click()
        expect(other.page.locator("#story .why")).to_contain_text("Needed turn ")
        other.picture("view-live-phone", whole=True)
        assert other.faults() == []
        last = max(entry["turn"] for entry in journal(runs / run.name) if entry["type"] == "message" and entry["kind"] != "filler")
        expect(page.locator(f"#t-main-{last}")).to_be_visible()
        page.get_by_role("link", name="Report").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("ltm at 2,000 tokens")
        page.goto(server.home)
        expect(page.locator("tbody td").filter(has_text="finished")).to_have_count(1)
        seen.leave()
        other.leave()


def test_a_killed_run_is_shown_as_far_as_it_went(visit: Open, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with serving(runs) as server, gated_run(runs, tmp_path) as run:
        first = visit(server.at(f"runs/{run.name}/live"))
        run.allow(1)
        expect(first.page.locator("#t-main-0 dd").nth(1)).to_have_text("OK.")
        expect(first.page.locator("li.waiting-turn")).to_have_count(1)
        run.process.kill()
        run.process.wait()
        later = visit(server.at(f"runs/{run.name}/live"))
        for seen in (first, later):
            expect(seen.page.locator("li.waiting-turn dd").nth(1)).to_have_text("(no reply yet)")
            expect(seen.page.locator("#state")).to_have_text("Stopped: no process is playing it.")
            expect(seen.page.locator("#resume .command")).to_have_text(f"longspan resume {runs / run.name}")
            seen.leave()
        listed = visit(server.at())
        expect(listed.page.locator(".state")).to_contain_text("stopped")
        expect(listed.page.locator(".points")).to_have_count(0)
        listed.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        listed.page.get_by_role("button", name="Copy").click()
        expect(listed.page.get_by_role("button", name="Copied")).to_be_visible()
        assert listed.page.evaluate("navigator.clipboard.readText()") == f"longspan resume {runs / run.name}"
        listed.leave()


def test_hostile_replies_are_only_text_while_a_run_is_followed(visit: Open, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with serving(runs) as server, gated_run(runs, tmp_path, EVIL) as run:
        run.allow(2)
        seen = visit(server.at(f"runs/{run.name}/live"))
        reply = seen.page.locator("#t-main-0 dd").nth(1)
        expect(reply).to_contain_text("</script><script>document.title = 'owned'</script><img src=x")
        expect(reply).to_contain_text("[U+0000][U+001B][31m[U+202E]evil[U+2066]")
        assert reply.locator("*").count() == 0
        run.finish()
        expect(seen.page.locator("#state")).to_contain_text("Finished")
        seen.picture("view-hostile")
        seen.page.get_by_role("link", name="Report").click()
        expect(seen.page.get_by_role("heading", level=1)).to_contain_text("ltm at 2,000 tokens")
        expect(seen.page.locator("#test-colours-1")).to_contain_text("<img src=x")
        seen.page.goto(server.home)
        expect(seen.page.locator("tbody tr")).to_have_count(1)
        expect(seen.page).to_have_title("Runs")
        seen.leave()


def test_hostile_names_are_only_text_in_the_list(visit: Open, made: Path, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)> & \"'?#%2e\u202e"
    run = RunFolder(altered(made / ORACLE, tmp_path / "first", replying("<b>")))
    score_run(run, Report)
    (tmp_path / "runs").mkdir()
    shutil.move(run.path, tmp_path / "runs" / name)
    with serving(tmp_path / "runs") as server:
        seen = visit(server.at())
        expect(seen.page.locator("tbody th")).to_have_text(name.replace("\u202e", "[U+202E]"))
        seen.page.locator("tbody th a").click()
        expect(seen.page.get_by_role("heading", level=1)).to_contain_text("ltm at 2,000 tokens")
        seen.page.go_back()
        chosen = seen.page.get_by_role("checkbox", name="Compare").input_value()
        (tmp_path / "runs" / name / "result.json").unlink()
        assert chosen == quote(name)
        assert "has no results" in server.get(f"/compare?run={quote(chosen)}").text


def test_the_token_is_sent_once_and_then_kept_in_a_cookie(visit: Open, server: Server) -> None:
    seen = visit(server.at())
    expect(seen.page.locator("tbody tr")).to_have_count(3)
    assert seen.page.url == server.home, "it does not stay in the history or in links that are shared"
    seen.page.get_by_role("link", name=ORACLE).click()
    expect(seen.page.get_by_role("heading", level=1)).to_contain_text("ltm at 2,000 tokens")


def test_the_printed_address_works_as_a_link_on_another_site(visit: Open, server: Server) -> None:
    seen = visit(server.at())
    page = seen.page
    page.context.clear_cookies()
    link = f'<a href="{server.at()}">a terminal in a browser</a>'
    page.context.route("http://other.example/", lambda route: route.fulfill(content_type="text/html", body=link))
    page.goto("http://other.example/")
    page.get_by_role("link").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    seen.requests.remove("http://other.example/")


def test_without_the_token_a_page_says_where_the_address_is(visit: Open, server: Server) -> None:
    seen = visit(server.home)
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("The token is missing")
    assert seen.faults() == []
    seen.picture("view-no-token")
    seen.complaints = [text for text in seen.complaints if "403" not in text]  # the browser's own word about the response


def test_the_table_of_tests_is_saved_as_a_file_from_the_view_too(visit: Open, server: Server, tmp_path: Path) -> None:
    tab = visit(server.at(f"runs/{ORACLE}/report"), accept_downloads=True).page
    tab.locator(".tabs a").nth(1).click()
    with tab.expect_download() as download:
        tab.locator("#tests-csv").click()
    assert download.value.suggested_filename == "tests.csv"
    download.value.save_as(tmp_path / "tests.csv")
    assert (tmp_path / "tests.csv").read_text("utf-8").startswith('"test","score","reason","distance","cause"\n"')
