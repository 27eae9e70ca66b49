"""A fake provider in a process of its own, so that it does not use the agents' time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["base_url", "provider"]


@contextmanager
def provider(latency: float = 0.0, words: int = 8) -> Iterator[int]:
    """Start a server that answers after `latency` seconds with so many words, and yield its port."""
    command = [sys.executable, "-m", "tests.loopback", "--latency", str(latency), "--words", str(words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None  # noqa: S101
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def base_url(kind: str, port: int) -> str:
    """Return the base_url for an agent of this kind."""
    return f"http://127.0.0.1:{port}/v1" if kind == "openai" else f"http://127.0.0.1:{port}"
