"""Conversations played with real components: the floor, waits, watching, errors of tests, determinism."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from math import nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rig import Babbler, made_test, play, setting
from tests.sealing import write_lines

from longspan.agents.base import BaseAgent
from longspan.simulator.base.errors import AgentError, JournalError, ReplayError, ScenarioError
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Line, Script, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import Journal, read_journal
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent


class Echo(BaseAgent):
    """Replies with the start of the message, and records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Message] = []
        self.observed: list[tuple[Message, str]] = []

    async def reply(self, message: Message) -> Reply:
        self.asked.append(message)
        return Reply(f"You said: {message.text[:20]}")

    async def observe(self, message: Message, reply: str) -> None:
        self.observed.append((message, reply))


def dynamic(play: Callable[[Stage], Any], *outline: Segment, name: str = "dynamic", order: int = 0, **options: Any) -> Test:
    return made_test(name, 1, order, outline=outline or [Segment(0, 30, 1)], play=play, **options)


def scripted(name: str, order: int, count: int = 4, number: int = 1, farewell: str | None = None) -> Test:
    lines = [Line(f"{name} says line {i}.", asks=i == count - 1) for i in range(count)]
    return made_test(name, number, order, lines=lines, farewell=farewell)


def journal_of(path: Path) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        entry.pop("measured", None)
    return entries


def test_every_message_is_journaled_before_the_agent_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    seen: list[str] = []

    class Peeking(Echo):
        async def reply(self, message: Message) -> Reply:
            last = json.loads(path.read_text().splitlines()[-1])
            seen.append(last["type"] if last["text"] == message.text else "something else")
            return await super().reply(message)

    play([scripted("a", 0)], Peeking(), setting(1000), path)
    assert set(seen) == {"message"}
    assert [entry["seq"] for entry in journal_of(path)] == list(range(len(journal_of(path))))


def test_positions_add_up_and_filler_is_observed_not_asked(tmp_path: Path) -> None:
    agent = Echo()
    path = tmp_path / "journal.jsonl"
    where = setting(4000)
    transcript = play([scripted("a", 0)], agent, where, path)
    position = 0
    for entry in journal_of(path):
        if entry["type"] == "message":
            assert entry["start"] == position
            assert entry["tokens"] == where.tokenizer.count(entry["text"])
            position += entry["tokens"]
        elif entry["type"] == "reply":
            assert entry["tokens"] == where.tokenizer.count(entry["text"])
            position += entry["tokens"]
            assert entry["end"] == position
    assert transcript.tokens == position
    assert agent.observed
    assert {message.turn_id for message, _ in agent.observed}.isdisjoint(message.turn_id for message in agent.asked)
    assert len(agent.observed) + len(agent.asked) == transcript.turns


def test_waits_are_kept_in_tokens_turns_and_time(tmp_path: Path) -> None:
    async def body(stage: Stage) -> None:
        await stage.say("first")
        started = stage.now
        await stage.wait()
        assert stage.now - started >= timedelta(hours=5)
        await stage.say("after five hours")
        await stage.wait()
        await stage.say("after seven hundred tokens")
        await stage.wait()
        await stage.ask("after six turns", ideal="OK.")

    outline = [
        Segment(0, 10, 1),
        Segment(0, 10, 1, pause=timedelta(hours=5)),
        Segment(0, 10, 1, after_tokens=700),
        Segment(0, 10, 1, after_turns=6),
    ]
    path = tmp_path / "journal.jsonl"
    transcript = play([dynamic(body, *outline)], Echo(), setting(4000), path)
    assert transcript.tests["dynamic-1"].status == "played"
    own = [entry for entry in journal_of(path) if entry["type"] == "message" and entry.get("test")]
    ends = {entry["turn"]: entry["end"] for entry in journal_of(path) if entry["type"] == "reply"}
    assert own[2]["start"] - ends[own[1]["turn"]] >= 700
    assert own[3]["turn"] - own[2]["turn"] > 6
    assert own[3]["turn"] - own[2]["turn"] <= 8, "no more turns are passed than were asked for"


