"""docs/reproduction.md tells what the commands find: its figures are theirs, and every table and figure of the papers has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import PEER_DATA, skip

from longspan.simulator.interop.papers import Cell, paper

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"

ITEMS = {
    "GoodAI: the LTM benchmark": (5, 1),
    "Counting-Stars": (14, 1),
    "ELITR-Bench": (8, 13),
    "Summary of a Haystack": (3, 3),
    "CREAM": (2, 5),
}
"""How many figures and tables each paper has."""


def parts() -> dict[str, str]:
    """The text under each paper's heading."""
    found = re.split(r"^## (.*)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def rows(text: str) -> dict[str, list[str]]:
    """The cells of the rows of a text's tables, by their first; those of a later table win."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in found}


def cells(name: str, *paths: str) -> dict[tuple[str, str, str], Cell]:
    data = [PEER_DATA.resolve() / path for path in paths]
    if missing := [path for path in data if not path.exists()]:
        skip(f"there is no published data at {missing[0]}; LONGSPAN_PEER_DATA names another place")
    return {(cell.table, cell.row, cell.column): cell for cell in paper(name)(data, "paper").cells}


def numbers(text: str) -> list[int]:
    """The numbers in "3, 4" and "8 to 13"."""
    text = re.sub(r"(\d+) to (\d+)", lambda found: " ".join(map(str, range(int(found[1]), int(found[2]) + 1))), text)
    return [int(each) for each in re.findall(r"\d+", text)]


@pytest.mark.parametrize("title", ITEMS)
def test_every_table_and_figure_has_a_row_that_says_what_can_be_done(title: str) -> None:
    named: dict[str, set[int]] = {"Figure": set(), "Table": set()}
    for item, (_, *status) in ((item, row) for item, row in rows(parts()[title]).items() if len(row) == 2):
        for kind, those in re.findall(r"(Figure|Table)s? (\d+(?:(?:,? and|,| to) \d+)*)", item):
            named[kind] |= set(numbers(those))
            assert re.match(r"(half )?reproduced|with your data|not reproducible|as Table", status[0]), f"{item}: {status}"
    figures, tables = ITEMS[title]
    assert (named["Figure"], named["Table"]) == (set(range(1, figures + 1)), set(range(1, tables + 1)))


def test_the_ratings_of_cream_are_those_of_the_command() -> None:
    found, told = cells("cream"), rows(parts()["CREAM"])
    settings = ("completeness-16", "conciseness-16", "completeness-30", "conciseness-30")
    for model in ("GPT-3.5", "GPT-4", "GPT-4o"):
        assert told[model] == [f"{found['elo', model, setting].ours:.3f}" for setting in settings]


def test_the_share_of_counting_stars_is_that_of_the_command() -> None:
    found = cells("counting-stars", "counting-stars/stone_kimi_32_16.txt.gz")
    member, slot = (next(cell for cell in found.values() if cell.column == column) for column in ("membership", "slot"))
    text = parts()["Counting-Stars"]
    assert f"ours {member.ours:.3f} ({round((member.ours or 0) * member.n)} of {member.n}), printed {member.published:.3f}" in text
    assert f"gives {slot.ours:.3f}" in text


def test_the_points_of_elitr_bench_are_those_of_the_command() -> None:
    found, told = cells("elitr-bench", "elitr"), rows(parts()["ELITR-Bench"])
    printed = {key: cell for key, cell in found.items() if key[0] == "table2" and cell.published is not None}
    assert len(printed) == 25
    for at, column in enumerate(("single-qa-dev", "multi-qa-dev", "multi-conv-dev")):
        for model in {row for _, row, _ in printed} - ({"GPT-3.5"} if at else set()):
            cell = printed["table2", model, column]
            assert told[model][at] == f"{cell.published:.2f} ({cell.published:.2f})"
            assert abs((cell.ours or 0) - (cell.published or 0)) < 0.0056, "rounded twice it is off by half a hundredth and a little"
    counts = [cell for (table, _, _), cell in found.items() if table == "table1"]
    assert [cell.ours for cell in counts] == [cell.published for cell in counts]


def test_the_judges_and_positions_of_summhay_are_those_of_the_command() -> None:
    names = ("eval_benchmark_data.first100.json.gz", "topic_news1.json.gz", "topic_news2.json.gz")
    found, text = cells("summhay", *(f"summhay/{name}" for name in names)), parts()["Summary of a Haystack"]
    judges, joint = (rows(part) for part in text.split("The joint score on two news topics"))
    called = {"Gemini-1.5-pro": "gemini-1.5-pro", "GPT-4o": "gpt-4o", "Claude 3 Opus": "claude3-opus"}
    brief = called | {"Claude 3 Haiku": "claude3-haiku", "GPT-3.5": "gpt3.5"}
    for name, row in {**{name: f"prompted_{model}" for name, model in brief.items()}, "GPT-4o (9 shots)": "9fs_gpt-4o"}.items():
        two = [found["judges", row, column] for column in ("correlation", "link_accuracy")]
        assert judges[name] == [f"{figure:.3f}" for cell in two for figure in (cell.ours, cell.published)]
    for name, model in called.items():
        results = [found["results", row, "joint"].ours for row in (f"random_{model}", f"oracle_{model}", model)]
        places = [found["positions", model, place].ours for place in ("top", "middle", "bottom", "sensitivity")]
        assert joint[name] == [f"{figure:.3f}" for figure in (*results, *places)]


def test_the_scores_of_goodai_are_those_of_the_command() -> None:
    found, told = cells("goodai-ltm", "goodai-ltm/results"), rows(parts()["GoodAI: the LTM benchmark"])
    at = {"Benchmark 3 - 1k": (0, 2), "Benchmark 3 - 32k (isolated)": (3, 5)}
    printed = {key: cell for key, cell in found.items() if key[0] == "scores" and cell.published is not None}
    assert len(printed) == 22
    shown = {tuple(row[place] for place in places) for row in told.values() if len(row) == 6 for places in at.values()}
    for (_, agent, benchmark), cell in printed.items():
        spread = found["spread", agent, benchmark]
        assert (f"{cell.published:.1f} ± {spread.published:.1f}", f"{cell.ours:.2f} ± {spread.ours:.2f}") in shown, agent
