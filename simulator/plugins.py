"""Finding what is installed: scenarios and agents by entry point, or by module and class without packaging."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from longspan.simulator.errors import InputError, first_problem, one_line
from longspan.simulator.scenario import Scenario, Skill

__all__ = ["SCENARIOS", "find_class", "installed", "installed_scenarios", "load", "make_scenario", "scenario_class"]

NAME = r"[a-z][a-z0-9_]{0,60}"
"""What a scenario may be called: its tests' names become names of folders."""

SCENARIOS = "longspan.scenarios"
"""The entry-point group in which a distribution registers a scenario: its name, and its class."""


def installed(group: str) -> dict[str, list[EntryPoint]]:
    """What is registered in an entry-point group, by name. A name that several distributions take has several entries."""
    found: dict[str, list[EntryPoint]] = {}
    for point in _points(entry_points, group, tuple(sys.path)):
        found.setdefault(point.name, []).append(point)
    return found


@lru_cache(maxsize=32)
def _points(find: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]) -> list[EntryPoint]:
    """What `find` finds in a group, by name: every distribution on the path is looked at, so it is done once for each path."""
    return sorted(find(group=group), key=lambda point: point.name)


def load(group: str, what: str, name: str) -> Any:
    """The object registered as `name`; `what` names the kind of thing in errors. Raises InputError."""
    found = installed(group)
    points = found.get(name, [])
    if not points:
        there_are = f"there are {', '.join(found)}" if found else "none are installed: install longspan (pip install -e .)"
        raise InputError(f"there is no {what} {name!r:.60}; {there_are}")
    if len(points) > 1:
        raise InputError(f"the {what} {name!r} is registered by {' and '.join(sorted(map(origin, points)))}: uninstall one of them")
    try:
        return points[0].load()
    except Exception as error:
        raise InputError(f"the {what} {name!r} ({origin(points[0])}) cannot be loaded: {one_line(error)}") from error


def origin(point: EntryPoint) -> str:
    """The distribution an entry point comes from."""
    return point.dist.name if point.dist is not None else point.value


def scenario_class(name: str) -> type[Scenario]:
    """The scenario that `name` names: a registered one, or `python:module:Class`. Raises InputError."""
    if name.startswith("python:"):
        found: Any = find_class(name.removeprefix("python:"))
    else:
        found = load(SCENARIOS, "scenario", name)
    if not (inspect.isclass(found) and issubclass(found, Scenario)):
        raise InputError(f"scenario {name}: {found!r:.60} is not a class derived from longspan.Scenario")
    missing = [attribute for attribute in ("name", "skills") if not hasattr(found, attribute)]
    if missing or inspect.isabstract(found):
        raise InputError(f"scenario {name}: {found.__name__} lacks {', '.join(missing) or 'a method make'}")
    if not isinstance(found.skills, tuple) or not isinstance(found.topics, frozenset):
        raise InputError(f"scenario {name}: skills has to be a tuple, and topics a frozenset")
    unknown = [skill for skill in found.skills if skill not in get_args(Skill)]
    if unknown:
        raise InputError(f"scenario {name}: there is no skill {unknown[0]!r:.60}; there are {', '.join(get_args(Skill))}")
    if found.name != name and not name.startswith("python:"):
        raise InputError(f"scenario {name}: its class calls itself {found.name!r:.60}; both have to be the same")
    if not re.fullmatch(NAME, found.name):
        raise InputError(f"scenario {name}: its name must be lower case letters, digits and underscores, got {found.name!r:.60}")
    return found


def make_scenario(name: str, parameters: Mapping[str, Any]) -> Scenario:
    """The scenario with its parameters. Raises InputError for a parameter it does not have or cannot take."""
    cls = scenario_class(name)
    try:
        return cls.model_validate(dict(parameters))
    except ValidationError as error:
        there_are = f"its parameters are {', '.join(cls.model_fields)}" if cls.model_fields else "it has no parameters"
        raise InputError(f"scenario {cls.name}: {first_problem(error)}; {there_are}") from None


def installed_scenarios(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, Scenario]:
    """Those of a run's scenarios that are installed here, by name, given their parameters. Code that the run names is not loaded:
    whoever only looks at a run need not trust it."""
    found = {}
    for name, given in parameters.items():
        if ":" not in name:
            try:
                scenario = make_scenario(name, given)
            except InputError:  # of another longspan, or of a package that is not installed here
                continue
            found[scenario.name] = scenario
    return found


def find_class(target: str) -> Callable[..., Any]:
    """The class that `module:Class` names, looked for where Python looks and in the current folder. Raises InputError."""
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise InputError(f"a class is named python:package.module:Class, got python:{target!s:.80}")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(f"python:{target}: there is no module {error.name!r}; start longspan in the folder that holds it") from None
        raise InputError(f"python:{target}: importing {module_name} raised {one_line(error)}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InputError(f"python:{target}: {module_name} has no class {path!r}; {_classes(module_name)}")
        found = getattr(found, name)
    if not callable(found):
        raise InputError(f"python:{target}: {path} is a {type(found).__name__}, not a class; {_classes(module_name)}")
    made: Callable[..., Any] = found
    return made


def _classes(module_name: str) -> str:
    """The classes a module defines, for an error's remedy."""
    module = sys.modules[module_name]
    own = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module_name]
    return f"it defines {', '.join(sorted(own)[:10])}" if own else "it defines no class"
