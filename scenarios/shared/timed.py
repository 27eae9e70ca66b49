"""Play scripts whose questions depend on the virtual times of earlier lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from longspan.simulator.contract.script import Line
from longspan.simulator.contract.stage import Stage

__all__ = ["play_timed"]


async def play_timed(stage: Stage, question: Callable[[Line, Sequence[datetime]], str]) -> None:
    """Send the script's lines. `question` returns the question to ask in place of a line, given the times of the preceding statements."""
    times: list[datetime] = []
    for line, waits in stage.cues():
        if waits:
            await stage.wait()
        if line.asks:
            await stage.ask(question(line, times), needs=line.needs, ideal=line.ideal)
        else:
            times.append(stage.now)
            await stage.say(line.text, needle=line.needle, ideal=line.ideal)
