"""Checks of what a model's server supports: dates before messages, JSON schemas, and the fields of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, final

from longspan.agents.base import AgentError
from longspan.agents.models.api import ApiCore
from longspan.agents.models.core import ChatMessage, stamp_message
from longspan.simulator.base.clock import DEFAULT_START
from longspan.simulator.contract.findings import Check, Finding

__all__ = ["ServerChecks"]

NUMBER: Final = "4417"
TOLD: Final = f"The parcel is in locker {NUMBER}."
QUESTION: Final = "Which locker is the parcel in? Reply with its number."

JSON_QUESTION: Final = "Is seven a prime number? Answer with a JSON object and nothing else: its field `prime` is true or false."
SCHEMA: Final = {
    "type": "object",
    "properties": {"prime": {"type": "boolean"}},
    "required": ["prime"],
    "additionalProperties": False,
}


@final
class ServerChecks:
    """The checks of the model that `make` returns. With `timestamps`, the agent's messages begin with their dates."""

    def __init__(self, make: Callable[[], ApiCore], *, timestamps: bool) -> None:
        self._make = make
        self._timestamps = timestamps
        self.checks: Sequence[Check] = [
            Check("dates", self._check_dates),
            Check("JSON schema", self._check_schema),
            Check("request fields", self._check_fields),
        ]

    async def close(self) -> None:
        """Do nothing."""

    async def _check_dates(self) -> Finding | None:
        if not self._timestamps:
            return None
        core = self._make()
        dated, plain = await self._recalls(core, dated=True), await self._recalls(core, dated=False)
        if dated:
            return Finding("dates", "good", "supported: a fact is recalled from a message that begins with its date")
        if plain:
            what = "failed: a fact is recalled from a message without a date, but not with one: set timestamps=false"
            return Finding("dates", "note", what)
        return Finding("dates", "note", "a fact is recalled neither from a message with a date nor from one without")

    async def _recalls(self, core: ApiCore, *, dated: bool) -> bool:
        told, question = (stamp_message(text, DEFAULT_START) if dated else text for text in (TOLD, QUESTION))
        completion = await core.complete([ChatMessage("user", told), ChatMessage("assistant", "Noted."), ChatMessage("user", question)])
        return NUMBER in completion.text

    async def _check_schema(self) -> Finding:
        try:
            completion = await self._make().complete([ChatMessage("user", JSON_QUESTION)], schema=SCHEMA)
        except AgentError as error:
            return Finding("JSON schema", "note", f"failed, so it cannot be a judge: {error}")
        with suppress(ValueError):
            if isinstance(json.loads(completion.text), dict):
                if {"json_schema", "response_format"}.isdisjoint(completion.dropped):
                    return Finding("JSON schema", "good", "supported")
                return Finding("JSON schema", "note", "dropped: the server rejects a schema, so it is written into the prompt")
        return Finding("JSON schema", "note", f"failed: the answer is not JSON alone: {completion.text!r:.60}")

    async def _check_fields(self) -> Finding:
        learned = self._make().dialect.learned
        dropped = [each.name for each in learned if not each.lossless]
        renamed = "; the maximum tokens are sent under their other name" if len(dropped) < len(learned) else ""
        if dropped:
            return Finding("request fields", "note", f"dropped, because the server rejects them: {', '.join(dropped)}{renamed}")
        return Finding("request fields", "good", f"supported: nothing was dropped{renamed}")
