"""exec: an agent that is a program, asked in lines of JSON (docs/agents.md has the protocol).

    exec:python3 agent.py --quick?timeout=60&faketime=true

COMMAND is split as a shell would split it, and run without one.
"""

from __future__ import annotations

import shlex
import shutil
from typing import final

from longspan.agents.base import AgentError, AgentOptions, InputError
from longspan.agents.outside.faketime import FakeClock
from longspan.agents.outside.program import ADVICE, Program
from longspan.agents.outside.protocol import printable
from longspan.agents.outside.remote import RemoteAgent, RemoteOptions, Request

__all__ = ["ExecAgent", "ProgramAgent"]


class ProgramAgent(RemoteAgent):
    """Asks an agent that is a program on this machine, a process for each conversation."""

    shares_disk = True

    def __init__(self, target: str, options: AgentOptions | None, name: str, command: list[str], clock: FakeClock | None = None) -> None:
        super().__init__(target, options, name)
        self._command = command
        self._clock = clock
        self._program: Program | None = None

    async def exchange(self, request: Request) -> bytes:
        if self._program is None:
            self._program = Program(self._command, self._clock.environment() if self._clock else None)
        if self._clock is not None:
            self._clock.set(request.now)
        answer = await self._program.ask(request.line)
        if not answer.lstrip().startswith(b"{"):
            raise AgentError(f"wrote a line that is no answer: {printable(answer)}; {ADVICE}")
        return answer

    async def leave(self) -> None:
        if self._program is not None:
            await self._program.end()
            if self._clock is not None:
                self._clock.close(self._program.pids)
            self._program = None

    @property
    def last_words(self) -> str:
        return self._program.last_words if self._program is not None else ""


@final
class ExecAgent(ProgramAgent):
    """A program on this machine, asked in lines of JSON."""

    class Options(RemoteOptions):
        """`timeout`; `faketime`: the program's own clock shows the virtual time."""

        faketime: bool = False

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        faketime = isinstance(options, self.Options) and options.faketime
        super().__init__(target, options, f"exec:{target}"[:80], _command(target), FakeClock() if faketime else None)


def _command(text: str) -> list[str]:
    """The words of a command, the program's with its path. Raises InputError where there is no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"exec:{text!s:.80}: cannot be split into words: {error}") from None
    if not words or "\0" in text:
        raise InputError("a program is named exec:COMMAND, such as exec:python3 agent.py")
    found = shutil.which(words[0])
    if found is None:
        raise InputError(f"exec:{text!s:.80}: there is no program {words[0]!r:.60}; one in the current folder is named ./NAME")
    return [found, *words[1:]]
