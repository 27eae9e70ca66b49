"""`longspan locomo reproduce` and `longspan longmemeval reproduce`: released answers with verdicts, and small files of the same forms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.histories.conftest import published
from tests.schemas import check_output

from longspan.scenarios.histories.accuracies import mean_score
from longspan.scenarios.histories.released_answers import ReleasedAnswer
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.results.papers import Cell, Reproduction, find_paper

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "history-grading.md"

Cells = Mapping[tuple[str, str, str], Cell]


def by_place(found: Reproduction) -> Cells:
    cells = {(cell.table, cell.row, cell.column): cell for cell in found.cells}
    assert len(cells) == len(found.cells), "a cell comes once"
    return cells


@pytest.fixture(scope="module")
def locomo_cells() -> Cells:
    return by_place(find_paper("locomo")([published("locomo") / "answers"], "paper"))


@pytest.fixture(scope="module")
def longmemeval_cells() -> Cells:
    return by_place(find_paper("longmemeval")([published("longmemeval")], "paper"))


def test_the_published_accuracies_of_locomo_come_out(locomo_cells: Cells) -> None:
    found = {row: (cell.ours, cell.n) for (table, row, column), cell in locomo_cells.items() if (table, column) == ("accuracy", "overall")}
    expected = {
        "full-context-gpt-4o-mini-cot": (0.7989, 1540),
        "full-context-gpt-4.1-mini-memos": (0.8195, 1540),
        "vague-v1": (0.1061, 1540),
        "a40-file_based": (0.3556, 239),
        "a40-no_memory": (0.0167, 239),
    }
    assert {row: (round(ours or 0, 4), n) for row, (ours, n) in found.items()} == expected
    stated = [cell for cell in locomo_cells.values() if cell.published is not None]
    assert len(stated) == 11, "two files state five figures, one states one"
    assert all(cell.ours == pytest.approx(cell.published, abs=1e-6) for cell in stated)
    trick = locomo_cells["accuracy", "a40-no_memory", "overall with adversarial"]
    assert (trick.ours, trick.n) == (pytest.approx(65 / 300, abs=1e-6), 300)
    assert locomo_cells["accuracy", "a40-no_memory", "Adversarial"].ours == 1, "who says that he does not know has them all"


def test_where_the_gold_answer_is_right(locomo_cells: Cells) -> None:
    corrected = locomo_cells["corrected", "full-context-gpt-4o-mini-cot", "overall"]
    assert (round(corrected.ours or 0, 4), corrected.n) == (0.8173, 1540 - 99)
    assert locomo_cells["ceiling", "vague-v1", "overall"].ours == pytest.approx(1441 / 1540, abs=1e-6)
    assert locomo_cells["wrong gold", "vague-v1", "overall"].n == 99
    parts = [locomo_cells[table, "vague-v1", "overall"] for table in ("corrected", "wrong gold")]
    assert sum((cell.ours or 0) * cell.n for cell in parts) == pytest.approx(
        (locomo_cells["accuracy", "vague-v1", "overall"].ours or 0) * 1540, abs=0.01
    )


def test_the_published_accuracies_of_longmemeval_come_out(longmemeval_cells: Cells) -> None:
    for row, ours in (("a40-dev144_file_based", 0.4306), ("a40-dev144_structured", 0.7153)):
        cell = longmemeval_cells["accuracy", row, "overall"]
        assert (round(cell.ours or 0, 4), cell.n) == (ours, 144)
    kind = longmemeval_cells["accuracy", "a40-dev144_structured", "knowledge-update"]
    assert (kind.ours, kind.n) == (pytest.approx(29 / 36, abs=1e-6), 36)


def test_the_guide_has_the_figures_of_the_command(locomo_cells: Cells, longmemeval_cells: Cells) -> None:
    text = DOCS.read_text("utf-8").partition("\n## Published answers again\n")[2]
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| `(full|vague|a40)", line)
    ]
    assert len(rows) == 7
    for name, *figures in rows:
        cells = locomo_cells if ("accuracy", name, "overall") in locomo_cells else longmemeval_cells
        ends = [cells[f"accuracy {end}", name, "overall"].ours for end in ("low", "high")]
        corrected = cells.get(("corrected", name, "overall"))
        told = [
            f"{cells['accuracy', name, 'overall'].ours:.4f}",
            f"{ends[0]:.3f} to {ends[1]:.3f}",
            f"{cells['accuracy', name, 'overall'].n:,}",
            f"{corrected.ours:.4f}" if corrected else "",
        ]
        assert figures == told


# Files like the released ones.

GOLD = [
    {
        "conversation": {},
        "qa": [
            {"question": "A cat?", "answer": "Olive", "category": 4, "evidence": []},
            {"question": "Twice?", "answer": 2022, "category": 1, "evidence": []},
            {"question": "Twice?", "answer": 2022, "category": 2, "evidence": []},
            {"question": "A cat?", "adversarial_answer": "Olive", "category": 5, "evidence": []},
        ],
    }
]
AUDIT = [
    {"question_id": "locomo_0_qa1", "error_type": "HALLUCINATION", "correct_answer": "2021"},
    {"question_id": "locomo_0_qa0", "error_type": "WRONG_CITATION", "correct_answer": "Olive"},
]


def judged(*verdicts: str, replies: str = "same") -> dict[str, Any]:
    """Answers to GOLD's questions, each with the verdicts of several judgements: `+` for right."""
    rows = [
        {
            "question_id": f"locomo_0_qa{number}",
            "category": str(GOLD[0]["qa"][number]["category"]),  # type: ignore[index]
            "generated_answer": f"{replies} {number}",
            "llm_judgments": {f"judgment_{at}": mark == "+" for at, mark in enumerate(given, 1)},
        }
        for number, given in enumerate(verdicts)
    ]
    return {"detailed_results": {"locomo_exp_user_0": rows}}


