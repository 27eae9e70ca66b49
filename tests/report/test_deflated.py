"""Long conversations, and what very many tests fold, are deflated in a report: it can still be read and searched, and a browser that
cannot says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import folded, write_report
from longspan.simulator.results.gradebook.gradebook import grade_run
from tests.browser import Open
from tests.report.pages import Page, altered, data_of, played_diaries, question, replying

TEXT = "größer 名前 🦔 </script><!-- \u2028 bone"


def test_it_is_read_and_searched_all_the_same(
    woven: Path, tmp_path: Path, visit: Open, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = question(woven)
    run = RunFolder(altered(woven, tmp_path, replying(TEXT, number)))
    plain = data_of(Page(write_report(run, grade_run(run))))
    monkeypatch.setattr("longspan.simulator.pages.report.DEFLATED_FROM", 10)
    path = write_report(run, grade_run(run))
    assert path.read_text("utf-8").count('type="application/json"') == 1, "the lanes are short"
    assert data_of(Page(path)) == plain
    tab = visit(f"{path.as_uri()}#t-main-{number}").page
    expect(tab.locator(f"#t-main-{number} dd").last).to_have_text(plain["turns"][number]["reply"])
    tab.get_by_role("searchbox").fill("größer 名前")
    expect(tab.locator("#hits")).to_have_text(re.compile("hit 1 of "))
    expect(tab.locator("#no-script")).to_be_hidden()

    old = browser.new_page()
    old.add_init_script("delete window.DecompressionStream")
    old.goto(f"{path.as_uri()}#t-main-{number}")
    expect(old.locator("#no-script")).to_contain_text("This browser is too old to show the turns. They are also in the run's folder")
    old.close()


def opened(tab: Tab) -> str:
    """The table of tests with all rows open, as the browser has it."""
    tab.locator("tbody.test summary").first.wait_for(state="attached")
    tab.evaluate("() => { for (const opener of document.querySelectorAll('details.opener')) opener.open = true; }")
    expect(tab.locator("tbody.test > tr.more")).to_have_count(tab.locator("tbody.test").count())
    html: str = tab.locator("table.tests").evaluate("table => table.outerHTML")
    return re.sub(r">\s+<", "><", html)


def test_rows_of_very_many_tests_fold_the_same_as_data(
    mixed: Path, tmp_path: Path, visit: Open, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By mouse, by key, by a link and on paper they are what they are in a page that has them as they are."""
    run = RunFolder(altered(mixed.parent, tmp_path, replying(TEXT, question(mixed.parent))))
    result = grade_run(run)
    plain = visit(write_report(run, result)).page
    expected = opened(plain)
    monkeypatch.setattr(folded, "FOLDED_FROM", 10)
    path = write_report(run, result)
    page = Page(path)
    assert page.root.all("tr", class_="more") == []
    assert "größer" in expected
    seen = visit(path)
    tab = seen.page
    expect(tab.locator("#no-rows")).to_be_hidden()
    tab.locator(".tabs a").nth(1).click()
    tab.locator("#only-all").check()
    row = tab.locator("#test-colours-1")
    row.locator("summary").first.focus()
    tab.keyboard.press("Enter")
    expect(row.locator("dd.reply").first).to_be_visible()
    expect(row.locator("dd.reply").last).to_have_text(TEXT)
    assert opened(tab) == expected
    assert seen.faults() == []

    failed = [f"test-{test.id}" for test in result.tests if test.score != 1]
    paper = visit(path).page
    expect(paper.locator("#no-rows")).to_be_hidden()
    paper.pdf()
    assert paper.locator("tbody:has(> .more)").evaluate_all("tests => tests.map(({ id }) => id)") == failed
    linked = visit(f"{path.as_uri()}#{failed[0]}").page
    expect(linked.locator(f"#{failed[0]} .questions")).to_be_visible()
    expect(visit(path, java_script_enabled=False).page.locator("#no-rows")).to_contain_text("Opening a test needs JavaScript")
    old = browser.new_page()
    old.add_init_script("delete window.DecompressionStream")
    old.goto(f"{path.as_uri()}#failures")
    expect(old.locator("#no-rows")).to_be_visible()
    old.close()


def test_what_rows_repeat_takes_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred questions about a diary: a page has what their rows fold in a tenth of the room."""
    run = RunFolder(played_diaries(tmp_path, 600, 1))
    result = grade_run(run)
    small = Page(write_report(run, result))
    monkeypatch.setattr(folded, "FOLDED_FROM", 10**9)
    large = Page(write_report(run, result))
    held = sum(len(row) for row in re.findall(r'<tr role="row" class="more">.*?</tr>\s*</tbody>', large.source, re.DOTALL))
    assert held > 300_000
    assert len(small.root.one("div", id="folded").text) < held / 10
    assert len(small.source) < len(large.source) - 0.9 * held
