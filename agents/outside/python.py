"""python: any class with a method `reply`, named `python:package.module:Class`.

    class Parrot:
        def reply(self, message):            # or `async def`, under Trio
            return message.text              # or a Reply, with usage and trace

`message` is a `longspan.simulator.messages.Message`: `text`, `sent_at` (virtual time) and `turn_id`. Optional, plain or async:
`observe(message, reply)`, `reset()`, `save(folder)` and `load(folder)`. Plain methods run in a thread, one at a time.
Without `observe`, the class is asked for a reply, which is dropped. Without `reset`, a new instance is created. Without `save`
and `load` it has no snapshots, and is shown all turns again when a run is resumed. Options of the spec
(`python:package.module:Class?name=value`) are passed to the class as keyword arguments, as strings. The exception is
`interpreter=PATH`, which runs the class in another environment's Python.
"""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, final

import trio
from pydantic import ConfigDict, ValidationError

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply, Usage
from longspan.agents.outside.exec import ProgramAgent
from longspan.agents.outside.remote import DroppedUsage, RemoteOptions
from longspan.simulator.errors import first_problem, one_line
from longspan.simulator.faults import is_fault
from longspan.simulator.plugins import find_class, module_and_class

__all__ = ["PythonAgent"]

BRIDGE: Final = Path(__file__).parent / "bridge.py"

RUN_FILE: Final = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
"""Runs a file without its folder on the module path, where `http` and others would hide the standard library's modules."""


@final
class PythonAgent(BaseAgent):
    """A user's class, in this Python or in another environment's."""

    takes_target = True

    class Options(AgentOptions):
        """`interpreter`: the Python that runs the class. All other options are passed to the class as strings."""

        model_config = ConfigDict(frozen=True, extra="allow")

        interpreter: str | None = None

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        arguments: dict[str, Any] = dict(options.model_extra or {}) if options is not None else {}
        interpreter = options.interpreter if isinstance(options, self.Options) else None
        self.agent = _InProcess(target, arguments) if interpreter is None else _bridged(target, arguments, interpreter)

    @property
    def has_snapshots(self) -> bool:
        """Whether the class can both save and load."""
        return self.agent.has_snapshots

    @property
    def observes(self) -> bool:
        """Whether the class has a method `observe`."""
        return self.agent.observes

    @property
    def repeatable(self) -> bool:
        """Whether the class declares that a repeated turn is harmless, by an attribute `repeatable = True`."""
        return self.agent.repeatable

    async def start(self) -> None:
        await self.agent.start()

    async def reply(self, message: Message) -> Reply:
        return await self.agent.reply(message)

    async def observe(self, message: Message, reply: str) -> None:
        await self.agent.observe(message, reply)

    async def reset(self) -> None:
        await self.agent.reset()

    async def save(self, folder: Path) -> None:
        await self.agent.save(folder)

    async def load(self, folder: Path) -> None:
        await self.agent.load(folder)

    async def close(self) -> None:
        await self.agent.close()


def _bridged(target: str, arguments: dict[str, Any], interpreter: str) -> ProgramAgent:
    """Return an agent that runs the class in another Python. Raises InputError if the interpreter does not exist."""
    module_and_class(target)
    program = shutil.which(interpreter)
    if program is None:
        raise InputError(
            f"python:{target}: program {interpreter!r:.80} does not exist; interpreter= takes a Python, such as venv/bin/python"
        )
    try:
        options = RemoteOptions.model_validate({"timeout": arguments.pop("timeout")} if "timeout" in arguments else {})
    except ValidationError as error:
        raise InputError(f"python:{target}: {first_problem(error)}") from None
    return ProgramAgent(target, options, f"python:{target}", [program, "-c", RUN_FILE, str(BRIDGE), target, json.dumps(arguments)])


