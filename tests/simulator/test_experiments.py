"""Experiments: what is answered without the needles, and with the last tokens alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import trio

from longspan.agents.base import BaseAgent, Reply
from longspan.simulator.grading.grades import Result
from longspan.simulator.messages import Message
from longspan.simulator.planning import plan
from longspan.simulator.record import Grade, Record
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import play
from longspan.simulator.scenario import Scenario
from longspan.simulator.script import Line, Script
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import Suite, load_suite
from longspan.simulator.tokens import Tokenizer

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
        return Script(facts={"code": code(depot)}, lines=[told, Line(f"What is the code of depot {depot}?", ideal=code(depot), asks=True)])

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


class Deaf(Unsaved):
    """It cannot be shown a turn either."""

    observes = False


def codes(agent: str, tests: int = 6, **more: Any) -> RunSettings:
    suite = Suite(name="codes", tests=tests, scenarios={f"{HERE}:Codes": {}})
    return RunSettings(suite=suite, span=2_000, seed=1, agent=agent if agent.islower() else f"{HERE}:{agent}", **more)


def settings(agent: str = "notebook", **more: Any) -> RunSettings:
    suite = load_suite("ltm").changed([], [], ["colours", "jokes", "name_list", "sally_anne"], more.pop("tests", 2))
    return RunSettings(suite=suite, span=2_000, seed=3, agent=agent, **more)


def played(out: Path, agent: str = "notebook", **more: Any) -> tuple[RunFolder, Result]:
    (outcome,) = trio.run(lambda: play([plan(settings(agent, **more), out)]))
    assert outcome.error is None
    assert outcome.result is not None
    return RunFolder(outcome.folder), outcome.result


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
    (outcome,) = trio.run(lambda: play([plan(codes(agent, twins=6), tmp_path)]))
    assert outcome.result is not None
    twins = outcome.result.twins
    assert twins is not None
    assert {(row.score, row.score_without) for row in twins.tests} == {(score, without)}
    assert twins.share == (None if not score else score - without)
    assert (twins.score, twins.score_without, twins.paired) == (score, without, 6)
