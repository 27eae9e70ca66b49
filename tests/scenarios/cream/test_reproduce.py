"""`longspan cream reproduce`: the paper's rankings from the paper's scores."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from longspan.scenarios.cream.published import MODELS, ORDER, PAIRS, Scores
from longspan.scenarios.cream.reproduce import reproduce
from longspan.simulator.cli import main
from longspan.simulator.results.papers import Cell


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str, str], Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in reproduce([], "paper").cells}


def by_hand(scores: Scores, order: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """Elo as its formula is written, with K = 32 from 1000."""
    ratings = dict.fromkeys(MODELS, 1000.0)
    for one, other in order:
        expected = 1 / (1 + 10 ** ((ratings[other] - ratings[one]) / 400))
        won = 1 if scores[one, other] > scores[other, one] else 0
        ratings[one], ratings[other] = ratings[one] + 32 * (won - expected), ratings[other] - 32 * (won - expected)
    return ratings


def test_the_ratings_of_conciseness_at_16_facts(cells: dict[tuple[str, str, str], Cell]) -> None:
    found = {model: cells["elo", model, "conciseness-16"].ours for model in MODELS}
    assert found == {"GPT-4": 1030.497, "GPT-3.5": 1000.736, "GPT-4o": 968.767}


def test_every_rating_is_that_of_the_formula(cells: dict[tuple[str, str, str], Cell]) -> None:
    for setting, scores in PAIRS.items():
        for model, rating in by_hand(scores, ORDER).items():
            assert cells["elo", model, str(setting)].ours == pytest.approx(rating, abs=5e-4)


def test_what_is_said_to_follow_follows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as left:
        main(["cream", "reproduce"])
    assert left.value.code == 0
    said = [" ".join(line.replace("│", "|").split()) for line in capsys.readouterr().out.splitlines()]
    follows = {line.split(" | ")[0].lstrip("| "): line.split(" | ")[1:4] for line in said if line.count(" | ") == 5}
    concise, complete = "GPT-4 > GPT-3.5 > GPT-4o", "GPT-4o > GPT-4 > GPT-3.5"
    assert {name: follows[name] for name in ("conciseness-16", "conciseness-30", "completeness-16")} == {
        "conciseness-16": [concise, concise, "yes"],
        "conciseness-30": [concise, concise, "yes"],
        "completeness-16": ["GPT-4o > GPT-3.5 > GPT-4", complete, "no"],
    }
    assert any("GPT-3.5 beats GPT-4 head to head, 78.8 to 76.6%" in line for line in said)
    for scores in PAIRS.values():
        rankings = {tuple(sorted(MODELS, key=by_hand(scores, order).__getitem__)) for order in permutations(ORDER)}
        assert len(rankings) == 1, "the order of the matches changes the ranking, which the table denies"


def test_the_other_reading_of_the_table_contradicts_the_paper() -> None:
    """With cells that score the column's model, GPT-4 would be the most complete and GPT-4o the most concise."""
    best = {}
    for setting, scores in PAIRS.items():
        ratings = by_hand({(one, other): scores[other, one] for one, other in scores}, ORDER)
        best[str(setting)] = max(MODELS, key=ratings.__getitem__)
    assert best["completeness-16"] == "GPT-4"
    assert best["conciseness-16"] == "GPT-4o"


def test_the_stated_correlations_are_set_beside_what_the_tables_give(cells: dict[tuple[str, str, str], Cell]) -> None:
    found = {(row, column): (cell.ours, cell.published) for (table, row, column), cell in cells.items() if table == "rank_correlation"}
    assert found["CREAM", "conciseness-16"] == (1.0, 1.0)
    assert found["CREAM", "completeness-16"] == (0.5, 1.0)
    assert found["transcript, GPT-4o", "completeness-16"] == (0.5, 0.5)
    assert found["machine summary, GPT-4o", "completeness-16"] == (None, None), "three times 100 % is no ranking"


def test_it_prints_cells_and_takes_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cream", "reproduce", "--json"])
    cells = json.loads(capsys.readouterr().out)
    assert {cell["column"] for cell in cells if cell["table"] == "elo"} == {str(setting) for setting in PAIRS}
    for arguments, why in (
        (["cream", "reproduce", "."], "takes no files"),
        (["goodai-ltm", "reproduce"], "name the files that came with the paper"),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert why in capsys.readouterr().err
