"""A program that is asked in lines: one to its standard input, one from its standard output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, final

import trio
from trio.abc import ReceiveStream, SendStream

from longspan.agents.base import AgentError
from longspan.agents.outside.protocol import LARGEST, printable

__all__ = ["ADVICE", "Program"]

GUARD: Final = ("/bin/sh", "-c", "read -r _; kill -s KILL 0")
"""Leads the program's process group, and kills all of it once longspan has gone, however it went: that ends what it reads."""

PATIENCE: Final = 2.0
"""Seconds that a program has for ending by itself once its input has ended."""

REAPED: Final = 5.0
"""Seconds after which a killed process is left to the system."""

KEPT: Final = 4000
"""Bytes of standard error that are kept: the last ones."""

ADVICE: Final = "standard output is for answers, one line each; all else goes to standard error"

_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


class _Running(NamedTuple):
    """A program that was started, its three pipes, and the guard that leads its process group."""

    guard: trio.Process
    process: trio.Process
    stdin: SendStream
    stdout: ReceiveStream
    stderr: ReceiveStream


@final
class Program:
    """Starts `command` with `environment` when it is first asked, in a process group of its own.

    What it writes to standard error is read while it is asked, so that it never waits for that, and its end is kept for
    errors. After an error and after a cancelled call the whole group is killed; the next call starts it anew. `pids` are the
    processes started so far.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._environment = environment
        self._running: _Running | None = None
        self._rest = b""
        self._told = b""
        self.pids: list[int] = []

    @property
    def last_words(self) -> str:
        """The last line of its standard error, for errors; empty where it said nothing."""
        lines = [each for each in self._told.decode("utf-8", "replace").splitlines() if each.strip()]
        return f"; its last line on standard error: {printable(lines[-1])}" if lines else ""

    async def ask(self, line: bytes) -> bytes:
        """The line it answers with, blank ones left out. Raises AgentError where there is none to be had."""
        answer: bytes | None = None
        try:
            if self._running is None:
                self._running = await self._start()
            if self._rest.strip():
                raise AgentError(f"wrote more than one line for one request: {printable(self._rest)}; {ADVICE}")
            answer = await self._exchange(self._running, line)
            return answer
        finally:
            if answer is None:
                await self.kill()

    async def end(self) -> None:
        """Let it end by itself, then kill what is left of its group. Never fails, and is not cancelled."""
        if self._running is not None:
            with trio.move_on_after(PATIENCE, shield=True):
                await self._running.stdin.aclose()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._drain, self._running)
                    await self._running.process.wait()
                    nursery.cancel_scope.cancel()
        await self.kill()

    async def kill(self) -> None:
        """Kill the program and its group. Never fails, and is not cancelled."""
        if self._running is not None:
            guard, process, *streams = self._running
            self._running, self._rest = None, b""
            _kill(guard)
            process.kill()  # it may have left the group
            with trio.move_on_after(REAPED, shield=True):
                await process.wait()
                await guard.wait()
            for stream in (guard.stdin, *streams):
                if stream is not None:
                    await trio.aclose_forcefully(stream)

    async def _start(self) -> _Running:
        self._told = b""
        guard = await trio.lowlevel.open_process(GUARD, stdin=subprocess.PIPE, process_group=0)
        try:
            pipe = subprocess.PIPE
            process = await trio.lowlevel.open_process(
                self._command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=guard.pid, env=self._environment
            )
        except BaseException as error:
            _kill(guard)
            with trio.CancelScope(shield=True):
                await guard.wait()
            if isinstance(error, OSError):
                raise AgentError(f"cannot be started: {error.strerror or error}") from None
            raise
        self.pids.append(process.pid)
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AgentError("cannot be started: it has no pipes")
        return _Running(guard, process, stdin, stdout, stderr)

    async def _exchange(self, running: _Running, line: bytes) -> bytes:
        answer: bytes | None = None
        problem: AgentError | None = None
        async with trio.open_nursery() as around:
            around.start_soon(self._drain, running)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send, running, line)
                try:
                    answer = await self._line(running)
                except AgentError as error:  # raised bare, not as a group, once all tasks have left
                    problem = error
                if answer is None:
                    nursery.cancel_scope.cancel()
            around.cancel_scope.cancel()
        if problem is not None:
            raise problem
        if answer is None:
            raise await self._died(running)
        return answer

    async def _line(self, running: _Running) -> bytes | None:
        """The next line of its output that is not blank; None where that has ended."""
        while True:
            parts, size = [self._rest], len(self._rest)
            while b"\n" not in parts[-1]:
                if size > LARGEST:
                    raise AgentError(f"wrote more than {LARGEST:,} bytes in one line")
                try:
                    part = bytes(await running.stdout.receive_some(65_536))
                except _GONE:
                    return None
                if not part:
                    return None
                parts.append(part)
                size += len(part)
            last, _, self._rest = parts[-1].partition(b"\n")
            line = b"".join([*parts[:-1], last])
            if not line.isspace() and line:
                return line
            await trio.lowlevel.checkpoint()

    async def _drain(self, running: _Running) -> None:
        """Read its standard error until that ends, and keep the end of it."""
        with suppress(*_GONE):
            async for part in running.stderr:
                self._told = (self._told + part)[-KEPT:]

    async def _died(self, running: _Running) -> AgentError:
        """Why its output has ended."""
        process = running.process
        with trio.move_on_after(PATIENCE):
            await process.wait()
        with trio.move_on_after(PATIENCE / 10):  # a child may hold it open
            await self._drain(running)
        code = process.returncode
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was killed by signal {-code}"
        else:
            how = f"ended with status {code}"
        return AgentError(f"{how} before it answered{self.last_words}")


async def _send(running: _Running, line: bytes) -> None:
    """Send a line. A program that does not listen is found out by what it answers."""
    with suppress(*_GONE):
        await running.stdin.send_all(line)


def _kill(guard: trio.Process) -> None:
    """Kill the group that a guard leads. It is not reaped yet, so its number is still the group's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(guard.pid, signal.SIGKILL)