def test_a_wait_gives_up_the_floor_even_if_its_condition_holds(tmp_path: Path) -> None:
    async def body(stage: Stage) -> None:
        await stage.say("hello")
        await stage.wait()  # by its end all three are open
        for number in range(3):
            await stage.say(f"line {number}")
            await stage.wait()
        await stage.ask("done?", ideal="OK.")

    outline = [Segment(0, 5, 1), *(Segment(0.5, 20, 1) for _ in range(4))]
    others = [dynamic(body, *outline, name=name, order=i) for i, name in enumerate("xyz")]
    transcript = play(others, Echo(), setting(3000), tmp_path / "journal.jsonl")
    assert transcript.switches == transcript.steps


def test_watch_shows_every_turn_and_only_its_number_of_them(tmp_path: Path) -> None:
    seen: list[int] = []

    async def body(stage: Stage) -> None:
        await stage.ask("watch now", ideal="OK.")
        async for turn in stage.watch(turns=5):
            seen.append(turn.number)

    agent = Echo()
    path = tmp_path / "journal.jsonl"
    transcript = play([dynamic(body, Segment(0, 30, 1, watch=5))], agent, setting(2000), path)
    assert seen == [2, 3, 4, 5, 6]
    assert transcript.tests["dynamic-1"].watched == seen
    assert not agent.observed, "a bounded watch has the agent asked, filler too"


def test_what_is_said_during_a_watch_waits_for_its_end_and_the_watch_catches_up(tmp_path: Path) -> None:
    seen: list[int] = []
    said: list[int] = []

    async def body(stage: Stage) -> None:
        await stage.say("hello")
        watch = stage.watch(turns=4)
        async for turn in watch:
            seen.append(turn.number)
            break
        await stage.say("in between")
        said.extend(seen)
        async for turn in watch:
            seen.append(turn.number)
        await stage.ask("done?", ideal="OK.")

    outline = [Segment(0, 10, 1, watch=4), Segment(0, 20, 2)]
    path = tmp_path / "journal.jsonl"
    transcript = play([dynamic(body, *outline), scripted("other", 1)], Echo(), setting(2000), path)
    assert transcript.tests["dynamic-1"].status == "played"
    assert seen == list(range(seen[0], seen[0] + 4))
    turns = [entry["turn"] for entry in journal_of(path) if entry["type"] == "message" and entry.get("test") == "dynamic-1"]
    assert turns[1] > turns[0] + 4
    assert len(said) == 1


def test_a_watch_until_the_next_segment_shows_all_that_is_said_in_between(tmp_path: Path) -> None:
    seen: list[tuple[int, bool]] = []

    async def body(stage: Stage) -> None:
        await stage.say("watching until I speak again")
        async for turn in stage.watch():
            seen.append((turn.number, turn.asked))
        await stage.ask("is it over?", ideal="OK.")

    tests = [dynamic(body, Segment(0, 10, 1, watch="next"), Segment(0.9, 10, 1)), scripted("a", 1), scripted("b", 2)]
    path = tmp_path / "journal.jsonl"
    transcript = play(tests, Echo(), setting(1500), path)
    own = [entry["turn"] for entry in journal_of(path) if entry["type"] == "message" and entry.get("test") == "dynamic-1"]
    assert [number for number, _ in seen] == list(range(own[0] + 1, own[1])) == transcript.tests["dynamic-1"].watched
    assert {asked for _, asked in seen} == {True, False}, "filler is told as ever"
    assert transcript.tests["dynamic-1"].status == "played"


