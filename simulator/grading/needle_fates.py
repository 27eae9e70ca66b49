"""What became of a needle, as an agent's traces tell it: whether it was stored, retrieved at its question, and used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, final

from longspan.simulator.grading.matching import plain
from longspan.simulator.transcript import Evidence, Transcript, Turn

__all__ = ["Fate", "NeedleFates", "Traces"]


@final
class Fate(NamedTuple):
    """What became of a needle; None where no trace tells.

    `stored`: a memory was made of its turn. `retrieved`: when its question was asked, the agent was shown such a memory, or
    the turn itself. `used`: the reply also has a word of the needle's that the question does not have.
    """

    stored: bool | None = None
    retrieved: bool | None = None
    used: bool | None = None


@final
class Traces:
    """Takes the traces of a conversation's replies one by one.

    Of a trace three keys are read, all optional. "written": memories that were made, objects with an "id" and perhaps the
    "turn" (a turn id) that they are of, by default that of the reply. "read": memories that were shown, objects with an "id"
    or with the "turns" that they are of. "recent": {"since": turn id}, the turn from which on all were shown.
    """

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._memories: dict[int, set[str]] = defaultdict(set)
        self._any = False

    def add(self, number: int, turn_id: str, trace: Mapping[str, Any] | None) -> None:
        """Take the trace of turn `number`."""
        self._number[turn_id] = number
        for memory in _objects(trace, "written"):
            self._any = True
            of = self._number.get(str(memory.get("turn", turn_id)))
            if of is not None and isinstance(memory.get("id"), str):
                self._memories[of].add(memory["id"])

    def fate(self, needle: int, said: str, question: str, reply: str, trace: Mapping[str, Any] | None) -> Fate:
        """What became of the needle of turn `needle`, which `said` so, when `question` was answered with `reply`."""
        stored = needle in self._memories if self._any else None
        if trace is None or not ({"read", "recent"} & trace.keys()):
            return Fate(stored)
        retrieved = self._shown(needle, trace)
        own = _words(said) - _words(question)
        return Fate(stored, retrieved, retrieved and bool(own & _words(reply)))

    def _shown(self, needle: int, trace: Mapping[str, Any]) -> bool:
        recent = trace.get("recent")
        since = self._number.get(str(recent.get("since"))) if isinstance(recent, Mapping) else None
        if since is not None and needle >= since:
            return True
        for memory in _objects(trace, "read"):
            turns = memory.get("turns")
            if memory.get("id") in self._memories.get(needle, ()):
                return True
            if isinstance(turns, list) and any(self._number.get(str(turn)) == needle for turn in turns):
                return True
        return False


@final
class NeedleFates:
    """Takes a conversation's turns one by one, and knows what became of the needles of its questions."""

    def __init__(self) -> None:
        self._traces = Traces()
        self._known: dict[tuple[int, int], Fate] = {}

    def add(self, turn: Turn, transcript: Transcript) -> None:
        """Take the next turn; `transcript` has the turns before."""
        message, reply = turn.message, turn.reply
        if reply is None:
            return
        self._traces.add(reply.turn, message.turn_id, reply.trace)
        if message.kind == "question" and message.test is not None:
            for needle in message.needs or ():
                said = transcript.history[needle].text
                self._known[needle, reply.turn] = self._traces.fate(needle, said, message.text, reply.text, reply.trace)

    def told(self, evidence: Evidence) -> Evidence:
        """The evidence with what became of its needle."""
        return replace(evidence, **self._known.get((evidence.needle_turn, evidence.question_turn), Fate())._asdict())


def _objects(trace: Mapping[str, Any] | None, key: str) -> Iterator[Mapping[str, Any]]:
    entries = (trace or {}).get(key)
    yield from (entry for entry in entries if isinstance(entry, Mapping)) if isinstance(entries, list) else ()


def _words(text: str) -> set[str]:
    """The words of a text that say something: numbers, and words of four letters and more."""
    return {word for word in plain(text).split() if len(word) > 3 or re.fullmatch(r"\d+", word)}
