"""An MCP server whose state can be restored, by copying its files or by repeating its calls."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final

import trio
from pydantic import BaseModel, ConfigDict

from longspan.agents.base import AgentError, InputError
from longspan.agents.outside.exec import split_command
from longspan.agents.tools.server import McpServer
from longspan.simulator.base.files.folders import remove_folder
from longspan.simulator.base.own_installation import install_extra

__all__ = ["FOLDER", "KeptServer", "ServerCall"]

FOLDER: Final = "{folder}"
"""The placeholder for the server's folder in its command."""

FILES: Final = "files"
"""The snapshot folder with the server's files."""

MAX_FILES: Final = 2**30
"""The maximum total bytes of a server's files."""


class ServerCall(BaseModel):
    """A tool call, kept for restoring a server."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    tool: str
    arguments: dict[str, Any] | None = None
    result: str = ""
    failed: bool = False


@final
class KeptServer:
    """The server of one conversation, in a private folder. `name` identifies it in errors. A call may take `timeout` seconds.

    If the command contains `{folder}`, the server is restored by copying its files, otherwise by repeating all calls that may have changed
    something. Raises InputError for an invalid command, or without the package mcp.
    """

    def __init__(self, name: str, target: str, timeout: float) -> None:
        self._name = name
        self._command = [_absolute(word) for word in split_command("mcp", target)]
        self._timeout = timeout
        self.keeps_files = any(FOLDER in word for word in self._command)
        if find_spec("mcp") is None:
            raise InputError(f"agent mcp needs the package mcp: {install_extra('mcp')}")
        self._folder: Path | None = None
        self._server: McpServer | None = None
        self._calls: list[ServerCall] = []

    async def ensure_running(self) -> McpServer:
        """Return the running server, starting it if necessary. Raises AgentError."""
        if self._server is None:
            self._folder = self._folder or _new_folder()
            command = [word.replace(FOLDER, str(self._folder)) for word in self._command]
            self._server = McpServer(self._name, command, self._folder, self._timeout)
            started = False
            try:
                await self._server.start()
                started = True
            finally:
                if not started:
                    await self.close()
        return self._server

    def changes(self, tool: str) -> bool:
        """Return whether a tool may change something. A running server can declare that it does not."""
        return self._server is None or self._server.changes(tool)

    def note(self, calls: Iterable[ServerCall]) -> None:
        """Keep the calls that may have changed something, unless the server is restored from files."""
        if not self.keeps_files and self._server is not None:
            self._calls += [call for call in calls if call.arguments is not None and self._server.changes(call.tool)]

    async def call_again(self, calls: Iterable[ServerCall]) -> None:
        """Repeat and record the calls that may change something, in order. Their results are ignored."""
        server = await self.ensure_running()
        for call in calls:
            if call.arguments is not None and server.changes(call.tool):
                await server.call(call.tool, call.arguments)
                self.note([call])

    async def reset(self) -> None:
        """Forget everything. The next server starts in an empty folder."""
        await self.close()
        self._calls = []

    async def save(self, folder: Path) -> Sequence[ServerCall] | None:
        """Copy the server's files into `folder`. If the server is not restored from files, return the calls to repeat instead."""
        await self.ensure_running()
        if not self.keeps_files:
            return self._calls
        if self._folder is not None:
            await trio.to_thread.run_sync(_copy, self._folder, folder / FILES)
        return None

    async def load(self, folder: Path, calls: Sequence[ServerCall] | None) -> None:
        """Restore the saved state. Raises AgentError if it was saved in the other way."""
        if (calls is None) != self.keeps_files:
            raise AgentError(f"{folder}: a snapshot of a server whose command {'named' if calls is None else 'did not name'} {FOLDER}")
        await self.reset()
        self._folder = _new_folder()
        if self.keeps_files:
            await trio.to_thread.run_sync(_copy, folder / FILES, self._folder)
        await self.call_again(calls or [])

    async def close(self) -> None:
        """End the server and delete its folder."""
        server, self._server = self._server, None
        folder, self._folder = self._folder, None
        if server is not None:
            await server.end()
        if folder is not None:
            remove_folder(folder)


def _absolute(word: str) -> str:
    """Return a word of a command, made absolute if it names a file: the server runs in another folder."""
    is_path = "/" in word or Path(word).suffix
    return os.path.abspath(word) if is_path and not os.path.isabs(word) and Path(word).is_file() else word  # noqa: PTH100, PTH117


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="longspan-mcp-"))


def _copy(source: Path, target: Path) -> None:
    """Copy the regular files below a folder, without links and special files. Raises AgentError above MAX_FILES."""
    size = 0
    for place, _, names in os.walk(source):
        copied = target / Path(place).relative_to(source)
        copied.mkdir(parents=True, exist_ok=True)
        for path in (Path(place) / name for name in names):
            if path.is_file() and not path.is_symlink():
                size += path.stat().st_size
                if size > MAX_FILES:
                    raise AgentError(f"the server's folder holds more than {MAX_FILES:,} bytes, too many for snapshots")
                shutil.copyfile(path, copied / path.name, follow_symlinks=False)
