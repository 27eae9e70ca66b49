"""Summarise answers to questions about histories in metrics and tables by kind of question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item, Marked

__all__ = ["echo_tables", "item_labels", "mean_scores", "tables_of"]

YES: Final = "yes"
KINDLESS: Final = "-"


def item_labels(benchmark: str, history: str, kind: str, *, counts: bool, answerable: bool) -> dict[str, str]:
    """Return the labels of a question's item. Metrics and tables group by them."""
    return {
        "benchmark": benchmark,
        "history": history,
        "kind": kind or KINDLESS,
        "counts": YES if counts else "no",
        "answerable": YES if answerable else "no",
    }


def mean_scores(tests: Sequence[Marked]) -> dict[str, float]:
    """Return the mean scores of a run's questions by name, ignoring questions without a score.

    Each kind of question has a mean. `mean over kinds` averages the kinds that count. `overall with KIND` covers all questions, if some
    do not count. `abstention` covers questions without an answer, if their kinds also include others. The items' further numbers are
    averaged too.
    """
    items = [item for test in tests for item in test.items if item.score is not None and "kind" in item.labels]
    found: dict[str, float] = {}
    kinds = _group_by_kind(items)
    counted = [item for item in items if item.labels["counts"] == YES]
    if len(kinds) > 1:
        found |= {kind: _mean(each) for kind, each in kinds.items()}
    if len(by_kind := _group_by_kind(counted)) > 1:
        found["mean over kinds"] = fmean(map(_mean, by_kind.values()))
    if counted and len(counted) < len(items):
        found[f"overall with {' and '.join(kind for kind in kinds if kind not in by_kind)}"] = _mean(items)
    unknown = [item for item in items if item.labels["answerable"] != YES]
    if any(_is_mixed(each) for each in kinds.values()):
        found["abstention"] = _mean(unknown)
    names = dict.fromkeys(name for item in counted for name in item.numbers)
    return found | {name: fmean(item.numbers[name] for item in counted if name in item.numbers) for name in names}


def tables_of(title: str, runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return a table of mean scores by kind of question for some runs; empty if no question has a score."""
    by_run = {run: _group_by_kind(item for test in tests for item in test.items if "kind" in item.labels) for run, tests in runs.items()}
    kinds = sorted({kind for each in by_run.values() for kind in each})
    if not kinds or not any(_keep_scored(items) for each in by_run.values() for items in each.values()):
        return []
    rows, shades = [], []
    for run, each in by_run.items():
        scored = [_keep_scored(each.get(kind, [])) for kind in kinds]
        means = [_mean(items) if items else None for items in scored]
        rows.append([run, *("-" if mean is None else f"{mean:.2f} ({len(items)})" for mean, items in zip(means, scored, strict=True))])
        shades.append([None, *means])
    note = "In brackets: questions with a score."
    return [Table(title=f"{title}: scores by kind of question", columns=["run", *kinds], rows=rows, shades=shades, note=note)]


def echo_tables(runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return a table that shows how much token F1 comes from words of the question; empty if no question is graded by token F1."""
    rows = []
    for run, tests in runs.items():
        items = [item for test in tests for item in test.items if "floor" in item.numbers and item.labels.get("counts") == YES]
        f1, floor, echoed, shared = (
            fmean(item.numbers[name] for item in items) if items else 0.0 for name in ("f1", "floor", "echoed f1", "shared words")
        )
        if items:
            share = f" ({echoed / f1:.0%})" if f1 else ""
            rows.append([run, f"{f1:.3f}", f"{floor:.3f}", f"{echoed:.3f}{share}", f"{shared:.0%}"])
    columns = ["run", "token F1", "floor", "echoed", "shared"]
    note = (
        "Floor: the score of a reply that only repeats the question. Echoed: the part of the F1 that comes from words of the question. "
        "Shared: the share of the replies' words that occur in the question."
    )
    return [Table(title="Token F1, and words of the question", columns=columns, rows=rows, note=note)] if rows else []


def _group_by_kind(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.labels["kind"], []).append(item)
    return dict(sorted(found.items()))


def _is_mixed(items: Sequence[Item]) -> bool:
    return len({item.labels["answerable"] for item in items}) > 1


def _keep_scored(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.score is not None]


def _mean(items: Iterable[Item]) -> float:
    return fmean(item.score for item in items if item.score is not None)
