"""A model at temperature 0 with stored answers, so that each query is sent only once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from math import inf
from typing import Any, Final, Literal, final

import trio

from longspan.simulator.base.errors import InputError, JournalError, LongspanError, StoppedError, one_line
from longspan.simulator.base.gather import gather
from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.contract.agent import CompletionModel
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.queries import Answered, Query
from longspan.simulator.journal.answer_store import AnswerStore, StoredAnswer
from longspan.simulator.subject.ledger import Ledger, check_priced, models_of
from longspan.simulator.subject.purse import Purse
from longspan.simulator.subject.spending_record import SpendingRecord
from longspan.simulator.suite.agent_spec import AgentSpec, class_of, make_agent, resolve_spec

__all__ = ["CachedModel", "check_model", "object_in"]

NO_JSON: Final = 'name another judge, or add extra_body={"response_format":{"type":"json_object"}} to its spec'
"""Advice if a judge does not answer with JSON, because its server ignores schemas."""

_NO_TIME: Final = datetime(2000, 1, 1)
"""A placeholder for the message's time. Prompts do not contain it."""


@final
class CachedModel:
    """The model of a spec. It keeps its answers in `store`, so that each query is sent only once, even by a later process.

    Failed answers are not kept, and their queries are sent again. After a cost limit or an error of the store, no more queries are sent.
    """

    def __init__(self, spec: str, store: AnswerStore, ledger: Ledger | None = None, record: SpendingRecord | None = None) -> None:
        self.spec = _at_temperature_0(resolve_spec(AgentSpec.parse(spec)))
        self.ledger = ledger or Ledger()
        self._purse = Purse(self.ledger, record, f"judge {self.spec}", "judge")
        with self._purse.pay_in_context():
            self._agent = _make_completion_model(self.spec)
        self._store = store
        self._known = {answer.key: answer for answer in store.answers()}
        self._asking: dict[str, trio.Lock] = {}
        self._failure: LongspanError | None = None

    def by(self, query: Query[Any]) -> str:
        """Return the author of a query's answer, for the journal: the spec and the version of the prompt."""
        return f"{self.spec}, prompt {query.version}"

    async def ask(self, query: Query[Answered]) -> Answered | str:
        """Return the answer to a query, or the reason for its absence.

        Raises StoppedError if a cost limit would be exceeded, and JournalError if the answer cannot be stored.
        """
        # The spec is part of the key, since another model or another option may answer differently.
        key = hashlib.sha256(f"{self.spec}\0{query.about}".encode()).hexdigest()
        # A lock for each key: two tests may ask the same query at the same time, and only one of them should pay for it.
        async with self._asking.setdefault(key, trio.Lock()):
            if key not in self._known:
                if self._failure is not None:
                    raise self._failure
                try:
                    stored = await self._ask(key, query)
                    answer = _read(query, stored)
                    if isinstance(answer, str):
                        self._store.record_failure(query.about, answer)
                        return answer
                    self._store.add(stored)
                except LongspanError as error:
                    self._failure = error
                    raise
                self._known[key] = stored
        return _read(query, self._known[key])

    async def ask_all(
        self, queries: Sequence[Query[Answered]], on_progress: Callable[[int, int], None] | None = None
    ) -> list[Answered | str]:
        """Return the answers to queries, which are asked concurrently, in order. `on_progress` gets the number done and the total.

        Raises as `ask` does, after pending answers have arrived.
        """
        return await gather(self.ask, queries, on_progress)

    async def _ask(self, key: str, query: Query[Any]) -> StoredAnswer:
        common = {"key": key, "about": query.about, "by": self.by(query)}
        message = Message(query.prompt, _NO_TIME, key[:16])
        models = models_of(self._agent)
        judge = {"judge": models["agent"]} if models else models
        try:
            worst = self.ledger.worst(self._agent, message, f"judge {self.spec}", len(query.prompt))
            async with self._purse.open_account(judge, worst, "judge", query=key) as account:
                reply = await self._agent.complete(query.prompt, schema=query.form)
                costs = account.settle({"judge": reply.usage} if reply.usage else {})
        except (StoppedError, JournalError):
            raise
        except LongspanError as error:
            return StoredAnswer(**common, answer=None, why=f"the judge failed: {error}")
        except Exception as error:
            return StoredAnswer(**common, answer=None, why=f"the judge failed: {one_line(error)}")
        answer = {"text": readable_part(reply.text)} if query.answer.free else object_in(reply.text)
        why = "" if answer is not None else f"the judge's answer has no JSON object: {reply.text!r:.100}; {NO_JSON}"
        paid = {"usage": asdict(reply.usage) if reply.usage else None, "cost_usd": costs}
        return StoredAnswer(**common, answer=answer, why=why, dropped=_dropped(reply), **paid)


def check_model(spec: str, max_cost: float = inf, *, role: Literal["judge", "writer"] = "judge") -> None:
    """Raise InputError if a spec cannot be a CachedModel, or if its price is unknown but `max_cost` (dollars) is a limit."""
    model = _make_completion_model(AgentSpec.parse(spec), role)
    if max_cost < inf:
        check_priced(model, spec)


def _make_completion_model(spec: AgentSpec, role: Literal["judge", "writer"] = "judge") -> CompletionModel:
    completes = hasattr(class_of(spec), "complete")  # before its options are checked
    agent = make_agent(spec) if completes else None
    if not isinstance(agent, CompletionModel):
        raise InputError(f"--{role} {spec.kind}: this kind of agent cannot {role.removesuffix('r')}; name a model, such as openai/gpt-4o")
    return agent


def _at_temperature_0(spec: AgentSpec) -> AgentSpec:
    """Return the spec with temperature 0, unless it sets one."""
    if "temperature" in spec.options:
        return spec
    return spec.with_options({"temperature": "0"})


def _dropped(reply: Reply) -> list[str]:
    """Return what was left out of a request because the server rejects it. A user's model may have any trace."""
    dropped = (reply.trace or {}).get("dropped")
    return list(map(str, dropped)) if isinstance(dropped, list) else []


def object_in(text: str) -> dict[str, Any] | None:
    """Return the last JSON object in `text`, or None."""
    objects = [match.value for match in find_json(readable_part(text)) if isinstance(match.value, dict)]
    return objects[-1] if objects else None


def _read(query: Query[Answered], stored: StoredAnswer) -> Answered | str:
    """Return the answer, or the reason for its absence."""
    return query.read(stored.why if stored.answer is None else stored.answer)
