"""An MCP server in a separate process. The SDK speaks the protocol; longspan manages the process, so that it never outlives longspan."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, final

import anyio
import trio

from longspan.agents.base import AgentError
from longspan.agents.models.core import Tool, clean_unicode
from longspan.agents.outside.program import Program
from longspan.agents.outside.protocol import MAX_BYTES, MAX_CONTAINERS, check_parts, make_printable
from longspan.agents.tools.toolbox import ToolResult
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.keys import redact

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult
    from mcp_types import Tool as ServersTool

__all__ = ["McpServer"]

MAX_TOOLS: Final = 128
"""The maximum tools of a server, equal to the limit of OpenAI's models."""

MAX_DESCRIPTIONS: Final = 2**18
"""The maximum characters of the tools' descriptions and the server's instructions."""

MAX_LINE: Final = 8 * MAX_DESCRIPTIONS
"""The maximum bytes of a message before the tools are known. It fits the descriptions with any escaping."""

MAX_PARTS: Final = 20_000
"""The maximum objects and lists in such a message: each takes a thousand times its size in memory."""

EARLY: Final = f"before its tools were known: it may have {MAX_TOOLS}, described in {MAX_DESCRIPTIONS:,} characters"

MAX_MESSAGES: Final = 10_000
"""The maximum messages that a server may send before answering a request."""

READING: Final = frozenset("check count fetch find get list load lookup open query read recall remind retrieve search show view".split())
"""Words in the names of tools that only read, for tools that do not declare it."""

logging.getLogger("mcp").addHandler(logging.NullHandler())  # otherwise the SDK prints warnings


class _KnownTool(NamedTuple):
    """A tool: its name on the server, whether it only reads, and whether the server declares that."""

    name: str
    reads: bool
    says_so: bool


