"""Questions about a history that is told: told once, asked from the same state each time, and results like any others."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.diary import ASKED, BEGAN, Diary
from tests.halfway import halfway
from tests.sealing import change_lines, nameless

from longspan.agents.base import AgentError, BaseAgent, Reply
from longspan.simulator.base.errors import InputError, JournalError, ScenarioError
from longspan.simulator.base.files.checksums import add_checksum
from longspan.simulator.contract.messages import Message
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.journal.events import Event, Open, as_json, parse_json
from longspan.simulator.journal.journal import Journal, last_sum
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.play.dry_run import dry_run
from longspan.simulator.results.gradebook import run_status
from longspan.simulator.results.gradebook.commitment import publish_scores, verify_scores
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.gradebook.run_status import RunStatus
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import Result
from longspan.simulator.running.asking import past_of
from longspan.simulator.running.planning import plan_run, plan_some, setting_of
from longspan.simulator.running.player import Outcome, RunEvent
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.runner import describe_catch_up, play_plans, replay_run, resume_run
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.definitions import tests_of as planned_tests
from longspan.simulator.suite.settings import Branch, RunSettings
from longspan.simulator.suite.suite import Suite, make_tests
from longspan.simulator.suite.trust import admit_manifest


class Seen:
    """What agents of this module were called with, over all instances."""

    calls: ClassVar[Counter[str]] = Counter()
    asked: ClassVar[list[int]] = []
    fails_at: ClassVar[tuple[str, int] | None] = None

    @classmethod
    def clear(cls) -> None:
        cls.calls, cls.asked, cls.fails_at = Counter(), [], None


@pytest.fixture(autouse=True)
def seen() -> type[Seen]:
    Seen.clear()
    return Seen


class Recalling(BaseAgent):
    """Knows every turn, and replies with the newest that shares the question's last word and how often it was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[str] = []
        self.asked = 0
        Seen.calls["made"] += 1

    async def reply(self, message: Message) -> Reply:
        Seen.calls["reply"] += 1
        if ("reply", Seen.calls["reply"]) == Seen.fails_at:
            raise AgentError("the line is dead")
        Seen.asked.append(self.asked)
        self.asked += 1
        word = message.text.rstrip("?").split()[-1]
        self.turns.append(message.text)
        return Reply(next((turn for turn in self.turns if f"{word} is" in turn), "I do not know."))

    async def observe(self, message: Message, reply: str) -> None:
        Seen.calls["observe"] += 1
        if ("observe", Seen.calls["observe"]) == Seen.fails_at:
            raise AgentError("the line is dead")
        self.turns.append(message.text)

    async def reset(self) -> None:
        Seen.calls["reset"] += 1
        self.turns, self.asked = [], 0


class Loading(Recalling):
    """Saves and loads."""

    async def save(self, folder: Path) -> None:
        (folder / "state.json").write_text(json.dumps([self.turns, self.asked]))

    async def load(self, folder: Path) -> None:
        Seen.calls["load"] += 1
        self.turns, self.asked = json.loads((folder / "state.json").read_text())


class Rewinding(Recalling):
    """Goes back to a mark."""

    async def mark(self) -> None:
        Seen.calls["mark"] += 1
        self.marked = len(self.turns), self.asked

    async def rewind(self) -> None:
        Seen.calls["rewind"] += 1
        length, self.asked = self.marked
        del self.turns[length:]


def settings(agent: str, branch: Branch = "on", entries: int = 12, tests: int = 1) -> RunSettings:
    suite = Suite(name="diary", tests=tests, scenarios={"python:tests.diary:Diary": {"entries": entries}})
    named = agent if agent.islower() else f"python:tests.simulator.test_branches:{agent}"
    return RunSettings(suite=suite, span=2_000, seed=4, agent=named, branch=branch)


def played(out: Path, agent: str, branch: Branch = "on", entries: int = 12, tests: int = 1) -> tuple[RunFolder, Outcome]:
    planned = plan_run(settings(agent, branch, entries, tests), out)
    (outcome,) = trio.run(lambda: play_plans([planned]))
    return RunFolder(outcome.folder), outcome


