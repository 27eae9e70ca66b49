"""Filler: distraction that belongs to no test, to a given number of tokens (GoodAI, section 3.1 and figure 4).

A filler message holds questions with their answers and asks for the answers as a JSON list; its reply is ready. Both are
put together from lines that end in a line break, and remarks of whole sentences: in either encoding such pieces count the
same alone as in a row, so that each is counted once and a message is the sum of its pieces. That holds because no piece
begins with a space or a slash, except a sentence that follows another one.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, final

from longspan.simulator.errors import InputError
from longspan.simulator.tokens import Tokenizer

__all__ = ["Distraction", "Filler", "Pair", "Source"]

REQUEST: Final = "Here are questions, each with its answer. Give me all the answers in order, as a JSON list of strings.\n"
SHORT_REQUEST: Final = "Just the answers as a JSON list:\n"
BRIEF: Final = 150
"""Tokens of a message below which its request is the short one; also the least that is left over for the next message."""
LONGEST: Final = 120
"""Tokens of the longest pair that is taken; longer ones are passed over."""
CLOSING: Final = 12
"""Tokens that the closing remark should not exceed, where the pairs at hand allow it."""
PATIENCE: Final = 10_000
"""Pairs in a row that may be too long."""
ANSWERS: Final = 8192
"""Answers whose tokens are remembered."""
POOL: Final = 32
"""Pairs kept at hand to choose from."""
_quote = json.JSONEncoder(ensure_ascii=False).encode
REMARKS: Final = Path(__file__).parents[1] / "data" / "remarks.json"


Count = Callable[[str], int]
"""Gives the tokens of a text: see `Tokenizer.count_piece`."""

Pair = tuple[str, int, str]
"""A question, with a space before it, the tokens that it is with that, and its answer. Each is one line, with one space between
two words and none after the last."""


_Entry = tuple[str, str, int, int]
"""A pair as it stands in a message and in its reply, with its tokens in each."""


class Source(Protocol):
    """Where the questions come from."""

    def pairs(self, count_piece: Count) -> Iterator[Pair]:
        """All of them, without end, the same each time. What is in many questions is a piece of its own: it is counted once."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Distraction:
    """A message and the reply that goes with it, both counted."""

    text: str
    reply: str
    text_tokens: int
    reply_tokens: int


