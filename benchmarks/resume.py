"""The time to read a finished run's journal, resume it and replay it, compared with playing it with an instant agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeVar

import trio

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.report import Report
from longspan.simulator.running.planning import plan
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import play, replay, resume
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["measure"]

Value = TypeVar("Value")


def measure(span: int) -> dict[str, float]:
    """Return the seconds to play a run of the ltm suite at `span`, and the ratios of reading, resuming and replaying to that."""
    tokenizer = Tokenizer()
    with TemporaryDirectory() as folder:
        playing, (outcome,) = _timed(lambda: _play(span, Path(folder)))
        run = RunFolder(outcome.folder)
        reading, journal = _timed(lambda: list(read_journal(run.journal("main"))))
        resuming, _ = _timed(lambda: trio.run(lambda: resume(run, "silent", pages=Report)))
        replaying, _ = _timed(lambda: trio.run(lambda: replay(run)))
    texts = [event.text for event in journal if isinstance(event, events.Message | events.Reply)]
    counting, _ = _timed(lambda: [tokenizer.count(text) for text in texts])
    return {
        "play_s": playing,
        "tokenizer_pass_s": counting,
        "play / tokenizer pass": playing / counting,
        "read / play": reading / playing,
        "resume / play": resuming / playing,
        "replay / play": replaying / playing,
    }


def _play(span: int, out: Path) -> list[Outcome]:
    """Plan, play and grade, as `longspan run` does."""
    planned = plan(RunSettings(suite=load_suite("ltm"), span=span, seed=0, agent="silent"), out)
    return trio.run(lambda: play([planned], pages=Report))


def _timed(action: Callable[[], Value]) -> tuple[float, Value]:
    began = perf_counter()
    result = action()
    return perf_counter() - began, result
