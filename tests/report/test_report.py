"""The report of a run: what it shows, also of interrupted and damaged runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longspan.simulator.base.errors import JournalError
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.pages.report import write_report
from longspan.simulator.results.analysis.distances import Distances, questions_with_needs, spans_kept, spans_said
from longspan.simulator.results.analysis.statistics import ObservedTest, total_interval
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.result import Result
from longspan.simulator.subject.ledger import Spending
from longspan.simulator.suite.manifest import Manifest
from tests.report.pages import Element, Page, altered, data_of, journal, question, reply_of, report
from tests.sealing import change_lines


def test_it_shows_the_score_and_how_it_compares_with_chance(woven: Path, page: Page) -> None:
    result = grade_run(RunFolder(woven))
    summary = page.root.one("section", **{"aria-labelledby": "result"})
    chance = sum(scenario.chance for scenario in result.scenarios.values())
    assert page.root.one("p", class_="score").words == "100%"
    assert page.root.one("p", class_="share").words.startswith(f"2.00 of 2 points · guessing {chance / 2:.0%}")
    assert f"would score about {chance / 2:.0%} ({chance:.2f} points); the score is {1 - chance / 2:.0%} above that" in summary.words
    figures = figures_of(page)
    assert figures["Tokens"] == f"{result.tokens:,} in {result.turns:,} turns"
    assert figures["Filler tokens"].startswith(f"{result.filler_tokens:,} ")
    assert figures["Switch rate"].startswith(f"{result.switch_rate:.2f} ")
    assert f"{result.mean_open:.2f} tests open" in figures["Switch rate"]
    tokens = Distances.of(result.tests, 2000).tokens
    assert tokens is not None
    assert figures["Evidence distance"].startswith(
        f"{tokens.median:,.0f} tokens at the median, {tokens.low:,} to {tokens.high:,}; of the charged span"
    )
    assert summary.one("p", id="spans").words == f"{spans_kept(result)} {spans_said(result)}"
    assert "Without a score" not in figures
    assert figures["Cost"] == "– no usage reported"
    asked = sum(entry["type"] == "reply" and entry["asked"] for entry in journal(woven))
    assert f" for {asked} replies: median " in figures["Time"]
    assert not summary.all(id="left-out")


def figures_of(page: Page) -> dict[str, str]:
    lists = page.root.one("section", **{"aria-labelledby": "result"}).all("dl", class_="figures")
    return {figure.one("dt").words: figure.one("dd").words for figures in lists for figure in figures.all("div")}


def test_the_score_has_the_interval_that_the_statistics_give(woven: Path) -> None:
    def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
        tests = [test.model_copy(update={"score": number % 2}) for number, test in enumerate(result.tests)]
        return manifest, result.model_copy(update={"tests": tests})

    page = report(woven, change)
    _, changed = change(RunFolder(woven).manifest, grade_run(RunFolder(woven)))
    expected = total_interval([ObservedTest(test.scenario, "main", test.score or 0.0, test.score or 0.0) for test in changed.tests])
    assert expected is not None
    points = f"({expected.low:.2f} to {expected.high:.2f} points)"
    text = f"95% interval: {expected.low / 2:.0%} to {expected.high / 2:.0%} {points}, from the spread of its tests"
    assert text in page.root.one("main").words


def test_cost_and_time_are_those_of_the_results_and_the_journal(woven: Path, tmp_path: Path) -> None:
    def slow(entries: list[dict[str, Any]]) -> None:
        asked = [entry for entry in entries if entry["type"] == "reply" and entry["asked"]]
        for number, entry in enumerate(asked):
            if number > 19:
                del entry["measured"]
            else:
                entry["measured"] = {"latency_s": 90.0 if number == 0 else 2.0 if number == 1 else 1.0}

    costs = {"agent": Spending(input_tokens=1007, cached_tokens=5, output_tokens=2, cost_usd=1.25)}
    costs["embedder"] = Spending(input_tokens=3, cost_usd=0.003)
    page = report(altered(woven, tmp_path, slow), lambda m, r: (m, r.model_copy(update={"costs": costs})))
    assert figures_of(page)["Cost"] == "$1.25 agent $1.25, embedder $0.0030"
    assert figures_of(page)["Time"] == "2 min for 20 replies: median 1.0 s, 95% within 2.0 s"
    tokens = "1,010 read 5 of them cached; 2 written: agent 1,007, 5, 2; embedder 3, 0, 0"
    assert figures_of(page)["Models' tokens"] == tokens
    costs["judge"] = Spending(cost_usd=None)
    page = report(woven, lambda m, r: (m, r.model_copy(update={"costs": costs})))
    assert figures_of(page)["Cost"] == "unknown agent $1.25, embedder $0.0030, judge unknown"
    assert figures_of(page)["Models' tokens"] == f"{tokens}; judge 0, 0, 0"


def test_the_table_has_a_row_for_each_scenario_and_their_sum(woven: Path, page: Page) -> None:
    result = grade_run(RunFolder(woven))
    table = page.root.one("table", class_="scenarios")
    assert [cell.words for cell in table.one("thead").all("th")] == [
        *("Scenario", "What it tests", "Score", "95% interval", "Chance", "Tests", "Evidence distance", "Of span")
    ]
    rows = {row.one("th").words: [cell.words for cell in row.all("td", class_="n")] for row in table.all("tr")[1:]}
    colours = result.scenarios["colours"]
    evidence = {name: Distances.of([test for test in result.tests if name in ("Sum", test.scenario)], 2000) for name in ("colours", "Sum")}
    between = {
        name: total_interval([ObservedTest(test.scenario, "main", 1, 1) for test in result.tests if name in ("Sum", test.scenario)])
        for name in evidence
    }
    full = {"colours": 1, "Sum": 2}
    ends = {name: f"{found.low / full[name]:.0%}–{found.high / full[name]:.0%}" for name, found in between.items() if found is not None}
    distances = {name: [found.in_tokens, found.of_span] for name, found in evidence.items()}
    assert rows["colours"] == ["100% 1.00", ends["colours"], f"{colours.chance:.0%}", "2", *distances["colours"]]
    chance = sum(scenario.chance for scenario in result.scenarios.values())
    assert rows["Sum"] == ["100% 2.00", ends["Sum"], f"{chance / 2:.0%}", "4", *distances["Sum"]]
    about = "State the favourite colour 3 times, never the same one twice in a row, and then ask for it."
    assert table.one("tbody").all("td", class_="what")[0].words == about
    bar = table.one("tbody").all("tr")[0].one("svg", class_="bar")
    assert bar.one("rect", class_="got").attributes["width"] == "100.00%"
    assert bar.one("rect", class_="chance").attributes["x"] == f"{100 * colours.chance:.2f}%"


def test_scores_by_skill_and_by_evidence_distance_are_those_of_the_tests(woven: Path, page: Page) -> None:
    tests = grade_run(RunFolder(woven)).tests
    skills = {skill for test in tests for skill in test.skills}
    distances = {"0 to 1,000 tokens", "1,000 to 4,000 tokens"}
    *tables, planted = page.root.all("table", class_="groups")
    assert [cell.words for cell in planted.one("tbody").one("tr").all("td", class_="n")][:3] == ["0", "2", "100%"]
    for table, names in zip(tables, (skills, distances), strict=True):
        rows = {row.one("th").words: [cell.words for cell in row.all("td", class_="n")] for row in table.one("tbody").all("tr")}
        assert set(rows) == names
        assert {(score, std) for score, std, *_ in rows.values()} == {("100%", "0%")}
        assert sum(int(number) for *_, number in rows.values()) == 4
    prospective = next(test for test in tests if test.scenario == "prospective_memory")
    assert len(prospective.evidence) == 1
    assert prospective.evidence[0].tokens > 1000


def test_a_score_below_chance_is_no_better(isolated: Path) -> None:
    page = report(isolated)
    assert "the score is no better" in page.root.one("main").words


def cells(test: Element) -> list[str]:
    """The words of a test's row in the table."""
    row = test.all("tr")[0]
    return [cell.words for cell in row.inside if isinstance(cell, Element)]


