"""`longspan goodai-ltm reproduce`: the published scores again, from the published transcripts."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import check_output

from longspan.scenarios.goodai.reproduce import reproduce
from longspan.scenarios.goodai.table1 import printed_score
from longspan.simulator.base.errors import InputError
from longspan.simulator.results.papers import Cell

EXACT = {
    "name_list": 1.0,
    "chapterbreak": 1.0,
    "prospective_memory": 0.99,
    "sally_anne": 0.99,
    "colours": 0.99,
    "trigger_response": 0.98,
    "shopping": 0.98,
    "locations": 0.96,
    "jokes": 0.96,
    "spy_meeting": 0.82,
    "restaurant": 0.74,
}
"""The least share of recorded tests whose grade is ours as well."""


@pytest.fixture(scope="module")
def cells(goodai: Path) -> list[Cell]:
    return list(reproduce([goodai / "results", goodai / "runs"], "paper").cells)


def value(cells: list[Cell], table: str, row: str, column: str) -> float:
    (cell,) = (cell for cell in cells if (cell.table, cell.row, cell.column) == (table, row, column))
    assert cell.ours is not None
    return cell.ours


@pytest.mark.parametrize("scenario", EXACT)
def test_our_grades_are_the_recorded_ones(cells: list[Cell], scenario: str) -> None:
    assert value(cells, "agreement", scenario, "exact") >= EXACT[scenario]


def test_before_corrections_by_hand_spies_agree_better_and_a_restaurant_phase_by_phase(cells: list[Cell]) -> None:
    assert value(cells, "agreement", "spy_meeting", "exact_auto") >= 0.86
    assert value(cells, "restaurant_phases", "all", "exact") >= 0.88


def test_every_disagreement_has_reasons_and_a_category(goodai: Path) -> None:
    found = reproduce([goodai / "results"], "paper")
    table = next(table for table in found.tables if table.title == "Where we disagree")
    counted = sum(round((1 - (cell.ours or 0)) * cell.n) for cell in found.cells if (cell.table, cell.column) == ("agreement", "exact"))
    assert len(table.rows) == counted > 0
    assert all(category and ours and theirs for _, _, _, category, ours, theirs in table.rows)


def test_published_scores_come_out_where_our_grades_agree(cells: list[Cell]) -> None:
    """What the paper prints has one digit: half of one is its own rounding. Where a grade differs, the score may."""
    published = [cell for cell in cells if cell.table == "scores" and cell.published is not None]
    assert len(published) == 22
    close = [cell for cell in published if abs((cell.ours or 0) - (cell.published or 0)) <= 0.05 + 1e-9]
    assert len(close) >= 11
    assert all(abs((cell.ours or 0) - (cell.published or 0)) < 0.85 for cell in published)


def test_recorded_scores_are_the_printed_ones_for_every_agent(goodai: Path) -> None:
    """So the sums are the paper's: what differs are grades alone."""
    table = next(table for table in reproduce([goodai / "results"], "paper").tables if table.title.startswith("Scores"))
    assert len(table.rows) == 26
    for _, _, _, recorded, printed_, *_ in table.rows:
        if printed_ != "not printed":
            for ours, theirs in zip(recorded.split(" ± "), printed_.split(" ± "), strict=True):
                assert float(ours) == pytest.approx(float(theirs), abs=0.051)


def test_what_the_paper_does_not_print_is_null() -> None:
    assert printed_score("LTMAgentWrapper - claude-3-opus - 200000 - QG_JSON_USER_INFO", "Benchmark 3 - 32k") is None
    assert printed_score("LLMChatSession - gpt-4o - 128000", "Benchmark 3 - 64k") is None
    assert printed_score("LLMChatSession - gpt-4o - 16000", "Benchmark 3 - 32k") is None
    assert printed_score("somebody's agent", "Benchmark 3 - 32k") is None
    assert printed_score("LTMAgentWrapper - claude-3-opus - 16384 - QG_JSON_USER_INFO", "Benchmark 3 - 32k") == (5.0, 2.3)
    assert printed_score("LTMAgentWrapper - claude-3-opus - 16384 - SEMANTIC_ONLY", "Benchmark 3 - 32k") is None, "another memory"


