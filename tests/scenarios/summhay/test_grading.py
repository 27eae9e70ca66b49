"""How summaries are graded: what a perfect one, a silent one and those that cheat come to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.summhay.bullets import find_citations, mean_length, split_bullets
from longspan.scenarios.summhay.joint_scores import pool_scores, score_insight
from longspan.scenarios.summhay.scenario import SummHay
from longspan.simulator.contract.graded_record import Exchange, Marked, Record
from longspan.simulator.running.preflight.rehearsal import rehearse

SMALL: dict[str, Any] = {"documents": 30, "words": 150, "subtopics": 4}


def graded(reply: Callable[[str], str], **parameters: Any) -> list[Marked]:
    """All tests of a haystack, answered with what `reply` makes of the ideal summary."""
    scenario = SummHay(**SMALL | parameters)
    found = []
    for id, script in scenario.series(1, "seed"):
        line = script.lines[-1]
        record = Record([Exchange(0, line.text, reply(line.ideal), asks=True)])
        grade = scenario.grade(script.facts, record)
        found.append(Marked(id, grade.score, grade.items))
    return found


def table(tests: list[Marked]) -> dict[str, str]:
    """The row of the report's table."""
    (found,) = (each for each in SummHay().tables({"run": tests}) if each.title == "Summaries with sources")
    return dict(zip(found.columns, found.rows[0], strict=True))


@pytest.mark.parametrize("domain", ["conversation", "news"])
@pytest.mark.parametrize("retriever", ["full", "rand", "kws", "oracle"])
def test_a_perfect_summary_scores_in_full(domain: str, retriever: str) -> None:
    tests = graded(lambda ideal: ideal, domain=domain, retriever=retriever, budget=1000)
    row = table(tests)
    assert [row[name] for name in ("coverage", "citation", "joint", "precision", "recall")] == ["1.000"] * 5
    assert [test.score for test in tests] == [1] * 4


@pytest.mark.parametrize("reply", ["OK.", "", "\n \n", "- \n- \n", "[1][2][3]", "1 2 3 " * 50_000, "[" * 100_000, "- x\n" * 50_000])
def test_nothing_said_scores_nothing(reply: str) -> None:
    tests = graded(lambda ideal: reply, subtopics=1)
    assert [test.score for test in tests] == [0]
    assert table(tests)["coverage"] == "0.000"
    assert table(tests)["citation"] == ""


def test_whoever_cites_every_document_has_low_precision() -> None:
    everything = str(list(range(1, 31)))
    row = table(graded(lambda ideal: re.sub(r"\[.*\]", everything, ideal)))
    assert (row["coverage"], row["recall"]) == ("1.000", "1.000")
    assert float(row["precision"]) < 0.4
    assert float(row["joint"]) < 0.6


def test_half_of_the_insights_is_about_half_the_coverage() -> None:
    row = table(graded(lambda ideal: "\n".join(ideal.splitlines()[::2])))
    assert float(row["coverage"]) == pytest.approx(0.5, abs=0.12)
    assert row["citation"] == "1.000"


def test_an_insight_without_its_figures_is_covered_partly() -> None:
    def vague(ideal: str) -> str:
        return "\n".join(re.sub(r"\d+", "some", line.partition("[")[0]) + line[line.index("[") :] for line in ideal.splitlines())

    row = table(graded(vague))
    assert (row["coverage"], row["citation"], row["joint"]) == ("0.500", "1.000", "0.500")


def test_whoever_lists_all_numbers_and_dates_has_told_nothing() -> None:
    months = "January February March April May June July August September October November December".split()
    dump = " ".join([*map(str, range(100, 1000)), *(f"{day} {month}," for month in months for day in range(1, 32))])
    assert {test.score for test in graded(lambda ideal: dump)} == {0}
    assert table(graded(lambda ideal: dump))["coverage"] == "0.000"


