"""Evidence distances in tables and sentences, and the curve of scores over them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from longspan.simulator.base.sizes import format_tokens
from longspan.simulator.contract.graded_record import Item
from longspan.simulator.journal.run_folder import Correction, RunFolder
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.pages.report.comparison_tables import comparison_notes, comparison_tables
from longspan.simulator.results.analysis.distance_curve import distance_curve
from longspan.simulator.results.analysis.distances import (
    Distances,
    PlacedQuestion,
    Point,
    describe_narrow_scenarios,
    graded_points,
    questions_with_needs,
    spans_kept,
    spans_said,
)
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import Result, TestResult, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_scores
from tests.made_runs import made_run
from tests.report.forgetful import WINDOW
from tests.report.pages import Page, journal, report
from tests.timing import growth


@pytest.fixture
def result(tmp_path: Path) -> Result:
    """The results of a run of eleven scenarios at 2k."""
    return read_result(RunFolder(made_run(tmp_path, "one", lambda scenario, number: number / 3)))


def changed(test: TestResult, **fields: Any) -> TestResult:
    return test.model_copy(update=fields)


# Distances.


def test_a_question_lies_as_far_back_as_the_furthest_needle_that_it_needs(result: Result) -> None:
    pairs = [Evidence(1, 9, 700, 650), Evidence(4, 9, 300, 280), Evidence(1, 20, 1_500, 1_400)]
    test = changed(result.tests[0], evidence=pairs)
    assert questions_with_needs(test) == [PlacedQuestion(9, 700, 650, 1), PlacedQuestion(20, 1_500, 1_400, 1)]
    assert questions_with_needs(changed(test, evidence=[])) == []
    assert questions_with_needs(changed(test, evidence=[Evidence(1, 2, 40)])) == [PlacedQuestion(2, 40, 40, 1)], "0.2 charged nothing"

    def nearest(*pairs: Evidence) -> list[int]:
        return [each.needle for each in questions_with_needs(changed(test, evidence=list(pairs)))]

    far, middle, near = (Evidence(turn, 9, 900 - 100 * turn) for turn in (1, 4, 6))
    assert nearest(replace(far, choice=0), replace(middle, choice=0), replace(near, choice=0)) == [6], "one of them suffices"
    assert nearest(replace(far, choice=0), middle, replace(near, choice=0)) == [4]
    assert nearest(replace(far, choice=0), replace(middle, choice=1), replace(near, choice=1)) == [1]
    assert nearest(replace(far, needed=False), middle, near) == [4]
    assert nearest(replace(far, needed=False)) == [], "such a question needs nothing"


def test_scenarios_say_which_needles_their_questions_need(tmp_path: Path) -> None:
    """Of a fact that changed what holds, not what it was before; of what others planted nothing; of lists and stories everything."""
    suite = load_suite("memory").model_copy(update={"tests": 4})
    planned = [
        plan_run(RunSettings(suite=suite, span=8_000, agent="oracle"), tmp_path),
        plan_run(
            RunSettings(suite=load_suite("history").apply_changes(["history.tokens=5000"], [], [], 1), span=2_000, agent="oracle"), tmp_path
        ),
    ]
    kinds: dict[str, set[str]] = {}
    for folder in (RunFolder(outcome.folder) for outcome in trio.run(lambda: play_plans(planned))):
        transcripts = folder.transcripts()
        for test in read_result(folder).tests:
            transcript = transcripts[str(test.conversation)]
            facts = transcript.tests[test.id].definition.facts or {}
            said = transcript.history
            questions = [each.turn for each in transcript.tests[test.id].exchanges if each.asks]
            for turn in {pair.question_turn for pair in test.evidence}:
                pairs = [pair for pair in test.evidence if pair.question_turn == turn]
                needed = [said[pair.needle_turn].text for pair in pairs if pair.needed]
                others = [said[pair.needle_turn].text for pair in pairs if not pair.needed]
                assert needed
                assert all(pair.choice is None for pair in pairs)
                kind = test.scenario
                if test.scenario == "update":
                    kind = facts["asked"][questions.index(turn)]
                    about = facts["expected"][kind]
                    if kind in ("present", "held", "actual"):
                        assert any(f"{about['room']} Room" in text for text in needed)
                        assert len(needed) == 1 + (kind == "present")
                        assert kind != "present" or any(f"{about['day']}s" in text for text in needed)
                elif test.scenario == "injection":
                    kind = facts["asked"][questions.index(turn)]
                    wanted = facts["wish"] if kind == "benign instruction" else facts["times"][kind]
                    assert len(needed) == 1
                    assert wanted in needed[0]
                elif test.scenario == "digest":
                    assert [any(deed in text for text in needed) for deed, what in facts["told"]] == [
                        what != "older" for deed, what in facts["told"]
                    ]
                elif test.scenario == "reminder":
                    assert said[pairs[0].needle_turn].text == needed[0] == facts["segments"][0][0]["text"]
                elif test.tags == ["knowledge-update"]:
                    kind = test.tags[0]
                    assert len(needed) == 1
                    assert str(facts["answer"]) in needed[0]
                kinds.setdefault(kind, set()).add("some" if others else "all")
    assert {kind for kind, found in kinds.items() if "some" in found} == {
        "present", "held", "actual", "planted instruction", "benign instruction", "planted fact", "digest", "reminder", "knowledge-update",
    }  # fmt: skip


def test_a_forged_distance_breaks_nothing(result: Result) -> None:
    tests = [changed(test, evidence=[Evidence(1, 2, distance)]) for test, distance in zip(result.tests, [-5, 10**400, 3], strict=False)]
    assert [point.distance for point in graded_points([*tests, *result.tests[3:]], 2000)][:3] == [0, 10**12, 3]
    assert distance_curve(graded_points([*tests, *result.tests[3:]], 2000)) is not None


def test_items_that_name_their_turns_are_graded_questions_and_else_the_last_question_has_the_tests_score(result: Result) -> None:
    pairs = [Evidence(1, turn, 100 * turn, 90 * turn) for turn in (5, 10, 15)]
    test = changed(result.tests[0], evidence=pairs, score=0.25)

    def found(**fields: Any) -> list[tuple[int, float | None]]:
        return [(point.distance, point.score) for point in graded_points([changed(test, **fields)], 2_000)]

    assert found() == [(1_500, 0.25)]
    items = [Item(name="a", score=1, turn=5), Item(name="b", score=0, turn=5), Item(name="c", score=None, turn=10), Item(name="d", score=1)]
    assert found(items=items) == [(500, 0.5), (1_000, None)]
    correction = Correction(test=test.id, score=0.25, why="read again", by="Ada")
    assert found(items=items, correction=correction) == [(1_500, 0.25)], "it overrides the items"
    assert found(evidence=[]) == []
    assert graded_points([test], 2_000)[0].share == pytest.approx(1_350 / 2_000)


def test_medians_and_ranges_are_in_tokens_as_said_and_in_shares_of_the_span_as_dealt(result: Result) -> None:
    tests = [
        changed(test, evidence=[Evidence(1, 2, said, dealt)])
        for test, said, dealt in zip(result.tests, (812, 1_180, 14_960), (100, 1_200, 1_880), strict=False)
    ]
    distances = Distances.of(tests, 2_000)
    assert (distances.in_tokens, distances.of_span) == ("1.2k (812–15k)", "60% (5–94)")
    alone = Distances.of([changed(test, exempt="alone") for test in tests], 2_000)
    assert (alone.in_tokens, alone.of_span) == ("1.2k (812–15k)", "–")
    assert Distances.of([], 2_000).in_tokens == "–"
    assert Distances.of(tests[:1], 2_000).in_tokens == "812"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (999.5, "1.0k"),
        (1_249, "1.2k"),
        (9_949, "9.9k"),
        (9_950, "10k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (12e6, "12M"),
    ],
)
def test_large_numbers_of_tokens_are_short(tokens: float, text: str) -> None:
    assert format_tokens(tokens) == text


def test_scenarios_that_are_seen_only_at_some_distances_are_named(result: Result) -> None:
    places = {"colours": (600, 650, 700), "jokes": (100, 900, 1_900)}
    tests = [
        changed(test, evidence=[Evidence(1, 2, 5_000, places[test.scenario][int(test.id[-1]) - 1])])
        for test in result.tests
        if test.scenario in places
    ]
    sentence = describe_narrow_scenarios(graded_points(tests, 2_000))
    assert sentence is not None
    assert sentence.endswith("cannot be separated: colours (30–35%)")
    assert describe_narrow_scenarios(graded_points(tests[3:], 2_000)) is None
    assert describe_narrow_scenarios(graded_points([changed(test, exempt="isolated") for test in tests], 2_000)) is None, (
        "distances are not what such a run is about"
    )


def test_one_sentence_says_whether_spans_were_kept_and_one_what_replies_made_of_them(result: Result) -> None:
    assert spans_kept(result) == "All tests kept their span in charged tokens."
    tests = [changed(test, span_dealt=1_000 + number, span_used=5_000 + 10 * number) for number, test in enumerate(result.tests)]
    tests[1] = changed(tests[1], certified=False)
    tests[2] = changed(tests[2], certified=False, span_dealt=0, span_used=0)
    other = result.model_copy(update={"tests": tests})
    kept = f"31 of 33 tests kept their span in charged tokens; beyond it: {tests[1].id}; without a question that was asked: {tests[2].id}."
    assert spans_kept(other) == kept
    said = "A test's span is 1,016 charged tokens at the median; with this agent's replies, it is 5,165 tokens at the median"
    assert spans_said(other) == f"{said} (5,000 to 5,320)."
    earlier = result.model_copy(update={"tests": [changed(test, span_dealt=0) for test in tests]})
    assert str(spans_said(earlier)).startswith("With this agent's replies, a test's span is 5,165 tokens at the median")
    alone = result.model_copy(update={"tests": [changed(test, exempt="alone") for test in tests]})
    assert (spans_kept(alone), spans_said(alone)) == (None, None)


def test_the_table_of_scores_fits_a_terminal_of_eighty_columns(result: Result, tmp_path: Path) -> None:
    wide = [changed(test, evidence=[Evidence(1, 2, 312_345, 301_000), Evidence(1, 3, 451_000, 450_000)]) for test in result.tests]
    file = io.StringIO()
    manifest = RunFolder(tmp_path / "run-0").manifest
    print_scores(manifest, result.model_copy(update={"span": 500_000, "tests": wide}), Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if line.startswith("prospective_memory ")]
    assert [row.split(" 10% ", 1)[1].split(maxsplit=2) for row in rows] == [["382k", "(312k–451k)", "75% (60–90)"]]
    assert not any(word in file.getvalue() for word in ("certified", "at distance"))


# The curve.


def drawn(remembers: Callable[[float], float], tests: int, seed: int, conversations: int = 1) -> list[Point]:
    """Questions at random distances up to 1,900 tokens, answered with the probability that `remembers` gives."""
    random = Random(seed)
    distances = [random.randint(100, 1_900) for _ in range(tests * conversations)]
    scores = [float(random.random() < remembers(distance)) for distance in distances]
    pairs = enumerate(zip(distances, scores, strict=True))
    return [Point(f"t-{n}", "made", f"c{n % conversations}", distance, 0, score, 0, n) for n, (distance, score) in pairs]


@pytest.mark.parametrize(
    ("half", "remembers"),
    [
        (500, lambda distance: distance <= 500),
        (1_000, lambda distance: distance <= 1_000),
        (1_500, lambda distance: distance <= 1_500),
        (1_000, lambda distance: max(0.0, 1 - distance / 2_000)),
        (600, lambda distance: max(0.0, 1 - distance / 1_200)),
        (1_000 * log(2), lambda distance: exp(-distance / 1_000)),
    ],
)
def test_the_interval_covers_the_distance_at_which_a_known_memory_fails_at_its_nominal_rate(
    half: float, remembers: Callable[[float], float]
) -> None:
    seeds = 40
    found = [distance_curve(drawn(remembers, 33, seed)) for seed in range(seeds)]
    curves = [curve for curve in found if curve is not None]
    covered = sum(curve.half.low <= half <= curve.half.high for curve in curves)
    assert covered >= 35, "at a rate of 0.95, fewer than 35 of 40 have a probability of 0.014"
    assert sorted(curve.half.value for curve in curves)[seeds // 2] == pytest.approx(half, rel=0.15)


def test_the_interval_is_wider_where_whole_conversations_differ() -> None:
    def found(limits: list[int]) -> list[Point]:
        groups = [drawn(lambda distance, limit=limit: distance <= limit, 33, seed) for seed, limit in enumerate(limits)]
        return [point._replace(test=f"{at}-{point.test}", conversation=f"c{at}") for at, group in enumerate(groups) for point in group]

    def width(points: list[Point], by: str) -> float:
        curve = distance_curve(points)
        assert curve is not None
        assert curve.by == by
        return curve.half.high - curve.half.low

    together = [point._replace(conversation="main") for point in found([300, 1_500] * 3)]
    assert width(found([300, 1_500] * 3), "conversations") > 2 * width(together, "tests")
    assert width(found([900] * 6), "conversations") < 250


def test_the_curve_depends_on_neither_the_order_nor_the_number_of_a_tests_questions() -> None:
    found = drawn(lambda distance: max(0.0, 1 - distance / 2_000), 33, 5)
    assert distance_curve(found[::-1]) == distance_curve(found)
    often = distance_curve([*found, *[found[0]] * 50])
    assert often is not None
    assert often.scores[20].value == pytest.approx(distance_curve(found).scores[20].value), "a test counts as one"  # type: ignore[union-attr]


def test_an_agent_that_knows_all_or_nothing_never_falls_to_one_half() -> None:
    for known, half, words in ((1, inf, "above one half"), (0, 0, "below one half")):
        curve = distance_curve(drawn(lambda distance, known=known: known, 33, 1))
        assert curve is not None
        assert curve.half == (half, half, half)
        assert curve.fall.value == pytest.approx(0, abs=1e-6)
        assert f"no fall; {words} at all distances seen" in curve.sentence


def test_there_is_no_curve_through_too_few_tests_or_distances() -> None:
    found = drawn(lambda distance: distance <= 1_000, 33, 1)
    assert distance_curve([]) is None
    assert distance_curve(found[:5]) is None
    assert distance_curve([point._replace(distance=700) for point in found]) is None
    assert distance_curve([point._replace(score=None) for point in found]) is None


def test_more_questions_take_little_longer() -> None:
    def work(tests: int) -> object:
        return distance_curve(drawn(lambda distance: max(0.0, 1 - distance / 2_000), tests, 1))

    assert growth(work, 300) < 10


@pytest.mark.parametrize(("span", "agent", "limit"), [(8_000, "ThreeThousand", 3_000), (32_000, "TwelveThousand", 12_000)])
@pytest.mark.parametrize("same", [False, True])
def test_an_agent_that_knows_the_last_tokens_alone_falls_where_it_forgets(
    tmp_path: Path, span: int, agent: str, limit: int, same: bool
) -> None:
    """Whether a question needs all of its needles, or one of them suffices: the scenario says which."""
    suite = Suite(name="parts", tests=24, scenarios={"python:tests.report.forgetful:Parts": {"same": same}})
    settings = RunSettings(suite=suite, span=span, seed=0, agent=f"python:tests.report.forgetful:{agent}")
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path)]))
    result = read_result(RunFolder(outcome.folder))
    reach = min if same else max
    assert [test.score for test in result.tests] == [float(reach(pair.tokens for pair in test.evidence) <= limit) for test in result.tests]
    found = graded_points(result.tests, span)
    assert [point.score for point in found] == [float(point.distance <= limit) for point in found]
    assert 0 < sum(point.lowest for point in found) < len(found)
    comparison = load_comparison([outcome.folder])
    for curve in (distance_curve(found), comparison.curves[f"python:tests.report.forgetful:{agent}"]):
        assert curve is not None
        assert curve.half.value == pytest.approx(limit, rel=0.15)
        assert curve.half.low <= limit <= curve.half.high
        assert curve.fall.value > 0.9


@pytest.mark.parametrize(("span", "limit"), [(8_000, 3_000), (32_000, 12_000)])
def test_a_memory_limit_shows_in_the_ltm_suite(tmp_path: Path, span: int, limit: int) -> None:
    """Tests are right if every needle that their questions need lies within the limit, worked out from the journal alone."""
    settings = RunSettings(suite=load_suite("ltm"), span=span, agent="silent", placement="spread")
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path)]))
    furthest: dict[str, int] = {}
    ends: dict[int, int] = {}
    for entry in journal(outcome.folder):
        if entry["type"] == "message":
            ends[entry["turn"]] = entry["start"] + entry["tokens"]
            if entry["kind"] == "question" and entry.get("needs"):
                furthest[entry["test"]] = entry["start"] - min(ends[turn] for turn in entry["needs"])
    result = read_result(RunFolder(outcome.folder))
    tests = [changed(test, score=float(furthest[test.id] <= limit), items=[]) for test in result.tests if test.id in furthest]
    curve = distance_curve(graded_points(tests, span))
    assert curve is not None
    assert curve.half.low <= limit <= curve.half.high
    assert curve.half.value == pytest.approx(limit, rel=0.25)
    assert curve.fall.value > 0.9


def test_a_real_runs_curve_recovers_the_agents_memory_and_is_shown(tmp_path: Path) -> None:
    suite = Suite(name="codes", tests=24, scenarios={"python:tests.report.forgetful:Codes": {}})
    settings = RunSettings(suite=suite, span=2000, seed=0, agent="python:tests.report.forgetful:Window")
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path)]))
    assert outcome.result is not None
    found = graded_points(outcome.result.tests, 2000)
    assert [point.score for point in found] == [float(point.distance <= WINDOW) for point in found]
    curve = distance_curve(found)
    assert curve is not None
    assert curve.half.low <= WINDOW <= curve.half.high
    page: Page = report(outcome.folder)
    section = page.root.one("section", **{"aria-labelledby": "by-distance"})
    assert curve.sentence in section.words
    assert len(section.all("circle", class_="dot")) == len(found) == 24
    comparison = load_comparison([outcome.folder])
    (table,) = (table for table in comparison_tables(comparison) if table.title.startswith("Score by evidence distance"))
    ((_, questions, *_, half),) = table.rows
    assert (questions, half.partition(" ")[0]) == ("24", format_tokens(curve.half.value))
    assert not any("only at some distances" in note for note in comparison_notes(comparison))
