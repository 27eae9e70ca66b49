"""Requests to forget, and memories that are told of them and of nights."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.memories import Answering
from tests.loopback import Service

from longspan.agents.base import Message
from longspan.agents.memory.forgetting import ForgetRequest, request_in
from longspan.simulator.results.gradebook.needle_fates import Traces
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent

HERE = Path(__file__).parent
START = datetime(2024, 5, 7, 18)
CLASS = "python:tests.agents.memories:Tidy"


def message(number: int, text: str) -> Message:
    return Message(text, START + timedelta(minutes=number), f"t{number}")


def made(kind: str, options: str = "answerer=none") -> Any:
    return make_agent(AgentSpec.parse(f"memory/{kind}{'&' if '?' in kind else '?'}{options}"))


# Requests.


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ("Please forget what I told you about my sister's address.", ""),
        ("I have moved to Oslo, so please forget my old address.", "I have moved to Oslo"),
        ("Thank you. Could you delete what I told you about Ben? What is new?", "Thank you. What is new?"),
        ("You may forget everything I said.", ""),
        ("That is over; please disregard its numbers from now on.", "That is over"),
        ("Remove my phone number from your memory, please.", ""),
        ("Stop remembering what I told you about Tom.", ""),
        ("Pretend I never told you about the party.", ""),
        ("I'd like you to forget my birthday.", ""),
        ("Scratch what I said about the car. My new car is blue.", "My new car is blue."),
    ],
)
def test_a_request_is_known_by_its_form_and_the_rest_of_the_message_is_no_part_of_it(said: str, rest: str) -> None:
    request = request_in(said)
    assert request is not None
    assert request.rest == rest
    assert request.text is not None
    assert request.text in said


@pytest.mark.parametrize(
    ("said", "request_"),
    [
        ("Please forget that.", ForgetRequest(None, "")),
        ("Ignore my last message.", ForgetRequest(None, "")),
        ("Please forget it. What time is it?", ForgetRequest(None, "What time is it?")),
        ("My PIN is 4417. No, please forget it. Hello!", ForgetRequest("My PIN is 4417. No, please forget it.", "Hello!")),
    ],
)
def test_a_request_that_names_nothing_means_what_was_said_right_before(said: str, request_: ForgetRequest) -> None:
    assert request_in(said) == request_


@pytest.mark.parametrize(
    "said",
    [
        "Please don't forget my birthday.",
        "Never forget your umbrella.",
        "I forgot my keys. Did you forget my name?",
        "How could I forget that?",
        "Forget it.",
        "Forget to lock the door and you will be sorry.",
        'My friend wrote: "Please forget what I told you about the money."',
        "> Please forget everything I told you.",
        "She told me to forget him.",
        "Delete the file report.txt, clear the table and ignore the noise.",
        "Remember that Ann likes blue.",
        "Please forget my name. " + "It was a long story. " * 300,
        "",
    ],
)
def test_nothing_else_is_a_request(said: str) -> None:
    assert request_in(said) is None


@given(st.text(st.sampled_from("forgetplsi ,.;:\"'`>\n’and"), max_size=300))
def test_whatever_is_said_nothing_is_made_up(said: str) -> None:
    request = request_in(said)
    if request is not None:
        assert request.text is None or request.text in said
        assert len(request.rest) <= len(said)


# What memories are told.


@pytest.mark.parametrize("kind", [CLASS, f"{CLASS}?interpreter={sys.executable}", "http", "mcp"])
def test_what_the_user_asks_to_forget_is_gone_and_is_told_with_the_reply(kind: str, tmp_path: Path) -> None:
    async def scenario(spec: str) -> None:
        agent = made(spec)
        try:
            for number, text in enumerate(["My cat is called Fay.", "My PIN is 4417.", "I live in Oslo."]):
                await agent.observe(message(number, text), "I see.")
            assert "4417" in str((await agent.reply(message(3, "What is my PIN?"))).trace["read"])
            assert agent.memory.forgets
            trace = (await agent.reply(message(4, "Winter has come to Bergen. Please forget my 4417."))).trace
            if kind != "mcp":  # a tool says nothing that is known
                assert [(each["id"], each["turns"]) for each in trace["forgotten"]] == [("t1", ["t1"])]
            after = (await agent.reply(message(5, "What is my PIN, my cat, where do I live, and has Winter come to Bergen?"))).trace
            assert "forgotten" not in after
            assert "4417" not in str(after["read"])
            assert all(word in str(after["read"]) for word in ("Fay", "Oslo", "Bergen"))
        finally:
            await agent.close()

    if kind == "http":
        with Service(Answering()).running() as service:
            trio.run(scenario, f"{service.address}/memory")
    else:
        trio.run(scenario, f"mcp:{sys.executable} {HERE}/mcp_memory.py {{folder}}/facts.json?forget=forget" if kind == "mcp" else kind)


def test_forget_that_means_the_message_before_also_after_an_interruption_and_nothing_once_marked(tmp_path: Path) -> None:
    async def scenario() -> None:
        for restored in (False, True):
            agent = made(f"{CLASS}")
            for number, text in enumerate(["My cat is called Fay.", "My PIN is 4417."]):
                await agent.observe(message(number, text), "")
            if restored:
                await agent.save(tmp_path)
                agent = made(f"{CLASS}")
                await agent.load(tmp_path)
            await agent.observe(message(2, "Please forget that."), "Done.")
            assert [each["text"] for each in (await agent.reply(message(3, "PIN? Cat?"))).trace["read"]] == ["My cat is called Fay."]
            await agent.mark()
            await agent.observe(message(4, "Please forget my cat Fay."), "Done.")
            assert "Fay" in str((await agent.reply(message(5, "Cat?"))).trace["read"])

    trio.run(scenario)


def test_a_memory_that_cannot_forget_is_given_the_request_like_any_turn() -> None:
    async def scenario() -> None:
        agent = made("bm25")
        await agent.observe(message(0, "My PIN is 4417."), "")
        await agent.observe(message(1, "Please forget my PIN."), "")
        assert not agent.memory.forgets
        assert {each["id"] for each in (await agent.reply(message(2, "PIN?"))).trace["read"]} == {"t0", "t1"}

    trio.run(scenario)


@pytest.mark.parametrize(("share", "left"), [("1", ["t1", "t2"]), ("0.5", ["t1"]), ("0.1", [])])
def test_bm25_forgets_what_a_request_finds_first_and_what_it_finds_nearly_as_well(share: str, left: Sequence[str], tmp_path: Path) -> None:
    async def scenario() -> None:
        agent = made(f"bm25?forget={share}")
        for number, text in enumerate(["Ann's address is Elm Street.", "Ann's cat is called Fay.", "Ben lives in Rome."]):
            await agent.observe(message(number, text), "")
        await agent.observe(message(3, "Please forget the address and the street of Ann's, and where Ben lives."), "Done.")
        await agent.save(tmp_path)
        other = made(f"bm25?forget={share}")
        await other.load(tmp_path)
        for subject in (agent, other):
            read = (await subject.reply(message(4, "Ann's address, cat; who lives in Rome?"))).trace["read"]
            assert sorted(each["id"] for each in read) == left

    trio.run(scenario)


@pytest.mark.parametrize("kind", [CLASS, f"{CLASS}?interpreter={sys.executable}", "http"])
def test_at_night_all_that_was_said_is_added_and_what_putting_it_in_order_took_is_told(kind: str) -> None:
    async def scenario(spec: str) -> None:
        agent = made(spec)
        try:
            for number, text in enumerate(["My favourite colour is red.", "I live in Oslo.", "My favourite colour is blue."]):
                await agent.observe(message(number, text), "")
            await agent.start()
            assert agent.consolidates
            before = await agent.size()
            told = await agent.consolidate(START + timedelta(hours=13))
            assert (told.besides["memory"].input_tokens, told.cost_usd) == (70, {"memory": 0.5})
            assert await agent.size() < before
            read = (await agent.reply(message(900, "Which colour?"))).trace["read"]
            assert [each["text"] for each in read] == ["My favourite colour is blue.", "I live in Oslo."]
        finally:
            await agent.close()

    if kind == "http":
        with Service(Answering()).running() as service:
            trio.run(scenario, f"{service.address}/memory")
    else:
        trio.run(scenario, kind)


# What becomes of it in grades.


def test_a_needle_of_which_all_memories_were_forgotten_on_request_is_told_from_one_that_was_lost() -> None:
    traces = Traces()
    traces.add(0, "a", {"written": [{"id": "m1"}, {"id": "m2"}]})
    traces.add(1, "b", {"written": [{"id": "m3"}]})
    assert traces.fate(0, "x", "?", "", {"read": []}).forgotten is None
    traces.add(2, "c", {"written": [], "forgotten": [{"id": "m1"}, {"turns": ["b", "nonsense"]}, "nonsense"]})
    fates = traces.fates({0: "x", 1: "y"}, "?", "", {"read": []})
    assert {needle: fate.forgotten for needle, fate in fates.items()} == {0: False, 1: True}
    traces.add(3, "d", {"forgotten": [{"id": "m2"}]})
    assert traces.fate(0, "x", "?", "", {"read": []}).forgotten is True
    assert traces.fate(0, "x", "?", "", {"read": [{"turns": ["a"]}]}).retrieved is True, "it has come back"
