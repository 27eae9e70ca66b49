"""Checks that an agent is ready for a long run, within a minute and before any real money is spent."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, final

import trio
from pydantic import ValidationError

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.base.errors import LongspanError, first_problem, one_line
from longspan.simulator.base.files.folders import read_file, walk_folder
from longspan.simulator.contract.agent import (
    Agent,
    IdealReplyAgent,
    can_consolidate,
    can_observe,
    can_rejoin,
    can_rewind,
    close_agent,
    has_snapshots,
)
from longspan.simulator.contract.findings import Finding
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.results.gradebook.needle_fates import Traces
from longspan.simulator.subject.lag import measure_lag
from longspan.simulator.subject.traces import Trace, WrittenMemory
from longspan.simulator.suite.agent_spec import AgentSpec, find_examination, make_agent

__all__ = ["check_agent"]

DEADLINE = 55.0
"""The maximum number of seconds for all checks together, and again for the checks of the agent's kind."""

MAX_SNAPSHOT: Final = 64 * 2**20
"""The largest file of a snapshot that is searched, in bytes."""

LARGE_MESSAGE_TOKENS: Final = 20_000
"""The number of tokens in the large message. Documents of the suites counting-stars, elitr and summhay may be as long."""

USUAL_MESSAGE_TOKENS: Final = 1_600
"""The number of tokens in a message that is tried if the large one fails. The suite ltm sends no longer one, except for chapterbreak."""

T = TypeVar("T")

TAKEN_BACK: Final = "halyard"
"""The word in a turn that is taken back."""

WORDS: Final = {1: "cormorant", 2: "gunwale"}
"""The words in the turns that measure how soon the agent retrieves them, by number."""


@final
class _Subject:
    """The agent under test, with a counter of its turns."""

    def __init__(self, spec: AgentSpec) -> None:
        self.agent: Agent = make_agent(spec)
        self._prompt = self.agent.prompt if spec.kind == "oracle" and isinstance(self.agent, IdealReplyAgent) else None
        self._turn = 0
        self.traces: list[tuple[str, dict[str, Any]]] = []
        """The traces so far, each with its turn's id."""

    def message(self, text: str, later: timedelta = timedelta(0)) -> Message:
        self._turn += 1
        return Message(text, DEFAULT_START + self._turn * DEFAULT_PACE + later, f"check/{self._turn}")

    async def reply(self, message: Message) -> Reply:
        if self._prompt is not None:
            self._prompt("OK.")
        reply = await self.agent.reply(message)
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            raise TypeError(f"reply returned {type(reply).__name__}, not a Reply with text")
        if reply.trace is not None:
            self.traces.append((message.turn_id, reply.trace))
        return reply

    async def observe(self, message: Message) -> None:
        took = await self.agent.observe(message, "Noted.")
        if isinstance(took, Reply) and took.trace is not None:
            self.traces.append((message.turn_id, took.trace))

    @property
    def turns(self) -> set[str]:
        """The ids of the turns so far."""
        return {f"check/{number}" for number in range(1, self._turn + 1)}


async def check_agent(spec: AgentSpec) -> AsyncIterator[Finding]:
    """Check the agent that `spec` names, and yield each finding as soon as it is known.

    Raises InputError if the agent cannot be made. A check that fails is a finding, not an error.
    """
    subject = _Subject(spec)
    try:
        async for finding in _run_checks(subject, spec):
            yield finding
    finally:
        await close_agent(subject.agent)


async def _run_checks(subject: _Subject, spec: AgentSpec) -> AsyncIterator[Finding]:
    checks: list[tuple[str, Callable[[_Subject, AgentSpec], Awaitable[Finding]]]] = [
        ("reply", _reply),
        ("repeated turn id", _check_repeated_turn),
        ("observe", _observe),
        ("virtual time", _time),
        ("large message", _large),
        ("save and load", _snapshot),
        ("going back", _back),
        ("night", _night),
        ("reset", _reset),
    ]
    end = trio.current_time() + DEADLINE
    for name, check in checks:
        able = {"night": can_consolidate(subject.agent), "going back": can_rewind(subject.agent) or has_snapshots(subject.agent)}
        if not able.get(name, True):
            continue
        finding = await _run_check(name, partial(check, subject, spec), end)
        yield finding
        if finding.verdict == "bad" and (name == "reply" or trio.current_time() >= end):
            return
    yield _trace(subject)
    if any("read" in trace for _, trace in subject.traces):
        yield await _run_check("lag", partial(_lag, subject), end)
    async for finding in _examine(spec):
        yield finding
    yield _resume_cost(subject.agent)
    yield _filler_cost(subject.agent)


