"""The gate on the share of full marks (`--fail-under`)."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result, recall_of

__all__ = ["name_low_scores"]


def name_low_scores(graded: Iterable[tuple[RunFolder, Result]], required: float) -> list[str]:
    """Return a sentence for each agent and span with a mean share of full marks below `required`, which is in [0, 1].

    A memory that only searches has no score, so its recall counts instead.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for run, result in graded:
        where = result.agent if run.manifest.alone else f"{result.agent} at {result.span:,} tokens"
        by = f" by {result.measured}" if result.measured != "score" else ""
        groups.setdefault((where, by), []).append(result)
    low = []
    for (where, by), found in groups.items():
        recall = recall_of(found)
        share = fmean(each.score_bounds[0] / each.full for each in found) if recall is None else recall
        # A mean of scores can miss a share such as 0.7 by a rounding error alone.
        if share < required - 1e-9:
            what = f"scores {share:.1%} of full marks{by}" if recall is None else f"finds {share:.1%} of the evidence"
            low.append(f"{where} {what}, less than --fail-under {required:g}")
    return low
