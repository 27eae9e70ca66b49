"""Comparisons with a baseline: every medium gives the same p-values and verdicts, and no verdict says more or less than is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from longspan.simulator.cli import main
from longspan.simulator.pages.report import comparison as pages
from longspan.simulator.pages.report.comparison import as_html
from longspan.simulator.pages.report.comparison_tables import as_markdown, as_rows, comparison_tables
from longspan.simulator.pages.report.forest import MAX_AGENTS, forests_by_baseline
from longspan.simulator.results.analysis.pairs import SharedTests, compare_pairs
from longspan.simulator.results.analysis.question_scores import count_questions, score_bounds
from longspan.simulator.results.analysis.statistics import Difference
from longspan.simulator.results.graded_runs import Column, load_runs
from longspan.simulator.results.measures.comparing import Comparison, compare_runs, load_comparison
from longspan.simulator.results.measures.pair_tables import p_text
from tests.made_runs import made_run
from tests.report.pages import Element, Page

GENERATED = 50

GAP = re.compile(r"\s{2,}")
"""Matches what stands between two cells of the terminal's tables."""


class Shown(NamedTuple):
    """What a medium shows of an agent beside the baseline at a span."""

    agent: str
    span: str
    p: str
    verdict: str


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables on one line a row, and pages without figures, which take a second each and have nothing to do with a baseline."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(pages, "CAPTIONS", {})


def play_generated(random: Random, out: Path) -> str | None:
    """Make the runs of some agents at some spans, and choose a baseline or none."""
    agents = [f"agent{number}" for number in range(random.randint(2, 4))]
    skills = {agent: random.choice([0.1, 0.5, 0.5, 0.9]) for agent in agents}
    spans, seeds = random.sample([2_000, 8_000, 32_000], random.randint(1, 2)), random.choice([1, 2, 5, 6, 7, 8])
    kind, tests = random.choice(["scores", "recall", "reach"]), random.randint(1, 3)
    for span in spans:
        for seed in range(seeds):
            for agent in agents[: -1 if seed and random.random() < 0.2 else None]:  # the last agent lacks some runs
                luck = random.gauss(skills[agent], 0.15)

                def draw(luck: float = luck) -> float:
                    return float(random.random() < luck)

                def score(scenario: str, number: int, draw: Callable[[], float] = draw) -> Any:
                    return [draw() for _ in range(8)] if kind == "reach" else draw()

                made_run(
                    out,
                    agent,
                    score,
                    span=span,
                    seed=seed,
                    scenarios=("reach",) if kind == "reach" else ("colours", "jokes"),
                    tests=1 if kind == "reach" else tests,
                    recall=(lambda scenario, number, draw=draw: draw()) if kind == "recall" else None,
                )
    return random.choice([*agents[:-1], None])


def span_of(row: dict[str, Any]) -> str:
    return f"{row['span'] // 1000}k"


def json_shows(comparison: Comparison) -> list[dict[str, Any]]:
    return [row for row in json.loads(json.dumps(as_rows(comparison))) if row["table"] == "baseline"]


def markdown_shows(comparison: Comparison) -> Iterator[Shown]:
    _, _, rest = as_markdown(comparison).partition("## Differences to ")
    lines = [[cell.strip() for cell in line.split("|")] for line in rest.split("\n\n")[1].splitlines()] if rest else []
    for cells in lines[2:]:
        row = dict(zip(lines[0], cells, strict=True))
        yield Shown(row["agent"], row.get("span", str(comparison.columns[0])), row["p (Holm)"], row["verdict"])


def terminal_shows(printed: str, expected: list[Shown]) -> Iterator[Shown]:
    """Yield what is expected as far as the terminal shows it: its tables name once what is the same in every row."""
    _, _, rest = printed.partition("Differences to ")
    same, _, table = rest.partition("───") if rest else ("", "", "")
    rows = [GAP.split(line.strip()) for line in table.split("\n")[1 : 1 + len(expected)]]
    for row, shown in zip(rows, expected, strict=True):
        has = [value in row or f"{name}: {value}" in same for name, value in (("p (Holm)", shown.p), ("verdict", shown.verdict))]
        yield shown if row[0] == shown.agent and all(has) else Shown(str(row), same, "", "")


