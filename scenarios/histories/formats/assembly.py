"""Assemble what formats read to a history: order, sessions, speakers, ids, and remarks on everything that was changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, islice, pairwise, takewhile
from types import MappingProxyType
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.data_files import blame_value
from longspan.scenarios.histories.formats.messages import Said
from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.repairs import number_duplicates
from longspan.simulator.base.errors import InputError
from longspan.simulator.reading.matching import join_some

__all__ = ["LEFT_OUT", "SPEAKERS", "Asked", "Conversation", "Log", "Part", "Turn"]

GAP: Final = timedelta(hours=1)
"""A longer pause between two messages starts a new session."""
MAX_ID: Final = 200
"""Maximum length of an id, or of a speaker's name, in characters."""
MIN_REPEATED: Final = 20
"""Two conversations that begin with a shorter message may do so by chance."""
MOST_NAMED: Final = 3
"""The number of turns that an error about an ambiguous quotation names."""
SPEAKERS: Final = "names of the speakers: "
"""How the remark begins that lists them, if the log has roles as well."""
LEFT_OUT: Final = "files left out: "
"""How the remark begins that lists files."""
SKEW: Final = timedelta(seconds=2)
"""Two clocks may differ by this much, so a smaller step back in time says nothing about the order."""


@final
class Turn(NamedTuple):
    """A turn with its place in the file. Its id is None if the file gives none. `kind`: said, call or result."""

    place: str
    id: str | None
    speaker: str
    text: str
    kind: str = "said"


@final
class Part(NamedTuple):
    """A session with its place in the file. Its id is None if the file gives none."""

    place: str
    id: str | None
    at: datetime | None
    turns: Sequence[Turn]


@final
class Asked(NamedTuple):
    """A question with its place in the file. Its id is empty if the file gives none.

    `before`: the turn before which it is asked, by its id or a quotation, or empty if it is asked at the end.
    """

    place: str
    question: Question
    before: str = ""


@final
@dataclass
class _Group:
    """Messages of one thread or one value, in the order of the file."""

    ordered: bool
    said: list[Said] = field(default_factory=list)


@final
class Conversation(NamedTuple):
    """A conversation whose sessions, turns and questions have ids. Turns include tool calls and results.

    `befores`: by the id of a question, the turn before which it is asked. All other questions are asked at the end.
    """

    id: str
    parts: tuple[Part, ...]
    questions: tuple[Question, ...]
    remarks: tuple[str, ...]
    befores: Mapping[str, str] = MappingProxyType({})

    def histories(self, where: str, *, tools: bool = True) -> Iterator[History]:
        """Yield the history with its questions, and the history up to each turn that questions are asked before.

        `tools`: include tool calls and results. Raises InputError if there are no turns or no questions.
        """
        for before in dict.fromkeys(self.befores.get(each.id, "") for each in self.questions) or [""]:
            yield self._end_before(before)._history(f"{where}, before turn {before!r:.80}" if before else where, tools=tools)

    def _end_before(self, turn: str) -> Conversation:
        """Return the conversation up to a turn, with the questions that are asked there. An empty id is the end."""
        questions = tuple(each for each in self.questions if self.befores.get(each.id, "") == turn)
        if not turn:
            return self._replace(questions=questions)
        parts: list[Part] = []
        for part in self.parts:
            turns = list(takewhile(lambda said: said.id != turn, part.turns))
            parts += [part._replace(turns=turns)] if turns else []
            if len(turns) < len(part.turns):
                break
        return self._replace(id=f"{self.id}@{turn}", parts=tuple(parts), questions=questions)

    def _history(self, where: str, *, tools: bool) -> History:
        if not self.questions:
            example = '{"question": "...", "answer": "..."}'
            raise InputError(f"{where}: has no questions; name their file with --data questions=FILE, or add lines such as {example}")
        if not self.parts:
            raise InputError("; ".join([f"{where}: has no turns", *self.remarks])[:500])
        kept = [(part, [turn for turn in part.turns if tools or turn.kind == "said"]) for part in self.parts]
        sessions = tuple(
            Session(part.id or "", part.at, tuple(Utterance(turn.id or "", turn.speaker, turn.text) for turn in turns))
            for part, turns in kept
            if turns
        )
        dropped = sum(len(part.turns) - len(turns) for part, turns in kept)
        remarks = [*self.remarks, *([f"left out by tools=off: {dropped} tool calls and results"] if dropped else [])]
        ids = {turn.id for session in sessions for turn in session.turns}
        questions = [replace(each, evidence=tuple(id for id in each.evidence if id in ids)) for each in self.questions]
        with blame_value(where):
            return History(self.id, sessions, tuple(questions), tuple(remarks))


