"""An agent that is a person at the terminal, for trying out tests and measuring human scores.

Enter sends a line. A line of three quotation marks starts a reply of several lines, and another one ends it. Ctrl-D and Ctrl-C stop the
run. `longspan resume` continues it and shows the conversation so far.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.base.terminal import escape_invisible

__all__ = ["Human"]

FENCE: Final = '"""'

CTRL_C: Final = b"\x03"
"""The character of Ctrl-C. While typing a reply, it ends the line instead of interrupting the program."""

_terminal_free: Final = trio.Semaphore(1)
"""A lock on the terminal: there is one person, so conversations run one after another."""


@final
class Human(BaseAgent):
    """A person at the terminal, shown each message with its virtual time.

    Raises InputError if there is no terminal, StoppedError once the person has left.
    """

    models: Mapping[str, str] = {}
    repeatable: ClassVar[bool] = False
    pinned: ClassVar[bool] = False

    class Options(AgentOptions):
        """The options of a person."""

        filler: bool = True
        """Show turns that the person is not asked to answer."""

    _left: ClassVar[bool] = False

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._filler = options.filler if isinstance(options, self.Options) else True
        self._has_terminal = False
        with _terminal():
            pass

    async def reply(self, message: Message) -> Reply:
        await self._claim_terminal()
        with _terminal() as terminal:
            _write(terminal, f"\n[{message.sent_at:%a %d %b %Y %H:%M}] {message.text}\n")
            text = ""
            while not text.strip():
                text = await self._read_reply(terminal)
        return Reply(text)

    async def observe(self, message: Message, reply: str) -> None:
        await self._claim_terminal()
        if self._filler:
            with _terminal() as terminal:
                _write(terminal, f"\n[{message.sent_at:%a %d %b %Y %H:%M}] {message.text}\nreply: {reply}\n")

    async def close(self) -> None:
        if self._has_terminal:
            self._has_terminal = False
            _terminal_free.release()

    async def _claim_terminal(self) -> None:
        """Wait until the previous conversation has ended."""
        if not self._has_terminal:
            await _terminal_free.acquire()
            self._has_terminal = True
        if Human._left:
            raise StoppedError("the person has left")

    async def _read_reply(self, terminal: int) -> str:
        """Prompt for a reply and return it."""
        with _edit_lines(terminal):
            _write(terminal, "you: ")
            line = await self._read_line(terminal)
            if line.strip() != FENCE:
                return line
            lines = []
            while (line := await self._read_line(terminal)).strip() != FENCE:
                lines.append(line)
            return "\n".join(lines)

    async def _read_line(self, terminal: int) -> str:
        typed = b""
        while not typed.endswith(b"\n"):
            await trio.lowlevel.wait_readable(terminal)
            try:
                data = os.read(terminal, 65_536)
            except OSError:
                data = b""
            if not data or data.endswith(CTRL_C):
                Human._left = True
                _write(terminal, "\n")
                raise StoppedError("stopped by the person")
            typed += data
        return typed.decode("utf-8", "replace").rstrip("\r\n")


@contextmanager
def _terminal() -> Iterator[int]:
    """Open the program's terminal, even if its input and output are redirected. Raises InputError without a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        raise InputError("human needs a terminal; this process has none") from None
    try:
        yield terminal
    finally:
        os.close(terminal)


@contextmanager
def _edit_lines(terminal: int) -> Iterator[None]:
    """Let the person edit lines, and read Ctrl-C as a character. Discard input typed before the message appeared."""
    before = termios.tcgetattr(terminal)
    during = termios.tcgetattr(terminal)
    off = os.fpathconf(terminal, "PC_VDISABLE")
    during[3] |= termios.ICANON | termios.ECHO
    during[6][termios.VINTR] = bytes([off])
    during[6][termios.VEOL] = CTRL_C
    termios.tcsetattr(terminal, termios.TCSAFLUSH, during)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _write(terminal: int, text: str) -> None:
    """Write untrusted text, with control characters made visible."""
    data = escape_invisible(text).encode("utf-8", "replace")
    while data:
        try:
            data = data[os.write(terminal, data) :]
        except OSError as error:
            raise AgentError(f"the terminal was closed: {error.strerror}") from None
