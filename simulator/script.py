"""The script of a test: its lines or its outline, and the facts that its grader needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, final

from longspan.simulator.errors import ScenarioError

__all__ = ["EARLY", "LAST", "Line", "Placement", "Script", "Segment"]

Placement = Literal["uniform", "early"]
"""Where a test's needles go in its span: spread evenly, as in the paper, or all in the first tenth."""

LAST = 0.9
"""The share of the span after which a test's last question is asked."""

EARLY = 0.1
"""The share of the span in which early placement puts all needles, so that they are about a span away from the question."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One line of a scripted test.

    `ideal` is the reply of a perfect agent, which only `oracle` ever sees. `asks` makes the line a question, which needs the
    needles numbered in `needs` (from 0 in the order they are said; None for all said before it). A line that is neither a
    needle nor a question does not matter to any question. `pause` is virtual time that must pass before the line. `at` is the
    share of the span before which the line is not said; None leaves it to the run's placement. `together` keeps the line
    directly after the one before, with no other test between them.
    """

    text: str
    ideal: str = "OK."
    asks: bool = False
    needle: bool = True
    needs: tuple[int, ...] | None = None
    pause: timedelta = timedelta(0)
    at: float | None = None
    together: bool = False


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """What a test says between two waits, as the conductor plans for it.

    `at`: share of the span, from 0 to 1, before which it is not said. `tokens`: the most that it says. `replies`: how many
    replies it waits for, `answers` of them to questions (these tend to be longer). `pause`: virtual time that must pass before
    it. `by`: share of the span by which it should be finished, unless it takes longer than that.
    """

    at: float
    tokens: int
    replies: int
    answers: int = 0
    pause: timedelta = timedelta(0)
    by: float = 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The script of one test: its grader's facts, and every line of a scripted test or the outline of a dynamic one.

    `facts` is JSON (dict, list, str, int, float, bool, None). It is journaled when the test opens; grading uses only the facts
    and the transcript. `farewell` asks the agent to disregard what the test said. It is said after the test if another test of
    the same scenario is still to come. `alone`: the test has a conversation to itself, which begins with its first line, without
    an opening message, filler, other tests or a span.
    """

    facts: Mapping[str, Any]
    lines: Sequence[Line] = ()
    outline: Sequence[Segment] = ()
    farewell: str | None = None
    alone: bool = False

    def __post_init__(self) -> None:
        if bool(self.lines) == bool(self.outline):
            raise ScenarioError("a script has either lines (scripted) or an outline (dynamic)")
        if self.lines and self.lines[0].together:
            raise ScenarioError("a script's first line cannot be together with the line before")
        for number, line in enumerate(self.lines):
            if problem := _problem(line):
                raise ScenarioError(f"line {number} of a script: {problem}")
        if any(line.pause and (line.together or line is self.lines[0]) for line in self.lines):
            raise ScenarioError("a script's first line, and a line together with the one before, cannot have a pause")
        if not _is_json(dict(self.facts)):
            raise ScenarioError("a script's facts must be JSON: dicts with string keys, lists, strings, finite numbers, booleans, None")

    def starts(self, placement: Placement) -> list[float | None]:
        """Return, for each line, the share of the span before which it is not said; None if it directly follows the line before."""
        heads = [k for k, line in enumerate(self.lines) if not line.together]
        last = len(heads) - 1
        shares: list[float | None] = [None] * len(self.lines)
        for i, k in enumerate(heads):
            at = self.lines[k].at
            if at is None:
                if placement == "early" and i < last:
                    at = EARLY * i / max(1, last - 1) if last > 1 else 0.0
                else:
                    at = LAST * i / max(1, last)
            shares[k] = at
        return shares

    def segments(self, count: Callable[[str], int], placement: Placement) -> list[Segment]:
        """Return a dynamic test's outline, or one computed from the lines, measured with `count` (tokens of a text)."""
        if self.outline:
            return list(self.outline)
        segments: list[Segment] = []
        for line, at in zip(self.lines, self.starts(placement), strict=True):
            tokens = count(line.text)
            if at is None:
                last = segments[-1]
                segments[-1] = replace(last, tokens=last.tokens + tokens, replies=last.replies + 1, answers=last.answers + line.asks)
            else:
                segments.append(Segment(at, tokens, 1, answers=int(line.asks), pause=line.pause))
        if placement == "early":
            segments[:-1] = [replace(segment, by=EARLY + 0.04) for segment in segments[:-1]]
        return segments


def _problem(line: object) -> str | None:
    """Return what is invalid about a line of a script, or None."""
    if not isinstance(line, Line):
        return f"expected a Line, got {type(line).__name__}"
    if not isinstance(line.text, str) or not line.text.strip() or not isinstance(line.ideal, str):
        return "its text and ideal must be strings, and the text must not be blank"
    if not _is_json(line.text) or not _is_json(line.ideal):
        return "its text and ideal must be valid Unicode"
    if not isinstance(line.pause, timedelta) or line.pause < timedelta(0):
        return f"its pause must be a timedelta of at least 0, got {line.pause!r}"
    if line.at is not None and not (isinstance(line.at, int | float) and 0 <= line.at <= 1):
        return f"at must be a share of the span, from 0 to 1, or None, got {line.at!r}"
    if line.needs is not None and not (isinstance(line.needs, tuple) and all(isinstance(number, int) for number in line.needs)):
        return f"needs must be a tuple of needle numbers, or None, got {line.needs!r}"
    return None


def _is_json(value: object) -> bool:
    """Return whether a value is unchanged after writing it as JSON and reading it back."""
    match value:
        case dict():
            return all(isinstance(key, str) and _is_json(key) and _is_json(item) for key, item in value.items())
        case list():
            return all(map(_is_json, value))
        case float():
            return math.isfinite(value)
        case str():
            return value.encode("utf-8", "replace").decode() == value  # no lone surrogates
        case _:
            return value is None or isinstance(value, int)
