"""longspan's protocol with agents in another process: requests and answers are JSON objects (docs/guides/connecting.md).

Answers are untrusted: this module limits their size and validates them before any other code sees them.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import isinf
from typing import Annotated, Any, Final, Literal, NoReturn, Self, TypeVar, final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, model_validator

from longspan.agents.outside.counts import Counts, Dollars, price_reply
from longspan.simulator.base.errors import AgentError, first_problem
from longspan.simulator.base.keys import MAX_LENGTH, redact, redact_json
from longspan.simulator.contract.messages import Reply
from longspan.simulator.subject.ledger import Rates
from longspan.simulator.subject.traces import Trace, TracePart

__all__ = [
    "MAX_BYTES",
    "MAX_CONTAINERS",
    "VERSION",
    "Ability",
    "AgentAnswer",
    "Call",
    "EmptyAnswer",
    "HelloAnswer",
    "RemoteError",
    "ReplyAnswer",
    "SaveAnswer",
    "WorkAnswer",
    "check_parts",
    "decode_json",
    "encode_request",
    "make_printable",
    "read_answer",
]

VERSION: Final = 1

MAX_BYTES: Final = 32 * 2**20
"""The maximum bytes of an answer: enough for 10 MB of text with any escaping."""

MAX_DEPTH: Final = 100
"""The maximum nesting of objects and lists. Deeper ones may fail to be written and read again."""

MAX_CONTAINERS: Final = 10**6
"""The maximum objects and lists in an answer: an empty one takes thirty times its size in memory."""

MAX_TRACE: Final = 2**20
"""The maximum bytes of a trace, which is journaled with each reply."""

MAX_TRACEBACK: Final = 10_000
"""The maximum characters kept of a traceback, from its end."""

SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escaped surrogate. Only encoding shows whether it is a lone one."""

Ability = Literal["observe", "reset", "save", "load", "mark", "rewind", "close", "settle", "consolidate", "forget"]
"""The calls that an agent may support besides `reply`, or a memory besides `add` and `search`."""

Call = Literal["hello", "reply", "add", "search", Ability]


class RemoteError(Exception):
    """An exception in another process, represented by the traceback it sent. It becomes the cause of the AgentError."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class AgentAnswer(BaseModel):
    """An answer. Unknown keys are rejected as probable typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@final
class HelloAnswer(AgentAnswer):
    """The answer to `hello`.

    It lists the supported calls, and declares whether a repeated turn id is the same request and whether a memory's search changes nothing.
    """

    protocol: Literal[1]
    can: list[Ability] = Field(default_factory=list, max_length=20)
    repeatable: bool = False
    read_only_search: bool = False


class InnerCall(TracePart):
    """A model call that the agent made."""

    usage: Counts | None = None


class _Trace(Trace):
    """A trace that also validates its inner calls."""

    calls: list[InnerCall] = Field(default_factory=list)


Part = Annotated[str, Field(min_length=1, max_length=200)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]

MAX_PARTS: Final = 100
"""The maximum components of a cost, and of other figures journaled with each reply."""

_DOLLARS: Final[TypeAdapter[float]] = TypeAdapter(Dollars)
_DOLLARS_BY_PART: Final[TypeAdapter[dict[str, float]]] = TypeAdapter(Annotated[dict[Part, Dollars], Field(max_length=MAX_PARTS)])


def _read_cost(value: Any) -> float | dict[str, float] | None:
    """Validate a cost. A union type would put the names of its members into error messages."""
    if value is None:
        return None
    return (_DOLLARS_BY_PART if isinstance(value, dict) else _DOLLARS).validate_python(value, strict=True)


def _require_others(besides: dict[str, Counts] | None) -> dict[str, Counts] | None:
    if besides and "agent" in besides:
        raise ValueError("agent is the agent's own model; give its tokens as usage")
    return besides


class WorkAnswer(AgentAnswer):
    """The answer to `consolidate`: its usage, cost and trace."""

    usage: Counts | None = None
    besides: Annotated[Annotated[dict[Part, Counts], Field(max_length=MAX_PARTS)] | None, AfterValidator(_require_others)] = None
    cost_usd: Annotated[float | dict[str, float] | None, PlainValidator(_read_cost)] = None
    measured: Annotated[dict[Part, Seconds], Field(max_length=MAX_PARTS)] | None = None
    trace: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _trace_is_valid(self) -> Self:
        if self.trace is not None:
            try:
                _Trace.model_validate(self.trace)
            except ValidationError as error:
                raise ValueError(f"trace: {first_problem(error)}") from None
            if len(_compact(self.trace)) > MAX_TRACE:
                raise ValueError(f"the trace has more than {MAX_TRACE:,} bytes")
        return self

    def reply(self, rates: Rates | None = None) -> Reply:
        """Return the engine's Reply with empty text. `rates` set the cost if the answer does not."""
        counts = [self.usage] if self.usage is not None else []
        usage = self.usage.usage if self.usage is not None else None
        besides = self.besides or {}
        used = {part: each.usage for part, each in besides.items()}
        reply = Reply("", usage, self.trace, used, self.cost_usd, measured=self.measured or {})
        return price_reply(reply, rates, counts, besides)


