"""An arena with a judge on this machine: its prompts, its cost and its failures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loopback import Hang, Say, Server, Status
from tests.scenarios.cream.judges import by_sentences, lines
from tests.schemas import check_output

from longspan.scenarios.cream.arena_page import as_html
from longspan.scenarios.cream.arena_result import ArenaResult, Rules
from longspan.scenarios.cream.evaluate import judge_and_rank
from longspan.scenarios.cream.summaries import SummaryCollection, gather_summaries
from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.cli import main
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("openai_key")

A = "Anna leads the project. The budget grew."
B = "- The budget grew.\n- It was late.\n- Nobody spoke."
MEETINGS = {"monday": {"long": A, "short": "The budget grew."}, "friday": {"long": B, "short": "It was late."}}
COMPLETENESS = Rules(metric="completeness", facts=16, orders=10)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(reply=by_sentences).running() as server:
        yield server


def gathered(folder: Path, summaries: dict[str, dict[str, str]] = MEETINGS, **more: Any) -> SummaryCollection:
    return gather_summaries([lines(folder / "summaries.jsonl", summaries, **more)])


def held(server: Server, folder: Path, found: SummaryCollection, rules: Rules = COMPLETENESS) -> ArenaResult:
    return trio.run(lambda: judge_and_rank(found, rules, server.model(), AnswerStore.create(folder / "arena")))


def ran(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["cream", "arena", *map(str, arguments)])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_summaries_are_compared_both_ways_round_and_rated(tmp_path: Path, server: Server) -> None:
    result = held(server, tmp_path, gathered(tmp_path))
    assert [(each.source, each.systems) for each in result.comparisons] == [
        (source, way) for source in MEETINGS for way in (("long", "short"), ("short", "long"))
    ]
    first = result.comparisons[0]
    assert first.facts == ["Anna leads the project.", "The budget grew."]
    assert [side.cited for side in first.sides] == [[[1], [2]], [None, [1]]]
    assert [(each.source, each.points) for each in result.matches] == [("monday", 1), ("friday", 1)]
    assert [each.scores for each in result.matches] == [(1, 0.5), (1, pytest.approx(1 / 3))]
    assert [each.system for each in result.standings] == ["long", "short"]
    assert result.standings[0].elo == pytest.approx(1000 + 16 + 32 * (1 - 1 / (1 + 10 ** (-32 / 400))))
    concise = held(server, tmp_path, gathered(tmp_path), COMPLETENESS.model_copy(update={"metric": "conciseness"}))
    assert [each.scores for each in concise.matches] == [(1, 1), (1, 1)]


def test_the_judge_sees_both_summaries_between_fences_and_not_who_wrote_them(tmp_path: Path, server: Server) -> None:
    before = len(server.asked)
    held(server, tmp_path, gathered(tmp_path, {"monday": {"quagga": A, "okapi": "The budget grew."}}))
    asked = [each.texts[-1][1] for each in server.asked[before:]]
    extraction = [prompt for prompt in asked if "Take them apart" in prompt]
    assert len(extraction) == 2
    assert sum(f"{A}\n\nThe budget grew.\n" in prompt for prompt in extraction) == 1
    assert sum(f"The budget grew.\n\n{A}\n" in prompt for prompt in extraction) == 1
    assert all("At most 16 facts" in prompt for prompt in extraction)
    assert not [prompt for prompt in asked if re.search("monday|quagga|okapi", prompt)]
    assert all(each.body["temperature"] == 0 for each in server.asked[before:])
    assert all(each.body["response_format"]["json_schema"]["strict"] for each in server.asked[before:])


def test_nothing_is_asked_twice_and_other_metrics_of_the_same_facts_cost_nothing(tmp_path: Path, server: Server) -> None:
    found = gathered(tmp_path)
    first = held(server, tmp_path, found)
    before = len(server.asked)
    assert held(server, tmp_path, found) == first
    held(server, tmp_path, found, COMPLETENESS.model_copy(update={"metric": "conciseness", "k": 8.0, "match": "aggregate"}))
    assert len(server.asked) == before
    held(server, tmp_path, found, COMPLETENESS.model_copy(update={"facts": 30}))
    assert len(server.asked) > before


def test_facts_may_be_named_anew_for_each_summary_as_in_the_paper(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(server.asked)
    rules = COMPLETENESS.model_copy(update={"extraction": "summary"})
    result = held(server, tmp_path, gathered(tmp_path, MEETINGS | {"sunday": {"long": A, "short": ""}}), rules)
    asked = [each.texts[-1][1] for each in server.asked[before:]]
    assert len(asked) == 2 * len(result.comparisons), "one question for each summary of a comparison, and no other"
    first = result.comparisons[0]
    assert first.facts == []
    assert [side.facts for side in first.sides] == [["Anna leads the project.", "The budget grew."]] * 2
    assert [side.cited for side in first.sides] == [[[1], [2]], [None, [1]]]
    assert [each.scores for each in result.matches] == [(1, 0.5), (1, pytest.approx(1 / 3)), (1, 0)]
    one = held(server, tmp_path, gathered(tmp_path), rules.model_copy(update={"facts": 1}))
    assert [len(side.facts) for comparison in one.comparisons for side in comparison.sides] == [1] * 8
    assert as_html(result).count("Anna leads the project.") > 4
    for extraction in ("pair", "summary"):
        code, _, _ = ran(
            capsys, tmp_path / "summaries.jsonl", "--judge", server.model(), "--extraction", extraction, "--out", tmp_path / "out"
        )
        assert code == 0
    assert {path.name for path in (tmp_path / "out").glob("*.json")} == {"completeness-16.json", "completeness-16-anew.json"}


def test_more_facts_than_were_asked_for_do_not_count(tmp_path: Path, server: Server) -> None:
    result = held(server, tmp_path, gathered(tmp_path), COMPLETENESS.model_copy(update={"facts": 1}))
    assert [each.facts for each in result.comparisons[:2]] == [["Anna leads the project."], ["The budget grew."]]
    assert result.matches[0].scores == (1, 0.5), "what stands first is found first: so it is done both ways round"


KILLED = """
import os, signal, sys
from pathlib import Path
import trio
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.scenarios.cream.evaluate import judge_and_rank
from longspan.scenarios.cream.arena_result import Rules
from longspan.scenarios.cream.summaries import gather_summaries

