"""longspan's own protocol with agents in another process: a JSON object asks, a JSON object answers (docs/agents.md).

Every byte of an answer is taken to be hostile: it is bounded and checked here, before anything else sees it.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longspan.simulator.errors import AgentError, first_problem
from longspan.simulator.messages import Reply, Usage

__all__ = ["LARGEST", "VERSION", "Ability", "Answer", "Call", "Done", "Given", "Hello", "Saved", "decoded", "line", "printable", "read"]

VERSION: Final = 1

LARGEST: Final = 32 * 2**20
"""Bytes that an answer may have: 10 MB of text fit, however they are escaped."""

DEEPEST: Final = 100
"""Objects and lists inside one another: what is deeper cannot be relied on to be written and read again."""

MOST_PARTS: Final = 10**6
"""Objects and lists in an answer: empty ones take thirty times as much memory as they do bytes."""

LARGEST_TRACE: Final = 2**20
"""Bytes of a trace, which is journaled with each reply."""

SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escaped half of a character. Whether it has its other half is found out by writing it."""

Ability = Literal["observe", "reset", "save", "load", "close"]
"""What an agent may be able to do besides `reply`."""

Call = Literal["hello", "reply", Ability]

Count = Annotated[int, Field(ge=0, le=10**12)]


class Answer(BaseModel):
    """An answer. A key that is not known is refused: it is a misspelt one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@final
class Hello(Answer):
    """To `hello`: what the agent is able to do, and whether a turn id that comes twice is the same request again to it."""

    protocol: Literal[1]
    can: list[Ability] = Field(default_factory=list, max_length=20)
    repeatable: bool = False


@final
class Counts(Answer):
    """Tokens, as the agent's provider counts them."""

    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0

    @model_validator(mode="after")
    def _cached_are_part_of_input(self) -> Counts:
        if self.cached_tokens > self.input_tokens:
            raise ValueError(f"cached_tokens ({self.cached_tokens}) are a part of input_tokens ({self.input_tokens})")
        return self


class _Told(BaseModel):
    """A part of a trace: what is named here is checked, what is not is kept as it is."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class Written(_Told):
    """A memory that was made, and the turn that it is of, where that is not the reply's own."""

    id: str
    text: str = ""
    turn: str | None = None


class Shown(_Told):
    """A memory that was read, and the turns that it is of."""

    id: str | None = None
    text: str = ""
    turns: list[str] | None = None


class Recent(_Told):
    """The turn from which on all were shown."""

    since: str | None = None


class InnerCall(_Told):
    """A call that the agent made for itself."""

    usage: Counts | None = None


class Trace(_Told):
    """How a reply came about. What of it grades read, `longspan.simulator.grading.needle_fates` says."""

    written: list[Written] = Field(default_factory=list)
    read: list[Shown] = Field(default_factory=list)
    recent: Recent | None = None
    prompt_tokens: Count = 0
    calls: list[InnerCall] = Field(default_factory=list)


@final
class Given(Answer):
    """To `reply`."""

    text: str
    usage: Counts | None = None
    trace: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _trace_is_one(self) -> Given:
        if self.trace is not None:
            try:
                Trace.model_validate(self.trace)
            except ValidationError as error:
                raise ValueError(f"trace: {first_problem(error)}") from None
            if len(_compact(self.trace)) > LARGEST_TRACE:
                raise ValueError(f"the trace has more than {LARGEST_TRACE:,} bytes")
        return self

    def reply(self) -> Reply:
        """The reply as the engine takes it."""
        return Reply(self.text, Usage(**self.usage.model_dump()) if self.usage is not None else None, self.trace)


@final
class Saved(Answer):
    """To `save`: all that `load` will need, as any JSON."""

    state: Any = None


@final
class Done(Answer):
    """To all other calls: nothing."""


Kind = TypeVar("Kind", bound=Answer)


def line(call: Call, conversation: str, fields: dict[str, Any]) -> bytes:
    """A request, in one line of ASCII."""
    return json.dumps({"call": call, "conversation": conversation, **fields}).encode() + b"\n"


def read(answer: bytes, kind: type[Kind]) -> Kind:
    """An answer as the `kind` that is due. Raises AgentError for anything else, and for an error that the agent tells."""
    found = decoded(answer)
    if not isinstance(found, dict):
        raise AgentError(f"answered with {_name(found)} where a JSON object is due: {printable(answer)}")
    if "error" in found:
        said = found["error"]
        raise AgentError(f"failed: {printable(said if isinstance(said, str) else json.dumps(said)) or 'it does not say why'}")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise AgentError(f"gave a wrong answer: {printable(first_problem(error))}") from None


def decoded(text: bytes) -> Any:
    """The JSON value that `text` is, of a size and depth that can be handled. Raises AgentError for what is none.

    What is no valid Unicode (a lone surrogate) becomes "?".
    """
    if text.count(b"{") + text.count(b"[") > MOST_PARTS:
        bare = re.sub(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', b"", text, flags=re.DOTALL)
        if bare.count(b"{") + bare.count(b"[") > MOST_PARTS:
            raise AgentError(f"answered with more than {MOST_PARTS:,} objects and lists")
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=_no_number, parse_float=_number)
    except UnicodeDecodeError:
        raise AgentError(f"answered with something that is not UTF-8: {printable(text)}") from None
    except (ValueError, RecursionError):
        raise AgentError(f"answered with something that is not JSON: {printable(text) or 'nothing'}") from None
    if _depth(found) > DEEPEST:
        raise AgentError(f"answered with objects or lists more than {DEEPEST} deep")
    return json.loads(_compact(found)) if SURROGATE.search(text) else found


def printable(text: bytes | str, most: int = 200) -> str:
    """The beginning of a text from outside, in one line that does nothing to a terminal."""
    start = text[: 4 * most].decode("utf-8", "replace") if isinstance(text, bytes) else text[: 4 * most]
    words = " ".join(start.split())
    shown = "".join(character if character.isprintable() else "�" for character in words)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")


def _number(digits: str) -> float:
    """A number as JSON writes it. Raises ValueError for one that is too large."""
    value = float(digits)
    if isinf(value):
        raise ValueError(f"{digits} is too large")
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= DEEPEST:
        inner = [each for each in level if isinstance(each, dict | list)]
        depth += bool(inner)
        level = [child for each in inner for child in (each.values() if isinstance(each, dict) else each)]
    return depth


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _name(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names[type(value)]