def page_shows(page: Element) -> dict[str, list[Shown]]:
    """Return the lines of each baseline's forest plot."""
    found: dict[str, list[Shown]] = {}
    for section in page.all("section", class_="baselines"):
        for plot in section.all("table", class_="forest"):
            lines = []
            for row in plot.one("tbody").all("tr"):
                agent = row.all("bdi")[0].words
                p = row.one("td", class_="apart").all("span")[-1].words
                lines.append(Shown(agent, row.one("small").words, p, row.one("span", class_="badge").words))
            found[plot.attributes["aria-label"].removeprefix("Differences from ")] = lines
    return found


def forest_p(row: dict[str, Any]) -> str:
    if "p_of_tests" in row:
        return f"p of these {'questions' if 'questions' in row else 'tests'} {p_text(row['p_of_tests'])}"
    return f"p (Holm) {p_text(row['p_holm'])}"


@pytest.mark.parametrize("seed", range(GENERATED))
def test_all_media_show_the_same_p_values_and_verdicts(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = play_generated(Random(seed), tmp_path / "runs")
    runs, _ = load_runs([tmp_path / "runs"])
    comparison = compare_runs(runs, baseline=baseline)
    (tmp_path / "page.html").write_text(as_html(comparison), "utf-8")
    page = Page(tmp_path / "page.html").root
    plots = page_shows(page)
    for agent in comparison.agents:
        named = comparison if agent == baseline else compare_runs(runs, baseline=agent)
        rows = json_shows(named)
        assert plots.get(agent, []) == [Shown(row["agent"], span_of(row), forest_p(row), row["verdict"]) for row in rows]
        assert all("more_conversations" in row for row in rows)
    rows = json_shows(comparison)
    shown = [Shown(row["agent"], span_of(row), p_text(row["p_holm"]), row["verdict"]) for row in rows]
    assert bool(shown) == (baseline is not None)
    assert list(markdown_shows(comparison)) == shown
    if baseline is None:
        return
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(tmp_path / "runs"), "--baseline", baseline])
    assert list(terminal_shows(capsys.readouterr().out, shown)) == shown
    checked = [each for each in page.one("section", class_="baselines").all("input") if "checked" in each.attributes]
    labels = [label.words for label in page.one("section", class_="baselines").all("label") if label.all("input")[0] in checked]
    assert labels == [baseline]


# Few conversations with many questions.

FACTS = 45


def recalls(share: float) -> Callable[[str, int], list[float]]:
    return lambda scenario, number: [float(fact < round(share * FACTS)) for fact in range(FACTS)]


def play_facts(out: Path, seeds: int, **agents: float) -> Comparison:
    for agent, share in agents.items():
        for seed in range(seeds):
            made_run(out, agent, recalls(share), seed=seed, scenarios=("reach",), tests=1)
    return load_comparison([out])


@pytest.mark.parametrize(("seeds", "where"), [(1, "this conversation"), (4, "these 4 conversations")])
def test_a_blatant_difference_in_few_conversations_is_shown_for_these_conversations(seeds: int, where: str, tmp_path: Path) -> None:
    comparison = play_facts(tmp_path, seeds, keeps=1.0, forgets=0.3)
    first, second = (verdict.text for verdict in comparison.said.verdicts)
    assert first.startswith(
        f"keeps and forgets differ in {where} at 2k: 100% against 31% of full marks (p < 0.001 over {seeds * FACTS} questions); "
        "other conversations may differ."
    )
    assert second.startswith("With ")
    (pair,) = comparison.pairs
    assert (pair.verdict, pair.tests, pair.counted) == ("better here", seeds * FACTS, "questions")
    assert pair.corrected >= 0.05, "whole conversations decide about others"
    assert pair.interval is None
    (table,) = (table for table in comparison_tables(comparison) if table.title.startswith("Pairs"))
    assert dict(zip(table.columns, table.rows[0], strict=True))["p of these questions"] == "<0.001"
    chosen = compare_runs(comparison.side.runs, baseline="forgets")
    assert next(verdict.text for verdict in chosen.said.verdicts) == (
        f"keeps (+69%, p < 0.001) differs from forgets at 2k in {where}; other conversations may differ."
    )


def test_enough_conversations_decide_as_wholes(tmp_path: Path) -> None:
    comparison = play_facts(tmp_path, 8, keeps=1.0, forgets=0.3)
    (pair,) = comparison.pairs
    assert (pair.verdict, pair.p, pair.p_of_tests) == ("better", 2 / 2**8, None)


def test_equal_agents_seldom_differ_in_the_questions_of_one_conversation() -> None:
    random, column, differ = Random(4), Column(isolated=False, span=2_000), 0
    for _ in range(400):
        rates = [random.random() for _ in range(FACTS)]
        values = [float(random.random() < rate) - float(random.random() < rate) for rate in rates]
        apart = [Difference("reach", "main", value) for value in values]
        (pair,) = compare_pairs([SharedTests(column, "one", "other", 0.5, 0.6, apart, "questions", lambda differences: None)])
        differ += pair.verdict != "too few"
    assert differ / 400 <= 0.065


