"""The report of a run in a browser, opened from disk."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from playwright.sync_api import Page as Tab
from playwright.sync_api import ViewportSize, expect

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report, write_report
from longspan.simulator.results.analysis.spreadsheet import write_csv
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.browser import LAPTOP, PHONE, Open, Visit
from tests.report.pages import Page as PlainPage
from tests.report.pages import altered, data_of, journal, question, replying


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run at a span of 500k with an agent whose replies are long."""
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "name_list", "shopping", "spy_meeting"], 3)
    out = tmp_path_factory.mktemp("long")
    (outcome,) = trio.run(
        lambda: play_plans(
            [plan_run(RunSettings(suite=suite, span=500_000, seed=0, agent="python:benchmarks._wordy:Wordy"), out)], pages=Report
        )
    )
    assert outcome.result is not None
    assert outcome.result.tokens > 1_300_000
    return outcome.folder / "report.html"


@pytest.fixture
def tab(visit: Open, mixed: Path) -> Tab:
    tab = visit(mixed).page
    tab.locator("#all-turns > summary").click()
    return tab


def failures(tab: Tab) -> None:
    """Go to the table of tests, and show all of them."""
    tab.locator(".tabs a").nth(1).click()
    tab.locator("#only-all").check()


def spoken(report: Path, kind: str) -> list[int]:
    """The numbers of the turns of a kind."""
    return [entry["turn"] for entry in journal(report.parent) if entry["type"] == "message" and entry["kind"] == kind]


def turns(tab: Tab) -> list[int]:
    """The numbers of the turns that are rendered."""
    ids = tab.locator(".turns .turn").evaluate_all("items => items.map((item) => item.id)")
    return [int(id.rpartition("-")[2]) for id in ids]


SCROLL = """async () => {
    document.getElementById("all-turns").open = true;
    document.getElementById("tools").scrollIntoView();
    await new Promise(requestAnimationFrame);
    let [most, y] = [0, document.querySelector(".turns").getBoundingClientRect().top + scrollY];
    for (let n = 0; n < 10; n++) {
        scrollTo(0, y += 400);
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll(".turns .turn").length);
    }
    return most;
}"""
"""Scrolls through the conversation and returns how many turns were rendered for it, at most."""


