"""Comparisons: the figures, runs that cannot be compared, notes, and output formats."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import pstdev
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from playwright.sync_api import expect

from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.comparison import POLICY, Links, as_html, links_from
from longspan.simulator.pages.report.comparison_tables import (
    COMMON_COLUMNS,
    as_csv,
    as_markdown,
    comparison_notes,
    comparison_tables,
    escape_markdown,
)
from longspan.simulator.results.analysis.statistics import permutation_p
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.comparing import Comparison, load_comparison, load_comparisons
from longspan.simulator.results.measures.group_tables import one_line
from longspan.simulator.results.measures.memory_losses import COUNTS, MemoryLosses, losses_by_column
from tests import forked
from tests.browser import PHONE, Open
from tests.made_runs import SKILLS, made_run
from tests.report.pages import Page, played
from tests.sealing import change_json, write_json

SCENARIOS = list(SKILLS)

AT_2K = Column(isolated=False, span=2_000)

HOSTILE = "<script>alert(1)</script></svg></style>|`$x_{y}$\n\x1b[31m\u202eevil\x00 *b* [a](javascript:alert(1))"


def longspan(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    return forked.longspan(*arguments, where=where)


def constant(value: float | None) -> Callable[[str, int], float | None]:
    return lambda scenario, number: value


def halves(scenario: str, number: int) -> float:
    """1 for the first test of a scenario, 0 for the others."""
    return float(number == 1)


def rows_of(comparison: Comparison, table: str) -> list[dict[str, str]]:
    return [row for row in csv.DictReader(io.StringIO(as_csv(comparison))) if row["table"] == table]


# Figures.


def test_a_cell_is_as_the_paper_counts_over_all_repetitions(tmp_path: Path) -> None:
    for seed, scores in enumerate(([1.0, 0.0, 0.5], [1.0, 1.0, 1.0])):
        run = iter(scores * 2)
        made_run(tmp_path, "one", lambda scenario, number, run=run: next(run), seed=seed, scenarios=("colours", "jokes"))
    cell = load_comparison([tmp_path]).cells["one", AT_2K]
    assert cell.score == pytest.approx(2 * 4.5 / 6)
    assert cell.spread == pytest.approx(2 * pstdev([1, 0, 0.5, 1, 1, 1]))
    assert (cell.runs, cell.tests, cell.maximum, cell.chance) == (2, 12, 2, pytest.approx(0.2))
    assert cell.bounds == (cell.score, cell.score)
    assert cell.interval is not None
    assert cell.interval.by == "conversations"
    assert cell.interval.low <= 1.0
    assert cell.interval.high > 1.8


def test_it_agrees_with_the_runs_own_results(tmp_path: Path) -> None:
    folders = [played(tmp_path / agent, "colours", "trigger_response", agent=agent) for agent in ("oracle", "notebook", "silent")]
    comparison = load_comparison(folders)
    for folder in folders:
        result = json.loads((folder / "result.json").read_text())
        cell = comparison.cells[result["agent"], AT_2K]
        assert cell.score == pytest.approx(result["score"], abs=1e-6)
        assert cell.spread == pytest.approx(sum(scenario["std"] for scenario in result["scenarios"].values()), abs=1e-6)
        assert cell.certified == pytest.approx(result["certified"])
        for name, scenario in result["scenarios"].items():
            assert comparison.scenarios[AT_2K][name][result["agent"]].low == pytest.approx(scenario["score"], abs=1e-6)
    assert comparison.agents == ["oracle", "notebook", "silent"]
    assert [line.partition(": ")[0] for line in comparison.warnings] == ["silent at 2k"], "its score says nothing about memory"
    assert comparison.unusable == []


def test_agents_are_ranked_by_their_lower_bounds_and_tests_without_a_score_are_counted(tmp_path: Path) -> None:
    made_run(tmp_path, "sure", constant(0.5))
    made_run(tmp_path, "unsure", lambda scenario, number: None if number == 1 else 0.6)
    comparison = load_comparison([tmp_path])
    cell = comparison.cells["unsure", AT_2K]
    assert comparison.agents == ["sure", "unsure"]
    assert (cell.score, cell.spread) == (None, None)
    assert cell.bounds == (pytest.approx(11 * 0.4), pytest.approx(11 * 2.2 / 3))
    assert cell.statuses == {"unscored": 11, "scored": 22}
    (pair,) = comparison.pairs
    assert (pair.agent, pair.unscored, pair.points) == ("sure", 11, pytest.approx(11 * 0.1))
    assert any(note.startswith("11 tests have no score") for note in comparison_notes(comparison))
    assert comparison_tables(comparison)[0].rows[1][1].startswith("40%–73% [")
    (row,) = (row for row in rows_of(comparison, "scores") if row["agent"] == "unsure")
    assert (row["score"], row["unscored"], row["scored"]) == ("", "11", "22")


def test_a_span_that_some_agents_lack_does_not_count_in_ranks(tmp_path: Path) -> None:
    made_run(tmp_path, "thorough", constant(0.9))
    made_run(tmp_path, "thorough", constant(0.1), span=32_000)
    made_run(tmp_path, "hasty", constant(0.8))
    assert load_comparison([tmp_path]).agents == ["thorough", "hasty"]


def test_columns_are_as_in_the_papers_table(tmp_path: Path) -> None:
    for span in (32_000, 2_000, 1_500):
        made_run(tmp_path, "one", constant(1.0), span=span, left_out=("chapterbreak",) if span < 32_000 else ())
    made_run(tmp_path, "one", constant(1.0), span=32_000, isolated=True)
    table = comparison_tables(load_comparison([tmp_path]))[0]
    assert table.columns == ["agent", "isolated 32k, of 11", "1,500, of 10", "2k, of 10", "32k, of 11"]
    assert [row[0] for row in table.rows] == ["one", "chance"]


def test_scores_are_shown_as_shares_first_and_points_second(tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(0.5), left_out=("chapterbreak",))
    made_run(tmp_path, "one", constant(0.5), span=32_000)
    made_run(tmp_path, "two", constant(0.0), span=32_000)
    comparison = load_comparison([tmp_path])
    scores = comparison_tables(comparison)[0]
    assert scores.title.startswith("Scores in percent of full marks [95% interval] · points ± ")
    assert scores.columns == ["agent", "2k, of 10", "32k, of 11"]
    assert [row[0] for row in scores.rows] == ["one", "two", "chance"]
    assert [[cell.split(" ")[0] for cell in row[1:]] for row in scores.rows] == [["50%", "50%"], ["", "0%"], ["10%", "10%"]]
    assert [row[1].partition(" · ")[2] for row in scores.rows] == ["5.00 ± 0.00", "", "1.00"]
    (interval,) = (cell.interval for key, cell in comparison.cells.items() if key[0] == "two")
    assert interval is not None
    assert scores.rows[1][2] == f"0% [0%, {interval.high / 11:.0%}] · 0.00 ± 0.00"
    assert [row["share"] for row in rows_of(comparison, "scores")] == ["0.5", "0.5", "0.0"]
    (tmp_path / "page.html").write_text(as_html(comparison), "utf-8")
    page = Page(tmp_path / "page.html").root
    assert [cell.words for cell in page.one("table", class_="board").all("span", class_="big")] == ["50%", "50%", "0%"]
    captions = {figure.attributes["id"]: figure.one("figcaption").words for figure in page.all("figure")}
    assert [name for name, caption in captions.items() if "Full marks differ" in caption] == ["figure-bars", "figure-spans"]


def test_agents_have_a_shaded_table_of_scenarios_by_span_once_there_are_several(tmp_path: Path) -> None:
    for agent, score in {"one": 0.5, "two": 0.0}.items():
        for span in (2_000, 32_000):
            made_run(tmp_path, agent, constant(score), span=span, scenarios=("colours", "jokes"))
    titles = ["Scenarios, one: mean score", "Scenarios, two: mean score", "Evidence distance by scenario and span"]
    found = {table.title: table for table in comparison_tables(load_comparison([tmp_path])) if table.title in titles}
    assert list(found) == titles
    assert found[titles[0]].columns == ["scenario", "2k, 3 each", "32k, 3 each", "chance"]
    assert found[titles[0]].rows == [["colours", "50%", "50%", "10%"], ["jokes", "50%", "50%", "10%"]]
    assert found[titles[0]].shades == [[None, 0.5, 0.5, None]] * 2
    (pairs,) = (table for table in comparison_tables(load_comparison([tmp_path])) if table.title.startswith("Pairs"))
    assert [row[0] for row in pairs.rows] == ["2k", "32k"]


def test_the_matrix_links_each_test_to_the_agents_reports_and_side_by_side(tmp_path: Path) -> None:
    for agent in ("one", "two"):
        for seed in (10, 2):
            made_run(tmp_path / "runs", agent, halves, seed=seed, name=f"{agent}%{seed}", scenarios=("colours",), tests=11)
    (tmp_path / "runs" / "one%2" / "report.html").touch()
    comparison = load_comparison([tmp_path / "runs"])
    assert [(str(matrix.column), matrix.seed, matrix.note) for matrix in comparison.matrices] == [("2k", 2, ""), ("2k", 10, "")]
    links = links_from(tmp_path)
    (tmp_path / "page.html").write_text(as_html(comparison, links), "utf-8")
    _grid, first, second = Page(tmp_path / "page.html").root.all("table", class_="matrix")
    assert [row.all("th")[0].text for row in first.all("tr")[:4]] == ["Test", "colours-1", "colours-2", "colours-3"]
    assert [cell.words for cell in first.all("tr")[1].all("td")] == ["100%", "100%"]
    assert first.all("a")[0].attributes["href"] == "runs/one%252/report.html#test-colours-1"
    assert (len(first.all("a")), second.all("a")) == (11, [])
    beside = Links(report=links.report, side_by_side=lambda one, other, test: f"/{one.name}+{other.name}+{test}", home="/")
    (tmp_path / "page.html").write_text(as_html(comparison, beside), "utf-8")
    assert Page(tmp_path / "page.html").root.all("table", class_="matrix")[1].all("a")[0].attributes["href"] == "/one%2+two%2+colours-1"


def test_the_page_says_first_who_leads_and_a_grid_of_scenarios_shows_what_differs(visit: Open, tmp_path: Path) -> None:
    for seed in range(8):
        made_run(tmp_path / "runs", "oracle", lambda scenario, number: 1.0, seed=seed, scenarios=("colours", "jokes"))
        made_run(tmp_path / "runs", "good", lambda scenario, number: 1.0, seed=seed, scenarios=("colours", "jokes"))
        made_run(tmp_path / "runs", "bad", lambda scenario, number: float(scenario == "jokes"), seed=seed, scenarios=("colours", "jokes"))
    comparison = load_comparison([tmp_path / "runs"])
    (tmp_path / "page.html").write_text(as_html(comparison), "utf-8")
    seen = visit(tmp_path / "page.html")
    said = seen.page.locator("p.verdict").first
    expect(said).to_have_text(re.compile(r"^good is better than bad at 2k: 100% against 50% of full marks \(p = 0\.0"))
    expect(said).to_contain_text("They differ most in colours (100% against 0%).")
    rows = seen.page.locator(".grid tbody tr")
    assert [text.split()[:4] for text in rows.all_inner_texts()] == [["colours", "100%", "100%", "0%"], ["jokes", "100%", "100%", "100%"]]
    seen.page.get_by_label("only differences").check()
    expect(rows.first).to_be_visible()
    expect(rows.last).to_be_hidden()
    shown = seen.page.locator(".matrix tbody tr:visible").all_inner_texts()
    assert shown
    assert all(text.startswith("colours") for text in shown)
    assert seen.faults() == []


def test_where_the_memory_was_lost_is_told_for_each_agent_as_in_its_own_run(tmp_path: Path) -> None:
    folders = [played(tmp_path, "colours", "name_list", agent=agent) for agent in ("notebook", "silent")]
    comparison = load_comparison(folders)
    losses = MemoryLosses.of(grade_run(RunFolder(folders[0])).tests, 2_000)
    assert losses_by_column(comparison.side)["notebook", AT_2K] == ("memory", losses.needles, losses.answers, losses.inferred)
    assert [table.title for table in comparison_tables(comparison)[:2]] == [
        "Scores in percent of full marks [95% interval] · points ± the sum of the scenarios' standard deviations",
        "Memories by stage [95% interval]",
    ], "not all agents are memories, so that scores come first"
    (told, untold) = (
        table for table in comparison_tables(comparison) if table.title.startswith(("Where the memory was lost", "Answers of agents"))
    )
    (row,) = told.rows
    assert row[:3] == ["notebook", "2k", str(losses.needles.needed)]
    assert sum(map(int, row[3:])) == losses.needles.needed
    assert [row[0] for row in untold.rows] == ["silent"]
    memory = {row["agent"]: row for row in rows_of(comparison, "memory")}
    assert (memory["notebook"]["found_right"], memory["silent"]["found_right"]) == (str(losses.needles.found_right), "")
    assert int(memory["silent"]["wrong"]) > 0


def test_only_the_same_tests_are_paired(tmp_path: Path) -> None:
    for seed in (0, 1):
        made_run(tmp_path, "good", constant(1.0), seed=seed)
    made_run(tmp_path, "bad", halves, seed=1)
    made_run(tmp_path, "other", halves, seed=7)
    comparison = load_comparison([tmp_path])
    (pair,) = comparison.pairs
    assert (pair.agent, pair.other, pair.conversations, pair.tests) == ("good", "bad", 1, 33)
    assert (pair.points, pair.difference) == (pytest.approx(11 * 2 / 3), pytest.approx(2 / 3))
    assert (pair.p, pair.corrected, pair.p_of_tests) == (1, 1, permutation_p([1 / 3] * 22))
    assert (pair.verdict, pair.more, pair.unscored) == ("better here", None, 0)


def test_whole_conversations_are_compared_and_paired_by_seed(tmp_path: Path) -> None:
    """One agent is better in each of six conversations, by one to six scenarios."""
    for seed in range(6):
        better = 6 - seed
        made_run(tmp_path, "better", constant(1.0), seed=seed)
        made_run(tmp_path, "worse", lambda scenario, number, b=better: float((SCENARIOS.index(scenario), number) >= (b, 1)), seed=5 - seed)
    (pair,) = load_comparison([tmp_path]).pairs
    assert (pair.conversations, pair.tests, pair.points) == (6, 6 * 33, pytest.approx(21 / 6))
    assert (pair.p, pair.p_of_tests, pair.verdict, pair.more) == (2 / 2**6, None, "better", None)


def test_repetitions_of_a_seed_are_one_conversation(tmp_path: Path) -> None:
    for agent, score in {"one": 1.0, "two": 0.0}.items():
        for _ in range(3):
            made_run(tmp_path, agent, constant(score), seed=4)
    (pair,) = load_comparison([tmp_path]).pairs
    assert (pair.conversations, pair.tests, pair.p) == (1, 33, 1)


def test_isolated_tests_are_conversations_of_their_own(tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(1.0), isolated=True)
    made_run(tmp_path, "two", halves, isolated=True)
    (pair,) = load_comparison([tmp_path]).pairs
    assert (pair.conversations, pair.p, pair.p_of_tests) == (33, permutation_p([1 / 3] * 22), None)


@pytest.mark.parametrize(
    ("agents", "seeds", "tests", "expected"),
    [
        (2, 1, 1, "Too few conversations: 1 conversation in common. {}; this needs 6. Play 5 more seeds of each; 8 are recommended."),
        (
            2,
            5,
            1,
            "With 5 conversations in common, results do not generalise to others: this needs 6. Play 1 more seed of each; "
            "8 are recommended.",
        ),
        (2, 6, 1, None),
        (
            3,
            2,
            1,
            "Too few conversations: 2 conversations in common. {}; this needs 7 for 3 pairs of agents. "
            "Play 5 more seeds of each; 8 are recommended.",
        ),
    ],
)
def test_too_few_conversations_to_show_anything_are_noted_with_how_many_more_would_do(
    agents: int, seeds: int, tests: int, expected: str | None, tmp_path: Path
) -> None:
    for agent in range(agents):
        for seed in range(seeds):
            made_run(tmp_path, f"agent{agent}", constant(agent / 2), seed=seed, scenarios=("colours", "jokes"), tests=tests)
    comparison = load_comparison([tmp_path])
    found = [each.text for each in comparison.said.verdicts if each.text.startswith(("Too few", "With "))]
    table = next(table for table in comparison_tables(comparison) if table.title.startswith("Pairs"))
    if expected is None:
        assert found == []
        assert "p of these tests" not in table.columns
        assert table.rows[0][-1] == "better"
    else:
        assert found == [expected.format("Even an agent that is better in all of them could be so by chance")]
        assert "p of these tests" in table.columns


def test_tests_of_other_definitions_or_versions_are_not_the_same(tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(1.0))
    made_run(tmp_path, "two", constant(0.0), versions={"longspan": "0.0.1"})
    made_run(tmp_path, "three", constant(0.0), definitions="/somewhere", definitions_sha256="ab" * 32)
    comparison = load_comparison([tmp_path])
    assert comparison.pairs == []
    text = "\n".join(comparison_notes(comparison))
    assert "The version of longspan, which may change the tests of a seed, differs at 2k: 0.0.1 (two)" in text
    assert "The set of definitions differs at 2k: abababababab (three); none (one, two)" in text


def test_p_values_are_corrected_for_the_number_of_pairs(tmp_path: Path) -> None:
    for agent, score in {"a": 1.0, "b": 0.5, "c": 0.5}.items():
        for seed in range(6):
            made_run(tmp_path, agent, constant(score), scenarios=("colours", "jokes"), seed=seed)
    pairs = {(pair.agent, pair.other): pair for pair in load_comparison([tmp_path]).pairs}
    assert pairs["a", "b"].p == pytest.approx(2 / 2**6)
    assert pairs["a", "b"].corrected == pytest.approx(3 * 2 / 2**6)
    assert pairs["b", "c"].p == pairs["b", "c"].corrected == 1
    assert pairs["b", "c"].more is None


def test_costs_are_means_over_runs_and_unknown_if_one_is(tmp_path: Path) -> None:
    made_run(tmp_path, "expensive", constant(1.0), cost=1.0)
    made_run(tmp_path, "expensive", constant(1.0), cost=2.0, seed=1)
    made_run(tmp_path, "odd", constant(1.0), cost=1.0)
    made_run(tmp_path, "odd", constant(1.0), seed=1)
    cells = load_comparison([tmp_path]).cells
    assert cells["expensive", AT_2K].cost_usd == 1.5
    assert cells["odd", AT_2K].cost_usd is None


def test_skills_and_distances_gather_tests_across_scenarios(tmp_path: Path) -> None:
    made_run(tmp_path, "one", lambda scenario, number: float(scenario == "shopping"), span=100_000)
    comparison = load_comparison([tmp_path])
    counted = {run: rows_of(comparison, run) for run in ("skills", "distances")}
    skills = {row["name"]: row for row in counted["skills"]}
    assert list(skills) == [
        *("conflicting information", "episodic memory", "information integration", "prospective memory"),
        *("recall", "spatial memory", "theory of mind"),
    ]
    assert float(skills["recall"]["low"]) == pytest.approx(1 / 4)  # shopping among name_list, spy_meeting, trigger_response
    assert skills["theory of mind"]["tests"] == "3"
    assert sum(int(row["tests"]) for row in counted["distances"]) == 33
    bins = ["0 to 1,000", "1,000 to 4,000", "4,000 to 16,000", "16,000 to 64,000", "64,000 to 256,000"]
    names = [name.removesuffix(" tokens") for name in (row["name"] for row in counted["distances"])]
    assert names == [name for name in bins if name in names]
    assert len(names) >= 3


def test_neither_the_order_nor_the_folder_of_runs_changes_a_figure(tmp_path: Path) -> None:
    for seed in range(3):
        made_run(tmp_path / "here", "one", lambda scenario, number, seed=seed: ((number + seed) % 3) / 2, seed=seed)
        made_run(tmp_path / "here", "two", halves, seed=seed)
    first = load_comparison([tmp_path / "here"])
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    again = load_comparison([*sorted((tmp_path / "there").iterdir(), reverse=True), tmp_path / "there"])
    assert as_csv(again) == as_csv(first)
    assert again.runs == 6, "a run that is named twice counts once"


# Runs that cannot be compared, and notes.


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"suite": {"name": "mine", "tests": 3, "scenarios": {"colours": {}}}}, "one plays suite ltm, the other mine"),
        ({"scenarios": ("colours", "jokes")}, "only one plays jokes"),
        ({"parameters": {"colours": {"changes": 8}}}, "colours.changes is None in one, 8 in the other"),
    ],
)
def test_runs_of_other_tests_are_not_compared(other: dict[str, object], difference: str, tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(1.0), name="a", scenarios=("colours",))
    made_run(tmp_path, "two", constant(1.0), name="b", **({"scenarios": ("colours",)} | other))  # type: ignore[arg-type]
    if "suite" in other:
        change_json(tmp_path / "b/result.json", lambda result: result.update(suite="mine"))
    with pytest.raises(InputError) as refused:
        load_comparison([tmp_path])
    assert str(refused.value).startswith(f"a and b cannot be compared: {difference}; name only runs of the same tests")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("agent", "other", "note_start"),
    [
        ("two", {"placement": "early"}, "Placement differs at 2k: early (two); uniform (one)"),
        ("two", {"tokenizer": "o200k_base"}, "The tokenizer differs at 2k: cl100k_base (one); o200k_base (two)"),
        ("two", {"judge": "openai/gpt-4o"}, "The judge differs at 2k: none (one); openai/gpt-4o (two)"),
        ("two", {"parameters": {"colours": {"rules": "paper"}}}, "The set of grading rules differs at 2k: longspan's (one)"),
        ("two", {"pace_s": 5.0}, "Virtual time differs at 2k: from 2024-01-01 09:00:00, 30 s per turn (one)"),
        ("two", {"filler_sha256": "cd" * 32}, "The filler differs at 2k: built in, 2,000 tokens at most (one)"),
        ("two", {"seed": 4}, "The seeds differ at 2k: 0 (one); 4 (two)"),
        ("two", {"tests": 2}, "The number of tests per scenario differs at 2k: 2 (two); 3 (one)"),
        ("two", {"left_out": ("jokes",)}, "The list of scenarios that fit into the span differs at 2k"),
        ("two?timestamps=false", {}, "The agents' option timestamps differs at 2k: default (one); off (two?"),
        ("two", {"span": 4_000, "placement": "early"}, "Placement differs between the columns: early (4k); uniform (2k)"),
    ],
)
def test_other_differences_are_noted(agent: str, other: dict[str, object], note_start: str, tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(1.0), scenarios=("colours", "jokes"))
    made_run(tmp_path, agent, constant(1.0), scenarios=("colours", "jokes"), **other)  # type: ignore[arg-type]
    comparison = load_comparison([tmp_path])
    assert any(note.startswith(note_start) for note in comparison_notes(comparison)), comparison_notes(comparison)


def spoil(folder: Path, how: str) -> None:
    result = folder / "result.json"
    content = json.loads(result.read_text())
    match how:
        case "gone":
            result.unlink()
        case "no JSON":
            result.write_text("{")
        case "another's":
            write_json(result, content | {"agent": "better"})
        case "other tests":
            content["tests"][0]["id"] = "colours-9"
            write_json(result, content)
        case "beyond 1":
            content["tests"][0]["score"] = 1e9
            write_json(result, content)
        case "no number":
            content["tests"][0]["score"] = float("nan")
            write_json(result, content)
        case "distance":
            content["tests"][0]["evidence"][0]["tokens"] = 10**400
            write_json(result, content)
        case "cost":
            content["costs"] = {"agent": {"cost_usd": float("inf")}}
            write_json(result, content)
        case "manifest":
            write_json(folder / "manifest.json", {"format": 1})


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("gone", "has no results: it is being played or was interrupted"),
        ("no JSON", "result.json: damaged: it has no checksum; `longspan score` writes it again"),
        ("another's", "its result.json does not match its manifest"),
        ("other tests", "its result.json does not match its manifest"),
        ("beyond 1", "a score, cost or distance is out of range"),
        ("no number", "a score, cost or distance is out of range"),
        ("cost", "a score, cost or distance is out of range"),
        ("distance", "a score, cost or distance is out of range"),
        ("manifest", "not a manifest"),
    ],
)
def test_a_run_that_cannot_be_used_is_named_and_left_out(how: str, reason: str, tmp_path: Path) -> None:
    made_run(tmp_path, "one", constant(1.0), name="good")
    spoil(made_run(tmp_path, "two", constant(1.0), name="bad"), how)
    comparison = load_comparison([tmp_path])
    assert comparison.agents == ["one"]
    (left_out,) = (note for note in comparison_notes(comparison) if note.startswith("Left out: "))
    assert reason in left_out
    assert "bad" in left_out
    assert left_out in as_markdown(comparison).replace("\\", "")
    with pytest.raises(InputError, match="no run can be used: "):
        load_comparison([tmp_path / "bad"])


@pytest.mark.parametrize(("path", "error"), [("nowhere", "folder does not exist"), ("empty", "no runs graded")])
def test_a_path_without_runs_is_refused(path: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = longspan("compare", path, where=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"longspan: {path}: {error}" in done.stderr


# Formats.


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three agents, two with hostile names."""
    folder = tmp_path_factory.mktemp("several")
    for seed in (0, 1):
        made_run(folder, "one", halves, seed=seed, cost=0.5)
        made_run(folder, HOSTILE, constant(0.25), seed=seed, placement="early")
        made_run(folder, "=cmd()", constant(None), seed=seed)
    return folder


