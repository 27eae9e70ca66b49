"""Summaries of the answers to questions about histories: figures and tables by kind of question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Item, Marked

__all__ = ["echoes", "figures", "labels", "tables_of"]

YES: Final = "yes"
KINDLESS: Final = "-"


def labels(benchmark: str, history: str, kind: str, *, counts: bool, answerable: bool) -> dict[str, str]:
    """Return the labels of a question's item. Figures and tables group by them."""
    return {
        "benchmark": benchmark,
        "history": history,
        "kind": kind or KINDLESS,
        "counts": YES if counts else "no",
        "answerable": YES if answerable else "no",
    }


def figures(tests: Sequence[Marked]) -> dict[str, float]:
    """Return the mean scores of a run's questions, without those that have no score, by name.

    Each kind of question has one; `mean over kinds` is the mean over the kinds that count; `overall with KIND` is over all questions, if
    some of them do not count; `abstention` is over the questions without an answer, if their kinds have others too. Further numbers of the
    items that count are averaged.
    """
    items = [item for test in tests for item in test.items if item.score is not None and "kind" in item.labels]
    found: dict[str, float] = {}
    kinds = _grouped(items)
    counted = [item for item in items if item.labels["counts"] == YES]
    if len(kinds) > 1:
        found |= {kind: _mean(each) for kind, each in kinds.items()}
    if len(by_kind := _grouped(counted)) > 1:
        found["mean over kinds"] = fmean(map(_mean, by_kind.values()))
    if counted and len(counted) < len(items):
        found[f"overall with {' and '.join(kind for kind in kinds if kind not in by_kind)}"] = _mean(items)
    unknown = [item for item in items if item.labels["answerable"] != YES]
    if any(_mixed(each) for each in kinds.values()):
        found["abstention"] = _mean(unknown)
    names = dict.fromkeys(name for item in counted for name in item.numbers)
    return found | {name: fmean(item.numbers[name] for item in counted if name in item.numbers) for name in names}


def tables_of(title: str, runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return a table of the mean scores by kind of question over the tests of some runs; none if no question has a score."""
    by_run = {run: _grouped(item for test in tests for item in test.items if "kind" in item.labels) for run, tests in runs.items()}
    kinds = sorted({kind for each in by_run.values() for kind in each})
    if not kinds or not any(_scored(items) for each in by_run.values() for items in each.values()):
        return []
    rows, shades = [], []
    for run, each in by_run.items():
        scored = [_scored(each.get(kind, [])) for kind in kinds]
        means = [_mean(items) if items else None for items in scored]
        rows.append([run, *("-" if mean is None else f"{mean:.2f} ({len(items)})" for mean, items in zip(means, scored, strict=True))])
        shades.append([None, *means])
    note = "In brackets: questions with a score."
    return [Table(title=f"{title}: scores by kind of question", columns=["run", *kinds], rows=rows, shades=shades, note=note)]


def echoes(runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return a table of how much of the token F1 of some runs repeating the question would earn, and how much rests on words of the
    questions; none if no question is graded by it."""
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
        "Floor: what a reply earns that only repeats the question. Echoed: how much of the F1 rests on words of the question. "
        "Shared: the share of the replies' words that are the question's."
    )
    return [Table(title="Token F1, and words of the question", columns=columns, rows=rows, note=note)] if rows else []


def _grouped(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.labels["kind"], []).append(item)
    return dict(sorted(found.items()))


def _mixed(items: Sequence[Item]) -> bool:
    return len({item.labels["answerable"] for item in items}) > 1


def _scored(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.score is not None]


def _mean(items: Iterable[Item]) -> float:
    return fmean(item.score for item in items if item.score is not None)