GRADES = {
    "locomo_experiment_user_0": [
        {"question": "Twice?", "answer": "2022", "golden_answer": 2022, "grade": True},
        {"question": "A cat?", "answer": "No", "golden_answer": None, "grade": True},
        {"question": "Twice?", "answer": "2021", "golden_answer": 2022, "grade": False},
        {"question": "A cat?", "answer": "Olive", "golden_answer": "Olive", "grade": True},
    ]
}


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def test_judgements_are_averaged_and_the_adversarial_kind_stands_apart(tmp_path: Path) -> None:
    written(tmp_path / "errors.json", AUDIT)
    cells = by_place(find_paper("locomo")([written(tmp_path / "answers" / "mine.json", judged("++-", "+++", "---", "+++"))], "paper"))
    assert cells["accuracy", "mine", "overall"].ours == pytest.approx((2 / 3 + 1) / 3, abs=1e-6)
    assert cells["accuracy", "mine", "overall with adversarial"].ours == pytest.approx((2 / 3 + 2) / 4, abs=1e-6)
    assert (cells["accuracy", "mine", "4"].ours, cells["accuracy", "mine", "5"].ours) == (pytest.approx(2 / 3, abs=1e-6), 1)
    assert cells["corrected", "mine", "overall"].ours == pytest.approx(1 / 3, abs=1e-6), "found in the folder above"
    assert ("corrected", "mine", "5") not in cells
    assert ("corrected", "mine", "1") not in cells, "its only gold answer is wrong"
    assert cells["denominators", "mine", "of 1540"].ours == pytest.approx((2 / 3 + 1) / 1540, abs=1e-6)
    assert cells["denominators", "mine", "adversarial above the line only"].ours == pytest.approx((2 / 3 + 2) / 1540, abs=1e-6)


def test_zeps_grades_have_the_categories_of_the_questions(tmp_path: Path) -> None:
    paths = [written(tmp_path / "zep.json", GRADES), written(tmp_path / "gold.json", GOLD), written(tmp_path / "audit.json", AUDIT)]
    cells = by_place(find_paper("locomo")(paths, "paper"))
    kinds = {column: cell.ours for (table, _, column), cell in cells.items() if table == "accuracy"}
    assert kinds == {"overall": pytest.approx(2 / 3, abs=1e-6), "overall with adversarial": 0.75, "1": 1, "2": 0, "4": 1, "5": 1}
    assert cells["corrected", "zep", "overall"].ours == 0.5
    alone = {column for table, _, column in by_place(find_paper("locomo")(paths[:1], "paper")) if table == "accuracy"}
    assert alone == {"overall", "overall with adversarial"}, "without the questions, their categories are not known"


def test_two_judges_of_the_same_answers_agree_so_far(tmp_path: Path) -> None:
    strict, lenient = judged("+", "-", "-", "-"), judged("+", "+", "-", "-")
    paths = [written(tmp_path / f"{name}.json", value) for name, value in (("strict", strict), ("lenient", lenient))]
    other = written(tmp_path / "other.json", judged("++", "+-", "--", "--", replies="other"))
    cells = by_place(find_paper("locomo")([*paths, other], "paper"))
    found = {
        row: (cell.ours, cells["agreement", row, "kappa"].ours) for (table, row, column), cell in cells.items() if column == "agreement"
    }
    # Cohen's kappa by hand: 3 of 4 agree; by chance 1/4 x 2/4 + 3/4 x 2/4 = 1/2.
    assert found == {"strict, lenient": (0.75, 0.5), "other: judgment_1, judgment_2": (0.75, 0.5)}


def test_the_authors_evaluation_of_longmemeval_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"question_id": id, "hypothesis": "so", "autoeval_label": {"model": "gpt-4o", "label": right}}
        for id, right in (("a", True), ("b", False), ("c_abs", True))
    ]
    log = written(tmp_path / "mine.log", "\n".join(map(json.dumps, lines)))
    asked = written(tmp_path / "oracle.json", [{"question_id": id, "question_type": "multi-session"} for id in ("a", "b", "c_abs")])
    cells = by_place(find_paper("longmemeval")([log, asked], "paper"))
    with pytest.raises(SystemExit):
        main(["longmemeval", "reproduce", str(log), str(asked), "--json"])
    assert {(cell["table"], cell["row"], cell["column"]) for cell in check_output("longmemeval-reproduce", capsys.readouterr().out)} == set(
        cells
    )
    kinds = {column: cell.ours for (table, _, column), cell in cells.items() if table == "accuracy"}
    assert kinds == {"overall": pytest.approx(2 / 3, abs=1e-6), "abstention": 1, "multi-session": 0.5}


