"""What a run will take, told beforehand: the conversation is played without the model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from pydantic import BaseModel, ConfigDict

from longspan.simulator import events
from longspan.simulator.agent import Agent, IdealReplyAgent, observes
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.conversation import Conversation
from longspan.simulator.journal import Journal
from longspan.simulator.ledger import Spending, tally, total_cost
from longspan.simulator.live_agent import LiveAgent
from longspan.simulator.planning import Plan, setting_of
from longspan.simulator.transcript import Transcript, Turn

__all__ = ["Estimate", "estimate"]


@final
class Estimate(BaseModel):
    """What a run will take, where replies are ideal: `span` in tokens (None where every test has a conversation to itself);
    `turns`, of which the agent is `asked`; `tokens` of conversation; and what each part (agent, embedder) will use and cost.
    `parts` is empty where the agent cannot tell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    span: int | None
    seed: int
    agent: str
    turns: int
    asked: int
    tokens: int
    parts: dict[str, Spending]

    @property
    def cost_usd(self) -> float | None:
        """Dollars in all; None where a price is unknown or the agent cannot tell what it uses."""
        costs = [part.cost_usd for part in self.parts.values()]
        return total_cost(costs) if costs else None


async def estimate(plan: Plan) -> Estimate:
    """Play a run's conversations with ideal replies and the agent's own way of asking, but without its model.

    The agent has to offer `without_model()`: itself with a model that says what `prompt` tells it to and counts what asking
    would have taken. For others only the conversation is told. Judges are not estimated: nobody knows what they are asked.
    """
    transcripts = {id: Transcript() for id in plan.tests}
    asked = 0
    taking_note = observes(make_agent(plan.agent))
    with TemporaryDirectory() as folder:
        for id, transcript in transcripts.items():
            asked += await _play(plan, id, transcript, taking_note, Path(folder) / id / "journal.jsonl")
    manifest = plan.manifest
    return Estimate(
        suite=manifest.suite.name,
        span=None if manifest.alone else manifest.span,
        seed=manifest.seed,
        agent=manifest.agent,
        turns=sum(t.turns for t in transcripts.values()),
        asked=asked,
        tokens=sum(t.tokens for t in transcripts.values()),
        parts=tally(entry for t in transcripts.values() for entry in t.used),
    )


async def _play(plan: Plan, id: str, transcript: Transcript, taking_note: bool, path: Path) -> int:
    """Play a conversation into `transcript`. Returns how many turns the agent has to be asked; one `taking_note` is not asked those
    whose reply is ready."""
    agent = _stand_in(plan)
    asked = 0

    def count(event: events.Event) -> None:
        nonlocal asked
        change = transcript.add(event)
        if isinstance(change, Turn) and change.reply is not None:
            asked += change.reply.asked or not taking_note

    live = LiveAgent(agent, give_ideal=agent.prompt if isinstance(agent, IdealReplyAgent) else None)
    with Journal(path) as journal:
        await Conversation(setting_of(plan.manifest, id), plan.tests[id], live, journal, listener=count).play()
    return asked


def _stand_in(plan: Plan) -> Agent:
    """The agent without its model; for one that has none to leave out, the oracle."""
    agent: Any = make_agent(plan.agent)
    if callable(getattr(agent, "without_model", None)):
        made: Agent = agent.without_model()
        return made
    return make_agent(AgentSpec.parse("oracle"))
