"""Estimates the tokens and the cost of a run by playing its conversations without the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator.contract.agent import Agent, IdealReplyAgent, Pace, can_observe
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import fork_of
from longspan.simulator.journal.journal import Journal
from longspan.simulator.journal.transcript import PlayedTurn, Transcripts
from longspan.simulator.play.conversation import Conversation
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.play.positions import Trunk
from longspan.simulator.play.trunk_agent import TrunkAgent
from longspan.simulator.running.planning import Plan, setting_of
from longspan.simulator.subject.ledger import Spending, tally_spending, total_cost
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.subject.spending_record import SpendingTotals
from longspan.simulator.suite.agent_spec import AgentSpec, inspect_agent, make_agent
from longspan.simulator.suite.experiment import ExperimentKind

__all__ = ["Estimate", "estimate_run", "predict_fresh_tokens"]


@final
@dataclass(slots=True)
class _Size:
    """Sums over a conversation's own turns. The turns themselves are not kept, because a long history would fill the memory."""

    turns: int = 0
    asked: int = 0
    user_tokens: int = 0

    def add(self, turn: PlayedTurn) -> None:
        self.turns += 1
        self.asked += turn.reply is not None and turn.reply.asked
        self.user_tokens += turn.message.tokens


class _RunSize(BaseModel):
    """The size of a planned run.

    The agent is asked in `asked` of the `turns`. `tokens` counts the conversation, and `user_tokens` the user's part. `parts` has the usage
    and cost of each part (agent, embedder), and is empty if the agent cannot estimate them. `nights` counts the nights; the agent's work in
    them is not estimated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int
    asked: int
    tokens: int
    user_tokens: int
    nights: int = 0
    parts: dict[str, Spending]


@final
class Extra(_RunSize):
    """The additional tokens and cost of one kind of experiment, with its number of `conversations`."""

    conversations: int


@final
class Estimate(_RunSize):
    """An estimate of a run's tokens and cost with ideal replies.

    `minutes` is the shortest and the longest time that a local model will take; None for other agents. `span` is in tokens, None if every
    test has a separate conversation. `twins`, `lesions` and `control` come in addition, None without such experiments. `spending` is the
    cost of a run that has already begun.

    `turns`, `asked` and `user_tokens` match the run exactly, because every agent gets the same conversation. Dynamic tests are the
    exception: replies decide which of their possible messages they send, which changes `user_tokens`. In separate conversations, where no
    filler replaces them, replies also change how many they send.
    """

    suite: str
    span: int | None
    seed: int
    agent: str
    minutes: tuple[float, float] | None = None
    twins: Extra | None = None
    lesions: Extra | None = None
    control: Extra | None = None
    spending: SpendingTotals | None = None

    @property
    def extras(self) -> dict[str, Extra]:
        """The additional size of the run's experiments, by kind."""
        found = {"twins": self.twins, "lesions": self.lesions, "controls": self.control}
        return {name: extra for name, extra in found.items() if extra is not None}

    @property
    def cost_usd(self) -> float | None:
        """The total cost in dollars; None if a price is unknown or the agent cannot estimate its usage."""
        costs = [part.cost_usd for played in (self, *self.extras.values()) for part in played.parts.values()]
        return total_cost(costs) if costs else None


async def estimate_run(plan: Plan) -> Estimate:
    """Estimate a run by playing its conversations with ideal replies and without the agent's model.

    The agent must have a method `without_model()`. It returns the agent with a stand-in model, which replies what `prompt` sets and counts
    the tokens that a call would use. For other agents, only the conversation is estimated. Judges are not estimated, because their queries
    are unknown beforehand.
    """
    transcripts = Transcripts()
    sizes: dict[str, _Size] = defaultdict(_Size)

    def add(id: str, event: events.Event) -> None:
        change = transcripts.add(id, event)
        if isinstance(change, PlayedTurn) and change.reply is not None and change.number >= transcripts[id].before:
            sizes[id].add(change)

    with TemporaryDirectory() as folder:
        await _play(plan, Path(folder), add)
        await _play_experiments(plan, Path(folder), add)
    with inspect_agent(plan.agent) as agent:
        agent_observes = can_observe(agent)
        pace = await measure() if callable(measure := getattr(agent, "pace", None)) else None
    manifest = plan.manifest

    def played(ids: Iterable[str]) -> dict[str, Any]:
        own = [sizes[id] for id in ids]
        return {
            "turns": sum(size.turns for size in own),
            "asked": sum(size.asked if agent_observes else size.turns for size in own),
            "tokens": sum(transcripts[id].own_tokens for id in ids),
            "user_tokens": sum(size.user_tokens for size in own),
            "nights": sum(len(transcripts[id].nights) for id in ids),
            "parts": tally_spending(entry for id in ids for entry in transcripts[id].used),
        }

    def extra(kind: ExperimentKind) -> Extra | None:
        ids = [id for id, experiment in manifest.experiments.items() if experiment.kind == kind]
        return Extra(conversations=len(ids), **played(ids)) if ids else None

    return Estimate(
        suite=manifest.suite.name,
        span=None if manifest.alone else manifest.span,
        seed=manifest.seed,
        agent=manifest.agent,
        minutes=_minutes(pace, [usage for id in sizes for part, usage, _ in transcripts[id].used if part == "agent"]) if pace else None,
        twins=extra("twin"),
        lesions=extra("lesion"),
        control=extra("control"),
        **played(manifest.conversations),
    )


