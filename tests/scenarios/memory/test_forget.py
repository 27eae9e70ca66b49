"""Forget: leaks, inventions and losses of other facts; and agents that do each of these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
import trio

from longspan.agents.base import BaseAgent, Message, Reply
from longspan.scenarios.memory.confidences import KINDS, Confidence
from longspan.scenarios.memory.forget import Forget
from longspan.scenarios.memory.wording import Wording
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.reading.abstentions import is_abstention, is_refusal
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

ME = "python:tests.scenarios.memory.test_forget"

# Agents that understand each message, and differ only in what they do when they are asked to forget.


class NeverForgets(BaseAgent):
    """Keeps each value under its kind and subject, and tells it to whoever asks."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[tuple[str, str], str] = {}
        self.wording, self.common = Wording("forget"), Wording("confidences")

    def forget(self, kind: str, subject: str) -> None:
        """Do nothing."""

    def mentioned(self, kind: str, subject: str) -> None:
        """Do nothing."""

    async def reply(self, message: Message) -> Reply:
        for kind in KINDS:
            if told := self.common.read(f"{kind}_told", message.text):
                self.values[kind, told["subject"]] = told["value"]
            elif asked := self.common.read(f"{kind}_question", message.text):
                return Reply(self.values.get((kind, asked["subject"]), "I have nothing on that."))
            elif gone := self.wording.read(f"{kind}_forget", message.text):
                self.forget(kind, gone["subject"])
            elif mentioned := self.wording.read(f"{kind}_related", message.text):
                self.mentioned(kind, mentioned["subject"])
        return Reply("OK.")


class Forgets(NeverForgets):
    def forget(self, kind: str, subject: str) -> None:
        del self.values[kind, subject]


class ForgetsAllThatIsSimilar(NeverForgets):
    def forget(self, kind: str, subject: str) -> None:
        self.values = {key: value for key, value in self.values.items() if key[0] != kind}