async def _examine(spec: AgentSpec) -> AsyncIterator[Finding]:
    """Yield the findings of the checks of the agent's kind. They stop at the first late one, since later checks rest on earlier ones."""
    checks = find_examination(spec)
    if checks is None:
        return
    end = trio.current_time() + DEADLINE
    try:
        for check in checks.checks:
            finding = await _run_check(check.name, check.find, end)
            if finding is not None:
                yield finding
            if trio.current_time() >= end:
                return
    finally:
        await checks.close()


async def _run_check(name: str, check: Callable[[], Awaitable[T]], end: float) -> T | Finding:
    """Return the finding of a check that may take until `end`, in Trio's time. A failure or a timeout is a finding, too."""
    with trio.move_on_at(end):
        try:
            return await check()
        except LongspanError as error:
            return Finding(name, "bad", str(error))
        except BaseException as error:
            if not is_fault(error):
                raise
            return Finding(name, "bad", one_line(error))
    return Finding(name, "bad", f"exceeded the {DEADLINE:.0f} s for all checks")


async def _reply(subject: _Subject, _: AgentSpec) -> Finding:
    started = time.monotonic()
    reply = await subject.reply(subject.message("Hello. Reply with a single word."))
    took = time.monotonic() - started
    if not reply.text.strip():
        return Finding("reply", "bad", "the reply is empty")
    usage = f", {reply.usage.input_tokens} + {reply.usage.output_tokens} tokens as the agent counts" if reply.usage else ""
    return Finding("reply", "good", f"{took:.2f} s{usage}: {reply.text[:60]!r}")


async def _check_repeated_turn(subject: _Subject, _: AgentSpec) -> Finding:
    message = subject.message("The parcel is in locker 4417.")
    first, before = await subject.reply(message), await _mentions(subject.agent, "4417")
    second, after = await subject.reply(message), await _mentions(subject.agent, "4417")
    known = {memory.id for memory in _memories_written(first, message.turn_id)}
    again = [memory.id for memory in _memories_written(second, message.turn_id) if memory.id not in known]
    if again or 0 < before < after:
        how = f"its trace writes {again[0]!r:.40} again" if again else "its snapshot has the message twice"
        return Finding("repeated turn id", "note", f"a repeated request is stored twice: {how}; identify turns by turn_id")
    if first.text == second.text:
        return Finding("repeated turn id", "good", "a repeated request gets the same reply")
    return Finding("repeated turn id", "note", "a repeated request gets a different reply: after a crash, one turn may be played twice")


