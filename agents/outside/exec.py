"""An agent that is a program, exchanging lines of JSON (docs/guides/connecting.md describes the protocol).

    exec:python3 agent.py --quick?timeout=60&faketime=true

The command is split like a shell command, but run without a shell.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import final

from longspan.agents.base import AgentError, AgentOptions, InputError
from longspan.agents.outside.faketime import FakeClock
from longspan.agents.outside.program import ADVICE, Program
from longspan.agents.outside.protocol import make_printable
from longspan.agents.outside.remote import RemoteAgent, RemoteOptions, Request, count_processors

__all__ = ["ExecAgent", "ProgramAgent", "split_command"]


class ProgramAgent(RemoteAgent):
    """An agent that is a program on this machine, with one process per conversation. `variables` extend its environment."""

    shares_disk = True
    told_traceparent = True

    @classmethod
    def at_once(cls, target: str, options: AgentOptions) -> int | None:
        """Return the option `at_once`, by default the number of processors, since each conversation runs a process."""
        return super().at_once(target, options) or count_processors()

    def __init__(
        self,
        target: str,
        options: AgentOptions | None,
        name: str,
        command: list[str],
        clock: FakeClock | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(target, options, name)
        self._command = command
        self._clock = clock
        self._variables = variables
        self._program: Program | None = None

    async def exchange(self, request: Request) -> bytes:
        if self._program is None:
            environment = self._clock.environment() if self._clock else os.environ
            self._program = Program(self._command, {**environment, **self._variables})
        if self._clock is not None:
            self._clock.set(request.now)
        answer = await self._program.ask(request.line)
        if not answer.lstrip().startswith(b"{"):
            raise AgentError(f"wrote a line that is not an answer: {make_printable(answer)}; {ADVICE}")
        return answer

    async def disconnect(self) -> None:
        if self._program is not None:
            await self._program.end()
            if self._clock is not None:
                self._clock.close(self._program.pids)
            self._program = None

    @property
    def stderr_hint(self) -> str:
        return self._program.stderr_hint if self._program is not None else ""


@final
class ExecAgent(ProgramAgent):
    """An agent that is a program on this machine, named by its command."""

    class Options(RemoteOptions):
        """The options of a program."""

        faketime: bool = False
        """The clock that the program reads shows the virtual time."""

    def __init__(self, target: str, options: AgentOptions | None = None) -> None:
        faketime = isinstance(options, self.Options) and options.faketime
        super().__init__(target, options, f"exec:{target}"[:80], split_command("exec", target), FakeClock() if faketime else None)


def split_command(kind: str, text: str) -> list[str]:
    """Split an agent's command into words, with the program's full path. Raises InputError if the program does not exist."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{kind}:{text!s:.80}: cannot be split into words: {error}") from None
    if not words or "\0" in text:
        raise InputError(f"{kind}: expected {kind}:COMMAND, such as {kind}:python3 agent.py")
    program = shutil.which(words[0])
    if program is None:
        raise InputError(f"{kind}:{text!s:.80}: program {words[0]!r:.60} does not exist; for one in the current folder write ./NAME")
    return [program, *words[1:]]
