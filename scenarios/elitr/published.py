"""The printed figures of the paper's tables (Thonet et al., 2024), for comparison with ours."""

from __future__ import annotations

from functools import cache
from typing import Final

__all__ = ["BRIEF", "KINDS", "MODES", "PLACES", "printed_figure", "table_rows"]

MODES: Final = ("single-qa", "multi-qa", "multi-conv")
"""The settings of Table 2: mode and version of the questions."""

KINDS: Final = {"who": "Who", "what": "What", "when": "When", "howmany": "How many"}
PLACES: Final = {"B": "Begin", "M": "Middle", "E": "End", "S": "Several"}
"""Question types and answer positions, as the data and as the paper's tables name them."""

BRIEF: Final = {"LongAlign-7B": "LongAlign-7B-64k", "LongAlign-13B": "LongAlign-13B-64k"}
"""Models that Table 9 names differently from the other tables."""

_GROUPS: Final = (*KINDS.values(), *PLACES.values())
_SETTINGS: Final = tuple(f"{mode}-{part}" for mode in MODES for part in ("dev", "test", "mean"))
_SEEDED: Final = tuple(f"{mode}-{part}" for mode in MODES for part in ("mean", "std"))
_SINGLE: Final = _SETTINGS[:3]

_TABLES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "table1": (
        ("#Meetings", "#Questions", "What", "Who", "When", "How many", "Begin", "Middle", "End", "Several"),
        """
        Dev 10 141 59 51 21 10 45 29 32 35
        Test 8 130 57 45 20 8 43 34 22 31
        """,
    ),
    "table2": (
        _SETTINGS,
        """
        GPT-3.5 7.04 7.44 7.24 - - - - - -
        GPT-4 8.21 8.39 8.30 8.53 8.42 8.47 8.53 8.36 8.45
        LongAlpaca-7B 5.89 5.60 5.75 4.53 4.84 4.68 4.70 4.58 4.64
        LongAlpaca-13B 6.17 6.25 6.21 4.76 4.71 4.73 4.74 4.74 4.74
        LongChat-7B-v1.5 6.60 5.78 6.19 5.85 4.17 5.01 5.21 4.31 4.76
        Vicuna-7B-v1.5 5.42 5.61 5.51 4.68 4.61 4.65 4.67 4.69 4.68
        Vicuna-13B-v1.5 5.92 6.52 6.22 5.52 5.67 5.60 5.42 5.78 5.60
        LongAlign-7B 6.11 6.46 6.28 5.43 4.47 4.95 5.04 5.06 5.05
        LongAlign-13B 6.27 6.33 6.30 4.65 5.33 4.99 4.81 4.95 4.88
        """,
    ),
    "table3": (
        _GROUPS,
        """
        GPT 8.24 7.62 7.98 8.04 7.85 7.87 8.04 7.97
        LLaMA-2 6.50 5.88 6.00 5.29 6.31 5.84 6.00 6.07
        """,
    ),
    "table4": (
        ("GPT-4", "Prometheus", "Gold Human", "Silver Human"),
        """
        GPT-4 8.33 5.68 7.93 7.21
        Vicuna-13B-v1.5 6.69 4.80 6.19 5.80
        LongAlpaca-7B 5.57 4.46 4.55 4.72
        """,
    ),
    "table8": (
        _SEEDED,
        """
        GPT-3.5 7.44 0.12 - - - -
        GPT-4 8.38 0.07 8.42 0.09 8.36 0.12
        LongAlpaca-7B 5.60 0.06 4.84 0.02 4.58 0.04
        LongAlpaca-13B 6.25 0.05 4.71 0.01 4.74 0.06
        LongChat-7B-v1.5 5.78 0.06 4.17 0.07 4.31 0.07
        Vicuna-7B-v1.5 5.61 0.17 4.61 0.26 4.69 0.34
        Vicuna-13B-v1.5 6.52 0.16 5.67 0.10 5.78 0.13
        LongAlign-7B 6.46 0.07 4.47 0.01 5.06 0.03
        LongAlign-13B 6.33 0.09 5.33 0.47 4.95 0.22
        """,
    ),
    "table9": (
        _GROUPS,
        """
        GPT-3.5 7.91 6.94 7.68 7.79 7.33 7.45 7.76 7.37
        GPT-4 8.56 8.29 8.28 8.29 8.36 8.29 8.32 8.57
        LongAlpaca-7B 5.35 5.37 6.35 6.79 5.81 5.80 4.97 5.53
        LongAlpaca-13B 7.19 5.47 6.47 6.00 5.93 5.95 6.85 6.59
        LongChat-7B-v1.5 6.88 4.94 6.33 4.17 6.41 4.91 5.89 5.77
        Vicuna-7B-v1.5 6.13 5.65 5.40 2.88 5.89 5.21 4.96 6.12
        Vicuna-13B-v1.5 6.96 6.68 5.48 5.54 6.35 6.41 6.55 6.87
        LongAlign-7B-64k 6.93 6.33 6.00 5.88 7.09 6.39 6.47 5.66
        LongAlign-13B-64k 6.08 6.74 5.97 5.75 6.71 6.21 6.33 5.95
        """,
    ),
    "table10": (
        ("p-value",),
        """
        GPT-3.5 0.466
        GPT-4 0.372
        LongAlpaca-7B 0.713
        LongAlpaca-13B 0.265
        LongChat-7B-v1.5 0.032
        Vicuna-7B-v1.5 0.046
        Vicuna-13B-v1.5 0.469
        LongAlign-7B 0.409
        LongAlign-13B 0.413
        """,
    ),
    "table11": (
        _SINGLE,
        """
        GPT-3.5 7.04 7.44 7.24
        GPT-4 8.21 8.39 8.30
        GPT-4o 8.50 8.44 8.47
        LongAlpaca-7B 5.89 5.60 5.75
        LongAlpaca-13B 6.17 6.25 6.21
        LongChat-7B-v1.5 6.60 5.78 6.19
        Vicuna-7B-v1.5 5.42 5.61 5.51
        Vicuna-13B-v1.5 5.92 6.52 6.22
        LongAlign-7B 6.11 6.46 6.28
        LongAlign-13B 6.27 6.33 6.30
        LLaMA-3-8B-Instruct-262K 6.83 6.51 6.67
        Phi-3-Small-128K-Instruct 7.37 7.34 7.36
        """,
    ),
    "table12": (
        ("ICC",),
        """
        01 0.872
        02 0.964
        03 0.912
        04 0.941
        05 0.906
        06 0.940
        07 0.936
        08 0.942
        all 0.965
        """,
    ),
}

_PEARSON: Final = {("GPT-4", "Gold Human"): 0.82, ("GPT-4", "Silver Human"): 0.78, ("Gold Human", "Silver Human"): 0.89}
"""Figure 2(b), as far as the text gives its numbers (section 6.2)."""


@cache
def _load_figures() -> dict[tuple[str, str, str], float]:
    found = {
        (table, row, column): float(value)
        for table, (columns, text) in _TABLES.items()
        for row, *values in (line.split() for line in text.strip().splitlines())
        for column, value in zip(columns, values, strict=True)
        if value != "-"
    }
    both_ways = {pair: value for (a, b), value in _PEARSON.items() for pair in ((a, b), (b, a))}
    return found | {("pearson", a, b): value for (a, b), value in both_ways.items()}


def printed_figure(table: str, row: str, column: str) -> float | None:
    """Return the figure in a cell of one of the paper's tables; None if the paper prints none."""
    return _load_figures().get((table, row, column))


def table_rows(table: str) -> list[str]:
    """Return the rows of one of the paper's tables, in its order."""
    return list(dict.fromkeys(row for name, row, _ in _load_figures() if name == table))