async def predict_fresh_tokens(plan: Plan, replies: int, stopped: Callable[[], bool]) -> dict[str, list[int]]:
    """Predict the tokens that the agent's model has to compute before each reply, by conversation: those of its prompt that are not cached.

    It plays the conversations without the model, with replies of about `replies` tokens. Empty if the agent cannot do without its model, or
    once `stopped` returns True.
    """
    fresh: dict[str, list[int]] = {}
    transcripts = Transcripts()

    def add(id: str, event: events.Event) -> None:
        if stopped():
            raise _StoppedError
        change = transcripts.add(id, event)
        if isinstance(change, PlayedTurn) and change.reply is not None and change.reply.asked:
            used = change.reply.usage or {}
            fresh.setdefault(id, []).append(used.get("input_tokens", 0) - used.get("cached_tokens", 0))

    with TemporaryDirectory() as folder, suppress(_StoppedError):
        await _play(plan, Path(folder), add, " OK" * replies)
        return fresh if any(map(any, fresh.values())) else {}
    return {}


@final
class _StoppedError(Exception):
    """Ends a prediction that nobody waits for any longer."""


SLOWER: Final = 3.0
"""How many times slower a model may become as its conversation grows, since each new token attends to all earlier ones."""


def _minutes(pace: Pace, used: Iterable[Mapping[str, int]]) -> tuple[float, float]:
    """Return the minutes for ideal answers at the measured pace, and the most for answers of maximum length at a reduced pace."""
    quick = slow = 0.0
    for usage in used:
        fresh = (usage.get("input_tokens", 0) - usage.get("cached_tokens", 0)) / pace.reading
        quick += fresh + usage.get("output_tokens", 0) / pace.writing
        slow += SLOWER * (fresh + max(usage.get("output_tokens", 0), pace.longest) / pace.writing)
    return round(quick / 60, 2), round(slow / 60, 2)


async def _play(plan: Plan, folder: Path, add: Callable[[str, events.Event], object], reply: str | None = None) -> None:
    """Play the conversations and pass their events, with the conversation's id, to `add`. Without `reply`, replies are ideal."""
    trunks: dict[str, tuple[Agent, Trunk, TrunkAgent]] = {}
    for id, tests in plan.tests.items():
        setting, known = setting_of(plan.manifest, id), trunks.get(plan.manifest.trunks.get(id, ""))
        agent, trunk, trunk_agent = known or (_stand_in(plan), None, None)
        snapshots = Snapshots(folder / id / "snapshots")
        prompt = agent.prompt if isinstance(agent, IdealReplyAgent) else None
        give_ideal = prompt if prompt is None or reply is None else lambda _, prompt=prompt: prompt(reply)
        kept = snapshots if setting.branched or setting.pinned else None
        live = LiveAgent(agent, snapshots=kept, give_ideal=give_ideal, trunk=trunk_agent)
        with Journal(folder / id / "journal.jsonl") as journal:
            conversation = Conversation(setting, tests, live, journal, listener=partial(add, id), trunk=trunk)
            await conversation.play()
            if setting.branched:
                trunk = conversation.end()
                trunk_agent = TrunkAgent(agent, snapshots, trunk.turns, live.depth, tuple)
                await live.end_trunk(trunk_agent)
                trunks[id] = agent, trunk, trunk_agent
            await live.end_branch()


async def _play_experiments(plan: Plan, folder: Path, add: Callable[[str, events.Event], object]) -> None:
    for id, experiment in plan.manifest.experiments.items():
        trunk = folder / experiment.conversation
        fork = fork_of(experiment, trunk / "journal.jsonl") if experiment.shares else None
        loads = fork if experiment.kind == "twin" else None
        snapshots = Snapshots(trunk / "snapshots", copied=True, until=loads.point.turn) if loads is not None else None
        agent = _stand_in(plan)
        give_ideal = agent.prompt if isinstance(agent, IdealReplyAgent) else None
        live = LiveAgent(agent, snapshots=snapshots, give_ideal=give_ideal)
        with Journal(folder / id / "journal.jsonl", shared=fork.shared if fork is not None else None) as journal:
            setting, tests = setting_of(plan.manifest, id), plan.tests_in(id)
            await Conversation(setting, tests, live, journal, listener=partial(add, id), fork=fork).play()


def _stand_in(plan: Plan) -> Agent:
    """Return the agent without its model, or the oracle if the agent cannot be run without its model."""
    with inspect_agent(plan.agent) as agent:
        can_do_without = callable(getattr(agent, "without_model", None))
    made: Any = make_agent(plan.agent if can_do_without else AgentSpec.parse("oracle"))
    stand_in: Agent = made.without_model() if can_do_without else made
    return stand_in
