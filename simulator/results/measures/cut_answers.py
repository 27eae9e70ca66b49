"""Answers that were cut off, according to the agent's traces: at the maximum number of tokens, or because of endless repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.base.integers import is_finite
from longspan.simulator.journal.events import Event
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["CutAnswers"]

AT: Final = "cut_at_max_tokens"
REPEATED: Final = "cut_for_repetition"
MOST: Final = "cut_tokens"
ANSWERS: Final = "answers"
"""The names of the figures. Agents that never report a cut have none."""


@final
class CutAnswers(Measure):
    """How many of a conversation's answers were cut, and why (`cut` in traces)."""

    name = "cut_answers"

    def __init__(self) -> None:
        self.answers = self.at_max = self.repeated = self.tokens = 0

    def fold(self, event: Event, change: Change) -> None:
        """Count an answer."""
        if not isinstance(change, PlayedTurn) or change.reply is None or not change.reply.asked:
            return
        self.answers += 1
        cut = (change.reply.trace or {}).get("cut")
        if not isinstance(cut, Mapping):
            return
        if cut.get("by") == "repetition":
            self.repeated += 1
        elif cut.get("by") == "max_tokens":
            self.at_max += 1
            tokens = cut.get("tokens")
            self.tokens = max(self.tokens, int(tokens) if is_finite(tokens) else 0)

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        own = [read[id] for id in run.manifest.conversations if id in read]
        at_max, repeated = sum(each.at_max for each in own), sum(each.repeated for each in own)
        if not at_max + repeated:
            return {}
        figures = {AT: at_max, REPEATED: repeated, ANSWERS: sum(each.answers for each in own)}
        most = max(each.tokens for each in own)
        return figures | ({MOST: most} if most else {})

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        figures = {name: int(result.metrics.get(name, 0)) for name in (AT, REPEATED, ANSWERS, MOST)}
        told = _describe_cut(figures)
        return Document(notices=[Sentence(told, "Cut", "warning")] if told else [])


def _describe_cut(figures: Mapping[str, int]) -> str:
    """Describe how many answers were cut; an empty string if none was."""
    at_max, repeated, answers = figures[AT], figures[REPEATED], figures[ANSWERS]
    parts = []
    if at_max:
        tokens = f"{figures[MOST]:,} tokens" if figures[MOST] else "their maximum number of tokens"
        parts.append(f"{at_max:,} of {answers:,} answers {'was' if at_max == 1 else 'were'} cut at {tokens}")
    if repeated:
        of = f"{repeated:,}" if at_max else f"{repeated:,} of {answers:,} answers"
        parts.append(
            f"{of} repeated {'itself' if repeated == 1 else 'themselves'} without end and {'was' if repeated == 1 else 'were'} stopped"
        )
    return "; ".join(parts)
