"""The list of runs, sorted and grouped."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.simulator.pages.view.run_list import ListedRun
from longspan.simulator.results.analysis.changes import list_changed_options, list_chosen_scenarios
from longspan.simulator.results.analysis.matrix import natural_sort_key

__all__ = ["ORDERS", "Group", "columns_in_names", "group_by_seed", "in_order"]

ORDERS: Final[dict[str, str]] = {
    "changed": "newest first",
    "run": "run",
    "agent": "agent",
    "score": "score",
    "suite": "suite",
    "span": "span",
    "seed": "seed",
    "cost": "cost",
    "state": "state",
}
"""The orders of the list of runs, with their labels. A leading minus reverses an order."""

KEYS: Final[dict[str, Callable[[ListedRun], Any]]] = {
    "changed": lambda entry: -entry.changed,
    "run": lambda entry: natural_sort_key(entry.name),
    "agent": lambda entry: entry.manifest.agent if entry.manifest else "",
    "score": lambda entry: -1.0 if entry.share is None else -entry.share,
    "suite": lambda entry: entry.manifest.suite.name if entry.manifest else "",
    "span": lambda entry: entry.manifest.span if entry.manifest else 0,
    "seed": lambda entry: entry.manifest.seed if entry.manifest else 0,
    "cost": lambda entry: -entry.cost,
    "state": lambda entry: entry.state,
}


@final
class Group(NamedTuple):
    """Runs that differ only in their seeds.

    `share` and `chance` are means over the `scored` runs with results, as shares of full marks. `low` and `high` are the smallest and the
    largest share.
    """

    entries: Sequence[ListedRun]
    scored: int
    share: float
    low: float
    high: float
    chance: float

    @property
    def name(self) -> str:
        """The common beginning of its runs' names, up to their seeds."""
        return re.sub(r"-seed[0-9].*", "", self.entries[0].short) or self.entries[0].short

    @property
    def repeats(self) -> bool:
        """Whether a seed occurs twice."""
        seeds = [entry.manifest.seed for entry in self.entries if entry.manifest is not None]
        return len(set(seeds)) < len(seeds)

    @property
    def settled(self) -> bool:
        """Whether all of its runs are finished."""
        return all(entry.state == "finished" for entry in self.entries)


def in_order(entries: Sequence[ListedRun], order: str) -> list[ListedRun]:
    """Sort entries by one of `ORDERS`, and equal ones by name. They are given most recent first."""
    name = order.removeprefix("-")
    if name not in KEYS:
        return list(entries)
    named = sorted(entries, key=lambda entry: natural_sort_key(entry.name))
    return sorted(named, key=KEYS[name], reverse=order.startswith("-"))


def group_by_seed(entries: Sequence[ListedRun], order: str) -> list[Group]:
    """Group sorted entries by everything but their seeds. A group takes the position of its first entry, or is sorted by its mean score."""
    found: dict[Hashable, list[ListedRun]] = {}
    for entry in entries:
        found.setdefault(_kind(entry), []).append(entry)
    groups = [_group(sorted(group, key=KEYS["seed"])) for group in found.values()]
    if order.removeprefix("-") == "score":
        groups.sort(key=lambda group: -group.share if group.scored else 1.0, reverse=order.startswith("-"))
    return groups


def columns_in_names(entries: Iterable[ListedRun]) -> set[str]:
    """Return the columns whose values are part of every run's name, so that a list need not repeat them."""
    told = {"suite", "span", "seed", "agent"}
    for entry in entries:
        if (manifest := entry.manifest) is not None:
            said = f"-{_plain(entry.short)}-"
            words = {
                "suite": manifest.suite.name,
                "span": "" if manifest.alone else _size(manifest.span),
                "seed": f"seed{manifest.seed}",
                "agent": manifest.labelled,
            }
            told = {column for column in told if f"-{_plain(words[column])}-".replace("--", "-") in said}
    return told


def _size(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens % 1000 == 0 else str(tokens)


def _plain(text: str) -> str:
    """Return text in the form it has in a folder's name."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _kind(entry: ListedRun) -> Hashable:
    if (manifest := entry.manifest) is None:
        return entry.name
    options = (*list_chosen_scenarios(manifest), *list_changed_options(manifest))
    return manifest.suite.name, manifest.span, manifest.labelled, options


def _group(entries: Sequence[ListedRun]) -> Group:
    shares = [entry.share for entry in entries if entry.share is not None]
    chances = [entry.chance / entry.max_score for entry in entries if entry.max_score]
    if not shares:
        return Group(entries, 0, 0.0, 0.0, 0.0, 0.0)
    return Group(entries, len(shares), fmean(shares), min(shares), max(shares), fmean(chances))