def result_of(outcome: Outcome) -> Result:
    assert outcome.error is None
    assert outcome.result is not None
    return outcome.result


def journals(run: RunFolder) -> dict[str, list[dict[str, Any]]]:
    def essential(entry: dict[str, Any]) -> dict[str, Any]:
        """What a line says, without marks of turns that may have been sent twice, and the checksum, which covers these."""
        entry = {name: value for name, value in entry.items() if name != "repeated"}
        return entry | ({"trunk": entry["trunk"] | {"sum": None}} if entry["type"] == "begin" and "trunk" in entry else {})

    return {id: [essential(entry) for entry in nameless(run.journal(id))] for id in run.manifest.conversations}


@pytest.mark.parametrize(("agent", "loads", "rewinds"), [("Rewinding", 0, 200), ("Loading", 199, 0)])
def test_two_hundred_questions_cost_one_telling_and_none_learns_of_another(
    agent: str, loads: int, rewinds: int, tmp_path: Path, seen: type[Seen]
) -> None:
    result = result_of(played(tmp_path, agent, entries=600)[1])
    assert seen.calls["observe"] == 600
    assert seen.calls["reply"] == 200
    assert seen.calls["made"] == 2  # one to see what it can do, one for the trunk and all its branches
    assert (seen.calls["load"], seen.calls["rewind"], seen.calls["mark"]) == (loads, rewinds, min(1, rewinds))
    assert set(seen.asked) == {0}, "each was asked as if it were the only one"
    assert result.score == 1.0


def test_a_question_is_a_row_with_its_history_and_the_history_counts_once(tmp_path: Path) -> None:
    run, outcome = played(tmp_path, "notebook", tests=2)
    result = result_of(outcome)
    assert [test.id for test in result.tests] == [f"diary-d{n}-q{day}" for n in (1, 2) for day in (0, 3, 6, 9)]
    assert {test.trunk for test in result.tests} == {"diary-d1", "diary-d2"}
    assert [test.conversation for test in result.tests] == [test.id for test in result.tests]
    assert [test.tags for test in result.tests[:2]] == [["first"], ["later"]]
    assert {test.certified for test in result.tests} == {None}
    assert result.certified is None
    assert not result.leaks
    turns = 2 * (12 + 4)
    assert result.turns == turns
    lengths = [entries[-1]["tokens"] for entries in journals(run).values()]
    trunk, branches = lengths[0], lengths[1:5]
    other, others = lengths[5], lengths[6:]
    assert result.tokens == trunk + sum(length - trunk for length in branches) + other + sum(length - other for length in others)
    needle = result.tests[1].evidence[0]
    assert (needle.needle_turn, needle.question_turn) == (3, 12)
    assert (needle.stored, needle.retrieved) == (True, True)
    evidence = [test.evidence[0].tokens for test in result.tests[:4]]
    assert evidence == sorted(evidence, reverse=True)


def test_what_does_not_count_is_graded_and_no_part_of_the_score(tmp_path: Path) -> None:
    run, outcome = played(tmp_path, "silent")
    assert result_of(outcome).score == 0
    assert [test.score for test in result_of(outcome).tests] == [0, 0, 0, 0]
    path = run.journal("diary-d1-q3")
    right = json.loads(path.read_text().splitlines()[1])["facts"]["colour"]
    assert right
    counted = result_of(played(tmp_path / "other", "oracle")[1])
    assert [test.counts for test in counted.tests] == [True, False, True, True]
    assert counted.score == 1


def test_a_branch_goes_on_where_its_trunk_ends(tmp_path: Path) -> None:
    run, outcome = played(tmp_path, "notebook")
    result_of(outcome)
    trunk, branch = (journals(run)[id] for id in ("diary-d1", "diary-d1-q6"))
    last = json.loads(run.journal("diary-d1").read_text().splitlines()[-1])
    first = json.loads(run.journal("diary-d1-q6").read_text().splitlines()[0])
    assert first["trunk"] == {"conversation": "diary-d1", "turn": 12, "sum": last["sum"]}
    assert [entry["type"] for entry in trunk[-3:]] == ["end", "snapshot", "close"], "the agent is saved for its branches"
    assert [entry["type"] for entry in branch] == ["begin", "open", "jump", "message", "reply", "end", "close"]
    message = branch[3]
    assert (message["turn"], message["start"], message["needs"]) == (12, trunk[-1]["tokens"], [6])
    assert message["sent_at"] == ASKED.isoformat()
    assert trunk[0]["starts_at"] == BEGAN.isoformat()
    assert not run.snapshots("diary-d1-q6").exists()


