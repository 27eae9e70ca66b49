"""The summary printed after runs were played."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from tests.made_runs import interrupt, made_run

from longspan.simulator.base.errors import StoppedError
from longspan.simulator.cli import main
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.comparison_tables import comparison_notes
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import read_result
from longspan.simulator.running.player import Outcome
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.scores import print_outcome, print_outcomes

SCENARIOS = ("colours", "jokes", "prospective_memory")


def played(out: Path, agent: str = "one", **fields: object) -> Outcome:
    """A run where each scenario's first test is right, its second half right and its third wrong."""
    folder = made_run(out, agent, lambda scenario, number: (3 - number) / 2, scenarios=SCENARIOS, **fields)  # type: ignore[arg-type]
    return Outcome(folder, read_result(RunFolder(folder)), None)


def console(width: int) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=width), file


@pytest.mark.parametrize(("width", "columns"), [(44, 3), (60, 4), (80, 6), (120, 6)])
def test_a_run_is_printed_with_its_interval_chance_cost_and_failed_tests(width: int, columns: int, tmp_path: Path) -> None:
    outcome = played(tmp_path, cost=0.25)
    on, file = console(width)
    print_outcome(outcome, on, failed=4)
    lines = file.getvalue().splitlines()
    paths = [line for line in lines if str(tmp_path) in line]
    assert all(len(line) <= width for line in lines if line not in paths and not line.startswith("cost"))
    (head,) = (line for line in lines if line.startswith("scenario"))
    assert len([column for column in head.split("  ") if column.strip()]) == columns
    (total,) = (line for line in lines if line.startswith("in total"))
    assert total.split()[2:] == (["50%", "[23%,", "77%]", "10%"] if columns > 3 else ["50%", "[23%,", "77%]"])
    assert "cost    $0.2500: agent read 1,000 tokens, wrote 100" in lines
    at = lines.index("failed  3 of 9 tests, 3 partial")
    shown = [line.split()[:2] for line in lines[at + 1 : at + 5]]
    wrong = [[f"{scenario}-3", "0%"] for scenario in SCENARIOS]
    assert shown == [*wrong, ["colours-2", "50%"]], "the worst first, and each way to fail once"
    assert lines[at + 5] == f"  2 more: longspan show {outcome.folder}"
    assert lines[-1] == f"report  {outcome.folder / 'report.html'}"


def test_an_interval_of_one_conversation_says_nothing_about_others(tmp_path: Path) -> None:
    one, isolated, log = played(tmp_path), played(tmp_path, isolated=True), played(tmp_path, recorded=lambda _: "a" * 64)
    seeds, histories = "add seeds to generalise", "add histories or questions to generalise"
    for print_them in (print_outcome, lambda each, on: print_outcomes([each, each], [], on)):
        for outcome, advice in ((one, seeds), (isolated, None), (log, histories)):
            on, file = console(120)
            print_them(outcome, on)
            said = [line for line in file.getvalue().splitlines() if line.startswith("95% interval")]
            assert said == ([f"95% interval for this one conversation; {advice}"] if advice else [])
    assert any(note.endswith(f"they cover only this one; {histories}") for note in comparison_notes(load_comparison([log.folder])))


def test_a_run_without_a_graded_test_has_no_score(tmp_path: Path) -> None:
    outcome = played(tmp_path)
    interrupt(outcome.folder)
    outcome = Outcome(outcome.folder, read_result(RunFolder(outcome.folder)), StoppedError("stopped"))
    on, file = console(80)
    print_outcome(outcome, on)
    said = file.getvalue()
    assert "no test is graded · 300 turns" in said
    assert "9 of 9 tests have no score: the run was interrupted before they ended" in said
    assert f"resume  longspan resume {outcome.folder}" in said
    assert "0.00–3.00" not in said
    on, file = console(120)
    print_outcomes([outcome, played(tmp_path)], [], on)
    assert file.getvalue().splitlines()[2].split()[:4] == ["no", "score", "10%", "0"], "no interval either"


def test_several_runs_get_a_line_each_and_how_to_compare_them(tmp_path: Path) -> None:
    outcomes = [played(tmp_path, "one", cost=0.5), played(tmp_path, "two"), played(tmp_path, "three", left_out=("jokes",))]
    outcomes.append(Outcome(outcomes[0].folder, outcomes[0].result, StoppedError("stopped")))
    on, file = console(60)
    print_outcomes(outcomes, [outcome.folder for outcome in outcomes[:2]], on)
    *said, head = file.getvalue().splitlines()[:4]
    lines = file.getvalue().splitlines()[4:]
    assert [line.partition(":")[0] for line in said] == ["one at 2k", "two at 2k", "three at 2k"]
    assert head.split() == ["score", "95%", "interval", "chance", "cost", "failed", "run"]
    assert lines[0].split() == ["50%", "·", "1.50", "of", "3", "[23%,", "77%]", "10%", "$0.5000", "3", "of", "9", str(outcomes[0].folder)]
    assert lines[2].split()[:5] == ["50%", "·", "1.00", "of", "2"]
    assert lines[3].endswith(f"{outcomes[0].folder} (interrupted)")
    assert " ".join(lines[4:6]) == "95% interval for this one conversation; add seeds to  generalise"
    assert lines[6:] == [
        f"resume  longspan resume {outcomes[0].folder}",
        f"compare longspan compare {outcomes[0].folder} {outcomes[1].folder}",
        f"show    longspan show {outcomes[0].folder}",
    ]


