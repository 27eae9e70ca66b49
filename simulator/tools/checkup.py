"""Whether an agent is fit for a long run: a minute of small trials before any real money is spent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple, final

import trio

from longspan.simulator.agent import Agent, IdealReplyAgent, close, has_snapshots, observes
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.errors import LongspanError, one_line
from longspan.simulator.messages import Message, Reply

__all__ = ["Finding", "checkup"]

DEADLINE: Final = 55.0
"""Seconds that all trials together may take."""

LARGE: Final = 20_000
"""Tokens of the large message."""


class Finding(NamedTuple):
    """What one trial showed. "bad" means that a long run would break; "note" is worth knowing beforehand."""

    trial: str
    verdict: Literal["good", "note", "bad"]
    what: str


@final
class _Subject:
    """The agent being checked, and a count of its turns."""

    def __init__(self, spec: AgentSpec) -> None:
        self.agent: Agent = make_agent(spec)
        self._prompt = self.agent.prompt if spec.kind == "oracle" and isinstance(self.agent, IdealReplyAgent) else None
        self._turn = 0

    def message(self, text: str, later: timedelta = timedelta(0)) -> Message:
        self._turn += 1
        return Message(text, DEFAULT_START + self._turn * DEFAULT_PACE + later, f"check/{self._turn}")

    async def reply(self, message: Message) -> Reply:
        if self._prompt is not None:
            self._prompt("OK.")
        reply = await self.agent.reply(message)
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            raise TypeError(f"reply returned {type(reply).__name__}, not a Reply with text")
        return reply


async def checkup(spec: AgentSpec) -> AsyncIterator[Finding]:
    """Try the agent that `spec` names, and yield what each trial shows, as it is known.

    Raises InputError where it cannot be made. A trial that fails is a finding, not an error.
    """
    subject = _Subject(spec)
    try:
        async for finding in _trials(subject, spec):
            yield finding
    finally:
        await close(subject.agent)


async def _trials(subject: _Subject, spec: AgentSpec) -> AsyncIterator[Finding]:
    trials: list[tuple[str, Callable[[_Subject, AgentSpec], Awaitable[Finding]]]] = [
        ("reply", _reply),
        ("repeated turn id", _repeated),
        ("observe", _observe),
        ("virtual time", _time),
        ("large message", _large),
        ("save and load", _snapshot),
        ("reset", _reset),
    ]
    end = trio.current_time() + DEADLINE
    for name, trial in trials:
        finding = Finding(name, "bad", f"took longer than the {DEADLINE:.0f} s that the whole check may take")
        with trio.move_on_at(end):
            try:
                finding = await trial(subject, spec)
            except LongspanError as error:
                finding = Finding(name, "bad", str(error))
            except Exception as error:
                finding = Finding(name, "bad", one_line(error))
        yield finding
        if finding.verdict == "bad" and (name == "reply" or trio.current_time() >= end):
            return
    yield _resume_cost(subject.agent)
    yield _filler_cost(subject.agent)


async def _reply(subject: _Subject, _: AgentSpec) -> Finding:
    began = time.monotonic()
    reply = await subject.reply(subject.message("Hello. Reply with a single word."))
    took = time.monotonic() - began
    if not reply.text.strip():
        return Finding("reply", "bad", "the reply is empty")
    usage = f", {reply.usage.input_tokens} + {reply.usage.output_tokens} tokens by its own count" if reply.usage else ""
    return Finding("reply", "good", f"{took:.2f} s{usage}: {reply.text[:60]!r}")


async def _repeated(subject: _Subject, _: AgentSpec) -> Finding:
    message = subject.message("The parcel is in locker 4417.")
    first, second = await subject.reply(message), await subject.reply(message)
    if first.text == second.text:
        return Finding("repeated turn id", "good", "the same request twice gets the same reply")
    return Finding("repeated turn id", "note", "the same request twice gets two replies: after a crash one turn may be played twice")


async def _observe(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.agent.observe(subject.message("The meeting is moved to the third floor."), "Noted.")
    how = "takes note of turns it is not asked" if observes(subject.agent) else "has no observe: it is asked, and its reply dropped"
    return Finding("observe", "good" if observes(subject.agent) else "note", how)


async def _time(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.reply(subject.message("Some days have passed. Reply with a single word.", timedelta(days=3, hours=2)))
    return Finding("virtual time", "good", "a message three days later is answered; messages carry the date and time in sent_at")


async def _large(subject: _Subject, _: AgentSpec) -> Finding:
    began = time.monotonic()
    await subject.reply(subject.message("All is quiet on the pier. " * (LARGE // 7), timedelta(days=4)))
    return Finding("large message", "good", f"about {LARGE:,} tokens in one message, answered in {time.monotonic() - began:.2f} s")


async def _snapshot(subject: _Subject, spec: AgentSpec) -> Finding:
    if not has_snapshots(subject.agent):
        return Finding("save and load", "note", "has no snapshots")
    await subject.reply(subject.message("My bicycle is called Bertram.", timedelta(days=5)))
    question = subject.message("What is my bicycle called?", timedelta(days=5))
    with TemporaryDirectory(prefix="longspan-") as folder:
        await subject.agent.save(Path(folder))
        twin = _Subject(spec)
        try:
            await twin.agent.load(Path(folder))
            before, after = await subject.reply(question), await twin.reply(question)
        finally:
            await close(twin.agent)
    if before.text == after.text:
        return Finding("save and load", "good", "a copy made from a snapshot gives the same reply")
    return Finding("save and load", "note", f"a copy made from a snapshot replies otherwise: {before.text[:40]!r}, {after.text[:40]!r}")


async def _reset(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.agent.reset()
    await subject.reply(subject.message("Hello again. Reply with a single word.", timedelta(days=6)))
    return Finding("reset", "good", "starts anew and answers")


def _resume_cost(agent: Agent) -> Finding:
    if has_snapshots(agent):
        return Finding("cost of resume", "good", "continues from its last snapshot: at most a hundred turns are shown again")
    if observes(agent):
        return Finding("cost of resume", "note", "without snapshots it is shown all turns again, without being asked")
    return Finding("cost of resume", "note", "without snapshots and observe it is asked all turns again: as expensive as the run so far")


def _filler_cost(agent: Agent) -> Finding:
    if observes(agent):
        return Finding("cost of filler", "good", "filler is put into its history without asking it")
    return Finding("cost of filler", "note", "without observe it is asked all filler: at 32k and above that is most of the conversation")
