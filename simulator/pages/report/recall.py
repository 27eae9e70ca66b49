"""The agent's traces, turn by turn: the memories that it stored, and the memories in its prompt."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.journal.transcript import PlayedTurn, Transcript
from longspan.simulator.pages.report.excerpts import MAX_CHARS, Excerpt

__all__ = ["MAX_MEMORIES", "MEMORY_CHARS", "Recall", "TurnRecall"]

MAX_MEMORIES: Final = 30
"""The maximum number of memories shown of those that a turn wrote, and of those that it read."""

MAX_TURNS: Final = 10
"""The maximum number of turns shown as the origin of a memory."""

MAX_ID_CHARS: Final = 80

MEMORY_CHARS: Final = 300
"""The number of characters shown of a memory."""


@final
class TurnRecall(NamedTuple):
    """A turn's trace.

    `told` is its content as JSON (see `Recall.of`), None if there is nothing to show. `sources` has the numbers of the turns that the
    memories in its prompt come from, in order.
    """

    told: dict[str, Any] | None
    sources: Sequence[int] = ()


@final
class Recall:
    """Reads the traces of one conversation's turns, in order, after the turns of its `trunk`. Text that is already on the page is not
    repeated."""

    def __init__(self, trunk: Recall | None = None) -> None:
        self._numbers: ChainMap[str, int] = trunk._numbers.new_child() if trunk is not None else ChainMap()
        self._known: ChainMap[str, list[int]] = trunk._known.new_child() if trunk is not None else ChainMap()  # by id, the turns

    def of(self, turn: PlayedTurn, transcript: Transcript) -> TurnRecall:
        """Return the content of a turn's trace. `transcript` includes the turn.

        "written" and "read" are lists of memories. A memory has an "id", the numbers of its source "turns", and its "text", unless that is
        part of its turn or a memory with this id came before. "unwritten" and "unread" count the memories omitted from the lists. "since"
        is the first of the latest turns that were all in the prompt.
        """
        self._numbers[turn.message.turn_id] = turn.number
        trace = turn.reply.trace if turn.reply is not None else None
        if not trace:
            return TurnRecall(None)
        told: dict[str, Any] = {}
        sources: dict[int, None] = {}
        for key, left_out in (("written", "unwritten"), ("read", "unread")):
            if isinstance(trace.get(key), list):
                memories = [memory for memory in trace[key] if isinstance(memory, Mapping)]
                default = [turn.message.turn_id] if key == "written" else []
                told[key] = [self._memory(memory, default, transcript) for memory in memories[:MAX_MEMORIES]]
                if key == "read":
                    sources = dict.fromkeys(number for memory in memories[:MAX_MEMORIES] for number in self._sources(memory))
                told |= {left_out: len(memories) - MAX_MEMORIES} if len(memories) > MAX_MEMORIES else {}
        recent = trace.get("recent")
        since = self._numbers.get(str(recent.get("since"))) if isinstance(recent, Mapping) else None
        return TurnRecall((told if since is None else told | {"since": since}) or None, list(sources))

    def _memory(self, memory: Mapping[str, Any], default: list[str], transcript: Transcript) -> dict[str, Any]:
        id = _id(memory)
        turns = list(self._turns(memory, default))[:MAX_TURNS]
        text = memory["text"] if isinstance(memory.get("text"), str) else ""
        shown: dict[str, Any] = {"id": escape_invisible(id[:MAX_ID_CHARS])} if id else {}
        if turns:
            shown["turns"] = turns
        if text and id not in self._known and not (len(turns) == 1 and _says(transcript, turns[0], text)):
            shown["text"] = Excerpt.of(text, MEMORY_CHARS).data()
        if id:
            self._known.setdefault(id, turns)
        return shown

    def _sources(self, memory: Mapping[str, Any]) -> Sequence[int]:
        """Return the turns that a memory comes from: those in the trace, or else the turns of an earlier memory with the same id."""
        return list(self._turns(memory, []))[:MAX_TURNS] or self._known.get(_id(memory), [])

    def _turns(self, memory: Mapping[str, Any], default: list[str]) -> Iterator[int]:
        named = memory.get("turns") if isinstance(memory.get("turns"), list) else [memory["turn"]] if "turn" in memory else default
        for turn_id in named or []:
            if (number := self._numbers.get(str(turn_id))) is not None:
                yield number


def _id(memory: Mapping[str, Any]) -> str:
    return memory["id"] if isinstance(memory.get("id"), str) else ""


def _says(transcript: Transcript, number: int, text: str) -> bool:
    """Return whether a memory is part of a turn's visible text, apart from an ellipsis where it was cut."""
    turn = transcript.history[number]
    part = text.removesuffix("…")
    return part in turn.text[:MAX_CHARS] or part in turn.reply[:MAX_CHARS]
