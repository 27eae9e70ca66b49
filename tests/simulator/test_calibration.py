"""`longspan calibrate`: a judge against people, and what reports say of it."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Say, Server
from tests.schemas import check_output

from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.labels import read_rows
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.results.judging.calibrate import calibrate_judge
from longspan.simulator.results.judging.calibration import Calibration, calibration_notes, measure_calibration, read_labels
from longspan.simulator.results.judging.rubrics import STATEMENT, find_rubric
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.running.scoring import score_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("openai_key")

WORDS = {"short": 5, "middling": 50, "long": 500}


def verdict(prompt: str) -> str:
    """A judge that gives five points, one more for each exclamation mark, and two for a long answer."""
    return f"It is so. \\boxed{{{5 + prompt.count('!') + 2 * (len(prompt.split()) > 600)}}}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(reply=verdict).running() as server:
        yield server


def labels(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A CSV file of rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def row(at: int, label: float, words: int = 5, **more: Any) -> dict[str, Any]:
    return {"question": f"Question {at}?", "reference": "yes", "response": " ".join(["no"] * words) + f" {at}", "label": label} | more


def run(judge: str, path: Path, out: Path, name: str = "elitr-ten", **more: Any) -> tuple[Calibration, Path]:
    return trio.run(lambda: calibrate_judge(judge, [path], name, out=out, **more))


def test_a_judge_is_compared_with_people_and_its_bias_by_length_is_found(tmp_path: Path, server: Server) -> None:
    rows = [row(at, label=5 + at % 2, words=words) for words in WORDS.values() for at in range(8)]
    rows = [each | {"response": each["response"] + "!" * (at % 2)} for at, each in enumerate(rows)]
    found, path = run(server.model(), labels(tmp_path / "people.csv", rows), tmp_path)
    assert (found.items, found.failed) == (24, 0)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.bias == pytest.approx(2 / 3)
    assert [(each.items, each.bias) for each in found.by_length] == [(8, 0), (8, 0), (8, 2)]
    assert (found.length_correlation or 0) > 0.9
    assert found.people is None
    assert Calibration.model_validate_json(verify_checksum(path.read_bytes(), path, "")) == found
    assert path.parent.parent == tmp_path / "calibrations"


def test_what_it_has_answered_is_not_asked_again_and_what_failed_is(tmp_path: Path, server: Server) -> None:
    path = labels(tmp_path / "people.csv", [row(at, label=5) for at in range(4)])
    server.acts.extend([Say("no points at all"), Say("\\boxed{11}")])
    before = len(server.asked)
    found, _ = run(server.model(), path, tmp_path)
    assert (found.items, found.failed) == (4, 2)
    assert len(server.asked) - before == 4
    found, _ = run(server.model(), path, tmp_path)
    assert found.failed == 0
    assert len(server.asked) - before == 6


def test_a_limit_of_dollars_holds_and_what_was_answered_is_kept(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    path = labels(tmp_path / "people.csv", [row(1, label=5)])
    with pytest.raises(InputError, match=r"--max-cost: agent openai/gpt-4o.* is unknown"):
        run(server.model(), path, tmp_path, max_cost=1)
    monkeypatch.setattr(
        "longspan.simulator.subject.ledger.price_usage", lambda model, usage: 1e-6 * (usage.input_tokens + usage.output_tokens)
    )
    with pytest.raises(StoppedError, match="the same command continues from there"):
        run(server.model(), path, tmp_path, max_cost=1e-7)


def test_the_command_prints_tables_or_json(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    path = labels(tmp_path / "people.csv", [row(at, label=5) for at in range(3)])
    command = ["calibrate", "--judge", server.model(), "--labels", str(path), "--rubric", "elitr-ten", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as left:
        main(command)
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert re.search(r"agreement .*100\.0%", shown)
    with pytest.raises(SystemExit):
        main([*command, "--json"])
    assert check_output("calibrate", capsys.readouterr().out)["agreement"] == 1


def test_several_annotators_have_a_mean_and_a_reliability(tmp_path: Path) -> None:
    rows = [row(at, label=at + shift, annotator=who) for at in range(2, 8) for who, shift in (("ann", 0), ("ben", 1))]
    items = read_labels([labels(tmp_path / "people.csv", rows)], find_rubric("elitr-ten"))
    assert [item.label for item in items] == [at + 0.5 for at in range(2, 8)]
    found = measure_calibration([(item, item.label) for item in items], find_rubric("elitr-ten"))
    assert found.agreement == 1
    assert 0.9 < (found.people or 0) < 1


def test_yes_and_no_are_labels_of_statements(tmp_path: Path) -> None:
    lines = [{"statement": "It says yes", "text": f"yes {at}", "label": at % 2 == 0} for at in range(6)]
    path = tmp_path / "people.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    items = read_labels([path], STATEMENT)
    found = measure_calibration([(item, 1.0) for item in items], STATEMENT)
    assert (found.agreement, found.near, found.bias) == (0.5, None, 0.5)
    assert found.kappa == pytest.approx(0)
    assert found.pearson is None, "a judge that always says the same correlates with nothing"
    assert measure_calibration([(item, None) for item in items], STATEMENT).summary() == "on 6 labels of , without a single value"


BAD = {
    "columns.csv": ("question,reference,label\na,b,3\n", "line 2: response is missing; a row needs question, reference, response, label"),
    "scale.csv": ("question,reference,response,label\na,b,c,11\n", "line 2: label must be from 1 to 10, got '11'"),
    "number.csv": ("question,reference,response,label\na,b,c,good\n", "line 2: label must be a number, true or false; got 'good'"),
    "nan.csv": ("question,reference,response,label\na,b,c,nan\n", "line 2: label must be a number"),
    "short.csv": ("question,reference,response,label\na,b\n", "line 2: response is missing"),
    "twice.csv": ("question,reference,response,label,annotator\na,b,c,3,x\na,b,c,4,x\n", "line 3: this annotator has"),
    "empty.csv": ("", "has no rows"),
    "header.csv": ("question,reference,response,label\n", "has no rows"),
    "broken.jsonl": ('{"question": ', "line 1: not JSON"),
    "list.jsonl": ('{"question": "a", "reference": "b", "response": "c", "label": 3}\n[1]', "line 2: expected an object, got list"),
    "text.jsonl": ('{"question": "a", "reference": "b", "response": 3, "label": 3}', "line 1: response must be text; got 3"),
    "binary.csv": ("question,reference,response,label\na,b,\0\0c,3\r\r\n", None),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_labels_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    content, wrong = BAD[name]
    (tmp_path / name).write_text(content, "utf-8", newline="")
    if wrong is None:
        read_labels([tmp_path / name], find_rubric("elitr-ten"))
        return
    with pytest.raises(InputError, match=re.escape(wrong)) as found:
        read_labels([tmp_path / name], find_rubric("elitr-ten"))
    assert "\n" not in str(found.value)


def test_a_file_that_is_none_and_a_rubric_that_is_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("people.csv", "none.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_rows(tmp_path / name, ["label"])
    with pytest.raises(InputError, match=r"there is no rubric 'elitr-twelve'; did you mean elitr-ten or elitr-five"):
        find_rubric("elitr-twelve")


def test_a_long_value_in_a_csv_is_read(tmp_path: Path) -> None:
    path = labels(tmp_path / "people.csv", [row(1, label=3, words=100_000)])
    assert len(read_labels([path], find_rubric("elitr-ten"))[0].row["response"]) > 200_000


def test_a_judged_run_names_its_judges_calibration_or_says_that_there_is_none(tmp_path: Path, server: Server) -> None:
    suite = load_suite("elitr").apply_changes(["rubric=ten", "mode=multi", "tokens=3000"], [], [], 1)
    made = plan_run(RunSettings(suite=suite, span=32_000, seed=1, agent="silent", judge=server.model()), tmp_path)
    (outcome,) = trio.run(lambda: play_plans([made], pages=Report))
    assert outcome.error is None
    run_ = RunFolder(outcome.folder)
    assert [note.partition(": ")[0].partition(" is")[2] for note in calibration_notes(run_)] == [" not calibrated"]
    assert "is not calibrated" in (run_.path / "report.html").read_text("utf-8")
    run(server.model(), labels(tmp_path / "people.csv", [row(at, label=5) for at in range(3)]), tmp_path)
    (tmp_path / "calibrations" / "half").mkdir()
    (tmp_path / "calibrations" / "half" / "calibration.json").write_text("{", "utf-8")
    score_run(run_, Report)
    report = (run_.path / "report.html").read_text("utf-8")
    assert "was calibrated on 3 labels of people.csv: agreement 100%" in report
    assert "half/calibration.json: damaged: it has no checksum; measure it again" in report


def test_a_run_that_nobody_judged_says_nothing_of_calibration(tmp_path: Path) -> None:
    suite = load_suite("elitr").apply_changes(["mode=multi", "tokens=3000"], [], [], 1)
    planned = plan_run(RunSettings(suite=suite, span=32_000, seed=1, agent="silent"), tmp_path)
    (outcome,) = trio.run(lambda: play_plans([planned], pages=Report))
    assert calibration_notes(RunFolder(outcome.folder)) == []
    assert "calibration" not in (outcome.folder / "report.html").read_text("utf-8").casefold()
