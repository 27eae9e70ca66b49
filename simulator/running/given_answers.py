"""Scores answers that a system gave elsewhere: the questions' tests are played with an agent that repeats these answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.simulator.contract.given_answers import MATCHERS, AnswerMatcher, GivenReply, MatchedAnswers
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.play.conversation import name_turns
from longspan.simulator.running.imports import check_new, describe_source, new_run
from longspan.simulator.running.planning import Plan, plan_run
from longspan.simulator.running.player import Listener, Outcome
from longspan.simulator.running.runner import play_runs
from longspan.simulator.running.scoring import Pages
from longspan.simulator.subject.in_memory_agents import KIND, GivenObject, register_agents
from longspan.simulator.subject.ledger import Ledger
from longspan.simulator.subject.spending_limit import UNLIMITED
from longspan.simulator.suite.manifest import ANSWERS
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.trust import remember_trust, vouch_for

__all__ = ["GivenRun", "plan_given", "play_given"]

NOT_PLAYED: Final = "not played"
"""Part of the agent's name, so that every table and picture with such a run says so."""

MOST: Final = 10_000
"""The most histories of a run."""

_OBJECT: Final = "answers"
"""The name of the agent object during the run."""


@final
class GivenRun(NamedTuple):
    """A run to be scored: its plan, its answers, and the folder to create."""

    plan: Plan
    matched: MatchedAnswers
    out: Path


@final
class _GivenAnswers:
    """An agent that gives a prepared reply in each conversation. It has no state."""

    models: Final[dict[str, str]] = {}
    repeatable: Final = True

    def __init__(self, replies: dict[str, Reply]) -> None:
        self._replies = replies

    async def reply(self, message: Message) -> Reply:
        return self._replies[message.turn_id.rpartition("-")[0]]

    async def observe(self, message: Message, reply: str) -> None:
        """Do nothing."""

    async def mark(self) -> None:
        """Do nothing."""

    async def rewind(self) -> None:
        """Do nothing."""

    async def reset(self) -> None:
        """Do nothing."""


def plan_given(settings: RunSettings, answers: Path, name: str, out: Path) -> GivenRun:
    """Plan a run that scores the answers in a file, of the system `name`. `settings` name the questions; their agent is replaced.

    Raises InputError for invalid settings or answers, and if `out` exists.
    """
    check_new(out)
    usual, (scenario,) = settings.suite, settings.suite.scenarios
    match: AnswerMatcher = load_plugin(MATCHERS, "scenario with questions to answer elsewhere", scenario)
    source = describe_source(ANSWERS, answers)
    everything = usual.model_copy(update={"tests": MOST, "each": {}})
    with register_agents({_OBJECT: _hold({})}):
        plan = plan_run(settings.model_copy(update={"suite": everything, "agent": f"{KIND}:{_OBJECT}"}), out.parent)
    matched = match(answers, [test for group in plan.tests.values() for test in group])
    # The usual number, if it is enough for all histories: then a run that was played with them has the same settings.
    told = sum(planned.tells for group in plan.manifest.conversations.values() for planned in group)
    suite = plan.manifest.suite.model_copy(update={"tests": max(usual.tests, told), "each": usual.each})
    manifest = plan.manifest.model_copy(update={"suite": suite, "agent": f"{name} ({NOT_PLAYED})", "imported": source})
    vouch_for(manifest)
    return GivenRun(replace(plan, manifest=manifest), matched, out)


async def play_given(given: GivenRun, listener: Listener | None = None, pages: Pages | None = None) -> Outcome:
    """Score the answers as a new run, which appears as a whole or not at all. Raises LongspanError."""
    plan, matched = given.plan, given.matched
    replies = {
        name_turns(conversation): _make_reply(matched.replies[test.id], name_turns(test.trunk or ""), matched.k)
        for conversation, tests in plan.tests.items()
        for test in tests
        if test.id in matched.replies
    }
    with register_agents({_OBJECT: _hold(replies)}), new_run(given.out, plan.manifest) as run:
        for note in matched.notes:
            run.incident(conversation=next(iter(plan.tests)), type="import", error=note)
        (outcome,) = await play_runs([(plan, run)], Ledger(UNLIMITED), listener=listener, pages=pages, signals=True, new=True)
        if outcome.error is not None:
            raise outcome.error
    remember_trust(given.out, plan.manifest)
    return replace(outcome, folder=given.out)


def _hold(replies: dict[str, Reply]) -> GivenObject:
    agent = _GivenAnswers(replies)
    return GivenObject(lambda: agent, shared=True, under_trio=True)


def _make_reply(given: GivenReply, told: str, k: int) -> Reply:
    """Return a reply whose trace reports what the system retrieved. `told` is the prefix of the history's turn ids."""
    trace: dict[str, Any] = {} if given.text is not None else {"answers": False}
    if given.read is not None:
        trace |= {"k": k, "read": [_describe_memory(f"{number}", told, places) for number, places in enumerate(given.read, 1)]}
    return Reply(given.text or "", trace=trace or None)


def _describe_memory(id: str, told: str, places: Sequence[int]) -> dict[str, Any]:
    return {"id": id, "turns": [f"{told}-{place}" for place in places]}
