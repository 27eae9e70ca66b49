"""Processes that are forked from one that has imported longspan, which takes longer than most short runs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["PROCESSES", "longspan", "started"]

PROCESSES: Final = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        *("longspan.simulator.terminal.progress", "longspan.simulator.running.runner", "longspan.simulator.pages.report"),
        *("tests.durability.warm", "tests.durability.agents"),
    ]
)


def longspan(*arguments: str, where: Path, stdin: str = "", env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, in the folder `where`."""
    with TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_text(stdin, "utf-8")
        process = started(*arguments, where=where, streams=streams, env=os.environ if env is None else env)
        process.join(120)
        process.kill()
        process.join()
        return subprocess.CompletedProcess(arguments, process.exitcode or 0, *(stream.read_text("utf-8") for stream in streams[1:]))


def started(*arguments: str, where: Path, streams: Sequence[Path], env: Mapping[str, str]) -> ForkServerProcess:
    """Start the command line in a process of its own, whose input, output and errors are these files.

    It leads a session, so that a terminal among them becomes its own, as in a shell.
    """
    process = PROCESSES.Process(target=_run, args=(arguments, where, streams, dict(env)))
    process.start()
    return process


def _run(arguments: list[str], where: Path, streams: Sequence[Path], env: dict[str, str]) -> None:
    os.setsid()
    os.chdir(where)
    os.environ.clear()
    os.environ.update(env)
    for number, (path, mode) in enumerate(zip(streams, ("r", "w", "w"), strict=True)):
        with path.open(mode) as file:
            os.dup2(file.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w")))
    sys.path.insert(0, "")  # as for `python -c`
    sys.argv = ["longspan", *arguments]
    from longspan.simulator.cli import main

    main()
