"""Experiments: answers without the needles, and with the last tokens alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, ClassVar

import pytest
import trio
from benchmarks.pairs import conversations_needed
from tests.durability import agents
from tests.halfway import halfway
from tests.sealing import change_lines, nameless

import longspan
from longspan.agents.base import BaseAgent, Reply
from longspan.simulator.base.errors import InputError, JournalError
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.cli import main
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.messages import Message
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.pages.report.comparison_tables import comparison_tables
from longspan.simulator.results.analysis.statistics import Difference, effect_interval
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.measures.experiments import describe_effect, pool_effects
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.runner import play_plans, replay_run, resume_run
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite, load_suite
from longspan.simulator.suite.trust import admit_manifest

HERE = "python:tests.simulator.test_experiments"


WORDS = ["amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heron", "inlet", "joist"]

count = Tokenizer("cl100k_base").count


class Seen:
    """What agents of this module were called with, over all instances."""

    calls: ClassVar[Counter[str]] = Counter()


@pytest.fixture(autouse=True)
def seen() -> type[Seen]:
    Seen.calls = Counter()
    return Seen


def code(depot: int) -> str:
    return WORDS[depot % len(WORDS)]


class Codes(Scenario):
    """The code of a depot, and a question about it."""

    name = "codes"
    skills = ("recall",)

    def make(self, random: Random) -> Script:
        depot = random.randrange(100_000)
        told = Line(f"The code of depot {depot} is {code(depot)}.")
        asked = Line(f"What is the code of depot {depot}?", ideal=code(depot), asks=True, at=round(random.uniform(0.1, 0.9), 2))
        return Script(facts={"code": code(depot)}, lines=[told, asked])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        return Grade(score=float(facts["code"] in record.answer.reply), reason=record.answer.reply)


class Twice(Codes):
    """The code of a depot and a question about it, and the same of another depot; each answer is worth a half."""

    name = "twice"

    def make(self, random: Random) -> Script:
        lines: list[Line] = []
        depots = random.sample(range(100_000), 2)
        for number, depot in enumerate(depots):
            told = Line(f"The code of depot {depot} is {code(depot)}.", at=0.5 * number)
            asked = Line(f"What is the code of depot {depot}?", ideal=code(depot), asks=True, needs=(number,), at=0.35 + 0.5 * number)
            lines += [told, asked]
        return Script(facts={"codes": [code(depot) for depot in depots]}, lines=lines)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        right = [code in answer.reply for code, answer in zip(facts["codes"], record.answers, strict=True)]
        return Grade(score=fmean(right), reason=str(right))


class Broken(Codes):
    """A code, and an error before anything is said of it."""

    name = "broken"

    async def play(self, stage: Stage) -> None:
        raise ValueError("the depot is closed")


class Planted(BaseAgent):
    """Knows the codes of so many in a hundred depots without being told, and of the others that it was told of in the last `window` tokens.
    It saves and loads."""

    def __init__(self, known: str = "0", window: str = "1000000") -> None:
        super().__init__()
        self.known, self.window = int(known), int(window)
        self.said: list[str] = []

    async def reply(self, message: Message) -> Reply:
        self.said.append(message.text)
        if (asked := re.search(r"the code of depot (\d+)", message.text)) is None:
            return Reply("OK.")
        depot = int(asked[1])
        if depot // len(WORDS) % 100 < self.known:
            return Reply(code(depot))
        told, tokens = f"The code of depot {depot} is ", 0
        for text in reversed(self.said[:-1]):
            tokens += count(text)
            if text.startswith(told):
                return Reply(text if tokens <= self.window else "I forgot.")
        return Reply("Nobody told me.")

    async def observe(self, message: Message, reply: str) -> None:
        self.said += [message.text, reply]

    async def reset(self) -> None:
        self.said = []

    async def save(self, folder: Path) -> None:
        (folder / "said.json").write_text(json.dumps(self.said))

    async def load(self, folder: Path) -> None:
        self.said = json.loads((folder / "said.json").read_text())


class Saved(agents.Keeper):
    """Its every reply depends on all messages before. It saves and loads."""

    def load(self, folder: Path) -> None:
        Seen.calls["load"] += 1
        super().load(folder)


class Shown(agents.Forgetful):
    """The same, without saving: it is shown the earlier turns."""

    def observe(self, message: Message, reply: str) -> None:
        Seen.calls["observe"] += 1
        super().observe(message, reply)


def codes(agent: str, tests: int = 6, scenario: str = "Codes", **more: Any) -> RunSettings:
    suite = Suite(name="codes", tests=tests, scenarios={f"{HERE}:{scenario}": {}})
    return RunSettings(suite=suite, span=2_000, seed=1, agent=agent if agent.islower() or ":" in agent else f"{HERE}:{agent}", **more)


def run_of(settings: RunSettings, out: Path) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, out)], pages=Report))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def settings(agent: str = "notebook", **more: Any) -> RunSettings:
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "name_list", "sally_anne"], more.pop("tests", 2))
    return RunSettings(suite=suite, span=2_000, seed=3, agent=agent, **more)


def played(out: Path, agent: str = "notebook", **more: Any) -> tuple[RunFolder, Result]:
    return run_of(settings(agent, **more), out)


def entries(run: RunFolder, conversation: str) -> list[dict[str, Any]]:
    lines = run.journal(conversation).read_text("utf-8").splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "measured"} for line in lines]


def test_a_twin_is_the_same_conversation_but_for_the_needles_of_its_test_and_no_part_of_the_score(tmp_path: Path) -> None:
    _, plain = played(tmp_path / "plain")
    run, result = played(tmp_path / "both", twins=3, lesion=500)
    assert plain.twins is plain.lesions is None
    assert result.model_copy(update={"run": plain.run, "twins": None, "lesions": None}) == plain
    assert result.twins is not None
    main = {entry["turn"]: entry for entry in entries(run, "main") if entry["type"] == "message"}
    for row in result.twins.tests:
        begin, *own = entries(run, row.conversation)
        said = [entry for entry in own if entry["type"] == "message"]
        assert begin["trunk"]["turn"] == row.turn == said[0]["turn"]
        assert own[-2]["type"] == "end"
        assert own[-2]["test"] == row.test
        lines = next(entry["lines"] for entry in entries(run, "main") if entry["type"] == "open" and entry["test"] == row.test)
        for entry in said:
            there = main[entry["turn"]]
            assert {name: entry.get(name) for name in ("kind", "test", "sent_at", "dealt")} == {
                name: there.get(name) for name in ("kind", "test", "sent_at", "dealt")
            }
            if there["needle"] and there["test"] == row.test and there["kind"] == "line":
                assert not entry["needle"]
                assert entry["tokens"] <= there["tokens"]
                words = partial(re.findall, r"\w{4,}")
                assert set(words(entry["text"].lower())).isdisjoint(words(there["text"].lower()))
            else:
                assert entry["text"] == there["text"]
        needles = [line["text"] for line in lines if line["needle"] and not line["asks"]]
        assert needles
        assert all(needle not in entry["text"] for needle in needles for entry in own if "text" in entry)


@pytest.mark.parametrize(("agent", "score"), [("oracle", 1), ("silent", 0)])
def test_who_is_given_the_answers_or_has_none_has_no_memory(agent: str, score: float, tmp_path: Path) -> None:
    _, result = run_of(codes(agent, twins=2), tmp_path)
    twins = result.twins
    assert twins is not None
    assert {(row.score, row.score_without) for row in twins.tests} == {(score, score)}
    assert (twins.difference, twins.share) == (0, None)
    assert "of it," not in describe_effect(twins, "twin"), "nothing is shown"


def test_a_twin_begins_from_the_agents_state_at_its_needle(tmp_path: Path, seen: type[Seen]) -> None:
    run, result = run_of(codes("Saved", tests=3, twins=3, lesion=600), tmp_path / "saved")
    assert seen.calls["load"] == 3, "each is loaded from the state that was pinned"
    assert len(list(run.snapshots("main").iterdir())) == 2, "they are no longer pinned"
    other, _ = run_of(codes("Shown", tests=3, twins=3, lesion=600), tmp_path / "shown")
    assert result.twins is not None
    assert seen.calls["observe"] >= sum(row.turn or 0 for row in result.twins.tests)
    for id in run.manifest.experiments:
        assert essential(run, id) == essential(other, id), "an agent that is shown the turns before goes on as one that is loaded"


def test_a_lesion_leaves_the_last_tokens_alone(tmp_path: Path) -> None:
    run, result = run_of(codes("Planted", tests=8, lesion=1_000), tmp_path)
    assert result.lesions is not None
    assert result.lesions.tokens == 1_000
    messages = {entry["turn"]: entry for entry in entries(run, "main") if entry["type"] == "message"}
    for row, test in zip(result.lesions.tests, sorted(result.tests, key=lambda test: test.id), strict=True):
        (evidence,) = test.evidence
        asked, needle = messages[evidence.question_turn], messages[evidence.needle_turn]
        assert (row.turn, row.score) == (evidence.question_turn, 1)
        assert row.score_without == float(needle["start"] >= asked["start"] - 1_000)
        begin, *own = entries(run, row.conversation)
        assert begin["experiment"] == {"kind": "lesion", "conversation": "main", "test": row.test, "tokens": 1_000}
        assert [entry["type"] for entry in own] == ["message", "reply", "end", "close"]
    assert 0 < result.lesions.score_without < 1  # type: ignore[operator]


def test_every_question_of_a_test_is_asked_again(tmp_path: Path, seen: type[Seen]) -> None:
    """What lies between them is not: it has the replies that it had, so that a lesion costs no more than its questions."""
    run, result = run_of(codes("Planted", tests=4, scenario="Twice", lesion=500), tmp_path / "short")
    lesions = result.lesions
    assert lesions is not None
    assert {row.score for row in lesions.tests} == {1.0}
    messages = {entry["turn"]: entry for entry in entries(run, "main") if entry["type"] == "message"}
    replies = {entry["turn"]: entry for entry in entries(run, "main") if entry["type"] == "reply"}
    for row, test in zip(lesions.tests, sorted(result.tests, key=lambda test: test.id), strict=True):
        near = [messages[pair.question_turn]["start"] - messages[pair.needle_turn]["start"] <= 500 for pair in test.evidence]
        assert row.turn == test.evidence[0].question_turn
        assert row.score_without == fmean(near)
        own = entries(run, row.conversation)
        questions = {pair.question_turn for pair in test.evidence}
        assert {entry["turn"] for entry in own if entry["type"] == "reply" and entry["asked"]} == questions
        for entry in own:
            if entry["type"] == "reply" and entry["turn"] not in questions:
                assert entry["text"] == replies[entry["turn"]]["text"]
        assert [entry["test"] for entry in own if entry["type"] == "end"][-1] == row.test
        assert own[-1]["type"] == "close"
    assert lesions.score_without == 0  # of each answer, what it needs is further back
    assert trio.run(lambda: replay_run(run)) == result


@pytest.mark.parametrize("tokens", [300, 900])
def test_a_lesion_costs_nothing_if_and_only_if_the_agent_knows_no_more(tokens: int, tmp_path: Path) -> None:
    """All needles are within its window and the lesion, or in neither."""
    asked = codes(f"Planted?window={tokens}", tests=4, scenario="Twice", lesion=tokens + 50, nights=2)
    run, result = run_of(asked, tmp_path)
    assert result.lesions is not None
    assert [row.difference for row in result.lesions.tests] == [0] * 4
    assert trio.run(lambda: replay_run(run)) == result


def test_a_memory_that_is_shorter_than_a_lesion_loses_nothing_by_it(tmp_path: Path) -> None:
    _, result = run_of(codes("Planted?window=700", tests=8, lesion=1_200), tmp_path)
    lesions = result.lesions
    assert lesions is not None
    assert 0 < (lesions.score or 0) < 1, "its window is all that it has"
    assert lesions.difference == 0
    assert lesions.share is None


def test_the_planted_share_of_memory_is_within_the_interval(tmp_path: Path) -> None:
    run, result = run_of(codes("Planted?known=30", tests=40, twins=40).model_copy(update={"isolated": True}), tmp_path)
    twins = result.twins
    assert twins is not None
    assert twins.interval is not None
    assert twins.score == 1
    low, high = twins.interval
    assert low <= 0.7 <= high
    assert 0 < (twins.score_without or 0) < 1
    assert len(run.manifest.experiments) == 40


@pytest.mark.parametrize(("agent", "killed_at"), [("Keeper", (9, 29, 44)), ("Forgetful", (37,))])
def test_a_run_killed_anywhere_is_resumed_to_the_same_journals(agent: str, killed_at: Sequence[int], tmp_path: Path) -> None:
    """A run is played, and its folder copied at some of the events, half of each written: what a kill leaves."""
    asked = codes(f"python:tests.durability.agents:{agent}", tests=3, scenario="Twice", twins=2, lesion=500)
    copies: dict[int, Path] = {}

    def copy(journal: Journal, written: int, last: Event | None) -> None:
        if written in places:
            (run,) = (tmp_path / "whole").iterdir()
            copies[written] = tmp_path / str(written)
            shutil.copytree(run, copies[written])

    places = range(3, 500) if os.environ.get("LONGSPAN_KILLS") == "all" else killed_at
    with halfway(copy):
        run, result = run_of(asked, tmp_path / "whole")
    expected = {id: essential(run, id) for id in run.manifest.played}
    assert set(killed_at) <= copies.keys()
    assert trio.run(lambda: replay_run(run)) == result
    for place, folder in copies.items():
        again = RunFolder(folder)
        admit_manifest(again.path, again.manifest, trust=True)
        outcome = trio.run(lambda again=again: resume_run(again, asked.agent))
        assert outcome.error is None
        assert {id: essential(again, id) for id in again.manifest.played} == expected, f"killed at event {place}"
        assert outcome.result == result


def essential(run: RunFolder, conversation: str) -> list[dict[str, Any]]:
    """A journal without marks of turns that may have been sent twice, and checksums, which cover these."""
    found = []
    for entry in nameless(run.journal(conversation)):
        kept = {name: value for name, value in entry.items() if name != "repeated"}
        found.append(kept | ({"trunk": kept["trunk"] | {"sum": None}} if kept.get("trunk") else {}))
    return found


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"twins": 7}, r"--experiment twins=7: only 6 tests can have one"),
        ({"lesion": 2_000}, r"--experiment lesion=2000: must be less than the span, which is 2,000 tokens"),
        (
            {"agent": "python:tests.durability.agents:Deaf", "twins": 1},
            r"has no observe, nor save and load, .* give it observe, or save and load, or leave out --experiment twins",
        ),
        ({"agent": "python:tests.durability.agents:Deaf", "lesion": 500}, r"has no observe, .* leave out --experiment lesion"),
    ],
)
def test_what_cannot_be_played_is_refused_at_the_door(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        plan_run(codes(**{"agent": "notebook"} | more), tmp_path)


def test_a_test_that_fails_before_its_needle_has_no_effect(tmp_path: Path) -> None:
    suite = Suite(name="broken", tests=1, each={f"{HERE}:Codes": 2}, scenarios={f"{HERE}:Broken": {}, f"{HERE}:Codes": {}})
    run, result = run_of(RunSettings(suite=suite, span=2_000, twins=3, lesion=500, agent="notebook"), tmp_path)
    assert result.twins is not None
    assert {row.test: row.score_without is None for row in result.twins.tests} == {"broken-1": True, "codes-1": False, "codes-2": False}
    assert result.twins.paired == 2
    assert trio.run(lambda: replay_run(run)) == result


def test_recorded_histories_have_no_twins(tmp_path: Path) -> None:
    suite = Suite(name="diary", tests=1, scenarios={"python:tests.diary:Diary": {"entries": 12}})
    with pytest.raises(InputError, match=r"--experiment twins: no test of the run is suitable: .* recorded history"):
        plan_run(RunSettings(suite=suite, span=2_000, twins=1), tmp_path)


def test_a_journal_that_another_has_taken_the_place_of_is_not_gone_on_from(tmp_path: Path) -> None:
    run, _ = run_of(codes("notebook", tests=2, twins=1), tmp_path / "one")
    other, _ = run_of(codes("silent", tests=2, twins=1), tmp_path / "other")
    (twin,) = run.manifest.experiments
    main = run.journal("main").read_bytes()
    change_lines(run.journal("main"), lambda entries: entries[2].update(text="Hm."))
    with pytest.raises(JournalError, match="changed after another conversation branched from it"):
        grade_run(run)
    run.journal("main").write_bytes(main)
    for source, what in (
        (other.journal(twin), f"it is of another run, '{other.manifest.run_name}'; this run is '{run.manifest.run_name}'"),
        (run.journal("main"), f"it is of conversation 'main', not of '{twin}'"),
    ):
        shutil.copy(source, run.journal(twin))
        with pytest.raises(JournalError, match=f"{twin}/journal.jsonl: {re.escape(what)}"):
            grade_run(run)
    change_lines(run.journal(twin), lambda entries: entries[0].update(conversation=twin))
    with pytest.raises(JournalError, match="its experiment differs from the one in the manifest"):
        grade_run(run)


def test_what_experiments_take_is_estimated_apart(tmp_path: Path) -> None:
    asked = codes("oracle", tests=2, twins=2, lesion=500)
    _, result = run_of(asked, tmp_path)
    estimated = trio.run(estimate_run, plan_run(asked, tmp_path))
    assert result.twins is not None
    assert estimated.twins is not None
    assert (estimated.turns, estimated.tokens) == (result.turns, result.tokens)
    assert (estimated.twins.turns, estimated.twins.tokens) == (result.twins.turns, result.twins.conversation_tokens)
    assert estimated.lesions is not None
    assert estimated.lesions.turns == estimated.lesions.conversations == 2


def test_the_report_and_show_have_both_scores_of_a_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, result = run_of(codes("notebook", tests=2, twins=1, lesion=500), tmp_path)
    page = (run.path / "report.html").read_text("utf-8")
    assert result.twins is not None
    assert result.lesions is not None
    assert page.count(describe_effect(result.twins, "twin")) == page.count(describe_effect(result.lesions, "lesion")) == 1
    row = result.twins.tests[0]
    with pytest.raises(SystemExit) as ended:
        main(["show", str(run.path), row.test])
    assert ended.value.code == 0
    assert f"without its needles: {row.score_without:.0%}; " in capsys.readouterr().out


@pytest.mark.parametrize(("known", "share"), [(0, "100%"), (50, "")])
def test_runs_are_compared_by_what_their_twins_show_together(known: int, share: str, tmp_path: Path) -> None:
    """Where the interval includes 0 nothing is shown, and there is no share."""
    for seed in (1, 2):
        run_of(codes(f"Planted?known={known}", tests=3, twins=3).model_copy(update={"seed": seed}), tmp_path)
    comparison = load_comparison([tmp_path])
    (effect,) = pool_effects(comparison.side.runs)
    rows = longspan.load(tmp_path).experiments
    assert (effect.tests, effect.conversations) == (len(rows), 2) == (6, 2)
    assert effect.without == pytest.approx(fmean(rows["score_without"]))
    assert effect.interval.low <= effect.difference <= effect.interval.high
    assert effect.interval.by == "conversations"
    (table,) = [table for table in comparison_tables(comparison) if table.title == "The same tests without needles"]
    assert table.rows[0][-1] == share


@pytest.mark.parametrize("conversations", [1, 3, 8])
def test_the_interval_covers_the_planted_effect(conversations: int) -> None:
    random, score, guess = Random(conversations), 0.8, 0.3
    covered = 0
    for _ in range(200):
        found = []
        for number in range(conversations):
            share = min(1.0, random.betavariate(16, 4))
            for _ in range(6):
                with_, without = random.random() < share, random.random() < guess
                found.append(Difference("codes", number, float(with_) - float(without)))
        low, high, _ = effect_interval(found)
        covered += low <= score - guess <= high
    assert covered / 200 > 0.92


def test_twins_show_an_effect_in_fewer_conversations_than_unpaired_runs() -> None:
    paired, unpaired = (conversations_needed(0.7, 0.5, paired=each, cases=200, most=100) for each in (True, False))
    assert 2 * paired < unpaired < 100
