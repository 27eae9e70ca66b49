"""The agent of a conversation that is being played: gets its replies, prices and saves them, and restores the agent on resuming."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import astuple, replace
from datetime import datetime
from functools import partial
from itertools import islice
from time import monotonic
from typing import TypeVar, final

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import AgentError, LongspanError, StoppedError, journal_text
from longspan.simulator.base.keys import redact, redact_json
from longspan.simulator.contract.agent import (
    Agent,
    ConsolidatingAgent,
    can_consolidate,
    can_observe,
    can_rejoin,
    can_repeat_turn,
    has_partial_models,
    has_snapshots,
    pays_to_observe,
    replay_turn,
    settle_agent,
    size_of,
    start_agent,
    take_unreported,
)
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.journal.turns_shown import PastTurn
from longspan.simulator.play.trunk_agent import TrunkAgent
from longspan.simulator.subject.current_turn import set_moment
from longspan.simulator.subject.ledger import (
    MAX_DOLLARS,
    MAX_TOKENS,
    Account,
    Costs,
    Worst,
    models_of,
    reported_costs,
    total_cost,
    usage_by_part,
)
from longspan.simulator.subject.purse import Purse
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_record import Work
from longspan.simulator.subject.telemetry import SILENT, Spans

__all__ = ["LiveAgent"]

T = TypeVar("T")


@final
class LiveAgent:
    """Wraps the agent of a conversation. Every turn passes through `replay`, `observe` or `reply`.

    Replayed turns are kept until the agent is needed. Then `catch_up` restores it from its newest snapshot and replays later turns to it,
    with the nights between them. A snapshot before a turn includes the night before that turn. Any exception of the agent becomes an
    AgentError that names the turn.

    In a branch, `trunk` brings the agent to the point where the branch begins, and there are no `snapshots`. An experiment shares its first
    `shared` turns with another conversation. In a lesion, turns are only counted; before the agent is asked, it is brought to a state where
    it `knows` only the last ones.

    Each cost is recorded once, with the turn that caused it. If the agent reads turns again whose cost is already in the journal, the new
    cost counts only against the ledger's limit. The same is true of another conversation's turns, except at the start of an experiment: its
    first turn records that cost. `purse` pays for everything. `depth` is the number of characters said so far.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        snapshots: Snapshots | None = None,
        purse: Purse | None = None,
        give_ideal: Callable[[str], None] | None = None,
        spans: Spans = SILENT,
        trunk: TrunkAgent | None = None,
        shared: int = 0,
    ) -> None:
        self.agent = agent
        self._snapshots = snapshots
        self._purse = purse or Purse()
        self._ledger = self._purse.ledger
        self._give_ideal = give_ideal
        self._spans = spans
        self._trunk = trunk
        self._shared = shared
        self.depth = trunk.depth if trunk is not None else 0
        self._turns = trunk.turns if trunk is not None else 0
        self._replayed: list[PastTurn] = []
        self._nights: list[datetime] = []
        self._settled = False
        self._untold: list[tuple[Reply, Costs | None]] = []
        self._caught_up = self._busy = False
        self._since: int | None = None
        self._keeps = False

    @property
    def repeatable(self) -> bool:
        """Whether it is safe to send the same turn to the agent twice."""
        return can_repeat_turn(self.agent)

    def replay(self, message: Message, reply: Reply, asked: bool) -> None:
        """Count a turn that the journal already has. `asked`: the agent wrote the reply, and did not only read the turn."""
        self._replayed.append(PastTurn(message, reply, asked, tuple(self._nights)))
        self._nights.clear()
        self._turns += 1
        self.depth += len(message.text) + len(reply.text)

    def replay_nights(self, nights: Iterable[datetime]) -> None:
        """Count nights that the journal already has and the agent worked through, each given by its end."""
        self._nights.extend(nights)

    def replay_settling(self) -> None:
        """Note that the agent has finished adding all turns so far, and that the journal records the cost."""
        self._settled = True

    async def start(self) -> None:
        """Start the agent. An agent in another process reports its capabilities only after this."""
        await self._call(start_agent(self.agent))

    def knows(self, since: int) -> None:
        """Note that the agent must know only the turns from number `since` on when it is next needed. Keeps turns for that."""
        self._since, self._keeps = since, True

    async def catch_up(self, *, night: bool = False) -> None:
        """Bring the agent to the end of the journal. Does nothing when called again. `night`: a night follows there."""
        if self._since is not None:
            since, self._since = self._since, None
            await self._recall(since)
        if self._caught_up:
            return
        self._caught_up = True
        with self._spans.catch_up(self._turns) if self._turns else nullcontext():
            first = restored = 0
            if self._trunk is not None:
                first = restored = await self._reach(self._trunk)
            elif self._snapshots is not None:
                restored = await self._call(self._snapshots.restore(self.agent, self._turns - night))
                restored = await self._rejoin(restored)
            await self._show_all(self._replayed[restored - first :], restored)
            if restored < self._turns:
                await self._repeat(self._nights)
            if self._settled:
                await self._settle()
        if self._repeats:
            self._untold.clear()
        self._replayed.clear()
        self._nights.clear()

    async def _rejoin(self, restored: int) -> int:
        """Continue an interrupted conversation on the agent's server, if it keeps one. Return the number of the turn after its last."""
        assert self._snapshots is not None  # noqa: S101
        if self._snapshots.copied or not can_rejoin(self.agent):
            return restored  # a copy: the conversation is another's
        for number in range(self._turns, restored, -1):
            turn = self._replayed[number - 1]
            if await self._call(self.agent.rejoin(turn.message, turn.reply)):
                return number
        return restored

    async def _recall(self, since: int) -> None:
        """Bring the agent to a state where it knows only the turns from number `since` on."""
        with self._spans.catch_up(self._turns - since) if self._turns > since else nullcontext():
            if self._caught_up:
                await self._call(self.agent.reset())
            self._caught_up = True
            await self._show_all(self._replayed[since:], since)
            if since < self._turns:
                await self._repeat(self._nights)

    async def _reach(self, trunk: TrunkAgent) -> int:
        """Bring the agent to the end of the trunk. Return the number of the turn after it."""
        if not trunk.there:
            first = await self._call(trunk.go_back())
            await self._show_all(islice(trunk.past(), first, None) if first < trunk.turns else (), first)
            await self._settle()
            self._untold.clear()
            await self._call(trunk.arrive())
        trunk.leave()
        return trunk.turns

    async def end_trunk(self, trunk: TrunkAgent) -> None:
        """Tell `trunk` that the agent is at its end, unless the agent was never needed."""
        if self._caught_up:
            await self._call(trunk.arrive())

    async def end_branch(self) -> None:
        """Undo the branch's turns if necessary, and if the agent can."""
        if self._trunk is not None and self._caught_up:
            await self._call(self._trunk.rewind())

    async def _show_all(self, turns: Iterable[PastTurn], first: int) -> None:
        for number, turn in enumerate(turns, first):
            if number > first:
                await self._repeat(turn.nights)
            set_moment(number, turn.message.sent_at)
            try:
                self._untold.append(await self._show(turn.message, turn.reply, number, asked=turn.asked, shown_again=True))
            except StoppedError:
                await self._save_at(number)
                raise

    async def _repeat(self, nights: Iterable[datetime]) -> None:
        """Let the agent repeat its work in nights that its snapshot lacks."""
        for at in nights:
            if can_consolidate(self.agent):
                self._untold.append(await self._work(self.agent, at, again=self._repeats))

    async def settle(self) -> tuple[Reply | None, Costs | None]:
        """Let the agent finish adding the turns so far. Return its report as a Reply, and the cost in dollars by part.

        The Reply is None if there is nothing to record. Raises as `reply` does.
        """
        await self.catch_up()
        return await self._settle()

    async def _settle(self) -> tuple[Reply | None, Costs | None]:
        worst = self._ledger.worst_of(self.agent, "told", self._purse.payer, self.depth, seldom=True)
        async with self._open_account(worst, "settle", self._turns) as account:
            took = await self._call(settle_agent(self.agent))
            worked = _account(took)
            costs = account.settle(usage_by_part(worked), reported_costs(worked))
            self._ledger.require_told(worst, costs, "settling")
        return (None if took is None else worked), costs

    async def consolidate(self, at: datetime) -> tuple[Reply | None, Costs | None]:
        """Let the agent consolidate its memory in a night that ends at `at`. Return its report as a Reply, and the cost in dollars by part.

        The Reply is None if the agent does nothing at night. Its `measured` has the seconds, and the agent's size in bytes before and
        after, if known. Raises as `reply` does.
        """
        await self.catch_up(night=True)  # first: an agent in another process reports its capabilities only then
        if not can_consolidate(self.agent):
            return None, None
        before = await self._call(size_of(self.agent)) if self._snapshots is not None else None
        began = monotonic()
        worked, costs = await self._work(self.agent, at)
        measured = {**worked.measured, "consolidate_s": round(monotonic() - began, 6)}
        if before is not None and (after := await self._call(size_of(self.agent))) is not None:
            measured |= {"bytes_before": before, "bytes_after": after}
        return replace(worked, measured=measured), costs

    async def _work(self, agent: ConsolidatingAgent, at: datetime, *, again: bool = False) -> tuple[Reply, Costs | None]:
        set_moment(max(0, self._turns - 1), at)
        worst = self._ledger.worst_of(agent, "at night", self._purse.payer, self.depth)
        async with self._open_account(worst, "night", self._turns, again=again) as account:
            with self._spans.night(self._turns, at) as span:
                told = await self._call(agent.consolidate(at))
                worked = Reply("") if told is None else _check_reply(told, "consolidated, and returned")
                costs = account.settle(usage_by_part(worked), reported_costs(worked))
                span.record_reply(worked, costs)
            self._ledger.require_told(worst, costs, "consolidate")
        return worked, costs

    async def observe(self, message: Message, reply: str) -> tuple[Reply, Costs | None]:
        """Add a turn to the agent's history without asking it. Return its report as a Reply, and the cost in dollars by part.

        The agent must have caught up. Raises StoppedError if the call could exceed the ledger's limit.
        """
        set_moment(self._turns, message.sent_at)
        with self._spans.turn(self._turns, message, told=reply) as span:
            took, costs = self._with_untold(*await self._show(message, Reply(reply), self._turns))
            span.record_reply(replace(took, text=reply), costs)
        self._turns += 1
        self.depth += len(message.text) + len(reply)
        return took, costs

    async def reply(self, message: Message, ideal: str) -> tuple[Reply, Costs | None]:
        """Ask the agent. Return its reply, and the cost in dollars by part or None if unknown.

        The agent must have caught up. Raises AgentError for an invalid reply, and StoppedError if it could exceed the ledger's limit.
        """
        set_moment(self._turns, message.sent_at)
        if self._give_ideal is not None:
            self._give_ideal(ideal)
        worst = self._ledger.worst(self.agent, message, self._purse.payer, self.depth + len(message.text))
        async with self._open_account(worst, "reply", self._turns) as account:
            with self._spans.turn(self._turns, message) as span:
                with self._calling():
                    answer = await self.agent.reply(message)
                reply = _check_reply(answer)
                used = usage_by_part(reply)
                costs = account.settle(used, reported_costs(reply))
                span.record_reply(reply, costs)
            self._ledger.require_known(account, worst, used, costs)
        self._turns += 1
        self.depth += len(message.text) + len(reply.text)
        told = self._with_untold(reply, costs)
        if self._keeps:
            self._replayed.append(PastTurn(message, told[0], True, tuple(self._nights)))
            self._nights.clear()
        return told

    async def save(self) -> bool:
        """Take a snapshot. Return whether one was taken: not all agents support snapshots, and not all conversations keep them."""
        if self._snapshots is None or self._snapshots.copied:
            return False
        await self.catch_up()  # first: an agent in another process reports its capabilities only then
        if not has_snapshots(self.agent):
            return False
        await self._call(self._snapshots.save(self.agent, self._turns))
        return True

    def pin(self) -> None:
        """Keep the snapshot that is taken before the next turn."""
        if self._snapshots is not None:
            self._snapshots.pin(self._turns)

    async def save_progress(self) -> None:
        """Take a snapshot if the agent was needed at all, and is not in the middle of a call."""
        if self._caught_up and not self._busy:
            await self.save()

    async def _save_at(self, turn: int) -> None:
        """Take a snapshot of an agent that has caught up to a turn before the journal's end, to avoid paying for its turns again."""
        if self._snapshots is not None and not self._snapshots.copied and not self._busy and has_snapshots(self.agent):
            await self._call(self._snapshots.save(self.agent, turn))

    @asynccontextmanager
    async def _open_account(self, worst: Worst, work: Work, turn: int, *, again: bool = False) -> AsyncIterator[Account]:
        """Open an account for a call. If the call fails, the agent may still report its cost."""
        partial_models = has_partial_models(self.agent)
        async with self._purse.open_account(
            models_of(self.agent), worst, work, turn=turn, again=again, partial_models=partial_models
        ) as account:
            try:
                yield account
            except Exception:
                took = take_unreported(self.agent) if account.amount is None else None
                if took is not None and (took.besides or took.cost_usd):
                    account.settle(usage_by_part(took), reported_costs(took), failed=True)
                raise

    @property
    def _repeats(self) -> bool:
        """Whether the turns that the agent reads were paid for before. An experiment pays once for the turns that it shares."""
        return not self._shared or self._turns > self._shared

    async def _show(
        self, message: Message, reply: Reply, turn: int, *, asked: bool = False, shown_again: bool = False
    ) -> tuple[Reply, Costs | None]:
        """Add a turn to the agent's history. An agent that cannot observe replies to it. Return the agent's report and the cost.

        `asked`: the agent wrote the reply before. `shown_again`: the turn is in the journal already.
        """
        show = partial(replay_turn, self.agent, message, reply) if asked else partial(self.agent.observe, message, reply.text)
        if not pays_to_observe(self.agent):
            return _account(await self._call(show())), None
        observed = can_observe(self.agent)
        depth = self.depth + len(message.text)
        if observed:
            worst = self._ledger.worst_of(self.agent, "told", self._purse.payer, depth, message, seldom=True)
        else:
            worst = self._ledger.worst(self.agent, message, self._purse.payer, depth)
        async with self._open_account(worst, "replay" if shown_again else "observe", turn, again=shown_again and self._repeats) as account:
            took = _account(await self._call(show()))
            used = usage_by_part(took)
            costs = account.settle(used, reported_costs(took))
            if observed:
                self._ledger.require_told(worst, costs, "adding a turn to the memory")
            else:
                self._ledger.require_known(account, worst, used, costs)
        return took, costs

    def _with_untold(self, told: Reply, costs: Costs | None) -> tuple[Reply, Costs | None]:
        """Return a report together with all costs that have not been recorded yet."""
        untold, self._untold = self._untold, []
        for took, cost in untold:
            besides = dict(told.besides)
            for part, usage in usage_by_part(took).items():
                besides[part] = _sum(besides.get(part, Usage()), usage)
            told = replace(told, besides=besides)
            costs = dict(costs or {})
            for part, dollars in (cost or {}).items():
                costs[part] = total_cost([costs.get(part, 0.0), dollars])
        return told, costs or None

    async def _call(self, call: Awaitable[T]) -> T:
        with self._calling():
            return await call

    @contextmanager
    def _calling(self) -> Iterator[None]:
        self._busy = True
        try:
            yield
            self._busy = False  # not in a `finally`: after an error or a cancellation, the agent's state is unknown
        except LongspanError:
            raise
        except BaseException as error:
            if not is_fault(error):
                raise
            raise AgentError(f"turn {self._turns}: the agent failed: {journal_text(error)}") from error


