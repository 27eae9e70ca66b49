"""The script of a test: its lines or its outline, and the facts for its grader."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Final, Literal, final

from longspan.simulator.base.errors import ScenarioError

__all__ = ["EARLY", "GAP", "LAST", "MAX_PAUSE", "Line", "Placement", "Script", "Segment", "is_date"]

Placement = Literal["spread", "uniform", "early"]
"""Where to place a test's lines in its span: at random, evenly as in the paper, or with all needles in the first tenth."""

DIGEST: Final = "[0-9a-f]{64}"

LAST: Final = 0.9
"""The share of the span after which a test's last question is asked."""

EARLY: Final = 0.1
"""The share of the span, at its start, that early placement uses for all needles. They are then about a span away from the question."""

GAP: Final = 0.05
"""The share of the span that spread placement keeps between a question and the nearest needle that it needs. It draws gaps of at least
twice this width, because a needle may have to wait for its turn."""

MAX_PAUSE: Final = timedelta(days=3650)
"""The longest virtual time that may pass between two segments."""

ATTEMPTS: Final = 1000
"""The most draws to find places with such gaps. After that, the script is placed evenly."""


@final
@dataclass(frozen=True, slots=True)
class Line:
    """One line of a scripted test.

    `ideal` is the reply of a perfect agent; only `oracle` sees it. `asks` makes the line a question. Its `needs` are the numbers of the
    needles that it relies on, from 0 in order, or None for all needles before it. A line that is neither a needle nor a question does not
    matter to any question. Between other lines it is an aside, and other lines are placed as if it were absent. `pause` is virtual time
    that must pass before the line. `at` is the earliest share of the span for the line; None leaves it to the run's placement. `together`
    keeps the line directly after the previous one, with no other test between them. A line with a `reply` is a past turn, at `sent_at`: the
    agent reads it and is not asked (see `Stage.tell`). In a script that is `alone`, a question may also have a date.
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
    """All that a test says between two waits. It is charged in full, even if the test says less.

    - `at`: the earliest share of the span, from 0 to 1, where the segment may begin; None leaves it to the run's placement.
    - `tokens`: the most tokens of its messages together, including the replies in its past turns (see `Stage.tell`).
    - `replies`: the most messages that the agent answers.
    - `told`: the dates of its past turns, which come before everything else; None for a turn without a date.
    - `pause`, `after_tokens`, `after_turns`: virtual time, tokens and turns that must pass since the previous segment.
    - `gap`: the share of the span that must pass since the previous segment.
    - `by`: its deadline as a share of the span, unless the segment is longer than that.
    - `watch`: how many turns the test may watch afterwards. "next" means all turns until its next segment. "rest" means all turns until no
      other test is open or can open.
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
        """The number of turns in the segment."""
        return len(self.told) + self.replies


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The script of one test: the facts for its grader, and every line of a scripted test or the outline of a dynamic one.

    `facts` is JSON (dict, list, str, int, float, bool, None). The journal records it when the test opens; grading uses only the facts and
    the transcript. `farewell` asks the agent to disregard everything that the test said. It follows the test if another test of the same
    scenario is still to come. `alone` gives the test its own conversation, which begins with the test's first line and has no opening
    message, filler, other tests or span.

    `trunk` is the id, in the same series, of a test that plays a history. This test is then a branch, which begins where the trunk ends.
    Its questions may need the trunk's needles, which are numbered before its own. Other branches never see what it says. The trunk only
    plays past turns and is not graded. Both are `alone`. `tags` are words for selecting and grouping tests, starting with a kind of
    question. A test with `counts` False is graded, but left out of its scenario's score.

    With `keeps_places`, each segment has a place in the span (`at`) that no placement changes. The test is then responsible for the
    distance between its segments.

    `recorded` is a digest of the recorded history, meeting or similar data that the test is about, or None if the seed makes the test.
    Tests about the same recording are not independent, even with different seeds.
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
    keeps_places: bool = False

    def __post_init__(self) -> None:
        if bool(self.lines) == bool(self.outline):
            raise ScenarioError("a script has either lines (scripted) or an outline (dynamic)")
        if self.lines and self.lines[0].together:
            raise ScenarioError("a script's first line cannot be together with the line before")
        for number, line in enumerate(self.lines):
            if problem := _problem(line):
                raise ScenarioError(f"line {number} of a script: {problem}")
        if any(line.together and line.reply is not None and last.reply is None for last, line in pairwise(self.lines)):
            raise ScenarioError("a past turn cannot be together with a line before it that the agent answers")
        for number, segment in enumerate(self.outline):
            if problem := _segment_problem(segment):
                raise ScenarioError(f"segment {number} of an outline: {problem}")
        if any(line.pause and (line.together or line is self.lines[0]) for line in self.lines):
            raise ScenarioError("a script's first line, and a line together with the one before, cannot have a pause")
        if not self.alone and (self.trunk is not None or any(line.asks and line.sent_at is not None for line in self.lines)):
            raise ScenarioError("a script with a trunk, or with a dated question, needs its own conversation: set alone=True")
        if self.keeps_places and None in [
            part.at for part in ([self.lines[head] for head in self.heads()] if self.lines else self.outline)
        ]:
            raise ScenarioError("a script with keeps_places must set a place (at) for each segment")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) and tag and _is_json(tag) for tag in self.tags):
            raise ScenarioError(f"a script's tags must be a sequence of words, got {self.tags!r:.80}")
        if self.recorded is not None and not re.fullmatch(DIGEST, str(self.recorded)):
            raise ScenarioError(f"a script's recorded must be a SHA-256 in hexadecimal, or None, got {self.recorded!r:.80}")
        if not _is_json(dict(self.facts)):
            raise ScenarioError("a script's facts must be JSON: dicts with string keys, lists, strings, finite numbers, booleans, None")

    @property
    def tells_alone(self) -> bool:
        """Whether the test only plays past turns, in its own conversation."""
        return self.alone and bool(self.lines) and all(line.reply is not None for line in self.lines)

    def heads(self) -> list[int]:
        """Return the numbers of the lines that begin a segment: all lines that are not `together` with the line before."""
        return [number for number, line in enumerate(self.lines) if not line.together]

    def dates(self) -> Iterator[datetime]:
        """Yield the dates of the test's past turns."""
        told = [line.sent_at for line in self.lines if line.reply is not None]
        dates = told + [date for segment in self.outline for date in segment.told]
        return (date for date in dates if date is not None)

    def placed(self, placement: Placement, random: Random) -> Script:
        """Return the script with a place in the span for every segment. Places that are set are kept. The first is at 0, the last at LAST.

        `spread` draws the other places with `random`, at least twice GAP between a question and a needle that it needs. (In a dynamic test,
        any segment may be either.) `uniform` spaces them evenly. `early` puts all lines that are not questions in the first tenth. Asides
        are placed last, between the other lines, which are placed as if there were no asides.
        """
        if self.keeps_places:
            return self
        if self.outline:
            needed = [[number - 1] if number else [] for number in range(len(self.outline))]
            places = _places([segment.at for segment in self.outline], needed, placement, random)
            outline = [replace(segment, at=at) for segment, at in zip(self.outline, places, strict=True)]
            if placement == "spread":
                outline[1:] = [replace(segment, gap=GAP) for segment in outline[1:]]
            return replace(self, outline=outline)
        heads, asides = self.heads(), {head for head in self._asides() if self.lines[head].at is None}
        others = [head for head in heads if head not in asides]
        fixed: Sequence[float | None] = [self.lines[head].at for head in others]
        if placement == "early":
            fixed = _early(fixed, [self.lines[head].asks for head in others])
        place = {head: number for number, head in enumerate(heads)}
        order = {place[head]: number for number, head in enumerate(others)}
        needed = [[order[segment] for segment in group] for number, group in enumerate(self._find_needed()) if number in order]
        at = dict(zip(others, _places(fixed, needed, placement, random), strict=True))
        for before, after in pairwise(others):
            between = heads[place[before] + 1 : place[after]]
            at |= zip(between, _between(at[before], at[after], len(between), placement, random), strict=True)
        return replace(self, lines=[replace(line, at=at.get(number)) for number, line in enumerate(self.lines)])

    def _asides(self) -> set[int]:
        """Return the numbers of the lines that form a whole segment between others, and are neither needle nor question."""
        heads = self.heads()
        alone = {head for head, after in pairwise([*heads, len(self.lines)]) if after - head == 1}
        return {head for head in heads[1:-1] if head in alone and not self.lines[head].needle and not self.lines[head].asks}

    def _find_needed(self) -> list[list[int]]:
        """Return, for each segment of the lines, the earlier segments whose needles its questions need."""
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
        """Return the outline of a placed script: a dynamic test's own, or one made from the lines, with tokens counted by `count`."""
        segments: list[Segment] = []
        for head, after in pairwise([*self.heads(), len(self.lines)]):
            group = self.lines[head:after]  # sliced once: a history played in one segment has a line for each turn
            tokens = sum(count(line.text) + count(line.reply or "") for line in group)
            dates = [line.sent_at for line in group if line.reply is not None]
            segments.append(Segment(group[0].at, tokens, len(group) - len(dates), pause=group[0].pause, told=dates))
        if self.keeps_places:
            return segments or list(self.outline)
        if placement == "early":
            asides = self._asides()
            told = [not self.lines[head].asks and head not in asides for head in self.heads()]
            return [replace(s, by=EARLY + 0.04) if early else s for s, early in zip(segments, told, strict=True)] or list(self.outline)
        if placement == "spread":
            for question, needed in enumerate(self._find_needed()):
                if question - 1 in needed:
                    segments[question] = replace(segments[question], gap=GAP)
                elif needed:  # other lines of the test lie in between, so the needle needs a deadline
                    by, nearest = (segments[question].at or 0) - GAP, max(needed)
                    segments[nearest] = replace(segments[nearest], by=min(segments[nearest].by, max(by, GAP)))
        return segments or list(self.outline)


