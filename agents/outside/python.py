"""Agents written as a class with a method `reply`, named `python:package.module:Class`.

    class Parrot:
        def reply(self, message):            # or `async def`, under asyncio
            return message.text              # or a dict with text, usage, cost_usd and trace, or a Reply

`message` is a `longspan.simulator.contract.messages.Message`: `text`, `sent_at` (virtual time) and `turn_id`. Optional methods, plain or
async: `observe(message, reply)`, `consolidate(at)`, `reset()`, `save(folder)`, `load(folder)` and `close()`. An instance lives in a
separate thread with an asyncio loop, including its constructor (see `loop_thread`). Subclasses of `BaseAgent` run under Trio.

Without `observe`, the class has to reply, and the reply is dropped. Without `reset`, a new instance is created. Without `save` and `load`,
a resumed run replays all turns. Options of the spec (`python:package.module:Class?name=value`) become keyword arguments of the class, as
strings. The exceptions are `interpreter=PATH`, which runs the class in another Python environment, `faketime` for that, `timeout`,
`at_once` and prices.
"""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, final

from pydantic import ConfigDict

from longspan.agents.base import AgentOptions, BaseAgent, InputError
from longspan.agents.outside.exec import ProgramAgent
from longspan.agents.outside.faketime import FakeClock
from longspan.agents.outside.frameworks import copy_finished, find_adapter, is_finished
from longspan.agents.outside.loop_thread import LoopThread, share_thread
from longspan.agents.outside.object_agent import ObjectAgent
from longspan.agents.outside.protocol import EmptyAnswer
from longspan.agents.outside.remote import RemoteOptions, count_processors
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.plugins import find_class, find_object, module_and_class

__all__ = ["KeptProgram", "PythonAgent", "PythonOptions", "bridge_command", "check_arguments", "find_maker"]

BRIDGE: Final = Path(__file__).parent / "bridge.py"

CALLS: Final = ("ainvoke", "invoke", "run", "chat", "query", "ask", "kickoff", "generate", "respond")
"""Methods to which libraries commonly give a message, to suggest one in an error."""

RUN_FILE: Final = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
"""Python code that runs a file without adding its folder to the module path, where `http` and others would hide the standard library."""


class PythonOptions(RemoteOptions):
    """Options that are not declared here are passed to the class as strings."""

    model_config = ConfigDict(frozen=True, extra="allow")

    interpreter: str | None = None
    """The Python (3.8 or newer) of another environment, to run the class there. longspan needs no packages in it. Default:
    longspan's own."""
    faketime: bool = False
    """With `interpreter`: the clock that the class reads shows the virtual time."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The class's own options."""
        return dict(self.model_extra or {})

    def program(self, name: str, target: str, role: Literal["agent", "memory"]) -> ProgramAgent | None:
        """Return the program that runs the class `target` with `interpreter`; None if it runs in this Python. `name` is its spec.

        Raises InputError if that Python does not exist, or if `faketime` is set without `interpreter`.
        """
        if self.interpreter is not None:
            module_and_class(target)
            command = bridge_command(target, self.interpreter, self.arguments, role)
            clock = FakeClock() if self.faketime else None
            return ProgramAgent(target, self, name, command, clock) if clock is not None else KeptProgram(target, self, name, command)
        if self.faketime:
            raise InputError(f"{name}: faketime=true needs a separate process: add interpreter=python")
        return None


