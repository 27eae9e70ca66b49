"""A memory that uses the tools of an MCP server, named `memory/mcp:COMMAND?add=TOOL&search=TOOL`.

    memory/mcp:python3 memory.py {folder}/facts.json?add=remember&search=recall

No model drives the tools: one tool receives every turn, the other every message. The results do not name the turns behind a memory, so
`Attributed` infers them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, final

import trio
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from longspan.agents.base import AgentError, AgentOptions
from longspan.agents.memory.memory import Memory, MemoryItem
from longspan.agents.memory.turns import Turn
from longspan.agents.models.core import Tool, clean_unicode, stamp_message
from longspan.agents.tools.kept_server import KeptServer, ServerCall
from longspan.agents.tools.server import McpServer
from longspan.simulator.base.errors import first_problem

__all__ = ["McpMemory"]

STATE: Final = "mcp.json"
"""The snapshot file for everything outside the server."""

ADDING: Final = ("add", "remember", "store", "save", "write", "insert", "create")
SEARCHING: Final = ("search", "recall", "retrieve", "query", "find")
"""Words in the names of tools that add memories and that search for them, likeliest first."""

LIMITS: Final = ("k", "limit", "top_k", "n", "count", "n_results", "num_results", "max_results")
"""Parameters that limit how many memories a search returns."""

TEXTS: Final = ("text", "memory", "content", "fact", "observation", "value")
"""Keys for a memory's text in a result."""


LISTS: Final = ("observations", "texts", "contents", "memories", "facts")
"""Keys for the texts of a memory that has several."""

PLACE: Final = re.compile(r"\{(text|date|turn|k)\}")
"""A placeholder in a template of arguments: the text or query, its date, the turn's id, and the number of memories."""


class _MappedTool(NamedTuple):
    """A tool with a template of its arguments."""

    tool: Tool
    arguments: Mapping[str, Any]

    def fill(self, **values: Any) -> dict[str, Any]:
        """Return the arguments with placeholders replaced by values."""
        return {name: _fill_template(argument, values) for name, argument in self.arguments.items()}


def _object(value: object) -> object:
    """Parse an option's JSON object. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise PydanticCustomError("template", "must be a JSON object with {places}", {"places": "{text}, {date}, {turn} or {k} in it"})
    return read


def _fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, dict):
        return {name: _fill_template(inner, values) for name, inner in template.items()}
    if isinstance(template, list):
        return [_fill_template(inner, values) for inner in template]
    if not isinstance(template, str):
        return template
    return values.get("k", 0) if template == "{k}" else PLACE.sub(lambda place: str(values.get(place[1], "")), template)


Template = Annotated[dict[str, Any], BeforeValidator(_object)]
"""A JSON object of tool arguments with placeholders."""


@final
class _State(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    calls: list[ServerCall] | None


@final
class McpMemory(Memory):
    """The tools of an MCP server."""

    takes_target = True
    tells_turns = False

    class Options(AgentOptions):
        """`add`, `search`: the names of the tools, by default found by their names. `forget`: the tool for requests to forget, or None.
        `add_args`, `search_args`, `forget_args`: templates of their arguments, by default the text alone, and for a search how many
        memories. `tool_timeout`: the maximum seconds for a call of a tool, and for the server's start."""

        add: str | None = None
        search: str | None = None
        forget: str | None = None
        add_args: Template | None = None
        search_args: Template | None = None
        forget_args: Template | None = None
        tool_timeout: float = Field(default=60.0, gt=0, le=86_400, allow_inf_nan=False)

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._options = options if isinstance(options, self.Options) else self.Options()
        self._name = f"memory/mcp:{target}"[:80]
        self._server = KeptServer(self._name, target, self._options.tool_timeout)
        self._searching: str | None = None

    @property
    def models(self) -> None:
        """Return None: the cost of the server's models is unknown."""
        return

    @property
    def read_only_search(self) -> bool:
        """Whether the search tool has the annotation `readOnlyHint`."""
        return self._searching is not None and not self._server.changes(self._searching)

    async def start(self) -> None:
        await self._tools()

    async def add(self, turns: Sequence[Turn], at: datetime) -> Sequence[MemoryItem] | None:
        server, adding, _ = await self._tools()
        for turn in turns:
            await self._tell(server, adding, turn.document, turn.sent_at, turn.turn_id)
        return None

    @property
    def forgets(self) -> bool:
        """Whether the `forget` option names a tool."""
        return self._options.forget is not None

    async def forget(self, text: str, at: datetime) -> None:
        server, _, _ = await self._tools()
        await self._tell(server, self._map_tool(server, "forget", ()), text, at)

    async def _tell(self, server: McpServer, mapped: _MappedTool, text: str, at: datetime, turn: str = "") -> None:
        """Pass text to a tool that changes the store. The date precedes the text unless it has its own placeholder."""
        dated = "{date}" in json.dumps(mapped.arguments)
        arguments = mapped.fill(text=text if dated else stamp_message(text, at), date=at.isoformat(), turn=turn)
        result = await server.call(mapped.tool.name, arguments)
        if result.failed:
            raise AgentError(f"{self._name}: tool {mapped.tool.name}: {result.text[:200]}")
        self._server.note([ServerCall(tool=mapped.tool.name, arguments=arguments)])

    async def search(self, query: str, k: int, at: datetime) -> Sequence[MemoryItem]:
        server, _, searching = await self._tools()
        result = await server.call(searching.tool.name, searching.fill(text=query, date=at.isoformat(), k=k))
        if result.failed:
            raise AgentError(f"{self._name}: tool {searching.tool.name}: {result.text[:200]}")
        return [MemoryItem(text) for text in _texts(clean_unicode(result.text))]

    async def reset(self) -> None:
        await self._server.reset()

    async def save(self, folder: Path) -> None:
        calls = await self._server.save(folder)
        state = _State(calls=None if calls is None else list(calls))
        await trio.Path(folder / STATE).write_text(state.model_dump_json(), "utf-8")

    async def load(self, folder: Path) -> None:
        path = folder / STATE
        try:
            state = _State.model_validate_json(await trio.Path(path).read_bytes())
        except ValidationError as error:
            raise AgentError(f"{path}: not a snapshot of this kind of memory: {first_problem(error)}") from None
        except (OSError, ValueError) as error:
            raise AgentError(f"{path}: not a snapshot of this kind of memory: {error}") from error
        await self._server.load(folder, state.calls)

    async def close(self) -> None:
        await self._server.close()

    async def _tools(self) -> tuple[McpServer, _MappedTool, _MappedTool]:
        """Return the running server with its tools for adding and searching. Raises AgentError if they cannot be determined."""
        server = await self._server.ensure_running()
        try:
            adding, searching = self._map_tool(server, "add", ADDING), self._map_tool(server, "search", SEARCHING)
        except AgentError:
            await self._server.close()
            raise
        self._searching = searching.tool.name
        return server, adding, searching

    def _map_tool(self, server: McpServer, role: str, words: Sequence[str]) -> _MappedTool:
        given: str | None = getattr(self._options, role)
        template: Mapping[str, Any] | None = getattr(self._options, f"{role}_args")
        takes = {tool.name: _arguments(tool, limited=role == "search") for tool in server.tools}
        likely = [tool for tool in server.tools if (takes[tool.name] if template is None else template.keys() <= _properties(tool).keys())]
        tool = next((each for each in server.tools if each.name == given), None) if given is not None else _likeliest(likely, words)
        names = ", ".join(each.name for each in server.tools)
        if tool is None:
            what = f"there is no tool {given!r:.60}" if given is not None else f"no tool's name says that it is the one to {role} memories"
            raise AgentError(f"{self._name}: {what}; name one with {role}=TOOL: {names}")
        arguments = template if template is not None else takes[tool.name]
        if arguments is None:
            known = ", ".join(_properties(tool)) or "nothing"
            remedy = f"name another with {role}=TOOL: {names}; or give {role}_args=JSON with {{text}} in it"
            raise AgentError(f"{self._name}: tool {tool.name} takes {known}, not one text; {remedy}")
        return _MappedTool(tool, arguments)


