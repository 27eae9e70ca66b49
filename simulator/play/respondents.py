"""What answers a conversation: its journal as far as it goes, then the agent and the judge.

The conversation cannot distinguish them, so playing, resuming and replaying are the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar, final

from longspan.simulator.base.errors import AgentError, journal_text
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.contract.stage import Judge, Verdict
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import Fork
from longspan.simulator.journal.journal import Journal
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.subject.ledger import Costs

__all__ = ["PendingMessage", "Ready", "Respondent", "make_respondent"]

Told = TypeVar("Told", events.Reply, events.Night, events.Settled)


@final
class Ready(NamedTuple):
    """A reply to put in the agent's history without asking the agent, with its number of tokens."""

    text: str
    tokens: int


@final
class PendingMessage(NamedTuple):
    """A journaled message, `sent`, that has no reply yet. `ideal` is the reply of a perfect agent. With a `ready` reply, the agent is not
    asked. `again`: the message was in the journal before, so the agent may have seen it."""

    message: Message
    sent: events.Message
    ideal: str
    ready: Ready | None
    again: bool


class Respondent(Protocol):
    """Answers all of a conversation's requests that it cannot decide itself. Each answer is the event to be journaled."""

    async def reply(self, to: PendingMessage) -> events.Reply:
        """Return the reply to a message."""
        ...

    async def night(self, turn: int, morning: datetime) -> events.Night:
        """Return the agent's work in the night before a turn. The night ends in the `morning`."""
        ...

    async def settle(self, turn: int) -> events.Settled | None:
        """Return the agent's cost of finishing the turns before `turn`, or None if there is nothing to record."""
        ...

    async def save(self) -> bool:
        """Save the agent if it is due here. Return whether the journal has a snapshot at this point."""
        ...

    async def verdict(self, statement: str, text: str) -> Verdict:
        """Return the verdict on whether a statement is true of `text`."""
        ...


def make_respondent(journal: Journal, agent: LiveAgent, judge: Judge | None, fork: Fork | None, count: Callable[[str], int]) -> Respondent:
    """Return the respondent of a conversation. `count` counts tokens."""
    recorded = _JournalRespondent(journal, agent, count, _Live(agent, judge, count))
    return _Lesion(fork, agent, count, recorded) if fork is not None and fork.experiment.kind == "lesion" else recorded


@final
class _Live:
    """The agent and the judge."""

    def __init__(self, agent: LiveAgent, judge: Judge | None, count: Callable[[str], int]) -> None:
        self._agent = agent
        self._judge = judge
        self._count = count

    async def reply(self, to: PendingMessage) -> events.Reply:
        await self._agent.catch_up()
        began = time.monotonic()
        if to.ready:
            took, costs = await self._agent.observe(to.message, to.ready.text)
            reply, tokens = replace(took, text=to.ready.text), to.ready.tokens
        else:
            reply, costs = await self._agent.reply(to.message, to.ideal)
            tokens = self._count(reply.text)
        return _as_read(
            events.Reply,
            "reply",
            turn=to.sent.turn,
            text=reply.text,
            tokens=tokens,
            end=to.sent.start + to.sent.tokens + tokens,
            asked=to.ready is None,
            repeated=True if to.again and not self._agent.repeatable else None,
            refused=reply.refused or None,
            measured={**reply.measured, "latency_s": round(time.monotonic() - began, 6)},
            **_report_fields(reply, costs),
        )

    async def night(self, turn: int, morning: datetime) -> events.Night:
        work, costs = await self._agent.consolidate(morning)
        told = {"consolidated": False} if work is None else {"consolidated": True, "measured": work.measured, **_report_fields(work, costs)}
        return _as_read(events.Night, "account of a night", turn=turn, to=morning, **told)

    async def settle(self, turn: int) -> events.Settled | None:
        work, costs = await self._agent.settle()
        if work is None:
            return None
        return _as_read(events.Settled, "account of settling", turn=turn, measured=work.measured or None, **_report_fields(work, costs))

    async def save(self) -> bool:
        return await self._agent.save()

    async def verdict(self, statement: str, text: str) -> Verdict:
        return Verdict(None, "no judge") if self._judge is None else await self._judge.judge(statement, text)


