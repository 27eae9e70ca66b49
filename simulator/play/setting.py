"""The settings of one conversation, and all that follows from them before the first message."""

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
from longspan.simulator.play.conductor import CHARGE, Conductor, TestState, segment_cost

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

    `span` is in tokens. `pace` is the virtual duration of a turn. `isolated`: each test of the run has its own conversation. `alone`: this
    test has its own conversation in any run; it begins with the test's first line. `branched`: others branch off at its end, where the
    agent is saved. `pinned`: tests that others branch off from at the first needle, where the agent is saved too. `nights`: the number of
    nights per span, if the conversation has a span. `score_farewells`: whether to repeat a test's last question after its farewell, if its
    scenario allows that. `run`: the name of the run in its journal.
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

    def reason_to_omit(self, test: Test) -> str | None:
        """Return the reason why a test cannot keep its span even on its own, or None if it can."""
        if test.script.alone or self.isolated:
            return None
        needed = 0
        for segment in test.script.segments(self.tokenizer.count, self.placement):
            needed = max(needed, math.ceil((segment.at or 0) * self.span)) + segment_cost(segment)
        if needed - CHARGE <= self.span:  # a span ends with the last question, not with its reply
            return None
        return f"{test.id} is left out: its script needs about {needed - CHARGE:,} tokens, but the span is {self.span:,}"

    def schedule_nights(self) -> Nights:
        """Return a schedule of nights for a new conversation."""
        return Nights(0 if self.isolated or self.alone else self.nights, self.span)

    def conductor(self, tests: Iterable[Test]) -> Conductor:
        """Return a conductor for a new conversation of `tests`."""
        return Conductor(map(self._state, tests), self.span, paced=not (self.isolated or self.alone))

    def farewell(self, test: Test) -> Sequence[tuple[events.MessageKind, str]]:
        """Return a test's messages when it leaves: none, its farewell, or its farewell and its last question again."""
        if test.script.farewell is None:
            return ()
        asked = [line.text for line in test.script.lines if line.asks] if self.score_farewells and test.scenario.asks_again else []
        return (("farewell", test.script.farewell), *[("again", text) for text in asked[-1:]])

    def _state(self, test: Test) -> TestState:
        said = [self.tokenizer.count(text) for _, text in self.farewell(test)]
        outline = test.script.segments(self.tokenizer.count, self.placement)
        return TestState(test, outline, Segment(0, sum(said), len(said)) if said else None)
