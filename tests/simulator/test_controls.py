"""What a score shows, and the control that is played beside it: the same tests without distance."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.sealing import nameless

import longspan
from longspan.agents.base import BaseAgent, Reply
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import main, run_command
from longspan.simulator.contract.messages import Message
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.report.comparison_tables import comparison_tables
from longspan.simulator.results.analysis.changes import command_of
from longspan.simulator.results.analysis.distance_cost import PairedTest, measure_distance_cost
from longspan.simulator.results.analysis.guessing import compare_scenarios, compare_with_guessing
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.measures.meaning import RunScores, meaning_of
from longspan.simulator.results.result import Meaning, Result, read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.runner import play_plans, replay_run
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

FORGETFUL = "python:tests.simulator.test_controls:Forgetful"
DEAF = "python:tests.simulator.test_controls:Deaf"
SCENARIOS = ["colours", "jokes", "sally_anne"]


class Forgetful(BaseAgent):
    """A notebook that is handed the last `window` messages with their replies, and nothing else."""

    def __init__(self, window: str = "12") -> None:
        super().__init__()
        self.known: deque[tuple[Message, str]] = deque(maxlen=int(window))

    async def reply(self, message: Message) -> Reply:
        notebook = Notebook()
        for earlier, said in self.known:
            await notebook.observe(earlier, said)
        reply = await notebook.reply(message)
        self.known.append((message, reply.text))
        return Reply(reply.text)

    async def observe(self, message: Message, reply: str) -> None:
        self.known.append((message, reply))

    async def reset(self) -> None:
        self.known.clear()


class Deaf(BaseAgent):
    """Cannot do any task: it says the same to everything."""

    async def reply(self, message: Message) -> Reply:
        return Reply("I see.")

    async def observe(self, message: Message, reply: str) -> None: ...

    async def reset(self) -> None: ...


def settings(agent: str = "notebook", scenarios: Sequence[str] = SCENARIOS, tests: int = 4, **more: Any) -> RunSettings:
    suite = load_suite("ltm").apply_changes([], [], scenarios, tests)
    return RunSettings(suite=suite, agent=agent, **{"span": 2_000, "seed": 3} | more)


def played(out: Path, agent: str = "notebook", **more: Any) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings(agent, **more), out)], pages=Report))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def meaning(result: Result) -> Meaning:
    assert result.meaning is not None
    return result.meaning


def essential(run: RunFolder, conversation: str) -> list[dict[str, Any]]:
    """A conversation's events without its name, from which those of its turns are made, and what names the run."""
    found = []
    for entry in nameless(run.journal(conversation)):
        found.append({name: value for name, value in entry.items() if name not in ("conversation", "turn_id", "trace", "repeated")})
    return found


# ---- the control


def test_a_control_is_what_isolated_plays_and_changes_nothing_else(tmp_path: Path) -> None:
    _, plain = played(tmp_path / "plain")
    alone, isolated = played(tmp_path / "alone", isolated=True)
    run, result = played(tmp_path / "both", control=True)
    changed = {"run": plain.run, "control": None, "meaning": plain.meaning}
    assert result.model_copy(update=changed) == plain
    assert result.control is not None
    assert {row.test: row.score_without for row in result.control.tests} == {test.id: test.score for test in isolated.tests}
    assert {row.test: row.score for row in result.control.tests} == {test.id: test.score for test in plain.tests}
    for row in result.control.tests:
        assert essential(run, row.conversation) == essential(alone, row.test)
    assert (result.control.turns, result.control.conversation_tokens) == (isolated.turns, isolated.tokens)
    assert trio.run(lambda: replay_run(run)) == result


def test_distance_is_compared_test_by_test_within_each_scenario(tmp_path: Path) -> None:
    _, result = played(tmp_path, FORGETFUL, control=True, tests=8, scenarios=["colours", "jokes"], span=8_000, filler_size=150)
    control = result.control
    assert control is not None
    assert list(control.scenarios) == ["colours", "jokes"]
    for name, each in control.scenarios.items():
        rows = [row for row in control.tests if row.scenario == name]
        assert each.paired == len(rows) == 8
        assert each.score == pytest.approx(sum(row.score or 0 for row in rows) / 8)
        assert each.score_without == pytest.approx(sum(row.score_without or 0 for row in rows) / 8)
        differences = [row.difference or 0 for row in rows]
        as_far = [
            abs(sum(map(prod, zip(signs, differences, strict=True)))) >= abs(sum(differences)) - 1e-9
            for signs in product((-1, 1), repeat=8)
        ]
        assert each.p == pytest.approx(sum(as_far) / len(as_far), abs=1e-6)
        assert each.interval is not None
        assert each.interval[0] <= (each.difference or 0) <= each.interval[1]
    assert control.p is not None
    assert control.p < 0.05
    assert (control.difference or 0) < 0
    assert control.share is None


