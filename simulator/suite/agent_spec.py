"""Agent specs (`KIND/MODEL?option=value&...`), and the agents that they name. Kinds are found by entry point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, Final, final
from urllib.parse import quote, unquote

import trio
from pydantic import ValidationError

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import InputError, LongspanError, first_problem, one_line
from longspan.simulator.base.fields import is_option, option_names, validate_options
from longspan.simulator.base.installed import AGENTS, find_entry_points
from longspan.simulator.base.process_shares import process_share
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.agent import Agent, close_agent
from longspan.simulator.contract.agent_kind import AgentKind, AgentOptions
from longspan.simulator.contract.findings import Examination
from longspan.simulator.contract.plugins import load_plugin

__all__ = [
    "AgentSpec",
    "agent_source",
    "at_once",
    "class_of",
    "find_examination",
    "inspect_agent",
    "make_agent",
    "pin_defaults",
    "resolve_spec",
]

_SPEC = re.compile(r"(?P<kind>[A-Za-z][\w-]*)(?:[/:](?P<target>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL)
PLAIN: Final = "/:@!$'()*+,;=[]~"
"""Characters that need no escape in an option's value when a spec is written."""

TRUE: Final = ("true", "1", "yes", "on", "t", "y")
"""The values that mean true."""

_METHODS = ("reply", "observe", "reset", "save", "load")


@final
@dataclass(frozen=True, slots=True)
class AgentSpec:
    """A parsed agent spec: `openai/gpt-4o?context=16k` has the kind `openai`, the target `gpt-4o` and one option.

    The kind is followed by `/` or `:` and the target, which may be empty. Options start at the first `?`. The target and
    the values are percent-decoded, so `%3F` and `%26` stand for `?` and `&`. A `+` is a plus sign.
    """

    kind: str
    target: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = ""

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> AgentSpec:
        """Parse a spec. Raises InputError for invalid text; `make_agent` checks that the kind exists."""
        text = text.strip()
        match = _SPEC.fullmatch(text)
        if not match:
            such = "; a spec looks like KIND/MODEL?option=value&..., such as notebook?window=8k"
            raise InputError(f"{text!r:.80} names no agent{_likely(text) or such}")
        options: dict[str, str] = {}
        for option in match["query"].split("&") if match["query"] else ():
            name, equals, value = option.partition("=")
            if not name or not equals:
                raise InputError(f"agent {text!r:.80}: options must be name=value pairs joined by &; got {option!r:.40}")
            if name in options:
                raise InputError(f"agent {text!r:.80}: option {name} is given twice")
            options[name] = unquote(value)
        return AgentSpec(match["kind"], unquote(match["target"] or ""), MappingProxyType(options), text)

    def unless_given(self, **options: str) -> AgentSpec:
        """Return this spec with `options` as defaults, as far as its kind has such options. Its text does not change.

        Raises InputError if the kind is unknown.
        """
        known = option_names(class_of(self).Options)
        return replace(self, options={name: value for name, value in options.items() if name in known} | dict(self.options))

    def with_options(self, options: Mapping[str, str]) -> AgentSpec:
        """Return this spec with more options, in its text too. The spec must not set them already."""
        text = str(self)
        for name, value in options.items():
            text += f"{'&' if '?' in text else '?'}{name}={quote(value, safe=PLAIN)}"
        return replace(self, options=dict(self.options) | dict(options), text=text)

    @property
    def without_answerer(self) -> AgentSpec | None:
        """The same memory without the model that answers from retrieved memories, or None for an agent without an `answerer`."""
        if self.options.get("answerer", "none") == "none":
            return None
        kept = {name: value for name, value in self.options.items() if name != "context" and not name.startswith("answerer")}
        text = str(self).partition("?")[0]
        return replace(self, options={}, text=text).with_options({**kept, "answerer": "none"})

    @property
    def unchecked(self) -> bool:
        """Whether the user chose to run a memory without checking it first."""
        return self.kind == "memory" and self.options.get("unchecked", "").lower() in TRUE

    def __str__(self) -> str:
        return self.text or self.kind


