"""Where a memory was lost: the sums, the sentence, the funnel and the map, against the journal."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.pages.report.memory_pictures import funnel_stages, split_bar
from longspan.simulator.results.analysis.distances import graded_points
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.measures.memory_losses import Answers, MemoryLosses, Needles, needle_outcome
from tests.browser import PHONE, Open
from tests.report.pages import journal, played, report

SCENARIOS = ("colours", "shopping", "name_list", "jokes")


def by_hand(folder: Path) -> Counter[tuple[str, str]]:
    """The outcome of each needle that a question needed, with its scenario, from the journal's lines and the scores of tests."""
    scores = {test.id: test.score for test in grade_run(RunFolder(folder)).tests}
    said, memories, told, scenario = {}, {}, False, {}
    numbers: dict[str, int] = {}
    found: Counter[tuple[str, str]] = Counter()
    for entry in journal(folder):
        if entry["type"] == "open":
            scenario[entry["test"]] = entry["scenario"]
        elif entry["type"] == "message":
            said[entry["turn"]], numbers[entry["turn_id"]] = entry, entry["turn"]
        elif entry["type"] == "reply":
            message, trace = said[entry["turn"]], entry.get("trace") or {}
            told = told or "written" in trace
            for memory in trace.get("written", []):
                memories[memory["id"]] = numbers[memory.get("turn", message["turn_id"])]
            for needle in (message.get("needs") or []) if message["kind"] == "question" else []:
                name = _outcome(needle, scores[message["test"]], trace, memories if told else None, numbers)
                found[scenario[message["test"]], name] += 1
    return found


def _outcome(needle: int, score: float | None, trace: dict[str, Any], memories: dict[str, int] | None, numbers: dict[str, int]) -> str:
    stored = None if memories is None else needle in memories.values()
    if "read" not in trace and "recent" not in trace:
        return "not_stored" if stored is False else "unknown"
    in_prompt = {numbers[turn] for memory in trace.get("read", []) for turn in memory["turns"]}
    if "recent" in trace:
        in_prompt |= set(range(numbers[trace["recent"]["since"]], len(numbers)))
    if needle not in in_prompt:
        return "not_shown" if stored is None else "not_retrieved" if stored else "not_stored"
    return "found_right" if score == 1 else "found_wrong"


@pytest.mark.parametrize(
    ("agent", "tells", "lost"),
    [
        ("notebook", "memory", {"not_retrieved"}),
        ("silent", "nothing", {"unknown"}),
        ("python:tests.report.forgetful:Hollow", "memory", {"not_stored"}),
        ("python:tests.report.forgetful:Recent", "prompt", {"not_shown", "found_wrong"}),
    ],
)
def test_the_sums_are_those_of_the_journal(tmp_path: Path, agent: str, tells: str, lost: set[str]) -> None:
    folder = played(tmp_path, *SCENARIOS, agent=agent, tests=1)
    losses = MemoryLosses.of(grade_run(RunFolder(folder)).tests, 2000)
    expected = by_hand(folder)
    named = {name: dict(zip(Needles._fields, needles, strict=True)) for name, needles in losses.needles_by_scenario.items()}
    assert Counter({(name, how): number for name, counts in named.items() for how, number in counts.items() if number}) == expected
    assert losses.tells == tells
    assert {how for _, how in expected} >= lost
    assert losses.needles == tuple(map(sum, zip(*losses.needles_by_distance.values(), strict=True)))
    if agent != "notebook":
        assert {how for _, how in expected} <= lost | {"found_right"}

    page = report(folder)
    figure = page.root.one("figure", class_="losses")
    assert figure.one("figcaption").words == losses.sentence
    if tells == "nothing":
        assert not figure.all("ol")
        right, partly, wrong, _ = losses.answers
        counts = [(right, "in full"), (partly, "in part"), (wrong, "not at all")]
        assert figure.one("ul").words == " ".join(f"{number} {how}" for number, how in counts if number)
    else:
        rows = [[li.one("span", class_="name").words, int(li.one("b").words)] for li in figure.one("ol").all("li")]
        assert rows == [[stage.name, stage.passed] for stage in funnel_stages(losses)]
        assert rows[0] == ["needed", sum(expected.values())]
        assert rows[-1] == ["answered right", sum(number for (_, how), number in expected.items() if how == "found_right")]
        assert ("stored" in [name for name, _ in rows]) == (tells == "memory")
        assert ("not stored" in page.root.words) == ("not_stored" in {how for _, how in expected})


