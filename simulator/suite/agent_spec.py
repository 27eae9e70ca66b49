"""Agent specs, `KIND/MODEL?option=value&...`, and the agents they name. Kinds are found by entry point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any, Final, final
from urllib.parse import quote, unquote

import trio
from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.blame import is_fault
from longspan.simulator.base.errors import InputError, LongspanError, first_problem, one_line
from longspan.simulator.base.fields import is_option, option_names, validated
from longspan.simulator.base.installed import AGENTS, installed
from longspan.simulator.base.processes import share
from longspan.simulator.base.suggestions import meant
from longspan.simulator.contract.agent import Agent, close
from longspan.simulator.contract.findings import Examination
from longspan.simulator.suite.plugins import load

__all__ = ["AgentSpec", "at_once", "begun", "class_of", "examination", "inspected", "make_agent", "resolved", "source"]

_SPEC = re.compile(r"(?P<kind>[A-Za-z][\w-]*)(?:[/:](?P<target>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL)
PLAIN: Final = "/:@!$'()*+,;=[]~"
"""Characters of an option's value that a spec's text need not escape."""

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

    @classmethod
    def parse(cls, text: str) -> AgentSpec:
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
        return cls(match["kind"], unquote(match["target"] or ""), options, text)

    def unless_given(self, **options: str) -> AgentSpec:
        """Return this spec with these `options` as defaults, as far as its kind has them. Its text stays the same.

        Raises InputError if the kind is unknown.
        """
        known = option_names(getattr(class_of(self), "Options", _NoOptions))
        return replace(self, options={name: value for name, value in options.items() if name in known} | dict(self.options))

    def having(self, options: Mapping[str, str]) -> AgentSpec:
        """Return this spec with more options, also in its text. The spec must not set them already."""
        text = str(self)
        for name, value in options.items():
            text += f"{'&' if '?' in text else '?'}{name}={quote(value, safe=PLAIN)}"
        return replace(self, options=dict(self.options) | dict(options), text=text)

    @property
    def without_answerer(self) -> AgentSpec | None:
        """The same memory without the model that answers from retrieved memories; None for an agent without an `answerer`."""
        if self.options.get("answerer", "none") == "none":
            return None
        kept = {name: value for name, value in self.options.items() if name != "context" and not name.startswith("answerer")}
        text = str(self).partition("?")[0]
        return replace(self, options={}, text=text).having({**kept, "answerer": "none"})

    @property
    def unchecked(self) -> bool:
        """Whether the user chose to play a memory without checks."""
        return self.kind == "memory" and self.options.get("unchecked", "").lower() in TRUE

    def __str__(self) -> str:
        return self.text or self.kind


def make_agent(spec: AgentSpec) -> Agent:
    """Create the agent that `spec` names.

    The kind's class is called with the target and the options, an instance of its nested pydantic model `Options`.
    Raises InputError if the kind is unknown or ambiguous, an option is invalid or a prerequisite is missing.
    """
    cls = class_of(spec)
    options = _options(spec, getattr(cls, "Options", _NoOptions))
    try:
        agent = cls(spec.target, options)
    except LongspanError:
        raise
    except BaseException as error:  # an agent's code may raise anything, SystemExit included
        if not is_fault(error):
            raise
        raise InputError(f"agent {spec}: {_name(cls)} could not be created: {one_line(error)}") from error
    missing = [name for name in _METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise InputError(f"agent {spec}: {_name(cls)} has no {', '.join(missing)}; derive it from longspan.BaseAgent")
    made: Agent = agent
    return made


def examination(spec: AgentSpec) -> Examination | None:
    """Return the checks of the agent that `spec` names; None if its kind has none. Raises as `make_agent` does."""
    cls = class_of(spec)
    find = getattr(cls, "examination", None)
    found: Examination | None = find(spec.target, _options(spec, getattr(cls, "Options", _NoOptions))) if callable(find) else None
    return found


@contextmanager
def inspected(spec: AgentSpec) -> Iterator[Agent]:
    """Make an agent to inspect its abilities, and close it again. Raises as `make_agent` does.

    It is closed in a thread, since the caller may or may not be in Trio.
    """
    agent = make_agent(spec)
    try:
        yield agent
    finally:
        closing = Thread(target=trio.run, args=(close, agent), name="longspan: closing an agent")
        closing.start()
        closing.join()


def resolved(spec: AgentSpec) -> AgentSpec:
    """Return a spec with the options that the environment sets, such as a model's address, so that a run's manifest names them.

    Raises InputError if the kind is unknown or an option is invalid.
    """
    cls = class_of(spec)
    find = getattr(cls, "from_environment", None)
    return spec.having(find(spec.target, _options(spec, getattr(cls, "Options", _NoOptions)))) if callable(find) else spec


def begun(spec: AgentSpec) -> AgentSpec:
    """Return the spec of an agent for something new: resolved, and with the options whose defaults depend on this installation.

    A run from elsewhere keeps its defaults, because its manifest names them. Raises InputError if the kind is unknown or an option is
    invalid.
    """
    spec = resolved(spec)
    cls = class_of(spec)
    find = getattr(cls, "defaults_here", None)
    return spec.having(find(spec.target, _options(spec, getattr(cls, "Options", _NoOptions)))) if callable(find) else spec


def source(spec: AgentSpec) -> Path | None:
    """Return the file with the code of the agent that `spec` names, if its kind reports it. Raises InputError if the kind is unknown."""
    find = getattr(class_of(spec), "source", None)
    return find(spec.target) if callable(find) else None


def at_once(spec: AgentSpec) -> float:
    """Return how many concurrent conversations the agent that `spec` names may have in this process; inf without a limit.

    Raises InputError if the kind is unknown or an option is invalid.
    """
    cls = class_of(spec)
    limit = getattr(cls, "at_once", None)
    return share(limit(spec.target, _options(spec, getattr(cls, "Options", _NoOptions)))) if callable(limit) else inf


def class_of(spec: AgentSpec) -> Any:
    """Return the class of a kind of agent. Raises InputError for an unknown kind, with the spec that was probably meant."""
    if spec.kind not in installed(AGENTS) and (likely := _likely(str(spec))):
        raise InputError(f"{str(spec)!r:.80} names no agent{likely}")
    return load(AGENTS, "kind of agent", spec.kind)


def _likely(text: str) -> str:
    """Return "; did you mean SPEC?" for a class, a model, a file or an address without its kind; otherwise an empty string."""
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
    elif (provider := _provider(name)) in installed(AGENTS):
        spec = f"{provider}/{name}"
    else:
        return ""
    return f"; did you mean {spec}{mark}{query}?"


def _provider(model: str) -> str:
    """Return a model's provider by the model's name; an empty string if unknown."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return str(get_snapshot().find_provider(model, None, None).id)
    except LookupError:
        return ""


class _NoOptions(BaseModel):
    """The options of an agent without options."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _options(spec: AgentSpec, model: type[BaseModel]) -> BaseModel:
    """Validate the spec's options with the agent's model."""
    known = option_names(model)
    options_text = f"its options are {', '.join(known)}" if known else "it takes no options"
    if model.model_config.get("extra") != "allow":
        for name in spec.options:
            if not is_option(name, known):
                raise InputError(f"agent {spec}: unknown option {name!r:.40}{meant(name, known, options_text)}")
    try:
        return validated(model, spec.options)
    except ValidationError as error:
        raise InputError(f"agent {spec}: {first_problem(error)}; {options_text}") from None


def _name(cls: Any) -> str:
    return f"{getattr(cls, '__module__', '?')}.{getattr(cls, '__qualname__', repr(cls))}"