def test_a_test_is_a_row_that_opens_its_question_what_was_expected_and_its_needles(woven: Path, page: Page) -> None:
    result = {test.id: test for test in grade_run(RunFolder(woven)).tests}["colours-2"]
    test = page.root.one("tbody", id="test-colours-2")
    messages = [entry for entry in journal(woven) if entry["type"] == "message" and entry.get("test") == "colours-2"]
    replies = {entry["turn"]: entry["text"] for entry in journal(woven) if entry["type"] == "reply"}
    opened = next(entry for entry in journal(woven) if entry["type"] == "open" and entry["test"] == "colours-2")
    (question_asked,) = questions_with_needs(result)
    assert cells(test) == ["colours-2#", "●100%", " ".join(result.reason.split()), f"{question_asked.tokens:,}", ""]
    assert test.one("p", class_="reason").text == result.reason
    facts = facts_of(test)
    assert facts["Status"] == "scored"
    assert (
        facts["Span"]
        == f"{result.span_dealt:,} of 2,000 tokens as charged to every agent; {result.span_used:,} tokens with its own replies"
    )
    assert (
        facts["Evidence distance"]
        == f"{question_asked.tokens:,} tokens with its own replies; {question_asked.dealt:,} as charged to every agent"
    )
    assert "Played" not in facts
    assert facts["Grade decided by"] == f"turn #{result.turns[0]}"
    (shown,) = test.one("ol", class_="questions").all("li")
    assert shown.all("a")[0].attributes["href"] == f"#t-main-{messages[-1]['turn']}"
    assert [dd.text for dd in shown.all("dd")] == [messages[-1]["text"], opened["lines"][-1]["ideal"], replies[messages[-1]["turn"]]]
    assert [label.words for label in shown.all("span", class_="label")] == ["question", "decides the grade"]
    assert shown.one("time").attributes["datetime"] == messages[-1]["sent_at"]
    needles = [element for element in test.one("ol", class_="needles").inside if isinstance(element, Element)]
    assert [needle.one("bdi").text for needle in needles] == [message["text"] for message in messages[:-1]]
    assert test.one("details", class_="whole").attributes["data-turns"] == " ".join(str(message["turn"]) for message in messages)
    assert json.loads(test.one("pre").text) == opened["facts"]
    for pair in result.evidence:
        (needle,) = (needle for needle in needles if needle.all("a")[0].words == f"#{pair.needle_turn}")
        dealt = f"{pair.dealt:,} as charged to every agent, {(pair.dealt or 0) / 20:.0f}% of the span"
        text = f"{pair.tokens:,} tokens before #{pair.question_turn}, {dealt}"
        assert needle.one("ul", class_="evidence").words == text


