"""The settings of one conversation, and everything that follows from them before the first message."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.base.nights import Nights
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Placement, Segment
from longspan.simulator.filler.filler import Filler
from longspan.simulator.journal import events
from longspan.simulator.play.conductor import CHARGE, Conductor, TestState, cost

__all__ = ["OPENING", "Setting"]

OPENING: Final = (
    "Over the course of this conversation I will bring up many unrelated things: facts about me, small tasks, stories, "
    "questions. Topics will come and go and return much later. Keep in mind what I tell you. Answer questions and follow "
    "instructions with just what they ask for and nothing more; to anything else, a brief acknowledgement will do. "
    "Is that clear?"
)
"""The first message, which explains the situation (GoodAI, section 3.1)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The settings of one conversation.

    `span` is in tokens; `pace` is the virtual time that a turn takes. `isolated`: each test of the run has its own conversation. `alone`:
    this test has one in any run, which begins with the test's first line. `branched`: others branch off at its end, where the agent is
    saved. `pinned`: tests that others branch off at the first needle; the agent is saved there too. `nights`: the number of nights in every
    span, if the conversation has one. `score_farewells`: after its farewell, a test's last question is asked once more, if its scenario
    allows that. `run`: the name of the run in its journal.
    """

    id: str
    run: str | None = None
    span: int
    placement: Placement = "spread"
    isolated: bool = False
    alone: bool = False
    branched: bool = False
    pinned: frozenset[str] = frozenset()
    tokenizer: Tokenizer
    filler: Filler
    starts_at: datetime = DEFAULT_START
    pace: timedelta = DEFAULT_PACE
    nights: int = 0
    score_farewells: bool = False

    def left_out(self, test: Test) -> str | None:
        """Return why a test cannot keep its span even on its own, or None if it can."""
        if test.script.alone or self.isolated:
            return None
        needed = 0
        for segment in test.script.segments(self.tokenizer.count, self.placement):
            needed = max(needed, math.ceil((segment.at or 0) * self.span)) + cost(segment)
        if needed - CHARGE <= self.span:  # a span ends with the last question, not with its reply
            return None
        return f"{test.id} is left out: its script needs about {needed - CHARGE:,} tokens, but the span is {self.span:,}"

    def schedule_nights(self) -> Nights:
        """Return the schedule of nights in a conversation that has not begun."""
        return Nights(0 if self.isolated or self.alone else self.nights, self.span)

    def conductor(self, tests: Iterable[Test]) -> Conductor:
        """Return the conductor of a conversation of `tests` that has not begun."""
        return Conductor(map(self._state, tests), self.span, paced=not (self.isolated or self.alone))

    def farewell(self, test: Test) -> Sequence[tuple[events.MessageKind, str]]:
        """Return the messages of a test when it leaves: none, its farewell, or its farewell and its last question once more."""
        if test.script.farewell is None:
            return ()
        asked = [line.text for line in test.script.lines if line.asks] if self.score_farewells and test.scenario.asks_again else []
        return (("farewell", test.script.farewell), *[("again", text) for text in asked[-1:]])

    def _state(self, test: Test) -> TestState:
        said = [self.tokenizer.count(text) for _, text in self.farewell(test)]
        outline = test.script.segments(self.tokenizer.count, self.placement)
        return TestState(test, outline, Segment(0, sum(said), len(said)) if said else None)