@pytest.fixture(scope="module")
def comparison(several: Path) -> Comparison:
    return load_comparison([several])


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(as_html(comparison), "utf-8")
    return path


def test_the_terminal_gets_tables_and_no_control_characters(several: Path) -> None:
    done = longspan("compare", ".", where=several)
    assert done.returncode == 0, done.stderr
    assert "Scores in percent of full marks [95% interval] · points ± " in done.stdout
    assert re.search(r"33% \[\d+%, \d+%\] · 3.67 ± 5.19", done.stdout)
    assert "[U+001B]" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\u202e", "\x00"}
    for title in ("Tests behind the scores", "Pairs at 2k", "Scenarios at 2k", "Skills at 2k", "Evidence distance"):
        assert title in done.stdout


def test_no_agent_name_breaks_the_markdown_tables(comparison: Comparison) -> None:
    text = as_markdown(comparison)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    widths = [line.replace("\\|", "").count("|") for line in lines]
    heads = [number for number, line in enumerate(lines) if set(line) <= set("|-: ")]
    assert len(heads) >= 6
    for start, end in zip(heads, [*heads[1:], len(lines) + 1], strict=True):
        assert len(set(widths[start - 1 : end - 1])) == 1
    assert not re.search(r"(?<!\\)<", text)
    assert "[a](" not in text