def recorded(**changes: Any) -> dict[str, Any]:
    """A recorded test in the form of the peer's, in our own words."""
    entry = {
        "benchmark": "Home made - 32k",
        "agent": "somebody",
        "dataset": "Colours",
        "example": "0",
        "task_log": [
            "Test (2024-05-01 10:00:00): I like green best.",
            "Agent (2024-05-01 10:00:01): Fine.",
            "Test (2024-05-01 11:00:00): Which colour do I like best?",
            "Agent (2024-05-01 11:00:01): Evergreen.",
        ],
        "expected_responses": ["Green"],
        "actual_responses": ["Evergreen."],
        "reasoning": ["the letters are there"],
        "score": 1.0,
        "max_score": 1,
        "tokens": 40,
        "characters": 100,
        "needles": 1,
    }
    return entry | changes


def cell(cells: Any, table: str) -> Cell:
    return next(cell for cell in cells if cell.table == table)


def test_a_recorded_score_above_the_greatest_is_compared_as_all_of_it_and_summed_as_it_is(tmp_path: Path) -> None:
    listed = json.dumps([{"item": "soap", "quantity": 2}] * 2)
    record = recorded(dataset="Shopping", expected_responses=[["soap", 2]], actual_responses=[listed], score=5, max_score=3)
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    found = reproduce([tmp_path / "a.jsonl"], "paper")
    assert cell(found.cells, "agreement").ours == 1
    assert next(table for table in found.tables if table.title.startswith("Scores")).rows[0][2:4] == ["1.00 ± 0.00", "1.67 ± 0.00"]


@pytest.mark.parametrize("packed", [False, True])
def test_files_are_told_apart_by_content(tmp_path: Path, packed: bool) -> None:
    text = "\n".join(json.dumps(recorded(example=str(k))) for k in range(3)).encode()
    (tmp_path / "whatever.bin").write_bytes(gzip.compress(text) if packed else text)
    found = reproduce([tmp_path / "whatever.bin"], "paper").cells
    assert (cell(found, "agreement").n, cell(found, "agreement").ours) == (3, 1.0)
    score = cell(found, "scores")
    assert (score.row, score.column, score.published) == ("somebody", "Home made - 32k", None)


def test_a_results_folder_says_by_its_places_whose_tests_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "Home made - 32k" / "results" / "somebody" / "Colours"
    folder.mkdir(parents=True)
    bare = {key: value for key, value in recorded().items() if key not in ("benchmark", "agent", "dataset", "example")}
    (folder / "0_0.json").write_text(json.dumps(bare, indent=1))
    (folder.parent / "runstats.json").write_text('{"agent_costs_usd": 1.5, "duration": 60, "total_tokens": 9}')
    (folder.parent / "notes.txt").write_text("not a test")
    found = reproduce([tmp_path / "Home made - 32k" / "results"], "paper").cells
    assert (cell(found, "scores").row, cell(found, "scores").column) == ("somebody", "Home made - 32k")
    assert (cell(found, "cost_usd").ours, cell(found, "duration_s").ours) == (1.5, 60)


def test_our_own_rules_ask_for_more(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(recorded()))
    assert cell(reproduce([tmp_path / "a.jsonl"], "paper").cells, "agreement").ours == 1
    assert cell(reproduce([tmp_path / "a.jsonl"], "longspan").cells, "agreement").ours == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no recorded tests found"),
        (b"{", "line 1: not JSON"),
        (b"[1]", "not a recorded test"),
        (json.dumps(recorded()).encode() + b"\n{}", "line 2: not a recorded test: agent"),
        (json.dumps(recorded(score="x")).encode(), "score"),
        (json.dumps(recorded(max_score=0)).encode(), "max_score"),
        (json.dumps(recorded(dataset="Chess")).encode(), "unknown dataset 'Chess'"),
        (json.dumps(recorded(expected_responses=[3])).encode(), "expected responses are not as published"),
        (gzip.compress(b"{}", mtime=0)[:-4], "cannot be read"),
    ],
)
def test_what_is_no_recorded_test_is_said_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        reproduce([tmp_path / "file"], "paper")
    assert "\n" not in str(error.value)


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(recorded()))

    def longspan(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from longspan.simulator.cli import main; main()", *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    told = longspan("goodai-ltm", "reproduce", str(tmp_path / "a.jsonl"), "--json")
    assert told.returncode == 0
    assert {tuple(each) for each in check_output("goodai-ltm-reproduce", told.stdout)} == {
        ("paper", "table", "row", "column", "ours", "published", "n")
    }
    assert "Agreement" in longspan("goodai-ltm", "reproduce", str(tmp_path / "a.jsonl")).stdout
    for wrong, said in (
        (("nobody", "reproduce", str(tmp_path)), "No such command 'nobody'"),
        (("goodai-ltm", "reproduce", "nowhere"), "nowhere: does not exist"),
    ):
        refused = longspan(*wrong)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert said in refused.stderr