path, spec = Path(sys.argv[1]), sys.argv[2]
add, added = AnswerStore.add, 0

def torn(self, answer):
    global added
    added += 1
    if added == 5:
        with (self.folder / "judgements.jsonl").open("ab") as file:
            file.write(b'{"key": "')
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, answer)

AnswerStore.add = torn
rules = Rules(metric="completeness", facts=16, orders=10)
trio.run(lambda: judge_and_rank(gather_summaries([path / "summaries.jsonl"]), rules, spec, AnswerStore.create(path / "arena")))
"""


def test_an_arena_that_was_killed_goes_on_and_pays_for_nothing_twice(tmp_path: Path, server: Server) -> None:
    """It is killed in the middle of writing the fifth answer: four are kept, and of all others none is asked for twice."""
    found = gathered(tmp_path)
    one_by_one = f"{server.model()}&at_once=1"
    before = len(server.asked)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), one_by_one], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    kept = len(AnswerStore(tmp_path / "arena").entries())
    assert kept == 4
    asked = len(server.asked) - before
    result = trio.run(lambda: judge_and_rank(found, COMPLETENESS, one_by_one, AnswerStore.create(tmp_path / "arena")))
    prompts = [each.texts[-1][1] for each in server.asked[before:]]
    assert len(prompts) - asked == len(set(prompts)) - kept
    (tmp_path / "again").mkdir()
    assert held(server, tmp_path / "again", found).comparisons == result.comparisons


WRONG: list[Any] = [
    Say("I would rather not say."),
    Say('{"facts": []}'),
    Say('{"thoughts": "", "facts": [1]}'),
    Say('{"thoughts": "", "facts": ["' + "x" * 601 + '"]}'),
    Status(400, "no"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_facts_that_cannot_be_read_leave_a_comparison_undecided_and_no_other(tmp_path: Path, server: Server, wrong: Any) -> None:
    found = gathered(tmp_path)
    server.acts.append(wrong)
    result = held(server, tmp_path, found)
    (undecided,) = (each for each in result.comparisons if each.undecided)
    assert "the judge" in undecided.undecided
    assert (undecided.facts, undecided.sides) == ([], [])
    assert [match.of for match in result.matches].count(1) == 1, "the other way round was decided and counts"
    assert result.matches[0].points == 1
    again = held(server, tmp_path, found)
    assert again.undecided == 0, "asked again, it may decide"


def aligned(*entries: tuple[int, bool, list[Any]]) -> str:
    return json.dumps({"facts": [{"fact": fact, "why": "", "holds": holds, "sentences": cited} for fact, holds, cited in entries]})


NONE = aligned((1, False, [7]), (2, False, []))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (aligned((1, True, [1])), "does not name each fact from 1 to 2 once"),
        (aligned((1, True, [1]), (1, False, [])), "does not name each fact"),
        (aligned((1, True, [1]), (2, True, [3])), "cites a sentence that does not exist: there are 2"),
        (aligned((1, True, [1]), (2, True, [0])), "cites a sentence that does not exist"),
        (aligned((1, True, [1]), (2, True, ["1"])), "whole number"),
        (aligned((1, True, [True]), (2, True, [1])), "whole number"),
    ],
)
def test_an_alignment_that_does_not_fit_is_no_answer(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, answer: str, why: str
) -> None:
    found = gathered(tmp_path, {"m": {"long": A, "short": "The budget grew."}})
    wrong = iter([answer])

    def reply(prompt: str) -> str:
        if "Take them apart" in prompt:
            return '{"thoughts": "", "facts": ["One.", "Two."]}'
        return next(wrong, NONE) if "Anna leads" in prompt else NONE

    monkeypatch.setattr(server, "reply", reply)
    result = held(server, tmp_path, found)
    assert sum(why in each.undecided for each in result.comparisons) == 1
    assert [match.scores for match in result.matches] == [(0, 0)], "what is not held cites nothing, whatever it names"


@settings(max_examples=15)
@given(st.text(max_size=60) | st.sampled_from(["{", '{"facts": {}}', '{"facts": [{}]}', "[]", '{"facts": [null]}', '{"facts": "all"}']))
def test_whatever_a_judge_says_is_no_score(server: Server, tmp_path_factory: pytest.TempPathFactory, answer: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    server.always = Say(answer)
    try:
        result = held(server, folder, gathered(folder))
    finally:
        server.always = None
    assert result.undecided == len(result.comparisons) == 4
    assert (result.matches, [each.score for each in result.standings]) == ([], [None, None])


def test_an_empty_summary_holds_nothing_and_is_neither_concise_nor_not(tmp_path: Path, server: Server) -> None:
    found = gathered(tmp_path, {"m": {"long": A, "empty": " \n- \n"}, "n": {"long": "", "empty": ""}})
    result = held(server, tmp_path, found)
    assert [(match.source, match.scores) for match in result.matches] == [("m", (1, 0))]
    assert {each.undecided for each in result.comparisons if each.source == "n"} == {"the judge found no key facts"}
    concise = held(server, tmp_path, found, COMPLETENESS.model_copy(update={"metric": "conciseness"}))
    assert concise.matches == []
    assert any("2 of 2 pairs of summaries have no score" in warning for warning in concise.warnings)


def test_faithfulness_asks_about_each_summary_and_its_source(tmp_path: Path, server: Server) -> None:
    summaries = {"m": {"good": "It rained.", "bad": "It rained. This is wrong."}}
    rules = COMPLETENESS.model_copy(update={"metric": "faithfulness"})
    result = held(server, tmp_path, gathered(tmp_path, summaries, document="It rained all day."), rules)
    assert [match.scores for match in result.matches] == [(1, 0.5)]
    assert [check.errors for check in result.checks] == [[None], [None, "it is: This is wrong."]]
    prompts = [each.texts[-1][1] for each in server.asked[-2:]]
    assert all("It rained all day." in prompt for prompt in prompts)


def test_a_limit_of_dollars_stops_it_and_it_goes_on_later(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "longspan.simulator.subject.ledger.price_usage", lambda model, usage: 1e-6 * (usage.input_tokens + usage.output_tokens)
    )
    found = gathered(tmp_path)
    store = AnswerStore.create(tmp_path / "arena")
    one_by_one = f"{server.model()}&at_once=1&max_tokens=500"
    before = len(server.asked)
    with pytest.raises(StoppedError, match=r"the same command continues from there"):
        trio.run(lambda: judge_and_rank(found, COMPLETENESS, one_by_one, store, max_cost=0.003))
    kept = len(store.entries())
    assert 0 < kept == len(server.asked) - before < 12
    result = trio.run(lambda: judge_and_rank(found, COMPLETENESS, one_by_one, store, max_cost=1))
    assert result.undecided == 0
    prompts = [each.texts[-1][1] for each in server.asked[before:]]
    assert len(prompts) == len(set(prompts))


def test_a_price_that_nobody_knows_is_refused_under_a_limit(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "s.jsonl", MEETINGS)
    code, _, err = ran(capsys, file, "--judge", server.model(), "--max-cost", "1", "--out", tmp_path / "arena")
    assert code == 2
    assert re.search(r"--max-cost: agent openai/gpt-4o.*the price of 127.0.0.1:\d+/gpt-4o is unknown", err)


def test_it_can_be_stopped(tmp_path: Path, server: Server) -> None:
    server.always = Hang()

    async def stopped() -> bool:
        with trio.move_on_after(1) as scope:
            await judge_and_rank(gathered(tmp_path), COMPLETENESS, server.model(), AnswerStore.create(tmp_path / "arena"))
        return scope.cancelled_caught

    assert trio.run(stopped)
    server.always = None


# Runs.


def test_runs_are_compared_by_their_last_replies(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["python:tests.scenarios.cream.minutes:Minutes", "colours"], 2)
    agents = [f"python:tests.scenarios.cream.minutes:{name}" for name in ("Full", "Brief")]
    plans = [plan_run(RunSettings(suite=suite, span=2000, seed=1, agent=agent, isolated=True), tmp_path / "runs") for agent in agents]
    outcomes = trio.run(play_plans, plans)
    assert [outcome.error for outcome in outcomes] == [None, None]
    found = gather_summaries([tmp_path / "runs"])
    assert found.systems == sorted(agents)
    assert len(found.sources) == 2, "the tests of the other scenario name no source"
    (source, *_) = found.sources
    assert "Point: Anna leads the project.\n\n" in (found.document(source, agents[0]) or "")
    code, out, _ = ran(capsys, tmp_path / "runs", "--judge", server.model(), "--out", tmp_path / "arena", "--json", "--orders", "9")
    result = check_output("cream-arena", out)
    assert code == 0
    assert [each["system"] for each in result["standings"]] == agents
    assert {tuple(match["scores"]) for match in result["matches"]} == {(0.25, 1.0)}
    twice = gather_summaries([outcomes[0].folder, outcomes[0].folder.parent])
    assert sorted(twice.systems) == found.systems, "a run that is named twice counts once"


@pytest.mark.parametrize(
    ("suite", "chosen", "sources"),
    [
        ("elitr", ["task=minutes", "tokens=3000"], 1),
        ("elitr", ["task=questions", "tokens=3000"], 0),
        ("summhay", ["documents=20", "words=100", "subtopics=2", "domain=news"], 2),
    ],
)
def test_suites_that_ask_for_summaries_can_be_compared(tmp_path: Path, suite: str, chosen: list[str], sources: int) -> None:
    """Their tests of one seed have the same sources for every agent, and of another seed others."""
    made = load_suite(suite).apply_changes(chosen, [], [], 1)
    plans = [
        plan_run(RunSettings(suite=made, span=2000, seed=seed, agent=agent), tmp_path) for seed in (1, 2) for agent in ("oracle", "silent")
    ]
    assert [outcome.error for outcome in trio.run(play_plans, plans)] == [None] * 4
    if not sources:
        with pytest.raises(InputError, match="found 0 summaries"):
            gather_summaries([tmp_path])
        return
    one, both = (
        gather_summaries([tmp_path / f"{suite}-made-up-{agent}-seed1" for agent in ("oracle", "silent")]),
        gather_summaries([tmp_path]),
    )
    assert (one.systems, len(one.sources)) == (["oracle", "silent"], sources)
    assert {each["silent"].summary for each in one.sources.values()} == {"OK."}
    assert all(len(each["oracle"].summary) > 100 for each in one.sources.values())
    assert len(both.sources) == 2 * sources
    assert all(both.document(source, system) for source, by_system in both.sources.items() for system in by_system)


# At the terminal.


def test_what_it_prints_and_where_it_lands(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "s.jsonl", MEETINGS)
    code, out, err = ran(capsys, file, "--judge", server.model(), "--metric", "conciseness", "--facts", "30", "--out", tmp_path / "arena")
    assert code == 0
    assert "Ranking by conciseness, at most 30 key facts" in out
    assert "4 of 4 comparisons" in err
    folder = tmp_path / "arena"
    assert f"report  {folder / 'conciseness-30.html'}" in out
    assert {path.name for path in folder.iterdir()} == {".lock", "judgements.jsonl", "conciseness-30.html", "conciseness-30.json"}
    path = folder / "conciseness-30.json"
    assert ArenaResult.model_validate_json(verify_checksum(path.read_bytes(), path, "")).rules.facts == 30


REFUSED = {
    "nothing there": ([], "cannot be read"),
    "no line": ([""], "no source has summaries by two systems"),
    "no JSON": (["{"], "line 1: not JSON"),
    "not UTF-8": ([b'{"source": "\xff"}'], "line 1: not JSON"),
    "a list": (["[]"], "line 1"),
    "a key is misspelt": ([{"source": "a", "system": "b", "sumary": "c"}], "unknown key"),
    "a number": ([{"source": 1, "system": "b", "summary": "c"}], "source: must be text"),
    "no name": ([{"source": "a", "system": "", "summary": "c"}], "must not be empty"),
    "twice": ([{"source": "a", "system": "b", "summary": "c"}] * 2, "line 2: duplicate summary of 'a' by 'b'"),
    "one system": ([{"source": s, "system": "b", "summary": "c"} for s in "st"], "no source has summaries by two systems; found 2"),
    "no common source": ([{"source": s, "system": s, "summary": "c"} for s in "st"], "no source has summaries by two systems"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_cannot_be_compared_are_refused_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    content, why = REFUSED[case]
    file = tmp_path / "s.jsonl"
    if content:
        written = (each if isinstance(each, (bytes, str)) else json.dumps(each) for each in content)
        file.write_bytes(b"".join((each if isinstance(each, bytes) else each.encode()) + b"\n" for each in written))
    code, out, err = ran(capsys, file, "--judge", "openai/gpt-4o", "--out", tmp_path / "arena")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert why in err
    assert not (tmp_path / "arena").exists()


def test_other_doors(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "s.jsonl", MEETINGS)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").touch()
    cases = [
        ([file, "--judge", "silent"], "this kind of agent cannot judge"),
        ([file, "--judge", server.model(), "--metric", "faithfulness"], "no document for monday, friday"),
        ([file, "--judge", server.model(), "--k", "0"], "--k"),
        ([file, "--judge", server.model(), "--out", tmp_path / "run"], "is a run's folder"),
        ([tmp_path / "empty", "--judge", server.model()], "no runs found"),
    ]
    (tmp_path / "empty").mkdir()
    for arguments, why in cases:
        code, _, err = ran(capsys, "--out", tmp_path / "arena", *arguments)
        assert code == 2
        assert why in err
    assert not (tmp_path / "arena").exists()


def test_two_at_once_do_not_write_into_one_folder(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    file = lines(tmp_path / "s.jsonl", MEETINGS)
    before = len(server.asked)
    with AnswerStore.create(tmp_path / "arena").lock("arena"):
        code, _, err = ran(capsys, file, "--judge", server.model(), "--out", tmp_path / "arena")
    assert code == 2
    assert "another process is playing this arena" in err
    assert len(server.asked) == before


def test_a_summary_that_is_too_long_is_cut_and_a_lonely_one_left_out(tmp_path: Path) -> None:
    found = gathered(tmp_path, {"m": {"a": "x" * 100_001, "b": "y"}, "n": {"a": "z"}})
    assert len(found.sources["m"]["a"].summary) == 100_000
    assert list(found.sources) == ["m"]
    assert found.notes == [
        "a on m: the first 100,000 of 100,001 characters are judged",
        "1 of 2 sources have only one summary and are left out: n",
    ]


def test_a_judge_among_the_judged_is_told(tmp_path: Path, server: Server) -> None:
    result = held(server, tmp_path, gathered(tmp_path, {"m": {"openai/gpt-4o?context=8k": A, "other": B}}))
    assert any("judges its own summaries" in note for note in result.notes)
