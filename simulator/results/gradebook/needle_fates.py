"""The fates of needles according to the agent's traces: whether each was stored, retrieved for its question, and echoed."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.journal.events import Settled
from longspan.simulator.journal.transcript import Evidence, PlayedTurn, Transcript

__all__ = ["Fate", "NeedleFates", "Traces"]

MAX_K: Final = 10**6
"""The maximum number of memories that can be asked for. A forged trace may claim any number."""


@final
class Fate(NamedTuple):
    """The fate of a needle. Fields are None if unknown.

    `stored`: a memory was made from its turn. `retrieved`: such a memory, or the turn itself, was in the prompt when its question was
    asked. `echoed`: it was retrieved, and the reply has a word from the needle that the question lacks; the answer may still be wrong.
    `rank`: the place of the first such memory among the memories read, from 1. It is 0 if the turn was among the recent turns in every
    prompt, and None if it was not retrieved. `forgotten`: before the question, the agent dropped all memories made from it at the user's
    request; None if the agent has forgotten nothing. `k`: the number of memories asked for or, if the trace does not report it, the number
    read. `stored_inferred`, `retrieved_inferred`: whether the memories' turns were inferred, not named.
    """

    stored: bool | None = None
    retrieved: bool | None = None
    echoed: bool | None = None
    rank: int | None = None
    forgotten: bool | None = None
    k: int | None = None
    stored_inferred: bool = False
    retrieved_inferred: bool = False


@final
class Traces:
    """Collects the traces of a conversation's replies.

    These keys of a trace are read; all are optional.
    - "written": the memories made, objects with an "id" and optionally the "turn" (a turn id) of origin. The default is the reply's turn;
    null means unknown.
    - "until": a turn id; all memories made from turns up to this one have been reported.
    - "read": the memories in the prompt, objects with an "id" or with the "turns" that they come from.
    - "recent": {"since": turn id}, the first of the latest turns, all of them in the prompt.
    - "forgotten": the memories dropped at the user's request, objects with an "id" or with "turns".
    - "k": the number of memories asked for.

    Whether a needle was stored is unknown until a trace has "written", even an empty one. If the agent received a turn as history, a later
    "written" or "until" may report its memories; otherwise it stays unknown whether any exist.

    A memory whose turns are unknown may come from any turn before it. So after one was written, no earlier needle counts as not stored; and
    where one was read, no needle counts as not retrieved. A memory has "inferred" if it named no turns and its turns were inferred from its
    wording. That can show that a needle was stored, but not that it was not: other turns may have contributed to the memory. The text of a
    memory that was read is fully known. If the turns explain all of it ("whole"), no other turns contributed; otherwise ("part") they may
    have.

    A branch's traces continue the traces of its `trunk`. Reports about the trunk's turns apply to all branches.
    """

    def __init__(self, trunk: Traces | None = None) -> None:
        self._number: ChainMap[str, int] = trunk._number.new_child() if trunk is not None else ChainMap()
        self._memories: ChainMap[int, set[str]] = trunk._memories.new_child() if trunk is not None else ChainMap()
        self._trunk = trunk
        self._first = 0 if trunk is None else len(trunk._number)
        self._gone: set[str] = set(trunk._gone) if trunk is not None else set()
        self._gone_turns: set[int] = set(trunk._gone_turns) if trunk is not None else set()
        self._is_named: ChainMap[str, bool] = trunk._is_named.new_child() if trunk is not None else ChainMap()  # by a memory's id
        self._vague: ChainMap[str, None] = (
            trunk._vague.new_child() if trunk is not None else ChainMap()
        )  # ids of memories that may come from further turns
        self._latest: int = trunk._latest if trunk is not None else -1
        self._open = -1  # the last turn that memories of unknown turns may come from
        self._told = False
        self._until = -1
        self._untraced: ChainMap[int, None] = trunk._untraced.new_child() if trunk is not None else ChainMap()

    def add(self, number: int, turn_id: str, trace: Mapping[str, Any] | None, *, asked: bool = True) -> None:
        """Add the trace of turn `number`. `asked` is False if the agent received the turn as history, and did not reply."""
        self._number[turn_id] = self._latest = number
        if not asked:
            self._untraced[number] = None
        self.add_written(turn_id, trace)
        if not self._is_named and any(map(self._is_vague, _objects(trace, "read"))):  # so "written" did not report all memories
            self._leave_open()

    def add_written(self, turn_id: str, trace: Mapping[str, Any] | None) -> None:
        """Add the memories that a trace, of a turn or of the night before it, reports as written or forgotten."""
        reported = isinstance((trace or {}).get("written"), list)
        if reported:
            for traces in self._line:
                traces._told = True
        for memory in _objects(trace, "written"):
            self._add_memory(memory, self._number.get(str(memory.get("turn", turn_id))))
        if (
            not reported and any(traces._told for traces in self._line) and "added" in (trace or {})
        ):  # more memories were made, and not reported
            self._leave_open()
        for memory in _objects(trace, "forgotten"):
            if (id := _id(memory)) is not None:
                self._gone.add(id)
            elif isinstance(memory.get("turns"), list):
                self._gone_turns.update(self._number[str(turn)] for turn in memory["turns"] if str(turn) in self._number)
        until = self._number.get(str((trace or {}).get("until")))
        if until is not None:
            told = self._traces_with(until)
            told._until = max(told._until, until)

    def _add_memory(self, memory: Mapping[str, Any], source: int | None) -> None:
        """Add a memory that was made from turn `source`, None if unknown."""
        inferred, id = memory.get("inferred"), _id(memory)
        if source is None or inferred:
            self._leave_open()
        if id is None:
            return
        if source is None or inferred == "part":
            self._vague[id] = None
        if source is not None:
            told = self._traces_with(source)
            told._memories[source] = told._memories.get(source, set()) | {id}
            told._is_named[id] = not inferred or told._is_named.get(id, False)

    def _leave_open(self) -> None:
        """Note that memories of unknown turns were made. They may come from any turn so far."""
        for traces in self._line:
            traces._open = traces._latest

    @property
    def _line(self) -> Sequence[Traces]:
        """These traces and the trunk's."""
        return [self] if self._trunk is None else [self, self._trunk]

    def _traces_with(self, number: int) -> Traces:
        """Return the traces that contain a turn: these or the trunk's."""
        trunk = self._trunk
        return trunk if trunk is not None and number < self._first else self

    def fate(self, needle: int, needle_text: str, question: str, reply: str, trace: Mapping[str, Any] | None) -> Fate:
        """Return the fate of the needle of turn `needle` when `question` was answered with `reply`."""
        return self.fates({needle: needle_text}, question, reply, trace)[needle]

    def fates(self, needles: Mapping[int, str], question: str, reply: str, trace: Mapping[str, Any] | None) -> dict[int, Fate]:
        """Return the fates of needles, given by turn, when `question` was answered with `reply`."""
        tells = trace is not None and trace.keys() & {"read", "recent"} and trace.get("answers") is not False
        new_words = _words(reply) - _words(question) if tells else set()
        return {needle: self._fate(needle, text, new_words, trace) for needle, text in needles.items()}

    def _fate(self, needle: int, needle_text: str, new_words: set[str], trace: Mapping[str, Any] | None) -> Fate:
        forgotten = self._is_forgotten(needle) if self._gone or self._gone_turns else None
        fate = Fate(forgotten=forgotten)
        if trace is not None and {"read", "recent"} & trace.keys():
            fate = self._with_search(fate, needle, bool(new_words & _words(needle_text)), trace)
        return self._with_stored(fate, needle) if any(traces._told for traces in self._line) else fate

    def _with_search(self, fate: Fate, needle: int, echoed: bool, trace: Mapping[str, Any]) -> Fate:
        """Return the fate with the needle's presence in the prompt."""
        fate = fate._replace(k=_requested_k(trace))
        if self._is_recent(needle, trace):
            return fate._replace(retrieved=True, echoed=echoed, rank=0)
        read = list(_objects(trace, "read"))
        found = next(((rank, memory) for rank, memory in enumerate(read, 1) if self._comes_from(memory, needle)), None)
        if found is not None:
            return fate._replace(retrieved=True, echoed=echoed, rank=found[0], retrieved_inferred=self._is_inferred(found[1]))
        if any(map(self._is_vague, read)):
            return fate
        return fate._replace(retrieved=False, echoed=False, retrieved_inferred=any(map(self._is_inferred, read)))

    def _with_stored(self, fate: Fate, needle: int) -> Fate:
        """Return the fate with whether the needle was stored."""
        if needle in self._memories:
            return fate._replace(stored=True, stored_inferred=not any(map(self._is_named.get, self._memories[needle])))
        if fate.rank:  # a memory of it was found
            return fate._replace(stored=True, stored_inferred=fate.retrieved_inferred)
        unreported = needle in self._untraced and needle > max(traces._until for traces in self._line)
        return fate if unreported or needle <= max(traces._open for traces in self._line) else fate._replace(stored=False)

    def _comes_from(self, memory: Mapping[str, Any], needle: int) -> bool:
        """Return whether a memory that was read was made from a needle."""
        return _id(memory) in self._memories.get(needle, ()) or needle in self._turns_named(memory)

    def _turns_named(self, memory: Mapping[str, Any]) -> Iterator[int]:
        """Yield the turns that a memory names when it is read."""
        turns = memory.get("turns")
        yield from (self._number[str(turn)] for turn in (turns if isinstance(turns, list) else ()) if str(turn) in self._number)

    def _is_vague(self, memory: Mapping[str, Any]) -> bool:
        """Return whether a memory that was read may come from unknown turns."""
        if memory.get("inferred") == "part" or _id(memory) in self._vague:
            return True
        return _id(memory) not in self._is_named and next(self._turns_named(memory), None) is None

    def _is_inferred(self, memory: Mapping[str, Any]) -> bool:
        return bool(memory.get("inferred")) or self._is_named.get(_id(memory) or "", True) is False

    def _is_forgotten(self, needle: int) -> bool:
        memories = self._memories.get(needle, set())
        return (bool(memories) and memories <= self._gone) or needle in self._gone_turns

    def _is_recent(self, needle: int, trace: Mapping[str, Any]) -> bool:
        recent = trace.get("recent")
        since = self._number.get(str(recent.get("since"))) if isinstance(recent, Mapping) else None
        return since is not None and needle >= since


