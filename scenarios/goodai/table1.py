"""The paper's printed scores and spreads of the agents it tested (GoodAI, Table 1)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, final

__all__ = ["PrintedCell", "printed_score"]

_COLUMNS: Final = ("isolated", "2k", "32k", "120k", "200k", "500k")

_BENCHMARKS: Final = {"1k": "2k", "32k (isolated)": "isolated"}
"""Columns of benchmarks with other names. The one called 1k was played at 2k."""


_PRINTED_MEMORY: Final = "QG_JSON_USER_INFO"
"""The memory agent's variant in the table. Results of the others were published without a table."""


@final
class PrintedCell(NamedTuple):
    """A cell of the table."""

    score: float
    std: float


_ROWS: Final = {
    # the model's name in GoodAI's folders, its largest context in tokens, whether it is wrapped in the memory agent
    ("mixtral-8x7b", 32_768, False): "5.0 2.0 1.4 0.6 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1",
    ("mixtral-8x22b", 65_536, False): "4.9 2.5 5.6 1.6 0.0 0.0 0.1 0.1 0.1 0.1 0.1 0.1",
    ("llama-3-70b", 8_192, False): "8.2 1.1 1.9 2.4 0.2 0.0 0.2 0.0 0.2 0.0 0.2 0.0",
    ("gpt-3.5-turbo", 16_384, False): "4.1 1.6 4.7 1.6 0.1 0.1 0.0 0.0 0.0 0.0 0.0 0.0",
    ("gpt-4-turbo", 128_000, False): "7.9 0.1 6.6 1.0 4.8 3.9 5.8 2.4 3.9 1.8 1.0 0.8",
    ("gpt-4o", 128_000, False): "7.6 2.0 5.9 1.2 4.6 3.6 5.5 2.6 5.2 1.7 0.9 0.6",
    ("claude-3-opus", 200_000, False): "8.3 1.4 7.8 1.8 6.7 2.3 7.4 2.7 5.4 1.7 3.4 0.6",
    ("gemini", 1_000_000, False): "7.4 2.2 6.5 1.5 6.4 1.7 7.0 0.9 8.0 2.8 5.3 2.6",
    ("claude-3-opus", 16_384, True): "8.7 1.9 7.5 1.4 5.0 2.3 5.7 3.4 6.4 2.9 4.9 2.5",
    ("gpt-4-turbo", 16_384, True): "9.2 0.7 6.3 1.7 5.2 1.9 5.0 2.4 5.3 1.9 3.1 1.6",
    ("llama-3-70b", 8_192, True): "8.4 1.6 6.9 2.3 5.0 2.2 4.7 2.2 5.6 1.3 4.8 1.5",
}


def printed_score(agent: str, benchmark: str) -> PrintedCell | None:
    """Return the printed score of an agent (the name of its results folder) on a benchmark ("Benchmark 3 - 32k"), or None."""
    name, memory = agent.casefold(), agent.startswith("LTMAgentWrapper")
    if memory and _PRINTED_MEMORY not in agent:
        return None
    sizes = [int(size) for size in re.findall(r" - (\d{4,7})\b", agent)]
    column = benchmark.rpartition(" - ")[2]
    column = _BENCHMARKS.get(column, column)
    for (model, context, wrapped), row in _ROWS.items():
        fits = not sizes or 0.9 * context <= sizes[0] <= context
        if model in name and fits and wrapped == memory and column in _COLUMNS:
            values = list(map(float, row.split()))
            return PrintedCell(*values[2 * (at := _COLUMNS.index(column)) : 2 * at + 2])
    return None
