"""The errors that longspan raises on purpose. A message is one line: what is wrong, where, and the remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from longspan.simulator.base.keys import redact

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError

__all__ = [
    "AgentError",
    "DamageError",
    "InputError",
    "JournalError",
    "LongspanError",
    "ReplayError",
    "ScenarioError",
    "StoppedError",
    "first_problem",
    "journal_text",
    "one_line",
]


class LongspanError(Exception):
    """The base class of longspan's errors. The command line prints them without a traceback."""


class InputError(LongspanError):
    """An option, a file, a spec or some other input is invalid. Raised before anything is written."""


class AgentError(LongspanError):
    """The agent raised an exception, broke its protocol or cannot be reached. Interrupts the conversation, which can be resumed."""


class StoppedError(LongspanError):
    """A conversation was stopped on request, after a complete turn. It can be resumed."""


class ScenarioError(LongspanError):
    """A test broke the rules of its Stage, for example with overlapping calls or bad arguments. Only that test ends."""


class JournalError(LongspanError):
    """A journal cannot be read or written, for example because of a damaged line, an unknown event or a disk error."""


class DamageError(JournalError):
    """A line of a file was changed after it was written. `line` counts from 1."""

    def __init__(self, path: Path, line: int, what: str, remedy: str) -> None:
        super().__init__(f"{path}: damaged at line {line}: {what}; {remedy}")
        self.line = line


class ReplayError(JournalError):
    """The replay of a conversation produced an event that differs from the journal. The message names both."""


def first_problem(error: ValidationError) -> str:
    """Return the location and description of the first problem in a validation error, as one line."""
    from longspan.simulator.base.pydantic_errors import place_of, problem_of

    problems = error.errors(include_url=False, include_input=False)
    # A misspelled key is also reported as a missing one. The misspelling is the more helpful report.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place, problem = place_of(first), problem_of(first)
    return f"{place}: {problem}" if place else problem


def one_line(error: BaseException, limit: int = 300) -> str:
    """Format an exception as one line: its type, and at most `limit` characters of its message."""
    message = " ".join(_message(error)[: 4 * limit].split())
    return f"{type(error).__name__}: {message[:limit]}" if message else type(error).__name__


def journal_text(error: BaseException) -> str:
    """Format an exception as one line without object addresses, so that every replay produces the same text."""
    message = " ".join(f"{type(error).__name__}: {_message(error)}".split()).removesuffix(":")
    return re.sub(r" at 0x[0-9a-fA-F]+", "", message)[:500].encode("utf-8", "replace").decode()


def _message(error: BaseException) -> str:
    """Return an exception's message, with keys redacted. Pydantic's messages are rephrased. A message that cannot be formatted is ""."""
    if type(error).__name__ == "ValidationError" and type(error).__module__.startswith("pydantic"):
        found: Any = error
        return f"{found.title}: {first_problem(found)}"
    try:
        return redact(str(error))
    except Exception:  # someone else's class may fail in __str__
        return ""