@final
class _InProcess(BaseAgent):
    """The class in this Python."""

    takes_target = True

    def __init__(self, target: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(target)
        self._arguments = arguments
        self._class = find_class(target)
        _check_arguments(self._class, self._arguments, target)
        self._object = self._make()
        self._thread = trio.CapacityLimiter(1)  # one for each agent, so that agents do not wait for each other
        self._dropped_usage = DroppedUsage()
        if not callable(getattr(self._object, "reply", None)):
            raise InputError(f"python:{target} has no method reply: add `def reply(self, message)` that returns a str")

    @property
    def has_snapshots(self) -> bool:
        """Whether the class can both save and load."""
        return all(callable(getattr(self._object, name, None)) for name in ("save", "load"))

    @property
    def observes(self) -> bool:
        """Whether the class has a method `observe`."""
        return callable(getattr(self._object, "observe", None))

    @property
    def repeatable(self) -> bool:
        """Whether the class declares that a repeated turn is harmless, by an attribute `repeatable = True`."""
        return getattr(self._object, "repeatable", False) is True

    async def reply(self, message: Message) -> Reply:
        return self._dropped_usage.attach_to(await self._answer(message))

    async def _answer(self, message: Message) -> Reply:
        answer = await self._call("reply", message)
        if isinstance(answer, str):
            return Reply(answer)
        if not isinstance(answer, Reply):
            remedy = "; return the text alone, or longspan.Reply(text, usage, trace)" if isinstance(answer, dict) else ""
            raise AgentError(f"python:{self.target}: reply returned {type(answer).__name__}; it must return a str or a Reply{remedy}")
        if not isinstance(answer.text, str) or not isinstance(answer.usage, Usage | None) or not isinstance(answer.trace, dict | None):
            raise AgentError(f"python:{self.target}: reply returned a Reply whose text, usage or trace is not a str, a Usage or a dict")
        return answer

    async def observe(self, message: Message, reply: str) -> None:
        if self.observes:
            await self._call("observe", message, reply)
        else:
            self._dropped_usage.add(await self._answer(message))

    async def reset(self) -> None:
        self._dropped_usage = DroppedUsage()
        if hasattr(self._object, "reset"):
            await self._call("reset")
        else:
            self._object = await trio.to_thread.run_sync(self._make, abandon_on_cancel=True)

    async def save(self, folder: Path) -> None:
        if self.has_snapshots:
            await self._call("save", folder)

    async def load(self, folder: Path) -> None:
        if not self.has_snapshots:
            raise AgentError(f"python:{self.target} has no snapshots: it needs both save(folder) and load(folder)")
        await self._call("load", folder)

    def _make(self) -> Any:
        try:
            return self._class(**self._arguments)
        except BaseException as error:
            if not is_fault(error):
                raise
            raise AgentError(f"python:{self.target}: its constructor raised {one_line(error)}") from error

    async def _call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the user's object, a plain one in a thread. Its errors become AgentErrors."""
        try:
            method = getattr(self._object, name)
            if inspect.iscoroutinefunction(method):
                return await method(*arguments)
            (result,) = await trio.to_thread.run_sync(  # in a tuple, since Trio rejects a bare coroutine
                lambda: (method(*arguments),), abandon_on_cancel=True, limiter=self._thread
            )
            return await result if inspect.isawaitable(result) else result
        except BaseException as error:
            if not is_fault(error):
                raise
            raise AgentError(f"python:{self.target}: {name} raised {one_line(error)}{_hint(error)}") from error


def _check_arguments(cls: Callable[..., Any], arguments: Mapping[str, Any], target: str) -> None:
    """Raise InputError if the class does not accept the given options."""
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        return  # written in C: its constructor will tell
    try:
        signature.bind(**arguments)
    except TypeError as error:
        parameters = ", ".join(signature.parameters) or "no options"
        raise InputError(f"python:{target}: does not accept these options ({error}); it accepts {parameters}") from None


def _hint(error: BaseException) -> str:
    """Return advice for an error of asyncio under Trio, else an empty string."""
    if isinstance(error, RuntimeError) and "no running event loop" in str(error):
        return "; async methods run under Trio: for asyncio, write a plain `def` that calls asyncio.run"
    return ""
