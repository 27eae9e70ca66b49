"""Memories by name, and the options of `memory/NAME`: its own, its answerer's and its memory's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.base import AgentOptions, Danger, InputError, Tokens
from longspan.agents.memory.answerer import Answerer
from longspan.agents.memory.attributed import AttributedMemory
from longspan.agents.memory.batches import Batch
from longspan.agents.memory.memory import Memory
from longspan.agents.memory.reader import WORDS, Reader
from longspan.agents.models.core import OnRefusal, core_at_once, core_danger, core_environment, make_core
from longspan.simulator.base.errors import first_problem
from longspan.simulator.base.fields import is_option, option_names, validate_options
from longspan.simulator.base.installed import MEMORIES, find_entry_points
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.plugins import load_plugin, own_class

__all__ = [
    "MemoryOptions",
    "answerer_at_once",
    "answerer_danger",
    "answerer_environment",
    "answerer_of",
    "make_memory",
    "memory_danger",
    "memory_defaults",
    "needs_check",
]

PREFIX: Final = "answerer."
"""The prefix of the answerer's options."""

_MEMORY: Final = re.compile(r"(?P<kind>[A-Za-z][\w-]*)(?:[/:](?P<target>.*))?", re.DOTALL)


class MemoryOptions(AgentOptions):
    """Options that are not declared here are the memory's."""

    model_config = ConfigDict(frozen=True, extra="allow")

    answerer: str = ""
    """The model that answers, such as openai/gpt-4o-mini, `words` for a reader without a model, or `none`. Required."""
    answerer_options: Mapping[str, str] = Field(default={}, alias="answerer.NAME")
    """The answerer's option NAME, such as `answerer.base_url`."""
    k: int = Field(default=20, ge=1, le=1000)
    """The number of memories to search for."""
    batch: Batch = "session"
    """Turns to add together: a `session`, a `turn`, or a number of turns."""
    probe: bool = False
    """At the end of a history, search for each turn in a memory that does not report its contents."""
    context: Tokens | None = None
    """Maximum tokens of the answerer's prompt and answer together. Default: the model's window."""
    on_refusal: OnRefusal = "reply"
    """The result of a refusal by the answerer: a normal `reply`, or an `error` that ends the conversation."""
    unchecked: bool = False
    """Play a memory that fails the checks before a new run, or was never checked. The result says so."""


def make_memory(target: str, options: MemoryOptions) -> Memory:
    """Return the memory that a target names as NAME or NAME:TARGET. Raises InputError."""
    cls, inner, given = _find_memory(target, options)
    memory: Memory = cls.make(inner, given)
    return memory if memory.tells_turns else AttributedMemory(memory)


def needs_check(target: str, options: MemoryOptions) -> bool:
    """Return whether a new run first checks the memory that a target names. Raises InputError."""
    cls, _, _ = _find_memory(target, options)
    return bool(cls.at_door) and not options.unchecked


def answerer_of(target: str, options: MemoryOptions) -> Answerer | Reader | None:
    """Return the answerer; None for `answerer=none`. Raises InputError if the option is missing or names no model."""
    if options.answerer in ("none", WORDS):
        given = [*(PREFIX + name for name in options.answerer_options), *(["context"] if options.context is not None else [])]
        if given:
            raise InputError(f"agent memory/{target!s:.60}: answerer={options.answerer} is no model and has no options; got {given[0]}")
        return Reader() if options.answerer == WORDS else None
    core = make_core(
        f"memory/{target}?answerer={options.answerer}", options.answerer, options.answerer_options, option_names(MemoryOptions)
    )
    if core is None:
        raise InputError(
            f"agent memory/{target!s:.60} needs answerer=KIND/MODEL, such as answerer=openai/gpt-4o-mini, or for nothing answerer={WORDS}, "
            f"which looks for words in what is found, or answerer=none, which only searches; got {options.answerer!r:.60}"
        )
    return Answerer(core, options.context, options.on_refusal)


def answerer_environment(target: str, options: MemoryOptions) -> Mapping[str, str]:
    """Return the answerer's options set by the environment, such as its address."""
    found = core_environment(f"memory/{target}", options.answerer, options.answerer_options, option_names(MemoryOptions))
    return {PREFIX + name: value for name, value in found.items()}


def answerer_at_once(target: str, options: MemoryOptions) -> int | None:
    """Return how many conversations the answerer serves concurrently; None for no limit."""
    return core_at_once(f"memory/{target}", options.answerer, options.answerer_options, option_names(MemoryOptions))


def memory_danger(target: str, options: Mapping[str, str]) -> Danger | None:
    """Return the danger of the memory that a target names: to run code unless the memory is built in."""
    match = _MEMORY.fullmatch(target)
    cls: Any = own_class(MEMORIES, match["kind"]) if match else None
    danger: Danger | None = cls.danger(match["target"] or "", options) if match and cls is not None else "run"
    return danger


def memory_defaults(target: str, options: MemoryOptions) -> Mapping[str, str]:
    """Return the memory's options whose defaults depend on the installed packages. Raises InputError."""
    cls, _, given = _find_memory(target, options)
    return dict(cls.defaults_here(given))


def answerer_danger(options: Mapping[str, str]) -> Danger | None:
    """Return the danger of the answerer in a memory agent's options."""
    answerer = options.get("answerer", "none")
    given = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}
    return None if answerer in ("none", WORDS) else core_danger(answerer, given)


def _find_memory(target: str, options: MemoryOptions) -> tuple[Any, str, BaseModel]:
    """Return a memory's class, target and options. Raises InputError."""
    match = _MEMORY.fullmatch(target)
    if not match:
        raise InputError(
            f"agent memory needs a memory: memory/NAME, where NAME is one of {', '.join(find_entry_points(MEMORIES))}; got {target!r:.60}"
        )
    if match["kind"] not in find_entry_points(MEMORIES) and re.fullmatch(r"[\w-]+:[^\W\d][\w.]*", target):
        raise InputError(f"there is no memory {match['kind']!r:.60}; did you mean memory/python:{target}?")
    cls: Any = load_plugin(MEMORIES, "memory", match["kind"])
    model: type[BaseModel] = cls.Options
    given = options.model_extra or {}
    own, known = option_names(MemoryOptions), option_names(model)
    if model.model_config.get("extra") != "allow":
        every = f"its options are {', '.join([*own, *known])}"
        for name in given:
            if not is_option(name, known):
                raise InputError(f"agent memory/{target!s:.60}: unknown option {name!r:.40}{suggest(name, [*own, *known], every)}")
    try:
        return cls, match["target"] or "", validate_options(model, given)
    except ValidationError as error:
        raise InputError(f"agent memory/{target!s:.60}: {first_problem(error)}; its options are {', '.join([*own, *known])}") from None
