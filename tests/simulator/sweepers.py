"""Agents for sweeps that are killed: the first that reaches its thirtieth turn kills a process, once."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from tests.durability.agents import Keeper, after

from longspan.simulator.contract.messages import Message


def first(file: str = "killed") -> bool:
    """Return True on the first call of all processes. The file in the working directory remembers it."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Killer(Keeper):
    """Kills the process that plays it."""

    turns = 0

    def reply(self, message: Message) -> str:
        self.turns += 1
        if self.turns == 30 and first():
            self.strike()
        return super().reply(message)

    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Orphan(Killer):
    """Kills the parent of the process that plays it, and then never answers."""

    def strike(self) -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()


class Waiting(Killer):
    """Waits at its thirtieth turn: writes to the pipe `reached`, then reads the pipe `continue`."""

    def strike(self) -> None:
        Path("reached").write_text("reached")
        Path("continue").read_text()


class Failing(Keeper):
    """Fails at its third turn while there is a file `broken`."""

    turns = 0

    def reply(self, message: Message) -> str:
        self.turns += 1
        if self.turns >= 3 and Path("broken").exists():
            raise RuntimeError("out of order")
        return super().reply(message)


class Ordered(Keeper):
    """Appends its own number to the file `order` at each turn."""

    def reply(self, message: Message) -> str:
        with Path("order").open("a") as order:
            order.write(f"{os.getpid()} {id(self)}\n")
        return super().reply(message)


class Logged(Keeper):
    """Logs the turns that it gets to the file `asked`, with the Ray node that it runs on.

    The first agent on another node than the one in the file `head` that reaches its thirtieth turn writes to the pipe `reached`
    and never answers. The first agent on the head waits for it there, or else the head might play all runs before the other begins.
    """

    turns = 0

    def reply(self, message: Message) -> str:
        import ray

        node = ray.get_runtime_context().get_node_id()
        self.turns += 1
        with Path("asked").open("a") as log:
            log.write(f"{node} {after(self.state, message.text, '')} {message.turn_id}\n")
        if self.turns == 30 and node == Path("head").read_text() and first("waiting"):
            Path("begun").read_text()
        elif self.turns == 30 and node != Path("head").read_text() and first():
            Path("begun").write_text("")
            Path("reached").write_text(node)
            threading.Event().wait()
        return super().reply(message)


class Paying:
    """Tells what each reply takes."""

    def reply(self, message: Message) -> dict[str, object]:
        return {"text": "OK.", "usage": {"input_tokens": 100}, "cost_usd": 0.01}

    def observe(self, message: Message, reply: str) -> None:
        """Take note for nothing."""
