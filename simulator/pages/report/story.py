"""Why a test has its score, in one sentence: the evidence that its question needed, the evidence retrieved instead, and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import shorten
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.contract.rungs import OUTCOMES, find_rungs
from longspan.simulator.filler.draws import join_words
from longspan.simulator.pages.report.run_view import TestView, TurnView
from longspan.simulator.results.measures.memory_losses import LOST, Outcome, need_outcomes

__all__ = ["Story"]

MAX_NAMED: Final = 3
"""The maximum number of turns that a sentence names; the others are counted."""

MAX_GIST: Final = 3
"""The maximum number of words that summarise a turn. If more words match, they do not characterise it, and none is given."""

MAX_CHARS: Final = 60
"""The maximum characters of a reply in the sentence."""

INSTEAD_CHARS: Final = 48
"""The maximum characters of a turn that was retrieved instead."""

EXPECTED_CHARS: Final = 200

READ_CHARS: Final = 4_000
"""The characters of a message or reply that are searched for words."""

WORDS: Final = re.compile(r"\w+")

NAMES: Final = re.compile(r"\d+|(?<=[^\W\d_] )[^\W\d_a-z]\w+")
"""Matches numbers, and words that begin with a capital letter inside a sentence."""

SETTLED: Final = ("old", "confused", "other", "several")
"""The outcomes of wrong answers that the sentence describes."""

LOSSES: Final[dict[Outcome, str]] = {
    "not_stored": "not stored",
    "not_retrieved": "stored, not retrieved",
    "forgotten": "forgotten on request",
    "not_shown": "not in the prompt",
}


@final
class Story(NamedTuple):
    """The fate of the question that decides a test.

    It is the first question that lacks a needle, or else the first that was not answered right, or else the last. Turns are given by
    number. `question` is None for a test without a question. `expected` is empty without an ideal reply.
    """

    sentence: str
    question: int | None
    needed: list[int]
    retrieved: list[int]
    expected: str

    @classmethod
    def of(cls, test: TestView) -> Story:
        number = _deciding_turn(test, [(need.turn, fate) for need, fate in need_outcomes(test.result)])
        return cls._about(test, number, test.result.score)

    @classmethod
    def of_fact(cls, test: TestView, number: int) -> Story:
        """Return the fate of a question for facts, given by its turn: whether it was answered right, and the value in the answer."""
        items = [item for item in test.result.items if item.turn == number]
        rung = find_rungs(items)[-1]
        story, note = cls._about(test, number, rung.score), items[-1].note
        verdict = "Undecided" if rung.score is None else "Right" if rung.score == 1 else "In part" if rung.score else "Wrong"
        settled = f" That is {OUTCOMES[rung.outcome]}." if rung.outcome in SETTLED else ""
        told = any(pair.question_turn == number and pair.retrieved is not None for pair in test.result.evidence)
        return story._replace(sentence=f"{verdict}{f': {note}' if note else ''}.{settled}{f' {story.sentence}' if told else ''}")

    @classmethod
    def _about(cls, test: TestView, number: int | None, score: float | None) -> Story:
        conversation = test.conversation
        fates = need_outcomes(test.result)
        question = conversation.turn(number) if conversation is not None and number is not None else None
        if conversation is None or question is None:
            return cls("It was not played." if conversation is None else "It has no question yet.", None, [], [], "")
        own = [(need.nearest.needle_turn, fate) for need, fate in fates if need.turn == question.number]
        needed = list(dict.fromkeys(turn for turn, _ in own))
        recalled = [turn for turn in question.recalled if turn not in needed]
        ideal = test.expected.get(question.number)
        expected = ideal.shorter(EXPECTED_CHARS).head if ideal is not None else ""
        turns = _Turns(
            [turn for turn in map(conversation.turn, needed) if turn is not None],
            [turn for turn in map(conversation.turn, recalled[:MAX_NAMED]) if turn is not None],
            question,
            expected,
        )
        return cls(_sentence(turns, own, recalled, score), question.number, needed, recalled[:MAX_NAMED], expected)

    def data(self) -> dict[str, Any]:
        """Return the story as JSON, for the page's script."""
        values = self._asdict() | {"sentence": escape_invisible(self.sentence), "expected": escape_invisible(self.expected)}
        return {key: value for key, value in values.items() if value not in (None, "", [])}


