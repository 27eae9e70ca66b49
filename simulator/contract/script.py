"""The script of a test: its lines or its outline, and the facts that its grader needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any, Final, Literal, final

from longspan.simulator.base.errors import ScenarioError

__all__ = ["EARLY", "GAP", "LAST", "MAX_PAUSE", "Line", "Placement", "Script", "Segment", "is_date"]

Placement = Literal["spread", "uniform", "early"]
"""Where a test's lines go in its span: at random places, evenly as in the paper, or all needles in the first tenth."""

DIGEST: Final = "[0-9a-f]{64}"

LAST: Final = 0.9
"""The share of the span after which a test's last question is asked."""

EARLY: Final = 0.1
"""The share of the span in which early placement puts all needles, so that they are about a span away from the question."""

GAP: Final = 0.05
"""The share of the span that spread placement leaves between a question and the nearest needle that it needs; and again as much,
in which the needle can wait for its turn."""

MAX_PAUSE: Final = timedelta(days=3650)
"""The longest virtual time between two segments."""

ATTEMPTS: Final = 1000
"""How many times places are drawn until they leave such gaps. A script for which they never do is placed evenly."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One line of a scripted test.

    `ideal` is the reply of a perfect agent, which only `oracle` ever sees. `asks` makes the line a question, which needs the
    needles numbered in `needs` (from 0 in the order they are said; None for all said before it). A line that is neither a needle
    nor a question does not matter to any question; between others it is an aside, which moves none of them. `pause` is virtual time
    that must pass before the line. `at` is the share of the span before which the line is not said; None leaves it to the run's
    placement. `together` keeps the line directly after the one before, with no other test between them. A line with a `reply` is a
    turn that took place, at `sent_at`: the agent is told of it, not asked (see `Stage.tell`). A question of a script that is
    `alone` may have a date too, on which it is asked.
    """

    text: str
    ideal: str = "OK."
    asks: bool = False
    needle: bool = True
    needs: tuple[int, ...] | None = None
    pause: timedelta = timedelta(0)
    at: float | None = None
    together: bool = False
    reply: str | None = None
    sent_at: datetime | None = None


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """What a test says between two waits. It is charged with all of it, whatever it says of it.

    `at`: share of the span, from 0 to 1, before which it is not said; None leaves it to the run's placement. `tokens`: the most
    that its messages have together, with the replies of the turns that it tells. `replies`: the most messages that the agent answers.
    `told`: the dates of the turns that it tells, all of them before it says anything; None for one without a date.
    `pause`, `after_tokens` and `after_turns`: how much virtual time, how many tokens and how many turns must pass between the segment
    before and this one.
    `gap`: share of the span that must pass between them. `by`: share of the span by which it should be finished, unless it takes
    longer than that. `watch`: how many turns the test may watch afterwards, "next": those until its next segment, or "rest": those until
    no other test is open or can open.
    """

    at: float | None
    tokens: int
    replies: int
    pause: timedelta = timedelta(0)
    after_tokens: int = 0
    after_turns: int = 0
    gap: float = 0.0
    by: float = 1.0
    watch: int | Literal["next", "rest"] = 0
    told: Sequence[datetime | None] = ()

    @property
    def turns(self) -> int:
        """How many turns it takes."""
        return len(self.told) + self.replies


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The script of one test: its grader's facts, and every line of a scripted test or the outline of a dynamic one.

    `facts` is JSON (dict, list, str, int, float, bool, None). It is journaled when the test opens; grading uses only the facts
    and the transcript. `farewell` asks the agent to disregard what the test said. It is said after the test if another test of
    the same scenario is still to come. `alone`: the test has a conversation to itself, which begins with its first line, without
    an opening message, filler, other tests or a span.

    `trunk`: the id, in the same series, of a test that tells a history. This test is a branch: it begins where that one ends, its
    questions may need that one's needles, which are numbered before its own, and nothing that it says reaches another branch. The
    trunk tells turns and nothing else; it is not graded. Both are `alone`. `tags` are words to select and group tests by, a kind of
    question first. A test that does not count (`counts`) is graded, but is no part of its scenario's score.

    `recorded`: a digest of the recorded history, the meeting or the like that the test is about; None if the seed makes it. Tests about
    the same one are not independent of each other, whatever their seeds.
    """

    facts: Mapping[str, Any]
    lines: Sequence[Line] = ()
    outline: Sequence[Segment] = ()
    farewell: str | None = None
    alone: bool = False
    trunk: str | None = None
    tags: Sequence[str] = ()
    counts: bool = True
    recorded: str | None = None

    def __post_init__(self) -> None:
        if bool(self.lines) == bool(self.outline):
            raise ScenarioError("a script has either lines (scripted) or an outline (dynamic)")
        if self.lines and self.lines[0].together:
            raise ScenarioError("a script's first line cannot be together with the line before")
        for number, line in enumerate(self.lines):
            if problem := _problem(line):
                raise ScenarioError(f"line {number} of a script: {problem}")
        if any(line.together and line.reply is not None and last.reply is None for last, line in pairwise(self.lines)):
            raise ScenarioError("a line that is told cannot be together with one before it that the agent answers")
        for number, segment in enumerate(self.outline):
            if problem := _segment_problem(segment):
                raise ScenarioError(f"segment {number} of an outline: {problem}")
        if any(line.pause and (line.together or line is self.lines[0]) for line in self.lines):
            raise ScenarioError("a script's first line, and a line together with the one before, cannot have a pause")
        if not self.alone and (self.trunk is not None or any(line.asks and line.sent_at is not None for line in self.lines)):
            raise ScenarioError("a script with a trunk, or with a question that has a date, has a conversation to itself: set alone=True")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) and tag and _is_json(tag) for tag in self.tags):
            raise ScenarioError(f"a script's tags must be a sequence of words, got {self.tags!r:.80}")
        if self.recorded is not None and not re.fullmatch(DIGEST, str(self.recorded)):
            raise ScenarioError(f"a script's recorded must be a SHA-256 in hexadecimal, or None, got {self.recorded!r:.80}")
        if not _is_json(dict(self.facts)):
            raise ScenarioError("a script's facts must be JSON: dicts with string keys, lists, strings, finite numbers, booleans, None")

    @property
    def tells_alone(self) -> bool:
        """Whether it tells turns in a conversation to itself, and says nothing else."""
        return self.alone and bool(self.lines) and all(line.reply is not None for line in self.lines)

    def heads(self) -> list[int]:
        """Return the numbers of the lines that begin a segment: all that are not together with the one before."""
        return [number for number, line in enumerate(self.lines) if not line.together]

    def dates(self) -> Iterator[datetime]:
        """Yield the dates of the turns that it tells."""
        told = [line.sent_at for line in self.lines if line.reply is not None]
        dates = told + [date for segment in self.outline for date in segment.told]
        return (date for date in dates if date is not None)

    def placed(self, placement: Placement, random: Random) -> Script:
        """Return the script with a place in the span for each segment that has none yet, in their order: first 0, last LAST.

        `spread` draws the places of the others with `random`, twice GAP or more between a question and a needle that it needs (any
        segment of a dynamic test may be either). `uniform` puts them at equal distances. `early` puts lines that ask nothing
        in the first tenth. Asides come last, into the spaces between: the other lines are placed as they would be without any.
        """
        if self.outline:
            needed = [[number - 1] if number else [] for number in range(len(self.outline))]
            places = _places([segment.at for segment in self.outline], needed, placement, random)
            outline = [replace(segment, at=at) for segment, at in zip(self.outline, places, strict=True)]
            if placement == "spread":
                outline[1:] = [replace(segment, gap=GAP) for segment in outline[1:]]
            return replace(self, outline=outline)
        heads, asides = self.heads(), {head for head in self._asides() if self.lines[head].at is None}
        others = [head for head in heads if head not in asides]
        fixed = [self.lines[head].at for head in others]
        if placement == "early":
            fixed = _early(fixed, [self.lines[head].asks for head in others])
        order = {heads.index(head): number for number, head in enumerate(others)}
        needed = [[order[segment] for segment in group] for number, group in enumerate(self._needed()) if number in order]
        at = dict(zip(others, _places(fixed, needed, placement, random), strict=True))
        for before, after in pairwise(others):
            between = [head for head in heads if before < head < after]
            at |= zip(between, _between(at[before], at[after], len(between), placement, random), strict=True)
        return replace(self, lines=[replace(line, at=at.get(number)) for number, line in enumerate(self.lines)])

    def _asides(self) -> set[int]:
        """Return the numbers of the lines that are a segment of their own, between others, and are neither needle nor question."""
        heads = self.heads()
        alone = {head for head, after in pairwise([*heads, len(self.lines)]) if after - head == 1}
        return {head for head in heads[1:-1] if head in alone and not self.lines[head].needle and not self.lines[head].asks}

    def _needed(self) -> list[list[int]]:
        """Return, for each segment of the lines, the earlier segments with needles that its questions need."""
        needles: list[int] = []
        needed: list[list[int]] = []
        for line in self.lines:
            if not line.together:
                needed.append([])
            now = len(needed) - 1
            if line.asks:
                wanted = needles if line.needs is None else [needles[number] for number in line.needs if number < len(needles)]
                needed[-1] += [segment for segment in wanted if segment < now]
            elif line.needle:
                needles.append(now)
        return needed

    def segments(self, count: Callable[[str], int], placement: Placement) -> list[Segment]:
        """Return the outline of a script whose segments are placed: a dynamic test's own, or that of the lines, whose tokens
        `count` returns."""
        segments: list[Segment] = []
        for line in self.lines:
            tokens = count(line.text) + count(line.reply or "")
            replies, dates = (1, []) if line.reply is None else (0, [line.sent_at])
            if line.together:
                last = segments[-1]
                segments[-1] = replace(last, tokens=last.tokens + tokens, replies=last.replies + replies, told=[*last.told, *dates])
            else:
                segments.append(Segment(line.at, tokens, replies, pause=line.pause, told=dates))
        if placement == "early":
            asides = self._asides()
            told = [not self.lines[head].asks and head not in asides for head in self.heads()]
            return [replace(s, by=EARLY + 0.04) if early else s for s, early in zip(segments, told, strict=True)] or list(self.outline)
        if placement == "spread":
            for question, needed in enumerate(self._needed()):
                if question - 1 in needed:
                    segments[question] = replace(segments[question], gap=GAP)
                elif needed:  # other lines of the test come in between
                    by, nearest = (segments[question].at or 0) - GAP, max(needed)
                    segments[nearest] = replace(segments[nearest], by=min(segments[nearest].by, max(by, GAP)))
        return segments or list(self.outline)


def _early(fixed: Sequence[float | None], asks: Sequence[bool]) -> list[float | None]:
    """Return the places of early placement: lines that ask nothing are in the first tenth, the others at equal distances."""
    told = [number for number, asking in enumerate(asks) if not asking]
    last = max(1, len(fixed) - 1)
    early = {number: EARLY * place / max(1, len(told) - 1) for place, number in enumerate(told)}
    places = [early.get(number, LAST * number / last) if at is None else at for number, at in enumerate(fixed)]
    return [max(places[: number + 1]) for number in range(len(places))]


def _places(fixed: Sequence[float | None], needed: Sequence[Sequence[int]], placement: Placement, random: Random) -> list[float]:
    """Return the places of segments, of which some are `fixed`. `needed`: for each the earlier ones that its questions need."""
    last = len(fixed) - 1
    even = [LAST * number / max(1, last) if at is None else at for number, at in enumerate(fixed)]
    if placement != "spread" or None not in fixed[1:last]:
        return even
    for _ in range(ATTEMPTS):
        drawn = iter(sorted(random.uniform(0, LAST - 2 * GAP) for at in fixed[1:last] if at is None))
        places = [even[number] if number in (0, last) or at is not None else round(next(drawn), 4) for number, at in enumerate(fixed)]
        apart = all(places[number] - places[before] >= 2 * GAP for number, group in enumerate(needed) for before in group)
        if apart and places == sorted(places):
            return places
    return even


def _between(start: float, end: float, count: int, placement: Placement, random: Random) -> list[float]:
    """Return `count` places in their order from `start` to `end`: drawn if they are spread, else at equal distances."""
    if placement == "spread":
        return sorted(round(random.uniform(start, end), 4) for _ in range(count))
    return [start + (end - start) * number / (count + 1) for number in range(1, count + 1)]


def _problem(line: object) -> str | None:
    """Return what is invalid about a line of a script, or None."""
    if not isinstance(line, Line):
        return f"expected a Line, got {type(line).__name__}"
    if not isinstance(line.text, str) or not line.text.strip() or not isinstance(line.ideal, str):
        return "its text and ideal must be strings, and the text must not be blank"
    if not _is_json(line.text) or not _is_json(line.ideal):
        return "its text and ideal must be valid Unicode"
    if problem := _when_problem(line) or _told_problem(line):
        return problem
    if line.needs is not None and not (isinstance(line.needs, tuple) and all(isinstance(number, int) for number in line.needs)):
        return f"needs must be a tuple of needle numbers, or None, got {line.needs!r}"
    return None


def _segment_problem(segment: object) -> str | None:
    """Return what is invalid about a segment of an outline, or None."""
    if not isinstance(segment, Segment):
        return f"expected a Segment, got {type(segment).__name__}"
    for name in ("tokens", "replies", "after_tokens", "after_turns", "watch"):
        value = getattr(segment, name)
        if not (isinstance(value, int) and value >= 0) and not (name == "watch" and value in ("next", "rest")):
            return f"{name} must be an integer of at least 0, got {value!r}"
    if not isinstance(segment.told, list | tuple) or not all(date is None or is_date(date) for date in segment.told):
        return f"told must be a sequence of dates without a time zone, or None, got {segment.told!r:.80}"
    return _when_problem(segment)


def is_date(value: object) -> bool:
    """Return whether a value is a date and time of the virtual clock, which has no time zone."""
    return isinstance(value, datetime) and value.tzinfo is None


def _told_problem(line: Line) -> str | None:
    """Return what is invalid about the turn that a line tells, or None."""
    if line.sent_at is not None and not is_date(line.sent_at):
        return f"sent_at must be a datetime without a time zone, or None, got {line.sent_at!r:.80}"
    if line.reply is None:
        told = line.sent_at is None or line.asks
        return None if told else "sent_at is the date of a turn that took place, or of a question: give its reply, or ask"
    if not isinstance(line.reply, str) or not _is_json(line.reply):
        return f"its reply must be valid Unicode, or None, got {line.reply!r:.80}"
    if line.asks:
        return "a line with a reply is told, so that it cannot ask"
    return None


def _when_problem(item: Line | Segment) -> str | None:
    """Return what is invalid about when a line or a segment is said, or None."""
    if not isinstance(item.pause, timedelta) or not timedelta(0) <= item.pause <= MAX_PAUSE:
        return f"its pause must be a timedelta of 0 to {MAX_PAUSE.days} days, got {item.pause!r}"
    if item.at is not None and not (isinstance(item.at, int | float) and 0 <= item.at <= 1):
        return f"at must be a share of the span, from 0 to 1, or None, got {item.at!r}"
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