@final
@dataclass
class Log:
    """The contents of files for one conversation, in the order of the files."""

    groups: list[_Group | Part] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    _threads: dict[tuple[str, int], _Group] = field(default_factory=dict)
    _begun: dict[int, _Group] = field(default_factory=dict)
    """Conversations by the hashes of what they say up to each message, to recognise those that repeat or continue another."""
    _zones: set[timedelta] = field(default_factory=set)

    def add_session(self, part: Part) -> None:
        """Add a session in longspan's own form."""
        self.groups.append(part)

    def add_messages(self, messages: Iterable[Said], number: int, *, ordered: bool) -> None:
        """Add messages. Those with the same thread belong together, and so do those without one that have the same number."""
        for message in messages:
            if message.kind == "skipped":
                self.skipped[message.text] += 1
            elif not message.text.strip():
                self.skipped["messages without a text"] += 1
            else:
                if message.at is not None:
                    self._zones.add(message.at.utcoffset() or timedelta(0))
                key = (message.thread, 0) if message.thread else ("", -number)
                group = self._threads.get(key)
                if group is None:
                    group = self._threads[key] = _Group(ordered)
                    self.groups.append(group)
                group.said.append(message)

    def add_conversation(self, messages: Sequence[Said], number: int, *, ordered: bool) -> None:
        """Add a conversation. Logs of requests repeat the whole conversation each time: only its continuation is added."""
        said = [message for message in messages if message.kind != "skipped" and message.text.strip()]
        contents = list(accumulate(said, lambda before, each: hash((before, each.role, each.text)), initial=0))[1:]
        group, known = next(
            ((group, count) for count in range(len(said), 0, -1) if (group := self._begun.get(contents[count - 1]))), (None, 0)
        )
        is_chance = known == 1 and len(said[0].text) < MIN_REPEATED
        if group is None or said[0].thread or is_chance or known not in (len(said), len(group.said)):
            self.add_messages(messages, number, ordered=ordered)
            group = self._threads.get(("", -number))
        else:
            self.skipped["repeated messages"] += known
            for place, (old, new) in enumerate(zip(group.said, said[:known], strict=False)):
                if new.at is not None and (old.at is None or _instant(new.at) < _instant(old.at)):
                    group.said[place] = old._replace(at=new.at)
            group.said += said[known:]
        if group is not None:
            self._begun |= dict.fromkeys(contents, group)

    def assemble(self, id: str, file: str) -> Conversation:
        """Return the conversation. Raises InputError if an id is used twice, or if evidence names no turn."""
        groups = [group for group in self.groups if isinstance(group, _Group)]
        names = _Names(groups)
        known: dict[str, int] = {}
        parts: list[Part] = []
        changes: Counter[str] = Counter()
        for group in self.groups:
            if isinstance(group, Part):
                parts.append(group)
                continue
            for session in _split(_arrange(group, known, changes)):
                turns = [
                    Turn(each.place, each.id if 0 < len(each.id) <= MAX_ID else None, names.speaker(each), each.text, each.kind)
                    for each in session
                ]
                parts.append(Part(session[0].place, None, self._wall(session[0].at), turns))
            group.said = []
        parts = _assign(parts, file)
        remarks = [*self.remarks, *names.remarks]
        if groups and _is_unsorted(parts):
            parts = _sort(parts)
            changes["moved"] += 1
        if changes["moved"]:
            remarks.append("put in the order of time")
        if len(self._zones) > 1:
            remarks.append("times are in UTC, because the log has several time zones")
        if changes["renamed"]:
            remarks.append(f"ids that another conversation has too, and that were replaced: {changes['renamed']}")
        if changes["repeated"]:
            self.skipped["repeated messages"] += changes["repeated"]
        if self.skipped:
            remarks.append("left out: " + ", ".join(f"{what} ({count:,})" for what, count in sorted(self.skipped.items())))
        questions, befores = self._ask(id, parts, file)
        last = max((part.at for part in parts if part.at is not None), default=datetime.min)
        early = [each.id for each in questions if each.at is not None and each.at < last and each.id not in befores]
        if early:
            remarks.append(f"asked after the whole log, although dated before its last session ({last}): {join_some(early)}")
        return Conversation(id, tuple(parts), questions, tuple(dict.fromkeys(remarks)), befores)

    def _wall(self, at: datetime | None) -> datetime | None:
        """Return a time as a clock on the wall shows it: without its zone, in whole seconds. It is UTC if there are several zones."""
        if at is not None and at.tzinfo is not None and len(self._zones) > 1:
            at = at.astimezone(UTC)
        return None if at is None else at.replace(tzinfo=None, microsecond=0)

    def _ask(self, id: str, parts: Sequence[Part], file: str) -> tuple[tuple[Question, ...], Mapping[str, str]]:
        """Return the questions with ids, and the turns before which some are asked. Raises InputError."""
        turns = {turn.id or "": turn.text for part in parts for turn in part.turns}
        order = {turn: number for number, turn in enumerate(turns)}
        quotations = _Quotations(turns)
        ids = _assign_ids(file, [(each.place, each.question.id or None, str(number)) for number, each in enumerate(self.questions, 1)])
        asked, befores = [], {}
        for each, own in zip(self.questions, ids, strict=True):
            with blame_value(each.place):
                evidence = [quotations.find(label, "evidence", id) for label in each.question.evidence]
                if each.before:
                    before = befores[own] = quotations.find(each.before, "before", id)
                    if not order[before]:
                        raise ValueError(f"before {each.before!r:.80} is the first turn: nothing was said before")
                    if late := [label for label in evidence if order[label] >= order[before]]:
                        raise ValueError(f"evidence {late[0]!r:.80} does not come before turn {before!r:.80}, where the question is asked")
            asked.append(replace(each.question, id=own, evidence=tuple(dict.fromkeys(evidence))))
        return tuple(asked), befores