def test_an_unbounded_watch_ends_when_no_other_test_remains(tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def body(stage: Stage) -> None:
        await stage.say("watching until the end")
        async for turn in stage.watch():
            seen.append(turn.test)
        await stage.ask("is it over?", ideal="OK.")

    tests = [dynamic(body, Segment(0, 10, 1, watch="rest"), Segment(0, 10, 1)), scripted("a", 1), scripted("b", 2)]
    transcript = play(tests, Echo(), setting(1500), tmp_path / "journal.jsonl")
    assert transcript.closed
    assert transcript.tests["dynamic-1"].status == "played"
    assert {"a-1", "b-1"} <= set(seen)


def test_amend_changes_only_the_ideal_reply(tmp_path: Path) -> None:
    async def body(stage: Stage) -> None:
        await stage.ask("watch", ideal="ideal")
        async for _ in stage.watch(turns=3, amend=lambda count, ideal: f"{ideal} [{count}]"):
            pass

    ideals: list[str] = []
    agent = Echo()
    play([dynamic(body, Segment(0, 30, 1, watch=3))], agent, setting(2000), tmp_path / "journal.jsonl", give_ideal=ideals.append)
    assert ideals[:2] == ["Understood.", "ideal"]
    assert [ideal[-3:] for ideal in ideals[2:5]] == ["[1]", "[2]", "[3]"]
    assert {field for message in agent.asked for field in message.__slots__} == {"text", "sent_at", "turn_id"}
    assert not any("[1]" in message.text for message in agent.asked)


# The same conversation, whoever replies.

AS_IT_LIKES = [Segment(0, 60, 2), Segment(0.3, 90, 3, watch=2), Segment(0.5, 60, 2), Segment(0.9, 30, 1)]
"""The outline of a test that says less of it than it may, depending on replies."""


async def _as_it_likes(stage: Stage) -> None:
    random = Random(await stage.ask("How do you do?", ideal="Fine."))
    if random.random() < 0.2:
        raise ValueError("it gives up")
    for _ in range(3):
        if random.random() < 0.2:
            return
        await stage.wait()
        if random.random() < 0.5:
            await stage.say("Well, well.")
        if random.random() < 0.5:
            async for _ in stage.watch(turns=2):
                break


def _user_side(path: Path, but: str) -> list[tuple[Any, ...]]:
    """Return the user's side of a conversation: texts, positions and times, but of one test only the times."""
    messages = [entry for entry in journal_of(path) if entry["type"] == "message"]
    return [(m.get("test"), m["sent_at"], *((m["text"], m["dealt"]) if m.get("test") != but else ())) for m in messages]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), span=st.sampled_from([1500, 4000]), lengths=st.lists(st.integers(0, 300), min_size=2, max_size=3))
