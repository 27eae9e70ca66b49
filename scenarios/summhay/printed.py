"""Figures of the paper's Tables 2 and 3 and of its appendix on bias (Laban et al., 2024), for comparison with ours.

They come from the authors' notebooks, over ten topics and 200 samples. The tables print the same figures as percentages, without Claude
3.5 Sonnet, which was added later.
"""

from __future__ import annotations

from functools import cache
from typing import Final

__all__ = ["SAMPLES", "TOPICS", "printed_bias", "printed_result"]

TOPICS: Final = 10
SAMPLES: Final = 200
"""Number of topics and of annotated samples behind the figures."""

_RETRIEVERS: Final = ("random", "dwzhu/e5-base-4k", "vector", "keywords", "rerank3", "oracle", "")
"""The columns of the three tables below, by their names in the files; "": all documents."""

_RESULTS: Final = {
    "coverage": """
        gpt3.5            0.36 0.46 0.46 0.48 0.52 0.56 -
        claude3-haiku     0.50 0.65 0.62 0.63 0.67 0.72 0.62
        gpt4-turbo        0.49 0.61 0.57 0.61 0.62 0.67 0.58
        claude3.5-sonnet  0.57 0.70 0.71 0.71 0.75 0.79 0.73
        command-r         0.47 0.55 0.53 0.56 0.55 0.60 0.50
        gemini-1.5-flash  0.50 0.58 0.59 0.62 0.63 0.65 0.59
        command-r-plus    0.44 0.56 0.53 0.56 0.59 0.61 0.45
        claude3-sonnet    0.56 0.71 0.70 0.72 0.73 0.78 0.74
        claude3-opus      0.57 0.72 0.70 0.73 0.76 0.81 0.76
        gpt-4o            0.54 0.67 0.68 0.67 0.70 0.77 0.66
        gemini-1.5-pro    0.53 0.64 0.65 0.64 0.68 0.68 0.70
    """,
    "citation": """
        gpt3.5            0.09 0.15 0.15 0.16 0.17 0.23 -
        claude3-haiku     0.13 0.25 0.26 0.27 0.29 0.36 0.14
        gpt4-turbo        0.18 0.29 0.28 0.31 0.32 0.41 0.05
        claude3.5-sonnet  0.19 0.31 0.30 0.30 0.33 0.40 0.19
        command-r         0.18 0.35 0.35 0.37 0.40 0.54 0.31
        gemini-1.5-flash  0.17 0.32 0.32 0.34 0.44 0.52 0.33
        command-r-plus    0.20 0.42 0.42 0.43 0.47 0.60 0.20
        claude3-sonnet    0.18 0.35 0.37 0.37 0.41 0.52 0.23
        claude3-opus      0.18 0.34 0.36 0.37 0.39 0.51 0.22
        gpt-4o            0.22 0.38 0.38 0.39 0.41 0.55 0.16
        gemini-1.5-pro    0.22 0.43 0.45 0.47 0.50 0.64 0.51
    """,
    "joint": """
        gpt3.5            0.04 0.07 0.07 0.08 0.09 0.13 -
        claude3-haiku     0.07 0.17 0.17 0.18 0.20 0.27 0.09
        gpt4-turbo        0.10 0.19 0.17 0.20 0.21 0.29 0.03
        claude3.5-sonnet  0.12 0.22 0.23 0.22 0.26 0.32 0.14
        command-r         0.09 0.20 0.20 0.22 0.24 0.34 0.16
        gemini-1.5-flash  0.09 0.19 0.20 0.22 0.29 0.35 0.21
        command-r-plus    0.10 0.25 0.24 0.26 0.29 0.38 0.10
        claude3-sonnet    0.11 0.26 0.27 0.28 0.31 0.41 0.18
        claude3-opus      0.11 0.27 0.27 0.29 0.32 0.43 0.18
        gpt-4o            0.13 0.27 0.28 0.27 0.31 0.43 0.11
        gemini-1.5-pro    0.12 0.29 0.31 0.31 0.36 0.45 0.38
    """,
}
_POSITIONS: Final = """
        claude3-opus    0.204072 0.234648 0.279877 0.179861 0.100016
        gpt-4o          0.137765 0.113129 0.240761 0.114111 0.126650
        gemini-1.5-pro  0.470490 0.388409 0.389118 0.378486 0.092004
"""
_PLACES: Final = ("top", "middle", "bottom", "stored", "sensitivity")

_BIAS: Final = """
        claude3-sonnet     0.027 -0.001 -0.012
        gemini-1.5-flash   0.032 0.009 -0.025
        claude3-opus       0.040 0.011 0.019
        gpt3.5             0.009 0.050 0.048
        gemini-1.5-pro     0.057 0.042 0.041
        gpt4-turbo         0.063 0.080 0.042
        claude3-haiku      0.057 0.088 0.052
        gpt-4o             0.070 0.078 0.080
        command-r-plus     0.064 0.128 0.071
        mean               0.047 0.054 0.035
        length-difference  0.023 -0.047 -0.078
        length-score       -0.119 -0.169 -0.175
"""
_JUDGES: Final = ("gpt-4o", "claude3-opus", "gemini-1.5-pro")


@cache
def _load_figures() -> dict[tuple[str, str, str], float]:
    known: dict[tuple[str, str, str], float] = {}
    for column, text in _RESULTS.items():
        for model, *values in map(str.split, text.strip().splitlines()):
            rows = (f"{retriever}_{model}" if retriever else model for retriever in _RETRIEVERS)
            known |= {("results", row, column): float(value) for row, value in zip(rows, values, strict=True) if value != "-"}
    for table, columns, text in (("positions", _PLACES, _POSITIONS), ("bias", tuple(f"prompted_{judge}" for judge in _JUDGES), _BIAS)):
        for row, *values in map(str.split, text.strip().splitlines()):
            known |= {(table, row, column): float(value) for column, value in zip(columns, values, strict=True)}
    return known


def printed_result(table: str, row: str, column: str, topics: int) -> float | None:
    """Return a figure of the tables `results` or `positions`, or None if it is not printed or was computed over another number of
    topics."""
    return _load_figures().get((table, row, column)) if topics == TOPICS else None


def printed_bias(row: str, column: str, samples: int) -> float | None:
    """Return a figure of the table `printed_bias`, or None if it is not printed or was computed over another number of samples."""
    return _load_figures().get(("bias", row, column)) if samples == SAMPLES else None