@pytest.mark.parametrize(
    ("branch", "told", "asked", "leaks"), [("on", 12, {0}, False), ("off", 12, {0, 1, 2, 3}, True), ("retell", 48, {0}, False)]
)
def test_how_questions_are_asked_is_chosen_and_said(
    branch: Branch, told: int, asked: set[int], leaks: bool, tmp_path: Path, seen: type[Seen]
) -> None:
    run, outcome = played(tmp_path, "Rewinding", branch)
    result = result_of(outcome)
    assert (seen.calls["observe"], set(seen.asked), result.leaks) == (told, asked, leaks)
    assert result.score == 1
    assert len(result.tests) == 4
    assert trio.run(lambda: replay_run(run)) == result
    if branch == "off":
        order = [entry["test"] for entry in journals(run)["diary-d1"] if entry["type"] == "open"]
        assert order[0] == "diary-d1"
        assert order[1:] != sorted(order[1:])


def test_an_agent_that_can_do_neither_is_refused_before_anything_is_told(tmp_path: Path, seen: type[Seen]) -> None:
    with pytest.raises(
        InputError, match=r"the 4 questions about diary-d1 .*--branch off .*--branch retell repeats the 1\d\d tokens for each"
    ):
        plan_run(settings("Recalling"), tmp_path)
    assert not list(tmp_path.iterdir())
    for branch in ("off", "retell"):
        assert result_of(played(tmp_path, "Recalling", branch)[1]).score == 1  # type: ignore[arg-type]
    seen.clear()
    assert result_of(played(tmp_path, "Recalling", entries=3)[1]).score == 1, "a single question needs no way back"
    assert seen.calls["observe"] == 3


class Closing(Rewinding):
    """Counts how often it is closed."""

    async def close(self) -> None:
        Seen.calls["close"] += 1


def test_every_agent_that_is_made_is_closed_also_those_that_are_only_looked_at(tmp_path: Path, seen: type[Seen]) -> None:
    planned = plan_run(settings("Closing"), tmp_path)
    assert seen.calls["made"] == seen.calls["close"] == 1
    trio.run(lambda: play_plans([planned]))
    trio.run(estimate_run, planned)
    assert seen.calls["made"] == seen.calls["close"] > 2