def test_what_a_control_takes_is_estimated_apart(tmp_path: Path) -> None:
    _, result = played(tmp_path, "oracle", control=True, tests=2)
    estimated = trio.run(estimate_run, plan_run(settings("oracle", control=True, tests=2), tmp_path))
    assert result.control is not None
    assert estimated.control is not None
    assert (estimated.turns, estimated.tokens) == (result.turns, result.tokens)
    assert estimated.control.conversations == len(result.tests)
    assert (estimated.control.turns, estimated.control.tokens) == (result.control.turns, result.control.conversation_tokens)


def test_where_no_test_has_a_distance_that_can_be_left_out_a_control_is_refused(tmp_path: Path) -> None:
    diary = load_suite("ltm").model_copy(update={"name": "diary", "scenarios": {"python:tests.diary:Diary": {"entries": 12}}})
    reach = load_suite("reach")
    for asked in (settings(isolated=True, control=True), *(RunSettings(suite=suite, span=2_000, control=True) for suite in (diary, reach))):
        with pytest.raises(
            InputError, match=r"--experiment control: every test of the run already has a conversation to itself, or asks without"
        ):
            plan_run(asked, tmp_path)


@pytest.mark.parametrize("kill_at", [7, 60, 140])
def test_a_run_killed_in_a_control_or_beside_it_is_resumed_to_the_same_figures(kill_at: int, tmp_path: Path) -> None:
    """A real process is killed halfway through writing an event, and the run is resumed by the command."""
    out = tmp_path / "killed"
    code = f"""
from longspan.simulator.cli import main
from tests.halfway import killed_at
asked = "--scenario colours --scenario jokes --tests 2 --agent python:tests.durability.agents:Keeper --experiment control".split()
with killed_at({kill_at}):
    main(["run", *asked, "--out", {str(out)!r}])
"""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    killed = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (folder,) = out.iterdir()
    with pytest.raises(SystemExit) as ended:
        main(["resume", str(folder), "--yes", "--trust"])
    assert ended.value.code == 0
    more = {"scenarios": ["colours", "jokes"], "tests": 2, "seed": 0}
    run, whole = played(tmp_path / "whole", "python:tests.durability.agents:Keeper", control=True, **more)
    again = RunFolder(folder)
    assert read_result(again).model_copy(update={"run": whole.run}) == whole
    assert {id: essential(again, id) for id in again.manifest.played} == {id: essential(run, id) for id in run.manifest.played}


def test_runs_of_several_seeds_are_compared_by_their_controls_together(tmp_path: Path) -> None:
    for seed in (1, 2):
        played(tmp_path, FORGETFUL, control=True, seed=seed, scenarios=["colours"])
    (table,) = [each for each in comparison_tables(load_comparison([tmp_path])) if each.title == "The same tests with and without distance"]
    (row,) = table.rows
    loaded = longspan.load(tmp_path)
    assert row[2:4] == ["8", "2"]
    rows = loaded.experiments
    assert set(rows["experiment"]) == {"control"}
    assert float(row[6].rstrip("%")) / 100 == pytest.approx(-sum(rows["difference"]) / 8, abs=0.0051)


def test_where_no_test_has_a_score_there_is_no_empty_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "run --scenario colours --experiment control --agent memory/bm25?answerer=none --out".split()
    out, _ = printed(capsys, [*words, str(tmp_path)])
    assert "with and without distance" not in out
    assert "control 3 tests, none with a score both in the run and without distance" in out


# ---- what a score shows


