"""The timeline of a run: its lanes, and what became of each needle, against the journal."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.timeline import grade_of
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.measures.memory_losses import LOST, OUTCOMES
from tests.browser import PHONE, Open
from tests.report.pages import Page, altered, journal, lanes_of, played, replying, report
from tests.report.test_memory_losses import SCENARIOS, by_hand


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which some questions were asked of the wrong memories."""
    return played(tmp_path_factory.mktemp("lossy"), *SCENARIOS, agent="notebook", tests=1)


def lane(page: Page, test: str) -> dict[str, Any]:
    (found,) = (lane for panel in lanes_of(page) for lane in panel["lanes"] if lane["id"] == test)
    return found


def test_each_test_has_a_lane_with_its_turns_at_their_tokens(woven: Path, page: Page) -> None:
    entries = journal(woven)
    total = next(entry for entry in entries if entry["type"] == "close")["tokens"]
    (panel,) = lanes_of(page)
    assert (panel["conversation"], panel["tokens"]) == ("main", total)
    for test in grade_run(RunFolder(woven)).tests:
        own = [entry for entry in entries if entry["type"] == "message" and entry.get("test") == test.id and entry["kind"] != "farewell"]
        shown = lane(page, test.id)
        kinds = ["question" if entry["kind"] == "question" else "needle" if entry["needle"] else "line" for entry in own]
        assert [mark[:3] for mark in shown["marks"]] == [
            [entry["turn"], entry["start"], kind] for entry, kind in zip(own, kinds, strict=True)
        ]
        assert {mark[3] for mark in shown["marks"] if mark[2] == "question"} == {"full"}
        assert (shown["grade"], shown["score"], shown["group"]) == ("full", 1.0, test.scenario)


def test_filler_and_watched_turns_are_bands(woven: Path, page: Page) -> None:
    entries = journal(woven)
    messages = [entry for entry in entries if entry["type"] == "message"]
    ends = {entry["turn"]: entry["end"] for entry in entries if entry["type"] == "reply"}
    (panel,) = lanes_of(page)
    filler = sum(ends[entry["turn"]] - entry["start"] for entry in messages if entry["kind"] == "filler")
    assert sum(end - start for start, end in panel["filler"]) == filler
    watched = next(entry for entry in entries if entry["type"] == "end" and entry["test"] == "prospective_memory-1")["watched"]
    assert lane(page, "prospective_memory-1")["watched"] == [[messages[watched[0]]["start"], ends[watched[-1]]]]


