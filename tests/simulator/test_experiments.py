"""Experiments: what is answered without the needles, and with the last tokens alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import trio

from longspan.agents.base import BaseAgent, Reply
from longspan.simulator.cli import main
from longspan.simulator.errors import InputError, JournalError
from longspan.simulator.gate import admit
from longspan.simulator.grading.grades import Result, grade_run
from longspan.simulator.journal import Journal
from longspan.simulator.messages import Message
from longspan.simulator.planning import plan
from longspan.simulator.record import Grade, Record
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import play, replay, resume
from longspan.simulator.scenario import Scenario
from longspan.simulator.script import Line, Script
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import Suite, load_suite
from longspan.simulator.tokens import Tokenizer
from longspan.simulator.tools.estimate import estimate

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


class Planted(BaseAgent):
    """Knows the codes of so many in a hundred depots without being told, and of the others that it was told of in the last `window` tokens.
    It saves and loads."""

    def __init__(self, known: str = "0", window: str = "1000000") -> None:
        super().__init__()
        self.known, self.window = int(known), int(window)
        self.said: list[str] = []

    async def reply(self, message: Message) -> Reply:
        Seen.calls["reply"] += 1
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
        Seen.calls["observe"] += 1
        self.said += [message.text, reply]

    async def reset(self) -> None:
        self.said = []

    async def save(self, folder: Path) -> None:
        (folder / "said.json").write_text(json.dumps(self.said))

    async def load(self, folder: Path) -> None:
        Seen.calls["load"] += 1
        self.said = json.loads((folder / "said.json").read_text())


class Unsaved(Planted):
    """The same, without saving."""

    has_snapshots = False


def codes(agent: str, tests: int = 6, **more: Any) -> RunSettings:
    suite = Suite(name="codes", tests=tests, scenarios={f"{HERE}:Codes": {}})
    return RunSettings(suite=suite, span=2_000, seed=1, agent=agent if agent.islower() or ":" in agent else f"{HERE}:{agent}", **more)


def run_of(settings: RunSettings, out: Path) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play([plan(settings, out)]))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


def settings(agent: str = "notebook", **more: Any) -> RunSettings:
    suite = load_suite("ltm").changed([], [], ["colours", "jokes", "name_list", "sally_anne"], more.pop("tests", 2))
    return RunSettings(suite=suite, span=2_000, seed=3, agent=agent, **more)


def played(out: Path, agent: str = "notebook", **more: Any) -> tuple[RunFolder, Result]:
    return run_of(settings(agent, **more), out)


def entries(run: RunFolder, conversation: str) -> list[dict[str, Any]]:
    lines = run.journal(conversation).read_text("utf-8").splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "measured"} for line in lines]


def test_a_twin_is_the_same_conversation_but_for_the_needles_of_its_test(tmp_path: Path) -> None:
    run, result = played(tmp_path, twins=3)
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


def test_experiments_are_no_part_of_the_score(tmp_path: Path) -> None:
    _, plain = played(tmp_path / "plain")
    _, result = played(tmp_path / "both", twins=3, lesion=500)
    assert plain.twins is plain.lesions is None
    assert result.model_copy(update={"twins": None, "lesions": None}) == plain


@pytest.mark.parametrize(
    ("agent", "score", "without"), [("oracle", 1, 1), ("silent", 0, 0), ("Planted", 1, 0), ("Planted?known=100", 1, 1), ("Unsaved", 1, 0)]
)
def test_what_is_known_without_being_told_is_no_memory(agent: str, score: float, without: float, tmp_path: Path) -> None:
    _, result = run_of(codes(agent, twins=6), tmp_path)
    twins = result.twins
    assert twins is not None
    assert {(row.score, row.score_without) for row in twins.tests} == {(score, without)}
    assert twins.share == (None if not score else score - without)
    assert (twins.score, twins.score_without, twins.paired) == (score, without, 6)


def test_a_twin_begins_from_the_agents_state_at_its_needle(tmp_path: Path, seen: type[Seen]) -> None:
    run, _ = run_of(codes("Planted", twins=4), tmp_path)
    shared = seen.calls["load"]
    assert shared == 4, "each is loaded from the state that was pinned"
    kept = [int(path.name) for path in run.snapshots("main").iterdir()]
    assert len(kept) == 2, "they are no longer pinned"
    seen.calls.clear()
    _, result = run_of(codes("Unsaved", twins=4), tmp_path / "unsaved")
    assert seen.calls["load"] == 0
    assert result.twins is not None
    shown = sum(row.turn or 0 for row in result.twins.tests)
    assert seen.calls["observe"] >= shown


def test_a_lesion_leaves_the_last_tokens_alone(tmp_path: Path, seen: type[Seen]) -> None:
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


def test_a_memory_that_is_shorter_than_a_lesion_loses_nothing_by_it(tmp_path: Path) -> None:
    _, result = run_of(codes("Planted?window=700", tests=8, lesion=1_200), tmp_path)
    lesions = result.lesions
    assert lesions is not None
    assert 0 < (lesions.score or 0) < 1, "its window is all that it has"
    assert lesions.difference == 0
    assert lesions.share == 0


@pytest.mark.parametrize("known", [0, 30])
def test_the_planted_share_of_memory_is_within_the_interval(known: int, tmp_path: Path) -> None:
    run, result = run_of(codes(f"Planted?known={known}", tests=40, twins=40).model_copy(update={"isolated": True}), tmp_path)
    twins = result.twins
    assert twins is not None
    assert twins.interval is not None
    assert twins.score == 1
    low, high = twins.interval
    assert low <= 1 - known / 100 <= high
    assert len(run.manifest.experiments) == 40


@pytest.mark.parametrize("agent", ["Keeper", "Forgetful"])
def test_a_run_killed_anywhere_is_resumed_to_the_same_journals(agent: str, tmp_path: Path) -> None:
    """A run is played, and its folder copied at some of the events, half of each written: what a kill leaves."""
    asked = codes(f"python:tests.durability.agents:{agent}", tests=3, twins=2, lesion=500)
    append, written, copies = Journal._append, 0, dict[int, Path]()

    def append_and_copy(journal: Journal, line: bytes) -> None:
        nonlocal written
        if written in places:
            (run,) = (tmp_path / "whole").iterdir()
            copies[written] = tmp_path / str(written)
            shutil.copytree(run, copies[written])
            with (copies[written] / journal.path.relative_to(run)).open("ab") as file:
                file.write(line[: len(line) // 2])
        written += 1
        append(journal, line)

    places = set(range(3, 500)) if os.environ.get("LONGSPAN_KILLS") == "all" else {9, 29, 37, 44}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_append", append_and_copy)
        run, result = run_of(asked, tmp_path / "whole")
    expected = {id: essential(run, id) for id in run.manifest.played}
    assert max(copies) >= 44
    for place, folder in copies.items():
        again = RunFolder(folder)
        admit(again.path, again.manifest, trust=True)
        outcome = trio.run(lambda again=again: resume(again, asked.agent))
        assert outcome.error is None
        assert {id: essential(again, id) for id in again.manifest.played} == expected, f"killed at event {place}"
        assert outcome.result == result
        assert trio.run(lambda again=again: replay(again)) == result


def essential(run: RunFolder, conversation: str) -> list[dict[str, Any]]:
    """A journal without marks of turns that may have been sent twice, and checksums, which cover these."""
    found = []
    for entry in entries(run, conversation):
        kept = {name: value for name, value in entry.items() if name not in ("repeated", "sum")}
        found.append(kept | ({"trunk": kept["trunk"] | {"sum": None}} if kept.get("trunk") else {}))
    return found


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"twins": 7}, r"--twins 7: only 6 tests of the run can have one"),
        ({"lesion": 2_000}, r"--lesion 2,000: must be less than the span, which is 2,000 tokens"),
        (
            {"agent": "python:tests.durability.agents:Deaf", "twins": 1},
            r"has no observe, nor save and load, .* give it observe, or save and load, or leave out --twins",
        ),
        ({"agent": "python:tests.durability.agents:Deaf", "lesion": 500}, r"has no observe, .* leave out --lesion"),
    ],
)
def test_what_cannot_be_played_is_refused_at_the_door(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        plan(codes(**{"agent": "notebook"} | more), tmp_path)


def test_recorded_histories_have_no_twins(tmp_path: Path) -> None:
    suite = Suite(name="diary", tests=1, scenarios={"python:tests.diary:Diary": {"entries": 12}})
    with pytest.raises(InputError, match=r"--twins: no test of the run can take part: .* recorded history"):
        plan(RunSettings(suite=suite, span=2_000, twins=1), tmp_path)


def test_a_journal_that_another_has_taken_the_place_of_is_not_gone_on_from(tmp_path: Path) -> None:
    run, _ = run_of(codes("notebook", tests=2, twins=1), tmp_path / "one")
    other, _ = run_of(codes("silent", tests=2, twins=1), tmp_path / "other")
    shutil.copy(other.journal("main"), run.journal("main"))
    with pytest.raises(JournalError, match="not as it was when another conversation branched from it"):
        grade_run(run)
    (twin,) = run.manifest.experiments
    shutil.copy(run.journal("main"), run.journal(twin))
    with pytest.raises(JournalError, match="not the experiment that the manifest says"):
        grade_run(run)


def test_what_experiments_take_is_estimated_apart(tmp_path: Path) -> None:
    both = codes("notebook", tests=3, twins=2, lesion=500)
    estimated, plain = (trio.run(estimate, plan(each, tmp_path)) for each in (both, codes("notebook", tests=3)))
    _, result = run_of(both.model_copy(update={"agent": "oracle"}), tmp_path)
    assert result.twins is not None
    assert estimated.twins is not None
    assert (estimated.turns, estimated.tokens) == (plain.turns, plain.tokens) == (result.turns, result.tokens)
    assert (estimated.twins.turns, estimated.twins.tokens) == (result.twins.turns, result.twins.conversation_tokens)
    assert estimated.lesions is not None
    assert estimated.lesions.turns == estimated.lesions.conversations == 2


def test_the_report_and_show_have_both_scores_of_a_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, result = run_of(codes("notebook", tests=3, twins=2, lesion=500), tmp_path)
    page = (run.path / "report.html").read_text("utf-8")
    assert result.twins is not None
    assert result.lesions is not None
    assert page.count(result.twins.sentence) == page.count(result.lesions.sentence) == 1
    row = result.twins.tests[0]
    with pytest.raises(SystemExit) as ended:
        main(["show", str(run.path), row.test])
    assert ended.value.code == 0
    assert f"without its needles: {row.score_without:.2f}; " in capsys.readouterr().out