def test_an_outcome_claims_no_more_than_the_agent_tells() -> None:
    def of(stored: bool | None, retrieved: bool | None, score: float | None) -> str:
        return needle_outcome(Evidence(1, 2, 10, 10, stored, retrieved), score)

    assert of(False, True, 1) == "found_right", "still in the prompt, it need not have been stored"
    assert [of(None, None, 1), of(True, None, 1)] == ["unknown"] * 2
    assert [of(stored, False, 1) for stored in (False, True, None)] == ["not_stored", "not_retrieved", "not_shown"]
    assert [of(True, True, score) for score in (0, 0.99, None)] == ["found_wrong", "found_wrong", "found_undecided"]


@pytest.mark.parametrize(
    ("needles", "sentence"),
    [
        (Needles(11, 59, 0, 11, 50), "Questions relied on 131 needles; 70 were not retrieved: 11 had not been stored and 59 were stored. "
         "61 were retrieved; 50 led to correct answers."),
        (Needles(15, 57, 0, 36, 8, 12), "Questions relied on 128 needles; 72 were not retrieved: 15 had not been stored and 57 were "
         "stored. 44 were retrieved; 8 led to correct answers. 12 unreported."),
        (Needles(0, 2, 4, 0, 1, 0, 3), "Questions relied on 10 needles; 9 were not retrieved: 2 were stored, 3 were forgotten at the "
         "user's request and 4 may not have been stored. 1 was retrieved; it led to a correct answer."),
        (Needles(0, 0, 4, 0, 1), "Questions relied on 5 needles; 4 were not in the prompt. 1 was retrieved; it led to a correct answer."),
        (Needles(found_right=2, unknown=3), "Questions relied on 5 needles. 2 were retrieved; all led to correct answers. 3 unreported."),
        (Needles(found_wrong=34), "Questions relied on 34 needles. All 34 were retrieved; none led to a correct answer."),
        (Needles(found_right=1, found_undecided=2), "Questions relied on 3 needles. All 3 were retrieved; 1 led to a correct answer, and 2 "
         "to answers without a score."),
        (Needles(not_retrieved=2, found_undecided=3), "Questions relied on 5 needles; 2 were stored, not retrieved. 3 were retrieved; "
         "their answers have no score."),
        (Needles(1), "Questions relied on 1 needle; 1 had not been stored."),
    ],
)  # fmt: skip
def test_the_sentence_says_where_needles_were_lost(needles: Needles, sentence: str) -> None:
    losses = MemoryLosses.of([], 0)
    object.__setattr__(losses, "needles", needles)
    object.__setattr__(losses, "tells", "memory")
    assert losses.sentence == sentence
    pieces = split_bar(needles._asdict())
    assert sum(piece.number for piece in pieces) == needles.needed
    assert pieces[-1].start + pieces[-1].width == pytest.approx(1)


def test_the_sentence_says_how_many_outcomes_were_inferred() -> None:
    losses = MemoryLosses.of([], 0)
    object.__setattr__(losses, "needles", Needles(not_retrieved=12, found_wrong=3, found_right=2, unknown=7))
    object.__setattr__(losses, "inferred", Needles(not_retrieved=12, found_right=1))
    object.__setattr__(losses, "stored", (4, 3))
    object.__setattr__(losses, "tells", "memory")
    assert losses.sentence == (
        "Questions relied on 24 needles; 12 were stored, not retrieved (inferred). 5 were retrieved (1 inferred); 2 led to correct "
        "answers. 7 unreported; 4 were stored (3 inferred). Inferred: from wording or time, as memories name no turns."
    )


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (Answers(3), "All 3 graded questions were answered in full."),
        (Answers(wrong=3), "None of 3 graded questions was answered, not even in part."),
        (Answers(1, 2, 3), "Of 6 graded questions, 1 was answered in full, 2 in part and 3 not at all."),
        (Answers(undecided=3), None),
    ],
)
def test_the_sentence_of_an_agent_that_tells_nothing(answers: Answers, sentence: str | None) -> None:
    losses = MemoryLosses.of([], 0)
    object.__setattr__(losses, "answers", answers)
    assert losses.sentence == (sentence and f"The agent reports nothing about its memory. {sentence}")


def test_a_cell_of_the_map_opens_its_tests_without_a_script(visit: Open, tmp_path: Path) -> None:
    folder = played(tmp_path, *SCENARIOS, agent="notebook")
    seen = visit(folder / "report.html", viewport=PHONE, java_script_enabled=False)
    asked = graded_points(grade_run(RunFolder(folder)).tests, 2000)
    cells = seen.page.locator(".map a")
    questions = [int(re.findall(r"(\d+) asked", text)[0]) for text in cells.all_inner_texts()]
    assert sum(questions) == len(asked)
    cells.first.click()
    tests = seen.page.locator(".cell:target li")
    expect(tests).to_have_count(questions[0])
    name = tests.locator("a").first.inner_text()
    tests.locator("a").first.click()
    assert seen.page.url.endswith(f"#test-{name}")
    expect(seen.page.locator(f"#test-{name}")).to_be_in_viewport()
    expect(tests).to_have_count(0)