def test_every_agent_is_dealt_the_same_conversation(
    seed: int, span: int, lengths: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tests = [dynamic(_as_it_likes, *AS_IT_LIKES, farewell="Forget it."), scripted("dynamic", 1, number=2)]
    tests += [scripted(name, 2 + i, count=3 + i % 4) for i, name in enumerate("abcdef")]
    sides, crowds = [], set()
    for number, length in enumerate(lengths):
        path = tmp_path_factory.mktemp("run") / "journal.jsonl"
        agent = Babbler(seed + number, lambda random, length=length: random.randint(0, length))  # type: ignore[misc]
        transcript = play(tests, agent, setting(span, seed=seed), path)
        sides.append(_user_side(path, "dynamic-1"))
        crowds.add((transcript.crowd, transcript.spoken, transcript.switches, transcript.steps))
        assert all(test.span_dealt <= span for test in transcript.tests.values())
    assert all(side == sides[0] for side in sides)
    assert len(crowds) == 1, "how they are interleaved is the same too"


def test_a_test_that_ends_early_keeps_its_places_and_its_topics(tmp_path: Path) -> None:
    async def body(stage: Stage) -> None:
        await stage.ask("Shall we?", ideal="Yes.")

    outline = [Segment(0, 40, 2), Segment(0.5, 50, 2), Segment(0.9, 30, 1)]
    path = tmp_path / "journal.jsonl"
    tests = [dynamic(body, *outline, farewell="Never mind."), scripted("dynamic", 1, number=2)]
    transcript = play(tests, Echo(), setting(1500), path)
    test = transcript.tests["dynamic-1"]
    assert (test.status, test.stopped) == ("played", True)
    assert [exchange.text for exchange in test.exchanges] == ["Shall we?"]
    entries = journal_of(path)
    places = [entry for entry in entries if entry.get("kind") == "filler" and entry.get("test")]
    assert [place["test"] for place in places] == ["dynamic-1"] * 4
    assert all(entry["asked"] for entry in entries if entry["type"] == "reply" and entry["turn"] in {place["turn"] for place in places})
    assert places[-1]["dealt"] - places[0]["dealt"] >= 0.8 * 1500
    end = next(entry["seq"] for entry in entries if entry["type"] == "end" and entry["test"] == "dynamic-1")
    farewell = next(entry["seq"] for entry in entries if entry.get("kind") == "farewell")
    opening = next(entry["seq"] for entry in entries if entry["type"] == "open" and entry["test"] == "dynamic-2")
    assert places[-1]["seq"] < end < farewell < opening


async def _overlap(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.say, "one")
        nursery.start_soon(stage.say, "two")


async def _sleep(stage: Stage) -> None:
    await stage.say("before")
    await trio.sleep(0)
    await stage.say("after")


async def _event(stage: Stage) -> None:
    await trio.Event().wait()


async def _thread(stage: Stage) -> None:
    await trio.to_thread.run_sync(lambda: None)


async def _asyncio(stage: Stage) -> None:
    await asyncio.sleep(0)


async def _cancel(stage: Stage) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await stage.say("cancelled")


async def _deaf(stage: Stage) -> None:
    while True:
        try:
            await trio.sleep(0)
        except Exception:
            await stage.say("I go on")


async def _stubborn(stage: Stage) -> None:
    while True:
        with suppress(Exception):
            await trio.sleep(0)


async def _ever(stage: Stage) -> None:
    with trio.CancelScope(shield=True):
        while True:
            await trio.lowlevel.cancel_shielded_checkpoint()


async def _empty(stage: Stage) -> None:
    await stage.say("  ")


async def _talkative(stage: Stage) -> None:
    await stage.say("one")
    await stage.say("two")


async def _wordy(stage: Stage) -> None:
    await stage.say("word " * 31)


async def _lingering(stage: Stage) -> None:
    await stage.say("one")
    await stage.wait()
    await stage.say("two")


async def _nosy(stage: Stage) -> None:
    await stage.say("one")
    async for _ in stage.watch(turns=3):
        pass


async def _nosy_for_ever(stage: Stage) -> None:
    async for _ in stage.watch():
        pass


async def _crash(stage: Stage) -> None:
    await stage.say("so far so good")
    raise KeyError(f"lost {object()}")


async def _amend(stage: Stage) -> None:
    async for _ in stage.watch(turns=2, amend=lambda count, ideal: ideal[count * 10**6 :] + str(1 / 0)):
        pass


async def _surrogate(stage: Stage) -> None:
    await stage.say("half a \ud83d face")


async def _no_ideal(stage: Stage) -> None:
    await stage.ask("well?", ideal=5)  # type: ignore[arg-type]


async def _leaves(stage: Stage) -> None:
    raise SystemExit("half a \ud83d word")


def _not_async(stage: Stage) -> None:
    return None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_overlap, "nothing but its Stage"),
        (_sleep, "nothing but its Stage"),
        (_event, "nothing but its Stage"),
        (_thread, "nothing but its Stage"),
        (_asyncio, ""),
        (_cancel, "must not cancel"),
        (_deaf, "nothing but its Stage"),
        (_stubborn, "nothing but its Stage"),
        (_ever, "nothing but its Stage"),
        (_empty, "a string that is not blank"),
        (_talkative, "its outline declares no message here, got 'two'"),
        (_wordy, "its outline declares 30 more tokens here, got 32 of"),
        (_lingering, "it waits, but its outline declares nothing after that"),
        (_nosy, "it watches for 3 turns, but its outline declares a watch of 2 here"),
        (_nosy_for_ever, "it watches without end, but its outline declares a watch of 2 here"),
        (_crash, "KeyError"),
        (_amend, "ZeroDivisionError"),
        (_surrogate, "valid Unicode"),
        (_no_ideal, "got 5"),
        (_leaves, "SystemExit"),
        (_not_async, ""),
    ],
)
def test_an_error_of_a_test_ends_only_that_test(body: Callable[[Stage], Any], said: str, tmp_path: Path) -> None:
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    for path in (first, again):
        transcript = play([dynamic(body, Segment(0, 30, 1, watch=2)), scripted("good", 1)], Echo(), setting(1500), path)
        assert transcript.tests["dynamic-1"].status == "scenario_error"
        assert said in (transcript.tests["dynamic-1"].error or "")
        assert transcript.tests["good-1"].status == "played"
        assert transcript.closed
    assert journal_of(first) == journal_of(again)


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        ({"tokens": -1}, "tokens must be an integer of at least 0, got -1"),
        ({"after_tokens": 1.5}, "after_tokens must be an integer"),
        ({"watch": "ever"}, "watch must be an integer of at least 0, got 'ever'"),
        ({"pause": timedelta.max}, "0 to 3650 days"),
        ({"pause": -timedelta(1)}, "0 to 3650 days"),
        ({"at": 1.5}, "at must be a share of the span"),
    ],
)
def test_an_outline_that_makes_no_sense_is_refused(segment: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=f"segment 0 of an outline: .*{said}"):
        Script(facts={}, outline=[Segment(**({"at": 0, "tokens": 10, "replies": 1} | segment))])


