"""A model that is asked once for each content, at temperature 0, and whose answers are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from math import inf
from typing import Any, Final, final

import trio

from longspan.simulator.agent import CompletionModel
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.answer_store import AnswerStore, StoredAnswer
from longspan.simulator.errors import InputError, JournalError, LongspanError, StoppedError, one_line
from longspan.simulator.gather import gather
from longspan.simulator.grading.lenient_json import find_json
from longspan.simulator.ledger import Ledger, check_priced, models_of
from longspan.simulator.messages import Message
from longspan.simulator.queries import Answered, Query

__all__ = ["CachedModel", "check_model"]

_NO_TIME: Final = datetime(2000, 1, 1)
"""Such a model is told no time."""

LONGEST: Final = 100_000
"""Characters of an answer that are read."""


@final
class CachedModel:
    """The model that a spec names. Its answers are kept in `store`: the same content is asked once, also by a later process.

    Answers that failed are not kept: they are asked again. Once a limit of dollars would have been passed, or an answer could not
    be kept, nothing more is asked.
    """

    def __init__(self, spec: str, store: AnswerStore, ledger: Ledger | None = None) -> None:
        self.spec = _cold(AgentSpec.parse(spec))
        self.ledger = ledger or Ledger()
        self._agent = _completing(self.spec)
        self._store = store
        self._known = {each.key: each for each in store.answers()}
        self._asking: dict[str, trio.Lock] = {}
        self._failure: LongspanError | None = None

    def by(self, query: Query[Any]) -> str:
        """Who answers a query, for the journal: the spec and the version of the prompt."""
        return f"{self.spec}, prompt {query.version}"

    async def ask(self, query: Query[Answered]) -> Answered | str:
        """The answer to a query, or why there is none.

        Raises StoppedError where a limit of dollars would be passed, JournalError where the answer cannot be kept.
        """
        key = hashlib.sha256(f"{self.spec}\0{query.about}".encode()).hexdigest()
        async with self._asking.setdefault(key, trio.Lock()):
            if key not in self._known:
                if self._failure is not None:
                    raise self._failure
                try:
                    found = await self._ask(key, query)
                    read = _read(query, found)
                    if isinstance(read, str):
                        self._store.failed(query.about, read)
                        return read
                    self._store.add(found)
                except LongspanError as error:
                    self._failure = error
                    raise
                self._known[key] = found
        return _read(query, self._known[key])

    async def ask_all(self, queries: Sequence[Query[Answered]], heard: Callable[[int, int], None] | None = None) -> list[Answered | str]:
        """The answers to queries that are asked together, in their order. `heard` is told how many there are, of how many.

        Raises as `ask` does, once what was asked already has been answered.
        """
        return await gather(self.ask, queries, heard)

    async def _ask(self, key: str, query: Query[Any]) -> StoredAnswer:
        made = {"key": key, "about": query.about, "by": self.by(query)}
        message = Message(query.prompt, _NO_TIME, key[:16])
        models = models_of(self._agent)
        named = {"judge": models["agent"]} if models else models
        try:
            async with self.ledger.paying(named, self.ledger.worst(self._agent, message)) as account:
                reply = await self._agent.complete(query.prompt, schema=query.form)
                costs = account.settle({"judge": reply.usage} if reply.usage else {})
        except (StoppedError, JournalError):
            raise
        except LongspanError as error:
            return StoredAnswer(**made, answer=None, why=f"the judge failed: {error}")
        except Exception as error:
            return StoredAnswer(**made, answer=None, why=f"the judge failed: {one_line(error)}")
        answer = {"text": reply.text[:LONGEST]} if query.answer.free else _object(reply.text)
        why = "" if answer is not None else f"the judge's answer holds no JSON object: {reply.text!r:.100}"
        return StoredAnswer(**made, answer=answer, why=why, usage=asdict(reply.usage) if reply.usage else None, cost_usd=costs)


def check_model(spec: str, most: float = inf) -> None:
    """Whether a CachedModel of the spec can be asked, under a limit of `most` dollars.

    Raises InputError for a kind of agent that completes no prompts and, where there is a limit, for an unknown price.
    """
    model = _completing(AgentSpec.parse(spec))
    if most < inf:
        check_priced(model, spec)


def _completing(spec: AgentSpec) -> CompletionModel:
    agent = make_agent(spec)
    if not isinstance(agent, CompletionModel):
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


def _read(query: Query[Answered], found: StoredAnswer) -> Answered | str:
    """What was asked for, or why it is not there."""
    return query.read(found.why if found.answer is None else found.answer)