async def _observe(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.observe(subject.message("The meeting is moved to the third floor."))
    how = "receives turns without replying" if can_observe(subject.agent) else "no observe: it is asked, and its reply is dropped"
    return Finding("observe", "good" if can_observe(subject.agent) else "note", how)


async def _time(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.reply(subject.message("Some days have passed. Reply with a single word.", timedelta(days=3, hours=2)))
    return Finding("virtual time", "good", "a message three days later is answered; messages carry the date and time in sent_at")


async def _large(subject: _Subject, _: AgentSpec) -> Finding:
    """Check whether a large message is answered. Most suites send none, so for them a smaller context window is no fault."""
    try:
        return await _answers(subject, LARGE_MESSAGE_TOKENS)
    except LongspanError as error:
        problem = str(error)
    await subject.agent.reset()
    smaller = await _answers(subject, USUAL_MESSAGE_TOKENS)
    what = f"{smaller.what}; one of {LARGE_MESSAGE_TOKENS:,}, as in tests with documents, would end the conversation: {problem}"
    return Finding("large message", "note", what)


async def _answers(subject: _Subject, tokens: int) -> Finding:
    started = time.monotonic()
    await subject.reply(subject.message("All is quiet on the pier. " * (tokens // 7), timedelta(days=4)))
    took = time.monotonic() - started
    return Finding("large message", "good", f"about {tokens:,} tokens in one message, answered in {took:.2f} s")


async def _snapshot(subject: _Subject, spec: AgentSpec) -> Finding:
    if not has_snapshots(subject.agent):
        back = "; uses mark and rewind" if can_rewind(subject.agent) else ", and no mark and rewind: see --branch for histories"
        return Finding("save and load", "note", f"no snapshots{back}")
    await subject.reply(subject.message("My bicycle is called Bertram.", timedelta(days=5)))
    question = subject.message("What is my bicycle called?", timedelta(days=5))
    with TemporaryDirectory(prefix="longspan-") as folder:
        await subject.agent.save(Path(folder))
        copy = _Subject(spec)
        try:
            await copy.agent.load(Path(folder))
            before, after = await subject.reply(question), await copy.reply(question)
        finally:
            await close_agent(copy.agent)
    if before.text != after.text:
        what = f"a copy loaded from a snapshot replies differently: {before.text[:40]!r}, {after.text[:40]!r}"
        return Finding("save and load", "note", what)
    if _memories_found(before) != _memories_found(after):
        return Finding("save and load", "note", "a copy loaded from a snapshot retrieves other memories")
    same = "retrieves the same memories" if "read" in (before.trace or {}) else "gives the same reply"
    return Finding("save and load", "good", f"a copy loaded from a snapshot {same}")


async def _back(subject: _Subject, _: AgentSpec) -> Finding:
    """Check whether each question can be asked from the same state, so that later turns can be undone without a trace."""
    agent = subject.agent
    with TemporaryDirectory(prefix="longspan-") as temporary:
        folder = Path(temporary)

        async def go_back() -> None:
            await (agent.rewind() if can_rewind(agent) else agent.load(folder))

        await (agent.mark() if can_rewind(agent) else agent.save(folder))
        question = subject.message("What is the word for the attic?", timedelta(days=5, hours=2))
        first = await subject.reply(question)
        await go_back()
        before = await _digests(agent)
        await go_back()
        # A snapshot may contain times or random ids. Then every snapshot differs, and a comparison shows nothing.
        same = before == await _digests(agent)
        await subject.reply(subject.message(f"The word for the attic is {TAKEN_BACK}.", timedelta(days=5, hours=3)))
        await go_back()
        after = await _digests(agent)
        again = await subject.reply(replace(subject.message(question.text), sent_at=question.sent_at))
        await go_back()
    how = "`rewind`" if can_rewind(agent) else "loading it again"
    if TAKEN_BACK in json.dumps([again.text, again.trace], default=str):
        return Finding("going back", "bad", f"it remembers turns from before {how}: questions about a history are not independent")
    if same and before != after:
        name = min(file for file in {*before, *after} if before.get(file) != after.get(file))
        return Finding(
            "going back",
            "bad",
            f"a question changes its snapshot ({name}), and {how} does not undo that: later questions meet another memory",
        )
    if _memories_found(first) != _memories_found(again):
        return Finding("going back", "note", f"the same question after {how} gets another reply, or retrieves other memories")
    return Finding("going back", "good", f"{how} restores the earlier state: questions about a history are independent")


def _memories_found(reply: Reply) -> Any:
    """Return the memories retrieved for a reply, if its trace lists them, or else the reply. Two copies may give memories different ids."""
    try:
        read = Trace.model_validate(reply.trace or {}).read
    except ValidationError:
        read = []
    return [(memory.turns, memory.text) if memory.text else memory.id for memory in read] or reply.text


async def _digests(agent: Agent) -> dict[str, str]:
    """Return a digest of each file in a snapshot of the agent, by path; empty if the agent has no snapshots."""
    if not has_snapshots(agent):
        return {}
    with TemporaryDirectory(prefix="longspan-") as temporary:
        folder = Path(temporary)
        await agent.save(folder)
        files = [path for path in walk_folder(folder) if not path.is_dir() and path.lstat().st_size <= MAX_SNAPSHOT]
        return {path.relative_to(folder).as_posix(): hashlib.sha256(read_file(path, MAX_SNAPSHOT)).hexdigest() for path in files}


async def _night(subject: _Subject, _: AgentSpec) -> Finding:
    morning = subject.message("Good morning. Reply with a single word.", timedelta(days=5, hours=12))
    started = time.monotonic()
    told = await subject.agent.consolidate(morning.sent_at) if can_consolidate(subject.agent) else None
    took = time.monotonic() - started
    if told is not None and not isinstance(told, Reply):
        raise TypeError(f"consolidate returned {type(told).__name__}, not a Reply or nothing")
    await subject.reply(morning)
    return Finding("night", "good", f"consolidates its memory (--nights) in {took:.2f} s, and answers in the morning")


async def _reset(subject: _Subject, _: AgentSpec) -> Finding:
    await subject.agent.reset()
    await subject.reply(subject.message("Hello again. Reply with a single word.", timedelta(days=6)))
    return Finding("reset", "good", "starts over and answers")


async def _lag(subject: _Subject) -> Finding:
    """Measure how soon an agent retrieves a fact after it was stated, if its traces list the memories it retrieved."""
    told: dict[int, Message] = {}
    later = timedelta(days=7)

    async def tell(number: int) -> None:
        told[number] = subject.message(f"The word for door {number} is {WORDS[number]}.", later)
        await subject.observe(told[number])

    async def finds(number: int) -> bool:
        reply = await subject.reply(subject.message(f"What is the word for door {number}? Is it {WORDS[number]}?", later))
        return _shows(reply, told[number], subject.turns)

    lag = await measure_lag(tell, finds)
    if lag.turns is None:
        return Finding("lag", "note", "a stated fact is not retrieved, neither immediately nor some turns and seconds later")
    if lag.turns or lag.seconds:
        after = f"{lag.turns} turns" if lag.turns else f"{lag.seconds:.2f} s"
        return Finding("lag", "note", f"a stated fact is retrieved only {after} later")
    return Finding("lag", "good", "a stated fact is retrieved immediately")


def _shows(reply: Reply, told: Message, turns: Collection[str]) -> bool:
    """Return whether a reply's trace reports that a turn was in the prompt."""
    traces = Traces()
    number = {turn: place for place, turn in enumerate(sorted(turns, key=lambda turn: int(turn.rpartition("/")[2])))}
    for turn, place in number.items():
        traces.add(place, turn, None, asked=False)
    return traces.fate(number[told.turn_id], told.text, "", reply.text, reply.trace).retrieved is True


async def _mentions(agent: Agent, text: str) -> int:
    """Return how often `text` occurs in a snapshot of the agent; 0 if that cannot be determined."""
    found = 0
    if has_snapshots(agent):
        with suppress(Exception), TemporaryDirectory(prefix="longspan-") as folder:  # the check of snapshots reports the problem
            await agent.save(Path(folder))
            found = sum(read_file(path, MAX_SNAPSHOT).count(text.encode()) for path in walk_folder(Path(folder)) if not path.is_dir())
    return found


def _memories_written(reply: Reply, turn: str) -> list[WrittenMemory]:
    """Return the memories that were made from a reply's turn, according to its trace; empty for an unreadable trace."""
    try:
        written = Trace.model_validate(reply.trace or {}).written
    except ValidationError:
        return []
    return [memory for memory in written if memory.turn in (None, turn)]


def _trace(subject: _Subject) -> Finding:
    """Check whether the traces suffice for grading."""
    if not subject.traces:
        return Finding("trace", "note", "no traces: whether a needle was stored and retrieved is unreported")
    known: set[str] = set()
    told: set[str] = set()
    for turn, content in subject.traces:
        try:
            trace = Trace.model_validate(content)
        except ValidationError as error:
            return Finding("trace", "note", f"cannot be read: {first_problem(error)}; see docs/guides/own-agents.md")
        known |= {memory.id for memory in trace.written}
        told |= trace.model_fields_set & Trace.model_fields.keys()
        turns = [memory.turn or turn for memory in trace.written] + [each for memory in trace.read for each in memory.turns or ()]
        turns += [trace.recent.since] if trace.recent is not None and trace.recent.since is not None else []
        strange = [each for each in turns if each not in subject.turns]
        if strange:
            return Finding("trace", "note", f"cannot be used: it names {strange[0]!r:.40}, which is not a turn_id it has received")
        unknown = [memory.id for memory in trace.read if not memory.turns and memory.id is not None and memory.id not in known]
        if unknown:
            what = f"read a memory with the id {unknown[0]!r:.40}, but wrote none; `turns` names the turns that a memory comes from"
            return Finding("trace", "note", f"cannot be used: it {what}")
    if not told:
        return Finding("trace", "note", f"has none of {', '.join(Trace.model_fields)}: grading ignores it")
    return Finding("trace", "good", f"reports {', '.join(name for name in Trace.model_fields if name in told)}")


def _resume_cost(agent: Agent) -> Finding:
    if can_rejoin(agent):
        return Finding("cost of resume", "good", "none: its server keeps the conversation, and it continues there")
    if has_snapshots(agent):
        return Finding("cost of resume", "good", "from its last snapshot: replays at most a hundred turns, or a tenth of all")
    if can_observe(agent):
        return Finding("cost of resume", "note", "no snapshots: it observes all turns again, without replying")
    return Finding("cost of resume", "note", "no snapshots and no observe: it answers all turns again, at the cost of the run so far")


def _filler_cost(agent: Agent) -> Finding:
    if can_observe(agent):
        return Finding("cost of filler", "good", "filler is added to its history without a reply")
    return Finding("cost of filler", "note", "no observe: it must answer all filler, which is most of the conversation at 32k and above")
