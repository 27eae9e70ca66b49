"""Name list (GoodAI, section 3.2): the user goes by one name after another, and all of them are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, ClassVar, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.grading.matching import json_values, plain, some
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Line, Script

__all__ = ["NameList"]


@final
class NameList(Scenario):
    """The user takes `names` names in turn, all different; all of them are asked for as a JSON list.

    The score is the number of hits over the length of the longer list, expected or answered, in any order. Names are
    compared without case, accents and punctuation. A repeated name counts as a wrong one: no name was taken twice.
    The last JSON list that holds text counts. Objects are read too: one for each name ({"name": ...}) or one around the
    list. Names in running text score 0: the question asks for JSON, and the agent may be naming those it rules out.
    """

    name: ClassVar[str] = "name_list"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information")
    topics: ClassVar[frozenset[str]] = frozenset({"user's name"})

    names: int = Field(default=5, ge=1, le=50)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        names = random.sample(words("names"), self.names)
        lines = [Line(wording.say(random, "change", name=name)) for name in names]
        lines.append(Line(wording.say(random, "question"), ideal=json.dumps(names), asks=True))
        return Script(facts={"names": names}, lines=lines, farewell=wording.say(random, "farewell"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        return len(facts["names"]) / len(words("names"))

    def guess(self, message: str) -> str | None:
        """Return as many names as are asked for: every further one lengthens the list as much as it may hit."""
        asked = Wording(self.name).read("question", message) is not None
        return json.dumps(Random(message).sample(words("names"), self.names)) if asked else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        if self.rules == "paper":
            return paper.name_list(facts, record)
        expected = {plain(name): name for name in facts["names"]}
        answered = _answered(record.answer.reply)
        given = {plain(name) for name in answered}
        missing = [name for key, name in expected.items() if key not in given]
        wrong = [name for name in answered if plain(name) not in expected]
        hits = len(expected) - len(missing)
        return Grade(
            score=hits / max(len(expected), len(answered), 1),
            reason=_reason(list(expected.values()), answered, missing, wrong),
            turns=(record.answer.turn,),
        )


def _reason(expected: list[str], answered: list[str], missing: list[str], wrong: list[str]) -> str:
    if not answered:
        return f"expected {some(expected)}, the reply holds no JSON list of names"
    repeated = len(answered) - len(wrong) - (len(expected) - len(missing))
    notes = [f"{what} {which}" for what, which in (("missing", some(missing)), ("wrong", some(wrong))) if which]
    notes += [f"{repeated} repeated"] if repeated else []
    hits = f"{len(expected) - len(missing)} of {len(expected)} in a list of {len(answered)}"
    return f"expected {some(expected)}, found {hits}{''.join(f'; {note}' for note in notes)}"


def _answered(reply: str) -> list[str]:
    """Return the names in the last JSON list that holds text or, without one, those in the reply's objects."""
    values = json_values(reply)
    lists = [names for value in values if isinstance(value, list) and (names := list(_texts(value)))]
    return lists[-1] if lists else [name for value in values for name in _texts(value)]


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, without notes in parentheses; of an object with "name" keys, only theirs."""
    if isinstance(value, str):
        text = re.sub(r"\([^()]*\)", "", value)
        if plain(text):
            yield text.strip()
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        named = [item for key, item in value.items() if "name" in key.casefold()]
        for item in named or value.values():
            yield from _texts(item)
