"""The errors longspan raises on purpose. Each is one line: what is wrong, where, and what would be right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "AgentError",
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
    """The base of all of them. The command line prints it without a traceback."""


class InputError(LongspanError):
    """Something given to longspan (an option, a file, a spec) is wrong. Raised before anything is written."""


class AgentError(LongspanError):
    """The agent failed for good: it raised, broke its protocol or cannot be reached. Ends the conversation, resumable."""


class StoppedError(LongspanError):
    """A conversation was told to stop, and did so after a whole turn. Resumable."""


class ScenarioError(LongspanError):
    """A test broke the rules of its Stage (overlapping calls, foreign waits, bad arguments). Ends that test alone."""


class JournalError(LongspanError):
    """A journal cannot be read or written: a damaged line, an unknown event, a disk that refuses."""


class ReplayError(JournalError):
    """Playing a conversation again gave another event than its journal holds. Names the event and what differed."""


def first_problem(error: ValidationError) -> str:
    """The first thing a pydantic model did not like, in one line: where and what."""
    found = error.errors(include_url=False)
    # A key that is misspelt is also one that is missing: the misspelling says more.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    where = " ".join(".".join(str(part) for part in first["loc"]).split())[:200]
    what = "there is no such key" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    what = " ".join(what.split())
    return f"{where}: {what}" if where else what


def one_line(error: BaseException, limit: int = 300) -> str:
    """An exception as one line: its type and its message, at most about `limit` characters of it."""
    message = " ".join(str(error)[: 4 * limit].split())
    return f"{type(error).__name__}: {message[:limit]}" if message else type(error).__name__


def journal_text(error: BaseException) -> str:
    """An exception as one line that is the same whenever a conversation is played: without addresses of objects."""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return re.sub(r" at 0x[0-9a-fA-F]+", "", message)[:500].encode("utf-8", "replace").decode()
