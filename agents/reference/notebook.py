"""The default agent, without an LLM: it stores statements and answers with those that share words with the question.

It is the baseline of a memory without understanding: its scores show what keyword search achieves.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply, Tokens
from longspan.simulator.base.words import number

__all__ = ["Notebook"]

NOTED = "OK."
UNKNOWN = "I don't know."

MAX_MESSAGE = 400_000
"""The maximum characters kept of a message, from its end."""
MAX_QUOTE = 1_000
"""The maximum characters quoted of a sentence, from its start."""
MAX_LISTED = 10
"""The maximum sentences in a list; the newest are listed."""
TIE_SHARE = 0.7
"""Sentences with at least this share of the best score count as equally good; the newest is the answer."""
MAX_SEARCHED = 1_000
"""The maximum sentences considered per word, newest first. It keeps the time per question constant as the conversation grows."""
LIST_SHARE = 0.5
"""Sentences with at least this share of the best score are listed."""

STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being but by can could did do does doing done each
    every for from get give had has have he her hers here him his how i if in into is it its just let may me might mine more most must my
    no nor not now of off on one only or other our ours out over please shall she should so some such than that the their them then
    there these they this those through to too under up us very was we were what when where which while who whom whose why will with
    would yes you your yours i'd i'll i'm i've you're it's that's there's don't what's""".split()
)
"""English function words, ignored by searches."""
QUESTION_WORDS = frozenset("what when where which who whom whose why how".split())
COMMANDS = frozenset(
    "answer choose decide describe explain give list name pick remind repeat reply respond say select show state tell write".split()
)
"""First words of sentences that request an answer."""
POLITE = frozenset("please kindly now so and then also just can could would will you".split())
"""Words that may precede a command."""
LIST_WORDS = frozenset("all array each every list several".split())
NAME_WORDS = frozenset("who whom whose name names named call called".split())

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_OPTION = re.compile(r"[ \t]{0,8}\(?(\d{1,2}|[A-Z])[.):] ")
_EXAMPLE = re.compile(r"[\[{][^\[\]{}]{0,2000}[\]}]")
_KEY = re.compile(r'"(\w{1,60})"\s{0,8}:')
_DURATION = re.compile(r"\b([^\W_]+) (second|minute|hour|day|week)s?\b", re.IGNORECASE)


class NotedTurn(NamedTuple):
    """A stored turn and the numbers of its indexed sentences."""

    text: str
    sent_at: datetime
    reply: str
    sentences: range

    @property
    def tokens(self) -> int:
        """The turn's estimated tokens."""
        return _estimate(self.text) + _estimate(self.reply)


class IndexedSentence(NamedTuple):
    """An indexed sentence: its text, the stems of its words, and its turn."""

    text: str
    stems: frozenset[str]
    turn_id: str


class Match(NamedTuple):
    """A sentence that shares words with a question, and its BM25 score."""

    score: float
    number: int
    sentence: IndexedSentence


