"""A score says what it measures wherever it is shown, and made-up data are called made-up."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import trio
from matplotlib.figure import Figure
from tests.scenarios.histories.conftest import LOCOMO, Write

import longspan
from longspan.scenarios.histories.grading import grade_question
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import score_name
from longspan.simulator.pages.report.figures import DRAWN
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite

Call = Callable[..., tuple[int, str]]
F1 = "token F1 (no judge)"


def play_one(tmp_path: Path, suite: Suite, agent: str = "oracle") -> Path:
    [outcome] = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2000, agent=agent), tmp_path / "runs")]))
    return outcome.folder


def suite_of(name: str, **parameters: object) -> Suite:
    return Suite(name=name, tests=1, scenarios={name: parameters})


@pytest.fixture
def runs(tmp_path: Path, write: Write) -> Path:
    data = str(write({"locomo10.json": LOCOMO}))
    for agent in ("oracle", "silent"):
        play_one(tmp_path, suite_of("locomo", data=data), agent)
    return tmp_path / "runs"


def test_token_f1_is_called_so_wherever_it_is_shown(runs: Path, tmp_path: Path, call: Call) -> None:
    oracle, silent = sorted(runs.iterdir())
    result = json.loads((oracle / "result.json").read_text("utf-8"))
    assert (result["measure"], result["remarks"]) == ("token F1", ["no judge"])
    assert "token F1 100% (1.00 of 1) (no judge)" in call("score", oracle)[1]
    assert "0% token F1 (no judge)" in call("list", "runs", runs)[1]
    assert f", <bdi>{F1}</bdi> · " in (oracle / "report.html").read_text("utf-8").replace("</small>", "")
    assert F1 in call("compare", oracle, silent)[1].replace("\n", " ")
    assert F1 in call("compare", oracle, silent, "--format", "markdown")[1]
    assert f"<bdi>{F1}</bdi></h2>" in call("compare", oracle, silent, "--format", "html")[1]
    assert call("plot", oracle, "--figure", "card", "--out", tmp_path / "card.svg")[0] == 0
    assert "oracle: token F1 100% (1.00 of 1) (no judge) in locomo" in (tmp_path / "card.svg").read_text("utf-8")
    figure = Figure()
    DRAWN["bars"](load_comparison([oracle, silent]), figure)
    assert figure.axes[0].get_ylabel() == F1
    assert call("export", "--format", "csv", "--out", tmp_path / "csv", oracle)[0] == 0
    assert {row["measure"] for row in csv.DictReader((tmp_path / "csv" / "tests.csv").read_text("utf-8").splitlines())} == {F1}
    assert longspan.load(oracle).measured == F1
    assert F1.partition(" (")[0] in repr(longspan.load(oracle))


class Parrot:
    """Repeats what it is asked, and remembers nothing that it would have to go back to."""

    def reply(self, message: longspan.Message) -> str:
        return message.text

    def observe(self, message: longspan.Message, reply: str) -> None: ...

    def mark(self) -> None: ...

    def rewind(self) -> None: ...


def test_what_repeating_the_question_earns_is_chance_and_stands_beside_token_f1(tmp_path: Path, write: Write, call: Call) -> None:
    (told,) = LOCOMO
    questions = [{"question": "Which cat did Ada adopt?", "answer": "a black cat", "evidence": ["D1:1"], "category": 4}, *told["qa"]]  # type: ignore[misc]
    data = {"locomo": str(write({"locomo10.json": [told | {"qa": questions}]}))}
    chances = []
    for name, agent in (("parrot", Parrot), ("silent", "silent")):
        (folder,) = longspan.run("locomo", agent=agent, data=data, out=tmp_path / name, progress=False).folders
        result = json.loads((folder / "result.json").read_text("utf-8"))
        counted = [test for test in result["tests"] if test["counts"]]
        assert [test["chance"] for test in counted] == [test["items"][0]["numbers"]["floor"] for test in counted]
        assert "open questions" not in result["meaning"]["sentence"]
        said = call("score", folder)[1]
        assert "Token F1, and words of the question" in said
        chances.append(longspan.load(folder).chance)
        if name == "parrot":
            assert result["score"] == pytest.approx(chances[0], abs=1e-5)
            assert result["score"] > 0
            assert {test["items"][0]["numbers"]["shared words"] for test in counted} == {1}
            assert f"{result['score']:.3f} (100%)" in said
    assert chances[0] == chances[1]


def test_gates_say_that_they_judge_token_f1(tmp_path: Path, write: Write, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    data = str(write({"locomo10.json": LOCOMO}))
    monkeypatch.chdir(tmp_path)
    wanted = ["run", "locomo", "--data", f"locomo={data}", "--agent", "silent"]
    code, said = call(*wanted, "--out", "runs", "--junit", "junit.xml", "--fail-under", "0.9")
    assert (code, "longspan: silent scores 0.0% of full marks by token F1 (no judge), less than --fail-under 0.9" in said) == (1, True)
    suite = ElementTree.parse("junit.xml").getroot()[0]  # noqa: S314
    assert [(each.get("name"), each.get("value")) for each in suite.iter("property")] == [("measure", F1)]
    assert {(each.text or "").partition(":")[0] for each in suite.iter("failure")} == {"token F1 0.00 (no judge)"}

    said = call("compare", "runs", "--baseline", "runs")[1].replace("\n", " ")
    assert "Mean scores, token F1 (no judge), in the tests that both have" in said
    assert "0.0% of full marks by token F1 (no judge), 0.0% before" in said
    with pytest.raises(AssertionError, match=r"token F1 0\.00 \(no judge\): "):
        longspan.check("silent", suite="locomo", data={"locomo": data}, at_least=0.5)


def test_made_up_data_are_called_made_up(tmp_path: Path, call: Call) -> None:
    folder = play_one(tmp_path, suite_of("locomo", tokens=5000))
    assert folder.name == "locomo-made-up-oracle-seed0"
    assert json.loads((folder / "result.json").read_text("utf-8"))["remarks"] == ["made-up data"]
    assert "score 100% (1.00 of 1) (made-up data)" in call("score", folder)[1]


def test_what_was_changed_in_the_data_is_shown(
    tmp_path: Path, small: Callable[[str], tuple[str, dict[str, Any]]], write: Write, call: Call
) -> None:
    name, files = small("beam")
    files["chat.json"][0]["turns"][0].append({"role": "assistant", "id": 9, "content": "Oliver ->-> 3,8"})
    folder = play_one(tmp_path, suite_of(name, data=str(write(files))))
    (line,) = [line for line in json.loads((folder / "result.json").read_text("utf-8"))["data_changes"] if "assistant" in line]
    assert line.endswith("markers such as ->-> 1,3 that were cut from what the assistant says: 1")
    assert line in call("score", folder)[1]
    assert line.partition(": ")[2].replace(">", "&gt;") in (folder / "report.html").read_text("utf-8")


def test_a_run_of_several_measures_says_whose_they_are() -> None:
    colours, locomo = make_scenario("colours", {}), make_scenario("locomo", {})
    assert score_name([colours]) == ("score", [])
    assert score_name([colours, locomo]) == ("score", ["locomo: made-up data"])
    published = make_scenario("locomo", {"data": "locomo10.json"})
    assert score_name([published]) == ("token F1", ["no judge"])
    assert score_name([colours, published]) == ("score", ["locomo: token F1, no judge"])


@pytest.mark.parametrize("reply", ["She never said that.", "I can\u2019t find that.", "That wasn't mentioned.", "No information available"])
def test_an_adversarial_question_accepts_any_plain_way_of_saying_that_it_was_not_told(reply: str) -> None:
    facts = {"benchmark": "locomo", "grading": "f1", "id": "1", "question": "What did Ben adopt?", "answer": None, "kind": "adversarial"}
    facts |= {"answerable": False, "options": [], "rubric": [], "trap": "a cat"}
    record = Record(exchanges=(Exchange(1, "What did Ben adopt?", reply, asks=True),))
    assert grade_question(facts, record).score == 1
    assert grade_question(facts, record, paper=True).score == float(reply == "No information available"), (
        "the authors' program knows two wordings"
    )
    trapped = Record(exchanges=(Exchange(1, "What did Ben adopt?", f"{reply} But I think it was a cat.", asks=True),))
    assert grade_question(facts, trapped).score == 0
