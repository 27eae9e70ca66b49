"""Answers and ranked ids from a system that ran elsewhere, matched to the questions of histories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, final

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from longspan.scenarios.histories.data_files import blame_value
from longspan.scenarios.histories.formats.questions import read_records
from longspan.scenarios.histories.history import History
from longspan.scenarios.histories.scenario import Histories
from longspan.scenarios.histories.telling import places_by_turn, tell_turns
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.suggestions import suggest
from longspan.simulator.contract.given_answers import GivenReply, MatchedAnswers
from longspan.simulator.contract.scenario import Test
from longspan.simulator.reading.matching import join_some

__all__ = ["match_answers"]

MAX_RANKED: Final = 10_000
"""Maximum number of ranked ids for one question."""
MAX_ANSWER: Final = 1_000_000
"""Maximum length of an answer in characters."""

_KEYS: Final = "its keys are id (or question_id), conversation, answer (or hypothesis) and retrieved"


def _listed(value: Any) -> Any:
    """Return each ranked entry as a list of ids."""
    return [each if isinstance(each, list) else [each] for each in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    """Return a number as text: ids may be numbers."""
    return str(value) if type(value) is int else value


Id = Annotated[str, BeforeValidator(_text), Field(min_length=1, max_length=1000)]


class _GivenRow(BaseModel):
    """What a system gave for one question. Other keys, such as its own scores, are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    id: Id = Field(validation_alias=AliasChoices("id", "question_id"))
    conversation: str = ""
    answer: Annotated[str | None, Field(max_length=MAX_ANSWER)] = Field(None, validation_alias=AliasChoices("answer", "hypothesis"))
    retrieved: Annotated[list[Annotated[list[Id], Field(min_length=1)]] | None, BeforeValidator(_listed), Field(max_length=MAX_RANKED)] = (
        None
    )

    @model_validator(mode="after")
    def _has_content(self) -> _GivenRow:
        if self.answer is None and self.retrieved is None:
            raise ValueError("has neither an answer nor retrieved ids")
        return self


def match_answers(path: Path, tests: Sequence[Test]) -> MatchedAnswers:
    """Return the replies in a file, by the id of the test that asks the question.

    A reply's `read` contains, for each ranked entry, the places of the turns that it names. Raises InputError in one line for an unreadable
    file, an unknown or ambiguous id, or a question that is answered twice.
    """
    asked = _Questions(tests)
    rows: dict[str, _GivenRow] = {}
    read: set[str] = set()
    for where, row in _read_rows(path, read):
        test = asked.find(f"{row.conversation}/{row.id}" if row.conversation else row.id, where)
        if test.id in rows:
            raise InputError(f"{where}: question {row.id!r:.80} is answered twice; keep one of them")
        if row.retrieved is not None:
            asked.check_ranked(test, row.retrieved, where)
        rows[test.id] = row
    if not rows:
        raise InputError(f"{path}: has no answers")
    answered = any(row.answer is not None for row in rows.values())
    ranked = [row.retrieved for row in rows.values() if row.retrieved is not None]
    replies = {
        test.id: GivenReply(
            ((row.answer if row else None) or "") if answered else None,
            asked.find_places(test, (row.retrieved if row else None) or []) if ranked else None,
        )
        for test in asked.tests
        for row in [rows.get(test.id)]
    }
    without = [asked.names[test.id] for test in asked.tests if answered and not replies[test.id].text]
    unranked = [asked.names[test.id] for test in asked.tests if test.script.facts["evidence"] and replies[test.id].read == []]
    notes = [f"{path}: {note}" for note in sorted(read)]
    notes += [f"{_count(without, len(replies))} no answer, which is wrong: {join_some(without)}"] if without else []
    notes += [f"{_count(unranked, len(replies))} no retrieved ids, so nothing was found: {join_some(unranked)}"] if unranked else []
    return MatchedAnswers(replies, max(map(len, ranked), default=0), notes)


def _count(names: Sequence[str], total: int) -> str:
    return f"{len(names):,} of {total:,} questions {'has' if len(names) == 1 else 'have'}"


