"""One test, written out beforehand: its lines or its outline, and the facts that its grader needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, final

from longspan.simulator.errors import ScenarioError

__all__ = ["EARLY", "LAST", "Line", "Placement", "Script", "Segment"]

Placement = Literal["uniform", "early"]
"""Where in its span a test's needles go: spread evenly, as the paper does, or all in the first tenth."""

LAST = 0.9
"""The share of the span after which a test's last question is asked."""

EARLY = 0.1
"""The share of the span over which early placement spreads all needles, so that they lie a span from the question."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One thing a scripted test says.

    `ideal` is what a perfect agent would reply; only `oracle` ever sees it. `asks` makes it a question, which needs the
    needles numbered in `needs` (counted from 0 in the order they are said; None: all said before it). A line that is
    neither a needle nor a question carries nothing. `pause` is virtual time that must pass before the line.
    `at` is the share of the span before which it is not said; None leaves it to the run's placement. `together` keeps
    the line in the same breath as the one before: no other test speaks between.
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

    `at`: share of the span, from 0 to 1, before which it is not said; `tokens`: the most it says; `replies`: how many
    replies it waits for, `answers` of them to questions (they tend to be longer); `pause`: virtual time that passes
    before it; `by`: the share of the span by which it should have been said, where that is more than it takes.
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
    """One test, written out: what its grader needs and, for a scripted test, every line; for a dynamic one, an outline.

    `facts` is JSON (dict, list, str, int, float, bool, None): it is journaled when the test opens, and grading reads
    nothing else but the transcript. `farewell` tells the agent to disregard what the test said; it is said after the
    test where another test of the same scenario is still to come. `alone`: the test has a conversation to itself, which
    begins with its first line: no opening message, no filler, no other test, and no span to keep.
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
            if wrong := _wrong(line):
                raise ScenarioError(f"line {number} of a script: {wrong}")
        if any(line.pause and (line.together or line is self.lines[0]) for line in self.lines):
            raise ScenarioError("a pause lies between two lines: not before the first one, nor before one that is together with another")
        if not _is_json(dict(self.facts)):
            raise ScenarioError("a script's facts have to be plain JSON: dicts with text keys, lists, text, numbers, true, false, none")

    def starts(self, placement: Placement) -> list[float | None]:
        """For each line, the share of the span before which it is not said; None where it goes on in one breath."""
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
        """The outline: a dynamic test's own, or that of the lines, measured with `count` (tokens of a text)."""
        if self.outline:
            return list(self.outline)
        found: list[Segment] = []
        for line, at in zip(self.lines, self.starts(placement), strict=True):
            tokens = count(line.text)
            if at is None:
                last = found[-1]
                found[-1] = replace(last, tokens=last.tokens + tokens, replies=last.replies + 1, answers=last.answers + line.asks)
            else:
                found.append(Segment(at, tokens, 1, answers=int(line.asks), pause=line.pause))
        if placement == "early":
            found[:-1] = [replace(segment, by=EARLY + 0.04) for segment in found[:-1]]
        return found


def _wrong(line: object) -> str | None:
    """What is wrong with a line of a script; None where it is one."""
    if not isinstance(line, Line):
        return f"expected a Line, got {type(line).__name__}"
    if not isinstance(line.text, str) or not line.text.strip() or not isinstance(line.ideal, str):
        return "its text and its ideal reply have to be text, and the text has to say something"
    if not _is_json(line.text) or not _is_json(line.ideal):
        return "its text and its ideal reply have to be valid Unicode"
    if not isinstance(line.pause, timedelta) or line.pause < timedelta(0):
        return f"its pause has to be a timedelta of at least 0, got {line.pause!r}"
    if line.at is not None and not (isinstance(line.at, int | float) and 0 <= line.at <= 1):
        return f"at is a share of the span, from 0 to 1, or None, got {line.at!r}"
    if line.needs is not None and not (isinstance(line.needs, tuple) and all(isinstance(each, int) for each in line.needs)):
        return f"needs is a tuple of the needles' numbers, or None, got {line.needs!r}"
    return None


def _is_json(value: object) -> bool:
    """Whether a value comes back from JSON as it went in."""
    match value:
        case dict():
            return all(isinstance(key, str) and _is_json(key) and _is_json(each) for key, each in value.items())
        case list():
            return all(map(_is_json, value))
        case float():
            return math.isfinite(value)
        case str():
            return value.encode("utf-8", "replace").decode() == value  # no lone surrogates
        case _:
            return value is None or isinstance(value, int)
