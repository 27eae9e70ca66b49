"""Files of questions about a user's log: proposed questions to review, and failures that become questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, final

from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.contract.scenario import Scenario

__all__ = ["FAILURES", "EarlierTurn", "Failure", "FailureFinder", "Proposal", "Review", "open_review"]

FAILURES: Final = "longspan.failures"
"""The entry-point group of finders. It maps a scenario's name to a `FailureFinder`."""


@final
class Proposal(NamedTuple):
    """A question to review: its number from 1, how many the file has, its kind, the turns of its evidence as lines, and the answer."""

    number: int
    total: int
    kind: str
    evidence: Sequence[str]
    question: str
    answer: str


class Review(Protocol):
    """A file of proposed questions. Each decision is saved at once."""

    @property
    def summary(self) -> str:
        """The numbers of questions by state."""
        ...

    def find_next(self) -> Proposal | None:
        """Return the next question that nobody has confirmed, or None."""
        ...

    def keep(self, answer: str | None = None) -> None:
        """Confirm that question, with another answer if one is given. Raises InputError."""
        ...

    def drop(self, reason: str) -> None:
        """Move that question to the file of rejected ones. Raises InputError."""
        ...


def open_review(file: Path, log: Path | None) -> Review:
    """Return the review of a file about a log, or about the log that the file's questions were written about. Raises InputError."""
    review: Review = load_plugin("longspan.converters", "converter", "questions")(file, log)
    return review


@final
class EarlierTurn(NamedTuple):
    """A turn before a failure: its id, the turn as one line, and whether it contains the answer in words."""

    id: str
    line: str
    answers: bool


class Failure(Protocol):
    """A recorded turn that the agent answered wrong."""

    message: str
    reply: str

    def find_evidence(self, answer: str) -> Sequence[EarlierTurn]:
        """Return the earlier turns that share the most words with the message and the answer, those with the answer first."""
        ...

    def save(self, file: Path, question: str, answer: str, evidence: Sequence[str]) -> str:
        """Add the question to a file, asked before the turn, and return its place there.

        `evidence`: ids of earlier turns, or quotations from them. Raises InputError if the file or the question is invalid.
        """
        ...


class FailureFinder(Protocol):
    """Finds the recorded turn that a run told."""

    def __call__(self, scenario: Scenario, facts: Mapping[str, Any], place: int, message: str) -> Failure:
        """Return the turn at a place, counted from 0, of the history of a test with `facts`.

        Raises InputError if the recording no longer has this message there.
        """
        ...