class Settling:
    """A memory that can neither be loaded nor says that a search changes nothing."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def add(self, turns: Any, at: Any) -> None:
        self.kept += turns

    def search(self, query: str, k: int, at: Any) -> list[Any]:
        return [{"text": turn.document, "turns": [turn.turn_id]} for turn in self.kept[-k:]]

    def settle(self) -> None:
        Seen.calls["settle"] += 1


class Reading(Settling):
    read_only_search = True


def test_a_memory_that_could_change_when_it_is_searched_is_refused_unless_it_says_that_it_does_not(
    tmp_path: Path, seen: type[Seen]
) -> None:
    named = "memory/python:tests.simulator.test_branches:{}?answerer=none&unchecked=true"
    planned = settings("silent").model_copy(update={"agent": named.format("Settling")})
    with pytest.raises(InputError, match=r"a memory with neither save and load nor `read_only_search = True`.*so that the 4 questions"):
        plan_run(planned, tmp_path)
    trio.run(lambda: play_plans([plan_run(planned.model_copy(update={"agent": named.format("Reading")}), tmp_path)]))
    assert seen.calls["settle"] == 1
    single = settings("silent", entries=3).model_copy(update={"agent": named.format("Settling")})
    (outcome,) = trio.run(lambda: play_plans([plan_run(single, tmp_path)]))
    assert outcome.error is None, "a single question needs no way back"
    assert seen.calls["settle"] == 2


@pytest.mark.parametrize("agent", ["Rewinding", "Loading"])
@pytest.mark.parametrize("part", ["observe", "reply"])
def test_a_trunk_or_a_branch_that_fails_is_resumed_to_the_same_journals(
    agent: str, part: Literal["observe", "reply"], tmp_path: Path, seen: type[Seen]
) -> None:
    whole, outcome = played(tmp_path / "whole", agent)
    expected, result = journals(whole), result_of(outcome)
    for place in (1, 3):
        seen.clear()
        seen.fails_at = part, place if part == "reply" else 5 * place - 3  # the first call leaves no run
        run, outcome = played(tmp_path / f"{part}{place}", agent)
        assert outcome.error is not None
        assert outcome.result is not None
        assert outcome.result.score is None
        failed = [entry["conversation"] for entry in run.incidents()]
        assert failed == (["diary-d1"] if part == "observe" else [list(expected)[place]]), "the others are played"
        seen.clear()
        resumed = trio.run(lambda run=run: resume_run(run, run.manifest.agent))
        assert journals(run) == expected
        assert result_of(resumed).model_copy(update={"run": result.run}) == result
        told = seen.calls["observe"]
        assert told == (12 if agent == "Rewinding" or part == "observe" else 0)


def test_a_run_killed_at_any_event_is_resumed_to_the_same_journals(tmp_path: Path) -> None:
    """One run is played, and its folder copied at every second event, half of it written: what a kill leaves."""
    copies: list[Path] = []

    def copy(journal: Journal, written: int, last: Event | None) -> None:
        if written % 2:
            copies.append(tmp_path / f"copy{written}")
            shutil.copytree(tmp_path / "whole", copies[-1])

    with halfway(copy):
        whole, outcome = played(tmp_path / "whole", "notebook", entries=6)
    expected, result = journals(whole), result_of(outcome)
    assert len(copies) > 15
    for copied in copies:
        (path,) = copied.iterdir()
        run = RunFolder(path)
        admit_manifest(run.path, run.manifest, trust=True)
        resumed = result_of(trio.run(lambda run=run: resume_run(run, "notebook")))
        assert journals(run) == expected, f"killed at {copied.name}"
        assert resumed.tests == result.tests


def made_up(out: Path, questions: int = 8, delivery: str = "told") -> RunFolder:
    """A made-up history that is told, or shown with each question, and asked about."""
    suite = Suite(name="locomo", tests=1, scenarios={"locomo": {"tokens": 5_000, "questions": questions, "delivery": delivery}})
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=0, agent="notebook"), out)]))
    result_of(outcome)
    return RunFolder(outcome.folder)


def test_what_is_told_and_what_all_questions_share_is_in_one_journal_once(tmp_path: Path) -> None:
    run = made_up(tmp_path)
    trunk, *branches = run.manifest.conversations
    told = [exchange.text for exchange in run.transcripts()[trunk].history]
    files = {id: run.journal(id).read_text("utf-8") for id in run.manifest.conversations}
    assert len(told) > 50
    assert [text for text in told if files[trunk].count(json.dumps(text, ensure_ascii=False)) != 1] == []
    asked = {id: [line for line in files[id].splitlines() if json.loads(line)["type"] != "reply"] for id in branches}  # replies may quote
    assert [(id, text) for id, lines in asked.items() for text in told if json.dumps(text, ensure_ascii=False) in "".join(lines)] == []
    around = [line for line in files[trunk].splitlines() if json.loads(line)["type"] not in ("message", "reply", "jump")]
    assert sum(map(len, around)) < sum(map(len, told)) / 4, "beside the turns it says next to nothing"
    shared = {"benchmark", "history", "sha256", "sessions", "parameters", "skills"}
    assert all(f'"{name}":' in files[trunk] for name in shared)
    assert [(id, name) for id in branches for name in shared if f'"{name}":' in files[id]] == []
    played = {id: test.definition for transcript in run.transcripts().values() for id, test in transcript.tests.items()}
    for id, test in planned_tests(run.manifest).items():
        definition = test.opening() if id == trunk else test.definition()
        assert {name: getattr(played[id], name) for name in definition} == definition, "together they say all"
        assert played[id].skills == list(test.scenario.skills)


def test_a_long_text_is_in_a_journal_once_whoever_says_it(tmp_path: Path) -> None:
    """A history that stands in each question: the message says it, and the test's opening has a digest."""
    run = made_up(tmp_path, questions=2, delivery="context")
    tests = planned_tests(run.manifest)
    for id in run.manifest.conversations:
        (line,) = tests[id].script.lines
        assert len(line.text) > 10_000
        assert run.journal(id).stat().st_size < 1.5 * len(line.text)
        assert past_of(run, 0, id).expected == line.ideal
    published = publish_scores(run, tmp_path / "published.json")
    assert [check.name for check in verify_scores(published, run) if not check.holds] == []


