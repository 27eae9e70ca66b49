"""How fast a model from a file reads and writes, in tokens per second: longspan's own loop and bare llama-cpp-python, in the same minutes.

Each way is a process of its own, since OpenMP is set up once for each. They take turns, idle and beside a process that computes without
end. The figures are medians, and the ratios are medians over the rounds.

    python -m benchmarks local_speed --model models/smollm2.gguf
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any, Final

from longspan.agents.models.gguf.pace import count_cores

__all__ = ["OPTIONS", "SPAN", "measure"]

SPAN: Final = 0
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--model": {"required": True, "help": "a GGUF file"},
    "--rounds": {"type": int, "default": 7, "help": "how often each way reads and writes"},
}

READ: Final = 384
WRITTEN: Final = 64
TEXT: Final = "In {number} the ferry left the harbour late, and nobody on the quay could say why. " * 40


def measure(span: int, *, model: str, rounds: int = 7) -> dict[str, float]:
    """Return the tokens per second of each way, and longspan's in ratio to bare llama.cpp with all threads and with one."""
    ways = {"longspan": ("ours", 0), "bare, all threads": ("bare", count_cores()), "bare, one thread": ("bare", 1)}
    code = "import sys; from benchmarks.local_speed import worker; worker(*sys.argv[1:])"
    workers = {
        way: subprocess.Popen([sys.executable, "-c", code, kind, model, str(threads)], stdin=-1, stdout=-1, text=True)  # noqa: S603
        for way, (kind, threads) in ways.items()
    }
    figures = {}
    try:
        for state in ("idle", "busy"):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if state == "busy" else None
            try:
                found = [{way: _ask(process, number) for way, process in workers.items()} for number in range(rounds + 1)][1:]
            finally:
                if other is not None:
                    other.kill()
                    other.wait()
            for at, act in enumerate(("read", "write")):
                for way in ways:
                    figures[f"{state}, {act}: {way}, tokens/s"] = median(each[way][at] for each in found)
                for way in list(ways)[1:]:
                    figures[f"{state}, {act}: longspan / {way}"] = median(each["longspan"][at] / each[way][at] for each in found)
    finally:
        for process in workers.values():
            process.kill()
            process.wait()
    return figures


def _ask(process: subprocess.Popen[str], number: int) -> tuple[float, float]:
    to, back = process.stdin, process.stdout
    assert to is not None and back is not None  # noqa: S101, PT018
    print(number, file=to, flush=True)
    read, written = json.loads(back.readline())
    return read, written


def worker(kind: str, path: str, threads: str) -> None:
    """Read and write once for each line of standard input, and print the tokens per second of both."""
    make = _ours(path) if kind == "ours" else _bare(path, int(threads))
    for line in sys.stdin:
        print(json.dumps(make(TEXT.format(number=1900 + int(line)))), flush=True)


def _ours(path: str) -> Any:
    from pathlib import Path

    from longspan.agents.models.gguf.model import Model, Sampling, Settings

    model = Model(Path(path), Settings())

    def speeds(text: str) -> tuple[float, float]:
        prompt = model.vocabulary.tokens(text)[:READ]
        began = perf_counter()
        model.generate(prompt, 1, owner=speeds, sampling=Sampling(temperature=1.0))
        read = perf_counter() - began
        began = perf_counter()
        said = model.generate(prompt, WRITTEN, owner=speeds, sampling=Sampling(temperature=1.0, seed=1)).tokens
        return len(prompt) / read, said / (perf_counter() - began)

    return speeds


def _bare(path: str, threads: int) -> Any:
    from llama_cpp import Llama

    model = Llama(path, n_ctx=8192, n_threads=threads, n_threads_batch=threads, verbose=False)

    def speeds(text: str) -> tuple[float, float]:
        prompt = model.tokenize(text.encode(), add_bos=False)[:READ]
        model.reset()
        began = perf_counter()
        tokens = model.generate(prompt, temp=1.0)
        next(tokens)
        read = perf_counter() - began
        began = perf_counter()
        for _ in range(WRITTEN):
            next(tokens)
        return len(prompt) / read, WRITTEN / (perf_counter() - began)

    return speeds
