"""Plugin discovery: finds scenarios and agents by entry point, or by module and class if they are not packaged."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import InputError, first_problem, one_line
from longspan.simulator.base.fields import validate_options
from longspan.simulator.base.installed import SCENARIOS, find_entry_points
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.scenario import Scenario, Skill

__all__ = [
    "find_class",
    "find_object",
    "installed_scenarios",
    "load_plugin",
    "make_scenario",
    "module_and_class",
    "own_class",
    "path_parameters",
    "scenario_class",
]

NAME = r"[a-z][a-z0-9_]{0,60}"
"""The pattern of scenario names, which become part of folder names."""


def load_plugin(group: str, what: str, name: str) -> Any:
    """Load the object registered as `name`. `what` names the kind of object in errors. Raises InputError."""
    registered = find_entry_points(group)
    points = registered.get(name, [])
    if not points:
        known = f"there are {', '.join(registered)}" if registered else "none are installed: install longspan (pip install -e .)"
        raise InputError(f"there is no {what} {name!r:.60}{suggest(name, registered, known)}")
    if len(points) > 1:
        raise InputError(
            f"the {what} {name!r} is registered by {' and '.join(sorted(point.package for point in points))}: uninstall one of them"
        )
    try:
        return points[0].load()
    except BaseException as error:  # other packages' code may raise anything, even SystemExit
        if not is_fault(error):
            raise
        raise InputError(f"the {what} {name!r} ({points[0].package}) cannot be loaded: {one_line(error)}{at_line(error)}") from error


def own_class(group: str, name: str) -> Any:
    """Return the class registered as `name` if it is longspan's own and declares its `danger`, otherwise None.

    Does not import other packages' code, so it is safe to call with an untrusted name.
    """
    points = find_entry_points(group).get(name, [])
    if [point.value.partition(".")[0] for point in points] != [__name__.partition(".")[0]]:
        return None
    try:
        found = load_plugin(group, "class", name)
    except InputError:  # a class that cannot be loaded cannot be used either
        return None
    return found if hasattr(found, "danger") else None


def scenario_class(name: str) -> type[Scenario]:
    """Return a scenario class by its registered name or by `python:module:Class`. Raises InputError."""
    if name.startswith("python:"):
        cls: Any = find_class(name.removeprefix("python:"))
    else:
        cls = load_plugin(SCENARIOS, "scenario", name)
    if not (inspect.isclass(cls) and issubclass(cls, Scenario)):
        raise InputError(f"scenario {name}: {cls!r:.60} is not a class derived from longspan.Scenario")
    missing = [attribute for attribute in ("name", "skills") if not hasattr(cls, attribute)]
    if missing or inspect.isabstract(cls):
        raise InputError(f"scenario {name}: {cls.__name__} lacks {', '.join(missing) or 'a method make'}")
    if not isinstance(cls.skills, tuple) or not isinstance(cls.topics, frozenset):
        raise InputError(f"scenario {name}: skills must be a tuple, and topics a frozenset")
    unknown = [skill for skill in cls.skills if skill not in get_args(Skill)]
    if unknown:
        raise InputError(f"scenario {name}: unknown skill {unknown[0]!r:.60}; the skills are {', '.join(get_args(Skill))}")
    if cls.name != name and not name.startswith("python:"):
        raise InputError(f"scenario {name}: its class has the name {cls.name!r:.60}; both must be the same")
    if not re.fullmatch(NAME, cls.name):
        raise InputError(f"scenario {name}: its name must be lower case letters, digits and underscores, got {cls.name!r:.60}")
    return cls


def path_parameters(cls: type[Scenario]) -> set[str]:
    """Return the names of a scenario's parameters that take a path."""
    return {name for name, field in cls.model_fields.items() if Path in (field.annotation, *get_args(field.annotation))}


def make_scenario(name: str, parameters: Mapping[str, Any]) -> Scenario:
    """Create a scenario with parameters. Raises InputError for an unknown or invalid parameter."""
    cls = scenario_class(name)
    try:
        return validate_options(cls, parameters)
    except ValidationError as error:
        known = f"its parameters are {', '.join(cls.model_fields)}" if cls.model_fields else "it has no parameters"
        raise InputError(f"scenario {cls.name}: {first_problem(error)}; {known}") from None


def installed_scenarios(parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, Scenario]:
    """Return a run's scenarios by name, as far as they are installed here.

    `parameters` maps each scenario's name to its parameters. Code that the run names (`python:`) is not loaded, so that users can inspect a
    run without trusting it.
    """
    scenarios = {}
    for name, values in parameters.items():
        if ":" not in name:
            try:
                scenario = make_scenario(name, values)
            except InputError:  # it comes from another version of longspan, or from a package that is not installed
                continue
            scenarios[scenario.name] = scenario
    return scenarios


def find_class(target: str) -> Callable[..., Any]:
    """Import `module:Class` from Python's path or the current folder. Raises InputError."""
    cls: Any = find_object("python", target)
    if not callable(cls):
        module_name, path = module_and_class(target)
        raise InputError(f"python:{target}: {path} is a {type(cls).__name__}, not a class; {_classes(module_name)}")
    found: Callable[..., Any] = cls
    return found


def find_object(kind: str, target: str) -> Any:
    """Import `module:name` from Python's path or the current folder. `kind` is the kind of agent, for errors. Raises InputError."""
    module_name, path = module_and_class(target, kind)
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module_name)
    except BaseException as error:
        if not is_fault(error):
            raise
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(f"{kind}:{target}: there is no module {error.name!r}; start longspan in the folder that contains it") from None
        raise InputError(f"{kind}:{target}: importing {module_name} raised {one_line(error)}{at_line(error)}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            what = f"class {path!r}; {_classes(module_name)}" if kind == "python" else f"{path!r}"
            raise InputError(f"{kind}:{target}: {module_name} has no {what}")
        found = getattr(found, name)
    return found


def module_and_class(target: str, kind: str = "python") -> tuple[str, str]:
    """Split `package.module:Class`. Raises InputError for anything else, such as the path of a file."""
    module, colon, path = target.partition(":")
    if module.endswith(".py") or "/" in module or "\\" in module:
        name = module.replace("\\", "/").rpartition("/")[2].removesuffix(".py") or "module"
        remedy = f"start longspan in the folder that contains {name}.py and write {kind}:{name}:{path or 'Class'}"
        raise InputError(f"{kind}:{target!s:.80}: {kind}: takes a module's name, not a file's path; {remedy}")
    if not (module and colon and path):
        raise InputError(f"a class spec looks like {kind}:package.module:Class, got {kind}:{target!s:.80}")
    return module, path


def _classes(module_name: str) -> str:
    """Return a list of the classes that a module defines, for error messages."""
    module = sys.modules[module_name]
    classes = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module_name]
    return f"it defines {', '.join(sorted(classes)[:10])}" if classes else "it defines no class"
