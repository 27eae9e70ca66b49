"""A test as it was played, for Python, terminals and notebooks."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, final

from longspan.simulator.api.markup import preformat
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.excerpts import Excerpt
from longspan.simulator.pages.report.junit import failure_text, sum_seconds
from longspan.simulator.pages.report.run_view import RunView, TestView, TurnView
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.result import TestResult
from longspan.simulator.terminal.console import Console
from longspan.simulator.terminal.played_tests import print_test

__all__ = ["SaidTurn", "ShownTest"]

WIDTH: Final = 110
"""The width of a line of a test's text, in characters."""


@final
class SaidTurn(NamedTuple):
    """One turn of a test: the user's message, the agent's reply or None, and the ideal reply if known."""

    turn: int
    text: str
    reply: str | None
    ideal: str | None = None


@final
class ShownTest:
    """A test in a run: its result, and its needles and questions with the replies. `str()` returns the whole test as text."""

    def __init__(self, run: GradedRun, result: TestResult, reading: Callable[[], RunView]) -> None:
        self._run = run
        self._result = result
        self._reading = reading

    @property
    def id(self) -> str:
        return self._result.id

    @property
    def run(self) -> str:
        """The name of the run's folder."""
        return self._run.name

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._run.folder.path

    @property
    def agent(self) -> str:
        return self._run.agent

    @property
    def seed(self) -> int:
        return self._run.manifest.seed

    @property
    def scenario(self) -> str:
        return self._result.scenario

    @property
    def status(self) -> str:
        """ "scored", or the reason why there is no score."""
        return self._result.status

    @property
    def score(self) -> float | None:
        """The score, from 0 to 1, or None."""
        return self._result.score

    @property
    def reason(self) -> str:
        """The reason for the grade."""
        return self._result.reason

    @property
    def needles(self) -> list[SaidTurn]:
        """The turns with the needles for the test's questions."""
        return [self._said(turn) for turn in self._test.needles]

    @property
    def questions(self) -> list[SaidTurn]:
        """The test's questions, and other turns that prove the grade."""
        return [self._said(turn) for turn in self._test.questions]

    @property
    def summary(self) -> str:
        """The reason, the needles, and the questions with replies and ideal replies."""
        return escape_invisible(failure_text(self._test, self._run.result))

    @property
    def seconds(self) -> float:
        """The seconds that the agent took for the test's turns."""
        conversation = self._test.conversation
        return sum_seconds(conversation.by_test.get(self.id, ()) if conversation is not None else ())

    @cached_property
    def _test(self) -> TestView:
        return TestView.of(self._result, self._reading().conversations)

    def _said(self, turn: TurnView) -> SaidTurn:
        ideal = self._test.expected.get(turn.number)
        return SaidTurn(turn.number, _whole(turn.text), _whole(turn.reply) if turn.reply else None, _whole(ideal) if ideal else None)

    def __str__(self) -> str:
        file = io.StringIO()
        print_test(self._run, self._test, Console(file, width=WIDTH, force_terminal=False, color_system=None))
        return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())

    def __repr__(self) -> str:
        score = "no score" if self.score is None else f"{self.score:.2f}"
        return f"<{self.run}: {self.id}: {score}: {self.reason}>"

    def _repr_html_(self) -> str:
        return preformat(str(self))


def _whole(text: Excerpt) -> str:
    return f"{text.head}...{text.tail}" if text.left_out else text.head
