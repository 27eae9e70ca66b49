"""How fast a local model reads and writes as a conversation grows. Weights are random, which does not change the speed.

Seconds are wall time on a GPU, and CPU time of the one processor used without a GPU.

    python -m benchmarks gguf --span 32000 --shape 8b --gpu-layers -1
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

import trio
from tests.tiny_gguf import SHAPES, write_model

from longspan.agents.models.core import ChatMessage
from longspan.agents.models.gguf.core import GgufCore
from longspan.agents.models.gguf.options import GgufOptions

__all__ = ["OPTIONS", "SPAN", "measure"]

SPAN: Final = 8_000
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--shape": {"choices": sorted(SHAPES), "default": "tiny", "help": "the model's size (8b: 4.5 GB on disk)"},
    "--gpu-layers": {"type": int, "default": 0, "help": "layers that the GPU computes; -1: all"},
}

PARTS: Final = (1 / 16, 1 / 4, 1 / 2, 1)
"""Turns are measured at these lengths of the conversation, as shares of the span."""

TURNS: Final = 3
NEW: Final = 100
ANSWER: Final = 64
"""The tokens of a turn's message, and of its answer."""

WORDS: Final = ("the", "of", "and", "to", "in", "is", "you", "that")
"""Each is one token of the models."""


class _Turn(NamedTuple):
    """A turn: seconds until the first token, seconds and tokens of the whole answer, and tokens of its prompt that were new."""

    first: float
    answer: float
    said: int
    new: int


def measure(span: int, *, shape: str, gpu_layers: int) -> dict[str, float]:
    """Return the speed of reading and writing, in tokens per second, and of turns, as a conversation grows to `span` tokens.

    Turns are compared with the first ones, and with reading the whole conversation again.
    """
    with TemporaryDirectory() as folder:
        path = write_model(Path(folder) / f"{shape}.gguf", SHAPES[shape])
        core = GgufCore(str(path), GgufOptions(n_ctx=span + 2000, gpu_layers=gpu_layers, threads=1))
        return trio.run(_grow, core, span, perf_counter if gpu_layers else process_time)


async def _grow(core: GgufCore, span: int, clock: Callable[[], float]) -> dict[str, float]:
    figures: dict[str, float] = {}
    talk = [ChatMessage("user", "Hello."), ChatMessage("assistant", "Hello.")]
    seconds: list[float] = []
    reading = 0.0
    for part in PARTS:
        length = int(part * span)
        tokens, took = await _fill(core, talk, length, clock)
        turns = [await _turn(core, talk, clock) for _ in range(TURNS)]
        reading += took + sum(turn.first for turn in turns)
        seconds.append(median(turn.first + turn.answer for turn in turns))
        figures |= {
            f"{length}: read, tokens/s": tokens / took,
            f"{length}: read in a turn, tokens/s": median(turn.new / turn.first for turn in turns),
            f"{length}: written, tokens/s": median(turn.said / turn.answer for turn in turns),
            f"{length}: turn, s": seconds[-1],
            f"{length}: turn / first turns": seconds[-1] / seconds[0],
            f"{length}: reading all again / turn": reading / seconds[-1],
        }
    return figures


async def _fill(core: GgufCore, talk: list[ChatMessage], length: int, clock: Callable[[], float]) -> tuple[int, float]:
    """Extend the conversation to about `length` tokens by one message; return how many were new, and the seconds it took."""
    held = sum(core.count(message.text) + core.overhead for message in talk)
    began = clock()
    used = (await core.complete([*talk, _message(length - held)], max_tokens=1)).usage
    seconds = clock() - began
    talk += [_message(length - held), ChatMessage("assistant", "OK.")]
    return used.input_tokens - used.cached_tokens, seconds


async def _turn(core: GgufCore, talk: list[ChatMessage], clock: Callable[[], float]) -> _Turn:
    """Measure a turn in two calls: the first stops after a token, and the second continues from there."""
    talk.append(_message(NEW))
    began = clock()
    used = (await core.complete(talk, max_tokens=1)).usage
    first = clock()
    completion = await core.complete(talk, max_tokens=ANSWER)
    ended = clock()
    talk.append(ChatMessage("assistant", completion.text))
    return _Turn(first - began, ended - first, max(1, completion.usage.output_tokens), used.input_tokens - used.cached_tokens)


def _message(tokens: int) -> ChatMessage:
    """Return a message of about so many tokens."""
    return ChatMessage("user", " ".join(islice(cycle(WORDS), max(1, tokens))))
