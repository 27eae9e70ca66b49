"""A dry run: simulates a conversation's schedule to predict its length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, final

from longspan.simulator.base.clock import VirtualClock
from longspan.simulator.base.nights import morning_after
from longspan.simulator.contract.scenario import Test
from longspan.simulator.play.conductor import CHARGE, End, Fill, Speak
from longspan.simulator.play.setting import OPENING, Setting

__all__ = ["Length", "dry_run"]


@final
class Length(NamedTuple):
    """The length of a conversation: its charged tokens, and the number of turns that the agent answers."""

    tokens: int
    asked: int


def dry_run(setting: Setting, tests: Iterable[Test]) -> Length:
    """Estimate the length of a conversation. Nothing is said, and filler is assumed to have exactly the requested tokens.

    At large spans this takes a few hundredths of the time to play with an instant agent. At small spans it takes a tenth of a second.
    """
    conductor = setting.conductor(tests)
    clock = VirtualClock(setting.starts_at, setting.pace)
    nights = setting.schedule_nights()
    turns = asked = 0
    if not setting.alone:
        conductor.passes(setting.tokenizer.count(OPENING) + CHARGE)
        turns = asked = 1
        clock.tick()
    while step := conductor.next(turns, clock.now):
        if nights.fall(turns, conductor.position):
            clock.jump(morning_after(clock.now))
            continue
        match step:
            case Speak(state, jump):
                if jump is not None:
                    clock.jump(jump)
                segment = conductor.speaks(state)
                for date in (*segment.told, *[None] * segment.replies):
                    clock.jump(max(clock.now, date or clock.now))
                    clock.tick()
                turns, asked = turns + segment.turns, asked + segment.replies
                conductor.finish_segment(state, turn=turns, now=clock.now)
            case End(state):
                conductor.ends(state)
            case Fill(tokens, is_asked):
                clock.tick()
                turns, asked = turns + 1, asked + is_asked
                conductor.passes(tokens + CHARGE if is_asked else setting.filler.share(tokens))
    return Length(conductor.position, asked)
