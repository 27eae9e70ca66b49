"""An agent that waits before each reply until a byte arrives in a named pipe, and says on standard output that it was asked first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class GatedAgent:
    """`pipe`: the named pipe. `reply`: what it always replies, or the path of a file with it."""

    def __init__(self, pipe: str, reply: str = "OK.") -> None:
        self._pipe = os.open(pipe, os.O_RDWR)  # also for writing, so that a closed writer is no end of file
        self._asked = False
        self._reply = Path(reply).read_text("utf-8") if reply.startswith("/") else reply

    def reply(self, message: Any) -> str:
        if not self._asked:
            os.write(1, b"asked\n")
        self._asked = True
        os.read(self._pipe, 1)
        return self._reply

    def observe(self, message: Any, reply: str) -> None:
        """Ignore filler."""
