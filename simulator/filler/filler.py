"""Filler: distraction that belongs to no test, to a given number of tokens (GoodAI, section 3.1 and figure 4).

A filler message lists questions with their answers and asks for the answers as a JSON list; the reply is known. Both are built
from lines that end in a newline, and from remarks of whole sentences. In both encodings such pieces have the same tokens alone
as in sequence, so that each is counted once and a message's tokens are the sum of its pieces'. That holds because no piece starts
with a space or a slash, except a sentence that follows another one.
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
"""Tokens below which a message has the short request; also the minimum that is left for the next message."""
MAX_PAIR_TOKENS: Final = 120
"""Maximum tokens of a pair; longer ones are skipped."""
MAX_CLOSING_TOKENS: Final = 12
"""Maximum tokens of the closing remark, if the pairs in the pool allow it."""
MAX_SKIPPED: Final = 10_000
"""Maximum consecutive pairs that are too long."""
CACHED_ANSWERS: Final = 8192
"""Answers whose token counts are cached."""
POOL_SIZE: Final = 32
"""Pairs in the pool to choose from."""
_quote = json.JSONEncoder(ensure_ascii=False).encode
REMARKS: Final = Path(__file__).parents[1] / "data" / "remarks.json"


Count = Callable[[str], int]
"""Counts the tokens of a text: see `Tokenizer.count_piece`."""

Pair = tuple[str, int, str]
"""A question with a leading space, its tokens including the space, and its answer. Both texts are one line, with single spaces
between words and none at the end."""


_Entry = tuple[str, str, int, int]
"""A pair's text in a message and in its reply, with its tokens in each."""


