"""Reports on turns while they are played, for traces (`tracing`). Without `--otel` nothing is reported, and nothing is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final, NamedTuple, Protocol, final

from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.subject.ledger import Costs

__all__ = ["SILENT", "SPAN", "TELEMETRY", "ConversationName", "Span", "Spans", "Telemetry", "Used", "model_call", "traceparent"]

Used = Callable[[Usage], None]
"""A function that is called with the usage of a model's answer."""


@final
class ConversationName(NamedTuple):
    """A conversation: its run's name, its id there, the nonce of the run's manifest, the agent's spec, and the agent's model
    (PROVIDER/MODEL) if known."""

    run: str
    id: str
    nonce: str
    agent: str
    model: str | None


class Span(Protocol):
    """A turn that the agent is being asked or told of. `traceparent` (W3C) names the turn to other programs; None if it is not traced."""

    @property
    def traceparent(self) -> str | None: ...

    def replied(self, reply: Reply, costs: Costs | None) -> None:
        """Record the agent's reply, and its cost in dollars by part."""
        ...

    def model_call(self, model: str) -> AbstractContextManager[Used]:
        """Surround a call to a model, PROVIDER/MODEL, that belongs to the turn."""
        ...


class Spans(Protocol):
    """Is notified of the turns of one conversation. Nothing that it does may fail."""

    def turn(self, number: int, message: Message, told: str | None = None) -> AbstractContextManager[Span]:
        """Surround a turn, and set SPAN to its span meanwhile. `told` is the reply, if the agent is told of the turn and not asked."""
        ...

    def night(self, turn: int, to: datetime) -> AbstractContextManager[Span]:
        """Surround the agent's work in a night before turn number `turn`. The night ends at the virtual time `to`."""
        ...

    def catch_up(self, turns: int) -> AbstractContextManager[Span]:
        """Surround bringing the agent to the end of a journal with `turns` turns, and set SPAN to that span meanwhile."""
        ...


class Telemetry(Protocol):
    """Is notified of everything that is played."""

    def conversation(self, name: ConversationName) -> Spans:
        """Return the recipient of a conversation's notifications, beginning where its journal ends."""
        ...

    def add(self, made: int, exported: int, problem: str) -> None:
        """Count spans made and exported by another process, and the reason why some could not be exported."""
        ...


TELEMETRY: Final[ContextVar[Telemetry | None]] = ContextVar("telemetry", default=None)
"""The recipient of notifications about everything that is played from here on."""

SPAN: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""The span of the turn that the agent is working on."""


def traceparent() -> str | None:
    """Return the W3C name of the turn that the agent is working on, or None if it is not traced."""
    span = SPAN.get()
    return span.traceparent if span is not None else None


@contextmanager
def model_call(model: str) -> Iterator[Used]:
    """Surround a call to a model, PROVIDER/MODEL. Call the yielded function with the usage of its answer."""
    span = SPAN.get()
    if span is None:
        yield lambda usage: None
    else:
        with span.model_call(model) as used:
            yield used


@final
class _Silent:
    """Ignores all notifications."""

    traceparent: str | None = None

    def replied(self, reply: Reply, costs: Costs | None) -> None:
        """Do nothing."""

    @contextmanager
    def model_call(self, model: str) -> Iterator[Used]:
        yield lambda usage: None

    @contextmanager
    def turn(self, number: int, message: Message, told: str | None = None) -> Iterator[Span]:
        yield self

    @contextmanager
    def night(self, turn: int, to: datetime) -> Iterator[Span]:
        yield self

    @contextmanager
    def catch_up(self, turns: int) -> Iterator[Span]:
        yield self


SILENT: Final[_Silent] = _Silent()
