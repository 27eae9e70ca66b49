"""What an agent with a language model costs this machine (windows, requests, counting, pricing), compared with an instant agent.

The model itself is not measured: its provider answers without a network, or on this machine.
"""

from __future__ import annotations

import os

from benchmarks._loopback import base_url, provider
from benchmarks._played import STUB, medians

__all__ = ["measure"]

CONTEXT = "128k"


def measure(span: int) -> dict[str, float]:
    """Return the figures of `_played.measured` for `silent` and for a model with a context of 128k, and their ratios.

    The model's provider is a stub, or a server on this machine with the vendor's own library.
    """
    os.environ.setdefault("OPENAI_API_KEY", "sk-nothing")
    instant = medians(span, agent="silent")
    stub = medians(span, agent=f"{STUB}openai/some-model?context={CONTEXT}&base_url=http://127.0.0.1:1/v1")
    with provider(words=1) as port:
        server = medians(span, agent=f"openai/some-model?context={CONTEXT}&base_url={base_url('openai', port)}", runs=1)
    figures = {f"{agent}: {name}": value for agent, run in (("instant", instant), ("stub", stub)) for name, value in run.items()}
    return figures | {
        "stub / instant, wall": stub["wall s"] / instant["wall s"],
        "stub / instant, cpu": stub["cpu s"] / instant["cpu s"],
        "server: wall s": server["wall s"],
        "server: cpu s": server["cpu s"],
        "server / instant, cpu": server["cpu s"] / instant["cpu s"],
    }
