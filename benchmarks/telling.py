"""What it takes to tell a history, and to ask about it: `python -m benchmarks telling [--agent SPEC]`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

__all__ = ["OPTIONS", "measure"]

OPTIONS = {
    "--agent": {"default": "notebook", "help": "the agent that is told (default: notebook)"},
    "--questions": {"type": int, "default": 200, "help": "how many questions are asked of the longest history (default: 200)"},
    "--data": {"help": "one of BEAM's chats instead, a folder: it is told, and its own questions are asked"},
}
PARTS = (8, 4, 2, 1)
"""The lengths of the histories, as parts of the span."""


def measure(span: int, agent: str, questions: int, data: str | None) -> dict[str, float]:
    """Tell histories of an eighth, a quarter and a half of `span` tokens, and of all, and ask about each once; then ask about the longest
    `questions` times. Each in a process of its own.

    Ratios tell of growth: `seconds` per token told, the longest history's to the shortest's; and what the questions after the
    first take of what telling takes.
    """
    if data is not None:
        return _in_process(0, 0, agent, data)
    told = {span // part: _in_process(span // part, 1, agent) for part in PARTS}
    shortest, longest = told[span // PARTS[0]], told[span]
    asked = _in_process(span, questions, agent)
    figures = {f"{tokens:,} tokens: {name}": value for tokens, one in told.items() for name, value in one.items()}
    figures |= {f"{questions:,} questions: {name}": value for name, value in asked.items()}
    return figures | {
        "seconds per token / at an eighth": longest["cpu s per million tokens"] / shortest["cpu s per million tokens"],
        "turns told / with one question": asked["turns told"] / longest["turns told"],
        "seconds / with one question": asked["cpu s"] / longest["cpu s"],
    }


def _in_process(tokens: int, questions: int, agent: str, *data: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.telling", str(tokens), str(questions), agent, *data]
    figures: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603
    return figures


def _measured(tokens: int, questions: int, agent: str, data: str | None = None) -> dict[str, float]:
    """Return the processor seconds of a run that tells a history and asks about it, without planning, and the history it told."""
    import resource

    import trio

    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.planning import Plan, plan_run
    from longspan.simulator.running.runner import play_plans
    from longspan.simulator.suite.settings import RunSettings
    from longspan.simulator.suite.suite import Suite

    def planned(tokens: int, questions: int, out: Path) -> Plan:
        own = out / f"{tokens}-{questions}.jsonl"
        own.write_text("\n".join(map(json.dumps, _history(tokens, questions))) if tokens else "")
        scenarios = {"history": {"data": str(own)}} if tokens else {"beam": {"data": data}}
        return plan_run(RunSettings(suite=Suite(name="told", tests=1, scenarios=scenarios), span=2_000, agent=agent), out)

    def megabytes() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3

    with TemporaryDirectory() as folder:
        trio.run(
            lambda: play_plans([planned(5_000, 1, Path(folder))], pages=Report)
        )  # loads modules imported late, so that they are not measured
        before = megabytes()
        ready = planned(tokens, questions, Path(folder))
        began = process_time()
        (outcome,) = trio.run(lambda: play_plans([ready], pages=Report))
        seconds = process_time() - began
    result = outcome.result
    assert result is not None  # noqa: S101
    return {
        "cpu s": seconds,
        "cpu s per million tokens": seconds / result.tokens * 1e6,
        "megabytes": megabytes() - before,
        "tokens": result.tokens,
        "turns told": result.turns - len(result.tests),
        "questions": len(result.tests),
    }


def _history(tokens: int, questions: int) -> Iterator[dict[str, Any]]:
    """Yield a made-up history as lines of people's own logs, with questions about what the user said, which no rule can grade."""
    from longspan.scenarios.histories.made_up import write_history

    history = write_history(0, tokens)
    for session in history.sessions:
        turns = [{"id": turn.id, "speaker": turn.speaker, "text": turn.text} for turn in session.turns]
        yield {"at": session.at and session.at.isoformat(), "turns": turns}
    said = [turn for turn in history.turns if turn.speaker == "user"]
    for number in range(questions):
        turn = said[number * len(said) // questions]
        yield {"question": f"What did I say about {turn.text[-60:]}?", "answer": turn.text, "evidence": [turn.id]}


if __name__ == "__main__":
    print(json.dumps(_measured(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
