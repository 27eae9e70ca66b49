"""Represents turns as OpenTelemetry spans, named by its conventions for generative AI (docs/guides/tracing.md)."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final, final

from opentelemetry import context as current
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace import Span as OtelSpan

from longspan import __version__
from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.contract.messages import Message, Reply, Usage
from longspan.simulator.subject.ledger import Costs, total_cost
from longspan.simulator.subject.telemetry import SPAN, ConversationName, Used
from longspan.simulator.subject.tracing.collector import Collector

__all__ = ["TraceExporter"]

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's environment variable for exporting the content of messages."""

CAPTURING: Final = ("true", "1", "span_only", "span_and_event")

MAX_TEXT: Final = 20_000
"""The most characters exported from one string."""

MAX_ITEMS: Final = 50
"""The most memories, and the most inner calls, exported for a turn."""

# OTLP's integers have 64 bits, and an agent may report any count.
MAX_COUNT: Final = 2**63 - 1

PROVIDERS: Final = {"google": "gcp.gemini", "mistral": "mistral_ai", "x-ai": "x_ai"}
"""Providers with a different name in OpenTelemetry's conventions."""

Attributes = dict[str, Any]


@final
class TraceExporter:
    """Exports everything that is played to the user's collector, until it is closed.

    Raises InputError if the environment variables name an unusable collector.
    """

    def __init__(self) -> None:
        self._collector = Collector()
        self._ids = _Ids()
        try:
            resource = Resource.create()
            if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
                resource = resource.merge(Resource({SERVICE_NAME: "longspan", "service.version": __version__}))
            provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        except Exception as error:  # for example, an unknown sampler or a malformed limit
            self._collector.close()
            raise InputError(f"--otel: OpenTelemetry's environment variables cannot be used: {one_line(error)}") from error
        provider.add_span_processor(self._collector)
        self._tracer = provider.get_tracer("longspan", __version__)
        self._captures = os.environ.get(CAPTURE, "").strip().lower() in CAPTURING
        self._elsewhere = [0, 0]
        self._problem_elsewhere = ""

    def conversation(self, name: ConversationName) -> _Spans:
        """Return the receiver for one conversation, starting at the end of its journal."""
        return _Spans(name, self._tracer, self._ids, self._captures)

    def add(self, made: int, exported: int, problem: str) -> None:
        """Add the spans of another process: how many it made and exported, and why it could not export the rest."""
        self._elsewhere[0] += made
        self._elsewhere[1] += exported
        if made > exported:
            self._problem_elsewhere = problem

    def close(self) -> None:
        """Export the remaining spans. Takes a few seconds at most."""
        self._collector.close()

    @property
    def counts(self) -> tuple[int, int, str]:
        """The numbers of spans made and exported so far, and the reason for lost ones."""
        here = self._collector
        made, exported = here.made + self._elsewhere[0], here.exported + self._elsewhere[1]
        return made, exported, here.problem if here.made > here.exported else self._problem_elsewhere

    @property
    def lost(self) -> str:
        """A sentence about lost spans, or "" if all spans were exported."""
        made, exported, problem = self.counts
        return f"{made - exported:,} of {made:,} spans were not exported: {problem}" if made > exported else ""


@final
class _Ids(RandomIdGenerator):
    """Random ids for spans, and a given id for the trace, which must be set before the first span is made."""

    trace_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def is_trace_id_random(self) -> bool:
        return False


