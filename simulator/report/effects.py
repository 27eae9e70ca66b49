"""What experiments show, as a report shows it: a sentence, and a table of the tests with their two scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

from longspan.simulator.base.tables import Table
from longspan.simulator.grading.effects import Effect
from longspan.simulator.grading.grades import Result

__all__ = ["ShownEffect", "effects"]


@final
class ShownEffect(NamedTuple):
    """What experiments of a kind show: `explained` says how they are played."""

    name: str
    explained: str
    sentence: str
    table: Table


def effects(result: Result) -> Iterator[ShownEffect]:
    """Yield what each kind of experiment of a run shows."""
    if result.twins is not None:
        how = "Each of these tests was played a second time in the same conversation, with small talk in the place of its needles."
        yield ShownEffect("Twins", how, result.twins.sentence, _table("Twins", "without needles", result.twins))
    if result.lesions is not None:
        left = f"the last {result.lesions.tokens or 0:,} tokens"
        how = f"Each question of these tests was asked again, of an agent that knew {left} before it and nothing else."
        yield ShownEffect("Lesions", how, result.lesions.sentence, _table("Lesions", "with these alone", result.lesions))


def _table(title: str, without: str, effect: Effect) -> Table:
    rows = [
        [row.test, _figure(row.score), _figure(row.score_without), "" if row.turn is None else str(row.turn), row.reason]
        for row in effect.tests
    ]
    return Table(title=title, columns=["test", "score", without, "from turn", "why"], rows=rows, heads=4)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
