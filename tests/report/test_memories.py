"""Memories side by side: recall first, with intervals and tests that keep what they promise, and answers only where they say something."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from functools import partial
from html import unescape
from math import exp
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import trio

from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Evidence
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.report.comparison import as_html
from longspan.simulator.pages.report.comparison_tables import as_csv, as_markdown, as_rows, comparison_tables
from longspan.simulator.results.analysis.baseline import load_fall
from longspan.simulator.results.analysis.pairs import compare_pairs
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions, ShareEstimate, share_recall
from longspan.simulator.results.analysis.units import Units
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.comparing import Comparison, load_comparison
from longspan.simulator.results.result import TestResult, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite
from tests.browser import Open
from tests.made_runs import made_run

AT_2K = Column(isolated=False, span=2_000)

SCORED = ("Scores", "Scenarios", "Pairs at", "Skills", "Evidence distance,", "Score by")
"""How the titles of tables of scores begin."""


def played(
    out: Path, suite: str, scenarios: Sequence[str], agents: Sequence[str], seeds: int, tests: int = 1, given: Sequence[str] = ()
) -> Path:
    chosen = load_suite(suite).apply_changes(given, [], list(scenarios), tests)
    plans = [plan_run(RunSettings(suite=chosen, span=2_000, agent=agent, seed=seed), out) for agent in agents for seed in range(seeds)]
    outcomes = trio.run(partial(play_plans, plans, pages=Report))
    assert [outcome.error for outcome in outcomes] == [None] * len(plans)
    return out


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that finds what was said long ago, and one that has the last 400 tokens, without an answerer."""
    agents = [f"memory/{memory}answerer=none" for memory in ("recent?tokens=400&", "bm25?")]
    return played(tmp_path_factory.mktemp("searched"), "ltm", ["colours", "locations", "spy_meeting", "shopping"], agents, 8)


@pytest.fixture(scope="module")
def guessed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same memories with an answerer that does not know how to answer."""
    agents = [f"memory/{memory}answerer=words" for memory in ("recent?tokens=400&", "bm25?")]
    return played(tmp_path_factory.mktemp("guessed"), "ltm", ["locations", "spy_meeting", "restaurant"], agents, 8)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up histories, three of each seed."""
    agents = [f"memory/{memory}answerer=none" for memory in ("recent?tokens=2k&", "bm25?")]
    return played(tmp_path_factory.mktemp("told"), "history", [], agents, 2, 3, ["history.tokens=6k"])


def told_by(comparison: Comparison) -> str:
    (verdict,) = comparison.said.verdicts
    return verdict.text


def terminal(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(folder)])
    return capsys.readouterr().out.splitlines()


# The better memory is named first.


def test_the_memory_that_finds_more_is_named_first_and_shown_to_be_better(searched: Path) -> None:
    comparison = load_comparison([searched])
    assert comparison.agents == ["memory/bm25?answerer=none", "memory/recent?tokens=400&answerer=none"]
    assert told_by(comparison).startswith("bm25 finds more than recent?tokens=400 at 2k: ")
    (pair,) = comparison.side.recall_pairs
    assert pair.corrected < 0.05
    assert pair.conversations == 8
    assert pair.interval is not None
    assert 0 < pair.interval[0] < pair.difference < pair.interval[1] <= 1
    stages, places, pairs, kinds = comparison_tables(comparison)[:4]
    assert [row[0] for row in stages.rows] == ["bm25", "recent?tokens=400"]
    assert stages.columns == ["agent", "span", "questions", "stored", "found among first 20"]
    assert places.columns[2:] == ["first 5", "first 10", "first 20"]
    assert pairs.title == "Evidence found among the first 20 at 2k: paired permutation tests of conversations"
    assert [row[0] for row in kinds.rows] == ["colours", "locations", "shopping", "spy_meeting"]


