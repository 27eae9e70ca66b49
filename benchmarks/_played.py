"""Measures a run of the suite ltm in a process of its own: `python -m benchmarks._played SPAN TESTS AGENT`.

An agent `stub:SPEC` is the agent SPEC with a provider that answers at once, without a network. Start-up is not measured: a run
of one test of each scenario at 2k comes first and loads everything that is loaded late.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

__all__ = ["RUNS", "STUB", "medians"]

RUNS = 5
"""How many processes the median is taken over."""

STUB = "stub:"


def medians(span: int, tests: int = 3, agent: str = "oracle", runs: int = RUNS) -> dict[str, float]:
    """Return the median of each figure of `measured` over some processes."""
    command = [sys.executable, "-m", "benchmarks._played", str(span), str(tests), agent]
    figures = [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)]  # noqa: S603
    return {name: median(run[name] for run in figures) for name in figures[0]}


def measured(span: int, tests: int, agent: str) -> dict[str, float]:
    """Return seconds (`wall`, `cpu`; `report`: for writing report.html again), megabytes, tokens, and ratios.

    Ratios are to one pass of the tokenizer over the same text, and to its bytes.
    """
    import trio

    from longspan.simulator.base.tokens import Tokenizer
    from longspan.simulator.journal import events
    from longspan.simulator.journal.journal import read_journal
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.pages.report import Report, write_report
    from longspan.simulator.results.result import Result
    from longspan.simulator.running.planning import plan_run
    from longspan.simulator.running.player import Outcome
    from longspan.simulator.running.runner import play_plans
    from longspan.simulator.suite.settings import RunSettings
    from longspan.simulator.suite.suite import load_suite

    if agent.startswith(STUB):
        agent = agent.removeprefix(STUB)
        _stub()

    def played(span: int, tests: int, out: Path) -> Outcome:
        planned = plan_run(RunSettings(suite=load_suite("ltm").apply_changes([], [], [], tests), span=span, seed=0, agent=agent), out)
        return trio.run(lambda: play_plans([planned], pages=Report))[0]

    with TemporaryDirectory() as folder:
        played(2000, 1, Path(folder))
        began = perf_counter(), process_time()
        outcome = played(span, tests, Path(folder))
        wall, cpu = perf_counter() - began[0], process_time() - began[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        run = RunFolder(outcome.folder)
        texts = [event.text for event in read_journal(run.journal("main")) if isinstance(event, events.Message | events.Reply)]
        written = sum(path.stat().st_size for path in outcome.folder.rglob("*") if path.is_file())
        result = outcome.result
        assert isinstance(result, Result)  # noqa: S101
        reports = []
        for _ in range(3):
            began = perf_counter(), process_time()
            write_report(run, result)
            reports.append((process_time() - began[1], perf_counter() - began[0]))
        report_cpu, report = min(reports)  # a few tenths of a second, which other work on the machine can double
    passes = []
    for _ in range(3):
        start = process_time()
        tokens = sum(len(Tokenizer().encode(text)) for text in texts)
        passes.append(process_time() - start)
    one = median(passes)
    return {
        "wall s": wall,
        "cpu s": cpu,
        "cpu s per million tokens": cpu / tokens * 1e6,
        "tokenizer pass s": one,
        "cpu / tokenizer pass": cpu / one,
        "report wall s": report,
        "report cpu s": report_cpu,
        "process at most MB": peak,
        "written MB": written / 1e6,
        "written / transcript": written / sum(len(text.encode()) for text in texts),
        "tokens": tokens,
        "turns": result.turns,
    }


def _stub() -> None:
    """Make the provider of every model answer at once."""
    from longspan.agents.base import Usage
    from longspan.agents.models.api import ServerAnswer
    from longspan.agents.models.openai import OpenAICore
    from longspan.agents.models.request import Request

    async def ask(self: OpenAICore, client: object, request: Request) -> ServerAnswer:
        answer = ServerAnswer()
        answer.usage, answer.done = Usage(request.at_most.input_tokens, 0, 2), True
        answer.add("OK.")
        return answer

    OpenAICore.ask = ask  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