MARKED = st.text(st.sampled_from([*"ab1 _*`~<>[]()|\\&#@$:/.!-+=^{}\"'é\n"]), max_size=30)


@example("<b>&amp;&lt; ![x](http://a.b) `c` ~~d~~ **e** _f_ sally_anne $x$ @you #1 http://a.b www.a.b me@a.b\\")
@example("1. one")
@example("- - -")
@given(MARKED)
def test_markdown_shows_every_text_as_it_is(text: str) -> None:
    markdown = MarkdownIt("gfm-like")
    assert markdown.linkify is not None
    markdown.linkify.set({"fuzzy_link": False})  # on GitHub, an address begins with http or www
    lines = ["| agent |", "| --- |", f"| {escape_markdown(text)} |", "", f"- {escape_markdown(text)}"]
    page = ElementTree.fromstring(f"<page>{markdown.render(chr(10).join(lines))}</page>")  # noqa: S314
    assert {part.tag for part in page.iter()} <= {"page", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert ["".join(part.itertext()).strip() for tag in ("td", "li") for part in page.iter(tag)] == [one_line(text)] * 2


def test_the_csv_has_all_figures_under_one_header_and_no_formula(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert list(rows[0]) == [*COMMON_COLUMNS, *COUNTS]
    assert {row["table"] for row in rows} == {"scores", "memory", "pairs", "scenarios", "skills", "distances", "curve"}
    assert len(rows_of(comparison, "scores")) == 3
    assert len(rows_of(comparison, "scenarios")) == 33
    (one,) = (row for row in rows_of(comparison, "scores") if row["agent"] == "one")
    assert (float(one["score"]), one["runs"], one["cost_usd"], one["maximum"]) == (pytest.approx(11 / 3, abs=1e-6), "2", "0.5", "11")
    assert {row["agent"] for row in rows} == {"one", HOSTILE, "'=cmd()"}


def test_no_agent_name_breaks_the_page(page: Path) -> None:
    read = Page(page)
    assert read.comments == []
    assert read.root.all("script") == []
    assert read.root.all("style", type="text/css") == []
    assert [element for element in read.root.all() if any(name == "style" or name.startswith("on") for name in element.attributes)] == []
    assert read.root.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"] == POLICY
    assert "script-src 'none'" in POLICY
    assert len(read.root.all("figure")) == 3
    ids = [element.attributes["id"] for element in read.root.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    used = {element.attributes["href"] for element in read.root.all("use")} | {element.attributes["href"] for element in read.root.all("a")}
    assert {href.removeprefix("#") for href in used} <= set(ids)
    rows = [row.words for row in read.root.all("table")[0].all("tr")]
    assert any("<script>alert(1)</script>" in row and "[U+202E]" in row for row in rows)


def test_without_any_cost_the_page_has_no_figure_of_costs(tmp_path: Path) -> None:
    made_run(tmp_path, "free", lambda scenario, number: 0.5)
    (tmp_path / "page.html").write_text(as_html(load_comparison([tmp_path])), "utf-8")
    figures = [element.attributes["id"] for element in Page(tmp_path / "page.html").root.all("figure")]
    assert figures == ["figure-bars", "figure-distance"], "nor one of a single span against itself"
    assert "cost" not in " ".join(comparison_tables(load_comparison([tmp_path]))[-3].columns)


@pytest.mark.parametrize("name", ["python:code_of_a_run:Kind", "gone"])
def test_a_scenario_that_is_not_installed_is_compared_without_running_its_code(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code_of_a_run.py").write_text("from pathlib import Path\n\nPath(__file__).with_name('it-ran').touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    folder = made_run(tmp_path / "runs", "one", lambda scenario, number: 0.5, scenarios=("colours", "shopping"))
    change_json(folder / "manifest.json", lambda manifest: manifest["suite"]["scenarios"].update({name: {}}))
    comparison = load_comparison([folder])
    assert comparison.cells["one", comparison.columns[0]].score == 1
    assert not (tmp_path / "it-ran").exists()


def test_the_page_opens_in_a_browser_without_a_fault(visit: Open, page: Path) -> None:
    seen = visit(page)
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("ltm: 3 agents compared")
    seen.picture("compare", whole=True)
    assert seen.faults() == []
    for scheme, ink in (("light", "rgb(29, 33, 37)"), ("dark", "rgb(228, 231, 234)")):
        seen.page.emulate_media(color_scheme=scheme)
        assert seen.page.locator("figure svg").first.evaluate("svg => getComputedStyle(svg).color") == ink
    assert seen.page.locator("figure svg path[fill='#0072b2']").count() >= 1


def test_the_page_fits_a_phone(visit: Open, page: Path) -> None:
    seen = visit(page, viewport=PHONE, is_mobile=True)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    seen.picture("compare-phone", whole=True)


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["--out", "x.html"], "<!doctype html>"),
        (["--out", "x.md"], "# ltm: 3 agents, 6 runs"),
        (["--out", "x.csv"], "table,isolated,span,"),
        (["--out", "x.txt"], "one leads at 2k"),
        (["--out", "x.txt", "--format", "csv"], "table,isolated,span,"),
        (["--format", "markdown"], "# ltm: 3 agents, 6 runs"),
    ],
)
def test_the_format_is_the_given_one_or_that_of_the_file_name(
    arguments: list[str], begins: str, several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(several), *arguments])
    printed = capsys.readouterr().out
    if arguments[0] != "--out":
        assert printed.startswith(begins)
        return
    assert printed == f"{arguments[1]}: 3 agents, 6 runs\n"
    text = Path(arguments[1]).read_text("utf-8")
    assert text.lstrip().startswith(begins)
    with pytest.raises(SystemExit, match="2"):
        main(["compare", str(several), *arguments])
    assert capsys.readouterr().err == f"longspan: {arguments[1]}: already exists; choose another file with --out\n"
    assert Path(arguments[1]).read_text("utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == [arguments[1]]


def test_an_unknown_file_extension_is_refused_before_anything_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["compare", str(tmp_path / "nothing"), "--out", str(tmp_path / "c.pdf")])
    assert "the name must end in .md, .csv, .html, .txt" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# Against a baseline, and what was tried.


