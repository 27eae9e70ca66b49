"""Released answers with verdicts are labels for `longspan calibrate`, and judges are asked what their rubrics say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Server
from tests.scenarios.histories.conftest import published

from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main
from longspan.simulator.results.judging.calibration import Calibration, measure_calibration, read_labels
from longspan.simulator.results.judging.rubrics import find_rubric

pytestmark = pytest.mark.usefixtures("openai_key")


def generous(prompt: str) -> str:
    """A judge to whom every answer is right, and in the form that is wanted."""
    return json.dumps({"why": "", "label": "CORRECT", "correct": True, "score": 1})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(reply=generous).running() as server:
        yield server


def calibrated(server: Server, name: str, labels: list[Path], out: Path, capsys: pytest.CaptureFixture[str]) -> Calibration:
    files = [part for path in labels for part in ("--labels", str(path))]
    with pytest.raises(SystemExit) as left:
        main(["calibrate", "--judge", server.model(), *files, "--rubric", name, "--out", str(out), "--json"])
    assert left.value.code == 0
    return Calibration.model_validate_json(capsys.readouterr().out)


def test_released_answers_are_labels_without_the_adversarial_ones(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    found = calibrated(server, "locomo", [published("locomo") / "answers" / "a40-file_based.json.gz"], tmp_path, capsys)
    assert (found.items, found.failed, found.judge_mean) == (239, 0, 1)
    assert found.agreement == found.people_mean == pytest.approx(85 / 239)
    (prompt,) = [asked.texts[-1][1] for asked in server.asked if "Caroline researched adoption agencies." in asked.texts[-1][1]]
    assert "\nWhat did Caroline research?\n" in prompt, "from locomo10.json, in the folder above"
    assert "\nAdoption agencies\n" in prompt


def test_longmemevals_questions_come_from_a_file_that_is_named(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    folder = published("longmemeval")
    files = [folder / "answers" / "a40-dev144_structured.json.gz", folder / "questions_s.json.gz"]
    server.asked.clear()
    found = calibrated(server, "longmemeval", files, tmp_path, capsys)
    assert (found.items, found.judge_mean) == (144, 1)
    assert found.people_mean == pytest.approx(0.7153, abs=1e-4)
    kinds = Counter(
        next(
            part
            for part in ("cannot be answered", "preferences", "off by one", "updated one", "right answer")
            if part in asked.texts[-1][1]
        )
        for asked in server.asked
    )
    assert kinds == {"cannot be answered": 12, "preferences": 12, "off by one": 36, "updated one": 36, "right answer": 48}
    with pytest.raises(InputError, match=r"question '8077ef71' lacks its text or its gold answer; name a file with the questions"):
        read_labels(files[:1], find_rubric("longmemeval"))


def judged(number: int, response: str, *verdicts: bool) -> dict[str, Any]:
    judgements = {f"judgment_{at}": verdict for at, verdict in enumerate(verdicts, 1)}
    asked = {"question_id": f"locomo_0_qa{number}", "question": "Who?", "golden_answer": "Ada", "category": "1"}
    return asked | {"generated_answer": response, "llm_judgments": judgements}


def test_several_judgements_are_several_labels_and_what_is_asked_twice_is_labelled_once(tmp_path: Path) -> None:
    rows = [judged(0, "Ada.", True, True, False), judged(1, "Ada.", True, True, True), judged(2, "Ben", False, False, False)]
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"detailed_results": {"0": rows}}), "utf-8")
    more = tmp_path / "people.csv"
    more.write_text("question,reference,response,label\nWho?,Ada,Nobody,0\n", "utf-8")
    for name in ("locomo", "locomo-strict"):
        items = read_labels([path, more], find_rubric(name))
        assert [(item.row["response"], round(item.label, 2)) for item in items] == [("Ada.", 0.67), ("Ben", 0), ("Nobody", 0)]
        assert measure_calibration([(item, item.label > 0.5) for item in items], find_rubric(name)).agreement == 1


def test_a_half_is_a_step_of_nuggets(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("question,nugget,response,label\nWho?,names Ada,Ada,1\nWho?,names Ada,Ad,0.5\nWho?,names Ada,Ben,0\n", "utf-8")
    items = read_labels([path], find_rubric("beam-nuggets"))
    found = measure_calibration(list(zip(items, [1.0, 1.0, 1.0], strict=True)), find_rubric("beam-nuggets"))
    assert (found.agreement, found.near) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_what_is_no_answer_file_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"conv_id": "conv-26", "qa_index": 3, "category": "x", "correct": True, "gold": "Ada"}]), "utf-8")
    with pytest.raises(InputError, match=r"rows.json: question '0/3' lacks its text or its gold answer; name locomo10.json too$"):
        read_labels([path], find_rubric("locomo"))
    path.write_text("[]", "utf-8")
    with pytest.raises(InputError, match="a row needs question, reference, response, label"):
        read_labels([path], find_rubric("locomo"))