@final
class Filler:
    """Makes filler from a source. The same source and the same calls in the same order give the same filler.

    `most`: the most tokens of one message and its reply together, at least 100.

    Raises ValueError for a smaller `most`, InputError when the source has long questions only.
    """

    def __init__(self, source: Source, tokenizer: Tokenizer, *, most: int = 2000) -> None:
        if most < 100:
            raise ValueError(f"most must be >= 100, got {most}")
        self._count, self._count_plain = tokenizer.count, tokenizer.count_plain
        self._most = most
        self._made = 0  # messages so far: the remarks take turns
        self._entries = self._all(source.pairs(tokenizer.count_piece))
        self._pool: deque[_Entry] = deque()
        self._requests = {text: self._count(text) for text in (REQUEST, SHORT_REQUEST)}
        self._brackets = self._count("[\n") + self._count("]")
        remarks = _remarks()
        self._asides = _Sentences(remarks["asides"], self._count)
        self._replies = _Sentences(remarks["replies"], self._count)
        self._closings = _Sentences(remarks["closings"], self._count)

    def make(self, gap: int) -> Distraction:
        """Filler whose message and reply are `gap` tokens together, with the reply ready.

        A gap above `most` gets a part of it, and the caller asks again; what is left over is never less than BRIEF, if
        `most` is twice that. A gap too small for a question gets a remark, the smallest of 4 tokens.

        Raises ValueError for a gap below 1.
        """
        if gap < 1:
            raise ValueError(f"gap must be >= 1, got {gap}")
        self._begin()
        target = self._part(gap)
        request = REQUEST if target >= BRIEF else SHORT_REQUEST
        left = target - self._requests[request] - self._brackets
        last = self._last(left - self._closings.least, _both)
        if last is None:
            return self._aside(target)
        left -= _both(last)
        return self._list(request, *self._fit(left, last))

    def ask(self, most: int = 60) -> Distraction:
        """Filler that the agent is to answer itself: a message of at most `most` tokens, with the ideal reply.

        A `most` too small for a question gets a remark. Raises ValueError for a `most` below 1.
        """
        if most < 1:
            raise ValueError(f"most must be >= 1, got {most}")
        self._begin()
        left = most - self._requests[SHORT_REQUEST]
        last = self._last(left - self._closings.least, _said)
        if last is None:
            return self._remark(min(most, CLOSING), self._replies.single(CLOSING, self._made))
        left -= _said(last)
        entries = []
        while _said(self._pool[0]) + self._closings.least <= left:
            entries.append(self._pool.popleft())
            self._refill()
            left -= _said(entries[-1])
        return self._list(SHORT_REQUEST, [*entries, last], self._closings.single(min(left, CLOSING), self._made))

    def _begin(self) -> None:
        self._made += 1
        self._refill()

    def _part(self, gap: int) -> int:
        """How much of a gap one message takes."""
        if gap <= self._most:
            return gap
        if gap < self._most + BRIEF:
            return min(self._most, (gap + 1) // 2)
        return self._most

    # Pairs.

    def _refill(self) -> None:
        while len(self._pool) < POOL:
            self._pool.append(next(self._entries))

    def _all(self, pairs: Iterator[Pair]) -> Iterator[_Entry]:
        """The pairs that are not too long, in turn. Raises InputError where no more of them come."""
        answered = lru_cache(ANSWERS)(self._answered)
        passed_over = 0
        for question, question_tokens, answer in pairs:
            answer_tokens, reply, reply_tokens = answered(answer)
            tokens = question_tokens + answer_tokens
            if tokens + reply_tokens <= LONGEST:
                passed_over = 0
                yield f"Q:{question} A: {answer}\n", reply, tokens, reply_tokens
                continue
            passed_over += 1
            if passed_over == PATIENCE:
                break
        raise InputError(f"no question of the filler's source has less than {LONGEST} tokens with its answer: take another source")

    def _answered(self, answer: str) -> tuple[int, str, int]:
        """The tokens of a pair but for its question; its answer as it stands in a reply, and the tokens there."""
        reply = _quote(answer)
        return self._count_plain(f"Q: A: {answer}\n"), reply, self._count_plain(f"{reply},\n")

    def _last(self, room: int, cost: Callable[[_Entry], int]) -> _Entry | None:
        """Takes a pair to close the list with, the first at hand whose cost is within `room`; its reply has no comma."""
        for place, entry in enumerate(self._pool):
            if cost(entry) <= room:
                text, reply, tokens, _ = entry
                last = (text, reply, tokens, self._count(f"{reply}\n"))
                if cost(last) <= room:
                    del self._pool[place]
                    self._refill()
                    return last
        return None

    def _fit(self, left: int, last: _Entry) -> tuple[list[_Entry], _Remark]:
        """Pairs that end in `last`, and a closing remark, that take `left` tokens beside `last`."""
        entries: list[_Entry] = []
        while left >= LONGEST + CLOSING:
            entry = next(self._entries)
            entries.append(entry)
            left -= entry[2] + entry[3]
        costs = [_both(entry) for entry in self._pool]
        chosen = _subset(costs, left - CLOSING, left - self._closings.least)
        for place in reversed(chosen):
            entries.append(self._pool[place])
            left -= costs[place]
            del self._pool[place]
        return [*entries, last], self._closings.compose(left, self._made)

    def _list(self, request: str, entries: Sequence[_Entry], closing: _Remark) -> Distraction:
        """A message with `entries`, the last of them counted as the last of its reply."""
        texts, replies, tokens, reply_tokens = zip(*entries, strict=True)
        return Distraction(
            text=f"{request}{''.join(texts)}{closing.text}",
            reply="[\n" + ",\n".join(replies) + "\n]",
            text_tokens=self._requests[request] + sum(tokens) + closing.tokens,
            reply_tokens=self._brackets + sum(reply_tokens),
        )

    # Remarks.

    def _aside(self, tokens: int) -> Distraction:
        """A remark without a question that takes `tokens` tokens with its reply, or as few as there are."""
        reply = self._replies.single(max(self._replies.least, min(tokens // 3, tokens - self._asides.least)), self._made)
        return self._remark(max(self._asides.least, tokens - reply.tokens), reply)

    def _remark(self, tokens: int, reply: _Remark) -> Distraction:
        text = self._asides.compose(tokens, self._made)
        return Distraction(text.text, reply.text, text.tokens, reply.tokens)


def _said(entry: _Entry) -> int:
    """The tokens of a pair in a message."""
    return entry[2]


def _both(entry: _Entry) -> int:
    """The tokens of a pair in a message and in its reply."""
    return entry[2] + entry[3]


class _Remark(NamedTuple):
    text: str
    tokens: int


@final
class _Sentences:
    """Sentences to make remarks of. `least`: the tokens of the shortest."""

    def __init__(self, sentences: Iterable[str], count: Callable[[str], int]) -> None:
        self._first = [_Remark(sentence, count(sentence)) for sentence in sentences]
        self._exact: dict[int, list[_Remark]] = {}
        for remark in self._first:
            self._exact.setdefault(remark.tokens, []).append(remark)
        later = (_Remark(f" {remark.text}", count(f" {remark.text}")) for remark in self._first)
        self._later = sorted(later, key=lambda remark: -remark.tokens)
        self.least = min(remark.tokens for remark in self._first)

    def single(self, most: int, turn: int) -> _Remark:
        """One sentence of at most `most` tokens, or the shortest; `turn` picks."""
        fit = [remark for remark in self._first if remark.tokens <= max(most, self.least)]
        return fit[turn % len(fit)]

    def compose(self, tokens: int, turn: int) -> _Remark:
        """Sentences, none twice, that make `tokens` tokens: one if there is one, else a few. As near as possible below
        where none do; the shortest at the least. `turn` picks."""
        if exact := self._exact.get(tokens):
            return exact[turn % len(exact)]
        best = min(self._first, key=lambda remark: remark.tokens)
        for k in range(len(self._first)):
            remark = self._begin(self._first[(turn + k) % len(self._first)], tokens)
            if best.tokens < remark.tokens <= tokens:
                best = remark
            if best.tokens == tokens:
                break
        return best

    def _begin(self, first: _Remark, tokens: int) -> _Remark:
        """`first` and as many other sentences, long ones first, as make up `tokens`."""
        others = [remark for remark in self._later if not remark.text.endswith(first.text)]
        left = tokens - first.tokens
        chosen = [others[place] for place in _subset([remark.tokens for remark in others], left, left)]
        return _Remark(first.text + "".join(remark.text for remark in chosen), first.tokens + sum(remark.tokens for remark in chosen))


def _subset(costs: Sequence[int], low: int, high: int) -> tuple[int, ...]:
    """Places of costs that add up to between `low` and `high`; failing that, to as much as there is below `low`."""
    sums: dict[int, tuple[int, ...]] = {0: ()}
    if low <= 0:
        return ()
    for place, cost in enumerate(costs):
        for total, places in list(sums.items()):
            reached = total + cost
            if reached <= high and reached not in sums:
                sums[reached] = (*places, place)
                if reached >= low:
                    return sums[reached]
    return sums[max(sums)]


@cache
def _remarks() -> Any:
    return json.loads(REMARKS.read_text("utf-8"))