def test_agents_are_compared_with_a_chosen_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shares = {"memory/good?answerer=x": 1.0, "memory/base?answerer=x": 0.5, "memory/bad?answerer=x": 0.0, "memory/same?answerer=x": 0.5}
    for seed in range(8):
        for agent, share in shares.items():
            made_run(tmp_path / "runs", agent, constant(share), seed=seed, scenarios=("colours", "jokes"))
    for name in ("base", "memory/base?answerer=x", "memory/base"):
        comparison = load_comparisons([tmp_path / "runs"], name)["ltm: colours, jokes"]
        assert comparison.side.baseline == "memory/base?answerer=x"
    assert [each.text for each in comparison.said.verdicts] == [
        "good (+50%) is better than base at 2k.",
        "bad (−50%) is worse than base at 2k.",
        "same (50%) ties with base at 2k.",
    ]
    found = {each.agent: each for each in comparison.against}
    assert [each.difference for each in comparison.against] == [0.5, 0.0, -0.5]
    assert found["memory/good?answerer=x"].corrected == pytest.approx(3 * 2 / 2**8)
    assert found["memory/same?answerer=x"].interval is None, "all conversations are alike"
    (table,) = (table for table in comparison_tables(comparison) if table.title.startswith("Differences to base at 2k [95% interval]"))
    assert table.columns == ["agent", "score", "baseline", "difference", "conversations", "same tests", "p", "p (Holm)", "verdict"]
    assert table.rows[0] == ["good", "100%", "50%", "+50%", "8", "48", "0.008", "0.023", "better"]
    assert not [table for table in comparison_tables(comparison) if table.title.startswith("Pairs")]
    assert "## Differences to base at 2k" in as_markdown(comparison)
    rows = rows_of(comparison, "baseline")
    assert [(row["agent"], row["other"], float(row["difference"])) for row in rows] == [
        (agent, "memory/base?answerer=x", shares[agent] - 0.5) for agent in comparison.agents if "base" not in agent
    ]
    assert comparison.pairs == [], "every medium has one comparison with the baseline"
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(tmp_path / "runs"), "--baseline", "base"])
    assert "good (+50%) is better than base at 2k." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("baseline", "error"),
    [
        (["nobody"], "--baseline: no run has agent 'nobody'; there are bot?k=1; bot?k=2"),
        (["bot"], "--baseline: 'bot' may be any of bot?k=1; bot?k=2; name one of them in full"),
        (["one", "two"], "--baseline one: no such run; name one agent, or runs that exist"),
        (["bot?k=1", "--margin", "0.1"], "--margin: requires older runs to compare with: --baseline RUN"),
        (["bot?k=1", "--fail-if-worse"], "--fail-if-worse: requires older runs to compare with: --baseline RUN"),
    ],
)
def test_a_baseline_that_is_not_there_or_unclear_is_refused(
    baseline: list[str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for agent in ("bot?k=1", "bot?k=2"):
        made_run(tmp_path / "runs", agent, constant(0.5), scenarios=("colours",))
    given = [part for each in baseline for part in ([each] if each.startswith("--") or each == "0.1" else ["--baseline", each])]
    with pytest.raises(SystemExit, match="2"):
        main(["compare", "runs", *given])
    assert capsys.readouterr().err == f"longspan: {error}\n"


def test_a_folder_comes_before_an_agent_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "runs", "two", constant(0.5), scenarios=("colours",))
    made_run(tmp_path / "two", "two", constant(0.5), scenarios=("colours",))
    with pytest.raises(SystemExit, match="0"):
        main(["compare", "runs", "--baseline", "two"])
    assert "undecided: 1 paired conversation cannot show a fall" in capsys.readouterr().out


def test_attempts_that_were_not_finished_or_are_not_compared_are_told(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "bot", constant(1.0), seed=seed, scenarios=("colours",)) for seed in range(3)]
    other = made_run(tmp_path, "other", constant(0.5), scenarios=("colours",))
    made_run(tmp_path, "bot", constant(0.0), span=4_000, scenarios=("colours",))
    assert "Attempts: all 5 runs of these agents and tests in these folders were finished" in comparison_notes(load_comparison([tmp_path]))
    spoil(runs[2], "gone")
    told = "Attempts at the same tests in these folders: bot at 2k: 3 attempts, 2 finished, {} compared"
    assert told.format(2) in comparison_notes(load_comparison([tmp_path]))
    assert told.format(1) in comparison_notes(load_comparison([runs[0], other])), "those that are left out are counted as well"
    (row,) = (row for row in rows_of(load_comparison([runs[0], other]), "scores") if row["agent"] == "bot")
    assert (row["runs"], row["begun"], row["finished"]) == ("1", "3", "2")


def test_agents_are_called_by_their_shortest_names_and_what_they_share_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for agent in ("memory/bm25?answerer=x&k=5", "memory/chroma?answerer=x&k=5"):
        made_run(tmp_path / "runs", agent, constant(0.5), scenarios=("colours",))
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(tmp_path / "runs")])
    out = capsys.readouterr().out
    assert out.count("answerer=x") == 1
    assert "Short names: all are memory/…?answerer=x&k=5." in out
    assert "bm25 and chroma tie at 2k: 50% against 50%" in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines())
    page = as_html(load_comparison([tmp_path / "runs"]))
    assert "Short names: all are memory/" in re.sub("<[^>]*>", "", page)
