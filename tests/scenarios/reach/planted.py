"""Agents that can read every fact and forget in a known way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from random import Random
from typing import Final, NamedTuple, final

from longspan import Message
from longspan.scenarios.reach.answers import KINDS, PLAIN, ROLES, UPDATES
from longspan.scenarios.reach.wording import Wording
from longspan.simulator.base.tokens import Tokenizer

__all__ = ["FORGETTING", "OUTSIDE", "Planted", "Said", "question", "reader", "statements"]

WORDING: Final = Wording("reach")
TOKENS: Final = Tokenizer()
PEOPLE: Final = {role: who for who, role in ROLES.items()}


class Said(NamedTuple):
    """A message of either side: how many tokens, messages, seconds of virtual time and midnights ago it was said, its own number, and the
    number of facts stated before it."""

    text: str
    tokens: int
    messages: int
    seconds: float
    nights: int
    number: int
    facts: int


Kept = Callable[[Said], bool]


def decays(tokens: int) -> Kept:
    """Keep what was said `tokens` ago in half of all cases, and always the same."""
    return lambda said: Random(f"decay/{said.text}").random() < 0.5 ** (said.tokens / tokens)


def misses(share: float) -> Kept:
    return lambda said: Random(f"misses/{said.text}").random() >= share


FORGETTING: Final[dict[str, Callable[[int], Kept]]] = {
    "message window": lambda span: lambda said: said.messages <= 20,
    "token window": lambda span: lambda said: said.tokens <= span // 5,
    "decay": lambda span: decays(span // 10),
    "random misses": lambda span: misses(0.45),
    "none": lambda span: lambda said: True,
    "nothing": lambda span: lambda said: False,
}
"""Ways to forget, for a span."""


def _is_number(said: Said) -> bool:
    return any(kind in ("locker", "birthday") for kind, _, _ in statements(said.text))


OUTSIDE: Final[dict[str, Kept]] = {
    "a day": lambda said: said.seconds <= 86_400,
    "until midnight": lambda said: said.nights == 0,
    "a window with a floor of 30%": lambda said: said.tokens <= 600 or not misses(0.3)(said),
    "a window with a floor of 60%": lambda said: said.tokens <= 600 or not misses(0.6)(said),
    "a dip in the middle": lambda said: not 120 < said.tokens < 1_200,
    "written late": lambda said: said.messages > 20,
    "written at night": lambda said: said.nights > 0,
    "the first thirty facts": lambda said: said.facts < 30,
    "no numbers": lambda said: not _is_number(said),
    "no numbers, and a window": lambda said: said.tokens <= 600 and not _is_number(said),
    "every second stretch": lambda said: said.number // 20 % 2 == 0,
    "numbers sooner than names": lambda said: said.tokens <= (300 if _is_number(said) else 1_200),
    "recent, and older than a day": lambda said: said.tokens <= 600 or said.seconds > 86_400,
    "two days": lambda said: said.seconds <= 172_800,
    "a window, and the first ten facts": lambda said: said.tokens <= 300 or said.facts < 10,
    "three levels": lambda said: said.tokens <= 150 or (said.tokens <= 1_500 and not misses(0.6)(said)),
}
"""Ways to forget that the fit has no kind for, or only in part."""


def reader(message: str, kept: Sequence[str]) -> str:
    """Answer a message from what is kept, oldest first, and from the message itself."""
    asked = question(message)
    if asked is None:
        return "Noted, thank you."
    stated = [value for text in [*kept, *_starts(message)] for kind, who, value in statements(text) if (kind, who) == asked]
    if not stated:
        return "I do not know."
    return ", ".join(stated if asked[0] == "lent" else stated[-1:]) + "."


def question(message: str) -> tuple[str, str] | None:
    """Return the type of the fact that a message asks for, and the person; None if it asks for none."""
    for kind in KINDS:
        for end in _ends(message):
            if found := WORDING.read(f"asked_{kind}", end):
                return kind, found["who"]
            if kind in PLAIN and (found := WORDING.read(f"paraphrased_{kind}", end)):
                return kind, PEOPLE[found["who"]]
    return None


@cache
def statements(message: str) -> tuple[tuple[str, str, str], ...]:
    """Return the facts that a message states: type, person and value of each.

    An agent reads its whole conversation for each reply, so each message is read once.
    """
    return tuple(
        (kind, found["who"], found["value"])
        for text in (message, *_starts(message))
        for kind in KINDS
        for macro in (f"told_{kind}", *([f"changed_{kind}"] if kind in UPDATES else []))
        if (found := WORDING.read(macro, text))
    )


def _ends(message: str) -> list[str]:
    return [message, *(message[at + 2 :] for at in range(len(message)) if message[at : at + 2] == ". ")]


def _starts(message: str) -> list[str]:
    return [message[: at + 1] for at in range(len(message)) if message[at : at + 2] == ". "]


@cache
def _count(message: str) -> int:
    return TOKENS.count(message)


@final
class Planted:
    """An agent that keeps of the conversation what `kept` says, or that cannot do the task at all."""

    def __init__(self, kept: Kept, *, able: bool = True) -> None:
        self._kept = kept
        self._able = able
        self._said: list[tuple[str, datetime]] = []

    def reply(self, message: Message) -> str:
        tokens, kept = 0, []
        facts = sum(bool(statements(text)) for text, _ in self._said)
        for ago, (text, at) in enumerate(reversed(self._said), 1):
            facts -= bool(statements(text))
            nights = (message.sent_at.date() - at.date()).days
            said = Said(text, tokens, ago, (message.sent_at - at).total_seconds(), nights, len(self._said) - ago, facts)
            tokens += _count(text)
            if self._kept(said):
                kept.append(text)
        reply = reader(message.text, kept[::-1]) if self._able else "That is a good question, and I wish you a nice day."
        self.observe(message, reply)
        return reply

    def observe(self, message: Message, reply: str) -> None:
        self._said += [(message.text, message.sent_at), (reply, message.sent_at)]

    def reset(self) -> None:
        self._said.clear()