@final
class _Spans:
    """The trace of a conversation. Its id is the same in every session of a run, and each session adds a first span."""

    def __init__(self, name: ConversationName, tracer: Tracer, ids: _Ids, captures: bool) -> None:
        self._name = name
        self._tracer = tracer
        self._ids = ids
        self._captures = captures
        self._first: OtelSpan | None = None
        self._agent = name.agent.partition("?")[0][:120]
        self._attributes: Attributes = {
            "gen_ai.conversation.id": f"{name.run}/{name.id}",
            "longspan.run": name.run,
            "longspan.conversation": name.id,
        }
        self._agent_attributes = {"gen_ai.agent.name": self._agent} | (_model(name.model) if name.model else {})

    @contextmanager
    def turn(self, number: int, message: Message, told: str | None = None) -> Iterator[_Span]:
        """Surround a turn. `told` is the reply if the agent only reads the turn, else None."""
        about: Attributes = {
            "longspan.turn": number,
            "longspan.turn_id": message.turn_id,
            "longspan.sent_at": message.sent_at.isoformat(),
            "longspan.asked": told is None,
        }
        if self._captures:
            about["gen_ai.input.messages"] = _as_message("user", message.text)
            if told is not None:
                about["gen_ai.output.messages"] = _as_message("assistant", told)
        with self._span("invoke_agent" if told is None else "observe", number, about) as span:
            yield span

    @contextmanager
    def night(self, turn: int, to: datetime) -> Iterator[_Span]:
        """Surround the agent's work in the night before a turn. The night ends at the virtual time `to`."""
        with self._span("consolidate", turn, {"longspan.turn": turn, "longspan.sent_at": to.isoformat()}) as span:
            yield span

    @contextmanager
    def catch_up(self, turns: int) -> Iterator[_Span]:
        """Surround the replay of a journal with `turns` turns to the agent."""
        with self._span("catch_up", turns, {"longspan.turn": turns}) as span:
            yield span

    @contextmanager
    def _span(self, operation: str, number: int, about: Attributes) -> Iterator[_Span]:
        """Make a span, and keep it current inside the block, for OpenTelemetry's own API too."""
        parent = set_span_in_context(self._beginning(number))
        attributes = {"gen_ai.operation.name": operation} | self._agent_attributes | self._attributes | about
        started = time.time_ns()
        otel = self._tracer.start_span(f"{operation} {self._agent}", parent, SpanKind.INTERNAL, attributes, start_time=started)
        span = _Span(otel, self._tracer, self._attributes | {"longspan.turn": number}, started, self._captures)
        # Pass on the span's name but not its attributes: they would tell the agent which test the conversation belongs to.
        token = current.attach(set_span_in_context(NonRecordingSpan(otel.get_span_context())))
        heard = SPAN.set(span)
        try:
            with _mark_failure(otel, self._captures):
                yield span
        finally:
            SPAN.reset(heard)
            current.detach(token)
            otel.end()

    def _beginning(self, number: int) -> OtelSpan:
        """Return the session's first span. It has no duration and is exported immediately: turns have a parent even after a crash."""
        if self._first is None:
            name = self._name
            digest = hashlib.sha256("\0".join([name.nonce, name.run, name.agent, name.id]).encode("utf-8", "replace"))
            # A trace id of 0 is invalid in OpenTelemetry.
            self._ids.trace_id = int.from_bytes(digest.digest()[:16], "big") or 1
            attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": name.run, "longspan.agent": name.agent}
            attributes |= self._attributes | {"longspan.turn": number}
            self._first = self._tracer.start_span(f"invoke_workflow {name.run}", current.Context(), attributes=attributes)
            self._first.end()
        return self._first


