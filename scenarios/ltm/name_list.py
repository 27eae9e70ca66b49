"""Name list (GoodAI, section 3.2): the user changes names several times, and the test asks for all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.similar import Similar, count_similar, draw_people, with_asides
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.base.words import ORDINALS, plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.labelled_lists import ListLabel, classify_label, find_labelled_lists
from longspan.simulator.reading.matching import is_slip, join_some, sounds_like
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.list_items import split_items
from longspan.simulator.reading.replies.mentions import drop_replaced
from longspan.simulator.reading.replies.reading import Reading, user_names
from longspan.simulator.reading.replies.values import Values

__all__ = ["NameList"]

LONGEST: Final = 3
"""Maximum number of words in a name."""
MANY: Final = 2
"""Minimum number of rows in a list."""
_NAME: Final = re.compile(r"[^\W\d][\w.'\u2019-]*(?: \w[\w.'\u2019-]*)*(?<!\.)")
_CAPITAL: Final = re.compile(r"(?!(?:Sir|Madam|Thanks|Cheers|Regards|Etc|Please|User)\b)[A-Z][a-z]{2,20}")
_SEPARATED: Final = re.compile(r"[,;/&\u2192>|]|\b(?:and|then)\b")
_NOTE: Final = re.compile(r"\([^()]*\)")
_COMMAS: Final = {0x3001: ", ", 0xFF0C: ", ", 0xFF1B: "; "}
"""Commas and semicolons of East Asian scripts, with their Latin counterparts."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_PAUSES: Final = re.compile(r"\b(?:u+[hm]+|e+rm?|h+m+|ah+)\b[\s,.\u2026-]*", re.IGNORECASE)
"""Hesitations between names that retract nothing."""
_INLINE: Final = re.compile(r"(?<=[\w,;:.]) (?=\(?\d{1,2}[.)] [A-Z])")
"""Positions where a numbered list continues on the same line."""
_NEXT: Final = re.compile(r"(?<=,) ?(?:and )?after (?=[A-Z]\w+\b(?! (?:you|it|came)\b))")
""""After" in the sense of "then" in an enumeration: "Ada, after Ben, after Cleo"."""


@final
class NameList(Scenario):
    """Change the user's name to `names` different names in turn, and ask for all of them as a JSON list.

    The score is the number of hits divided by the length of the longer list, expected or answered, in any order. Names are compared
    without case, accents and punctuation. A repeated name counts as wrong, since no name was taken twice.

    If the reply calls a JSON list complete, that list counts. Otherwise the lists of past and of current names count together, or else
    the last list that is not part of another. JSON objects are accepted too: one for each name ({"name": ...}) or one around the list.
    Without JSON, the lines of a list or the rows of a table count, and failing these the names in the text that are not denied or given
    to others. One wrong letter is tolerated unless it makes another known name. After the last name, the names of `similar` other people
    are stated, none of them the user's.
    """

    name: ClassVar[str] = "name_list"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information")
    topics: ClassVar[frozenset[str]] = frozenset({"user's name"})
    asks_again: ClassVar[bool] = True

    names: int = Field(default=5, ge=1, le=50)
    similar: Similar = 0
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        names = random.sample(load_words("names"), self.names)
        lines = [Line(wording.say(random, "change", name=name)) for name in names]
        lines.append(Line(wording.say(random, "question"), ideal=json.dumps(names), asks=True))
        facts: dict[str, Any] = {"names": names}
        farewell = wording.say(random, "farewell")
        # Drawn last, so that the rest of the test is the same with and without them.
        if self.similar:
            free = [name for name in load_words("names") if name not in names]
            facts["similar"], asides = [], []
            for who in draw_people(random, self.similar):
                facts["similar"].append([who, free.pop(random.randrange(len(free)))])
                asides.append(wording.say(random, "similar", who=who, name=facts["similar"][-1][1]))
            lines = with_asides(lines, asides)
        return Script(facts=facts, lines=lines, farewell=farewell)

    def numbers(self, facts: Mapping[str, Any]) -> Mapping[str, float]:
        return count_similar(facts, "names")

    def chance(self, facts: Mapping[str, Any]) -> float:
        return len(facts["names"]) / len(load_words("names"))

    def guess(self, message: str) -> str | None:
        """Return the requested number of names. Further ones would lengthen the list as much as they may hit."""
        asked = Wording(self.name).read("question", message) is not None
        return json.dumps(Random(message).sample(load_words("names"), self.names)) if asked else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.name_list(facts, record)
        expected = {plain(name): name for name in facts["names"]}
        known = [*expected.values(), *(name for name, _ in facts.get("similar", ())), *load_words("names")]
        reply = _PAUSES.sub("", record.answer.reply.translate(_COMMAS))
        reply = drop_replaced(reply, r"\b(?-i:[A-Z])[^\W\d_]{2,20}", _WORD.pattern, {_WORD.findall(name)[0].lower() for name in known})
        reply = _INLINE.sub("\n", reply) if len(_INLINE.findall(reply)) >= MANY else reply
        listed = _find_answer(reply, Values(known, forms=False))
        listed = [*listed, *_find_added(reply, listed, known)] if listed else _find_written(reply, known)
        answered = [_match_name(name, expected, known) for name in listed]
        given = {plain(name) for name in answered}
        missing = [name for key, name in expected.items() if key not in given]
        wrong = [name for name in answered if plain(name) not in expected]
        hits = len(expected) - len(missing)
        whose = {plain(name): who for who, name in facts.get("similar", ())}
        others = [f"{name} (the user's {whose[plain(name)]})" for name in wrong if plain(name) in whose]
        return Grade(
            score=hits / max(len(expected), len(answered), 1),
            reason=_reason(list(expected.values()), answered, missing, wrong)
            + (f"; other people's: {join_some(others)}" if others else ""),
            turns=(record.answer.turn,),
        )