def test_planted_agents_are_told_apart(tmp_path: Path) -> None:
    found = {
        name: meaning(played(tmp_path / name, agent, **more)[1]).verdict
        for name, agent, more in (
            ("remembers", "notebook", {}),
            ("remembers, with a control", "notebook", {"control": True}),
            ("forgets", FORGETFUL, {"span": 8_000, "filler_size": 150}),
            ("forgets, with a control", FORGETFUL, {"span": 8_000, "filler_size": 150, "control": True, "tests": 8}),
            ("forgets, with a small control", FORGETFUL, {"span": 8_000, "filler_size": 150, "control": True}),
            ("forgets, isolated", FORGETFUL, {"isolated": True, "scenarios": ["colours", "jokes"]}),
            ("cannot", DEAF, {}),
            ("cannot, with a control", DEAF, {"control": True}),
            ("cannot, isolated", DEAF, {"isolated": True}),
            ("says nothing", "silent", {}),
            ("is told", "oracle", {}),
            ("is told, isolated", "oracle", {"isolated": True}),
            ("one test", "notebook", {"tests": 1, "scenarios": ["colours"]}),
            ("one test, isolated", DEAF, {"tests": 1, "scenarios": ["colours"], "isolated": True}),
            ("only searches", "memory/bm25?answerer=none", {}),
        )
    }
    assert found == {
        "remembers": "better",
        "remembers, with a control": "no loss shown",
        "forgets": "not shown",
        "forgets, with a control": "distance costs",
        "forgets, with a small control": "no loss shown",
        "forgets, isolated": "can do",
        "cannot": "not shown",
        "cannot, with a control": "cannot do",
        "cannot, isolated": "cannot do",
        "says nothing": "not shown",
        "is told": "ideal",
        "is told, isolated": "ideal",
        "one test": "too few",
        "one test, isolated": "too few",
        "only searches": "no score",
    }