def test_a_test_is_shown_as_it_was_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")

    def longspan(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(arguments)
        return "".join(capsys.readouterr())

    longspan("run", "--scenario", "colours", "--tests", "2", "--agent", "notebook", "--seed", "1")
    run = "runs/ltm-2k-notebook-seed1"
    listed = longspan("show", run).splitlines()
    assert listed[0].startswith("Too few tests to compare it with guessing: ")
    assert [line.split()[0] for line in listed[1:4]] == ["ltm", "colours-1", "colours-2"]
    shown = longspan("show", run, "colours-1")
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert [
        word for word in ("needle", "question", "tokens back", "ideal", "reason", "proves the grade") if word not in " ".join(shown.split())
    ] == []
    said = [line for line in shown.splitlines() if line.startswith("turn ")]
    turns = [int(line.split()[1].strip(",")) for line in said]
    assert turns == sorted(turns)
    assert "did you mean colours-1?" in longspan("show", run, "colour-1")
    assert "runs is a folder of runs, not a run; name one of them, such as runs/ltm-2k-notebook-seed1" in longspan("show", "runs")
    told = json.loads(longspan("show", run, "colours-1", "--json"))
    assert told.keys() == {"folder", "test", "turns"}
    assert (told["folder"], told["test"]["id"], [turn["turn"] for turn in told["turns"]]) == (run, "colours-1", turns)
    assert told["turns"][0].keys() == {"turn", "test", "kinds", "sent_at", "text", "reply", "asked", "ideal", "found"}
    result = json.loads(Path(run, "result.json").read_text())
    assert json.loads(longspan("show", run, "--json")) == {"folder": run} | {key: value for key, value in result.items() if key != "sum"}


@pytest.mark.parametrize("folder", ["my runs", "it's"])
def test_printed_commands_are_quoted_for_a_shell(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [played(tmp_path / folder, "one"), played(tmp_path / folder, "two")]
    outcomes.append(Outcome(outcomes[0].folder, outcomes[0].result, StoppedError("stopped")))
    on, file = console(200)
    print_outcomes(outcomes, [outcome.folder for outcome in outcomes[:2]], on)
    print_outcome(outcomes[0], on)
    about_folders = [line for line in file.getvalue().splitlines() if "longspan " in line and str(tmp_path) in line]
    commands = [shlex.split(line[line.index("longspan ") :]) for line in about_folders]
    folders = [str(outcome.folder) for outcome in outcomes]
    assert commands == [
        ["longspan", "resume", folders[0]],
        ["longspan", "compare", *folders[:2]],
        ["longspan", "show", folders[0]],
        ["longspan", "show", folders[0]],
    ]


def test_a_runs_worst_tests_are_shown_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made_run(tmp_path, "one", lambda scenario, number: 0.0 if number == 77 else 0.5, scenarios=("colours",), tests=200)
    for arguments, count in (([], 36), (["--all"], 200)):
        with pytest.raises(SystemExit, match="0"):
            main(["show", str(run), *arguments])
        lines = capsys.readouterr().out.splitlines()
        tests = [line.split()[0] for line in lines if line.startswith("  colours-")]
        assert (len(tests), tests[-1]) == (count, "colours-77"), "the worst last"
        assert (f"164 more tests with better scores: longspan show {run} --all" in lines) is not bool(arguments)
        assert not any(line.startswith("resume ") for line in lines)
    interrupt(run, graded=80)
    with pytest.raises(SystemExit, match="0"):
        main(["show", str(run)])
    assert f"resume  longspan resume {run}" in capsys.readouterr().out.splitlines()


def test_what_a_memory_found_is_shown_with_the_place_of_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = "memory/bm25?answerer=words&batch=turn&k=10"

    def longspan(*arguments: str) -> str:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        return capsys.readouterr().out

    (result,) = json.loads(longspan("run", "--scenario", "locations", "--tests", "2", "--agent", agent, "--json"))
    ranks = [pair["rank"] for test in result["tests"] for pair in test["evidence"]]
    assert {type(rank) for rank in ranks} == {int, type(None)}, "found and not found"
    for test in result["tests"]:
        shown = " ".join(longspan("show", result["folder"], test["id"]).split())
        told = json.loads(longspan("show", result["folder"], test["id"], "--json"))
        for pair in test["evidence"]:
            place = "not among the" if pair["rank"] is None else f"number {pair['rank']} of"
            assert re.search(rf"found the needle of turn {pair['needle_turn']} is {place} \d+ found", shown)
            (question,) = (turn for turn in told["turns"] if turn["turn"] == pair["question_turn"])
            found = {each["rank"]: each for each in question["found"]}
            if pair["rank"] is not None:
                assert (found[pair["rank"]]["needed"], found[pair["rank"]]["turns"]) == (True, [pair["needle_turn"]])
                assert re.search(rf" \*{pair['rank']} {re.escape(found[pair['rank']]['text'][:30])}", shown), "however far down"
            instead = " ".join(found[1]["text"].split())
            assert f" 1 {instead[:30]}" in shown


def test_many_runs_end_in_a_table_of_agents_by_spans(tmp_path: Path) -> None:
    outcomes = [played(tmp_path, agent, span=span, seed=seed) for agent in ("one", "two") for span in (2_000, 8_000) for seed in (0, 1)]
    outcomes.append(played(tmp_path, "three"))
    on, file = console(100)
    print_outcomes(outcomes, [outcome.folder for outcome in outcomes], on)
    said = file.getvalue()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert rows == [["one", "50% (2)", "50% (2)"], ["three", "50%", ""], ["two", "50% (2)", "50% (2)"]]
    assert f"compare longspan compare {tmp_path}" in said
    assert all(outcome.folder.name not in line for outcome in outcomes[1:] for line in said.splitlines())