@final
class _Span:
    """The span of a turn, with child spans for its model calls and memories."""

    def __init__(self, otel: OtelSpan, tracer: Tracer, attributes: Attributes, started: int, captures: bool) -> None:
        self._otel = otel
        self._tracer = tracer
        self._attributes = attributes
        self._started = started
        self._captures = captures
        self._below = set_span_in_context(otel)
        self._has_calls = False

    @property
    def traceparent(self) -> str | None:
        """The span's W3C name for other programs, or None if OpenTelemetry is disabled."""
        named = self._otel.get_span_context()
        return f"00-{named.trace_id:032x}-{named.span_id:016x}-{int(named.trace_flags):02x}" if named.is_valid else None

    def record_reply(self, reply: Reply, costs: Costs | None) -> None:
        """Record the agent's reply: refusal, usage, cost, and the contents of its trace."""
        self._otel.set_attributes(_usage(reply.usage))
        if reply.refused:
            self._otel.set_attribute("longspan.refused", True)
        if costs and (cost := total_cost(costs.values())) is not None:
            self._otel.set_attribute("longspan.cost_usd", cost)
        if self._captures:
            self._otel.set_attribute("gen_ai.output.messages", _as_message("assistant", reply.text))
        with suppress(Exception):  # an agent in this process may return a trace of any type
            self._note(reply.trace or {})

    @contextmanager
    def model_call(self, model: str) -> Iterator[Used]:
        """Surround a call to a model (PROVIDER/MODEL)."""
        self._has_calls = True
        attributes = {"gen_ai.operation.name": "chat"} | _model(model) | self._attributes
        otel = self._tracer.start_span(f"chat {attributes['gen_ai.request.model']}", self._below, SpanKind.CLIENT, attributes)
        try:
            with _mark_failure(otel, self._captures):
                yield lambda usage: otel.set_attributes(_usage(usage))
        finally:
            otel.end()

    def _note(self, trace: Mapping[str, Any]) -> None:
        """Add a span for each step of a trace. Traces have no times, so searches start the turn and other steps end it."""
        now = time.time_ns()
        for operation, memories, at in (("search_memory", trace.get("read"), self._started), ("upsert_memory", trace.get("written"), now)):
            if isinstance(memories, Sequence) and memories:
                attributes: Attributes = {"gen_ai.memory.record.count": len(memories)}
                if self._captures:
                    attributes["gen_ai.memory.records"] = _records(memories)
                self._step(operation, operation, attributes, at)
        for call in list(trace.get("calls") or ())[:MAX_ITEMS] if not self._has_calls else ():
            name = call.get("model")
            about: Attributes = _model(_clean(name, 120)) if isinstance(name, str) else {}
            with suppress(TypeError):
                about |= _usage(Usage(**call.get("usage") or {}))
            self._step(
                " ".join(["chat", *([about["gen_ai.request.model"]] if about.get("gen_ai.request.model") else [])]), "chat", about, now
            )

    def _step(self, name: str, operation: str, about: Attributes, at: int) -> None:
        attributes = {"gen_ai.operation.name": operation} | about | self._attributes
        self._tracer.start_span(name, self._below, SpanKind.INTERNAL, attributes, start_time=at).end(at)


@contextmanager
def _mark_failure(otel: OtelSpan, captures: bool) -> Iterator[None]:
    """Mark a span as failed if the block raises. Unless `captures`, the message is left out: it may quote the conversation."""
    try:
        yield
    except BaseException as error:
        otel.set_attribute("error.type", type(error).__name__)
        otel.set_status(StatusCode.ERROR, one_line(error)[:1000] if captures else None)
        raise


def _model(name: str) -> Attributes:
    """Return the attributes of a model (PROVIDER/MODEL)."""
    provider, slash, model = name.partition("/")
    if not slash:
        return {"gen_ai.request.model": name}
    return {"gen_ai.provider.name": PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def _usage(usage: Usage | None) -> Attributes:
    if usage is None:
        return {}
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    return {name: min(count, MAX_COUNT) for name, count in counts.items() if isinstance(count, int)}


def _as_message(role: str, text: str) -> str:
    """Return a message as JSON, in the format of the conventions."""
    message: Attributes = {"role": role, "parts": [{"type": "text", "content": _clean(text, MAX_TEXT)}]}
    return json.dumps([message | ({"finish_reason": "stop"} if role == "assistant" else {})])


def _records(memories: Sequence[Any]) -> str:
    """Return memories as JSON, in the format of the conventions."""
    shown = [memory for memory in memories[:MAX_ITEMS] if isinstance(memory, Mapping)]
    return json.dumps([{"id": str(each.get("id"))[:120], "content": str(each.get("text", ""))[:1000]} for each in shown])


def _clean(text: str, limit: int) -> str:
    return text[:limit].encode("utf-8", "replace").decode()