@final
class _JournalRespondent:
    """The journal. For anything that it lacks, `rest` is asked.

    All that follows from the recorded events is computed again, so that writing it compares it with the record.
    """

    def __init__(self, journal: Journal, agent: LiveAgent, count: Callable[[str], int], rest: Respondent) -> None:
        self._journal = journal
        self._agent = agent
        self._count = count
        self._rest = rest

    async def reply(self, to: PendingMessage) -> events.Reply:
        recorded = self._journal.read_recorded_as(events.Reply)
        if recorded is None:
            return await self._rest.reply(to)
        text, tokens = to.ready or (recorded.text, self._count(recorded.text))
        usage = Usage.of(recorded.usage) if recorded.usage else None
        self._agent.replay(to.message, Reply(text, usage, recorded.trace, refused=bool(recorded.refused)), asked=to.ready is None)
        end = to.sent.start + to.sent.tokens + tokens
        return recorded.model_copy(update={"turn": to.sent.turn, "text": text, "tokens": tokens, "end": end, "asked": to.ready is None})

    async def night(self, turn: int, morning: datetime) -> events.Night:
        recorded = self._journal.read_recorded_as(events.Night)
        if recorded is None:
            return await self._rest.night(turn, morning)
        self._agent.replay_nights([morning] if recorded.consolidated else [])
        return recorded.model_copy(update={"turn": turn, "to": morning})

    async def settle(self, turn: int) -> events.Settled | None:
        recorded = self._journal.read_recorded()
        if recorded is None:
            return await self._rest.settle(turn)
        if not isinstance(recorded, events.Settled):
            return None
        self._agent.replay_settling()
        return recorded.model_copy(update={"turn": turn})

    async def save(self) -> bool:
        recorded = self._journal.read_recorded()
        return await self._rest.save() if recorded is None else isinstance(recorded, events.Snapshot)

    async def verdict(self, statement: str, text: str) -> Verdict:
        recorded = self._journal.read_recorded_as(events.Verdict)
        if recorded is None:
            return await self._rest.verdict(statement, text)
        return Verdict(recorded.holds, recorded.why, recorded.by, bool(recorded.failed))


@final
class _Lesion:
    """The conversation whose questions are asked again. `rest` answers them, and everything before them."""

    def __init__(self, fork: Fork, agent: LiveAgent, count: Callable[[str], int], rest: Respondent) -> None:
        self._fork = fork
        self._agent = agent
        self._count = count
        self._rest = rest
        self._starts: list[int] = []

    async def reply(self, to: PendingMessage) -> events.Reply:
        sent, given = to.sent, self._fork.gives(to.sent)
        since = self._fork.first_known_turn(self._starts, sent.start)
        self._starts.append(sent.start)
        if given is None:
            self._agent.knows(since)
            return await self._rest.reply(to)
        self._agent.replay(to.message, Reply(given.text, trace=given.trace), given.asked)
        tokens = self._count(given.text)
        return events.Reply(turn=sent.turn, text=given.text, tokens=tokens, end=sent.start + sent.tokens + tokens, asked=False)

    async def night(self, turn: int, morning: datetime) -> events.Night:
        if turn <= self._fork.point.turn:
            return await self._rest.night(turn, morning)
        consolidated = turn in self._fork.nights
        self._agent.replay_nights([morning] if consolidated else [])
        return events.Night(turn=turn, to=morning, consolidated=consolidated)

    async def settle(self, turn: int) -> events.Settled | None:
        return await self._rest.settle(turn)

    async def save(self) -> bool:
        return await self._rest.save()

    async def verdict(self, statement: str, text: str) -> Verdict:
        return await self._rest.verdict(statement, text)


def _report_fields(reply: Reply, costs: Costs | None) -> dict[str, Any]:
    """Return an agent's report on its work as fields of an event."""
    return {
        "usage": asdict(reply.usage) if reply.usage else None,
        "besides": {part: asdict(usage) for part, usage in reply.besides.items()} or None,
        "cost_usd": costs,
        "trace": reply.trace,
    }


def _as_read(kind: type[Told], what: str, *, turn: int, **fields: Any) -> Told:
    """Return an event with the agent's report, exactly as the journal will return it. Raises AgentError if it cannot be journaled."""
    try:
        event = kind(turn=turn, **fields)
        if event.trace is not None or event.besides or event.cost_usd:  # all other fields survive JSON unchanged
            read_back = kind.model_validate_json(events.as_json(event))  # tuples become lists
            event = read_back.model_copy(update={"measured": event.measured})
    except Exception as error:
        problem = f"the agent's {what} has usage or a trace that cannot be journaled"
        raise AgentError(f"turn {turn}: {problem}: {journal_text(error)}") from error
    return event