def test_turns_that_were_not_committed_to_are_told_from_those_that_were(tmp_path: Path) -> None:
    run = made_up(tmp_path, questions=1)
    trunk, branch = run.manifest.conversations
    published = publish_scores(run, tmp_path / "published.json")
    assert [check.name for check in verify_scores(published, run) if not check.holds] == []

    def change(entries: list[dict[str, Any]]) -> None:
        message = next(entry for entry in entries if entry["type"] == "message")
        message["text"] = f"{message['text'][:-1]}!"

    change_lines(run.journal(trunk), change)
    change_lines(run.journal(branch), lambda entries: entries[0]["trunk"].update(sum=last_sum(run.journal(trunk))))
    failed = {check.name: check.found for check in verify_scores(published, RunFolder(run.path)) if not check.holds}
    assert failed == {"tests": f"not as committed to: {trunk}"}


def test_journals_that_say_it_twice_as_earlier_versions_wrote_them_are_read(tmp_path: Path) -> None:
    run = made_up(tmp_path, questions=2)
    expected = grade_run(run)
    trunk, *branches = run.manifest.conversations
    tests = planned_tests(run.manifest)

    def whole(id: str, entries: list[dict[str, Any]]) -> None:
        for name in ("lines_sha256", "own_facts"):
            entries[1].pop(name, None)
        entries[1].update(tests[id].definition(), skills=list(tests[id].scenario.skills))
        if id != trunk:
            entries[0]["trunk"]["sum"] = last_sum(run.journal(trunk))

    for id in (trunk, *branches):
        change_lines(run.journal(id), partial(whole, id))
    assert "lines_sha256" not in run.journal(trunk).read_text("utf-8")
    again = RunFolder(run.path)
    assert grade_run(again).tests == expected.tests
    assert again.transcripts()[trunk].tests[trunk].tells


FACTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, 0, 1, 1.0, True, "", "x", [1], [True], {"a": 1}, {"a": 1.0}]))


@given(of_trunk=FACTS, of_branch=st.none() | FACTS)
def test_a_branch_and_its_trunk_say_all_of_the_branchs_facts(of_trunk: dict[str, Any], of_branch: dict[str, Any] | None) -> None:
    said: dict[str, Any] = {"scenario": "s", "chance": 0.0, "uninterrupted": False, "lines": [], "outline": [], "position": 0}
    common: dict[str, Any] = said | {"skills": ["recall"], "parameters": {"n": 1}}
    trunk = Open(test="s-1", facts=of_trunk, **common)
    branch = Open(test="s-2", trunk="s-1", facts=of_branch, **common)
    written = parse_json(as_json(branch.besides(trunk)))
    assert isinstance(written, Open)
    assert json.dumps(written.with_trunk(trunk).facts, sort_keys=True) == json.dumps(of_branch, sort_keys=True)
    assert (written.with_trunk(trunk).skills, written.with_trunk(trunk).parameters) == (["recall"], {"n": 1})
    assert b"skills" not in as_json(branch.besides(trunk))


def test_a_finished_run_asks_and_tells_nothing_when_it_is_resumed(tmp_path: Path, seen: type[Seen]) -> None:
    run, _ = played(tmp_path, "Loading")
    seen.clear()
    result_of(trio.run(lambda: resume_run(run, run.manifest.agent)))
    assert seen.calls.keys() <= {"made"}