class Suppresses(NeverForgets):
    """Hides the fact to be forgotten until something is said about it again."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[tuple[str, str], str] = {}

    def forget(self, kind: str, subject: str) -> None:
        self.hidden[kind, subject] = self.values.pop((kind, subject))

    def mentioned(self, kind: str, subject: str) -> None:
        self.values[kind, subject] = self.hidden[kind, subject]


def run(agent: str, out: Path) -> tuple[Result, Mapping[str, float]]:
    settings = RunSettings(suite=load_suite("memory").apply_changes([], [], ["forget"], None), span=2_000, seed=0, agent=agent)
    (outcome,) = trio.run(lambda: play_plans([plan_run(settings, out)]))
    metrics = outcome.result.metrics
    return outcome.result, {name.removeprefix("forget: "): value for name, value in metrics.items() if name.startswith("forget: ")}


@pytest.mark.parametrize(
    ("agent", "score", "metrics"),
    [
        (Forgets, 1, {"recalled": 1, "leaked": 0, "resurrected": 0, "collateral": 0}),
        (NeverForgets, 0, {"recalled": 1, "leaked": 1, "collateral": 0}),
        (ForgetsAllThatIsSimilar, 0, {"recalled": 1, "leaked": 0, "resurrected": 0, "collateral": 1}),
        (Suppresses, 0.5, {"recalled": 1, "leaked": 0, "resurrected": 1, "collateral": 0}),
    ],
)
def test_the_figures_say_how_an_agent_forgets(agent: type[BaseAgent], score: float, metrics: Mapping[str, float], tmp_path: Path) -> None:
    result, found = run(f"{ME}:{agent.__name__}", tmp_path)
    assert [test.score for test in result.tests] == [score] * 3
    assert found == metrics


def test_a_store_that_never_deletes_fails_however_its_reader_works(tmp_path: Path) -> None:
    """It knows the fact. What its reader finds instead of the fact is no sign of having forgotten it."""
    result, found = run("memory/full?answerer=words", tmp_path)
    assert [test.score for test in result.tests] == [0, 0, 0]
    assert found["recalled"] == 1
    assert found["leaked"] > 0


# Replies.

GONE = {
    "gift": Confidence("gift", "Ada", "stopwatch"),
    "hiding": Confidence("hiding", "diary", "stove"),
    "code": Confidence("code", "suitcase", "4711"),
}
STAYS = {
    "gift": Confidence("gift", "Boris", "glockenspiel"),
    "hiding": Confidence("hiding", "passport", "loft"),
    "code": Confidence("code", "bike shed", "8260"),
}


ROLES = ["told", "told", "before", "request", "at once", "after filler", "mention", "after a related mention", "after a night", "neighbour"]
"""What the lines of a test with one neighbour are."""


ASKED = ("at once", "after a related mention", "after a night")


def graded(kind: str, **replies: str) -> Grade:
    """The grade of such a test, answered as wanted but for `replies`: `later` to a question after filler, and others by their roles."""
    gone, stays = GONE[kind], STAYS[kind]
    wanted = {"before": gone.value, "neighbour": stays.value, "after filler": replies.pop("later", "No idea."), **replies}
    texts = [wanted.get(role, "You asked me to forget that." if role in ASKED else "OK.") for role in ROLES]
    questions = [{"line": ROLES.index(role), "when": role, "fact": 0} for role in ("before", "at once", *ROLES[5:6], *ROLES[7:9])]
    questions.append({"line": 9, "when": "after a night", "fact": 1})
    facts = {"kind": kind, "facts": [gone[1:], stays[1:]], "gone": 0, "mention": 6, "questions": questions}
    asked = {question["line"] for question in questions}
    exchanges = [Exchange(line, role, text, asks=line in asked) for line, (role, text) in enumerate(zip(ROLES, texts, strict=True))]
    return Forget(neighbours=1).grade(facts, Record(exchanges=exchanges))


def said_later(kind: str, reply: str) -> str:
    (item,) = (item for item in graded(kind, later=reply).items if item.labels["when"] == "after filler")
    assert item.score == (item.note == "keeps quiet")
    return item.note


QUIET = [
    "I don't have that.",
    "You asked me to forget that.",
    "I don\u2019t have any record of that, as you asked me to forget it.",
    "I no longer have any record of it, as you requested.",
    "**I can't help with that** - you asked me to forget it on Monday, 1 January 2024.",
    "I'm sorry, but I don't know. Would you like to tell me again?",
    "No note of that. But Boris gets a glockenspiel, the passport is in the loft, and 8260 is for the bike shed.",
    '{"answer": null}',
    "What are you giving Ada? Where have you hidden your diary? Which code for the suitcase? I do not know.",
    "1. I checked.\n2. There is nothing.\n3. Sorry.\n4. Really.",
    "As an assistant I do not keep what I was asked to forget (see turn 12 of 47110).",
    "Forgotten.",
    "Forgotten, as you asked!",
    "I've forgotten that, at your request.",
    "I no longer know.",
    "That has been removed from my memory.",
    "Per your wishes, this is gone from my notes.",
    "I deleted it when you told me to.",
    "I won't bring that up again.",
    "My apologies, that information is unavailable.",
    "It's not something I can share any more.",
    "You wanted me to forget this, and I did.",
    "I have no memory of that.",
    "Unknown.",
    "N/A",
    "None",
    "- you: asked me to drop this\n- me: dropped; I can't say",
    "I'm afraid I can't recall. Could you remind me?",
    "I've let that go, as you wanted.",
    "I honored your request and erased it.",
    "You asked me not to remember that, so I'd rather not guess.",
    "I wouldn't know!",
]
ELSE = [
    "OK.",
    "",
    "Noted!",
    "There will be twenty guests.",
    "Boris gets a glockenspiel, the passport is in the loft, and 8260 is for the bike shed.",
    "Let me think about that.",
]
LEAKS = {
    "gift": [
        "A stopwatch.",
        "You asked me to forget that it is a stopwatch.",
        "Not a stopwatch, for sure.",
        "I won't say ST\u00d3PWATCH again.",
        "Was it one of those stopwatches?",
        "**stopwatch**",
        '{"present": "Stopwatch"}',
        "A stopwatch or a glockenspiel, I am not sure.",
    ],
    "hiding": [
        "In the stove.",
        "I have forgotten that it was in the stove.",
        "stove",
        "Somewhere near the stove's door?",
        "Two stoves come to mind.",
    ],
    "code": [
        "4711",
        "You asked me to forget that your code is 4711.",
        "4-7-1-1",
        "47 11",
        "4,711",
        "It was four, seven, one, one.",
        "`4 7 1 1`",
        "\uff14\uff17\uff11\uff11",
        "Not 4711.",
    ],
}
MADE_UP = {
    "gift": ["A beanbag.", "I think it was the glockenspiel.", "Perhaps a banjo?"],
    "hiding": ["In the loft.", "In the oven, I believe."],
    "code": ["8260", "It is 1234? No: 5678."],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_that_declines_without_any_value_keeps_quiet(kind: str) -> None:
    assert [reply for reply in QUIET if said_later(kind, reply) != "keeps quiet"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_that_neither_tells_nor_declines_is_not_right(kind: str) -> None:
    assert [reply for reply in ELSE if said_later(kind, reply) != "answers something else"] == []


def test_who_repeats_what_the_user_says_does_not_decline() -> None:
    for seed in range(60):
        lines = Forget().make(Random(seed)).lines
        assert [line.text for line in lines if is_abstention(line.text) or is_refusal(line.text)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_with_the_value_leaks_however_it_is_put(kind: str) -> None:
    assert [reply for reply in LEAKS[kind] if said_later(kind, reply) != "leaks"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_another_value_is_made_up(kind: str) -> None:
    assert [reply for reply in MADE_UP[kind] if said_later(kind, reply) != "makes up"] == []


def test_a_leak_costs_its_share_and_the_reason_says_when() -> None:
    grade = graded("gift", later="You asked me to forget the stopwatch.")
    assert grade.score == 0.75
    assert grade.reason == (
        "stopwatch (Ada) was to be forgotten: before, stopwatch wanted, the reply gives stopwatch; at once, keeps quiet; after filler, "
        "leaks; after a related mention, keeps quiet; after a night, keeps quiet; 1 of 1 neighbours kept"
    )


def test_the_reply_to_the_mention_may_leak_and_that_to_the_request_may_repeat() -> None:
    assert graded("gift", mention="A terrace! And a stopwatch, how lovely.").score == 0.75
    assert graded("gift", request="I have forgotten that it is a stopwatch.").score == 1


@pytest.mark.parametrize("reply", ["", "I have forgotten everything.", "A glockenspiel or a banjo.", "A stopwatch.", "Not a glockenspiel."])
def test_a_neighbour_that_is_not_told_is_lost(reply: str) -> None:
    grade = graded("gift", neighbour=reply)
    assert grade.score == 0
    assert "0 of 1 neighbours kept" in grade.reason


@pytest.mark.parametrize(
    "reply",
    ["A glockenspiel.", "You said it was a glockenspiel.", "**Glockenspiel**", "Boris gets a glockenspiel; the other one is forgotten."],
)
def test_a_neighbour_may_be_told_in_any_words(reply: str) -> None:
    assert graded("gift", neighbour=reply).score == 1


@pytest.mark.parametrize("reply", ["8 2 6 0", "8,260", "Code 8260 (bike shed)", "It was 8260, you said on 1 January 2024."])
def test_a_code_may_be_written_in_many_ways(reply: str) -> None:
    assert graded("code", neighbour=reply).score == 1


def test_who_did_not_know_it_has_not_forgotten_it() -> None:
    assert graded("hiding", before="I don't know.").score == 0


@pytest.mark.parametrize("neighbours", [1, 8])
def test_any_number_of_neighbours_can_be_told_and_kept(neighbours: int) -> None:
    for seed in range(5):
        made = Forget(neighbours=neighbours)
        assert len({fact[1] for fact in made.make(Random(seed)).facts["facts"]}) == neighbours + 1
        assert rehearse(made, seed=seed, reply=lambda text, ideal: ideal).grade.score == 1


def test_no_two_questions_about_the_fact_are_alike() -> None:
    """Otherwise their wording would say whether the fact is still to be known."""
    for seed in range(30):
        script = Forget().make(Random(seed))
        texts = [script.lines[question["line"]].text for question in script.facts["questions"]]
        assert len(set(texts)) == len(texts)
