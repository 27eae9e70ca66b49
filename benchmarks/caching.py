"""How much of their prompts agents read from the provider's cache, by eviction policy."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio

from benchmarks._loopback import base_url, provider
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

__all__ = ["SPAN", "measure"]

SPAN: Final = 32_000
KINDS: Final = ("openai", "anthropic", "google", "ltm/openai", "ltm/anthropic")


def measure(span: int) -> dict[str, float]:
    """Return the share of input tokens read from the cache, and the number of those that were not, which cost most.

    They are of a run of the suite `ltm` with a context of 16k.
    """
    figures = {}
    with provider() as port:
        for kind in KINDS:
            for eviction in ("block", "sliding"):
                url = base_url(kind.rpartition("/")[2], port)
                spec = f"{kind}/some-model?base_url={url}&context=16k&eviction={eviction}{'&embedder=hash' * kind.startswith('ltm/')}"
                cached, tokens = _read(spec, span)
                figures[f"{kind}, {eviction}, share from cache"] = cached / tokens
                figures[f"{kind}, {eviction}, tokens not from cache"] = tokens - cached
    return figures


def _read(agent: str, span: int) -> tuple[int, int]:
    """Return the input tokens that an agent reads from the cache in such a run, and all its input tokens."""
    with TemporaryDirectory() as folder:
        planned = plan_run(RunSettings(suite=load_suite("ltm"), span=span, seed=0, agent=agent), Path(folder))
        (outcome,) = trio.run(lambda: play_plans([planned]))
        if outcome.error is not None:
            raise outcome.error
        usages = [
            event.usage
            for path in outcome.folder.rglob("journal.jsonl")
            for event in read_journal(path)
            if isinstance(event, events.Reply) and event.usage
        ]
    return sum(usage["cached_tokens"] for usage in usages), sum(usage["input_tokens"] for usage in usages)
