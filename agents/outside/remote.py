"""The common base of agents in another process, for any transport."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple, TypeVar

import trio
from pydantic import Field

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply
from longspan.agents.outside.counts import drop_reply, models_at
from longspan.agents.outside.protocol import (
    VERSION,
    Ability,
    AgentAnswer,
    Call,
    EmptyAnswer,
    HelloAnswer,
    ReplyAnswer,
    SaveAnswer,
    WorkAnswer,
    decode_json,
    encode_request,
    read_answer,
)
from longspan.agents.prices import PriceOptions
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.telemetry import current_traceparent

__all__ = ["CLOSE_SECONDS", "OutsideAgent", "RemoteAgent", "RemoteOptions", "Request", "count_processors", "too_slow"]

CLOSE_SECONDS: Final = 5.0
"""Seconds for an agent to answer `close`."""

STATE: Final = "state.json"
"""The snapshot file with the agent's answer to `save` and the virtual time of the last message."""

FILES: Final = "files"
"""The snapshot folder that an agent on this machine may write to."""

Kind = TypeVar("Kind", bound=AgentAnswer)


class RemoteOptions(PriceOptions):
    """Limits and prices of a user's agent."""

    timeout: float = Field(default=600.0, gt=0, le=86_400, allow_inf_nan=False)
    """Maximum seconds for a call. A call that takes longer ends the conversation."""
    at_once: int | None = Field(default=None, ge=1, le=10_000)
    """The most concurrent conversations in one process. Default: no limit, or the number of processors if each conversation has its own
    process."""


class Request(NamedTuple):
    """A request and its line of JSON. `repeatable`: sending it twice is harmless. `now`: the virtual time, if known."""

    call: Call
    line: bytes
    repeatable: bool
    now: datetime | None


