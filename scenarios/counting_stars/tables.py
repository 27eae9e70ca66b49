"""Tables over stars: a heatmap of context lengths by stars, means by length and by position, and tests for lost stars.

The unit is a star of a test: its position, and whether the answer contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple, TypeVar, final

from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Marked

__all__ = ["Star", "star_tables"]

Key = TypeVar("Key")

RESAMPLES: Final = 9_999
"""Number of random sign patterns to try if there are too many to try all."""

THIRD: Final = 3
"""The middle is the second third of the sky, the tail the last one."""


@final
class Star(NamedTuple):
    """A star: its context's name and length in tokens (0: unknown), its number among the test's `stars`, and its scores."""

    context: str
    length: int
    number: int
    stars: int
    score: float
    membership: float
    slot: float
    test: str


def star_tables(runs: Mapping[str, Sequence[Marked]]) -> list[Table]:
    """Return the tables of one run, or of several side by side."""
    stars = {run: run_stars for run, tests in runs.items() if (run_stars := list(_stars(tests)))}
    if not stars:
        return []
    heatmaps = [_heatmap(run_stars, run) for run, run_stars in stars.items()]
    return [
        *heatmaps,
        _means("Stars by context length", "context", stars, lambda star: star.context, lambda star: (star.length, star.context)),
        _means("Stars by position", "star", stars, lambda star: str(star.number), lambda star: (star.number, "")),
        _losses_table(stars),
    ]


def _stars(tests: Sequence[Marked]) -> Iterable[Star]:
    for test in tests:
        for item in test.items:
            if item.score is not None:
                numbers = item.numbers
                yield Star(
                    context=item.labels.get("context", test.test),
                    length=int(numbers.get("context", 0)),
                    number=int(numbers["star"]),
                    stars=int(numbers["stars"]),
                    score=item.score,
                    membership=numbers["membership"],
                    slot=numbers["slot"],
                    test=test.test,
                )


def _heatmap(stars: Sequence[Star], run: str) -> Table:
    """Return the mean score of each star at each context length, with the paper's axes: stars down, lengths across (Figure 3)."""
    lengths = _group_stars(sorted(stars, key=lambda star: (star.length, star.context)), lambda star: star.context)
    cells = {
        place: fmean(star.score for star in group) for place, group in _group_stars(stars, lambda star: (star.number, star.context)).items()
    }
    numbers = range(1, max(star.number for star in stars) + 1)
    rows = [[cells.get((number, length)) for length in lengths] for number in numbers]
    of_stars = _group_stars(stars, lambda star: star.number)
    means = [_mean(star.score for star in of_stars.get(number, ())) for number in numbers]
    return Table(
        title=f"Stars found: {run}, {fmean(star.score for star in stars):.3f}",
        columns=["star", *lengths, "mean"],
        across="context",
        rows=[[str(number), *map(_short, row), mean] for number, row, mean in zip(numbers, rows, means, strict=True)],
        shades=[[None, *row, None] for row in rows],
        note="A row for each star, in the order of the text; a column for each context length (in tokens; for published files of "
        "unknown texts, as they give it) or test.",
    )


def _mean(scores: Iterable[float]) -> str:
    known = list(scores)
    return f"{fmean(known):.3f}" if known else ""


def _short(value: float | None) -> str:
    """Return a score in few characters, since a heatmap has many cells."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _means(
    title: str,
    head: str,
    runs: Mapping[str, Sequence[Star]],
    name: Callable[[Star], str],
    order: Callable[[Star], tuple[int, str]],
) -> Table:
    """Return mean scores of groups of stars, by `name` and in `order`, and of all stars.

    For one run these are membership and slot, for several their scores.
    """
    names = list(_group_stars(sorted((star for stars in runs.values() for star in stars), key=order), name))
    groups = {run: _group_stars(stars, name) | {"all": list(stars)} for run, stars in runs.items()}
    if len(runs) == 1:
        (known,) = groups.values()
        both = [(fmean(star.membership for star in known[each]), fmean(star.slot for star in known[each])) for each in [*names, "all"]]
        return Table(
            title=title,
            columns=[head, "membership", "slot by slot", "stars"],
            rows=[[each, *(f"{mean:.3f}" for mean in row), f"{len(known[each])}"] for each, row in zip([*names, "all"], both, strict=True)],
            shades=[[None, *row, None] for row in both],
        )
    columns = [head, *runs]
    means = [[fmean(s.score for s in known[each]) if each in known else None for known in groups.values()] for each in [*names, "all"]]
    rows = [[each, *("" if mean is None else f"{mean:.3f}" for mean in row)] for each, row in zip([*names, "all"], means, strict=True)]
    return Table(title=title, columns=columns, rows=rows, shades=[[None, *row] for row in means])


# ---- lost in the middle, lost in the tail


def _losses_table(runs: Mapping[str, Sequence[Star]]) -> Table:
    rows = []
    for run, stars in runs.items():
        for where, inside in (("middle", _middle), ("tail", _tail)):
            rows.append([run, where, *_compare_losses(stars, inside)])
    several = len(runs) > 1
    columns = ["run", "lost in the", "found there", "found elsewhere", "texts", "p"]
    return Table(
        title="Lost in the middle, lost in the tail",
        columns=columns if several else columns[1:],
        rows=rows if several else [row[1:] for row in rows],
        note="The middle is the second third of a text, the tail the last. p: one-tailed permutation test of the difference between "
        "there and elsewhere, text by text; below 0.05 stars are found less often there than chance explains.",
    )


def _middle(star: Star) -> bool:
    return star.stars < THIRD * star.number <= 2 * star.stars


def _tail(star: Star) -> bool:
    return THIRD * star.number > 2 * star.stars


def _compare_losses(stars: Sequence[Star], inside: Callable[[Star], bool]) -> list[str]:
    """Return the mean scores inside and outside, the number of texts with stars in both, and the p-value of the difference."""
    pairs = []
    for group in _group_stars(stars, lambda star: star.test).values():
        there, elsewhere = ([star.score for star in group if inside(star) is wanted] for wanted in (True, False))
        if there and elsewhere:
            pairs.append((fmean(there), fmean(elsewhere)))
    if not pairs:
        return ["", "", "0", "too few stars"]
    differences = [there - elsewhere for there, elsewhere in pairs]
    p = f"{_less(differences):.3g}" if len(pairs) > 1 else "only one text"
    return [f"{fmean(there for there, _ in pairs):.3f}", f"{fmean(elsewhere for _, elsewhere in pairs):.3f}", f"{len(pairs)}", p]


def _less(differences: Sequence[float]) -> float:
    """Return the probability of a mean this low if each difference has a random sign. Exact for few differences."""
    import numpy as np
    from scipy.stats import permutation_test

    found = permutation_test(
        (np.array(differences),),
        lambda sample, axis: np.mean(sample, axis=axis),
        permutation_type="samples",
        alternative="less",
        n_resamples=RESAMPLES,
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def _group_stars(stars: Iterable[Star], key: Callable[[Star], Key]) -> dict[Key, list[Star]]:
    groups: dict[Key, list[Star]] = {}
    for star in stars:
        groups.setdefault(key(star), []).append(star)
    return groups