@final
class Notebook(BaseAgent):
    """Stores every statement, sentence by sentence, and answers a question with the sentences that share words with it.

    Among equally good sentences, the newest is the answer.
    """

    class Options(AgentOptions):
        window: Tokens | None = None
        """How many tokens of the conversation it keeps, the newest. The default is all."""

    @classmethod
    def danger(cls, target: str, options: Mapping[str, str]) -> None:
        """Return None: it is harmless."""

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._window: int | None = getattr(options, "window", None)
        self._clear()

    @property
    def models(self) -> Mapping[str, str]:
        """No models: it is free."""
        return {}

    async def reply(self, message: Message) -> Reply:
        """Return the answer to a question, or NOTED for other messages. A repeated turn gets the same reply."""
        if message.turn_id in self._turns:
            return Reply(self._turns[message.turn_id].reply)
        text = self._clip(message.text)
        self._make_room(_estimate(text))
        noted, question = self._note(message.turn_id, text)
        trace: dict[str, Any] = {"written": [{"id": message.turn_id}] if noted else []}
        answer = NOTED
        if question:
            answer, read = self._answer(text, question, message.sent_at)
            trace["read"] = [{"id": turn_id, "turns": [turn_id]} for turn_id in dict.fromkeys(read)]
        self._remember(message.turn_id, NotedTurn(text, message.sent_at, answer, noted))
        return Reply(answer, trace=trace)

    async def observe(self, message: Message, reply: str) -> None:
        if message.turn_id not in self._turns:
            text = self._clip(message.text)
            noted, _ = self._note(message.turn_id, text)
            self._remember(message.turn_id, NotedTurn(text, message.sent_at, self._clip(reply), noted))

    async def reset(self) -> None:
        self._clear()

    @property
    def rewinds(self) -> bool:
        """Whether nothing is ever forgotten, so that removing the newest turns is enough."""
        return self._window is None

    async def mark(self) -> None:
        self._marked = len(self._turns)

    async def rewind(self) -> None:
        for turn_id in list(self._turns)[self._marked :]:
            self._forget(turn_id)

    async def save(self, folder: Path) -> None:
        turns = [[turn_id, turn.text, turn.sent_at.isoformat(), turn.reply] for turn_id, turn in self._turns.items()]
        (folder / "notebook.json").write_text(json.dumps({"version": 2, "turns": turns}), encoding="utf-8")

    async def load(self, folder: Path) -> None:
        """Restore the saved state. Raises AgentError, and changes nothing, if the snapshot is missing or damaged."""
        turns = _read_snapshot(folder / "notebook.json")
        self._clear()
        for turn_id, text, sent_at, reply in turns:
            await self.observe(Message(text, sent_at, turn_id), reply)

    def _clear(self) -> None:
        self._turns: dict[str, NotedTurn] = {}
        self._tokens = 0
        self._sentences: dict[int, IndexedSentence] = {}
        self._next = 0
        self._words = 0
        self._index: dict[str, dict[int, None]] = {}
        self._marked = 0

    def _clip(self, text: str) -> str:
        """Return the end of `text` that is kept."""
        return text[-MAX_MESSAGE if self._window is None else -min(MAX_MESSAGE, 4 * self._window) :]

    def _note(self, turn_id: str, text: str) -> tuple[range, str]:
        """Index the sentences of statements. Return their numbers and the lines that are questions.

        The options of a multiple-choice question are not statements.
        """
        lines = [(line, _is_question(line)) for line in text.split("\n")]
        question = "\n".join(line for line, is_question in lines if is_question)
        first = self._next
        for line, is_question in () if question and _options(text) else lines:
            for sentence in () if is_question else _sentences(line):
                if stems := frozenset(_stems(sentence)):
                    self._sentences[self._next] = IndexedSentence(sentence, stems, turn_id)
                    self._words += len(stems)
                    for stem in stems:
                        self._index.setdefault(stem, {})[self._next] = None
                    self._next += 1
        return range(first, self._next), question

    def _remember(self, turn_id: str, turn: NotedTurn) -> None:
        self._turns[turn_id] = turn
        self._tokens += turn.tokens
        self._make_room(0)

    def _make_room(self, tokens: int) -> None:
        """Forget the oldest turns until `tokens` more fit into the window. The newest turn is never forgotten."""
        while self._window is not None and len(self._turns) > 1 and self._tokens + tokens > self._window:
            self._forget(next(iter(self._turns)))

    def _forget(self, turn_id: str) -> None:
        turn = self._turns.pop(turn_id)
        self._tokens -= turn.tokens
        for at in turn.sentences:
            stems = self._sentences.pop(at).stems
            self._words -= len(stems)
            for stem in stems:
                del self._index[stem][at]
                if not self._index[stem]:
                    del self._index[stem]

    def _answer(self, text: str, question: str, now: datetime) -> tuple[str, Sequence[str]]:
        """Return the answer to a question and the ids of its source turns."""
        words = {word.casefold() for word in _WORD.findall(question)}
        matches = self._search(_EXAMPLE.sub(" ", question))
        options = _options(text)
        if options:
            return self._choose(options), [match.sentence.turn_id for match in matches[:1]]
        past = _past_time(question, now) if "ago" in words else None
        if past is not None and self._turns:
            turn_id = self._turn_at(past, matches)
            return self._turns[turn_id].text[:MAX_QUOTE], [turn_id]
        listing = bool(words & LIST_WORDS)
        keys = _KEY.findall(question)
        if not matches:
            return ("[]" if listing and "json" in words else UNKNOWN), []
        if listing or len(words & QUESTION_WORDS) > 1:
            used = _newest(matches, LIST_SHARE)[-MAX_LISTED:]
        else:
            used = _newest(matches, TIE_SHARE)[-1:]
        sources = [match.sentence.turn_id for match in used]
        if not keys and "json" not in words:
            return "\n".join(match.sentence.text[:MAX_QUOTE] for match in used), sources
        values = [_new_words(match.sentence.text, question, name=bool(words & NAME_WORDS)) for match in used]
        answer: Any = list(dict.fromkeys(values)) if listing else dict.fromkeys(keys or ["answer"], values[-1])
        return json.dumps(answer, ensure_ascii=False), sources

    def _search(self, text: str) -> list[Match]:
        """Return the sentences that share words with `text`, by BM25 score, best first and newest first among equals."""
        scores: dict[int, float] = {}
        lengths = 0.9 * len(self._sentences) / max(1, self._words)
        for stem in dict.fromkeys(_stems(text)):
            holders = self._index.get(stem, {})
            weight = self._rarity(stem)
            for at in islice(reversed(holders), MAX_SEARCHED):
                scores[at] = scores.get(at, 0.0) + weight / (1.3 + lengths * len(self._sentences[at].stems))
        matches = [Match(score, at, self._sentences[at]) for at, score in scores.items()]
        return sorted(matches, key=lambda match: (-match.score, -match.number))

    def _rarity(self, stem: str) -> float:
        holders = len(self._index.get(stem, ()))
        return math.log(1 + (len(self._sentences) - holders + 0.5) / (holders + 0.5))

    def _choose(self, options: Sequence[tuple[str, str]]) -> str:
        """Return the label of the most familiar option: the one with the largest weighted share of known words."""

        def familiarity(option: tuple[str, str]) -> float:
            weights = [(self._rarity(stem), stem in self._index) for stem in dict.fromkeys(_stems(option[1]))]
            return sum(weight for weight, known in weights if known) / max(1.0, sum(weight for weight, _ in weights))

        return max(options, key=familiarity)[0]

    def _turn_at(self, past: tuple[datetime, timedelta], matches: Sequence[Match]) -> str:
        """Return the id of the turn nearest to a time. Of several within its margin, return the best match for the question."""
        then, margin = past
        distances = {turn_id: abs(turn.sent_at - then) for turn_id, turn in self._turns.items()}
        nearest = min(distances.values())
        scores = {match.sentence.turn_id: match.score for match in reversed(matches)}
        near = [turn_id for turn_id, distance in distances.items() if distance <= max(nearest, margin)]
        return max(near, key=lambda turn_id: (scores.get(turn_id, 0.0), -distances[turn_id]))


