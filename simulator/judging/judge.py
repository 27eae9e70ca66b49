"""The judge: a model that decides what rules cannot. Asked once for each content, at temperature 0; never the agent under test."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, final

import trio
from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.agent import Completes
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.errors import InputError, JournalError, LongspanError, StoppedError, first_problem, one_line
from longspan.simulator.grading.lenient_json import find_json
from longspan.simulator.ledger import Costs, Ledger, models_of
from longspan.simulator.messages import Message, Reply
from longspan.simulator.queries import Answered, Query, Said, statement
from longspan.simulator.stage import Verdict

__all__ = ["Judgement", "Keeps", "LLMJudge", "completing"]

_NO_TIME: Final = datetime(2000, 1, 1)
"""A judge is told no time."""

LONGEST: Final = 100_000
"""Characters of an answer that are read."""


class Keeps(Protocol):
    """Where a judge keeps its answers, so that none is paid for twice: a run's folder, or another that is like it."""

    path: Path

    def judgements(self) -> list[dict[str, Any]]:
        """All answers kept so far."""
        ...

    def judged(self, entry: dict[str, Any]) -> None:
        """Keep an answer. Raises JournalError where that cannot be done."""
        ...

    def incident(self, **entry: Any) -> None:
        """Note that an answer failed."""
        ...


@final
class Judgement(BaseModel):
    """An answer that was paid for: to which content (`key`, with the judge; `about`, without), by whom, and what it cost.
    `answer` None: it could not be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    about: str
    by: str
    answer: dict[str, Any] | None
    why: str = ""
    usage: dict[str, int] | None = None
    cost_usd: dict[str, float | None] | None = None


@final
class LLMJudge:
    """Judges with the model that a spec names, and keeps each answer where `kept` does (a run's `judgements.jsonl`).

    The same content is asked once, also by a later scoring of the run. Answers that failed are not kept: they are asked again.
    """

    def __init__(self, spec: str, kept: Keeps, ledger: Ledger | None = None) -> None:
        self.spec = _cold(AgentSpec.parse(spec))
        self._agent = completing(self.spec)
        self._kept = kept
        self._ledger = ledger or Ledger()
        self._known = {each.key: each for each in _read_kept(kept)}
        self._asking: dict[str, trio.Lock] = {}

    @property
    def said(self) -> Said:
        """What it has answered so far, by `Query.about`."""
        return {each.about: each.answer for each in self._known.values() if each.answer is not None}

    async def judge(self, said: str, text: str) -> Verdict:
        """Whether the statement `said` holds of `text`. A failed judgement is a Verdict with None, and says so."""
        query = statement(said, text)
        found = await self.ask(query)
        if isinstance(found, str):
            return Verdict(None, found, by=self._by(query), failed=True)
        return Verdict(found.holds, found.why[:500], by=self._by(query))

    async def ask(self, query: Query[Answered]) -> Answered | str:
        """The model's answer to a query, or why there is none. What it has been asked before it is not asked again.

        Raises StoppedError where a limit of dollars would be passed, JournalError where the answer cannot be kept.
        """
        key = self._key(query)
        async with self._asking.setdefault(key, trio.Lock()):
            if key not in self._known:
                found = await self._ask(key, query)
                read = _read(query, found)
                if isinstance(read, str):
                    self._kept.incident(conversation="", type="judge_error", about=query.about, error=read)
                    return read
                self._kept.judged(found.model_dump(mode="json"))
                self._known[key] = found
        return _read(query, self._known[key])

    def _by(self, query: Query[Any]) -> str:
        """Who answers a query, for the journal: the spec and the version of the prompt."""
        return f"{self.spec}, prompt {query.version}"

    def _key(self, query: Query[Any]) -> str:
        return hashlib.sha256(f"{self.spec}\0{query.about}".encode()).hexdigest()

    async def _ask(self, key: str, query: Query[Any]) -> Judgement:
        costs: Costs | None = None
        made = {"key": key, "about": query.about, "by": self._by(query)}
        message = Message(query.prompt, _NO_TIME, key[:16])
        models = models_of(self._agent)
        named = {"judge": models["agent"]} if models else models
        try:
            async with self._ledger.paying(named, self._ledger.worst(self._agent, message)) as account:
                reply = await self._agent.complete(query.prompt, schema=query.form)
                costs = account.settle({"judge": reply.usage} if reply.usage else {})
        except (StoppedError, JournalError):
            raise
        except LongspanError as error:
            return Judgement(**made, answer=None, why=f"the judge failed: {error}")
        except Exception as error:
            return Judgement(**made, answer=None, why=f"the judge failed: {one_line(error)}")
        usage = _counted(reply)
        answer = {"text": reply.text[:LONGEST]} if query.answer.free else _object(reply.text)
        why = "" if answer is not None else f"the judge's answer holds no JSON object: {reply.text!r:.100}"
        return Judgement(**made, answer=answer, why=why, usage=usage, cost_usd=costs)


def completing(spec: AgentSpec) -> Completes:
    """The agent of a spec, as one that completes prompts. Raises InputError for a kind that does not."""
    agent = make_agent(spec)
    if not isinstance(agent, Completes):
        raise InputError(f"--judge {spec}: this kind of agent cannot judge; a model can, such as openai/gpt-4o")
    return agent


def _cold(spec: AgentSpec) -> AgentSpec:
    """The spec at temperature 0, unless it says another."""
    if "temperature" in spec.options:
        return spec
    return AgentSpec.parse(f"{spec}{'&' if spec.options else '?'}temperature=0")


def _object(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text."""
    objects = [found.value for found in find_json(text[:LONGEST]) if isinstance(found.value, dict)]
    return objects[-1] if objects else None


def _counted(reply: Reply) -> dict[str, int] | None:
    return asdict(reply.usage) if reply.usage else None


def _read(query: Query[Answered], found: Judgement) -> Answered | str:
    """What was asked for, or why it is not there."""
    return query.read(found.why if found.answer is None else found.answer)


def _read_kept(kept: Keeps) -> list[Judgement]:
    try:
        return [Judgement.model_validate(entry) for entry in kept.judgements()]
    except ValidationError as error:
        raise JournalError(f"{kept.path / 'judgements.jsonl'}: not a judgement: {first_problem(error)}; move it away") from None
