"""Build facts and a record for longspan's graders from a GoodAI test's messages and expected responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from longspan.scenarios.goodai.files import LoggedTurn, TestRecord
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.reading.matching import contains_phrase, join_some

__all__ = ["SCENARIOS", "make_facts", "make_record"]

SCENARIOS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ChapterBreak": "chapterbreak",
        "Colours": "colours",
        "Jokes": "jokes",
        "Locations Directions": "locations",
        "NameList": "name_list",
        "Prospective Memory": "prospective_memory",
        "Restaurant": "restaurant",
        "SallyAnne": "sally_anne",
        "Shopping": "shopping",
        "Spy Meeting": "spy_meeting",
        "Trigger Response": "trigger_response",
    }
)
"""Name of the scenario that plays each of GoodAI's datasets."""

Pool = Iterable[Sequence[Sequence[str]]]
"""Expected answers of each of a run's spy meetings: for each message, the words accepted as its meaning."""

_Word = Annotated[str, StringConstraints(pattern=r"\w")]
_Words = Annotated[list[_Word], Field(min_length=1)]


class _Quotation(NamedTuple):
    text: _Word
    author: _Word
    nth: Annotated[int, Field(strict=True, ge=2, le=1000)]


class _Item(NamedTuple):
    name: _Word
    quantity: Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


_ONE_WORD = TypeAdapter(tuple[_Word])
_WORDS = TypeAdapter(_Words)
_QUOTATION = TypeAdapter(tuple[_Quotation])
_ITEMS = TypeAdapter(Annotated[list[_Item], Field(min_length=1)])
_MEANINGS = TypeAdapter(Annotated[list[_Words], Field(min_length=1)])
_POOL = TypeAdapter(list[list[list[str]]])
_TEXTS = TypeAdapter(list[str])


def make_facts(dataset: str, lines: Sequence[str], expected: Sequence[Any], pool: Pool = ()) -> dict[str, Any]:
    """Return the facts for the grader of the scenario for `dataset`, in the shape of the scenario's own facts.

    `lines` are the test's own messages in order, with its questions as far as they are known. `expected` holds the replies that GoodAI's
    benchmark expects. A spy meeting may be confused with the others of the `pool`, which may include itself. Raises InputError for a
    dataset without facts, and for messages or responses that differ from the published ones.
    """
    read = _READERS.get(dataset)
    if read is None:
        raise InputError(f"no facts for the dataset {dataset!r:.60}; known are {', '.join(_READERS)}")
    try:
        if dataset == "Spy Meeting":
            return _spy_meeting(expected, _POOL.validate_python(list(pool)))
        return read(_texts(dataset, lines), expected)
    except ValidationError as error:
        raise InputError(f"{dataset}: the expected responses are not as published: {first_problem(error)}") from None


def make_record(test: TestRecord) -> Record:
    """Return the record of a test for longspan's graders: its own turns, its questions, and the turns it watched.

    Turns are counted from 0 in its log. The message that ends a test ("Forget ...") is not part of it. Raises InputError if
    the recorded test is not as published.
    """
    return _record_watching(test) if test.dataset == "Prospective Memory" else _record_asking(test)


def _texts(what: str, texts: Iterable[object]) -> list[str]:
    try:
        return _TEXTS.validate_python(list(texts))
    except ValidationError as error:
        raise InputError(f"{what}: its messages and replies must be text: {first_problem(error)}") from None


# ---- records


def _record_asking(test: TestRecord) -> Record:
    """Return the record of a test that asks questions. Its answers are those that GoodAI graded, found in its log."""
    answers = _texts(_name_test(test), test.actual_responses)
    said = test.said
    places = _places(said, answers)
    asked = set(places.values())
    own = said[: max(asked) + 1] if asked else said
    exchanges = [Exchange(turn=at, text=turn.text, reply=turn.reply, asks=at in asked) for at, turn in enumerate(own)]
    lost = [answer for number, answer in enumerate(answers) if number not in places]
    return Record(exchanges=exchanges + [Exchange(turn=len(said), text="", reply=answer, asks=True) for answer in lost])


def _places(said: Sequence[LoggedTurn], answers: Sequence[str]) -> dict[int, int]:
    """Return the position in the log of each answer, by its number. The log is searched from the end."""
    places: dict[int, int] = {}
    before = len(said)
    for number, answer in reversed(list(enumerate(answers))):
        matches = [at for at in range(before) if said[at].reply.strip() == answer.strip()]
        if matches:
            before = places[number] = matches[-1]
    return places


def _record_watching(test: TestRecord) -> Record:
    """Return the record of a test that watches: quotation, instruction, then all turns of any test until it ended."""
    said = test.said
    try:
        ((_, author, _),) = _QUOTATION.validate_python(test.expected_responses)
    except ValidationError as error:
        raise InputError(f"{_name_test(test)}: the expected responses are not as published: {first_problem(error)}") from None
    asked = next((at for at in range(1, len(said)) if contains_phrase(said[at].text, author)), None)
    if asked is None:
        raise InputError(f"{_name_test(test)}: its log has no instruction to append a quotation by {author:.60}")
    ended = len(said) - plain(said[-1].text).startswith("forget ")
    turns = [Exchange(turn=at, text=turn.text, reply=turn.reply, asks=at == asked) for at, turn in enumerate(said[:ended])]
    return Record(exchanges=turns[: asked + 1], watched=turns[asked + 1 :])


def _name_test(test: TestRecord) -> str:
    return f"{test.dataset:.60} {test.example:.60} of {test.agent:.60}"


