"""A chat model with the tools of an MCP server, which it calls during the conversation.

    mcp:python3 memory.py --size 100?model=openai/gpt-4o&context=4k

Each conversation starts a separate server in an empty folder. If the command contains {folder}, longspan restores a server by restoring
that folder; otherwise it repeats all calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply, Usage
from longspan.agents.models.core import Core, core_environment, make_core
from longspan.agents.outside.remote import count_processors
from longspan.agents.tools.kept_server import KeptServer, ServerCall
from longspan.agents.tools.memories import Memory
from longspan.agents.tools.server import McpServer
from longspan.agents.tools.tool_chat import ToolChat, ToolOptions
from longspan.simulator.base.errors import first_problem
from longspan.simulator.subject.ledger import Rates

__all__ = ["McpAgent"]

STATE: Final = "tools.json"
"""The snapshot file for the tools."""

_STRICT: Final = ConfigDict(frozen=True, extra="forbid", strict=True)


class _ReplayedCalls(BaseModel):
    """The tool calls in a trace."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    tools: list[ServerCall] = Field(default_factory=list)


class _State(BaseModel):
    """The tools' part of a snapshot: memories as id, turn and text, and the calls to repeat if there are no files."""

    model_config = _STRICT

    memories: list[tuple[str, str, str]]
    calls: list[ServerCall] | None


@final
class McpAgent(BaseAgent):
    """A chat model with an MCP server's tools.

    Raises InputError without a model that can use tools.
    """

    takes_target = True

    class Options(ToolOptions):
        """Options that are not declared here are the model's."""

        model_config = ConfigDict(frozen=True, extra="allow")

        model: str = ""
        """The model, such as openai/gpt-4o. Required."""
        tool_timeout: float = Field(default=60.0, gt=0, le=86_400, allow_inf_nan=False)
        """The most seconds for a tool call, and for the server's start."""
        at_once: int | None = Field(default=None, ge=1, le=10_000)
        """The most concurrent conversations, each with its own server. Default: the number of processors."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        settings = options if isinstance(options, self.Options) else self.Options()
        self._name = f"mcp:{target}"[:80]
        self._server = KeptServer(self._name, target, settings.tool_timeout)
        core: Any = _core(target, settings)
        self._chat = ToolChat(core, settings)
        self._equipped: McpServer | None = None

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the option `at_once`, by default the number of processors, since each conversation runs a server."""
        return (options.at_once if isinstance(options, cls.Options) else None) or count_processors()

    @classmethod
    def from_environment(cls, target: str, options: AgentOptions) -> Mapping[str, str]:
        """Return the address of its model, if the environment sets it."""
        if not isinstance(options, cls.Options):
            return {}
        return core_environment(f"mcp:{target}", options.model, options.model_extra or {}, cls.Options.model_fields)

    @property
    def models(self) -> Mapping[str, str | Rates]:
        """The model, if it costs money."""
        return self._chat.models

    def worst_case(self, message: Message) -> Mapping[str, Usage]:
        """Return the maximum tokens for answering `message`."""
        return self._chat.worst_case(message)

    async def start(self) -> None:
        """Start the server. Raises AgentError if its tools do not fit into the context."""
        await self._ensure_running()

    async def reply(self, message: Message) -> Reply:
        await self._ensure_running()
        reply = await self._chat.reply(message)
        self._server.note(_calls(reply))
        return reply

    async def observe(self, message: Message, reply: str) -> None:
        await self._ensure_running()
        await self._chat.observe(message, reply)

    async def replay(self, message: Message, reply: Reply) -> None:
        """Repeat the calls of a turn answered before an interruption, without asking the model."""
        calls = _calls(reply)
        await self._ensure_running()
        await self._server.call_again(calls)
        for call in calls:
            if call.arguments is not None and not call.failed:
                self._chat.remember(message.turn_id, call.tool, call.arguments)
        await self._chat.replay(message, reply)

    async def reset(self) -> None:
        await self._server.reset()
        await self._chat.reset()

    async def save(self, folder: Path) -> None:
        await self._ensure_running()
        await self._chat.save(folder)
        calls = await self._server.save(folder)
        state = _State(memories=[tuple(memory) for memory in self._chat.memories], calls=None if calls is None else list(calls))
        await trio.Path(folder / STATE).write_text(state.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        state = await self._read(folder / STATE)
        await self._server.load(folder, state.calls)
        await self._chat.reset()
        await self._chat.load(folder)
        for memory in state.memories:
            self._chat.memories.keep(Memory(*memory))
        await self._ensure_running()

    async def close(self) -> None:
        await self._server.close()

    async def _ensure_running(self) -> None:
        server = await self._server.ensure_running()
        if server is not self._equipped:
            self._chat.equip(server)
            self._equipped = server

    async def _read(self, path: Path) -> _State:
        try:
            return _State.model_validate_json(await trio.Path(path).read_bytes())
        except OSError as error:
            raise AgentError(f"{path}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of this kind of agent: {first_problem(error)}") from None


def _core(target: str, options: McpAgent.Options) -> Core:
    """Return the core that `model` names. Raises InputError without one, or if it cannot use tools."""
    core = make_core(f"mcp:{target}", options.model, options.model_extra or {}, McpAgent.Options.model_fields)
    if core is None:
        raise InputError(f"agent mcp needs a model: mcp:COMMAND?model=KIND/MODEL, such as model=openai/gpt-4o; got {options.model!r:.60}")
    if not callable(getattr(core, "use_tools", None)):
        raise InputError(f"agent mcp: {core.name} cannot use tools; models of kind openai, anthropic and google can")
    if getattr(getattr(core, "options", None), "stream", False):
        raise InputError("agent mcp: calls of tools are not read from streams: leave out stream=true")
    return core


def _calls(reply: Reply) -> list[ServerCall]:
    """Return the calls in a reply's trace. Raises AgentError if they are invalid: the trace may come from a file."""
    try:
        return _ReplayedCalls.model_validate(reply.trace or {}).tools
    except ValidationError as error:
        raise AgentError(f"the trace of a turn tells no calls of tools: {first_problem(error)}") from None