@pytest.mark.parametrize(("agent", "shown"), [("Rewinding", 12), ("Loading", 0)])
def test_resuming_says_how_many_turns_of_the_history_are_shown_again(agent: str, shown: int, tmp_path: Path) -> None:
    run, _ = played(tmp_path, agent)
    shutil.rmtree(run.journal("diary-d1-q9").parent)  # as if the run had been killed before it
    notice, costly = trio.run(describe_catch_up, run, AgentSpec.parse(run.manifest.agent))
    assert f"observes the {shown} turns after that" in notice
    assert not costly


def test_a_turn_that_several_conversations_have_is_asked_for_by_one_of_them(tmp_path: Path) -> None:
    run, _ = played(tmp_path, "notebook")
    with pytest.raises(InputError, match=r"name one with --conversation, such as diary-d1-q0$"):
        past_of(run, 12)


def test_what_a_run_will_take_counts_the_history_once(tmp_path: Path, openai_key: None) -> None:
    once = trio.run(estimate_run, plan_run(settings("openai/gpt-4o"), tmp_path))
    again = trio.run(estimate_run, plan_run(settings("openai/gpt-4o", "retell"), tmp_path))
    assert (once.turns, once.asked, again.turns, again.asked) == (16, 4, 52, 4)
    assert again.tokens == once.tokens + 3 * (again.tokens - once.tokens) / 3
    assert once.parts["agent"].input_tokens == again.parts["agent"].input_tokens, "each question's prompt holds the history once"


def test_a_turn_of_a_branch_is_asked_again_after_its_trunk(tmp_path: Path) -> None:
    run, _ = played(tmp_path, "notebook")
    past = past_of(run, 12, "diary-d1-q9")
    assert [turn.number for turn in past.before] == list(range(12))
    assert past.before[9].message.text.startswith("Page 9")


def tampered_trunk(run: RunFolder) -> None:
    change_lines(run.journal("diary-d1"), lambda entries: entries[2].update(text="Another day."))


def other_trunk(run: RunFolder) -> None:
    text = (run.path / "manifest.json").read_text()
    content = json.loads(text)
    del content["sum"]
    for planned in content["conversations"]["diary-d1-q3"]:
        planned["trunk"] = "diary-d2"
    moved = content["conversations"].pop("diary-d1-q3")
    content["conversations"]["diary-d1-q3"] = moved
    (run.path / "manifest.json").write_text(add_checksum(json.dumps(content, indent=1)))


@pytest.mark.parametrize(("found", "expected"), [("diary-d2", "diary-d1"), ("diary-d1-q3", "diary-d1-q6"), ("diary-d1", "diary-d1-q3")])
def test_the_journal_of_another_conversation_is_named(found: str, expected: str, tmp_path: Path) -> None:
    run, _ = played(tmp_path, "notebook", tests=2)
    shutil.copy(run.journal(found), run.journal(expected))
    for read in (grade_run, RunFolder.check, lambda run: trio.run(replay_run, run)):
        with pytest.raises(JournalError, match=f"{expected}/journal.jsonl: it is of conversation '{found}', not of '{expected}'"):
            read(RunFolder(run.path))


@pytest.mark.parametrize("forge", [tampered_trunk, other_trunk])
def test_a_branch_of_another_trunk_than_it_was_is_not_believed(forge: Callable[[RunFolder], None], tmp_path: Path) -> None:
    run, _ = played(tmp_path, "notebook", tests=2)
    forge(run)
    with pytest.raises(JournalError, match="does not branch from diary-d"):
        grade_run(RunFolder(run.path))


