"""The report of a history that is told once and asked about many times."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import expect

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import report_of, write_report
from longspan.simulator.results.analysis.export import export_runs
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.graded_runs import load_runs
from longspan.simulator.results.result import read_result
from longspan.simulator.running.dataset import export_datasets
from tests.browser import PHONE, Open
from tests.report.pages import Element, Page, data_of, journal, lanes_of, played_diaries, report
from tests.threads import in_thread

ENTRIES = 12
"""Days of each diary: every third is asked about."""

MANY = 150
"""Days of a diary with more questions than have a lane each."""


@pytest.fixture(scope="module")
def diaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two diaries with four questions about each."""
    return played_diaries(tmp_path_factory.mktemp("diaries"), ENTRIES, 2)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A diary with fifty questions about it, all unanswered."""
    return played_diaries(tmp_path_factory.mktemp("many"), MANY, 1, "silent")


def commanded(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Run a command, which leaves with this code. Return what it printed."""
    with pytest.raises(SystemExit) as leaving:
        main(list(map(str, arguments)))
    assert int(leaving.value.code or 0) == code
    return "".join(capsys.readouterr())


def test_branches_are_listed_below_their_trunk_with_their_own_turns_and_tokens(diaries: Path) -> None:
    page = report(diaries)
    sections = page.root.all("section", class_="conversation")
    assert [section.attributes["data-id"] for section in sections] == ["diary-d1", "diary-d2"]
    trunk, *branches = (data_of(page, id) for id in ("diary-d1", *sections[0].attributes["data-branches"].split()))
    assert (trunk["first"], len(trunk["turns"])) == (0, ENTRIES)
    assert [branch["id"] for branch in branches] == [f"diary-d1-q{day}" for day in range(0, ENTRIES, 3)]
    assert [(branch["first"], [turn["number"] for turn in branch["turns"]]) for branch in branches] == [(ENTRIES, [ENTRIES])] * 4
    own = sum(entry["end"] for branch in branches for entry in journal(diaries, branch["id"]) if entry["type"] == "reply")
    told = journal(diaries, "diary-d1")[-1]["tokens"]
    assert f"4 turns, {own - 4 * told:,} tokens in them" in sections[0].words
    assert sections[0].attributes["data-turns"] == str(ENTRIES + 4)
    choices = [option.text for option in page.root.one("select", name="conversation").all("option")]
    assert choices == ["all", "diary-d1", "diary-d2"]


def test_links_to_a_needle_lead_to_the_trunk(diaries: Path) -> None:
    page = report(diaries)
    links = [link.attributes["href"] for link in page.root.one("tbody", id="test-diary-d1-q3").all("a")]
    assert {"#t-diary-d1-3", f"#t-diary-d1-q3-{ENTRIES}"} <= set(links)
    assert not [link for link in links if link.startswith("#t-diary-d1-q3-") and link != f"#t-diary-d1-q3-{ENTRIES}"]


def test_a_branchs_lane_shows_its_needles_in_the_trunk(diaries: Path) -> None:
    """A panel for each history. Its tokens are the trunk's and its longest branch's together."""
    (panel,) = (panel for panel in lanes_of(report(diaries)) if panel["conversation"] == "diary-d2")
    told_tokens = journal(diaries, "diary-d2")[-1]["tokens"]
    total = max(journal(diaries, f"diary-d2-q{day}")[-1]["tokens"] for day in range(0, ENTRIES, 3))
    assert (panel["tokens"], panel["told"]) == (total, [[0, told_tokens]])
    needle = next(entry for entry in journal(diaries, "diary-d2") if entry.get("turn") == 6)
    (lane,) = (lane for lane in panel["lanes"] if lane["id"] == "diary-d2-q6")
    assert [mark[:3] for mark in lane["marks"]] == [[6, needle["start"], "needle"], [ENTRIES, told_tokens, "question"]]
    assert [arc[:2] for arc in lane["arcs"]] == [[6, ENTRIES]]


def test_of_more_questions_than_have_a_lane_each_there_is_a_row_for_each_kind_which_opens(visit: Open, many: Path) -> None:
    page = report(many)
    tab = visit(many / "report.html").page
    kinds = tab.locator(".kind")
    expect(kinds.locator(".name")).to_have_text(["first (1)", "later (49)"])
    expect(kinds.locator(".value")).to_have_text(["0/1", "0/49"])
    assert kinds.locator("use.needle").count() == 50
    expect(tab.locator(".lane")).to_have_count(0)
    kinds.nth(1).locator("button").click()
    expect(tab.locator(".lane")).to_have_count(49)
    tab.locator(".lane").nth(3).locator(".value").click()
    expect(tab.locator("#story .why")).to_contain_text("Needed turn ")
    kinds.nth(1).locator("button").click()
    expect(tab.locator(".lane:visible")).to_have_count(0)
    linked = visit(f"{(many / 'report.html').as_uri()}#lane-diary-d1-q60").page
    expect(linked.locator("#lane-diary-d1-q60.chosen")).to_be_in_viewport()
    assert len(page.root.all("section", class_="conversation")) == 1
    assert "in the 51 journals under conversations" in page.root.one("p", id="no-script").words