def test_recall_is_the_mean_of_what_each_run_says_of_its_questions(searched: Path) -> None:
    comparison = load_comparison([searched])
    for (agent, column), asked in comparison.side.memories.items():
        results = [run.result for run in comparison.side.of(agent, column)]
        asked_in = [len({(test.id, pair.question_turn) for test in result.tests for pair in test.evidence}) for result in results]
        for k in (5, 10, 20):
            found = asked.estimate_found(k)
            assert found is not None
            assert found.questions == sum(asked_in)
            sums = [result.metrics[f"evidence_recall@{k}"] * number for result, number in zip(results, asked_in, strict=True)]
            assert found.low == pytest.approx(sum(sums) / sum(asked_in), abs=1e-5)


def test_no_table_of_scores_is_shown_of_memories_that_only_search(
    searched: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = terminal(searched, capsys, monkeypatch)
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.startswith(SCORED) or "0.00–" in line]
    assert next(filter(None, lines)).startswith("bm25 finds more than ")
    comparison = load_comparison([searched])
    for text in (as_markdown(comparison), as_html(comparison)):
        assert "0.00–" not in text
        assert not re.search("|".join(f">{title}|# {title}" for title in SCORED), text)
        assert "No test has a score: not answered: the agent only searched its memory" in text
    rows = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert {row["low"] + "-" + row["high"] for row in rows if row["table"] == "scores"} == {"0.0-4.0"}, "the data stays as it was"
    found = {(row["agent"], row["k"]): row for row in rows if row["table"] == "stages" and row["stage"] == "found" and not row["kind"]}
    assert float(found["memory/bm25?answerer=none", "20"]["score"]) > float(found["memory/recent?tokens=400&answerer=none", "20"]["score"])
    (tested,) = [row for row in as_rows(comparison) if row["table"] == "recall" and "kind" not in row]
    assert (tested["agent"], tested["conversations"]) == ("memory/bm25?answerer=none", 8)
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(searched), "--json"])
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["verdicts"] == [told_by(comparison)]
    assert group["agents"] == comparison.agents
    with pytest.raises(SystemExit, match="2"):
        main(["plot", str(searched), "--out", str(searched / "figures")])
    assert "no figure can be drawn: no test has a score" in capsys.readouterr().err


def test_guesses_rank_no_memory(guessed: Path) -> None:
    comparison = load_comparison([guessed])
    assert comparison.agents[0] == "memory/bm25?answerer=words"
    assert not comparison.unwarned
    assert comparison.pairs == []
    said = "No memory's answers are better than guessing: memories are ranked by recall, not by score."
    (scores,) = (table for table in comparison_tables(comparison) if table.title.startswith("Scores"))
    assert scores.note == said
    assert said in as_markdown(comparison)
    assert said in unescape(as_html(comparison))
    titles = [table.title for table in comparison_tables(comparison)]
    assert titles[0] == "Memories by stage [95% interval]"
    assert titles.index("Memories by stage [95% interval]") < titles.index(scores.title)


