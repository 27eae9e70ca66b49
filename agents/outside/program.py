"""A program that reads lines from standard input and answers each with a line on standard output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, final

import trio
from trio.abc import ReceiveStream, SendStream

from longspan.agents.base import AgentError
from longspan.agents.outside.protocol import MAX_BYTES, make_printable
from longspan.simulator.subject.agent_log import CRASH, agent_log, pick_telling_lines

__all__ = ["ADVICE", "Program"]

GUARD: Final = ("/bin/sh", "-c", "read -r _; kill -s KILL 0")
"""The leader of the program's process group. When longspan exits in any way, the guard's standard input ends, and it kills the group."""

EXIT_SECONDS: Final = 2.0
"""Seconds for a program to exit once its input has ended."""

REAP_SECONDS: Final = 5.0
"""Seconds to wait for a killed process."""

LAST_SECONDS: Final = 0.2
"""Seconds to read the rest of standard error after the program has ended. A child that left the group may keep it open."""

ADVICE: Final = "standard output is for answers, one line each; write everything else to standard error"

_CLOSED: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


class _RunningProgram(NamedTuple):
    """A started program, its three pipes, and the guard that leads its process group."""

    guard: trio.Process
    process: trio.Process
    stdin: SendStream
    stdout: ReceiveStream
    stderr: ReceiveStream


@final
class Program:
    """A program that runs `command` with `environment` in `folder`, in a separate process group, from the first request on.

    Its standard error is read during requests, so the program never blocks on it, and added to the conversation's log. After an error or a
    cancelled call, the whole group is killed; the next call restarts it. `pids`: the processes started so far.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self._command = command
        self._environment = environment
        self._folder = folder
        self._running: _RunningProgram | None = None
        self._unread = b""
        self._log = agent_log()
        self.pids: list[int] = []

    @property
    def stderr_hint(self) -> str:
        """The last line of standard error, or Python's report of a crash, for error messages; empty without output."""
        lines = pick_telling_lines(self._log.last_lines, 1)
        if not lines:
            return ""
        where = "" if lines[0].startswith(CRASH) else "its last line "
        return f"; {where}on standard error: {make_printable(lines[0])}"

    async def ask(self, line: bytes) -> bytes:
        """Send a line and return the answer, skipping blank lines. Raises AgentError without an answer."""
        answer: bytes | None = None
        try:
            if self._running is None:
                self._running = await self._start()
            if self._unread.strip():
                raise AgentError(f"wrote more than one line for one request: {make_printable(self._unread)}; {ADVICE}")
            answer = await self._exchange(self._running, line)
            return answer
        finally:
            if answer is None:
                await self.kill()

    async def open(self) -> None:
        """Start the program, unless it runs. For programs that do not answer line by line."""
        if self._running is None:
            self._running = await self._start()

    async def send(self, line: bytes) -> None:
        """Send a line to the opened program."""
        if self._running is not None:
            await _send(self._running, line)

    async def receive(self, max_bytes: int = MAX_BYTES) -> bytes | None:
        """Return the opened program's next line, None at the end. Raises AgentError for a line that is too long."""
        return await self._read_line(self._running, max_bytes) if self._running is not None else None

    async def drain(self) -> None:
        """Read the opened program's standard error until it ends. Without this, the program may block."""
        if self._running is not None:
            await self._drain(self._running)

    async def why_it_ended(self) -> AgentError:
        """Return the error for an opened program whose output has ended. Call it once draining has stopped."""
        return await self._explain_exit(self._running) if self._running is not None else AgentError("has been ended")

    async def end(self) -> None:
        """Let the program exit, then kill the rest of its group. Never fails and cannot be cancelled."""
        if self._running is not None:
            with trio.move_on_after(EXIT_SECONDS, shield=True):
                await self._running.stdin.aclose()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._drain, self._running)
                    await self._running.process.wait()
                    nursery.cancel_scope.cancel()
        await self.kill()

    async def kill(self) -> None:
        """Kill the program and its group. Never fails and cannot be cancelled."""
        if self._running is not None:
            running = guard, process, *streams = self._running
            self._running, self._unread = None, b""
            _kill(guard)
            process.kill()  # it may have left the group
            with trio.move_on_after(REAP_SECONDS, shield=True):
                await process.wait()
                await guard.wait()
            with trio.move_on_after(LAST_SECONDS, shield=True):
                await self._drain(running)
            self._log.end()
            for stream in (guard.stdin, *streams):
                if stream is not None:
                    await trio.aclose_forcefully(stream)

    async def _start(self) -> _RunningProgram:
        self._log.begin()
        guard = await trio.lowlevel.open_process(GUARD, stdin=subprocess.PIPE, process_group=0)
        try:
            pipe = subprocess.PIPE
            process = await trio.lowlevel.open_process(
                self._command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=guard.pid, env=self._environment, cwd=self._folder
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
        return _RunningProgram(guard, process, stdin, stdout, stderr)

    async def _exchange(self, running: _RunningProgram, line: bytes) -> bytes:
        answer: bytes | None = None
        problem: AgentError | None = None
        async with trio.open_nursery() as around:
            around.start_soon(self._drain, running)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send, running, line)
                try:
                    answer = await self._read_line(running)
                except AgentError as error:  # raised below, after all tasks, so that no group wraps it
                    problem = error
                if answer is None:
                    nursery.cancel_scope.cancel()
            around.cancel_scope.cancel()
        if problem is not None:
            raise problem
        if answer is None:
            raise await self._explain_exit(running)
        return answer

    async def _read_line(self, running: _RunningProgram, max_bytes: int = MAX_BYTES) -> bytes | None:
        """Return the next line of output that is not blank, None at the end."""
        while True:
            chunks, size = [self._unread], len(self._unread)
            while b"\n" not in chunks[-1]:
                if size > max_bytes:
                    raise AgentError(f"wrote more than {max_bytes:,} bytes in one line")
                try:
                    chunk = bytes(await running.stdout.receive_some(65_536))
                except _CLOSED:
                    return None
                if not chunk:
                    return None
                chunks.append(chunk)
                size += len(chunk)
            last, _, self._unread = chunks[-1].partition(b"\n")
            line = b"".join([*chunks[:-1], last])
            if not line.isspace() and line:
                return line
            await trio.lowlevel.checkpoint()

    async def _drain(self, running: _RunningProgram) -> None:
        """Read standard error until it ends."""
        with suppress(*_CLOSED):
            async for chunk in running.stderr:
                self._log.write(bytes(chunk))

    async def _explain_exit(self, running: _RunningProgram) -> AgentError:
        """Return the error for output that has ended."""
        process = running.process
        with trio.move_on_after(EXIT_SECONDS):
            await process.wait()
        with trio.move_on_after(LAST_SECONDS):
            await self._drain(running)
        code = process.returncode
        if code is None:
            event = "closed its standard output"
        elif code < 0:
            event = f"was killed by signal {-code}"
        else:
            event = f"exited with status {code}"
        return AgentError(f"{event} before it answered{self.stderr_hint}")


async def _send(running: _RunningProgram, line: bytes) -> None:
    """Send a line. If the program has closed its input, the missing answer will show it."""
    with suppress(*_CLOSED):
        await running.stdin.send_all(line)


def _kill(guard: trio.Process) -> None:
    """Kill the group that a guard leads. The guard is not reaped yet, so its id still belongs to the group."""
    with suppress(ProcessLookupError, PermissionError):  # the group is empty
        os.killpg(guard.pid, signal.SIGKILL)