def facts_of(test: Element) -> dict[str, str]:
    return {fact.one("dt").words: fact.one("dd").words for fact in test.one("dl", class_="facts").all("div")}


def test_needles_beyond_six_are_folded(woven: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        first = next(entry["turn"] for entry in entries if entry["type"] == "message" and entry.get("test") == "colours-1")
        for entry in entries:
            if entry["type"] == "message" and first < entry["turn"] < question(woven):
                entry |= {"test": "colours-1", "needle": True, "kind": "line"}

    result = grade_run(RunFolder(woven))
    page = report(altered(woven, tmp_path, change), lambda manifest, _: (manifest, result))
    needles = page.root.one("tbody", id="test-colours-1").one("ol", class_="needles")
    more = len(needles.all("bdi")) - 6
    assert more > 0
    assert [len(part.all("bdi")) for part in needles.inside if isinstance(part, Element)] == [1] * 6 + [more]
    assert needles.one("li", class_="rest").one("summary").words == f"{more} more needle{'s' if more > 1 else ''}"


def test_where_needles_were_lost_is_in_the_row_and_with_each_needle(woven: Path) -> None:
    def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
        fates = [{"stored": True, "retrieved": True, "echoed": False}, {"stored": True, "retrieved": False}]
        test = next(test for test in result.tests if test.id == "colours-1")
        asked_at = test.evidence[0].question_turn
        turns = data_of(report(woven))["turns"]
        needles = [turn["number"] for turn in turns if turn.get("test") == "colours-1" and "needle" in turn["kinds"]]
        evidence = [type(test.evidence[0])(needle, asked_at, 10, **fate) for needle, fate in zip(needles, fates, strict=False)]
        changed = {"evidence": evidence, "score": 0.0}
        tests = [other if other.id != test.id else other.model_copy(update=changed) for other in result.tests]
        return manifest, result.model_copy(update={"tests": tests})

    test = report(woven, change).root.one("tbody", id="test-colours-1")
    assert cells(test)[-1] == "not retrieved 1 of 2retrieved, not answered right 1 of 2"
    assert {name: value for name, value in facts_of(test).items() if name.startswith("Needles")} == {
        "Needles stored": "2 of 2", "Needles retrieved": "1 of 2", "Needles echoed": "0 of 1"}  # fmt: skip
    outcomes = [[label.words for label in evidence.all("span", class_="label")] for evidence in test.all("ul", class_="evidence")]
    assert outcomes == [["stored", "retrieved", "not echoed"], ["stored", "not retrieved"]]


def test_a_watched_turn_that_proves_a_grade_is_shown_with_its_test(woven: Path, page: Page) -> None:
    result = {test.id: test for test in grade_run(RunFolder(woven)).tests}["prospective_memory-1"]
    entries = journal(woven)
    own = {entry["turn"] for entry in entries if entry["type"] == "message" and entry.get("test") == result.id}
    (foreign,) = set(result.turns) - own
    reply = next(entry["text"] for entry in entries if entry["type"] == "reply" and entry["turn"] == foreign)
    test = page.root.one("tbody", id="test-prospective_memory-1")
    shown = next(turn for turn in test.one("ol", class_="questions").all("li") if turn.all("a")[0].words == f"#{foreign}")
    assert shown.one("dd", class_="reply").text == reply
    assert shown.one("span", class_="proof").words == "decides the grade"
    watched = next(entry for entry in entries if entry["type"] == "end" and entry["test"] == result.id)["watched"]
    assert f"turns #{watched[0]} to #{watched[-1]}" in test.one("dl", class_="facts").words
    assert result.id in data_of(page)["turns"][foreign]["proves"]
    (data,) = (data for data in data_of(page)["tests"] if data["id"] == result.id)
    assert (data["grade"], data["first"], data["last"]) == ("full", min(own), watched[-1])


def test_what_the_traces_tell_of_the_agents_memory_is_there_to_be_played_back(woven: Path, tmp_path: Path) -> None:
    """Texts that the page has already are not repeated."""
    said = [entry for entry in journal(woven) if entry["type"] == "message"]
    ids = [entry["turn_id"] for entry in said]
    told = [
        {"written": [{"id": "a", "text": said[0]["text"][:30] + "…"}, {"id": "b\u202e", "text": "gist <b>", "turn": ids[0]}]},
        {"read": [{"id": "b\u202e", "text": "gist <b>"}, {"turns": [ids[0], "of another time"], "text": "x" * 1000}, 5]},
        {"written": [], "read": [{"id": str(number)} for number in range(40)], "recent": {"since": ids[1]}},
        {"written": "all", "read": None, "recent": [], "calls": []},
    ]

    def change(entries: list[dict[str, Any]]) -> None:
        replies = [entry for entry in entries if entry["type"] == "reply"]
        for reply, trace in zip(replies, told, strict=False):
            reply["trace"] = trace

    turns = data_of(report(altered(woven, tmp_path, change)))["turns"]
    assert turns[0]["memory"] == {"written": [{"id": "a", "turns": [0]}, {"id": "b[U+202E]", "turns": [0], "text": "gist <b>"}]}
    assert turns[1]["memory"] == {"read": [{"id": "b[U+202E]"}, {"turns": [0], "text": ["x" * 225, "x" * 75, 1000]}]}
    assert turns[2]["memory"] == {"written": [], "read": [{"id": str(number)} for number in range(30)], "unread": 10, "since": 1}
    assert "memory" not in turns[3]
    assert "memory" not in turns[4]


def test_the_script_gets_the_whole_conversation(woven: Path, page: Page) -> None:
    messages = [entry for entry in journal(woven) if entry["type"] == "message"]
    replies = [entry for entry in journal(woven) if entry["type"] == "reply"]
    turns = data_of(page)["turns"]
    assert [turn["number"] for turn in turns] == list(range(len(messages)))
    for turn, message, reply in zip(turns, messages, replies, strict=True):
        assert (turn["text"], turn["reply"]) == (message["text"], reply["text"])
        assert (turn["at"], turn["tokens"], turn["replyTokens"]) == (message["start"], message["tokens"], reply["tokens"])
        assert turn.get("told", False) is not reply["asked"]
        assert turn.get("needs") == (message.get("needs") or None)
        assert turn.get("test") == message.get("test")
        assert (message["kind"] in turn["kinds"]) or turn["kinds"] == ["needle"]
        assert turn["seconds"] == reply["measured"]["latency_s"]


def test_without_javascript_the_essentials_are_there(woven: Path, page: Page) -> None:
    hidden = page.root.one("form")
    assert "hidden" in hidden.attributes
    assert "in conversations/main/journal.jsonl" in page.root.one("p", id="no-script").words
    words = page.root.one("section", **{"aria-labelledby": "tests"}).words
    assert all(test.id in words and " ".join(test.reason.split()) in words for test in grade_run(RunFolder(woven)).tests)


def test_each_of_several_conversations_has_anchors_of_its_own(isolated: Path) -> None:
    page = report(isolated)
    assert [section.one("h3").words for section in page.root.all("section", class_="conversation")] == ["colours-1", "colours-2"]
    test = page.root.one("tbody", id="test-colours-2")
    assert {a.attributes["href"].rpartition("-")[0] for a in test.all("a")} == {"#t-colours-2", "#test-colours"}
    assert "with filler only where it waits for turns" in page.root.words


def test_exempt_tests_and_those_left_out_are_explained(woven: Path) -> None:
    def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
        kinds = ["uninterrupted", "stopped", "stopped", None]
        tests = [test.model_copy(update={"exempt": kind}) for test, kind in zip(result.tests, kinds, strict=True)]
        return manifest, result.model_copy(update={"tests": tests, "left_out": ["colours-3 is left out: it is <too> long"]})

    page = report(woven, change)
    tests = [page.root.one("tbody", id=f"test-{test.id}").words for test in grade_run(RunFolder(woven)).tests]
    assert ["Playedplayed without a pause" in test for test in tests] == [True, False, False, False]
    assert ["Playedended before all of its outline" in test for test in tests] == [False, True, True, False]
    assert page.root.one("p", id="left-out").words == "colours-3 is left out: it is <too> long."
    assert not page.root.all("div", class_="notice")


def test_a_persons_correction_is_shown_with_the_graders_score(woven: Path) -> None:
    correction = Correction(test="colours-1", score=0.5, why="it <hedged>", by="Ada")

    def change(manifest: Manifest, result: Result) -> tuple[Manifest, Result]:
        tests = list(result.tests)
        place = next(i for i, test in enumerate(tests) if test.id == "colours-1")
        tests[place] = tests[place].model_copy(update={"score": 0.5, "correction": correction})
        return manifest, result.model_copy(update={"tests": tests})

    test = report(woven, change).root.one("tbody", id="test-colours-1")
    assert cells(test)[:2] == ["colours-1#", "◐50%"]
    assert test.one("p", class_="notice").words == "Corrected by Ada from a score of 100%: it <hedged>"


def test_awards_verdicts_and_clock_jumps_are_shown(woven: Path, tmp_path: Path) -> None:
    def change(entries: list[dict[str, Any]]) -> None:
        place = next(i for i, entry in enumerate(entries) if entry["type"] == "message" and entry.get("test") == "colours-1")
        entries[place:place] = [
            {"type": "jump", "test": "colours-1", "to": "2024-03-05T06:07:00"},
            {"type": "award", "test": "colours-1", "turn": 0, "points": 0.25, "why": "ordered <soup>"},
            {"type": "verdict", "test": "colours-1", "statement": "a joke", "holds": None, "why": "no judge"},
        ]
        for number, entry in enumerate(entries):
            entry["seq"] = number

    page = report(altered(woven, tmp_path, change))
    notes = page.root.one("tbody", id="test-colours-1").one("ul", class_="notes")
    assert [note.words for note in notes.all("li")] == ["0.25 points at #0: ordered <soup>", "Judged undecided: a joke (no judge)"]
    (turn,) = (turn for turn in data_of(page)["turns"] if "jumps" in turn)
    assert turn["test"] == "colours-1"
    assert turn["jumps"] == [{"test": "colours-1", "to": "2024-03-05 06:07"}]


def test_a_small_figure_is_shown_with_as_many_digits_as_it_needs(woven: Path) -> None:
    metrics = {"search_seconds": 0.001234, "settle_seconds": 0.0000051, "evidence_stored": 0.5, "add_calls_per_1k": 12.3456}
    figures = figures_of(report(woven, lambda manifest, result: (manifest, result.model_copy(update={"metrics": metrics}))))
    names = ["Search seconds", "Settle seconds", "Evidence stored", "Add calls per 1k"]
    assert [figures[name] for name in names] == ["0.00123", "0.0000051", "50%", "12.35"]


def test_what_scenarios_count_stands_by_itself(woven: Path) -> None:
    metrics = {"colours: kept_right": 0.25, "colours: told": 1.5, "evidence_recall@5": 0.4}
    changed = report(woven, lambda manifest, result: (manifest, result.model_copy(update={"metrics": metrics})))
    own = [[cell.words for cell in row.all("dd")] for row in changed.root.one("dl", class_="own").all("div")]
    assert own == [["kept right 25%", "told 1.50"]]
    assert figures_of(changed)["Evidence found among the first 5"] == "40%"


# Interrupted and damaged runs.


def test_an_interrupted_conversation_is_shown_as_far_as_it_went(woven: Path, tmp_path: Path) -> None:
    messages = [i for i, entry in enumerate(journal(woven)) if entry["type"] == "message"]
    folder = altered(woven, tmp_path, lambda entries: entries.__delitem__(slice(messages[4] + 1, None)))
    for kind in ("agent_error", "restart"):
        RunFolder(folder).incident(conversation="main", type=kind, error="turn 4: the <agent>\u2028 failed")
    page = report(folder)
    assert page.root.one("p", class_="score").words == "No score"
    assert page.root.one("p", class_="share").words == "no test is graded"
    assert figures_of(page)["Without a score"] == "4 4 agent error"
    assert not page.root.one("div", class_="top").all("svg", class_="bar"), "a full pale bar says nothing"
    assert page.root.one("table", class_="scenarios").one("tbody").all("td", class_="n")[0].words == "–"
    interrupted, failed = page.root.all("div", class_="notice")
    assert interrupted.words == f"Interrupted. 4 tests of 4 had not ended. Continue it with longspan resume {folder.name}"
    assert failed.one("li").words == "turn 4: the <agent> failed"
    assert not page.root.all("section", **{"aria-labelledby": "memory"}), "no question was decided"
    assert len(data_of(page)["turns"]) == 5
    assert "reply" not in data_of(page)["turns"][4]
    assert "tokens; interrupted" in page.root.words
    begun = page.root.one("tbody", id="test-colours-1")
    assert cells(begun)[:2] == ["colours-1#", "–agent error"]
    assert facts_of(begun)["Status"] == "the agent failed before it ended"
    assert begun.all("ol", class_="said")
    never = page.root.one("tbody", id="test-colours-2")
    assert never.one("p", class_="reason").text == "the conversation ended before the test did"
    assert not never.all("ol", class_="said")


def test_a_conversation_that_never_started_is_shown_as_interrupted(isolated: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(isolated, folder)
    shutil.rmtree(folder / "conversations" / "colours-2")
    page = report(folder)
    assert len(data_of(page, "colours-1")["turns"]) > 2
    assert data_of(page, "colours-2")["turns"] == []
    assert "0 turns, 0 tokens; interrupted" in page.root.words


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda entries: entries[9].update(seq=8), "damaged at line 10: expected an event with seq 9"),
        (lambda entries: next(each for each in entries if each.get("turn") == 3).update(turn=7), "turn 7 follows 3 others"),
    ],
)
def test_a_damaged_journal_is_an_error_and_leaves_the_report_alone(
    woven: Path, tmp_path: Path, change: Callable[[Any], object], error: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(woven, folder)
    run = RunFolder(folder)
    result = grade_run(run)
    before = write_report(run, result).read_bytes()
    change_lines(run.journal("main"), change)
    with pytest.raises(JournalError, match=error):
        write_report(run, result)
    assert (folder / "report.html").read_bytes() == before


def test_a_reply_without_a_message_is_an_error(woven: Path, tmp_path: Path) -> None:
    result = grade_run(RunFolder(woven))
    place = next(i for i, entry in enumerate(journal(woven)) if entry["type"] == "message" and entry["turn"] == 5)
    folder = altered(woven, tmp_path, lambda entries: entries[place + 1].update(turn=-1))
    with pytest.raises(JournalError, match="a reply to turn -1, which was not asked"):
        write_report(RunFolder(folder), result)


def test_it_is_never_written_through_a_link(woven: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(woven, folder)
    (tmp_path / "precious").write_text("precious")
    (folder / "report.html").unlink(missing_ok=True)
    (folder / "report.html").symlink_to(tmp_path / "precious")
    (folder / ".report.html.partial").symlink_to(tmp_path / "precious")
    assert reply_of(report(folder), 0) == "Understood."
    assert (tmp_path / "precious").read_text() == "precious"