def test_an_agents_error_is_raised_outside_a_group_and_blames_no_test(tmp_path: Path) -> None:
    class Dying(Echo):
        async def reply(self, message: Message) -> Reply:
            if len(self.asked) == 3:
                raise OSError("the line is dead")
            return await super().reply(message)

    path = tmp_path / "journal.jsonl"
    with pytest.raises(AgentError, match="the line is dead"):
        play([scripted("a", 0), scripted("b", 1)], Dying(), setting(1500), path)
    transcript = Transcript.of(read_journal(path))
    assert all(test.status == "open" for test in transcript.tests.values())
    assert not transcript.closed


def test_a_reply_without_text_is_the_agents_error(tmp_path: Path) -> None:
    class Wrong(Echo):
        async def reply(self, message: Message) -> Reply:
            return Reply(17)  # type: ignore[arg-type]

    with pytest.raises(AgentError, match="int instead of text"):
        play([scripted("a", 0)], Wrong(), setting(1500), tmp_path / "journal.jsonl")


@pytest.mark.parametrize(
    "reply",
    [
        Reply("OK.", usage=Usage(10, None, 2)),  # type: ignore[arg-type]
        Reply("OK.", usage=Usage(True, 0, 2)),
        Reply("OK.", usage=Usage(10**13, 0, 2)),
        Reply("OK.", usage=Usage(10, 11, 2)),
        Reply("OK.", cost_usd=-0.01),
        Reply("OK.", cost_usd=nan),
        Reply("OK.", cost_usd={"agent": True}),
        Reply("OK.", cost_usd="0.01"),  # type: ignore[arg-type]
        Reply("OK.", trace={"memory": object()}),
        Reply("OK.", trace={"memory": "half a \ud83d face"}),
    ],
)
def test_a_reply_that_cannot_be_journaled_is_the_agents_error(reply: Reply, tmp_path: Path) -> None:
    class Wrong(Echo):
        async def reply(self, message: Message) -> Reply:
            return reply

    path = tmp_path / "journal.jsonl"
    with pytest.raises(AgentError, match=r"cannot be journaled|expected a Usage|are part of input_tokens|expected dollars"):
        play([scripted("a", 0)], Wrong(), setting(1500), path)
    assert [event.type for event in read_journal(path)][-1] == "message"


def test_turn_ids_name_no_scenario(tmp_path: Path) -> None:
    agent = Echo()
    where = replace(setting(1500, isolated=True), id="jokes-2")
    play([scripted("jokes", 0)], agent, where, tmp_path / "journal.jsonl")
    ids = [message.turn_id for message in agent.asked]
    assert len(set(ids)) == len(ids)
    assert not any("joke" in id for id in ids)


