"""Read BEAM (Tavakoli et al., 2025) as published: one chat's folder, or a folder of such folders, packed or not.

A chat's folder contains `chat.json` and `probing_questions/probing_questions.json`. If it also contains `chat_trunecated.json`, that
file is read instead, because the authors' `answer_generation.py` asks about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, final

from pydantic import ConfigDict, Field, TypeAdapter

from longspan.scenarios.histories.data_files import PublishedPart, Source, blame_value, list_sources
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import drop_backward_dates, number_duplicates, parse_date, sort_labels
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import resolve_path

__all__ = ["read_beam"]

CHATS: Final = ("chat_trunecated.json", "chat.json")
"""File names of a chat, in order of preference. The misspelling is the authors'."""

QUESTIONS: Final = "probing_questions/probing_questions.json"
ANSWERS: Final = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
"""Keys of gold answers. Each kind of question uses a different one."""

DATE: Final = "%B-%d-%Y"
ROLES: Final = ("user", "assistant")

_MARKER: Final = re.compile(r"\s*->->\s*[0-9]+\s*,\s*(?:[0-9]+|N/A)(?![0-9/])")
"""Position of a message in the plan that it was generated from: "->-> 1,3" or "->-> 2,N/A"."""

_PLAN: Final = re.compile(r"plan-[0-9]+")
"""Folders inside a chat of 10M tokens that repeat its parts."""

_SIZE: Final = re.compile(r"[0-9]+[KM]")


@final
class _MessageRow(PublishedPart):
    role: Literal["user", "assistant"]
    id: int
    content: str
    time_anchor: str | None = None


@final
class _Batch(PublishedPart):
    time_anchor: str | None = None
    turns: list[list[_MessageRow]]

    @property
    def said(self) -> list[_MessageRow]:
        return [said for exchange in self.turns for said in exchange]

    @property
    def anchor(self) -> str | None:
        """The batch's date, which may be recorded on its first message only."""
        return next((anchor for anchor in (self.time_anchor, *(said.time_anchor for said in self.said)) if anchor), None)


@final
class _QuestionRow(PublishedPart):
    model_config = ConfigDict(extra="allow")
    question: str
    rubric: list[str] = Field(default_factory=list)
    source_chat_ids: Any = None


_CHAT: Final = TypeAdapter(list[_Batch])
_ASKED: Final = TypeAdapter(dict[str, list[_QuestionRow]])


def read_beam(path: Path) -> Iterator[History]:
    """Yield the chats at a path, by size and number. Raises InputError, naming the file at fault."""
    found = {PurePosixPath(source.name): source for source in list_sources(path)}
    folders = sorted({name.parent for name in found if name.name in CHATS and not _PLAN.fullmatch(name.parent.name)}, key=_rank)
    if not folders:
        raise InputError(f"{path}: no chats of BEAM found; expected folders with chat.json and {QUESTIONS}")
    for folder in folders:
        chat = next(found[folder / name] for name in CHATS if folder / name in found)
        if folder / QUESTIONS not in found:
            raise InputError(f"{chat.where}: has no questions; expected {QUESTIONS} in the same folder")
        yield _history(_id(resolve_path(path) / folder), chat, found[folder / QUESTIONS])


def _id(folder: Path) -> str:
    """Return the id of a chat: its folder's number, prefixed by its size if the parent folder is named after one, such as 100K/1."""
    name = re.sub(r"(\.zip|\.tar|\.tgz)?(\.gz)?$", "", folder.name)
    return f"{folder.parent.name}/{name}" if _SIZE.fullmatch(folder.parent.name) else name


def _rank(folder: PurePosixPath) -> list[tuple[str, int, str]]:
    """Return a sort key that orders folders by the numbers in their names."""
    parts = [re.match(r"([^0-9]*)([0-9]{0,9})(.*)", part, re.DOTALL) for part in folder.parts]
    return [(part[1], int(part[2] or -1), part[3]) for part in parts if part]


def _history(id: str, chat: Source, probing: Source) -> History:
    with blame_value(chat.where):
        batches = _CHAT.validate_python(_flat(chat.json()))
    with blame_value(probing.where):
        asked = _ASKED.validate_python(probing.json())
    published = [str(said.id) for batch in batches for said in batch.said]
    ids = iter(number_duplicates(published))
    sessions, back = drop_backward_dates([_session(str(number), batch, ids) for number, batch in enumerate(batches, 1)])
    remarks = {
        **{f"markers such as ->-> 1,3 that were cut from what the {role} says: {{}}": _markers(batches, role) for role in ROLES},
        "turns that had the id of another, and were given their own: {}": len(published) - len(set(published)),
        "dates left out because they are none, or lie before an earlier session's: {}": back
        + sum(bool(batch.anchor) and parse_date(batch.anchor or "", DATE) is None for batch in batches),
    }
    with blame_value(chat.where):
        return History(
            id,
            sessions,
            tuple(
                _question(f"{kind}-{number}", kind, each, published)
                for kind, every in asked.items()
                for number, each in enumerate(every, 1)
            ),
            tuple(remark.format(count) for remark, count in remarks.items() if count),
        )


def _flat(chat: Any) -> Any:
    """Return a chat's batches. A chat of 10M tokens groups them by plan: [{"plan-1": [...]}, {"plan-2": [...]}, ...]."""
    if not isinstance(chat, list) or not all(isinstance(part, dict) and "turns" not in part for part in chat):
        return chat
    return [batch for part in chat for batches in part.values() if isinstance(batches, list) for batch in batches]


def _session(id: str, batch: _Batch, ids: Iterator[str]) -> Session:
    turns = (Utterance(next(ids), said.role, _drop_marker(said)) for said in batch.said)
    return Session(id, parse_date(batch.anchor or "", DATE), tuple(turns))


def _drop_marker(said: _MessageRow) -> str:
    return _MARKER.sub("", said.content)


def _markers(batches: Iterable[_Batch], role: str) -> int:
    return sum(len(_MARKER.findall(said.content)) for batch in batches for said in batch.said if said.role == role)


def _question(id: str, kind: str, asked: _QuestionRow, turns: Iterable[str]) -> Question:
    more: Mapping[str, Any] = asked.model_extra or {}
    labels = sort_labels(map(str, _ids(asked.source_chat_ids)), turns)
    return Question(
        id=id,
        text=asked.question,
        answer=next((more[key] for key in ANSWERS if isinstance(more.get(key), str)), None),
        kind=kind,
        evidence=labels.known,
        unknown=labels.unknown,
        rubric=tuple(asked.rubric),
        answerable=kind != "abstention",
    )


def _ids(value: Any) -> Iterator[int | str]:
    """Yield the ids in a list, or in lists grouped by topic."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _ids(inner)
    elif type(value) in (int, str):
        yield value