def test_clock_jumps_cross_all_lanes(woven: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        place = next(i for i, entry in enumerate(entries) if entry["type"] == "message" and entry["turn"] == 3)
        entries.insert(place, {"type": "jump", "test": "colours-1", "to": "2024-03-05T06:07:00"})
        for number, entry in enumerate(entries):
            entry["seq"] = number

    page = report(altered(woven, tmp_path, change))
    message = next(entry for entry in journal(woven) if entry["type"] == "message" and entry["turn"] == 3)
    assert [panel["jumps"] for panel in lanes_of(page)] == [[message["start"]]]


def test_a_test_with_its_own_conversation_has_a_lane_of_its_length(isolated: Path) -> None:
    (panel,) = lanes_of(report(isolated))
    assert panel["conversation"] is None
    assert sorted(lane["conversation"] for lane in panel["lanes"]) == ["colours-1", "colours-2"]
    for shown in panel["lanes"]:
        total = next(entry for entry in journal(isolated, shown["id"]) if entry["type"] == "close")["tokens"]
        assert (shown["tokens"], shown["grade"]) == (total, "low")


def test_a_test_that_was_not_started_has_no_lane(isolated: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(isolated, folder)
    shutil.rmtree(folder / "conversations")
    page = report(folder)
    assert lanes_of(page) == []
    assert "2 tests were not started." in page.root.one("section", id="conversation").words


@pytest.mark.parametrize(
    ("score", "chance", "grade"), [(1, 0, "full"), (1, 1, "full"), (0.5, 0.2, "part"), (0.2, 0.2, "low"), (0, 0, "low"), (None, 0, "none")]
)
def test_a_grade_compares_a_score_with_chance(score: float | None, chance: float, grade: str) -> None:
    assert grade_of(score, chance) == grade


def retrieved_instead(folder: Path) -> set[tuple[int, int]]:
    """The turns that were read for questions that lack a needle, with these, from the journal's lines: at most three for a question."""
    numbers, said, own, found = {}, {}, {}, set()
    for entry in journal(folder):
        if entry["type"] == "message":
            numbers[entry["turn_id"]], said[entry["turn"]] = entry["turn"], entry
            own.setdefault(entry.get("test"), set()).update(entry.get("needs") or [])
    for entry in journal(folder):
        if entry["type"] != "reply":
            continue
        message = said[entry["turn"]]
        if message["kind"] != "question":
            continue
        needs, trace = set(message.get("needs") or []), entry.get("trace") or {}
        read = list(dict.fromkeys(numbers[turn] for memory in trace.get("read", []) for turn in memory["turns"]))
        if "read" in trace and needs - set(read):
            found |= {(turn, entry["turn"]) for turn in [turn for turn in read if turn not in own[message["test"]]][:3]}
    return found


@pytest.mark.parametrize("agent", ["notebook", "silent", "python:tests.report.forgetful:Hollow", "python:tests.report.forgetful:Recent"])
def test_its_sums_are_those_of_the_journal(visit: Open, tmp_path: Path, agent: str) -> None:
    """Of the arcs by scenario and fate, of the legend, and of what a browser draws."""
    folder = played(tmp_path, *SCENARIOS, agent=agent, tests=1)
    expected = by_hand(folder)
    page = report(folder)
    lanes = [lane for panel in lanes_of(page) for lane in panel["lanes"]]
    assert Counter((lane["group"], arc[4]) for lane in lanes for arc in lane.get("arcs", [])) == expected
    fates = Counter(dict.fromkeys({fate for _, fate in expected}, 0))
    for (_, fate), number in expected.items():
        fates[fate] += number
    legend = page.root.one("ul", **{"aria-label": "Outcomes of the needles that questions needed"})
    told = {item.attributes["data-fate"]: item.words for item in legend.all("li") if "data-fate" in item.attributes}
    assert told == {fate: f"{number} {OUTCOMES[fate]}" for fate, number in fates.items()}
    instead = {(arc[0], arc[1]) for lane in lanes for arc in lane.get("instead", [])}
    if agent == "notebook":
        assert instead == retrieved_instead(folder)
        assert instead
        assert LOST & {fate for _, fate in expected}

    tab = visit(folder / "report.html").page
    expect(tab.locator(".lane")).to_have_count(len(lanes))
    classes = tab.locator(".lanes .arc").evaluate_all("arcs => arcs.map((arc) => arc.getAttribute('class').split(' ')[1])")
    assert Counter(classes) == Counter({f"fate-{fate}": number for fate, number in fates.items()}) + Counter(instead=len(instead))
    ends = tab.locator(".lanes .arc:not(.instead)").evaluate_all(
        "arcs => arcs.map((arc) => [Number(arc.dataset.turn), Number(arc.dataset.question)])"
    )
    needs = [
        [needle, entry["turn"]]
        for entry in journal(folder)
        if entry["type"] == "message" and entry["kind"] == "question"
        for needle in entry.get("needs") or []
    ]
    assert sorted(ends) == sorted(needs)
    box = tab.locator(".lanes .arc").first.evaluate(
        "arc => { const { width, height } = arc.getBoundingClientRect(); return [width, height]; }"
    )
    assert min(box) > 0, "an arc has a width and a height"


def test_a_lane_is_as_high_as_what_it_draws(visit: Open, mixed: Path) -> None:
    tab = visit(mixed).page
    heights = tab.locator(".lane").evaluate_all(
        "lanes => lanes.map((lane) => [lane.offsetHeight, lane.querySelector('.drawing').getBoundingClientRect().height])"
    )
    assert all(row == drawing for row, drawing in heights)


def test_a_lane_tells_why_its_test_failed(visit: Open, lossy: Path) -> None:
    """The sentence, what was needed, retrieved, expected and replied, with words marked, and links that lead there."""
    page = report(lossy)
    shown = next(lane for panel in lanes_of(page) for lane in panel["lanes"] if lane.get("instead"))
    sentence, number = shown["story"]["sentence"], shown["story"]["question"]
    needed, instead = shown["story"]["needed"], shown["story"]["retrieved"]
    assert f"eeded turn{'s' if len(needed) > 1 else ''} {needed[0]}" in sentence
    assert "instead" in sentence
    said = {entry["turn"]: " ".join(entry["text"].split()) for entry in journal(lossy) if entry["type"] == "message"}
    replied = {entry["turn"]: " ".join(entry["text"].split()) for entry in journal(lossy) if entry["type"] == "reply"}
    seen = visit(lossy / "report.html")
    tab, story = seen.page, seen.page.locator("#story")
    expect(story.locator("p").first).to_contain_text("Opened first: of 2 tests that are not right, the ")
    tab.locator(f"#lane-{shown['id']} .value").click()
    expect(tab).to_have_url(re.compile(rf"#lane-{shown['id']}$"))  # so that the address leads here again
    expect(story.locator("h3")).to_contain_text(shown["id"])
    expect(story.locator(".why")).to_have_text(sentence)
    parts = story.locator(".parts")
    expect(parts.locator("dd").nth(1)).to_contain_text(said[needed[0]][:60])
    expect(parts.locator("dt")).to_contain_text(["Asked", "Needed", "Found"])
    expect(parts.get_by_role("link", name=f"#{instead[0]}", exact=True)).to_be_visible()
    expect(parts.locator(".reply")).to_contain_text(replied[number][:60])
    assert tab.locator(".lane.chosen").count() == 1
    for width in (1440, 1024, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        expect(story.locator(".why")).to_be_visible()
        inside = tab.locator(f"#lane-{shown['id']} #story")
        expect(inside, "beside the lanes, or in its own where there is no room").to_have_count(int(width < 1120))
        assert not tab.evaluate("document.documentElement.scrollWidth > innerWidth")
    seen.picture("report-story")
    parts.get_by_role("link", name=f"#{needed[0]}", exact=True).first.click()
    expect(tab.locator(f"#t-main-{needed[0]}")).to_be_in_viewport()
    linked = visit(f"{(lossy / 'report.html').as_uri()}#lane-{shown['id']}").page
    expect(linked.locator("#story .why")).to_have_text(sentence)


def test_a_lane_that_is_opened_stays_in_its_place_on_a_phone(visit: Open, lossy: Path) -> None:
    """Though the story of another one, above it, closes."""
    tab = visit(lossy / "report.html").page
    tab.set_viewport_size({"width": 390, "height": 500})
    expect(tab.locator(".lane.chosen #story .parts")).to_be_visible()
    below = tab.locator(f"#{tab.locator('.lane.chosen + .lane').get_attribute('id')}")
    below.scroll_into_view_if_needed()
    before = below.bounding_box()
    below.locator(".value").click()
    expect(below.locator("#story")).to_be_visible()
    after = below.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 2


def test_a_mark_shows_its_turn(visit: Open, lossy: Path) -> None:
    tab = visit(lossy / "report.html").page
    mark = tab.locator(".lane:not(.chosen) use.needle").first
    turn = mark.get_attribute("data-turn")
    mark.click(force=True)
    expect(tab.locator("#play-where")).to_contain_text(f"Turn {turn} of")
    expect(tab.locator(".lane.chosen use.needle").first).to_have_attribute("data-turn", str(turn))


def test_it_is_used_with_the_keyboard(visit: Open, mixed: Path) -> None:
    tab = visit(mixed).page
    assert tab.locator(".lanes button[tabindex='0']").count() == 1, "the lanes are a single tab stop"
    lanes = tab.locator(".lanes button.name")
    tab.locator(".lanes button[tabindex='0']").focus()
    tab.keyboard.press("End")
    expect(lanes.last).to_be_focused()
    tab.keyboard.press("Enter")
    name = tab.locator(".lane").last.get_attribute("id")
    expect(tab.locator("#story h3")).to_contain_text(str(name).removeprefix("lane-"))
    expect(lanes.last).to_have_attribute("aria-expanded", "true")
    tab.keyboard.press("ArrowUp")
    expect(lanes.nth(-2)).to_be_focused()
    tab.keyboard.press("ArrowRight")
    where = tab.locator("#play-where")
    expect(where).to_contain_text("Turn ")
    first = where.inner_text()
    tab.keyboard.press("ArrowRight")
    expect(where).not_to_have_text(first)
    assert tab.locator(".lanes button[tabindex='0']").count() == 1


def test_dragging_over_the_lanes_plays_the_conversation(visit: Open, mixed: Path) -> None:
    tab = visit(mixed).page
    row = tab.locator(".lane").nth(1).locator(".drawing")
    box = row.bounding_box()
    assert box
    tab.mouse.move(box["x"] + 4, box["y"] + 10)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10, steps=4)
    tab.mouse.up()
    total = lanes_of(Page(mixed))[0]["tokens"]
    at = [entry["start"] for entry in journal(mixed.parent) if entry["type"] == "message"]
    number = max(turn for turn, start in enumerate(at) if start <= total / 2)
    expect(tab.locator("#play-where")).to_contain_text(f"Turn {number} of ")
    place = tab.locator(".playhead").evaluate("line => Number.parseFloat(line.getAttribute('x1'))")
    assert place == pytest.approx(100 * at[number] / total, abs=0.01)


def test_hostile_texts_are_only_text_in_a_story(visit: Open, lossy: Path, tmp_path: Path) -> None:
    question = next(lane for panel in lanes_of(report(lossy)) for lane in panel["lanes"] if lane.get("instead"))["story"]["question"]
    text = "\x1b[31m\u202eevil <img src=x onerror=\"document.title='owned'\"></script>"
    folder = altered(lossy, tmp_path, replying(text, question))
    report(folder)
    seen = visit(folder / "report.html", viewport=PHONE)
    reply = seen.page.locator("#story .reply")
    expect(reply).to_contain_text("<img src=x onerror=")
    expect(reply).to_contain_text("[U+001B]")
    assert reply.locator("img, script").count() == 0
    expect(seen.page.locator("#story .why")).to_contain_text("[U+202E]evil")
    assert seen.faults() == []
