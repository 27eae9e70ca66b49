"""Answers that a system gave elsewhere, matched to the tests that ask the questions. Matchers are found by entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final

from longspan.simulator.contract.scenario import Test

__all__ = ["MATCHERS", "AnswerMatcher", "GivenReply", "MatchedAnswers"]

MATCHERS: Final = "longspan.answers"
"""The entry-point group of matchers. It maps a scenario's name to an `AnswerMatcher`."""


@final
class GivenReply(NamedTuple):
    """What a system gave for one question.

    `text`: its answer, empty if it is missing, or None if the system only searched. `read`: for each memory that it retrieved, best first,
    the places in the history of the turns that the memory comes from; None if the file does not report this.
    """

    text: str | None
    read: Sequence[Sequence[int]] | None


@final
class MatchedAnswers(NamedTuple):
    """The replies by the id of the test, the most memories that a question has (`k`), and notes about questions without a reply."""

    replies: Mapping[str, GivenReply]
    k: int
    notes: Sequence[str]


class AnswerMatcher(Protocol):
    """Matches the answers in a file to tests."""

    def __call__(self, path: Path, tests: Sequence[Test]) -> MatchedAnswers:
        """Return the reply to every test that asks a question. Raises InputError."""
        ...