@final
class _Quotations:
    """Finds the turns that quotations come from. White space and capitals may differ."""

    def __init__(self, turns: Mapping[str, str]) -> None:
        self._turns = turns

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {id: _normalise(text) for id, text in self._turns.items()}

    def find(self, label: str, key: str, conversation: str) -> str:
        """Return the id of the turn that a label is the id of, or of the only turn that contains it as a quotation.

        `key`: the question's key with the label. Raises ValueError.
        """
        if label in self._turns:
            return label
        said = _normalise(label)
        found = list(islice((id for id, text in self._texts.items() if said and said in text), MOST_NAMED))
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"{key} {label!r:.80} is said in several turns ({', '.join(found)}): name one of them")
        raise ValueError(f"{key} {label!r:.80} is neither the id nor a part of a turn of conversation {conversation!r:.80}")


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


@final
class _Names:
    """The speakers of a conversation: roles, or names if there are more than two speakers or no roles."""

    def __init__(self, groups: Iterable[_Group]) -> None:
        found = Counter(
            (said.role, said.name) for group in groups for said in group.said if said.kind == "said" and said.name and said.role
        )
        self._many = any(count > 1 for count in Counter(role for role, _ in found).values())
        known = sorted({f"{role}: {_clean_name(name)}" for role, name in found if name.casefold() != role}) if not self._many else []
        self.remarks = [f"{SPEAKERS}{', '.join(known)}"[:500]] if known else []

    def speaker(self, said: Said) -> str:
        return (_clean_name(said.name) if self._many or not said.role else said.role) or said.role or "unknown"


@lru_cache(maxsize=1000)
def _clean_name(name: str) -> str:
    """Return a name in one line, without control characters."""
    return "".join(filter(str.isprintable, " ".join(name.split())))[:MAX_ID].strip()


