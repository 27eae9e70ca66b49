"""An agent that replies when it is allowed to: each reply takes a byte from a named pipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Patient:
    """`pipe`: where it waits. `bytes` are let through by whoever writes them there. Told of filler, it takes note of nothing."""

    def __init__(self, pipe: str, reply: str = "OK.") -> None:
        self._pipe = os.open(pipe, os.O_RDWR)  # also for writing: a writer that leaves ends nothing
        self._reply = Path(reply).read_text("utf-8") if reply.startswith("/") else reply

    def reply(self, message: Any) -> str:
        os.read(self._pipe, 1)
        return self._reply

    def observe(self, message: Any, reply: str) -> None:
        """Filler is heard, and not waited for."""