def _estimate(text: str) -> int:
    """Estimate the tokens of `text` at four characters per token."""
    return len(text) // 4 + 1


def _sentences(line: str) -> list[str]:
    return [sentence for sentence in map(str.strip, _SENTENCE_END.split(line)) if sentence]


def _is_question(line: str) -> bool:
    """Return whether a line contains a question, a command to answer, or the name of an answer format."""
    for sentence in _sentences(line):
        if sentence.rstrip("\"'”’)").endswith("?") or _KEY.search(sentence):
            return True
        words = (match[0].casefold() for match in _WORD.finditer(sentence))
        if next((word for word in words if word not in POLITE), "") in COMMANDS:
            return True
        if re.search(r"\bjson\b", sentence, re.IGNORECASE):
            return True
    return False


def _stems(text: str) -> Iterator[str]:
    """Yield the stems of the words in `text`, without function words."""
    words = (match[0].casefold().replace("’", "'") for match in _WORD.finditer(text))
    return (_stem(word[:60]) for word in words if word not in STOP_WORDS)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for suffix, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + replacement
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _newest(matches: Sequence[Match], share: float) -> list[Match]:
    """Return the matches with at least a share of the best score, newest last."""
    return sorted((match for match in matches if match.score >= share * matches[0].score), key=lambda match: match.number)


def _new_words(sentence: str, question: str, *, name: bool) -> str:
    """Return a sentence's last run of words that are not in the question. If the question asks for a name, prefer capitalised words."""
    known = set(_stems(question))
    words = [match for match in _WORD.finditer(sentence[:MAX_QUOTE]) if set(_stems(match[0])) - known]
    words = [match for match in words if name and match[0][0].isupper()] or words
    if not words:
        return sentence[:MAX_QUOTE]
    start, end = words[-1].span()
    for match in reversed(words[:-1]):
        if sentence[match.end() : start] != " ":
            break
        start = match.start()
    return sentence[start:end]


def _options(text: str) -> list[tuple[str, str]]:
    """Return the options of a multiple-choice question, as label and text: lines labelled from 1 or A."""
    options = [(match[1], line[match.end() :]) for line in text.split("\n") if (match := _OPTION.match(line))]
    return options if len(options) > 1 and options[0][0] in "1A" else []


def _past_time(question: str, now: datetime) -> tuple[datetime, timedelta] | None:
    """Return the time that a question means by "... ago", and a margin of half the smallest unit. None if it names no duration."""
    amounts = [(number(amount), unit.casefold()) for amount, unit in _DURATION.findall(question[:MAX_QUOTE])]
    durations = [(amount, timedelta(**{f"{unit}s": 1})) for amount, unit in amounts if amount is not None]
    if not durations:
        return None
    try:
        return now - sum((amount * unit for amount, unit in durations), timedelta()), min(unit for _, unit in durations) / 2
    except OverflowError:
        return None


def _read_snapshot(path: Path) -> list[tuple[str, str, datetime, str]]:
    """Return the turns saved in a file. Raises AgentError if it is missing or damaged."""
    try:
        saved: Any = json.loads(path.read_text(encoding="utf-8"))
        if saved["version"] != 2:
            raise ValueError(f"its version is {saved['version']!r:.20}, not 2")
        turns: dict[str, tuple[str, str, datetime, str]] = {}
        for turn_id, text, sent_at, reply in saved["turns"]:
            at = datetime.fromisoformat(sent_at)
            if not all(isinstance(field, str) for field in (turn_id, text, reply)) or at.tzinfo is not None or turn_id in turns:
                raise ValueError("a turn is damaged or occurs twice")
            turns[turn_id] = (turn_id, text, at, reply)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise AgentError(f"notebook cannot read its snapshot {path.name}: {type(error).__name__}: {error}") from error
    return list(turns.values())
