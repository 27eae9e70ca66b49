"""A history with the questions that were selected for it by the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, final

from longspan.scenarios.histories.history import History, Question
from longspan.scenarios.histories.posed_questions import AskedQuestion
from longspan.scenarios.histories.telling import ToldTurn, format_moment, places_by_turn, tell_turns
from longspan.scenarios.shared.digests import hash_texts
from longspan.simulator.contract.script import Line, Script

__all__ = ["PickedHistory", "PickedQuestion"]

UNDATED: Final = timedelta(days=1)
"""Time between sessions of a history without dates."""


@final
class PickedQuestion(NamedTuple):
    """A selected question: its index in the history, its wording, and whether it counts towards the score."""

    number: int
    question: Question
    asked: AskedQuestion
    counts: bool

    @property
    def facts(self) -> dict[str, Any]:
        return self.asked.facts | {"counts": self.counts}


@final
class PickedHistory(NamedTuple):
    """A history as it is told, with the questions to ask about it.

    `at`: the index in `told` of each of the history's turns. `needles`: for each index with evidence, its number among the needles.
    `recorded`: a digest of the history, or None if it is generated and thus identified by its seed.
    """

    history: History
    told: Sequence[ToldTurn]
    asked: Sequence[PickedQuestion]
    facts: dict[str, Any]
    at: Mapping[str, int]
    needles: Mapping[int, int]
    recorded: str | None

    @classmethod
    def of(cls, history: History, asked: Sequence[PickedQuestion], facts: dict[str, Any], *, made_up: bool) -> PickedHistory:
        told = tell_turns(history)
        recorded = None if made_up else hash_texts(part for turn in told for part in (turn.message, turn.reply, str(turn.at)))
        return cls(history, told, asked, facts, at := places_by_turn(told), _needles(at, asked), recorded)

    def only(self, one: PickedQuestion) -> PickedHistory:
        """Return the history with only one of its questions."""
        return self._replace(asked=[one], needles=_needles(self.at, [one]))

    def lines(self, *, dated: bool = False) -> list[Line]:
        """Return the history's turns as lines. Those that a question needs are needles. `dated`: begin each session with its date."""
        undated = all(told.at is None for told in self.told)
        lines = []
        for place, told in enumerate(self.told):
            follows = place > 0 and self.told[place - 1].session == told.session
            pause = UNDATED if undated and place > 0 and not follows else timedelta(0)
            text = f"({format_moment(told.at)}) {told.message}" if dated and told.at else told.message
            needle = place in self.needles
            lines.append(Line(text, reply=told.reply, sent_at=told.at, needle=needle, together=follows, pause=pause))
        return lines

    def line(self, one: PickedQuestion) -> Line:
        """Return the line that asks a question after the history. It needs the needles with the question's evidence."""
        needs = tuple(sorted({self.needles[self.at[turn]] for turn in one.question.evidence}))
        return Line(one.asked.text, ideal=one.asked.ideal, asks=True, needs=needs)

    def script(self, one: PickedQuestion, lines: Sequence[Line]) -> Script:
        """Return the script of a test with one question."""
        tags = (one.question.kind,) if one.question.kind else ()
        return Script(facts=self.facts | one.facts, lines=lines, alone=True, tags=tags, counts=one.counts, recorded=self.recorded)


def _needles(at: Mapping[str, int], asked: Sequence[PickedQuestion]) -> Mapping[int, int]:
    needed = sorted({at[turn] for one in asked for turn in one.question.evidence})
    return {place: number for number, place in enumerate(needed)}
