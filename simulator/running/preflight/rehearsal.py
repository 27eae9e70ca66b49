"""Plays one test without an agent, a journal or a conductor, for authors of scenarios.

rehearsal = rehearse(Colours(), seed=1, reply=lambda text, ideal: ideal)
assert rehearsal.grade.score == 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final, final

from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.contract.graded_record import Award, Exchange, Grade, Record, grade_view, readable_part
from longspan.simulator.contract.messages import Turn
from longspan.simulator.contract.scenario import Scenario, Test
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.contract.stage import AskJudge, Say, Stage, Tell, Verdict, Wait, Watch

__all__ = ["Rehearsal", "rehearse", "rehearse_test"]

BETWEEN: Final = 3
"""The number of other turns shown to a test that watches until its next segment."""

ReplyTo = Callable[[str, str], str]
"""Returns the reply to a message, given the message and its ideal reply."""


@final
@dataclass(frozen=True, slots=True)
class Rehearsal:
    script: Script
    record: Record
    grade: Grade


@final
class _Conversation:
    """The minimum that a Stage needs: time, turns, and responses to its requests."""

    def __init__(self, outline: Sequence[Segment], reply: ReplyTo) -> None:
        self.outline = outline
        self.segment = 0
        self.now = DEFAULT_START
        self.reply = reply
        self.exchanges: list[Exchange] = []
        self.watched: list[Exchange] = []
        self.awards: list[Award] = []
        self.turns = 0

    def exchange(self, test: str | None, text: str, ideal: str, asks: bool, needle: bool) -> Turn:
        turn = self.turn(test, text, self.reply(text, ideal))
        if test is not None:
            self.exchanges.append(Exchange(turn.number, text, turn.reply, asks, needle, sent_at=turn.sent_at))
        return turn

    def tell(self, test: str, told: Tell) -> None:
        self.now = max(self.now, told.at or self.now)
        turn = self.turn(test, told.text, told.reply, asked=False)
        self.exchanges.append(Exchange(turn.number, told.text, turn.reply, needle=told.needle, told=True, sent_at=turn.sent_at))

    def turn(self, test: str | None, text: str, reply: str, *, asked: bool = True) -> Turn:
        turn = Turn(self.turns, test, text, readable_part(reply), self.now, start=0, end=0, asked=asked)
        self.turns += 1
        self.now += DEFAULT_PACE
        return turn

    def go_on(self) -> None:
        """Advance to the next segment."""
        self.segment += 1
        self.now += self.outline[self.segment].pause if self.segment < len(self.outline) else timedelta(0)

    def respond(self, test: str, request: object) -> Any:
        match request:
            case Say():
                return self.exchange(test, request.text, request.ideal, request.asks, request.needle).reply
            case Tell():
                return self.tell(test, request)
            case Wait():
                self.go_on()
                return None
            case Watch():
                if request.until is None and self.outline[self.segment].watch == "next" and request.count > BETWEEN:
                    self.go_on()
                    return None
                if request.until is None and request.turn >= 100:
                    return None
                ideal = '["so", "so"]'
                amended = request.amend(request.count, ideal) if request.amend else ideal
                turn = self.exchange(None, "Something else entirely.", amended, asks=False, needle=False)
                self.watched.append(grade_view(turn))
                return turn
            case AskJudge():
                return Verdict(None, "a rehearsal has no judge")
            case _:
                raise ScenarioError(f"a test may await only its Stage, not {request!r}")


def rehearse(scenario: Scenario, *, seed: int, reply: ReplyTo) -> Rehearsal:
    """Make the scenario's test from `seed`, play it against `reply` and grade it. Waits take no time."""
    script = scenario.make(Random(f"{scenario.name}/{seed}"))
    return rehearse_test(Test(f"{scenario.name}-1", scenario, script, seed=str(seed), order=0), reply)


def rehearse_test(test: Test, reply: ReplyTo) -> Rehearsal:
    """Play a ready test against `reply` and grade it. Waits take no time."""
    conversation = _Conversation(test.script.segments(len, "uniform"), reply)

    def award(points: float, why: str) -> None:
        conversation.awards.append(Award(points, why, conversation.turns - 1))

    stage = Stage(test.script, test.seed, conversation, award)
    play = test.scenario.play(stage)
    response: Any = None
    while True:
        try:
            request = play.send(response)
        except StopIteration:
            break
        response = conversation.respond(test.id, request)
    record = Record(conversation.exchanges, conversation.watched, conversation.awards)
    return Rehearsal(test.script, record, test.scenario.grade(test.script.facts, record))
