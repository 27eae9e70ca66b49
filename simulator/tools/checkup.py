"""Checks whether an agent is ready for a long run, within a minute and before any real money is spent."""

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
from longspan.simulator.faults import is_fault
from longspan.simulator.messages import Message, Reply

__all__ = ["Finding", "checkup"]

DEADLINE: Final = 55.0
"""Maximum seconds for all checks together."""

LARGE_MESSAGE_TOKENS: Final = 20_000
"""Tokens of the large message."""


class Finding(NamedTuple):
    """The result of a check. "bad" means that a long run would fail; "note" is worth knowing beforehand."""

    check: str
    verdict: Literal["good", "note", "bad"]
    what: str


@final
class _Subject:
    """The agent under check, with a counter of its turns."""

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
    """Check the agent that `spec` names, and yield each finding as soon as it is known.

    Raises InputError if the agent cannot be made. A check that fails is a finding, not an error.
    """
    subject = _Subject(spec)
    try:
        async for finding in _run_checks(subject, spec):
            yield finding
    finally:
        await close(subject.agent)


async def _run_checks(subject: _Subject, spec: AgentSpec) -> AsyncIterator[Finding]:
    checks: list[tuple[str, Callable[[_Subject, AgentSpec], Awaitable[Finding]]]] = [
        ("reply", _reply),
        ("repeated turn id", _repeated),
        ("observe", _observe),
        ("virtual time", _time),
        ("large message", _large),
        ("save and load", _snapshot),
        ("reset", _reset),
    ]
    end = trio.current_time() + DEADLINE
    for name, check in checks:
        finding = Finding(name, "bad", f"exceeded the {DEADLINE:.0f} s for all checks")
        with trio.move_on_at(end):
            try:
                finding = await check(subject, spec)
            except LongspanError as error:
                finding = Finding(name, "bad", str(error))
            except BaseException as error:
                if not is_fault(error):
                    raise
                finding = Finding(name, "bad", one_line(error))
        yield finding
        if finding.verdict == "bad" and (name == "reply" or trio.current_time() >= end):
            return
    yield _resume_cost(subject.agent)
    yield _filler_cost(subject.agent)


async def _reply(subject: _Subject, _: AgentSpec) -> Finding:
    started = time.monotonic()
    reply = await subject.reply(subject.message("Hello. Reply with a single word."))
    took = time.monotonic() - started
    if not reply.text.strip():
        return Finding("reply", "bad", "the reply is empty")
    usage = f", {reply.usage.input_tokens} + {reply.usage.output_tokens} tokens as the agent counts" if reply.usage else ""
    return Finding("reply", "good", f"{took:.2f} s{usage}: {reply.text[:60]!r}")


async def _repeated(subject: _Subject, _: AgentSpec) -> Finding:
    message = subject.message("The parcel is in locker 4417.")
    first, second = await subject.reply(message), await subject.reply(message)
    if first.text == second.text:
        return Finding("repeated turn id", "good", "the same request twice gets the same reply")
    return Finding("repeated turn id", "note", "the same request twice gets two replies: after a crash one turn may be played twice")


async def _observe(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.agent.observe(subject.message("The meeting is moved to the third floor."), "Noted.")
    how = "takes turns without being asked" if observes(subject.agent) else "has no observe: it is asked, and its reply is dropped"
    return Finding("observe", "good" if observes(subject.agent) else "note", how)


async def _time(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.reply(subject.message("Some days have passed. Reply with a single word.", timedelta(days=3, hours=2)))
    return Finding("virtual time", "good", "a message three days later is answered; messages carry the date and time in sent_at")


async def _large(subject: _Subject, _: AgentSpec) -> Finding:
    started = time.monotonic()
    await subject.reply(subject.message("All is quiet on the pier. " * (LARGE_MESSAGE_TOKENS // 7), timedelta(days=4)))
    return Finding(
        "large message", "good", f"about {LARGE_MESSAGE_TOKENS:,} tokens in one message, answered in {time.monotonic() - started:.2f} s"
    )


async def _snapshot(subject: _Subject, spec: AgentSpec) -> Finding:
    if not has_snapshots(subject.agent):
        return Finding("save and load", "note", "has no snapshots")
    await subject.reply(subject.message("My bicycle is called Bertram.", timedelta(days=5)))
    question = subject.message("What is my bicycle called?", timedelta(days=5))
    with TemporaryDirectory(prefix="longspan-") as folder:
        await subject.agent.save(Path(folder))
        copy = _Subject(spec)
        try:
            await copy.agent.load(Path(folder))
            before, after = await subject.reply(question), await copy.reply(question)
        finally:
            await close(copy.agent)
    if before.text == after.text:
        return Finding("save and load", "good", "a copy loaded from a snapshot gives the same reply")
    return Finding("save and load", "note", f"a copy loaded from a snapshot replies differently: {before.text[:40]!r}, {after.text[:40]!r}")


async def _reset(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.agent.reset()
    await subject.reply(subject.message("Hello again. Reply with a single word.", timedelta(days=6)))
    return Finding("reset", "good", "starts over and answers")


def _resume_cost(agent: Agent) -> Finding:
    if has_snapshots(agent):
        return Finding("cost of resume", "good", "continues from its last snapshot: at most a hundred turns are shown again")
    if observes(agent):
        return Finding("cost of resume", "note", "without snapshots, it is shown all turns again, without being asked")
    return Finding("cost of resume", "note", "without snapshots and observe, it is asked all turns again: as expensive as the run so far")


def _filler_cost(agent: Agent) -> Finding:
    if observes(agent):
        return Finding("cost of filler", "good", "filler is put into its history without asking it")
    return Finding("cost of filler", "note", "without observe, it is asked all filler: at 32k and above that is most of the conversation")