def test_memories_of_made_up_histories_are_compared_by_kind(
    told: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = load_comparison([told])
    assert comparison.agents == ["memory/bm25?answerer=none", "memory/recent?tokens=2k&answerer=none"]
    assert re.search(r" finds more than .*, p = 0.031, 72 questions in 6 conversations\.$", told_by(comparison))
    (kinds,) = (table for table in comparison_tables(comparison) if table.title.startswith("Evidence found among the first 20, by kind"))
    assert kinds.columns == ["kind", "questions", "bm25", "recent?tokens=2k", "p (Holm)"]
    assert {row[0] for row in kinds.rows} >= {"multi-session", "temporal-reasoning", "knowledge-update"}
    assert {float(row[-1]) for row in kinds.rows} == {0.188}, "the least that six conversations can show of six kinds"
    assert max(map(len, terminal(told, capsys, monkeypatch))) <= 80


def test_what_too_few_conversations_cannot_show_is_said_and_memories_are_compared_at_the_same_number(tmp_path: Path) -> None:
    agents = ["memory/full?answerer=none", "memory/bm25?answerer=none&k=3", "memory/none?answerer=none"]
    comparison = load_comparison([played(tmp_path, "ltm", ["colours", "spy_meeting"], agents, 2)])
    assert comparison.side.k == 3
    most, few = (verdict.text for verdict in comparison.said.verdicts)
    assert most.startswith("full finds the most at 2k: 100% of the evidence among the first 3 memories. It is not significantly more than ")
    assert few.startswith("Too few conversations: 2 conversations in common. ")
    assert "; this needs 7 for 3 pairs of agents. Play 5 more seeds of each" in few
    (places,) = (table for table in comparison_tables(comparison) if table.title.startswith("Evidence found, by the number"))
    assert places.columns[2:] == ["first 3", "first 5", "first 10", "first 20"]
    ranked = {row[0]: [bool(cell) for cell in row[2:]] for row in places.rows}
    assert ranked["bm25?k=3"] == [True, False, False, False]
    kinds = [table for table in comparison_tables(comparison) if table.title.startswith("Evidence found among the first 3, by scenario")]
    assert [table.note for table in kinds] == ["2 conversations cannot show a difference by scenario, however large: this needs 8."]


def test_a_baseline_of_memories_that_only_search_is_one_of_recall(searched: Path, tmp_path: Path) -> None:
    sides = {}
    for name in ("bm25", "recent"):
        sides[name] = [path for path in searched.iterdir() if name in path.name]
    worse, better = load_fall(sides["recent"], sides["bm25"]), load_fall(sides["bm25"], sides["recent"])
    assert (worse.verdict, better.verdict) == ("worse", "not worse")
    assert worse.measured == "recall@20"
    assert worse.unscored == 0
    assert 0 < worse.new < worse.old < 1


def test_the_tests_of_a_memory_that_only_searched_are_shown_by_what_was_found(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = next(path for path in searched.iterdir() if "bm25" in path.name)
    with pytest.raises(SystemExit, match="0"):
        main(["show", str(run)])
    opening, _, headline, *lines, last = capsys.readouterr().out.splitlines()
    assert opening.startswith("The memory finds ")
    assert headline == read_result(RunFolder(run)).headline
    shares = [(float(line.split()[1].rstrip("%")) / 100, *map(int, re.findall(r"found (\d+) of (\d+) needle", line)[0])) for line in lines]
    assert shares == sorted(shares, key=lambda each: -each[0])
    assert all(share == pytest.approx(found / told, abs=0.01) for share, found, told in shares)
    assert last.endswith(lines[-1].split()[0])


# Pages.


@pytest.mark.parametrize("what", ["comparison", "report"])
def test_the_pages_of_memories_open_in_a_browser_without_a_fault(visit: Open, what: str, searched: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    if what == "comparison":
        path.write_text(as_html(load_comparison([searched])), "utf-8")
    else:
        path = next(path for path in searched.iterdir() if "bm25" in path.name) / "report.html"
    opened = visit(path.as_uri())
    text = opened.page.locator("body").inner_text()
    assert "Recall@20" in text or "among the first 20" in text or "of the evidence found among the first 20 memories" in text
    assert not re.search(r"0\.00[–-]|Between 0\.00|chance|[Gg]uessing", text.partition("Timeline")[0])
    assert opened.faults() == []
    opened.leave()


# One run.


def test_the_terminal_ends_with_where_the_needles_were_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for agent in ("memory/bm25?answerer=none", "notebook", "silent"):
        with pytest.raises(SystemExit, match="0"):
            main(
                ["run", "ltm", "--scenario", "colours", "--scenario", "shopping", "--span", "2k", "--agent", agent, "--out", str(tmp_path)]
            )
        lines = capsys.readouterr().out.splitlines()
        folder = next(path for path in tmp_path.iterdir() if agent.split("?")[0].replace("/", "-") in path.name)
        memory = read_result(RunFolder(folder)).memory
        if memory is None:
            assert agent == "silent"
            assert lines[-1].startswith("report  ")
            continue
        assert lines[-1] == memory.sentence
        assert re.match(r"Questions relied on \d+ needles", lines[-1])
        assert sum(memory.needles.values()) == int(lines[-1].split()[3])
        if agent.endswith("none"):
            assert not [line for line in lines if "score so far" in line or "0.00–" in line or re.match("scenario +score", line)]
            assert [line for line in lines if line.startswith("evidence found ") and "search only" in line]
            (found,) = (stage for stage in memory.stages if stage.stage == "found" and stage.k == 20)
            assert found.interval is not None
            assert found.interval[0] < found.share <= found.interval[1]
            assert {stage.stage for stage in memory.stages} == {"stored", "found"}, "nobody answered"


# What the statistics promise.

SIMULATED = 300


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """Eight conversations, which differ much in how many questions they ask."""
    folder = tmp_path_factory.mktemp("made")
    sizes = (3, 4, 5, 6, 8, 10, 12, 15)
    made = [
        made_run(folder, "any", lambda scenario, number: None, seed=seed, scenarios=("colours",), tests=size)
        for seed, size in enumerate(sizes)
    ]
    return [RunFolder(path).manifest for path in made]


def remembered(
    random: np.random.Generator, manifests: Sequence[Manifest], hard: Sequence[np.ndarray[Any, Any]], skill: float, effect: float
) -> EvidenceQuestions:
    """A memory that finds each of a question's two needles with the logit `skill` less how `hard` the question is, and a normal deviation
    of its own in each conversation."""
    runs = []
    for manifest, each in zip(manifests, hard, strict=True):
        luck = random.normal(0, effect)
        rates = 1 / (1 + np.exp(-(skill + luck - each)))
        tests = []
        for (_, planned), rate in zip(manifest.graded, rates, strict=True):
            found = random.random(2) < rate
            evidence = [
                Evidence(needle, 9, 100, 100, stored=True, retrieved=bool(hit), rank=1 if hit else None, k=20)
                for needle, hit in enumerate(found)
            ]
            tests.append(
                TestResult.model_construct(
                    id=planned.id,
                    scenario=planned.scenario,
                    tags=[],
                    counts=True,
                    score=None,
                    chance=0.1,
                    evidence=evidence,
                    items=[],
                    correction=None,
                )
            )
        runs.append((manifest, tests))
    return EvidenceQuestions.of(runs)


def hardness(random: np.random.Generator, manifests: Sequence[Manifest]) -> list[np.ndarray[Any, Any]]:
    return [random.normal(0, 1, len(manifest.graded)) for manifest in manifests]


def found(asked: EvidenceQuestions) -> ShareEstimate:
    estimate = asked.estimate_found(20)
    assert estimate is not None
    return estimate


@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_an_interval_of_recall_holds_the_truth_in_92_to_98_of_100_cases(manifests: list[Manifest], effect: float) -> None:
    random = np.random.default_rng(3)
    spread = (1 + effect**2) ** 0.5
    truth = fmean(1 / (1 + exp(-(0.8 + value))) for value in np.random.default_rng(4).normal(0, spread, 200_000))
    held = []
    for _ in range(SIMULATED):
        between = found(remembered(random, manifests, hardness(random, manifests), 0.8, effect)).interval
        assert between is not None
        assert between.by == "conversations"
        held.append(between.low <= truth <= between.high)
    assert 0.92 <= fmean(held) <= 0.98


@pytest.mark.parametrize(("ahead", "least", "most"), [(0.0, 0.0, 0.065), (2.0, 0.8, 1.0)])
def test_equal_memories_seldom_differ_and_a_better_one_is_found(manifests: list[Manifest], ahead: float, least: float, most: float) -> None:
    random, units = np.random.default_rng(5), Units(manifests)
    shown = []
    for _ in range(SIMULATED):
        hard = hardness(random, manifests)
        both = remembered(random, manifests, hard, 0.3 + ahead, 0.4), remembered(random, manifests, hard, 0.3, 0.4)
        shared = share_recall(AT_2K, "one", "other", both, 20, units=units)
        assert shared is not None
        (pair,) = compare_pairs([shared])
        shown.append(pair.verdict == "better" or (pair.verdict == "worse" and not ahead))
    assert least <= fmean(shown) <= most