def test_the_score_that_a_person_gave_counts_for_every_question(tmp_path: Path) -> None:
    (run,), _ = load_runs([made_run(tmp_path, "one", recalls(1.0), scenarios=("reach",), tests=1)])
    (test,) = run.result.tests
    assert score_bounds(test, FACTS) == [(1.0, 1.0)] * FACTS
    assert score_bounds(test.model_copy(update={"score": 0.4}), FACTS) == [(0.4, 0.4)] * FACTS
    assert score_bounds(test.model_copy(update={"score": None}), FACTS) == [(0.0, 1.0)] * FACTS
    assert count_questions([test, test.model_copy(update={"items": []})]) == FACTS


def test_the_interval_of_scores_that_are_alike_is_narrow_if_many_questions_are_behind_each(tmp_path: Path) -> None:
    for seed, share in enumerate([0.78, 0.78, 0.79, 0.80]):
        made_run(tmp_path, "one", recalls(share), seed=seed, scenarios=("reach",), tests=1)
    (cell,) = load_comparison([tmp_path]).cells.values()
    assert cell.interval is not None
    assert 0.7 < cell.interval.low < 0.78 < cell.interval.high < 0.87


# Ties and forecasts.


def test_what_rounds_to_the_same_percentage_is_a_tie(tmp_path: Path) -> None:
    for seed in range(8):
        made_run(tmp_path, "one", lambda scenario, number, seed=seed: 0.09 + 0.01 * (-1) ** seed, seed=seed, scenarios=("colours",))
        made_run(tmp_path, "two", lambda scenario, number: 0.0904, seed=seed, scenarios=("colours",))
    comparison = load_comparison([tmp_path])
    assert [verdict.text for verdict in comparison.said.verdicts] == ["two and one tie at 2k: 9% against 9% of full marks."]
    assert [pair.verdict for pair in comparison.pairs] == ["tie"]
    chosen = compare_runs(comparison.side.runs, baseline="one")
    assert [verdict.text for verdict in chosen.said.verdicts] == ["two (9%) ties with one at 2k."]


@pytest.mark.parametrize("seeds", [3, 8])
def test_nothing_is_forecast_from_few_conversations_or_from_noise(seeds: int, tmp_path: Path) -> None:
    """Two equal agents were said to need 10, 248, 24, 175 or 505 more conversations."""
    random = Random(seeds)
    for seed in range(seeds):
        for agent in ("one", "two"):
            made_run(tmp_path, agent, lambda scenario, number: float(random.random() < 0.5), seed=seed, scenarios=("colours", "jokes"))
    comparison = load_comparison([tmp_path])
    (pair,) = comparison.pairs
    assert (pair.verdict, pair.more) == ("too few" if seeds == 3 else "not shown", None)
    for text in (as_markdown(comparison), as_html(comparison)):
        assert "more conversations needed" not in text
    (row,) = (row for row in as_rows(comparison) if row["table"] == "pairs")
    assert json.dumps(row["more_conversations"]) == "null"


def test_what_is_nearly_shown_has_a_forecast(tmp_path: Path) -> None:
    for seed in range(8):
        made_run(tmp_path, "one", lambda scenario, number: 0.5, seed=seed, scenarios=("colours",))
        made_run(tmp_path, "two", lambda scenario, number, seed=seed: 0.9 if seed < 5 else 0.4, seed=seed, scenarios=("colours",))
    comparison = load_comparison([tmp_path])
    (pair,) = comparison.pairs
    assert 0.05 <= pair.p < 0.1
    assert pair.more is not None
    (table,) = (table for table in comparison_tables(comparison) if table.title.startswith("Pairs"))
    assert (table.columns[-1], table.rows[0][-1]) == ("more conversations needed", f"{pair.more}")


def test_of_many_agents_the_page_draws_the_differences_from_the_named_baseline_only(tmp_path: Path) -> None:
    for number in range(MAX_AGENTS + 1):
        made_run(tmp_path, f"agent{number}", lambda scenario, number: 0.5, scenarios=("colours",), tests=1)
    runs, _ = load_runs([tmp_path])
    assert forests_by_baseline(compare_runs(runs)) == {}
    assert list(forests_by_baseline(compare_runs(runs, baseline="agent3"))) == ["agent3"]