def _instant(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _arrange(group: _Group, known: dict[str, int], changes: Counter[str]) -> list[Said]:
    """Return a group's messages in order of time, each with a time if any has one, without repeated ones.

    `known`: what earlier groups say, by id, which is updated. `changes` counts messages that are repeated, renamed or moved.
    """
    said = _drop_repeated(group.said, known, changes)
    dated = [_instant(each.at) for each in said if each.at is not None]
    if not group.ordered and len(dated) > 1:
        if _is_newest_first(dated, said):
            said = list(_restore_messages(said[::-1]))
            dated.reverse()
            changes["moved"] += 1
        if any(one - other >= SKEW for one, other in pairwise(dated)):
            said = sorted(_fill(said), key=lambda each: _instant(each.at or datetime.min))
            changes["moved"] += 1
    return list(_fill(said))


def _drop_repeated(said: Sequence[Said], known: dict[str, int], changes: Counter[str]) -> list[Said]:
    """Return messages without those whose id and content another one has. The first keeps the earliest time, as a state has one time."""
    kept: list[Said] = []
    here: dict[str, int] = {}
    for _, parts in groupby(said, key=lambda each: each.place):
        message = list(parts)
        id = next((each.id for each in message if each.id), "")
        if not id:
            kept += message
            continue
        content = hash(tuple((each.role, each.text) for each in message))
        at = here.get(id)
        if known.get(id) == content:
            changes["repeated"] += 1
            if at is not None and (new := message[0].at) is not None:
                old = kept[at].at
                if old is None or _instant(new) < _instant(old):
                    kept[at : at + len(message)] = [each._replace(at=new) for each in kept[at : at + len(message)]]
            continue
        if at is None and id in known:
            message = [each._replace(id="") for each in message]
            changes["renamed"] += 1
        known.setdefault(id, content)
        here.setdefault(id, len(kept))
        kept += message
    return kept


def _is_newest_first(dated: Sequence[datetime], said: Sequence[Said]) -> bool:
    """Return whether times only go back. Two messages less than SKEW apart prove nothing if the user speaks first."""
    if dated[0] <= dated[-1] or any(one < other for one, other in pairwise(dated)):
        return False
    return len(dated) > 2 or dated[0] - dated[-1] >= SKEW or said[0].role != "user"


def _restore_messages(said: Iterable[Said]) -> Iterator[Said]:
    """Yield reversed messages with the parts of each one in their own order again."""
    parts: list[Said] = []
    for each in said:
        if parts and parts[0].place != each.place:
            yield from reversed(parts)
            parts = []
        parts.append(each)
    yield from reversed(parts)


def _fill(said: Iterable[Said]) -> Iterator[Said]:
    """Yield messages with times: one without a time has that of the one before, or of the first one that has a time."""
    said = list(said)
    last = next((each.at for each in said if each.at is not None), None)
    for each in said:
        last = each.at or last
        yield each if each.at is not None or last is None else each._replace(at=last)


def _split(said: Sequence[Said]) -> Iterator[list[Said]]:
    """Yield sessions of consecutive messages. A new one starts after a pause of more than GAP."""
    session: list[Said] = []
    for each in said:
        last = session[-1].at if session else None
        if last is not None and each.at is not None and _instant(each.at) - _instant(last) > GAP:
            yield session
            session = []
        session.append(each)
    if session:
        yield session


def _is_unsorted(parts: Sequence[Part]) -> bool:
    dates = [part.at for part in parts if part.at is not None]
    return any(other < one for one, other in pairwise(dates))


def _sort(parts: Sequence[Part]) -> list[Part]:
    """Return sessions in the order of time. One without a time follows the one before it."""
    last = next(part.at for part in parts if part.at is not None)
    keys = []
    for part in parts:
        last = part.at or last
        keys.append(last)
    return [part for _, part in sorted(zip(keys, parts, strict=True), key=lambda pair: pair[0])]


def _assign(parts: Sequence[Part], file: str) -> list[Part]:
    """Return sessions that have ids, with turns that have ids."""
    # Ids are assigned once the whole conversation is known, because a later line may give an id that equals a default one.
    ids = _assign_ids(file, [(part.place, part.id, str(number)) for number, part in enumerate(parts, 1)])
    turns = [
        (turn.place, turn.id, "" if turn.id else f"{id}:{number}")
        for id, part in zip(ids, parts, strict=True)
        for number, turn in enumerate(part.turns, 1)
    ]
    own = iter(_assign_ids(file, turns))
    return [part._replace(id=id, turns=[turn._replace(id=next(own)) for turn in part.turns]) for id, part in zip(ids, parts, strict=True)]


def _assign_ids(file: str, things: Sequence[tuple[str, str | None, str]]) -> list[str]:
    """Return ids for things of one kind, each given as its place, the id in the file, and a default.

    A default that is already another thing's id gets a suffix, as in `1:2#2`. Raises InputError if the file uses an id twice.
    """
    places: dict[str, str] = {}
    for place, id, _ in things:
        if id is not None and id in places:
            other = places[id].removeprefix(f"{file}, ")
            raise InputError(f"{place}: its id {id!r:.80} is also the id of {other}; change one of the two ids, or remove it")
        if id is not None:
            places[id] = place
    unique = iter(number_duplicates([*places, *(default for _, id, default in things if id is None)])[len(places) :])
    return [next(unique) if id is None else id for _, id, _ in things]