def test_the_next_command_plays_the_same_tests_without_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is copied from the first line, and run as it stands: it then says that the agent cannot do the tasks."""
    first = ["--scenario", "colours", "--scenario", "jokes", "--tests", "6", "--span", "2k", "--seed", "7", "--agent", "silent"]
    out, _ = printed(capsys, ["run", *first, "--out", str(tmp_path / "one")])
    line = next(line for line in out.splitlines() if line.startswith("Not shown"))
    assert line.startswith(
        "Not shown to be better than guessing (p = 1.000 over 12 tests): 0% of full marks (0.00 of 2) where guessing scores 6%."
    )
    _, _, command = line.partition("See whether the agent can do the tasks at all: ")
    assert command.endswith("--isolated")
    program, *words = shlex.split(command)
    assert program == "longspan"
    out, _ = printed(capsys, [*words, "--out", str(tmp_path / "two")])
    line = next(line for line in out.splitlines() if line.startswith("Not shown"))
    assert line.startswith(
        "Not shown to be better than guessing, even without distance (p = 1.000 over 12 tests): 0% of full marks (0.00 of 2) where "
        "guessing scores 6%. So its score at a distance says nothing about memory."
    )
    _, _, last = line.partition("See how far back it remembers facts that any agent can repeat: ")
    assert last == "longspan run reach --agent silent --span 2k"
    printed(capsys, [*shlex.split(last)[1:], "--out", str(tmp_path / "three")])
    (one,), (two,) = ((RunFolder(path) for path in (tmp_path / name).iterdir()) for name in ("one", "two"))
    assert sorted(id for _, each in one.manifest.graded for id in [each.id]) == sorted(each.id for _, each in two.manifest.graded)
    assert one.manifest.suite == two.manifest.suite


def printed(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    return out, err


def test_a_memory_without_an_answerer_is_wanted_by_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = "memory/bm25?answerer=none&k=3"
    asked = ["run", "reach", "--span", "2k", "--agent", memory, "--out"]
    assert run_command([*asked, str(tmp_path / "much"), "--fail-under", "1"]) == 1
    recall = longspan.load(tmp_path / "much").recall
    assert recall is not None
    assert 0 < recall < 1
    assert f"longspan: {memory} at 2,000 tokens finds {recall:.1%} of the evidence, less than --fail-under 1\n" in capsys.readouterr().err
    assert run_command([*asked, str(tmp_path / "enough"), "--fail-under", f"{recall:.6f}"]) == 0
    with pytest.raises(AssertionError, match=f"{recall:.1%} of the evidence found is less than 100.0%"):
        longspan.check(memory, suite="reach@2k", at_least=1, out=tmp_path / "checked")
    assert longspan.run(agent="silent", scenarios=["colours"], out=tmp_path / "silent", progress=False).recall is None


def test_a_memory_whose_answerer_guesses_is_to_be_looked_at_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, result = played(tmp_path / "one", "memory/bm25?answerer=words&k=1", scenarios=["locations", "trigger_response"], tests=8)
    found = meaning(result)
    assert found.verdict == "not shown"
    assert found.advice == "See what the memory finds, without its answerer"
    assert "'memory/bm25?k=1&answerer=none'" in found.command
    out, _ = printed(capsys, [*shlex.split(found.command)[1:], "--out", str(tmp_path / "two")])
    recall = longspan.load(tmp_path / "two").recall
    assert recall is not None
    assert re.search(rf"The memory finds {recall:.0%} \[\d+%, \d+%\] of the evidence among the first 1 memories", out)
    assert "No test has a score, so its answers are unknown." in out
    report = (run.path / "report.html").read_text("utf-8")
    assert found.sentence in report
    score, sentence, lanes = map(report.index, ('class="score"', found.sentence, 'id="timeline"'))
    assert score < sentence < lanes, "right below the score, and above all else"
    assert "not shown to be better than guessing" in report[score:sentence]


@pytest.mark.parametrize(
    ("spec", "bare"),
    [
        ("memory/bm25?answerer=words&k=3", "memory/bm25?k=3&answerer=none"),
        (
            "memory/python:mine:Own?answerer=openai/gpt-4o&answerer.temperature=0&context=8k&size=2",
            "memory/python:mine:Own?size=2&answerer=none",
        ),
        ("memory/bm25?answerer=none", None),
        ("notebook?window=8k", None),
    ],
)
def test_a_memory_is_named_without_its_answerer(spec: str, bare: str | None) -> None:
    found = AgentSpec.parse(spec).without_answerer
    assert (None if found is None else str(found)) == bare


@pytest.mark.parametrize(
    "words",
    [
        "ltm --span 4500 --seed 2 --agent silent --scenario colours --set colours.changes=4 --placement early --pace 5",
        "ltm --span 2k --agent silent --scenario locations --scenario colours --tests 2 --rules paper --label 'a b' --filler-size 500",
        "memory --span 3k --agent silent --scenario update --starts-at 2026-05-01T08:00:00 --tokenizer o200k_base --nights 2",
    ],
)
def test_a_command_plays_what_a_run_played(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, ["run", *shlex.split(words), "--out", str(tmp_path / "one")])
    (one,) = map(RunFolder, (tmp_path / "one").iterdir())
    printed(capsys, [*shlex.split(command_of(one.manifest))[1:], "--out", str(tmp_path / "two")])
    (two,) = map(RunFolder, (tmp_path / "two").iterdir())
    new = {"nonce", "commitment", "run_nonce", "created"}
    assert one.manifest.model_dump(exclude=new) == two.manifest.model_dump(exclude=new)


def test_a_suite_of_ones_own_has_advice_without_a_command(tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 6).model_copy(update={"name": "mine"})
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, agent="silent"), tmp_path)]))
    assert outcome.result is not None
    found = meaning(outcome.result)
    assert (found.verdict, found.command) == ("not shown", "")
    assert found.advice == "See whether the agent can do the tasks at all"


def test_several_runs_are_judged_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One test is too few, and four are not."""
    words = "run --scenario colours --tests 1 --seed 0-3 --agent notebook --agent silent --out".split()
    out, _ = printed(capsys, [*words, str(tmp_path)])
    assert (
        "notebook at 2k: Better than guessing (p = 0.001 over 4 tests): 75% of full marks (0.75 of 1) where guessing scores 7%. Play a "
        "control to see whether the loss is due to distance: "
    ) in out
    assert "silent at 2k: Not shown to be better than guessing (p = 1.000 over 4 tests): " in out
    together = longspan.load(*(path for path in tmp_path.iterdir() if "notebook" in path.name)).meaning
    assert together is not None
    assert together.verdict == "better"
    alone = {meaning(read_result(RunFolder(path))).verdict for path in tmp_path.iterdir()}
    assert alone == {"too few"}
    (note,) = [line for line in load_comparison([tmp_path]).warnings if "silent" in line]
    assert note.startswith("silent at 2k: Not shown to be better than guessing (p = 1.000 over 4 tests): 0% of full marks (0.00 of 1) ")