def _account(took: object) -> Reply:
    """Return the agent's report on observing a turn. Raises AgentError if it is invalid."""
    return Reply("") if took is None else _check_reply(took, "observed, and returned")


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*map(sum, zip(astuple(one), astuple(other), strict=True)))


def _check_reply(reply: object, did: str = "replied with") -> Reply:
    """Return a reply that can be journaled, without lone surrogates.

    Raises AgentError for an invalid reply. Its message says what the agent `did`.
    """
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        what = type(reply.text).__name__ if isinstance(reply, Reply) else type(reply).__name__
        raise AgentError(f"the agent {did} {what} instead of text in a Reply")
    if not isinstance(reply.refused, bool):
        raise AgentError(f"the agent's reply has refused={reply.refused!r:.80}; expected True or False")
    used = usage_by_part(reply) if isinstance(reply.besides, Mapping) else {"besides": None}
    for part, usage in used.items():
        if not isinstance(usage, Usage) or not all(type(count) is int and 0 <= count <= MAX_TOKENS for count in astuple(usage)):
            raise AgentError(f"the agent's reply has a usage of {usage!r:.80} ({part}); expected a Usage with token counts")
        if usage.cached_tokens > usage.input_tokens:  # otherwise the cost of the input would be negative
            raise AgentError(f"the agent's reply has a usage of {usage!r:.80} ({part}); cached_tokens are part of input_tokens")
    stated = reply.cost_usd if isinstance(reply.cost_usd, Mapping) else {"agent": reply.cost_usd}
    for part, cost in stated.items() if reply.cost_usd is not None else ():
        if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost <= MAX_DOLLARS:
            raise AgentError(f"the agent's reply has a cost_usd of {cost!r:.80} ({part}); expected dollars, from 0 to {MAX_DOLLARS:,.0f}")
    text = reply.text if reply.text.isascii() else reply.text.encode("utf-8", "replace").decode()
    return _without_keys(replace(reply, text=text))


def _without_keys(reply: Reply) -> Reply:
    """Return a reply with keys redacted. All of an agent's output passes through here once, before anything reads, stores or exports it."""
    try:
        trace = redact_json(reply.trace)
    except RecursionError:
        raise AgentError("the agent's reply has a trace that cannot be journaled: it is nested too deeply") from None
    cost, besides, measured = reply.cost_usd, reply.besides, reply.measured
    named = {redact(part): value for part, value in cost.items()} if isinstance(cost, Mapping) else cost
    return replace(
        reply,
        text=redact(reply.text),
        trace=trace,
        besides={redact(part): usage for part, usage in besides.items()},
        cost_usd=named,
        measured={redact(part): seconds for part, seconds in measured.items()},
    )
