"""human: a person at the terminal, for knowing what a test is like and what people score.

Enter sends a line. A line of three quotation marks begins a reply of several lines, and another one ends it. Ctrl-D and
Ctrl-C stop the run, which `longspan resume` goes on with; the person is then shown what was said before.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final, final

import trio

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, InputError, Message, Reply
from longspan.simulator.errors import StoppedError

__all__ = ["Human"]

FENCE: Final = '"""'

STOP: Final = b"\x03"
"""What Ctrl-C sends. While a reply is typed it ends the line, instead of interrupting the program."""

_seat: Final = trio.Semaphore(1)
"""There is one person: conversations take turns, each as a whole."""


@final
class Human(BaseAgent):
    """A person at the terminal, shown each message with its virtual time.

    Raises InputError where there is no terminal, StoppedError once the person has left.
    """

    models: Mapping[str, str] = {}
    repeatable: ClassVar[bool] = False

    class Options(AgentOptions):
        """`filler`: show turns that nobody is asked."""

        filler: bool = True

    _left: ClassVar[bool] = False

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._filler = options.filler if isinstance(options, self.Options) else True
        self._seated = False
        with _terminal():
            pass

    async def reply(self, message: Message) -> Reply:
        await self._sit_down()
        with _terminal() as terminal:
            _show(terminal, f"\n[{message.sent_at:%a %d %b %Y %H:%M}] {message.text}\n")
            text = ""
            while not text.strip():
                text = await self._typed(terminal)
        return Reply(text)

    async def observe(self, message: Message, reply: str) -> None:
        await self._sit_down()
        if self._filler:
            with _terminal() as terminal:
                _show(terminal, f"\n[{message.sent_at:%a %d %b %Y %H:%M}] {message.text}\nreply: {reply}\n")

    async def close(self) -> None:
        if self._seated:
            self._seated = False
            _seat.release()

    async def _sit_down(self) -> None:
        """Wait until the conversation before this one is over."""
        if not self._seated:
            await _seat.acquire()
            self._seated = True
        if Human._left:
            raise StoppedError("the person has left")

    async def _typed(self, terminal: int) -> str:
        """A reply, from the prompt to the Enter that ends it."""
        with _typing(terminal):
            _show(terminal, "you: ")
            line = await self._line(terminal)
            if line.strip() != FENCE:
                return line
            lines = []
            while (line := await self._line(terminal)).strip() != FENCE:
                lines.append(line)
            return "\n".join(lines)

    async def _line(self, terminal: int) -> str:
        typed = b""
        while not typed.endswith(b"\n"):
            await trio.lowlevel.wait_readable(terminal)
            try:
                part = os.read(terminal, 65_536)
            except OSError:
                part = b""
            if not part or part.endswith(STOP):
                Human._left = True
                _show(terminal, "\n")
                raise StoppedError("stopped by the person")
            typed += part
        return typed.decode("utf-8", "replace").rstrip("\r\n")


@contextmanager
def _terminal() -> Iterator[int]:
    """The terminal that the program runs at, whatever its input and output are. Raises InputError where there is none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        raise InputError("human is a person at the terminal, and there is no terminal here") from None
    try:
        yield terminal
    finally:
        os.close(terminal)


@contextmanager
def _typing(terminal: int) -> Iterator[None]:
    """Take lines as a person edits them, and Ctrl-C as a character. What was typed before the message was read is dropped."""
    before = termios.tcgetattr(terminal)
    during = termios.tcgetattr(terminal)
    off = os.fpathconf(terminal, "PC_VDISABLE")
    during[3] |= termios.ICANON | termios.ECHO
    during[6][termios.VINTR] = bytes([off])
    during[6][termios.VEOL] = STOP
    termios.tcsetattr(terminal, termios.TCSAFLUSH, during)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _show(terminal: int, text: str) -> None:
    """Write text, and nothing that a terminal would obey."""
    plain = "".join(character if character.isprintable() or character == "\n" else "�" for character in text)
    left = plain.encode("utf-8", "replace")
    while left:
        try:
            left = left[os.write(terminal, left) :]
        except OSError as error:
            raise AgentError(f"the terminal has gone: {error.strerror}") from None