# ---- facts


def _chapterbreak(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    (answer,) = _ONE_WORD.validate_python(expected)
    if not re.fullmatch(r"[1-9][0-9]?", answer):
        raise InputError(f"ChapterBreak: the expected response must be an option's number, got {answer!r:.60}")
    options = sum(bool(re.match(r"Option \d+:", line)) for line in lines)
    return {"answer": int(answer), "openings": max(options, int(answer))}


def _colours(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    (colour,) = _ONE_WORD.validate_python(expected)
    told = [match[1] or match[2] for line in lines if (match := re.match(r"(\w+) is my [^?]*$|.* (?:is|as) (\w+)\.?$", line))]
    return {"colour": colour, "told": told}


def _jokes(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    (joke,) = _ONE_WORD.validate_python(expected)
    asks = bool(lines) and re.search(r"\bjoke\b.{0,80}\bago\b", lines[-1]) is not None
    jokes = list(lines[: len(lines) - asks])
    known = [plain(text) for text in jokes]
    if plain(joke) not in known:
        raise InputError(f"Jokes: the test does not tell the expected joke, {joke!r:.80}")
    return {"jokes": jokes, "asked": known.index(plain(joke))}


_LEG = re.compile(
    r"""From\ (?P<begin>[^,\n]{1,80}),\ go\ (?P<distance>\d{1,4}(?:\.\d{1,3})?)\ ?(?P<unit>km|miles)
    \ (?P<way>north|east|south|west)\ to\ (?P<end>[^\n]{1,80}?)\.?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def _locations(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    """Return the facts of a town. They come from the expected route, which has one form, while the messages have many."""
    (way,) = _ONE_WORD.validate_python(expected)
    legs = [match.groupdict() for match in _LEG.finditer(way)]
    places = [leg["begin"] for leg in legs[:1]] + [leg["end"] for leg in legs]
    units = {leg["unit"].casefold() for leg in legs}
    if [leg["begin"] for leg in legs] != places[:-1] or len(units) != 1:
        raise InputError(f"Locations Directions: expected legs like 'From A, go 1km North to B.', got {way!r:.80}")
    return {"places": places, "legs": [[leg["way"].casefold(), float(leg["distance"])] for leg in legs], "unit": units.pop()}


def _name_list(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    return {"names": _WORDS.validate_python(expected)}


def _prospective_memory(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    ((quotation, author, nth),) = _QUOTATION.validate_python(expected)
    if len(lines) < 2:
        raise InputError(f"Prospective Memory: expected a quotation and an instruction where to append it, got {len(lines)} messages")
    return {"quotation": quotation, "author": author, "nth": nth, "telling": lines[0], "instruction": lines[1]}


_PUT = re.compile(r"(?:\bThe .{1,80} (?:is|are) in|\bmoved .{1,80} to) the (\w{1,80})\W*$")
"""A statement of where an object is or is moved to. Lines about a person's location do not begin with "The"."""


def _sally_anne(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    (answer,) = _ONE_WORD.validate_python(expected)
    places = [match[1] for line in lines if (match := _PUT.search(line))]
    if answer not in places:
        raise InputError(f"SallyAnne: the story puts nothing into the expected {answer!r:.60}, only into {join_some(places) or 'nothing'}")
    return {"answer": answer, "containers": list(dict.fromkeys(places)), "first": places[0], "really": places[-1]}


def _shopping_facts(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    return {"list": {item.name: item.quantity for item in _ITEMS.validate_python(expected)}}


def _spy_meeting(expected: Any, pool: Sequence[Sequence[Sequence[str]]]) -> dict[str, Any]:
    """Return the facts of a spy meeting. Lists that share a word belong to the same message, from different versions.

    Lists of this test's messages widen the accepted answers; the meanings of other messages are foreign.
    """
    accepted = [dict.fromkeys(meanings) for meanings in _MEANINGS.validate_python(expected)]
    foreign: list[dict[str, None]] = []
    for meanings in (meanings for meeting in pool for meanings in meeting):
        known = _keep_shared_meanings(accepted, meanings) or _keep_shared_meanings(foreign, meanings)[:1]
        for message in known:
            message.update(dict.fromkeys(meanings))
        if not known:
            foreign.append(dict.fromkeys(meanings))
    return {"accepted": list(map(list, accepted)), "foreign": list(map(list, foreign))}


def _keep_shared_meanings(messages: Sequence[dict[str, None]], meanings: Sequence[str]) -> list[dict[str, None]]:
    """Return the messages that may mean one of `meanings`."""
    return [message for message in messages if not message.keys().isdisjoint(meanings)]


def _trigger_response(lines: Sequence[str], expected: Any) -> dict[str, Any]:
    phrases = _WORDS.validate_python(expected)
    if len(set(phrases)) > 1:
        raise InputError(f"Trigger Response: expected the same phrase each time, got {join_some(dict.fromkeys(phrases))}")
    return {"phrase": phrases[0], "triggers": len(phrases)}


_READERS: Final[Mapping[str, Callable[[Sequence[str], Any], dict[str, Any]]]] = {
    "ChapterBreak": _chapterbreak,
    "Colours": _colours,
    "Jokes": _jokes,
    "Locations Directions": _locations,
    "NameList": _name_list,
    "Prospective Memory": _prospective_memory,
    "SallyAnne": _sally_anne,
    "Shopping": _shopping_facts,
    "Spy Meeting": lambda lines, expected: _spy_meeting(expected, ()),
    "Trigger Response": _trigger_response,
}
