"""What `longspan check` says of traces, and of a turn that is sent twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from longspan.agents.base import AgentError, Message, Reply
from longspan.simulator.running.preflight import checkup as checkup_module
from longspan.simulator.running.preflight.checkup import Finding, check_agent
from longspan.simulator.suite.agent_spec import AgentSpec


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact that is not found at once is not waited for."""
    monkeypatch.setattr("longspan.simulator.subject.lag.MOST_SECONDS", 0.1)


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


class Knows(Plain):
    """Replies with what it was told."""

    def reply(self, message: Message) -> Any:
        known = " ".join(text for text in self.log.values() if not text.endswith("?"))
        Plain.reply(self, message)
        return known or "Nothing."


class RewindsNothing(Knows):
    def mark(self) -> None:
        pass

    def rewind(self) -> None:
        pass


class Rewinds(Knows):
    def mark(self) -> None:
        self.marked = dict(self.log)

    def rewind(self) -> None:
        self.log = dict(self.marked)


class LoadsMore(Knows):
    def save(self, folder: Path) -> None:
        (folder / "log.json").write_text(json.dumps(self.log))

    def load(self, folder: Path) -> None:
        self.log |= json.loads((folder / "log.json").read_text())


class Loads(LoadsMore):
    def load(self, folder: Path) -> None:
        self.log = json.loads((folder / "log.json").read_text())


class CountsQuestions(Loads, Rewinds):
    asked = 0

    def reply(self, message: Message) -> Any:
        self.asked += 1
        return super().reply(message)

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "asked").write_text(str(self.asked))


class SavesTheTime(Loads, Rewinds):
    saved = 0

    def save(self, folder: Path) -> None:
        super().save(folder)
        SavesTheTime.saved += 1
        (folder / "saved").write_text(str(SavesTheTime.saved))


class SmallWindow(Plain):
    def reply(self, message: Message) -> Any:
        if len(message.text) > 40_000:
            raise AgentError("a window of 8,192 tokens: set a larger n_ctx=")
        return "OK."


class NoWindow(Plain):
    def reply(self, message: Message) -> Any:
        if len(message.text) > 4_000:
            raise AgentError("a window of 900 tokens: set a larger n_ctx=")
        return "OK."


def findings(named: type[Plain] | str, clock: MockClock | None = None) -> dict[str, Finding]:
    spec = named if isinstance(named, str) else f"python:{__name__}:{named.__name__}"

    async def collect() -> dict[str, Finding]:
        return {finding.check: finding async for finding in check_agent(AgentSpec.parse(spec))}

    return trio.run(collect, clock=clock)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("cls", "verdict", "part"),
    [
        (Plain, "good", "about 20,000 tokens in one message"),
        (
            SmallWindow,
            "note",
            "of 20,000, as in tests with documents, would end the conversation: ",
        ),
        (NoWindow, "bad", "a window of 900 tokens: set a larger n_ctx="),
    ],
)
def test_a_window_too_small_for_what_most_suites_never_send_is_no_fault(cls: type[Plain], verdict: str, part: str) -> None:
    found = findings(cls)
    assert found["large message"].verdict == verdict
    assert part in found["large message"].what
    assert found["reset"].verdict == "good", "the rest is checked nevertheless"


@pytest.mark.parametrize(
    ("named", "verdict", "part"),
    [
        (Rewinds, "good", "`rewind` restores the earlier state"),
        (Loads, "good", "loading it again restores the earlier state"),
        (SavesTheTime, "good", "`rewind` restores the earlier state"),
        (RewindsNothing, "bad", "it remembers turns from before `rewind`: questions about a history are not independent"),
        (LoadsMore, "bad", "it remembers turns from before loading it again"),
        (CountsQuestions, "bad", "changes its snapshot (asked), and `rewind` does not undo that"),
        ("memory/python:tests.agents.memories:Refreshing?answerer=none", "good", "`rewind` restores the earlier state"),
        ("memory/python:tests.agents.memories:Logging?answerer=none", "good", "`rewind` restores the earlier state"),
        (
            "memory/python:tests.agents.memories:SaysRefreshing?answerer=none",
            "bad",
            "its snapshot (memory/inner/kept.json), and `rewind` does not undo",
        ),
        ("memory/python:tests.agents.memories:SaysLogging?answerer=none", "bad", "it remembers turns from before `rewind`"),
        (Plain, None, ""),
    ],
)
def test_what_an_agent_cannot_take_back_is_told(named: type[Plain] | str, verdict: str | None, part: str) -> None:
    finding = findings(named).get("going back")
    assert (finding.verdict if finding else None) == verdict
    assert part in (finding.what if finding else "")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("cls", "verdict", "part"),
    [
        (Plain, "note", "no traces"),
        (Tells, "good", "reports written, read, recent"),
        (Unreadable, "note", "cannot be read: written.0: must be an object"),
        (Numbered, "note", "names '7', which is not a turn_id it has received"),
        (Invented, "note", "read a memory with the id 'm9', but wrote none; `turns` names the turns"),
        (Misspelt, "note", "has none of written, read, recent, forgotten, until, answers, k, beyond_k, prompt_tokens, calls"),
    ],
)
def test_a_trace_that_cannot_be_read_is_told(cls: type[Plain], verdict: str, part: str) -> None:
    finding = findings(cls)["trace"]
    assert finding.verdict == verdict
    assert re.search(re.escape(part), finding.what)


def test_a_lag_that_is_not_known_in_time_is_told_and_the_agent_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MockClock()

    async def stuck(*_: Any) -> None:
        clock.jump(checkup_module.DEADLINE)
        await trio.sleep_forever()

    monkeypatch.setattr(checkup_module, "measure_lag", stuck)
    found = findings("memory/bm25?answerer=none", clock)
    assert found["lag"] == Finding("lag", "bad", "exceeded the 55 s for all checks")
    assert [name for name, finding in found.items() if finding.verdict == "bad"] == ["lag"]
    assert "cost of filler" in found, "what takes no time is told"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("cls", "verdict", "part"),
    [
        (Appends, "note", "is stored twice: its snapshot has the message twice"),
        (WritesAnew, "note", "is stored twice: its trace writes 'm3' again"),
        (Keyed, "good", "gets the same reply"),
        (Tells, "good", "gets the same reply"),
    ],
)
def test_a_turn_that_is_stored_twice_is_told(cls: type[Plain], verdict: str, part: str) -> None:
    finding = findings(cls)["repeated turn id"]
    assert finding.verdict == verdict
    assert part in finding.what
