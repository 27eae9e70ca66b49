"""Cores: chat models that take a list of messages. Chat agents, the ltm agent and judges are built on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError

from longspan.agents.base import AgentError, AgentOptions, Danger, InputError, Usage
from longspan.agents.models.thinking import trace_thinking
from longspan.simulator.base.errors import first_problem
from longspan.simulator.base.fields import is_option, option_names, validate_options
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.plugins import load_plugin, own_class
from longspan.simulator.subject.ledger import Rates

__all__ = [
    "CORES",
    "ChatMessage",
    "Completion",
    "ContextOverflowError",
    "Core",
    "CoreOptions",
    "Cut",
    "OnRefusal",
    "RefusalError",
    "Tool",
    "ToolCall",
    "ToolCore",
    "as_sent",
    "clean_json",
    "clean_unicode",
    "core_at_once",
    "core_class",
    "core_danger",
    "core_environment",
    "costs_nothing",
    "make_core",
    "more_room",
    "stamp_message",
]

CORES = "longspan.cores"
"""The entry-point group of cores: openai, anthropic, google, gguf, local.

Each is a class with nested `Options(CoreOptions)`. Its arguments are a target (a model's name or path) and options. A class for a single
model has `takes_target = False`.
"""

_MODEL: Final = re.compile(r"(?P<kind>[A-Za-z][\w-]*)[/:](?P<target>.+)", re.DOTALL)


class Tool(NamedTuple):
    """A function that a model may call. `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(NamedTuple):
    """A model's call of a tool. `arguments` is the string that it wrote, ideally a JSON object."""

    id: str
    name: str
    arguments: str


class ChatMessage(NamedTuple):
    """A message to or from a chat model. Its text is valid Unicode: see `clean_unicode`.

    A tool's message has the `call` that it answers. An assistant's message with tool calls has a `raw` form in the vendor's format, which
    may contain more than text and calls.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    call: ToolCall | None = None
    raw: Any = None


Cut = Literal["", "max_tokens", "repetition"]


class Completion(NamedTuple):
    """A core's answer and the tokens it used.

    `raw`: the answer in the vendor's format, if it calls tools. `thinking`: the model's thoughts, if separate from the answer. `cut`: why
    the answer ends early, if it does: it reached the maximum tokens (`max_tokens`), or repeats itself endlessly (`repetition`). `dropped`:
    the parts of the request that were left out because the server rejects them. `id`: the server's name for the answer, if it has one.
    """

    text: str
    usage: Usage
    calls: Sequence[ToolCall] = ()
    raw: Any = None
    thinking: str = ""
    cut: Cut = ""
    dropped: Sequence[str] = ()
    id: str = ""

    @property
    def told(self) -> dict[str, Any]:
        """The trace of its thinking, of how it was cut, and of what was dropped from the request."""
        cut = {"cut": {"by": self.cut, "tokens": self.usage.output_tokens}} if self.cut else {}
        return trace_thinking(self.thinking) | cut | ({"dropped": list(self.dropped)} if self.dropped else {})


class ContextOverflowError(AgentError):
    """The prompt is too long for the model. The caller may retry with a shorter one."""


class RefusalError(AgentError):
    """The model refused to answer.

    `why`: a content filter, a safety block, an unexpected tool call, or the model itself. `text`: the model's words, or else "(no reply:
    WHY)". `usage`: the tokens used.
    """

    def __init__(self, message: str, why: str, text: str, usage: Usage) -> None:
        super().__init__(message)
        self.why = why
        self.text = text or f"(no reply: {why})"
        self.usage = usage


OnRefusal = Literal["reply", "error"]
"""The handling of a model's refusal: use it as the reply, or fail."""


class CoreOptions(AgentOptions):
    """A core's options. Each core has a subclass."""


class Core(Protocol):
    """A chat model. Calls may overlap only if the core says so. Every call may be cancelled."""

    name: str
    """The spec without options, such as "openai/gpt-4o", for errors."""
    priced_as: str | Rates
    """The key for its price: its name, or the rates in its options."""
    overhead: int
    """Tokens that a message takes in addition to its text."""
    window: int | None
    """The maximum tokens of prompt and answer together, if known."""
    max_output: int
    """The maximum tokens of an answer, the default for `complete`."""

    def count(self, text: str) -> int:
        """Return the tokens of `text`, by the model's tokenizer if available."""
        ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer to a conversation, of at most `max_tokens` tokens; JSON if a JSON `schema` is given.

        `messages` are an optional system message, then alternating user and assistant messages, ending with the user. Raises AgentError if
        the model cannot be reached or gives an unreadable answer, RefusalError if it refuses, ContextOverflowError if the prompt is too
        long.
        """
        ...


class ToolCore(Core, Protocol):
    """A chat model that can call tools."""

    async def use_tools(self, messages: Sequence[ChatMessage], tools: Sequence[Tool], *, may_call: bool = True) -> Completion:
        """Return the model's answer to a conversation, or its calls of `tools`. There must be at least one tool.

        `complete` describes the arguments and errors. Messages may also end with an answer that calls tools and one tool message for each
        call. Without `may_call`, the request forbids calls, but the model may call nevertheless.
        """
        ...


def core_class(kind: str) -> Any:
    """Return the class of the core registered as `kind`. Raises InputError if it is unknown."""
    return load_plugin(CORES, "kind of model", kind)


def more_room(core: Core, context: int) -> str:
    """Return advice for a prompt of more than `context` tokens: the option `context`, or a larger window if it is already full."""
    if core.window is None or context < core.window - core.max_output:
        return "set a larger context="
    return str(getattr(core, "more_window", "use a model with a larger window"))


def costs_nothing(core: Core) -> bool:
    """Return whether a core is free because it runs in this process."""
    return isinstance(core.priced_as, str) and core.priced_as.startswith("gguf/")


def make_core(agent: str, model: str, options: Mapping[str, Any], own: Iterable[str]) -> Core | None:
    """Return the core that `model` names as KIND/MODEL, or as KIND for kinds without a target; None if it names no core.

    `agent` is the agent's spec without options, for errors. `options` are the options in the spec that are not its `own`. Raises InputError
    for an option that the core does not have either.
    """
    found = _find_core(agent, model, options, own)
    if found is None:
        return None
    core: Core = found.kind(found.target, found.options)
    return core


def core_danger(model: str, options: Mapping[str, str]) -> Danger | None:
    """Return the danger of the core that `model` names as KIND/MODEL: to run code unless the core is built in."""
    kind, _, target = model.replace(":", "/").partition("/")
    core = own_class(CORES, kind)
    danger: Danger | None = core.danger(target, options) if core is not None else "run"
    return danger


def core_environment(agent: str, model: str, options: Mapping[str, Any], own: Iterable[str]) -> dict[str, str]:
    """Return the options that the environment sets for an agent's core, such as its address. Arguments are as for `make_core`."""
    found = _find_core(agent, model, options, own)
    find = getattr(found.kind, "from_environment", None) if found is not None else None
    return dict(find(found.options)) if found is not None and callable(find) else {}


def core_at_once(agent: str, model: str, options: Mapping[str, Any], own: Iterable[str]) -> int | None:
    """Return how many conversations an agent's core serves concurrently without recomputing prompts; None for no limit.

    Arguments are as for `make_core`.
    """
    found = _find_core(agent, model, options, own)
    limit = getattr(found.kind, "at_once", None) if found is not None else None
    return int(limit(found.options)) if found is not None and callable(limit) else None


class _CoreChoice(NamedTuple):
    """A core's class, target and options."""

    kind: Any
    target: str
    options: BaseModel


def _find_core(agent: str, model: str, options: Mapping[str, Any], own: Iterable[str]) -> _CoreChoice | None:
    match = _MODEL.fullmatch(model)
    name, target = (match["kind"], match["target"]) if match else (model, "")
    if not match and name not in find_entry_points(CORES):
        return None
    cls, kind = core_class(name), agent.partition("/")[0].partition(":")[0]
    if bool(target) != getattr(cls, "takes_target", True):
        if target:
            raise InputError(f"agent {agent}: {name} is one model and takes no target, got {target!r:.60}")
        return None
    of_core: type[BaseModel] = cls.Options
    known = option_names(of_core)
    all_options = f"{kind}'s options are {', '.join(own)}; {name}'s are {', '.join(known)}"
    for option in options:
        if not is_option(option, known):
            raise InputError(f"agent {agent}: unknown option {option!r:.40}{suggest(option, [*own, *known], all_options)}")
    try:
        return _CoreChoice(cls, target, validate_options(of_core, options))
    except ValidationError as error:
        raise InputError(f"agent {agent}: {first_problem(error)}; {all_options}") from None


def stamp_message(text: str, sent_at: datetime) -> str:
    """Return a message with its virtual time, which is absolute so that the message stays the same in all later prompts."""
    return f"[{sent_at:%a %Y-%m-%d %H:%M:%S}] {text}"


def as_sent(messages: Iterable[ChatMessage]) -> Iterator[tuple[str, str]]:
    """Yield the messages' roles and texts, for people. An answer with tool calls is followed by its raw form."""
    for message in messages:
        raw = f"\n{json.dumps(message.raw, ensure_ascii=False, default=str)}" if message.raw is not None else ""
        yield message.role, message.text + raw


def clean_unicode(text: str) -> str:
    """Return `text` as valid Unicode: a lone surrogate becomes "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def clean_json(value: Any) -> Any:
    """Return JSON whose strings are valid Unicode, as `clean_unicode` makes them."""
    text = json.dumps(value, ensure_ascii=False)
    return value if clean_unicode(text) == text else json.loads(clean_unicode(text))