def test_a_run_of_more_than_a_million_tokens_opens_and_scrolls_with_little_more_work_than_a_short_one(
    visit: Open, long: Path, mixed: Path
) -> None:
    """Ratios in one browser: fifty times the text takes a few times as long to open, and the rendered part does not grow with it."""
    opened: dict[Path, list[float]] = {long: [], mixed: []}
    elements = {}
    for report in (mixed, long) * 4:
        seen = visit(report)
        expect(seen.page.locator("#matches")).to_have_text(re.compile(r"^[\d,]+ turns$"))
        opened[report].append(seen.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        elements[report] = seen.page.evaluate("document.querySelectorAll('*').length")
    size = long.stat().st_size / mixed.stat().st_size
    played = [(report.parent / "conversations" / "main" / "journal.jsonl").stat().st_size for report in (long, mixed)]
    assert played[0] > 50 * played[1], "of the report, scripts and styles are the same"
    assert min(opened[long]) < size / 2 * min(opened[mixed])
    assert elements[long] < 5 * elements[mixed]
    assert seen.page.evaluate("document.documentElement.offsetHeight") < 3 * 900, "the conversation is folded at first"
    count = int((seen.page.locator("#matches").text_content() or "").removesuffix(" turns").replace(",", ""))
    assert 0 < seen.page.evaluate(SCROLL) < count / 2


def test_it_opens_without_a_fault(visit: Open, mixed: Path) -> None:
    seen = visit(mixed)
    expect(seen.page.get_by_role("heading", level=1)).to_contain_text("notebook ltm at 2,000 tokens")
    expect(seen.page.locator("#matches")).to_have_text(re.compile(r"^\d+ turns$"))
    expect(seen.page.locator("#story .why")).not_to_be_empty()
    for number, view in enumerate(("conversation", "failures", "statistics")):
        seen.page.locator(".tabs a").nth(number).click()
        expect(seen.page.locator(".view:visible")).to_have_id(view)
        expect(seen.page.locator(".tabs [aria-current]")).to_have_count(1)
        seen.picture(f"report-{view}", whole=True)
        assert seen.faults() == [], view
    seen.page.go_back()
    expect(seen.page.locator(".view:visible")).to_have_id("failures")


def test_it_fits_a_phone(visit: Open, mixed: Path) -> None:
    seen = visit(mixed, viewport=PHONE, has_touch=True, is_mobile=True)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    seen.picture("report-phone", whole=True)
    lane = seen.page.locator(".lane").last
    lane.locator(".drawing").tap()
    expect(lane.locator("#story .why")).to_be_visible()
    assert "#t-" not in seen.page.url, "a tap tells the story and stays"
    lane.locator("#story .parts a").first.tap()
    expect(seen.page.locator(".turn.target")).to_be_in_viewport()
    seen.picture("report-phone-turn")
    assert seen.faults() == []


def test_it_prints_the_result_the_scenarios_and_what_failed_and_the_conversation_on_request(visit: Open, mixed: Path) -> None:
    seen = visit(mixed)
    short = len(seen.page.pdf())
    seen.page.emulate_media(media="print")
    for hidden in ("#tools", "nav", "#play-at", "#play", "#conversations", ".choice", "#tests-tools"):
        expect(seen.page.locator(hidden)).to_be_hidden()
    tests = grade_run(RunFolder(mixed.parent)).tests
    failed = [test.score != 1 for test in tests]
    assert True in failed
    assert False in failed
    assert [seen.page.locator(f"#test-{test.id} .questions").is_visible() for test in tests] == failed
    visible = seen.page.locator(".reason").evaluate_all("reasons => reasons.map((reason) => reason.checkVisibility())")
    assert sum(visible) == sum(failed)
    seen.picture("report-print", whole=True)
    seen.page.emulate_media(media="null")
    seen.page.locator("#all-turns > summary").click()
    seen.page.get_by_label("Print the conversation").check()
    assert len(seen.page.pdf()) > short
    assert turns(seen.page) == [entry["turn"] for entry in journal(mixed.parent) if entry["type"] == "message"]


def test_without_scripts_the_essentials_are_there(visit: Open, mixed: Path) -> None:
    seen = visit(mixed, java_script_enabled=False)
    result = grade_run(RunFolder(mixed.parent))
    for test in result.tests:
        expect(seen.page.locator(f"#test-{test.id}")).to_contain_text(" ".join(test.reason.split()))
    for scripted in ("#tools", "#tests-tools", "#timeline"):
        expect(seen.page.locator(scripted)).to_be_hidden()
    expect(seen.page.locator("#no-script")).to_contain_text("conversations/main/journal.jsonl")
    seen.page.locator("#only-all").check()
    seen.page.locator("#test-colours-1 summary").first.click()
    expect(seen.page.locator("#test-colours-1 .questions")).to_be_visible()
    seen.page.locator("#only-low").check()
    failed = [test.id for test in result.tests if test.score is not None and test.score <= test.chance]
    shown = seen.page.locator(".tests .test:visible")
    assert shown.evaluate_all("tests => tests.map((test) => test.id)") == [f"test-{id}" for id in failed]


def test_search_finds_text_and_marks_it(tab: Tab, mixed: Path) -> None:
    message = next(entry for entry in journal(mixed.parent) if entry.get("test") == "jokes-1" and entry["type"] == "message")
    words = message["text"].split()[-6:]
    tab.get_by_label("Search").fill("  ".join(words).upper())
    expect(tab.locator("#matches")).to_have_text(re.compile(r"^\d+ of \d+ turns$"))
    first = tab.locator(f"#t-main-{message['turn']}")
    expect(first.locator("mark").first).to_have_text(" ".join(words))
    assert 0 < len(turns(tab)) < 10
    first.locator("a").first.click()
    expect(first).to_have_class(re.compile("target"))
    tab.get_by_label("Search").fill("(.*)+$[")
    expect(tab.locator("#matches")).to_have_text(re.compile(r"^0 of \d+ turns$"))
    expect(tab.locator("section.conversation")).to_be_hidden()


def test_search_finds_text_in_collapsed_filler(tab: Tab, mixed: Path) -> None:
    filler = next(e for e in journal(mixed.parent) if e["type"] == "message" and e["kind"] == "filler" and len(e["text"]) > 400)
    wanted = " ".join(filler["text"][300:340].split())
    tab.get_by_label("Search").fill(wanted)
    shown = tab.locator(f"#t-main-{filler['turn']}")
    expect(shown.locator("summary mark")).to_have_text(wanted)
    expect(shown.locator("dd mark.current")).to_have_text(re.compile(re.escape(wanted).replace("\\ ", r"\s+")))
    expect(shown.locator("dd mark.current")).to_be_in_viewport()


def test_search_goes_from_hit_to_hit(tab: Tab, mixed: Path) -> None:
    said = [text for turn in data(mixed)["turns"] for text in (turn["text"], turn["reply"])]
    count = sum(text.lower().count("colour") for text in said)
    assert count > 3
    search, hits = tab.get_by_label("Search"), tab.locator("#hits")
    search.fill("colour")
    expect(hits).to_have_text(f"hit 1 of {count}")
    expect(tab.locator("mark.current")).to_be_in_viewport()
    first = tab.locator("mark.current").evaluate("mark => mark.closest('.turn').id")
    for _ in range(count - 1):
        search.press("Enter")
    expect(hits).to_have_text(f"hit {count} of {count}")
    expect(tab.locator("mark.current")).to_be_in_viewport()
    tab.get_by_role("button", name="Next hit").click()
    expect(hits).to_have_text(f"hit 1 of {count}")
    assert tab.locator("mark.current").evaluate("mark => mark.closest('.turn').id") == first
    search.press("Shift+Enter")
    expect(hits).to_have_text(f"hit {count} of {count}")


SETTLE = """async (target) => {
    let [top, still] = [0, 0];
    while (still < 20) {
        await new Promise(requestAnimationFrame);
        const now = Math.round(target.getBoundingClientRect().top);
        [top, still] = [now, now === top ? still + 1 : 0];
    }
    const covering = [...document.querySelectorAll(".top, .tabs, #tools")].map((part) => part.getBoundingClientRect().bottom);
    return [Math.round(Math.max(...covering)), top, innerHeight];
}"""
"""Waits until an element stays where it is. Returns the lower edge of what covers the window's top, the element's top, and the window's
height."""


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_every_way_to_a_turn_ends_with_the_turn_in_view(visit: Open, long: Path, size: ViewportSize) -> None:
    """Turn 50 begins a list: the list above it gets its real height only after the first scroll."""
    address = "#t-main-50"
    opened = visit(f"{long.as_uri()}{address}", viewport=size).page
    changed = visit(long, viewport=size).page
    changed.evaluate("address => { location.hash = address }", address)
    entered = visit(long, viewport=size).page
    entered.locator("#all-turns > summary").click()
    entered.get_by_label("Turn", exact=True).fill("50")
    entered.get_by_label("Turn", exact=True).press("Enter")
    for way, tab in {"opened": opened, "changed": changed, "entered": entered}.items():
        expect(tab.locator(".turn.target")).to_have_id(address[1:])
        covered, top, height = tab.locator(".turn.target").evaluate(SETTLE)
        assert covered <= top < height, way
    search = entered.get_by_label("Search")
    search.fill("colour")
    expect(entered.locator("#hits")).to_have_text(re.compile("^hit 1 of "))
    for _ in range(3):
        search.press("Shift+Enter")
        covered, top, height = entered.locator("mark.current").evaluate(SETTLE)
        assert covered <= top < height, "search"


def test_the_head_does_not_cover_a_test_that_is_gone_to_on_a_phone(visit: Open, mixed: Path) -> None:
    tab = visit(mixed, viewport=PHONE).page
    tab.locator(".tabs a").nth(1).click()
    tab.get_by_role("button", name="Next failed").click()
    covered, top, height = tab.locator("tbody.test:has(summary:focus)").evaluate(SETTLE)
    assert 0 < covered <= top < height


def test_a_reader_who_scrolls_is_not_pulled_back_to_the_turn(visit: Open, long: Path) -> None:
    tab = visit(f"{long.as_uri()}#t-main-350").page
    expect(tab.locator(".turn.target")).to_have_id("t-main-350")
    places = tab.evaluate("""async () => {
        const frames = async () => { for (let n = 0; n < 5; n++) await new Promise(requestAnimationFrame); };
        const places = [];
        for (const input of [new Event("nothing"), new WheelEvent("wheel")]) {
            Views.keepInView(document.querySelector(".turn.target"));
            document.body.dispatchEvent(input);
            scrollTo({ top: 0, behavior: "instant" });
            document.querySelector(".top").style.paddingBottom = `${100 + places.length}px`;
            await frames();
            places.push(scrollY);
        }
        return places;
    }""")
    assert places[0] > 1000, "the layout changed, so the page went back to the turn"
    assert places[1] == 0


def test_a_lane_stays_in_place_when_its_needle_opens_what_was_said_above_it(visit: Open, mixed: Path) -> None:
    tab = visit(mixed, viewport={"width": 900, "height": 800}).page
    lane = tab.locator(".lane").first
    expect(tab.locator("#story .why")).not_to_be_empty()
    before = lane.evaluate("lane => lane.getBoundingClientRect().top")
    lane.locator("use.needle").first.dispatch_event("click")
    expect(tab.locator("#moment")).to_be_visible()
    assert lane.evaluate("lane => lane.getBoundingClientRect().top") == pytest.approx(before, abs=1)


def test_tests_that_failed_are_gone_through_by_key_but_not_while_typing(tab: Tab, mixed: Path) -> None:
    order = tab.locator(".tests .test:not(.full)").evaluate_all("tests => tests.map((test) => test.id)")
    assert len(order) > 1
    for id in [*order, order[0]]:
        tab.keyboard.press("n")
        expect(tab.locator(f"#{id} summary:focus")).to_be_in_viewport()
        expect(tab.locator(f"#{id} .questions")).to_be_visible()
        assert tab.url.endswith(f"#{id}")
    tab.keyboard.press("p")
    assert tab.url.endswith(f"#{order[-1]}")
    tab.locator(".tabs a").first.click()
    tab.get_by_label("Search").press("n")
    expect(tab.locator("#hits")).to_have_text(re.compile("hit 1 of "))
    tab.go_back()
    assert tab.url.endswith(f"#{order[-1]}")
    tab.get_by_label("keys:").uncheck()
    tab.keyboard.press("n")
    assert tab.url.endswith(f"#{order[-1]}"), "single keys can be turned off (WCAG 2.2, 2.1.4)"
    tab.locator(f"#{order[0]} .self").focus()
    expect(tab.locator(f"#{order[0]} .self")).to_have_css("opacity", "1")


def test_a_test_shows_all_that_was_said_when_it_is_asked_for(tab: Tab, mixed: Path) -> None:
    failures(tab)
    test = tab.locator("#test-jokes-1")
    test.locator(".grounds").click()
    test.get_by_text("All turns:").click()
    own = [turn for turn in data(mixed)["turns"] if turn.get("test") == "jokes-1"]
    expect(test.locator(".whole .turn")).to_have_count(len(own))
    expect(test.locator(".whole dd").first).to_have_text(own[0]["text"], use_inner_text=True)


def test_the_conversation_is_played_back(visit: Open, mixed: Path) -> None:
    """A turn shows everything that the traces told up to it, even if nothing comes into view twice."""
    seen = visit(mixed, reduced_motion="reduce")
    tab, read = seen.page, data(mixed)
    turns = read["turns"]
    slider = tab.get_by_role("slider")
    slider.press("Home")
    expect(tab.locator("#play-where")).to_contain_text(f"Turn 0 of {len(turns) - 1}")
    expect(tab.get_by_label("Speed")).to_have_value("0.5")
    recalled = next(turn for turn in turns if turn.get("memory", {}).get("read"))
    slider.focus()
    slider.fill(str(turns[recalled["number"] - 1]["at"]))
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^Turn {recalled['number']} of "))
    expect(tab.locator("#play-turn dd").first).to_have_text(recalled["text"], use_inner_text=True)
    sources = [turn for memory in recalled["memory"]["read"] for turn in memory["turns"]]
    expect(tab.locator("#play-read li a[href^='#t-']")).to_have_text([f"#{turn}" for turn in sources])
    stored = sum(len(turn.get("memory", {}).get("written", [])) for turn in turns[: recalled["number"] + 1])
    expect(tab.locator("#play-stored p").first).to_contain_text(f"{stored} memories")
    now = [test["id"] for test in read["tests"] if test["first"] <= recalled["number"] <= test["last"]]
    expect(tab.locator("#play-tests a")).to_have_text(now)
    tab.get_by_text("The agent's memory at this turn").click()
    expect(tab.locator("#play-stored p").first).to_be_visible()
    tab.get_by_label("Speed").select_option("10")
    tab.locator("#play-kind").select_option("questions")
    tab.get_by_role("button", name="Play", exact=True).click()
    expect(tab.get_by_role("button", name="Pause")).to_be_visible()
    last = [turn["number"] for turn in turns if "question" in turn["kinds"]][-1]
    expect(tab.locator("#play-turn a").first).to_have_text(f"#{last}")
    expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()
    seen.picture("report-playback")


def data(report: Path) -> dict[str, Any]:
    return data_of(PlainPage(report))


MARKDOWN = """# Title
Some *soft* and **hard** words, `co<de>` and [a place](javascript:owned).
- one
  - **two**
1. first

> quoted <img src=x onerror=alert(1)>

| a | b |
| - | - |
| 1 | <b>2</b> |

```
<script>alert(1)</script>
```
***both*** 2 * 3 * 4 snake_case_name **open
"""


def test_replies_are_shown_as_rendered_markdown_on_request(visit: Open, woven: Path, tmp_path: Path) -> None:
    answered = question(woven)
    run = RunFolder(altered(woven, tmp_path, replying(MARKDOWN, answered)))
    seen = visit(f"{write_report(run, grade_run(run)).as_uri()}#t-main-{answered}")
    reply = seen.page.locator(f"#t-main-{answered} dd.reply")
    assert reply.inner_text() == MARKDOWN
    seen.page.locator("#tools").get_by_label("Markdown").check()
    found = {tag: reply.locator(tag).all_inner_texts() for tag in ("em", "strong", "code", "ul > li", "ol > li", "blockquote", "td", "pre")}
    assert found["em"] == ["soft", "both"]
    assert found["strong"] == ["hard", "two", "both"]
    assert found["code"] == ["co<de>", "<script>alert(1)</script>"]
    assert [item.split("\n")[0] for item in found["ul > li"] + found["ol > li"]] == ["one", "two", "first"]
    assert found["blockquote"] == ["quoted <img src=x onerror=alert(1)>"]
    assert found["td"] == ["1", "<b>2</b>"]
    expect(reply).to_contain_text("a place (javascript:owned)")
    expect(reply).to_contain_text("2 * 3 * 4 snake_case_name **open")
    assert reply.locator("a, img, script, b").count() == 0
    seen.picture("report-markdown")
    failures(seen.page)
    seen.page.locator("#test-colours-1 .grounds").click()
    expect(seen.page.locator("#test-colours-1 dd.reply strong").first).to_have_text("hard")
    widths = seen.page.locator("#test-colours-1 dd.reply th").evaluate_all("cells => cells.map((cell) => cell.offsetWidth)")
    assert widths[0] < 60, "what the page says of its own tables does not reach into a reply"
    seen.page.locator("#tests-tools").get_by_label("Markdown").uncheck()
    assert seen.page.locator("#test-colours-1 dd.reply").inner_text() == MARKDOWN


NESTED = (
    "*a",
    "**a *b ",
    "> ",
    "- ",
    "  - a\n",
    "[",
    "![a](",
    "`",
    "``a`",
    "_a_",
    "|-",
    "a|\n-|\n",
    "~~~\n",
    "\\",
    "* * ",
    "1. ",
    "***",
    "# ",
    "[a](b)",
)


def test_markdown_that_is_made_to_take_long_takes_linear_time(visit: Open, woven: Path) -> None:
    tab = visit(report_path(woven)).page
    took = """([unit, size]) => {
        const text = unit.repeat(size / unit.length);
        const times = [0, 1, 2].map(() => { const began = performance.now(); Markdown.render(text); return performance.now() - began; });
        return Math.min(...times);
    }"""

    def slow(unit: str) -> bool:
        short, long = tab.evaluate(took, [unit, 20_000]), tab.evaluate(took, [unit, 80_000])
        return bool(long > 10 and long > 10 * short)

    found = [unit for unit in NESTED if slow(unit) and slow(unit) and slow(unit)]
    assert found == [], "four times the text takes sixteen times as long where the time is quadratic"


def report_path(folder: Path) -> Path:
    return write_report(RunFolder(folder), grade_run(RunFolder(folder)))


def test_turns_are_filtered_by_kind_and_by_test(tab: Tab, mixed: Path) -> None:
    shown = tab.locator(".turns .turn")
    tab.locator("#tools").scroll_into_view_if_needed()
    tab.get_by_label("Show").select_option("questions")
    expect(tab.locator("#matches")).to_contain_text(f"{len(spoken(mixed, 'question'))} of ")
    expect(shown).to_have_count(len(spoken(mixed, "question")))
    assert turns(tab) == spoken(mixed, "question")
    tab.locator("select[name=test]").select_option("colours-1")
    expect(shown).to_have_count(1)
    tab.get_by_label("Show").select_option("all turns")
    own = [entry["turn"] for entry in journal(mixed.parent) if entry["type"] == "message" and entry.get("test") == "colours-1"]
    expect(shown).to_have_count(len(own))
    assert turns(tab) == own


def test_going_to_a_turn_ignores_filters(tab: Tab, mixed: Path) -> None:
    last = max(spoken(mixed, "filler"))
    tab.get_by_label("Show").select_option("questions")
    tab.get_by_label("Turn", exact=True).fill(str(last))
    tab.get_by_label("Turn", exact=True).press("Enter")
    turn = tab.locator(f"#t-main-{last}")
    expect(turn).to_be_in_viewport()
    expect(turn).to_be_focused()
    expect(turn.locator("dd").first).to_be_visible()
    expect(tab.get_by_label("Show")).to_have_value("")
    tab.get_by_label("Turn", exact=True).fill("99999")
    tab.get_by_role("button", name="Go").click()
    expect(tab.locator("#matches")).to_have_text(re.compile("No such turn: turns of main are numbered from 0 to "))


def test_links_lead_from_a_test_to_its_turns_and_back(tab: Tab) -> None:
    failures(tab)
    test = tab.locator("#test-shopping-1")
    test.locator("summary").first.click()
    link = test.locator("dl.facts a").first
    number = link.inner_text().lstrip("#")
    link.click()
    turn = tab.locator(f"#t-main-{number}")
    expect(turn).to_be_in_viewport()
    turn.get_by_role("link", name="shopping-1").first.click()
    expect(test.locator(".questions")).to_be_visible()
    expect(test.locator(".opener summary")).to_be_in_viewport()
    tab.go_back()
    expect(turn).to_be_in_viewport()
    tab.locator("#tools").scroll_into_view_if_needed()
    tab.goto(f"{tab.url.partition('#')[0]}#t-main-0")
    expect(tab.locator("#t-main-0")).to_be_in_viewport()


def test_one_of_several_conversations_can_be_selected(visit: Open, isolated: Path) -> None:
    write_report(RunFolder(isolated), grade_run(RunFolder(isolated)))
    seen = visit(isolated / "report.html")
    expect(seen.page.locator("section.conversation")).to_have_count(2)
    seen.page.locator("#all-turns > summary").click()
    seen.page.locator("select[name=conversation]").select_option("colours-2")
    expect(seen.page.locator("section.conversation:not([hidden]) h3")).to_have_text(["colours-2"])
    failures(seen.page)
    seen.page.locator("#test-colours-1 .grounds").click()
    seen.page.locator("#test-colours-1 dl.facts a").first.click()
    expect(seen.page.locator("#c-colours-1")).to_be_visible()
    expect(seen.page.locator(".target")).to_have_attribute("id", re.compile("^t-colours-1-"))
    seen.picture("report-isolated")
    assert seen.faults() == []


def hostile(visit: Open, woven: Path, folder: Path) -> Visit:
    text = (
        "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"></textarea>"
        "<a href=\"javascript:document.title = 'owned'\">javascript:alert(1)</a><style>* { display: none }</style>"
        "<meta http-equiv=refresh content='0; url=http://127.0.0.1:9/'><!--<script>\x00\x1b[31m\u202eevil\u2066\u2028"
    )
    run = RunFolder(altered(woven, folder, replying(text)))
    return visit(f"{write_report(run, grade_run(run)).as_uri()}#t-main-1")


def test_a_hostile_reply_is_only_text(visit: Open, woven: Path, tmp_path: Path) -> None:
    seen = hostile(visit, woven, tmp_path)
    shown = seen.page.locator("#t-main-1 dd").nth(1)
    expect(shown).to_contain_text("</script><script>document.title = 'owned'</script><img src=x")
    expect(shown).to_contain_text("[U+0000][U+001B][31m[U+202E]evil[U+2066]")
    assert shown.locator("*").count() == 0
    seen.page.get_by_label("Search").fill("<img src=x")
    expect(seen.page.locator("#t-main-1 mark")).to_have_text("<img src=x")
    expect(seen.page).to_have_title(re.compile("^ltm at"))
    seen.picture("report-hostile")


def test_a_script_that_was_added_to_it_does_not_run(visit: Open, mixed: Path, tmp_path: Path) -> None:
    changed = tmp_path / "report.html"
    added = "<script>document.title = 'owned'</script><p onclick=\"document.title = 'owned'\" id=here>here</p></main>"
    changed.write_text(mixed.read_text("utf-8").replace("</main>", added), "utf-8")
    seen = visit(changed)
    seen.page.locator("#here").click()
    expect(seen.page).to_have_title(re.compile("^ltm at"))
    assert len(seen.complaints) == 2
    assert all("Content Security Policy" in complaint for complaint in seen.complaints)
    seen.complaints.clear()


def test_the_table_of_tests_is_downloaded_without_formulas_as_other_csv_is(visit: Open, mixed: Path) -> None:
    tab = visit(mixed).page
    failures(tab)
    texts = ["=a", "＝a", "\x01=a", "\u200b＋a", '"=a', "a;=b", "a; ＠b", ';"-b', "-5", "-0.25", "-5;a", "2 - 3; 4 = 4"]
    file = io.StringIO()
    write_csv(file, ["reason"], [{"reason": text} for text in texts])
    expected = [row[0] for row in csv.reader(io.StringIO(file.getvalue(), newline=""))][1:]
    found = []
    tab.evaluate("() => { URL.createObjectURL = (blob) => { window.made = blob; return '#'; }; }")
    for text in texts:
        tab.evaluate("text => { document.querySelector('.tests > .test > tr:first-child .reason').textContent = text; }", text)
        tab.locator("#tests-csv").click()
        rows = list(csv.reader(io.StringIO(tab.evaluate("window.made.text()"), newline="")))
        found.append(rows[1][2])
    assert found == expected


def test_the_table_of_tests_is_saved_as_a_file(visit: Open, mixed: Path, tmp_path: Path) -> None:
    tab = visit(mixed, accept_downloads=True).page
    failures(tab)
    with tab.expect_download() as download:
        tab.locator("#tests-csv").click()
    assert download.value.suggested_filename == "tests.csv"
    download.value.save_as(tmp_path / "tests.csv")
    header, *rows = csv.reader(io.StringIO((tmp_path / "tests.csv").read_text("utf-8"), newline=""))
    assert header == ["test", "score", "reason", "distance", "cause"]
    assert len(rows) == tab.locator(".tests > .test").count()
