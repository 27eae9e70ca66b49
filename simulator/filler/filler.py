"""Filler: distraction that belongs to no test, made to a given number of tokens (GoodAI, section 3.1 and figure 4).

A message either lists questions with their answers and asks for the answers as a JSON list, as in the paper, or chats: remarks, news, and
small tasks. The reply is known. Both kinds have lines that end in a newline, and a closing remark. In both encodings, such a line has the
same tokens alone as in a sequence, because no line starts with a space or a slash. So each line is counted once, and a message's tokens are
the sum over its lines.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.filler.draws import read_word_list

__all__ = ["Distraction", "Filler", "Pair", "Source"]

REQUEST: Final = "Here are questions, each with its answer. Give me all the answers in order, as a JSON list of strings.\n"
SHORT_REQUEST: Final = "Just the answers as a JSON list:\n"
BRIEF: Final = 150
"""A message with fewer tokens has the short request, or no opening. At least this number of tokens is left for the next message."""
MAX_ENTRY_TOKENS: Final = 120
"""The most tokens of a question with its answer, or of a line of chat with its reply. Longer ones are skipped."""
MAX_CLOSING_TOKENS: Final = 12
"""The most tokens of the closing remark, if the entries in the pool allow it."""
MAX_SKIPPED: Final = 10_000
"""The most consecutive entries that may be too long."""
POOL_SIZE: Final = 32
"""The number of entries in the pool to choose from."""
CHATS: Final = 2
"""How often filler is chat, if the source has any. Of long messages, one in CHATS is a chat; of brief ones, all but one in CHATS."""
_quote = json.JSONEncoder(ensure_ascii=False).encode

Pair = tuple[str, str]
"""A question and its answer, or a line of chat and its reply ("" if it has none). Each is one line without surrounding spaces."""


class Source(Protocol):
    """A source of filler. `pairs` and `chat` yield the same items on each call."""

    def pairs(self) -> Iterator[Pair]:
        """Yield questions with their answers, without end."""
        ...

    def chat(self) -> Iterator[Pair]:
        """Yield lines of chat with their replies, without end, or nothing at all."""
        ...

    def reseed(self, seed: str) -> Source:
        """Return the source with another seed."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Distraction:
    """A message and its reply, with their numbers of tokens."""

    text: str
    reply: str
    text_tokens: int
    reply_tokens: int


class _Entry(NamedTuple):
    """A line of a message and its line of the reply, with their numbers of tokens. Both include the newline. The reply's line may be ""."""

    text: str
    reply: str
    text_tokens: int
    reply_tokens: int

    @property
    def tokens(self) -> int:
        return self.text_tokens + self.reply_tokens


