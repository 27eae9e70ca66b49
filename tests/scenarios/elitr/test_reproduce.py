"""`longspan elitr-bench reproduce`: the paper's tables from released files, from files like them, and from runs."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import trio
from scipy.stats import pearsonr, t, ttest_ind
from tests.schemas import check_output

from longspan.scenarios.elitr.marks import format_figure
from longspan.scenarios.elitr.reproduce import reproduce
from longspan.simulator.base.errors import InputError
from longspan.simulator.results.papers import Cell
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

MODELS = 9
TYPES = {"who": "Who", "what": "What", "when": "When", "howmany": "How many"}


def cells_of(*paths: Path) -> dict[tuple[str, str, str], Cell]:
    found = reproduce(list(paths), "paper").cells
    by_place = {(cell.table, cell.row, cell.column): cell for cell in found}
    assert len(by_place) == len(found), "a cell comes once"
    return by_place


@pytest.fixture(scope="module")
def cells(elitr: Path) -> dict[tuple[str, str, str], Cell]:
    return cells_of(elitr / "generated-responses", elitr / "data.zip")


def test_each_dev_cell_of_table_2_is_the_printed_one(cells: Mapping[tuple[str, str, str], Cell]) -> None:
    dev = [cell for (table, _, column), cell in cells.items() if table == "table2" and column.endswith("-dev")]
    assert len(dev) == MODELS + 2 * (MODELS - 1)
    for cell in dev:
        assert cell.published is not None
        assert cell.ours == pytest.approx(cell.published, abs=0.006)
        assert format_figure(cell.ours) == f"{cell.published:.2f}"
        assert cell.n == 141


def test_table_1_is_the_printed_one(cells: Mapping[tuple[str, str, str], Cell]) -> None:
    found = [cell for (table, _, _), cell in cells.items() if table == "table1"]
    assert len(found) == 20
    assert all(cell.ours == cell.published for cell in found)


def test_the_questions_that_differ_are_as_many_as_the_paper_says(cells: Mapping[tuple[str, str, str], Cell]) -> None:
    assert cells["figure1", "GPT-4", "multi-conv-dev"].n == 16


def test_figures_of_the_test_questions_are_not_set_beside_dev_ones(cells: Mapping[tuple[str, str, str], Cell]) -> None:
    detailed = [cell for (table, _, _), cell in cells.items() if table in ("table3", "table9", "table10")]
    assert detailed
    assert all(cell.published is None for cell in detailed)
    assert ("table9", "LongAlign-7B-64k", "Who") in cells


def test_groups_and_p_values_are_those_of_a_count_of_our_own(elitr: Path, cells: Mapping[tuple[str, str, str], Cell]) -> None:
    content = json.loads(gzip.decompress((elitr / "generated-responses" / "elitr-bench-qa_dev_st_gpt-4-eval.json.gz").read_bytes()))
    questions = [question for meeting in content["meetings"] for question in meeting["questions"]]
    for model in ("GPT-4", "Vicuna-7B-v1.5"):
        scores = [
            (each["question-type"], each["answer-position"], float(answer["gpt-4-eval_score"]))
            for each in questions
            for answer in each["generated-responses"]
            if answer["model"] == model
        ]
        for kind, name in TYPES.items():
            assert cells["table9", model, name].ours == pytest.approx(fmean(s for k, _, s in scores if k == kind), abs=1e-6)
        middle, rest = ([s for _, place, s in scores if (place == "M") is wanted] for wanted in (True, False))
        p = ttest_ind(middle, rest, equal_var=False, alternative="less").pvalue
        assert cells["table10", model, "p-value"].ours == pytest.approx(p, abs=1e-6)


def test_the_command_prints_cells_and_tables(elitr: Path) -> None:
    start = [
        sys.executable,
        "-c",
        "from longspan.simulator.cli import main; main()",
        "elitr-bench",
        "reproduce",
        str(elitr / "generated-responses"),
    ]
    done = subprocess.run([*start, "--json"], capture_output=True, text=True, check=True)
    assert {"paper", "table", "row", "column", "ours", "published", "n"} == set(check_output("elitr-bench-reproduce", done.stdout)[0])
    shown_ = subprocess.run(start, capture_output=True, text=True, check=True).stdout
    assert "8.53 (8.53)" in shown_


# Files like the released ones.


def sheet(split: str, answers: Mapping[str, list[dict[str, str]]], meetings: int = 1) -> dict[str, Any]:
    """`answers`: by question id, whose first letter is its position, what models answered with what scores."""
    questions = [
        {
            "id": id,
            "question-type": ["who", "what", "when", "howmany"][at % 4],
            "answer-position": id[0],
            "question": f"What of {id}?",
            "groundtruth-answer": "that",
            "generated-responses": [{"generated-response": f"{id} it is"} | each for each in given],
        }
        for at, (id, given) in enumerate(answers.items())
    ]
    return {"split": split, "meetings": [{"id": f"meeting_{n}", "questions": questions} for n in range(meetings)]}


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_means_are_over_questions_and_judgements_that_failed_are_left_out(tmp_path: Path) -> None:
    answers = {id: [{"model": "M", "gpt-4-eval_score": score}] for id, score in {"B1": "9", "M1": "-1", "E1": "4", "S1": "oops"}.items()}
    found = cells_of(written(tmp_path, "elitr-bench-qa_test2_st_gpt-4-eval.json", sheet("test2", answers)))
    cell = found["table2", "M", "single-qa-test"]
    assert (cell.ours, cell.n) == (6.5, 2)
    assert found["table9", "M", "Middle"].ours is None
    assert ("table2", "M", "single-qa-mean") not in found, "there is no dev"


def test_several_seeds_have_a_mean_and_a_sample_deviation(tmp_path: Path) -> None:
    seeds = {"2023": "789", "2024": "567", "2025": "978"}
    for seed, scores in seeds.items():
        ids = ("B1", "M1", "E1")
        answers = {id: [{"model": "M", "generated-response": seed, "x_score": score}] for id, score in zip(ids, scores, strict=True)}
        written(tmp_path, f"elitr-bench-conv_test2_mt_s{seed}.json", sheet("test2", answers))
    found = cells_of(tmp_path)
    means = [fmean(map(int, scores)) for scores in seeds.values()]
    assert found["table8", "M", "multi-conv-mean"].ours == pytest.approx(fmean(means), abs=1e-6)
    assert found["table8", "M", "multi-conv-std"].ours == pytest.approx(stdev(means), abs=1e-6)
    assert found["table2", "M", "multi-conv-test"].ours == pytest.approx(fmean(means), abs=1e-6)
    assert ("table9", "M", "Who") not in found, "single-turn qa has its own table"


def test_a_sheet_that_repeats_another_counts_once_and_its_judges_are_put_together(tmp_path: Path) -> None:
    plain = {id: [{"model": "M", "gpt-4-eval_score": score}] for id, score in {"B1": "8", "M1": "6"}.items()}
    judged = {id: [each | {"gold-human-eval_score": "7"} for each in given] for id, given in plain.items()}
    written(tmp_path, "elitr-bench-qa_test2_st_gpt-4-eval.json", sheet("test2", plain))
    written(tmp_path, "elitr-bench-qa_test2_st_all-eval.json", sheet("test2", judged))
    found = cells_of(tmp_path)
    assert found["table2", "M", "single-qa-test"].n == 2
    assert not [key for key in found if key[0] == "table8"]
    assert found["table4", "M", "Gold Human"].ours == 7


def test_judges_are_set_against_people(tmp_path: Path) -> None:
    gold = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] * 3
    silver = [min(10.0, 1.3 + 0.8 * each + 0.1 * (at % 5)) for at, each in enumerate(gold)]
    judge = [min(10, each + at % 3) for at, each in enumerate(gold)]
    columns = {"gpt-4-eval_score": judge, "gold-human-eval_score": gold, "silver-human-eval_score": [f"{each:.1f}" for each in silver]}
    answers = {f"B{at}": [{"model": "M"} | {key: str(given[at]) for key, given in columns.items()}] for at in range(len(gold))}
    found = cells_of(written(tmp_path, "elitr-bench-qa_test2_st_all-eval.json", sheet("test2", answers)))
    rounded = [float(f"{each:.1f}") for each in silver]
    assert found["pearson", "GPT-4", "Gold Human"].ours == pytest.approx(pearsonr(judge, gold).statistic, abs=1e-6)
    assert found["pearson", "Silver Human", "GPT-4"].ours == pytest.approx(pearsonr(rounded, judge).statistic, abs=1e-6)
    assert found["pearson", "GPT-4", "GPT-4"].ours == 1
    assert found["table4", "M", "Silver Human"].ours == pytest.approx(fmean(rounded), abs=1e-6)
    three = [each for each, bin in zip(judge, gold, strict=True) if bin == 3]
    low, high = t.interval(0.95, len(three) - 1, fmean(three), stdev(three) / len(three) ** 0.5)
    assert found["figure2a", "3", "GPT-4 low"].ours == pytest.approx(low, abs=1e-6)
    assert found["figure2a", "3", "GPT-4 high"].ours == pytest.approx(high, abs=1e-6)
    assert found["figure2a", "3", "GPT-4"].n == 3


def test_annotators_agree_as_far_as_icc_says(tmp_path: Path) -> None:
    """Six items, four raters: the example of Shrout and Fleiss (1979), where ICC(2,4) is 0.62 and ICC(1,4) is 0.44."""
    scores = ["9258", "6132", "8468", "7126", "A569", "6247"]
    rows = [f"01,{item},{rater},{int(score, 16)}" for item, row in enumerate(scores) for rater, score in enumerate(row)]
    path = tmp_path / "annotators.csv"
    path.write_text("\n".join(["meeting,item,annotator,score", *rows]), "utf-8")
    found = cells_of(path)
    assert found["table12", "01", "ICC"].ours == pytest.approx(0.62, abs=0.005)
    assert found["table12", "all", "ICC"].ours == pytest.approx(0.44, abs=0.005)
    path.write_text("\n".join(["meeting,item,annotator,score", *rows[:-1]]), "utf-8")
    with pytest.raises(InputError, match=r"item '5' of meeting '01' needs one score from each of the meeting's 4 annotators"):
        cells_of(path)


@pytest.mark.parametrize(
    ("value", "printed"), [(8.5248, "8.53"), (8.5244, "8.52"), (5.0354, "5.04"), (4.695035, "4.70"), (7.0, "7.00"), (None, "-")]
)
def test_figures_are_rounded_half_up_twice(value: float | None, printed: str) -> None:
    assert format_figure(value) == printed


def test_a_zip_needs_no_unpacking_and_a_folder_no_sorting(tmp_path: Path) -> None:
    given = json.dumps(sheet("dev", {"B1": [{"model": "M", "gpt-4-eval_score": "8"}]}))
    with zipfile.ZipFile(tmp_path / "generated-responses.zip", "w") as archive:
        archive.writestr("generated-responses/elitr-bench-qa_dev_st_gpt-4-eval.json", given)
        archive.writestr("__MACOSX/._elitr-bench-qa_dev_st.json", b"\0")
    (tmp_path / "notes.json").write_text("[]", "utf-8")
    assert cells_of(tmp_path)["table2", "M", "single-qa-dev"].ours == 8


BAD = {
    "elitr-bench-qa_dev_st.json": ('{"meetings": ', "not JSON"),
    "elitr-bench-qa_dev_mt.json": ('{"split": "dev", "meetings": []}', "not questions of ELITR-Bench: meetings"),
    "elitr-bench-qa_dev.json": (json.dumps(sheet("dev", {"X1": []})), "meetings.0.questions.0.answer-position"),
    "responses.json": (json.dumps(sheet("dev", {"B1": []})), "its name says neither qa nor conv"),
    "elitr-bench-conv_dev.json": (json.dumps(sheet("dev", {"B1": [{"model": "M"}]})), "its name says neither st"),
    "other.json": ("{}", "no questions of ELITR-Bench found"),
    "elitr-bench-qa_dev_st.zip": ("PK\x03\x04 and no more", "cannot be unpacked"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    content, wrong = BAD[name]
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InputError, match=wrong) as found:
        reproduce([tmp_path / name], "paper")
    assert "\n" not in str(found.value)


def test_one_seed_of_the_papers_three_is_named_so(tmp_path: Path) -> None:
    def notes(*seeds: str) -> dict[str, bool]:
        folder = tmp_path / "".join(seeds)
        folder.mkdir()
        for seed in seeds:
            answers = {
                id: [{"model": "GPT-4", "generated-response": f"{id} {seed}", "gpt-4-eval_score": score}]
                for id, score in {"B1": "8", "M1": "6", "E1": "9", "M2": "5"}.items()
            }
            written(folder, f"elitr-bench-qa_test2_st_{seed}.json", sheet("test2", answers))
        return {table.title.partition(":")[0]: "One seed of three" in table.note for table in reproduce([folder], "paper").tables}

    one = notes("2023")
    assert {title for title, told in one.items() if told} == {"Table 2", "Table 3", "Table 9"}
    assert not one["Table 10"], "the paper's test is of one seed"
    assert not any(notes("2023", "2024", "2025").values())


def test_runs_of_ours_make_the_same_tables(tmp_path: Path) -> None:
    for setting in ("qa", "conv"):
        suite = load_suite("elitr").apply_changes([f"setting={setting}", "mode=multi", "tokens=3000"], [], [], 1)
        plans = [
            plan_run(RunSettings(suite=suite, span=32_000, seed=seed, agent=agent), tmp_path)
            for seed in (2023, 2024)
            for agent in ("oracle", "silent")
        ]
        assert all(outcome.error is None for outcome in trio.run(play_plans, plans))
    found = cells_of(tmp_path)
    assert found["table2", "oracle", "multi-qa-dev"].ours == 10
    assert found["table2", "silent", "multi-conv-dev"].ours == 0
    assert (found["table8", "oracle", "multi-conv-mean"].ours, found["table8", "oracle", "multi-conv-std"].ours) == (10, 0)
    assert found["table8", "silent", "multi-qa-mean"].n == 2
    assert found["figure1", "oracle", "multi-conv-dev"].ours == 10


def test_three_seeds_of_an_agent_are_three_sittings_of_it(tmp_path: Path) -> None:
    suite = load_suite("elitr").apply_changes(["tokens=3000"], [], [], 1)
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=32_000, seed=7, agent="oracle"), tmp_path)])
    result = json.loads((outcome.folder / "result.json").read_text("utf-8"))
    for seed in (2023, 2024, 2025):
        copy = shutil.copytree(outcome.folder, tmp_path / "seeds" / str(seed))
        agent = f"openai/somebody?temperature=0.6&seed={seed}&max_tokens=512"
        (copy / "result.json").write_text(json.dumps(result | {"agent": agent}), "utf-8")
    found = cells_of(tmp_path / "seeds")
    assert found["table8", "openai/somebody?temperature=0.6&max_tokens=512", "single-qa-mean"].n == 3
