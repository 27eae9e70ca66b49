"""Rendering of chat templates in a separate process, since a template may loop or allocate memory without end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, final

from longspan.agents.base import AgentError
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.gguf.model import Stop
from longspan.simulator.base.keys import redact

__all__ = ["Renderer", "TemplateError"]

PROCESS: Final = Path(__file__).with_name("template_process.py")

SECONDS: Final = 10.0
"""The time limit of one rendering. 2,000 messages take 0.004 seconds."""

MEMORY: Final = 256 * 2**20
"""The memory limit of one rendering in bytes, without the conversation's share. The process itself takes 30 MB."""

FACTOR: Final = 64
"""Bytes of memory for each character that a template reads or may write. Any prompt may thus have 4 million characters."""

MAX_ERROR: Final = 300
"""The maximum characters of a template's error."""


@final
class TemplateError(AgentError):
    """A template that failed. `refused`: it raised an error, as templates do for conversations that they do not accept."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


@final
class Renderer:
    """A renderer of conversations by a Jinja chat template. `constants` are its other variables; `date` serves as today.

    Calls may overlap: each uses a separate process, which is then kept for the next call.
    """

    def __init__(self, template: str, constants: Mapping[str, Any], date: datetime) -> None:
        self._start_line = _line([template, dict(constants), date.isoformat()])
        self._idle: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end, self._idle)

    def render(self, messages: Sequence[ChatMessage], stop: Stop | None = None) -> str:
        """Return the prompt as text. Raises TemplateError, including once `stop` is set."""
        request = _line([{"role": message.role, "content": message.text} for message in messages])
        process = self._take()
        try:
            with (stop or Stop()).kill_when_set(process):
                answer = _ask(process, request)
        except BaseException:
            _end([process])
            raise
        if answer is None or "memory" in answer:  # its remaining memory may be fragmented
            _end([process])
        else:
            self._idle.append(process)
        if answer is None:
            raise TemplateError(_explain_exit(process.returncode))
        if "text" in answer:
            return str(answer["text"])
        if "memory" in answer:
            raise TemplateError(f"it needs more than {answer['memory'] / 2**20:,.0f} MiB of memory")
        if "wrote" in answer:
            raise TemplateError(f"it writes {answer['wrote']:,} characters")
        raise TemplateError(redact(" ".join(answer["error"].split()))[:MAX_ERROR], refused=True)

    def _take(self) -> subprocess.Popen[bytes]:
        """Return an idle process, or start one."""
        try:
            process = self._idle.pop()
        except IndexError:
            return self._start()
        if process.poll() is None:
            return process
        _end([process])  # it was killed while idle
        return self._take()

    def _start(self) -> subprocess.Popen[bytes]:
        # Its environment contains no API keys. A separate process group keeps Ctrl-C from ending it within a turn.
        environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        command = [sys.executable, "-P", str(PROCESS), str(SECONDS), str(MEMORY), str(FACTOR)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, process_group=0
        )
        with suppress(BrokenPipeError):
            _send(process, self._start_line)
        return process


def _ask(process: subprocess.Popen[bytes], request: bytes) -> dict[str, Any] | None:
    """Return a process's answer, None if it ends instead."""
    with suppress(BrokenPipeError):
        _send(process, request)
    line = process.stdout.readline() if process.stdout is not None else b""
    answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return answer


def _send(process: subprocess.Popen[bytes], line: bytes) -> None:
    if process.stdin is not None:
        process.stdin.write(line)
        process.stdin.flush()


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _explain_exit(code: int) -> str:
    """Describe the failure of a template whose process ended with an exit code."""
    if code == -signal.SIGALRM:
        return f"it did not finish within {SECONDS:g} seconds"
    how = f"with {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return f"the process that renders it ended {how}"


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill processes and close their pipes."""
    for process in processes:
        process.kill()
        process.wait()
        with suppress(BrokenPipeError), process:  # a request may still be buffered
            pass
    processes.clear()
