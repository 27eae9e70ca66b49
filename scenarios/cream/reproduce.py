"""Reproduce the paper's rankings: the printed scores of each pair, rated by our Elo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple, final

from longspan.scenarios.cream.elo import Match, match_points, rate_systems
from longspan.scenarios.cream.published import BASELINES, EVALUATORS, LENGTHS, MODELS, ORDER, PAIRS, RANKED, Setting
from longspan.simulator.base.tables import Table
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["reproduce"]

PAPER: Final = "cream"

CORRELATION: Final = 1.0
"""Rank correlation of the paper's rankings with human ones, as stated for both metrics (Table 5)."""

BASELINE: Final = 0.5
"""Rank correlation of the baseline judged by GPT-4o, as stated."""

READING: Final = (
    "A cell is read as the score of its row's model against the column's. The paper's sentence about the table says that a cell "
    "scores the column's model; then GPT-4 would be the most complete and GPT-4o the most concise, against all of the paper's "
    "conclusions. Elo: K = 32, start 1000, the higher score wins, one match for each pair: GPT-3.5 v GPT-4, GPT-3.5 v GPT-4o, "
    "GPT-4 v GPT-4o."
)


@final
class _SettingRatings(NamedTuple):
    """A setting's ratings, and the ratings by all six orders of its three matches."""

    ratings: dict[str, float]
    others: list[dict[str, float]]


@final
class _Reproduce:
    """The reproduction. It needs no files: the paper prints the scores behind its rankings."""

    needs_paths = False

    def __call__(self, paths: Sequence[Path], rules: Rules) -> Reproduction:
        """Reproduce tables 1, 3, 4 and 5, as far as they follow from each other."""
        rated = {setting: _rate_models(scores) for setting, scores in PAIRS.items()}
        cells = [*_elo(rated), *_ranks(rated), *_correlations(rated), *_baselines(), *_lengths()]
        return Reproduction(cells=cells, tables=[_elo_table(rated), _follows(rated), _baseline_table(), _length_table()])


reproduce: Final = _Reproduce()


def _matches(scores: Mapping[tuple[str, str], float], pairs: Iterable[tuple[str, str]]) -> list[Match]:
    return [Match(first, second, match_points(scores[first, second], scores[second, first])) for first, second in pairs]


def _rate_models(scores: Mapping[tuple[str, str], float]) -> _SettingRatings:
    return _SettingRatings(
        rate_systems(_matches(scores, ORDER), MODELS), [rate_systems(_matches(scores, order), MODELS) for order in permutations(ORDER)]
    )


def _places(values: Mapping[str, float]) -> dict[str, float]:
    """Return the ranks, the highest value first. Equal values share the mean of their ranks."""
    return {
        name: 1 + sum(other > value for other in values.values()) + (sum(other == value for other in values.values()) - 1) / 2
        for name, value in values.items()
    }


def _correlation(places: Mapping[str, float], others: Mapping[str, float]) -> float | None:
    """Return Pearson's r of two rankings; None if all ranks are equal in one of them."""
    one, two = ([ranking[name] - fmean(ranking.values()) for name in MODELS] for ranking in (places, others))
    spread = sum(a * a for a in one) * sum(b * b for b in two)
    return sum(a * b for a, b in zip(one, two, strict=True)) / spread**0.5 if spread else None


# ---- cells


def _cell(table: str, row: str, column: str, ours: float | None, n: int, published: float | None = None) -> Cell:
    return Cell(paper=PAPER, table=table, row=row, column=column, ours=None if ours is None else round(ours, 3), published=published, n=n)


def _elo(rated: Mapping[Setting, _SettingRatings]) -> Iterable[Cell]:
    for setting, result in rated.items():
        for model, rating in result.ratings.items():
            yield _cell("elo", model, str(setting), rating, len(ORDER))


def _ranks(rated: Mapping[Setting, _SettingRatings]) -> Iterable[Cell]:
    for setting, result in rated.items():
        for model, place in _places(result.ratings).items():
            yield _cell("rank", model, str(setting), place, len(ORDER), RANKED[setting.metric][model] if setting.facts == 16 else None)


def _gold(setting: Setting) -> dict[str, float]:
    """Return the ranks by human key facts (Table 1, first column)."""
    return _places({model: values[0] for model, values in BASELINES[setting].items()})


def _correlations(rated: Mapping[Setting, _SettingRatings]) -> Iterable[Cell]:
    for setting, result in rated.items():
        correlation = _correlation(_places(result.ratings), _gold(setting))
        yield _cell("rank_correlation", "CREAM", str(setting), correlation, len(MODELS), CORRELATION if setting.facts == 16 else None)