class OutsideAgent(BaseAgent):
    """A user's agent, in another process or as an object in this one.

    `name` identifies it in errors. `settings` has the timeout, prices and concurrency.
    """

    takes_target = True

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the option `at_once`."""
        return options.at_once if isinstance(options, RemoteOptions) else None

    def __init__(self, target: str, settings: RemoteOptions, name: str) -> None:
        super().__init__(target, settings)
        self.name = name
        self.rates = settings.rates
        self._timeout = settings.timeout

    @property
    def models(self) -> Mapping[str, Rates] | None:
        """The model, if its price is given."""
        return models_at(self.rates)


class RemoteAgent(OutsideAgent):
    """An agent in another process. Missing abilities are emulated.

    It is contacted on first use. Until then, it is assumed to support everything. `connected`: it has answered and can be asked again.
    `now`: the virtual time, if known. `told_traceparent`: whether requests name the turn's tracing span, if any.
    """

    shares_disk = False
    told_traceparent = False

    def __init__(self, target: str, options: AgentOptions | None, name: str) -> None:
        super().__init__(target, options if isinstance(options, RemoteOptions) else RemoteOptions(), name)
        self._hello: HelloAnswer | None = None
        self.connected = False
        self._conversation = token_hex(16)
        self.now: datetime | None = None
        self._marked_at: datetime | None = None

    @property
    def has_snapshots(self) -> bool:
        """Whether it supports both `save` and `load`."""
        return self.can("save") and self.can("load")

    @property
    def rewinds(self) -> bool:
        """Whether it supports both `mark` and `rewind`."""
        return self.supports("mark") and self.supports("rewind")

    @property
    def observes(self) -> bool:
        """Whether it supports `observe`."""
        return self.can("observe")

    @property
    def repeatable(self) -> bool:
        """Whether it declares that a repeated turn is harmless."""
        return self._hello is not None and self._hello.repeatable

    @property
    def read_only_search(self) -> bool:
        """Whether it declares, as a memory, that a search changes nothing."""
        return self._hello is not None and self._hello.read_only_search

    async def start(self) -> None:
        """Contact the agent to learn its abilities."""
        if not self.connected:
            self._hello = await self.ask("hello", HelloAnswer, protocol=VERSION)
            self.connected = True

    async def at(self, now: datetime) -> None:
        """Set the virtual time, then contact the agent, whose process may start now and read it."""
        self.now = now
        await self.start()

    async def reply(self, message: Message) -> Reply:
        await self.at(message.sent_at)
        return (await self.ask("reply", ReplyAnswer, **_fields(message))).reply(self.rates)

    async def observe(self, message: Message, reply: str) -> Reply | None:
        await self.at(message.sent_at)
        if not self.can("observe"):
            return drop_reply(await self.reply(message))
        await self.ask("observe", EmptyAnswer, **_fields(message), reply=reply)
        return None

    async def reset(self) -> None:
        await self.start()
        if self.can("reset"):
            await self.ask("reset", EmptyAnswer)
        else:
            await self._start_over()

    async def save(self, folder: Path) -> None:
        await self.start()
        saved = await self.ask("save", SaveAnswer, **await self._files(folder))
        snapshot = {"state": saved.state, "now": self.now.isoformat() if self.now else None}
        await trio.Path(folder / STATE).write_text(json.dumps(snapshot), "ascii")

    async def load(self, folder: Path) -> None:
        state, self.now = await _read_snapshot(folder / STATE)
        await self.renew()
        await self.start()
        if not self.has_snapshots:
            raise AgentError(f"{self.name} has no snapshots: it must support `save` and `load`")
        await self.ask("load", EmptyAnswer, state=state, **await self._files(folder))

    @property
    def consolidates(self) -> bool:
        """Whether it supports `consolidate`."""
        return self.supports("consolidate")

    async def consolidate(self, at: datetime) -> Reply:
        await self.at(at)
        return (await self.ask("consolidate", WorkAnswer, at=at.isoformat())).reply(self.rates)

    async def mark(self) -> None:
        await self.ask("mark", EmptyAnswer)
        self._marked_at = self.now

    async def rewind(self) -> None:
        self.now = self._marked_at
        await self.ask("rewind", EmptyAnswer)

    async def close(self) -> None:
        """Announce the end of the conversation to the agent and disconnect."""
        with trio.move_on_after(CLOSE_SECONDS, shield=True), suppress(AgentError):  # the conversation is already complete
            if self.connected and self.can("close"):
                await self.ask("close", EmptyAnswer)
        await self._start_over()

    @abstractmethod
    async def exchange(self, request: Request) -> bytes:
        """Send a request and return the complete, unparsed answer. Raises AgentError. A timeout cancels it."""

    @property
    def stderr_hint(self) -> str:
        """The last line of the agent's standard error, for error messages; empty if unknown."""
        return ""

    async def disconnect(self) -> None:
        """Release everything that serves only this conversation. Never fails and cannot be cancelled."""

    async def renew(self) -> None:
        """Get a blank agent that can load a snapshot. The current conversation is over."""
        await self.close()

    async def _start_over(self) -> None:
        """Continue with a blank agent."""
        await self.disconnect()
        self.connected = False
        self._conversation = token_hex(16)

    def can(self, ability: Ability) -> bool:
        """Return whether it supports a call, assuming so until contacted."""
        return self._hello is None or ability in self._hello.can

    def supports(self, ability: Ability) -> bool:
        """Return whether it is known to support a call."""
        return self._hello is not None and self.can(ability)

    async def _files(self, folder: Path) -> dict[str, str]:
        """Return the request field with the snapshot folder for an agent on this machine, nothing for others."""
        if not self.shares_disk:
            return {}
        files = trio.Path(folder / FILES)
        await files.mkdir(exist_ok=True)
        return {"folder": str(await files.absolute())}

    async def ask(self, call: Call, kind: type[Kind], **fields: Any) -> Kind:
        """Return the agent's answer to a call. Raises AgentError that names the agent and the call."""
        if self.told_traceparent and (name := current_traceparent()) is not None:
            fields["traceparent"] = name
        repeatable = call not in ("reply", "observe", "consolidate", "forget") or self.repeatable
        request = Request(call, encode_request(call, self._conversation, fields), repeatable, self.now)
        answered, cause = False, None
        try:
            with trio.fail_after(self._timeout):
                answer = await self.exchange(request)
            answered = True
            return read_answer(answer, kind)
        except trio.TooSlowError:
            problem = too_slow(self._timeout, self.stderr_hint)
        except AgentError as error:
            problem, cause = str(error), error.__cause__
        finally:
            self.connected &= answered  # the next answer may come from another process
        raise AgentError(f"{self.name}: {call}: {problem}") from cause


def too_slow(seconds: float, hint: str = "") -> str:
    """Return the message about a call that timed out."""
    return f"no complete answer within {seconds:g} s{hint}; set ?timeout=SECONDS if it needs longer"


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fields(message: Message) -> dict[str, str]:
    return {"turn": message.turn_id, "sent_at": message.sent_at.isoformat(), "text": message.text}


async def _read_snapshot(path: Path) -> tuple[Any, datetime | None]:
    """Return a snapshot's state and virtual time. Raises AgentError if it is invalid."""
    try:
        snapshot = decode_json(await trio.Path(path).read_bytes())
        now = snapshot["now"]
        return snapshot["state"], datetime.fromisoformat(now) if now is not None else None
    except OSError as error:
        raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
    except (AgentError, LookupError, TypeError, ValueError):
        raise AgentError(f"{path}: not a snapshot of an agent in another process") from None