@final
class McpServer:
    """A server that runs `command` in `folder`. `name` identifies it in errors. The start and each call may take `timeout` seconds.

    Tools get names that all models accept. All methods raise AgentError after the process has ended, or after a timeout.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._program = Program(command, folder=folder)
        self._client: Client | None = None
        self._problem: str | None = None
        self._changed, self._ended = trio.Event(), trio.Event()
        self._serving = trio.CancelScope()
        self._learned = False
        self._unasked = 0
        self._known: dict[str, _KnownTool] = {}
        self.tools: Sequence[Tool] = ()
        self.instructions = ""

    async def start(self) -> None:
        """Start the server and list its tools."""
        trio.lowlevel.spawn_system_task(self._serve, name="longspan: an MCP server")
        try:
            with trio.fail_after(self.timeout):
                await self._changed.wait()
                await self._learn()
                self._learned = True
                return
        except trio.TooSlowError:
            problem = f"did not start within {self.timeout:g} s{self._program.stderr_hint}; set tool_timeout= if it needs longer"
        raise AgentError(f"{self.name}: {problem}")

    def reads(self, name: str) -> bool:
        """Return whether a tool only reads, as declared, or else judged by its name."""
        return name in self._known and self._known[name].reads

    def changes(self, name: str) -> bool:
        """Return whether a tool may change something: true unless it declares that it only reads."""
        return name not in self._known or not (self._known[name].reads and self._known[name].says_so)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool. A tool's own error is returned as its result."""
        if name not in self._known:
            return ToolResult(f"there is no tool {name[:200]!r}", failed=True)
        try:
            with trio.fail_after(self.timeout):
                return await self._call(self._known[name].name, dict(arguments))
        except trio.TooSlowError:
            problem = f"no answer within {self.timeout:g} s{self._program.stderr_hint}; set tool_timeout= if it needs longer"
        raise AgentError(f"{self.name}: tool {make_printable(name)}: {problem}")

    async def end(self) -> None:
        """End the process, in any state. Never fails and cannot be cancelled."""
        self._problem = self._problem or "has been ended"
        self._serving.cancel()
        with trio.CancelScope(shield=True):
            await self._ended.wait()

    async def _call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        from mcp import MCPError

        if self._client is None or self._problem is not None:
            self._fail(self._problem or "has not been started")
        self._unasked = 0
        try:
            result = await self._client.call_tool(name, arguments)
        except (MCPError, RuntimeError, ValueError) as error:  # an error from the tool, or a result that breaks the protocol
            if self._problem is not None:
                self._fail(f"tool {make_printable(name)}: {self._problem}")
            return ToolResult(one_line(error), failed=True)
        return ToolResult(_text(result), result.is_error)

    async def _learn(self) -> None:
        from mcp import MCPError

        if self._client is None or self._problem is not None:
            self._fail(self._problem or "has ended")
        listed: list[ServersTool] = []
        cursor: str | None = None
        size = len(self._client.instructions or "")
        try:
            for _ in range(MAX_TOOLS):
                page = await self._client.list_tools(cursor=cursor)
                listed += page.tools
                size += sum(len(json.dumps([tool.name, tool.description, tool.input_schema])) for tool in page.tools)
                if (cursor := page.next_cursor) is None or len(listed) > MAX_TOOLS or size > MAX_DESCRIPTIONS:
                    break
        except (MCPError, RuntimeError, ValueError) as error:
            self._fail(self._problem or f"does not list its tools: {one_line(error)}")
        self.instructions = clean_unicode(self._client.instructions or "")
        self.tools = [Tool(_acceptable_name(tool.name), clean_unicode(tool.description or ""), tool.input_schema) for tool in listed]
        self._known = {tool.name: _describe_tool(each) for tool, each in zip(self.tools, listed, strict=True)}
        self._check(Counter(tool.name for tool in self.tools), size)

    def _check(self, names: Counter[str], size: int) -> None:
        twice = [name for name, count in names.items() if count > 1]
        if not names:
            self._fail("offers no tools")
        if len(self.tools) > MAX_TOOLS:
            self._fail(f"offers more than {MAX_TOOLS} tools")
        if size > MAX_DESCRIPTIONS:
            self._fail(f"describes its tools in {size:,} characters, more than {MAX_DESCRIPTIONS:,}")
        if twice:
            self._fail(f"offers two tools that models would know as {twice[0]}")

    def _fail(self, problem: str) -> NoReturn:
        raise AgentError(f"{self.name}: {problem}")

    # The process, in a separate task.

    async def _serve(self) -> None:
        from mcp import Client

        greeted = False
        try:
            with self._serving:
                async with Client(self._transport(), cache=None) as client:
                    greeted = True
                    self._client = client
                    self._changed.set()
                    await trio.sleep_forever()
        except Exception as error:
            self._problem = self._problem or f"does not speak MCP: {one_line(_innermost(error))}{self._program.stderr_hint}"
        finally:
            self._client = None
            with trio.CancelScope(shield=True):
                await (self._program.end() if greeted else self._program.kill())
            self._changed.set()
            self._ended.set()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        """Start the process and pass on messages. The SDK's transport does not limit lines, and prints errors to the terminal."""
        from mcp.shared.message import SessionMessage

        received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, sent = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            await self._program.open()
        except AgentError as error:
            self._problem = str(error)
            raise
        async with anyio.create_task_group() as group:
            drain, drained = anyio.CancelScope(), anyio.Event()

            async def read_errors() -> None:
                with drain:
                    await self._program.drain()
                drained.set()

            async def receive() -> None:
                from mcp_types import jsonrpc_message_adapter

                async with received:
                    try:
                        while (line := await self._program.receive(MAX_BYTES if self._learned else MAX_LINE)) is not None:
                            await trio.lowlevel.checkpoint()
                            check_parts(line, MAX_CONTAINERS if self._learned else MAX_PARTS)
                            with suppress(ValueError):  # a print, not a message
                                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                                self._unasked += 1
                                if self._unasked > MAX_MESSAGES:
                                    raise AgentError(f"sent more than {MAX_MESSAGES:,} messages before it answered")
                                await received.send(SessionMessage(message))
                        drain.cancel()  # standard error allows one reader at a time
                        await drained.wait()
                        self._problem = self._problem or str(await self._program.why_it_ended())
                    except AgentError as error:
                        self._problem = str(error) if self._learned else f"{error}, {EARLY}"

            async def send() -> None:
                async with sent:
                    async for message in sent:
                        line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        await self._program.send(line.encode() + b"\n")

            for task in (read_errors, receive, send):
                group.start_soon(task)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()
                for stream in (received, read, write, sent):
                    stream.close()


def _innermost(error: Exception) -> Exception:
    """Return the first error inside nested exception groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _describe_tool(tool: ServersTool) -> _KnownTool:
    hint = tool.annotations.read_only_hint if tool.annotations is not None else None
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower()))
    return _KnownTool(tool.name, bool(words & READING) if hint is None else hint, hint is not None)


def _acceptable_name(name: str) -> str:
    """Return a tool's name in characters and a length that all models accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def _text(result: CallToolResult) -> str:
    """Return a tool's result as text. Parts other than text are only named."""
    texts = [getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None) for block in result.content]
    found = [text if isinstance(text, str) else f"[{block.type}]" for text, block in zip(texts, result.content, strict=True)]
    return redact("\n".join(found) if found or result.structured_content is None else json.dumps(result.structured_content))