AWARD = {"type": "award", "test": "a-1", "turn": 1, "points": 1, "why": "!"}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("award", lambda lines: [*lines, json.dumps({"seq": len(lines)} | AWARD)]),
        ("text", lambda lines: _forged(lines, asked=False, text="[]")),
        ("tokens", lambda lines: _forged(lines, asked=True, tokens=99)),
    ],
)
def test_a_changed_journal_is_found_by_a_replay(kind: str, change: Callable[[list[str]], list[str]], tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    play([scripted("a", 0)], Echo(), setting(1500), path)
    write_lines(path, map(json.loads, change(path.read_text().splitlines())))
    with pytest.raises(ReplayError, match=kind if kind != "award" else "after the conversation's close"):
        play([scripted("a", 0)], Echo(), setting(1500), path)


def test_the_agent_is_not_asked_where_a_journal_has_something_else_than_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    play([scripted("a", 0)], Echo(), setting(1500), path)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    missing = next(at for at, entry in enumerate(entries) if entry["type"] == "reply" and entry["asked"])
    write_lines(path, [entry | {"seq": at} for at, entry in enumerate(entries[:missing] + entries[missing + 1 :])])
    agent = Echo()
    with pytest.raises(ReplayError, match='type is "reply"; the journal says "'):
        play([scripted("a", 0)], agent, setting(1500), path)
    assert agent.asked == []


def _forged(lines: list[str], *, asked: bool, **fields: object) -> list[str]:
    """Return the lines with fields changed in the last reply that was asked for, or was ready."""
    for at in reversed(range(len(lines))):
        entry = json.loads(lines[at])
        if entry["type"] == "reply" and entry["asked"] is asked:
            return [*lines[:at], json.dumps(entry | fields), *lines[at + 1 :]]
    raise AssertionError("there is no such reply")


@pytest.mark.parametrize("text", ["", "\x00\x1b[31m", "\ud800 alone", "<script>alert(1)</script>", "word " * 200_000, "\u2028\u2029"])
def test_any_reply_can_be_journaled_and_read_back(text: str, tmp_path: Path) -> None:
    class Odd(Echo):
        async def reply(self, message: Message) -> Reply:
            return Reply(text)

    path = tmp_path / "journal.jsonl"
    live = play([scripted("a", 0)], Odd(), setting(1500), path)
    assert Transcript.of(read_journal(path)).tests["a-1"].exchanges == live.tests["a-1"].exchanges


def test_cancelling_a_conversation_leaves_no_task_behind_and_a_readable_journal(tmp_path: Path) -> None:
    class Slow(Echo):
        async def reply(self, message: Message) -> Reply:
            if len(self.asked) == 4:
                scope.cancel()
                await trio.sleep_forever()
            return await super().reply(message)

    path = tmp_path / "journal.jsonl"

    async def run() -> None:
        with scope, Journal(path) as journal:
            await Conversation(setting(1500), [scripted("a", 0), scripted("b", 1)], LiveAgent(Slow()), journal).play()

    scope = trio.CancelScope()
    trio.run(run)
    assert [event.type for event in read_journal(path)][-1] == "message"


def test_a_farewell_is_said_only_if_another_test_of_its_scenario_follows(tmp_path: Path) -> None:
    tests = [scripted("a", 0, number=1, farewell="Forget it."), scripted("a", 1, number=2, farewell="Forget it.")]
    path = tmp_path / "journal.jsonl"
    play(tests, Echo(), setting(1500), path)
    farewells = [entry for entry in journal_of(path) if entry.get("kind") == "farewell"]
    assert [entry["test"] for entry in farewells] == ["a-1"]
    opened = [entry["seq"] for entry in journal_of(path) if entry["type"] == "open" and entry["test"] == "a-2"]
    assert farewells[0]["seq"] < opened[0]


def test_tests_that_share_a_topic_are_never_open_at_the_same_time(tmp_path: Path) -> None:
    topics = frozenset({"the sea"})
    lines = [Line(f"line {i}", asks=i == 3) for i in range(4)]
    tests = [made_test(name, 1, i, lines=lines, topics=topics) for i, name in enumerate("abc")]
    path = tmp_path / "journal.jsonl"
    play(tests, Echo(), setting(1500), path)
    kinds = [entry["type"] for entry in journal_of(path) if entry["type"] in ("open", "end")]
    assert kinds == ["open", "end"] * 3


def test_a_test_that_cannot_fit_is_left_out_with_a_message(tmp_path: Path) -> None:
    big = made_test("big", 1, 0, lines=[Line("word " * 3000, asks=True)])
    why = setting(2000).reason_to_omit(big)
    assert why is not None
    assert "big-1" in why
    assert "2,000" in why
    assert setting(4000).reason_to_omit(big) is None
    assert setting(2000, isolated=True).reason_to_omit(big) is None


def test_an_isolated_test_needs_no_filler(tmp_path: Path) -> None:
    transcript = play([scripted("a", 0)], Echo(), setting(32_000, isolated=True), tmp_path / "journal.jsonl")
    assert transcript.filler_tokens == 0
    assert transcript.tests["a-1"].status == "played"


def _some(seed: int) -> list[Test]:
    return [scripted(name, i, count=3 + i % 4) for i, name in enumerate("abcdefg")]


def test_the_journal_depends_on_the_seed_and_not_on_trios_task_order(tmp_path: Path) -> None:
    journals = []
    for attempt in range(3):
        path = tmp_path / f"{attempt}.jsonl"
        play(_some(0), Babbler(7), setting(3000), path)
        journals.append(journal_of(path))
    assert journals[0] == journals[1] == journals[2]
    play(_some(0), Babbler(8), setting(3000), tmp_path / "other.jsonl")
    assert journal_of(tmp_path / "other.jsonl") != journals[0]


def test_a_replayed_journal_has_the_same_bytes_and_then_continues_live(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    play(_some(0), Babbler(7), setting(3000), whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    random = Random(0)
    for cut in random.sample(range(len(lines)), 12):
        part = tmp_path / f"part-{cut}.jsonl"
        torn = lines[cut][: len(lines[cut]) // 2]
        part.write_bytes(b"".join(lines[:cut]) + torn)
        play(_some(0), Babbler(7), setting(3000), part)
        assert journal_of(part) == journal_of(whole)


def test_a_journal_of_another_conversation_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    play(_some(0), Babbler(7), setting(3000), path)
    with pytest.raises(ReplayError, match=r"line 1: .*span is 4000; the journal says 3000"):
        play(_some(0), Babbler(7), setting(4000), path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [lines[0], b"{}\n", *lines[2:]], "damaged at line 2: it has no checksum"),
        (lambda lines: [lines[0], b"\xff\n", *lines[2:]], "damaged at line 2: it has no checksum"),
        (
            lambda lines: [lines[0], lines[1].replace(b'"turn":0', b'"turn":1'), *lines[2:]],
            "damaged at line 2: its checksum does not match",
        ),
        (lambda lines: [lines[0], *lines[2:]], "damaged at line 2: its checksum does not match"),
        (lambda lines: [*lines[:2], lines[2].replace(b'"latency_s":', b'"latency_s":-'), *lines[3:]], "damaged at line 3: not an event"),
    ],
)
def test_damage_is_reported_with_its_line(damage: Callable[[list[bytes]], list[bytes]], said: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    play([scripted("a", 0)], Echo(), setting(1500), path)
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(JournalError, match=said):
        list(read_journal(path))


def test_the_open_event_has_the_whole_definition(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    play([scripted("a", 0)], Echo(), setting(1500), path)
    opened = next(event for event in read_journal(path) if isinstance(event, events.Open))
    assert [line["text"] for line in opened.lines] == [f"a says line {i}." for i in range(4)]