def make_agent(spec: AgentSpec) -> Agent:
    """Create the agent that `spec` names.

    Calls the kind's class with the target and the options, which are an instance of its nested pydantic model `Options`. Raises InputError
    if the kind is unknown or ambiguous, an option is invalid or a prerequisite is missing.
    """
    cls = class_of(spec)
    options = _options(spec, cls)
    try:
        agent = cls.make(spec.target, options)
    except LongspanError:
        raise
    except BaseException as error:  # an agent's code may raise anything, even SystemExit
        if not is_fault(error):
            raise
        raise InputError(f"agent {spec}: {_name(cls)} could not be created: {one_line(error)}") from error
    missing = [name for name in _METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise InputError(f"agent {spec}: {_name(cls)} has no {', '.join(missing)}; derive it from longspan.BaseAgent")
    made: Agent = agent
    return made


def find_examination(spec: AgentSpec) -> Examination | None:
    """Return the checks of the agent that `spec` names, or None if its kind has none. Raises as `make_agent` does."""
    cls = class_of(spec)
    return cls.examination(spec.target, _options(spec, cls))


@contextmanager
def inspect_agent(spec: AgentSpec) -> Iterator[Agent]:
    """Create an agent to inspect its abilities, and close it afterwards. Raises as `make_agent` does.

    Closing runs in a new thread with its own Trio loop, because the caller may or may not be under Trio.
    """
    agent = make_agent(spec)
    try:
        yield agent
    finally:
        closing = Thread(target=trio.run, args=(close_agent, agent), name="longspan: closing an agent")
        closing.start()
        closing.join()


def resolve_spec(spec: AgentSpec) -> AgentSpec:
    """Return a spec with the options that the environment sets, such as a model's address, so that a run's manifest records them.

    Raises InputError if the kind is unknown or an option is invalid.
    """
    cls = class_of(spec)
    return spec.with_options(cls.from_environment(spec.target, _options(spec, cls)))


def pin_defaults(spec: AgentSpec) -> AgentSpec:
    """Return the spec of an agent for a new run: resolved, and with the options whose defaults depend on this installation.

    A run from elsewhere keeps its defaults, because its manifest records them. Raises InputError if the kind is unknown or an option is
    invalid.
    """
    spec = resolve_spec(spec)
    cls = class_of(spec)
    return spec.with_options(cls.defaults_here(spec.target, _options(spec, cls)))


def agent_source(spec: AgentSpec) -> Path | None:
    """Return the file with the code of the agent that `spec` names, if its kind reports it. Raises InputError if the kind is unknown."""
    return class_of(spec).source(spec.target)


def at_once(spec: AgentSpec) -> float:
    """Return the most conversations that the agent may play concurrently in this process, or inf without a limit.

    Raises InputError if the kind is unknown or an option is invalid.
    """
    cls = class_of(spec)
    return process_share(cls.at_once(spec.target, _options(spec, cls)))


def class_of(spec: AgentSpec) -> type[AgentKind]:
    """Return the class of a kind of agent. Raises InputError for an unknown kind, with the spec that was probably meant, and for a class
    that is not derived from longspan.BaseAgent."""
    if spec.kind not in find_entry_points(AGENTS) and (likely := _likely(str(spec))):
        raise InputError(f"{str(spec)!r:.80} names no agent{likely}")
    cls = load_plugin(AGENTS, "kind of agent", spec.kind)
    if not (isinstance(cls, type) and issubclass(cls, AgentKind)):
        raise InputError(f"agent {spec}: {_name(cls)} is not a class derived from longspan.BaseAgent")
    return cls


def _likely(text: str) -> str:
    """Return "; did you mean SPEC?" for a class, a model, a file or an address without its kind, otherwise ""."""
    name, mark, query = text.partition("?")
    module, colon, cls = name.replace("\\", "/").partition(":")
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", name):
        spec = f"http://{name}"
    elif colon and re.fullmatch(r"[^\W\d][\w.]*", cls):
        spec = f"python:{module.rpartition('/')[2].removesuffix('.py')}:{cls}"
    elif name.endswith(".gguf"):
        spec = f"gguf/{name}"
    elif Path(f"{name.removesuffix('.py')}.py").is_file():
        spec = f"python:{Path(name).name.removesuffix('.py')}:Class"
    elif Path(f"{name.rpartition('.')[0].replace('.', '/')}.py").is_file():
        spec = f"python:{name.rpartition('.')[0]}:{name.rpartition('.')[2]}"
    elif (provider := _provider(name)) in find_entry_points(AGENTS):
        spec = f"{provider}/{name}"
    else:
        return ""
    return f"; did you mean {spec}{mark}{query}?"


def _provider(model: str) -> str:
    """Return the provider of a model by the model's name, or "" if unknown."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return str(get_snapshot().find_provider(model, None, None).id)
    except LookupError:
        return ""


def _options(spec: AgentSpec, cls: type[AgentKind]) -> AgentOptions:
    """Validate the spec's options with the model of its class."""
    model = cls.Options
    known = option_names(model)
    options_text = f"its options are {', '.join(known)}" if known else "it takes no options"
    if model.model_config.get("extra") != "allow":
        for name in spec.options:
            if not is_option(name, known):
                raise InputError(f"agent {spec}: unknown option {name!r:.40}{suggest(name, known, options_text)}")
    try:
        return validate_options(model, spec.options)
    except ValidationError as error:
        raise InputError(f"agent {spec}: {first_problem(error)}; {options_text}") from None


def _name(cls: Any) -> str:
    return f"{getattr(cls, '__module__', '?')}.{getattr(cls, '__qualname__', repr(cls))}"
