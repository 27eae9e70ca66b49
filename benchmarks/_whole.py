"""Measures what an action took: in seconds and, comparable between machines, in passes of the tokenizer."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TypeVar

from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.filler.filler import Filler
from longspan.simulator.filler.talk import Talk

__all__ = ["tokenizer_pass", "whole"]

Value = TypeVar("Value")

TOKENS = 1_000_000


def whole(action: Callable[[], Value]) -> tuple[Value, dict[str, float]]:
    """Return the result of `action` and what it took, in this process and in those that it started and that have ended."""
    before, wrote, began = os.times(), _written(), perf_counter()
    value = action()
    wall, after = perf_counter() - began, os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    written, one = _written() - wrote, tokenizer_pass()
    return value, {
        "wall s": wall,
        "cpu s": cpu,
        "a process at most MB": peak / 1e3,
        "written MB": written / 1e6,
        "tokenizer pass s": one,
        "cpu / tokenizer pass": cpu / one,
    }


def tokenizer_pass() -> float:
    """Return the CPU seconds for one pass over filler of a million tokens: the median of three."""
    tokenizer = Tokenizer()
    filler = Filler(Talk(0), tokenizer)
    texts: list[str] = []
    tokens = 0
    while tokens < TOKENS:
        made = filler.make(2000)
        texts += [made.text, made.reply]
        tokens += made.text_tokens + made.reply_tokens
    seconds = []
    for _ in range(3):
        began = process_time()
        for text in texts:
            tokenizer.encode(text)
        seconds.append(process_time() - began)
    return median(seconds)


def _written() -> int:
    """Return the bytes that this process and its ended children wrote to files and pipes; 0 if the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))
