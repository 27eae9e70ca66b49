"""`longspan summhay reproduce`: the paper's figures from the data that came with it, against figures worked out here another way."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.schemas import check_output

from longspan.scenarios.summhay import printed
from longspan.scenarios.summhay.reproduce import reproduce
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.results.papers import Cell

COVERAGE = {"f": 1.0, "p": 0.5, "n": 0.0}
"""By the first letter, which annotators and models have in common."""


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def by_name(cells: list[Cell]) -> dict[tuple[str, str, str], Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def test_the_judges_table_is_what_the_annotated_samples_say(summhay: Path) -> None:
    path = summhay / "eval_benchmark_data.first100.json.gz"
    samples = load(path)
    cells = by_name(list(reproduce([path], "paper").cells))
    names = [name for name in samples[0] if name.startswith("predictions_")]
    assert {row for table, row, _ in cells if table == "judges"} == {name.removeprefix("predictions_") for name in names}
    for name in names:
        theirs, own, linked = [], [], []
        for sample in samples:
            answers = {answer["insight_id"]: answer for answer in sample[name]}
            for annotation in sample["annotation"]:
                answer = answers[annotation["insight_id"]]
                theirs.append(COVERAGE[annotation["coverage"][0].lower()])
                own.append(COVERAGE[answer["coverage"][0].lower()])
                if isinstance(answer["bullet_id"], int) and annotation["candidate_id"] != "no_selection":
                    linked.append(answer["bullet_id"] == int(annotation["candidate_id"]) + 1)
        row = name.removeprefix("predictions_")
        correlation, link_accuracy = cells["judges", row, "correlation"], cells["judges", row, "link_accuracy"]
        assert correlation.ours == pytest.approx(np.corrcoef(theirs, own)[0, 1], abs=1e-6)
        assert link_accuracy.ours == pytest.approx(np.mean(linked), abs=1e-6)
        assert (correlation.n, link_accuracy.n) == (len(theirs), len(linked)) != (0, 0)


def test_half_of_the_samples_come_near_the_printed_figures(summhay: Path) -> None:
    """The printed ones are of all 200: with 713 insights a correlation is uncertain by about 0.02."""
    cells = [cell for cell in reproduce([summhay / "eval_benchmark_data.first100.json.gz"], "paper").cells if cell.table == "judges"]
    assert len(cells) == 12
    for cell in cells:
        assert cell.ours == pytest.approx(cell.published, abs=0.03)


def test_what_judges_favour_is_what_the_annotated_samples_say(summhay: Path) -> None:
    path = summhay / "eval_benchmark_data.first100.json.gz"
    cells = by_name(list(reproduce([path], "paper").cells))
    for judge in ("gpt-4o", "claude3-opus", "gemini-1.5-pro"):
        differences: dict[str, list[float]] = defaultdict(list)
        lengths, every, own = [], [], []
        for sample in load(path):
            predicted = {
                answer["insight_id"]: COVERAGE[answer["coverage"][0].lower()] for answer in sample[f"predictions_prompted_{judge}"]
            }
            pairs = [(predicted[each["insight_id"]], COVERAGE[each["coverage"][0].lower()]) for each in sample["annotation"]]
            difference = float(np.mean([mine for mine, _ in pairs]) - np.mean([theirs for _, theirs in pairs]))
            differences[sample["summkey"].split("_")[-1]].append(difference)
            lengths.append(len(re.sub(r"\s\s+", " ", "\n".join(sample["summary"])).split(" ")) / len(sample["summary"]))
            every.append(difference)
            own.append(np.mean([mine for mine, _ in pairs]))
        column = f"prompted_{judge}"
        for model, found in differences.items():
            assert cells["bias", model, column].ours == pytest.approx(np.mean(found), abs=1e-6)
        assert cells["bias", "mean", column].ours == pytest.approx(np.mean([np.mean(found) for found in differences.values()]), abs=1e-6)
        assert cells["bias", "length-difference", column].ours == pytest.approx(np.corrcoef(every, lengths)[0, 1], abs=1e-6)
        assert cells["bias", "length-score", column].ours == pytest.approx(np.corrcoef(own, lengths)[0, 1], abs=1e-6)
        near = [printed.printed_bias(row, column, 200) for row in ("mean", "length-score")]
        assert [cells["bias", row, column].ours for row in ("mean", "length-score")] == pytest.approx(near, abs=0.03), "half of the samples"
        assert all(cell.published is None for (table, *_), cell in cells.items() if table == "bias"), "half of them prove nothing"


def test_figures_of_ten_topics_stand_beside_those_of_the_authors(tmp_path: Path) -> None:
    name = "summary_subtopic_oracle_gpt-4o"
    subtopic = TOPIC["subtopics"][0] | {"summaries": {name: ["A is 1. [1]"]}, "eval_summaries": {name: [ANSWER]}}
    for number in range(10):
        (tmp_path / f"topic_{number}.json").write_text(json.dumps(TOPIC | {"subtopics": [subtopic]}), "utf-8")
    cells = by_name(list(reproduce([tmp_path], "paper").cells))
    assert {column: cells["results", "oracle_gpt-4o", column].published for column in ("coverage", "citation", "joint", "words")} == {
        "coverage": 0.77,
        "citation": 0.55,
        "joint": 0.43,
        "words": None,
    }
    (tmp_path / "topic_0.json").unlink()
    assert all(cell.published is None for cell in reproduce([tmp_path], "paper").cells)


def test_models_and_retrievers_score_what_is_stored_in_the_topics(summhay: Path) -> None:
    paths = [summhay / "topic_news1.json.gz", summhay / "topic_news2.json.gz"]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for topic in map(load, paths):
        for subtopic in topic["subtopics"]:
            for name, answers in subtopic["eval_summaries"].items():
                lists = found[name.removeprefix("summary_subtopic_")]
                for answer in answers:
                    coverage, f1 = COVERAGE[answer["coverage"][0].lower()], 0.0
                    if coverage:
                        bullet = subtopic["summaries"][name][answer["bullet_id"] - 1]
                        cited = {int(each) for group in re.findall(r"\[([\d, ]+)\]", bullet) for each in group.split(",") if each.strip()}
                        gold = {n + 1 for n, each in enumerate(topic["documents"]) if each[f"label_{answer['insight_id']}"] == 1}
                        f1 = 2 * len(cited & gold) / (len(cited) + len(gold))  # the same as from precision and recall
                        lists["citation"].append(f1)
                    lists["coverage"].append(coverage)
                    lists["joint"].append(coverage * f1)
    cells = by_name(list(reproduce(paths, "paper").cells))
    positions = {"fl-ctxt-sort": "top", "fl-ctxt-middle": "middle", "fl-ctxt-rev-sort": "bottom"}
    assert len(found) == 78
    for name, lists in found.items():
        retriever, _, model = name.rpartition("_")
        row = f"{positions.get(retriever, retriever)}_{model}" if retriever else model
        for column, values in lists.items():
            assert cells["results", row, column].ours == pytest.approx(np.mean(values), abs=1e-6), (row, column)
        if retriever in positions:
            assert cells["positions", model, positions[retriever]].ours == cells["results", row, "joint"].ours
    for model in ("gpt-4o", "claude3-opus", "gemini-1.5-pro"):
        joint = {position: cells["positions", model, position].ours or 0 for position in ("top", "middle", "bottom", "stored")}
        widest = max(abs(joint[position] - joint["stored"]) for position in ("top", "middle", "bottom"))
        assert cells["positions", model, "sensitivity"].ours == pytest.approx(widest, abs=2e-6)


def test_at_the_command_line(summhay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["summhay", "reproduce", str(summhay / "eval_benchmark_data.first100.json.gz"), "--json"])
    assert leaving.value.code == 0
    cells = check_output("summhay-reproduce", capsys.readouterr().out)
    assert {(cell["paper"], cell["table"]) for cell in cells} == {("summhay", "judges"), ("summhay", "bias")}


SAMPLE: dict[str, Any] = {"annotation": [{"insight_id": "a", "coverage": "fully_covered", "candidate_id": "0"}]}
ANSWER: dict[str, Any] = {"insight_id": "a", "coverage": "FULL_COVERAGE", "bullet_id": 1}
TOPIC: dict[str, Any] = {
    "topic": "t",
    "subtopics": [{"subtopic_id": "s", "subtopic": "s", "query": "q", "insights": [{"insight_id": "a", "insight": "A is 1."}]}],
    "documents": [{"document_id": "d", "document_text": "A is 1.", "insights_included": ["a"]}],
}


def test_a_bullet_that_is_a_list_or_na_is_no_link(tmp_path: Path) -> None:
    answers = [{**ANSWER, "bullet_id": bullet} for bullet in ("NA", [1, 2], "1", None, True)]
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([SAMPLE | {"predictions_x": [answer]} for answer in answers]), "utf-8")
    cells = by_name(list(reproduce([path], "paper").cells))
    assert cells["judges", "x", "link_accuracy"].n == 0
    assert cells["judges", "x", "link_accuracy"].ours is None
    assert cells["judges", "x", "correlation"].ours is None, "coverage that never changes correlates with nothing"


WRONG = {
    "not JSON": b"[{",
    "not a list of annotated samples: annotation: is missing": b"[{}]",
    "says nothing about insight a": json.dumps([SAMPLE | {"predictions_x": []}]).encode(),
    "unknown coverage 'perhaps'": json.dumps([SAMPLE | {"predictions_x": [{**ANSWER, "coverage": "perhaps"}]}]).encode(),
    "sample 1, predictions_x: not a list": json.dumps([SAMPLE | {"predictions_x": 7}]).encode(),
    "not a topic file": b"{}",
    "damaged gzip": b"\x1f\x8b\x08\x00nothing",
    "neither judged samples": json.dumps(TOPIC).encode(),
    "its summary is missing": json.dumps(TOPIC | {"subtopics": [TOPIC["subtopics"][0] | {"eval_summaries": {"m": [ANSWER]}}]}).encode(),
    "the same id": json.dumps(TOPIC | {"subtopics": TOPIC["subtopics"] * 2}).encode(),
    "needs documents": json.dumps(TOPIC | {"documents": []}).encode(),
    "is blank": json.dumps(TOPIC | {"documents": [TOPIC["documents"][0] | {"document_text": " "}]}).encode(),
    "is in a document": json.dumps(TOPIC | {"documents": [TOPIC["documents"][0] | {"insights_included": []}]}).encode(),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_with_a_file_is_said_in_a_line(words: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(WRONG[words])
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        reproduce([path], "paper")
    assert "\n" not in str(caught.value)


def test_an_empty_folder_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.json"):
        reproduce([tmp_path], "paper")