def _properties(tool: Tool) -> Mapping[str, Any]:
    """Return the schemas of a tool's parameters."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _arguments(tool: Tool, *, limited: bool) -> Mapping[str, Any] | None:
    """Return the argument template of a tool that takes one text, plus a number of memories if `limited`. None for other tools."""
    known, needed = _properties(tool), tool.parameters.get("required")
    required = set(map(str, needed)) if isinstance(needed, list) else set()
    texts = sorted((name for name in known if _takes_text(known[name])), key=lambda name: name not in required)
    if not texts or required - {texts[0], *LIMITS}:
        return None
    limit = next((name for name in LIMITS if name in known), None) if limited else None
    text = ["{text}"] if known[texts[0]].get("type") == "array" else "{text}"
    return {texts[0]: text, **({limit: "{k}"} if limit is not None else {})}


def _likeliest(tools: Sequence[Tool], words: Sequence[str]) -> Tool | None:
    """Return the tool whose name contains the first matching word; None without a match, or if several tools contain that word."""
    for word in words:
        found = [tool for tool in tools if word in re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower())]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _takes_text(schema: object) -> bool:
    """Return whether a parameter accepts a string or a list of strings."""
    kind, inner = (schema.get("type"), schema.get("items")) if isinstance(schema, Mapping) else (None, None)
    return kind == "string" or (kind == "array" and isinstance(inner, Mapping) and inner.get("type") == "string")


def _texts(result: str) -> Iterator[str]:
    """Yield the memories in a result: the items of a JSON list, or else the lines."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        yield from (line for line in result.splitlines() if line.strip())
        return
    if isinstance(value, dict):
        value = next((inner for inner in value.values() if isinstance(inner, list)), [value])
    yield from (_text(item) for item in (value if isinstance(value, list) else [value]))


def _text(item: Any) -> str:
    found = item
    if isinstance(item, dict):
        found = next((item[name] for name in TEXTS if isinstance(item.get(name), str)), None)
        several = next((item[name] for name in LISTS if isinstance(item.get(name), list)), None)
        if found is None and several is not None and all(isinstance(each, str) for each in several):
            found = "\n".join(several)
    return found if isinstance(found, str) else json.dumps(item, ensure_ascii=False)