@final
class NeedleFates:
    """The fates of the needles that a conversation's questions need. A branch's needles may lie in its `trunk`."""

    def __init__(self, trunk: NeedleFates | None = None) -> None:
        self._traces: Traces = Traces(trunk._traces if trunk is not None else None)
        self._fates: dict[tuple[int, int], Fate] = {}

    def add(self, turn: PlayedTurn, transcript: Transcript) -> None:
        """Add the next turn. `transcript` has the turns before it."""
        message, reply = turn.message, turn.reply
        if reply is None:
            return
        for night in turn.nights:
            self._traces.add_written("", night.trace)
        self._traces.add(reply.turn, message.turn_id, reply.trace, asked=reply.asked)
        if message.kind == "question" and message.test is not None:
            needles = {needle: transcript.history[needle].text for needle in message.needs or ()}
            fates = self._traces.fates(needles, message.text, readable_part(reply.text), reply.trace)
            self._fates |= {(needle, reply.turn): fate for needle, fate in fates.items()}

    def settle(self, event: Settled) -> None:
        """Add the trace of settling, when all turns so far were in the agent's memory."""
        self._traces.add_written("", event.trace)

    def with_fate(self, evidence: Evidence) -> Evidence:
        """Return the evidence with its needle's fate."""
        return replace(evidence, **self._fates.get((evidence.needle_turn, evidence.question_turn), Fate())._asdict())


def _requested_k(trace: Mapping[str, Any]) -> int:
    k = trace.get("k")
    return k if isinstance(k, int) and 0 < k <= MAX_K else sum(1 for _ in _objects(trace, "read"))


def _objects(trace: Mapping[str, Any] | None, key: str) -> Iterator[Mapping[str, Any]]:
    entries = (trace or {}).get(key)
    yield from (entry for entry in entries if isinstance(entry, Mapping)) if isinstance(entries, list) else ()


def _id(memory: Mapping[str, Any]) -> str | None:
    """Return the id of a memory in a trace, None if it has none."""
    id = memory.get("id")
    return id if isinstance(id, str) and id else None


def _words(text: str) -> set[str]:
    """Return the meaningful words of `text`: numbers, and words of at least four letters."""
    return {word for word in plain(text).split() if len(word) > 3 or re.fullmatch(r"\d+", word)}