@final
class PythonAgent(ObjectAgent):
    """A user's class in this Python. With `interpreter`, the kind makes a program that runs it in another."""

    takes_target = True

    class Options(PythonOptions):
        """Options that are not declared here are passed to the class as strings."""

    @classmethod
    def make(cls, target: str, options: AgentOptions) -> PythonAgent | ProgramAgent:
        """Create the agent, in this Python or in the one that the options name."""
        settings = options if isinstance(options, cls.Options) else cls.Options()
        return settings.program(f"python:{target}", target, "agent") or cls(target, settings)

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        settings = options if isinstance(options, PythonOptions) else PythonOptions()
        found, make = find_maker(target, settings.arguments)
        name = f"python:{target}"
        home: LoopThread | None = None
        if find_adapter(found) is not None:
            home = share_thread(f"python:{target.partition(':')[0]}")
        elif not (isinstance(found, BaseAgent) or (isinstance(found, type) and issubclass(found, BaseAgent))):
            home = LoopThread(name)
        super().__init__(name, settings, home, make)
        _ = self.object  # created now, to report its errors early

    @classmethod
    def source(cls, target: str) -> Path | None:
        """Return the file of the class's module or package, if it is loaded or lies in the current folder."""
        module, _ = module_and_class(target)
        if loaded := getattr(sys.modules.get(module), "__file__", None):
            return Path(loaded)
        parts = Path.cwd().joinpath(*module.split("."))
        return next((path for path in (parts.with_name(f"{parts.name}.py"), parts / "__init__.py") if path.is_file()), None)

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the option `at_once`, by default the number of processors with `interpreter` and unlimited without it."""
        settings = options if isinstance(options, cls.Options) else cls.Options()
        return settings.at_once or (count_processors() if settings.interpreter is not None else None)


@final
class KeptProgram(ProgramAgent):
    """The class in another Python. Its process survives the loading of a snapshot, so modules need not be imported again."""

    async def renew(self) -> None:
        if self.connected:
            await self.ask("reset", EmptyAnswer)
        else:
            await super().renew()


def bridge_command(target: str, interpreter: str, arguments: Mapping[str, Any], role: str) -> list[str]:
    """Return the command that runs a class in another Python, as an agent or a memory. Raises InputError if that Python does not exist."""
    program = shutil.which(interpreter)
    if program is None:
        raise InputError(
            f"python:{target}: program {interpreter!r:.80} does not exist; interpreter= takes a Python, such as venv/bin/python"
        )
    return [program, "-c", RUN_FILE, str(BRIDGE), target, json.dumps(arguments), role]


def find_maker(target: str, arguments: Mapping[str, Any]) -> tuple[Any, Callable[[], Any]]:
    """Import an agent or a memory, and return it with a function that makes one for each conversation.

    The module may have a class, a function that makes an object, or an object. Raises InputError if `arguments` do not fit, or if the
    object cannot be copied.
    """
    found = find_object("python", target)
    if not is_finished(found):
        check_arguments(found, arguments, target)
        return found, partial(found, **arguments)
    if find_adapter(found) is None and not any(callable(getattr(found, name, None)) for name in ("reply", "add")):
        _refuse_object(found, target)
    try:
        copy_finished(found, dict(arguments))
    except (TypeError, ValueError, ImportError) as error:
        raise InputError(f"python:{target}: {error}") from error
    return found, lambda: copy_finished(found, dict(arguments))


def _refuse_object(found: Any, target: str) -> NoReturn:
    """Raise InputError for an object that is neither an agent nor a memory, with a way to connect it."""
    name = target.rpartition(":")[2]
    call = next((method for method in CALLS if callable(getattr(found, method, None))), None)
    if call is None:
        find_class(target)  # it raises the error that lists the module's classes
    way = f"name it runnable:{target}" if call in ("ainvoke", "invoke") else _suggest_wrapper(f"{name}.{call}")
    raise InputError(f"python:{target}: {name} is a {type(found).__name__} and has no method reply; {way}")


def check_arguments(cls: Callable[..., Any], arguments: Mapping[str, Any], target: str) -> None:
    """Raise InputError if the class does not accept the given options."""
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        return  # written in C: only its constructor can tell
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise InputError(f"python:{target}: {_explain_refusal(cls, signature, arguments, target, error)}") from None


def _explain_refusal(
    cls: Callable[..., Any], signature: inspect.Signature, arguments: Mapping[str, Any], target: str, error: TypeError
) -> str:
    """Explain why a class does not accept options, and suggest the option that was probably meant."""
    known = [name for name, each in signature.parameters.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    accepts = f"it accepts {', '.join(known) or 'no options'}"
    if unknown := [name for name in arguments if name not in known]:
        return f"does not accept the option {unknown[0]!r:.40}{suggest(unknown[0], known, accepts)}"
    missing = [name for name in known if signature.parameters[name].default is inspect.Parameter.empty and name not in arguments]
    if not missing:
        return f"does not accept these options ({error}); {accepts}"
    if not inspect.isclass(cls):
        name = target.rpartition(":")[2]
        return (
            f"{name} is a function that takes {', '.join(missing)}; {_suggest_wrapper(name)}, or give it from Python, "
            f"longspan.run(agent={name})"
        )
    given = "&".join([*(f"{name}={value}" for name, value in arguments.items()), *(f"{name}=..." for name in missing)])
    return f"the class needs {', '.join(missing)}; did you mean python:{target}?{given}?"


def _suggest_wrapper(function: str) -> str:
    return f"name a class with a method reply that calls it, `def reply(self, message): return {function}(message.text)`"