def test_the_bullet_that_tells_most_counts_and_the_first_of_several() -> None:
    scenario = SummHay(**SMALL)
    script = scenario.make(Random(1))
    fact = script.facts["insights"][0]
    name = next(sign for sign in fact["signs"] if sign.isalpha())
    line = next(line for line in script.lines[0].ideal.splitlines() if fact["text"] in line)
    reply = f"My summary:\n- Something about {name} [1]\n{line}\n{line.partition('[')[0]}[9]"
    grade = scenario.grade(script.facts, Record([Exchange(0, "", reply, asks=True)]))
    assert grade.items[0].numbers["bullet"] == 3
    assert grade.items[0].score == 1


def test_scores_are_pooled_over_insights_and_citations_over_covered_ones() -> None:
    every = [score_insight(1.0, {1, 2}, {1, 2, 3, 4}), score_insight(0.5, {7}, {1}), score_insight(0.0, {1}, {1})]
    found = pool_scores(every)
    assert found is not None
    assert found.coverage == pytest.approx(0.5)
    assert (found.precision, found.recall) == (0.5, 0.25)
    assert found.citation == pytest.approx(fmean([2 / 3, 0]))
    assert found.joint == pytest.approx((2 / 3) / 3)
    assert pool_scores([]) is None


NUMBERS = st.frozensets(st.integers(1, 20))


@given(cited=NUMBERS, sources=NUMBERS, coverage=st.sampled_from([0.0, 0.5, 1.0]))
def test_scores_are_1_only_for_the_right_documents(cited: frozenset[int], sources: frozenset[int], coverage: float) -> None:
    each = score_insight(coverage, cited, sources)
    assert all(0 <= number <= 1 for number in (*each, each.joint))
    assert (each.joint == 1) == (coverage == 1 and cited == sources != frozenset())


@pytest.mark.parametrize(
    ("bullet", "cited"),
    [
        ("- x [1]", {1}),
        ("x [1, 4], y [7][8]", {1, 4, 7, 8}),
        ("[ 3 ,5 ]", {3, 5}),
        ("[a] [1-3] (4) 5 [٣]", set()),
        ("[99999999999999999999]", {-1}),
        ("[,]", set()),
    ],
)
def test_citations(bullet: str, cited: set[int]) -> None:
    assert find_citations(bullet) == cited


def test_every_line_that_is_not_blank_is_a_bullet() -> None:
    found = split_bullets("Here are they:\n\n  * one two [3]\n \t\n- three\r\n")
    assert found == ["Here are they:", "* one two [3]", "- three"]
    assert mean_length(found) == pytest.approx((3 + 3 + 2) / 3)
    assert mean_length([]) == 0


SCRIPT = SummHay(documents=20, words=100, subtopics=1).make(Random(1))


@given(st.text(max_size=200))
def test_no_reply_breaks_the_grader(reply: str) -> None:
    grade = SummHay().grade(SCRIPT.facts, Record([Exchange(0, "", reply, asks=True)]))
    assert grade.score is not None
    assert len(grade.items) == len(SCRIPT.facts["insights"])


def test_a_rehearsal_is_one_summary() -> None:
    played = rehearse(SummHay(documents=20, words=100), seed=1, reply=lambda text, ideal: ideal)
    assert played.grade.score == 1
    assert len(played.record.exchanges) == 1


# tables


def test_scores_by_rank_show_where_a_reader_stopped() -> None:
    def first_half(ideal: str) -> str:
        return re.sub(r"[\d, ]+(?=\])", lambda cited: ",".join(each for each in cited[0].split(",") if int(each) <= 15), ideal)

    (ranks,) = (each for each in SummHay().tables({"run": graded(first_half)}) if "rank" in each.title)
    citation = next(row for row in ranks.rows if row[1] == "citation")
    assert citation[2:] == ["1.00"] * 5 + ["0.00"] * 5
    assert next(row for row in ranks.rows if row[1] == "coverage")[2:] == ["1.00"] * 10