def test_intervals_are_wilsons_and_wider_where_conversations_differ() -> None:
    def answers(conversation: str, right: int, wrong: int) -> list[ReleasedAnswer]:
        return [ReleasedAnswer(f"{conversation}{at}", conversation, "", {"": at < right}, "") for at in range(right + wrong)]

    z = 1.959964
    centre, half = (0.8 + z**2 / 40) / (1 + z**2 / 20), z * sqrt(0.8 * 0.2 / 20 + z**2 / 1600) / (1 + z**2 / 20)
    _, alike = mean_score(answers("a", 16, 4))
    assert alike == (pytest.approx(centre - half, abs=1e-6), pytest.approx(centre + half, abs=1e-6))
    _, unequal = mean_score([*answers("a", 8, 2), *answers("b", 80, 20), *answers("c", 40, 10)])
    _, differing = mean_score([*answers("a", 0, 10), *answers("b", 100, 0), *answers("c", 28, 22)])
    assert unequal
    assert differing
    assert unequal[1] - unequal[0] < 0.13, "only their sizes differ"
    assert differing[1] - differing[0] > 0.5
    assert mean_score(answers("a", 1, 0)) == (1, None)


def test_the_command_prints_cells_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "mine.json", judged("+", "-"))
    with pytest.raises(SystemExit):
        main(["locomo", "reproduce", str(path), "--json"])
    cells = check_output("locomo-reproduce", capsys.readouterr().out)
    assert {"paper": "locomo", "table": "accuracy", "row": "mine", "column": "overall", "ours": 0.5, "published": None, "n": 2} in cells
    with pytest.raises(SystemExit):
        main(["locomo", "reproduce", str(path)])
    shown = capsys.readouterr().out
    assert "4 (single-hop)" in shown
    assert "name the audit, errors.json, too" in shown


ROW = {"conv_id": "conv-26", "qa_index": 3, "category": "Single-hop", "correct": True}
TWICE = {"detailed_results": {key: judged("+")["detailed_results"]["locomo_exp_user_0"] for key in ("a", "b")}}
LABELLED = {"question_id": "a", "hypothesis": "", "autoeval_label": {"label": "yes"}}

BAD: dict[str, tuple[str, Any, str]] = {
    "no JSON": ("locomo", "[", "not JSON"),
    "deep": ("locomo", "[" * 100_000, "nested too deeply"),
    "other": ("locomo", [{"a": 1}], "neither answers with verdicts nor gold answers: has keys 'a'; expected rows with llm_judgments"),
    "a text": ("locomo", '"answers"', "has a str"),
    "nothing": ("locomo", {"detailed_results": {}}, "has no answers"),
    "no verdict": ("locomo", judged(""), r"llm_judgments: must not be empty"),
    "a verdict in words": ("locomo", [ROW | {"correct": "yes"}], "row 0: correct: must be true or false"),
    "twice": ("locomo", TWICE, "question '0/0' is answered twice"),
    "a claim beyond 1": ("locomo", judged("+") | {"accuracy": 79.9}, "accuracy: must be at most 1"),
    "no number": ("locomo", '{"detailed_results": {}, "accuracy": NaN}', "accuracy: "),
    "another conversation": ("locomo", [ROW | {"conv_id": "\x1b[2J"}], r"conv_id '\\x1b\[2J' is not a conversation"),
    "an escape": ("locomo", [ROW | {"category": "\x1b[2J"}], r"the category '\\x1b\[2J' is too long or cannot be printed"),
    "too many kinds": ("locomo", [ROW | {"category": str(n), "qa_index": n} for n in range(60)], "more than 50 categories"),
    "a nameless group": ("locomo", {"user": GRADES["locomo_experiment_user_0"]}, "must be a list of grades under a conversation's number"),
    "gold alone": ("locomo", GOLD, "no file has answers to LoCoMo's questions"),
    "questions alone": ("longmemeval", [{"question_id": "a", "question_type": "b"}], "no file has answers to LongMemEval's"),
    "a label in words": ("longmemeval", [LABELLED], "row 0: autoeval_label.label: must be true or false"),
    "nobody's": ("longmemeval", [{"question_id": "a"}], "expected rows with question_id and correct"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    which, content, wrong = BAD[name]
    path = written(tmp_path / "answers.json", content)
    with pytest.raises(InputError, match=wrong) as found:
        find_paper(which)([path], "paper")
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 700


def test_grades_of_questions_that_nobody_asked_are_refused(tmp_path: Path) -> None:
    rows = [{"question": "A dog?", "grade": True}]
    paths = [written(tmp_path / "gold.json", GOLD), written(tmp_path / "zep.json", {"user_0": rows})]
    with pytest.raises(InputError, match=r"zep.json, 'user_0', row 0: 'A dog\?' is not among LoCoMo's questions"):
        find_paper("locomo")(paths, "paper")