@final
class Filler:
    """Makes filler from a source. The same source and the same calls in the same order give the same filler.

    `max_tokens` is the most tokens of a message and its reply together, at least 100. Raises ValueError if it is smaller, and InputError if
    all of the source's questions are too long.
    """

    def __init__(self, source: Source, tokenizer: Tokenizer, *, max_tokens: int = 2000) -> None:
        if max_tokens < 100:
            raise ValueError(f"max_tokens must be >= 100, got {max_tokens}")
        self._source = source
        self._tokenizer = tokenizer
        self._count = tokenizer.count_pieces
        self._max_tokens = max_tokens
        self._number = 0  # messages so far, to select the remarks
        self._pairs = _Pool(self._list_pairs(source.pairs()))
        self._chat = _Pool(self._list_talk(source.chat()))
        said = _remarks(tokenizer.name)
        self._requests, self._brackets, self._openings = said.requests, said.brackets, said.openings
        self._asides, self._replies, self._closings, self._endings = said.asides, said.replies, said.closings, said.endings

    def reseed(self, seed: str) -> Filler:
        """Return a separate filler with the same kind of source. Its output depends on `seed` alone."""
        return Filler(self._source.reseed(seed), self._tokenizer, max_tokens=self._max_tokens)

    def make(self, gap: int) -> Distraction:
        """Make filler whose message and reply have `gap` tokens together.

        If the gap exceeds `max_tokens`, the filler has fewer tokens and the caller asks again. The rest of the gap is then at least BRIEF,
        provided that `max_tokens` is at least twice that. A gap too small for a question or a line of chat gets a remark of at least 4
        tokens.

        Raises ValueError for a gap below 1.
        """
        if gap < 1:
            raise ValueError(f"gap must be >= 1, got {gap}")
        self._number += 1
        target = self.share(gap)
        chats = (self._number % CHATS == 0) == (target >= BRIEF)
        forms = (self._make_chat, self._make_list) if chats else (self._make_list, self._make_chat)
        return forms[0](target) or forms[1](target) or self._aside(target)

    def ask(self, max_tokens: int = 60) -> Distraction:
        """Make filler that the agent answers: a message of at most `max_tokens` tokens (and the filler's own limit), with the ideal reply.

        If `max_tokens` is too small for a question, the message is a remark. Raises ValueError for `max_tokens` below 1.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be >= 1, got {max_tokens}")
        self._number += 1
        max_tokens = min(max_tokens, self._max_tokens)
        left = max_tokens - self._requests[SHORT_REQUEST]
        entries = []
        while entry := self._pairs.take(lambda entry, room=left - self._closings.least: entry.text_tokens <= room):  # type: ignore[misc]
            entries.append(entry)
            left -= entry.text_tokens
        if not entries:
            return self._remark(min(max_tokens, MAX_CLOSING_TOKENS), self._replies.single(MAX_CLOSING_TOKENS, self._number))
        entries[-1] = self._without_comma(entries[-1])
        return self._list(SHORT_REQUEST, entries, self._closings.single(min(left, MAX_CLOSING_TOKENS), self._number))

    def remark(self, tokens: int, number: int) -> str:
        """Return small talk without a question, of at most `tokens` tokens or else as short as possible. It depends on `number` alone."""
        return self._asides.compose(tokens, number).text

    def share(self, gap: int) -> int:
        """Return how many tokens of a gap one message fills."""
        if gap <= self._max_tokens:
            return gap
        if gap < self._max_tokens + BRIEF:
            return min(self._max_tokens, (gap + 1) // 2)
        return self._max_tokens

    # Questions with answers.

    def _list_pairs(self, pairs: Iterator[Pair]) -> Iterator[_Entry]:
        """Yield the pairs that are not too long. Raises InputError after too many consecutive long ones."""
        skipped = 0
        while skipped < MAX_SKIPPED:
            question, answer = next(pairs)
            entry = self._entry(f"Q: {question} A: {answer}\n", f"{_quote(answer)},\n")
            skipped += 1
            if entry.tokens <= MAX_ENTRY_TOKENS:
                skipped = 0
                yield entry
        raise InputError(f"the filler's source has no question of at most {MAX_ENTRY_TOKENS} tokens with its answer; use another source")

    def _make_list(self, target: int) -> Distraction | None:
        """Make a list of questions with answers, or return None if none fits into `target` tokens."""
        request = REQUEST if target >= BRIEF else SHORT_REQUEST
        left = target - self._requests[request] - self._brackets
        last = self._pairs.take(lambda entry: max(entry.tokens, self._without_comma(entry).tokens) <= left - self._closings.least)
        if last is None:
            return None
        last = self._without_comma(last)
        entries, left = self._pairs.fill(left - last.tokens, self._closings.least)
        return self._list(request, [*entries, last], self._closings.compose(left, self._number))

    def _without_comma(self, entry: _Entry) -> _Entry:
        """Return the last pair of a list, without its comma."""
        return self._entry(entry.text, entry.reply.removesuffix(",\n") + "\n")

    def _list(self, request: str, entries: Sequence[_Entry], closing: _Remark) -> Distraction:
        texts, replies, tokens, reply_tokens = zip(*entries, strict=True)
        return Distraction(
            text=f"{request}{''.join(texts)}{closing.text}",
            reply=f"[\n{''.join(replies)}]",
            text_tokens=self._requests[request] + sum(tokens) + closing.tokens,
            reply_tokens=self._brackets + sum(reply_tokens),
        )

    # Chat.

    def _list_talk(self, lines: Iterator[Pair]) -> Iterator[_Entry]:
        for line, reply in lines:
            entry = self._entry(f"{line}\n", f"{reply}\n" if reply else "")
            if entry.tokens <= MAX_ENTRY_TOKENS:
                yield entry

    def _make_chat(self, target: int) -> Distraction | None:
        """Make a message from lines of chat, or return None if the source has none that fits into `target` tokens."""
        opening = self._openings[self._number % len(self._openings)] if target >= BRIEF else _Remark("", 0)
        reply = self._replies.single(MAX_CLOSING_TOKENS, self._number)
        left = target - opening.tokens - reply.tokens
        first = self._chat.take(lambda entry: entry.tokens <= left - self._endings.least)
        if first is None:
            return None
        entries, left = self._chat.fill(left - first.tokens, self._endings.least)
        entries.insert(0, first)
        ending = self._endings.compose(left, self._number)
        return Distraction(
            text=f"{opening.text}{''.join(entry.text for entry in entries)}{ending.text}",
            reply=f"{''.join(entry.reply for entry in entries)}{reply.text}",
            text_tokens=opening.tokens + sum(entry.text_tokens for entry in entries) + ending.tokens,
            reply_tokens=sum(entry.reply_tokens for entry in entries) + reply.tokens,
        )

    def _entry(self, text: str, reply: str) -> _Entry:
        return _Entry(text, reply, self._count(text), self._count(reply))

    # Remarks.

    def _aside(self, tokens: int) -> Distraction:
        """Make a remark without a question, of `tokens` tokens together with its reply, or as short as possible."""
        reply = self._replies.single(max(self._replies.least, min(tokens // 3, tokens - self._asides.least)), self._number)
        return self._remark(max(self._asides.least, tokens - reply.tokens), reply)

    def _remark(self, tokens: int, reply: _Remark) -> Distraction:
        text = self._asides.compose(tokens, self._number)
        return Distraction(text.text, reply.text, text.tokens, reply.tokens)


@final
class _Pool:
    """The next entries of a source, to choose from. Empty if the source is empty."""

    def __init__(self, entries: Iterator[_Entry]) -> None:
        self._entries = entries
        self._pool: deque[_Entry] = deque()

    def take(self, fits: Callable[[_Entry], bool]) -> _Entry | None:
        """Take the first entry that fits, or return None."""
        self._refill()
        for index, entry in enumerate(self._pool):
            if fits(entry):
                del self._pool[index]
                return entry
        return None

    def fill(self, room: int, least: int) -> tuple[list[_Entry], int]:
        """Take entries until the rest of `room` is between `least` and MAX_CLOSING_TOKENS tokens, or as small as possible. Return them with
        the rest."""
        entries = []
        while room >= MAX_ENTRY_TOKENS + MAX_CLOSING_TOKENS:
            entry = next(self._entries)
            entries.append(entry)
            room -= entry.tokens
        self._refill()
        chosen = _subset([entry.tokens for entry in self._pool], room - MAX_CLOSING_TOKENS, room - least)
        for index in reversed(chosen):
            entries.append(self._pool[index])
            room -= self._pool[index].tokens
            del self._pool[index]
        return entries, room

    def _refill(self) -> None:
        while len(self._pool) < POOL_SIZE and (entry := next(self._entries, None)):
            self._pool.append(entry)


class _Remark(NamedTuple):
    text: str
    tokens: int


@final
class _Sentences:
    """Sentences for remarks. `least` is the number of tokens of the shortest one."""

    def __init__(self, sentences: Iterable[str], count: Callable[[str], int]) -> None:
        self._first = [_Remark(sentence, count(sentence)) for sentence in sentences]
        self._exact: dict[int, list[_Remark]] = {}
        for remark in self._first:
            self._exact.setdefault(remark.tokens, []).append(remark)
        later = (_Remark(f" {remark.text}", count(f" {remark.text}")) for remark in self._first)
        self._later = sorted(later, key=lambda remark: -remark.tokens)
        self.least = min(remark.tokens for remark in self._first)

    def single(self, max_tokens: int, turn: int) -> _Remark:
        """Return one sentence of at most `max_tokens` tokens, selected by `turn`, or the shortest."""
        fit = [remark for remark in self._first if remark.tokens <= max(max_tokens, self.least)]
        return fit[turn % len(fit)]

    def compose(self, tokens: int, turn: int) -> _Remark:
        """Return distinct sentences of `tokens` tokens together: one if possible, else several.

        If none fit exactly, they have the highest possible number of tokens below that, and at least one sentence. `turn` selects among
        candidates.
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


@final
class _Remarks(NamedTuple):
    """All that filler says apart from the entries of its source, with token counts."""

    requests: dict[str, int]
    brackets: int
    openings: list[_Remark]
    asides: _Sentences
    replies: _Sentences
    closings: _Sentences
    endings: _Sentences


@cache
def _remarks(tokenizer: EncodingName) -> _Remarks:
    count = Tokenizer(tokenizer).count
    remarks = read_word_list("remarks")
    return _Remarks(
        requests={text: count(text) for text in (REQUEST, SHORT_REQUEST)},
        brackets=count("[\n") + count("]"),
        openings=[_Remark(f"{opening}\n", count(f"{opening}\n")) for opening in remarks["openings"]],
        **{name: _Sentences(remarks[name], count) for name in ("asides", "replies", "closings", "endings")},
    )
