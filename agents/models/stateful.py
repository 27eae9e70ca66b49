"""Agents that are a chat model whose server keeps the conversation: a request has only what the server lacks."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from secrets import token_hex
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.agents.base import AgentError, AgentOptions, Message, Reply
from longspan.agents.models.api import RESERVED
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.chat import Complete, FittedMessage, LastTurn
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError, as_sent
from longspan.agents.models.request import ServerState
from longspan.agents.models.web import FRAMING
from longspan.agents.outside.counts import drop_reply
from longspan.simulator.base.errors import first_problem
from longspan.simulator.subject.ledger import DROPPED, Rates
from longspan.simulator.subject.prompt_log import note_prompt

__all__ = ["MAX_ID", "ServerPoint", "SessionAgent", "SessionOptions", "StatefulAgent", "check_shown"]

MAX_ID: Final = 1000
"""The maximum characters of a server's name for a state or a task."""

TRACED: Final = "server"
"""The key of a trace with the state of the server's conversation after the turn."""


class ServerPoint(BaseModel):
    """A state of a conversation on the server: the server's name for it, empty before the first turn, and its tokens if known.

    `task`: the server's name for the task that waits for the next message, if any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str = Field(default="", max_length=MAX_ID)
    tokens: int = Field(default=0, ge=0)
    task: str = Field(default="", max_length=MAX_ID)

    @property
    def trace(self) -> dict[str, Any]:
        """The trace of a turn that ended in this state."""
        return {TRACED: self.model_dump(exclude_defaults=True)}

    @classmethod
    def of(cls, message: Message, reply: Reply) -> ServerPoint | None:
        """Return the state that a turn's trace names, if any. Raises AgentError if the trace is invalid: it may come from a file."""
        if (found := (reply.trace or {}).get(TRACED)) is None:
            return None
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            raise AgentError(f"the trace of turn {message.turn_id} cannot be read: {first_problem(error)}") from None


class StatefulAgent(ApiAgent):
    """A chat model whose server keeps the conversation. The window has only the turns that the server lacks."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self.show_all()

    def _forget(self) -> None:
        super()._forget()
        self._point = ServerPoint()
        self._sent = False

    async def replay(self, message: Message, reply: Reply) -> None:
        """Add a turn by its text: the trace names a state of another conversation. `rejoin` continues the agent's own."""
        await self.observe(message, reply.text)

    async def rejoin(self, message: Message, reply: Reply) -> bool:
        """Continue the server's conversation after a turn, if its trace names the state. Raises AgentError if the trace is invalid."""
        if (point := ServerPoint.of(message, reply)) is None:
            return False
        self._point = point
        self._window.clear()
        self._last = LastTurn(turn_id=message.turn_id, reply=reply.text, refused=reply.refused)
        return True

    def _add(self, message: Message, fitted: FittedMessage, reply: str, *, refused: bool = False) -> None:
        super()._add(message, fitted, reply, refused=refused)
        if self._sent:
            self._window.clear()
            self._sent = False

    async def _ask(
        self, fitted: FittedMessage, trace: dict[str, Any], after: Sequence[ChatMessage] = (), complete: Complete | None = None
    ) -> Completion:
        prompt = [*self._prompt(fitted.text), *after]
        note_prompt(self.core.name, as_sent(prompt))
        try:
            return await self._go_on(prompt, trace)
        except ContextOverflowError as error:
            raise AgentError(f"{error}; its server keeps the conversation, and has to shorten it") from None

    @abstractmethod
    async def _go_on(self, prompt: list[ChatMessage], trace: dict[str, Any]) -> Completion:
        """Send the messages that the server lacks, and record the state of its conversation in `trace`."""


# A server that names a conversation.


def _check_place(place: str) -> str:
    where, _, name = place.partition(":")
    names = name.split(".") if where == "body" else [name]
    taken = RESERVED if where == "body" else FRAMING | {"authorization", "x-api-key", "api-key"}
    if where not in ("header", "body") or not all(re.fullmatch(r"[A-Za-z0-9_-]{1,100}", each) for each in names):
        raise ValueError("expected header:NAME or body:FIELD, such as header:X-Session-Id or body:metadata.session_id")
    if names[0] in taken or names[0].lower() in taken:
        raise ValueError(f"{names[0]} cannot be set")
    return place


class SessionOptions(AgentOptions):
    """Where a conversation is kept."""

    history: Literal["client", "server"] = "client"
    """Who keeps the conversation: `client` sends its turns with each message; `server` sends only the newest message, and a server at
    `base_url` keeps the rest."""
    conversation: Annotated[str, AfterValidator(_check_place)] = "header:X-Session-Id"
    """With `history=server`, the place of the conversation's id in a request: `header:NAME`, or `body:FIELD` with dots for nested
    fields."""

    @model_validator(mode="after")
    def _server_keeps(self) -> Self:
        if self.history == "server":
            check_shown(self)
            if getattr(self, "base_url", None) is None:
                raise ValueError("history=server needs base_url=, a server that keeps conversations; OpenAI's own do so in responses/MODEL")
        elif "conversation" in self.model_fields_set:
            raise ValueError("conversation needs history=server")
        return self


def check_shown(options: AgentOptions) -> None:
    """Raise ValueError for an option about what a model sees, which longspan does not decide if a server keeps the conversation."""
    if shown := next((name for name in ("context", "eviction", "overflow") if name in options.model_fields_set), None):
        raise ValueError(f"the server keeps the conversation and decides what its model sees: leave out {shown}")


class SessionAgent(StatefulAgent):
    """A chat server that keeps each conversation under an id that the agent makes up.

    It gets only the newest message, and the system message with the first one. It cannot return to an earlier state: a turn that is sent
    again is in its conversation twice. Turns that it should only read are answered, too.
    """

    has_snapshots = observes = repeatable = rewinds = False
    lacks = "only its present state"
    worst_case = without_model = None  # type: ignore[assignment]  # its prompts are unknown

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The model, with its price."""
        return {"agent": self.core.priced_as, DROPPED: self.core.priced_as}

    async def reply(self, message: Message) -> Reply:
        self._last = None  # a repeated turn is sent again, as it would be after a crash
        return await super().reply(message)

    async def observe(self, message: Message, reply: str) -> Reply:  # type: ignore[override]
        answered = await self.reply(message)
        return replace(drop_reply(answered), trace=self._point.trace)

    def _prompt(self, text: str) -> list[ChatMessage]:
        return [*([] if self._point.id else self._system), ChatMessage("user", text)]

    async def _go_on(self, prompt: list[ChatMessage], trace: dict[str, Any]) -> Completion:
        if not self._point.id:
            self._point = ServerPoint(id=token_hex(16))
        trace |= self._point.trace  # before the request, since even a refused message is kept
        self._sent = True
        options, core = self.options, self.core
        assert isinstance(options, SessionOptions) and isinstance(core, self.core_class)  # noqa: S101, PT018
        where, _, name = options.conversation.partition(":")
        *names, last = name.split(".")
        named = {last: self._point.id}
        fields = reduce(lambda inner, outer: {outer: inner}, reversed(names), named)
        state = ServerState({}, named, 0) if where == "header" else ServerState(fields, {}, 0)
        before = core.attempts
        try:
            return await core.go_on(prompt, state)
        finally:
            if (sent := core.attempts - before) > 1:
                trace["sent"] = sent  # an attempt that failed may be in the conversation, too