class _Turns(NamedTuple):
    """The turns of a story: the needed ones, the first of the other retrieved ones, and the question with the ideal reply."""

    needed: Sequence[TurnView]
    recalled: Sequence[TurnView]
    question: TurnView
    expected: str


def _deciding_turn(test: TestView, fates: Sequence[tuple[int, Outcome]]) -> int | None:
    lost = [turn for turn, fate in fates if fate in LOST]
    wrong = [turn for turn, fate in fates if fate == "found_wrong"]
    asked = [turn.number for turn in test.turns if turn.message.test == test.result.id and turn.message.kind == "question"]
    return min(lost or wrong, default=asked[-1] if asked else None)


def _sentence(turns: _Turns, own: Sequence[tuple[int, Outcome]], recalled: Sequence[int], score: float | None) -> str:
    parts = []
    lost = [(turn, fate) for turn, fate in own if fate in LOST]
    found = [turn for turn, fate in own if fate.startswith("found")]
    if lost:
        how = " and ".join(dict.fromkeys(LOSSES[fate] for _, fate in lost))
        parts.append(f"Needed {_name_turns(turns, [turn for turn, _ in lost])}: {how}")
        if found:
            parts.append(f"retrieved {_name_turns(turns, found)}")
        known = lost[0][1] != "not_shown"
        if recalled:
            parts.append(f"retrieved {_instead(turns, recalled)}")
        elif known and not found:
            parts.append("retrieved nothing")
    elif found:
        parts.append(f"Retrieved {_name_turns(turns, found)}")
    elif own:
        parts.append(f"Needed {_name_turns(turns, [turn for turn, _ in own])}; retrieval is unreported")
    yet = bool(found) and not lost and score != 1
    said = "; ".join(parts)
    return f"{said}{', but ' if yet else '; ' if said else ''}{_answer(turns, score)}."


def _answer(turns: _Turns, score: float | None) -> str:
    reply = turns.question.reply
    if reply is None:
        return "there is no answer yet"
    text = " ".join(reply.head.split())
    said = f"“{shorten(text, MAX_CHARS, placeholder=' …')}”" if text else "nothing"
    return f"answered {said}{', which is right' if score == 1 else ''}"


def _instead(turns: _Turns, numbers: Sequence[int]) -> str:
    """Name the turns that were retrieved instead of the needed ones, by their words. If none has any, quote the start of the first."""
    known = {turn.number: turn for turn in turns.recalled}
    first = known.get(numbers[0])
    if first is None or any(_gist(turns, turn) for turn in turns.recalled):
        return f"{_name_turns(turns, numbers)} instead"
    said = shorten(" ".join(first.text.head[:READ_CHARS].split()), INSTEAD_CHARS, placeholder=" …")
    more = f", and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
    return f"turn {first.number} instead{f' (“{said}”)' if said else ''}{more}"


def _name_turns(turns: _Turns, numbers: Sequence[int]) -> str:
    known = {turn.number: turn for turn in (*turns.needed, *turns.recalled)}
    names = []
    for number in numbers[:MAX_NAMED]:
        gist = _gist(turns, known[number]) if number in known else ""
        names.append(f"{number} ({gist})" if gist else str(number))
    if len(numbers) > MAX_NAMED:
        names.append(f"{len(numbers) - MAX_NAMED:,} more")
    return f"turn{'s' if len(numbers) > 1 else ''} {join_words(names)}"


def _gist(turns: _Turns, turn: TurnView) -> str:
    """Return the few words that characterise a turn.

    For a needle, these are words that it alone shares with the ideal reply. For another turn, they are names and numbers that it alone
    shares with the agent's reply.
    """
    is_needed = any(turn is other for other in turns.needed)
    reply = turns.question.reply.head if turns.question.reply is not None else ""
    others = turns.recalled if is_needed else turns.needed
    plain = _words([turns.question.text.head, *(other.text.head for other in others[:MAX_NAMED])])
    shared = _words([turns.expected if is_needed else reply]) - plain
    found = dict.fromkeys(
        word for word in (WORDS if is_needed else NAMES).findall(turn.text.head[:READ_CHARS]) if word.casefold() in shared
    )
    return " ".join(found) if len(found) <= MAX_GIST else ""


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in WORDS.findall(text[:READ_CHARS].casefold())}