def test_position_bias_is_the_largest_difference_to_the_stored_order() -> None:
    scenario = SummHay(**SMALL, position="all")
    found = []
    for id, script in scenario.series(1, "seed"):
        line = script.lines[-1]
        told = line.ideal.splitlines()
        reply = "\n".join(told[:2] if id.endswith("bottom") else told)
        grade = scenario.grade(script.facts, Record([Exchange(0, line.text, reply, asks=True)]))
        found.append(Marked(id, grade.score, grade.items))
    (table,) = (each for each in scenario.tables({"run": found}) if each.title == "Position bias")
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["top"], row["middle"], row["stored order"]) == ("1.000",) * 3
    assert float(row["sensitivity"]) == pytest.approx(1 - float(row["bottom"]), abs=0.002)
    assert 0.2 < float(row["bottom"]) < 0.5


def test_no_tables_where_nothing_was_decided() -> None:
    assert SummHay().tables({"run": [Marked("1", None)]}) == []


# The judge's questions, and prompts of the user's own.


def published(folder: Path, **topic: Any) -> Path:
    """A topic file with an insight that no document says."""
    subtopic = {
        "subtopic_id": "s",
        "subtopic": "the subtopic",
        "query": "The query?",
        "insights": [{"insight_id": id, "insight": f"{id} is so."} for id in ("a", "b")],
    }
    document = {"document_id": "d", "document_text": "Of a: it is so.", "insights_included": ["a"]}
    path = folder / "topic_1.json"
    path.write_text(json.dumps({"topic": "the topic", "subtopics": [subtopic], "documents": [document]} | topic), "utf-8")
    return path


@pytest.mark.parametrize(("metadata", "asked", "bullets"), [({}, "The query?", 2), ({"domain": "news"}, "the subtopic", 1)])
def test_each_domain_is_asked_as_the_authors_ask_it_and_every_insight_counts(
    tmp_path: Path, metadata: dict[str, Any], asked: str, bullets: int
) -> None:
    scenario = SummHay(data=published(tmp_path, topic_metadata=metadata))
    ((_, script),) = scenario.series(1, "seed")
    text = script.lines[0].text
    assert [each in text for each in ("The query?", "the subtopic")] == [asked == each for each in ("The query?", "the subtopic")]
    assert "no more than 300 words" in text
    assert f"a list of {bullets} bullet point" in text
    record = Record([Exchange(0, text, "- a is so. [1]", asks=True)])
    asks = scenario.grade(script.facts, record).asks
    judged = {asks[0].about: {"coverage": "full", "bullet": 1}, asks[1].about: {"coverage": "none", "bullet": None}}
    assert scenario.grade(script.facts, replace(record, judged=judged)).score == 0.5, "of two insights, one of them in no document"


def test_prompts_of_the_user_are_played_to_the_letter(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.yaml"
    prompts.write_text(
        "ask: '{{count}} of {{topic}} by {{participants}}: {{documents}}{{bullets}} on {{query}} {{subtopic}}'\n"
        "document: '<{{label}} {{number}}: {{text}}>'\n"
        "judge: 'Is {{insight}} in {{bullets}}?'\n",
        "utf-8",
    )
    scenario = SummHay(data=published(tmp_path, topic_metadata={"participants": ["Ann", "Bo"]}), prompts=prompts)
    ((_, script),) = scenario.series(1, "seed")
    text = script.lines[0].text
    assert text == "1 of the topic by Ann, Bo: <Conversation 1: Of a: it is so.>2 on The query? the subtopic"
    record = Record([Exchange(0, text, "- a is so. [1]", asks=True)])
    asks = scenario.grade(script.facts, record).asks
    shown = json.dumps({"bullets": [{"bullet_id": 1, "text": split_bullets("- a is so. [1]")[0]}]}, indent=1)
    assert asks[0].prompt == f"Is a is so. in {shown}?"
    judged = {
        asks[0].about: {"coverage": "PARTIAL_COVERAGE", "bullet_id": 1},
        asks[1].about: {"coverage": "NO_COVERAGE", "bullet_id": "NA"},
    }
    assert scenario.grade(script.facts, replace(record, judged=judged)).score == 0.25
