"""The figures of the paper's tables 1, 3, 4 and 5. Shares are in percent, as printed."""

from __future__ import annotations

from typing import Final, NamedTuple, final

__all__ = ["BASELINES", "EVALUATORS", "LENGTHS", "MODELS", "ORDER", "PAIRS", "RANKED", "Setting"]

MODELS: Final = ("GPT-3.5", "GPT-4", "GPT-4o")

ORDER: Final = (("GPT-3.5", "GPT-4"), ("GPT-3.5", "GPT-4o"), ("GPT-4", "GPT-4o"))
"""Our order for playing the matches; the paper states none."""


@final
class Setting(NamedTuple):
    """A metric, and the maximum number of key facts asked for."""

    metric: str
    facts: int

    def __str__(self) -> str:
        return f"{self.metric}-{self.facts}"


COMPLETENESS_16, COMPLETENESS_30 = Setting("completeness", 16), Setting("completeness", 30)
CONCISENESS_16, CONCISENESS_30 = Setting("conciseness", 16), Setting("conciseness", 30)

Scores = dict[tuple[str, str], float]
"""Scores by row and column of the table."""

PAIRS: Final[dict[Setting, Scores]] = {
    COMPLETENESS_16: {
        ("GPT-3.5", "GPT-4"): 78.8,
        ("GPT-3.5", "GPT-4o"): 84.2,
        ("GPT-4", "GPT-3.5"): 76.6,
        ("GPT-4", "GPT-4o"): 86.6,
        ("GPT-4o", "GPT-3.5"): 92.1,
        ("GPT-4o", "GPT-4"): 94.0,
    },
    CONCISENESS_16: {
        ("GPT-3.5", "GPT-4"): 90.0,
        ("GPT-3.5", "GPT-4o"): 87.5,
        ("GPT-4", "GPT-3.5"): 93.6,
        ("GPT-4", "GPT-4o"): 92.1,
        ("GPT-4o", "GPT-3.5"): 67.3,
        ("GPT-4o", "GPT-4"): 68.4,
    },
    COMPLETENESS_30: {
        ("GPT-3.5", "GPT-4"): 80.7,
        ("GPT-3.5", "GPT-4o"): 82.2,
        ("GPT-4", "GPT-3.5"): 80.0,
        ("GPT-4", "GPT-4o"): 86.3,
        ("GPT-4o", "GPT-3.5"): 94.9,
        ("GPT-4o", "GPT-4"): 95.5,
    },
    CONCISENESS_30: {
        ("GPT-3.5", "GPT-4"): 99.1,
        ("GPT-3.5", "GPT-4o"): 96.4,
        ("GPT-4", "GPT-3.5"): 99.4,
        ("GPT-4", "GPT-4o"): 95.9,
        ("GPT-4o", "GPT-3.5"): 89.7,
        ("GPT-4o", "GPT-4"): 88.6,
    },
}
"""Table 3: meetings of QMSum."""

LENGTHS: Final[dict[Setting, Scores]] = {
    COMPLETENESS_16: {("short", "long"): 95.3, ("long", "short"): 98.4},
    CONCISENESS_16: {("short", "long"): 75.6, ("long", "short"): 53.5},
    COMPLETENESS_30: {("short", "long"): 97.7, ("long", "short"): 97.3},
    CONCISENESS_30: {("short", "long"): 92.7, ("long", "short"): 80.7},
}
"""Table 4: short and long summaries of the authors' own meetings."""

RANKED: Final = {
    "completeness": {"GPT-4o": 1, "GPT-4": 2, "GPT-3.5": 3},
    "conciseness": {"GPT-4": 1, "GPT-3.5": 2, "GPT-4o": 3},
}
"""Table 5: the ranks by CREAM, at 16 facts. Those by human key facts are the same."""

EVALUATORS: Final = ("machine summary, GPT-4o", "transcript, GPT-4o", "transcript, GPT-4", "transcript, GPT-3.5")
"""Table 1: where the baseline's key facts came from, and who judged. The first column, below, is by human summaries."""

BASELINES: Final[dict[Setting, dict[str, tuple[float, ...]]]] = {
    COMPLETENESS_16: {
        "GPT-3.5": (56.2, 100.0, 89.7, 99.3, 99.9),
        "GPT-4": (57.9, 100.0, 88.5, 99.0, 99.8),
        "GPT-4o": (77.9, 100.0, 98.9, 99.9, 99.8),
    },
    CONCISENESS_16: {
        "GPT-3.5": (58.2, 93.3, 91.9, 99.0, 96.7),
        "GPT-4": (69.3, 95.0, 96.0, 99.0, 97.8),
        "GPT-4o": (48.8, 62.1, 70.5, 91.2, 78.9),
    },
    COMPLETENESS_30: {
        "GPT-3.5": (54.8, 100.0, 82.5, 99.4, 99.9),
        "GPT-4": (55.6, 100.0, 81.2, 99.4, 98.9),
        "GPT-4o": (76.9, 100.0, 98.1, 99.9, 99.7),
    },
    CONCISENESS_30: {
        "GPT-3.5": (56.3, 99.4, 97.6, 99.4, 97.1),
        "GPT-4": (68.1, 99.8, 98.0, 99.2, 97.5),
        "GPT-4o": (49.8, 92.5, 92.5, 96.3, 79.5),
    },
}
"""Table 1: by setting and model, first by human summaries, then by EVALUATORS."""