def test_kinds_have_a_table_and_what_does_not_count_is_marked(diaries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = report(diaries)
    rows = [
        [cell.words for cell in row.inside if isinstance(cell, Element)]
        for row in page.root.one("table", **{"aria-labelledby": "kinds"}).all("tr")
    ]
    assert rows[0] == ["Kind", "Score", "", "Chance", "Tests", "Evidence found in 1"], "the notebook reads one"
    assert rows[1] == ["first", "100%", "", "0%", "2", "100%"]
    assert rows[2] == ["later 2 not in the score", "100%", "", "0%", "6", "100%"]
    marks = {day: page.root.one("tbody", id=f"test-diary-d1-q{day}").one("small", class_="tags").words for day in (0, 3, 6)}
    assert marks == {0: "first", 3: "later, not in the score", 6: "later"}
    assert "2 tests are graded and shown, but not in the score." in page.root.one("main").words
    printed = [" ".join(line.split()) for line in commanded(capsys, "score", diaries).splitlines()]
    assert {"kind score tests evidence found among first 1", "later (2 not in the score) 100% 6 100%"} <= set(printed)
    assert "2 of 8 tests are graded, but not in the score" in printed


def test_a_test_is_printed_with_its_needles_in_the_history(diaries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = commanded(capsys, "show", diaries, "diary-d2-q9")
    assert re.search("turn 9, .* 2023 .*needle.*turns of the history.*turn 12, .* 2024 .*question", printed, re.DOTALL)
    refused = commanded(capsys, "show", diaries, "diary-d2", code=2)
    assert "is a history and is not graded; show a test about it, such as diary-d2-q0" in refused


def test_branches_of_a_damaged_trunk_are_left_out_and_said(diaries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunFolder(Path(shutil.copytree(diaries, tmp_path / "run")))
    path = run.journal("diary-d1")
    path.write_text(path.read_text("utf-8").replace("boat9", "boat8"), "utf-8")
    printed = commanded(capsys, "score", run.path, "--before-damage", "--trust")
    assert re.search("the journal of diary-d1 is damaged at line [0-9]+: .*, and its 4 branches are left out", printed)
    assert Counter(test.status for test in read_result(run).tests) == {"unfinished": 4, "scored": 4}


def test_exports_have_each_turn_once_and_name_the_trunk(diaries: Path, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    graded, _ = load_runs([diaries])
    for format in ("jsonl", "inspect"):
        assert export_runs(graded, format, tmp_path / format) == []
    turns = [json.loads(line) for line in (tmp_path / "jsonl" / "turns.jsonl").read_text("utf-8").splitlines()]
    places = Counter((turn["conversation"], turn["turn"]) for turn in turns)
    assert set(places.values()) == {1}
    assert len(places) == 2 * (ENTRIES + 4)
    assert all(turn["reply"] for turn in turns)
    (log,) = (tmp_path / "inspect").iterdir()
    sample = next(sample for sample in in_thread(lambda: read_eval_log(str(log))).samples or [] if sample.id == "diary-d2-q6")
    assert [message.id for message in sample.messages if message.role == "user"] == ["diary-d2-6-user", f"diary-d2-q6-{ENTRIES}-user"]
    export_datasets(graded, tmp_path / "dataset")
    (rows,) = (tmp_path / "dataset").rglob("expected.jsonl")
    trunks = {row["test"]: row["trunk"] for row in map(json.loads, rows.read_text("utf-8").splitlines())}
    assert (trunks["diary-d1"], trunks["diary-d1-q3"], trunks["diary-d2-q0"]) == (None, "diary-d1", "diary-d2")


def test_turns_are_found_by_their_number_in_a_branch_or_its_trunk(visit: Open, diaries: Path) -> None:
    """By links, by the field for turns, by search and filters, and by playing a branch back after its trunk."""
    run = RunFolder(diaries)
    seen = visit(f"{write_report(run, grade_run(run)).as_uri()}#t-diary-d2-q6-{ENTRIES}")
    tab = seen.page
    target = tab.locator(".turn.target")
    expect(target).to_have_attribute("id", f"t-diary-d2-q6-{ENTRIES}")
    expect(target).to_be_in_viewport()
    target.get_by_role("link", name="#6").click()
    expect(target).to_have_attribute("id", "t-diary-d2-6")
    tab.evaluate("location.hash = '#t-diary-d2-q9-3'")
    expect(target).to_have_attribute("id", "t-diary-d2-3")
    tools = tab.locator("#tools")
    tools.get_by_label("Test").select_option("diary-d1-q3")
    expect(tab.locator("#matches")).to_have_text("2 of 32 turns")
    expect(tab.locator(".turns .turn")).to_have_count(2)
    assert tab.locator(".turns .turn").evaluate_all("turns => turns.map(({ id }) => id)") == ["t-diary-d1-3", f"t-diary-d1-q3-{ENTRIES}"]
    tools.get_by_label("Turn", exact=True).fill(str(ENTRIES))
    tools.get_by_role("button", name="Go").click()
    expect(target).to_have_attribute("id", f"t-diary-d1-q3-{ENTRIES}")
    tools.get_by_label("Turn", exact=True).fill("99")
    tools.get_by_role("button", name="Go").click()
    expect(tab.locator("#matches")).to_have_text(f"No such turn: turns of diary-d1-q3 are numbered from 0 to {ENTRIES}.")
    tools.get_by_label("Test").select_option("all tests")
    tools.get_by_role("searchbox").fill("What colour is boat9")
    expect(tab.locator("#hits")).to_have_text("hit 1 of 2")
    expect(tab.locator(".branches mark.current")).to_be_in_viewport()
    tab.get_by_label("Branch at its end").select_option("diary-d1-q9")
    expect(tab.locator("#play-where")).to_have_text(re.compile(f"^Turn {ENTRIES} of {ENTRIES}, .*; 1 test open$"))
    tab.get_by_role("button", name="Previous turn").click()
    expect(tab.locator("#play-turn dd").first).to_contain_text(f"Page {ENTRIES - 1}")
    tab.locator("#lane-diary-d2-q3 .value").click()
    expect(tab.locator("#story .parts")).to_contain_text("Page 3")
    tab.locator(".tabs a").nth(1).click()
    tab.locator("#test-kind").select_option("first")
    tab.locator("#only-all").check()
    expect(tab.locator("tbody.test:visible")).to_have_count(2)
    expect(tab.locator("#test-place")).to_have_text("2 of 8 tests")
    tab.locator("#test-kind").select_option("all kinds")
    tab.locator("#test-diary-d1-q9 summary").first.click()
    tab.locator("#test-diary-d1-q9 details.whole summary").click()
    expect(tab.locator("#test-diary-d1-q9 .whole .turn dd").first).to_contain_text("Page 9")
    seen.picture("report-branches", whole=True)
    assert seen.faults() == []


def test_of_a_history_too_long_for_a_page_it_has_what_tests_need(
    visit: Open, diaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(diaries)
    monkeypatch.setattr("longspan.simulator.pages.report.MAX_TOLD", 2 * ENTRIES * len("Page 1: boat1 is shade1.Noted.") // 2)
    path = tmp_path / "report.html"
    path.write_text("".join(report_of(run, grade_run(run))), "utf-8")
    page = Page(path)
    assert [turn["number"] for turn in data_of(page, "diary-d1")["turns"]] == [*range(0, ENTRIES, 3)]
    assert len(data_of(page, "diary-d1-q3")["turns"]) == 1
    assert "The journals have all of them" in page.root.one("p", id="kept").words
    tab = visit(f"{path.as_uri()}#t-diary-d1-q3-3").page
    expect(tab.locator(".turn.target")).to_have_attribute("id", "t-diary-d1-3")
    expect(tab.locator("#matches")).to_have_text("16 turns")
    tab.get_by_label("Turn", exact=True).fill("4")
    tab.get_by_role("button", name="Go").click()
    expect(tab.locator("#matches")).to_have_text("That turn is not in this page; see conversations/diary-d1/journal.jsonl.")


def test_many_branches_fit_a_phone(visit: Open, many: Path) -> None:
    run = RunFolder(many)
    seen = visit(write_report(run, grade_run(run)), viewport=PHONE, has_touch=True, is_mobile=True)
    tab = seen.page
    tab.locator("#all-turns > summary").click()
    tab.locator("#tools select[name=kind]").select_option("question")
    expect(tab.locator(".branches summary")).to_have_count(50)
    tab.locator(".branches summary").nth(20).tap()
    expect(tab.locator(".branches .turn dd").first).to_contain_text("What colour is boat60?")
    seen.picture("report-branches-phone")
    assert seen.faults() == []
