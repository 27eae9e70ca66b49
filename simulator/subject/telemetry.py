"""Reports turns to a tracer while they are played (see `tracing`). Without `--otel`, nothing is reported and nothing is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final, NamedTuple, Protocol, final

from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.subject.ledger import Costs

__all__ = ["SILENT", "SPAN", "TELEMETRY", "ConversationName", "Span", "Spans", "Telemetry", "Used", "current_traceparent", "model_call"]

Used = Callable[[Usage], None]
"""A callback for the usage of a model's answer."""


@final
class ConversationName(NamedTuple):
    """A conversation: the name of its run, its id in the run, the nonce of the run's manifest, the agent's spec, and the agent's model
    (PROVIDER/MODEL), or None if unknown."""

    run: str
    id: str
    nonce: str
    agent: str
    model: str | None


class Span(Protocol):
    """The span of a turn in progress. `traceparent` is its W3C name for other programs, or None if it is not traced."""

    @property
    def traceparent(self) -> str | None: ...

    def record_reply(self, reply: Reply, costs: Costs | None) -> None:
        """Record the agent's reply, and its cost in dollars by part."""
        ...

    def model_call(self, model: str) -> AbstractContextManager[Used]:
        """Surround a call to a model (PROVIDER/MODEL) that belongs to the turn."""
        ...


class Spans(Protocol):
    """Receives the turns of one conversation. Its methods must not raise."""

    def turn(self, number: int, message: Message, told: str | None = None) -> AbstractContextManager[Span]:
        """Surround a turn, and set SPAN to its span. `told` is the reply if the agent only reads the turn, else None."""
        ...

    def night(self, turn: int, to: datetime) -> AbstractContextManager[Span]:
        """Surround the agent's work in the night before turn number `turn`. The night ends at the virtual time `to`."""
        ...

    def catch_up(self, turns: int) -> AbstractContextManager[Span]:
        """Surround the replay of a journal with `turns` turns to the agent, and set SPAN to its span."""
        ...


class Telemetry(Protocol):
    """Receives everything that is played."""

    def conversation(self, name: ConversationName) -> Spans:
        """Return the receiver for one conversation, starting at the end of its journal."""
        ...

    def add(self, made: int, exported: int, problem: str) -> None:
        """Add the spans of another process: how many it made and exported, and why it could not export the rest."""
        ...


TELEMETRY: Final[ContextVar[Telemetry | None]] = ContextVar("telemetry", default=None)
"""The receiver for everything played in this context."""

SPAN: Final[ContextVar[Span | None]] = ContextVar("span", default=None)
"""The span of the agent's current turn."""


def current_traceparent() -> str | None:
    """Return the W3C name of the agent's current turn, or None if it is not traced."""
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
    """A receiver that ignores everything."""

    traceparent: str | None = None

    def record_reply(self, reply: Reply, costs: Costs | None) -> None:
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