def test_without_a_control_the_line_claims_nothing_of_memory_and_names_the_command_that_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The notebook does two of ten scenarios beyond doubt at 2k, and its control shows no loss in them."""
    out, _ = printed(capsys, ["run", "ltm", "--span", "2k", "--out", str(tmp_path / "one")])
    line = next(line for line in out.splitlines() if line.startswith("Better"))
    said, _, command = line.partition(" Play a control to see whether the loss is due to distance: ")
    assert said == (
        "Better than guessing (p < 0.001 over 30 tests), shown in 2 of 10 scenarios: "
        "30% of full marks (3.02 of 10) where guessing scores 5%."
    )
    (one,) = (tmp_path / "one").iterdir()
    assert meaning(read_result(RunFolder(one))).scenarios == ["colours", "jokes"]
    assert "better than guessing in 2 of 10 scenarios" in (one / "report.html").read_text("utf-8")
    out, _ = printed(capsys, [*shlex.split(command)[1:], "--out", str(tmp_path / "two")])
    line = next(line for line in out.splitlines() if "No loss" in line)
    assert line == (
        "No loss to distance is shown over the 3 of 10 scenarios that the agent can do (p = 1.000 over 9 tests): 89% with distance, "
        "78% without, a loss of −11% [−39%, 21%] of full marks. In the other 7, it is not shown to be better than guessing, even without "
        "distance."
    )


def test_the_loss_is_that_of_the_scenarios_that_the_agent_can_do(tmp_path: Path) -> None:
    """A forgetful agent does colours and jokes without distance. It never does locations, which would water its loss down."""
    _, result = played(tmp_path, FORGETFUL, control=True, tests=8, scenarios=["colours", "jokes", "locations"], span=8_000, filler_size=150)
    found, control = meaning(result), result.control
    assert control is not None
    assert found.verdict == "distance costs"
    assert found.scenarios == ["colours", "jokes"]
    losses = [-(row.difference or 0) for row in control.tests if row.scenario != "locations"]
    loss = sum(losses) / len(losses)
    assert found.sentence.startswith(f"Distance costs {loss:.0%} [")
    assert " over the 2 of 3 scenarios that the agent can do (p = " in found.sentence
    assert loss > 1.4 * -(control.difference or 0)


def test_a_loss_that_too_few_tests_show_is_not_claimed_and_more_are_advised(tmp_path: Path) -> None:
    _, result = played(tmp_path, FORGETFUL, control=True, scenarios=["jokes"], span=8_000, filler_size=150)
    found = meaning(result)
    assert found.sentence.startswith(
        "No loss to distance is shown (p = 0.125 over 4 tests): 0% with distance, 100% without, a loss of 100% ["
    )
    assert found.advice == "Play more tests"
    assert " --tests 12 " in found.command
    assert " --experiment control " in found.command


def test_an_agent_that_does_one_scenario_that_nobody_guesses_is_better_than_guessing_there(tmp_path: Path) -> None:
    """Its three right answers are no more than luck earns in all scenarios together."""
    run, result = played(
        tmp_path, "silent", scenarios=["colours", "jokes", "locations", "restaurant", "sally_anne", "spy_meeting"], tests=3
    )
    tests = [test.model_copy(update={"score": float(test.scenario == "locations")}) for test in result.tests]
    assert compare_with_guessing([(test.score or 0.0, test.chance) for test in tests]).p > 0.05
    found = meaning_of([RunScores(run.manifest, tests)])
    assert (found.verdict, found.scenarios) == ("better", ["locations"])
    assert found.sentence.startswith("Better than guessing (p < 0.001 over 18 tests), shown in 1 of 6 scenarios: 17% of full marks")


def test_no_p_value_is_printed_where_nobody_knows_what_guessing_earns(tmp_path: Path) -> None:
    run, result = played(tmp_path, "silent", scenarios=["colours", "jokes"], tests=4)

    def judged(score: float, *open_: str) -> Meaning:
        tests = [
            test.model_copy(update={"score": score, "chance": 0.0 if test.scenario in open_ else test.chance}) for test in result.tests
        ]
        return meaning_of([RunScores(run.manifest, tests)])

    found = judged(1.0, "colours", "jokes")
    assert (found.verdict, found.scenarios) == ("unknown", [])
    assert found.sentence == ("100% of full marks (2.00 of 2) in open questions, where the score of guessing is unknown, over 8 tests.")
    assert judged(0.0, "colours", "jokes").sentence.startswith("Not shown to be better than guessing: 0% of full marks")
    assert judged(1.0, "colours").sentence == (
        "Better than guessing (p < 0.001 over 4 tests): 100% of full marks (2.00 of 2) where guessing scores 2%, without open questions."
    )


# ---- the exact tests


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.data())
def test_the_exact_tests_are_those_of_all_outcomes(chances: list[float], data: st.DataObject) -> None:
    scores = [float(data.draw(st.booleans())) for _ in chances]
    found = compare_with_guessing(list(zip(scores, chances, strict=True)))

    def share(probabilities: Sequence[float], wanted: Any) -> float:
        outcomes = product((0, 1), repeat=len(chances))
        return sum(
            prod(each if hit else 1 - each for hit, each in zip(hits, probabilities, strict=True)) for hits in outcomes if wanted(sum(hits))
        )

    assert found.p == pytest.approx(share(chances, lambda hits: hits >= sum(scores)), abs=1e-9)
    assert found.p_half == pytest.approx(share([(1 + each) / 2 for each in chances], lambda hits: hits <= sum(scores)), abs=1e-9)


@pytest.mark.parametrize("tests", [1, 3, 6, 12, 33, 100])
@pytest.mark.parametrize("chance", [0.0, 0.05, 0.25, 0.5])
def test_guesses_are_seldom_called_better_and_an_agent_that_does_half_is_seldom_called_no_better(tests: int, chance: float) -> None:
    """Guesses are above chance in at most 5% of runs; an agent that earns half of the rest is called guessing in at most 5%."""
    random, runs = Random(f"{tests}/{chance}"), 1_000
    verdicts: dict[float, list[str]] = {0.0: [], 0.5: []}
    for ability, found in verdicts.items():
        rate = chance + ability * (1 - chance)
        for _ in range(runs):
            found.append(compare_with_guessing([(float(random.random() < rate), chance) for _ in range(tests)]).verdict)
    assert verdicts[0.0].count("better") / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert verdicts[0.5].count("not better") / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    if tests < 4 and chance < 0.2:
        assert "not better" not in verdicts[0.0] + verdicts[0.5]
    if tests == 100:
        assert "too few" not in verdicts[0.0] + verdicts[0.5]


def test_parts_of_marks_do_not_add_up_to_luck() -> None:
    assert compare_with_guessing([(0.3, 0.02)] * 3 + [(0.0, 0.02)] * 9).p == 1.0


CHANCES = (0.0, 0.0001, 0.004, 0.02, 0.05, 0.1, 0.25, 0.5)


def guesses(random: Random, scenarios: int, done: int = 0, ability: float = 0.0) -> dict[str, list[tuple[float, float]]]:
    """The scores of an agent that guesses, but for the first scenarios, where it has an ability."""
    found = {}
    for number in range(scenarios):
        chance, tests = random.choice(CHANCES), random.choice((1, 2, 3, 6, 12))
        rate = chance + (ability if number < done else 0.0) * (1 - chance)
        found[f"{number}"] = [(float(random.random() < rate), chance) for _ in range(tests)]
    return found


def test_guesses_in_scenarios_of_different_chances_are_seldom_called_better() -> None:
    random, runs = Random(1), 2_000
    assert sum(compare_scenarios(guesses(random, random.randint(1, 12))).verdict == "better" for _ in range(runs)) / runs < 0.05
    wrong = right = 0
    for _ in range(runs):
        better = compare_scenarios(guesses(random, 10, done=4, ability=0.9)).better
        wrong += any(int(name) >= 4 for name in better)
        right += len([name for name in better if int(name) < 4])
    assert wrong / runs < 0.05, "nor are single scenarios that are guessed beside others that are done"
    assert right / runs > 2


def test_luck_without_distance_is_seldom_called_a_loss() -> None:
    """The agent does all tests as well with distance. Scenarios that are chosen by the scores without it alone seem to lose 9 points."""
    random, runs = Random(1), 300
    false, losses, chosen = 0, [], []
    for _ in range(runs):
        tests = [
            PairedTest(f"{scenario}", "main", 0.05, float(random.random() < 0.335), float(random.random() < 0.335))
            for scenario in range(10)
            for _ in range(6)
        ]
        found = measure_distance_cost(tests)
        assert found is not None
        false += found.p < 0.05
        losses.append(found.loss)
        done = [each for each in tests if sum(other.without for other in tests if other.scenario == each.scenario) >= 3]
        chosen.append(sum(each.without - each.score for each in done) / (len(done) or 1))
    assert false / runs < 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert abs(sum(losses) / runs) < 0.015
    assert sum(chosen) / runs > 0.09


@pytest.mark.parametrize(("conversations", "p"), [(4, 2 / 2**12), (6, 2 / 2**6), (8, 2 / 2**8)])
def test_whole_conversations_are_compared_where_enough_of_them_were_played(conversations: int, p: float) -> None:
    found = measure_distance_cost(
        [PairedTest("colours", f"{seed}", 0.07, 0.0, 1.0 if number else 0.5) for seed in range(conversations) for number in range(3)]
    )
    assert found is not None
    assert found.loss == pytest.approx(5 / 6)
    assert found.p == pytest.approx(p)
    assert found.is_shown
