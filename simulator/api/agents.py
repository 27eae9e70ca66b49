"""Agents passed by a program: specs, objects, functions and classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import AGENTS
from longspan.simulator.contract.agent import Agent
from longspan.simulator.contract.plugins import own_class
from longspan.simulator.running.planning import Plan
from longspan.simulator.subject.in_memory_agents import KIND, GivenObject
from longspan.simulator.suite.agent_spec import AgentSpec

__all__ = ["Agents", "AnyAgent", "agents_of", "one_by_one"]

AnyAgent: TypeAlias = str | Agent | type | Callable[..., Any] | object
"""A spec, an object with a method `reply`, a class of such objects, a function that takes a message as a string, or a factory for any of
these."""

Agents: TypeAlias = AnyAgent | Sequence[AnyAgent] | Mapping[str, AnyAgent]
"""One agent, a sequence of agents, or a mapping from names to agents."""

NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)

REMEDY: Final = "give a spec such as 'openai/gpt-4o', an object with a method reply, a class, or a function of the message's text"


def agents_of(agents: Agents) -> tuple[list[str], dict[str, GivenObject]]:
    """Return the specs of agents, and the agents that are not specs by name. Raises InputError for anything that cannot be an agent."""
    if isinstance(agents, Mapping):
        named = dict(agents)
    else:
        several = list(agents) if isinstance(agents, list | tuple) else [agents]
        named = {}
        for agent in several:
            name = agent if isinstance(agent, str) else _name_of(agent)
            if name in named and named[name] is not agent:
                raise InputError(f"agent: two agents are called {name}; choose names: agent={{'one': ..., 'other': ...}}")
            named[name] = agent
    if not named:
        raise InputError(f"agent: no agent is given; {REMEDY}")
    specs: list[str] = []
    given: dict[str, GivenObject] = {}
    for name, agent in named.items():
        if isinstance(agent, str):
            specs.append(agent)
            continue
        if not NAME.fullmatch(name):
            raise InputError(f"agent: {name!r:.80} cannot be a name: at most 60 letters, digits and any of . _ - , such as 'bot-2'")
        specs.append(f"{KIND}:{name}")
        given[name] = _check_agent(name, agent)
    return specs, given


def _name_of(agent: Any) -> str:
    """Return the name of a function or a class, or the class name of an object."""
    name = str(getattr(agent, "__name__", type(agent).__name__))
    return name if NAME.fullmatch(name) else "function"


def _check_agent(name: str, agent: Any) -> GivenObject:
    if inspect.isclass(agent):
        _check_class(agent)
        return GivenObject(agent, shared=False)
    agent = own_class(AGENTS, KIND).adapt(agent)
    if callable(getattr(agent, "reply", None)):
        return GivenObject(lambda: agent, shared=True)
    if not callable(agent):
        raise InputError(f"agent {name}: a {type(agent).__name__} cannot be an agent; {REMEDY}")
    wanted = _parameters(agent)
    if wanted == 0:
        return GivenObject(agent, shared=False)
    if wanted > 1:
        raise InputError(
            f"agent {name}: the function takes {wanted} arguments; it must take one, the message's text, or none to make an agent"
        )
    return GivenObject(lambda: agent, shared=True)


def _check_class(cls: type) -> None:
    if not callable(getattr(cls, "reply", None)):
        if callable(getattr(cls, "add", None)) and callable(getattr(cls, "search", None)):
            spec = f"memory/python:{cls.__module__}:{cls.__qualname__}?answerer=KIND/MODEL"
            raise InputError(f"agent {cls.__name__}: the class is a memory, with add and search: give its spec, agent={spec!r}")
        raise InputError(f"agent {cls.__name__}: the class has no method reply: add `def reply(self, message)` that returns a str")
    if (wanted := _parameters(cls)) > 0:
        what = f"{wanted} argument{'s' * (wanted > 1)}"
        raise InputError(f"agent {cls.__name__}: the class takes {what}: pass a factory, agent=lambda: {cls.__name__}(...)")


def _parameters(function: Callable[..., Any]) -> int:
    """Return the number of required arguments. Return 1 if it is unknown, or if the function takes any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    varying = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    needed = [each for each in parameters if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return len(needed) or int(varying and not inspect.isclass(function))


def one_by_one(plans: Sequence[Plan], given: Mapping[str, GivenObject]) -> list[Plan]:
    """Return the plans, changed so that an agent object shared by several conversations plays one at a time.

    Raises InputError if a shared agent cannot be reset, so that it would carry its memory into the next conversation.
    """
    arranged = []
    for plan in plans:
        name = plan.agent.target
        shared = plan.agent.kind == KIND and name in given and given[name].shared
        if shared and not callable(getattr(given[name].make(), "reset", None)):
            spec = str(plan.agent)
            number = sum(len(each.tests) for each in plans if str(each.agent) == spec)
            if number > 1:
                raise InputError(
                    f"agent {name} would carry its memory through {number} conversations: pass a class or a factory (lambda: agent) "
                    "that makes a new agent for each, or add a method reset(self)"
                )
        arranged.append(replace(plan, agent=_one_at_once(plan.agent)) if shared else plan)
    return arranged


def _one_at_once(spec: AgentSpec) -> AgentSpec:
    return spec.unless_given(at_once="1")
