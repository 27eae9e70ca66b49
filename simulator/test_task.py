"""One test at play: its coroutine stepped by hand in a Trio task of its own, so that all it awaits is seen."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import Any, Final, Protocol, final

import trio
from outcome import Error

from longspan.simulator import events
from longspan.simulator.conductor import Part
from longspan.simulator.errors import LongspanError, ScenarioError
from longspan.simulator.script import Placement
from longspan.simulator.stage import AskJudge, Request, Say, Stage, View, Wait, Watch

__all__ = ["House", "Player", "told"]


LAST_CHANCES: Final = 10
"""How often a test that broke the rules is told so before it is closed."""


class House(View, Protocol):
    """The conversation as a player sees it."""

    @property
    def placement(self) -> Placement: ...


@final
@dataclass(slots=True, eq=False)
class Player:
    """Runs one test in a Trio task of its own and hands it the floor and takes it back.

    `request` is what the test wants, None once it has ended; `error` says how where it ended by an error.
    """

    part: Part
    house: House
    request: Request | None = None
    error: str | None = None
    started: bool = False
    spoken: bool = False
    needles: list[int] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    awards: list[events.Award] = field(default_factory=list)
    returned: trio.Semaphore = field(default_factory=partial(trio.Semaphore, 0))
    _floor: trio.Semaphore = field(default_factory=partial(trio.Semaphore, 0))
    _answer: Any = None
    _dismissed: bool = False

    async def resume(self, answer: Any) -> None:
        """Give the test its answer and the floor, and wait until it gives the floor back."""
        self._answer = answer
        self._floor.release()
        await self.returned.acquire()

    async def leave(self) -> None:
        """Make the test end at once, wherever it waits."""
        self.dismiss()
        await self.returned.acquire()

    def dismiss(self) -> None:
        """The same without waiting for it. Harmless where the test has ended or not begun."""
        if self.started and not self._dismissed:
            self._dismissed = True
            self._floor.release()

    async def host(self) -> None:
        """Run the test, from its first line to its end. It never raises an Exception of the test's."""
        test = self.part.test
        try:
            stage = Stage(test.script, test.seed, self.house, self._award, self.house.placement)
            await self._drive(test.scenario.play(stage))
        except _Dismissed:
            pass
        except LongspanError as error:
            self.error = str(error) if isinstance(error, ScenarioError) else told(error)
        except (Exception, SystemExit) as error:
            self.error = told(error)
        self._dismissed = True
        self.request = None
        self.returned.release()

    def _award(self, points: float, why: str) -> None:
        self.awards.append(events.Award(test=self.part.test.id, turn=self.house.turns - 1, points=points, why=why))

    async def _drive(self, play: Any) -> None:
        """Step through the test's coroutine, so that whatever it awaits is seen: only requests of its Stage are right."""
        step = partial(play.send, None)
        wrong: ScenarioError | _Dismissed | None = None
        chances = LAST_CHANCES
        while chances:
            chances -= wrong is not None
            try:
                wanted = step()
            except StopIteration:
                break
            except Exception as error:
                if wrong is not None and error is not wrong:
                    raise wrong from error
                raise
            if not isinstance(wanted, Say | Wait | Watch | AskJudge):
                wrong = wrong or ScenarioError("a test may await nothing but its Stage")
                outcome = await _forward_cancelled(wanted)
                if not isinstance(outcome, Error):
                    step = partial(play.send, outcome)  # Trio would not let go of it: a nursery, a thread
                    continue
            elif wrong is None:
                try:
                    step = partial(play.send, await self._serve(wanted))
                    continue
                except (ScenarioError, _Dismissed) as error:
                    wrong = error
            step = partial(play.throw, wrong)
        else:
            with suppress(RuntimeError):
                play.close()  # it swallows every error and goes on
        if wrong is not None:
            raise wrong

    async def _serve(self, request: Request) -> Any:
        """Give back the floor with a request, and wait for its answer."""
        self.request = request
        with trio.CancelScope(shield=True):  # only the conversation ends this wait
            self.returned.release()
            await self._floor.acquire()
        if self._dismissed:
            raise _Dismissed
        if trio.current_effective_deadline() == float("-inf"):
            raise ScenarioError("a test must not cancel its Stage calls")
        return self._answer


class _Dismissed(BaseException):
    """The conversation is over for a test. Not an Exception: tests must not catch it by accident."""


@coroutine
def _forward(trap: Any) -> Any:
    return (yield trap)


async def _forward_cancelled(trap: Any) -> Any:
    """Let Trio handle a foreign wait, cancelled at once, so that nothing stays behind that could wake the test later."""
    with trio.CancelScope() as scope:
        scope.cancel()
        return await _forward(trap)


def told(error: BaseException) -> str:
    """An exception of a test in one line, without addresses: the journal must not differ from play to play."""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return re.sub(r" at 0x[0-9a-fA-F]+", "", message)[:500].encode("utf-8", "replace").decode()
