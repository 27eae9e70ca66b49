"""What `longspan check` says of traces, and of a turn that is sent twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio

from longspan.agents.base import Message, Reply
from longspan.simulator.agent_spec import AgentSpec
from longspan.simulator.tools.checkup import Finding, checkup


class Plain:
    def __init__(self) -> None:
        self.log: dict[str, str] = {}

    def reply(self, message: Message) -> Any:
        self.log[message.turn_id] = message.text
        return "OK."


class Appends(Plain):
    def reply(self, message: Message) -> Any:
        self.log[str(len(self.log))] = message.text
        return "OK."

    def save(self, folder: Path) -> None:
        (folder / "log").write_text(repr(self.log))

    def load(self, folder: Path) -> None:
        pass


class Keyed(Appends):
    def reply(self, message: Message) -> Any:
        return Plain.reply(self, message)


class WritesAnew(Plain):
    def reply(self, message: Message) -> Any:
        self.log[str(len(self.log))] = message.text
        return {"text": "OK.", "trace": {"written": [{"id": f"m{len(self.log)}"}], "prompt_tokens": 7}}


class Tells(Plain):
    def reply(self, message: Message) -> Any:
        turn = message.turn_id
        trace = {"written": [{"id": f"m-{turn}"}], "read": [{"id": f"m-{turn}"}, {"turns": [turn]}], "recent": {"since": turn}, "more": 1}
        return Reply("OK.", trace=trace)


class Unreadable(Plain):
    def reply(self, message: Message) -> Any:
        return Reply("OK.", trace={"written": ["m1"]})


class Numbered(Plain):
    def reply(self, message: Message) -> Any:
        return Reply("OK.", trace={"written": [{"id": "m1", "turn": "7"}]})


class Invented(Plain):
    def reply(self, message: Message) -> Any:
        return Reply("OK.", trace={"read": [{"id": "m9"}]})


class Misspelt(Plain):
    def reply(self, message: Message) -> Any:
        return Reply("OK.", trace={"writen": []})


def findings(cls: type[Plain]) -> dict[str, Finding]:
    async def collect() -> dict[str, Finding]:
        return {finding.check: finding async for finding in checkup(AgentSpec.parse(f"python:{__name__}:{cls.__name__}"))}

    return trio.run(collect)


@pytest.mark.parametrize(
    ("cls", "verdict", "part"),
    [
        (Plain, "note", "tells none"),
        (Tells, "good", "tells written, read, recent"),
        (Unreadable, "note", "cannot be read: written.0: must be an object"),
        (Numbered, "note", "names '7', which is no turn_id that it was sent"),
        (Invented, "note", "read a memory with the id 'm9', and wrote none; `turns` names the turns"),
        (Misspelt, "note", "has none of written, read, recent, forgotten, until, answers, prompt_tokens, calls"),
    ],
)
def test_a_trace_that_cannot_be_read_is_told(cls: type[Plain], verdict: str, part: str) -> None:
    finding = findings(cls)["trace"]
    assert finding.verdict == verdict
    assert re.search(re.escape(part), finding.what)


@pytest.mark.parametrize(
    ("cls", "verdict", "part"),
    [
        (Appends, "note", "is stored twice: its snapshot has the message once more"),
        (WritesAnew, "note", "is stored twice: its trace writes 'm3' anew"),
        (Keyed, "good", "gets the same reply"),
        (Tells, "good", "gets the same reply"),
    ],
)
def test_a_turn_that_is_stored_twice_is_told(cls: type[Plain], verdict: str, part: str) -> None:
    finding = findings(cls)["repeated turn id"]
    assert finding.verdict == verdict
    assert part in finding.what