@final
class ReplyAnswer(WorkAnswer):
    """The answer to `reply`."""

    text: str
    refused: bool = False

    def reply(self, rates: Rates | None = None) -> Reply:
        """Return the engine's Reply. `rates` set the cost if the answer does not."""
        return replace(super().reply(rates), text=self.text, refused=self.refused)


@final
class SaveAnswer(AgentAnswer):
    """The answer to `save`: everything that `load` needs, as any JSON."""

    state: Any = None


@final
class EmptyAnswer(AgentAnswer):
    """The answer to all other calls."""


Kind = TypeVar("Kind", bound=AgentAnswer)


def encode_request(call: Call, conversation: str, fields: dict[str, Any]) -> bytes:
    """Return a request as one line of ASCII."""
    return json.dumps({"call": call, "conversation": conversation, **fields}).encode() + b"\n"


def read_answer(answer: bytes, kind: type[Kind]) -> Kind:
    """Parse an answer of type `kind`. Raises AgentError if it is invalid or reports an error."""
    value = decode_json(answer)
    if not isinstance(value, dict):
        raise AgentError(f"answered with {_type_name(value)}, expected a JSON object: {make_printable(answer)}")
    if "error" in value:
        message, trace = value["error"], value.get("traceback")
        shown = make_printable(message if isinstance(message, str) else json.dumps(message)) or "no reason given"
        raise AgentError(f"failed: {shown}") from (RemoteError(trace[-MAX_TRACEBACK:]) if isinstance(trace, str) else None)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problem, unknown = first_problem(error), [name for name in value if name not in kind.model_fields]
        if "text" in kind.model_fields.keys() - value.keys() and unknown:
            problem = f"{unknown[0]}: unknown key; did you mean text?"
        raise AgentError(f"gave an invalid answer: {make_printable(problem)}") from None


def decode_json(text: bytes) -> Any:
    """Parse JSON of limited size and depth, and redact keys. A lone surrogate becomes "?". Raises AgentError if it is invalid."""
    check_parts(text, MAX_CONTAINERS)
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=_reject_constant, parse_float=_finite_number)
    except UnicodeDecodeError:
        raise AgentError(f"answered with something that is not UTF-8: {make_printable(text)}") from None
    except (ValueError, RecursionError):
        raise AgentError(f"answered with something that is not JSON: {make_printable(text) or 'nothing'}") from None
    if _depth(value) > MAX_DEPTH:
        raise AgentError(f"answered with objects or lists more than {MAX_DEPTH} deep")
    return redact_json(json.loads(_compact(value)) if SURROGATE.search(text) else value)


def check_parts(text: bytes, most: int) -> None:
    """Raise AgentError if JSON has more than `most` objects and lists. The text is not parsed, since that would exhaust the memory."""
    if text.count(b"{") + text.count(b"[") > most:
        bare = re.sub(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', b"", text, flags=re.DOTALL)
        if bare.count(b"{") + bare.count(b"[") > most:
            raise AgentError(f"answered with more than {most:,} objects and lists")


def make_printable(text: bytes | str, limit: int = 200) -> str:
    """Return the start of untrusted text as one line without control characters and keys, at most `limit` characters long."""
    start = text[: 4 * limit + MAX_LENGTH]  # long enough not to cut, and thus miss, a key in the part shown
    start = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
    words = " ".join(redact(start).split())
    shown = "".join(character if character.isprintable() else "�" for character in words)
    return shown if len(shown) <= limit else f"{shown[: limit - 3]}..."


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite_number(digits: str) -> float:
    """Parse a JSON number. Raises ValueError if it is too large."""
    value = float(digits)
    if isinf(value):
        raise ValueError(f"{digits} is too large")
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        containers = [item for item in level if isinstance(item, dict | list)]
        depth += bool(containers)
        level = [item for container in containers for item in (container.values() if isinstance(container, dict) else container)]
    return depth


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _type_name(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names[type(value)]
