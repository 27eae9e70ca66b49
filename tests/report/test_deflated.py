"""Long conversations are deflated in a report: it can still be read and searched, and a browser that cannot says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from longspan.simulator.grading.grades import grade_run
from longspan.simulator.report import excerpts, write_report
from longspan.simulator.run_folder import RunFolder
from tests.browser import Open
from tests.report.pages import Page, altered, data_of, question, replying

TEXT = "größer 名前 🦔 </script><!-- \u2028 bone"


def test_it_is_read_and_searched_all_the_same(
    woven: Path, tmp_path: Path, visit: Open, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = question(woven)
    run = RunFolder(altered(woven, tmp_path, replying(TEXT, number)))
    plain = data_of(Page(write_report(run, grade_run(run))))
    monkeypatch.setattr(excerpts, "DEFLATED_FROM", 10)
    path = write_report(run, grade_run(run))
    assert 'type="application/json"' not in path.read_text("utf-8")
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