@pytest.mark.parametrize("trunk", ["diary-d9", "diary-d1-q0"])
def test_a_manifest_with_a_branch_of_nothing_is_refused(trunk: str, tmp_path: Path) -> None:
    run, _ = played(tmp_path, "notebook")
    content = json.loads((run.path / "manifest.json").read_text())
    del content["sum"]
    content["conversations"]["diary-d1-q3"][0]["trunk"] = trunk
    (run.path / "manifest.json").write_text(add_checksum(json.dumps(content, indent=1)))
    with pytest.raises(InputError, match="branches from"):
        _ = RunFolder(run.path).manifest.conversations


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda: Script(facts={}, lines=[Line("Where?", asks=True)], trunk="a"), "set alone=True"),
        (lambda: Script(facts={}, lines=[Line("Where?", asks=True, sent_at=ASKED)]), "set alone=True"),
        (lambda: Script(facts={}, lines=[Line("Where?", asks=True)], tags="later"), "tags must be a sequence"),
    ],
)
def test_a_script_that_cannot_branch_is_refused(script: Callable[[], Script], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        script()


class Astray(Diary):
    """Its questions branch from a question."""

    name: ClassVar[str] = "diary"

    def series(self, tests: int, seed: str) -> list[tuple[str, Script]]:
        asked = Script(facts={}, lines=[Line("Where?", asks=True)], alone=True)
        return [("a", asked), ("b", Script(facts={}, lines=[Line("Where?", asks=True)], alone=True, trunk="a"))]


def test_a_branch_of_what_tells_nothing_is_refused(tmp_path: Path) -> None:
    suite = Suite(name="astray", scenarios={"python:tests.simulator.test_branches:Astray": {}})
    assert len(make_tests(suite, 0, "spread")) == 2
    with pytest.raises(InputError, match=r"diary-b branches from 'a', which must be another of its tests: one that is alone and tells"):
        plan_run(RunSettings(suite=suite, span=2_000, agent="silent"), tmp_path)


def test_progress_counts_what_a_branch_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_status, "MIN_SECONDS", 0.0)
    planned = plan_run(settings("notebook", entries=60), tmp_path)
    lengths = {id: dry_run(setting_of(planned.manifest, id), tests) for id, tests in planned.tests.items()}
    known: list[RunStatus] = []
    shares: dict[str, float] = {}

    def listener(event: RunEvent) -> None:
        status = known[0] if known else RunStatus(event.gradebook, lambda: lengths)
        known[:] = [status]
        status.add(event.conversation, event.change)
        shares[event.conversation] = status.figures().share or 0.0

    trio.run(lambda: play_plans([planned], listener=listener))
    total = sum(length.asked for length in lengths.values())
    done = 0
    for id, length in lengths.items():
        done += length.asked
        assert shares[id] == pytest.approx(done / total, abs=0.02)
    assert known[0].ended == known[0].total == 20


@pytest.mark.parametrize("branch", ["on", "off", "retell"])
def test_failed_questions_are_played_again_with_their_history_alone(branch: Branch, tmp_path: Path) -> None:
    run, _ = played(tmp_path, "Loading", branch, tests=2)
    asked = ["diary-d2-q3", "diary-d2-q9"]
    planned = plan_some(run.manifest, asked, tmp_path, run.path.name)
    (outcome,) = trio.run(lambda: play_plans([planned]))
    again = RunFolder(outcome.folder)
    groups = {id: [test.id for test in group] for id, group in again.manifest.conversations.items()}
    in_order = [id for group in run.manifest.conversations.values() for id in (test.id for test in group) if id in asked]
    assert (
        groups
        == {
            "on": {"diary-d2": ["diary-d2"], "diary-d2-q3": ["diary-d2-q3"], "diary-d2-q9": ["diary-d2-q9"]},
            "off": {"diary-d2": ["diary-d2", *in_order]},
            "retell": {id: ["diary-d2", id] for id in asked},
        }[branch]
    )
    assert sorted(test.id for test in result_of(outcome).tests) == asked
    assert again.manifest.parent == run.path.name
    assert again.manifest.commitment != run.manifest.commitment
    replayed = trio.run(lambda: replay_run(again))
    assert [test.score for test in replayed.tests] == [1, 1]


def test_a_run_of_which_no_test_counts_has_no_score_and_is_left_out_of_a_comparison(tmp_path: Path) -> None:
    run, _ = played(tmp_path / "all", "notebook")
    (uncounted,) = [test.id for test in grade_run(run).tests if not test.counts]
    planned = plan_some(run.manifest, [uncounted], tmp_path / "some", run.path.name)
    (outcome,) = trio.run(lambda: play_plans([planned]))
    result = result_of(outcome)
    assert (result.score, result.max_score, len(result.tests)) == (None, 0, 1)
    assert [each.path for each in load_comparison([run.path, outcome.folder]).unusable] == [outcome.folder.resolve()]
    with pytest.raises(InputError, match=r"no run can be compared: .*: none of its tests counts toward a score"):
        load_comparison([outcome.folder])