def _reason(expected: list[str], answered: list[str], missing: list[str], wrong: list[str]) -> str:
    if not answered:
        return f"expected {join_some(expected)}, the reply lists no names"
    repeated = len(answered) - len(wrong) - (len(expected) - len(missing))
    notes = [f"{what} {which}" for what, which in (("missing", join_some(missing)), ("wrong", join_some(wrong))) if which]
    notes += [f"{repeated} repeated"] if repeated else []
    hits = f"{len(expected) - len(missing)} of {len(expected)} in a list of {len(answered)}"
    return f"expected {join_some(expected)}, found {hits}{''.join(f'; {note}' for note in notes)}"


def _find_answer(reply: str, known: Values) -> list[str]:
    """Return the names in the JSON list that the reply calls complete, or else in its lists of past and current names together.

    Failing these, return the last list that is not part of another, or the contents of the reply's objects.
    """
    found = [(item.called, isinstance(item.value, list), list(_texts(item.value, known))) for item in find_labelled_lists(reply)]
    lists = [(what, names) for what, is_list, names in found if names and is_list]
    if not lists:
        return _together([(what, names) for what, _, names in found])
    lists = [each for each in lists if each[0] is not ListLabel.OTHER] or lists
    complete = [names for what, names in lists if what is ListLabel.COMPLETE]
    if complete:
        return complete[-1]
    if {ListLabel.PAST, ListLabel.CURRENT} & {what for what, _ in lists}:
        return _together(lists)
    return next((names for _, names in reversed(lists) if not any(set(names) < set(other) for _, other in lists)), [])