@final
class _Questions:
    """The tests with a question about a history, by all names that their questions have, and the histories."""

    def __init__(self, tests: Sequence[Test]) -> None:
        self.tests = [test for test in tests if "question" in test.script.facts]
        self.names = {test.id: f"{test.script.facts['history']}/{test.script.facts['id']}" for test in self.tests}
        self._by_name: dict[str, list[Test]] = {}
        for test in self.tests:
            for name in dict.fromkeys((test.script.facts["id"], self.names[test.id], test.id)):
                self._by_name.setdefault(name, []).append(test)
        # A question before a turn is about a history such as `conv-26@D3:1`, and the name of its conversation is enough to find it.
        self._by_conversation: dict[str, list[Test]] = {}
        for test in self.tests:
            history = test.script.facts["history"]
            for at in (place for place, character in enumerate(history) if character == "@"):
                self._by_conversation.setdefault(f"{history[:at]}/{test.script.facts['id']}", []).append(test)
        scenario = tests[0].scenario
        if not isinstance(scenario, Histories) or not self.tests:
            raise InputError(f"scenario {scenario.name}: answers are scored for questions about a history, each in a test of its own")
        self._histories = {history.id: history for history in scenario.load()}
        self._turns: dict[str, Mapping[str, Sequence[int]]] = {}

    def find(self, name: str, where: str) -> Test:
        """Return the test that asks a question. Raises InputError for an unknown or ambiguous name."""
        found = self._by_name.get(name) or self._by_conversation.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            names = join_some([self.names[test.id] for test in found])
            raise InputError(f"{where}: {name!r:.80} is the id of several questions; name the conversation as well: {names}")
        first = next(iter(self._by_name))
        raise InputError(f"{where}: no question has the id {name!r:.80}{suggest(name, self._by_name, f'ids are such as {first!r:.80}')}")

    def check_ranked(self, test: Test, ranked: Sequence[Sequence[str]], where: str) -> None:
        """Raise InputError if an id names neither a turn nor a session of the test's history."""
        places = self._places(test)
        unknown = next((id for entry in ranked for id in entry if id not in places), None)
        if unknown is not None:
            history, example = test.script.facts["history"], f"ids are such as {next(iter(places))!r:.80}"
            near = suggest(unknown, places, example)
            raise InputError(f"{where}: retrieved: {history!r:.80} has no turn and no session {unknown!r:.80}{near}")

    def find_places(self, test: Test, ranked: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the places of the told turns that each ranked entry names."""
        places = self._places(test)
        return [sorted({place for id in entry for place in places[id]}) for entry in ranked]

    def _places(self, test: Test) -> Mapping[str, Sequence[int]]:
        id = test.script.facts["history"]
        if id not in self._turns:
            self._turns[id] = _find_places(self._histories[id])
        return self._turns[id]


def _find_places(history: History) -> Mapping[str, Sequence[int]]:
    """Return the places of the told turns, by the id of a turn or a session. A turn's id takes precedence."""
    turns = places_by_turn(tell_turns(history))
    sessions = {session.id: sorted({turns[turn.id] for turn in session.turns}) for session in history.sessions}
    return {id: [place] for id, place in turns.items()} | {id: places for id, places in sessions.items() if id not in turns}


# ---- the file


def _read_rows(path: Path, notes: set[str]) -> Iterator[tuple[str, _GivenRow]]:
    """Yield each row of a file with its place. An object without a question's id has an entry for each id."""
    for where, record in read_records(path, ("retrieved",), notes):
        by_id = isinstance(record, dict) and not record.keys() & {"id", "question_id"}
        for place, value in _entries(where, record) if by_id else [(where, record)]:
            with blame_value(place):
                if not isinstance(value, dict):
                    raise ValueError(f'must be an object such as {{"id": "q1", "answer": "..."}}; {_KEYS}')
                yield place, _GivenRow.model_validate(value)


def _entries(where: str, given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for id, value in given.items():
        own = value if isinstance(value, dict) else {"retrieved" if isinstance(value, list) else "answer": value}
        yield f"{where}, {id!r:.80}", own | {"id": id}
