"""Agents that can read every fact and forget in a known way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple, final

from longspan import Message
from longspan.scenarios.reach.answers import KINDS, PLAIN, ROLES, UPDATES
from longspan.scenarios.reach.wording import Wording

__all__ = ["FORGETTING", "Planted", "Said", "question", "reader", "statements"]

WORDING: Final = Wording("reach")
PEOPLE: Final = {role: who for who, role in ROLES.items()}


class Said(NamedTuple):
    """A message of either side: how many tokens and messages ago it was said, and a number of its own."""

    text: str
    tokens: int
    messages: int
    number: int


Kept = Callable[[Said], bool]


def decays(tokens: int) -> Kept:
    """Keep what was said `tokens` ago in half of all cases, and always the same."""
    return lambda said: Random(f"decay/{said.number}").random() < 0.5 ** (said.tokens / tokens)


def misses(share: float) -> Kept:
    return lambda said: Random(f"misses/{said.number}").random() >= share


FORGETTING: Final[dict[str, Callable[[int], Kept]]] = {
    "window of messages": lambda span: lambda said: said.messages <= 20,
    "window of tokens": lambda span: lambda said: said.tokens <= span // 5,
    "decay": lambda span: decays(span // 10),
    "misses some": lambda span: misses(0.45),
    "no limit": lambda span: lambda said: True,
    "nothing": lambda span: lambda said: False,
}
"""Ways to forget, for a span."""


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


def statements(message: str) -> list[tuple[str, str, str]]:
    """Return the facts that a message states: type, person and value of each."""
    return [
        (kind, found["who"], found["value"])
        for text in (message, *_starts(message))
        for kind in KINDS
        for macro in (f"told_{kind}", *([f"changed_{kind}"] if kind in UPDATES else []))
        if (found := WORDING.read(macro, text))
    ]


def _ends(message: str) -> list[str]:
    return [message, *(message[at + 2 :] for at in range(len(message)) if message[at : at + 2] == ". ")]


def _starts(message: str) -> list[str]:
    return [message[: at + 1] for at in range(len(message)) if message[at : at + 2] == ". "]


@final
class Planted:
    """An agent that keeps of the conversation what `kept` says, or that cannot do the task at all."""

    def __init__(self, kept: Kept, *, able: bool = True) -> None:
        self._kept = kept
        self._able = able
        self._said: list[str] = []

    def reply(self, message: Message) -> str:
        tokens, kept = 0, []
        for ago, text in enumerate(reversed(self._said), 1):
            said = Said(text, tokens, ago, len(self._said) - ago)
            tokens += len(text) // 4 + 1
            if self._kept(said):
                kept.append(text)
        reply = reader(message.text, kept[::-1]) if self._able else "That is a good question, and I wish you a nice day."
        self._said += [message.text, reply]
        return reply

    def observe(self, message: Message, reply: str) -> None:
        self._said += [message.text, reply]

    def reset(self) -> None:
        self._said.clear()