def _find_added(reply: str, listed: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names that a reply adds after its last JSON: "[...] Oh, and also Melanie."."""
    behind = Reading(reply[max((span.end for span in find_json(reply)), default=0) :])
    adds = ("also", "plus", "and")
    more = any(LEXICON.has("added", clause.text) or clause.gap.strip(" .!,").casefold() in adds for clause in behind.clauses)
    return [name for name in behind.find_named(Values(known, forms=False)) if name not in listed] if more else []


def _find_written(reply: str, known: Sequence[str]) -> list[str]:
    """Return the names in a list that is not JSON, or else those in the text."""
    values = Values(known, forms=False)
    rows = [[cell for each in cells if plain(cell := _NOTE.sub("", each)) and not plain(each).isdigit()] for cells in split_items(reply)]
    named = [names for cells in rows if (names := _in_row(cells, values))]
    listed = [name for cells in rows if (names := _in_row(cells, values)) for name in (names if _enumerates(cells, names) else names[:1])]
    if len(named) < MANY or not any(values.find(plain(name)) for name in listed):
        return _in_prose(reply, known) or listed  # "(1) Hannah (2) Ursula"
    several = all(len(names) > 1 for names in named)  # "Hannah became Ursula"
    return list(dict.fromkeys(name for names in named for name in names)) if several else listed


def _in_row(cells: Sequence[str], known: Values) -> list[str]:
    """Return the names in a row of a list: known ones anywhere, or else a capitalised word in the position of a name."""
    said = [name for cell in cells for name in Reading(cell).find_named(known)]
    short = [cell for cell in map(_drop_label, cells) if len(cell.split()) <= LONGEST]
    return said or [name[0] for cell in short if (name := _NAME.search(cell))][:1]


def _enumerates(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a row consists of a label and several names: "Former: Ada, Ben and Cleo"."""
    label, _, said = cells[0].partition(":")
    rest = {*plain(said).split()} - {word for name in names for word in plain(name).split()}
    return (
        len(cells) == 1
        and classify_label(label) in (ListLabel.PAST, ListLabel.CURRENT, ListLabel.COMPLETE)
        and len(names) > 1
        and rest <= {"and", "then"}
    )


def _drop_label(cell: str) -> str:
    """Return a cell without its label: "First name: Zachary", "Fifth: Zachary"."""
    label, _, name = cell.partition(":")
    return name if {"name", "last", "current", "now", "then", *ORDINALS}.intersection(plain(label).split()) else cell


def _in_prose(reply: str, known: Sequence[str]) -> list[str]:
    """Return the names that the text gives to the user, including unknown ones in an enumeration with known ones."""
    said, values = Reading(_NEXT.sub(" then ", reply)), Values(known, forms=False)
    names = said.find_named(values, user_names(load_words("people")))
    places = {at for at, clause in enumerate(said.clauses) if any(found.value in names for found in values.find(clause.text))}
    joint = [clause.link == "joint" for clause in said.clauses]
    for at, clause in enumerate(said.clauses):
        beside = (joint[at] and at - 1 in places) or (at + 1 in places and joint[at + 1])
        if at not in places and beside and _CAPITAL.fullmatch(clause.raw):
            places.add(at)
            names.append(clause.raw)
    return names


def _match_name(name: str, expected: Mapping[str, str], known: Sequence[str]) -> str:
    """Return the expected name that a misspelling stands for, unless it is a known name itself ("Helen" is not Helena)."""
    said = plain(name)
    slips = [right for key, right in expected.items() if _is_slip(said, key) or sounds_like(said, key)]
    return slips[0] if len(slips) == 1 and plain(name) not in _keys(tuple(known)) else name


def _is_slip(said: str, name: str) -> bool:
    return is_slip(said, name) and (len(said) == len(name) or said[-1:] == name[-1:])


@lru_cache(8)
def _keys(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(plain, names))


def _together(lists: Iterable[tuple[ListLabel, list[str]]]) -> list[str]:
    """Return the names of several lists. A name that is in both the past and the current list is not a repetition."""
    names: list[str] = []
    for what, more in lists:
        known = set(names) if what is not ListLabel.NOTHING else set()
        names += [name for name in more if name not in known]
    return names


def _texts(value: Any, known: Values) -> Iterator[str]:
    """Yield the names in a JSON value, known ones or any string, without notes in parentheses.

    In an object with a key "name", strings under other keys are notes. So are strings next to a name in a list of rows.
    """
    if isinstance(value, str):
        text = _NOTE.sub("", value).strip()
        found = [text[each.start : each.end] if len(plain(text)) == len(text) else each.value for each in known.find(plain(text))]
        if len(found) > 1 and _SEPARATED.search(text):
            yield from found
        elif plain(text):
            yield text
    elif isinstance(value, list):
        rows = all(isinstance(item, list) for item in value)
        for item in value:
            named = [text for text in item if isinstance(text, str) and known.find(plain(text))] if rows else []
            yield from _texts(named if len(named) == 1 else item, known)
    elif isinstance(value, dict):
        keys = [key for key in value if known.find(plain(key))]
        if len(keys) > 1 and not any(known.find(plain(str(item))) for item in value.values()):
            yield from keys
            return
        headed = {key for key in value if "name" in key.casefold()}
        dated = (ListLabel.PAST, ListLabel.CURRENT)
        items = [
            (key, item)
            for key, item in value.items()
            if not headed
            or key in headed
            or isinstance(item, (list, dict))
            or (classify_label(key) in dated and known.find(plain(str(item))))
        ]
        lists = [(classify_label(key), list(_texts(item, known))) for key, item in items]
        complete = [names for what, names in lists if what is ListLabel.COMPLETE]
        yield from complete[-1] if complete else _together(lists)