def _baselines() -> Iterable[Cell]:
    for setting, by_model in BASELINES.items():
        for at, evaluator in enumerate(EVALUATORS, 1):
            correlation = _correlation(_places({model: values[at] for model, values in by_model.items()}), _gold(setting))
            stated = BASELINE if evaluator == "transcript, GPT-4o" and setting.facts == 16 else None
            yield _cell("rank_correlation", evaluator, str(setting), correlation, len(MODELS), stated)


def _lengths() -> Iterable[Cell]:
    for setting, scores in LENGTHS.items():
        for length, rating in rate_systems(_matches(scores, [("short", "long")]), ("short", "long")).items():
            yield _cell("elo_lengths", length, str(setting), rating, 1)


# ---- tables


def _elo_table(rated: Mapping[Setting, _SettingRatings]) -> Table:
    rows = []
    for model in MODELS:
        row = [model]
        for result in rated.values():
            ratings = [other[model] for other in result.others]
            row.append(f"{result.ratings[model]:.3f} [{min(ratings):.1f}, {max(ratings):.1f}]")
        rows.append(row)
    title = "Elo from the scores of Table 3 [over all six orders of the matches]"
    return Table(title=title, columns=["system", *map(str, rated)], rows=rows, note=READING)


def _follows(rated: Mapping[Setting, _SettingRatings]) -> Table:
    """Return the table of rankings of Table 5 that can be derived."""
    rows = []
    for setting, result in rated.items():
        ours, printed = _format_ranking(_places(result.ratings)), _format_ranking(RANKED[setting.metric])
        changing = len({_format_ranking(_places(other)) for other in result.others}) > 1
        rows.append([str(setting), ours, printed, "yes" if ours == printed else "no", _why(setting), "yes" if changing else "no"])
    columns = ["setting", "by our Elo", "Table 5 (16 facts)", "follows", "why", "order matters"]
    note = (
        "Elo only counts who won, not by how much; by the mean of each model's scores the ranking of completeness is as printed. "
        "Table 5 gives GPT-3.5's completeness by people as 54.8%, which is that of 30 facts in Table 1; at 16 it is 56.2%. The ranks "
        "are the same."
    )
    return Table(title="Which published ranking follows from the published scores", columns=columns, rows=rows, note=note)


def _format_ranking(places: Mapping[str, float]) -> str:
    return " > ".join(sorted(places, key=places.__getitem__))


def _why(setting: Setting) -> str:
    """Return why a ranking differs from the paper's: the pair that decides it, and its mean scores."""
    scores, printed = PAIRS[setting], RANKED[setting.metric]
    for first, second in ORDER:
        upper, lower = sorted((first, second), key=printed.__getitem__)
        if scores[upper, lower] < scores[lower, upper]:
            means = {model: fmean(score for (row, _), score in scores.items() if row == model) for model in (upper, lower)}
            return (
                f"{lower} beats {upper} head to head, {scores[lower, upper]} to {scores[upper, lower]}%; by the mean of its scores "
                f"{upper} has {means[upper]:.2f} and {lower} {means[lower]:.2f}%"
            )
    return "each pair is won by the model ranked first in print"


def _baseline_table() -> Table:
    by_row: dict[str, list[str]] = {}
    for cell in (*_correlations({setting: _rate_models(scores) for setting, scores in PAIRS.items()}), *_baselines()):
        text = "all equal" if cell.ours is None else f"{cell.ours:.2f}"
        by_row.setdefault(cell.row, []).append(text if cell.published is None else f"{text} (stated: {cell.published})")
    rows = [[row, *values] for row, values in by_row.items()]
    note = (
        "For the baseline, 0.5 follows for completeness with the transcript and GPT-4o; its ranking of conciseness is the same as people's."
    )
    title = "Rank correlation with human key facts (tables 1 and 5)"
    return Table(title=title, columns=["ranking", *map(str, PAIRS)], rows=rows, note=note)


def _length_table() -> Table:
    rows = []
    for length, other in (("short", "long"), ("long", "short")):
        rated = [rate_systems(_matches(scores, [("short", "long")]), ("short", "long"))[length] for scores in LENGTHS.values()]
        cells = [f"{rating:.0f} ({scores[length, other]}%)" for rating, scores in zip(rated, LENGTHS.values(), strict=True)]
        rows.append([length, *cells])
    note = "At 30 facts the short summaries come out as the more complete ones, by 0.4 points; at 16 the long ones."
    title = "Elo from the scores of Table 4: the authors' own meetings"
    return Table(title=title, columns=["summaries", *map(str, LENGTHS)], rows=rows, note=note)