class Source(Protocol):
    """A source of questions."""

    def pairs(self, count_piece: Count) -> Iterator[Pair]:
        """Yield pairs without end, the same each time. Text shared by many questions is a piece of its own, counted once."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Distraction:
    """A message and its reply, with their tokens."""

    text: str
    reply: str
    text_tokens: int
    reply_tokens: int


@final
class Filler:
    """Makes filler from a source. The same source and the same calls in the same order give the same filler.

    `max_tokens` is the maximum of a message and its reply together, at least 100. Raises ValueError if it is smaller, and
    InputError if the source has only long questions.
    """

    def __init__(self, source: Source, tokenizer: Tokenizer, *, max_tokens: int = 2000) -> None:
        if max_tokens < 100:
            raise ValueError(f"max_tokens must be >= 100, got {max_tokens}")
        self._count, self._count_plain = tokenizer.count, tokenizer.count_plain
        self._max_tokens = max_tokens
        self._number = 0  # messages so far, which select the remarks
        self._entries = self._short_pairs(source.pairs(tokenizer.count_piece))
        self._pool: deque[_Entry] = deque()
        self._requests = {text: self._count(text) for text in (REQUEST, SHORT_REQUEST)}
        self._brackets = self._count("[\n") + self._count("]")
        remarks = _remarks()
        self._asides = _Sentences(remarks["asides"], self._count)
        self._replies = _Sentences(remarks["replies"], self._count)
        self._closings = _Sentences(remarks["closings"], self._count)

    def make(self, gap: int) -> Distraction:
        """Make filler whose message and reply have `gap` tokens together.

        For a gap above `max_tokens` it has fewer, and the caller asks again. What is left then is at least BRIEF, if `max_tokens`
        is at least twice that. A gap too small for a question gets a remark of at least 4 tokens.

        Raises ValueError for a gap below 1.
        """
        if gap < 1:
            raise ValueError(f"gap must be >= 1, got {gap}")
        self._begin()
        target = self._first_share(gap)
        request = REQUEST if target >= BRIEF else SHORT_REQUEST
        left = target - self._requests[request] - self._brackets
        last = self._take_last(left - self._closings.least, _total_tokens)
        if last is None:
            return self._aside(target)
        left -= _total_tokens(last)
        return self._list(request, *self._fit(left, last))

    def ask(self, max_tokens: int = 60) -> Distraction:
        """Make filler that the agent answers: a message of at max_tokens `max_tokens` tokens, with the ideal reply.

        If they are too few for a question, it is a remark. Raises ValueError for `max_tokens` below 1.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be >= 1, got {max_tokens}")
        self._begin()
        left = max_tokens - self._requests[SHORT_REQUEST]
        last = self._take_last(left - self._closings.least, _message_tokens)
        if last is None:
            return self._remark(min(max_tokens, MAX_CLOSING_TOKENS), self._replies.single(MAX_CLOSING_TOKENS, self._number))
        left -= _message_tokens(last)
        entries = []
        while _message_tokens(self._pool[0]) + self._closings.least <= left:
            entries.append(self._pool.popleft())
            self._refill()
            left -= _message_tokens(entries[-1])
        return self._list(SHORT_REQUEST, [*entries, last], self._closings.single(min(left, MAX_CLOSING_TOKENS), self._number))

    def _begin(self) -> None:
        self._number += 1
        self._refill()

    def _first_share(self, gap: int) -> int:
        """The tokens of a gap that one message fills."""
        if gap <= self._max_tokens:
            return gap
        if gap < self._max_tokens + BRIEF:
            return min(self._max_tokens, (gap + 1) // 2)
        return self._max_tokens

    # Pairs.

    def _refill(self) -> None:
        while len(self._pool) < POOL_SIZE:
            self._pool.append(next(self._entries))

    def _short_pairs(self, pairs: Iterator[Pair]) -> Iterator[_Entry]:
        """Yield the pairs that are not too long. Raises InputError if too many in a row are."""
        answered = lru_cache(CACHED_ANSWERS)(self._answered)
        skipped = 0
        for question, question_tokens, answer in pairs:
            answer_tokens, reply, reply_tokens = answered(answer)
            tokens = question_tokens + answer_tokens
            if tokens + reply_tokens <= MAX_PAIR_TOKENS:
                skipped = 0
                yield f"Q:{question} A: {answer}\n", reply, tokens, reply_tokens
                continue
            skipped += 1
            if skipped == MAX_SKIPPED:
                break
        raise InputError(f"the filler's source has no question of at most {MAX_PAIR_TOKENS} tokens with its answer; use another source")

    def _answered(self, answer: str) -> tuple[int, str, int]:
        """Return the tokens of a pair without its question, its answer in a reply, and the tokens there."""
        reply = _quote(answer)
        return self._count_plain(f"Q: A: {answer}\n"), reply, self._count_plain(f"{reply},\n")

    def _take_last(self, room: int, cost: Callable[[_Entry], int]) -> _Entry | None:
        """Take the last pair of a list from the pool, the first one whose cost fits into `room`. Its reply has no comma."""
        for index, entry in enumerate(self._pool):
            if cost(entry) <= room:
                text, reply, tokens, _ = entry
                last = (text, reply, tokens, self._count(f"{reply}\n"))
                if cost(last) <= room:
                    del self._pool[index]
                    self._refill()
                    return last
        return None

    def _fit(self, left: int, last: _Entry) -> tuple[list[_Entry], _Remark]:
        """Return pairs that end in `last`, and a closing remark, of `left` tokens in addition to `last`."""
        entries: list[_Entry] = []
        while left >= MAX_PAIR_TOKENS + MAX_CLOSING_TOKENS:
            entry = next(self._entries)
            entries.append(entry)
            left -= entry[2] + entry[3]
        costs = [_total_tokens(entry) for entry in self._pool]
        chosen = _subset(costs, left - MAX_CLOSING_TOKENS, left - self._closings.least)
        for index in reversed(chosen):
            entries.append(self._pool[index])
            left -= costs[index]
            del self._pool[index]
        return [*entries, last], self._closings.compose(left, self._number)

    def _list(self, request: str, entries: Sequence[_Entry], closing: _Remark) -> Distraction:
        """Build a message from `entries`. The last entry's tokens are those without a comma in the reply."""
        texts, replies, tokens, reply_tokens = zip(*entries, strict=True)
        return Distraction(
            text=f"{request}{''.join(texts)}{closing.text}",
            reply="[\n" + ",\n".join(replies) + "\n]",
            text_tokens=self._requests[request] + sum(tokens) + closing.tokens,
            reply_tokens=self._brackets + sum(reply_tokens),
        )

    # Remarks.

    def _aside(self, tokens: int) -> Distraction:
        """Make a remark without a question that has `tokens` tokens with its reply, or the fewest possible."""
        reply = self._replies.single(max(self._replies.least, min(tokens // 3, tokens - self._asides.least)), self._number)
        return self._remark(max(self._asides.least, tokens - reply.tokens), reply)

    def _remark(self, tokens: int, reply: _Remark) -> Distraction:
        text = self._asides.compose(tokens, self._number)
        return Distraction(text.text, reply.text, text.tokens, reply.tokens)


def _message_tokens(entry: _Entry) -> int:
    """The tokens of a pair in a message."""
    return entry[2]


def _total_tokens(entry: _Entry) -> int:
    """The tokens of a pair in a message and in its reply."""
    return entry[2] + entry[3]


class _Remark(NamedTuple):
    text: str
    tokens: int


@final
class _Sentences:
    """Sentences of remarks. `least` is the number of tokens of the shortest."""

    def __init__(self, sentences: Iterable[str], count: Callable[[str], int]) -> None:
        self._first = [_Remark(sentence, count(sentence)) for sentence in sentences]
        self._exact: dict[int, list[_Remark]] = {}
        for remark in self._first:
            self._exact.setdefault(remark.tokens, []).append(remark)
        later = (_Remark(f" {remark.text}", count(f" {remark.text}")) for remark in self._first)
        self._later = sorted(later, key=lambda remark: -remark.tokens)
        self.least = min(remark.tokens for remark in self._first)

    def single(self, max_tokens: int, turn: int) -> _Remark:
        """Return one sentence of at max_tokens `max_tokens` tokens, or the shortest. `turn` selects one."""
        fit = [remark for remark in self._first if remark.tokens <= max(max_tokens, self.least)]
        return fit[turn % len(fit)]

    def compose(self, tokens: int, turn: int) -> _Remark:
        """Return distinct sentences of `tokens` tokens together: one if possible, else several.

        If none fit exactly, they have as many tokens as possible below that, but at least one sentence. `turn` selects one.
        """
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
        """Return `first` and other sentences, long ones first, up to `tokens` tokens."""
        others = [remark for remark in self._later if not remark.text.endswith(first.text)]
        left = tokens - first.tokens
        chosen = [others[index] for index in _subset([remark.tokens for remark in others], left, left)]
        return _Remark(first.text + "".join(remark.text for remark in chosen), first.tokens + sum(remark.tokens for remark in chosen))


def _subset(costs: Sequence[int], low: int, high: int) -> tuple[int, ...]:
    """Return indices of costs whose sum is between `low` and `high`, or else as large as possible below `low`."""
    sums: dict[int, tuple[int, ...]] = {0: ()}
    if low <= 0:
        return ()
    for index, cost in enumerate(costs):
        for total, indices in list(sums.items()):
            reached = total + cost
            if reached <= high and reached not in sums:
                sums[reached] = (*indices, index)
                if reached >= low:
                    return sums[reached]
    return sums[max(sums)]


@cache
def _remarks() -> Any:
    return json.loads(REMARKS.read_text("utf-8"))
