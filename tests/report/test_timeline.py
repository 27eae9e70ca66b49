"""The timeline of a run: its marks and their positions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.gradebook.gradebook import grade_run
from longspan.simulator.report.timeline import grade_of
from tests.report.pages import Element, Page, altered, journal, report


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def lane(page: Page, test: str) -> Element:
    (lane,) = (item for item in page.root.one("ol", class_="lanes").all("li") if item.all("a") and item.all("a")[0].text.endswith(test))
    return lane


def test_each_test_has_a_lane_with_its_turns_at_their_tokens(woven: Path, page: Page) -> None:
    entries = journal(woven)
    total = next(entry for entry in entries if entry["type"] == "close")["tokens"]
    result = {test.id: test for test in grade_run(RunFolder(woven)).tests}
    for id, test in result.items():
        own = [entry for entry in entries if entry["type"] == "message" and entry.get("test") == id and entry["kind"] != "farewell"]
        shown = lane(page, id)
        marks = shown.one("svg").all("a")
        assert [mark.attributes["href"] for mark in marks] == [f"#t-main-{entry['turn']}" for entry in own]
        assert [mark.one("use").attributes["x"] for mark in marks] == [percent(entry["start"] / total) for entry in own]
        kinds = ["question" if entry["kind"] == "question" else "needle" if entry["needle"] else "line" for entry in own]
        assert [mark.one("use").attributes["href"] for mark in marks] == [f"#shape-{kind}" for kind in kinds]
        assert marks[0].attributes["aria-label"] == f"needle, turn {own[0]['turn']}"
        line = shown.one("line", class_="span").attributes
        assert (line["x1"], line["x2"]) == (percent(own[0]["start"] / total), percent((own[0]["start"] + test.span_used) / total))
        assert "full" in shown.attributes["class"]
        assert shown.one("span", class_="value").words == "1.00"


def test_filler_and_watched_turns_are_stretches(woven: Path, page: Page) -> None:
    entries = journal(woven)
    total = next(entry for entry in entries if entry["type"] == "close")["tokens"]
    messages = [entry for entry in entries if entry["type"] == "message"]
    ends = {entry["turn"]: entry["end"] for entry in entries if entry["type"] == "reply"}
    pieces = page.root.one("ol", class_="lanes").all("li")[0].all("rect")
    widths = sum(float(piece.attributes["width"].rstrip("%")) for piece in pieces)
    filler = sum(ends[entry["turn"]] - entry["start"] for entry in messages if entry["kind"] == "filler")
    assert widths == pytest.approx(100 * filler / total, abs=0.01 * len(pieces))
    watched = next(entry for entry in entries if entry["type"] == "end" and entry["test"] == "prospective_memory-1")["watched"]
    line = lane(page, "prospective_memory-1").one("line", class_="watching").attributes
    assert (line["x1"], line["x2"]) == (percent(messages[watched[0]]["start"] / total), percent(ends[watched[-1]] / total))


def test_clock_jumps_cross_all_lanes(woven: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        place = next(i for i, entry in enumerate(entries) if entry["type"] == "message" and entry["turn"] == 3)
        entries.insert(place, {"type": "jump", "test": "colours-1", "to": "2024-03-05T06:07:00"})
        for number, entry in enumerate(entries):
            entry["seq"] = number

    page = report(altered(woven, tmp_path, change))
    message = next(entry for entry in journal(woven) if entry["type"] == "message" and entry["turn"] == 3)
    total = next(entry for entry in journal(woven) if entry["type"] == "close")["tokens"]
    (line,) = page.root.one("svg", class_="ruler").all("line", class_="jumped")
    assert line.attributes["x1"] == percent(message["start"] / total)


def test_a_test_with_its_own_conversation_has_a_lane_of_its_length(isolated: Path) -> None:
    (panel,) = report(isolated).root.all("div", class_="panel")
    rows = panel.all("li")
    assert [row.attributes["data-conversation"] for row in rows] == ["colours-1", "colours-2"]
    for row, id in zip(rows, ("colours-1", "colours-2"), strict=True):
        total = next(entry for entry in journal(isolated, id) if entry["type"] == "close")["tokens"]
        question = next(entry for entry in journal(isolated, id) if entry["type"] == "message" and entry["kind"] == "question")
        assert row.attributes["data-tokens"] == str(total)
        assert row.one("line", class_="span").attributes["x2"] == percent((question["start"] + question["tokens"]) / total)
        assert "low" in row.attributes["class"]


def test_a_test_that_was_not_started_has_no_lane(isolated: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(isolated, folder)
    shutil.rmtree(folder / "conversations")
    assert not report(folder).root.all("div", class_="panel")


@pytest.mark.parametrize(
    ("score", "chance", "grade"), [(1, 0, "full"), (1, 1, "full"), (0.5, 0.2, "part"), (0.2, 0.2, "low"), (0, 0, "low"), (None, 0, "none")]
)
def test_a_grade_compares_a_score_with_chance(score: float | None, chance: float, grade: str) -> None:
    assert grade_of(score, chance) == grade