def _early(fixed: Sequence[float | None], asks: Sequence[bool]) -> list[float]:
    """Return the places for early placement: lines that are not questions in the first tenth, questions evenly spaced."""
    told = [number for number, asking in enumerate(asks) if not asking]
    last = max(1, len(fixed) - 1)
    early = {number: EARLY * place / max(1, len(told) - 1) for place, number in enumerate(told)}
    places = [early.get(number, LAST * number / last) if at is None else at for number, at in enumerate(fixed)]
    return list(accumulate(places, max))


def _places(fixed: Sequence[float | None], needed: Sequence[Sequence[int]], placement: Placement, random: Random) -> list[float]:
    """Return the places of segments, keeping those that are `fixed`. `needed` lists the earlier segments that each segment's questions
    need."""
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
    """Return `count` places from `start` to `end`, in order: random for spread placement, otherwise evenly spaced."""
    if placement == "spread":
        return sorted(round(random.uniform(start, end), 4) for _ in range(count))
    return [start + (end - start) * number / (count + 1) for number in range(1, count + 1)]


def _problem(line: object) -> str | None:
    """Describe an invalid field of a script's line, or return None."""
    if not isinstance(line, Line):
        return f"expected a Line, got {type(line).__name__}"
    if not isinstance(line.text, str) or not line.text.strip() or not isinstance(line.ideal, str):
        return "its text and ideal must be strings, and the text must not be blank"
    if not _is_json(line.text) or not _is_json(line.ideal):
        return "its text and ideal must be valid Unicode"
    if problem := _when_problem(line) or _find_told_problem(line):
        return problem
    if line.needs is not None and not (isinstance(line.needs, tuple) and all(isinstance(number, int) for number in line.needs)):
        return f"needs must be a tuple of needle numbers, or None, got {line.needs!r}"
    return None


def _segment_problem(segment: object) -> str | None:
    """Describe an invalid field of an outline's segment, or return None."""
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
    """Return whether a value is a date and time that the virtual clock can show: without a time zone."""
    return isinstance(value, datetime) and value.tzinfo is None


def _find_told_problem(line: Line) -> str | None:
    """Describe an invalid past turn or date of a line, or return None."""
    if line.sent_at is not None and not is_date(line.sent_at):
        return f"sent_at must be a datetime without a time zone, or None, got {line.sent_at!r:.80}"
    if line.reply is None:
        told = line.sent_at is None or line.asks
        return None if told else "sent_at is the date of a past turn or of a question: set reply or asks"
    if not isinstance(line.reply, str) or not _is_json(line.reply):
        return f"its reply must be valid Unicode, or None, got {line.reply!r:.80}"
    if line.asks:
        return "a line with a reply is a past turn, so it cannot ask"
    return None


def _when_problem(item: Line | Segment) -> str | None:
    """Describe invalid timing of a line or a segment, or return None."""
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
            return math.isfinite(value)  # JSON has no NaN and no infinity
        case str():
            return value.encode("utf-8", "replace").decode() == value  # fails for lone surrogates
        case _:
            return value is None or isinstance(value, int)
